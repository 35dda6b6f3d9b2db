"""Signal files: what takes effect when, and every way in which a file from anywhere can be wrong."""

import json

import numpy as np
import pytest

from bellmark.component import make
from bellmark.errors import BellmarkError, DataError, UsageError
from bellmark.host import host
from bellmark.strategies.signals import read_signals
from bellmark.testing_market import join, random_tape

# Bars of the tapes close at 00:01, 00:02 ... on 2020-01-01.
START = 1_577_836_800_000_000_000
MINUTE = 60_000_000_000


@pytest.fixture
def tape():
    return join([random_tape(6, seed=1, symbol="AAPL"), random_tape(4, seed=2, symbol="MSFT")])


@pytest.fixture
def write(tmp_path):
    def run(content, name="signals.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return run


def signals(path, tape):
    return make(host().get("strategy", "signals"), {"path": path}, "strategy").compute_series(tape)["signal"]


def test_the_latest_signal_at_or_before_the_close_counts(write, tape):
    path = write(
        "ts,symbol,exposure\n2020-01-01T00:02:00Z,AAPL,0.5\n2020-01-01T00:03:00.000000001Z,AAPL,-1\n2020-01-01T00:01:30Z,MSFT,1e0\n"
    )
    assert signals(path, tape).tolist() == [[0.0, 0.5, 0.5, -1.0, -1.0, -1.0], [0.0, 1.0, 1.0, 1.0, 0.0, 0.0]]


def test_stamps_may_be_nanoseconds_or_carry_an_offset_or_none(write, tape):
    stamps = [str(START + MINUTE), "2020-01-01T01:02:00+01:00", "2020-01-01 00:03:00", "2020-01-01T00:04Z", "2019-12-31T19:05:00.5-05:00"]
    path = write("symbol,ts,exposure\n" + "".join(f"AAPL,{stamp},{k + 1}\n" for k, stamp in enumerate(stamps)))
    (ts_T, exposure_T) = read_signals(path, tape.symbols)["AAPL"]
    assert (ts_T - START).tolist() == [MINUTE, 2 * MINUTE, 3 * MINUTE, 4 * MINUTE, 5 * MINUTE + 500_000_000]
    assert exposure_T.tolist() == [1, 2, 3, 4, 5]


def test_json_lines_give_what_csv_gives(write, tape):
    rows = [{"ts": START + 2 * MINUTE, "symbol": "AAPL", "exposure": 1}, {"ts": "2020-01-01T00:03:00Z", "symbol": "AAPL", "exposure": -0.5}]
    lines = write("\n".join(json.dumps(row) for row in rows) + "\n\n", "signals.jsonl")
    table = write(f"ts,symbol,exposure\n{START + 2 * MINUTE},AAPL,1\n2020-01-01T00:03:00Z,AAPL,-0.5\n")
    assert (signals(lines, tape) == signals(table, tape)).all()


def test_the_file_of_a_learned_policy_is_read_as_the_command_and_as_a_frame_write_it(write, tape):
    header = "ts,symbol,exposure,target_lots,order_lots,action,learner\n"
    for stamp in ("2020-01-01T00:02:00Z", "2020-01-01T00:02:00.000000000+0000"):
        path = write(f"{header}{stamp},AAPL,0.5,10,,long market normal,0\n")
        assert signals(path, tape)[0].tolist() == [0.0, 0.5, 0.5, 0.5, 0.5, 0.5]
    with pytest.raises(DataError, match="expected the header"):
        signals(write("ts,symbol,exposure,note\n2020-01-01T00:02:00Z,AAPL,0.5,x\n"), tape)


def test_a_byte_order_mark_line_ends_of_windows_and_blank_lines_do_not_matter(write, tape):
    path = write(b"\xef\xbb\xbfTS, Symbol ,exposure\r\n2020-01-01T00:01:00Z, AAPL , 1 \r\n\r\n")
    assert signals(path, tape)[0].tolist() == [1.0] * 6


def test_the_further_columns_of_a_file_of_a_policy_are_passed_over_and_no_others(write, tape):
    head, row = "ts,symbol,exposure,target_lots,order_lots,action,learner", "2020-01-01T00:02:00Z,AAPL,0.5,3,,+0.50 market,0"
    assert signals(write(f"{head}\n{row}\n"), tape)[0].tolist() == [0.0, 0.5, 0.5, 0.5, 0.5, 0.5]
    for wrong in (head + ",size", head.replace("learner", "action")):
        with pytest.raises(DataError, match="expected the header ts,symbol,exposure"):
            signals(write(f"{wrong}\n{row}\n"), tape)
    with pytest.raises(DataError, match="a second signal of AAPL"):  # of another learner
        signals(write(f"{head}\n{row}\n{row[:-1]}1\n"), tape)


def test_signals_before_the_first_bar_hold_and_those_after_the_last_do_nothing(write, tape):
    path = write("ts,symbol,exposure\n2019-06-01T00:00:00Z,AAPL,0.25\n2021-06-01T00:00:00Z,AAPL,1\n")
    assert signals(path, tape)[0].tolist() == [0.25] * 6


ROW = "2020-01-01T00:01:00Z,AAPL,1\n"
BAD_ROWS = [
    (ROW + ROW, "data row 2 .*: a second signal of AAPL at 2020-01-01T00:01:00.000000000Z"),
    (ROW + "2020-01-01T00:00:30Z,AAPL,1\n", "data row 2 .*: expected the rows of AAPL in time order, found 2020-01-01T00:00:30.*after"),
    ("2020-01-01T00:01:00Z,AAPK,1\n", r"data row 1 .*: no symbol 'AAPK' in the data; did you mean 'AAPL'\? \(have: AAPL, MSFT\)"),
    ("2020-01-01T00:01:00Z,aapl,1\n", "no symbol 'aapl' in the data; did you mean 'AAPL'"),
    ("2020-01-01T00:01:00Z,,1\n", "no symbol '' in the data"),
    ("2020-01-01T00:01:00Z,AAPL\n", "data row 1 .*: expected 3 fields, found 2"),
    ("2020-01-01T00:01:00Z,AAPL,1,\n", "data row 1 .*: expected 3 fields, found 4"),
    *((f"2020-01-01T00:01:00Z,AAPL,{text}\n", "data row 1 .*: expected exposure as a number within -1000 and 1000, found") for text in (
        "", "nan", "inf", "-inf", "1e999", "1001", "1_0", "0x1", "one", "１", "1.0.0", "True", "--1")),
    *((f"{text},AAPL,1\n", "data row 1 .*: expected ts as 2024-03-04T14:33:00Z or as nanoseconds") for text in (
        "", "2020-01-01", "2020-01-01T00", "1577836860", "1577836860000", "1577836860000000", "-1577836860000000000", "tomorrow",
        "2020-01-01T00:01:00+1", "2020-01-01T00:01:00.1234567891Z", "20200101T000100Z", "２０２０-01-01T00:01:00Z", "1.5e18")),
    ("2020-02-30T00:01:00Z,AAPL,1\n", "data row 1 .*: ts '2020-02-30T00:01:00Z': day is out of range"),
    ("2020-01-01T25:01:00Z,AAPL,1\n", "data row 1 .*: ts '2020-01-01T25:01:00Z': hour must be"),
    ("2020-01-01T00:01:00+99:00,AAPL,1\n", "data row 1 .*: ts "),
    ("0001-01-01T00:01:00+05:00,AAPL,1\n", "data row 1 .*: ts "),
    ("1970-01-02T00:00:00Z,AAPL,1\n", "lies outside 1980 to 2100"),
    ("9999999999999999999,AAPL,1\n", "lies outside 1980 to 2100"),
    ('2020-01-01T00:01:00Z,"AAPL,1\n', "cannot be read as text in UTF-8"),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "message"), BAD_ROWS)
def test_a_wrong_row_is_refused_with_its_number_in_one_line(write, tape, rows, message):
    path = write("ts,symbol,exposure\n" + rows)
    with pytest.raises(DataError, match=message) as error:
        read_signals(path, tape.symbols)
    assert "\n" not in str(error.value) and path in str(error.value)


BAD_LINES = [
    ("{", "line 1: it is not JSON"),
    ("[1, 2, 3]", "line 1: expected an object with the keys ts, symbol, exposure, found"),
    ("3", "line 1: expected an object"),
    ('[{"ts": 1, "symbol": "AAPL", "exposure": 1}]', "line 1: expected an object"),
    ('{"ts": 1577836860000000000, "symbol": "AAPL"}', "line 1: expected an object with the keys"),
    ('{"ts": 1577836860000000000, "symbol": "AAPL", "exposure": 1, "note": ""}', "line 1: expected an object with the keys"),
    ('{"ts": 1577836860000000000, "symbol": "AAPL", "exposure": 1, "exposure": 2}', "line 1: expected an object with the keys"),
    ('{"ts": 1577836860000000000, "symbol": ["AAPL"], "exposure": 1}', "line 1: expected a text as symbol"),
    ('{"ts": 1577836860000000000, "symbol": {"a": 1}, "exposure": 1}', "line 1: expected a text as symbol"),
    *((f'{{"ts": 1577836860000000000, "symbol": "AAPL", "exposure": {value}}}', "line 1: expected exposure as a number") for value in (
        '"1"', "true", "null", "NaN", "Infinity", "-Infinity", "1e999", "[1]", "10" * 300)),
    *((f'{{"ts": {value}, "symbol": "AAPL", "exposure": 1}}', "line 1: expected ts as") for value in (
        "1.57783686e18", "null", "true", '{"a": 1}', "1577836860", "[" * 50 + "]" * 50)),
    ("[" * 100_000, "line 1: it is not JSON"),
    ('{"ts": ' + "9" * 5000 + ', "symbol": "AAPL", "exposure": 1}', "line 1: it is not JSON"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "message"), BAD_LINES)
def test_a_wrong_json_line_is_refused_with_its_number_in_one_line(write, tape, line, message):
    with pytest.raises(DataError, match=message) as error:
        read_signals(write(line + "\n", "signals.jsonl"), tape.symbols)
    assert "\n" not in str(error.value) and len(str(error.value)) < 600


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        ("", "signals.csv", "expected the header ts,symbol,exposure, found ''"),
        ("ts,symbol\n", "signals.csv", "expected the header ts,symbol,exposure, found 'ts,symbol'"),
        ("ts,symbol,exposure,exposure\n", "signals.csv", "expected the header"),
        ("ts,symbol,exposure\n", "signals.csv", "the file holds no signal"),
        ("\n", "signals.jsonl", "the file holds no signal"),
        (b"ts,symbol,exposure\n\xff\xfe\n", "signals.csv", "cannot be read as text in UTF-8"),
        (b"\xff{}\n", "signals.jsonl", "cannot be read as text in UTF-8"),
        ("ts,symbol,exposure\n" + "x" * 200_000 + "\n", "signals.csv", "cannot be read as text in UTF-8: field larger than field limit"),
        ("x", "signals.parquet", "expected a name that ends in .csv or .jsonl"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(write, tape, content, name, message):
    with pytest.raises(BellmarkError, match=message) as error:
        read_signals(write(content, name), tape.symbols)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_is_named(tmp_path, tape):
    with pytest.raises(UsageError, match="there is no such file"):
        read_signals(str(tmp_path / "none.csv"), tape.symbols)
    with pytest.raises(UsageError, match="it is a folder"):
        read_signals(str(tmp_path), tape.symbols)


def test_every_bar_equals_a_plain_search_for_random_signals(write):
    random = np.random.default_rng(3)
    tape = random_tape(200, seed=1, symbol="AAPL")
    stamps = np.unique(START + random.integers(-5 * MINUTE, 210 * MINUTE, 80))
    exposures = random.uniform(-1, 1, len(stamps))
    path = write("ts,symbol,exposure\n" + "".join(f"{ts},AAPL,{value!r}\n" for ts, value in zip(stamps, exposures.tolist(), strict=True)))
    expected = [next((e for ts, e in zip(stamps[::-1], exposures[::-1], strict=True) if ts <= close), 0.0) for close in tape.ts_ST[0]]
    assert signals(path, tape)[0].tolist() == expected
