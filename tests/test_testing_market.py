"""Tapes made for tests: extra columns, and noise on the future that leaves the past as it was."""

import numpy as np
import pytest

from bellmark.errors import UsageError
from bellmark.tape import ARRAYS, EXTRA
from bellmark.testing_market import cut, join, make_tape, random_tape, with_future_noise

COUNT = 60
T = np.arange(COUNT)
CLOSE = 1000 + T
EVENTS = {"halted": T % 20 == 7, "funding_rate": np.where(T % 8 == 3, 1000 + T, 0), "roll_price": np.where(T % 15 == 5, 1100, 0)}
QUOTES = {f"{side}_{part}": CLOSE + (1 if side == "ask" else -1) for side in ("bid", "ask") for part in ("open", "high", "low", "close")}
QUOTES |= {f"signal_{part}": CLOSE // 2 for part in ("open", "high", "low", "close")}


def full(**more):
    return make_tape(CLOSE, open_T=CLOSE, extra_T=QUOTES | EVENTS | more)


def test_extra_columns_of_a_made_tape_have_their_types_and_what_goes_without_saying():
    tape = full()
    assert list(tape.extra_ST) == list(EXTRA)
    assert all(tape.extra_ST[name].dtype == kind and tape.extra_ST[name].shape == (1, COUNT) for name, kind in EXTRA.items())
    assert np.array_equal(tape.extra_ST["funding_mark"][0], np.where(T % 8 == 3, CLOSE, 0))
    assert np.array_equal(tape.extra_ST["rolls"][0], T % 15 == 5)
    assert make_tape(CLOSE).extra_ST == {}
    with pytest.raises(UsageError, match="extra_T: no column 'halt'; did you mean 'halted'?"):
        make_tape(CLOSE, extra_T={"halt": T})


def test_cut_and_join_take_extra_columns_along():
    part = cut(full(), 10, 30)
    assert all(np.array_equal(part.extra_ST[name], full().extra_ST[name][:, 10:30]) for name in EXTRA)
    plain, events = make_tape(CLOSE, symbol="A"), make_tape(CLOSE[:50], extra_T={"halted": T[:50] == 4}, symbol="B")
    assert join([plain, events]).extra_ST["halted"].tolist() == [[0] * COUNT, [int(t == 4) for t in range(COUNT)]]
    assert join([plain, plain]).extra_ST == {}
    with pytest.raises(UsageError, match="join: expected the same quotes in every tape"):
        join([plain, full()])


@pytest.mark.parametrize("bar", [0, 20, COUNT - 2, COUNT - 1])
def test_noise_changes_what_is_to_come_and_nothing_that_was(bar):
    tape = full()
    noisy = with_future_noise(tape, bar, seed=3)
    before = {f"{name}_ST": getattr(tape, f"{name}_ST") for name in ARRAYS} | tape.extra_ST
    after = {f"{name}_ST": getattr(noisy, f"{name}_ST") for name in ARRAYS} | noisy.extra_ST
    for name, array_ST in before.items():
        assert after[name].dtype == array_ST.dtype
        assert np.array_equal(array_ST[:, : bar + 1], after[name][:, : bar + 1]), name
    if bar < 30:
        kept = ("ts_ST", "session_ST", "session_bar_ST", "session_left_ST", "session_fraction_ST", "gap_ST", "rolls")
        same = [name for name in before if np.array_equal(before[name], after[name])]
        assert sorted(same) == sorted(kept)


def test_noise_keeps_the_bars_of_events_and_quotes_that_are_legal():
    tape, noisy = full(), with_future_noise(full(), 10, seed=1)
    for name in ("funding_rate", "funding_mark", "roll_price"):
        changed_T = tape.extra_ST[name][0] != noisy.extra_ST[name][0]
        assert np.array_equal(tape.extra_ST[name] != 0, noisy.extra_ST[name] != 0)
        assert np.array_equal(np.flatnonzero(changed_T), np.flatnonzero((tape.extra_ST[name][0] != 0) & (T > 10)))
    quote = noisy.extra_ST
    for side in ("bid", "ask"):
        assert (quote[f"{side}_low"] <= np.minimum(quote[f"{side}_open"], quote[f"{side}_close"])).all()
        assert (quote[f"{side}_high"] >= np.maximum(quote[f"{side}_open"], quote[f"{side}_close"])).all()
    assert all((quote[f"ask_{part}"] >= quote[f"bid_{part}"]).all() for part in ("open", "high", "low", "close"))
    assert (quote["ask_close"][0, 11:] != quote["bid_close"][0, 11:]).any()


def test_noise_of_bars_is_the_same_with_and_without_extra_columns():
    plain = random_tape(COUNT, seed=5)
    events = make_tape(plain.close_ST[0], extra_T=EVENTS)
    a, b = with_future_noise(plain, 10, seed=2), with_future_noise(events, 10, seed=2)
    assert np.array_equal(a.close_ST[:, 11:], b.close_ST[:, 11:]) and a.extra_ST == {}
