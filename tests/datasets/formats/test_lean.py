"""LEAN zips: dates in names, prices in ten-thousandths, contracts by name, quotes with one side."""

import zipfile

import pytest
from format_cases import rows_of, stamps, values

from bellmark.datasets.formats import recognise
from bellmark.errors import DataError, UsageError


@pytest.fixture
def read(tmp_path):
    def run(members, form="lean_future", **options):
        path = tmp_path / "x.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for name, text in members.items():
                archive.writestr(name, text)
        run.recognised = recognise(path)
        return rows_of(path, form, **options)

    return run


MARCH, JUNE = "20240304_es_minute_trade_202403.csv", "20240304_es_minute_trade_202406.csv"
ROWS = "52200000,5130.25,5130.75,5128.75,5129,1565\n52260000,5129,5129.25,5126.25,5126.75,1771\n"


def test_contracts_are_named_and_chosen(read):
    frame, facts, _ = read({MARCH: ROWS, JUNE: ROWS}, zone="UTC")
    assert frame["symbol"].to_list() == ["ESH24"] * 2 + ["ESM24"] * 2 and frame["row"].to_list() == [1, 2, 1, 2]
    assert stamps(frame)[0] == "2024-03-04T14:30:00Z" and values(frame)[0] == (5130.25, 5130.75, 5128.75, 5129, 1565)
    assert (facts.bar_seconds, facts.stamp, facts.price_adjustment) == (60.0, "open", "raw") and read.recognised == ["lean_future"]
    assert read({MARCH: ROWS, JUNE: ROWS}, zone="UTC", symbol="ESM24")[0]["symbol"].to_list() == ["ESM24"] * 2
    with pytest.raises(DataError, match=r"it holds no symbol 'ESU24'; did you mean .*\(has: ESH24, ESM24\)|it holds no symbol 'ESU24'"):
        read({MARCH: ROWS, JUNE: ROWS}, zone="UTC", symbol="ESU24")
    assert read({MARCH: ROWS}, zone="UTC", symbol="ESU24", absent_symbol="skip")[0].height == 0


def test_zone_of_the_market_must_be_said(read):
    with pytest.raises(UsageError, match="say --tz UTC for CME, Europe/Berlin for Eurex"):
        read({MARCH: ROWS})
    assert stamps(read({MARCH: ROWS}, zone="Europe/Berlin")[0])[0] == "2024-03-04T13:30:00Z"


def test_quotes_keep_an_empty_side(read):
    rows = "0,1780,1780,1779,1779.5,1,1780.25,1780.25,1780,1780.25,1\n60000,,,,,,1780.25,1780.5,1780,1780,1\n"
    frame, _, _ = read({MARCH.replace("trade", "quote"): rows}, zone="UTC")
    assert frame.columns[3:8] == ["bid_open", "bid_high", "bid_low", "bid", "bid_size"] and frame["ask_low"].to_list() == [1780, 1780]
    assert frame["bid"].to_list() == [1779.5, None] and frame["ask"].to_list() == [1780.25, 1780]


def test_shares_are_in_new_york_and_in_ten_thousandths(read):
    frame, facts, _ = read({"20240705_xyz_minute_trade.csv": "34200000,1801000,1807085,1780791,1795068,7\n"}, "lean_equity")
    assert stamps(frame) == ["2024-07-05T13:30:00Z"] and values(frame) == [(180.1, 180.7085, 178.0791, 179.5068, 7)]
    assert frame["symbol"][0] == "XYZ" and facts.zone == "America/New_York" and read.recognised == ["lean_equity"]


def test_days_are_sessions_and_hours_are_not(read):
    frame, facts, _ = read({"xyz.csv": "20240304 00:00,1801000,1807085,1780791,1795068,7\n"}, "lean_equity")
    assert (facts.stamp, facts.bar_seconds) == ("session", 86400.0) and stamps(frame) == ["2024-03-04T05:00:00Z"]
    frame, facts, _ = read({"xyz.csv": "20240304 09:00,1801000,1807085,1780791,1795068,7\n"}, "lean_equity")
    assert (facts.stamp, facts.bar_seconds) == ("open", 3600.0) and stamps(frame) == ["2024-03-04T14:00:00Z"]


@pytest.mark.parametrize(
    ("members", "form", "message"),
    [
        ({"notes.txt": "x"}, "lean_future", "expected a name such as 20131007_es_minute_trade_201312.csv"),
        ({"20240705_xyz_minute_trade.csv": "1,1,1,1,1,1\n"}, "lean_future", "a share: take format lean_equity"),
        ({MARCH: ROWS}, "lean_equity", "a contract: take format lean_future"),
        ({MARCH.replace("202403", "202413"): ROWS}, "lean_future", "expected year and month of delivery"),
        ({MARCH.replace("20240304", "20240230"): ROWS}, "lean_future", "expected a date at the beginning of the name, found '20240230'"),
        ({MARCH: ROWS.replace("52260000", "86400000")}, "lean_future", "data row 2 .*milliseconds since midnight, found '86400000'"),
        ({MARCH: ROWS.replace("52260000", "-1")}, "lean_future", "data row 2 .*expected milliseconds since midnight"),
        ({MARCH: "52200000,1,2,1\n"}, "lean_future", "expected 6 fields"),
    ],
)
def test_what_is_no_lean_zip_is_one_line(read, members, form, message):
    with pytest.raises(DataError, match=message):
        read(members, form, zone="UTC")
