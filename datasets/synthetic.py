"""What the synthetic markets share: normal and uniform numbers by the counter, and bars of a path."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellmark.rng import STREAM_MARKET, normal, uniform, words


@lru_cache
def compiled(function: Callable[..., Any]) -> Any:
    """A kernel, compiled at its first use: importing a dataset must not import Numba."""
    from bellmark.backend import compile as compile_kernel

    return compile_kernel(function)


def _normals(seed, lane, out_TD):
    # two normal numbers a pair of words, four words a draw
    for t in range(out_TD.shape[0]):
        for d in range(0, out_TD.shape[1], 2):
            w0, w1, w2, w3 = words(seed, STREAM_MARKET, lane, t, d // 2)
            out_TD[t, d] = normal(w0, w1)
            if d + 1 < out_TD.shape[1]:
                out_TD[t, d + 1] = normal(w2, w3)


def _uniforms(seed, lane, out_T):
    for t in range(out_T.shape[0]):
        w0, _, _, _ = words(seed, STREAM_MARKET, lane, t, 0)
        out_T[t] = uniform(w0)


def normals(seed: int, lane: int, bars: int, draws: int) -> NDArray[np.float64]:
    """Standard normal numbers (bars, draws) of a seed: the same on every machine."""
    out_TD = np.empty((bars, draws))
    compiled(_normals)(np.uint64(seed), lane, out_TD)
    return out_TD


def uniforms(seed: int, lane: int, bars: int) -> NDArray[np.float64]:
    """Uniform numbers in [0, 1) of a seed. Take another lane than for `normals`."""
    out_T = np.empty(bars)
    compiled(_uniforms)(np.uint64(seed), lane, out_T)
    return out_T


def path_bars(level_TK: NDArray[np.float64], start_T: NDArray[np.float64], tick_size: float) -> dict[str, NDArray[np.float64]]:
    """Open, high, low and close of a path observed K times a bar: rounded to the tick, the highest and lowest of start and observations.

    start_T is the level at which each bar opens; the last observation is its close.
    """
    per_point = 1.0 / tick_size

    def on_tick(level: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.rint(level * per_point) * tick_size

    open_T, point_TK = on_tick(start_T), on_tick(level_TK)
    return {
        "open": open_T,
        "high": np.maximum(open_T, point_TK.max(axis=1)),
        "low": np.minimum(open_T, point_TK.min(axis=1)),
        "close": point_TK[:, -1].copy(),
    }
