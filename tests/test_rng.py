"""Philox against the known answers of Random123, and what is made of its words."""

import re

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellmark import rng
from bellmark.backend import inline
from bellmark.codegen import lower

# Random123 1.14, tests/kat_vectors, philox4x32 10 rounds: counter, key, result
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]
U32 = st.integers(0, 2**32 - 1)
U64 = st.integers(0, 2**64 - 1)


@pytest.mark.parametrize(("counter", "key", "right"), KNOWN)
def test_philox_gives_the_known_answers(counter, key, right):
    given = [np.uint64(word) for word in (*counter, *key)]
    assert tuple(int(word) for word in rng.philox(*given)) == right
    assert tuple(int(word) for word in lower(rng.philox)(*given)) == right


@given(seed=U64, stream=st.integers(1, 255), lane=U32, step=st.integers(0, 2**63 - 1), draw=st.integers(0, 2**24 - 1))
def test_words_put_seed_in_the_key_and_lane_step_stream_in_the_counter(seed, stream, lane, step, draw):
    counter = (lane, step & 0xFFFFFFFF, step >> 32, stream + 256 * draw)
    key = (seed & 0xFFFFFFFF, seed >> 32)
    assert rng.words(seed, stream, lane, step, draw) == rng.philox(*(np.uint64(word) for word in (*counter, *key)))


def test_words_are_the_same_lowered_and_on_arrays():
    lanes = np.arange(50)
    on_array = np.stack(rng.words(99, rng.STREAM_MARKET, lanes, 7, 0))
    lowered = lower(rng.words)
    one_by_one = np.array([lowered(np.uint64(99), rng.STREAM_MARKET, lane, 7, 0) for lane in lanes]).T
    assert np.array_equal(on_array, one_by_one)
    assert len(np.unique(on_array)) == on_array.size


def test_step_counter_passes_2_to_the_24_and_2_to_the_32():
    """A float32 counter would stick at 2^24 and repeat the same draw for ever."""
    assert np.float32(2**24) + np.float32(1) == np.float32(2**24)
    for first in (2**24 - 1, 2**32 - 1):
        drawn = {tuple(int(word) for word in rng.words(1, rng.STREAM_SAMPLE, 0, first + step, 0)) for step in range(3)}
        assert len(drawn) == 3


def test_streams_are_distinct():
    ids = [value for name, value in vars(rng).items() if name.startswith("STREAM_")]
    assert len(ids) == len(set(ids)) and all(0 < value < 256 for value in ids)


@pytest.mark.parametrize("function", [rng.uniform, lower(rng.uniform), rng.uniform_f32, lower(rng.uniform_f32)])
def test_uniform_is_in_the_half_open_unit_interval(function):
    assert function(np.uint64(0)) == 0.0
    assert function(np.uint64(2**32 - 1)) == 1.0 - 2.0**-24
    assert function(np.uint64(2**31)) == 0.5


@pytest.mark.parametrize("function", [rng.normal, lower(rng.normal), rng.normal_f32, lower(rng.normal_f32)])
def test_normal_of_extreme_words_is_finite(function):
    for first in (0, 2**32 - 1):
        for second in (0, 2**31, 2**32 - 1):
            assert abs(function(np.uint64(first), np.uint64(second))) < 5.8


def test_normal_single_precision_code_holds_no_double():
    normal = lower(rng.normal_f32)

    @inline
    def loop(word_T, y_T):
        for t in range(y_T.size):
            y_T[t] = normal(word_T[t], word_T[t])

    loop.compile((numba.uint64[::1], numba.float32[::1]))
    text = "\n".join(loop.inspect_llvm().values())
    assert "float" in text and not re.search(r"\bdouble\b", text)


def test_normal_has_the_moments_of_the_normal_distribution():
    normal, words = lower(rng.normal), lower(rng.words)

    @inline
    def draw(out_T):
        for t in range(out_T.size):
            w0, w1, _, _ = words(np.uint64(5), 6, 0, t, 0)
            out_T[t] = normal(w0, w1)

    x_T = np.empty(400_000)
    draw(x_T)
    tolerance = 5 / np.sqrt(x_T.size)
    assert abs(x_T.mean()) < tolerance
    assert abs((x_T**2).mean() - 1) < tolerance * np.sqrt(2)
    assert abs((x_T**3).mean()) < tolerance * np.sqrt(15)
    assert abs((x_T**4).mean() - 3) < tolerance * np.sqrt(96)


def test_below_is_uniform_by_chi_square():
    n = 45
    drawn = rng.below(np.concatenate(rng.words(3, rng.STREAM_ACTION, np.arange(50_000), 0, 0)), n)
    count = np.bincount(drawn, minlength=n)
    chi_square = ((count - drawn.size / n) ** 2 / (drawn.size / n)).sum()
    assert drawn.min() == 0 and drawn.max() == n - 1
    assert chi_square < 44 + 5 * np.sqrt(2 * 44)


@given(word=U32, n=st.integers(1, 2**32))
def test_below_stays_below(word, n):
    assert 0 <= int(rng.below(np.uint64(word), n)) < n


@given(a=U64, b=U64)
def test_multiply_high_equals_big_integers(a, b):
    assert int(rng.multiply_high(np.uint64(a), np.uint64(b))) == (a * b) >> 64


@given(word_0=U32, word_1=U32, n=st.integers(1, 2**64 - 1))
def test_below_64_equals_big_integers(word_0, word_1, n):
    assert int(rng.below_64(np.uint64(word_0), np.uint64(word_1), n)) == (((word_1 << 32) | word_0) * n) >> 64
