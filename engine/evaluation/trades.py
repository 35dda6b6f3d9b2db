"""Round trips: from the fill that leaves flat to the fill that returns to flat, per symbol.

A fill that turns a long into a short ends one trade and starts the next, its money shared by lots. Profit is net of spread, slippage and
fees; funding belongs to no single trade and is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellmark.evaluation.curve import NANO, Curve, Undefined

NO_TRADE = "no closed trade"
NO_VALUE = "the fills do not state their value"

TRADES = np.dtype(
    [
        ("symbol", "i4"),
        ("entry_ns", "i8"),
        ("exit_ns", "i8"),
        ("lots", "i8"),  # largest position of the trade, signed
        ("profit", "f8"),  # currency, net of spread, slippage and fees
        ("cost", "f8"),  # currency: spread, slippage and fees
        ("closed", "?"),
    ]
)


@dataclass(frozen=True)
class TradeSummary:
    """Counts and money of the closed trades. A number that does not exist is None."""

    closed: int
    open: int
    wins: int
    losses: int
    gross_win: float | None
    gross_loss: float | None
    average_win: float | None
    average_loss: float | None
    best: float | None
    worst: float | None
    average_days: float | None


def trade_table(curve: Curve) -> NDArray[Any]:
    """Every trade in order of entry, the open ones (closed = False, profit NaN) included. Computed once a curve."""
    kept = curve.__dict__.get("_trade_table")  # several metrics and the report ask for it
    if kept is None:
        kept = curve.__dict__["_trade_table"] = _trade_table(curve)
    return kept


def _trade_table(curve: Curve) -> NDArray[Any]:
    parts = [_of_symbol(curve.fills[curve.fills["symbol"] == symbol]) for symbol in np.unique(curve.fills["symbol"])]
    table = np.concatenate(parts) if parts else np.zeros(0, TRADES)
    return table[np.argsort(table["entry_ns"], kind="stable")]


def closed_profits(curve: Curve) -> NDArray[np.float64] | Undefined:
    """Net profit of each closed trade, or why there is none to speak of."""
    trades = trade_table(curve)
    profits = trades["profit"][trades["closed"]]
    if profits.size == 0:
        return Undefined(NO_TRADE)
    if np.isnan(profits).any():
        return Undefined(NO_VALUE)
    return profits


def trade_summary(trades: NDArray[Any]) -> TradeSummary:
    """The summary that the report prints for an account."""
    closed = trades[trades["closed"]]
    profit = closed["profit"]
    known = profit.size > 0 and not np.isnan(profit).any()
    win, loss = profit[profit > 0.0], profit[profit < 0.0]
    days = (closed["exit_ns"] - closed["entry_ns"]) / 86_400e9
    return TradeSummary(
        closed=int(closed.size),
        open=int(trades.size - closed.size),
        wins=int(win.size),
        losses=int(loss.size),
        gross_win=float(win.sum()) if known else None,
        gross_loss=float(-loss.sum()) if known else None,
        average_win=float(win.mean()) if win.size else None,
        average_loss=float(loss.mean()) if loss.size else None,
        best=float(profit.max()) if known else None,
        worst=float(profit.min()) if known else None,
        average_days=float(days.mean()) if closed.size else None,
    )


def _of_symbol(fills: NDArray[Any]) -> NDArray[Any]:
    fills = fills[fills["lots"] != 0]
    if fills.size == 0:
        return np.zeros(0, TRADES)
    after = np.cumsum(fills["lots"])
    before = after - fills["lots"]
    turns = (np.sign(before) * np.sign(after)) < 0
    # a turning fill becomes two rows: the one that closes and the one that opens
    row = np.repeat(np.arange(fills.size), 1 + turns)
    second = np.zeros(row.size, bool)
    second[1:] = row[1:] == row[:-1]
    first_of_two = np.zeros(row.size, bool)
    first_of_two[:-1] = second[1:]
    lots = np.where(first_of_two, -before[row], np.where(second, after[row], fills["lots"][row]))
    share = lots / fills["lots"][row]
    charge = fills["fee"] + fills["spread"] + fills["slippage"]
    cash = (-np.sign(fills["lots"]) * fills["notional"] - fills["fee"])[row] * share
    position = np.cumsum(lots)
    starts = np.flatnonzero(np.concatenate(([True], position[:-1] == 0)))
    last = np.concatenate((starts[1:], [row.size])) - 1
    table = np.zeros(starts.size, TRADES)
    stamp = fills["stamp"][row]
    table["symbol"] = fills["symbol"][0]
    table["entry_ns"], table["exit_ns"] = stamp[starts], stamp[last]
    low, high = np.minimum.reduceat(position, starts), np.maximum.reduceat(position, starts)
    table["lots"] = np.where(-low > high, low, high)
    table["closed"] = position[last] == 0
    # money is counted in nano-currency: what adding float64 leaves below that is no profit and no loss
    profit = np.rint(np.add.reduceat(cash, starts) * NANO) / NANO
    table["profit"] = np.where(table["closed"], profit, np.nan)
    table["cost"] = np.add.reduceat(charge[row] * share, starts)
    return table
