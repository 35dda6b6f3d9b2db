"""Where the closes of bars lie in the trading session of an instrument; the answers are those of `bellmark.calendar`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bellmark import calendar, clock
from bellmark.errors import UsageError
from bellmark.instrument import Instrument, Session


def time_of_day(text: str, said: str) -> int:
    """Seconds from midnight to a time such as 16:00; 24:00 is the end of the day. `said`: how errors name it."""
    if text == "24:00":
        return 86_400
    try:
        return Session("UTC", text, "00:00").open_seconds
    except UsageError:
        raise UsageError(f"{said}: expected a time as HH:MM, found {text!r}") from None


class Spans(NamedTuple):
    """Of moments that close a bar, in ns of time that passed: since_T from the session's open (above 0), length_T of the session."""

    since_T: NDArray[np.int64]
    length_T: NDArray[np.int64]


@dataclass(frozen=True)
class Hours:
    """The hours of an instrument; without a session days are those of UTC."""

    instrument: Instrument

    @property
    def session(self) -> Session | None:
        """Its session, None for around the clock."""
        return self.instrument.session

    @property
    def longest(self) -> int:
        """Nanoseconds of the longest session; a day around the clock."""
        return clock.DAY if self.session is None else max(one.length_seconds for one in self.session.hours) * clock.SECOND

    def place(self, ts_T: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Of moments that close a bar: day on which the session opened, ns since that open (above 0), length of that session in ns."""
        return calendar.session_days(ts_T, self.session)

    def outside(self, ts_T: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which moments close no bar of a session: the tape leaves such bars out."""
        if self.session is None:
            return np.zeros(len(ts_T), np.bool_)
        _, within_T, length_T = self.place(ts_T)
        return within_T > length_T

    def closed(self, ts_T: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which moments lie in a session that the calendar does not have."""
        if self.session is None:
            return np.zeros(len(ts_T), np.bool_)
        return ~calendar.held_on(calendar.session_dates(ts_T, self.session), self.session)

    def spans(self, ts_T: NDArray[np.int64]) -> Spans:
        """Of moments that close a bar: time passed since the session's open, and the session's length; an hour of a day on which the clocks
        change is there once, twice or not at all."""
        day_T, within_T, length_T = self.place(ts_T)
        if self.session is None or not len(ts_T):
            return Spans(within_T, length_T)
        first = np.concatenate([[True], (np.diff(day_T) != 0) | (np.diff(length_T) != 0)])
        open_K = day_T[first] * clock.DAY + self.session.open_seconds * clock.SECOND
        opened_K = clock.to_utc(open_K, self.session.zone)[0]
        closed_K = clock.to_utc(open_K + length_T[first], self.session.zone)[0]
        place_T = np.cumsum(first) - 1
        return Spans(ts_T - opened_K[place_T], (closed_K - opened_K)[place_T])

    def day(self, ts_T: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of the session's day for each moment that closes a bar."""
        return self.place(ts_T)[0]

    def date(self, ts: Any) -> int:
        """The date (days since 1970) on which the session of a moment closes."""
        return int(calendar.session_dates(np.array([int(ts)]), self.session)[0])

    def at_close(self, ts_T: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether a moment is the end of a session."""
        if self.session is None:
            return np.zeros(len(ts_T), np.bool_)
        _, within_T, length_T = self.place(ts_T)
        return within_T == length_T

    def close_of(self, open_T: NDArray[np.int64], length: int) -> NDArray[np.int64]:
        """The closes of bars that open at some moments: after `length`, but no later than their session.

        A bar of a day closes with the session that it opens in, or with the next one where it opens before (at midnight).
        """
        if self.session is not None and length == clock.DAY and len(open_T):
            day_T, within_T, length_T = self.place(open_T + 1)
            date_T = calendar.session_dates(open_T + 1, self.session) + (within_T > length_T)
            return calendar.date_close(date_T, self.session)
        whole = self.session is not None and length >= self.longest  # a bar of a day may be that of another clock
        return open_T + length if whole else calendar.close_of(open_T, length, self.session)

    def missing(self, before_K: NDArray[np.int64], after_K: NDArray[np.int64], length: int) -> NDArray[np.int64]:
        """Bars of `length` missing between the closes of two neighbours; 0 where the hours explain the distance."""
        return calendar.missing_bars(before_K, after_K, length, self.session)
