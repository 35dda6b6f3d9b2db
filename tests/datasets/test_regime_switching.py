"""Hidden regimes: moments, Hamilton's filter against every path there is, and what the best policy earns."""

import itertools

import numpy as np
import pytest
from moment_cases import mean_is, within

from bellmark.component import make
from bellmark.datasets.regime_switching import RegimeSwitching
from bellmark.errors import UsageError

pytestmark = pytest.mark.cpu
THREE = {"drifts": [0.002, -0.003, 0.0], "volatilities": [0.01, 0.02, 0.005], "mean_lengths": [20.0, 10.0, 50.0]}
CLEAR = {"drifts": [0.004, -0.004], "volatilities": [0.006, 0.006], "mean_lengths": [150.0, 100.0]}
SHORT = {"drifts": [0.004, -0.002], "volatilities": [0.01, 0.02], "mean_lengths": [10.0, 5.0]}


def market(**settings):
    return make(RegimeSwitching, settings, "data")


@pytest.fixture(scope="module")
def three():
    dataset = market(bars=200_000, seed=4, **THREE)
    return dataset, dataset.truth()


def test_chances_of_staying_and_of_each_other_regime_are_those_of_the_chain(three):
    dataset, truth = three
    regime_T = truth["regime"]
    for k, length in enumerate(THREE["mean_lengths"]):
        after = regime_T[1:][regime_T[:-1] == k]
        for j in range(3):
            right = 1 - 1 / length if j == k else 1 / (2 * length)
            assert dataset.transition[k, j] == pytest.approx(right, rel=1e-12)
            within(np.mean(after == j), right, np.sqrt(right * (1 - right) / after.size))


def test_share_of_time_of_a_regime_is_its_length_over_the_sum_from_the_first_bar_on():
    dataset = market(**THREE)
    share_K = np.array([20, 10, 50]) / 80
    assert dataset.stationary == pytest.approx(share_K, rel=1e-12)
    assert dataset.stationary @ dataset.transition == pytest.approx(share_K, rel=1e-12)
    first = np.array([market(bars=2, seed=seed, **THREE).truth()["regime"][0] for seed in range(2000)])
    for k in range(3):
        within(np.mean(first == k), share_K[k], np.sqrt(share_K[k] * (1 - share_K[k]) / 2000))


def test_returns_of_a_regime_are_normal_with_its_drift_and_volatility(three):
    _, truth = three
    for k in range(3):
        r = truth["log_return"][truth["regime"] == k]
        z = (r - (THREE["drifts"][k] - THREE["volatilities"][k] ** 2 / 2)) / THREE["volatilities"][k]
        within(z.mean(), 0.0, 1 / np.sqrt(z.size))
        within(z.std(), 1.0, 1 / np.sqrt(2 * z.size))
        mean_is(np.expm1(r), np.expm1(THREE["drifts"][k]))


def test_squared_returns_correlate_as_the_chain_says():
    """Cov(r[t]^2, r[t+j]^2) = sum_ik pi_i m_i (P^j)_ik m_k - (pi m)^2 with m = volatility^2 + mean^2, in 60 independent paths."""
    dataset = market(bars=4000, **THREE)
    m_K = np.array(THREE["volatilities"]) ** 2 + dataset.log_mean**2
    level = dataset.stationary @ m_K
    paths = [market(bars=4000, seed=seed, **THREE).truth()["log_return"] ** 2 - level for seed in range(60)]
    mean_is([square_T.mean() for square_T in paths], 0.0)
    for lag in (1, 10):
        right = (dataset.stationary * m_K) @ np.linalg.matrix_power(dataset.transition, lag) @ m_K - level**2
        mean_is([np.mean(square_T[lag:] * square_T[:-lag]) for square_T in paths], right)


@pytest.mark.parametrize("settings", [THREE, CLEAR, SHORT])
def test_posterior_is_the_sum_over_every_path_of_regimes(settings):
    """Bayes by enumeration: the weight of each path of regimes is its chance times the density of the returns under it."""
    dataset = market(bars=6, seed=7, **settings)
    truth, regimes = dataset.truth(), range(len(settings["drifts"]))
    volatility_K = settings["volatilities"]
    density_KT = [np.exp(-0.5 * ((truth["log_return"] - dataset.log_mean[k]) / volatility_K[k]) ** 2) / volatility_K[k] for k in regimes]
    for last in range(1, 7):
        weight_K = np.zeros(len(regimes))
        for path in itertools.product(regimes, repeat=last):
            weight = dataset.stationary[path[0]] * np.prod([density_KT[k][t] for t, k in enumerate(path)])
            weight_K[path[-1]] += weight * np.prod([dataset.transition[i, k] for i, k in itertools.pairwise(path)])
        assert truth["posterior"][last - 1] == pytest.approx(weight_K / weight_K.sum(), rel=1e-10)


def test_posterior_of_a_return_out_of_all_proportion_is_still_a_chance():
    posterior_TK = market(**SHORT).posterior(np.array([0.0, 5.0, -5.0, 1e-3]))
    assert np.isfinite(posterior_TK).all() and posterior_TK.sum(axis=1) == pytest.approx(np.ones(4))
    assert posterior_TK[1, 1] == 1.0  # the regime of the larger volatility


def test_posterior_means_what_it_says():
    """Where it says 60 to 80 per cent, the regime is there in that share of the bars; 60 independent paths, as bars of one are not."""
    errors = []
    for seed in range(60):
        truth = market(bars=4000, seed=seed, **SHORT).truth()
        chance_T = truth["posterior"][:, 0]
        chosen_T = (chance_T > 0.6) & (chance_T < 0.8)
        errors.append(np.sum(((truth["regime"] == 0) - chance_T)[chosen_T]) / 4000)
    assert np.std(errors) > 0
    mean_is(errors, 0.0)


@pytest.mark.parametrize("settings", [CLEAR, SHORT])
def test_best_policy_earns_its_exact_profit_and_no_more(settings):
    best = market(**settings).best_policy()
    assert best.blind_profit < best.mean_profit < best.informed_profit and best.tolerance < 1e-4
    earned = []
    for seed in range(60):
        dataset = market(bars=5000, seed=seed, **settings)
        truth = dataset.truth()
        side_T = np.sign(dataset.expected_return(truth["posterior"]))
        earned.append(np.mean(side_T[200:-1] * np.expm1(truth["log_return"][201:])))  # the first bars know less than the long run
    mean_is(earned, best.mean_profit)


def test_best_policy_of_limiting_cases():
    """Regimes without memory tell nothing; regimes that show themselves in one bar give all; equal ones leave the long-run drift."""
    forgetful = market(drifts=[0.004, -0.002], volatilities=[0.01, 0.02], mean_lengths=[2.0, 2.0]).best_policy()
    assert forgetful.mean_profit == pytest.approx(np.expm1([0.004, -0.002]).mean(), rel=1e-12)
    plain = market(drifts=[0.004, -0.004], volatilities=[0.0001, 0.0001]).best_policy()
    assert plain.mean_profit == pytest.approx(plain.informed_profit, rel=1e-6)
    same = market(drifts=[0.001, 0.001], volatilities=[0.01, 0.02]).best_policy()
    assert same.mean_profit == pytest.approx(np.expm1(0.001), rel=1e-9) == same.blind_profit


def test_seed_and_length_of_the_path():
    short, long, other = (market(bars=n, seed=seed).read()[0][0] for n, seed in ((300, 1), (600, 1), (300, 2)))
    assert np.array_equal(short.close, long.close[:300]) and not np.array_equal(short.close, other.close)
    assert np.array_equal(long.open[1:], long.close[:-1])
    assert np.array_equal(long.close, np.rint(100 * np.exp(np.cumsum(market(bars=600).truth()["log_return"])) * 100) * 0.01)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"drifts": [0.1, 0.2, 0.3]}, "found 3 drifts, 2 volatilities, 2 mean_lengths"),
        ({"drifts": [0.1], "volatilities": [0.1], "mean_lengths": [5.0]}, "at least two regimes, found 1 drifts"),
        ({"volatilities": [0.0, 0.1]}, "volatilities above 0"),
        ({"mean_lengths": [0.5, 10.0]}, "mean_lengths of at least 1"),
        ({"drifts": [float("nan"), 0.0]}, "expected finite numbers"),
    ],
)
def test_settings_that_make_no_chain_are_one_line(settings, message):
    with pytest.raises(UsageError, match=message):
        market(**settings)


def test_profit_of_three_regimes_is_refused():
    with pytest.raises(UsageError, match="best_policy: expected 2 regimes, found 3"):
        market(**THREE).best_policy()
