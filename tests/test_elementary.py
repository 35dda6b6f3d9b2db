"""exp32 and erf32 against float64."""

import numpy as np
import pytest
from learning_cases import uses_double

from bellmark import elementary
from bellmark.codegen import lower

pytestmark = pytest.mark.cpu
exp32, erf32 = lower(elementary.exp32), lower(elementary.erf32)


def test_exp_is_within_one_unit_in_the_last_place():
    x = np.linspace(-87.0, 88.0, 40_001, dtype=np.float32)
    found = np.array([exp32(value) for value in x], np.float64)
    assert np.abs(found / np.exp(x.astype(np.float64)) - 1.0).max() < 1e-7


def test_exp_is_held_outside_and_passes_nan():
    assert exp32(np.float32(-np.inf)) == exp32(np.float32(-87.0)) > 0.0
    assert np.isfinite(exp32(np.float32(np.inf)))
    assert np.isnan(exp32(np.float32(np.nan)))
    assert exp32(np.float32(0.0)) == 1.0


def test_erf_is_within_5e_7_and_one_far_out():
    from scipy.special import erf

    x = np.linspace(-6.0, 6.0, 40_001, dtype=np.float32)
    found = np.array([erf32(value) for value in x], np.float64)
    assert np.abs(found - erf(x.astype(np.float64))).max() < 5e-7
    assert erf32(np.float32(50.0)) == 1.0
    assert erf32(np.float32(-4.0)) == -1.0
    assert np.isnan(erf32(np.float32(np.nan)))


@pytest.mark.parametrize("function", [elementary.exp32, elementary.erf32])
def test_no_double_precision_in_the_code(function):
    compiled = lower(function)
    compiled(np.float32(0.5))
    assert not uses_double(compiled)
