"""Stamps of a column as moments: ISO 8601, a format, epoch digits or a typed column, with local times told apart.

Columns come in chunks: what one chunk decides (the kind of stamps, which pass of a repeated hour) is kept in `Seen` for the next.
The common forms are read by one regular expression over the column and one parse; only a column that this does not fit is taken to pieces,
which is slower and finds the row to name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from bellmark import clock
from bellmark.errors import DataError, UsageError

if TYPE_CHECKING:
    import polars

_ISO = (
    r"^\s*(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9}))?)?)?\s*(?P<zone>Z|[+-][0-9]{2}:?[0-9]{2})?\s*$"
)
_PLAIN = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ])([0-9]{2}:[0-9]{2})(:[0-9]{2})?(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:?[0-9]{2})?")
_EPOCH_UNITS = {10: 1_000_000_000, 13: 1_000_000, 16: 1_000, 19: 1}  # nanoseconds by digits
_FARTHEST_OFFSET = 15 * 60  # minutes; the farthest zone is 14 hours from UTC
_EARLIEST, _LATEST = 315_532_800 * clock.SECOND, 4_102_444_800 * clock.SECOND  # 1980 and 2100
_TIMES = ("%H", "%I", "%T", "%R", "%s", "%c", "%X", "%r")
_NUMBERS = {"Y": 4, "y": 2, "m": 2, "d": 2, "H": 2, "I": 2, "M": 2, "S": 2, "j": 3}
_TEXTS = {"p": "(?i:[ap]m)", "b": "[A-Za-z]+", "B": "[A-Za-z]+", "a": "[A-Za-z]+", "A": "[A-Za-z]+", "%": "%"}
_TEXTS |= {"z": "(?:Z|[+-][0-9]{2}:?[0-9]{2})", "T": "[0-9]{1,2}:[0-5][0-9]:[0-5][0-9]", "R": "[0-9]{1,2}:[0-5][0-9]"}
_TEXTS |= {"e": "[ 0-9]?[0-9]", "F": "[0-9]{4}-[0-9]{2}-[0-9]{2}"}


@dataclass(frozen=True)
class Place:
    """Where the rows of a chunk are, for errors. first_row: data row of its first; rows: of each, where some lines are left out."""

    source: str
    first_row: int = 1
    rows: polars.Series | None = None

    def row(self, place: int) -> str:
        """Source and data row of a row of the chunk."""
        number = self.first_row + place if self.rows is None else int(self.rows[place])
        return f"{self.source}: data row {number} (the header not counted)"


@dataclass(frozen=True)
class Stamps:
    """utc_T: UTC ns. local_T: wall-clock ns of the zone (dates at midnight). date_only: no stamp has a time. local: the zone was used."""

    utc_T: NDArray[np.int64]
    local_T: NDArray[np.int64]
    date_only: bool = False
    local: bool = False


@dataclass(frozen=True)
class StampForm:
    """How stamps are written and read.

    forms: as in strftime, the first that fits is taken; none = ISO 8601 or epoch digits. zone: of stamps without an offset; "" = not said;
    "America/New_York+07:00" = always seven hours later than New York, which is how many brokers keep their servers (their day ends at
    New York's 17:00, and their clocks change on New York's dates).
    repeated_hour: "error" or "file_order". ties: whether rows in order may share a stamp, as ticks do. said: how errors name a setting.
    """

    forms: tuple[str, ...] = ()
    zone: str = ""
    repeated_hour: str = "error"
    ties: bool = False
    said: Callable[[str], str] = "data.{}".format


@dataclass
class Seen:
    """What earlier chunks decided: the kind of stamps, the form, the last moment of each series; unturned: where a series came into an hour
    that repeats, while its clock did not yet go back."""

    kind: str = ""
    form: str = ""
    last: dict[str, int] = field(default_factory=dict)
    unturned: dict[str, str] = field(default_factory=dict)

    def end(self) -> None:
        """Refuses a file that ends within an hour that repeats, before its clock went back."""
        for where in self.unturned.values():
            raise DataError(where)


def stamps_of(
    column: polars.Series, form: StampForm, place: Place, seen: Seen | None = None, series: polars.Series | None = None
) -> Stamps:
    """The stamps of a column. A stamp with an offset counts as it is; one without is wall-clock time of the zone.

    series: names of the series that the rows belong to; each has its own order. Errors: DataError that names the row.
    """
    import polars as pl

    seen = Seen() if seen is None else seen
    if form.zone:
        clock.zone(split_zone(form.zone)[0], form.said("zone"))
    if column.null_count():
        missing = int(column.is_null().arg_true()[0])
        raise DataError(f"{place.row(missing)}: the stamp in column {column.name!r} is missing")
    kind = column.dtype
    read = _Reading(column, form, place, seen, series)
    if kind == pl.String:
        return read.formatted() if form.forms else read.text()
    if kind.is_integer():
        return read.moments(read.epoch(column), "epoch time")
    if isinstance(kind, pl.Datetime):
        ns_T = read.nanoseconds(column)
        return read.moments(ns_T, "offset") if kind.time_zone else read.local(ns_T)
    if kind == pl.Date:
        return read.dates(read.nanoseconds(column))
    raise DataError(f"{place.source}: column {column.name!r}: expected stamps, found {kind}")


@dataclass
class _Reading:
    """One column on its way to stamps."""

    column: polars.Series
    how: StampForm
    place: Place
    seen: Seen
    series: polars.Series | None

    def moments(self, utc_T: NDArray[np.int64], kind: str) -> Stamps:
        self._same_kind(kind)
        return Stamps(utc_T, utc_T)

    def dates(self, local_T: NDArray[np.int64]) -> Stamps:
        self._same_kind("date alone")
        local_T = local_T.astype(np.int64)
        if not self.how.zone:
            return Stamps(local_T, local_T, date_only=True)
        zone, ahead = split_zone(self.how.zone)
        if ahead:  # a day of a broker's clock is no day of a zone
            return Stamps(local_T, local_T, date_only=True)
        return Stamps(clock.to_utc(local_T, zone)[0], local_T, date_only=True, local=True)

    def _same_kind(self, kind: str) -> None:
        if self.seen.kind not in ("", kind):
            raise DataError(f"{self.place.row(0)}: the stamps above are of another kind: {self.seen.kind}, here {kind}: {self._cell(0)}")
        self.seen.kind = kind

    def _cell(self, row: int) -> str:
        return repr(str(self.column[row]))

    # text

    def text(self) -> Stamps:
        if not len(self.column):
            return Stamps(*(np.zeros(0, np.int64),) * 2)
        fast = self._plain_iso()
        if fast is not None:
            return fast
        stripped = self.column.str.strip_chars()
        if stripped.str.contains(r"^[0-9]+$").all():
            return self.moments(self.epoch(stripped), "epoch time")
        return self._mixed_iso()

    def _plain_iso(self) -> Stamps | None:
        """Stamps that are all written in the way of the first; None where they are not, or where one is no moment."""
        import polars as pl

        first = _PLAIN.fullmatch(self.column[0])
        if first is None:
            return None
        between, _, second, fraction, offset = first.groups()
        pattern = rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}{between}[0-9]{{2}}:[0-9]{{2}}" + (":[0-5][0-9]" if second else "")
        pattern += rf"\.[0-9]{{{len(fraction) - 1}}}" if fraction else ""
        pattern += {"Z": "Z", None: ""}.get(offset, "[+-][0-9]{2}:?[0-9]{2}") + "$"
        if (fraction and not second) or not self.column.str.contains(pattern).all():
            return None
        length = 19 if second else 16
        whole = self.column if len(self.column[0]) == length else self.column.str.slice(0, length)
        form = f"%Y-%m-%d{between}%H:%M" + (":%S" if second else "")
        moments = whole.str.to_datetime(form, time_unit="us", strict=False)
        if moments.null_count():
            return None
        local_T = self.nanoseconds(moments)
        if fraction:
            digits = self.column.str.slice(length + 1, len(fraction) - 1).cast(pl.Int64)
            local_T = local_T + digits.to_numpy() * 10 ** (10 - len(fraction))
        if offset is None:
            return self.local(local_T)
        return self.moments(local_T if offset == "Z" else local_T - self._shift(), "offset")

    def _shift(self) -> NDArray[np.int64]:
        """Offsets at the ends of the stamps in ns; a file has few of them, so each is read once."""
        import polars as pl

        tail = self.column.str.extract("([+-][0-9]{2}:?[0-9]{2})$")
        table = {text: self._offset(text, tail) for text in tail.unique().to_list()}
        if len(table) == 1:
            return np.int64(next(iter(table.values())))  # type: ignore[return-value]
        return tail.replace_strict(table, return_dtype=pl.Int64).to_numpy()

    def _offset(self, text: str, tail: polars.Series) -> int:
        hours, minutes = int(text[1:3]), int(text[-2:])
        if minutes > 59 or hours * 60 + minutes > _FARTHEST_OFFSET:
            row = int((tail == text).arg_true()[0])
            raise DataError(f"{self.place.row(row)}: no zone is so far from UTC: {self._cell(row)} in column {self.column.name!r}")
        return (-1 if text[0] == "-" else 1) * (hours * 60 + minutes) * 60 * clock.SECOND

    def _mixed_iso(self) -> Stamps:
        """Stamps of ISO 8601 that are written in several ways; it finds the row that is none."""
        import polars as pl

        parts = self.column.str.extract_groups(_ISO).struct.unnest()
        date = parts["date"].str.to_date("%Y-%m-%d", strict=False)
        number = {name: parts[name].cast(pl.Int64).fill_null(0) for name in ("hour", "minute", "second")}
        wrong = (date.is_null() | (number["hour"] > 23) | (number["minute"] > 59) | (number["second"] > 59)).arg_true()
        if len(wrong):
            row = int(wrong[0])
            raise DataError(
                f"{self.place.row(row)}: expected a stamp such as 2024-03-04T14:33:00Z in column {self.column.name!r}, found "
                f"{self._cell(row)}; {self.how.said('stamp_format')} says how stamps are written"
            )
        fraction = parts["fraction"].str.pad_end(9, "0").cast(pl.Int64).fill_null(0)
        seconds = number["hour"] * 3600 + number["minute"] * 60 + number["second"]
        local_T = self.nanoseconds(date) + seconds.to_numpy() * clock.SECOND + fraction.to_numpy()
        if parts["hour"].is_null().all() and parts["zone"].is_null().all():
            return self.dates(local_T)
        self._all_timed(parts["hour"].is_null().to_numpy())
        zoned_T = parts["zone"].is_not_null().to_numpy()
        if not zoned_T.any():
            return self.local(local_T)
        if not zoned_T.all():
            row = int(np.flatnonzero(zoned_T != zoned_T[0])[0])
            found = f"{self._cell(0)} and {self._cell(row)}"
            raise DataError(f"{self.place.row(row)}: some stamps carry an offset and some do not: {found}")
        tail = parts["zone"].replace("Z", "+00:00")
        table = {text: self._offset(text, tail) for text in tail.unique().to_list()}
        return self.moments(local_T - tail.replace_strict(table, return_dtype=pl.Int64).to_numpy(), "offset")

    def _all_timed(self, bare_T: NDArray[np.bool_]) -> None:
        if bare_T.any():
            row = int(np.flatnonzero(bare_T)[0])
            other = int(np.flatnonzero(~bare_T)[0]) if not bare_T.all() else row
            found = f"{self._cell(row)} and {self._cell(other)}"
            raise DataError(f"{self.place.row(row)}: a date without a time among stamps with one: {found}")

    # formats

    def formatted(self) -> Stamps:
        stripped = self.column.str.strip_chars()
        if not self.seen.form and len(stripped):
            self.seen.form = next(
                (form for form in self.how.forms if self._parsed(stripped[:1], form).null_count() == 0), self.how.forms[0]
            )
        form = self.seen.form or self.how.forms[0]
        parsed = self._parsed(stripped, form)
        if parsed.null_count():
            row = int(parsed.is_null().arg_true()[0])
            found = f"found {self._cell(row)}"
            raise DataError(f"{self.place.row(row)}: expected a stamp like {form!r} in column {self.column.name!r}, {found}")
        ns_T = self.nanoseconds(parsed)
        if not any(token in form for token in _TIMES):
            return self.dates(ns_T)
        return self.moments(ns_T, "offset") if "%z" in form or "%s" in form else self.local(ns_T)

    def _parsed(self, text: polars.Series, form: str) -> polars.Series:
        """Dates or moments; null where a cell is written otherwise."""
        import polars as pl

        form = form.replace(".%f", "%.f")
        if "%f" in form:
            raise UsageError(f"{self.how.said('stamp_format')}: expected a fraction of a second as %.f, found %f in {form!r}")
        pattern = _pattern(form)
        if pattern is not None:
            fits = text.str.contains(pattern)
            if not fits.all():
                text = pl.select(pl.when(fits).then(text)).to_series()
        try:
            if not any(token in form for token in _TIMES):
                return text.str.to_date(form, strict=False)
            # Nanoseconds wrap around outside 1677 to 2262 without a word; microseconds reach far enough to see that.
            coarse = text.str.to_datetime(form, time_unit="us", strict=False)
            if "f" not in form:
                return coarse
            self.nanoseconds(coarse.drop_nulls())
            return text.str.to_datetime(form, time_unit="ns", strict=False)
        except pl.exceptions.PolarsError as error:
            raise DataError(f"{self.how.said('stamp_format')}: {form!r} is not understood: {error}") from error

    # numbers

    def epoch(self, column: polars.Series) -> NDArray[np.int64]:
        """The unit is told by the digits of each row: exchanges changed it within one file."""
        import polars as pl

        text = column if column.dtype == pl.String else column.cast(pl.String)
        digits_T = text.str.len_bytes().to_numpy()
        unit_T = epoch_units(digits_T)
        unknown = np.flatnonzero(unit_T == 0)
        if unknown.size:
            row = int(unknown[0])
            raise DataError(
                f"{self.place.row(row)}: expected epoch time of 10 (s), 13 (ms), 16 (us) or 19 (ns) digits, found {text[row]!r} "
                f"of {digits_T[row]} digits"
            )
        number_T = text.cast(pl.Int64, strict=False).fill_null(2**63 - 1).to_numpy()  # 19 digits may be more than int64 holds
        far = np.flatnonzero((number_T < _EARLIEST // unit_T) | (number_T > _LATEST // unit_T))
        if far.size:
            row = int(far[0])
            raise DataError(f"{self.place.row(row)}: {text[row]!r} as epoch time of {digits_T[row]} digits lies outside 1980 to 2100")
        return number_T * unit_T

    def nanoseconds(self, moments: polars.Series) -> NDArray[np.int64]:
        """Dates or time stamps as int64 nanoseconds, which reach from 1677 to 2262."""
        import polars as pl

        first, last = moments.min(), moments.max()
        if first is not None and (first.year < 1678 or last.year > 2261):  # type: ignore[union-attr]
            year = moments.dt.year()
            row = int(((year < 1678) | (year > 2261)).arg_true()[0])
            raise DataError(f"{self.place.row(row)}: {self._cell(row)} in column {self.column.name!r} lies outside 1678 to 2261")
        ns = moments.cast(pl.Datetime("ns", getattr(moments.dtype, "time_zone", None)))
        return ns.to_physical().to_numpy().astype(np.int64, copy=False)

    # local time

    def local(self, local_T: NDArray[np.int64]) -> Stamps:
        """Wall-clock times as moments; a time that the zone has twice is told by order or refused, one it never had is refused."""
        self._same_kind("time without an offset")
        zone = self.how.zone
        if not zone:
            shown = self._cell(0) if len(self.column) else "none"
            raise UsageError(
                f"{self.how.said('zone')}: expected the zone of the stamps in {self.place.source}, found nothing; they carry no offset "
                f"({shown}); name it, such as America/New_York, or Etc/GMT-2 for a fixed +02:00"
            )
        zone, ahead = split_zone(zone)
        first_T, second_T, skipped_T = clock.to_utc(local_T - ahead if ahead else local_T, zone)
        never = np.flatnonzero(skipped_T)
        if never.size:
            row = int(never[0])
            said = self.how.said("zone")
            raise DataError(f"{self.place.row(row)}: {_wall(local_T[row])} does not exist in {zone}: clocks went forward; is {said} right?")
        twice = np.flatnonzero(first_T != second_T)
        if twice.size and self.how.repeated_hour == "error":
            row = int(twice[0])
            option = self.how.said("repeated_hour")
            way_out = f"{option} = 'file_order' tells" if option.startswith("data.") else f"{option} file_order tells"
            raise DataError(
                f"{self.place.row(row)}: {_wall(local_T[row])} happened twice in {zone}: clocks went back; {way_out} them by the order of "
                "rows"
            )
        return Stamps(self._by_order(first_T, second_T, twice, local_T), local_T, local=True)

    def _untold(self, row: int, local_T: NDArray[np.int64], why: str) -> NoReturn:
        raise DataError(self._untold_text(row, local_T, why))

    def _untold_text(self, row: int, local_T: NDArray[np.int64], why: str) -> str:
        shown = f"{_wall(local_T[row])} happened twice in {self.how.zone}"
        return f"{self.place.row(row)}: {shown}, and {why} (or write the stamps with offsets)"

    def _turned(self, name: str) -> None:
        """A series that leaves an hour that repeats must have gone back in it."""
        if name in self.seen.unturned:
            raise DataError(self.seen.unturned[name])

    def _by_order(
        self, first_T: NDArray[np.int64], second_T: NDArray[np.int64], twice: NDArray[np.int64], local_T: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """The second pass begins where the clock of a series falls back (or stands still, where no two rows share a stamp).

        So a series must have a row before its first repeated time, its rows must be in order of time around it, and the clock must be seen
        to go back: where the rows of one pass are missing, what is left may be of either.
        """
        if self.how.repeated_hour == "error" or not first_T.size:
            return first_T
        utc_T = first_T.copy()
        name_T = None if self.series is None else self.series.to_numpy()
        before_T = _before(name_T, len(utc_T))
        once_T, next_T = _places(before_T, twice)
        for row in np.flatnonzero(once_T & (before_T < 0)).tolist() if self.seen.unturned else ():
            self._turned("" if name_T is None else str(name_T[row]))
        for row in twice.tolist():
            name = "" if name_T is None else str(name_T[row])
            before = utc_T[before_T[row]] if before_T[row] >= 0 else self.seen.last.get(name)
            if before is None:
                self._untold(row, local_T, "no row of its series before it tells which of the two; begin the file before that hour")
            if first_T[row] < before or (first_T[row] == before and not self.how.ties):
                utc_T[row] = second_T[row]
            if utc_T[row] < before:
                self._untold(row, local_T, "the row before it is later than both: the order of rows tells nothing; sort the file by time")
            if utc_T[row] == first_T[row]:
                self.seen.unturned.setdefault(name, self._untold_text(row, local_T, "the clock is not seen to go back after it"))
            else:
                self.seen.unturned.pop(name, None)
            if next_T[row] >= 0 and once_T[next_T[row]]:
                self._turned(name)
        for row in _ends(name_T, len(utc_T)):
            self.seen.last["" if name_T is None else str(name_T[row])] = int(utc_T[row])
        return utc_T


def epoch_units(digits_T: NDArray[Any]) -> NDArray[np.int64]:
    """Nanoseconds that epoch time of so many digits counts, 0 where no unit has as many."""
    return np.array([_EPOCH_UNITS.get(digits, 0) for digits in range(32)], np.int64)[np.minimum(digits_T, 31)]


def split_zone(text: str) -> tuple[str, int]:
    """The zone and the nanoseconds by which a clock is ahead of it: America/New_York+07:00."""
    found = re.fullmatch(r"(.+)([+-])(\d\d):(\d\d)", text)
    if found is None:
        return text, 0
    minutes = int(found[3]) * 60 + int(found[4])
    return found[1], (-minutes if found[2] == "-" else minutes) * 60 * clock.SECOND


@lru_cache
def same_zone(one: str, other: str) -> bool:
    """Whether two names are of zones with the same clock in every month of 1990 to 2050, as UTC and Etc/GMT are."""
    if one == other:
        return True
    month_T = np.arange("1990-01", "2050-01", dtype="datetime64[M]").astype("datetime64[ns]").astype(np.int64)
    local = [clock.to_local(month_T, zone) + ahead for zone, ahead in (split_zone(one), split_zone(other))]
    return bool((local[0] == local[1]).all())


def _before(name_T: NDArray[np.object_] | None, count: int) -> NDArray[np.int64]:
    """The row before each row in its series; -1 = none in this chunk."""
    if name_T is None:
        return np.arange(-1, count - 1)
    code_T = np.unique(name_T.astype(str), return_inverse=True)[1]
    order = np.argsort(code_T, kind="stable")
    before_T = np.full(count, -1, np.int64)
    same = code_T[order[1:]] == code_T[order[:-1]]
    before_T[order[1:][same]] = order[:-1][same]
    return before_T


def _places(before_T: NDArray[np.int64], twice: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which rows are of times that happened once, and the row after each row in its series, -1 = none in this chunk."""
    once_T = np.ones(len(before_T), np.bool_)
    once_T[twice] = False
    next_T = np.full(len(before_T), -1, np.int64)
    after = np.flatnonzero(before_T >= 0)
    next_T[before_T[after]] = after
    return once_T, next_T


def _ends(name_T: NDArray[np.object_] | None, count: int) -> list[int]:
    """The last row of each series."""
    if name_T is None:
        return [count - 1]
    return list({str(name): row for row, name in enumerate(name_T)}.values())


def _pattern(form: str) -> str | None:
    """A regular expression as strict as the form: numbers that touch have all their digits, seconds end at 59. None = a form too rare."""
    parts = re.findall(r"%\.[0-9]?f|%.|\s+|.", form)
    found = []
    for place, part in enumerate(parts):
        code = part[1:] if part.startswith("%") else ""
        touches = any(0 <= other < len(parts) and parts[other][1:] in _NUMBERS for other in (place - 1, place + 1))
        if code in _NUMBERS:
            width = _NUMBERS[code]
            digits = "[0-5][0-9]" if code in "MS" and touches else "[0-5]?[0-9]" if code in "MS" else ""
            found.append(digits or (f"[0-9]{{{width}}}" if touches or code == "Y" else f"[0-9]{{1,{width}}}"))
        elif part.startswith("%."):
            found.append(r"(?:\.[0-9]{1,9})?" if code == ".f" else rf"\.[0-9]{{{code[1]}}}")
        elif code in _TEXTS:
            found.append(_TEXTS[code])
        elif part.startswith("%"):
            return None
        else:
            found.append(r"\s+" if part.isspace() else re.escape(part))
    return "^" + "".join(found) + "$"


def _wall(local: int) -> str:
    return clock.text(local).replace("T", " ").removesuffix("Z")
