"""Vendors whose layouts differ in names and marks: stamps, zones, what stands for nothing, and files that are like others."""

import pytest
from format_cases import read, stamps, values

from bellmark.datasets.formats import recognise
from bellmark.errors import DataError, UsageError

X = {"symbol": "X"}


def fits(folder, text, name="f.txt"):
    (folder / name).write_text(text)
    return recognise(folder / name)


def test_kibot_is_in_new_york_time_and_daily_files_have_no_time(tmp_path):
    winter, facts, _ = read(tmp_path, "03/04/2024,09:30,1,2,0.5,1.5,7\n07/05/2024,09:30,1,2,0.5,1.5,7\n", "kibot", **X)
    assert stamps(winter) == ["2024-03-04T14:30:00Z", "2024-07-05T13:30:00Z"] and facts.stamp == "open"
    daily, facts, _ = read(tmp_path, "03/04/2024,1,2,0.5,1.5,7\n", "kibot", **X)
    assert facts.stamp == "session" and stamps(daily) == ["2024-03-04T05:00:00Z"]
    assert fits(tmp_path, "03/04/2024,1,2,0.5,1.5,7\n") == ["kibot"]
    with pytest.raises(DataError, match="expected 7 or 6 fields .*found 5"):
        read(tmp_path, "03/04/2024,1,2,0.5,1.5\n", "kibot", **X)
    with pytest.raises(DataError, match="data row 2 .*expected a stamp like '%m/%d/%Y %H:%M'.*'13/04/2024 09:30'"):
        read(tmp_path, "03/04/2024,09:30,1,2,0.5,1.5,7\n13/04/2024,09:30,1,2,0.5,1.5,7\n", "kibot", **X)


KIBOT = "03/04/2024,09:30,1,2,0.5,1.5,7\n"
DUKASCOPY = "Gmt time,Open,High,Low,Close,Volume\n04.03.2024 14:30:00.000,1,2,0.5,1.5,7\n"
IB = "date,open,high,low,close,volume,average,barCount\n20240304 09:30:00 US/Eastern,1,2,0.5,1.5,7,-1,-1\n"


@pytest.mark.parametrize(
    ("form", "text", "said", "message"),
    [
        ("kibot", KIBOT, {"zone": "UTC"}, "--tz UTC contradicts the layout, .* America/New_York; leave it out"),
        ("kibot", KIBOT, {"stamp": "close"}, "--stamp close contradicts the layout, .* open; leave it out"),
        ("dukascopy", DUKASCOPY, {"zone": "America/New_York"}, "--tz America/New_York contradicts the layout, .* UTC; leave it out"),
        ("dukascopy", DUKASCOPY, {"stamp": "close"}, "--stamp close contradicts"),
        ("ib", IB, {"zone": "UTC"}, "--tz UTC contradicts the layout, .* US/Eastern; leave it out"),
    ],
)
def test_what_a_layout_fixes_is_not_overruled(tmp_path, form, text, said, message):
    with pytest.raises(UsageError, match=message):
        read(tmp_path, text, form, **said, **X)


def test_what_a_layout_fixes_may_be_said_again_in_other_words(tmp_path):
    alone = read(tmp_path, KIBOT, "kibot", **X)[0]
    assert read(tmp_path, KIBOT, "kibot", zone="US/Eastern", stamp="open", **X)[0].equals(alone)
    assert stamps(read(tmp_path, DUKASCOPY, "dukascopy", zone="Etc/UTC", **X)[0]) == ["2024-03-04T14:30:00Z"]
    assert stamps(read(tmp_path, IB, "ib", zone="America/New_York", **X)[0]) == ["2024-03-04T14:30:00Z"]


def test_what_nobody_checked_may_be_overruled_and_is_noted(tmp_path):
    frame, facts, notes = read(tmp_path, "2024-03-04 09:30:00,1,2,0.5,1.5\n" * 90, "firstrate", zone="UTC", chunk_bytes=1024, **X)
    assert stamps(frame)[0] == "2024-03-04T09:30:00Z" and facts.zone == "UTC"
    assert len(notes) == 1 and "--tz UTC was taken, where the layout says (unchecked)" in notes[0]


@pytest.mark.parametrize("said", ["raw", "split", "split_dividend"])
def test_what_prices_are_adjusted_for_is_said_where_the_layout_does_not_know(tmp_path, said):
    assert read(tmp_path, KIBOT, "kibot", **X)[1].price_adjustment == "unknown"
    assert read(tmp_path, KIBOT, "kibot", adjustment=said, **X)[1].price_adjustment == said
    if said == "raw":
        assert read(tmp_path, DUKASCOPY, "dukascopy", adjustment=said, **X)[1].price_adjustment == "raw"
    else:
        with pytest.raises(UsageError, match=f"--adjustment {said}: the layout says that its prices are raw; leave it out"):
            read(tmp_path, DUKASCOPY, "dukascopy", adjustment=said, **X)
    with pytest.raises(UsageError, match="--adjustment: expected one of raw, split, split_dividend, found 'none'"):
        read(tmp_path, KIBOT, "kibot", adjustment="none", **X)


def test_firstrate_may_lack_the_volume(tmp_path):
    frame, _, _ = read(tmp_path, "2024-03-04 09:30:00,1,2,0.5,1.5\n", "firstrate", **X)
    assert "volume" not in frame.columns and stamps(frame) == ["2024-03-04T14:30:00Z"]
    assert fits(tmp_path, "2024-03-04 09:30:00,1,2,0.5,1.5\n") == ["firstrate"]


def test_histdata_has_no_daylight_saving_and_no_volume(tmp_path):
    frame, facts, _ = read(tmp_path, "20240704 093000;1;2;0.5;1.5;0\n", "histdata", **X)
    assert stamps(frame) == ["2024-07-04T14:30:00Z"] and frame["volume"].to_list() == [None] and facts.bar_seconds == 60.0
    with pytest.raises(DataError, match="data row 1 .*expected a stamp like"):
        read(tmp_path, "20240704 93000;1;2;0.5;1.5;0\n", "histdata", **X)


def test_ninjatrader_says_neither_stamp_nor_always_its_symbol(tmp_path):
    text = "20240304 143100;1;2;0.5;1.5;7\r\n20240304 143200;1;2;0.5;1.5;0\r\n"
    with pytest.raises(UsageError, match="say --stamp open or --stamp close"):
        read(tmp_path, text, "ninjatrader", **X)
    frame, facts, _ = read(tmp_path, text, "ninjatrader", name="ES 03-24.Last.txt", stamp="close")
    assert frame["symbol"][0] == "ES 03-24" and facts.stamp == "close" and frame["volume"].to_list() == [7, 0]
    assert fits(tmp_path, text) == ["ninjatrader"] and fits(tmp_path, "20240304 143100;1;2;0.5;1.5;0\n") == ["histdata"]
    with pytest.raises(UsageError, match="--symbol: expected a name"):
        read(tmp_path, text, "ninjatrader", stamp="close")


def test_tradingview_takes_no_plots_and_dates_are_sessions(tmp_path):
    text = "time,open,high,low,close,Plot,Plot,open interest,Volume\n2024-03-04,1,2,0.5,1.5,x,,NaN,7\n"
    frame, facts, _ = read(tmp_path, text, "tradingview", **X)
    assert frame.columns == ["row", "ts", "symbol", "open", "high", "low", "close", "volume"] and facts.stamp == "session"
    with pytest.raises(DataError, match="two columns are named 'open'"):
        read(tmp_path, "time,open,open,high,low,close\n2024-03-04,1,1,1,1,1\n", "tradingview", **X)
    zones, _, _ = read(tmp_path, "time,open,high,low,close\n2024-03-10T00:30:00-06:00,1,2,1,1\n2024-03-10T05:30:00-05:00,1,2,1,1\n",
    "tradingview", **X)
    assert [text[11:16] for text in stamps(zones)] == ["06:30", "10:30"]


def test_stooq_dates_are_sessions_and_times_are_another_layout(tmp_path):
    frame, facts, _ = read(tmp_path, "Date,Open,High,Low,Close\r\n2024-03-04,1,2,0.5,1.5\r\n", "stooq", **X)
    assert facts.stamp == "session" and facts.price_adjustment == "split" and "volume" not in frame.columns
    with pytest.raises(DataError, match="expected dates alone as stamps, found times of day"):
        read(tmp_path, "Date,Open,High,Low,Close\n2024-03-04 09:30,1,2,0.5,1.5\n", "stooq", zone="UTC", **X)


def test_sierra_text_needs_a_zone_and_pads_nothing(tmp_path):
    header = "Date, Time, Open, High, Low, Last, Volume, NumberOfTrades, BidVolume, AskVolume\n"
    text = header + "2024/3/4, 9:30:00.250, 1, 2, 0.5, 1.5, 7, 3, 4, 3\n"
    frame, _, _ = read(tmp_path, text, "sierra_text", zone="America/Chicago", **X)
    assert stamps(frame, "ms") == ["2024-03-04T15:30:00.250Z"] and frame.row(0)[3:] == (1, 2, 0.5, 1.5, 7, 3, 4, 3)
    with pytest.raises(UsageError, match="--tz: expected the zone"):
        read(tmp_path, text, "sierra_text", **X)


def test_dukascopy_is_day_first(tmp_path):
    frame, _, _ = read(tmp_path, "Gmt time,Open,High,Low,Close,Volume\n04.03.2024 14:30:00.000,1,2,0.5,1.5,0.25\n", "dukascopy", **X)
    assert stamps(frame) == ["2024-03-04T14:30:00Z"] and values(frame) == [(1, 2, 0.5, 1.5, 0.25)]


def test_polygon_columns_are_in_another_order_and_hold_many_tickers(tmp_path):
    text = "ticker,volume,open,close,high,low,window_start,transactions\nA,7,1,1.5,2,0.5,1709562600000000000,3\n"
    text += "B,7,1,1.5,2,0.5,1709562600000000000,3\n"
    frame, facts, _ = read(tmp_path, text, "polygon")
    assert values(frame)[0] == (1, 2, 0.5, 1.5, 7) and frame["symbol"].to_list() == ["A", "B"] and facts.bar_seconds is None
    assert read(tmp_path, text, "polygon", symbol="B", bar_seconds=60.0)[1].bar_seconds == 60.0
