"""Bars as a dataset gives them, and the rules that they must keep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bellmark import clock
from bellmark.errors import DataError

_SHOWN = 3


@dataclass(frozen=True)
class Bars:
    """The bars of one symbol in time order.

    ts_event: int64 UTC nanoseconds of the bar's CLOSE. open, high, low, close: float64 prices. volume: float64 units, NaN where unknown
    (unknown is not zero). bid, ask: float64 at the close, optional. source: file or generator, for errors. row_T: data row of the
    source (from 1, the header not counted) of each bar, None if the bars are all its rows. duplicates: identical rows left out.
    """

    symbol: str
    ts_event: NDArray[np.int64]
    open: NDArray[np.float64]
    high: NDArray[np.float64]
    low: NDArray[np.float64]
    close: NDArray[np.float64]
    volume: NDArray[np.float64]
    bid: NDArray[np.float64] | None = None
    ask: NDArray[np.float64] | None = None
    source: str = ""
    row_T: NDArray[np.int64] | None = None
    duplicates: int = 0

    @classmethod
    def from_prices(
        cls, symbol: str, ts_T: NDArray[np.int64], price: dict[str, NDArray[np.float64]], volume_T: NDArray[np.float64], source: str
    ) -> Bars:
        """Bars from their prices by name."""
        return cls(symbol, ts_T, price["open"], price["high"], price["low"], price["close"], volume_T, source=source)

    def __len__(self) -> int:
        return len(self.ts_event)

    @property
    def prices(self) -> dict[str, NDArray[np.float64]]:
        """Open, high, low and close by name."""
        return {"open": self.open, "high": self.high, "low": self.low, "close": self.close}

    def take(self, index: NDArray[np.int64] | NDArray[np.bool_]) -> Bars:
        """The bars at some places; the rows they come from are kept."""
        rows = np.arange(1, len(self) + 1) if self.row_T is None else self.row_T
        return replace(
            self,
            ts_event=self.ts_event[index],
            open=self.open[index],
            high=self.high[index],
            low=self.low[index],
            close=self.close[index],
            volume=self.volume[index],
            bid=None if self.bid is None else self.bid[index],
            ask=None if self.ask is None else self.ask[index],
            row_T=rows[index],
        )

    def where(self, places: NDArray[np.int64]) -> str:
        """Source, symbol and the first few rows of some places, to begin an error with."""
        rows = places + 1 if self.row_T is None else self.row_T[places]
        shown = ", ".join(str(int(row)) for row in rows[:_SHOWN])
        more = f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
        origin = f"{self.source}: " if self.source else ""
        return f"{origin}{self.symbol}: data row{'s' if len(rows) > 1 else ''} {shown}{more} (the header not counted)"


def check(bars: Bars, allow_negative_prices: bool = False) -> None:
    """Refuses bars that break a rule, in one line that names the rows; identical duplicates count as unsorted here (see `in_order`)."""
    origin = f"{bars.source}: " if bars.source else ""
    if len(bars) == 0:
        raise DataError(f"{origin}{bars.symbol}: there are no bars")
    lengths = {name: len(array) for name, array in {"ts_event": bars.ts_event, **bars.prices, "volume": bars.volume}.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"{origin}{bars.symbol}: the columns differ in length: {lengths}")
    for name in bars.prices:
        _check_prices(bars, name, allow_negative_prices)
    _refuse(bars, bars.high < bars.low, lambda t: f"high {bars.high[t]:g} is below low {bars.low[t]:g}")
    for name in ("open", "close"):
        _check_inside(bars, name)
    _refuse(bars, bars.volume < 0, lambda t: f"volume is {bars.volume[t]:g}, expected 0 or more")
    _refuse(bars, np.isinf(bars.volume), lambda t: f"volume is {_shown(bars.volume[t])}, expected a number")
    # compared, not subtracted: the difference of stamps that wrapped around int64 looks like a step forwards
    backwards_T = np.concatenate([[False], bars.ts_event[1:] <= bars.ts_event[:-1]])
    _refuse(bars, backwards_T, lambda t: f"stamp {clock.text(bars.ts_event[t])} does not come after {clock.text(bars.ts_event[t - 1])}")


def _check_prices(bars: Bars, name: str, allow_negative_prices: bool) -> None:
    price_T = bars.prices[name]
    _refuse(bars, ~np.isfinite(price_T), lambda t: f"{name} is {_shown(price_T[t])}, expected a number")
    if not allow_negative_prices:
        _refuse(bars, price_T <= 0, lambda t: f"{name} is {price_T[t]:g}; prices must be above 0 here")


def _check_inside(bars: Bars, name: str) -> None:
    price_T = bars.prices[name]
    outside_T = (price_T > bars.high) | (price_T < bars.low)
    _refuse(bars, outside_T, lambda t: f"{name} {price_T[t]:g} lies outside low {bars.low[t]:g} to high {bars.high[t]:g}")


def in_order(bars: Bars) -> Bars:
    """The bars without identical duplicates, which are counted; rows of one stamp that disagree and rows out of order are refused."""
    if np.all(bars.ts_event[1:] > bars.ts_event[:-1]):
        return bars
    # Rows with one stamp may be apart: they are compared in time order, kept in file order.
    order = np.argsort(bars.ts_event, kind="stable")
    earlier, later = order[:-1], order[1:]
    shared = bars.ts_event[earlier] == bars.ts_event[later]
    columns = (*bars.prices.values(), bars.volume, *(touch for touch in (bars.bid, bars.ask) if touch is not None))
    equal = np.ones(len(earlier), np.bool_)
    for column in columns:
        equal &= (column[earlier] == column[later]) | (np.isnan(column[earlier]) & np.isnan(column[later]))
    conflict = np.flatnonzero(shared & ~equal)
    if conflict.size:
        pair = np.array([earlier[conflict[0]], later[conflict[0]]])
        a, b = pair
        found = next(
            f"{name} {column[a]:g} and {column[b]:g}"
            for name, column in {**bars.prices, "volume": bars.volume, "bid": bars.bid, "ask": bars.ask}.items()
            if column is not None and column[a] != column[b]
        )
        raise DataError(f"{bars.where(pair)}: two rows for {clock.text(bars.ts_event[a])} disagree: {found}; keep one of them")
    keep_T = np.ones(len(bars), np.bool_)
    keep_T[later[shared & equal]] = False
    kept = bars.take(keep_T)
    backwards = np.flatnonzero(kept.ts_event[1:] <= kept.ts_event[:-1])
    if backwards.size:
        t = int(backwards[0]) + 1
        before, after = clock.text(kept.ts_event[t - 1]), clock.text(kept.ts_event[t])
        raise DataError(f"{kept.where(backwards + 1)}: the rows are not in time order: {after} comes after {before}")
    return replace(kept, duplicates=bars.duplicates + int(np.count_nonzero(~keep_T)))


def _refuse(bars: Bars, bad_T: NDArray[np.bool_], say: Callable[[int], str]) -> None:
    places = np.flatnonzero(bad_T)
    if places.size:
        t = int(places[0])
        raise DataError(f"{bars.where(places)}: {say(t)} at {clock.text(bars.ts_event[t])}")


def _shown(value: float) -> str:
    return "missing or not a number (NaN)" if np.isnan(value) else "infinite"
