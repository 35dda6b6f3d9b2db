"""What a backtest gives: one account a lane, with every fill, refusal and cost, and the accounting identity checked exactly."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellmark import ledger, market
from bellmark.actions import ActionSpace
from bellmark.buffers import BufferRegistry
from bellmark.errors import InternalError
from bellmark.tape import Tape

# One row a fill: bar of its symbol's tape, symbol (place in LaneResult.symbols), cause (market.CAUSES), lots (signed), prices in quanta,
# money in currency, maker where the order rested.
FILL_DTYPE = np.dtype(
    [("bar", "i8"), ("stamp", "i8"), ("symbol", "i4"), ("cause", "i4"), ("lots", "i8"), ("price", "i8"), ("reference", "i8")]
    + [("notional", "f8"), ("fee", "f8"), ("spread", "f8"), ("slippage", "f8"), ("maker", "?")]
)
REJECTION_DTYPE = np.dtype([("bar", "i8"), ("stamp", "i8"), ("symbol", "i4"), ("lots", "i8"), ("reason", "i4")])


@dataclass(frozen=True)
class LaneResult:
    """One account: a point at the start and one after each bar (of any of its symbols).

    stamp_T UTC nanoseconds; equity_T int64 nano-currency; position_T int64 lots of the first symbol, position_ST of all; exposure_T
    value of the positions over equity, gross_exposure_T without signs (None for one symbol); action_T the joint action decided at each
    point (-1 where none was); decided_ST the exposure decided at each point (NaN: none), order_ST the lots that it ordered and
    reason_ST what became of them (market.REASONS); q_TA and allowed_TA the value of each action and whether it was legal, of policies
    that were asked to keep them; bar_ST the bar of each symbol's tape at each point (-1: it has none there), close_ST its close in
    currency (NaN: none); quantum_S currency of one price quantum of each symbol, exact; costs and gross in currency.
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
    symbols: tuple[str, ...] = ()
    position_ST: NDArray[np.int64] | None = None
    gross_exposure_T: NDArray[np.float64] | None = None
    decided_ST: NDArray[np.float64] | None = None
    order_ST: NDArray[np.int64] | None = None
    reason_ST: NDArray[np.int32] | None = None
    q_TA: NDArray[np.float32] | None = None
    allowed_TA: NDArray[np.bool_] | None = None
    open_positions: dict[str, int] = field(default_factory=dict)
    bar_ST: NDArray[np.int32] | None = None
    close_ST: NDArray[np.float64] | None = None
    quantum_S: tuple[Fraction, ...] = ()

    @property
    def decided_T(self) -> NDArray[np.float64]:  # noqa: N802
        """The exposure decided at each point for the first symbol."""
        return np.full(self.stamp_T.size, np.nan) if self.decided_ST is None else self.decided_ST[0]

    @property
    def order_T(self) -> NDArray[np.int64]:  # noqa: N802
        """The lots ordered at each point in the first symbol."""
        return np.zeros(self.stamp_T.size, np.int64) if self.order_ST is None else self.order_ST[0]

    @property
    def reason_T(self) -> NDArray[np.int32]:  # noqa: N802
        """What became of the order of each point in the first symbol."""
        return np.zeros(self.stamp_T.size, np.int32) if self.reason_ST is None else self.reason_ST[0]


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
    currency: str
    action_space: ActionSpace
    profile_hash: str
    data_hash: str
    command: str
    warnings: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()  # rules that make the result better than life; printed in red everywhere
    step: int | None = None  # update of the checkpoint, for a policy
    settings: dict[str, Any] = field(default_factory=dict)
    rules: dict[str, dict[str, Any]] = field(default_factory=dict)  # settings of market, execution and sizing (`use`: its name)

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
    """Every point of every lane: the account after the bar that ends there, and the decision at it.

    equity_LNT; arrays by the names of lane_fields.RECORD, shape (L, N, S, points); rows: the ledger (ledger.COLUMNS) of each lane.
    """

    equity_LNT: NDArray[np.int64]
    arrays: dict[str, NDArray[Any]]
    rows: dict[tuple[int, int], NDArray[np.int64]]
    action_LNT: NDArray[np.int32]
    q_LNTA: NDArray[np.float32] | None = None
    allowed_LNTA: NDArray[np.uint8] | None = None


@dataclass(frozen=True)
class Window:
    """The bars that a lane runs over: its symbols (rows of the tape) and the stamps of its points."""

    symbols: tuple[int, ...]
    stamp_T: NDArray[np.int64]
    first: int  # bar of the first point, in an account of one symbol


def lane_result(
    registry: BufferRegistry, tape: Tape, record: Record, learner_row: int, n: int, window: Window, learner: int | None
) -> LaneResult:
    """The result of one lane that ran over a window to where it stands now."""
    where = (learner_row, n)
    points = window.stamp_T.size
    reached = int(registry["bar_LN"][where]) - (window.first if len(window.symbols) == 1 else 0)
    ruined = bool(registry["ruined_LN"][where])
    shared = "position_LNS" in registry
    position_S = registry["position_LNS"][where] if shared else registry["position_LN"][where].reshape(1)
    start = int(registry["setting_int_GX"][registry["group_LN"][where], 0])
    part = {name: array[learner_row, n] for name, array in record.arrays.items()}
    mark_S = part["mark_price"][:, reached]
    check_identity(registry, tape, where, window, start, reached, position_S, mark_S)
    equity_T = _held(record.equity_LNT[learner_row, n, : reached + 1], points)
    equity_T[0] = start
    position_ST = np.stack([_held(row[: reached + 1], points) for row in part["position"]])
    if ruined:
        position_ST[:, reached + 1 :] = 0
    value_ST = np.zeros((len(window.symbols), points))
    for place, s in enumerate(window.symbols):
        mark_T = _held(part["mark_price"][place, : reached + 1], points)
        value_ST[place] = position_ST[place].astype(np.float64) * mark_T * _value_of_quantum(registry, s)
    with np.errstate(divide="ignore", invalid="ignore"):
        exposure_T = np.where(equity_T > 0, value_ST.sum(axis=0) / equity_T, 0.0)
        gross_T = np.where(equity_T > 0, np.abs(value_ST).sum(axis=0) / equity_T, 0.0)
    decided = reached + (0 if ruined else 1)  # a ruined account decides no more
    action_T = np.full(points, -1, np.int32)
    action_T[: min(decided, record.action_LNT.shape[2])] = record.action_LNT[learner_row, n, :decided]
    rows = record.rows.get(where, np.zeros((0, len(ledger.COLUMNS)), np.int64))
    names = tuple(tape.symbols[s] for s in window.symbols)
    bar_ST, close_ST = _bars(tape, window)
    kept: dict[str, Any] = {}
    if record.q_LNTA is not None and record.allowed_LNTA is not None:
        kept = {"q_TA": record.q_LNTA[learner_row, n, :points], "allowed_TA": record.allowed_LNTA[learner_row, n, :points].astype(np.bool_)}
    return LaneResult(
        symbol="+".join(names),
        learner=learner,
        stamp_T=window.stamp_T,
        equity_T=equity_T,
        position_T=position_ST[0],
        exposure_T=exposure_T,
        action_T=action_T,
        fills=_fills(rows, registry, tape, window),
        rejections=_rejections(rows, tape, window),
        costs={name: float(registry[f"{field_name}_LN"][where]) / 1e9 for name, field_name in COSTS.items()},
        gross=float(registry["gross_LN"][where]) / 1e9,
        rounding=float(registry["rounding_LN"][where]) / 1e9,
        ruined=ruined,
        open_position=int(position_S[0]),
        symbols=names,
        position_ST=position_ST,
        gross_exposure_T=gross_T if len(names) > 1 else None,
        decided_ST=_decided(part["decided_exposure"], decided, points),
        order_ST=_until(part["order_lots"], decided, points),
        reason_ST=_until(part["reason"], decided, points),
        open_positions={name: int(lots) for name, lots in zip(names, position_S, strict=True) if lots},
        bar_ST=bar_ST,
        close_ST=close_ST,
        quantum_S=tuple(tape.instruments[s].quantum for s in window.symbols),
        **kept,
    )


COSTS = {"spread": "spread_cost", "slippage": "slippage_cost", "fees": "fee_cost", "funding": "funding_cost"}


def _value_of_quantum(registry: BufferRegistry, s: int) -> float:
    """Nano-currency of one quantum of one lot."""
    numerator, denominator = registry["instrument_SJ"][s, :2]
    return float(numerator) / float(denominator)


def check_identity(
    registry: BufferRegistry,
    tape: Tape,
    where: tuple[int, int],
    window: Window,
    start: int,
    bars: int,
    position_S: NDArray[np.int64],
    mark_S: NDArray[np.int64],
) -> None:
    """equity = start + gross - spread - slippage - fees - funding + rounding, and the equity is cash plus the marked positions."""
    label = "+".join(tape.symbols[s] for s in window.symbols)
    value = {name: int(registry[f"{name}_LN"][where]) for name in ("equity", "gross", *COSTS.values(), "rounding", "cash", "fills")}
    expected = start + value["gross"] - sum(value[name] for name in COSTS.values()) + value["rounding"]
    if value["equity"] != expected:
        raise InternalError(f"{label}: the accounts do not add up: equity {value['equity']} nano-currency, parts {expected}")
    marked, limit = value["cash"], 0
    for s, position, mark in zip(window.symbols, position_S, mark_S, strict=True):
        numerator, denominator = (int(x) for x in registry["instrument_SJ"][s, :2])
        marked += market.mul_div(int(position) * int(mark), numerator, denominator)
        limit += 0 if denominator == 1 else 4 * (bars + 1) + 4 * value["fills"]
    if value["equity"] != marked:
        raise InternalError(f"{label}: the accounts do not add up: equity {value['equity']}, cash and positions {marked}")
    if abs(value["rounding"]) > limit:
        raise InternalError(f"{label}: rounding {value['rounding']} nano-currency in {bars} bars; at most {limit} can arise")


def _bars(tape: Tape, window: Window) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """The bar of each symbol at each point of the window and its close in currency."""
    shape = (len(window.symbols), window.stamp_T.size)
    bar_ST, close_ST = np.full(shape, -1, np.int32), np.full(shape, np.nan)
    for place, s in enumerate(window.symbols):
        ts_T = tape.ts_ST[s, : int(tape.length_S[s])]
        first = int(np.searchsorted(ts_T, window.stamp_T[0]))
        if np.array_equal(ts_T[first : first + shape[1]], window.stamp_T):  # every stamp is its own, as in an account of one symbol
            bar_T, here_T = np.arange(first, first + shape[1]), np.ones(shape[1], np.bool_)
        else:
            bar_T = np.minimum(np.searchsorted(ts_T, window.stamp_T), ts_T.size - 1)
            here_T = ts_T[bar_T] == window.stamp_T
        bar_ST[place, here_T] = bar_T[here_T]
        quantum = tape.instruments[s].quantum
        close_ST[place, here_T] = tape.close_ST[s, bar_T[here_T]] * quantum.numerator / quantum.denominator
    return bar_ST, close_ST


def _held(values: NDArray[Any], points: int) -> NDArray[np.int64]:
    out = np.empty(points, np.int64)
    out[: values.size] = values
    out[values.size :] = values[-1]
    return out


def _until(values_ST: NDArray[Any], decided: int, points: int) -> NDArray[Any]:
    out = np.zeros((values_ST.shape[0], points), values_ST.dtype)
    out[:, :decided] = values_ST[:, :decided]
    return out


def _decided(values_ST: NDArray[Any], decided: int, points: int) -> NDArray[np.float64]:
    out = np.full((values_ST.shape[0], points), np.nan)
    out[:, :decided] = values_ST[:, :decided]
    return out


def _column(rows: NDArray[np.int64], name: str) -> NDArray[np.int64]:
    column: NDArray[np.int64] = rows[:, ledger.COLUMNS.index(name)]
    return column


def _common(table: NDArray[Any], rows: NDArray[np.int64], tape: Tape, window: Window) -> None:
    place = {s: index for index, s in enumerate(window.symbols)}
    symbol, bar = _column(rows, "symbol"), _column(rows, "bar")
    table["bar"], table["lots"] = bar, _column(rows, "lots")
    table["symbol"] = [place[s] for s in symbol.tolist()]
    table["stamp"] = tape.ts_ST[symbol, bar]


def _fills(rows: NDArray[np.int64], registry: BufferRegistry, tape: Tape, window: Window) -> NDArray[Any]:
    rows = rows[_column(rows, "cause") != ledger.REFUSED]
    table = np.zeros(len(rows), FILL_DTYPE)
    _common(table, rows, tape, window)
    worth = np.array([_value_of_quantum(registry, s) for s in range(len(tape.symbols))])[_column(rows, "symbol")]
    lots, spread, slippage = table["lots"], _column(rows, "spread"), _column(rows, "slippage")
    size = np.abs(lots) * worth / 1e9
    table["cause"], table["maker"] = _column(rows, "cause"), _column(rows, "maker") != 0
    table["reference"] = _column(rows, "reference")
    table["price"] = table["reference"] + np.sign(lots) * (spread + slippage)
    table["notional"] = size * table["price"]
    table["fee"] = _column(rows, "fee") / 1e9
    table["spread"], table["slippage"] = size * spread, size * slippage
    return table


def _rejections(rows: NDArray[np.int64], tape: Tape, window: Window) -> NDArray[Any]:
    rows = rows[_column(rows, "cause") == ledger.REFUSED]
    table = np.zeros(len(rows), REJECTION_DTYPE)
    _common(table, rows, tape, window)
    table["reason"] = _column(rows, "reason")
    return table
