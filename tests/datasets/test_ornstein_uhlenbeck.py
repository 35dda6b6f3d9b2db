"""The Ornstein-Uhlenbeck market: exact statistics, honest bars, and the exact no-trade band."""

import numpy as np
import pytest

from bellmark.component import make
from bellmark.datasets.ornstein_uhlenbeck import OrnsteinUhlenbeck, band_profit, no_trade_band
from bellmark.errors import DataError, UsageError
from bellmark.tape import compile_tape

CASES = [(0.966, 0.5, 0.05), (0.966, 0.5, 0.5), (0.5, 1.0, 0.3), (0.99, 0.1, 0.02), (0.0, 1.0, 0.2)]


def market(**settings):
    return make(OrnsteinUhlenbeck, settings, "data")


def test_path_has_the_correlation_and_deviation_that_it_says():
    dataset = market(bars=200_000, half_life=10.0, volatility=0.4)
    ((bars, _),) = dataset.read()
    x_T = bars.close - 100.0
    innovation_T = x_T[1:] - dataset.phi * x_T[:-1]
    assert dataset.phi == pytest.approx(2 ** (-1 / 10), rel=1e-15)
    assert innovation_T.std() == pytest.approx(0.4, rel=5 / np.sqrt(2 * 200_000))
    assert np.corrcoef(innovation_T[1:], innovation_T[:-1])[0, 1] == pytest.approx(0, abs=5 / np.sqrt(200_000))
    # neighbours are correlated: the effective number of the mean is n (1 - phi) / (1 + phi)
    effective = 200_000 * (1 - dataset.phi) / (1 + dataset.phi)
    assert x_T.mean() == pytest.approx(0, abs=5 * x_T.std() / np.sqrt(effective))
    assert x_T.std() == pytest.approx(0.4 / np.sqrt(1 - dataset.phi**2), rel=5 / np.sqrt(effective))


def test_bars_open_at_the_close_before_and_hold_their_path():
    ((bars, _),) = market(bars=2000).read()
    assert np.array_equal(bars.close, np.rint((market(bars=2000).truth()["level"] + 100.0) * 100) * 0.01)
    assert np.array_equal(bars.open[1:], bars.close[:-1])
    assert np.all(bars.high >= np.maximum(bars.open, bars.close)) and np.all(bars.low <= np.minimum(bars.open, bars.close))
    assert np.mean(bars.high > np.maximum(bars.open, bars.close)) > 0.5


def test_range_of_a_bar_is_that_of_a_random_walk_watched_8_times():
    """For a slow process the mean range over 8 steps of a walk is that of the simulated walk, 1.256 deviations of a bar."""
    ((bars, _),) = market(bars=50_000, half_life=100_000.0, mean=1e6, volatility=1.0).read()
    walk = np.cumsum(np.random.default_rng(0).normal(0, np.sqrt(1 / 8), (100_000, 8)), axis=1)
    right = np.mean(np.maximum(walk.max(axis=1), 0) - np.minimum(walk.min(axis=1), 0))
    assert (bars.high - bars.low).mean() == pytest.approx(right, rel=0.02)


def test_same_seed_gives_the_same_bars_and_another_seed_others():
    first, again, other = (market(bars=500, seed=seed).read()[0][0] for seed in (1, 1, 2))
    assert np.array_equal(first.close, again.close) and not np.array_equal(first.close, other.close)


def test_longer_path_begins_with_the_shorter_one():
    short, long = (market(bars=bars).read()[0][0] for bars in (300, 600))
    assert np.array_equal(short.close, long.close[:300])


def test_path_that_falls_below_zero_names_the_mean_to_take():
    with pytest.raises(DataError, match="take a mean above"):
        market(mean=1.0, bars=500).read()


def test_bars_compile_on_their_tick():
    tape = compile_tape(market(bars=100).read(), cached=False)
    assert tape.instruments[0].price_quantum == 0.005 and tape.periods_per_year == 365 * 24


@pytest.mark.parametrize(("phi", "sigma", "cost"), CASES)
def test_band_beats_its_neighbours_in_the_exact_long_run_average(phi, sigma, cost):
    best = no_trade_band(phi, sigma, cost)
    around = [band_profit(phi, sigma, cost, best.band * factor)[0] for factor in (0.5, 0.9, 0.99, 1.01, 1.1, 2.0)]
    assert all(best.mean_profit > other for other in around)
    assert best.tolerance <= 1e-9


@pytest.mark.parametrize(("phi", "sigma", "cost"), CASES)
def test_band_is_the_maximum_to_the_stated_tolerance(phi, sigma, cost):
    """The profit is flat at the band: its slope, by a symmetric difference, is nothing against its curvature."""
    best = no_trade_band(phi, sigma, cost)
    h = 1e-2 * best.band
    below, at, above = (band_profit(phi, sigma, cost, best.band + step)[0] for step in (-h, 0.0, h))
    newton_step = 0.5 * h * (above - below) / (2 * at - above - below)
    assert abs(newton_step) < 1e-3 * best.band


def test_band_of_no_cost_is_zero_and_earns_the_mean_reversion_in_full():
    """Always against the deviation: E (1 - phi) |x| = (1 - phi) s sqrt(2 / pi); sides change with the sign of x, arccos(phi) / pi a bar."""
    best = no_trade_band(0.9, 2.0, 0.0)
    deviation = 2.0 / np.sqrt(1 - 0.81)
    assert best.band == 0.0
    assert best.mean_profit == pytest.approx(0.1 * deviation * np.sqrt(2 / np.pi), rel=1e-10)
    assert best.reversals == pytest.approx(np.arccos(0.9) / np.pi, rel=1e-8)


def test_band_of_independent_levels_is_the_known_one():
    """With phi = 0 the next level does not depend on this one: W(x) = -2 x, so the band is the cost."""
    assert no_trade_band(0.0, 1.0, 0.2).band == pytest.approx(0.2, rel=1e-9)


def test_band_scales_with_price_and_profit_with_the_limit():
    one, ten = no_trade_band(0.95, 0.5, 0.1), no_trade_band(0.95, 5.0, 1.0, position_limit=3.0)
    assert ten.band == pytest.approx(10 * one.band, rel=1e-9)
    assert ten.mean_profit == pytest.approx(30 * one.mean_profit, rel=1e-9)


def test_band_widens_and_profit_falls_with_cost():
    found = [no_trade_band(0.966, 0.5, cost) for cost in (0.0, 0.01, 0.05, 0.2, 1.0)]
    assert np.all(np.diff([best.band for best in found]) > 0)
    assert np.all(np.diff([best.mean_profit for best in found]) < 0)


def test_band_equals_value_iteration_on_a_grid():
    """Independent of the integral equation: the position as a two-state decision process on 801 levels, plain value iteration."""
    from scipy.special import ndtr

    phi, sigma, cost = 0.9, 1.0, 0.4
    level, step = np.linspace(-7, 7, 801, retstep=True)
    edge = np.concatenate([[-np.inf], level[:-1] + step / 2, [np.inf]])
    chance = np.diff(ndtr(edge[None, :] - phi * level[:, None]), axis=1)
    value = np.zeros((2, 801))
    for _ in range(600):
        hold = np.stack([(1 - phi) * level + chance @ value[0], -(1 - phi) * level + chance @ value[1]])
        value = np.stack([np.maximum(hold[0], hold[1] - 2 * cost), np.maximum(hold[1], hold[0] - 2 * cost)])
        value -= value[0, 400]
    short_from = level[np.argmax(hold[0] - hold[1] >= 2 * cost)]
    assert no_trade_band(phi, sigma, cost).band == pytest.approx(short_from, abs=2 * step)


def test_simulated_band_policy_earns_the_exact_profit():
    dataset = market(bars=400_000, half_life=20.0, volatility=0.5, tick_size=0.0001, seed=5)
    cost = 0.05
    best = dataset.best_policy(cost)
    ((bars, _),) = dataset.read()
    x_T = bars.close - 100.0
    side_T = np.where(x_T >= best.band, -1.0, np.where(x_T <= -best.band, 1.0, np.nan))
    known = np.maximum.accumulate(np.where(np.isnan(side_T), 0, np.arange(len(x_T))))
    side_T = np.where(np.isnan(side_T[known]), 0.0, side_T[known])  # flat before the first signal
    profit_T = side_T[:-1] * np.diff(x_T) - cost * np.abs(np.diff(side_T, prepend=side_T[0]))[:-1]
    assert profit_T.mean() == pytest.approx(best.mean_profit, abs=5 * profit_T.std() / np.sqrt(len(profit_T)))
    assert np.mean(np.diff(side_T) != 0) == pytest.approx(best.reversals, rel=0.05)


@pytest.mark.parametrize("values", [(1.0, 1.0, 0.1), (-0.1, 1.0, 0.1), (0.9, 0.0, 0.1), (0.9, 1.0, -0.1)])
def test_band_of_no_market_is_refused(values):
    with pytest.raises(UsageError, match="no_trade_band: expected"):
        no_trade_band(*values)


def test_band_of_an_absurd_cost_is_refused():
    with pytest.raises(UsageError, match="the band is above 100 sigma"):
        no_trade_band(0.9999, 0.01, 50.0)


def test_a_path_that_runs_out_of_the_clock_is_refused_and_does_not_wrap_around():
    with pytest.raises(UsageError, match="120000 bars of 86400 s from 2020 on end after the year 2262"):
        compile_tape(market(bars=120_000, bar_seconds=86_400).read(), cached=False)
