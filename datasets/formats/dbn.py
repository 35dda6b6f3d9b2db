"""Databento Binary Encoding (DBN); its decoding is left to the package databento-dbn.

Bars are stamped with their open. Trades and quotes take ts_recv, the time at which the vendor received them, by which the files are
sorted: ts_event, the exchange's own, may go back. Prices are integers of 1e-9; INT64_MAX stands for none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bellmark import clock
from bellmark.bars import PRICES
from bellmark.datasets.formats.canonical import Canonical, Cells, Chosen, Layout
from bellmark.datasets.formats.databento import UNDEFINED, UNIT
from bellmark.datasets.formats.layout import Format, Kind, Options, RowFacts, Rows
from bellmark.datasets.formats.streams import Head, Member, Meter, no_panic
from bellmark.datasets.stamps import Place
from bellmark.errors import DataError, UsageError

if TYPE_CHECKING:
    import polars

_SCHEMAS: dict[str, tuple[Kind, float | None]] = {
    "ohlcv-1s": ("bars", 1.0), "ohlcv-1m": ("bars", 60.0), "ohlcv-1h": ("bars", 3600.0), "ohlcv-1d": ("bars", 86_400.0),
    "trades": ("ticks", None), "tbbo": ("ticks", None),
    "mbp-1": ("quotes", None), "bbo-1s": ("quotes", None), "bbo-1m": ("quotes", None),
}  # fmt: skip
_ZSTD, _SKIPPABLE = b"\x28\xb5\x2f\xfd", b"\x2a\x4d\x18"
_PIECE = 1 << 20


@dataclass(frozen=True)
class _Columns:
    """What is taken of the records of a schema."""

    kind: Kind
    stamp: str
    prices: dict[str, str]
    sizes: dict[str, str]


def _columns(schema: str) -> _Columns:
    quotes = {"bid": "bid_px_00", "ask": "ask_px_00"}
    if schema.startswith("ohlcv"):
        return _Columns("bars", "ts_event", {name: name for name in PRICES}, {"volume": "volume"})
    if schema == "trades":
        return _Columns("ticks", "ts_recv", {"price": "price"}, {"size": "size"})
    if schema == "tbbo":
        return _Columns("ticks", "ts_recv", {"price": "price", **quotes}, {"size": "size"})
    return _Columns("quotes", "ts_recv", quotes, {"bid_size": "bid_sz_00", "ask_size": "ask_sz_00"})


def read_dbn(path: Path, options: Options, meter: Meter) -> Iterator[Rows]:
    """The bars, trades or quotes of a DBN file, plain or in Zstandard."""
    try:
        import databento_dbn
    except ImportError:
        raise UsageError(f"{path}: reading DBN needs the package databento-dbn: pip install 'bellmark[databento]'") from None
    dbn: Any = databento_dbn  # its stubs take the value of an enumeration for the enumeration
    with meter.opened(path) as file:
        compressed = _check_start(path, file)
        decoder = dbn.DBNDecoder(compression=dbn.Compression.ZSTD if compressed else dbn.Compression.NONE)
        reading = _Dbn(path, file, options, meter)
        while True:
            data = file.read(min(_PIECE, max(options.chunk_bytes // 8, 1024)))
            try:
                with no_panic(f"{path}: after data row {reading.count}"):
                    if data:
                        decoder.write(data)
                    records = decoder.decode()
            except (dbn.DBNError, RuntimeError, OSError, ValueError) as error:
                raise DataError(f"{path}: it cannot be decoded as DBN: {error}") from error
            yield from reading.take(records)
            if not data:
                break
        left = len(decoder.buffer())
        yield from reading.end(left if not compressed else 0)


def _check_start(path: Path, file: IO[bytes]) -> bool:
    start = file.read(4)
    compressed = start == _ZSTD
    if start[1:] == _SKIPPABLE or path.suffix == ".dbz":
        raise DataError(f"{path}: it is DBZ, the encoding before DBN, which databento-dbn no longer reads; get the data again as DBN")
    if not compressed and start[:3] != b"DBN":
        raise DataError(
            f"{path}: expected DBN, which begins with 'DBN' and metadata, found {start[:4]!r}; a fragment has neither and is not read"
        )
    if compressed and not _whole_zstandard(file, path.stat().st_size):
        raise DataError(f"{path}: the compressed file ends early")
    file.seek(0)
    return compressed


def _whole_zstandard(file: IO[bytes], size: int) -> bool:
    """Whether the last block of the last frame is there (RFC 8878, 3.1.1): the decoder does not say that input ended within a frame."""
    file.seek(0)
    while (magic := file.read(4)) and len(magic) == 4:
        if magic[1:] == _SKIPPABLE:
            file.seek(int.from_bytes(file.read(4), "little"), os.SEEK_CUR)
            continue
        if magic != _ZSTD:
            return False
        flags = file.read(1)[:1] or b"\0"
        single, checksum = bool(flags[0] & 0x20), bool(flags[0] & 0x04)
        content = (1 if single else 0, 2, 4, 8)[flags[0] >> 6]
        file.seek((0 if single else 1) + (0, 1, 2, 4)[flags[0] & 3] + content, os.SEEK_CUR)
        last = False
        while not last:
            head = file.read(3)
            if len(head) < 3:
                return False
            value = int.from_bytes(head, "little")
            last = bool(value & 1)
            file.seek(1 if (value >> 1) & 3 == 1 else value >> 3, os.SEEK_CUR)  # a block of one repeated byte holds that byte
        file.seek(4 if checksum else 0, os.SEEK_CUR)
    return file.tell() == size


class _Dbn:
    """The records of one file on their way to rows."""

    def __init__(self, path: Path, file: IO[bytes], options: Options, meter: Meter) -> None:
        self.path, self.file, self.options, self.meter = path, file, options, meter
        self.names = _Names(options)
        self.chosen = Chosen(options)
        self.count = 0
        self.canonical: Canonical | None = None

    def take(self, records: list[Any]) -> Iterator[Rows]:
        """The rows of some records; the first one of a file is its metadata."""
        if records and self.canonical is None:
            self._metadata(records[0])
            records = records[1:]
        step = max(1, self.options.chunk_bytes // 64)
        for first in range(0, len(records), step):
            try:
                rows = self._rows(records[first : first + step])
            except AttributeError as error:
                raise DataError(f"{self.path}: after data row {self.count}: a record of another schema: {error}") from error
            yield rows

    def end(self, left: int) -> Iterator[Rows]:
        """Refuses a file that ends within a record, or notes that the part was left out."""
        if self.canonical is None:
            raise DataError(f"{self.path}: the file ends within its metadata")
        if left and self.options.truncated == "error":
            raise DataError(f"{self.path}: data row {self.count + 1}: the file ends within a record ({left} bytes are left)")
        if left:
            yield self.canonical.rows(
                None, self.count + 1, (f"{self.path}: data row {self.count + 1}: the last record is cut short; it was left out",)
            )
        if not self.count:
            raise DataError(f"{self.path}: the file holds no records")
        self.chosen.check(self.path)

    def _metadata(self, metadata: Any) -> None:
        schema = "mixed schemas" if metadata.schema is None else str(metadata.schema)
        if schema not in _SCHEMAS:
            raise DataError(f"{self.path}: expected one of {', '.join(_SCHEMAS)}, found {schema}, which is not made into bars")
        kind, seconds = _SCHEMAS[schema]
        facts = RowFacts("open" if kind == "bars" else "", seconds, price_adjustment="raw")
        self.columns = _columns(schema)
        layout = Layout(kind, {}, (), facts=facts)
        self.names.learn(metadata)
        self.canonical = Canonical(layout, Member(str(self.path), self.path.name, self.file), self.options, self.meter, self.chosen)

    def _rows(self, records: list[Any]) -> Rows:
        import polars as pl

        assert self.canonical is not None
        first_row, columns = self.count + 1, self.columns
        place = Place(str(self.path), first_row)
        ts_T = np.fromiter((getattr(record, columns.stamp) for record in records), np.uint64, len(records))
        id_T = np.fromiter((record.instrument_id for record in records), np.int64, len(records))
        found = [pl.Series("stamp", ts_T.astype(np.int64)), self.names.of(id_T, ts_T, place)]
        found += [pl.Series(name, _price(records, column)).fill_nan(None) for name, column in columns.prices.items()]
        found += [pl.Series(name, [float(getattr(record, column)) for record in records]) for name, column in columns.sizes.items()]
        cells = Cells(pl.DataFrame(found), {"stamp": columns.stamp}, place, self.options)
        self.count += len(records)
        return self.canonical.rows(cells, first_row)


def _price(records: list[Any], column: str) -> NDArray[np.float64]:
    nano_T = np.fromiter((getattr(record, column) for record in records), np.int64, len(records))
    return np.where(nano_T == UNDEFINED, np.nan, nano_T / UNIT)


class _Names:
    """Symbols of instruments by id and day, from the metadata; an id that they do not name is its own name."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.spans: dict[int, list[tuple[int, int, str]]] = {}
        self.only: str | None = None

    def learn(self, metadata: Any) -> None:
        """Takes the mappings of a file."""
        forward = str(metadata.stype_out) != "instrument_id"
        for symbol, intervals in metadata.mappings.items():
            for interval in intervals:
                number, name = (symbol, interval["symbol"]) if forward else (interval["symbol"], symbol)
                if str(number).isdigit():
                    span = (clock.day_number(interval["start_date"]), clock.day_number(interval["end_date"]), str(name))
                    self.spans.setdefault(int(number), []).append(span)
        if not self.spans and len(metadata.symbols) == 1 and str(metadata.stype_in) == "raw_symbol":
            self.only = str(metadata.symbols[0])

    def of(self, id_T: NDArray[np.int64], ts_T: NDArray[Any], place: Place) -> polars.Series:
        """The symbol of each record."""
        import polars as pl

        numbers, code_T = np.unique(id_T, return_inverse=True)
        day_T = (ts_T // clock.DAY).astype(np.int64)
        if self.only is not None or (not self.spans and len(self.options.wanted) == 1):
            self._one(id_T, numbers, place)
            return pl.repeat(self.only or self.options.the_symbol, len(id_T), eager=True).alias("symbol")
        name_T = np.array([str(number) for number in numbers], object)[code_T]
        for number in numbers.tolist():
            for start, end, name in self._chosen(number, place):
                name_T[(id_T == number) & (day_T >= start) & (day_T < end)] = name
        return pl.Series("symbol", name_T.tolist(), pl.String)

    def _one(self, id_T: NDArray[np.int64], numbers: NDArray[np.int64], place: Place) -> None:
        if len(numbers) > 1:
            row = int(np.flatnonzero(id_T != id_T[0])[0])
            found = f"found {id_T[0]} and {id_T[row]}, which the file does not name"
            raise DataError(f"{place.row(row)}: expected one instrument for '{self.only or self.options.the_symbol}', {found}")

    def _chosen(self, number: int, place: Place) -> list[tuple[int, int, str]]:
        """The spans of an instrument; of several names for one day, that which the user took."""
        spans = self.spans.get(number, [])
        wanted = [span for span in spans if span[2] in self.options.wanted] or spans
        for (_, end, name), (start, _, other) in zip(sorted(wanted)[:-1], sorted(wanted)[1:], strict=True):
            if start < end and name != other:
                raise DataError(
                    f"{place.source}: instrument {number} has two names, {name} and {other}; say one by {self.options.said('symbol')}"
                )
        return wanted


def _fits_dbn(head: Head) -> bool:
    return head.data[:3] == b"DBN" or (head.data[:4] in (_ZSTD, b"") and ".dbn" in head.path.name)


FORMATS = (
    Format(
        "dbn", "Databento Binary Encoding: bars, trades, tbbo, mbp-1, bbo", ("bars", "ticks", "quotes"), "records of one schema", "open",
        "in file",
        "in file, else the instrument's number", "file", read_dbn, _fits_dbn,
        "versions 1 to 3, plain or Zstandard; trades and quotes are stamped ts_recv; other schemas, fragments and DBZ are refused",
        "databento",
    ),
)  # fmt: skip
