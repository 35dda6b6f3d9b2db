"""Bars as a dataset gives them, and the rules that they must keep; funding instants put into the bars that hold them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellmark import clock
from bellmark.errors import DataError

PRICES = ("open", "high", "low", "close")
RATE_ONE = 1_000_000_000  # funding rates are counted in 1e-9
BIDS = ("bid_open", "bid_high", "bid_low", "bid")
ASKS = ("ask_open", "ask_high", "ask_low", "ask")
OPTIONAL = (*BIDS, *ASKS, "halted", "funding_rate", "funding_mark", "roll_price")
SIGNALS = ("signal_open", "signal_high", "signal_low", "signal_close")
_SHOWN = 3


@dataclass(frozen=True)
class Bars:
    """The bars of one symbol in time order.

    ts_event: int64 UTC nanoseconds of the bar's CLOSE. open, high, low, close: float64 prices. volume: float64 units, NaN where unknown
    (unknown is not zero). source: file or generator, for errors. row_T: data row of the source (from 1, the header not counted) of each
    bar, None if the bars are all its rows. duplicates: identical rows left out. instants_outside: funding instants left out (see
    `with_funding`). notes: what every use of the bars should warn of.

    Optional columns, None where the data have none:
    bid, ask: float64 quotes at the close; bid_open, bid_high, bid_low and the same of the ask: the rest of the quote bars, all eight or
    only the two of the close. halted: bool, nothing trades in the bar. funding_rate: float64, the rate settled in the bar (a long pays a
    positive one), counted in 1e-9; NaN = no instant. funding_mark: the price it is settled at; NaN = the close, and of no meaning
    where there is no instant. roll_price: price of the next contract at this bar's close, where the position is rolled; NaN = no roll.
    signal_open, signal_high, signal_low, signal_close: the adjusted prices that features read instead of the traded ones, all four or none.
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
    bid_open: NDArray[np.float64] | None = None
    bid_high: NDArray[np.float64] | None = None
    bid_low: NDArray[np.float64] | None = None
    ask_open: NDArray[np.float64] | None = None
    ask_high: NDArray[np.float64] | None = None
    ask_low: NDArray[np.float64] | None = None
    halted: NDArray[np.bool_] | None = None
    funding_rate: NDArray[np.float64] | None = None
    funding_mark: NDArray[np.float64] | None = None
    roll_price: NDArray[np.float64] | None = None
    instants_outside: int = 0
    notes: tuple[str, ...] = ()
    signal_open: NDArray[np.float64] | None = None
    signal_high: NDArray[np.float64] | None = None
    signal_low: NDArray[np.float64] | None = None
    signal_close: NDArray[np.float64] | None = None

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

    @property
    def extras(self) -> dict[str, NDArray[Any]]:
        """The optional columns that are there, by name."""
        columns = {name: getattr(self, name) for name in (*OPTIONAL, *SIGNALS)}
        return {name: column for name, column in columns.items() if column is not None}

    @property
    def quotes(self) -> dict[str, NDArray[np.float64]]:
        """The columns of bid and ask that are there, by name."""
        return {name: column for name, column in self.extras.items() if name in BIDS + ASKS}

    def take(self, index: NDArray[np.int64] | NDArray[np.bool_]) -> Bars:
        """The bars at some places; the rows they come from are kept."""
        rows = np.arange(1, len(self) + 1) if self.row_T is None else self.row_T
        extras: dict[str, Any] = {name: column[index] for name, column in self.extras.items()}
        return replace(
            self,
            ts_event=self.ts_event[index],
            open=self.open[index],
            high=self.high[index],
            low=self.low[index],
            close=self.close[index],
            volume=self.volume[index],
            row_T=rows[index],
            **extras,
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
    if len(bars) == 0:
        raise DataError(f"{_origin(bars)}: there are no bars")
    columns = {"ts_event": bars.ts_event, **bars.prices, "volume": bars.volume, **bars.extras}
    lengths = {name: len(array) for name, array in columns.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"{_origin(bars)}: the columns differ in length: {lengths}")
    for name, price_T in bars.prices.items():
        _check_prices(bars, name, price_T, allow_negative_prices)
    _check_ranges(bars, "", bars.prices)
    _refuse(bars, bars.volume < 0, lambda t: f"volume is {bars.volume[t]:g}, expected 0 or more")
    _refuse(bars, np.isinf(bars.volume), lambda t: f"volume is {_shown(bars.volume[t])}, expected a number")
    # compared, not subtracted: the difference of stamps that wrapped around int64 looks like a step forwards
    backwards_T = np.concatenate([[False], bars.ts_event[1:] <= bars.ts_event[:-1]])
    _refuse(bars, backwards_T, lambda t: f"stamp {clock.text(bars.ts_event[t])} does not come after {clock.text(bars.ts_event[t - 1])}")
    if bars.extras:
        _check_quotes(bars, allow_negative_prices)
        _check_events(bars, allow_negative_prices)


def _check_prices(bars: Bars, name: str, price_T: NDArray[np.float64], allow_negative_prices: bool) -> None:
    _refuse(bars, ~np.isfinite(price_T), lambda t: f"{name} is {_shown(price_T[t])}, expected a number")
    if not allow_negative_prices:
        _refuse(bars, price_T <= 0, lambda t: f"{name} is {price_T[t]:g}; prices must be above 0 here")


def _check_ranges(bars: Bars, side: str, price: dict[str, NDArray[np.float64]]) -> None:
    """Open and close within low and high; `side` begins the names of quotes."""
    low_T, high_T = price["low"], price["high"]
    _refuse(bars, high_T < low_T, lambda t: f"{side}high {high_T[t]:g} is below {side}low {low_T[t]:g}")
    for name in ("open", "close"):
        label = side.removesuffix("_") if side and name == "close" else side + name
        _check_inside(bars, label, price[name], side, low_T, high_T)


def _check_inside(
    bars: Bars, label: str, price_T: NDArray[np.float64], side: str, low_T: NDArray[np.float64], high_T: NDArray[np.float64]
) -> None:
    outside_T = (price_T > high_T) | (price_T < low_T)
    _refuse(bars, outside_T, lambda t: f"{label} {price_T[t]:g} lies outside {side}low {low_T[t]:g} to {side}high {high_T[t]:g}")


def _check_quotes(bars: Bars, allow_negative_prices: bool) -> None:
    quotes = bars.quotes
    if not quotes:
        return
    if set(quotes) not in ({"bid", "ask"}, set(BIDS + ASKS)):
        raise DataError(
            f"{_origin(bars)}: expected quotes as bid and ask at the close alone, or with {', '.join(BIDS[:3] + ASKS[:3])} beside them, "
            f"found {', '.join(quotes)}"
        )
    for name, price_T in quotes.items():
        _check_prices(bars, name, price_T, allow_negative_prices)
    for bid, ask in zip(BIDS, ASKS, strict=True):
        if bid in quotes:
            _check_spread(bars, bid, ask)
    for side, names in (("bid_", BIDS), ("ask_", ASKS)):
        if names[0] in quotes:
            _check_ranges(bars, side, dict(zip(("open", "high", "low", "close"), (quotes[name] for name in names), strict=True)))


def _check_spread(bars: Bars, bid: str, ask: str) -> None:
    bid_T, ask_T = bars.quotes[bid], bars.quotes[ask]
    _refuse(bars, ask_T < bid_T, lambda t: f"{ask} {ask_T[t]:g} is below {bid} {bid_T[t]:g}")


def _check_events(bars: Bars, allow_negative_prices: bool) -> None:
    """Halts, funding instants, rolls and the prices of signals."""
    signals = {name: column for name, column in bars.extras.items() if name in SIGNALS}
    if signals:
        if len(signals) != len(SIGNALS):
            raise DataError(f"{_origin(bars)}: expected {', '.join(SIGNALS)} together, found {', '.join(signals)}")
        for name, signal_T in signals.items():
            _check_prices(bars, name, signal_T, allow_negative_prices)
    if bars.halted is not None:
        halted_T = np.asarray(bars.halted)
        _refuse(bars, (halted_T != 0) & (halted_T != 1), lambda t: f"halted is {halted_T[t]!s}, expected true or false")
    rate_T = bars.funding_rate
    if rate_T is not None:
        _refuse(
            bars,
            np.abs(rate_T) >= 1,  # also where it is infinite
            lambda t: f"funding_rate is {rate_T[t]:g}, expected a share of the value above -1 and below 1, such as 0.0001",
        )
    elif bars.funding_mark is not None:
        raise DataError(f"{_origin(bars)}: expected funding_rate beside funding_mark, found none")
    for name in ("funding_mark", "roll_price"):
        price_T = bars.extras.get(name)
        if price_T is not None:
            known = np.flatnonzero(~np.isnan(price_T))
            _check_prices(bars.take(known), name, price_T[known], allow_negative_prices)


def in_order(bars: Bars) -> Bars:
    """The bars without identical duplicates, which are counted; rows of one stamp that disagree and rows out of order are refused."""
    if np.all(bars.ts_event[1:] > bars.ts_event[:-1]):
        return bars
    # Rows with one stamp may be apart: they are compared in time order, kept in file order.
    order = np.argsort(bars.ts_event, kind="stable")
    earlier, later = order[:-1], order[1:]
    shared = bars.ts_event[earlier] == bars.ts_event[later]
    columns = {**bars.prices, "volume": bars.volume, **bars.extras}
    equal = np.ones(len(earlier), np.bool_)
    for column in columns.values():
        equal &= _same(column[earlier], column[later])
    conflict = np.flatnonzero(shared & ~equal)
    if conflict.size:
        pair = np.array([earlier[conflict[0]], later[conflict[0]]])
        a, b = pair
        found = next(
            f"{name} {float(column[a]):g} and {float(column[b]):g}" for name, column in columns.items() if not _same(column[a], column[b])
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


def with_funding(bars: Bars, ts: Any, rate: Any, mark: Any = None, late_ns: int = clock.SECOND) -> Bars:
    """The bars with funding instants: `ts` (UTC ns), `rate` (a long pays a positive one) and `mark` of each, in any order.

    An instant belongs to the first bar that closes at it or after it, so one at a bar's close to that bar: who holds just before the
    instant pays. Exchanges stamp settlements some milliseconds late: up to `late_ns` after a close it counts as at the close. Where no bar
    spans the instant (a gap), the next bar takes it, after what works at that bar's open. A mark left out or NaN is the close of the bar.
    Instants before the first bar's open (by the commonest bar length) and after the last close are left out and counted in
    `instants_outside`: no position can be there.

    Several instants in one bar become one: rate = sum r, mark = sum r m / sum r, so that rate * mark is the sum of all payments. It is
    refused where that mark does not exist (rates of opposite signs that cancel); rates are first rounded to 1e-9.
    """
    if bars.funding_rate is not None:
        raise DataError(f"{_origin(bars)}: it has funding already; give all instants in one call")
    if len(bars) == 0:
        raise DataError(f"{_origin(bars)}: there are no bars")
    ts_K, rate_K, mark_K = _instants(bars, ts, rate, mark)
    place_K = np.searchsorted(bars.ts_event, ts_K)
    before_K = np.maximum(place_K - 1, 0)
    at_K = np.minimum(place_K, len(bars) - 1)
    late_K = (place_K > 0) & (bars.ts_event[at_K] != ts_K) & (ts_K - bars.ts_event[before_K] <= late_ns)
    place_K = np.where(late_K, before_K, place_K)
    inside_K = (place_K < len(bars)) & (ts_K > bars.ts_event[0] - _step(bars.ts_event))
    if len(ts_K) and not inside_K.any():
        raise DataError(
            f"{_origin(bars)}: none of the {len(ts_K)} funding instants lies within the bars: they run from {clock.text(ts_K.min())} to "
            f"{clock.text(ts_K.max())}, the bars from {clock.text(bars.ts_event[0])} to {clock.text(bars.ts_event[-1])}; "
            "stamps are UTC nanoseconds"
        )
    rate_T, mark_T = np.full(len(bars), np.nan), np.full(len(bars), np.nan)
    _merge(bars, place_K[inside_K], rate_K[inside_K], mark_K[inside_K], rate_T, mark_T)
    outside = int(np.count_nonzero(~inside_K))
    return replace(bars, funding_rate=rate_T, funding_mark=mark_T, instants_outside=bars.instants_outside + outside)


def _instants(bars: Bars, ts: Any, rate: Any, mark: Any) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    where = f"{_origin(bars)}: funding instants"
    ts_K, rate_K = np.atleast_1d(np.asarray(ts)), np.atleast_1d(np.asarray(rate, np.float64))
    mark_K = np.full(len(ts_K), np.nan) if mark is None else np.atleast_1d(np.asarray(mark, np.float64))
    if len(ts_K) and not np.issubdtype(ts_K.dtype, np.integer):
        raise DataError(f"{where}: expected stamps as whole UTC nanoseconds, found {ts_K.dtype}")
    if not len(ts_K) == len(rate_K) == len(mark_K):
        found = f"{len(ts_K)} stamps, {len(rate_K)} rates, {len(mark_K)} marks"
        raise DataError(f"{where}: expected a rate and a mark for each stamp, found {found}")
    order = np.argsort(ts_K, kind="stable")
    ts_K, rate_K, mark_K = ts_K[order].astype(np.int64), rate_K[order], mark_K[order]
    twice = np.flatnonzero(ts_K[1:] == ts_K[:-1])
    if twice.size:
        raise DataError(f"{where}: {clock.text(ts_K[twice[0]])} is there twice")
    wrong = np.flatnonzero(~(np.abs(rate_K) < 1))
    if wrong.size:
        stamp, value = clock.text(ts_K[wrong[0]]), rate_K[wrong[0]]
        raise DataError(f"{where}: the rate at {stamp} is {value:g}, expected a share above -1 and below 1, such as 0.0001")
    return ts_K, rate_K, mark_K


def _merge(
    bars: Bars,
    place_K: NDArray[np.int64],
    rate_K: NDArray[np.float64],
    mark_K: NDArray[np.float64],
    rate_T: NDArray[np.float64],
    mark_T: NDArray[np.float64],
) -> None:
    """Writes one rate and one mark for each bar that holds instants."""
    mark_K = np.where(np.isnan(mark_K), bars.close[place_K], mark_K)
    nano_K = np.rint(rate_K * RATE_ONE)
    bar_J, index_K, count_J = np.unique(place_K, return_inverse=True, return_counts=True)
    lowest_J, highest_J = np.full(len(bar_J), np.inf), np.full(len(bar_J), -np.inf)
    np.minimum.at(lowest_J, index_K, mark_K)
    np.maximum.at(highest_J, index_K, mark_K)
    nano_J = np.bincount(index_K, nano_K, len(bar_J))
    value_J = np.bincount(index_K, nano_K * mark_K, len(bar_J))
    size_J = np.bincount(index_K, np.abs(nano_K * mark_K), len(bar_J))
    differ_J = lowest_J < highest_J
    none_J = differ_J & (nano_J == 0) & (np.abs(value_J) > 1e-12 * size_J)
    weighted_J = np.divide(value_J, nano_J, out=np.bincount(index_K, mark_K, len(bar_J)) / count_J, where=nano_J != 0)
    none_J |= differ_J & (lowest_J > 0) & (weighted_J <= 0)
    if none_J.any():
        places = bar_J[none_J]
        raise DataError(
            f"{bars.where(places)}: the funding rates in the bar that closes at {clock.text(bars.ts_event[places[0]])} cancel and their "
            "marks differ, so no one rate and mark stands for them; take shorter bars"
        )
    rate_T[bar_J], mark_T[bar_J] = nano_J / RATE_ONE, np.where(differ_J, weighted_J, lowest_J)


def _step(ts_T: NDArray[np.int64]) -> int:
    """The commonest distance of neighbours; 0 for a single bar."""
    steps, counts = np.unique(np.diff(ts_T), return_counts=True)
    return int(steps[np.argmax(counts)]) if steps.size else 0


def _origin(bars: Bars) -> str:
    return f"{bars.source}: {bars.symbol}" if bars.source else bars.symbol


def _same(a: Any, b: Any) -> Any:
    return (a == b) | (np.isnan(a) & np.isnan(b))


def _refuse(bars: Bars, bad_T: NDArray[np.bool_], say: Callable[[int], str]) -> None:
    places = np.flatnonzero(bad_T)
    if places.size:
        t = int(places[0])
        raise DataError(f"{bars.where(places)}: {say(t)} at {clock.text(bars.ts_event[t])}")


def _shown(value: float) -> str:
    return "missing or not a number (NaN)" if np.isnan(value) else "infinite"
