"""A table of bars written in a layout and read back gives the same rows, whatever the size of the chunks."""

from datetime import datetime
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from format_cases import read
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bellmark import clock
from bellmark.errors import BellmarkError

NEW_YORK = ZoneInfo("America/New_York")


def local(ts, zone=NEW_YORK):
    return datetime.fromtimestamp(ts // clock.SECOND, zone)


def plain(*cells, separator=","):
    return separator.join(str(cell) for cell in cells)


LAYOUTS = {
    "kibot": ("", lambda ts, o, h, lo, c, v: plain(f"{local(ts):%m/%d/%Y,%H:%M}", o, h, lo, c, v), {"symbol": "X"}),
    "firstrate": ("", lambda ts, o, h, lo, c, v: plain(f"{local(ts):%Y-%m-%d %H:%M:%S}", o, h, lo, c, v), {"symbol": "X"}),
    "ninjatrader": (
        "", lambda ts, o, h, lo, c, v: plain(f"{local(ts, ZoneInfo('UTC')):%Y%m%d %H%M%S}", o, h, lo, c, v, separator=";"),
        {"symbol": "X", "stamp": "open"},
    ),
    "tradingview": (
        "time,open,high,low,close,Volume,Plot,Plot\n", lambda ts, *p: plain(ts // clock.SECOND, *p, "", "NaN"), {"symbol": "X"}
    ),
    "binance": ("", lambda ts, *p: plain(ts // 10**6, *p, ts // 10**6 + 59_999, 0, 1, 0, 0, 0), {"symbol": "X"}),
    "polygon": (
        "ticker,volume,open,close,high,low,window_start,transactions\n",
        lambda ts, o, h, lo, c, v: plain("X", v, o, c, h, lo, ts, 1), {}
    ),
    "dukascopy": (
        "Gmt time,Open,High,Low,Close,Volume\n",
        lambda ts, *p: plain(f"{local(ts, ZoneInfo('UTC')):%d.%m.%Y %H:%M:%S.000}", *p), {"symbol": "X"}
    ),
    "metastock": (
        "<TICKER>,<PER>,<DATE>,<TIME>,<OPEN>,<HIGH>,<LOW>,<CLOSE>,<VOL>\n",
        lambda ts, *p: plain("X", 1, f"{local(ts):%Y%m%d,%H%M%S}", *p), {"zone": "America/New_York", "stamp": "open"},
    ),
    "ib": (
        "date,open,high,low,close,volume,average,barCount\n", lambda ts, *p: plain(f"{local(ts):%Y%m%d %H:%M:%S} US/Eastern", *p, -1, -1),
        {"symbol": "X"},
    ),
    "sierra_text": (
        "Date, Time, Open, High, Low, Last, Volume\n", lambda ts, *p: plain(f"{local(ts):%Y/%m/%d, %H:%M:%S}", *p, separator=", "),
        {"symbol": "X", "zone": "America/New_York"},
    ),
    "databento_csv": (
        "ts_event,rtype,publisher_id,instrument_id,open,high,low,close,volume,symbol\n",
        lambda ts, o, h, lo, c, v: plain(ts, 33, 1, 7, *(round(p * 10**9) for p in (o, h, lo, c)), v, "X"), {},
    ),
    "csv": ("ts,open,high,low,close,volume\n", lambda ts, *p: plain(clock.text(ts), *p), {"symbol": "X", "stamp": "open"}),
}  # fmt: skip

# Moments at which New York is not in the hour that repeats; prices in quarters of a cent.
FIRST = 1_700_000_040
MINUTES = st.lists(st.integers(0, 60 * 24 * 200), min_size=1, max_size=40, unique=True)
PRICE = st.integers(1, 400_000).map(lambda n: n / 400)


@st.composite
def tables(draw):
    stamps = [(FIRST + minute * 60) * clock.SECOND for minute in sorted(draw(MINUTES))]
    row = st.tuples(PRICE, PRICE, PRICE, PRICE, st.integers(0, 10**9))
    return [(ts, *draw(row)) for ts in stamps]


@pytest.mark.parametrize("name", LAYOUTS)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=tables(), chunk_bytes=st.sampled_from([1024, 1 << 20]), end=st.sampled_from(["\n", "\r\n"]))
def test_table_written_and_read_back_is_the_same(tmp_path, name, table, chunk_bytes, end):
    header, write, options = LAYOUTS[name]
    text = (header + "".join(f"{write(*row)}\n" for row in table)).replace("\n", end)
    frame, facts, notes = read(tmp_path, text, name, chunk_bytes=chunk_bytes, **options)
    right = pl.DataFrame(
        [(number, row[0], "X", *(float(value) for value in row[1:])) for number, row in enumerate(table, 1)],
        schema={"row": pl.Int64, "ts": pl.Int64, "symbol": pl.String}
        | dict.fromkeys(("open", "high", "low", "close", "volume"), pl.Float64),
        orient="row",
    )
    assert frame.select(right.columns).equals(right) and facts.stamp == "open" and notes == []


@pytest.mark.parametrize("name", LAYOUTS)
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=tables(), place=st.floats(0, 1, exclude_max=True), change=st.binary(max_size=4), cut=st.integers(0, 3))
def test_damaged_file_is_read_or_refused_in_one_line(tmp_path, name, table, place, change, cut):
    header, write, options = LAYOUTS[name]
    text = (header + "".join(f"{write(*row)}\n" for row in table)).encode()
    at = int(place * len(text))
    try:
        read(tmp_path, text[:at] + change + text[at + cut :], name, chunk_bytes=1024, **options)
    except BellmarkError as error:
        assert "\n" not in str(error) and str(error)
