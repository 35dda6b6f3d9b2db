"""Bars with quotes, halts, funding and rolls: the rules, duplicates, and funding instants put into bars."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellmark import clock
from bellmark.bars import ASKS, BIDS, OPTIONAL, RATE_ONE, Bars, check, in_order, with_funding
from bellmark.errors import DataError

NAN = np.nan
MINUTE = 60 * clock.SECOND


def stamp(text):
    return int(np.datetime64(text, "ns").astype(np.int64))


START = stamp("2024-05-01T07:59")


def make_bars(count=4, step=MINUTE, start=START, close_T=None, **more):
    """Bars that close at START and each minute after it: open = close = 100, high 101, low 99."""
    close_T = np.full(count, 100.0) if close_T is None else np.array(close_T, float)
    ts_T = start + step * np.arange(count)
    return Bars("X", ts_T, close_T, close_T + 1, close_T - 1, close_T, np.full(count, 10.0), source="bars.csv", **more)


def quotes(count=4):
    bid = {"bid_open": 99.75, "bid_high": 100.75, "bid_low": 98.75, "bid": 99.75}
    ask = {name.replace("bid", "ask"): price + 0.5 for name, price in bid.items()}
    return {name: np.full(count, price) for name, price in (bid | ask).items()}


def everything(count=4):
    events = {"halted": np.arange(count) == 1, "funding_rate": np.where(np.arange(count) == 2, 0.0001, NAN)}
    events |= {"funding_mark": np.full(count, 100.5), "roll_price": np.where(np.arange(count) == 3, 104.0, NAN)}
    return make_bars(count, **quotes(count), **events)


def test_all_optional_columns_pass_and_are_listed():
    bars = everything()
    check(bars)
    assert tuple(bars.extras) == OPTIONAL and tuple(bars.quotes) == BIDS + ASKS
    assert make_bars().extras == {} and make_bars().quotes == {}
    check(make_bars(bid=np.full(4, 100.0), ask=np.full(4, 100.0)))  # a spread of nothing


def test_take_takes_from_every_column():
    taken = everything().take(np.array([1, 3]))
    assert taken.halted.tolist() == [True, False] and taken.row_T.tolist() == [2, 4]
    assert taken.roll_price[1] == 104.0 and np.isnan(taken.roll_price[0])
    assert all(len(column) == 2 for column in taken.extras.values())


@pytest.mark.parametrize(
    ("name", "row", "value", "message"),
    [
        ("ask", 1, 99.5, "data row 2 .*: ask 99.5 is below bid 99.75"),
        ("ask_low", 2, 98.5, "data row 3 .*: ask_low 98.5 is below bid_low 98.75"),
        ("bid_high", 0, 98.5, "data row 1 .*: bid_high 98.5 is below bid_low 98.75"),
        ("bid_open", 3, 98.0, "data row 4 .*: bid_open 98 lies outside bid_low 98.75 to bid_high 100.75"),
        ("ask", 3, 102.0, "data row 4 .*: ask 102 lies outside ask_low 99.25 to ask_high 101.25"),
        ("bid", 1, NAN, "data row 2 .*: bid is missing or not a number"),
        ("ask_high", 1, np.inf, "data row 2 .*: ask_high is infinite"),
        ("bid_low", 1, 0.0, "data row 2 .*: bid_low is 0; prices must be above 0"),
        ("funding_rate", 1, 1.0, "data row 2 .*: funding_rate is 1, expected a share of the value above -1 and below 1"),
        ("funding_rate", 1, -np.inf, "data row 2 .*: funding_rate is -inf, expected a share"),
        ("funding_mark", 1, np.inf, "data row 2 .*: funding_mark is infinite"),
        ("funding_mark", 1, -1.0, "data row 2 .*: funding_mark is -1; prices must be above 0"),
        ("roll_price", 2, 0.0, "data row 3 .*: roll_price is 0; prices must be above 0"),
        ("roll_price", 2, -np.inf, "data row 3 .*: roll_price is infinite"),
    ],
)
def test_bad_value_of_an_optional_column_is_one_line_with_its_row(name, row, value, message):
    bars = everything()
    getattr(bars, name)[row] = value
    with pytest.raises(DataError, match=f"^bars.csv: X: {message}") as caught:
        check(bars)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"bid": np.full(4, 99.0)}, "expected quotes as bid and ask at the close alone, or .*, found bid$"),
        ({name: column for name, column in quotes().items() if name != "ask_low"}, "expected quotes as bid and ask .*, found bid_open"),
        ({"funding_mark": np.full(4, 100.0)}, "expected funding_rate beside funding_mark, found none"),
        ({"roll_price": np.full(3, 100.0)}, "the columns differ in length: .*'roll_price': 3"),
        ({"halted": np.array([0, 2, 0, 1])}, "data row 2 .*: halted is 2, expected true or false"),
        ({"halted": np.array([0, NAN, 0, 1])}, "data row 2 .*: halted is nan, expected true or false"),
    ],
)
def test_columns_that_do_not_go_together_are_refused(columns, message):
    with pytest.raises(DataError, match=f"^bars.csv: X: {message}"):
        check(make_bars(**columns))


def test_negative_quotes_and_rolls_pass_where_the_instrument_says_so():
    low = {name: column - 200 for name, column in quotes().items()}
    bars = make_bars(close_T=[-100.0] * 4, **low, roll_price=np.array([NAN, -101.0, NAN, NAN]))
    check(bars, allow_negative_prices=True)


def test_rows_that_differ_in_an_optional_column_alone_disagree():
    bars = everything().take(np.array([0, 1, 1, 2]))
    kept = in_order(bars)
    assert (len(kept), kept.duplicates) == (3, 1) and kept.halted.tolist() == [False, True, False]
    for name, value, found in (
        ("halted", False, "halted 1 and 0"),
        ("roll_price", 7.0, "roll_price nan and 7"),
        ("bid", 99.5, "bid 99.75 and 99.5"),
    ):
        other = getattr(bars, name).copy()
        other[2] = value
        with pytest.raises(DataError, match=f"data rows 2, 2 .*disagree: {found}"):
            in_order(replace(bars, volume=np.full(4, NAN), **{name: other}))


# ---- funding instants ---------------------------------------------------------------------------------------------------------------


def test_an_instant_at_a_close_belongs_to_the_bar_that_closes_there():
    """07:59 holds nobody; 08:00 pays in the bar that closes at 08:00, 16:00 in the one that closes at 16:00."""
    bars = make_bars(482, close_T=np.full(482, 60000.0))
    instants = [stamp("2024-05-01T08:00"), stamp("2024-05-01T16:00")]
    got = with_funding(bars, instants, [0.0001, 0.0003], [60000, 61000])
    found = np.flatnonzero(~np.isnan(got.funding_rate))
    assert [clock.text(ts) for ts in got.ts_event[found]] == ["2024-05-01T08:00:00Z", "2024-05-01T16:00:00Z"]
    assert got.funding_rate[found].tolist() == [0.0001, 0.0003] and got.funding_mark[found].tolist() == [60000, 61000]
    assert got.instants_outside == 0
    check(got)
    # long 1 from the 08:00 close to the 16:00 open: 0 x ... at 08:00, 1 x 61000 x 0.0003 at 16:00
    assert got.funding_rate[found[1]] * got.funding_mark[found[1]] == pytest.approx(18.30)


@pytest.mark.parametrize(
    ("text", "bar"),
    [
        ("2024-05-01T07:58:00.000000001", 0),
        ("2024-05-01T07:59:00", 0),
        ("2024-05-01T07:59:00.003", 0),
        ("2024-05-01T07:59:01", 0),
        ("2024-05-01T07:59:01.000000001", 1),
        ("2024-05-01T07:59:59.999", 1),
        ("2024-05-01T08:00:00", 1),
        ("2024-05-01T08:02:00.5", 3),
    ],
)
def test_an_instant_lies_in_the_bar_that_closes_at_or_after_it_a_second_of_lateness_aside(text, bar):
    got = with_funding(make_bars(), stamp(text), 0.0001)
    assert np.flatnonzero(~np.isnan(got.funding_rate)).tolist() == [bar]
    assert got.funding_mark[bar] == 100.0  # the close, where no mark is given


def test_lateness_is_a_choice_and_leaves_stamps_at_a_close_alone():
    late = stamp("2024-05-01T08:00:00.003")
    assert np.flatnonzero(~np.isnan(with_funding(make_bars(), late, 0.1, late_ns=0).funding_rate)).tolist() == [2]
    seconds = make_bars(4, step=clock.SECOND)  # as short as the lateness
    for t, ts in enumerate(seconds.ts_event):
        assert np.flatnonzero(~np.isnan(with_funding(seconds, ts, 0.1).funding_rate)).tolist() == [t]


def test_an_instant_in_a_gap_goes_to_the_next_bar():
    bars = make_bars(6).take(np.array([0, 1, 5]))
    got = with_funding(bars, stamp("2024-05-01T08:02"), 0.0001)
    assert np.flatnonzero(~np.isnan(got.funding_rate)).tolist() == [2]


def test_instants_outside_the_bars_are_left_out_and_counted():
    given_at = ["2024-05-01T00:00", "2024-05-01T07:58", "2024-05-01T08:00", "2024-05-01T08:02:01.5", "2024-05-01T16:00"]
    got = with_funding(make_bars(), [stamp(text) for text in given_at], np.full(5, 0.0001))
    assert np.count_nonzero(~np.isnan(got.funding_rate)) == 1 and got.instants_outside == 4
    with pytest.raises(DataError, match="none of the 2 funding instants lies within the bars: they run from 1970-01-01.*UTC nanoseconds"):
        with_funding(make_bars(), [1714550400000, 1714579200000], [0.0001, 0.0001])
    assert np.isnan(with_funding(make_bars(), [], []).funding_rate).all()


def test_several_instants_of_a_bar_are_summed_and_their_mark_is_weighted_by_rate():
    """1 x 60000 + 3 x 61000 over 4 is 60750; 4e-4 x 60750 = 24.30 = 6.00 + 18.30."""
    day = make_bars(2, step=clock.DAY, start=stamp("2024-05-02T00:00"))
    instants = [stamp("2024-05-01T16:00"), stamp("2024-05-01T08:00"), stamp("2024-05-02T08:00")]
    got = with_funding(day, instants, [0.0003, 0.0001, -0.0002], [61000, 60000, 62000])
    assert got.funding_rate.tolist() == [0.0004, -0.0002] and got.funding_mark.tolist() == [60750, 62000]


@given(
    st.lists(st.tuples(st.integers(1, 3_000_000), st.integers(1, 10**7)), min_size=1, max_size=5),
    st.sampled_from([1, -1]),
)
@settings(max_examples=60)
def test_rate_times_mark_is_the_sum_of_all_payments_where_the_rates_are_of_one_sign(instants, sign):
    nano, cents = zip(*instants, strict=True)
    ts = START + 1 + np.arange(len(nano)) * clock.SECOND
    got = with_funding(make_bars(3), ts + 2 * clock.SECOND, sign * np.array(nano) / RATE_ONE, np.array(cents) / 100)
    paid = sum(Fraction(sign * n * c, 100 * RATE_ONE) for n, c in instants)
    assert round(got.funding_rate[1] * RATE_ONE) == sign * sum(nano)
    assert got.funding_rate[1] * got.funding_mark[1] == pytest.approx(float(paid), rel=1e-14)
    assert min(cents) / 100 * (1 - 1e-14) <= got.funding_mark[1] <= max(cents) / 100 * (1 + 1e-14)


def test_rates_that_cancel_are_one_instant_only_where_their_marks_agree():
    ts = [START + 5 * clock.SECOND, START + 9 * clock.SECOND]
    got = with_funding(make_bars(), ts, [0.0001, -0.0001], [60000, 60000])
    assert (got.funding_rate[1], got.funding_mark[1]) == (0.0, 60000)
    for rates in ([0.0001, -0.0001], [0.0001, -0.000099999]):  # the second's mark would be far below zero
        with pytest.raises(DataError, match="data row 2 .*the bar that closes at 2024-05-01T08:00:00Z cancel .*take shorter bars"):
            with_funding(make_bars(), ts, rates, [60000, 61000])


@pytest.mark.parametrize(
    ("ts", "rate", "mark", "message"),
    [
        ([START, START], [0.1, 0.1], None, "2024-05-01T07:59:00Z is there twice"),
        ([START], [1.5], None, "the rate at 2024-05-01T07:59:00Z is 1.5, expected a share"),
        ([START], [NAN], None, "the rate at 2024-05-01T07:59:00Z is nan, expected a share"),
        ([START], [0.1, 0.1], None, "expected a rate and a mark for each stamp, found 1 stamps, 2 rates, 1 marks"),
        ([1.7e18], [0.1], None, "expected stamps as whole UTC nanoseconds, found float64"),
    ],
)
def test_wrong_instants_are_one_line(ts, rate, mark, message):
    with pytest.raises(DataError, match=f"^bars.csv: X: funding instants: {message}"):
        with_funding(make_bars(), ts, rate, mark)


def test_funding_is_given_once():
    bars = with_funding(make_bars(), START, 0.0001)
    with pytest.raises(DataError, match="has funding already; give all instants in one call"):
        with_funding(bars, START + MINUTE, 0.0001)
