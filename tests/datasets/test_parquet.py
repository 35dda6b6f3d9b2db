"""Parquet files: typed stamps, nulls, wrong types."""

from datetime import date, datetime

import numpy as np
import polars as pl
import pytest

from bellmark import clock
from bellmark.component import make
from bellmark.datasets.parquet import ParquetFile
from bellmark.errors import DataError

PRICES = {name: [1.0, 1.0] for name in ("open", "high", "low", "close")} | {"volume": [5, None]}


@pytest.fixture
def read(tmp_path):
    def run(columns, **settings):
        path = tmp_path / "bars.parquet"
        pl.DataFrame(columns).write_parquet(path)
        return make(ParquetFile, {"path": str(path), "stamp": "close", "zone": "America/New_York", "symbol": "X"} | settings, "data").read()

    return run


def first(found):
    return clock.text(found[0][0].ts_event[0])


NAIVE = [datetime(2024, 3, 4, 14, 30), datetime(2024, 3, 4, 14, 31)]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_stamp_without_a_zone_is_local_and_one_with_a_zone_counts_as_it_is(read, unit):
    naive = pl.Series(NAIVE, dtype=pl.Datetime(unit))
    assert first(read({"ts": naive} | PRICES)) == "2024-03-04T19:30:00Z"
    assert first(read({"ts": naive.dt.replace_time_zone("Asia/Tokyo")} | PRICES)) == "2024-03-04T05:30:00Z"


def test_dates_epoch_and_text_are_stamps_too(read):
    days = [date(2024, 3, 4), date(2024, 3, 5)]
    assert first(read({"ts": days} | PRICES, close_time="16:00")) == "2024-03-04T21:00:00Z"
    assert first(read({"ts": [1709562600, 1709562660]} | PRICES)) == "2024-03-04T14:30:00Z"
    assert first(read({"ts": ["2024-03-04T14:30:00Z", "2024-03-04T14:31:00Z"]} | PRICES)) == "2024-03-04T14:30:00Z"


def test_null_volume_is_unknown_and_null_price_an_error(read):
    assert np.isnan(read({"ts": NAIVE} | PRICES)[0][0].volume[1])
    with pytest.raises(DataError, match="bars.parquet: data row 2 .*'close' is missing"):
        read({"ts": NAIVE} | PRICES | {"close": [1.0, None]})


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"ts": [None, NAIVE[1]]}, "data row 1 .*stamp in column 'ts' is missing"),
        ({"ts": [1.5, 2.5]}, "column 'ts': expected stamps, found Float64"),
        ({"close": [True, False]}, "column 'close': expected numbers, found Boolean"),
        ({"close": ["1", "one"]}, "data row 2 .*column 'close': expected a number, found 'one'"),
        ({"ts": [NAIVE[1], NAIVE[0]]}, "not in time order"),
    ],
)
def test_wrong_column_is_one_line(read, columns, message):
    with pytest.raises(DataError, match=message) as caught:
        read({"ts": NAIVE} | PRICES | columns)
    assert "\n" not in str(caught.value)


def test_no_rows_and_no_parquet_are_refused(read, tmp_path):
    with pytest.raises(DataError, match="the file holds no bars"):
        read({name: pl.Series([], dtype=pl.Float64) for name in ("ts", *PRICES)})
    (tmp_path / "text.parquet").write_text("not parquet")
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        read({"ts": NAIVE} | PRICES, path=str(tmp_path / "text.parquet"))


def test_typed_optional_columns_are_read_and_nulls_are_no_events(read):
    quotes = {"b": [0.5, 0.75], "a": [1, 1]}
    events = {"halted": [None, True], "funding_rate": [0.0001, None], "roll_price": [None, 1.25]}
    names = {"bid_column": "b", "ask_column": "a"} | {f"{name}_column": name for name in events}
    ((bars, _),) = read({"ts": NAIVE} | PRICES | quotes | events, **names)
    assert bars.bid.tolist() == [0.5, 0.75] and bars.ask.tolist() == [1.0, 1.0]
    assert bars.halted.tolist() == [False, True]
    assert bars.funding_rate[0] == 0.0001 and np.isnan(bars.funding_rate[1])
    assert np.isnan(bars.roll_price[0]) and bars.roll_price[1] == 1.25


@pytest.mark.parametrize("flags", [[0, 1], [0.0, 1.0], ["false", " True "], [None, 1]])
def test_halts_may_be_numbers_or_text(read, flags):
    ((bars, _),) = read({"ts": NAIVE} | PRICES | {"h": flags}, halted_column="h")
    assert bars.halted.tolist() == [False, True]
    with pytest.raises(DataError, match="data row 2 .*column 'h': expected 0, 1, true or false, found 0.5"):
        read({"ts": NAIVE} | PRICES | {"h": [0.0, 0.5]}, halted_column="h")
