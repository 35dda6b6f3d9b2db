"""The given material beside the repository, imported whole: every layout, every real set, and the cases on data."""

import numpy as np
import pytest

import bellmark
from bellmark import clock
from bellmark.component import make
from bellmark.datasets.imported import Imported
from bellmark.errors import DataError
from bellmark.tape import compile_tape, describe

pytestmark = pytest.mark.none

SYMBOL = {"symbol": "XYZ"}
NEW_YORK = {"zone": "America/New_York"}
KEEP = {"on": {"unfinished_bar": "keep"}}
CLOSE = {"symbol": "XYZ", "bar": "1m", "stamp": "close"}
LAYOUTS = {  # file: format, what must be said, bars, first close, last close
    "binance_spot_1m_2024_ms.csv": ("binance", SYMBOL, 6, "2024-12-31T00:01:00Z", "2024-12-31T00:06:00Z"),
    "binance_spot_1m_2025_us.csv": ("binance", SYMBOL, 6, "2025-01-01T00:01:00Z", "2025-01-01T00:06:00Z"),
    "binance_um_futures_1m_header_ms.csv": ("binance", SYMBOL, 6, "2025-01-01T00:01:00Z", "2025-01-01T00:06:00Z"),
    "cryptodatadownload_1h.csv": ("cryptodatadownload", {"bar": "1h"}, 6, "2024-12-31T20:00:00Z", "2025-01-01T01:00:00Z"),
    "cryptodatadownload_old_ampm.csv": ("cryptodatadownload", {"bar": "1h"}, 6, "2019-10-16T21:00:00Z", "2019-10-17T02:00:00Z"),
    "databento_ohlcv1m.dbn": ("dbn", {}, 10, "2024-03-04T14:31:00Z", "2024-03-04T14:40:00Z"),
    "databento_ohlcv1m_pretty.csv": ("databento_csv", {}, 10, "2024-03-04T14:31:00Z", "2024-03-04T14:40:00Z"),
    "databento_ohlcv1m_raw.csv": ("databento_csv", {}, 10, "2024-03-04T14:31:00Z", "2024-03-04T14:40:00Z"),
    "dukascopy_csv.csv": ("dukascopy", SYMBOL | {"bar": "1m"}, 6, "2024-03-04T14:31:00Z", "2024-03-04T14:36:00Z"),
    "firstrate_1min.txt": ("firstrate", SYMBOL | {"bar": "1m"}, 8, "2024-03-04T14:31:00Z", "2024-03-04T14:40:00Z"),
    "freqtrade_ohlcv.json": ("freqtrade", {"symbol": "BTC/USDT", "bar": "5m"}, 6, "2025-01-01T00:05:00Z", "2025-01-01T00:30:00Z"),
    "histdata_ascii_m1.csv": ("histdata", SYMBOL, 6, "2024-03-04T14:31:00Z", "2024-03-04T14:36:00Z"),
    "ib_midpoint_no_volume.csv": ("ib", SYMBOL | {"bar": "1m"}, 5, "2024-03-04T14:31:00Z", "2024-03-04T14:35:00Z"),
    "ib_tws_api_bars.csv": ("ib", SYMBOL | {"bar": "1m"}, 6, "2024-03-04T14:31:00Z", "2024-03-04T14:36:00Z"),
    "kibot_1min.txt": ("kibot", SYMBOL | {"bar": "1m"}, 8, "2024-03-04T14:31:00Z", "2024-03-04T14:38:00Z"),
    "lean_equity_daily_xyz.zip": ("lean_equity", NEW_YORK | {"session": "us_equity"}, 5, "2024-03-04T21:00:00Z", "2024-03-08T21:00:00Z"),
    "lean_future_minute_20240304_trade.zip": ("lean_future", {"zone": "UTC"}, 14, "2024-03-04T14:31:00Z", "2024-03-04T14:40:00Z"),
    "metastock_ascii.txt": ("metastock", {"zone": "UTC", "stamp": "open"}, 5, "2024-03-04T14:31:00Z", "2024-03-04T14:35:00Z"),
    "mt4_history.csv": ("mt4", SYMBOL | {"bar": "1m", "zone": "UTC"}, 6, "2024-03-04T16:31:00Z", "2024-03-04T16:36:00Z"),
    "mt5_bars.csv": ("mt5", SYMBOL | {"bar": "1m", "zone": "UTC"}, 8, "2024-03-04T16:31:00Z", "2024-03-04T16:38:00Z"),
    "mt5_ticks.csv": ("mt5_ticks", KEEP | SYMBOL | {"bar": "1m", "zone": "UTC"}, 1, "2024-03-04T16:31:00Z", "2024-03-04T16:31:00Z"),
    "ninjatrader_minute_end.txt": ("ninjatrader", CLOSE, 10, "2024-03-04T14:31:00Z", "2024-03-04T14:40:00Z"),
    "ninjatrader_tick.txt": ("ninjatrader_tick", KEEP | SYMBOL | {"bar": "1m"}, 1, "2024-03-04T14:31:00Z", "2024-03-04T14:31:00Z"),
    "polygon_minute_aggs.csv": ("polygon", {"bar": "1m"}, 6, "2024-03-04T14:31:00Z", "2024-03-04T14:36:00Z"),
    "sierra_minute.scid": ("scid", SYMBOL | {"bar": "1m"}, 10, "2024-03-04T14:31:00Z", "2024-03-04T14:40:00Z"),
    "sierra_text_bars.txt": ("sierra_text", SYMBOL | {"zone": "UTC", "bar": "1m"}, 10, "2024-03-04T14:31:00Z", "2024-03-04T14:40:00Z"),
    "sierra_tick.scid": ("scid", KEEP | SYMBOL | {"bar": "1m"}, 1, "2024-03-04T14:31:00Z", "2024-03-04T14:31:00Z"),
    "stooq_bulk_5min.txt": ("stooq_bulk", {"zone": "Europe/Warsaw"}, 6, "2024-03-04T14:35:00Z", "2024-03-04T15:00:00Z"),
    "stooq_daily_site.csv": ("stooq", SYMBOL | {"session": "us_equity"}, 5, "2024-03-04T21:00:00Z", "2024-03-08T21:00:00Z"),
    "tradingview_iso.csv": ("tradingview", SYMBOL | {"bar": "5m"}, 6, "2024-03-04T14:35:00Z", "2024-03-04T15:00:00Z"),
    "tradingview_unix.csv": ("tradingview", SYMBOL | {"bar": "5m"}, 8, "2024-03-04T14:35:00Z", "2024-03-04T15:10:00Z"),
    "yfinance_daily_flat.csv": ("yfinance", SYMBOL | {"session": "us_equity"}, 5, "2024-03-04T21:00:00Z", "2024-03-08T21:00:00Z"),
    "yfinance_multiindex.csv": ("yfinance_multi", {"session": "us_equity"}, 5, "2024-03-04T21:00:00Z", "2024-03-08T21:00:00Z"),
    "yfinance_history.parquet": ("yfinance_parquet", SYMBOL | {"session": "us_equity"}, 5, "2024-03-04T21:00:00Z", "2024-03-08T21:00:00Z"),
    "yfinance_history_intraday.csv": ("yfinance_intraday", SYMBOL | {"bar": "1m"}, 6, "2024-03-04T14:31:00Z", "2024-03-04T14:36:00Z"),
}  # fmt: skip


def imported(paths, folder, name="x", **given):
    return bellmark.import_dataset(paths, name=name, data_dir=folder, **given)


@pytest.mark.parametrize("file", sorted(LAYOUTS))
def test_every_layout_becomes_a_dataset_and_a_tape(shared, tmp_path, file):
    form, said, bars, first, last = LAYOUTS[file]
    report = imported(shared / "formats" / file, tmp_path, format=form, **said)
    entries = report.manifest["symbols"].values()
    span = min(entry["first"] for entry in entries), max(entry["last"] for entry in entries)
    assert (report.manifest["bars"], *span) == (bars, first, last)
    assert compile_tape(make(Imported, {"path": str(report.path)}, "data").read(), cached=False).length_S.sum() == bars
    assert bellmark.check_dataset(report.path) == []


def test_every_example_of_the_folder_is_imported(shared, tmp_path):
    beside = {"binance_funding.csv", "lean_factor_xyz.csv"}  # funding and actions, which go with bars
    assert {path.name for path in (shared / "formats").iterdir()} == set(LAYOUTS) | beside | {"FORMATS.md"}
    hours = [f"2025-01-01T{hour:02}:00:00Z" for hour in range(1, 24)]
    (tmp_path / "btc.csv").write_text("ts,open,high,low,close,volume\n" + "".join(f"{hour},10,10,10,10,1\n" for hour in hours))
    report = imported(tmp_path / "btc.csv", tmp_path, format="csv", stamp="close", symbol="BTCUSDT", instrument="BTC-PERP",
                      funding=[shared / "formats" / "binance_funding.csv"], on={"off_grid": "keep"})  # fmt: skip
    ((bars, _),) = make(Imported, {"path": str(report.path)}, "data").read()
    assert bars.funding_rate[~np.isnan(bars.funding_rate)].tolist() == [-0.00002137, 0.00006915] and bars.instants_outside == 1
    form, said, *_ = LAYOUTS["lean_equity_daily_xyz.zip"]
    shares = imported(shared / "formats" / "lean_equity_daily_xyz.zip", tmp_path, name="xyz", format=form, **said,
                      factors=[shared / "formats" / "lean_factor_xyz.csv"])  # fmt: skip
    ((bars, _),) = make(Imported, {"path": str(shares.path)}, "data").read()
    assert len(bars) == 5 and bars.funding_rate is None  # both actions come before the first bar


@pytest.mark.parametrize(
    ("files", "symbols"),
    [
        ("futures_ohlcv-1m_2024-07-01T23-40_2024-07-02T00-10.dbn.zst", ["ESU4", "NQU4"]),
        ("futures_ohlcv-1m_2026-01-09T20-55_2026-01-09T21-05.dbn.zst", ["ESH6"]),
    ],
)
def test_minutes_of_databento_are_imported_by_contract(shared, tmp_path, files, symbols):
    pytest.importorskip("databento_dbn")
    report = imported(shared / "data" / "05_es_dbn_nautilus" / files, tmp_path, format="dbn", session="cme_equity_index")
    assert sorted(report.manifest["symbols"]) == symbols and report.manifest["bar_seconds"] == 60.0
    assert bellmark.check_dataset(report.path) == []


def test_trades_and_quotes_of_databento_become_bars(shared, tmp_path):
    pytest.importorskip("databento_dbn")
    folder = shared / "data" / "05_es_dbn_nautilus"
    for number, stem in enumerate(("futures_trades_2024-07-01T23-58_2024-07-02T00-02", "futures_mbp-1_2024-07-01T23-58_2024-07-02T00-02")):
        report = imported(folder / f"{stem}.dbn.zst", tmp_path, name=f"n{number}", format="dbn", bar="1m", on={"unfinished_bar": "keep"})
        assert 1 <= report.manifest["symbols"]["ESU4"]["bars"] <= 5


def test_minutes_of_spy_with_their_quotes(shared, tmp_path):
    # the files have early and late hours
    on = {"missing_quote": "fill", "crossed_quote": "null", "outside_session": "drop"}
    given = {"format": "lean_equity", "instrument": "us_equity", "on": on}
    files = str(shared / "data" / "09_us_equity_lean" / "minute_spy_2013*.zip")
    report = imported(files, tmp_path, **given)
    entry = report.manifest["symbols"]["SPY"]
    assert entry["bars"] == 5 * 390 and entry["first"] == "2013-10-07T13:31:00Z" and entry["last"] == "2013-10-11T20:00:00Z"


def test_es_minutes_with_halts_and_breaks_that_are_no_gaps(shared, tmp_path):
    given = {"format": "lean_future", "zone": "UTC", "instrument": "ES"}
    symbols = ["ESZ13", "ESH14", "ESH20"]
    report = imported(str(shared / "data" / "01_es_minute_lean" / "*_trade.zip"), tmp_path, symbol=symbols, **given)
    found = report.manifest["symbols"]
    assert (found["ESZ13"]["bars"], found["ESH20"]["bars"]) == (16_673, 1_425) and found["ESZ13"]["last"] == "2013-12-20T14:30:00Z"
    assert found["ESH20"]["gaps"]["count"] == 0  # the halt and the break of two days are in it
    rows = {row["symbol"]: row for row in describe(compile_tape(make(Imported, {"path": str(report.path)}, "data").read(), cached=False))}
    assert rows["ESZ13"]["outside_session"] == 0 and rows["ESZ13"]["gaps"] == found["ESZ13"]["gaps"]["count"]


def test_es_quotes_join_their_trades(shared, tmp_path):
    given = {"format": "lean_future", "zone": "UTC", "instrument": "ES", "symbol": "ESZ13"}
    files = str(shared / "data" / "01_es_minute_lean" / "2013100[6-8]_*.zip")
    with pytest.raises(DataError, match=r"20131006_quote.zip!20131006_es_minute_quote_201312.csv: ESZ13: data row 30 .*crossed_quote=null"):
        imported(files, tmp_path, **given)
    report = imported(files, tmp_path, on={"missing_quote": "fill", "crossed_quote": "null"}, **given)
    ((bars, _),) = make(Imported, {"path": str(report.path)}, "data").read()
    assert len(bars.quotes) == 8 and (bars.ask >= bars.bid).all()


def test_the_file_that_holds_two_series_is_refused_as_such(shared, tmp_path):
    with pytest.raises(DataError, match="data rows 1, 1153 .*1152 of 1152 stamps occur more than once.*two series of one symbol"):
        imported(shared / "data" / "07_fesx_two_series_one_file_lean" / "20240603_trade.zip", tmp_path, format="lean_future",
                 zone="Europe/Berlin")  # fmt: skip


def test_splits_of_a_raw_series_are_found_or_given(shared, tmp_path):
    folder = shared / "data" / "09_us_equity_lean"
    given = {"format": "lean_equity", "zone": "America/New_York", "instrument": "us_equity"}
    report = imported(folder / "daily_aapl.zip", tmp_path, **given)
    assert report.manifest["bars"] == 5_849 and report.manifest["symbols"]["AAPL"]["last"] == "2021-03-31T20:00:00Z"
    assert {"AAPL: possible split 1:7 at 2014-06-09", "AAPL: possible split 1:4 at 2020-08-31"} <= set(report.manifest["suspect"])
    known = imported(folder / "daily_aapl.zip", tmp_path, name="y", factors=[folder / "factor_aapl.csv"], **given)
    assert known.manifest["suspect"] == ["AAPL: possible split 1:2 at 2000-09-29"]  # a fall of 52 % that was one


def test_perpetual_and_currencies(shared, tmp_path):
    opens = {"format": "csv", "stamp": "open", "bar": "1m", "zone": "UTC"}
    (btc,) = (shared / "data" / "03_btc_perp_1m_nautilus").glob("*.csv")
    report = imported(btc, tmp_path, symbol="BTC", **opens)
    entry = report.manifest["symbols"]["BTC"]
    assert (entry["bars"], entry["first"], entry["last"]) == (45_031, "2021-12-31T23:02:00Z", "2022-02-01T05:32:00Z")
    assert entry["gaps"]["count"] == 0 and entry["duplicates"] == 0
    fx = shared / "data" / "11_fx_nautilus"
    pound = imported(fx / "gbpusd-m1-bid-2012.csv", tmp_path, name="gbp", symbol="GBPUSD", instrument="GBPUSD", **opens)
    assert pound.manifest["bars"] == pound.manifest["symbols"]["GBPUSD"]["unknown_volume_bars"] == 30_117
    ticks = imported(fx / "truefx_usdjpy-ticks.csv", tmp_path, name="jpy", format="csv", zone="UTC", symbol="USDJPY", bar="1m",
                     instrument="USDJPY")  # fmt: skip
    assert ticks.manifest["rows_read"] == 1_000


def test_case_11_with_its_actions(shared, tmp_path):
    folder = shared / "cases" / "11_split_not_adjusted"
    given = {"format": "csv", "symbol": "X", "stamp": "close", "zone": "America/New_York", "session": "us_equity", "adjustment": "raw"}
    report = imported(folder / "bars.csv", tmp_path, actions=[folder / "actions.csv"], **given)
    ((bars, _),) = make(Imported, {"path": str(report.path)}, "data").read()
    assert report.manifest["suspect"] == [] and bars.close.tolist() == [125, 125, 129, 134] and bars.notes == ()
    assert bellmark.check_dataset(report.path) == []


def test_case_03_of_two_units_in_one_column(shared, tmp_path):
    report = imported(shared / "cases" / "03_epoch_ms_then_us" / "klines.csv", tmp_path, format="binance", symbol="X")
    ((bars, _),) = make(Imported, {"path": str(report.path)}, "data").read()
    assert [clock.text(ts - 60 * clock.SECOND) for ts in bars.ts_event] == [
        "2024-12-31T23:58:00Z", "2024-12-31T23:59:00Z", "2025-01-01T00:00:00Z", "2025-01-01T00:01:00Z",
    ]  # fmt: skip
    assert report.manifest["bar_seconds"] == 60.0 and report.manifest["symbols"]["X"]["gaps"]["count"] == 0


def test_case_13_counts_the_bars_without_volume(shared, tmp_path):
    report = imported(shared / "cases" / "13_filled_zero_volume_bars" / "bars.csv", tmp_path, format="csv", symbol="X", stamp="close",
                      zone="UTC", bar="1m")  # fmt: skip
    entry = report.manifest["symbols"]["X"]
    assert entry["zero_volume_bars"] == entry["flat_zero_volume_bars"] == 2


def test_cases_05_15_17_are_read_by_what_is_said(shared, tmp_path):
    cases = shared / "cases"
    fold = imported(cases / "05_dst_fall_back_local_times" / "bars.csv", tmp_path, format="csv", symbol="X", stamp="close",
                    zone="America/New_York", repeated_hour="file_order")  # fmt: skip
    assert (fold.manifest["bars"], fold.manifest["symbols"]["X"]["duplicates"]) == (8, 0)
    names = {"stamp": "Datum", "open": "Erster", "high": "Hoch", "low": "Tief", "close": "Schlusskurs", "volume": "Volumen"}
    german = {"decimal": ",", "thousands": ".", "separator": ";", "stamp_format": "%d.%m.%Y"}
    german |= {f"{name}_column": column for name, column in names.items()}
    dax = imported(cases / "15_decimal_comma_dot_thousands" / "bars.csv", tmp_path, name="dax", format="csv", symbol="DAX", stamp="close",
                   zone="Europe/Berlin", close_time="17:30", **german)  # fmt: skip
    ((bars, _),) = make(Imported, {"path": str(dax.path)}, "data").read()
    assert bars.open[0] == 17735.05 and bars.volume[0] == 61_234_500
    padded = imported(cases / "17_bom_crlf_padded_header" / "bars.csv", tmp_path, name="padded", format="csv", symbol="X", stamp="close",
                      zone="UTC", close_time="16:00")  # fmt: skip
    assert padded.manifest["bars"] == 2


def test_crossed_minutes_of_a_bid_and_an_ask_file_are_named_or_left_out_and_counted(shared, tmp_path):
    bid, ask = ([str(shared / "data" / "11_fx_nautilus" / f"gbpusd-m1-{side}-2012.csv")] for side in ("bid", "ask"))
    given = {"format": "csv", "stamp": "open", "bar": "1m", "zone": "UTC", "symbol": "GBPUSD", "instrument": "GBPUSD"}
    given |= {"bid": bid, "ask": ask}
    with pytest.raises(DataError, match=r"-bid-2012.csv: GBPUSD: data rows .* and 344 more .*ask .* is below bid .*crossed_quote=drop"):
        imported([], tmp_path, **given)
    report = imported([], tmp_path, on={"crossed_quote": "drop"}, **given)
    told = {one["action"]: one["count"] for one in report.manifest["findings"] if one["check"] == "crossed_quote"}
    assert told == {"left out: at the close": 347, "left out: within the bar alone": 856} and report.manifest["bars"] == 30_117 - 347 - 856
    ((bars, _),) = make(Imported, {"path": str(report.path)}, "data").read()
    assert len(bars.quotes) == 8 and (bars.ask >= bars.bid).all() and bellmark.check_dataset(report.path) == []
