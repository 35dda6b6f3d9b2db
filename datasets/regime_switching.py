"""A market with a hidden state whose best policy is known: a Markov chain of regimes, each with its drift and volatility.

Hamilton (1989): regime[t] is a Markov chain, and given it the log return of bar t is

    r[t] = drift_k - volatility_k^2 / 2 + volatility_k e[t],   k = regime[t],   e standard normal,

so the expected price grows by exp(drift_k) in a bar of regime k. Regimes are not seen. All that returns up to t say of the next one is the
posterior of regime[t] (Hamilton's filter); without costs the best policy of a position within limits holds the limit on the side of the
expected return under it. Volatilities that differ help as much as drifts: they tell the regimes apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bellmark.component import Dataset, component, setting
from bellmark.datasets.synthetic import PIECES, compiled, geometric_bars, log_path, normals, uniforms
from bellmark.errors import UsageError
from bellmark.instrument import Instrument
from bellmark.math import exp, log

_LANE_NORMAL, _LANE_REGIME = 0, 1
_NODES, _GRID = 48, 1201  # of a bar's return, of the chance of a regime


@component
class RegimeSwitching(Dataset):
    """Hidden regimes of drift and volatility; the best policy follows the filtered posterior, and what it earns is known.

    A regime stays or gives way with a chance of 1 / its mean length, to each of the others alike, so its share of time is its mean length
    over their sum. The first is drawn by these shares. Each bar is the process at 8 moments; high and low are its extremes over them. A
    bar opens at the close before. Prices are rounded to the tick, the process itself is not.
    """

    name: ClassVar[str] = "regime_switching"
    symbol: str = setting("REGIMES", "name of the symbol")
    bars: int = setting(20_000, "bars to make", ge=2, le=50_000_000, unit="bars")
    price: float = setting(100.0, "price at the start", gt=0.0, unit="price")
    drifts: tuple[float, ...] = setting((0.001, -0.001), "growth of the expected price in a bar of each regime", unit="1/bar")
    volatilities: tuple[float, ...] = setting((0.006, 0.012), "deviation of a bar's log return in each regime", unit="fraction of price")
    mean_lengths: tuple[float, ...] = setting((150.0, 100.0), "mean stay in each regime, at least 1", unit="bars")
    tick_size: float = setting(0.01, "smallest price step", gt=0.0, unit="price")
    contract_multiplier: float = setting(1.0, "value of one price unit of one contract", gt=0.0, unit="currency")
    bar_seconds: int = setting(3600, "length of a bar, around the clock from 2020-01-01 UTC", ge=1, unit="s")
    seed: int = setting(1, "seed of the path", ge=0)

    def __post_init__(self) -> None:
        lists = {"drifts": self.drifts, "volatilities": self.volatilities, "mean_lengths": self.mean_lengths}
        if len({len(values) for values in lists.values()}) > 1 or len(self.drifts) < 2:
            found = ", ".join(f"{len(values)} {name}" for name, values in lists.items())
            raise UsageError(f"data: expected one drift, volatility and mean length for each of at least two regimes, found {found}")
        finite = np.isfinite([*self.drifts, *self.volatilities, *self.mean_lengths]).all()
        if not (finite and min(self.volatilities) > 0 and min(self.mean_lengths) >= 1):
            raise UsageError("data: expected finite numbers, volatilities above 0 and mean_lengths of at least 1 in every regime")

    @property
    def transition(self) -> NDArray[np.float64]:
        """Chance of each regime in the next bar, a row for each regime of this one."""
        leave_K = 1 / np.array(self.mean_lengths)
        regimes = len(leave_K)
        chance_KK = np.repeat(leave_K[:, None] / (regimes - 1), regimes, axis=1)
        np.fill_diagonal(chance_KK, 1 - leave_K)
        return chance_KK

    @property
    def stationary(self) -> NDArray[np.float64]:
        """Share of time of each regime."""
        length_K = np.array(self.mean_lengths)
        return length_K / length_K.sum()

    @property
    def log_mean(self) -> NDArray[np.float64]:
        """Mean of a bar's log return in each regime."""
        return np.array(self.drifts) - 0.5 * np.array(self.volatilities) ** 2

    def posterior(self, log_return_T: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(regime[t] | returns up to t), shape (T, K), for the log returns of bars 0, 1, ... of this market."""
        chance_TK = np.empty((len(log_return_T), len(self.drifts)))
        compiled(_filter)(
            np.ascontiguousarray(log_return_T, np.float64), self.log_mean, np.array(self.volatilities), self.transition,
            self.stationary, chance_TK,
        )  # fmt: skip
        return chance_TK

    def expected_return(self, posterior_TK: NDArray[np.float64]) -> NDArray[np.float64]:
        """E[price[t+1] / price[t] - 1 | returns up to t], shape (T): its sign is the best position of the next bar without costs."""
        return posterior_TK @ self.transition @ np.expm1(np.array(self.drifts))

    def best_policy(self) -> FilteredPolicy:
        """What the best policy under one unit of exposure earns without costs, exactly, where there are two regimes."""
        if len(self.drifts) != 2:
            raise UsageError(f"best_policy: expected 2 regimes, found {len(self.drifts)}; `expected_return` is the policy for any number")
        profit = self._filtered_profit(_GRID)
        change = abs(profit - self._filtered_profit(_GRID * 2 // 3)) / profit if profit > 0 else 0.0
        growth_K = np.expm1(np.array(self.drifts))
        informed = float(self.stationary @ np.abs(self.transition @ growth_K))
        blind = float(abs(self.stationary @ growth_K))
        return FilteredPolicy(profit, informed, blind, max(change, 1e-9))

    def truth(self) -> dict[str, NDArray[Any]]:
        """`regime` (bars), `log_return` (bars; unrounded), `posterior` (bars, regimes), `transition`, `stationary`, `drift`, `volatility`.

        A row of the posterior knows the returns up to its own bar.
        """
        regime_T, level_TK, start_T = self._path()
        log_return_T = level_TK[:, -1] - start_T
        return {
            "regime": regime_T, "log_return": log_return_T, "posterior": self.posterior(log_return_T), "transition": self.transition,
            "stationary": self.stationary, "drift": np.array(self.drifts), "volatility": np.array(self.volatilities),
        }  # fmt: skip

    def read(self) -> list[Any]:
        """Bars and instrument of the one symbol."""
        _, level_TK, start_T = self._path()
        return [(geometric_bars(self, level_TK, start_T), Instrument(self.symbol, self.tick_size, self.contract_multiplier))]

    def _path(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        regime_T = np.empty(self.bars, np.int64)
        compiled(_switch)(uniforms(self.seed, _LANE_REGIME, self.bars)[:, 0], self.stationary, 1 / np.array(self.mean_lengths), regime_T)
        deviation_T = np.array(self.volatilities)[regime_T]
        return regime_T, *log_path(self.log_mean[regime_T], deviation_T, 0.0, normals(self.seed, _LANE_NORMAL, self.bars, PIECES))

    def _filtered_profit(self, nodes: int) -> float:
        """E|expected return of the next bar| over the stationary law of p = P(next regime is 0 | past), itself a Markov chain.

        p lives between P(0 | 1) and P(0 | 0). From each node of a grid the next p follows from the filter for each Gauss-Hermite node of
        the return in either regime, and is shared out between its neighbours; the stationary vector of that chain weighs
        |p a + (1 - p) b|.
        """
        (stay, _), (come, _) = self.transition
        up, down = np.expm1(np.array(self.drifts))
        if abs(stay - come) < 1e-12:  # the next regime does not depend on this one
            return float(abs(stay * up + (1 - stay) * down))
        grid_P = np.linspace(min(stay, come), max(stay, come), nodes)
        point_N, weight_N = np.polynomial.hermite_e.hermegauss(_NODES)
        weight_N = weight_N / weight_N.sum()
        chance_PP = np.zeros((nodes, nodes))
        row_PN = np.repeat(np.arange(nodes)[:, None], _NODES, axis=1)
        volatility_K = np.array(self.volatilities)
        for k, weight_P in enumerate((grid_P, 1 - grid_P)):
            r_N = self.log_mean[k] + volatility_K[k] * point_N
            # log of the ratio of the two densities
            z_KN = (r_N[None, :] - self.log_mean[:, None]) / volatility_K[:, None]
            odds_N = np.exp(np.minimum(0.5 * (z_KN[0] ** 2 - z_KN[1] ** 2), 600.0)) * volatility_K[0] / volatility_K[1]
            posterior_PN = grid_P[:, None] / (grid_P[:, None] + (1 - grid_P[:, None]) * odds_N[None, :])
            place_PN = np.clip((posterior_PN * stay + (1 - posterior_PN) * come - grid_P[0]) / (grid_P[-1] - grid_P[0]), 0, 1) * (nodes - 1)
            below_PN = np.minimum(place_PN.astype(np.int64), nodes - 2)
            share_PN = place_PN - below_PN
            mass_PN = weight_P[:, None] * weight_N[None, :]
            np.add.at(chance_PP, (row_PN, below_PN), mass_PN * (1 - share_PN))
            np.add.at(chance_PP, (row_PN, below_PN + 1), mass_PN * share_PN)
        stationary_P = _stationary(chance_PP)
        return float(stationary_P @ np.abs(grid_P * up + (1 - grid_P) * down))


def _stationary(chance_PP: NDArray[np.float64]) -> NDArray[np.float64]:
    """The vector that a Markov chain leaves unchanged."""
    size = len(chance_PP)
    system_PP = chance_PP.T - np.eye(size)
    system_PP[-1] = 1.0  # the equations are dependent: one gives way to the sum
    return np.linalg.solve(system_PP, np.eye(size)[-1])


def _switch(uniform_T, stationary_K, leave_K, regime_T):
    regimes = stationary_K.shape[0]
    regime = 0
    chance = uniform_T[0]
    while regime < regimes - 1 and chance >= stationary_K[regime]:
        chance -= stationary_K[regime]
        regime += 1
    regime_T[0] = regime
    for t in range(1, regime_T.shape[0]):
        # One uniform number decides both whether the regime gives way and to which.
        leave = leave_K[regime]
        if uniform_T[t] < leave:
            other = min(int(uniform_T[t] / leave * (regimes - 1)), regimes - 2)
            regime = other if other < regime else other + 1
        regime_T[t] = regime


def _filter(log_return_T, mean_K, volatility_K, transition_KK, stationary_K, chance_TK):
    regimes = mean_K.shape[0]
    weight_K = np.empty(regimes)
    for t in range(log_return_T.shape[0]):
        largest = -np.inf
        for k in range(regimes):
            prior = 0.0
            if t == 0:
                prior = stationary_K[k]
            else:
                for j in range(regimes):
                    prior += chance_TK[t - 1, j] * transition_KK[j, k]
            z = (log_return_T[t] - mean_K[k]) / volatility_K[k]
            # in logarithms: far out in the tails every density is 0
            weight_K[k] = log(prior / volatility_K[k]) - 0.5 * z * z if prior > 0.0 else -np.inf
            largest = max(largest, weight_K[k])
        total = 0.0
        for k in range(regimes):
            weight_K[k] = exp(weight_K[k] - largest)
            total += weight_K[k]
        for k in range(regimes):
            chance_TK[t, k] = weight_K[k] / total


@dataclass(frozen=True)
class FilteredPolicy:
    """What one unit of exposure earns without costs in a market of two regimes, as a fraction of its value a bar.

    mean_profit: by the posterior, the best that can be had from prices. informed_profit: by who sees each regime once its bar is over.
    blind_profit: always on the side of the long-run drift. tolerance: of mean_profit, relative.
    """

    mean_profit: float
    informed_profit: float
    blind_profit: float
    tolerance: float
