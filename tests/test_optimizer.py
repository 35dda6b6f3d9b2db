"""Adam, the target's average, clipping and the verdict."""

import mpmath
import numpy as np
import pytest
from learning_cases import OneLearner

from bellmark import optimizer
from bellmark.control import INT
from bellmark.errors import UsageError

pytestmark = pytest.mark.cpu


def test_zero_gradients_move_nothing_and_stay_finite():
    start = np.linspace(-1, 1, 40).astype(np.float32)
    one = OneLearner(start, 1e-3)
    for _ in range(100):
        one.step(np.zeros(40))
    assert np.array_equal(one.parameter[0], start)
    assert not np.any(one.m)
    assert not np.any(one.v)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e4])
def test_the_first_step_moves_by_the_learning_rate_against_the_sign(size):
    gradient = size * np.array([1.0, -1.0, 2.0, -3.0] * 4)
    one = OneLearner(np.zeros(16), 1e-3)
    one.step(gradient)
    np.testing.assert_allclose(one.parameter[0], -1e-3 * np.sign(gradient), rtol=2e-5)


@pytest.mark.parametrize("beta", [0.9, 0.999, 0.9999])
@pytest.mark.parametrize("t", [1, 2, 10, 1000, 10**6, 2**31])
def test_bias_correction_is_within_2_units_of_the_last_place(beta, t):
    mpmath.mp.dps = 50
    exact = 1 - mpmath.mpf(beta) ** t
    found = np.float32(optimizer.bias_correction(beta, t))
    assert abs(mpmath.mpf(float(found)) - exact) <= 2 * float(np.spacing(np.float32(exact)))


def test_counters_are_whole_beyond_2_24():
    one = OneLearner(np.zeros(8), 1e-3)
    one.ints[0, INT["adam_step"]] = 2**24 - 1
    for _ in range(3):
        one.step(np.ones(8))
    assert one.ints[0, INT["adam_step"]] == 2**24 + 2


LOST = {"beta1": (1.0, 0.9, 1e-8), "beta2": (0.9, 1.0 - 1e-9, 1e-8), "epsilon": (0.9, 0.999, 1e-13)}


@pytest.mark.parametrize(("setting", "values"), LOST.items())
def test_settings_that_float32_turns_into_others_are_refused(setting, values):
    with pytest.raises(UsageError, match=f"optimizer.{setting}"):
        optimizer.check(*values)
    optimizer.check(0.9, 0.999, 1e-8)


@pytest.mark.parametrize(("gradient", "scale"), [(0.0, 1.0), (1e-30, 1.0), (1e19, None), (np.inf, None)])
def test_clipping_at_zero_tiny_huge_and_infinite_norms(gradient, scale):
    one = OneLearner(np.zeros(64), 1e-3, max_norm=10.0)
    one.step(np.full(64, gradient))
    if np.isinf(gradient):
        assert one.update[0, optimizer.OK] == 0.0
        assert one.verdict[0] != 0
        assert not np.any(one.parameter)
    else:
        assert one.update[0, optimizer.OK] == 1.0
        assert np.isfinite(one.parameter).all()
        assert np.isfinite(one.v).all()
        if scale is not None:
            assert one.update[0, optimizer.CLIP] == scale
        else:
            assert one.norm[0] * one.update[0, optimizer.CLIP] == pytest.approx(10.0, rel=1e-6)


def test_a_gradient_whose_square_leaves_float32_is_skipped_where_nothing_clips():
    one = OneLearner(np.zeros(8), 1e-3, max_norm=0.0)
    one.step(np.full(8, 1e25))
    assert one.update[0, optimizer.OK] == 0.0
    assert not np.any(one.v)


def test_20000_steps_of_adam_and_target_equal_float64():
    random = np.random.default_rng(0)
    one = OneLearner(random.standard_normal(16), 1e-4, tau=0.005)
    p, target = one.parameter[0].astype(np.float64), one.target[0].astype(np.float64)
    m, v = np.zeros(16), np.zeros(16)
    for t in range(1, 20_001):
        g = np.float32(random.standard_normal(16) + 0.3).astype(np.float64)
        one.step(g)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        p -= 1e-4 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        target += 0.005 * (p - target)
    np.testing.assert_allclose(one.v[0], v, rtol=1e-5)
    np.testing.assert_allclose(one.parameter[0], p, rtol=2e-4)  # 20,000 roundings of p itself
    np.testing.assert_allclose(one.target[0], target, rtol=2e-4)


def test_the_sum_of_squares_is_float64():
    gradient = np.full(4096, 1e-3, np.float32)
    gradient[0] = 1e4
    exact = float(np.sum(gradient.astype(np.float64) ** 2))
    assert optimizer.square_sum(gradient, 0, 4096) == pytest.approx(exact, rel=1e-14)
