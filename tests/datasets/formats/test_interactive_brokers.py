"""Interactive Brokers: -1 for nothing, zones as words in the stamps, epochs and dates."""

import pytest
from format_cases import read, stamps

from bellmark.errors import DataError, UsageError

HEADER = "date,open,high,low,close,volume,average,barCount\n"


def ib(folder, *rows, **options):
    return read(folder, HEADER + "".join(f"{row}\n" for row in rows), "ib", symbol="X", **options)


def test_minus_one_is_none_and_zero_is_zero(tmp_path):
    frame, _, _ = ib(tmp_path, "1709562600,1,2,0.5,1.5,-1,-1.0,-1", "1709562660,1,2,0.5,1.5,0,-1,12")
    assert frame.select("volume", "vwap", "trades").rows() == [(None, None, None), (0, None, 12)]


def test_zone_of_the_stamps_may_not_be_contradicted_and_is_needed(tmp_path):
    with pytest.raises(UsageError, match="--tz Asia/Tokyo contradicts the layout"):
        ib(tmp_path, "20240304 09:30:00 US/Eastern,1,2,0.5,1.5,7,1,3", zone="Asia/Tokyo")
    frame, facts, _ = ib(tmp_path, "20240304 09:30:00 US/Eastern,1,2,0.5,1.5,7,1,3", zone="America/New_York")
    assert stamps(frame) == ["2024-03-04T14:30:00Z"] and facts.zone == "US/Eastern" and facts.stamp == "open"
    frame, facts, _ = ib(tmp_path, "20240304  09:30:00,1,2,0.5,1.5,7,1,3", zone="America/Chicago")
    assert stamps(frame) == ["2024-03-04T15:30:00Z"] and facts.zone == "America/Chicago"
    with pytest.raises(UsageError, match="--tz: expected the zone"):
        ib(tmp_path, "20240304  09:30:00,1,2,0.5,1.5,7,1,3")
    with pytest.raises(DataError, match="data row 2 .*expected one zone .*US/Eastern' and '20240304 09:31:00 US/Central'"):
        ib(tmp_path, "20240304 09:30:00 US/Eastern,1,2,0.5,1.5,7,1,3", "20240304 09:31:00 US/Central,1,2,0.5,1.5,7,1,3")


@pytest.mark.parametrize("chunk_bytes", [1024, 1 << 20])
def test_zone_may_not_change_in_a_later_chunk(tmp_path, chunk_bytes):
    rows = ["20240304 09:30:00 US/Eastern,1,2,0.5,1.5,7,1,3"] * 40 + ["20240304 09:31:00 US/Central,1,2,0.5,1.5,7,1,3"] * 40
    with pytest.raises(DataError, match="expected one zone|zone from 'US/Eastern' to 'US/Central'"):
        ib(tmp_path, *rows, chunk_bytes=chunk_bytes)


def test_daily_bars_are_sessions_and_other_stamps_are_refused(tmp_path):
    frame, facts, _ = ib(tmp_path, "20240304,1,2,0.5,1.5,7,1,3", "20240305,1,2,0.5,1.5,7,1,3")
    assert facts.stamp == "session" and stamps(frame)[0] == "2024-03-04T00:00:00Z"
    with pytest.raises(DataError, match="data row 2 .*found '4 March'"):
        ib(tmp_path, "20240304,1,2,0.5,1.5,7,1,3", "4 March,1,2,0.5,1.5,7,1,3")
