"""Geometric Brownian motion: exact moments, honest bars, and Merton's exposure."""

import numpy as np
import pytest
from market_cases import market_data
from moment_cases import mean_is, within

from bellmark.backtester import run_strategy
from bellmark.component import make
from bellmark.datasets.geometric_brownian import GeometricBrownian
from bellmark.errors import DataError, UsageError
from bellmark.strategies.buy_and_hold import BuyAndHold
from bellmark.tape import compile_tape

pytestmark = pytest.mark.cpu
HOURS = 8760


def market(**settings):
    return make(GeometricBrownian, {"bar_seconds": 3600} | settings, "data")


def test_log_returns_are_independent_normal_numbers_of_the_stated_mean_and_deviation():
    n, dataset = 200_000, market(bars=200_001, drift=0.3, volatility=0.4, seed=3)
    truth = dataset.truth()
    z_T = (np.diff(truth["log_price"]) - (0.3 - 0.08) / HOURS) / (0.4 / np.sqrt(HOURS))
    assert truth["mean"] == pytest.approx((0.3 - 0.08) / HOURS) and truth["deviation"] == pytest.approx(0.4 / np.sqrt(HOURS))
    within(z_T.mean(), 0.0, 1 / np.sqrt(n))
    within(z_T.std(), 1.0, 1 / np.sqrt(2 * n))
    within(np.mean(z_T**4), 3.0, np.sqrt(96 / n))  # Var z^4 = 105 - 9
    within(np.mean(z_T[1:] * z_T[:-1]), 0.0, 1 / np.sqrt(n))
    within(np.mean(z_T[1:] ** 2 * z_T[:-1] ** 2), 1.0, np.sqrt(8 / n))  # of z^2 z'^2: 9 - 1; no clusters


def test_expected_price_grows_with_the_drift():
    """E S[T] = S[0] exp(drift T) over 2000 seeds of 30 bars a year apart in twelfths."""
    ends = [market(bars=30, bar_seconds=86_400 * 30, drift=0.1, volatility=0.2, seed=seed).truth()["log_price"][-1] for seed in range(2000)]
    mean_is(np.exp(ends), np.exp(0.1 * 30 * 30 / 365))


def test_bars_are_the_path_on_the_tick_and_open_at_the_close_before():
    dataset = market(bars=3000, tick_size=0.25, price=50.0)
    ((bars, instrument),) = dataset.read()
    assert np.array_equal(bars.close, np.rint(50.0 * np.exp(dataset.truth()["log_price"]) * 4) / 4)
    assert bars.open[0] == 50.0 and np.array_equal(bars.open[1:], bars.close[:-1])
    assert np.all(bars.high >= np.maximum(bars.open, bars.close)) and np.all(bars.low <= np.minimum(bars.open, bars.close))
    assert instrument.tick_size == 0.25 and compile_tape([(bars, instrument)], cached=False).periods_per_year == HOURS


def test_range_of_a_bar_is_that_of_a_walk_of_eight_steps():
    """Spitzer (1956): the mean maximum of n steps is sum over k of E[S_k; S_k > 0] / k; the range is twice that without a drift."""
    ((bars, _),) = market(bars=40_000, drift=0.02, volatility=0.2, price=1e6, tick_size=0.01).read()  # mean log return 0
    deviation = 0.2 / np.sqrt(HOURS)
    right = 2 * deviation * sum(np.sqrt(k / 8) / np.sqrt(2 * np.pi) / k for k in range(1, 9))
    mean_is(np.log(bars.high / bars.low), right)


@pytest.mark.parametrize("fraction", [0.25, 0.5, 1.0])
def test_growth_of_a_constant_exposure_is_what_the_path_gives(fraction):
    dataset = market(bars=100_000, bar_seconds=86_400, drift=0.1, volatility=0.4, price=1e6, seed=8)
    log_price_T = dataset.truth()["log_price"]
    growth_T = 365 * np.log1p(fraction * np.expm1(np.diff(log_price_T)))
    mean_is(growth_T, dataset.bar_growth(fraction))


def test_growth_of_rebalancing_each_bar_tends_to_that_of_rebalancing_all_the_time():
    """The difference is of order 1 / P: bars a quarter as long leave a quarter of it. Held in full there is nothing to rebalance."""
    coarse, fine = (market(bar_seconds=seconds, drift=0.1, volatility=0.5) for seconds in (4 * 86_400, 86_400))
    assert coarse.bar_growth(1.0) == pytest.approx(coarse.growth(1.0), rel=1e-12)
    left = [one.bar_growth(0.4) - one.growth(0.4) for one in (coarse, fine)]
    assert left[0] != 0 and left[0] / left[1] == pytest.approx(4.0, rel=0.02)


@pytest.mark.parametrize(("drift", "volatility"), [(0.05, 0.4), (0.1, 0.5), (0.02, 0.2)])
def test_best_exposure_has_the_largest_growth_of_all(drift, volatility):
    """The exact growth of rebalancing each hour is largest at Merton's fraction up to 1 / P, found by search and not by its formula."""
    from scipy.optimize import minimize_scalar

    dataset = market(drift=drift, volatility=volatility)
    best = dataset.best_policy()
    found = minimize_scalar(lambda fraction: -dataset.bar_growth(fraction), bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-8})
    assert found.x == pytest.approx(best.exposure, abs=5 / HOURS)
    assert best.growth_per_year == pytest.approx(drift**2 / (2 * volatility**2), rel=1e-12)
    assert all(best.growth_per_year > dataset.growth(best.exposure + step) for step in (-0.1, -0.01, 0.01, 0.1))


def test_best_exposure_keeps_to_its_limits():
    assert market(drift=0.2, volatility=0.2).best_policy().unlimited == pytest.approx(5.0)
    assert market(drift=0.2, volatility=0.2).best_policy().exposure == 1.0
    assert market(drift=-0.01, volatility=0.2).best_policy().exposure == pytest.approx(-0.25)
    assert market(drift=-0.01, volatility=0.2).best_policy(lowest=0.0).growth_per_year == 0.0


def test_simulator_without_costs_earns_the_growth_of_a_constant_exposure():
    """Equity of half an exposure, set back each bar, is the product of 1 + (R - 1) / 2; lots and ticks are small beside it."""
    dataset = market(bars=400, bar_seconds=86_400, drift=0.1, volatility=0.4, price=1e4, seed=2)
    ((bars, instrument),) = dataset.read()
    whole = ("equity_fraction", {"fraction": 1.0})
    data = market_data(bars, instrument, sizing=whole, start_equity=1e8, resize="always", initial_margin_rate=0.5)
    equity_T = run_strategy(data, make(BuyAndHold, {"exposure_level": 0.5}, "half")).lanes[0].equity_T / 1e9
    earned = np.log(equity_T[-1] / equity_T[1])
    right = np.log1p(0.5 * (bars.close[2:] / bars.close[1:-1] - 1)).sum()
    assert earned == pytest.approx(right, abs=1e-3)


def test_seed_and_length_of_the_path():
    short, long, other = (market(bars=n, seed=seed).read()[0][0] for n, seed in ((300, 1), (600, 1), (300, 2)))
    assert np.array_equal(short.close, long.close[:300]) and not np.array_equal(short.close, other.close)


def test_bad_questions_are_one_line():
    with pytest.raises(UsageError, match="expected a fraction from 0 to 1, found 1.5"):
        market().bar_growth(1.5)
    with pytest.raises(UsageError, match="expected lowest <= highest"):
        market().best_policy(1.0, 0.0)
    with pytest.raises(DataError, match="falls below half a tick of 1; take a price above 1"):
        market(price=1.0, tick_size=1.0, volatility=2.0).read()
