"""The ledger of a backtest as plain rows: fills, round trips, refused orders, and every decision with what became of it.

Rows are dictionaries of plain values, the same for the terminal, for files and for tables. Stamps are closes of bars in ISO 8601 with a Z,
prices and money are in currency, lots are signed, `bar` counts the bars of the symbol in its data from 0. What is not known is None.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellmark.evaluation.curve import curve_of_lanes
from bellmark.evaluation.trades import trade_table
from bellmark.files import SCHEMA_VERSION, json_line, make_folder, write_lines
from bellmark.market import BAD_EXPOSURE, BAD_SIZE, CAUSES, FILLED, LAST_BAR, MAKER, ORDER, REASONS
from bellmark.results import Backtest, LaneResult

Row = dict[str, Any]
_AT_DECISION = (BAD_EXPOSURE, BAD_SIZE, LAST_BAR)  # refusals listed at the bar that decided, all others at the bar that worked the order
_SECOND = 1_000_000_000


def fill_rows(result: Backtest) -> Iterator[Row]:
    """Every fill, account by account in time order: learner, symbol, ts, bar, cause (market.CAUSES), lots, price, reference, notional, fee,
    spread, slippage, maker (whether the order rested).

    price = reference + spread and slippage a unit, against the order; notional (below 0 at a price below 0), fee, spread and slippage are
    of the whole fill.
    """
    for lane in result.lanes:
        table = lane.fills
        price, reference = in_currency(lane, table, "price"), in_currency(lane, table, "reference")
        stamps = stamps_of(table["stamp"])
        money = {name: table[name].tolist() for name in ("notional", "fee", "spread", "slippage")}
        for row, (place, bar, cause, lots, maker) in enumerate(_columns(table, "symbol", "bar", "cause", "lots", "maker")):
            head = {"learner": lane.learner, "symbol": lane.symbols[place], "ts": stamps[row], "bar": bar, "cause": CAUSES[cause]}
            sizes = {"lots": lots, "price": price[row], "reference": reference[row], "maker": maker}
            yield head | sizes | {name: values[row] for name, values in money.items()}


def rejection_rows(result: Backtest) -> Iterator[Row]:
    """Every order that did not fill, or its part that did not: learner, symbol, ts, bar, lots, reason (market.REASONS)."""
    for lane in result.lanes:
        stamps = stamps_of(lane.rejections["stamp"])
        for row, (place, bar, lots, reason) in enumerate(_columns(lane.rejections, "symbol", "bar", "lots", "reason")):
            head = {"learner": lane.learner, "symbol": lane.symbols[place], "ts": stamps[row], "bar": bar}
            yield head | {"lots": lots, "reason": REASONS[reason]}


def trade_rows(result: Backtest) -> list[Row]:
    """Every round trip (see `bellmark.evaluation.trades`) in order of its entry.

    Columns: learner, symbol, entry, exit, lots, entry_price, exit_price, profit, cost, exit_cause.

    lots: the largest position, signed. entry_price, exit_price: mean price over the lots of the fills that built and that reduced the
    position. profit is net of spread, slippage and fees; cost is these three. A trade that is open at the end has no exit and no profit.
    """
    rows: list[tuple[int, Row]] = []
    for lane in result.lanes:
        table = trade_table(curve_of_lanes([lane], result.periods_per_year))
        walked = sorted(_walk(lane), key=lambda leg: leg.entry_ns)
        for trade, leg in zip(table, walked, strict=True):
            closed = bool(trade["closed"])
            ends = stamps_of(np.array([trade["entry_ns"], trade["exit_ns"]]))
            row: Row = {"learner": lane.learner, "symbol": lane.symbols[int(trade["symbol"])]}
            row |= {"entry": ends[0], "exit": ends[1] if closed else None}
            row |= {"lots": int(trade["lots"]), "entry_price": leg.built.mean, "exit_price": leg.reduced.mean}
            row |= {"profit": float(trade["profit"]) if closed else None, "cost": float(trade["cost"])}
            rows.append((int(trade["entry_ns"]), row | {"exit_cause": CAUSES[leg.cause] if closed else None}))
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


@dataclass
class _Mean:
    """Lots and the sum of lots times price."""

    lots: int = 0
    value: float = 0.0

    def add(self, lots: int, price: float) -> None:
        self.lots += lots
        self.value += lots * price

    @property
    def mean(self) -> float | None:
        """The mean price; rounded to what a float64 of such sums can say."""
        return float(f"{self.value / self.lots:.12g}") if self.lots else None


@dataclass
class _Leg:
    """The fills of one trade as they are met."""

    entry_ns: int
    built: _Mean
    reduced: _Mean
    cause: int = ORDER


def _walk(lane: LaneResult) -> Iterator[_Leg]:
    """The trades of an account, symbol by symbol: a fill that turns the position belongs to two of them."""
    price = in_currency(lane, lane.fills, "price")
    for place in np.unique(lane.fills["symbol"]).tolist():
        position, leg = 0, None
        for row in np.flatnonzero(lane.fills["symbol"] == place).tolist():
            lots, stamp, cause = (int(lane.fills[name][row]) for name in ("lots", "stamp", "cause"))
            while lots:
                if leg is None:
                    leg = _Leg(stamp, _Mean(), _Mean())
                reducing = position != 0 and (position > 0) != (lots > 0)
                part = min(abs(lots), abs(position)) * (1 if lots > 0 else -1) if reducing else lots
                (leg.reduced if reducing else leg.built).add(abs(part), price[row])
                position, lots, leg.cause = position + part, lots - part, cause
                if position == 0:
                    yield leg
                    leg = None
        if leg is not None:
            yield leg


def decision_rows(result: Backtest, between: tuple[int, int] | None = None) -> Iterator[Row]:
    """Every decision, account by account and symbol by symbol in time order, with what became of it.

    learner, symbol, ts, bar, close: the bar whose close was just seen. action: number of the joint action, decision: its label (both None
    for rule strategies). exposure: what was asked for. q, legal: value and legality of each action by its label, of policies whose values
    were kept (`backtest(..., keep_values=True)`), else None. position: lots held at that close. order: lots of the order that worked,
    target: lots to be held after it (both None where no bar was left for it to work in). fills: all fills of the bar that worked the order
    (lots, price, cause), those of stops too. refused: what did not fill (lots, reason).

    between: keeps decisions at stamps within [first, last] (UTC ns).
    """
    late = _bars_to_work(result)
    for lane in result.lanes:
        for place in range(len(lane.symbols)):
            yield from _decisions_of(result, lane, place, late, between)


def _bars_to_work(result: Backtest) -> int:
    """Bars from a decision to the bar in which its order works: 0 where orders fill at their own close."""
    market = result.rules["market"]
    return 0 if market["same_close"] else int(market["latency_bars"])


def _decisions_of(result: Backtest, lane: LaneResult, place: int, late: int, between: tuple[int, int] | None) -> Iterator[Row]:
    assert lane.bar_ST is not None and lane.close_ST is not None and lane.decided_ST is not None and lane.order_ST is not None
    point_B = np.flatnonzero(lane.bar_ST[place] >= 0)  # the points at which the symbol has a bar
    bar_B, close_B, decided_B = (array_ST[place, point_B] for array_ST in (lane.bar_ST, lane.close_ST, lane.decided_ST))
    position_B = _positions(lane, place)[point_B]
    outcome = _Outcomes(lane, place, late, bar_B, lane.order_ST[place, point_B])
    stamps = stamps_of(lane.stamp_T[point_B])
    values = _values_of(result, lane)
    for b, point in enumerate(point_B.tolist()):
        if np.isnan(decided_B[b]) and not outcome.of_no_number(b):
            continue
        if between is not None and not between[0] <= lane.stamp_T[point] <= between[1]:
            continue
        action = int(lane.action_T[point]) if lane.action_T[point] >= 0 else None
        order, held = outcome.order(b), outcome.held(b, position_B)
        yield {
            "learner": lane.learner,
            "symbol": lane.symbols[place],
            "ts": stamps[b],
            "bar": int(bar_B[b]),
            "close": float(close_B[b]),
            "action": action,
            "decision": None if action is None else result.action_space.label(action),
            "exposure": float(decided_B[b]) if np.isfinite(decided_B[b]) else None,
            **values(point),
            "position": int(position_B[b]),
            "order": order,
            "target": None if order is None or held is None else held + order,
            "fills": outcome.fills.get(b, []),
            "refused": outcome.refused.get(b, []),
        }


def _positions(lane: LaneResult, place: int) -> NDArray[np.int64]:
    return lane.position_T if lane.position_ST is None else lane.position_ST[place]


def _values_of(result: Backtest, lane: LaneResult) -> Callable[[int], Row]:
    """Q values and legality at a point by the actions' labels."""
    q_TA, allowed_TA = lane.q_TA, lane.allowed_TA
    if q_TA is None or allowed_TA is None:
        return lambda point: {"q": None, "legal": None}
    labels = [result.action_space.label(action) for action in range(result.action_space.A)]

    def at(point: int) -> Row:
        q = [float(f"{value:.9g}") if np.isfinite(value) else None for value in q_TA[point].tolist()]
        return {"q": dict(zip(labels, q, strict=True)), "legal": dict(zip(labels, allowed_TA[point].tolist(), strict=True))}

    return at


class _Outcomes:
    """What became of the decisions of one symbol in one account: each fill and refusal belongs to exactly one of them."""

    def __init__(self, lane: LaneResult, place: int, late: int, bar_B: NDArray[np.int32], order_B: NDArray[np.int64]) -> None:
        self.late, self.order_B, self.last = late, order_B, bar_B.size - 1
        self.fills: dict[int, list[Row]] = defaultdict(list)  # by decision
        self.refused: dict[int, list[Row]] = defaultdict(list)
        self.ordered: dict[int, int] = defaultdict(int)  # lots filled by the order itself
        for lots, price, cause, bar in _of_symbol(lane, lane.fills, place, ("lots", "price", "cause", "bar")):
            b = max(int(np.searchsorted(bar_B, bar)) - late, 0)
            self.fills[b].append({"lots": lots, "price": price, "cause": CAUSES[cause]})
            self.ordered[b] += lots if cause == ORDER else 0
        for lots, code, bar in _of_symbol(lane, lane.rejections, place, ("lots", "reason", "bar")):
            b = max(int(np.searchsorted(bar_B, bar)) - (0 if code in _AT_DECISION else late), 0)
            self.refused[b].append({"lots": lots, "reason": REASONS[code]})
        if lane.reason_ST is not None and lane.bar_ST is not None:
            self._add_unlisted(lane.reason_ST[place][lane.bar_ST[place] >= 0].tolist())

    def _add_unlisted(self, reason_B: list[int]) -> None:
        """An order that was refused before it had a size is in no list of orders; its reason is kept at its decision."""
        for b, code in enumerate(reason_B):
            if code not in (FILLED, MAKER) and b not in self.refused:
                self.refused[b].append({"lots": None, "reason": REASONS[code]})

    def of_no_number(self, b: int) -> bool:
        """Whether decision b was made, but on an exposure that is no number."""
        return any(row["reason"] == REASONS[BAD_EXPOSURE] for row in self.refused.get(b, ()))

    def order(self, b: int) -> int | None:
        """Lots of the order of decision b; None where it was still behind others in the queue when the window ended."""
        recorded = int(self.order_B[b])
        if recorded or b + self.late <= self.last:
            return recorded
        if b + self.late > self.last + 1:
            return None
        return sum(row["lots"] or 0 for row in self.refused.get(b, ()) if row["reason"] == REASONS[LAST_BAR])

    def held(self, b: int, position_B: NDArray[np.int64]) -> int | None:
        """Lots held when the order of decision b came to work."""
        if self.late == 0:
            return int(position_B[b]) - self.ordered.get(b, 0)
        at = b + self.late - 1
        return int(position_B[at]) if at <= self.last else None


def _of_symbol(lane: LaneResult, table: NDArray[Any], place: int, names: tuple[str, ...]) -> Iterable[tuple[Any, ...]]:
    mine = table[table["symbol"] == place]
    columns = [in_currency(lane, mine, name) if name == "price" else mine[name].tolist() for name in names]
    return zip(*columns, strict=True)


def _columns(table: NDArray[Any], *names: str) -> Iterable[tuple[Any, ...]]:
    return zip(*(table[name].tolist() for name in names), strict=True)


def in_currency(lane: LaneResult, table: NDArray[Any], name: str) -> list[float]:
    """Prices in quanta as currency: the float64 next to the exact number."""
    price = np.zeros(len(table))
    for place, quantum in enumerate(lane.quantum_S):
        mine = table["symbol"] == place
        price[mine] = table[name][mine] * quantum.numerator / quantum.denominator
    return price.tolist()


def stamps_of(stamp_T: NDArray[np.int64]) -> list[str]:
    """UTC nanoseconds as ISO 8601 with a Z; seconds where all are whole."""
    unit = "s" if not (stamp_T % _SECOND).any() else "ns"
    return [f"{text}Z" for text in stamp_T.astype("datetime64[ns]").astype(f"datetime64[{unit}]").astype(str).tolist()]


KINDS: Mapping[str, Callable[[Backtest], Iterable[Row]]] = {
    "fills": fill_rows,
    "trades": trade_rows,
    "rejections": rejection_rows,
    "decisions": decision_rows,
}
"""The rows by the name of their file."""


def write_rows(result: Backtest, folder: Path | str, kinds: Iterable[str]) -> dict[str, Path]:
    """Writes rows (names of KINDS) as KIND.jsonl into a folder, one JSON object a line with its schema_version; returns the files by kind.

    Each file is written beside and renamed, row by row: a long backtest needs no more memory for it.
    """
    folder = make_folder(folder)
    files = {}
    for kind in kinds:
        files[kind] = folder / f"{kind}.jsonl"
        write_lines(files[kind], (json_line({"schema_version": SCHEMA_VERSION, **row}) for row in KINDS[kind](result)))
    return files
