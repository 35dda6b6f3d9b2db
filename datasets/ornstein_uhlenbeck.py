"""A mean-reverting market whose best policy is known: the Ornstein-Uhlenbeck process with proportional costs.

Level between bars: x[t+1] = phi x[t] + sigma e[t], price = mean + x. A position n held over a bar earns n (x[t+1] - x[t]); changing it
costs `cost` a unit. With |n| <= limit the best policy is a no-trade band: short the limit above b, long the limit below -b, unchanged
between.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bellmark.bars import Bars, check
from bellmark.component import Dataset, component, setting
from bellmark.datasets.synthetic import PIECES, around_the_clock, compiled, normals, path_bars
from bellmark.errors import DataError, UsageError
from bellmark.instrument import Instrument
from bellmark.math import exp

_LANE = 0
_LN_2 = 0.6931471805599453
_WIDEST = 100  # sigma


@component
class OrnsteinUhlenbeck(Dataset):
    """Ornstein-Uhlenbeck prices, whose best trading policy after costs is known exactly.

    x[t+1] = phi x[t] + sigma e[t] with phi = 2^(-1 / half_life), price = mean + x, started in its stationary state. This is exact and
    no Euler step. Each bar is the process at 8 moments; high and low are its extremes over them. A bar opens at the close before, so an
    order decided at a close fills at that price, less costs. Prices are rounded to the tick, the process itself is not.
    """

    name: ClassVar[str] = "ornstein_uhlenbeck"
    symbol: str = setting("OU", "name of the symbol")
    bars: int = setting(20_000, "bars to make", ge=2, le=50_000_000, unit="bars")
    mean: float = setting(100.0, "level to which the price returns", unit="price")
    half_life: float = setting(20.0, "bars in which half of a deviation goes", gt=0.0, unit="bars")
    volatility: float = setting(0.5, "standard deviation of one bar's innovation", gt=0.0, unit="price")
    tick_size: float = setting(0.01, "smallest price step", gt=0.0, unit="price")
    contract_multiplier: float = setting(1.0, "value of one price unit of one contract", gt=0.0, unit="currency")
    bar_seconds: int = setting(3600, "length of a bar, around the clock from 2020-01-01 UTC", ge=1, unit="s")
    seed: int = setting(1, "seed of the path", ge=0)

    @property
    def phi(self) -> float:
        """What is left of a deviation after one bar."""
        return float(exp(-_LN_2 / self.half_life))

    def best_policy(self, cost: float, position_limit: float = 1.0) -> NoTradeBand:
        """The exact no-trade band of this market; `cost` in price units for one unit traded (half spread + slippage + fee)."""
        return no_trade_band(self.phi, self.volatility, cost, position_limit)

    def truth(self) -> dict[str, NDArray[np.float64]]:
        """`level` (bars): x at each close, unrounded; the price is mean + x."""
        return {"level": self._path()[1][:, -1].copy()}

    def read(self) -> list[Any]:
        """Bars and instrument of the one symbol."""
        start_T, level_TK = self._path()
        prices = path_bars(level_TK + self.mean, start_T + self.mean, self.tick_size)
        lowest = float(prices["low"].min())
        if lowest <= 0:
            raise DataError(f"data: the path falls to {lowest:g}; take a mean above {self.mean - lowest:g} or a smaller volatility")
        ts_T = around_the_clock(self.bars, self.bar_seconds)
        bars = Bars.from_prices(self.symbol, ts_T, prices, np.full(self.bars, 1000.0), self.name)
        check(bars)
        return [(bars, Instrument(self.symbol, self.tick_size, self.contract_multiplier))]

    def _path(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        piece_phi = float(exp(-_LN_2 / (self.half_life * PIECES)))
        # eight pieces make exactly one bar: sigma^2 = piece^2 (1 - phi^2) / (1 - piece_phi^2)
        piece_sigma = self.volatility * np.sqrt((1 - piece_phi**2) / (1 - self.phi**2))
        level_TK = normals(self.seed, _LANE, self.bars + 1, PIECES)
        first = float(level_TK[0, 0]) * self.volatility / np.sqrt(1 - self.phi**2)
        start_T = np.empty(self.bars)
        level_TK = level_TK[1:].copy()
        compiled(_walk)(first, piece_phi, piece_sigma, level_TK, start_T)
        return start_T, level_TK


def _walk(first, phi, sigma, level_TK, start_T):
    # level_TK comes in as standard normal numbers and leaves as the path
    x = first
    for t in range(level_TK.shape[0]):
        start_T[t] = x
        for k in range(level_TK.shape[1]):
            x = phi * x + sigma * level_TK[t, k]
            level_TK[t, k] = x


@dataclass(frozen=True)
class NoTradeBand:
    """The best policy of an Ornstein-Uhlenbeck market and what it earns.

    band: distance from the mean beyond which the position is at its limit against the deviation. mean_profit: long-run profit a bar after
    costs, price units times position. gross_profit: before costs. reversals: changes of side a bar. tolerance: of the band, relative.
    """

    band: float
    mean_profit: float
    gross_profit: float
    reversals: float
    tolerance: float


def no_trade_band(phi: float, sigma: float, cost: float, position_limit: float = 1.0) -> NoTradeBand:
    """The exact no-trade band of x[t+1] = phi x[t] + sigma e[t] for a cost of `cost` a unit traded and |position| <= position_limit.

    Profit and cost are linear in the position, so each unit of it is its own two-sided switch and only the limits are held. Let
    D(x) be the value of entering a bar long rather than short and W(x) the same after the choice of side at x:

        W(x) = -2 (1 - phi) x + E[D(phi x + sigma e)],   D = W held to [-2 cost, 2 cost],   band: W(b) = -2 cost.

    (Average-reward dynamic programming; the average itself cancels.) Between -b and b D = W, outside it is constant, so W solves a linear
    integral equation there. It is solved by Nystrom's method on Gauss-Legendre nodes, six or more to a sigma, with the exact normal tails,
    and b by bisection; both converge spectrally, and the change from two thirds of the nodes bounds the error. Cost 0 gives band 0. A band
    above 100 sigma is refused.
    """
    if not 0.0 <= phi < 1.0 or sigma <= 0.0 or cost < 0.0 or position_limit <= 0.0:
        raise UsageError(
            "no_trade_band: expected 0 <= phi < 1, sigma > 0, cost >= 0 and position_limit > 0, "
            f"found {phi}, {sigma}, {cost}, {position_limit}"
        )
    scaled = cost / sigma  # in units of sigma
    band = _solve(phi, scaled, 1.0)
    tolerance = abs(band - _solve(phi, scaled, 2 / 3)) / band if band > 0 else 0.0
    net, gross, reversals = band_profit(phi, sigma, cost, band * sigma, position_limit)
    return NoTradeBand(band * sigma, net, gross, reversals, max(tolerance, 1e-12))


def _nodes(band: float, share: float = 1.0) -> int:
    # The kernel is as wide as sigma, whatever the band: fewer nodes would not see it and agree on a wrong answer.
    return 16 * round((2 + 6 * band / 16) * share + 0.5)


@lru_cache(maxsize=64)
def _gauss(nodes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.polynomial.legendre.leggauss(nodes)


def _solve(phi: float, cost: float, share: float) -> float:
    from scipy.optimize import brentq

    if cost == 0.0:
        return 0.0

    def excess(band: float) -> float:
        return _value_at_band(phi, cost, band, _nodes(band, share)) + 2 * cost

    upper = 0.01
    while excess(upper) > 0:
        upper *= 2
        if upper > _WIDEST:
            raise UsageError(f"no_trade_band: the cost of {cost:g} sigma is too large: the band is above {_WIDEST} sigma")
    return float(brentq(excess, 0.0, upper, xtol=1e-13, rtol=1e-13))


def _value_at_band(phi: float, cost: float, band: float, nodes: int) -> float:
    from scipy.special import ndtr

    point, weight = (part * band for part in _gauss(nodes))

    def outside(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return -2 * cost * ndtr(phi * x - band) + 2 * cost * ndtr(-band - phi * x)

    at = np.append(point, band)
    kernel = _density(point[None, :] - phi * at[:, None]) * weight[None, :]
    right = -2 * (1 - phi) * at + outside(at)
    inner = np.linalg.solve(np.eye(nodes) - kernel[:nodes], right[:nodes])
    return float(right[nodes] + kernel[nodes] @ inner)


def _density(z: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)


def band_profit(phi: float, sigma: float, cost: float, band: float, position_limit: float = 1.0) -> tuple[float, float, float]:
    """Exact long-run profit a bar of any band policy: after costs, before costs, and reversals a bar.

    theta(x) is the chance of being long after the choice at x in the stationary state: 1 below -band, 0 above band, and, the process being
    reversible, theta(x) = P(next <= -band | x) + E[theta(next); |next| < band | x] between. Then with the stationary density pi
    gross = E[(2 theta - 1)(-(1 - phi) x)], reversals = 2 E[P(long before | x); x >= band], net = gross - 2 cost reversals.
    """
    from scipy.special import ndtr

    deviation, b = 1 / np.sqrt(1 - phi * phi), band / sigma
    inner_x, inner_w = (part * b for part in _gauss(_nodes(b)))

    def stay(at: NDArray[np.float64]) -> NDArray[np.float64]:
        return _density(inner_x[None, :] - phi * at[:, None]) * inner_w[None, :]

    theta = np.linalg.solve(np.eye(len(inner_x)) - stay(inner_x), ndtr(-b - phi * inner_x))
    stationary = _density(inner_x / deviation) / deviation
    gross = float(np.sum(inner_w * stationary * (2 * theta - 1) * -(1 - phi) * inner_x))
    gross += 2 * (1 - phi) * deviation**2 * float(_density(np.array(b / deviation))) / deviation
    # Beyond 9 sigma above the band, or 10 deviations, it was no longer long.
    half = min(10 * deviation, (b + 9) / phi - b if phi > 0 else np.inf) / 2
    point, weight = _gauss(_nodes(half))
    outer_x, outer_w = b + (point + 1) * half, weight * half
    long_before = ndtr(-b - phi * outer_x) + stay(outer_x) @ theta
    reversals = 2 * float(np.sum(outer_w * _density(outer_x / deviation) / deviation * long_before))
    net = gross * sigma - 2 * cost * reversals
    return float(net * position_limit), float(gross * sigma * position_limit), reversals
