"""Every example file of the given layouts, each with its own preset: stamps, first row, count, symbol, recognition."""

import pytest
from format_cases import SHARED, rows_of, stamps

from bellmark.datasets.formats import FORMATS, recognise

pytestmark = pytest.mark.skipif(not (SHARED / "formats").is_dir(), reason="the examples of layouts are not beside this repository")

EET, NOTHING = {"zone": "Europe/Helsinki"}, {}
ES = (5130.25, 5130.75, 5128.75, 5129.0, 1565.0)
BTC = (93500.0, 93509.5, 93489.3, 93505.4, 15.24)
# file: format, what the user must say, rows, first stamp, last stamp, symbol, first row
EXAMPLES = {
    "binance_spot_1m_2024_ms.csv": ("binance", {"symbol": "X"}, 6, "2024-12-31T00:00:00Z", "2024-12-31T00:05:00Z", "X", BTC),
    "binance_spot_1m_2025_us.csv": ("binance", {"symbol": "X"}, 6, "2025-01-01T00:00:00Z", "2025-01-01T00:05:00Z", "X", BTC),
    "binance_um_futures_1m_header_ms.csv": ("binance", {"symbol": "X"}, 6, "2025-01-01T00:00:00Z", "2025-01-01T00:05:00Z", "X", BTC),
    "cryptodatadownload_1h.csv": (
        "cryptodatadownload", NOTHING, 6, "2025-01-01T00:00:00Z", "2024-12-31T19:00:00Z", "BTC/USDT", (93500, 93589.52, 93446.26, 93555.44,
        55.2),
    ),
    "cryptodatadownload_old_ampm.csv": (
        "cryptodatadownload", NOTHING, 6, "2019-10-17T01:00:00Z", "2019-10-16T20:00:00Z", "BTCUSD", (93500, 93589.52, 93446.26, 93555.44,
        55.2),
    ),
    "databento_ohlcv1m.dbn": ("dbn", NOTHING, 10, "2024-03-04T14:30:00Z", "2024-03-04T14:39:00Z", "ESH4", ES),
    "databento_ohlcv1m_pretty.csv": ("databento_csv", NOTHING, 10, "2024-03-04T14:30:00Z", "2024-03-04T14:39:00Z", "ESH4", ES),
    "databento_ohlcv1m_raw.csv": ("databento_csv", NOTHING, 10, "2024-03-04T14:30:00Z", "2024-03-04T14:39:00Z", "ESH4", ES),
    "dukascopy_csv.csv": ("dukascopy", {"symbol": "EURUSD"}, 6, "2024-03-04T14:30:00Z", "2024-03-04T14:35:00Z", "EURUSD",
                          (1.0852, 1.08555, 1.08514, 1.0855, 193.0)),
    "firstrate_1min.txt": ("firstrate", {"symbol": "ES"}, 8, "2024-03-04T14:30:00Z", "2024-03-04T14:39:00Z", "ES", ES),
    "freqtrade_ohlcv.json": ("freqtrade", {"symbol": "X"}, 6, "2025-01-01T00:00:00Z", "2025-01-01T00:25:00Z", "X",
                             (93500, 93517.07, 93430.71, 93453.13, 16.4)),
    "histdata_ascii_m1.csv": ("histdata", {"symbol": "EURUSD"}, 6, "2024-03-04T14:30:00Z", "2024-03-04T14:35:00Z", "EURUSD",
                              (1.0852, 1.085217, 1.08486, 1.08495, None)),
    "ib_midpoint_no_volume.csv": ("ib", {"symbol": "EURUSD"}, 5, "2024-03-04T14:30:00Z", "2024-03-04T14:34:00Z", "EURUSD",
                                  (1.0852, 1.08532, 1.08487, 1.08503, None)),
    "ib_tws_api_bars.csv": ("ib", {"symbol": "XYZ"}, 6, "2024-03-04T14:30:00Z", "2024-03-04T14:35:00Z", "XYZ",
                            (180.1, 180.11, 179.73, 179.81, 1142.0)),
    "kibot_1min.txt": ("kibot", {"symbol": "XYZ"}, 8, "2024-03-04T14:30:00Z", "2024-03-04T14:37:00Z", "XYZ", (180.1, 180.54, 180.07, 180.5,
    1752.0)),
    "lean_equity_daily_xyz.zip": ("lean_equity", NOTHING, 5, "2024-03-04T05:00:00Z", "2024-03-08T05:00:00Z", "XYZ",
                                  (180.1, 180.7085, 178.0791, 179.5068, 1880000.0)),
    "lean_future_minute_20240304_trade.zip": ("lean_future", {"zone": "UTC", "symbol": "ESH24"}, 10, "2024-03-04T14:30:00Z",
                                              "2024-03-04T14:39:00Z", "ESH24", ES),
    "metastock_ascii.txt": ("metastock", {"zone": "UTC", "stamp": "open"}, 5, "2024-03-04T14:30:00Z", "2024-03-04T14:34:00Z", "ES", ES),
    "mt4_history.csv": ("mt4", {"symbol": "EURUSD"} | EET, 6, "2024-03-04T14:30:00Z", "2024-03-04T14:35:00Z", "EURUSD",
                        (1.0852, 1.0853, 1.08508, 1.0852, None)),
    "mt5_bars.csv": ("mt5", {"symbol": "EURUSD"} | EET, 8, "2024-03-04T14:30:00Z", "2024-03-04T14:37:00Z", "EURUSD",
                     (1.0852, 1.08525, 1.08508, 1.08511, None)),
    "ninjatrader_minute_end.txt": ("ninjatrader", {"symbol": "ES", "stamp": "close"}, 10, "2024-03-04T14:31:00Z", "2024-03-04T14:40:00Z",
    "ES", ES),
    "polygon_minute_aggs.csv": ("polygon", NOTHING, 6, "2024-03-04T14:30:00Z", "2024-03-04T14:35:00Z", "XYZ",
                                (180.1, 180.5851, 179.991, 180.4957, 1875.0)),
    "sierra_minute.scid": ("scid", {"symbol": "ES"}, 10, "2024-03-04T14:30:00Z", "2024-03-04T14:39:00Z", "ES", ES),
    "sierra_text_bars.txt": ("sierra_text", {"zone": "UTC", "symbol": "ES"}, 10, "2024-03-04T14:30:00Z", "2024-03-04T14:39:00Z", "ES", ES),
    "stooq_bulk_5min.txt": ("stooq_bulk", {"zone": "Europe/Warsaw"}, 6, "2024-03-04T14:30:00Z", "2024-03-04T14:55:00Z", "XYZ.US",
                            (180.0, 180.06, 179.89, 179.93, 997.0)),
    "stooq_daily_site.csv": ("stooq", {"symbol": "XYZ"}, 5, "2024-03-04T00:00:00Z", "2024-03-08T00:00:00Z", "XYZ",
                             (180.1, 180.71, 178.08, 179.51, 1880000.0)),
    "tradingview_iso.csv": ("tradingview", {"symbol": "ES"}, 6, "2024-03-04T14:30:00Z", "2024-03-04T14:55:00Z", "ES",
                            (5130.25, 5131.5, 5129.5, 5131.25, 419.0)),
    "tradingview_unix.csv": ("tradingview", {"symbol": "ES"}, 8, "2024-03-04T14:30:00Z", "2024-03-04T15:05:00Z", "ES",
                             (5130.25, 5131.25, 5128.25, 5129.0, 403.0)),
    "yfinance_daily_flat.csv": ("yfinance", {"symbol": "XYZ"}, 5, "2024-03-04T00:00:00Z", "2024-03-08T00:00:00Z", "XYZ",
                                (180.1, 180.708544, 178.079192, 179.506886, 18800000.0)),
    "yfinance_history.parquet": ("yfinance_parquet", {"symbol": "XYZ"}, 5, "2024-03-04T00:00:00Z", "2024-03-08T00:00:00Z", "XYZ",
                                 (180.1, 180.708544, 178.079192, 179.506886, 18800000.0)),
    "yfinance_history_intraday.csv": ("yfinance_intraday", {"symbol": "XYZ"}, 6, "2024-03-04T14:30:00Z", "2024-03-04T14:35:00Z", "XYZ",
                                      (180.0, 180.045069, 179.688178, 179.79192, 410.0)),
    "yfinance_multiindex.csv": ("yfinance_multi", NOTHING, 5, "2024-03-04T00:00:00Z", "2024-03-08T00:00:00Z", "XYZ",
                                (180.1, 180.708544, 178.079192, 179.506886, 18800000.0)),
}  # fmt: skip
OTHER_KINDS = {
    "binance_funding.csv": ("binance_funding", {"symbol": "BTCUSDT"}),
    "mt5_ticks.csv": ("mt5_ticks", {"symbol": "EURUSD"} | EET),
    "ninjatrader_tick.txt": ("ninjatrader_tick", {"symbol": "ES"}),
    "sierra_tick.scid": ("scid", {"symbol": "ES"}),
}
NO_ROWS = {"FORMATS.md", "lean_factor_xyz.csv"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_gives_its_bars(name):
    form, options, count, first, last, symbol, row = EXAMPLES[name]
    frame, facts, notes = rows_of(SHARED / "formats" / name, form, **options)
    assert (frame.height, stamps(frame)[0], stamps(frame)[-1], notes) == (count, first, last, [])
    assert frame["symbol"].unique().to_list() == [symbol] and frame["row"].to_list() == list(range(1, count + 1))
    assert frame.select("open", "high", "low", "close", "volume").row(0) == row
    daily = "daily" in name or name in ("yfinance_history.parquet", "yfinance_multiindex.csv")
    assert facts.stamp in ("open", "close", "session") and (facts.stamp == "session") == daily


def test_every_example_file_is_read_and_recognised_as_one_layout():
    names = {path.name for path in (SHARED / "formats").iterdir()}
    assert names == set(EXAMPLES) | set(OTHER_KINDS) | NO_ROWS
    found = {name: recognise(SHARED / "formats" / name) for name in sorted(names - NO_ROWS)}
    common = found.pop("stooq_daily_site.csv")  # columns that anybody's daily bars have
    assert sorted(common) == ["csv", "stooq", "yfinance"]
    names.remove("stooq_daily_site.csv")
    assert found == {name: [(EXAMPLES | OTHER_KINDS)[name][0]] for name in sorted(names - NO_ROWS)}


def test_example_of_funding():
    frame, _, _ = rows_of(SHARED / "formats" / "binance_funding.csv", *OTHER_KINDS["binance_funding.csv"][:1], symbol="BTCUSDT")
    assert stamps(frame, "ms") == ["2025-01-01T00:00:00.000Z", "2025-01-01T08:00:00.000Z", "2025-01-01T16:00:00.003Z"]
    assert frame["rate"].to_list() == [0.0001, -0.00002137, 0.00006915] and frame["interval_hours"].to_list() == [8.0] * 3


def test_example_of_quotes_keeps_blank_sides():
    frame, facts, _ = rows_of(SHARED / "formats" / "mt5_ticks.csv", "mt5_ticks", symbol="EURUSD", **EET)
    assert facts.blank_side == "unchanged" and stamps(frame, "ms")[0] == "2024-03-04T14:30:00.113Z"
    assert frame["bid"].to_list() == [1.0852, 1.08521, None, 1.08519, 1.08518]
    assert frame["ask"].to_list() == [1.08524, None, 1.08526, 1.08523, None]


def test_examples_of_trades():
    frame, _, _ = rows_of(SHARED / "formats" / "ninjatrader_tick.txt", "ninjatrader_tick", symbol="ES")
    assert frame.select("price", "size").rows() == [(5130.25, 1), (5130.25, 3), (5130.5, 2), (5130.5, 1), (5130.25, 5)]
    assert [text[17:19] for text in stamps(frame)] == ["00", "00", "01", "01", "02"]
    frame, _, _ = rows_of(SHARED / "formats" / "sierra_tick.scid", "scid", symbol="ES")
    assert frame.height == 5 and frame.columns == ["row", "ts", "symbol", "price", "size", "bid", "ask"]
    assert (frame["bid"] <= frame["price"]).all() and (frame["price"] <= frame["ask"]).all()


def test_second_contract_of_the_lean_example_is_there_too():
    frame, facts, _ = rows_of(SHARED / "formats" / "lean_future_minute_20240304_trade.zip", "lean_future", zone="UTC")
    assert frame["symbol"].unique(maintain_order=True).to_list() == ["ESH24", "ESM24"] and facts.bar_seconds == 60.0


def test_every_format_says_what_a_user_must_know():
    for form in FORMATS.values():
        assert form.kinds and form.columns and form.zone and form.symbol and len(form.summary) < 90 and not form.summary.endswith(".")
        assert form.source or form.name in ("csv", "parquet")
