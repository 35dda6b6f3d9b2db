"""Splits and dividends: read from an action file or a Lean factor file, and taken into bars so that an account is right.

A split multiplies lots. Execution in raw prices with lots multiplied at each split, and execution in split-adjusted prices with lots that
count shares of the last date, are the same account: lots x price is equal at every bar, and so are value, profit and return. The second is
what is done here: 100 shares at 500 before a split of 4:1 are 400 at 125 (`split_factors` gives the way back). Two things count shares of
the last date with it: a fee per share, and the volume, which is multiplied.

adjust        execution and account                      features (bars.SIGNALS)
splits        split-adjusted; dividends paid in cash     split- and dividend-adjusted
all           split- and dividend-adjusted, no cash      the same prices
none          prices as they are in the file             the same prices

Cash is booked as funding is, at the last close before the ex-date: who holds over it receives dividend x shares, a short pays it. Equity
has it one bar before the price falls by it. A dividend-adjusted price is the price times (1 - dividend / close before the ex-date) for
every later ex-date (the method of CRSP), so that ratios of prices show no dividend. The level of such prices knows of later dividends and
splits, as that of any back-adjusted series does: features that compare prices are free of it, those that read a level are not.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bellmark import calendar, clock
from bellmark.bars import Bars
from bellmark.errors import DataError, UsageError
from bellmark.files import reason
from bellmark.instrument import Instrument, exact

Adjust = Literal["splits", "all", "none"]
BASES = ("raw", "split", "split_dividend")  # what prices of a file are adjusted for already
_LARGEST_FILE = 50_000_000
_SNAP = 1e-4  # factor files keep 7 digits: 6.99998 is a split of 7:1
_LARGEST_PART = 1000  # of a ratio such as 3:2
_FINER = 10_000  # steps in a tick where adjusted prices lie on no decimal grid
_MOST_DIGITS = 1_000_000
_ONE_ACTION, _CASH_DIGITS = 5, 3  # days within which two equal actions are one (a factor file dates them on the eve), digits that agree
_NAMES = {
    "date": ("date", "ex_date", "ex-date", "exdate"), "symbol": ("symbol", "ticker"), "kind": ("kind", "action", "type"),
    "value": ("ratio", "value", "amount"), "split": ("split", "splits", "stock splits", "split_ratio"),
    "dividend": ("dividend", "dividends", "cash"),
}  # fmt: skip


@dataclass(frozen=True, order=True)
class Action:
    """What happens to a share on its ex-date (`date`, days since 1970; the first session without the right).

    split: new shares for an old one (1 = none, 0.1 = a reverse split of 1:10). dividend: cash a share of that date. share: a dividend as a
    part of the close before the ex-date, where a factor file does not say the price that would make it cash. symbol: empty = whichever the
    bars are.
    """

    date: int
    symbol: str = ""
    split: float = 1.0
    dividend: float = 0.0
    share: float = 0.0

    def __str__(self) -> str:
        parts = [f"split {ratio(self.split)}"] if self.split != 1 else []
        parts += [f"dividend {self.dividend:g}"] if self.dividend else []
        parts += [f"dividend of {self.share:.4%} of the price"] if self.share else []
        return f"{' and '.join(parts)} on {clock.day_text(self.date)}"


def ratio(split: float) -> Fraction:
    """A split as the ratio of whole numbers that it is nearest to: 6.99998 is 7, 1.5 is 3/2."""
    near = Fraction(split).limit_denominator(_LARGEST_PART)
    return near if near > 0 and abs(float(near) / split - 1) < _SNAP else exact(float(split))


def read_actions(path: Path | str, symbol: str = "") -> list[Action]:
    """The actions of a CSV file, in order of time.

    Columns date, [symbol,] split, dividend (each may be absent or empty; yfinance's names too); or date, [symbol,] kind (split, dividend),
    ratio; or a Lean factor file (date, price factor, split factor, reference price, no header). Dates are ex-dates, but in a factor file
    the last date with the former factors. `symbol`: where no column says it. DataError names the row.
    """
    path = Path(path)
    rows = _rows(path)
    if not rows:
        raise DataError(f"{path}: expected splits and dividends, found an empty file")
    if len(rows[0][1]) in (3, 4) and rows[0][1][0].isdecimal() and len(rows[0][1][0]) == 8:
        return _factors(path, rows, symbol)
    return _table(path, rows, symbol)


def to_columns(actions: Sequence[Action]) -> dict[str, list[Any]]:
    """Actions as columns of plain values, for a table."""
    return {
        "symbol": [action.symbol for action in actions], "date": [clock.day_text(action.date) for action in actions],
        "split": [action.split for action in actions], "dividend": [action.dividend for action in actions],
        "share": [action.share for action in actions],
    }  # fmt: skip


def from_columns(columns: Mapping[str, Sequence[Any]]) -> list[Action]:
    """The actions of `to_columns`."""
    shares = columns.get("share", [0.0] * len(columns["date"]))
    rows = zip(columns["symbol"], columns["date"], columns["split"], columns["dividend"], shares, strict=True)
    numbered = ((clock.day_number(date.fromisoformat(str(day))), str(name), rest) for name, day, *rest in rows)
    return [Action(day, name, *(float(value) for value in rest)) for day, name, rest in numbered]


def apply(
    bars: Bars, instrument: Instrument, actions: Iterable[Action], adjust: Adjust = "splits", basis: str = "raw"
) -> tuple[Bars, Instrument]:
    """The bars with the actions taken in (see the module), and the instrument with a grid on which the adjusted prices lie.

    basis: what the prices are adjusted for already: `raw`, `split` (dividends are then a share of the last date) or `split_dividend`; it
    must be known where prices are to be adjusted. Actions outside the span of the bars change nothing; those of one gap in the bars are
    taken in the order of their dates. Prices that lie on no decimal grid are rounded to a ten-thousandth of a tick.
    """
    if basis not in BASES and adjust != "none":
        raise UsageError(f"actions: what the prices are adjusted for already must be said: one of {', '.join(BASES)}, found '{basis}'")
    date_T = calendar.session_dates(bars.ts_event, instrument.session)
    found = [(int(np.searchsorted(date_T, action.date)), action) for action in sorted(actions) if action.symbol in ("", bars.symbol)]
    found = [(place, action) for place, action in found if 0 < place < len(bars)] if basis != "split_dividend" else []
    _refuse_twice(found)
    splits = [(place, action) for place, action in found if action.split != 1 and basis == "raw"]
    if adjust == "none":
        return _left(bars, len(splits)), instrument
    bars, grid = _split_adjusted(bars, _ratios(splits), instrument.grid)
    dividends = _dividends(bars, found, [action for _, action in splits], instrument)
    if not dividends:
        return bars, _on_grid(instrument, grid)
    factor_T = _back_factors(len(bars), [(one.place, 1 - one.cash / bars.close[one.held]) for one in dividends])
    if adjust == "all":
        finer = None if grid is None or instrument.tick_size is None else min(grid, exact(instrument.tick_size) / _FINER)
        return _scaled(bars, factor_T, finer), _on_grid(instrument, finer)
    signals: dict[str, Any] = {f"signal_{name}": price_T * factor_T for name, price_T in bars.prices.items()}
    return replace(_paid(bars, dividends), **signals), _on_grid(instrument, grid)


def split_factors(bars: Bars, instrument: Instrument, actions: Iterable[Action]) -> NDArray[np.float64]:
    """Shares of the last date that one share of each bar's date has become: adjusted lots / factor = lots of that date."""
    date_T = calendar.session_dates(bars.ts_event, instrument.session)
    mine = [action for action in actions if action.symbol in ("", bars.symbol) and action.split != 1]
    places = [(int(np.searchsorted(date_T, action.date)), float(ratio(action.split))) for action in mine]
    return _back_factors(len(bars), [(place, value) for place, value in places if place < len(bars)])


def _back_factors(count: int, changes: Sequence[tuple[int, float]]) -> NDArray[np.float64]:
    """Of each bar the product of the factors of all later places (the bars before each take part)."""
    change_T = np.ones(count + 1)
    for place, factor in changes:
        change_T[place] *= factor
    return np.cumprod(change_T[::-1])[::-1][1:].astype(np.float64)


def _refuse_twice(found: Sequence[tuple[int, Action]]) -> None:
    """Equal splits or dividends within some days and one gap of the bars are one that two files gave: a factor file dates it on the eve."""
    last: dict[tuple[int, str, float], int] = {}
    for place, action in found:
        for kind, value, none in (("split", float(ratio(action.split)), 1.0), ("dividend", action.dividend, 0.0)):
            key = place, kind, round(value, _CASH_DIGITS)
            if value != none and action.date - last.get(key, action.date - _ONE_ACTION) < _ONE_ACTION:
                shown = f"{action.symbol or 'the symbol'} at {clock.day_text(last[key])} and {clock.day_text(action.date)}"
                raise DataError(f"actions: the {kind} {value:g} of {shown} looks like one that is given twice; keep one of them")
            last[key] = action.date


def _ratios(splits: Sequence[tuple[int, Action]]) -> dict[int, Fraction]:
    """The ratio of all splits at each place: a gap in the bars may hold several."""
    ratio_at: dict[int, Fraction] = {}
    for place, action in splits:
        ratio_at[place] = ratio_at.get(place, Fraction(1)) * ratio(action.split)
    return ratio_at


def _left(bars: Bars, splits: int) -> Bars:
    if not splits:
        return bars
    note = f"{bars.symbol}: {splits} splits are not taken out of the prices; each looks like a profit or a loss"
    return replace(bars, notes=(*bars.notes, note))


def _split_adjusted(bars: Bars, splits: Mapping[int, Fraction], grid: Fraction | None) -> tuple[Bars, Fraction | None]:
    """Bars before each place of a split with prices divided and volume multiplied by its ratio, and the grid of the new prices."""
    if not splits:
        return bars, grid
    finest = grid
    factor_T, volume_T = np.ones(len(bars)), bars.volume.astype(np.float64, copy=True)
    step = Fraction(1)
    for place in sorted(splits, reverse=True):
        step *= splits[place]
        begin = max((other for other in splits if other < place), default=0)
        factor_T[begin:place] = float(1 / step)
        volume_T[begin:place] *= float(step)
        finest = None if grid is None or finest is None else min(finest, _decimal_grid(grid, step))
    scaled = _scaled(bars, factor_T, finest)
    return replace(scaled, volume=volume_T), finest


def _decimal_grid(grid: Fraction, step: Fraction) -> Fraction:
    """A decimal grid that holds every price of `grid` divided by `step` where there is one of few digits, else a ten-thousandth of it."""
    wanted = grid / step.numerator
    denominator = wanted.denominator
    for prime in (2, 5):
        while denominator % prime == 0:
            denominator //= prime
    return wanted if denominator == 1 and wanted.denominator <= _MOST_DIGITS else grid / _FINER


def _scaled(bars: Bars, factor_T: NDArray[np.float64], grid: Fraction | None) -> Bars:
    """All prices times a factor, on the grid."""
    prices: dict[str, Any] = {**bars.prices, **bars.quotes}
    prices |= {name: column for name, column in bars.extras.items() if name in ("funding_mark", "roll_price")}
    scaled: dict[str, Any] = {name: _rounded(price_T * factor_T, grid) for name, price_T in prices.items()}
    return replace(bars, **scaled)


def _rounded(price_T: NDArray[np.float64], grid: Fraction | None) -> NDArray[np.float64]:
    if grid is None:
        return price_T
    return np.rint(price_T * grid.denominator / grid.numerator) * grid.numerator / grid.denominator


def _on_grid(instrument: Instrument, grid: Fraction | None) -> Instrument:
    """The instrument with a data_quantum, where its prices need one that is finer than what it has."""
    current = instrument.grid
    return instrument if grid is None or current is None or grid >= current else replace(instrument, data_quantum=float(grid))


class _Dividend(NamedTuple):
    """place: the first bar without the right. held: the last bar of a session before it. cash: a share of the last date."""

    place: int
    held: int
    cash: float


def _dividends(bars: Bars, found: Sequence[tuple[int, Action]], splits: Sequence[Action], instrument: Instrument) -> list[_Dividend]:
    """Cash by place. It is a share of its own date: splits of later dates make more shares of it, in the same gap of the bars too."""
    days = calendar.session_days(bars.ts_event, instrument.session)
    inside = np.flatnonzero(days.within_T <= days.length_T)  # bars outside the session are left out of the tape
    paid: dict[int, float] = {}
    part: dict[int, float] = {}
    for place, action in found:
        if action.dividend or action.share:
            later = math.prod((ratio(split.split) for split in splits if split.date > action.date), start=Fraction(1))
            paid[place] = paid.get(place, 0.0) + action.dividend / float(later)
            part[place] = part.get(place, 0.0) + action.share
    dividends = []
    for place, cash in paid.items():
        before = int(np.searchsorted(inside, place)) - 1
        if before < 0:
            continue
        close = float(bars.close[inside[before]])
        cash += part[place] * close
        dividends.append(_Dividend(place, int(inside[before]), cash))
        if not 0 < cash < close:
            where = bars.where(np.array([place]))
            raise DataError(f"{where}: expected a dividend above 0 and below the close before it, {close:g}, found {cash:g} a share")
    return dividends


def _paid(bars: Bars, dividends: Sequence[_Dividend]) -> Bars:
    """The bars with cash as funding that a long receives, at the last close before each ex-date."""
    if bars.funding_rate is not None:
        raise DataError(f"{bars.symbol}: expected dividends or funding, found both")
    rate_T = np.full(len(bars), np.nan)
    for one in dividends:
        rate_T[one.held] = -one.cash / bars.close[one.held]
    return replace(bars, funding_rate=rate_T)


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    """Line number and cells of each line that is not empty."""
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise DataError(f"{path}: expected a small file of splits and dividends, found {path.stat().st_size:,} bytes")
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream)
            return [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(cell.strip() for cell in row)]
    except OSError as error:
        raise DataError(f"{path}: it cannot be read: {reason(error)}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: expected a CSV file of splits and dividends: {error}") from error


def _table(path: Path, rows: Sequence[tuple[int, list[str]]], symbol: str) -> list[Action]:
    header = [cell.casefold() for cell in rows[0][1]]
    place = {name: header.index(alias) for name, aliases in _NAMES.items() for alias in aliases if alias in header}
    if "date" not in place or not ({"split", "dividend"} & place.keys() or {"kind", "value"} <= place.keys()):
        shown = ", ".join(repr(cell) for cell in rows[0][1])
        raise DataError(f"{path}: expected columns date and split, dividend (or kind and ratio), or a Lean factor file; it has {shown}")
    found: dict[tuple[int, str], Action] = {}
    for line, cells in rows[1:]:
        where = f"{path}: line {line}"
        if len(cells) != len(header):
            raise DataError(f"{where}: expected {len(header)} cells, found {len(cells)}")
        day = _day(cells[place["date"]], where)
        name = cells[place["symbol"]] if "symbol" in place else symbol
        for kind, value in _values(cells, place, where):
            former = found.get((day, name), Action(day, name))
            if getattr(former, kind) != (1.0 if kind == "split" else 0.0):
                raise DataError(f"{where}: a second {kind} of {name or 'the symbol'} on {clock.day_text(day)}; keep one of them")
            found[day, name] = replace(former, split=value) if kind == "split" else replace(former, dividend=value)
    return sorted(found.values())


def _values(cells: Sequence[str], place: Mapping[str, int], where: str) -> list[tuple[str, float]]:
    """The actions of a row by kind; an empty cell and a 0 are none."""
    if "kind" in place:
        kind = cells[place["kind"]].casefold()
        if kind not in ("split", "dividend"):
            raise DataError(f"{where}: expected split or dividend, found {cells[place['kind']]!r}")
        return [(kind, _number(cells[place["value"]], kind, where))]
    given = [(kind, cells[place[kind]]) for kind in ("split", "dividend") if kind in place and cells[place[kind]]]
    numbers = [(kind, _number(text, kind, where, none=True)) for kind, text in given]
    return [(kind, value) for kind, value in numbers if value != 0 and (kind, value) != ("split", 1.0)]


def _number(text: str, kind: str, where: str, none: bool = False) -> float:
    for sign in (":", "/"):
        new, _, old = text.partition(sign)
        if kind == "split" and old:
            return _number(new, kind, where) / _number(old, kind, where)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isfinite(value) and (value > 0 or (none and value == 0)):
        return value
    wanted = "new shares for an old one such as 4 or 4:1" if kind == "split" else "an amount above 0"
    raise DataError(f"{where}: {kind}: expected {wanted}, found {text!r}")


def _factors(path: Path, rows: Sequence[tuple[int, list[str]]], symbol: str) -> list[Action]:
    """Of a Lean factor file: what changes between one row and the next, the day after the first of them.

    split = split factor after / before; dividend = reference price x (1 - price factor before / after), where the file has the price (in
    files of three columns, and where it is 0, the close of the bars is taken: it is that price).
    """
    parsed = []
    for line, cells in rows:
        where = f"{path}: line {line}"
        if len(cells) not in (3, 4):
            raise DataError(f"{where}: expected date, price factor, split factor, reference price, found {len(cells)} cells")
        price, split = (_number(text, "factor", where) for text in cells[1:3])
        reference = _number(cells[3], "reference price", where, none=True) if len(cells) == 4 else 0.0
        parsed.append((_day(cells[0], where), price, split, reference, where))
    found = []
    for before, after in pairwise(parsed):
        if after[0] <= before[0]:
            found_days = f"{clock.day_text(after[0])} after {clock.day_text(before[0])}"
            raise DataError(f"{after[4]}: expected rows in order of time, found {found_days}")
        split = after[2] / before[2]
        share = 1 - before[1] / after[1]
        cash = before[3] * share
        action = Action(before[0] + 1, symbol, float(ratio(split)), cash, 0.0 if cash else share)
        if action.split != 1 or share:
            found.append(action)
    return found


def _day(text: str, where: str) -> int:
    """The date of a cell: yyyy-mm-dd (what follows, such as a time, is left out) or yyyymmdd."""
    try:
        return clock.day_number(date.fromisoformat(text if text.isdecimal() else text[:10]))
    except ValueError:
        raise DataError(f"{where}: expected a date as YYYY-MM-DD, found {text!r}") from None
