"""yfinance: adjustments told by a column, several tickers side by side, midnights that are dates, Parquet of pandas."""

from datetime import datetime

import polars as pl
import pytest
from format_cases import read, rows_of, stamps, values

from bellmark.datasets.formats import recognise
from bellmark.errors import DataError

FLAT = "Date,Open,High,Low,Close,Adj Close,Volume\n2024-03-04,1,2,0.5,1.5,1.25,7\n"
MULTI = "Price,Close,Close,High,High,Low,Low,Open,Open,Volume,Volume\nTicker,A,B,A,B,A,B,A,B,A,B\nDate,,,,,,,,,,\n"
WIDE = MULTI + "2024-03-04,1.5,,2,,0.5,,1,,7,\n2024-03-05,1.5,15,2,20,0.5,5,1,10,7,70\n2024-03-06,,15,,20,,5,,10,,\n"


def test_adjustment_is_told_by_the_column_beside_the_close(tmp_path):
    frame, facts, _ = read(tmp_path, FLAT, "yfinance", symbol="X")
    assert facts.price_adjustment == "split" and frame["adjusted_close"].to_list() == [1.25] and facts.stamp == "session"
    plain = FLAT.replace("Adj Close,", "").replace("1.25,", "")
    assert read(tmp_path, plain, "yfinance", symbol="X")[1].price_adjustment == "split_dividend"


def test_tickers_side_by_side_have_the_days_on_which_they_traded(tmp_path):
    frame, facts, _ = read(tmp_path, WIDE, "yfinance_multi")
    assert frame.filter(pl.col("symbol") == "A")["row"].to_list() == [1, 2]
    assert frame.filter(pl.col("symbol") == "B")["row"].to_list() == [2, 3]
    assert values(frame.filter(pl.col("symbol") == "B")) == [(10, 20, 5, 15, 70), (10, 20, 5, 15, None)] and facts.bar_seconds == 86400.0
    assert read(tmp_path, WIDE, "yfinance_multi", symbol="B")[0]["symbol"].to_list() == ["B", "B"]
    assert recognise(tmp_path / "file.txt") == ["yfinance_multi"]
    with pytest.raises(DataError, match=r"it holds no symbol 'C'.*\(has: A, B\)"):
        read(tmp_path, WIDE, "yfinance_multi", symbol="C")


def test_one_ticker_keeps_its_blank_rows_for_the_checks(tmp_path):
    text = "Price,Close,High,Low,Open,Volume\nTicker,A,A,A,A,A\nDate,,,,,\n2024-03-04,1.5,2,0.5,1,7\n2024-03-05,,,,,\n"
    frame, _, _ = read(tmp_path, text, "yfinance")
    assert values(frame) == [(1, 2, 0.5, 1.5, 7), (None,) * 5]


def test_levels_may_stand_the_other_way_round_and_others_are_refused(tmp_path):
    lines = WIDE.split("\n")
    assert read(tmp_path, "\n".join([lines[1], lines[0], *lines[2:]]), "yfinance_multi")[0].height == 4
    with pytest.raises(DataError, match="expected a header of a line 'Price,...' and a line 'Ticker,...'"):
        read(tmp_path, FLAT, "yfinance_multi")
    with pytest.raises(DataError, match="no column 'open of B'"):
        read(tmp_path, WIDE.replace("Open,Open", "Open,Opens"), "yfinance_multi")


@pytest.mark.parametrize("zone", ["-05:00", "-0500"])
def test_midnights_with_an_offset_are_dates(tmp_path, zone):
    text = f"Date,Open,High,Low,Close,Volume,Dividends,Stock Splits\n2024-03-04 00:00:00{zone},1,2,0.5,1.5,7,0.24,4.0\n"
    text += "2024-07-05 00:00:00-04:00,1,2,0.5,1.5,7,0,0\n"
    frame, facts, _ = read(tmp_path, text, "yfinance_intraday", symbol="X")
    assert facts.stamp == "session" and stamps(frame)[1] == "2024-07-05T00:00:00Z" and frame.select("dividend", "split").row(0) == (0.24, 4)
    assert recognise(tmp_path / "file.txt") == ["yfinance_intraday"]


def test_offset_of_intraday_rows_may_change(tmp_path):
    rows = "2024-03-08 09:30:00-05:00,1,2,0.5,1.5,7,0,0\n2024-03-11 09:30:00-04:00,1,2,0.5,1.5,7,0,0\n"
    frame, facts, _ = read(tmp_path, "Datetime,Open,High,Low,Close,Volume,Dividends,Stock Splits\n" + rows, "yfinance", symbol="X")
    assert stamps(frame) == ["2024-03-08T14:30:00Z", "2024-03-11T13:30:00Z"] and facts.stamp == "open"


PRICES = {"Open": [1.0], "High": [2.0], "Low": [0.5], "Close": [1.5], "Volume": [7]}


def saved(folder, columns):
    pl.DataFrame(columns).write_parquet(folder / "f.parquet")
    return folder / "f.parquet"


def moment(text, zone="America/New_York"):
    return pl.Series([datetime.fromisoformat(text)], dtype=pl.Datetime("ns")).dt.replace_time_zone(zone)


@pytest.mark.parametrize("name", ["Date", "__index_level_0__"])
def test_parquet_dates_are_local_midnights(tmp_path, name):
    path = saved(tmp_path, PRICES | {name: moment("2024-03-04T00:00:00")})
    frame, facts, _ = rows_of(path, "yfinance", symbol="X")
    assert facts.stamp == "session" and stamps(frame) == ["2024-03-04T00:00:00Z"] and recognise(path) == ["yfinance_parquet"]
    frame, facts, _ = rows_of(saved(tmp_path, PRICES | {"Datetime": moment("2024-03-04T09:30:00")}), "yfinance", symbol="X")
    assert facts.stamp == "open" and stamps(frame) == ["2024-03-04T14:30:00Z"]


def test_parquet_of_two_levels_holds_one_ticker(tmp_path):
    columns = {f"('{name}', 'XYZ')": values for name, values in PRICES.items()} | {"Date": moment("2024-03-04T00:00:00")}
    frame, _, _ = rows_of(saved(tmp_path, columns), "yfinance_parquet")
    assert frame["symbol"].to_list() == ["XYZ"] and values(frame) == [(1, 2, 0.5, 1.5, 7)]
    with pytest.raises(DataError, match="expected one ticker in columns of two levels, found 2"):
        rows_of(saved(tmp_path, columns | {"('Open', 'ABC')": [1.0]}), "yfinance_parquet")
