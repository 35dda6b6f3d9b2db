"""Stamps that are written otherwise, or said to be what they are not, give the same bars, an error or a warning, but never other bars."""

from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bellmark
from bellmark import clock
from bellmark.component import make
from bellmark.datasets.imported import Imported
from bellmark.errors import BellmarkError

pytestmark = pytest.mark.none

MINUTE = 60 * clock.SECOND
UNITS = {"s": clock.SECOND, "ms": 10**6, "us": 10**3, "ns": 1}
often = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def moment(text):
    return int(np.datetime64(text, "ns").astype(np.int64))


def written(folder, stamps, name="bars.csv"):
    rows = [f"{stamp},{10 + n % 5},{11 + n % 5},{9 + n % 5},{10 + n % 5},{n}" for n, stamp in enumerate(stamps)]
    (folder / name).write_text("\n".join(["ts,open,high,low,close,volume", *rows]) + "\n")
    return folder / name


def bars_of(folder, stamps, **said):
    """Report, closes and volumes (which name the rows) of an import."""
    given = {"format": "csv", "symbol": "X", "stamp": "close", "bar": "1m", "data_dir": folder / "data", "name": "x", "replace": True}
    report = bellmark.import_dataset(written(folder, stamps), **given | said)
    ((bars, _),) = make(Imported, {"path": str(report.path)}, "data").read()
    return report, list(zip(bars.ts_event.tolist(), bars.volume.tolist(), strict=True))


def right(ts):
    return [(stamp, float(n)) for n, stamp in enumerate(ts)]


def tried(folder, stamps, **said):
    try:
        return bars_of(folder, stamps, **said)
    except BellmarkError as error:
        assert "\n" not in str(error)
        return None, None


# Minutes from some time before until some time after the clocks of New York and Berlin change.
CHANGES = st.sampled_from(
    [("America/New_York", "2025-11-02T06:00"), ("America/New_York", "2025-03-09T07:00"), ("Europe/Berlin", "2025-10-26T01:00"),
     ("Australia/Lord_Howe", "2025-04-05T15:00")]
)  # fmt: skip
STEPS = st.lists(st.sampled_from([1, 1, 1, 7, 31]), min_size=8, max_size=60)


@often
@given(change=CHANGES, before=st.integers(-90, 120), steps=STEPS, order=st.sampled_from(["file_order", "error"]),
       chunk=st.sampled_from([1024, 1 << 20]))  # fmt: skip
def test_local_times_around_a_change_of_the_clocks_are_told_or_refused(tmp_path, change, before, steps, order, chunk):
    zone, at = change
    ts = (moment(at) + MINUTE * (np.cumsum(steps) - before)).tolist()
    stamps = [f"{datetime.fromtimestamp(stamp // clock.SECOND, ZoneInfo(zone)):%Y-%m-%d %H:%M:%S}" for stamp in ts]
    _, found = tried(tmp_path, stamps, zone=zone, repeated_hour=order, chunk_bytes=chunk)
    assert found is None or found == right(ts)
    with_offsets = [f"{datetime.fromtimestamp(stamp // clock.SECOND, ZoneInfo(zone)):%Y-%m-%d %H:%M:%S%z}" for stamp in ts]
    assert bars_of(tmp_path, with_offsets, chunk_bytes=chunk)[1] == right(ts)


@often
@given(data=st.data(), first=st.sampled_from(["1985-02-01", "2001-10-01", "2024-12-31T23:50"]))
def test_epoch_times_of_any_unit_are_the_same_or_refused(tmp_path, data, first):
    ts = (moment(first) + MINUTE * np.arange(12)).tolist()
    units = data.draw(st.one_of(st.sampled_from(sorted(UNITS)).map(lambda unit: [unit] * 12),
                                st.lists(st.sampled_from(sorted(UNITS)), min_size=12, max_size=12)))  # fmt: skip
    stamps = [str(stamp // UNITS[unit]) for stamp, unit in zip(ts, units, strict=True)]
    _, found = tried(tmp_path, stamps)
    assert found == right(ts) if first > "2001" else found is None or found == right(ts)


@often
@given(factor=st.sampled_from([10, 100, 1000, 10_000]), unit=st.sampled_from(sorted(UNITS)), up=st.booleans(), few=st.integers(1, 12))
def test_epoch_times_of_a_wrong_size_are_refused(tmp_path, factor, unit, up, few):
    ts = (moment("2024-12-31T23:50") + MINUTE * np.arange(12)).tolist()
    stamps = [stamp // UNITS[unit] for stamp in ts]
    wrong = [(stamp * factor if up else stamp // factor) if n < few else stamp for n, stamp in enumerate(stamps)]
    _, found = tried(tmp_path, [str(stamp) for stamp in wrong])
    assert found is None or found == right(ts)


@often
@given(zone=st.sampled_from(["UTC", "America/Chicago", "Europe/London", "Asia/Tokyo", "America/New_York", "Etc/GMT+5"]),
       day=st.sampled_from(["2024-01-17", "2024-07-17", "2024-11-29"]), stamp=st.sampled_from(["open", "close"]))  # fmt: skip
def test_a_wrong_zone_is_seen_by_the_session(tmp_path, zone, day, stamp):
    """New York's session, told to be of another zone or stamped otherwise: the same bars, or somebody is told."""
    open_at = datetime.fromisoformat(f"{day}T09:30").replace(tzinfo=ZoneInfo("America/New_York"))
    minutes = 210 if day == "2024-11-29" else 390  # the day after Thanksgiving ends at 13:00
    ts = [int(open_at.timestamp()) * clock.SECOND + MINUTE * n for n in range(1, minutes + 1)]
    stamps = [f"{datetime.fromtimestamp(each // clock.SECOND, ZoneInfo('America/New_York')):%Y-%m-%d %H:%M:%S}" for each in ts]
    report, found = tried(tmp_path, stamps, zone=zone, session="nyse", stamp=stamp)
    assert found is None or found == right(ts) or report.warnings or report.manifest["symbols"]["X"]["outside_session"] > 0


@often
@given(data=st.data(), symbols=st.integers(1, 3))
def test_rows_of_several_symbols_shuffled_and_repeated_are_the_same_or_refused(tmp_path, data, symbols):
    ts = (moment("2024-03-04T14:31") + MINUTE * np.arange(8)).tolist()
    rows = [(stamp, f"S{name}", n) for n, stamp in enumerate(ts) for name in range(symbols)]
    some = data.draw(st.permutations(rows)) if data.draw(st.booleans()) else list(rows)
    for place in data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=3)):
        some.insert(place, some[place])
    text = "".join(f"{clock.text(stamp)},{name},{10 + n},{11 + n},{9 + n},{10 + n},{n}\n" for stamp, name, n in some)
    (tmp_path / "many.csv").write_text("ts,symbol,open,high,low,close,volume\n" + text)
    said = {"format": "csv", "stamp": "close", "data_dir": tmp_path / "data", "name": "m", "replace": True}
    unsorted = data.draw(st.sampled_from([{}, {"on": {"unsorted": "sort"}}]))
    try:
        report = bellmark.import_dataset(tmp_path / "many.csv", chunk_bytes=data.draw(st.sampled_from([1024, 1 << 20])), **said, **unsorted)
    except BellmarkError as error:
        assert "\n" not in str(error)
        return
    found = make(Imported, {"path": str(report.path)}, "data").read()
    assert sorted(bars.symbol for bars, _ in found) == [f"S{name}" for name in range(symbols)]
    for bars, _ in found:
        assert list(zip(bars.ts_event.tolist(), bars.volume.tolist(), strict=True)) == right(ts)
