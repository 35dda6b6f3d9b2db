"""Random numbers without state: Philox4x32-10, a function of (seed, stream, lane, step) and nothing else.

Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). Key = the 64-bit seed of a learner, low word
first; counter = (lane, low word of step, high word of step, stream + 256 * draw). So a lane has the same numbers on every backend, with any
number of threads and of learners, and a step taken again gives the same draw. `draw` numbers further blocks of the same (lane, step).

All arithmetic is in uint64 with masks, so the functions run in Numba and in plain Python, and (up to `normal`) on whole NumPy arrays.
"""

import numpy as np

from bellmark.math import cos_turn, cos_turn_f32, log, log_f32, sqrt, sqrt_f32

# A stream is one purpose. Ids are part of the reproducibility promise: never renumber, only add.
STREAM_INIT = 1  # initial weights
STREAM_EPISODE = 2  # symbol and first bar of an episode
STREAM_ACTION = 3  # exploration: explore or not, and which action
STREAM_SAMPLE = 4  # replay sampling
STREAM_NOISE = 5  # noisy layers
STREAM_MARKET = 6  # synthetic markets
STREAM_STRATEGY = 7  # rule strategies that draw (random)
STREAM_BOOTSTRAP = 8  # resampling in evaluation
STREAM_QUANTILE = 9  # quantile fractions of IQN

_MASK = np.uint64(0xFFFFFFFF)
_WORD = np.uint64(32)
_MULTIPLIER_0, _MULTIPLIER_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL_0, _WEYL_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_DRAW_SHIFT = np.uint64(8)
_UNIFORM_SHIFT = np.uint64(8)
_UNIFORM_UNIT = np.float64(2.0**-24)
_UNIFORM_UNIT_F32 = np.float32(2.0**-24)
_ONE, _MINUS_TWO = np.float64(1.0), np.float64(-2.0)
_ONE_F32, _MINUS_TWO_F32 = np.float32(1.0), np.float32(-2.0)


def philox(c0, c1, c2, c3, k0, k1):
    """Four random words of a counter (four words) and a key (two words); all are uint64 below 2^32."""
    for _ in range(10):
        p0 = _MULTIPLIER_0 * c0
        p1 = _MULTIPLIER_1 * c2
        c0 = (p1 >> _WORD) ^ c1 ^ k0
        c1 = p1 & _MASK
        c2 = (p0 >> _WORD) ^ c3 ^ k1
        c3 = p0 & _MASK
        k0 = (k0 + _WEYL_0) & _MASK
        k1 = (k1 + _WEYL_1) & _MASK
    return c0, c1, c2, c3


def words(seed, stream, lane, step, draw):
    """Four random words (uint64 below 2^32) of a purpose, a lane and a step. `lane` counts inside the learner; `draw` starts at 0."""
    seed = np.uint64(seed)
    step = np.uint64(step)
    tag = np.uint64(stream) + (np.uint64(draw) << _DRAW_SHIFT)
    return philox(np.uint64(lane) & _MASK, step & _MASK, step >> _WORD, tag & _MASK, seed & _MASK, seed >> _WORD)


def uniform(word):
    """Uniform in [0, 1) from one word: its upper 24 bits times 2^-24, float64 (exact in float32 too)."""
    return np.float64(word >> _UNIFORM_SHIFT) * _UNIFORM_UNIT


def uniform_f32(word):
    """Uniform in [0, 1) from one word: its upper 24 bits times 2^-24, float32."""
    return np.float32(word >> _UNIFORM_SHIFT) * _UNIFORM_UNIT_F32


def below(word, n):
    """A whole number in [0, n) from one word, int64: (word * n) >> 32, for 1 <= n <= 2^32.

    Multiply-shift without rejection, so that one draw costs one word always: some values are likelier than others by at most n / 2^32
    (n = 45: 1e-8). For n beyond a million take `below_64`.
    """
    return np.int64((word * np.uint64(n)) >> _WORD)


def below_64(word_0, word_1, n):
    """A whole number in [0, n) from two words, uint64, for 1 <= n < 2^64: the high half of a 64 by 64 bit product, bias n / 2^64."""
    return multiply_high((word_1 << _WORD) | word_0, np.uint64(n))


def multiply_high(a, b):
    """The upper 64 bits of the 128-bit product of two uint64."""
    a0, a1 = a & _MASK, a >> _WORD
    b0, b1 = b & _MASK, b >> _WORD
    middle = a1 * b0 + ((a0 * b0) >> _WORD)
    other = a0 * b1 + (middle & _MASK)
    return a1 * b1 + (middle >> _WORD) + (other >> _WORD)


def normal(word_0, word_1):
    """A standard normal number from two words, float64, by Box and Muller (1958) with our log and cosine.

    The radius takes 1 - u in (0, 1], so every word gives a finite number; the largest deviation is 5.77.
    """
    return sqrt(_MINUS_TWO * log(_ONE - uniform(word_0))) * cos_turn(uniform(word_1))


def normal_f32(word_0, word_1):
    """A standard normal number from two words, float32; see `normal`."""
    return sqrt_f32(_MINUS_TWO_F32 * log_f32(_ONE_F32 - uniform_f32(word_0))) * cos_turn_f32(uniform_f32(word_1))
