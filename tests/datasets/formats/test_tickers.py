"""Tables of tickers: periods, daily rows, vendors that define stamps for themselves."""

import pytest
from format_cases import read, stamps

from bellmark.errors import DataError, UsageError

STOOQ = "<TICKER>,<PER>,<DATE>,<TIME>,<OPEN>,<HIGH>,<LOW>,<CLOSE>,<VOL>,<OPENINT>\r\n"
META = STOOQ.replace(",<OPENINT>", "")


def test_period_is_the_length_of_the_bars(tmp_path):
    frame, facts, _ = read(tmp_path, STOOQ + "A.US,5,20240304,153000,1,2,0.5,1.5,7,0\r\n", "stooq_bulk", zone="Europe/Warsaw")
    assert facts.bar_seconds == 300.0 and stamps(frame) == ["2024-03-04T14:30:00Z"] and frame["symbol"][0] == "A.US"
    with pytest.raises(UsageError, match="--tz: expected the zone"):
        read(tmp_path, STOOQ + "A.US,5,20240304,153000,1,2,0.5,1.5,7,0\r\n", "stooq_bulk")


def test_daily_rows_are_sessions(tmp_path):
    frame, facts, _ = read(tmp_path, STOOQ + "A.US,D,20240304,000000,1,2,0.5,1.5,7,0\r\n", "stooq_bulk")
    assert (facts.stamp, facts.bar_seconds, stamps(frame)) == ("session", 86400.0, ["2024-03-04T00:00:00Z"])
    with pytest.raises(DataError, match="data row 1 .*expected no time of day in a daily row, found '20240304 153000'"):
        read(tmp_path, STOOQ + "A.US,D,20240304,153000,1,2,0.5,1.5,7,0\r\n", "stooq_bulk")


@pytest.mark.parametrize("chunk_bytes", [1024, 1 << 20])
def test_period_that_changes_is_refused(tmp_path, chunk_bytes):
    rows = "A,1,20240304,143000,1,2,0.5,1.5,7\n" * 60 + "A,5,20240304,143000,1,2,0.5,1.5,7\n" * 60
    with pytest.raises(DataError, match="data row 61 .*expected one period|bar_seconds from 60.0 to 300.0"):
        read(tmp_path, META + rows, "metastock", zone="UTC", stamp="open", chunk_bytes=chunk_bytes)
    with pytest.raises(DataError, match="column '<PER>': expected minutes or D, found 'W'"):
        read(tmp_path, META + "A,W,20240304,000000,1,2,0.5,1.5,7\n", "metastock")


def test_metastock_says_neither_stamp_nor_zone(tmp_path):
    text = META + "A,1,20240304,143000,1,2,0.5,1.5,7\n"
    with pytest.raises(UsageError, match="--stamp open or --stamp close"):
        read(tmp_path, text, "metastock", zone="UTC")
    with pytest.raises(UsageError, match="--tz"):
        read(tmp_path, text, "metastock", stamp="open")
    assert read(tmp_path, text, "metastock", stamp="close", zone="UTC")[1].stamp == "close"
