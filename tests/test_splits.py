"""Train, validation and test parts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellmark import clock
from bellmark.bars import Bars
from bellmark.errors import DataError, UsageError
from bellmark.instrument import Instrument
from bellmark.splits import split_tape
from bellmark.tape import compile_tape

START = int(np.datetime64("2020-01-01T21:00", "ns").astype(np.int64))


def daily(symbol, first, count):
    ts_T = START + (first + np.arange(count)) * clock.DAY
    price_T = np.full(count, 10.0)
    return Bars(symbol, ts_T, price_T, price_T, price_T, price_T, np.ones(count)), Instrument(symbol, 1.0)


def tape(*spans):
    return compile_tape([daily(f"S{n}", first, count) for n, (first, count) in enumerate(spans)], cached=False)


def test_fractions_cut_the_stamps_in_shares():
    splits = split_tape(tape((0, 100)), 0.6, 0.2)
    assert [(int(w.start_S[0]), int(w.end_S[0])) for w in (splits.train, splits.validation, splits.test)] == [(0, 60), (60, 80), (80, 100)]


def test_cuts_are_moments_common_to_all_symbols_and_a_late_one_has_an_empty_window():
    splits = split_tape(tape((0, 100), (70, 30)), 0.6, 0.2)
    assert splits.train.bars.tolist() == [60, 0]
    assert splits.validation.bars.tolist() == [20, 10]
    assert splits.test.bars.tolist() == [20, 20]


def test_embargo_leaves_out_the_first_bars_of_validation_and_test():
    splits = split_tape(tape((0, 100)), 0.6, 0.2, embargo_bars=5)
    assert [(int(w.start_S[0]), int(w.end_S[0])) for w in (splits.train, splits.validation, splits.test)] == [(0, 60), (65, 80), (85, 100)]


def test_dates_are_the_first_moment_after_a_part():
    splits = split_tape(tape((0, 10)), "2020-01-04", "2020-01-07T21:00:00")
    assert splits.train.bars.tolist() == [3]
    assert splits.validation.bars.tolist() == [3]
    assert clock.text(splits.validation.last) == "2020-01-06T21:00:00Z"
    assert clock.text(splits["test"].first) == "2020-01-07T21:00:00Z"


@given(train=st.floats(0.05, 0.6), validation=st.floats(0.05, 0.3), embargo=st.integers(0, 3), first=st.integers(0, 60))
def test_parts_never_share_a_moment(train, validation, embargo, first):
    found = tape((0, 100), (first, 100 - first))
    splits = split_tape(found, train, validation, embargo)
    assert splits.train.last < splits.validation.first and splits.validation.last < splits.test.first
    for s in range(2):
        assert 0 <= splits.train.end_S[s] <= splits.validation.start_S[s] <= splits.validation.end_S[s] <= splits.test.start_S[s]


@pytest.mark.parametrize(
    ("train", "validation", "error", "message"),
    [
        (0.8, 0.3, UsageError, "below 1, found 1.1"),
        (1.2, 0.1, UsageError, "split.train: expected a fraction"),
        ("2020-01-04", 0.2, UsageError, "two fractions or two dates"),
        ("2020-01-07", "2020-01-04", UsageError, "a date after split.train"),
        ("soon", "later", UsageError, "split.train: expected a fraction or an ISO date"),
        ("2030-01-01", "2031-01-01", DataError, "validation part holds fewer than 2 bars; the data run from 2020-01-01"),
        (0.98, 0.01, DataError, "validation part holds fewer than 2 bars"),
    ],
)
def test_bad_split_is_one_line(train, validation, error, message):
    with pytest.raises(error, match=message) as caught:
        split_tape(tape((0, 100)), train, validation)
    assert "\n" not in str(caught.value)


def test_unknown_part_is_refused():
    with pytest.raises(UsageError, match="expected one of train, validation, test"):
        split_tape(tape((0, 100)))["holdout"]
