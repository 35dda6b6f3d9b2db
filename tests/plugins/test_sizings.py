"""Sizings: lots by an independent formula in fractions, at random and at the edges; what is not known gives no lots."""

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from market_cases import bars_of, market_data, random_bars

from bellmark.backtester import run_strategy
from bellmark.codegen import lower, parameters
from bellmark.component import make, settings_of
from bellmark.host import host
from bellmark.market import NO_LEVEL
from bellmark.testing_market import EXTREME_TAPES, join, make_tape, random_tape

pytestmark = pytest.mark.cpu

NAMES = ("equity_fraction", "fixed_lots", "volatility_target")
CONTEXT: dict[str, Any] = {
    "exposure": 1.0, "equity": 10**14, "price": 20_000, "value_numerator": 12_500_000_000, "value_denominator": 1, "symbols": 1,
    "position": 0,
    "fee_per_lot": 0, "fee_rate": 0,
}  # fmt: skip


compiled = cache(lower)


def sizing(name: str, **values: Any) -> Any:
    return make(host().get("sizing", name), values, "sizing")


def lots(rule: Any, tape: Any = None, **context: Any) -> int:
    values = CONTEXT | {info.name: getattr(rule, info.name) for info in settings_of(type(rule))} | context
    if rule.series and "sigma_T" not in values:
        values["sigma_T"] = rule.compute_series(tape)["sigma"][0]
    target = type(rule).target
    return int(compiled(target)(*(values[name] for name in parameters(target))))


def strategy(name: str, **values: Any) -> Any:
    return make(host().get("strategy", name), values, name)


@settings(max_examples=200, deadline=None)
@given(
    exposure=st.floats(-2, 2), equity=st.integers(1, 10**17), price=st.integers(1, 10**9), fraction=st.floats(0.01, 10.0),
    fee_per_lot=st.integers(0, 10**10), fee_rate=st.integers(0, 10**7), symbols=st.integers(1, 50), fees=st.booleans(),
    value=st.integers(1, 10**9), denominator=st.sampled_from([1, 3, 1000]), position=st.integers(-100, 100),
)  # fmt: skip
def test_equity_fraction_equals_the_formula(
    exposure, equity, price, fraction, fee_per_lot, fee_rate, symbols, fees, value, denominator, position
):
    found = lots(
        sizing("equity_fraction", fraction=fraction, fees=fees), exposure=exposure, equity=equity, price=price, fee_per_lot=fee_per_lot,
        fee_rate=fee_rate, symbols=symbols, value_numerator=value, value_denominator=denominator, position=position,
    )  # fmt: skip
    cost = Fraction(price * value, denominator)
    free = Fraction(equity)
    if fees:
        fee = cost * Fraction(fee_rate, 10**9) + fee_per_lot
        free = max(free - abs(position) * fee, Fraction(0)) if exposure * position < 0 else free
        cost += fee
    exact = Fraction(exposure) * Fraction(fraction) * free / (cost * symbols)
    exact = min(max(exact, Fraction(-NO_LEVEL)), Fraction(NO_LEVEL))  # beyond every size limit, whatever it is
    size = abs(Fraction(exposure) * Fraction(fraction) * equity / (cost * symbols))  # what is taken off it for fees rounds on its scale
    assert abs(found - exact) < 1 + size * Fraction(1, 10**14)
    assert abs(found) <= abs(exact) + size * Fraction(1, 10**14) and (found == 0 or (found > 0) == (exposure > 0))


@pytest.mark.parametrize(("name", "values"), [("equity_fraction", {"fraction": 10.0}), ("fixed_lots", {"lots": 1_000_000_000})])
@pytest.mark.parametrize("exposure", [-1e12, 1e12])
def test_a_size_that_no_number_of_lots_holds_keeps_its_side(name, values, exposure):
    found = lots(sizing(name, **values), exposure=exposure, equity=10**17, price=1, value_numerator=1, value_denominator=1000)
    assert found == (NO_LEVEL if exposure > 0 else -NO_LEVEL)


def test_room_for_the_fee_lets_a_whole_account_buy():
    bars = bars_of([100.0] * 6)
    rules = {"fee_bps": 10.0, "fee_per_contract": 0.5, "initial_margin_rate": 1.0, "start_equity": 100_000.0}
    greedy = run_strategy(market_data(bars, sizing=("equity_fraction", {"fraction": 1.0}), **rules), strategy("buy_and_hold")).lanes[0]
    assert not len(greedy.fills) and len(greedy.rejections)
    modest = market_data(bars, sizing=("equity_fraction", {"fraction": 1.0, "fees": True}), **rules)
    lane = run_strategy(modest, strategy("buy_and_hold")).lanes[0]
    assert lane.fills["lots"].tolist() == [int(100_000 / (100 * 1.001 + 0.5))] and not len(lane.rejections)


@pytest.mark.slow
def test_symbols_of_a_shared_account_share_the_fraction():
    bars = [bars_of([100.0] * 6, symbol=symbol) for symbol in ("A", "B")]
    data = market_data(bars, sizing=("equity_fraction", {"fraction": 1.0}), account="shared", start_equity=100_000.0)
    (lane,) = run_strategy(data, strategy("buy_and_hold")).lanes
    assert lane.fills["lots"].tolist() == [500, 500]


@settings(max_examples=200, deadline=None)
@given(exposure=st.floats(-3, 3), count=st.integers(1, 10**6))
def test_fixed_lots_round_half_away_from_zero(exposure, count):
    exact = Fraction(exposure * count)  # the product as the lane forms it
    size = int(abs(exact) + Fraction(1, 2))
    assert lots(sizing("fixed_lots", lots=count), exposure=exposure) == (size if exact >= 0 else -size)


@pytest.mark.parametrize("window", [2, 20])
def test_sigma_is_the_sample_deviation_of_the_last_returns_a_year(window):
    tape = random_tape(120, seed=4, start=500)
    sigma_T = sizing("volatility_target", window=window).compute_series(tape)["sigma"][0]
    close_T = tape.close_ST[0].astype(float)
    return_T = np.diff(close_T) / close_T[:-1]
    assert np.isnan(sigma_T[:window]).all()
    expected = [np.std(return_T[t - window : t], ddof=1) * np.sqrt(252.0) for t in range(window, 120)]
    np.testing.assert_allclose(sigma_T[window:], expected, rtol=1e-12)


@settings(max_examples=200, deadline=None)
@given(
    exposure=st.floats(-2, 2), equity=st.integers(1, 10**17), price=st.integers(1, 10**9), sigma=st.floats(1e-6, 10.0),
    target=st.floats(0.01, 10.0), most=st.floats(0.1, 10.0), symbols=st.integers(1, 50),
)  # fmt: skip
def test_volatility_target_equals_the_formula_with_its_cap(exposure, equity, price, sigma, target, most, symbols):
    rule = sizing("volatility_target", target_volatility=target, max_fraction=most)
    found = lots(rule, exposure=exposure, equity=equity, price=price, symbols=symbols, t=0, sigma_T=np.array([sigma]))
    fraction = Fraction(exposure) * Fraction(target) / Fraction(sigma)
    fraction = max(min(fraction, Fraction(most)), -Fraction(most))
    exact = fraction * equity / (price * CONTEXT["value_numerator"] * symbols)
    assert abs(found - exact) < 1 + abs(exact) * Fraction(1, 10**14)
    assert found == 0 or (found > 0) == (exposure > 0)


def test_volatility_that_is_not_known_gives_no_lots():
    rule = sizing("volatility_target", window=4)
    still = make_tape(np.full(12, 400))
    moving = make_tape([400, 401, 399, 402, 400, 401, 0, 400, 401, 399, 402, 400, 401])
    assert [lots(rule, still, t=t) for t in range(12)] == [0] * 12
    known = [t for t in range(13) if lots(rule, moving, t=t, value_numerator=1) > 0]
    assert known == [4, 5, 11, 12]
    for equity, price in ((0, 400), (-5, 400), (10**14, 0), (10**14, -3)):
        assert lots(rule, moving, t=5, equity=equity, price=price) == 0


def test_series_of_several_symbols_are_those_of_each():
    tapes = [random_tape(60, seed=1, symbol="A"), random_tape(40, seed=2, symbol="B")]
    rule = sizing("volatility_target", window=5)
    both_ST = rule.compute_series(join(tapes))["sigma"]
    for s, tape in enumerate(tapes):
        length = int(tape.length_S[0])
        assert both_ST[s, :length].tobytes() == rule.compute_series(tape)["sigma"][0].tobytes()
        assert np.isnan(both_ST[s, length:]).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("make_extreme", EXTREME_TAPES.values(), ids=EXTREME_TAPES)
def test_lots_have_the_side_of_the_exposure_on_extreme_bars(name, make_extreme):
    tape = make_extreme()
    rule = sizing(name)
    series = {f"{key}_T": array_ST[0] for key, array_ST in rule.compute_series(tape).items()} if rule.series else {}
    for exposure in (-1.0, 0.0, 0.5):
        for t in (0, 1, 70, 199):
            found = lots(rule, exposure=exposure, t=t, price=int(tape.close_ST[0, t]), value_numerator=1, **series)
            assert found * exposure >= 0 and (exposure != 0.0 or found == 0)


def test_a_volatility_target_is_met_by_the_account():
    data = market_data(
        random_bars(1500, seed=3, scale=0.02), sizing=("volatility_target", {"target_volatility": 0.15, "window": 40, "max_fraction": 5.0}),
        resize="always", start_equity=1e6,
    )  # fmt: skip
    lane = run_strategy(data, strategy("buy_and_hold")).lanes[0]
    equity_T = lane.equity_T[100:].astype(float)
    # Around the clock a year has 365 bars of a day.
    assert np.std(np.diff(equity_T) / equity_T[:-1]) * np.sqrt(data.periods_per_year) == pytest.approx(0.15, rel=0.1)
    assert (lane.position_T[:41] == 0).all() and (lane.position_T[42:] > 0).all()
