"""A market whose volatility clusters and whose price jumps, and in which there is nothing to predict: GARCH(1,1) with jumps.

    r[t]   = log(1 + drift) - h[t] / 2 - c + a[t] + J[t],      a[t] = sqrt(h[t]) e[t],      h[t+1] = omega + alpha a[t]^2 + beta h[t]

with e standard normal (Bollerslev 1986, with p = q = 1) and J[t] normal with a chance of `jump_chance`, else 0 (Merton 1976, at most one
jump a bar). h / 2 and c = log E[exp J] take out what a variance adds to a mean, so that E[price[t+1] / price[t] | past] = 1 + drift: with
drift 0 the price is a martingale, whatever is known of volatility and of jumps before. Jumps do not enter h.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bellmark.component import Dataset, component, setting
from bellmark.datasets.synthetic import PIECES, compiled, geometric_bars, log_path, normals, uniforms
from bellmark.errors import UsageError
from bellmark.instrument import Instrument

_LANE_NORMAL, _LANE_JUMP, _LANE_SIZE, _LANE_BEFORE = 0, 1, 2, 3
_BEFORE = 5_000  # bars before the first, so that it starts with a volatility of the long run; 0.99^5000 of the start is left


@component
class GarchJumps(Dataset):
    """GARCH(1,1) volatility with jumps; while drift is 0 no policy earns anything even before costs.

    Doing nothing is best then. With a drift, holding the limit on its side is best for expected profit; for the growth of equity no closed
    form is known. What can be learned is risk: h is a function of past returns. Each bar is the process at 8 moments of equal variance, a
    jump falls before one of them; high and low are the extremes. A bar opens at the close before. Prices are rounded to the tick, the
    process itself is not.
    """

    name: ClassVar[str] = "garch_jumps"
    symbol: str = setting("GARCH", "name of the symbol")
    bars: int = setting(10_000, "bars to make", ge=2, le=50_000_000, unit="bars")
    price: float = setting(100.0, "price at the start", gt=0.0, unit="price")
    drift: float = setting(0.0, "expected simple return of every bar, whatever came before", gt=-1.0, unit="1/bar")
    volatility: float = setting(0.01, "long-run deviation of a bar's log return without jumps", gt=0.0, unit="fraction of price")
    alpha: float = setting(0.08, "weight of the last squared innovation in the variance; 0 = none", ge=0.0, lt=1.0)
    beta: float = setting(0.9, "weight of the last variance; alpha + beta must stay below 1", ge=0.0, lt=1.0)
    jump_chance: float = setting(0.01, "chance of a jump in a bar; 0 = none", ge=0.0, le=1.0)
    jump_mean: float = setting(-0.02, "mean log size of a jump", unit="fraction of price")
    jump_deviation: float = setting(0.03, "standard deviation of a jump's log size", ge=0.0, unit="fraction of price")
    tick_size: float = setting(0.01, "smallest price step", gt=0.0, unit="price")
    contract_multiplier: float = setting(1.0, "value of one price unit of one contract", gt=0.0, unit="currency")
    bar_seconds: int = setting(86_400, "length of a bar, around the clock from 2020-01-01 UTC", ge=1, unit="s")
    seed: int = setting(1, "seed of the path", ge=0)

    def __post_init__(self) -> None:
        if not self.alpha + self.beta < 1:
            raise UsageError(f"data: expected alpha + beta below 1, found {self.alpha:g} + {self.beta:g}: the variance has no long run")

    @property
    def omega(self) -> float:
        """The constant of the variance: volatility^2 (1 - alpha - beta)."""
        return self.volatility**2 * (1 - self.alpha - self.beta)

    @property
    def jump_compensation(self) -> float:
        """c = log(1 + jump_chance (exp(jump_mean + jump_deviation^2 / 2) - 1)): what jumps add to the expected return."""
        return float(np.log1p(self.jump_chance * np.expm1(self.jump_mean + 0.5 * self.jump_deviation**2)))

    @property
    def kurtosis(self) -> float:
        """E a^4 / (E a^2)^2 of the innovations: 3 (1 - s^2) / (1 - s^2 - 2 alpha^2), s = alpha + beta; infinite if that is not above 0."""
        room = 1 - (self.alpha + self.beta) ** 2
        return 3 * room / (room - 2 * self.alpha**2) if room > 2 * self.alpha**2 else float("inf")

    def squared_autocorrelation(self, lag: int) -> float:
        """Correlation of a[t]^2 and a[t - lag]^2 if kurtosis is finite: s^(lag - 1) alpha (1 - beta s) / (1 - 2 alpha beta - beta^2)."""
        if lag < 1 or self.kurtosis == float("inf"):
            found = f"{lag} and {self.kurtosis:g}"
            raise UsageError(f"squared_autocorrelation: expected a lag of at least 1 and a finite kurtosis, found {found}")
        total = self.alpha + self.beta
        return total ** (lag - 1) * self.alpha * (1 - self.beta * total) / (1 - 2 * self.alpha * self.beta - self.beta**2)

    def truth(self) -> dict[str, NDArray[Any]]:
        """Of each bar, unrounded: `variance` (h, known one bar before), `innovation` (a), `jump` (J, 0 = none) and `log_return`."""
        level_TK, start_T, variance_T, innovation_T, jump_TK = self._path()
        return {
            "variance": variance_T, "innovation": innovation_T, "jump": jump_TK.sum(axis=1), "log_return": level_TK[:, -1] - start_T,
        }  # fmt: skip

    def read(self) -> list[Any]:
        """Bars and instrument of the one symbol."""
        level_TK, start_T, *_ = self._path()
        return [(geometric_bars(self, level_TK, start_T), Instrument(self.symbol, self.tick_size, self.contract_multiplier))]

    def _path(self) -> tuple[NDArray[np.float64], ...]:
        normal_TK = normals(self.seed, _LANE_NORMAL, self.bars, PIECES)
        e_T = normal_TK.sum(axis=1) / PIECES**0.5
        variance_T = np.empty(self.bars)
        before_T = normals(self.seed, _LANE_BEFORE, _BEFORE, 1)[:, 0]
        compiled(_garch)(self.volatility**2, self.omega, self.alpha, self.beta, before_T, e_T, variance_T)
        jump_TK = self._jumps()
        mean_T = np.log1p(self.drift) - 0.5 * variance_T - self.jump_compensation
        deviation_T = np.sqrt(variance_T)
        level_TK, start_T = log_path(mean_T, deviation_T, jump_TK, normal_TK)
        return level_TK, start_T, variance_T, deviation_T * e_T, jump_TK

    def _jumps(self) -> NDArray[np.float64]:
        """The jump in each of a bar's parts, at most one a bar; one uniform number says whether and before which."""
        jump_TK = np.zeros((self.bars, PIECES))
        if self.jump_chance == 0.0:
            return jump_TK
        uniform_T = uniforms(self.seed, _LANE_JUMP, self.bars)[:, 0]
        at = np.flatnonzero(uniform_T < self.jump_chance)
        piece = np.minimum((uniform_T[at] / self.jump_chance * PIECES).astype(np.int64), PIECES - 1)
        jump_TK[at, piece] = self.jump_mean + self.jump_deviation * normals(self.seed, _LANE_SIZE, self.bars, 1)[at, 0]
        return jump_TK


def _garch(long_run, omega, alpha, beta, before_T, e_T, variance_T):
    variance = long_run
    for t in range(before_T.shape[0]):
        variance = omega + (alpha * before_T[t] * before_T[t] + beta) * variance
    for t in range(e_T.shape[0]):
        variance_T[t] = variance
        variance = omega + (alpha * e_T[t] * e_T[t] + beta) * variance
