"""What the synthetic markets share: normal and uniform numbers by the counter, stamps, and bars of a path."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellmark import clock
from bellmark.bars import Bars, check
from bellmark.errors import DataError, UsageError
from bellmark.instrument import Session
from bellmark.math import exp
from bellmark.rng import STREAM_MARKET, normal, uniform, words

PIECES = 8  # observations of the path in a bar of a market around the clock
YEAR_SECONDS = 365 * 86_400
_START = 1_577_836_800 * clock.SECOND  # 2020-01-01
_VOLUME = 1000.0


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


def _uniforms(seed, lane, out_TD):
    for t in range(out_TD.shape[0]):
        for d in range(0, out_TD.shape[1], 4):
            four = words(seed, STREAM_MARKET, lane, t, d // 4)
            for place in range(min(4, out_TD.shape[1] - d)):
                out_TD[t, d + place] = uniform(four[place])


def _exponential(price, log_TK):
    for t in range(log_TK.shape[0]):
        for k in range(log_TK.shape[1]):
            log_TK[t, k] = price * exp(log_TK[t, k])


def normals(seed: int, lane: int, bars: int, draws: int) -> NDArray[np.float64]:
    """Standard normal numbers (bars, draws) of a seed: the same on every machine."""
    out_TD = np.empty((bars, draws))
    compiled(_normals)(np.uint64(seed), lane, out_TD)
    return out_TD


def uniforms(seed: int, lane: int, bars: int, draws: int = 1) -> NDArray[np.float64]:
    """Uniform numbers (bars, draws) in [0, 1) of a seed. Take another lane than for `normals`."""
    out_TD = np.empty((bars, draws))
    compiled(_uniforms)(np.uint64(seed), lane, out_TD)
    return out_TD


def exponential(price: float, log_TK: NDArray[np.float64]) -> NDArray[np.float64]:
    """price * exp(log_TK), by our own exponential: NumPy's differs between processors."""
    out_TK = log_TK.copy()
    compiled(_exponential)(price, out_TK)
    return out_TK


def log_path(
    mean_T: NDArray[np.float64], deviation_T: NDArray[np.float64], jump_TK: NDArray[np.float64] | float, normal_TK: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Logarithm of a price from 0 on, at K moments of each bar (T, K) and at each open (T).

    A bar's change is normal with that bar's mean and deviation, made of K independent parts, and jumps as said.
    """
    pieces = normal_TK.shape[1]
    change_TK = (mean_T / pieces)[:, None] + (deviation_T / pieces**0.5)[:, None] * normal_TK + jump_TK
    level_TK = np.cumsum(change_TK.reshape(-1)).reshape(change_TK.shape)
    return level_TK, np.concatenate([[0.0], level_TK[:-1, -1]])


def around_the_clock(bars: int, bar_seconds: int) -> NDArray[np.int64]:
    """Closes of bars without a session, from 2020-01-01 UTC on; a stamp holds no year after 2262."""
    if bars * bar_seconds > (2**63 - 1 - _START) // clock.SECOND:
        raise UsageError(f"data: {bars} bars of {bar_seconds} s from 2020 on end after the year 2262; take fewer or a smaller bar_seconds")
    return _START + (np.arange(bars, dtype=np.int64) + 1) * bar_seconds * clock.SECOND


def session_stamps(session: Session, start: str, sessions: int) -> NDArray[np.int64]:
    """Closes of the minutes of every weekday's session from the ISO date `start` on; no holidays, no half days."""
    try:
        day = date.fromisoformat(start)
    except ValueError:
        raise UsageError(f"data.start: expected an ISO date such as 2020-01-02, found {start!r}") from None
    days: list[int] = []
    while len(days) < sessions:
        if day.weekday() < 5:
            days.append((day - date(1970, 1, 1)).days)
        day += timedelta(days=1)
    # An overnight session is named after the day on which it closes.
    overnight = session.open_seconds + session.length_seconds > 86_400
    opens_S = (np.array(days, np.int64) - overnight) * clock.DAY + session.open_seconds * clock.SECOND
    minutes_M = np.arange(session.length_seconds // 60, dtype=np.int64) + 1
    return clock.to_utc((opens_S[:, None] + minutes_M[None, :] * 60 * clock.SECOND).reshape(-1), session.zone)[0]


def session_smile(minutes: int) -> NDArray[np.float64]:
    """Relative deviation of each minute of a session: 1.6 at its ends, 0.8 in its middle, a fourth power between."""
    place = (np.arange(minutes) + 0.5) / minutes
    return 0.8 + 0.8 * (2 * place - 1) ** 4


def geometric_bars(market: Any, level_TK: NDArray[np.float64], start_T: NDArray[np.float64]) -> Bars:
    """Checked bars around the clock of a path of log_path, 1000 units of volume each; a path that falls to nothing is refused.

    `market` is a component with the settings name, symbol, price, tick_size and bar_seconds.
    """
    tick = market.tick_size
    prices = path_bars(exponential(market.price, level_TK), exponential(market.price, start_T[:, None])[:, 0], tick)
    if float(prices["low"].min()) <= 0:
        raise DataError(f"data: the path falls below half a tick of {tick:g}; take a price above {market.price:g} or a smaller tick_size")
    ts_T = around_the_clock(len(start_T), market.bar_seconds)
    bars = Bars.from_prices(market.symbol, ts_T, prices, np.full(len(start_T), _VOLUME), market.name)
    check(bars)
    return bars


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
