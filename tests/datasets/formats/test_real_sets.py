"""The real data sets beside this repository, with the facts that are known of them."""

import numpy as np
import polars as pl
import pytest
from format_cases import SHARED, rows_of, stamps

from bellmark.datasets.formats import recognise
from bellmark.errors import DataError

DATA = SHARED / "data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the real data sets are not beside this repository")


def lean(pattern, symbol, folder="01_es_minute_lean", form="lean_future", **options):
    parts = []
    for path in sorted((DATA / folder).glob(pattern)):
        frame, facts, _ = rows_of(path, form, symbol=symbol, absent_symbol="skip", **options)
        if frame.height:
            parts.append(frame)
            known = facts
    return pl.concat(parts), known


def test_es_minutes_of_the_front_months():
    frame, facts = lean("2013*_trade.zip", "ESZ13", zone="UTC")
    assert frame.height == 16673 and facts.bar_seconds == 60.0 and facts.stamp == "open"
    assert stamps(frame)[0] == "2013-10-06T22:00:00Z" and stamps(frame)[-1] == "2013-12-20T14:29:00Z"
    prices = frame.select("open", "high", "low", "close").to_numpy()
    assert np.all(prices * 4 == np.rint(prices * 4)) and np.all(np.diff(frame["ts"].to_numpy()) > 0)
    assert lean("2020*_trade.zip", "ESH20", zone="UTC")[0].height == 1425


def test_es_quotes_have_rows_with_one_side():
    quotes, _ = lean("*_quote.zip", "ESZ13", zone="UTC")
    assert quotes.select(pl.col("bid").is_null() | pl.col("ask").is_null()).to_series().sum() == 68
    assert quotes.select((pl.col("bid") == pl.col("ask")).fill_null(False)).to_series().sum() == 39


def test_fesx_holds_two_series_of_one_contract():
    frame, _, _ = rows_of(DATA / "07_fesx_two_series_one_file_lean" / "20240603_trade.zip", "lean_future", zone="Europe/Berlin")
    front = frame.filter(pl.col("symbol") == "FESXM24")
    assert front.height == 2304 and frame.height == 2304 + 132
    assert front["ts"][:1152].to_list() == front["ts"][1152:].to_list()


def test_us_equities():
    folder = DATA / "09_us_equity_lean"
    daily, facts, _ = rows_of(folder / "daily_aapl.zip", "lean_equity")
    assert daily.height == 5849 and facts.stamp == "session" and facts.price_adjustment == "raw" and daily["symbol"][0] == "AAPL"
    assert stamps(daily)[0] == "1998-01-02T05:00:00Z" and stamps(daily)[-1] == "2021-03-31T04:00:00Z"
    assert recognise(folder / "daily_spy.zip") == ["lean_equity"] == recognise(folder / "minute_spy_20131007_quote.zip")
    minutes, _ = lean("minute_spy_*_trade.zip", "SPY", "09_us_equity_lean", "lean_equity")
    quotes, _ = lean("minute_spy_20131007_quote.zip", "SPY", "09_us_equity_lean", "lean_equity")
    assert stamps(minutes)[0] == "2013-10-07T08:00:00Z" and 167 < minutes["close"][0] < 168
    assert quotes.row(0)[3:7] == (167.27, 167.27, 167.15, 167.25) and quotes["ask"][0] == 167.27


def test_btc_perpetual_and_fx():
    options = {"zone": "UTC", "stamp": "open", "symbol": "BTC", "bar_seconds": 60.0}
    path = DATA / "03_btc_perp_1m_nautilus" / "btc-perp-20211231-20220201_1m.csv"
    frame, facts, _ = rows_of(path, "csv", **options)
    assert (frame.height, stamps(frame)[0], stamps(frame)[-1]) == (45031, "2021-12-31T23:01:00Z", "2022-02-01T05:31:00Z")
    assert facts.bar_seconds == 60.0 and np.all(np.diff(frame["ts"].to_numpy()) == 60 * 10**9)
    small, _, _ = rows_of(path, "csv", chunk_bytes=200_000, **options)
    assert small.equals(frame)
    fx, _, _ = rows_of(DATA / "11_fx_nautilus" / "gbpusd-m1-ask-2012.csv", "csv", stamp="open", symbol="GBPUSD")
    assert fx.height == 30117 and "volume" not in fx.columns and stamps(fx)[0] == "2012-02-01T00:00:00Z"
    ticks, _, _ = rows_of(DATA / "11_fx_nautilus" / "truefx_usdjpy-ticks.csv", "csv", symbol="USDJPY")
    assert ticks.height == 1000 and ticks.select("bid", "ask").row(0) == (86.655, 86.728)
    assert stamps(ticks, "ms")[0] == "2013-01-01T22:00:00.295Z"


ES_DBN = {
    "futures_ohlcv-1m_2024-07-01T23-40_2024-07-02T00-10.dbn.zst": (60, ["ESU4", "NQU4"]),
    "futures_ohlcv-1m_2026-01-09T20-55_2026-01-09T21-05.dbn.zst": (10, ["ESH6"]),
    "futures_trades_2024-07-01T23-58_2024-07-02T00-02.dbn.zst": (120, ["ESU4"]),
    "futures_mbp-1_2024-07-01T23-58_2024-07-02T00-02.dbn.zst": (2288, ["ESU4"]),
    "futures_settlement_bbo-1m_2025-12-19T14-25-00_2025-12-19T14-35-00.dbn.zst": (20, ["ESH6", "ESZ5"]),
}


@pytest.mark.parametrize("name", ES_DBN)
def test_es_dbn(name):
    pytest.importorskip("databento_dbn")
    path = DATA / "05_es_dbn_nautilus" / name
    frame, facts, _ = rows_of(path, "dbn")
    count, symbols = ES_DBN[name]
    assert frame.height == count and sorted(frame["symbol"].unique().to_list()) == symbols
    assert np.all(np.diff(frame["ts"].to_numpy()) >= 0) and (facts.bar_seconds == 60.0) == ("ohlcv" in name)
    assert recognise(path) == ["dbn"]
    small, _, _ = rows_of(path, "dbn", chunk_bytes=2048)
    assert small.equals(frame)


TINY = DATA / "12_dbn_tiny_dbn"
# the samples of ohlcv-1d hold no records
READABLE = ("ohlcv-1s", "ohlcv-1m", "ohlcv-1h", "trades", "tbbo", "mbp-1", "bbo-1s", "bbo-1m")


@pytest.mark.parametrize("path", sorted(TINY.glob("test_data.*")), ids=lambda path: path.name)
def test_reference_samples_of_dbn_are_read_or_refused_in_one_line(path):
    pytest.importorskip("databento_dbn")
    schema = path.name.split(".")[1]
    if path.suffix == ".dbz" or ".frag" in path.name or schema not in READABLE:
        with pytest.raises(DataError) as caught:
            rows_of(path, "dbn")
        assert "\n" not in str(caught.value) and path.name in str(caught.value)
        return
    frame, _, _ = rows_of(path, "dbn")
    assert frame.height in (2, 4) and set(frame["symbol"]) == {"ESH1"} and stamps(frame)[0].startswith("2020-12-")
