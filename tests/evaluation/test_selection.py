"""What a Sharpe ratio is worth after a search: limits, order, and numbers that do not exist. The published values are golden tests."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy import stats

from bellmark.errors import UsageError
from bellmark.evaluation.curve import Undefined
from bellmark.evaluation.selection import (
    deflated_sharpe_ratio,
    expected_maximum,
    expected_maximum_sharpe,
    minimum_track_record_length,
    probabilistic_sharpe_ratio,
)

finite = some.floats(-1.0, 1.0)


def test_ratio_at_its_benchmark_is_an_even_chance():
    assert probabilistic_sharpe_ratio(0.1, 250, benchmark=0.1) == 0.5
    assert deflated_sharpe_ratio(0.0, 250, 1, 0.01) == 0.5


@given(finite, some.integers(2, 10_000), some.floats(-2.0, 2.0), some.floats(6.0, 50.0), finite)
def test_probability_follows_the_formula(sharpe, bars, skewness, kurtosis, benchmark):
    variance = 1.0 - skewness * sharpe + (kurtosis - 1.0) / 4.0 * sharpe**2
    expected = stats.norm.cdf((sharpe - benchmark) * math.sqrt(bars - 1) / math.sqrt(variance))
    assert probabilistic_sharpe_ratio(sharpe, bars, skewness, kurtosis, benchmark) == pytest.approx(expected, abs=1e-14)


def test_track_record_is_the_length_at_which_the_probability_reaches_the_confidence():
    bars = minimum_track_record_length(0.12, -0.5, 5.0, 0.05, 0.9)
    spread = math.sqrt(1.0 + 0.5 * 0.12 + 0.12**2)
    assert stats.norm.cdf((0.12 - 0.05) * math.sqrt(bars - 1.0) / spread) == pytest.approx(0.9, abs=1e-12)
    assert probabilistic_sharpe_ratio(0.12, math.ceil(bars), -0.5, 5.0, 0.05) >= 0.9
    assert probabilistic_sharpe_ratio(0.12, math.floor(bars), -0.5, 5.0, 0.05) < 0.9


def test_more_trials_or_more_spread_among_them_deflate_more():
    by_trials = [deflated_sharpe_ratio(0.1, 1000, trials, 0.001) for trials in (1, 2, 10, 1000, 10**6)]
    assert by_trials == sorted(by_trials, reverse=True) and len(set(by_trials)) == 5
    by_variance = [deflated_sharpe_ratio(0.1, 1000, 50, variance) for variance in (0.0, 1e-4, 1e-2)]
    assert by_variance == sorted(by_variance, reverse=True)
    assert by_variance[0] == probabilistic_sharpe_ratio(0.1, 1000)


def test_expected_maximum_meets_a_simulation_and_one_trial_is_no_choice():
    drawn = np.random.default_rng(5).standard_normal((40_000, 20)).max(axis=1)
    assert expected_maximum(20, exact=True) == pytest.approx(drawn.mean(), abs=4 * drawn.std() / 200)
    assert expected_maximum(1) == expected_maximum(1, exact=True) == 0.0
    assert expected_maximum(2, exact=True) == pytest.approx(1.0 / math.sqrt(math.pi), rel=1e-13)
    assert expected_maximum_sharpe(1, 9.0) == 0.0 == expected_maximum_sharpe(99, 0.0)


def test_expected_maximum_of_very_many_keeps_its_digits():
    # by the quantile of the upper tail: 1 - 1/N has no digits of 1/N left
    count = 10**15
    tail = 0.4227843350984671 * stats.norm.isf(1.0 / count) + 0.5772156649015329 * stats.norm.isf(1.0 / (count * math.e))
    assert expected_maximum(count) == pytest.approx(tail, rel=1e-13)
    assert expected_maximum(count) == pytest.approx(expected_maximum(count, exact=True), rel=1e-2)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (lambda: probabilistic_sharpe_ratio(0.1, 1), "fewer than two bars"),
        (lambda: probabilistic_sharpe_ratio(math.nan, 100), "not finite"),
        (lambda: probabilistic_sharpe_ratio(0.1, 100, kurtosis=math.inf), "not finite"),
        (lambda: probabilistic_sharpe_ratio(1.0, 100, skewness=4.0), "no variance"),
        (lambda: probabilistic_sharpe_ratio(1e200, 100), "too large for a number"),
        (lambda: minimum_track_record_length(0.05, benchmark=0.05), "no track record is long enough"),
        (lambda: minimum_track_record_length(-0.1), "no track record is long enough"),
        (lambda: minimum_track_record_length(1e-200), "too large for a number"),
        (lambda: minimum_track_record_length(1.0, skewness=4.0), "no variance"),
        (lambda: deflated_sharpe_ratio(0.1, 1, 10, 0.01), "fewer than two bars"),
    ],
)
def test_number_that_does_not_exist_says_why(found, words):
    result = found()
    assert isinstance(result, Undefined) and words in result.reason


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: expected_maximum(0), "expected a count of 1 or more, found 0"),
        (lambda: expected_maximum(2.5), "found 2.5"),
        (lambda: expected_maximum_sharpe(5, -1.0), "expected a variance of 0 or more, found -1.0"),
        (lambda: expected_maximum_sharpe(5, math.nan), "found nan"),
        (lambda: minimum_track_record_length(0.1, confidence=1.0), "below 1, found 1.0"),
    ],
)
def test_argument_that_means_nothing_is_refused_in_one_line(call, words):
    with pytest.raises(UsageError, match=words):
        call()
