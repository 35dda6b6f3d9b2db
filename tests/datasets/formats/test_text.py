"""Tables of text: rows that are cut short, too long, empty, quoted; symbols; what changes between chunks."""

import pytest
from format_cases import read, stamps, values

from bellmark.errors import DataError, UsageError

HEADER = "ts,open,high,low,close,volume\n"
A, B, C = (f"2024-03-04T14:3{minute}:00Z,1,2,0.5,1.5,{minute}" for minute in range(3))
SAID = {"symbol": "X", "stamp": "close"}


def csv(folder, text, **options):
    return read(folder, text, "csv", **SAID | options)


def test_last_line_without_an_end_is_a_row_if_it_has_all_fields(tmp_path):
    frame, _, notes = csv(tmp_path, HEADER + f"{A}\n{B}")
    assert frame.height == 2
    (note,) = notes
    assert "line 3: the last line has no line end: '2024-03-04T14:31:00Z," in note and "its last number may be" in note


@pytest.mark.parametrize("end", ["2024-03-04T14:31:00Z,1,2,0.", "2024-03-04T14:31:00Z,1,2,0.5,1.5,", "2024"])
@pytest.mark.parametrize("mark", ["\n", "\r\n"])
def test_last_line_that_is_cut_short_is_refused_or_left_out_and_noted(tmp_path, end, mark):
    text = HEADER.replace("\n", mark) + A + mark + end
    message = r"file.txt: data row 2 \(the header not counted\), line 3: the last line is cut short: '2024.*expected 6"
    with pytest.raises(DataError, match=message):
        csv(tmp_path, text)
    frame, _, notes = csv(tmp_path, text, truncated="drop")
    assert frame.height == 1 and len(notes) == 1 and "line 3" in notes[0] and "it was left out" in notes[0]
    with pytest.raises(UsageError, match="expected error or drop"):
        csv(tmp_path, text, truncated="maybe")


def test_lines_that_are_empty_are_no_rows_and_count(tmp_path):
    frame, _, _ = csv(tmp_path, HEADER + f"{A}\n\n  \n{B}\n\n")
    assert frame["row"].to_list() == [1, 4]
    with pytest.raises(DataError, match="data row 4 .*expected a number, found 'x'"):
        csv(tmp_path, HEADER + f"{A}\n\n  \n{B.replace('0.5', 'x')}\n")


@pytest.mark.parametrize(("row", "fields"), [("2024-03-04T14:33:00Z,1,2,1,1", 5), (f"{A},7", 7), (f"{A},7\n{A[:-2]}", 7)])
@pytest.mark.parametrize("chunk_bytes", [1024, 1 << 20])
def test_row_of_another_length_is_named_in_every_chunk(tmp_path, row, fields, chunk_bytes):
    many = "".join(f"{A}\n" for _ in range(50))
    with pytest.raises(DataError, match=rf"data row 51 \(the header not counted\): expected 6 fields, found {fields}$"):
        csv(tmp_path, HEADER + many + row + "\n" + many, chunk_bytes=chunk_bytes)


def test_quoted_cells_may_hold_separators(tmp_path):
    text = HEADER + '"2024-03-04T14:30:00Z","1,000.5","2,000",1,"1,500.25",""\n'
    frame, _, _ = csv(tmp_path, text, thousands=",")
    assert values(frame) == [(1000.5, 2000.0, 1.0, 1500.25, None)]
    with pytest.raises(DataError, match="data row 2 .*expected 6 fields, found 5"):  # the separator in quotes makes up for the missing one
        csv(tmp_path, text + '"2024-03-04T14:31:00Z","1,000.5",2,1,1\n', thousands=",")
    with pytest.raises(DataError, match="data row 1 .*expected 6 fields, found 1"):
        csv(tmp_path, HEADER + '"2024-03-04T14:30:00Z,1,2,3,4,5\n')


@pytest.mark.parametrize(
    ("cell", "option"), [("17.735,05", "--set decimal"), ("1,5", "--set decimal"), ("1'000", "thousands"), ("1 000", "thousands")]
)
def test_number_written_otherwise_names_the_option(tmp_path, cell, option):
    with pytest.raises(DataError, match=rf"data row 2 .*column 'open': expected a number, found \"?'?{cell}.*{option}"):
        csv(tmp_path, f"{HEADER}{A}\n".replace(",", ";") + f"2024-03-04T14:31:00Z;{cell};2;3;4;5\n", separator=";")


@pytest.mark.parametrize("cell", ["1_000", "0x10", "1d", "true", "−1", "$5", "5%", "n/a", "1e", "--1"])
def test_cell_that_is_no_number_is_refused(tmp_path, cell):
    with pytest.raises(DataError, match="data row 1 .*column 'open': expected a number"):
        csv(tmp_path, HEADER + A.replace(",1,", f",{cell},", 1) + "\n")


def test_decimals_that_appear_late_are_read(tmp_path):
    many = "".join(f"2024-03-04T14:30:{second:02}Z,1,2,1,1,1\n" for second in range(60)) * 4
    frame, _, _ = csv(tmp_path, HEADER + many + "2024-03-04T14:40:00Z,1.25,2,1,1,0.5\n")
    assert values(frame)[-1] == (1.25, 2, 1, 1, 0.5)


def test_blank_and_nan_prices_are_kept_for_the_checks(tmp_path):
    frame, _, _ = csv(tmp_path, HEADER + "2024-03-04T14:30:00Z,,nan,1,NaN,\n")
    (row,) = values(frame)
    assert row[0] is None and row[1] != row[1] and row[4] is None


def test_named_symbols_are_taken_and_others_said(tmp_path):
    text = "ts,symbol,open,high,low,close,volume\n" + "".join(f"2024-03-04T14:30:00Z,{name},1,1,1,1,1\n" for name in ("A", "B", "A/B"))
    assert read(tmp_path, text, "csv", stamp="close")[0]["symbol"].to_list() == ["A", "B", "A/B"]
    frame, _, _ = read(tmp_path, text, "csv", stamp="close", symbols=("B", "A/B"))
    assert frame.select("row", "symbol").rows() == [(2, "B"), (3, "A/B")]
    with pytest.raises(DataError, match=r"it holds no symbol 'AB'; did you mean 'A/B'\? \(has: A, B, A/B\)|it holds no symbol 'AB'"):
        read(tmp_path, text, "csv", stamp="close", symbol="AB")
    assert read(tmp_path, text, "csv", stamp="close", symbol="AB", absent_symbol="skip")[0].height == 0
    with pytest.raises(DataError, match="data row 2 .*: column 'symbol' is empty"):
        read(tmp_path, text.replace(",B,", ", ,"), "csv", stamp="close")


def test_meaning_of_the_stamp_and_symbol_and_zone_are_never_guessed(tmp_path):
    with pytest.raises(UsageError, match="whether a stamp is the open or the close of its bar; say --stamp open or --stamp close"):
        read(tmp_path, HEADER + A + "\n", "csv", symbol="X")
    with pytest.raises(UsageError, match="--symbol: expected a name, found nothing"):
        read(tmp_path, HEADER + A + "\n", "csv", stamp="close")
    with pytest.raises(UsageError, match="--tz: expected the zone of the stamps .*they carry no offset"):
        csv(tmp_path, HEADER + A.replace("Z", "") + "\n")
    with pytest.raises(UsageError, match="--stamp: expected open or close, found 'end'"):
        csv(tmp_path, HEADER + A + "\n", stamp="end")


@pytest.mark.parametrize(
    ("late", "message"),
    [
        ("2024-03-04T14:31:00", "of another kind: offset, here time without an offset"),
        ("2024-03-04", "of another kind: offset, here date alone"),
        ("1709562660000", "of another kind: offset, here epoch time"),
    ],
)
def test_kind_of_stamps_may_not_change_between_chunks(tmp_path, late, message):
    many = "".join(f"2024-03-04T14:30:{second:02}Z,1,2,1,1,1\n" for second in range(60))
    with pytest.raises(DataError, match=message):
        csv(tmp_path, HEADER + many * 3 + f"{late},1,2,1,1,1\n" * 40, chunk_bytes=1400, zone="UTC")


def test_columns_are_found_by_name_and_the_stamp_where_only_one_may_be_it(tmp_path):
    frame, _, _ = csv(tmp_path, "\ufeff Date , TIME ,Open,HIGH,low, Close \n2024-03-04, 14:30:00 ,1,2,1,2\n", zone="UTC")
    assert stamps(frame) == ["2024-03-04T14:30:00Z"] and "volume" not in frame.columns
    with pytest.raises(UsageError, match=r"which column is the stamp\? .*2 columns may be it: ts, date"):
        csv(tmp_path, "ts,date,open,high,low,close\n1,2,3,4,5,6\n")
    frame, _, _ = csv(tmp_path, "when,o,high,low,close\n2024-03-04T14:30Z,1,2,1,2\n", stamp_column="when", columns={"open": "o"})
    assert frame["open"].to_list() == [1]
    with pytest.raises(DataError, match=r"file.txt: open: no column 'open' \(the file has: 'ts', 'high'"):
        csv(tmp_path, "ts,high,low,close\n1,2,3,4\n")


def test_trades_and_quotes_are_told_by_their_columns(tmp_path):
    frame, facts, _ = read(tmp_path, "timestamp,price,size\n2024-03-04T14:30:00.5Z,1,2\n", "csv", symbol="X")
    assert frame.columns == ["row", "ts", "symbol", "price", "size"] and facts.stamp == ""
    frame, _, _ = read(tmp_path, "timestamp,bid,ask,volume\n2024-03-04T14:30:00.5Z,1,,9\n", "csv", symbol="X")
    assert frame.columns == ["row", "ts", "symbol", "bid", "ask"] and frame["ask"].to_list() == [None]
