"""MetaTrader: broker time, counts of quotes that are no volume, blank sides, UTF-16."""

import pytest
from format_cases import read, stamps

from bellmark.datasets.formats import recognise
from bellmark.errors import DataError, UsageError

BARS = "<DATE>\t<TIME>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>\t<VOL>\t<SPREAD>\r\n"
TICKS = "<DATE>\t<TIME>\t<BID>\t<ASK>\t<LAST>\t<VOLUME>\t<FLAGS>\r\n"
BROKER = {"symbol": "X", "zone": "America/New_York+07:00"}


def test_zero_volume_beside_quotes_is_unknown_and_true_volume_is_kept(tmp_path):
    counts = ((0, 9, 0), (1, 9, 4), (2, 0, 0))
    text = BARS + "".join(f"2024.03.04\t16:3{minute}:00\t1\t2\t0.5\t1.5\t{ticks}\t{volume}\t3\r\n" for minute, ticks, volume in counts)
    frame, _, _ = read(tmp_path, text, "mt5", **BROKER)
    assert frame["volume"].to_list() == [None, 4, 0] and frame["tick_volume"].to_list() == [9, 9, 0] and frame["spread_points"][0] == 3


def test_broker_clock_changes_on_the_dates_of_new_york(tmp_path):
    """Between 10 and 31 March 2024 New York has daylight saving and Europe has none: Helsinki would be an hour off."""
    rows = [f"2024.{day}\t16:30:00\t1\t2\t0.5\t1.5\t9\t0\t3\r\n" for day in ("03.08", "03.11", "04.01")]
    frame, facts, _ = read(tmp_path, BARS + "".join(rows), "mt5", **BROKER)
    assert [text[11:16] for text in stamps(frame)] == ["14:30", "13:30", "13:30"] and facts.zone == BROKER["zone"]
    other, _, _ = read(tmp_path, BARS + "".join(rows), "mt5", symbol="X", zone="Europe/Helsinki")
    assert [text[11:16] for text in stamps(other)] == ["14:30", "14:30", "13:30"]
    with pytest.raises(UsageError, match="--tz: expected the zone of the stamps"):
        read(tmp_path, BARS + rows[0], "mt5", symbol="X")
    with pytest.raises(UsageError, match="--tz: expected an IANA time zone"):
        read(tmp_path, BARS + rows[0], "mt5", symbol="X", zone="New York+07:00")


def test_daily_file_without_a_time_and_in_utf_16(tmp_path):
    text = BARS.replace("<TIME>\t", "") + "2024.03.04\t1\t2\t0.5\t1.5\t9\t0\t3\r\n"
    frame, facts, _ = read(tmp_path, b"\xff\xfe" + text.encode("utf-16-le"), "mt5", **BROKER)
    assert facts.stamp == "session" and stamps(frame) == ["2024-03-04T00:00:00Z"] and facts.zone == ""
    assert recognise(tmp_path / "file.txt") == ["mt5"]


def test_mt4_history_has_no_header_and_no_volume(tmp_path):
    frame, _, _ = read(tmp_path, "2024.03.04,16:30,1,2,0.5,1.5,625\r\n", "mt4", **BROKER)
    assert frame["volume"].to_list() == [None] and frame["tick_volume"].to_list() == [625.0] and stamps(frame) == ["2024-03-04T14:30:00Z"]
    with pytest.raises(DataError, match="expected 7 fields"):
        read(tmp_path, "2024.03.04,16:30,1,2,0.5,1.5\r\n", "mt4", **BROKER)


def test_rows_of_quotes_and_of_trades_are_taken_apart(tmp_path):
    rows = ["16:30:00.113\t1\t2\t\t\t6", "16:30:00.402\t\t\t1.5\t3\t24", "16:30:00.500\t1.25\t\t\t\t2"]
    text = TICKS + "".join(f"2024.03.04\t{row}\r\n" for row in rows)
    quotes, facts, _ = read(tmp_path, text, "mt5_ticks", **BROKER)
    assert quotes.select("row", "bid", "ask").rows() == [(1, 1, 2), (3, 1.25, None)] and facts.blank_side == "unchanged"
    trades, facts, _ = read(tmp_path, text, "mt5_trades", **BROKER)
    assert trades.select("row", "price", "size").rows() == [(2, 1.5, 3)] and facts.stamp == ""


def test_ticks_of_one_second_in_the_repeated_hour_stay_in_it(tmp_path):
    """Ticks may share a stamp: only a clock that goes back begins the second pass."""
    times = ["00:59:59.000", "01:59:58.000", "01:59:58.000", "01:00:01.000", "01:00:01.000", "02:00:00.000"]
    text = TICKS + "".join(f"2025.11.02\t{time}\t1\t2\t\t\t6\r\n" for time in times)
    frame, _, _ = read(tmp_path, text, "mt5_ticks", symbol="X", zone="America/New_York", repeated_hour="file_order")
    assert [text[11:19] for text in stamps(frame)] == ["04:59:59", "05:59:58", "05:59:58", "06:00:01", "06:00:01", "07:00:00"]
    with pytest.raises(DataError, match="data row 2 .*happened twice in America/New_York.*--repeated-hour file_order tells"):
        read(tmp_path, text, "mt5_ticks", symbol="X", zone="America/New_York")
