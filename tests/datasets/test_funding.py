"""Funding instants that are missing are said: between two, at the ends of the bars, and of a symbol without any."""

import polars as pl
import pytest

import bellmark
from bellmark import clock
from bellmark.datasets.funding import missing

pytestmark = pytest.mark.none

HOUR = 3600 * clock.SECOND
T0 = 1_704_067_200 * clock.SECOND  # 2024-01-01


def told(hours, last=48, known=8.0, intervals=None):
    columns = {"symbol": "X", "ts": [T0 + round(hour * HOUR) for hour in hours]}
    if intervals is not None:
        columns["interval_hours"] = intervals
    return missing(pl.DataFrame(columns), {"X": (T0 + HOUR, T0 + last * HOUR)}, known)


@pytest.mark.parametrize(
    ("hours", "more", "right"),
    [
        ([0, 8, 16, 24, 32, 40, 48], {}, None),
        ([0.000001, 8.000002, 16, 24, 32, 40.000001, 48], {}, None),  # stamped late by milliseconds
        ([0, 8, 24, 32, 40, 48], {}, "1 funding instant is missing, first after 2024-01-01T08:00:00Z"),
        ([0, 32, 48], {}, "4 funding instants are missing, first after 2024-01-01T00:00:00Z"),
        ([24, 32, 40, 48], {}, "2 funding instants are missing, first after 2024-01-01T01:00:00Z"),
        ([0, 8, 16], {}, "4 funding instants are missing, first after 2024-01-01T16:00:00Z"),
        ([-48, 0, 8, 16, 24, 32, 40, 48, 96], {}, None),  # outside the bars
        ([0, 8, 16, 48], {"known": None}, None),  # nobody said how often
        ([0, 8, 16, 20, 24, 28], {"last": 28, "intervals": [8.0, 8.0, 8.0, 4.0, 4.0, 4.0]}, None),  # the exchange changed it
        ([0, 8, 16, 24, 28], {"last": 28, "intervals": [8.0, 8.0, 4.0, 4.0, 4.0]}, "1 funding instant is missing"),
    ],
)
def test_missing_instants_are_counted(hours, more, right):
    lines = told(hours, **more)
    assert lines == [] if right is None else len(lines) == 1 and right in lines[0] and lines[0].startswith("X: ")


def test_a_symbol_without_rates_is_said():
    frame = pl.DataFrame({"symbol": ["X"], "ts": [T0]})
    assert missing(frame, {"Y": (T0, T0)}, 8.0) == ["Y: no funding rates are given for it; its positions pay none"]


def test_an_import_warns_of_the_instrument_s_missing_instants(tmp_path):
    stamps = [clock.text(T0 + hour * HOUR) for hour in range(1, 25)]
    (tmp_path / "bars.csv").write_text("ts,open,high,low,close,volume\n" + "".join(f"{stamp},1,1,1,1,1\n" for stamp in stamps))
    rates = tmp_path / "BTCUSDT-fundingRate-2024-01.csv"
    ms = [(T0 + hour * HOUR) // 10**6 for hour in (0, 24)]
    rates.write_text("calc_time,funding_interval_hours,last_funding_rate\n" + "".join(f"{stamp},,0.0001\n" for stamp in ms))
    given = {"format": "csv", "stamp": "close", "symbol": "BTCUSDT", "instrument": "BTC-PERP", "data_dir": tmp_path / "data"}
    report = bellmark.import_dataset(tmp_path / "bars.csv", funding=[rates], **given)
    text = "BTCUSDT: 2 funding instants are missing, first after 2024-01-01T00:00:00Z; positions pay none there"
    assert text in report.warnings and text in report.manifest["notes"]
