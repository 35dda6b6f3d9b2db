"""Every rule strategy against an independent reference in exact fractions, on random bars and on bars at the edge of what is legal."""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from bellmark.codegen import lower, parameters
from bellmark.component import make, settings_of
from bellmark.errors import UsageError
from bellmark.host import host
from bellmark.strategies import bellmark_strategies
from bellmark.testing_market import EXTREME_TAPES, cut, join, make_tape, random_tape

pytestmark = pytest.mark.cpu

SHORT = {"window": 4, "fast": 3, "slow": 6, "entry": 5, "exit": 3, "entry_deviations": 1.5, "path": ""}
NAMES = ("bollinger_reversion", "donchian_breakout", "ema_cross", "rsi_reversion", "sma_cross", "time_series_momentum", "volatility_target")


def strategy(name: str, **values: Any) -> Any:
    return make(host().get("strategy", name), values, name)


def short(name: str, **values: Any) -> Any:
    """A strategy with windows short enough for a test's bars."""
    known = {info.name for info in settings_of(host().get("strategy", name))}
    return strategy(name, **{key: value for key, value in SHORT.items() if key in known} | values)


@cache
def compiled(cls: Any) -> Any:
    return lower(cls.decide)


def drive(rule: Any, tape: Any, first: int = 0, s: int = 0) -> list[float]:
    """The exposures decided at the bars from `first` on, as a window that begins there gives them."""
    decide, wanted = compiled(type(rule)), parameters(type(rule).decide)
    values: dict[str, Any] = {f"{name}_T": getattr(tape, f"{name}_ST")[s] for name in ("open", "high", "low", "close", "volume")}
    values |= {info.name: getattr(rule, info.name) for info in settings_of(type(rule))}
    values |= {"lane": 0, "price_quantum": float(tape.instruments[s].quantum)}
    if rule.series:
        values |= {f"{name}_T": array_ST[s] for name, array_ST in rule.compute_series(tape).items()}
    values |= {name: 0.0 if kind == "float64" else 0 for name, kind in rule.state.items()}
    exposures = []
    for t in range(first, int(tape.length_S[s])):
        result = decide(*(values[name] if name != "t" else t for name in wanted))
        result = result if isinstance(result, tuple) else (result,)
        values |= dict(zip(rule.state, result[1:], strict=True))
        exposures.append(float(result[0]))
    return exposures


def narrow_tape(count: int, seed: int) -> Any:
    """Bars of few distinct prices: equal averages, closes on the edge of a channel or a band."""
    random = np.random.default_rng(seed)
    close = random.integers(20, 25, count)
    opening = np.concatenate([close[:1], close[:-1]])
    high = np.maximum(opening, close) + random.integers(0, 2, count)
    return make_tape(close, high_T=high, low_T=np.minimum(opening, close) - random.integers(0, 2, count))


TAPES = [*(random_tape(300, seed=seed, start=5_000) for seed in range(4)), *(narrow_tape(300, seed) for seed in range(4))]


# ---- references ----------------------------------------------------------------------------------------------------------------


def closes(tape: Any) -> list[int]:
    return [int(close) for close in tape.close_ST[0, : tape.length_S[0]]]


def of_sma(tape: Any, fast: int, slow: int, short_exposure: float) -> list[float]:
    close = closes(tape)
    exposures = [0.0] * (slow - 1)
    for t in range(slow - 1, len(close)):
        means = [Fraction(sum(close[t - n + 1 : t + 1]), n) for n in (fast, slow)]
        exposures.append(1.0 if means[0] > means[1] else short_exposure)
    return exposures


def of_ema(tape: Any, fast: int, slow: int, short_exposure: float) -> list[float | None]:
    """None where the averages are nearer than rounding can tell."""
    close = closes(tape)
    averages = [[Fraction(close[0])], [Fraction(close[0])]]
    for n, values in zip((fast, slow), averages, strict=True):
        for price in close[1:]:
            values.append(values[-1] + Fraction(2, n + 1) * (price - values[-1]))
    exposures: list[float | None] = [0.0] * (3 * slow - 1)
    for a, b in list(zip(*averages, strict=True))[3 * slow - 1 :]:
        near = a != b and abs(a - b) < Fraction(1, 10**9)
        exposures.append(None if near else 1.0 if a > b else short_exposure)
    return exposures


def of_donchian(tape: Any, entry: int, exit: int, short_exposure: float) -> list[float]:
    high, low, close = tape.high_ST[0], tape.low_ST[0], tape.close_ST[0]
    exposures, side = [0.0] * entry, 0
    for t in range(entry, len(close)):
        if close[t] > high[t - entry : t].max():
            side = 1
        elif close[t] < low[t - entry : t].min():
            side = -1
        elif (side == 1 and close[t] < low[t - exit : t].min()) or (side == -1 and close[t] > high[t - exit : t].max()):
            side = 0
        exposures.append({1: 1.0, 0: 0.0, -1: short_exposure}[side])
    return exposures


def of_rsi(tape: Any, window: int, lower: float, upper: float, exit_level: float, short_exposure: float) -> list[float]:
    moves = [b - a for a, b in pairwise(closes(tape))]
    gain = Fraction(sum(max(move, 0) for move in moves[:window]), window)
    loss = Fraction(sum(max(-move, 0) for move in moves[:window]), window)
    exposures, side = [0.0] * (window + 1), 0
    for t, move in enumerate(moves[window:], start=window + 1):
        gain, loss = (average + (max(part, 0) - average) / window for average, part in ((gain, move), (loss, -move)))
        index = 100 * gain / (gain + loss) if gain + loss else Fraction(50)
        if t < 6 * window:
            exposures.append(0.0)
            continue
        if index < Fraction(lower):
            side = 1
        elif index > Fraction(upper):
            side = -1
        elif (side == 1 and index >= Fraction(exit_level)) or (side == -1 and index <= Fraction(exit_level)):
            side = 0
        exposures.append({1: 1.0, 0: 0.0, -1: short_exposure}[side])
    return exposures


def of_bollinger(tape: Any, window: int, entry_deviations: float, exit_deviations: float, short_exposure: float) -> list[float]:
    close = closes(tape)
    exposures, side = [0.0] * (window - 1), 0
    for t in range(window - 1, len(close)):
        inside = close[t - window + 1 : t + 1]
        mean = Fraction(sum(inside), window)
        variance = sum((price - mean) ** 2 for price in inside) / window
        gap = close[t] - mean
        beyond = {k: abs(gap) ** 2 - Fraction(k) ** 2 * variance for k in (entry_deviations, exit_deviations)}
        if beyond[entry_deviations] > 0 and gap < 0:
            side = 1
        elif beyond[entry_deviations] > 0 and gap > 0:
            side = -1
        elif (side == 1 and (gap >= 0 or beyond[exit_deviations] <= 0)) or (side == -1 and (gap <= 0 or beyond[exit_deviations] <= 0)):
            side = 0
        exposures.append({1: 1.0, 0: 0.0, -1: short_exposure}[side])
    return exposures


def of_momentum(tape: Any, window: int, skip: int, short_exposure: float) -> list[float]:
    close = closes(tape)
    change = np.sign(np.array(close[window : len(close) - skip]) - np.array(close[: len(close) - skip - window]))
    return [0.0] * (window + skip) + [{1: 1.0, 0: 0.0, -1: short_exposure}[int(sign)] for sign in change]


def of_volatility(tape: Any, target: float, window: int, max_exposure: float, threshold: float) -> list[float]:
    close_T = tape.close_ST[0].astype(float)
    return_T = close_T[1:] / close_T[:-1] - 1.0
    variance, held, exposures = return_T[0] ** 2, 0.0, [0.0]
    for k, value in enumerate(return_T):
        variance += 2.0 / (window + 1) * (value**2 - variance)
        wanted = 0.0
        if k + 1 >= 3 * window and variance > 0:
            wanted = min(target / (variance * tape.periods_per_year) ** 0.5, max_exposure)
        if wanted == 0.0 or held == 0.0 or abs(wanted - held) > threshold:
            held = wanted
        exposures.append(held)
    return exposures


CASES: list[tuple[str, Any, dict[str, Any]]] = [
    ("sma_cross", of_sma, {"fast": 3, "slow": 8, "short_exposure": -1.0}),
    ("sma_cross", of_sma, {"fast": 1, "slow": 2, "short_exposure": 0.0}),
    ("ema_cross", of_ema, {"fast": 1, "slow": 2, "short_exposure": -0.5}),
    ("ema_cross", of_ema, {"fast": 5, "slow": 12, "short_exposure": -1.0}),
    ("donchian_breakout", of_donchian, {"entry": 20, "exit": 10, "short_exposure": -1.0}),
    ("donchian_breakout", of_donchian, {"entry": 3, "exit": 3, "short_exposure": 0.0}),
    ("donchian_breakout", of_donchian, {"entry": 1, "exit": 1, "short_exposure": -0.5}),
    ("rsi_reversion", of_rsi, {"window": 5, "lower": 35.0, "upper": 65.0, "exit_level": 50.0, "short_exposure": -1.0}),
    ("rsi_reversion", of_rsi, {"window": 1, "lower": 1.0, "upper": 99.0, "exit_level": 50.0, "short_exposure": -1.0}),
    ("bollinger_reversion", of_bollinger, {"window": 5, "entry_deviations": 1.5, "exit_deviations": 0.5, "short_exposure": -1.0}),
    ("bollinger_reversion", of_bollinger, {"window": 20, "entry_deviations": 2.0, "exit_deviations": 0.0, "short_exposure": 0.0}),
    ("bollinger_reversion", of_bollinger, {"window": 3, "entry_deviations": 1.25, "exit_deviations": 1.0, "short_exposure": -1.0}),
    ("time_series_momentum", of_momentum, {"window": 10, "skip": 0, "short_exposure": -1.0}),
    ("time_series_momentum", of_momentum, {"window": 1, "skip": 3, "short_exposure": 0.5}),
]


@pytest.mark.parametrize(("name", "reference", "values"), CASES)
def test_decisions_equal_an_exact_reference_on_random_bars_and_on_bars_full_of_ties(name, reference, values):
    seen = set()
    for tape in TAPES:
        expected, found = reference(tape, **values), drive(strategy(name, **values), tape)
        assert len(found) == len(expected) == int(tape.length_S[0])
        wrong = [t for t, (a, b) in enumerate(zip(expected, found, strict=True)) if a is not None and a != b]
        assert wrong == [], f"bar {wrong[0]}: expected {expected[wrong[0]]}, found {found[wrong[0]]}"
        seen |= set(found)
    assert len(seen) > 1, "a strategy that never trades here proves nothing"


@pytest.mark.parametrize("values", [{"window": 10, "target": 0.01}, {"window": 4, "target": 0.008, "threshold": 0.0, "max_exposure": 0.7}])
def test_volatility_target_equals_its_reference(values):
    whole = {"max_exposure": 1.0, "threshold": 0.05} | values
    for tape in TAPES[:4]:
        found = drive(strategy("volatility_target", **whole), tape)
        assert found == pytest.approx(of_volatility(tape, **whole), rel=1e-12)
        assert len(set(found)) > 3


def test_ties_are_there_and_are_no_crossing():
    flat = make_tape(np.full(60, 400))
    for name in ("sma_cross", "ema_cross"):
        assert set(drive(short(name, short_exposure=-1.0), flat)[20:]) == {-1.0}
    for name in ("donchian_breakout", "rsi_reversion", "bollinger_reversion", "time_series_momentum", "volatility_target"):
        values = {"short_exposure": -1.0} if name != "volatility_target" else {}
        assert set(drive(short(name, **values), flat)) == {0.0}


def test_a_close_on_the_edge_of_the_channel_is_inside_it():
    touched = make_tape([10, 12, 11, 12, 13], high_T=[12, 12, 12, 12, 13], low_T=[9, 9, 9, 9, 9])
    assert drive(strategy("donchian_breakout", entry=2, exit=1), touched) == [0.0, 0.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize("name", NAMES)
def test_a_window_that_begins_later_sees_the_bars_before_it(name):
    tape = random_tape(900, seed=5, start=5_000)
    whole, late = drive(short(name), tape), drive(short(name), tape, first=600)
    if name in ("sma_cross", "ema_cross", "time_series_momentum"):
        assert late == whole[600:]
        return
    # Rules with a position of their own begin flat and agree from the first bar at which both have decided anew.
    together = next(k for k, (a, b) in enumerate(zip(whole[600:], late, strict=True)) if a == b != 0.0)
    assert late[:together] != [] or together == 0
    assert late[together:] == whole[600 + together :]


@pytest.mark.parametrize("name", NAMES)
def test_flat_before_the_warm_up_and_decisions_do_not_depend_on_later_bars(name):
    tape = random_tape(300, seed=6, start=5_000)
    rule = short(name)
    whole = drive(rule, tape)
    first = next(t for t, exposure in enumerate(whole) if exposure != 0.0)
    assert first >= {"donchian_breakout": 5, "time_series_momentum": 4, "bollinger_reversion": 3, "sma_cross": 5}.get(name, 12)
    for end in (first + 1, 150, 299):
        assert drive(rule, cut(tape, 0, end)) == whole[:end]


@pytest.mark.parametrize("name", [*NAMES, "buy_and_hold", "flat", "random", "no_trade_band"])
@pytest.mark.parametrize("make_extreme", EXTREME_TAPES.values(), ids=EXTREME_TAPES)
def test_exposures_are_finite_and_in_range_on_extreme_bars(name, make_extreme):
    rule = short(name)
    exposures = np.array(drive(rule, make_extreme()))
    assert np.isfinite(exposures).all() and (np.abs(exposures) <= 1.0).all()


def test_volatility_is_unknown_around_prices_that_are_not_positive():
    close_T = np.r_[100 + np.arange(40) % 3, 0, 100 + np.arange(40) % 3]
    volatility_T = short("volatility_target").compute_series(make_tape(close_T))["volatility"][0]
    known = np.flatnonzero(np.isfinite(volatility_T))
    assert known.tolist() == [*range(12, 40), *range(53, 81)]


def test_series_of_several_symbols_are_those_of_each_and_unknown_in_the_padding():
    tapes = [random_tape(80, seed=1, start=5_000, symbol="A"), random_tape(50, seed=2, start=5_000, symbol="B")]
    rule = short("volatility_target")
    both_ST = rule.compute_series(join(tapes))["volatility"]
    for s, tape in enumerate(tapes):
        length = int(tape.length_S[0])
        assert both_ST[s, :length].tobytes() == rule.compute_series(tape)["volatility"][0].tobytes()
        assert np.isnan(both_ST[s, length:]).all()


def test_volatility_counts_the_bars_a_year_of_the_tape():
    tape = random_tape(80, seed=1, start=5_000)
    minutes = replace(tape, periods_per_year=4 * tape.periods_per_year)
    once, twice = (short("volatility_target").compute_series(each)["volatility"] for each in (tape, minutes))
    np.testing.assert_allclose(twice, 2 * once, rtol=1e-14)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("sma_cross", {"fast": 50}, "expected fast below slow, found fast 50 and slow 50"),
        ("ema_cross", {"fast": 60}, "expected fast below slow, found fast 60 and slow 50"),
        ("donchian_breakout", {"exit": 56}, "expected exit at most entry, found exit 56 and entry 55"),
        ("rsi_reversion", {"lower": 50.0}, "expected lower < exit_level < upper, found 50, 50 and 70"),
        ("bollinger_reversion", {"exit_deviations": 2.0}, "expected exit_deviations below entry_deviations, found 2 and 2"),
        ("bollinger_reversion", {"window": 5}, r"expected entry_deviations below sqrt\(window - 1\) = 2, .*, found 2"),
    ],
)
def test_settings_that_make_no_sense_together_are_refused_in_one_line(name, values, message):
    with pytest.raises(UsageError, match=f"^rule: strategy '{name}': {message}$"):
        make(host().get("strategy", name), values, "rule")


@pytest.mark.parametrize("cls", bellmark_strategies(), ids=lambda cls: cls.name)
def test_decide_names_every_state_slot_and_series_of_its_class(cls):
    assert {*cls.state, *(f"{name}_T" for name in cls.series)} <= set(parameters(cls.decide))
