"""Binary .scid files written by the tests: both epochs, bars and trades, marks, float32 prices."""

import struct

import numpy as np
import pytest
from format_cases import read, stamps, values

from bellmark.datasets.formats.sierra import RECORD
from bellmark.errors import DataError

HEADER = b"SCID" + struct.pack("<IIHHI", 56, 40, 1, 0, 0) + b"\0" * 36
US = (1_709_562_600 + 25_569 * 86_400) * 1_000_000


def record(stamp=US, opened=180.1, high=180.54, low=180.07, close=180.5, trades=3, volume=7, bids=4, asks=3):
    return np.array([(stamp, opened, high, low, close, trades, volume, bids, asks)], RECORD).tobytes()


def days(text):
    moment = np.datetime64(text, "us").astype(np.int64) / 86_400e6 + 25_569
    return int(np.array([moment]).view(np.int64)[0])


def scid(folder, *records, **options):
    return read(folder, HEADER + b"".join(records), "scid", symbol="X", **options)


def test_float32_prices_are_the_decimals_they_stand_for(tmp_path):
    frame, facts, _ = scid(tmp_path, record(), record(US + 60_000_000))
    assert values(frame)[0] == (180.1, 180.54, 180.07, 180.5, 7) and facts.stamp == "open"
    assert stamps(frame) == ["2024-03-04T14:30:00Z", "2024-03-04T14:31:00Z"]
    assert frame.select("trades", "bid_volume", "ask_volume").row(0) == (3, 4, 3)


def test_older_files_count_days(tmp_path):
    frame, _, _ = scid(tmp_path, record(days("2012-10-01T13:30:00.123")), record(days("2012-10-01T13:31:00")))
    assert stamps(frame, "ms") == ["2012-10-01T13:30:00.123Z", "2012-10-01T13:31:00.000Z"]


@pytest.mark.parametrize("opened", [0.0, -1.99900095e37, -1.99900197e37])
def test_record_without_an_open_is_a_trade(tmp_path, opened):
    frame, facts, _ = scid(tmp_path, record(opened=opened, high=180.54, low=0.0, close=180.5, volume=2))
    assert frame.select("price", "size", "bid", "ask").row(0) == (180.5, 2, None, 180.54) and facts.stamp == ""


def test_bars_and_trades_are_not_mixed(tmp_path):
    with pytest.raises(DataError, match="data row 2 .*: a trade among bars"):
        scid(tmp_path, record(), record(opened=0.0))
    with pytest.raises(DataError, match="data row 61 .*: a bar among trades"):
        scid(tmp_path, *[record(opened=0.0)] * 60, record(), chunk_bytes=1024)


def test_damage_is_one_line(tmp_path):
    with pytest.raises(DataError, match="data row 2: the last record is cut short: expected 40 bytes, found 35"):
        scid(tmp_path, record(), record()[:-5])
    frame, _, notes = scid(tmp_path, record(), record()[:-5], truncated="drop")
    assert frame.height == 1 and len(notes) == 1
    with pytest.raises(DataError, match="data row 2 .*microseconds since 1899-12-30 lies outside 1980 to 2100"):
        scid(tmp_path, record(), record(7))
    with pytest.raises(DataError, match="data row 1 .*days since 1899-12-30 lies outside"):
        scid(tmp_path, record(7))
    with pytest.raises(DataError, match="the file holds no records"):
        scid(tmp_path)
    with pytest.raises(DataError, match="expected a header of 56 bytes that begins with 'SCID'"):
        read(tmp_path, b"SCIX" + HEADER[4:], "scid", symbol="X")
    with pytest.raises(DataError, match="expected a header of 56 and records of 40 bytes, found 56 and 44"):
        read(tmp_path, HEADER[:8] + struct.pack("<I", 44) + HEADER[12:], "scid", symbol="X")
