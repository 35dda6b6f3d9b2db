"""When an instrument trades: the session of each bar, its length, and how many bars are missing between two.

What is known of a session decides what can be said (see instrument.Session):
none            around the clock: each distance longer than a bar and a half misses bars (daily bars without weekends: than 4.5 days)
hours alone     bars are missing within a session; over its end nothing is known of the days, and nothing is called missing
with a calendar days, holidays and early closes are known: bars are missing wherever trading time has passed without one

Breaks within the hours are no trading time. A session is named after the date on which it closes; one of an exchange whose hours changed
has the hours of its date. Hours of the named sessions:
cme_equity_index   CME Globex equity index futures, Chicago time. To trade date 2015-09-18: 17:00-16:15, a halt 15:15-15:30 (CME's notice of
                   the hours from 2012-11-19 on; before, the day ended at 15:15 and trading went on after the halt for the next day: here
                   it counts to the same, an assumption). From 2015-09-21: to 16:00 (NinjaTrader advisory 25 of 2015-09-15). From
                   2021-06-28: without the halt (an assumption: no notice was looked up).
cme_energy_metals  NYMEX and COMEX on Globex: the same without the halt (the same advisory).
cme_currency       17:00-16:00 (CME contract specifications of Euro FX, as quoted by marketswiki.com).
fx                 the spot week: Sunday 17:00 to Friday 17:00 New York (convention of dealers).
nyse               09:30-16:00, half days to 13:00 (NYSE rules).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bellmark import clock, holidays
from bellmark.instrument import Hours, Session

_THURSDAY = 3  # weekday of 1970-01-01, Monday being 0
_SATURDAY = 5
_DAY_SECONDS = 86_400
_DAILY = clock.DAY * 3 // 4  # from here on bars of a market without hours are daily,
_LONGEST_DAY = clock.DAY * 2  # and from here on weekly and longer
_LONGEST_HOLIDAY = clock.DAY * 9 // 2  # a weekend with a holiday at either end, and an hour of daylight saving


class SessionDays(NamedTuple):
    """Of moments that close a bar: the day (days since 1970, local) on which the session opened, ns from that open to the moment (above
    0), and the session's length in ns on that day. A moment lies in the session where within_T <= length_T."""

    day_T: NDArray[np.int64]
    within_T: NDArray[np.int64]
    length_T: NDArray[np.int64]


class Schedule(NamedTuple):
    """Of consecutive dates, in ns from the open: length_D up to which bars belong to the session, end_D of trading (0 = no session held);
    hours_D: the number of the hours in Session.hours."""

    first: int
    length_D: NDArray[np.int64]
    end_D: NDArray[np.int64]
    hours_D: NDArray[np.int64]


def session_days(ts_T: NDArray[np.int64], session: Session | None) -> SessionDays:
    """Where moments that close a bar lie in their sessions; without a session in days of UTC.

    A bar that closes as a session opens belongs to the one before.
    """
    if session is None:
        day_T, within_T = _days_within(ts_T - 1)
        return SessionDays(day_T, within_T, np.full(len(ts_T), clock.DAY))
    day_T, within_T = _days_within(clock.to_local(ts_T, session.zone) - session.open_seconds * clock.SECOND - 1)
    if not (session.earlier or session.calendar) or not len(ts_T):
        return SessionDays(day_T, within_T, np.full(len(ts_T), session.length_seconds * clock.SECOND))
    schedule = _schedule_of(day_T, session)
    return SessionDays(day_T, within_T, schedule.length_D[day_T + _closes_later(session) - schedule.first])


def session_dates(ts_T: NDArray[np.int64], session: Session | None) -> NDArray[np.int64]:
    """Date (days since 1970) on which the session of each bar closes: the date by which it is named."""
    return session_days(ts_T, session).day_T + (0 if session is None else _closes_later(session))


def session_date_of(day_T: NDArray[np.int64], session: Session | None) -> NDArray[np.int64]:
    """The date on which a session closes that opened on a day."""
    return day_T + (0 if session is None else _closes_later(session))


def date_close(date_D: NDArray[np.int64], session: Session | None) -> NDArray[np.int64]:
    """UTC ns at which the sessions of some dates close, early closes too; without a session midnight of UTC at the end of the date."""
    date_D = np.asarray(date_D, np.int64)
    if session is None:
        return (date_D + 1) * clock.DAY
    if not len(date_D):
        return date_D.copy()
    schedule = _schedule(session, int(date_D.min()), int(date_D.max()))
    opened_D = (date_D - _closes_later(session)) * clock.DAY + session.open_seconds * clock.SECOND
    return clock.to_utc(opened_D + schedule.length_D[date_D - schedule.first], session.zone)[0]


def close_of(open_T: NDArray[np.int64], length_ns: int, session: Session | None) -> NDArray[np.int64]:
    """UTC ns at which bars close that open at some moments: after their length, but no later than their session does.

    The last hourly bar of 09:30-16:00 closes at 16:00. Bars that open outside the session, and bars of more than a day, close after their
    length.
    """
    close_T = open_T + length_ns
    if session is None or length_ns > clock.DAY or not len(open_T):
        return close_T
    _, within_T, length_T = session_days(open_T + 1, session)
    left_T = length_T - within_T + 1
    return np.where(left_T > 0, np.minimum(close_T, open_T + left_T), close_T)


def missing_bars(previous_K: NDArray[np.int64], next_K: NDArray[np.int64], length_ns: int, session: Session | None) -> NDArray[np.int64]:
    """Bars of `length_ns` missing between the closes of neighbours; 0 where their distance is explained, or nothing can be said.

    Time of trading (see the module) from one close to the other over the length, less one: above 0 where it is more than a bar and a
    half. With a calendar, bars of a whole session are counted by the sessions held between, bars of several days by the clock.
    """
    previous_K, next_K = np.asarray(previous_K, np.int64), np.asarray(next_K, np.int64)
    if length_ns <= 0 or not len(previous_K):
        return np.zeros(len(previous_K), np.int64)
    if session is None:
        return _around_the_clock(previous_K, next_K, length_ns)
    if session.calendar:
        if length_ns >= _LONGEST_DAY:
            return _bars_in(next_K - previous_K, length_ns)
        if length_ns >= session.hours[-1].trading_seconds * clock.SECOND:
            return _missing_sessions(previous_K, next_K, session)
        time_2K = trading_time(np.concatenate([previous_K, next_K]), session).reshape(2, -1)  # counted from one beginning
        return _bars_in(time_2K[1] - time_2K[0], length_ns)
    before, after = session_days(previous_K, session), session_days(next_K, session)
    passed_K = _without_breaks(after, session) - _without_breaks(before, session)
    return np.where(before.day_T == after.day_T, _bars_in(passed_K, length_ns), 0)


def trading_time(ts_T: NDArray[np.int64], session: Session) -> NDArray[np.int64]:
    """Nanoseconds of trading up to each moment, counted from the first session of all that are asked for together."""
    days = session_days(ts_T, session)
    schedule = _schedule_of(days.day_T, session)
    place_T = days.day_T + _closes_later(session) - schedule.first
    whole_D = _traded(schedule.end_D, schedule.end_D, schedule.hours_D, session)
    before_D = np.concatenate([[0], np.cumsum(whole_D)])
    return before_D[place_T] + _traded(days.within_T, schedule.end_D[place_T], schedule.hours_D[place_T], session)


def sessions_per_year(session: Session) -> float | None:
    """Sessions in a year counted in the calendar (nyse 252, cme 258, fx 259), None where a session has none."""
    if not session.calendar:
        return None
    if session.calendar in holidays.BUILT_IN:
        return holidays.days_of(session.calendar, 0, 0).per_year
    return holidays.days_of(session.calendar, 15_000, 18_000).per_year  # 2011 to 2019


def trading_seconds_on(date: int, session: Session) -> int:
    """Seconds of trading in a whole session that closes on a date, by the hours of that date."""
    return session.hours[int(_schedule(session, date, date).hours_D[0])].trading_seconds


def held_on(date_D: NDArray[np.int64], session: Session) -> NDArray[np.bool_]:
    """Whether the calendar has a session that closes on some dates; true everywhere without a calendar."""
    if not session.calendar or not len(date_D):
        return np.ones(len(date_D), np.bool_)
    schedule = _schedule(session, int(date_D.min()), int(date_D.max()))
    return schedule.end_D[date_D - schedule.first] > 0


def unknown_years(date_D: NDArray[np.int64], session: Session | None) -> str:
    """What to say where dates lie outside the years that a built-in calendar knows; empty where all are known."""
    if session is None or session.calendar not in holidays.BUILT_IN or session.calendar == "weekdays" or not len(date_D):
        return ""
    year_2 = np.array([date_D.min(), date_D.max()]).astype("datetime64[D]").astype("datetime64[Y]").astype(int) + 1970
    if year_2[0] >= holidays.FIRST_YEAR and year_2[1] <= holidays.LAST_YEAR:
        return ""
    return (
        f"calendar {session.calendar} knows holidays of {holidays.FIRST_YEAR} to {holidays.LAST_YEAR}; every other weekday counts as open"
    )


def version(session: Session | None) -> str:
    """The package that the calendar's days come from; empty where they are built in or there are none."""
    return "" if session is None else holidays.version(session.calendar)


def _days_within(since_T: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    day_T = since_T // clock.DAY
    return day_T, since_T - day_T * clock.DAY + 1


def _closes_later(session: Session) -> int:
    """Days from the one on which a session opens to the one on which it closes."""
    return session.hours[-1].closes_later


def _schedule_of(day_T: NDArray[np.int64], session: Session) -> Schedule:
    later = _closes_later(session)
    return _schedule(session, int(day_T.min()) + later, int(day_T.max()) + later)


@lru_cache(maxsize=16)
def _schedule(session: Session, first: int, last: int) -> Schedule:
    date_D = np.arange(first, last + 1)
    hours = session.hours
    until = [np.datetime64(one.until, "D").astype(np.int64) for one in session.earlier]
    hours_D = np.searchsorted(np.array(until, np.int64), date_D)  # a date equal to `until` has the former hours still
    length_D = np.array([one.length_seconds for one in hours], np.int64)[hours_D] * clock.SECOND
    if not session.calendar:
        return Schedule(first, length_D, length_D, hours_D)
    days = holidays.days_of(session.calendar, first, last)
    weekend_D = (date_D + _THURSDAY) % 7 >= _SATURDAY
    closed_D = np.isin(date_D, list(days.closed)) | (weekend_D & ~np.isin(date_D, list(days.weekend)))
    end_D = length_D.copy()
    opened = session.open_seconds - _closes_later(session) * _DAY_SECONDS  # of the date on which it closes
    for date, second in days.early.items():
        if first <= date <= last:
            end_D[date - first] = min(end_D[date - first], max(second - opened, 0) * clock.SECOND)
    strict_D = np.where(end_D > 0, end_D, length_D) if days.strict else length_D
    return Schedule(first, strict_D, np.where(closed_D, 0, end_D), hours_D)


def _traded(within_T: NDArray[np.int64], end_T: NDArray[np.int64], hours_T: NDArray[np.int64], session: Session) -> NDArray[np.int64]:
    """Trading time from the open to a moment of a session that ends at `end_T`."""
    within_T = np.minimum(within_T, end_T)
    traded_T = within_T.copy()
    for number, hours in enumerate(session.hours):
        for begin, stop in _breaks(hours):
            inside_T = np.clip(within_T - begin, 0, stop - begin)
            traded_T -= np.where(hours_T == number, inside_T, 0)
    return traded_T


def _without_breaks(days: SessionDays, session: Session) -> NDArray[np.int64]:
    if not any(hours.breaks for hours in session.hours):
        return days.within_T
    schedule = _schedule_of(days.day_T, session)
    hours_T = schedule.hours_D[days.day_T + _closes_later(session) - schedule.first]
    return _traded(days.within_T, np.full(len(days.day_T), clock.DAY), hours_T, session)


def _breaks(hours: Hours) -> list[tuple[int, int]]:
    return [(begin * clock.SECOND, stop * clock.SECOND) for begin, stop in hours.break_seconds]


def _missing_sessions(previous_K: NDArray[np.int64], next_K: NDArray[np.int64], session: Session) -> NDArray[np.int64]:
    before_K, after_K = session_dates(previous_K, session), session_dates(next_K, session)
    first = int(before_K.min())
    schedule = _schedule(session, first, int(after_K.max()))
    held_D = np.concatenate([[0], np.cumsum(schedule.end_D > 0)])
    return np.maximum(held_D[after_K - first] - held_D[before_K - first + 1], 0)


def _around_the_clock(previous_K: NDArray[np.int64], next_K: NDArray[np.int64], length_ns: int) -> NDArray[np.int64]:
    """By the clock. But daily bars, none of which closes on a weekend, are of an exchange whose holidays nobody said: only what no weekend
    and holiday explains is missing."""
    missing_K = _bars_in(next_K - previous_K, length_ns)
    if not _DAILY <= length_ns < _LONGEST_DAY or ((session_dates(next_K, None) + _THURSDAY) % 7 >= _SATURDAY).any():
        return missing_K
    return np.where(next_K - previous_K > _LONGEST_HOLIDAY, missing_K, 0)


def _bars_in(time_K: NDArray[np.int64], length_ns: int) -> NDArray[np.int64]:
    count_K = np.rint(time_K / length_ns).astype(np.int64) - 1
    return np.where(time_K * 2 > length_ns * 3, count_K, 0)
