"""Stamps of a column as moments: ISO 8601, a format, epoch digits or a typed column, with local times told apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bellmark import clock
from bellmark.errors import DataError

if TYPE_CHECKING:
    import polars

_ISO = (
    r"^\s*(?P<date>\d{4}-\d{2}-\d{2})(?:[T ](?P<hour>\d{2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?)?"
    r"\s*(?P<zone>Z|[+-]\d{2}:?\d{2})?\s*$"
)
_EPOCH_UNITS = {10: 1_000_000_000, 13: 1_000_000, 16: 1_000, 19: 1}  # nanoseconds by digits
_FARTHEST_OFFSET = 15 * 60  # minutes; the farthest zone is 14 hours from UTC
_EARLIEST, _LATEST = 315_532_800 * clock.SECOND, 4_102_444_800 * clock.SECOND  # 1980 and 2100


@dataclass(frozen=True)
class Stamps:
    """utc_T: UTC ns. local_T: wall-clock ns of the zone (dates at midnight). date_only: no stamp carries a time."""

    utc_T: NDArray[np.int64]
    local_T: NDArray[np.int64]
    date_only: bool = False


def stamps_of(column: polars.Series, form: str, zone: str, repeated_hour: str, where: str) -> Stamps:
    """The stamps of a column. A stamp with an offset counts as it is; one without is wall-clock time of `zone`."""
    import polars as pl

    clock.zone(zone, "data.zone")
    missing = column.is_null().arg_true()
    if len(missing):
        raise DataError(f"{where}: {_row(int(missing[0]))}: the stamp in column {column.name!r} is missing")
    kind = column.dtype
    if kind == pl.String and not form:
        return _text(column, zone, repeated_hour, where)
    if kind == pl.String:
        return _formatted(column, form, zone, repeated_hour, where)
    if kind.is_integer():
        return _moments(_epoch(column, where))
    if isinstance(kind, pl.Datetime):
        ns_T = _nanoseconds(column, column, where)
        return _moments(ns_T) if kind.time_zone else Stamps(_local(ns_T, zone, repeated_hour, where), ns_T)
    if kind == pl.Date:
        return _dates(_nanoseconds(column, column, where), zone)
    raise DataError(f"{where}: column {column.name!r}: expected stamps, found {kind}")


def _moments(utc_T: NDArray[np.int64]) -> Stamps:
    return Stamps(utc_T, utc_T)


def _dates(local_T: NDArray[np.int64], zone: str) -> Stamps:
    local_T = local_T.astype(np.int64)
    return Stamps(clock.to_utc(local_T, zone)[0], local_T, date_only=True)


def _text(column: polars.Series, zone: str, repeated_hour: str, where: str) -> Stamps:
    import polars as pl

    stripped = column.str.strip_chars()
    if stripped.str.contains(r"^[0-9]+$").all():
        return _moments(_epoch(stripped, where))
    parts = column.str.extract_groups(_ISO).struct.unnest()
    date = parts["date"].str.to_date("%Y-%m-%d", strict=False)
    number = {name: parts[name].cast(pl.Int64).fill_null(0) for name in ("hour", "minute", "second")}
    wrong = (date.is_null() | (number["hour"] > 23) | (number["minute"] > 59) | (number["second"] > 59)).arg_true()
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"{where}: {_row(row)}: expected a stamp such as 2024-03-04T14:33:00Z in column {column.name!r}, found {column[row]!r}; "
            "data.stamp_format says how stamps are written"
        )
    nanoseconds = parts["fraction"].str.pad_end(9, "0").cast(pl.Int64).fill_null(0)
    seconds = number["hour"] * 3600 + number["minute"] * 60 + number["second"]
    days_T = _nanoseconds(date, column, where)
    local_T = days_T + seconds.to_numpy() * clock.SECOND + nanoseconds.to_numpy()
    if parts["hour"].is_null().all() and parts["zone"].is_null().all():
        return _dates(local_T, zone)
    bare_T = parts["hour"].is_null().to_numpy()
    if bare_T.any():
        row = int(np.flatnonzero(bare_T)[0])
        other = int(np.flatnonzero(~bare_T)[0]) if not bare_T.all() else row
        raise DataError(f"{where}: {_row(row)}: a date without a time among stamps with one: {column[row]!r} and {column[other]!r}")
    offset = parts["zone"].str.replace(":", "").replace("Z", "+0000")
    sign = pl.select(pl.when(offset.str.starts_with("-")).then(-1).otherwise(1)).to_series()
    minutes = offset.str.slice(1, 2).cast(pl.Int64) * 60 + offset.str.slice(3, 2).cast(pl.Int64)
    far = ((offset.str.slice(3, 2).cast(pl.Int64) > 59) | (minutes > _FARTHEST_OFFSET)).fill_null(False).arg_true()
    if len(far):
        raise DataError(f"{where}: {_row(int(far[0]))}: no zone is so far from UTC: {column[int(far[0])]!r} in column {column.name!r}")
    has_offset_T = offset.is_not_null().to_numpy()
    shift_T = (sign * minutes.fill_null(0)).to_numpy().astype(np.int64) * 60 * clock.SECOND
    if has_offset_T.all():
        return _moments(local_T - shift_T)
    if has_offset_T.any():
        row = int(np.flatnonzero(has_offset_T != has_offset_T[0])[0])
        raise DataError(f"{where}: {_row(row)}: some stamps carry an offset and some do not: {column[0]!r} and {column[row]!r}")
    return Stamps(_local(local_T, zone, repeated_hour, where), local_T)


def _formatted(column: polars.Series, form: str, zone: str, repeated_hour: str, where: str) -> Stamps:
    import polars as pl

    stripped = column.str.strip_chars()
    has_time = any(token in form for token in ("%H", "%I", "%T", "%R", "%s", "%c", "%X", "%r"))
    try:
        parsed = stripped.str.to_datetime(form, time_unit="ns", strict=False) if has_time else stripped.str.to_date(form, strict=False)
    except pl.exceptions.PolarsError as error:
        raise DataError(f"data.stamp_format: {form!r} is not understood: {error}") from error
    wrong = parsed.is_null().arg_true()
    if len(wrong):
        row = int(wrong[0])
        raise DataError(f"{where}: {_row(row)}: expected a stamp like {form!r} in column {column.name!r}, found {column[row]!r}")
    ns_T = _nanoseconds(parsed, column, where)
    if not has_time:
        return _dates(ns_T, zone)
    if "%z" in form or "%s" in form:
        return _moments(ns_T)
    return Stamps(_local(ns_T, zone, repeated_hour, where), ns_T)


def _epoch(column: polars.Series, where: str) -> NDArray[np.int64]:
    """The unit is told by the digits of each row: exchanges changed it within one file."""
    import polars as pl

    text = column.cast(pl.String)
    digits_T = text.str.len_chars().to_numpy()
    unit_T = np.array([_EPOCH_UNITS.get(digits, 0) for digits in range(32)], np.int64)[np.minimum(digits_T, 31)]
    unknown = np.flatnonzero(unit_T == 0)
    if unknown.size:
        row = int(unknown[0])
        raise DataError(
            f"{where}: {_row(row)}: expected epoch time of 10 (s), 13 (ms), 16 (us) or 19 (ns) digits, found {text[row]!r} "
            f"of {digits_T[row]} digits"
        )
    number_T = text.cast(pl.Int64, strict=False).fill_null(2**63 - 1).to_numpy()  # 19 digits may be more than int64 holds
    far = np.flatnonzero((number_T < _EARLIEST // unit_T) | (number_T > _LATEST // unit_T))
    if far.size:
        row = int(far[0])
        raise DataError(f"{where}: {_row(row)}: {text[row]!r} as epoch time of {digits_T[row]} digits lies outside 1980 to 2100")
    return number_T * unit_T


def _nanoseconds(moments: polars.Series, column: polars.Series, where: str) -> NDArray[np.int64]:
    """Dates or time stamps as int64 nanoseconds, which reach from 1677 to 2262."""
    import polars as pl

    ns = moments.cast(pl.Datetime("ns", getattr(moments.dtype, "time_zone", None)), strict=False)
    outside = (ns.is_null() | (ns.dt.year() < 1678) | (ns.dt.year() > 2261)).arg_true()
    if len(outside):
        row = int(outside[0])
        raise DataError(f"{where}: {_row(row)}: {str(column[row])!r} in column {column.name!r} lies outside 1678 to 2261")
    return ns.to_physical().to_numpy().astype(np.int64)


def _local(local_T: NDArray[np.int64], zone: str, repeated_hour: str, where: str) -> NDArray[np.int64]:
    first_T, second_T, skipped_T = clock.to_utc(local_T, zone)
    never = np.flatnonzero(skipped_T)
    if never.size:
        row = int(never[0])
        raise DataError(f"{where}: {_row(row)}: {_wall(local_T[row])} does not exist in {zone}: clocks went forward; is data.zone right?")
    twice = np.flatnonzero(first_T != second_T)
    if twice.size and repeated_hour == "error":
        row = int(twice[0])
        raise DataError(
            f"{where}: {_row(row)}: {_wall(local_T[row])} happened twice in {zone}: clocks went back; "
            "data.repeated_hour = 'file_order' tells them by the order of rows"
        )
    utc_T = first_T.copy()
    for row in twice.tolist():  # the second pass begins where the clock of the file falls back
        if row > 0 and first_T[row] <= utc_T[row - 1]:
            utc_T[row] = second_T[row]
    return utc_T


def _wall(local: int) -> str:
    return clock.text(local).replace("T", " ").removesuffix("Z")


def _row(row: int) -> str:
    return f"data row {row + 1} (the header not counted)"
