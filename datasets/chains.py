"""Futures contracts as one series: when each is left for the next, and the prices that features see.

Rules, each decided before the roll is made:
volume               the first session in which the next contract trades more than the current one. It is known when that session is over,
                     and the position is rolled at the end of the session after it; at the latest at the end of the last session that both
                     have, since a contract's end is known from the start
days_before_expiry   the last session that closes at least so many calendar days before the expiry
dates                sessions that are named

A roll is made at the last bar of its session that both contracts have. Orders are filled and positions marked in the contracts' own prices
(contracts.splice); features see adjusted ones beside them (bars.SIGNALS), in which a roll is no move:

difference   price + sum of (next - current) over the rolls to come: differences are those of the contracts, on the tick
ratio        price x product of (next / current) over the rolls to come: ratios are those of the contracts
none         features see the contracts' own prices, with a jump at each roll

Both keep the last contract's prices, so levels of the past know the rolls to come, while differences (or ratios) do not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bellmark import calendar, clock, holidays
from bellmark.bars import Bars
from bellmark.component import Dataset, component, setting
from bellmark.contracts import splice
from bellmark.datasets.imported import Imported
from bellmark.errors import DataError, UsageError
from bellmark.instrument import Instrument, Session, exact
from bellmark.instruments import MONTHS, built_in, root_of

Adjust = Literal["none", "difference", "ratio"]
THIRD_FRIDAY = ("ES", "MES", "NQ")  # roots whose contracts end on the third Friday of their month (CME contract specifications)
_FINER = 1000  # quanta in a tick where features see prices off the tick


@component
class FuturesChain(Dataset):
    """Contracts of an imported dataset, joined into one series that rolls from each to the next.

    Fills, marks and rolls are in the contracts' own prices, and each roll costs what the market settings say; features see prices adjusted
    for the rolls. See `bellmark.datasets.chains` for the rules.
    """

    name: ClassVar[str] = "futures_chain"
    path: str = setting(meaning="dataset that holds the contracts: a folder, or a name under data/")
    symbols: tuple[str, ...] = setting((), "contracts in the order in which they end; empty = all, by the month in their symbols")
    symbol: str = setting("", "name of the series; empty = the root of the contracts' symbols")
    roll: Literal["volume", "days_before_expiry", "dates"] = setting("volume", "when a contract is left for the next")
    days_before_expiry: int = setting(8, "calendar days before the expiry, for that rule", ge=0, le=366, unit="days")
    expiries: tuple[str, ...] = setting((), "expiry of each contract as YYYY-MM-DD; empty = third Friday, for ES, MES and NQ alone")
    roll_dates: tuple[str, ...] = setting((), "sessions at whose end to roll as YYYY-MM-DD, one fewer than contracts, for the rule `dates`")
    adjust: Adjust = setting("difference", "how prices that features see are freed of the rolls")
    every: str = setting("", "longer bars to make of the bars, such as 5m, 1h, 1d or session; empty = as they are")

    def read(self) -> list[Any]:
        """The joined bars and their instrument."""
        found = Imported(path=self.path, symbols=self.symbols, every=self.every, adjust="none").read()
        pairs = found if self.symbols else sorted(found, key=lambda pair: _month_of(pair[0]))
        contracts = [bars for bars, _ in pairs]
        instrument = _one_instrument(pairs)
        rolls = self._rolls(contracts, instrument.session)
        symbol = self.symbol or root_of(contracts[0].symbol)
        joined = adjusted(splice(contracts, rolls, symbol), self.adjust)
        notes = (*(note for bars in contracts for note in bars.notes), *left_out(contracts))
        return [(replace(joined, notes=notes), _for_signals(replace(instrument, symbol=symbol), self.adjust))]

    def _rolls(self, contracts: Sequence[Bars], session: Session | None) -> list[int]:
        if self.roll == "volume":
            return roll_by_volume(contracts, session)
        if self.roll == "dates":
            return roll_on_dates(contracts, [_parsed(text, "data.roll_dates") for text in self.roll_dates], session)
        expiries = [_parsed(text, "data.expiries") for text in self.expiries] or [third_friday_of(bars) for bars in contracts]
        return roll_before_expiry(contracts, expiries, self.days_before_expiry, session)


def roll_by_volume(contracts: Sequence[Bars], session: Session | None) -> list[int]:
    """Stamps (UTC ns) of the rolls by volume; see the module. Volume must be known in every session that both contracts have."""
    rolls: list[int] = []
    for old, new in pairwise(contracts):
        meet = _Meetings(old, new, session, rolls[-1] if rolls else None)
        more = [day for day in meet.dates if meet.volume(new, day) > meet.volume(old, day)]
        later = [day for day in meet.dates if more and day > more[0]]
        rolls.append(meet.last_stamp(later[0] if later else meet.dates[-1]))
    return rolls


def roll_before_expiry(contracts: Sequence[Bars], expiries: Sequence[date], days: int, session: Session | None) -> list[int]:
    """Stamps (UTC ns) of the rolls, each in the last session that both contracts have at least `days` calendar days before the expiry."""
    if len(expiries) != len(contracts):
        raise UsageError(f"data.expiries: expected {len(contracts)} dates, one of each contract, found {len(expiries)}")
    rolls: list[int] = []
    for (old, new), expiry in zip(pairwise(contracts), expiries, strict=False):
        meet = _Meetings(old, new, session, rolls[-1] if rolls else None)
        limit = clock.day_number(expiry) - days
        early = [day for day in meet.dates if day <= limit]
        if not early:
            first = clock.day_text(meet.dates[0])
            raise DataError(
                f"{old.symbol} and {new.symbol}: no session of both closes {days} days or more before the expiry {expiry}; the first of "
                f"both is {first}"
            )
        rolls.append(meet.last_stamp(early[-1]))
    return rolls


def roll_on_dates(contracts: Sequence[Bars], dates: Sequence[date], session: Session | None) -> list[int]:
    """Stamps (UTC ns) of the rolls at the end of named sessions, in which both contracts must have a bar of one stamp."""
    if len(dates) != len(contracts) - 1:
        raise UsageError(f"data.roll_dates: expected {len(contracts) - 1} dates between {len(contracts)} contracts, found {len(dates)}")
    rolls: list[int] = []
    for (old, new), day in zip(pairwise(contracts), dates, strict=True):
        meet = _Meetings(old, new, session, rolls[-1] if rolls else None)
        if clock.day_number(day) not in meet.dates:
            near = clock.day_text(min(meet.dates, key=lambda other: abs(other - clock.day_number(day))))
            raise DataError(f"{old.symbol} and {new.symbol}: they have no bar of one stamp in the session of {day}; the nearest is {near}")
        rolls.append(meet.last_stamp(clock.day_number(day)))
    return rolls


def adjusted(bars: Bars, how: Adjust) -> Bars:
    """A spliced series with prices for features beside its own; see the module. Bars up to a roll take part in it."""
    if how == "none" or bars.roll_price is None:
        return bars
    at = np.flatnonzero(~np.isnan(bars.roll_price))
    if how == "difference":
        change_T = np.zeros(len(bars))
        change_T[at] = bars.roll_price[at] - bars.close[at]
        shift_T = np.cumsum(change_T[::-1])[::-1]
        prices = {name: price_T + shift_T for name, price_T in bars.prices.items()}
    else:
        _refuse_below_zero(bars, {"close": bars.close[at], "roll_price": bars.roll_price[at]}, at)
        change_T = np.ones(len(bars))
        change_T[at] = bars.roll_price[at] / bars.close[at]
        factor_T = np.cumprod(change_T[::-1])[::-1]
        prices = {name: price_T * factor_T for name, price_T in bars.prices.items()}
    if (bars.low > 0).all() and (prices["low"] <= 0).any():
        place = int(np.flatnonzero(prices["low"] <= 0)[-1])
        raise DataError(
            f"{bars.where(np.array([place]))}: the differences of the rolls take prices to {prices['low'][place]:g}, where ratios mean "
            "nothing; take data.adjust = 'ratio'"
        )
    signals: dict[str, Any] = {f"signal_{name}": price_T for name, price_T in prices.items()}
    return replace(bars, **signals)


def third_friday_of(bars: Bars) -> date:
    """Expiry of an index future by the month in its symbol: the third Friday, or the last day before it on which the NYSE opens.

    The index must have openings to settle by: ESH8 ended on Thursday 2008-03-20, the day before Good Friday.
    """
    if root_of(bars.symbol) not in THIRD_FRIDAY:
        raise UsageError(f"data.expiries: give the expiry of each contract; that of {bars.symbol} follows no rule that is known here")
    year, month = _month_of(bars)
    first = date(year, month, 1)
    friday = first + timedelta((4 - first.weekday()) % 7 + 14)
    closed = holidays.days_of("nyse", 0, 0).closed
    return next(day for day in (friday - timedelta(back) for back in range(7)) if clock.day_number(day) not in closed)


def left_out(contracts: Sequence[Bars]) -> list[str]:
    """What to say of contracts of the listed months that a chain passes over: their months are those of the built-in instrument."""
    listing = built_in().get(root_of(contracts[0].symbol))
    if listing is None or not listing.months or any(root_of(bars.symbol) != listing.name for bars in contracts):
        return []
    notes = []
    for old, new in pairwise(contracts):
        (year, month), until = _month_of(old), _month_of(new)
        between = []
        while (year, month) < until:
            year, month = (year, month + 1) if month < 12 else (year + 1, 1)
            between += [f"{listing.name}{MONTHS[month - 1]}{year % 100:02}"] if MONTHS[month - 1] in listing.months else []
        if between := [name for name in between if name != f"{listing.name}{MONTHS[until[1] - 1]}{until[0] % 100:02}"]:
            notes.append(f"{old.symbol} and {new.symbol}: contracts between them are left out: {', '.join(between)}")
    return notes


class _Meetings:
    """The sessions after a roll in which two contracts have bars of one stamp."""

    def __init__(self, old: Bars, new: Bars, session: Session | None, after: int | None) -> None:
        self.pair, self.session = (old, new), session
        stamp_K = np.intersect1d(old.ts_event, new.ts_event)
        self.stamp_K = stamp_K if after is None else stamp_K[stamp_K > after]
        if not len(self.stamp_K):
            rest = "" if after is None else " after the roll before"
            raise DataError(f"{old.symbol} and {new.symbol}: the two contracts have no bar of one stamp{rest}, so nothing can be rolled")
        self.date_K = calendar.session_dates(self.stamp_K, session)
        self.dates: list[int] = np.unique(self.date_K).tolist()
        self._volumes: dict[str, Mapping[int, float]] = {bars.symbol: self._by_date(bars) for bars in self.pair}

    def last_stamp(self, day: int) -> int:
        """The last stamp of both in a session."""
        return int(self.stamp_K[self.date_K == day][-1])

    def volume(self, bars: Bars, day: int) -> float:
        """What a contract trades in a session."""
        volume = self._volumes[bars.symbol][day]
        if np.isnan(volume):
            shown = f"{bars.symbol}: the volume of {clock.day_text(day)}"
            raise DataError(f"{shown} is not known, and data.roll = 'volume' needs it; take another rule")
        return volume

    def _by_date(self, bars: Bars) -> Mapping[int, float]:
        date_D, index_T = np.unique(calendar.session_dates(bars.ts_event, self.session), return_inverse=True)
        total_D = np.bincount(index_T, bars.volume, len(date_D))
        return dict(zip(date_D.tolist(), total_D.tolist(), strict=True))


def _one_instrument(pairs: Sequence[tuple[Bars, Instrument]]) -> Instrument:
    first = pairs[0][1]
    for bars, instrument in pairs[1:]:
        if replace(instrument, symbol=first.symbol) != first:
            raise DataError(f"{bars.symbol}: expected the same tick, multiplier, lot and hours as {first.symbol}; they are other contracts")
    return first


def _for_signals(instrument: Instrument, how: Adjust) -> Instrument:
    """With a quantum fine enough that prices times a ratio are not rounded by what features would notice."""
    if how != "ratio" or instrument.tick_size is None or instrument.price_quantum is not None:
        return instrument
    return replace(instrument, price_quantum=float(exact(instrument.tick_size) / _FINER))


def _month_of(bars: Bars) -> tuple[int, int]:
    """Year and month in which a contract ends, by its symbol; a year of one digit is the one nearest to its last bar."""
    found = re.fullmatch(rf".+?([{MONTHS}])(\d{{1,2}}|\d{{4}})", bars.symbol)
    if not found:
        raise UsageError(
            f"data.symbols: '{bars.symbol}' does not say the contract's month as ESZ3 or ESH24 do; give the contracts in order"
        )
    digits, last = found[2], int(calendar.session_dates(bars.ts_event[-1:], None)[0])
    year = int(digits)
    if len(digits) < 4:
        century = 10 ** len(digits)
        near = int(clock.day_text(last)[:4])
        year = min((near // century * century + year + shift for shift in (-century, 0, century)), key=lambda other: abs(other - near))
    return year, MONTHS.index(found[1]) + 1


def _refuse_below_zero(bars: Bars, prices: Mapping[str, NDArray[np.float64]], at: NDArray[np.int64]) -> None:
    for name, price_K in prices.items():
        wrong = np.flatnonzero(price_K <= 0)
        if wrong.size:
            where = bars.where(at[wrong])
            raise DataError(f"{where}: {name} {price_K[wrong[0]]:g} at a roll has no ratio; take data.adjust = 'difference'")


def _parsed(text: str, where: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{where}: expected a date as YYYY-MM-DD, found {text!r}") from None
