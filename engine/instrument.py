"""What is traded: tick, multiplier, lot, currency, session, and the price quantum in which money is counted exactly.

Prices are int64 multiples of the quantum, positions int64 lots, money int64 nano-currency (1e-9). One quantum of one lot is worth

    quantum * contract_multiplier * lot_size * 1e9  nano-currency = value_numerator / value_denominator

as a ratio of whole numbers. Every setting is read as the decimal number that was written (0.01 is 1/100), never as its binary neighbour.

How the quantum is chosen (`with_costs`, then `resolved`):
1. `price_quantum`, where the profile or the dataset names one, as it is.
2. Else the largest step that divides half the tick (so that half of a spread of one tick can be booked), `data_quantum` (the grid of
   adjusted prices), half the spread, the slippage in ticks, and the slippage in basis points of a price on the grid: 5 basis points on a
   grid of 0.01 ask for 0.000005. That last one stops at 1e-5 of the grid; a fill rounds to the quantum beyond.
3. Without tick and data_quantum: 8 significant digits of the first price.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from bellmark.clock import zone
from bellmark.errors import UsageError, did_you_mean, known_list

NANO = 1_000_000_000
LARGEST = 2**62  # of any product of money: int64 with room to add
LARGEST_PRICE = 2**53
LARGEST_DENOMINATOR = 3_000_000_000
_FINEST_BASIS_POINTS = Fraction(1, 100_000)
_DIGITS_WITHOUT_TICK = 8

SESSIONS: dict[str, str] = {
    "us_equity": "America/New_York 09:30-16:00",
    "cme_regular": "America/Chicago 08:30-15:00",
    "cme_globex": "America/Chicago 17:00-16:00",
    "none": "",
    # With the days on which they are held; where the hours come from stands in calendar.py.
    "nyse": "America/New_York 09:30-16:00 calendar nyse",
    "cme_equity_index": "America/Chicago 17:00-16:15 break 15:15-15:30 until 2015-09-20; 17:00-16:00 break 15:15-15:30 until 2021-06-27; "
    "17:00-16:00 calendar cme",
    "cme_energy_metals": "America/Chicago 17:00-16:15 until 2015-09-20; 17:00-16:00 calendar cme",
    "cme_currency": "America/Chicago 17:00-16:00 calendar cme",
    "fx": "America/New_York 17:00-17:00 calendar fx",
}
_DAY_SECONDS = 86_400


def exact(value: float | int | str | Decimal | Fraction) -> Fraction:
    """A number as the decimal that was written: exact(0.1) is 1/10."""
    return value if isinstance(value, Fraction) else Fraction(Decimal(repr(value)) if isinstance(value, float) else Decimal(value))


@dataclass(frozen=True)
class Hours:
    """Hours of a session by its wall clock, as HH:MM. A close at or before the open is on the next day.

    breaks: pairs of times within the hours between which nothing trades. until: date of the last session with these hours (that on which
    it closes); empty = to this day.
    """

    open: str
    close: str
    breaks: tuple[tuple[str, str], ...] = ()
    until: str = ""

    def __post_init__(self) -> None:
        for clock_time in (self.open, self.close, *(end for pair in self.breaks for end in pair)):
            _seconds(clock_time)
        last = 0
        for start, end in self.break_seconds:
            if not last < start < end < self.length_seconds:
                given = ", ".join(f"{begin}-{stop}" for begin, stop in self.breaks)
                raise UsageError(f"session: expected breaks in order of time within {self.open}-{self.close}, found {given}")
            last = end
        if self.until:
            _date(self.until)

    @property
    def open_seconds(self) -> int:
        """Seconds of the wall clock at which the session opens."""
        return _seconds(self.open)

    @property
    def length_seconds(self) -> int:
        """Seconds from open to close by the wall clock."""
        return (_seconds(self.close) - _seconds(self.open) - 1) % _DAY_SECONDS + 1

    @property
    def closes_later(self) -> int:
        """Days from the one on which the session opens to the one on which it closes: 0 or 1."""
        return (self.open_seconds + self.length_seconds - 1) // _DAY_SECONDS

    @property
    def break_seconds(self) -> tuple[tuple[int, int], ...]:
        """Begin and end of each break in seconds from the open."""
        opens = self.open_seconds
        return tuple(((_seconds(start) - opens) % _DAY_SECONDS, (_seconds(end) - opens) % _DAY_SECONDS) for start, end in self.breaks)

    @property
    def trading_seconds(self) -> int:
        """Seconds in which there is trading: the length without the breaks."""
        return self.length_seconds - sum(end - start for start, end in self.break_seconds)

    @classmethod
    def parse(cls, text: str, where: str) -> Hours:
        """Hours as `17:00-16:15 break 15:15-15:30 until 2015-09-20`."""
        words = text.split()
        start, dash, end = words[0].partition("-") if words else ("", "", "")
        breaks: list[tuple[str, str]] = []
        until = ""
        for key, value in zip(words[1::2], words[2::2], strict=False):
            first, _, last = value.partition("-")
            if key == "break" and last:
                breaks.append((first, last))
            elif key == "until" and not until:
                until = value
            else:
                words = []
        if not dash or not end or len(words) % 2 == 0:
            raise UsageError(f"{where}: expected hours as HH:MM-HH:MM [break HH:MM-HH:MM] [until YYYY-MM-DD], found {text.strip()!r}")
        return cls(start, end, tuple(breaks), until)

    def __str__(self) -> str:
        parts = [f"{self.open}-{self.close}", *(f"break {start}-{end}" for start, end in self.breaks)]
        return " ".join([*parts, f"until {self.until}"] if self.until else parts)


@dataclass(frozen=True)
class Session:
    """The hours of trading: zone (IANA), open and close as HH:MM of its wall clock. A close at or before the open is on the next day.

    breaks: pairs of HH:MM within the hours. calendar: name of the calendar that says on which days sessions are held and which close
    early (see calendar.py); empty = nothing is known of days. earlier: the hours that held before, oldest first, each until a date; all
    open at the same time.
    """

    zone: str
    open: str
    close: str
    breaks: tuple[tuple[str, str], ...] = ()
    calendar: str = ""
    earlier: tuple[Hours, ...] = ()

    def __post_init__(self) -> None:
        zone(self.zone, "session zone")
        hours = self.hours
        for before, after in zip(hours[:-1], hours[1:], strict=True):
            if not before.until or (after.until and after.until <= before.until):
                raise UsageError(f"session: expected former hours with rising dates in 'until', found '{before}' before '{after}'")
            if before.open != after.open or before.closes_later != after.closes_later:
                raise UsageError(f"session: expected one open, and closes on one day, in all hours, found '{before}' and '{after}'")
        if self.calendar and not (self.calendar.isprintable() and " " not in self.calendar and ";" not in self.calendar):
            raise UsageError(f"session calendar: expected a name, found {self.calendar!r}")

    @classmethod
    def parse(cls, text: str, where: str = "session") -> Session | None:
        """A session by name (`us_equity`, `nyse`) or as text; None for `none`: around the clock or daily bars.

        The text is `ZONE HH:MM-HH:MM`, with breaks, former hours and a calendar where there are some: `America/Chicago 17:00-16:15 break
        15:15-15:30 until 2015-09-20; 17:00-16:00 calendar cme`.
        """
        text = SESSIONS.get(text, text)
        if not text:
            return None
        name, _, rest = text.partition(" ")
        hours, _, calendar = rest.partition(" calendar ")
        if "-" not in hours:
            hint = f"{did_you_mean(text, SESSIONS)}{known_list(SESSIONS)}"
            raise UsageError(f"{where}: expected a known session or 'ZONE HH:MM-HH:MM', found {text!r}{hint}")
        *earlier, now = (Hours.parse(part, where) for part in hours.split(";"))
        if now.until:
            raise UsageError(f"{where}: expected hours without 'until' at the end, found {text!r}")
        return cls(name, now.open, now.close, now.breaks, calendar.strip(), tuple(earlier))

    @property
    def hours(self) -> tuple[Hours, ...]:
        """All hours, oldest first; the last are those of today."""
        return (*self.earlier, Hours(self.open, self.close, self.breaks))

    @property
    def open_seconds(self) -> int:
        """Seconds of the wall clock at which the session opens."""
        return _seconds(self.open)

    @property
    def length_seconds(self) -> int:
        """Seconds from open to close by the wall clock, as they are today."""
        return self.hours[-1].length_seconds

    @property
    def label(self) -> str:
        """Its name where a session with a calendar has one, else its text."""
        text = str(self)
        names = [name for name, known in SESSIONS.items() if known == text and self.calendar]
        return f"{names[0]} ({self.zone} {self.hours[-1]})" if names else text

    def __str__(self) -> str:
        hours = "; ".join(str(one) for one in self.hours)
        return f"{self.zone} {hours} calendar {self.calendar}" if self.calendar else f"{self.zone} {hours}"


def _seconds(clock: str) -> int:
    hours, colon, minutes = clock.partition(":")
    if not (colon and hours.isdecimal() and minutes.isdecimal() and len(minutes) == 2 and int(hours) < 24 and int(minutes) < 60):
        raise UsageError(f"session: expected a time as HH:MM, found {clock!r}")
    return int(hours) * 3600 + int(minutes) * 60


def _date(text: str) -> datetime.date:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"session: expected a date as YYYY-MM-DD, found {text!r}") from None


@dataclass(frozen=True)
class Instrument:
    """One instrument. See the module for how `price_quantum` is chosen.

    symbol: its name. tick_size: smallest price step, None where prices have no grid. contract_multiplier: currency per point of one unit.
    lot_size: units in one lot, the smallest amount traded (0.001 for a thousandth of a coin). currency: of prices, fees and equity.
    session: hours, None for around the clock or daily bars. allow_negative_prices: whether prices at or below zero are legal.
    price_quantum: step in which prices are counted, None to choose it. data_quantum: grid on which the prices of the data lie where it
    is not the tick (adjusted prices). periods_per_year: bars in a year, None to take them from the calendar.
    """

    symbol: str
    tick_size: float | None = None
    contract_multiplier: float = 1.0
    lot_size: float = 1.0
    currency: str = "USD"
    session: Session | None = None
    allow_negative_prices: bool = False
    price_quantum: float | None = None
    data_quantum: float | None = None
    periods_per_year: float | None = None

    def __post_init__(self) -> None:
        for name in ("tick_size", "contract_multiplier", "lot_size", "price_quantum", "data_quantum", "periods_per_year"):
            value = getattr(self, name)
            if value is None and name not in ("contract_multiplier", "lot_size"):
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not (0.0 < value < math.inf):
                raise UsageError(f"instrument {self.symbol}.{name}: expected a number above 0, found {value!r}")
        if self.tick_size is not None and self.price_quantum is not None:
            per_tick = exact(self.tick_size) / exact(self.price_quantum)
            if per_tick.denominator != 1:
                raise UsageError(
                    f"instrument {self.symbol}.price_quantum: expected the tick_size {self.tick_size:g} divided by a whole number, "
                    f"found {self.price_quantum:g}"
                )

    def with_overrides(self, values: dict[str, Any]) -> Instrument:
        """This instrument with the profile's [instrument] over it; None leaves a value, a tick_size of 0 means no tick."""
        known = {field.name for field in dataclasses.fields(self)} - {"symbol"}
        given: dict[str, Any] = {}
        for name, value in values.items():
            if name not in known:
                raise UsageError(f"instrument.{name}: no such setting{did_you_mean(name, known)}{known_list(known)}")
            if value is None:
                continue
            if name == "session" and isinstance(value, str):
                value = Session.parse(value, "instrument.session")
            if name == "tick_size" and value == 0:
                value = None
            given[name] = value
        return dataclasses.replace(self, **given)

    def with_costs(
        self, *, spread_ticks: float = 0.0, slippage_ticks: float = 0.0, slippage_bps: float = 0.0, steps: Sequence[float] = ()
    ) -> Instrument:
        """This instrument with a quantum fine enough for half the spread, the slippage and other `steps` in ticks; see the module."""
        grid = self.grid
        if self.price_quantum is not None or grid is None:
            return self
        quantum = grid
        if self.tick_size is not None:
            tick = exact(self.tick_size)
            others = (exact(abs(one)) * tick for one in steps)
            for step in (tick / 2, exact(spread_ticks) * tick / 2, exact(slippage_ticks) * tick, *others):
                quantum = _common(quantum, step)
        share = max(_common(Fraction(1), exact(slippage_bps) / 10_000), _FINEST_BASIS_POINTS)
        return dataclasses.replace(self, price_quantum=float(_common(quantum, grid * share)))

    def resolved(self, first_price: float) -> Instrument:
        """This instrument with its quantum chosen; `first_price` gives the digits where there is no grid."""
        if self.price_quantum is not None or self.grid is not None:
            return self.with_costs()
        digits = math.floor(math.log10(abs(first_price))) if first_price else 0
        return dataclasses.replace(self, price_quantum=float(exact(10) ** (digits + 1 - _DIGITS_WITHOUT_TICK)))

    @property
    def grid(self) -> Fraction | None:
        """The grid on which the prices of the data must lie: data_quantum, else the tick; None without either."""
        step = self.tick_size if self.data_quantum is None else self.data_quantum
        return None if step is None else exact(step)

    @property
    def quantum(self) -> Fraction:
        """The price quantum as an exact ratio."""
        if self.price_quantum is None:
            raise UsageError(f"instrument {self.symbol}.price_quantum: not chosen yet; call resolved(first_price)")
        return exact(self.price_quantum)

    @property
    def quanta_per_tick(self) -> int | None:
        """Quanta in one tick; None without a tick."""
        return None if self.tick_size is None else int(exact(self.tick_size) / self.quantum)

    @property
    def value(self) -> Fraction:
        """Nano-currency that one quantum of one lot is worth."""
        return self.quantum * exact(self.contract_multiplier) * exact(self.lot_size) * NANO

    @property
    def value_numerator(self) -> int:
        """Numerator of `value`."""
        return self.value.numerator

    @property
    def value_denominator(self) -> int:
        """Denominator of `value`."""
        return self.value.denominator

    def check_range(self, largest_price: float, largest_notional: float = 0.0) -> None:
        """Refuses a quantum or lot with which money leaves int64; names the one to take.

        Checked for the largest price and for one lot of it, or for a position worth `largest_notional` (currency): the price in quanta
        below 2^53 (a float64 holds it), price times lots below 2^62, their value in nano-currency below 2^62, value_denominator below
        3e9 (its square is formed in int64).
        """
        price = abs(exact(largest_price)) / self.quantum
        unit = exact(largest_price) * exact(self.contract_multiplier) * exact(self.lot_size)
        lots = max(exact(largest_notional) / abs(unit), Fraction(1)) if unit else Fraction(1)
        if self.value_denominator >= LARGEST_DENOMINATOR:
            factor = next((10**power for power in range(40) if (self.value * 10**power).denominator < LARGEST_DENOMINATOR), None)
            larger = f"lot_size {float(exact(self.lot_size) * factor):g} instead of {self.lot_size:g}" if factor else ""
            remedy = larger or "a larger lot_size or price_quantum"
            raise UsageError(
                f"instrument {self.symbol}: one quantum of one lot is worth {float(self.value):g} nano-currency, too fine a ratio to "
                f"count; take {remedy}"
            )
        if max(price / LARGEST_PRICE, price * lots / LARGEST) >= 1:
            coarser = float(self.quantum * _power_of_ten(max(price / LARGEST_PRICE, price * lots / LARGEST)))
            remedy = f"take price_quantum {coarser:g} instead of {self.price_quantum:g}"
            if self.tick_size is not None and coarser > self.tick_size:  # a quantum divides the tick
                remedy = f"take tick_size {coarser:g} instead of {self.tick_size:g}, and no price_quantum"
            raise UsageError(f"instrument {self.symbol}: {largest_price:g} x {float(lots):g} lots in quanta leaves int64; {remedy}")
        if price * lots * self.value_numerator >= LARGEST * self.value_denominator:
            size = float(exact(self.lot_size) / _power_of_ten(price * lots * self.value / LARGEST))
            remedy = f"lot_size {size:g} instead of {self.lot_size:g}" if lots == 1 else "less equity: the largest amount is 4.6e9"
            raise UsageError(
                f"instrument {self.symbol}: {largest_price:g} x {float(lots):g} lots in nano-{self.currency} leaves int64; take {remedy}"
            )

    def describe(self) -> dict[str, Any]:
        """Everything of it as plain values, for files; `from_description` takes it back."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return values | {"session": None if self.session is None else str(self.session)}

    @classmethod
    def from_description(cls, values: dict[str, Any]) -> Instrument:
        """The instrument of `describe`."""
        session = values.get("session")
        return cls(**(values | {"session": None if session is None else Session.parse(session)}))


def _common(a: Fraction, b: Fraction) -> Fraction:
    # the largest number that divides both
    if not b:
        return a
    return Fraction(math.gcd(a.numerator * b.denominator, b.numerator * a.denominator), a.denominator * b.denominator)


def _power_of_ten(factor: Fraction) -> int:
    power = 1
    while power <= factor:
        power *= 10
    return power
