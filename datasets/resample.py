"""Longer bars of shorter ones, and bars of ticks, by time. Nothing looks ahead: a bar is stamped at the end of its span and complete there.

Spans start anew with each session (with each day of UTC where there is no session) and the last one ends with it; a bar that would lie in
two is refused. A bar of a span holds what closed in it: open of the first, highest high, lowest low, close of the last, sum of volumes
(unknown where one is unknown).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellmark import clock
from bellmark.bars import Bars
from bellmark.datasets.hours import Hours, Spans
from bellmark.errors import DataError, UsageError

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_FIRST = ("open", "bid_open", "ask_open", "signal_open")
_HIGHEST = ("high", "bid_high", "ask_high", "signal_high")
_LOWEST = ("low", "bid_low", "ask_low", "signal_low")
_LAST = ("close", "bid", "ask", "signal_close")


def length_of(text: str, where: str) -> int:
    """Nanoseconds of a length such as 30s, 1m, 4h or 1d."""
    found = re.fullmatch(r"\s*([0-9]{1,6})\s*(s|m|h|d)\s*", text)
    if not found or int(found[1]) == 0:
        raise UsageError(f"{where}: expected a length such as 30s, 1m, 4h or 1d, found '{text}'")
    return int(found[1]) * _UNITS[found[2]] * clock.SECOND


def span_length(text: str, hours: Hours, where: str) -> int:
    """Nanoseconds of a span, `session` and 1d (a day, cut at the session's end) being a whole session; longer ones are refused."""
    if text == "session":
        return clock.DAY
    length = length_of(text, where)
    if length != clock.DAY and length > hours.longest:
        raise UsageError(f"{where}: expected at most a session (1d), found '{text}': longer bars would need bars of another session")
    return length


def span_ends(ts_T: NDArray[np.int64], length: int, hours: Hours) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The end (UTC ns) of the span in which each bar closes, and whether it closes within the session.

    Spans are counted in time that passed since the open, so that a change of the clocks within a session shifts none of them.
    """
    spans = hours.spans(ts_T)
    end_T = np.minimum((_number(spans, length) + 1) * length, spans.length_T) if length < clock.DAY else spans.length_T
    return ts_T - spans.since_T + end_T, spans.since_T <= spans.length_T


def _number(spans: Spans, length: int) -> NDArray[np.int64]:
    """Of each bar the number of its span in the session; a session is one day, even of 25 hours."""
    return (spans.since_T - 1) // length if length < clock.DAY else np.zeros(len(spans.since_T), np.int64)


def spans_of(bars: Bars, length: int, base: int, hours: Hours, where: str) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """`span_ends` of bars of `base` ns (0 = unknown); refuses bars that lie in two spans, but for one that its session cuts short."""
    spans = hours.spans(bars.ts_event)
    since_T, inside_T = spans.since_T, spans.since_T <= spans.length_T
    number_T = _number(spans, length)
    if base and base < length:
        cut_T = (since_T == spans.length_T) | ((since_T < base) & (spans.length_T + base <= clock.DAY))  # by the close, or by the open
        two_T = (((since_T - base) // length != number_T) if length < clock.DAY else since_T < base) & inside_T & ~cut_T
        if two_T.any():
            places = np.flatnonzero(two_T)
            t = places[0]
            begin = clock.text(bars.ts_event[t] - since_T[t] + number_T[t] * length)
            raise DataError(
                f"{where}: the bar of {base / clock.SECOND:g} s that closes at {clock.text(bars.ts_event[t])} would lie in two spans: one "
                f"begins at {begin} ({len(places)} bars of {bars.symbol} do); spans begin at the open of the session, or at midnight UTC "
                "without one: give the session whose open the bars begin at"
            )
    end_T = np.minimum((number_T + 1) * length, spans.length_T) if length < clock.DAY else spans.length_T
    return bars.ts_event - since_T + end_T, inside_T


def resample(bars: Bars, every: str, hours: Hours, base: int, where: str = "every") -> tuple[Bars, int]:
    """Bars of `every` made of bars of `base` ns, and how many of these were left out at the end because their span is not over.

    Bars outside the session are left out. Only upwards, to a whole number of base bars.
    """
    length = span_length(every, hours, where)
    check_upwards(every, length, base, where)
    end_T, inside_T = spans_of(bars, length, base, hours, where)
    if not inside_T.all():
        bars, end_T = bars.take(np.flatnonzero(inside_T)), end_T[inside_T]
    if not len(bars):
        return bars, 0
    cut = complete_until(bars.ts_event, end_T)
    return aggregate(bars.take(np.arange(cut)), end_T[:cut]), len(bars) - cut


def check_upwards(every: str, length: int, base: int, where: str) -> None:
    """Refuses spans that are shorter than the bars, or that a bar would cross."""
    if base > length:
        raise UsageError(f"{where}: bars of {base / clock.SECOND:g} s cannot become shorter ones of '{every}'")
    if base and length % base and length != clock.DAY:
        raise UsageError(f"{where}: expected a whole number of bars of {base / clock.SECOND:g} s, found '{every}': a bar would lie in two")


def complete_until(ts_T: NDArray[np.int64], end_T: NDArray[np.int64]) -> int:
    """How many bars belong to spans that are over: the last span is, where its last bar closes at its end."""
    if not len(ts_T) or ts_T[-1] == end_T[-1]:
        return len(ts_T)
    return int(np.searchsorted(end_T, end_T[-1]))


def aggregate(bars: Bars, end_T: NDArray[np.int64]) -> Bars:
    """One bar for each run of equal `end_T`, stamped there."""
    if not len(bars):
        return bars
    first = np.flatnonzero(np.concatenate([[True], np.diff(end_T) > 0]))
    last = np.concatenate([first[1:], [len(bars)]]) - 1
    columns: dict[str, NDArray[Any]] = {}
    for name, column in {**bars.prices, **bars.extras}.items():
        columns[name] = _column(bars, name, column, first, last)
    with np.errstate(invalid="ignore"):
        volume_T = np.add.reduceat(bars.volume, first)
    rows = np.arange(1, len(bars) + 1) if bars.row_T is None else bars.row_T
    return replace(bars, ts_event=end_T[last], volume=volume_T, row_T=rows[first], **columns)  # type: ignore[arg-type]


def _column(bars: Bars, name: str, column: NDArray[Any], first: NDArray[np.int64], last: NDArray[np.int64]) -> NDArray[Any]:
    if name in _FIRST:
        return column[first]
    if name in _HIGHEST:
        return np.maximum.reduceat(column, first)
    if name in _LOWEST:
        return np.minimum.reduceat(column, first)
    if name in _LAST:
        return column[last]
    if name == "halted":
        return np.minimum.reduceat(np.asarray(column, np.uint8), first).astype(np.bool_)  # halted where nothing of it trades
    lost = ~np.isnan(column)
    lost[last] = False
    if name == "roll_price" and not lost.any():
        return column[last]
    places = np.flatnonzero(lost)
    if places.size or name != "roll_price":
        what = "a roll" if name == "roll_price" else f"{name} of single bars"
        if places.size or np.any(~np.isnan(column)):
            where = bars.where(places if places.size else np.flatnonzero(~np.isnan(column)))
            raise DataError(f"{where}: {what} lies inside a longer bar, which would move it; resample before it is put in")
    return column[last]


def tick_bars(ticks: dict[str, NDArray[Any]], length: int, hours: Hours, symbol: str) -> tuple[Bars, int]:
    """Bars of ticks in time order, each over [open, close); no bar without a tick. Also how many ticks lie outside the session.

    `ticks`: ts (UTC ns), price, size (NaN = unknown), and where there are quotes bid and ask, which become quote bars (NaN where a bar has
    none). Several ticks of one stamp count in their order.
    """
    # a tick at a bar's open belongs to that bar, so it is placed as a bar would be that closes just after it
    end_T, inside_T = span_ends(ticks["ts"] + 1, length, hours)
    outside = int(np.count_nonzero(~inside_T))
    if outside:
        ticks, end_T = {name: column[inside_T] for name, column in ticks.items()}, end_T[inside_T]
    first = np.flatnonzero(np.concatenate([[True], np.diff(end_T) > 0])) if len(end_T) else np.zeros(0, np.int64)
    last = (np.concatenate([first[1:], [len(end_T)]]) - 1).astype(np.int64) if len(end_T) else first
    price = _open_to_close(ticks["price"], first, last)
    with np.errstate(invalid="ignore"):
        volume_T = np.add.reduceat(ticks["size"], first) if first.size else np.zeros(0)
    bars = Bars.from_prices(symbol, end_T[last], dict(zip(("open", "high", "low", "close"), price, strict=True)), volume_T, "")
    quotes: dict[str, Any] = {}
    for side in ("bid", "ask"):
        if side in ticks:
            names = (f"{side}_open", f"{side}_high", f"{side}_low", side)
            quotes |= dict(zip(names, _quote_side(ticks[side], first, last), strict=True))
    return replace(bars, row_T=ticks["row"][first], **quotes), outside


def _open_to_close(column: NDArray[Any], first: NDArray[np.int64], last: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
    if not first.size:
        return (np.zeros(0),) * 4
    return column[first], np.fmax.reduceat(column, first), np.fmin.reduceat(column, first), column[last]


def _quote_side(column: NDArray[np.float64], first: NDArray[np.int64], last: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
    """Open, high, low and close of the quotes that are there: the first and the last known one of each span."""
    if not first.size:
        return (np.zeros(0),) * 4
    known = np.flatnonzero(~np.isnan(column))
    begin, end = np.searchsorted(known, first), np.searchsorted(known, last, side="right") - 1
    some = begin <= end
    padded = np.append(column[known], np.nan)
    opened = np.where(some, padded[np.minimum(begin, len(known))], np.nan)
    closed = np.where(some, padded[np.maximum(end, 0)], np.nan)
    return opened, np.fmax.reduceat(column, first), np.fmin.reduceat(column, first), closed


def merged(former: Bars, later: Bars) -> Bars:
    """Two parts of one bar, made of ticks before and after, as one."""
    values: dict[str, Any] = {}
    for name, column in {**former.prices, **former.extras}.items():
        other = getattr(later, name)
        a, b = float(column[0]), float(other[0])
        if name in _FIRST:
            value = b if np.isnan(a) else a
        elif name in _HIGHEST:
            value = float(np.fmax(a, b))
        elif name in _LOWEST:
            value = float(np.fmin(a, b))
        else:
            value = a if np.isnan(b) else b
        values[name] = np.array([value])
    return replace(former, volume=former.volume + later.volume, **values)


def joined(parts: list[Bars]) -> Bars:
    """Bars on end of one symbol and with the same columns."""
    first = parts[0]
    if len(parts) == 1:
        return first
    names = ["ts_event", "open", "high", "low", "close", "volume", *first.extras]
    columns: dict[str, Any] = {name: np.concatenate([getattr(bars, name) for bars in parts]) for name in names}
    if all(bars.row_T is not None for bars in parts):
        columns["row_T"] = np.concatenate([bars.row_T for bars in parts if bars.row_T is not None])
    return replace(first, **columns)
