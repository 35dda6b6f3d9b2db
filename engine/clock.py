"""Local time for whole arrays: UTC nanoseconds to wall-clock time of a zone and back, with the repeated and the skipped hours told apart.

`zoneinfo` answers for one moment at a time, about a microsecond each. A zone changes its offset a few times a year, so the changes within
the span of an array are found once and every moment is looked up among them.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from bellmark.errors import UsageError, did_you_mean

SECOND = 1_000_000_000
DAY = 86_400 * SECOND
_STEP = 5 * DAY  # no zone changed its offset and changed it back within so few days
_COMMON = ("UTC", "America/New_York", "America/Chicago", "Europe/London", "Europe/Berlin", "Europe/Paris", "Asia/Tokyo", "Asia/Hong_Kong")


def zone(name: str, where: str = "zone") -> ZoneInfo:
    """A time zone by its IANA name, or a UsageError of one line."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        message = f"{where}: expected an IANA time zone such as 'America/New_York', found {name!r}{did_you_mean(name, _COMMON)}"
        raise UsageError(message) from error


def changes(zone_name: str, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Moments (UTC ns, K) between `first` and `last` at which the offset changes, and the offsets (ns, K + 1) before, between and after."""
    info = zone(zone_name)
    grid = [*range(first, last, _STEP), last]
    offsets = [_offset(info, moment) for moment in grid]
    moments, values = [], [offsets[0]]
    for low, high, before, after in zip(grid[:-1], grid[1:], offsets[:-1], offsets[1:], strict=True):
        if before != after:
            moments.append(_bisect(info, low, high, before))
            values.append(after)
    return np.array(moments, np.int64), np.array(values, np.int64)


def _offset(info: ZoneInfo, moment: int) -> int:
    delta = datetime.fromtimestamp(moment // SECOND, UTC).astimezone(info).utcoffset()
    assert delta is not None
    return round(delta.total_seconds()) * SECOND


def _bisect(info: ZoneInfo, low: int, high: int, before: int) -> int:
    low, high = low // SECOND, high // SECOND
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(info, middle * SECOND) == before:
            low = middle
        else:
            high = middle
    return high * SECOND


def to_local(ts_T: NDArray[np.int64], zone_name: str) -> NDArray[np.int64]:
    """Wall-clock time (ns since 1970-01-01 00:00 of the zone) of moments in UTC ns."""
    if ts_T.size == 0:
        return ts_T.copy()
    moment_K, offset_K = changes(zone_name, int(ts_T.min()) - DAY, int(ts_T.max()) + DAY)
    return ts_T + offset_K[np.searchsorted(moment_K, ts_T, side="right")]


def to_utc(local_T: NDArray[np.int64], zone_name: str) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """UTC ns of wall-clock times read as the first pass, the same read as the second pass, and whether the wall clock skipped the time.

    The two differ only in the hour that repeats when clocks go back.
    """
    if local_T.size == 0:
        return local_T.copy(), local_T.copy(), np.zeros(0, np.bool_)
    # Offsets are below a day, so the span in UTC lies within two days of the local one.
    moment_K, offset_K = changes(zone_name, int(local_T.min()) - 2 * DAY, int(local_T.max()) + 2 * DAY)
    old_K, new_K = moment_K + offset_K[:-1], moment_K + offset_K[1:]  # wall clock just before and just after each change
    first_T = local_T - offset_K[np.searchsorted(old_K, local_T, side="right")]
    second_T = local_T - offset_K[np.searchsorted(new_K, local_T, side="right")]
    skipped_T = np.searchsorted(old_K, local_T, side="right") > np.searchsorted(new_K, local_T, side="right")
    return first_T, second_T, skipped_T


_FIRST_DAY = date(1970, 1, 1)


def day_number(day: date) -> int:
    """Days from 1970-01-01 to a date."""
    return (day - _FIRST_DAY).days


def day_text(days: int) -> str:
    """The date of a number of days since 1970-01-01, as YYYY-MM-DD."""
    return (_FIRST_DAY + timedelta(int(days))).isoformat()


def text(ts: Any, unit: str = "s") -> str:
    """A moment in UTC ns as ISO 8601 with a Z: 2024-03-04T14:33:00Z."""
    return str(np.datetime64(int(ts), "ns").astype(f"datetime64[{unit}]")) + "Z"
