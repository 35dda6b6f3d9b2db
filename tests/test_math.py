"""bellmark.math against mpmath, its special values, and its types."""

import functools
import re

import mpmath
import numba
import numpy as np
import pytest

from bellmark import math as own
from bellmark.backend import inline
from bellmark.codegen import lower as lower_anew

mpmath.mp.prec = 160
TWO_PI = 2 * mpmath.pi
REFERENCE = {
    "exp": mpmath.exp,
    "expm1": mpmath.expm1,
    "log": mpmath.log,
    "log1p": mpmath.log1p,
    "tanh": mpmath.tanh,
    "sqrt": mpmath.sqrt,
    "sin_turn": lambda u: mpmath.sin(TWO_PI * u),
    "cos_turn": lambda u: mpmath.cos(TWO_PI * u),
}
GENERATOR = np.random.default_rng(7)
WIDE = np.concatenate([GENERATOR.uniform(-750, 715, 800), GENERATOR.normal(0, 1, 800), GENERATOR.normal(0, 1e-6, 200)])
INPUT = {
    "exp": WIDE,
    "expm1": WIDE,
    "log": np.concatenate([np.exp(GENERATOR.uniform(-744, 709, 800)), GENERATOR.uniform(0.5, 2, 800), 1 + GENERATOR.normal(0, 1e-5, 200)]),
    "log1p": np.concatenate([np.exp(GENERATOR.uniform(-40, 709, 800)), GENERATOR.uniform(-0.9999, 2, 800), GENERATOR.normal(0, 1e-5, 200)]),
    "tanh": np.concatenate([GENERATOR.uniform(-25, 25, 800), GENERATOR.normal(0, 0.5, 800), GENERATOR.normal(0, 1e-6, 200)]),
    "sqrt": np.exp(GENERATOR.uniform(-744, 709, 800)),
    "sin_turn": GENERATOR.uniform(-2, 2, 800),
    "cos_turn": GENERATOR.uniform(-2, 2, 800),
}
SINGLE = ("exp_f32", "log_f32", "tanh_f32", "sqrt_f32", "sin_turn_f32", "cos_turn_f32")


lower = functools.cache(lower_anew)


@functools.cache
def on_array(function):
    one = lower(function)

    @inline
    def loop(x_T, y_T):
        for t in range(x_T.size):
            y_T[t] = one(x_T[t])

    def run(x_T):
        y_T = np.empty_like(x_T)
        loop(x_T, y_T)
        return y_T

    return run


def ulps(got, right, dtype):
    """Distance in units in the last place of the rounded right value."""
    with np.errstate(over="ignore"):
        rounded = dtype(float(right))
    if got == rounded or (np.isnan(got) and np.isnan(rounded)):
        return 0.0
    if not np.isfinite(got) or not np.isfinite(rounded):
        return np.inf
    return float(abs(mpmath.mpf(float(got)) - right) / mpmath.mpf(float(np.spacing(abs(rounded)))))


@pytest.mark.parametrize("name", sorted(REFERENCE))
def test_float64_is_within_two_ulp_of_mpmath(name):
    x_T = INPUT[name]
    got_T = on_array(getattr(own, name))(x_T)
    assert max(ulps(got, REFERENCE[name](mpmath.mpf(float(x))), np.float64) for x, got in zip(x_T, got_T, strict=True)) <= 2.0


@pytest.mark.parametrize("name", ["exp_f32", "log_f32", "tanh_f32"])
def test_float32_is_within_two_ulp_over_all_bit_patterns_sampled(name):
    """Every 257th of the 2^32 patterns, against NumPy in float64, whose own error is 1e-9 of a float32 place."""
    bits = np.arange(0, 2**32, 257, dtype=np.uint64).astype(np.uint32)
    x_T = bits.view(np.float32)
    got_T = on_array(getattr(own, name))(x_T)
    with np.errstate(all="ignore"):
        right_T = getattr(np, name.removesuffix("_f32"))(x_T.astype(np.float64))
        rounded_T = right_T.astype(np.float32)
        same_T = (got_T == rounded_T) | (np.isnan(got_T) & np.isnan(rounded_T))
        off_T = np.abs(got_T.astype(np.float64) - right_T) / np.spacing(np.abs(rounded_T)).astype(np.float64)
    assert np.all(same_T | (off_T <= 2.0))
    assert np.array_equal(np.isnan(got_T), np.isnan(right_T))


@pytest.mark.parametrize("name", ["exp_f32", "log_f32", "tanh_f32"])
def test_float32_is_within_two_ulp_of_mpmath_where_rounding_is_hard(name):
    edges = [np.linspace(0.62, 0.63, 200), np.linspace(88, 88.8, 100), np.linspace(-104, -87, 200)]
    x_T = np.concatenate([GENERATOR.normal(0, 1, 400), *edges])
    x_T = np.abs(x_T).astype(np.float32) if name == "log_f32" else x_T.astype(np.float32)
    got_T = on_array(getattr(own, name))(x_T)
    reference = REFERENCE[name.removesuffix("_f32")]
    assert max(ulps(got, reference(mpmath.mpf(float(x))), np.float32) for x, got in zip(x_T, got_T, strict=True)) <= 2.0


@pytest.mark.parametrize("name", ["sin_turn_f32", "cos_turn_f32"])
def test_float32_turns_are_within_two_spacings_of_one(name):
    u_T = (np.arange(0, 2**24, 37) * 2.0**-24).astype(np.float32)
    right_T = {"sin_turn_f32": np.sin, "cos_turn_f32": np.cos}[name](2 * np.pi * u_T.astype(np.float64))
    assert np.abs(on_array(getattr(own, name))(u_T) - right_T).max() <= 2 * 2.0**-23


@pytest.mark.parametrize(
    ("name", "given", "right"),
    [
        ("exp", np.inf, np.inf), ("exp", -np.inf, 0.0), ("exp", 0.0, 1.0), ("exp", 710.0, np.inf), ("exp", -746.0, 0.0),
        ("exp", -745.0, 5e-324), ("expm1", -np.inf, -1.0), ("expm1", np.inf, np.inf), ("expm1", -0.0, -0.0), ("expm1", 5e-324, 5e-324),
        ("log", 0.0, -np.inf), ("log", -0.0, -np.inf), ("log", -1.0, np.nan), ("log", np.inf, np.inf), ("log", 1.0, 0.0),
        ("log", 5e-324, -744.4400719213812), ("log", -np.inf, np.nan), ("log1p", -1.0, -np.inf), ("log1p", -2.0, np.nan),
        ("log1p", -0.0, -0.0), ("log1p", np.inf, np.inf), ("tanh", np.inf, 1.0), ("tanh", -np.inf, -1.0), ("tanh", -0.0, -0.0),
        ("tanh", 1e300, 1.0), ("sqrt", 4.0, 2.0), ("sqrt", 0.0, 0.0), ("sin_turn", 0.25, 1.0), ("sin_turn", 0.5, 0.0),
        ("cos_turn", 0.25, 0.0), ("cos_turn", 0.5, -1.0), ("cos_turn", 0.0, 1.0),
    ],
)  # fmt: skip
def test_special_value_follows_ieee(name, given, right):
    for function in (getattr(own, name), lower(getattr(own, name))):
        got = function(np.float64(given))
        assert np.array_equal(got, right, equal_nan=True)
        assert np.isnan(right) or abs(right) == 0.0 and name.endswith("turn") or np.signbit(got) == np.signbit(right)


@pytest.mark.parametrize(
    ("name", "given", "right"),
    [
        ("exp_f32", np.inf, np.inf), ("exp_f32", -np.inf, 0.0), ("exp_f32", 89.0, np.inf), ("exp_f32", -104.0, 0.0),
        ("exp_f32", -103.9, 1e-45), ("log_f32", 0.0, -np.inf), ("log_f32", -1.0, np.nan), ("log_f32", np.inf, np.inf),
        ("log_f32", 1e-45, -103.27893), ("tanh_f32", -0.0, -0.0), ("tanh_f32", np.inf, 1.0), ("tanh_f32", -3e38, -1.0),
    ],
)  # fmt: skip
def test_special_value_in_single_precision_follows_ieee(name, given, right):
    for function in (getattr(own, name), lower(getattr(own, name))):
        got = np.float32(function(np.float32(given)))
        assert np.array_equal(got, np.float32(right), equal_nan=True)


@pytest.mark.parametrize("name", [*sorted(REFERENCE), *SINGLE])
def test_nan_travels(name):
    kind = np.float32 if name.endswith("f32") else np.float64
    assert np.isnan(getattr(own, name)(kind(np.nan)))
    assert np.isnan(on_array(getattr(own, name))(np.array([np.nan], dtype=kind))[0])


def test_tanh_stays_finite_where_the_quotient_of_exponentials_is_nan():
    """The old formula (e^2x - 1) / (e^2x + 1) is Inf / Inf from 45 on in float32."""
    x = np.float32(50.0)
    with np.errstate(all="ignore"):
        e = np.exp(np.float32(2) * x)
        assert np.isnan((e - np.float32(1)) / (e + np.float32(1)))
    assert own.tanh_f32(x) == 1.0
    every_bf16 = (np.arange(65536, dtype=np.uint32) << np.uint32(16)).view(np.float32)
    got = on_array(own.tanh_f32)(every_bf16)
    assert np.array_equal(np.isnan(got), np.isnan(every_bf16))
    assert np.all(np.abs(got[~np.isnan(got)]) <= 1.0)


@pytest.mark.parametrize("name", SINGLE)
def test_single_precision_code_holds_no_double(name):
    one = lower(getattr(own, name))

    @inline
    def loop(x_T, y_T):
        for t in range(x_T.size):
            y_T[t] = one(x_T[t])

    loop.compile((numba.float32[::1], numba.float32[::1]))
    assert one.nopython_signatures[0].return_type == numba.float32
    text = "\n".join(loop.inspect_llvm().values())
    assert "float" in text and not re.search(r"\bdouble\b", text)


@pytest.mark.parametrize("name", [*sorted(REFERENCE), *SINGLE])
def test_plain_python_gives_the_bits_of_lowered_code(name):
    kind = np.float32 if name.endswith("f32") else np.float64
    with np.errstate(over="ignore"):
        x_T = np.abs(INPUT[name.removesuffix("_f32")][::40]).astype(kind)
        plain_T = np.array([getattr(own, name)(x) for x in x_T], dtype=kind)
    assert plain_T.tobytes() == on_array(getattr(own, name))(x_T).tobytes()
