"""GARCH with jumps: the recursion, its moments in closed form, and that nothing predicts the price."""

import numpy as np
import pytest
from moment_cases import ERRORS, mean_is, within

from bellmark.component import make
from bellmark.datasets.garch_jumps import GarchJumps
from bellmark.errors import UsageError

pytestmark = pytest.mark.cpu
TAME = {"alpha": 0.06, "beta": 0.86, "volatility": 0.012}  # its eighth moment exists, so means of a^4 have a standard error


def market(**settings):
    return make(GarchJumps, {"bar_seconds": 3600} | settings, "data")


@pytest.fixture(scope="module")
def paths():
    return [market(bars=4000, seed=seed, **TAME).truth() for seed in range(80)]


def test_variance_and_return_follow_their_equations_bar_by_bar():
    dataset = market(bars=2000, drift=0.001, **TAME)
    truth = dataset.truth()
    h_T, a_T = truth["variance"], truth["innovation"]
    assert h_T[1:] == pytest.approx(0.012**2 * 0.08 + 0.06 * a_T[:-1] ** 2 + 0.86 * h_T[:-1], rel=1e-12)
    right_T = np.log(1.001) - h_T / 2 - dataset.jump_compensation + a_T + truth["jump"]
    assert truth["log_return"] == pytest.approx(right_T, abs=1e-12)


def test_innovations_are_normal_given_their_variance(paths):
    z_T = np.concatenate([truth["innovation"] / np.sqrt(truth["variance"]) for truth in paths])
    within(z_T.mean(), 0.0, 1 / np.sqrt(z_T.size))
    within(z_T.std(), 1.0, 1 / np.sqrt(2 * z_T.size))
    within(np.mean(z_T**4), 3.0, np.sqrt(96 / z_T.size))


def test_long_run_variance_kurtosis_and_clusters_are_those_of_the_formulas(paths):
    """Bollerslev (1986): E a^2, E a^4 and the correlations of a^2; each of 80 independent paths gives one estimate."""
    dataset, level = market(**TAME), 0.012**2
    total = 0.92
    assert dataset.kurtosis == pytest.approx(3 * (1 - total**2) / (1 - total**2 - 2 * 0.06**2), rel=1e-12) and dataset.kurtosis > 3.1
    mean_is([np.mean(truth["innovation"] ** 2) for truth in paths], level)
    mean_is([np.mean(truth["innovation"] ** 4) for truth in paths], dataset.kurtosis * level**2)
    for lag in (1, 2, 12):
        spread = (dataset.kurtosis - 1) * level**2
        found = [np.mean((truth["innovation"][lag:] ** 2 - level) * (truth["innovation"][:-lag] ** 2 - level)) / spread for truth in paths]
        assert dataset.squared_autocorrelation(lag) > ERRORS * np.std(found) / np.sqrt(80), "the sample is too small to see a cluster"
        mean_is(found, dataset.squared_autocorrelation(lag))


def test_first_bar_is_of_the_long_run():
    """E h = volatility^2 and E h^2 = kurtosis / 3 volatility^4 in the first bar of 1500 paths: it does not start from the mean."""
    first = np.array([market(bars=2, seed=seed, **TAME).truth()["variance"][0] for seed in range(1500)])
    mean_is(first, 0.012**2)
    mean_is(first**2, market(**TAME).kurtosis / 3 * 0.012**4)


def test_price_is_a_martingale_whatever_is_known_of_it(paths):
    """E[(R - 1) g(past)] = 0 for g = 1, the side of the last return, the variance to come, and whether there was a jump."""
    for known in (
        lambda truth: np.ones(3999),
        lambda truth: np.sign(truth["log_return"][:-1]),
        lambda truth: truth["variance"][1:] / 0.012**2,
        lambda truth: truth["jump"][:-1] != 0,
    ):
        mean_is(np.concatenate([np.expm1(truth["log_return"][1:]) * known(truth) for truth in paths]), 0.0)


def test_drift_is_the_expected_simple_return():
    mean_is(np.expm1(market(bars=100_000, drift=0.0004, **TAME).truth()["log_return"]), 0.0004)


def test_jumps_come_as_often_and_as_large_as_said():
    jump_T = market(bars=300_000, jump_chance=0.02, jump_mean=-0.03, jump_deviation=0.05, seed=5).truth()["jump"]
    sizes = jump_T[jump_T != 0]
    within(sizes.size / 300_000, 0.02, np.sqrt(0.02 * 0.98 / 300_000))
    within(sizes.mean(), -0.03, 0.05 / np.sqrt(sizes.size))
    within(sizes.std(), 0.05, 0.05 / np.sqrt(2 * sizes.size))


def test_compensation_of_jumps_is_the_log_of_their_mean_exponential():
    jump_T = market(bars=300_000, jump_chance=0.3, jump_mean=-0.1, jump_deviation=0.2).truth()["jump"]
    mean_is(np.exp(jump_T), np.exp(market(jump_chance=0.3, jump_mean=-0.1, jump_deviation=0.2).jump_compensation))


def test_a_chance_of_zero_leaves_the_rest_of_the_path_as_it_was():
    with_jumps, without = (market(bars=3000, jump_chance=chance).truth() for chance in (0.05, 0.0))
    assert np.count_nonzero(with_jumps["jump"]) > 100 and not without["jump"].any()
    assert np.array_equal(with_jumps["variance"], without["variance"]) and np.array_equal(with_jumps["innovation"], without["innovation"])


def test_without_alpha_and_beta_the_variance_is_constant():
    dataset = market(bars=500, alpha=0.0, beta=0.0, volatility=0.02)
    assert dataset.truth()["variance"] == pytest.approx(np.full(500, 0.0004), rel=1e-12) and dataset.kurtosis == 3.0


def test_bars_are_the_path_on_the_tick_and_hold_their_jumps():
    dataset = market(bars=3000, jump_chance=0.05)
    ((bars, _),) = dataset.read()
    assert np.array_equal(bars.close, np.rint(100 * np.exp(np.cumsum(dataset.truth()["log_return"])) * 100) * 0.01)
    assert np.array_equal(bars.open[1:], bars.close[:-1])


def test_seed_and_length_of_the_path():
    short, long, other = (market(bars=n, seed=seed).read()[0][0] for n, seed in ((300, 1), (600, 1), (300, 2)))
    assert np.array_equal(short.close, long.close[:300]) and not np.array_equal(short.close, other.close)


def test_bad_settings_and_questions_are_one_line():
    with pytest.raises(UsageError, match=r"expected alpha \+ beta below 1, found 0.2 \+ 0.8"):
        market(alpha=0.2, beta=0.8)
    assert market(alpha=0.5, beta=0.4).kurtosis == float("inf")
    with pytest.raises(UsageError, match="a finite kurtosis, found 1 and inf"):
        market(alpha=0.5, beta=0.4).squared_autocorrelation(1)
    with pytest.raises(UsageError, match="after the year 2262"):
        market(bars=100_000, bar_seconds=86_400).read()
