"""Contracts joined into one series: where they are rolled, at which price, and the history adjusted for it."""

from dataclasses import replace

import numpy as np
import pytest

from bellmark import clock
from bellmark.bars import Bars, with_funding
from bellmark.contracts import difference_adjusted, splice
from bellmark.errors import DataError
from bellmark.instrument import Instrument
from bellmark.tape import compile_tape, describe

DAYS = {day: int(np.datetime64(f"2013-12-{day:02}T21:00", "ns").astype(np.int64)) for day in range(9, 31)}


def contract(symbol, close_of, **more):
    """Bars that open, rise and fall to the close of each day."""
    close_T = np.array(list(close_of.values()), float)
    ts_T = np.array([DAYS[day] for day in close_of])
    return Bars(symbol, ts_T, close_T, close_T + 0.5, close_T - 0.25, close_T, np.full(len(ts_T), 10.0), **more)


FRONT = contract("ESZ3", {12: 1776.00, 13: 1775.50})
NEXT = contract("ESH4", {13: 1770.25, 16: 1780.25})


def test_roll_price_is_the_next_contracts_close_at_the_last_bar_of_the_old_one():
    bars = splice([FRONT, NEXT], [DAYS[13]])
    assert bars.close.tolist() == [1776.00, 1775.50, 1780.25]
    assert np.isnan(bars.roll_price[[0, 2]]).all() and bars.roll_price[1] == 1770.25
    # what a long contract of 50 a point earns: (1775.50 - 1776.00) x 50 + (1780.25 - 1770.25) x 50
    assert (bars.close[1] - bars.close[0]) * 50 + (bars.close[2] - bars.roll_price[1]) * 50 == 475.0


def test_difference_adjusted_history_keeps_the_last_contract_and_the_changes_of_each():
    adjusted = difference_adjusted(splice([FRONT, NEXT], [DAYS[13]]))
    assert adjusted.close.tolist() == [1770.75, 1770.25, 1780.25]
    assert adjusted.high.tolist() == [1771.25, 1770.75, 1780.75] and adjusted.roll_price is None
    assert np.diff(adjusted.close).tolist() == [-0.5, 10.0]
    assert difference_adjusted(FRONT) is FRONT


def test_given_contracts_roll_as_they_should(shared):
    def read(name):
        rows = [line.split(",") for line in (shared / "cases/19_futures_roll_gap" / name).read_text().split()[1:]]
        ts_T = np.array([row[0] for row in rows], "datetime64[ns]").astype(np.int64)
        close_T = np.array([float(row[2]) for row in rows])
        return Bars(rows[0][1], ts_T, close_T, close_T, close_T, close_T, np.full(len(rows), np.nan))

    front, following = read("front.csv"), read("next.csv")
    bars = splice([front, following], [front.ts_event[-1]], symbol="ES")
    assert bars.symbol == "ES" and difference_adjusted(bars).close.tolist() == [1770.75, 1770.25, 1780.25]
    tape = compile_tape([(bars, Instrument("ES", 0.25, 50.0))], cached=False)
    assert tape.extra_ST["rolls"].tolist() == [[0, 1, 0]]
    assert (tape.extra_ST["roll_price"] * 0.125).tolist() == [[0, 1770.25, 0]]
    assert describe(tape)[0]["rolls"] == 1


def test_three_contracts_add_the_differences_of_all_later_rolls():
    a = contract("A", {9: 10.0, 10: 11.0, 11: 99.0})  # its bar after the roll is not used
    b = contract("B", {9: 50.0, 10: 14.0, 11: 15.0, 12: 16.0})
    c = contract("C", {12: 12.0, 13: 13.0})
    bars = splice([a, b, c], [DAYS[10], DAYS[12]])
    assert bars.close.tolist() == [10, 11, 15, 16, 13]
    np.testing.assert_array_equal(bars.roll_price, [np.nan, 14, np.nan, 12, np.nan])
    # B to C: 12 - 16 = -4 for A and B; A to B: 14 - 11 = 3 more for A
    assert difference_adjusted(bars).close.tolist() == [9, 10, 11, 12, 13]


def test_a_series_may_be_spliced_further():
    a, b, c = contract("A", {9: 10.0, 10: 11.0}), contract("B", {10: 14.0, 11: 15.0, 12: 16.0}), contract("C", {12: 12.0, 13: 13.0})
    once, twice = splice([a, b, c], [DAYS[10], DAYS[12]]), splice([splice([a, b], [DAYS[10]]), c], [DAYS[12]])
    assert np.array_equal(once.roll_price, twice.roll_price, equal_nan=True) and np.array_equal(once.close, twice.close)


def test_optional_columns_go_along_and_absent_ones_are_filled():
    quoted = [replace(bars, bid=bars.close - 0.25, ask=bars.close + 0.25) for bars in (FRONT, NEXT)]
    halted = replace(quoted[0], halted=np.array([True, False]))
    funded = with_funding(quoted[1], DAYS[16], 0.01, 1781.0)
    bars = splice([halted, funded], [DAYS[13]])
    assert bars.bid.tolist() == [1775.75, 1775.25, 1780.0] and bars.halted.tolist() == [True, False, False]
    assert bars.halted.dtype == np.bool_ and np.isnan(bars.funding_rate[:2]).all() and bars.funding_rate[2] == 0.01
    adjusted = difference_adjusted(bars)
    assert adjusted.bid.tolist() == [1770.5, 1770.0, 1780.0] and adjusted.ask.tolist() == [1771.0, 1770.5, 1780.5]
    assert adjusted.funding_mark[2] == 1781.0
    with pytest.raises(DataError, match="same quotes for every contract.*found bid, ask for ESZ3 and none for ESH4"):
        splice([quoted[0], NEXT], [DAYS[13]])


@pytest.mark.parametrize(
    ("contracts", "rolls", "message"),
    [
        ([FRONT, NEXT], [DAYS[12]], "ESH4: no bar closes at the roll 2013-12-12T21:00:00Z, .*nearest closes at 2013-12-13T21:00:00Z"),
        ([FRONT, NEXT], [DAYS[16]], "ESZ3: no bar closes at the roll 2013-12-16T21:00:00Z, and its last bar is to be there"),
        ([FRONT, NEXT], [], "expected 1 rolls between 2 contracts, found 0"),
        ([], [], "expected at least one contract"),
        ([FRONT, FRONT, FRONT], [DAYS[13], DAYS[12]], "expected rolls in time order, found 2013-12-12T21:00:00Z after 2013-12-13"),
        ([FRONT, contract("ESH4", {13: np.nan})], [DAYS[13]], "ESH4: data row 1 .*is missing or not a number"),
    ],
)
def test_contracts_that_do_not_meet_are_one_line(contracts, rolls, message):
    with pytest.raises(DataError, match=message) as caught:
        splice(contracts, rolls)
    assert "\n" not in str(caught.value)


def test_prices_below_zero_can_be_spliced():
    bars = splice([contract("CLK0", {9: 1.0, 10: -37.0}), contract("CLM0", {10: 20.0, 11: 21.0})], [DAYS[10]])
    assert bars.close.tolist() == [1.0, -37.0, 21.0] and clock.text(bars.ts_event[-1]) == "2013-12-11T21:00:00Z"
    assert difference_adjusted(bars).close.tolist() == [58.0, 20.0, 21.0]
