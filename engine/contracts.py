"""Futures contracts joined into one series that says where and at which price a position is rolled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellmark import clock
from bellmark.bars import OPTIONAL, SIGNALS, Bars, check
from bellmark.errors import DataError

_ABSENT = {name: False if name == "halted" else np.nan for name in OPTIONAL}


def splice(contracts: Sequence[Bars], rolls: Sequence[int], symbol: str = "") -> Bars:
    """Consecutive contracts as one series of their own, unadjusted prices.

    `rolls` (UTC ns) are the stamps of the last bar of each contract but the last: bars up to a roll are the old contract's, bars after it
    the next one's. roll_price at a roll = close of the next contract at that same stamp. A roll at which either has no bar is refused:
    the difference between two contracts is known only where both have a price. The jump of the prices after a roll is no profit or loss:
    the position is sold at the old close and bought at roll_price. `symbol` names the series; empty = the first contract's name. Errors
    found later count its rows, not those of the contracts' files.
    """
    if not contracts:
        raise DataError("splice: expected at least one contract, found none")
    if len(rolls) != len(contracts) - 1:
        raise DataError(f"splice: expected {len(contracts) - 1} rolls between {len(contracts)} contracts, found {len(rolls)}")
    for bars in contracts:
        check(bars, allow_negative_prices=True)  # whether they are legal the instrument says, when the tape is compiled
        if SIGNALS[0] in bars.extras:
            raise DataError(
                f"splice: {bars.symbol}: expected traded prices alone, found {SIGNALS[0]}; adjust the series after it is joined"
            )
    parts = []
    begin = np.iinfo(np.int64).min
    for old, new, roll in zip(contracts[:-1], contracts[1:], (int(roll) for roll in rolls), strict=True):
        if roll <= begin:
            raise DataError(f"splice: expected rolls in time order, found {clock.text(roll)} after {clock.text(begin)}")
        _bar_at(old, roll, "its last bar is to be there")
        part = _between(old, begin, roll)
        price_T = np.full(len(part), np.nan) if part.roll_price is None else part.roll_price
        price_T[-1] = new.close[_bar_at(new, roll, "the roll takes its close there")]
        parts.append(replace(part, roll_price=price_T))
        begin = roll
    parts.append(_between(contracts[-1], begin, int(contracts[-1].ts_event[-1])))
    return _joined(parts, symbol or contracts[0].symbol)


def difference_adjusted(bars: Bars) -> Bars:
    """A spliced series whose contracts are shifted onto the last one's level, without rolls.

    price'[t] = price[t] + sum of (roll_price[r] - close[r]) over the rolls r >= t, so that every change from bar to bar is a change of one
    contract and the last contract keeps its prices. Quotes and funding marks move along. Adjusted prices of the past may fall to zero and
    below, and say nothing of ratios; costs of the rolls are gone with them.
    """
    if bars.roll_price is None:
        return bars
    difference_T = np.where(np.isnan(bars.roll_price), 0.0, bars.roll_price - bars.close)
    shift_T = np.cumsum(difference_T[::-1])[::-1]
    prices: dict[str, Any] = {**bars.prices, **bars.quotes}
    if bars.funding_mark is not None:
        prices["funding_mark"] = bars.funding_mark
    shifted: dict[str, Any] = {name: price_T + shift_T for name, price_T in prices.items()}
    return replace(bars, roll_price=None, **shifted)


def _bar_at(bars: Bars, stamp: int, use: str) -> int:
    place = int(np.searchsorted(bars.ts_event, stamp))
    if place == len(bars) or bars.ts_event[place] != stamp:
        nearest = bars.ts_event[np.argmin(np.abs(bars.ts_event - stamp))]
        origin = f"{bars.source}: " if bars.source else ""
        found = f"the nearest closes at {clock.text(nearest)}"
        raise DataError(f"{origin}{bars.symbol}: no bar closes at the roll {clock.text(stamp)}, and {use}; {found}")
    return place


def _between(bars: Bars, after: int, until: int) -> Bars:
    return bars.take(np.flatnonzero((bars.ts_event > after) & (bars.ts_event <= until)))


def _joined(parts: Sequence[Bars], symbol: str) -> Bars:
    names = [name for name in OPTIONAL if any(getattr(bars, name) is not None for bars in parts)]
    for bars in parts:
        if set(bars.quotes) != set(parts[0].quotes):
            found = " and ".join(f"{', '.join(each.quotes) or 'none'} for {each.symbol}" for each in (parts[0], bars))
            raise DataError(f"splice: expected the same quotes for every contract, or none at all, found {found}")

    def column(name: str) -> NDArray[Any]:
        given = [getattr(bars, name) for bars in parts]
        return np.concatenate(
            [np.full(len(bars), _ABSENT[name]) if each is None else each for bars, each in zip(parts, given, strict=True)]
        )

    columns: dict[str, Any] = {name: column(name) for name in ("ts_event", "open", "high", "low", "close", "volume", *names)}
    return Bars(
        symbol=symbol,
        source=f"contracts {', '.join(bars.symbol for bars in parts)}",
        duplicates=sum(bars.duplicates for bars in parts),
        instants_outside=sum(bars.instants_outside for bars in parts),
        **columns,
    )
