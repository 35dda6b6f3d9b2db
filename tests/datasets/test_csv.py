"""CSV files: what people hold, and every way in which it can be wrong."""

import gzip

import numpy as np
import pytest

from bellmark import clock
from bellmark.component import make
from bellmark.datasets.csv import CsvFile
from bellmark.errors import BellmarkError, DataError, UsageError

HEADER = "ts,open,high,low,close,volume\n"
GOOD = HEADER + "2024-03-04T14:30:00Z,100,101,99,100,10\n2024-03-04T14:31:00Z,100,102,100,101,12\n2024-03-04T14:32:00Z,101,103,101,102,9\n"


@pytest.fixture
def read(tmp_path):
    def run(text, **settings):
        path = tmp_path / "bars.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        given = {"path": str(path), "stamp": "close", "zone": "UTC", "symbol": "X"} | settings
        return make(CsvFile, {name: value for name, value in given.items() if value is not None}, "data").read()

    return run


def stamps_of(bars):
    return [clock.text(ts) for ts in bars.ts_event]


def test_bars_and_instrument_come_back(read):
    ((bars, instrument),) = read(GOOD, tick_size=0.25, contract_multiplier=50.0, session="us_equity")
    assert stamps_of(bars) == ["2024-03-04T14:30:00Z", "2024-03-04T14:31:00Z", "2024-03-04T14:32:00Z"]
    assert bars.close.tolist() == [100, 101, 102] and bars.volume.tolist() == [10, 12, 9]
    assert (instrument.symbol, instrument.tick_size, instrument.contract_multiplier) == ("X", 0.25, 50.0)


def test_stamp_of_the_open_is_moved_by_the_length_of_a_bar(read):
    ((bars, _),) = read(GOOD, stamp="open", bar_seconds=60.0)
    assert stamps_of(bars)[0] == "2024-03-04T14:31:00Z"
    with pytest.raises(UsageError, match="data.bar_seconds: expected the length of a bar"):
        read(GOOD, stamp="open")


@pytest.mark.parametrize("name", ["path", "stamp", "zone"])
def test_setting_that_is_never_guessed_is_required(read, name):
    with pytest.raises(UsageError, match=f"data.{name}: expected"):
        read(GOOD, **{name: None})


def test_byte_order_mark_line_ends_and_padded_header_do_not_matter(read):
    text = b'\xef\xbb\xbf"Date" , Open ,HIGH,low,Close ,Volume\r\n2024-03-04,1,2,0.5,1.5,10\r\n2024-03-05, 1.5,2.5,1,2 ,11\r\n'
    ((bars, _),) = read(text, stamp_column="date", close_time="16:00", zone="America/New_York")
    assert bars.close.tolist() == [1.5, 2.0]
    assert stamps_of(bars) == ["2024-03-04T21:00:00Z", "2024-03-05T21:00:00Z"]


def test_date_alone_as_close_asks_when_the_bar_closes(read):
    text = "ts,open,high,low,close,volume\n2024-03-04,1,2,0.5,1.5,10\n"
    with pytest.raises(UsageError, match="data.close_time"):
        read(text)
    assert stamps_of(read(text, close_time="24:00")[0][0]) == ["2024-03-05T00:00:00Z"]
    assert stamps_of(read(text, stamp="open", bar_seconds=86400.0)[0][0]) == ["2024-03-05T00:00:00Z"]


def test_missing_column_prints_the_names_as_read(read):
    with pytest.raises(DataError, match=r"no column 'close'.*'clos', 'volume'"):
        read(GOOD.replace("close", "clos"))


def test_decimal_comma_is_an_error_that_names_row_column_and_option(read):
    text = "Datum;Erster;Hoch;Tief;Schlusskurs;Volumen\n04.03.2024;17.735,05;17.816,52;17.704,86;17.716,17;61.234.500\n"
    columns = dict(zip(("stamp", "open", "high", "low", "close", "volume"), text.split("\n")[0].split(";"), strict=True))
    settings = {f"{name}_column": column for name, column in columns.items()} | {"separator": ";", "close_time": "17:30"}
    settings |= {"stamp_format": "%d.%m.%Y", "zone": "Europe/Berlin"}
    with pytest.raises(DataError, match=r"data row 1 .*column 'Erster': expected a number, found '17.735,05'; data.decimal"):
        read(text, **settings)
    ((bars, _),) = read(text, **settings, decimal=",", thousands=".")
    assert (bars.open[0], bars.high[0], bars.low[0], bars.close[0], bars.volume[0]) == (17735.05, 17816.52, 17704.86, 17716.17, 61234500)
    assert stamps_of(bars) == ["2024-03-04T16:30:00Z"]


def test_identical_duplicate_is_kept_once_and_conflicting_one_refused(read):
    row = "2024-03-04T14:31:00Z,100,102,100,101,12\n"
    ((bars, _),) = read(GOOD.replace(row, row + row))
    assert len(bars) == 3 and bars.duplicates == 1
    with pytest.raises(DataError, match=r"bars.csv: X: data rows 2, 3 .*two rows for 2024-03-04T14:31:00Z disagree: close 101 and 101.5"):
        read(GOOD.replace(row, row + row.replace(",101,12", ",101.5,12")))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("100,102,100,101,12", "100,102,100,,12", "data row 2 .*'close' is missing"),
        ("100,102,100,101,12", "100,102,100,NaN,12", "data row 2 .*'close' is missing or NaN"),
        ("100,102,100,101,12", "100,inf,100,101,12", "data row 2 .*high is missing or no number"),
        ("100,102,100,101,12", "100,99,100,100,12", "data row 2 .*high 99 is below low 100"),
        ("100,102,100,101,12", "0,0,0,0,0", "data row 2 .*open is 0; prices must be above 0"),
        ("100,102,100,101,12", "100,102,100,101,-1", "data row 2 .*volume is -1"),
        ("100,102,100,101,12", "100,102,100,101,many", "data row 2 .*column 'volume': expected a number, found 'many'"),
        ("2024-03-04T14:31:00Z", "2024-03-04T14:29:00Z", "data row 2 .*not in time order"),
        ("2024-03-04T14:31:00Z", "yesterday", "data row 2 .*expected a stamp such as .*found 'yesterday'"),
        ("2024-03-04T14:31:00Z", "", "data row 2 .*stamp in column 'ts' is missing"),
        ("2024-03-04T14:31:00Z", "2024-02-30T14:31:00Z", "data row 2 .*found '2024-02-30"),
        ("2024-03-04T14:31:00Z", "2024-03-04T14:31:00", "data row 2 .*some stamps carry an offset and some do not"),
        ("100,102,100,101,12", "100,102,100,101,12,7", "cannot be read as CSV"),
    ],
)
def test_bad_cell_is_one_line_with_file_and_row(read, old, new, message):
    with pytest.raises(DataError, match=f"bars.csv: .*{message}|bars.csv: {message}") as caught:
        read(GOOD.replace(old, new))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("text", "message"), [("", "the file is empty"), (HEADER, "holds no bars|no bars"), ("\n", "the file is empty")])
def test_file_without_bars_is_refused(read, text, message):
    with pytest.raises(DataError, match=message):
        read(text)


def test_missing_file_is_one_line(read):
    with pytest.raises(DataError, match="no such file"):
        read(GOOD, path="/nowhere/bars.csv")


def test_empty_volume_is_unknown_and_zero_is_zero(read):
    ((bars, _),) = read(GOOD.replace(",101,12", ",101,").replace(",102,9", ",102,0"))
    assert np.isnan(bars.volume[1]) and bars.volume[2] == 0
    assert np.isnan(read(GOOD, volume_column="")[0][0].volume).all()


def test_negative_prices_pass_by_choice(read):
    text = HEADER + "2020-04-20T18:30:00Z,-1,2,-40,-37.63,5\n"
    with pytest.raises(DataError, match="prices must be above 0"):
        read(text)
    ((bars, instrument),) = read(text, allow_negative_prices=True)
    assert bars.close[0] == -37.63 and instrument.allow_negative_prices


def test_symbol_column_splits_the_file_and_rows_keep_their_numbers(read):
    lines = [HEADER.strip() + ",who"]
    lines += [f"2024-03-04T14:3{minute}:00Z,1,1,1,{'1' if who == 'B' else '1'},5,{who}" for minute in range(3) for who in ("B", "A")]
    found = read("\n".join(lines), symbol=None, symbol_column="who")
    assert [bars.symbol for bars, _ in found] == ["B", "A"]
    assert found[1][0].row_T.tolist() == [2, 4, 6]
    with pytest.raises(UsageError, match="data.symbol: expected a name"):
        read("\n".join(lines), symbol=None)


FALL_BACK = HEADER + "".join(
    f"2025-11-02 {time},{price},{price},{price},{price},1\n"
    for price, time in enumerate(["00:59:00", "01:00:00", "01:30:00", "01:59:00", "01:00:00", "01:30:00", "01:59:00", "02:00:00"], start=50)
)


def test_local_time_that_happens_twice_is_an_error_that_names_the_row_and_the_way_out(read):
    with pytest.raises(DataError, match=r"data row 2 .*2025-11-02 01:00:00 happened twice in America/New_York.*data.repeated_hour"):
        read(FALL_BACK, zone="America/New_York")


def test_local_times_that_happen_twice_are_told_by_the_order_of_the_file_on_request(read):
    ((bars, _),) = read(FALL_BACK, zone="America/New_York", repeated_hour="file_order")
    assert [text[11:16] for text in stamps_of(bars)] == ["04:59", "05:00", "05:30", "05:59", "06:00", "06:30", "06:59", "07:00"]
    assert bars.duplicates == 0


def test_local_time_that_never_happened_is_an_error(read):
    with pytest.raises(DataError, match="data row 1 .*2025-03-09 02:30:00 does not exist in America/New_York"):
        read(HEADER + "2025-03-09 02:30:00,1,1,1,1,1\n", zone="America/New_York")


def test_epoch_unit_is_told_by_the_digits_of_each_row(read):
    """One exchange went from milliseconds to microseconds inside one column."""
    rows = ["1735689480000", "1735689540000", "1735689600000000", "1735689660000000"]
    ((bars, _),) = read(HEADER + "".join(f"{row},1,1,1,1,1\n" for row in rows), stamp="open", bar_seconds=60.0)
    assert stamps_of(bars) == ["2024-12-31T23:59:00Z", "2025-01-01T00:00:00Z", "2025-01-01T00:01:00Z", "2025-01-01T00:02:00Z"]


@pytest.mark.parametrize(("digits", "message"), [("173568948000", "of 12 digits"), ("0000000001", "outside 1980 to 2100")])
def test_epoch_of_no_unit_or_no_century_is_refused(read, digits, message):
    with pytest.raises(DataError, match=f"data row 1 .*{message}"):
        read(HEADER + f"{digits},1,1,1,1,1\n")


@pytest.mark.parametrize(
    ("text", "zone", "right"),
    [
        ("2024-03-04T14:30:00+01:00", "UTC", "2024-03-04T13:30:00Z"),
        ("2024-03-04 14:30:00-0530", "UTC", "2024-03-04T20:00:00Z"),
        ("2024-03-04 14:30", "America/New_York", "2024-03-04T19:30:00Z"),
        ("2024-07-04 14:30:00.250", "America/New_York", "2024-07-04T18:30:00Z"),
    ],
)
def test_stamp_with_an_offset_counts_as_it_is_and_one_without_is_local(read, text, zone, right):
    ((bars, _),) = read(HEADER + f"{text},1,1,1,1,1\n", zone=zone)
    assert stamps_of(bars) == [right]


def test_stamp_format_is_taken(read):
    ((bars, _),) = read(HEADER + "03/04/2024 14:30,1,1,1,1,1\n", stamp_format="%m/%d/%Y %H:%M", zone="America/New_York")
    assert stamps_of(bars) == ["2024-03-04T19:30:00Z"]
    with pytest.raises(DataError, match="data row 1 .*expected a stamp like '%Y'"):
        read(GOOD, stamp_format="%Y")


@pytest.mark.parametrize("settings", [{"zone": "Mars/Olympus"}, {"separator": "ab"}, {"session": "moon"}, {"thousands": "."}])
def test_bad_setting_is_one_line(read, settings):
    with pytest.raises(BellmarkError) as caught:
        read(GOOD, **settings)
    assert "\n" not in str(caught.value) and caught.value.exit_code == 2


def test_header_of_two_equal_names_is_refused(read):
    with pytest.raises(DataError, match="two columns are named 'close'"):
        read(GOOD.replace("open", "close"))


@pytest.mark.parametrize(
    ("stamp", "message"),
    [
        ("1000-02-20T00:00:00Z", "lies outside 1678 to 2261"),
        ("2500-02-20T00:00:00Z", "lies outside 1678 to 2261"),
        ("9999-02-20", "lies outside 1678 to 2261"),
        ("9999999999999999999", "as epoch time of 19 digits lies outside 1980 to 2100"),
        ("9999999999", "as epoch time of 10 digits lies outside 1980 to 2100"),
        ("١٧٠٩٥٦٢٦٠٠", "expected a stamp such as"),
        ("2024-03-04T14:30:00+99:99", "no zone is so far from UTC"),
        ("2024-03-04T14:30:00+01:75", "no zone is so far from UTC"),
    ],
)
def test_stamp_out_of_reach_names_its_row(read, stamp, message):
    with pytest.raises(DataError, match=f"bars.csv: data row 1 .*{message}"):
        read(f"{HEADER}{stamp},1,1,1,1,1\n")


def test_date_without_a_time_among_stamps_with_one_is_refused(read):
    with pytest.raises(DataError, match="data row 2 .*: a date without a time among stamps with one: '2024-03-05' and"):
        read(HEADER + "2024-03-04T14:30:00Z,1,1,1,1,1\n2024-03-05,1,1,1,1,1\n")


@pytest.mark.parametrize(
    ("marks", "cell"),
    [
        ({"decimal": ","}, "17.735"),
        ({"thousands": ","}, "1,5"),
        ({"thousands": ",", "decimal": "."}, "1,23,456"),
        ({"thousands": ".", "decimal": ","}, "1.5"),
        ({"thousands": ".", "decimal": ","}, "17.7351,05"),
    ],
)
def test_mark_in_a_place_where_it_cannot_be_one_is_refused(read, marks, cell):
    text = HEADER.replace(",", ";") + f"2024-03-04T14:30:00Z;{cell};{cell};{cell};{cell};1\n"
    with pytest.raises(DataError, match=f"data row 1 .*'open': expected a number, found '{cell}'"):
        read(text, separator=";", **marks)


@pytest.mark.parametrize("cell", ["1.234.567,5", "1234567,5", "+1.234.567,50", "1234567,5e0"])
def test_numbers_with_marks_in_their_places_are_read(read, cell):
    text = HEADER.replace(",", ";") + f"2024-03-04T14:30:00Z;{cell};{cell};{cell};{cell};\n"
    ((bars, _),) = read(text, separator=";", thousands=".", decimal=",")
    assert bars.open.tolist() == [1234567.5] and np.isnan(bars.volume[0])


@pytest.mark.parametrize(("row", "fields"), [("2024-03-04T14:33:00Z,102,103,101,102", 5), ("2024-03-04T14:33:00Z,102,103,101,102,5,6", 7)])
@pytest.mark.parametrize("end", ["", "\n"])
def test_row_with_another_number_of_fields_is_named(read, row, fields, end):
    with pytest.raises(DataError, match=f"data row 4 .*: expected 6 fields, found {fields}$"):
        read(GOOD + row + end)


@pytest.mark.parametrize("separator", ["é", '"', "\n", "1", ";;", ""])
def test_separator_that_cannot_be_one_is_a_usage_error(read, separator):
    with pytest.raises(UsageError, match=r"data\.separator: expected one character"):
        read(GOOD, separator=separator)


@pytest.mark.parametrize("path", ["~nobody-of-this-name/x.csv", "a" * 5000, "a\0b", "."])
def test_path_that_names_no_file_is_one_line(read, path):
    with pytest.raises(DataError, match=r"^data\.path: "):
        read(GOOD, path=path)


def test_name_of_a_file_is_no_pattern(read, tmp_path):
    (tmp_path / "bars[1].csv").write_text(GOOD)
    (tmp_path / "bars1.csv").write_text(GOOD + "2024-03-04T14:33:00Z,101,103,101,102,9\n")
    ((bars, _),) = read(GOOD, path=str(tmp_path / "bars[1].csv"))
    assert len(bars) == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"stamp": "open", "bar_seconds": 1e300}, "data.bar_seconds: expected float or none >= 1e-09 <= 3.16224e"),
        ({"stamp": "open", "bar_seconds": 1e-12}, "data.bar_seconds: expected float or none >= 1e-09"),
        ({"symbol": " "}, "data.symbol: expected a name, found ' '"),
        ({"symbol": "a\nb"}, "data.symbol: expected a name"),
    ],
)
def test_setting_out_of_range_names_itself(read, settings, message):
    with pytest.raises(UsageError, match=message):
        read(GOOD, **settings)


@pytest.mark.parametrize("text", ["25:00", "x", "9"])
def test_wrong_close_time_names_its_setting(read, text):
    with pytest.raises(UsageError, match="data.close_time: expected a time as HH:MM"):
        read("ts,open,high,low,close,volume\n2024-03-04,1,2,0.5,1.5,10\n", close_time=text)


EVENTS = ("halted", "funding_rate", "funding_mark", "roll_price")
QUOTES = tuple(f"{side}{part}" for side in ("bid", "ask") for part in ("_open", "_high", "_low", ""))


def with_columns(cells):
    """GOOD with more columns, the cells of each by name."""
    header, *rows = GOOD.strip().split("\n")
    more = [",".join(column[t] for column in cells.values()) for t in range(3)]
    return "\n".join([",".join([header, *cells]), *(f"{row},{rest}" for row, rest in zip(rows, more, strict=True))])


def named(*names):
    return {f"{name}_column": name for name in names}


def test_optional_columns_are_read_where_they_are_named(read):
    cells = {name: ("99", "100", "101") if name.startswith("bid") else ("101", "102", "103") for name in QUOTES}
    cells |= {"halted": ("", "TRUE", "0"), "funding_rate": ("", "0.0001", "-2e-5"), "funding_mark": ("", "100.5", "")}
    text = with_columns(cells | {"roll_price": ("", "", "104.25")})
    ((bars, _),) = read(text, **named(*QUOTES, *EVENTS))
    assert tuple(bars.extras) == QUOTES + EVENTS
    assert bars.bid.tolist() == [99, 100, 101] and bars.ask_low.tolist() == [101, 102, 103]
    assert bars.halted.tolist() == [False, True, False] and bars.halted.dtype == np.bool_
    assert np.isnan(bars.funding_rate[0]) and bars.funding_rate[1:].tolist() == [0.0001, -2e-5]
    np.testing.assert_array_equal(bars.funding_mark, [np.nan, 100.5, np.nan])
    np.testing.assert_array_equal(bars.roll_price, [np.nan, np.nan, 104.25])
    assert read(text)[0][0].extras == {}  # nothing is taken that is not named


def test_optional_columns_are_written_as_the_other_numbers_are(read):
    text = "ts;open;high;low;close;volume;rate;next\n2024-03-04T14:30:00Z;100,5;101;99;100;10;0,0001;1.100,25\n"
    columns = {"funding_rate_column": "Rate", "roll_price_column": "next"}
    ((bars, _),) = read(text, separator=";", decimal=",", thousands=".", **columns)
    assert bars.funding_rate.tolist() == [0.0001] and bars.roll_price.tolist() == [1100.25]


@pytest.mark.parametrize(
    ("cells", "names", "message"),
    [
        ({"bid": ("99", "x", "99"), "ask": ("101",) * 3}, ("bid", "ask"), "data row 2 .*column 'bid': expected a number, found 'x'"),
        ({"bid": ("99", "", "99"), "ask": ("103",) * 3}, ("bid", "ask"), "X: data row 2 .*: bid is missing or no number"),
        ({"bid": ("99", "99", "99"), "ask": ("103", "103", "98")}, ("bid", "ask"), "X: data row 3 .*: ask 98 is below bid 99"),
        ({"bid": ("99",) * 3}, ("bid",), "X: expected quotes as bid and ask at the close alone, or .*, found bid$"),
        ({"halted": ("0", "1", "maybe")}, ("halted",), "data row 3 .*column 'halted': expected 0, 1, true or false, found 'maybe'"),
        ({"halted": ("0", "2", "")}, ("halted",), "data row 2 .*column 'halted': expected 0, 1, true or false, found '2'"),
        ({"funding_rate": ("0", "1.5", "")}, ("funding_rate",), "X: data row 2 .*: funding_rate is 1.5, expected a share"),
        ({"funding_mark": ("1", "1", "1")}, ("funding_mark",), "X: expected funding_rate beside funding_mark, found none"),
        ({"roll_price": ("", "0", "")}, ("roll_price",), "X: data row 2 .*: roll_price is 0; prices must be above 0"),
        ({"roll": ("", "1", "")}, ("roll_price",), r"data.roll_price_column: no column 'roll_price'.*'roll'"),
    ],
)
def test_bad_optional_column_is_one_line(read, cells, names, message):
    with pytest.raises(DataError, match=f"bars.csv: {message}") as caught:
        read(with_columns(cells), **named(*names))
    assert "\n" not in str(caught.value)


def test_rows_of_one_stamp_that_differ_in_an_optional_column_are_refused(read):
    text = with_columns({"halted": ("0", "0", "0")})
    again = text + "\n2024-03-04T14:32:00Z,101,103,101,102,9,"
    assert read(again + "0", halted_column="halted")[0][0].duplicates == 1
    with pytest.raises(DataError, match="data rows 3, 4 .*disagree: halted 0 and 1"):
        read(again + "1", halted_column="halted")


def test_each_symbol_of_a_file_has_its_own_optional_columns(read):
    lines = [HEADER.strip() + ",who,halt"]
    lines += [f"2024-03-04T14:3{t}:00Z,1,1,1,1,5,{who},{int(who == 'A' and t == 1)}" for t in range(2) for who in "BA"]
    found = read("\n".join(lines), symbol=None, symbol_column="who", halted_column="halt")
    assert [bars.halted.tolist() for bars, _ in found] == [[False, False], [False, True]]


CONFLICT = "2024-03-04T14:31:00Z,100,102,100,101,12\n"


@pytest.mark.parametrize(("duplicates", "close"), [("keep_first", 101.0), ("keep_last", 101.5)])
def test_rows_of_one_stamp_that_disagree_are_kept_by_choice_and_noted(read, duplicates, close):
    ((bars, _),) = read(GOOD.replace(CONFLICT, CONFLICT + CONFLICT.replace(",101,12", ",101.5,12")), duplicates=duplicates)
    assert len(bars) == 3 and bars.close[1] == close
    assert len(bars.notes) == 1 and bars.notes[0].startswith("1 row left out, check duplicate_conflicting")


@pytest.mark.parametrize("bad", ["100,102,100,,12", "100,102,100,NaN,12", "0,0,0,0,0", "100,99,100,100,12", "100,102,100,101,-1"])
def test_bad_rows_are_left_out_by_choice_and_noted(read, bad):
    text = GOOD.replace("100,102,100,101,12", bad)
    with pytest.raises(DataError, match="data row 2 "):
        read(text)
    ((bars, _),) = read(text, bad_rows="drop")
    assert bars.row_T.tolist() == [1, 3] and len(bars.notes) == 1 and "1 row left out" in bars.notes[0]
    with pytest.raises(DataError, match="expected a number, found 'x'"):  # a cell that cannot be read is no row of bad data
        read(text.replace("102,9", "x,9"), bad_rows="drop")


def test_compressed_file_is_read_as_it_is(read):
    ((bars, _),) = read(gzip.compress(GOOD.encode()))
    assert len(bars) == 3 and bars.duplicates == 0


def test_last_line_without_a_line_end_is_noted(read):
    (bars, _), = read(GOOD.rstrip("\n"))
    assert len(bars.notes) == 1 and "the last line has no line end" in bars.notes[0] and read(GOOD)[0][0].notes == ()
