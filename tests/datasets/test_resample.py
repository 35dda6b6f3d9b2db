"""Longer bars and bars of ticks: what they hold, that they never look ahead, and that sessions and their ends are kept."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellmark import clock
from bellmark.bars import Bars, check
from bellmark.datasets.hours import Hours
from bellmark.datasets.resample import length_of, merged, resample, tick_bars
from bellmark.errors import DataError, UsageError
from bellmark.instrument import Instrument, Session

pytestmark = pytest.mark.none

MINUTE = 60 * clock.SECOND
AROUND = Hours(Instrument("X"))
NEW_YORK = Hours(Instrument("X", session=Session.parse("America/New_York 09:30-16:00")))
OPEN = 1_709_562_600_000_000_000  # 2024-03-04 09:30 in New York


def minutes(steps, start=OPEN, **extras):
    steps = np.asarray(steps)
    close_T = 100.0 + steps % 7
    columns = {name: np.asarray(values, float) for name, values in extras.items()}
    return Bars("X", start + steps * MINUTE, close_T - 0.5, close_T + 1, close_T - 1, close_T, steps + 1.0, **columns)


def texts(bars):
    return [clock.text(ts)[11:16] for ts in bars.ts_event]


def test_bars_of_five_minutes_hold_open_high_low_close_and_the_sum_of_volumes():
    longer, cut = resample(minutes(range(1, 11)), "5m", AROUND, MINUTE)
    assert texts(longer) == ["14:35", "14:40"] and cut == 0
    assert (longer.open[0], longer.close[0], longer.high[1], longer.low[1]) == (100.5, 105.0, 107.0, 99.0)
    assert longer.volume.tolist() == [sum(range(2, 7)), sum(range(7, 12))] and longer.row_T.tolist() == [1, 6]
    check(longer)


def test_unknown_volume_of_a_part_is_unknown_of_the_whole():
    bars = minutes(range(1, 6))
    bars.volume[2] = np.nan
    assert np.isnan(resample(bars, "5m", AROUND, MINUTE)[0].volume[0])


def test_a_span_that_is_not_over_is_left_out_and_counted_and_a_hole_keeps_the_stamp():
    longer, cut = resample(minutes([1, 2, 3, 7, 8]), "5m", AROUND, MINUTE)
    assert texts(longer) == ["14:35"] and cut == 2
    assert longer.close[0] == 103.0  # of the last bar that is there, stamped at the end of the span


def test_spans_begin_with_the_session_and_the_last_one_ends_with_it():
    day = np.arange(1, 391)
    longer, cut = resample(minutes(np.concatenate([day, day + 1440])), "1h", NEW_YORK, MINUTE)
    assert texts(longer) == ["15:30", "16:30", "17:30", "18:30", "19:30", "20:30", "21:00"] * 2 and cut == 0
    whole, _ = resample(minutes(np.concatenate([day, day + 1440])), "1d", NEW_YORK, MINUTE)
    assert texts(whole) == ["21:00"] * 2 and whole.open[0] == 100.5
    assert texts(resample(minutes(day), "session", NEW_YORK, MINUTE)[0]) == ["21:00"]


def test_bars_outside_the_session_are_left_out():
    longer, _ = resample(minutes([-30, *range(1, 6), 391, 392]), "5m", NEW_YORK, MINUTE)
    assert texts(longer) == ["14:35"]


def test_quotes_halts_and_rolls_follow():
    names = ("bid_open", "bid_high", "bid_low", "bid", "ask_open", "ask_high", "ask_low", "ask")
    shift = {name: (2 if "high" in name else -2 if "low" in name else 0) + 50 * ("ask" in name) for name in names}
    quotes = {name: [place + shift[name] for place in range(1, 6)] for name in names}
    bars = minutes(range(1, 6), **quotes)
    longer, _ = resample(bars, "5m", AROUND, MINUTE)
    assert [float(getattr(longer, name)[0]) for name in names] == [1, 7, -1, 5, 51, 57, 49, 55]
    rolled = minutes(range(1, 11), roll_price=[np.nan] * 4 + [9.0] + [np.nan] * 5)
    assert resample(rolled, "5m", AROUND, MINUTE)[0].roll_price[0] == 9.0
    with pytest.raises(DataError, match="a roll lies inside a longer bar"):
        resample(minutes(range(1, 11), roll_price=[np.nan, 9.0] + [np.nan] * 8), "5m", AROUND, MINUTE)
    halted = Bars(**{**vars(minutes(range(1, 11))), "halted": np.array([True] * 5 + [True, False] + [True] * 3)})
    assert resample(halted, "5m", AROUND, MINUTE)[0].halted.tolist() == [True, False]


def test_lengths_are_read_and_wrong_ones_refused():
    assert [length_of(text, "x") // clock.SECOND for text in ("30s", "1m", "4h", "1d")] == [30, 60, 14_400, 86_400]
    for wrong in ("5", "m5", "0m", "5 weeks", ""):
        with pytest.raises(UsageError, match="every: expected a length such as 30s, 1m, 4h or 1d"):
            length_of(wrong, "every")
    with pytest.raises(UsageError, match="bars of 60 s cannot become shorter ones of '30s'"):
        resample(minutes(range(1, 5)), "30s", AROUND, MINUTE)
    with pytest.raises(UsageError, match="at most a session"):
        resample(minutes(range(1, 5)), "8h", NEW_YORK, MINUTE)
    with pytest.raises(UsageError, match="a whole number of bars of 60 s, found '90s'"):
        resample(minutes(range(1, 5)), "90s", AROUND, MINUTE)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 900), min_size=2, max_size=60, unique=True),
    st.sampled_from(["2m", "5m", "1h", "session"]),
    st.integers(0, 10**6),
)
def test_changing_the_future_leaves_finished_bars_equal(steps, every, noise):
    steps = sorted(steps)
    bars = minutes(steps)
    longer, _ = resample(bars, every, NEW_YORK, MINUTE)
    for place in range(len(longer)):
        known = int(np.searchsorted(bars.ts_event, longer.ts_event[place], side="right"))
        other = minutes(steps)
        for column in (other.open, other.high, other.low, other.close, other.volume):
            column[known:] += noise + 1
        again, _ = resample(other, every, NEW_YORK, MINUTE)
        for name in ("ts_event", "open", "high", "low", "close", "volume"):
            assert getattr(again, name)[: place + 1].tolist() == getattr(longer, name)[: place + 1].tolist()


def ticks(rows, **quotes):
    at = np.array([OPEN + round(row[0] * clock.SECOND) for row in rows], np.int64)
    found = {"ts": at, "row": np.arange(1, len(rows) + 1), "price": np.array([row[1] for row in rows], float),
             "size": np.array([row[2] for row in rows], float)}  # fmt: skip
    return found | {name: np.array(values, float) for name, values in quotes.items()}


def test_ticks_become_bars_from_open_inclusive_to_close_exclusive_and_ties_count_in_order():
    rows = [(0, 10, 1), (59.999, 12, 2), (59.999, 11, 1), (60, 20, 5), (200, 30, 1)]
    bars, outside = tick_bars(ticks(rows), MINUTE, AROUND, "X")
    assert texts(bars) == ["14:31", "14:32", "14:34"] and outside == 0
    assert (bars.open[0], bars.high[0], bars.low[0], bars.close[0], bars.volume[0]) == (10, 12, 10, 11, 4)
    assert bars.open[1] == bars.close[1] == 20 and bars.row_T.tolist() == [1, 4, 5]
    check(bars)


def test_ticks_outside_the_session_are_counted_and_the_last_bar_ends_with_it():
    rows = [(-1, 9, 1), (0, 10, 1), (389 * 60 + 59, 11, 1), (390 * 60, 12, 1)]
    bars, outside = tick_bars(ticks(rows), 7 * MINUTE, NEW_YORK, "X")
    assert outside == 2 and texts(bars) == ["14:37", "21:00"]


def test_quotes_of_ticks_become_quote_bars_with_a_gap_where_there_is_none():
    nan = np.nan
    rows = [(0, 10, 1), (1, 10, 1), (2, 10, 1), (60, 10, 1)]
    bars, _ = tick_bars(ticks(rows, bid=[nan, 9, 8, nan], ask=[11, 12, nan, nan]), MINUTE, AROUND, "X")
    first = [float(getattr(bars, name)[0]) for name in ("bid_open", "bid_high", "bid_low", "bid", "ask_open", "ask_high", "ask_low", "ask")]
    assert first == [9, 9, 8, 8, 11, 12, 11, 12] and np.isnan(bars.bid[1]) and np.isnan(bars.ask_low[1])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 400), st.integers(1, 30)), min_size=2, max_size=40), st.integers(1, 39))
def test_two_parts_of_a_bar_merge_to_the_bar_of_all_its_ticks(rows, cut):
    rows = sorted((at, price, 1) for at, price in rows)
    cut = min(cut, len(rows) - 1)
    whole, _ = tick_bars(ticks(rows), MINUTE, AROUND, "X")
    a, _ = tick_bars(ticks(rows[:cut]), MINUTE, AROUND, "X")
    b, _ = tick_bars(ticks(rows[cut:]), MINUTE, AROUND, "X")
    last, first = a.take(np.array([len(a) - 1])), b.take(np.array([0]))
    if last.ts_event[0] == first.ts_event[0]:
        both = merged(last, first)
        place = int(np.searchsorted(whole.ts_event, both.ts_event[0]))
        for name in ("open", "high", "low", "close", "volume"):
            assert getattr(both, name)[0] == getattr(whole, name)[place]


HOUR = 60 * MINUTE


@pytest.mark.parametrize(("first", "every", "hours"), [(30, "2h", AROUND), (90, "2h", NEW_YORK), (30, "1d", AROUND), (20, "90m", NEW_YORK)])
def test_a_bar_that_would_lie_in_two_spans_is_refused(first, every, hours):
    bars = minutes(first + 60 * np.arange(1, 6 if hours is NEW_YORK else 40), OPEN - (14 * 60 + 30) * MINUTE
                   if hours is AROUND else OPEN)  # fmt: skip
    with pytest.raises((DataError, UsageError), match="would lie in two|a whole number of bars"):
        resample(bars, every, hours, HOUR)


def test_hours_from_the_half_hour_need_the_session_that_opens_there():
    bars = minutes([60, 120, 180, 240, 300, 360, 390])
    with pytest.raises(DataError, match="every: the bar of 3600 s that closes at 2024-03-04T16:30:00Z would lie in two spans: one begins"):
        resample(bars, "2h", AROUND, HOUR)
    longer, cut = resample(bars, "2h", NEW_YORK, HOUR)  # its last bar is cut by the close
    assert texts(longer) == ["16:30", "18:30", "20:30", "21:00"] and cut == 0


def test_a_bar_that_the_open_cuts_counts_to_its_session():
    assert texts(resample(minutes([30, 90, 150, 210, 270, 330, 390]), "1d", NEW_YORK, HOUR)[0]) == ["21:00"]


@pytest.mark.parametrize(("date", "hours"), [("2024-03-10", 23), ("2024-11-03", 25), ("2024-03-04", 24)])
def test_spans_go_by_the_time_that_passes_where_the_clocks_change_in_a_session(date, hours):
    day = Hours(Instrument("X", session=Session.parse("America/New_York 00:00-00:00")))
    opened = int(clock.to_utc(np.array([np.datetime64(date, "ns").astype(np.int64)]), "America/New_York")[0][0])
    bars = minutes(np.arange(1, hours * 60 + 1), opened)
    longer, cut = resample(bars, "4h", day, MINUTE)
    wanted = [opened + min(step * 240, hours * 60) * MINUTE for step in range(1, -(-hours // 4) + 1)]
    assert longer.ts_event.tolist() == wanted and cut == 0
    trades = {"ts": bars.ts_event - MINUTE, "price": bars.close, "size": bars.volume, "row": np.arange(len(bars))}
    made, outside = tick_bars(trades, 240 * MINUTE, day, "X")
    parts = [tick_bars({name: column[part] for name, column in trades.items()}, 240 * MINUTE, day, "X")[0].ts_event
             for part in np.array_split(np.arange(len(bars)), 41)]  # fmt: skip
    assert made.ts_event.tolist() == wanted == sorted({int(ts) for part in parts for ts in part}) and outside == 0
    assert resample(bars, "session", day, MINUTE)[0].ts_event.tolist() == [opened + hours * HOUR]
