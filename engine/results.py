"""What a backtest gives: one account a lane, with every fill, refusal and cost, and the accounting identity checked exactly."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellmark import market
from bellmark.actions import ActionSpace
from bellmark.buffers import BufferRegistry
from bellmark.errors import InternalError
from bellmark.lane import EVENTS
from bellmark.tape import Tape

# One row a fill: bar of the tape, lots (signed), prices in quanta, money in currency.
FILL_DTYPE = np.dtype(
    [("bar", "i8"), ("stamp", "i8"), ("lots", "i8"), ("price", "i8"), ("reference", "i8"), ("notional", "f8")]
    + [("fee", "f8"), ("spread", "f8"), ("slippage", "f8")]
)
REJECTION_DTYPE = np.dtype([("bar", "i8"), ("stamp", "i8"), ("lots", "i8"), ("reason", "i4")])


@dataclass(frozen=True)
class LaneResult:
    """One account: a point at the start and one after each bar.

    stamp_T UTC nanoseconds; equity_T int64 nano-currency; position_T int64 lots; exposure_T value of the position over equity;
    action_T the joint action decided at each point (-1 where none was); costs and gross in currency.
    """

    symbol: str
    learner: int | None
    stamp_T: NDArray[np.int64]
    equity_T: NDArray[np.int64]
    position_T: NDArray[np.int64]
    exposure_T: NDArray[np.float64]
    action_T: NDArray[np.int32]
    fills: NDArray[Any]
    rejections: NDArray[Any]
    costs: dict[str, float]
    gross: float
    rounding: float
    ruined: bool
    open_position: int


@dataclass(frozen=True)
class Backtest:
    """A strategy or a trained run over one part of the data."""

    name: str
    kind: str  # "policy" or "strategy"
    split: str
    lanes: tuple[LaneResult, ...]
    learners: int
    start_equity: float  # of one account
    periods_per_year: float
    session: str
    action_space: ActionSpace
    profile_hash: str
    data_hash: str
    command: str
    warnings: tuple[str, ...] = ()
    step: int | None = None  # update of the checkpoint, for a policy
    settings: dict[str, Any] = field(default_factory=dict)

    def lanes_of(self, learner: int | None) -> tuple[LaneResult, ...]:
        """The accounts of a learner; of a strategy (None) all of them."""
        return tuple(lane for lane in self.lanes if lane.learner == learner)

    def exposure_turnover(self) -> float:
        """Mean absolute change of the decided exposure an account and bar, of the median learner; the start counts as flat."""
        exposure_A = self.action_space.exposure_A
        rates = []
        for learner in dict.fromkeys(lane.learner for lane in self.lanes):
            moved, bars = 0.0, 0
            for lane in self.lanes_of(learner):
                decided_T = lane.action_T[:-1][lane.action_T[:-1] >= 0]
                moved += float(np.abs(np.diff(exposure_A[decided_T], prepend=0.0)).sum())
                bars += lane.stamp_T.size - 1
            rates.append(moved / max(bars, 1))
        return float(np.median(rates))

    def portfolio(self, learner: int | None = None) -> Any:
        """The sum of a learner's accounts as an equity curve."""
        from bellmark.evaluation.curve import curve_of_lanes

        return curve_of_lanes(self.lanes_of(learner), self.periods_per_year)


@dataclass(frozen=True)
class Record:
    """Events of every bar of every lane, by the names of lane.EVENTS with equity and position, shape (L, N, bars)."""

    arrays: dict[str, NDArray[Any]]
    action_LNT: NDArray[np.int32]
    last_order_LN: NDArray[np.int64]  # the order that the last decision would have given


def record_names() -> tuple[str, ...]:
    """What a record keeps of each bar."""
    return ("equity", "position", *EVENTS)


def lane_result(
    registry: BufferRegistry, tape: Tape, record: Record, learner_row: int, n: int, first: int, learner: int | None
) -> LaneResult:
    """The result of one lane that ran from bar `first` to where it stands now."""
    where = (learner_row, n)
    symbol = int(registry["symbol_LN"][where])
    last = int(registry["bar_LN"][where])
    planned = int(registry["end_bar_LN"][where]) - first
    bars = last - first
    part = {name: array[learner_row, n, :bars] for name, array in record.arrays.items()}
    start = int(registry["setting_int_GX"][registry["group_LN"][where], 0])
    _check_identity(registry, tape, where, start, bars)
    numerator, denominator = registry["instrument_SJ"][symbol, :2]
    stamp_T = tape.ts_ST[symbol, first : first + planned + 1].astype(np.int64)
    equity_T = _held(np.concatenate([[start], part["equity"]]), planned)
    position_T = _held(np.concatenate([[0], part["position"]]), planned)
    if registry["ruined_LN"][where]:
        position_T[bars:] = 0
    close_T = tape.close_ST[symbol, first : first + planned + 1]
    value_T = position_T.astype(np.float64) * close_T * (float(numerator) / float(denominator))
    with np.errstate(divide="ignore", invalid="ignore"):
        exposure_T = np.where(equity_T > 0, value_T / equity_T, 0.0)
    action_T = np.full(planned + 1, -1, np.int32)
    decided = bars if registry["ruined_LN"][where] else bars + 1  # a ruined account decides no more
    given = record.action_LNT[learner_row, n, :decided]
    action_T[: given.size] = given
    return LaneResult(
        symbol=tape.symbols[symbol],
        learner=learner,
        stamp_T=stamp_T,
        equity_T=equity_T,
        position_T=position_T,
        exposure_T=exposure_T,
        action_T=action_T,
        fills=_fills(part, stamp_T, first, float(numerator) / float(denominator)),
        rejections=_rejections(part, stamp_T, first, int(record.last_order_LN[where]), bars),
        costs={name: float(registry[f"{field_name}_LN"][where]) / 1e9 for name, field_name in _COSTS.items()},
        gross=float(registry["gross_LN"][where]) / 1e9,
        rounding=float(registry["rounding_LN"][where]) / 1e9,
        ruined=bool(registry["ruined_LN"][where]),
        open_position=int(registry["position_LN"][where]),
    )


_COSTS = {"spread": "spread_cost", "slippage": "slippage_cost", "fees": "fee_cost", "funding": "funding_cost"}


def _check_identity(registry: BufferRegistry, tape: Tape, where: tuple[int, int], start: int, bars: int) -> None:
    """equity = start + gross - spread - slippage - fees - funding + rounding, and the equity is cash plus the marked position."""
    value = {name: int(registry[f"{name}_LN"][where]) for name in ("equity", "gross", *_COSTS.values(), "rounding", "cash", "position")}
    symbol, bar = int(registry["symbol_LN"][where]), int(registry["bar_LN"][where])
    numerator, denominator = (int(x) for x in registry["instrument_SJ"][symbol, :2])
    expected = start + value["gross"] - sum(value[name] for name in _COSTS.values()) + value["rounding"]
    if value["equity"] != expected:
        raise InternalError(f"{tape.symbols[symbol]}: the accounts do not add up: equity {value['equity']} nano-currency, parts {expected}")
    marked = value["cash"] + market.mul_div(value["position"] * int(tape.close_ST[symbol, bar]), numerator, denominator)
    if value["equity"] != marked:
        raise InternalError(f"{tape.symbols[symbol]}: the accounts do not add up: equity {value['equity']}, cash and position {marked}")
    limit = 0 if denominator == 1 else 4 * (bars + 1)
    if abs(value["rounding"]) > limit:
        raise InternalError(f"{tape.symbols[symbol]}: rounding {value['rounding']} nano-currency in {bars} bars; at most {limit} can arise")


def _held(values: NDArray[Any], planned: int) -> NDArray[np.int64]:
    out = np.empty(planned + 1, np.int64)
    out[: values.size] = values
    out[values.size :] = values[-1]
    return out


def _fills(part: dict[str, NDArray[Any]], stamp_T: NDArray[np.int64], first: int, value_of_quantum: float) -> NDArray[Any]:
    at = np.flatnonzero(part["fill_lots"])
    table = np.zeros(at.size, FILL_DTYPE)
    lots = part["fill_lots"][at]
    worse = np.sign(lots) * (part["fill_spread"][at] + part["fill_slippage"][at])
    size = np.abs(lots) * value_of_quantum / 1e9
    table["bar"], table["stamp"], table["lots"] = first + at + 1, stamp_T[at + 1], lots
    table["reference"] = part["reference_price"][at]
    table["price"] = table["reference"] + worse
    table["notional"] = size * np.abs(table["price"])
    table["fee"] = part["fill_fee"][at] / 1e9
    table["spread"] = size * part["fill_spread"][at]
    table["slippage"] = size * part["fill_slippage"][at]
    return table


def _rejections(part: dict[str, NDArray[Any]], stamp_T: NDArray[np.int64], first: int, last_order: int, bars: int) -> NDArray[Any]:
    at = np.flatnonzero(part["reason"])
    table = np.zeros(at.size + (last_order != 0), REJECTION_DTYPE)
    table["bar"][: at.size], table["stamp"][: at.size] = first + at + 1, stamp_T[at + 1]
    table["lots"][: at.size], table["reason"][: at.size] = part["order_lots"][at], part["reason"][at]
    if last_order:
        table[-1] = (first + bars, stamp_T[bars], last_order, market.LAST_BAR)
    return table
