"""Tables of any maker: Parquet in slices, settings from text, the given cases."""

import subprocess
import sys

import polars as pl
import pytest
from format_cases import SHARED, read, rows_of, stamps, values

from bellmark.datasets.formats import Options, open_rows, options_from
from bellmark.errors import DataError, UsageError

PRICES = ("open", "high", "low", "close", "volume")


def table(rows):
    return {"ts": [1_709_562_600 + 60 * n for n in range(rows)], **{name: [float(n + 1) for n in range(rows)] for name in PRICES}}


def test_parquet_is_read_in_slices(tmp_path):
    path = tmp_path / "f.parquet"
    pl.DataFrame(table(500) | {"other": ["x"] * 500}).write_parquet(path)
    chunks = list(open_rows([path], "parquet", Options(stamp="close", symbol="X", chunk_bytes=1024)))
    assert len(chunks) > 5 and pl.concat([chunk.frame for chunk in chunks])["row"].to_list() == list(range(1, 501))
    assert chunks[0].frame.columns == ["row", "ts", "symbol", *PRICES] and chunks[-1].read_bytes == path.stat().st_size
    with pytest.raises(DataError, match="f.parquet: close: no column 'close'; did you mean"):
        pl.DataFrame(table(5)).rename({"close": "closed"}).write_parquet(path)
        rows_of(path, "parquet", stamp="close", symbol="X")


def test_parquet_row_is_named_in_a_later_slice(tmp_path):
    columns = table(100)
    pl.DataFrame(columns | {"close": [*(["1"] * 90), "one", *(["1"] * 9)]}).write_parquet(tmp_path / "f.parquet")
    with pytest.raises(DataError, match="data row 91 .*column 'close': expected a number, found 'one'"):
        rows_of(tmp_path / "f.parquet", "parquet", stamp="close", symbol="X", chunk_bytes=1024)


def test_settings_come_from_text():
    options = options_from({"open_column": "Erster", "separator": "\\t", "decimal": ","}, zone="UTC", symbols=("A",))
    assert (options.columns, options.separator, options.decimal, options.zone) == ({"open": "Erster"}, "\t", ",", "UTC")
    with pytest.raises(UsageError, match="--set: the formats have no setting 'opn_column'; did you mean 'open_column'"):
        options_from({"opn_column": "x"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decimal": "x"}, "--set decimal=...: expected '.' or ','"),
        ({"thousands": "_"}, "--set thousands=...: expected"),
        ({"thousands": "."}, "expected another mark than --set decimal=..., found '.' for both"),
        ({"separator": "ab"}, "--set separator=...: expected one character"),
        ({"zone": "Mars/Olympus"}, "--tz: expected an IANA time zone"),
    ],
)
def test_wrong_option_is_named_as_it_was_given(tmp_path, options, message):
    with pytest.raises(UsageError, match=message):
        read(tmp_path, "ts,open,high,low,close\n2024-03-04T14:30:00Z,1,1,1,1\n", "csv", stamp="close", symbol="X", **options)


needs_cases = pytest.mark.skipif(not SHARED.is_dir(), reason="the cases are not beside this repository")


@needs_cases
def test_case_of_local_times_that_repeat():
    options = {"zone": "America/New_York", "stamp": "close", "symbol": "X"}
    path = SHARED / "cases" / "05_dst_fall_back_local_times" / "bars.csv"
    with pytest.raises(DataError, match="happened twice in America/New_York"):
        rows_of(path, "csv", **options)
    frame, _, _ = rows_of(path, "csv", repeated_hour="file_order", **options)
    assert [text[11:16] for text in stamps(frame)] == ["04:59", "05:00", "05:30", "05:59", "06:00", "06:30", "06:59", "07:00"]


@needs_cases
def test_case_of_decimal_commas():
    path = SHARED / "cases" / "15_decimal_comma_dot_thousands" / "bars.csv"
    header = path.read_text().splitlines()[0].split(";")
    said = {"separator": ";", "stamp_column": header[0], "stamp_format": "%d.%m.%Y", "columns": dict(zip(PRICES, header[1:], strict=True))}
    with pytest.raises(DataError, match="data row 1 .*expected a number, found '17.735,05'; --set decimal=... and --set thousands=..."):
        rows_of(path, "csv", symbol="X", **said)
    frame, facts, _ = rows_of(path, "csv", symbol="X", decimal=",", thousands=".", **said)
    assert values(frame) == [(17735.05, 17816.52, 17704.86, 17716.17, 61234500), (17686.22, 17735.77, 17645.6, 17698.4, 58001250)]
    assert facts.stamp == "session" and stamps(frame) == ["2024-03-04T00:00:00Z", "2024-03-05T00:00:00Z"]


@pytest.mark.parametrize("header", ["ts,open,high,low,close,Close", "ts,open,high,low,Close,close"])
def test_two_columns_that_differ_in_case_are_two(tmp_path, header):
    text = f"{header}\n2024-03-04T14:30:00Z,3,3,3,3,4\n"
    with pytest.raises(DataError, match="two columns are named '.*' but for case or marks: '"):
        read(tmp_path, text, "csv", symbol="X", stamp="close", stamp_column=None)
    with pytest.raises(DataError, match="two columns are named"):  # names that a profile has by default
        read(tmp_path, text, "csv", symbol="X", stamp="close", in_profile=True, columns={name: name for name in PRICES[:4]})
    said = {"columns": {"close": "Close"}, "symbol": "X", "stamp": "close"}
    assert read(tmp_path, text, "csv", **said)[0]["close"][0] == (4 if header.endswith("Close") else 3)


GERMAN = {"separator": ";", "stamp_format": "%d.%m.%Y", "symbol": "X"}


@pytest.mark.parametrize(
    ("prices", "said", "right"),
    [
        (("17.735", "17.816", "17.704", "17.716"), {}, None),
        (("985", "1.002", "985", "999"), {}, None),  # thousands that pass a thousand
        (("17.735", "17.816", "17.704", "17.716"), {"decimal": "."}, (17.735, 17.816, 17.704, 17.716)),
        (("17.735", "17.816", "17.704", "17.716"), {"decimal": ",", "thousands": "."}, (17735, 17816, 17704, 17716)),
        (("17.735", "17.8160", "17.704", "17.7"), {}, None),  # a column at a time
        (("17.7", "17.8160", "0.735", "17.71"), {}, (17.7, 17.816, 0.735, 17.71)),
    ],
)
def test_dots_that_may_part_thousands_are_asked_for_in_files_that_look_european(tmp_path, prices, said, right):
    text = "date;open;high;low;close\n" + f"04.03.2024;{';'.join(prices)}\n" * 3
    if right is None:
        with pytest.raises(UsageError, match="column '(open|high)': '.*' may be a number with three decimals .*; say --set decimal=. or"):
            read(tmp_path, text, "csv", **GERMAN, **said)
        with pytest.raises(UsageError, match="data.decimal = '.' or"):
            read(tmp_path, text.replace(";", ","), "csv", **GERMAN | {"separator": ","}, in_profile=True, **said)
    else:
        assert values(read(tmp_path, text, "csv", **GERMAN, **said)[0], *PRICES[:4])[0] == right
    plain = text.replace(";", ",").replace("04.03.2024", "2024-03-04")
    if not said:  # yen and others have three decimals in files that do not look European
        assert values(read(tmp_path, plain, "csv", symbol="X")[0], *PRICES[:4])[0] == tuple(float(price) for price in prices)


@needs_cases
def test_case_of_marks_and_padded_names():
    frame, _, _ = rows_of(SHARED / "cases" / "17_bom_crlf_padded_header" / "bars.csv", "csv", symbol="X")
    assert frame["close"].to_list() == [1.5, 2.0]


def test_importing_the_formats_imports_neither_polars_nor_databento():
    code = "import sys, bellmark.datasets.formats; print([name for name in ('polars', 'databento_dbn', 'numba') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
