"""Holidays by rule: the days on which an exchange is closed or closes early, for a calendar by name.

Built in, and the same on every machine:
nyse      US equities. Closings and early closes of New York, 1990 to 2050, by the exchange's published rules, and the closings that no
          rule gives up to 2025. Equal day by day to the calendar XNYS of exchange_calendars 4.13 from 1993 to 2035 (a test compares them).
cme       Futures of CME Globex, 1990 to 2050. Closed on New Year's Day, Good Friday and Christmas. On the other US holidays, and on the
          days after Thanksgiving and before Christmas and Independence Day, trading ends early, here at the earliest time of any product:
          12:15 on the days beside a holiday, 12:00 on one, 10:30 before 2015 (CME's notices for equity index on 2003-09-01 and
          2013-07-04; that this ended with 2014 is an assumption). Other products trade on for some hours: their bars are kept, and none
          is called missing.
fx        Spot currencies: closed on 25 December and 1 January (an assumption: dealers differ).
weekdays  Monday to Friday, no holidays.

Any other name is an exchange of the package exchange_calendars (the extra `calendars`), such as XLON or XETR.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellmark import clock
from bellmark.errors import UsageError, did_you_mean, known_list

FIRST_YEAR, LAST_YEAR = 1990, 2050  # of the built-in calendars
_EPOCH = date(1970, 1, 1)
_MONDAY, _THURSDAY, _FRIDAY, _SATURDAY, _SUNDAY = 0, 3, 4, 5, 6
_NOON, _QUARTER_PAST_NOON, _HALF_PAST_TEN, _QUARTER_PAST_EIGHT, _ONE, _TWO = 43_200, 44_100, 37_800, 29_700, 46_800, 50_400
# Nixon, the attacks of 2001, Reagan, Ford, hurricane Sandy, G. H. W. Bush, Carter: days of mourning and closings of the NYSE.
_NYSE_CLOSED = (
    "1994-04-27", "2001-09-11", "2001-09-12", "2001-09-13", "2001-09-14", "2004-06-11", "2007-01-02", "2012-10-29", "2012-10-30",
    "2018-12-05", "2025-01-09",
)  # fmt: skip
_NYSE_EARLY = ("1997-12-26", "1999-12-31", "2003-12-26")


@dataclass(frozen=True)
class Days:
    """What a calendar says of some years: dates are days since 1970.

    closed: weekdays without a session. early: date -> second of the local day at which trading ends. strict: whether nothing after an
    early close belongs to the session (else bars there are kept). weekend: dates of Saturdays and Sundays with a session.
    per_year: sessions in a year, counted over the years that are known, to a whole number.
    """

    closed: frozenset[int]
    early: dict[int, int] = field(default_factory=dict)
    strict: bool = False
    weekend: frozenset[int] = frozenset()
    per_year: float = math.nan


def days_of(calendar: str, first: int, last: int) -> Days:
    """The days of a calendar that cover the dates `first` to `last` (days since 1970)."""
    if calendar in BUILT_IN:
        return _built_in(calendar)
    years = _date(first).year - 1, _date(last).year + 1
    return _exchange(calendar, *years)


def version(calendar: str) -> str:
    """What the days depend on beside this file: the package that gives them, empty where they are built in."""
    return "" if calendar in BUILT_IN or not calendar else f"exchange_calendars {_package(calendar).__version__}"


@lru_cache
def _built_in(calendar: str) -> Days:
    days = BUILT_IN[calendar]()
    every = np.arange(clock.day_number(date(FIRST_YEAR, 1, 1)), clock.day_number(date(LAST_YEAR + 1, 1, 1)))
    held = (every + _THURSDAY) % 7 < _SATURDAY
    held &= ~np.isin(every, list(days.closed))
    return replace(days, per_year=_per_year(int(held.sum()), len(every)))


def _per_year(sessions: int, days: int) -> float:
    return float(round(sessions / (days / 365.25)))


def _nyse() -> Days:
    closed = {clock.day_number(date.fromisoformat(text)) for text in _NYSE_CLOSED}
    early = {clock.day_number(date.fromisoformat(text)): _ONE for text in _NYSE_EARLY}
    for year in range(FIRST_YEAR, LAST_YEAR + 1):
        holidays = us_holidays(year)
        closed |= {clock.day_number(day) for day in holidays.values()}
        half_days = [holidays["thanksgiving"] + timedelta(1), date(year, 12, 24), *_around_independence(year)]
        for day in half_days:
            if day.weekday() < _SATURDAY and clock.day_number(day) not in closed:
                early[clock.day_number(day)] = _TWO if year < 1993 and day.month > 7 else _ONE
    return Days(frozenset(closed), {day: end for day, end in early.items() if day not in closed}, strict=True)


def _around_independence(year: int) -> list[date]:
    """Half days of the NYSE: 3 July where the 4th is a weekday, but 5 July instead where that was a Friday, before 2013."""
    if year < 1993:
        return []
    fourth = date(year, 7, 4)
    if fourth.weekday() == _THURSDAY and year < 2013:
        return [date(year, 7, 5)]
    return [date(year, 7, 3)] if fourth.weekday() in (1, 2, 3, 4) else []


def _cme() -> Days:
    closed: set[int] = set()
    early = {clock.day_number(date.fromisoformat(text)): _QUARTER_PAST_EIGHT for text in _NYSE_CLOSED}
    for year in range(FIRST_YEAR, LAST_YEAR + 1):
        holidays = us_holidays(year)
        for day in (holidays["thanksgiving"] + timedelta(1), date(year, 12, 24), date(year, 7, 3)):
            early[clock.day_number(day)] = _QUARTER_PAST_NOON
        for name, day in holidays.items():
            if name in ("new_year", "good_friday", "christmas"):
                closed.add(clock.day_number(day))
            else:
                early[clock.day_number(day)] = _HALF_PAST_TEN if year < 2015 else _NOON
    return Days(frozenset(closed), {day: end for day, end in early.items() if day not in closed})


def _fx() -> Days:
    years = range(FIRST_YEAR, LAST_YEAR + 1)
    return Days(frozenset(clock.day_number(date(year, month, day)) for year in years for month, day in ((1, 1), (12, 25))))


def _weekdays() -> Days:
    return Days(frozenset())


BUILT_IN: dict[str, Callable[[], Days]] = {"nyse": _nyse, "cme": _cme, "fx": _fx, "weekdays": _weekdays}


def us_holidays(year: int) -> dict[str, date]:
    """The holidays of US exchanges in a year, on the day on which they are observed.

    A holiday on a Sunday is kept on Monday, one on a Saturday on Friday; New Year's Day on a Saturday is not kept (the Friday is of the
    old year). Martin Luther King Day since 1998, Juneteenth since 2022.
    """
    found = {
        "presidents": _nth_weekday(year, 2, _MONDAY, 3),
        "good_friday": easter(year) - timedelta(2),
        "memorial": _nth_weekday(year, 6, _MONDAY, 1) - timedelta(7),
        "independence": _observed(date(year, 7, 4)),
        "labor": _nth_weekday(year, 9, _MONDAY, 1),
        "thanksgiving": _nth_weekday(year, 11, _THURSDAY, 4),
        "christmas": _observed(date(year, 12, 25)),
    }
    if date(year, 1, 1).weekday() != _SATURDAY:
        found["new_year"] = _observed(date(year, 1, 1))
    if year >= 1998:
        found["king"] = _nth_weekday(year, 1, _MONDAY, 3)
    if year >= 2022:
        found["juneteenth"] = _observed(date(year, 6, 19))
    return found


def easter(year: int) -> date:
    """Easter Sunday of the Gregorian calendar (J. Meeus, Astronomical Algorithms, 2nd edition 1998, chapter 8)."""
    century, in_century = divmod(year, 100)
    golden = year % 19
    leap_centuries, rest = divmod(century, 4)
    correction = (century - (century + 8) // 25 + 1) // 3
    epact = (19 * golden + century - leap_centuries - correction + 15) % 30
    quotient, remainder = divmod(in_century, 4)
    weekday = (32 + 2 * rest + 2 * quotient - epact - remainder) % 7
    late = (golden + 11 * epact + 22 * weekday) // 451
    month, day = divmod(epact + weekday - 7 * late + 114, 31)
    return date(year, month, day + 1)


def _nth_weekday(year: int, month: int, weekday: int, nth: int) -> date:
    first = date(year, month, 1)
    return first + timedelta((weekday - first.weekday()) % 7 + 7 * (nth - 1))


def _observed(day: date) -> date:
    return day + timedelta({_SATURDAY: -1, _SUNDAY: 1}.get(day.weekday(), 0))


def _date(number: int) -> date:
    return _EPOCH + timedelta(int(number))


def _package(calendar: str) -> Any:
    try:
        import exchange_calendars
    except ImportError as error:
        raise UsageError(
            f"session calendar '{calendar}': built in are {', '.join(BUILT_IN)}; any other needs the package exchange_calendars: "
            "pip install 'bellmark[calendars]'"
        ) from error
    return exchange_calendars


@lru_cache
def _exchange(calendar: str, first_year: int, last_year: int) -> Days:
    package = _package(calendar)
    known = package.get_calendar_names()
    if calendar not in known:
        raise UsageError(f"session calendar: no calendar '{calendar}'{did_you_mean(calendar, [*BUILT_IN, *known])}{known_list(BUILT_IN)}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it uses what its own pandas is about to change
            found = package.get_calendar(calendar, start=f"{first_year}-01-01", end=f"{last_year}-12-31")
    except ValueError as error:  # the package knows some calendars from a year on alone
        raise UsageError(f"session calendar '{calendar}': years {first_year} to {last_year}: {error}") from error
    held = _numbers(found.sessions.to_numpy())
    every = np.arange(int(held[0]), int(held[-1]) + 1)
    weekend_D = (every + 3) % 7 >= _SATURDAY
    closed = np.setdiff1d(every[~weekend_D], held)
    early: dict[int, int] = {}
    for session in found.early_closes:
        close = found.session_close(session).tz_convert(found.tz)
        early[clock.day_number(session.date())] = close.hour * 3600 + close.minute * 60
    per_year = _per_year(len(held), int(held[-1] - held[0]) + 1)
    return Days(frozenset(closed.tolist()), early, True, frozenset(np.intersect1d(every[weekend_D], held).tolist()), per_year)


def _numbers(dates: NDArray[Any]) -> NDArray[np.int64]:
    return dates.astype("datetime64[D]").astype(np.int64)
