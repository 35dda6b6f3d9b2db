"""Sierra Chart's intraday files (.scid): a header of 56 bytes and records of 40, bars or trades.

A record: stamp, four float32 (open, high, low, close), four uint32 (trades, volume, bid volume, ask volume), little-endian. The stamp is
int64 microseconds since 1899-12-30 UTC; older files have float64 days instead, which the numbers tell apart. A trade has an open of 0 (or
one of two marks, where it is part of a bundle), the ask as high, the bid as low and the price as close.
Source: the vendor's documentation of its intraday data file format.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bellmark.datasets.formats.canonical import Canonical, Cells, Chosen, Layout
from bellmark.datasets.formats.layout import Format, Options, RowFacts, Rows
from bellmark.datasets.formats.streams import Head, Member, Meter, members, read_bytes
from bellmark.datasets.stamps import Place
from bellmark.errors import DataError

if TYPE_CHECKING:
    import polars

RECORD = np.dtype([("stamp", "<i8"), ("open", "<f4"), ("high", "<f4"), ("low", "<f4"), ("close", "<f4"),
                   ("trades", "<u4"), ("volume", "<u4"), ("bid_volume", "<u4"), ("ask_volume", "<u4")])  # fmt: skip
_TRADE = {"price": "close", "size": "volume", "bid": "low", "ask": "high"}
_HEADER_BYTES = 56
_EPOCH_DAYS = 25_569  # from 1899-12-30 to 1970-01-01
_BUNDLE = (np.float32(-1.99900095e37), np.float32(-1.99900197e37))
_FIRST_US, _LAST_US = ((days + _EPOCH_DAYS) * 86_400_000_000 for days in (3_652, 47_482))  # 1980 and 2100
_FIRST_DAY, _LAST_DAY = 3_652 + _EPOCH_DAYS, 47_482 + _EPOCH_DAYS


def read_scid(path: Path, options: Options, meter: Meter) -> Iterator[Rows]:
    """The bars or trades of a file."""
    for member in members(path, meter):
        yield from _Scid(member, options, meter).rows()


class _Scid:
    def __init__(self, member: Member, options: Options, meter: Meter) -> None:
        self.member, self.options, self.meter = member, options, meter
        self.canonical: Canonical | None = None
        self.days = False

    def rows(self) -> Iterator[Rows]:
        """The records, chunk by chunk."""
        self._header()
        size = max(self.options.chunk_bytes // RECORD.itemsize, 1) * RECORD.itemsize
        row, rest = 1, b""
        while data := read_bytes(self.member, size - len(rest)):
            data = rest + data
            whole = len(data) - len(data) % RECORD.itemsize
            rest = data[whole:]
            if whole:
                record_T = np.frombuffer(data[:whole], RECORD)
                yield self._rows(record_T, row)
                row += len(record_T)
        if rest:
            yield from self._cut(row, len(rest))
        if row == 1:
            raise DataError(f"{self.member.name}: the file holds no records")

    def _header(self) -> None:
        head = read_bytes(self.member, _HEADER_BYTES)
        if len(head) < _HEADER_BYTES or head[:4] != b"SCID":
            raise DataError(f"{self.member.name}: expected a header of {_HEADER_BYTES} bytes that begins with 'SCID', found {head[:4]!r}")
        sizes = struct.unpack("<II", head[4:12])
        if sizes != (_HEADER_BYTES, RECORD.itemsize):
            raise DataError(f"{self.member.name}: expected a header of 56 and records of 40 bytes, found {sizes[0]} and {sizes[1]}")

    def _cut(self, row: int, left: int) -> Iterator[Rows]:
        found = f"{self.member.name}: data row {row}: the last record is cut short: expected {RECORD.itemsize} bytes, found {left}"
        if self.options.truncated != "drop" or self.canonical is None:
            raise DataError(found)
        yield self.canonical.rows(None, row, (f"{found}; it was left out",))

    def _rows(self, record_T: NDArray[np.void], row: int) -> Rows:
        import polars as pl

        trade_T = (record_T["open"] == 0) | np.isin(record_T["open"], _BUNDLE)
        if self.canonical is None:
            self._begin(record_T, bool(trade_T[0]))
        assert self.canonical is not None
        place = Place(self.member.name, row)
        ticks = self.canonical.layout.kind == "ticks"
        other = np.flatnonzero(trade_T != ticks)
        if other.size:
            kinds = ("trade", "bar") if not ticks else ("bar", "trade")
            raise DataError(f"{place.row(int(other[0]))}: a {kinds[0]} among {kinds[1]}s")
        names = _TRADE if ticks else {name: name for name in (RECORD.names or ())[1:]}
        columns = [_numbers(record_T[field], name, ticks) for name, field in names.items()]
        stamp = pl.Series("stamp", self._stamps(record_T["stamp"], place)).cast(pl.Datetime("ns", "UTC"))
        return self.canonical.rows(Cells(pl.DataFrame([stamp, *columns]), {"stamp": "stamp"}, place, self.options), row)

    def _begin(self, record_T: NDArray[np.void], ticks: bool) -> None:
        first = int(record_T["stamp"][0])
        self.days = not _FIRST_US <= first <= _LAST_US
        layout = Layout("ticks" if ticks else "bars", {}, (), facts=RowFacts("" if ticks else "open", price_adjustment="raw"))
        self.canonical = Canonical(layout, self.member, self.options, self.meter, Chosen(self.options))

    def _stamps(self, stamp_T: NDArray[np.int64], place: Place) -> NDArray[np.int64]:
        shown: NDArray[Any]
        if self.days:
            day_T = np.ascontiguousarray(stamp_T).view(np.float64)
            wrong_T = ~((day_T >= _FIRST_DAY) & (day_T <= _LAST_DAY))
            shown = day_T
            with np.errstate(invalid="ignore", over="ignore"):
                ms_T = np.rint(np.where(wrong_T, _FIRST_DAY, day_T - _EPOCH_DAYS) * 86_400_000.0)  # days are exact to the millisecond
            utc_T = ms_T.astype(np.int64) * 1_000_000
        else:
            wrong_T = (stamp_T < _FIRST_US) | (stamp_T > _LAST_US)
            shown = stamp_T
            utc_T = (np.where(wrong_T, _FIRST_US, stamp_T) - _EPOCH_DAYS * 86_400_000_000) * 1_000
        wrong = np.flatnonzero(wrong_T)
        if wrong.size:
            unit = "days" if self.days else "microseconds"
            raise DataError(f"{place.row(int(wrong[0]))}: the stamp {shown[wrong[0]]} {unit} since 1899-12-30 lies outside 1980 to 2100")
        return utc_T


def _numbers(column_T: NDArray[np.generic], name: str, ticks: bool) -> polars.Series:
    """float32 as the shortest decimal that it stands for: 180.1, not 180.1000061. A bid or ask of 0 is none."""
    import polars as pl

    column = pl.Series(name, np.ascontiguousarray(column_T))
    column = column.cast(pl.String).cast(pl.Float64) if column.dtype == pl.Float32 else column.cast(pl.Float64)
    if ticks and name in ("bid", "ask"):
        return pl.select(pl.when(column > 0).then(column).alias(name)).to_series()
    return column


def _fits(head: Head) -> bool:
    return head.data[:4] == b"SCID"


FORMATS = (
    Format(
        "scid", "intraday files of Sierra Chart, bars or trades", ("bars", "ticks"),
        "binary records: stamp open high low close trades volume bid_volume ask_volume", "open", "UTC", "user", "doc/know",
        read_scid, _fits,
        "an open of 0 marks a trade, whose high is the ask and low the bid; float32 prices are taken as the decimals they stand for; "
        "stamps count microseconds, in older files days, since 1899-12-30",
    ),
)  # fmt: skip
