"""The equity curve: what every metric is computed from.

A curve is one account, or several accounts of one learner summed at equal stamps. Point 0 is the start, before the first bar; bar i
(counted from 0) ends at point i + 1. All money is float64 in the account's currency.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellmark.errors import BellmarkError

NANOSECONDS_A_DAY = 86_400_000_000_000
DAYS_A_YEAR = 365.25
NANO = 1e9
COST_KINDS = ("spread", "slippage", "fees", "funding")

# One row a fill. `notional` is |lots| x fill price in currency, below 0 at a price below 0; NaN where the simulator does not give it.
FILLS = np.dtype(
    [("stamp", "i8"), ("symbol", "i4"), ("lots", "i8"), ("notional", "f8"), ("fee", "f8"), ("spread", "f8"), ("slippage", "f8")]
)


@dataclass(frozen=True)
class Undefined:
    """What a metric returns where its number does not exist, with the reason that the report prints beside the null."""

    reason: str


@dataclass(frozen=True)
class Curve:
    """Equity of an account by stamp, with what was traded to reach it.

    stamp_ns: int64 UTC nanoseconds, n + 1 points, non-decreasing; the first is the start.
    equity: float64 currency, n + 1 points; the first is the start equity.
    exposure: position value over equity, signed, n + 1 points; gross_exposure: its sum over symbols without signs, None for one symbol.
    return_n: the n simple bar returns where they are known better than equity tells them (after equity reached zero).
    """

    stamp_ns: NDArray[np.int64]
    equity: NDArray[np.float64]
    periods_per_year: float
    exposure: NDArray[np.float64] | None = None
    gross_exposure: NDArray[np.float64] | None = None
    fills: NDArray[Any] = field(default_factory=lambda: np.zeros(0, FILLS))
    costs: Mapping[str, float] = field(default_factory=dict)
    gross: float | None = None
    ruined: bool = False
    symbols: tuple[str, ...] = ()
    return_n: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if self.equity.ndim != 1 or self.equity.shape != self.stamp_ns.shape or self.equity.size == 0:
            raise BellmarkError(f"curve: expected stamps and equity of one length, found {self.stamp_ns.shape} and {self.equity.shape}")
        if not self.equity[0] > 0.0:
            raise BellmarkError(f"curve: expected a start equity above zero, found {self.equity[0]}")

    @property
    def bars(self) -> int:
        """Number of bars, which is one less than the number of points."""
        return self.equity.size - 1

    @cached_property
    def returns(self) -> NDArray[np.float64]:
        """Simple return of each bar: equity over the equity before, minus one. NaN or infinite only after equity reached zero."""
        if self.return_n is not None:
            return self.return_n
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.equity[1:] / self.equity[:-1] - 1.0

    @cached_property
    def drawdown(self) -> NDArray[np.float64]:
        """Distance from the highest equity so far at each point, as a fraction of it: at most 0, below -1 where equity is negative."""
        return drawdown_series(self.equity)

    @property
    def days(self) -> float:
        """Calendar days from the first to the last stamp."""
        return float(self.stamp_ns[-1] - self.stamp_ns[0]) / NANOSECONDS_A_DAY

    @cached_property
    def wiped_out(self) -> bool:
        """True where the simulator ended the account or equity was at or below zero at any point."""
        return bool(self.ruined or self.equity.min() <= 0.0)

    @property
    def wealth(self) -> float:
        """End equity over start equity."""
        return float(self.equity[-1] / self.equity[0])

    @property
    def total_cost(self) -> float:
        """All costs in currency: spread, slippage, fees and funding (and any other kind that the simulator reports)."""
        return float(sum(self.costs.values()))


def drawdown_series(equity: NDArray[np.float64]) -> NDArray[np.float64]:
    """equity_t / max(equity_0 .. equity_t) - 1 at each point; the first equity must be above zero."""
    high = np.maximum.accumulate(equity)
    np.divide(equity, high, out=high)
    high -= 1.0
    return high


def curve_of_returns(returns: NDArray[np.float64], stamp_ns: NDArray[np.int64], periods_per_year: float) -> Curve:
    """A curve from simple bar returns, start equity 1. NaN bars are dropped.

    The start stamp is unknown, so the first bar's own stamp stands for it: the calendar span ignores the first bar's own length.
    """
    known = ~np.isnan(returns)
    kept = np.ascontiguousarray(returns[known], dtype=np.float64)
    stamps = np.concatenate((stamp_ns[:1], stamp_ns[known])).astype(np.int64)
    equity = np.concatenate(([1.0], np.cumprod(1.0 + kept)))
    return Curve(stamp_ns=stamps, equity=equity, periods_per_year=periods_per_year, return_n=kept)


def curve_of_lanes(lanes: Sequence[Any], periods_per_year: float) -> Curve:
    """The sum of several accounts (lane results of one learner) at the union of their stamps.

    Before its first stamp an account counts with its start equity, after its last with its last. The sum is ruined when every account
    is, or when it falls to zero.
    """
    if not lanes:
        raise BellmarkError("curve: expected at least one account, found none")
    if len(lanes) == 1:
        stamps, equity = np.asarray(lanes[0].stamp_T, np.int64), np.asarray(lanes[0].equity_T, np.float64) / NANO
        exposure = np.asarray(lanes[0].exposure_T, np.float64)
        gross_exposure = _gross_exposure(lanes[0]) if len(_symbols(lanes[0])) > 1 else None
    else:
        stamps, equity, exposure, gross_exposure = _summed(lanes)
    symbols = [_symbols(lane) for lane in lanes]
    first = np.cumsum([0, *map(len, symbols)])
    fills = np.concatenate([_fills(lane, int(index)) for index, lane in zip(first, lanes, strict=False)])
    kinds = sorted({kind for lane in lanes for kind in lane.costs}, key=_cost_order)
    return Curve(
        stamp_ns=stamps,
        equity=equity,
        periods_per_year=periods_per_year,
        exposure=exposure,
        gross_exposure=gross_exposure,
        fills=fills[np.argsort(fills["stamp"], kind="stable")],
        costs={kind: float(sum(lane.costs.get(kind, 0.0) for lane in lanes)) for kind in kinds},
        gross=float(sum(lane.gross for lane in lanes)),
        ruined=all(lane.ruined for lane in lanes),
        symbols=tuple(symbol for names in symbols for symbol in names),
    )


def _summed(lanes: Sequence[Any]) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    stamps = _union([lane.stamp_T for lane in lanes])
    equity = np.zeros(stamps.size)
    value = np.zeros(stamps.size)
    gross_value = np.zeros(stamps.size)
    for lane in lanes:
        point = _latest_point(lane.stamp_T, stamps)
        equity_T = np.asarray(lane.equity_T, dtype=np.float64) / NANO
        value_T = np.asarray(lane.exposure_T, dtype=np.float64) * equity_T
        equity += equity_T[point]
        value += value_T[point]
        gross_value += (_gross_exposure(lane) * np.abs(equity_T))[point]
    with np.errstate(divide="ignore", invalid="ignore"):
        exposure = np.where(equity != 0.0, value / equity, 0.0)
        gross_exposure = np.where(equity != 0.0, gross_value / np.abs(equity), 0.0)
    return stamps, equity, exposure, gross_exposure


def sampled(values: NDArray[Any], stamp_ns: NDArray[np.int64], at: NDArray[np.int64]) -> NDArray[Any]:
    """Values of a step function at other stamps: the latest known at or before each, the first one before that."""
    return values if stamp_ns is at or np.array_equal(stamp_ns, at) else values[_latest_point(stamp_ns, at)]


def union_of_stamps(curves: Sequence[Curve]) -> NDArray[np.int64]:
    """Every stamp of any of the curves, once, in order."""
    return _union([curve.stamp_ns for curve in curves])


def _cost_order(kind: str) -> tuple[int, str]:
    return (COST_KINDS.index(kind) if kind in COST_KINDS else len(COST_KINDS), kind)


def _union(stamps: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    first = np.asarray(stamps[0], dtype=np.int64)
    if all(np.array_equal(first, other) for other in stamps[1:]):
        return first
    return np.unique(np.concatenate(stamps).astype(np.int64))


def _latest_point(stamp_T: NDArray[np.int64], at: NDArray[np.int64]) -> Any:
    if stamp_T.size == at.size and np.array_equal(stamp_T, at):
        return slice(None)
    return np.maximum(np.searchsorted(stamp_T, at, side="right") - 1, 0)


def _symbols(lane: Any) -> tuple[str, ...]:
    """The symbols of an account; one that does not list them has the one that it is named by."""
    return tuple(getattr(lane, "symbols", ())) or (lane.symbol,)


def _gross_exposure(lane: Any) -> NDArray[np.float64]:
    gross = getattr(lane, "gross_exposure_T", None)
    return np.asarray(np.abs(lane.exposure_T) if gross is None else gross, np.float64)


def _fills(lane: Any, first_symbol: int) -> NDArray[Any]:
    source = lane.fills
    names = source.dtype.names or ()
    table = np.zeros(len(source), FILLS)
    table["symbol"] = first_symbol
    if len(_symbols(lane)) > 1:  # one account of several symbols: its fills say which
        table["symbol"] += source["symbol"]
    for name in ("stamp", "lots", "fee", "spread", "slippage"):
        if name in names:
            table[name] = source[name]
    table["notional"] = source["notional"] if "notional" in names else np.nan
    return table
