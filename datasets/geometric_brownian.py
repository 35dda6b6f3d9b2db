"""A market without memory whose best exposure is known: geometric Brownian motion.

    dS = drift S dt + volatility S dW,   log S[t+1] = log S[t] + (drift - volatility^2 / 2) / P + volatility / sqrt(P) e[t]

with P bars a year and e standard normal. Nothing predicts the next return; what there is to find is how much to hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bellmark.component import Dataset, component, setting
from bellmark.datasets.synthetic import PIECES, YEAR_SECONDS, geometric_bars, log_path, normals
from bellmark.errors import UsageError
from bellmark.instrument import Instrument

_LANE = 0
_NODES = 64  # of Gauss and Hermite: the logarithm of a bar's return is smooth, 64 are exact to rounding below a volatility of 1 a bar


@component
class GeometricBrownian(Dataset):
    """Geometric Brownian prices, whose best exposure for growth is Merton's fraction drift / volatility^2.

    The process is stepped exactly, 8 times a bar; high and low are the extremes over these moments. A bar opens at the close before. Bars
    run around the clock and a year has 365 days. Prices are rounded to the tick, the process itself is not. Costs are no part of it: with
    them the best policy lets the exposure drift within a band around the fraction.
    """

    name: ClassVar[str] = "geometric_brownian"
    symbol: str = setting("GBM", "name of the symbol")
    bars: int = setting(5_000, "bars to make", ge=2, le=50_000_000, unit="bars")
    price: float = setting(100.0, "price at the start", gt=0.0, unit="price")
    drift: float = setting(0.08, "growth of the expected price, continuously compounded", unit="1/year")
    volatility: float = setting(0.2, "standard deviation of the log return of a year", gt=0.0, unit="1/sqrt(year)")
    tick_size: float = setting(0.01, "smallest price step", gt=0.0, unit="price")
    contract_multiplier: float = setting(1.0, "value of one price unit of one contract", gt=0.0, unit="currency")
    bar_seconds: int = setting(86_400, "length of a bar, around the clock from 2020-01-01 UTC", ge=1, unit="s")
    seed: int = setting(1, "seed of the path", ge=0)

    @property
    def bars_per_year(self) -> float:
        """Bars in a year of 365 days."""
        return YEAR_SECONDS / self.bar_seconds

    def growth(self, fraction: float) -> float:
        """Expected log growth of equity a year at a constant exposure, rebalanced all the time: f drift - f^2 volatility^2 / 2."""
        return fraction * self.drift - 0.5 * (fraction * self.volatility) ** 2

    def bar_growth(self, fraction: float) -> float:
        """The same where the exposure is set back once a bar: P E[log(1 + f (R - 1))], R the gross return of a bar.

        It falls short of `growth` by about 1 / P of it. Only exposures from 0 to 1 have one: outside, a single bar may ruin the account.
        """
        if not 0.0 <= fraction <= 1.0:
            raise UsageError(f"bar_growth: expected a fraction from 0 to 1, found {fraction:g}; beyond, one bar may take all equity")
        mean, deviation = self._step()
        point, weight = np.polynomial.hermite_e.hermegauss(_NODES)
        log_growth = np.log1p(fraction * np.expm1(mean + deviation * point))
        return float(weight @ log_growth / np.sqrt(2 * np.pi) * self.bars_per_year)

    def best_policy(self, lowest: float = -1.0, highest: float = 1.0) -> ConstantExposure:
        """Merton's constant exposure for the growth of equity, held to [lowest, highest]; costs are not counted."""
        if not lowest <= highest:
            raise UsageError(f"best_policy: expected lowest <= highest, found {lowest:g} and {highest:g}")
        free = self.drift / self.volatility**2
        held = min(max(free, lowest), highest)
        return ConstantExposure(held, self.growth(held), free)

    def truth(self) -> dict[str, NDArray[np.float64]]:
        """`log_price` (bars): log of each close over the price at the start, unrounded; `mean`, `deviation` (1): of a bar's log return."""
        mean, deviation = self._step()
        return {"log_price": self._log_path()[0][:, -1].copy(), "mean": np.array([mean]), "deviation": np.array([deviation])}

    def read(self) -> list[Any]:
        """Bars and instrument of the one symbol."""
        bars = geometric_bars(self, *self._log_path())
        return [(bars, Instrument(self.symbol, self.tick_size, self.contract_multiplier, periods_per_year=self.bars_per_year))]

    def _step(self) -> tuple[float, float]:
        """Mean and deviation of a bar's log return."""
        share = 1 / self.bars_per_year
        return (self.drift - 0.5 * self.volatility**2) * share, self.volatility * share**0.5

    def _log_path(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        mean, deviation = self._step()
        return log_path(np.full(self.bars, mean), np.full(self.bars, deviation), 0.0, normals(self.seed, _LANE, self.bars, PIECES))


@dataclass(frozen=True)
class ConstantExposure:
    """The answer of Merton (1969) for logarithmic utility, where cash earns nothing: a constant fraction of equity.

    exposure: within the limits. growth_per_year: expected log growth of equity at it, continuously rebalanced and before costs.
    unlimited: drift / volatility^2, without limits.
    """

    exposure: float
    growth_per_year: float
    unlimited: float
