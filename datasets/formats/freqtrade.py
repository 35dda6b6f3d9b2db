"""freqtrade's JSON: one list of bars, each a list [ms, open, high, low, close, volume]. It is read piece by piece, not whole."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bellmark.bars import PRICES
from bellmark.datasets.formats.canonical import Canonical, Cells, Chosen, Layout
from bellmark.datasets.formats.layout import Format, Options, RowFacts, Rows
from bellmark.datasets.formats.streams import Head, Member, Meter, describe, members, read_bytes
from bellmark.datasets.stamps import Place
from bellmark.errors import DataError

_NAMES = ("stamp", *PRICES, "volume")
_NAMED = re.compile(r"([A-Z0-9]+)_([A-Z0-9]+)(?:_[A-Z0-9]+)?-(\d+)([mhdw])(?:-[a-z]+)?\.json", re.IGNORECASE)
_UNITS = {"m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_LONGEST_BAR = 4096
_PIECE = 4 << 20  # as Python lists a piece takes some ten times its size


def read_json(path: Path, options: Options, meter: Meter) -> Iterator[Rows]:
    """The bars of a file."""
    for member in members(path, meter):
        named = _NAMED.fullmatch(member.inner)
        facts = RowFacts("open", None if named is None else int(named[3]) * _UNITS[named[4].lower()], price_adjustment="raw")
        symbol = None if named is None else f"{named[1]}/{named[2]}"
        layout = Layout("bars", {}, (), facts=facts, name_of=lambda _, symbol=symbol: symbol)  # type: ignore[misc]
        canonical = Canonical(layout, member, options, meter, Chosen(options))
        row = 1
        for bars in _pieces(member, min(options.chunk_bytes, _PIECE)):
            yield canonical.rows(_cells(bars, Place(member.name, row), options), row)
            row += len(bars)
        if row == 1:
            raise DataError(f"{member.name}: the file holds no bars")


def _pieces(member: Member, size: int) -> Iterator[list[Any]]:
    """Bars as lists; the text between the outer brackets is cut after a bar."""
    rest = read_bytes(member, size).removeprefix(b"\xef\xbb\xbf").lstrip()
    if not rest.startswith(b"["):
        raise DataError(f"{member.name}: expected a list of bars, found {rest[:20]!r}")
    rest, row = rest[1:], 1
    while True:
        cut = rest.rfind(b"]", 0, len(rest) - 1) + 1
        data = read_bytes(member, size)
        if not data:
            break
        if cut:
            bars = _bars(member, rest[:cut], row)
            row += len(bars)
            yield bars
            rest = rest[cut:].lstrip().removeprefix(b",")
        rest += data
        if len(rest) > size + 2 * _LONGEST_BAR + len(data):
            raise DataError(f"{member.name}: data row {row}: expected a bar, found more than {_LONGEST_BAR} bytes without an end")
    text = rest.rstrip()
    if not text.endswith(b"]"):
        raise DataError(f"{member.name}: the file is cut short: the list of bars has no end")
    if text[:-1].strip():
        yield _bars(member, text[:-1], row)


def _bars(member: Member, text: bytes, row: int) -> list[Any]:
    try:
        bars = json.loads(b"[" + text + b"]")
    except (ValueError, RecursionError) as error:
        raise DataError(f"{member.name}: after data row {row - 1}: it cannot be read as JSON: {error}") from error
    for number, bar in enumerate(bars):
        if not isinstance(bar, list) or len(bar) != len(_NAMES) or not all(_is_number(value) for value in bar):
            raise DataError(f"{member.name}: data row {row + number}: expected [ms, open, high, low, close, volume], found {describe(bar)}")
        if not isinstance(bar[0], int) or abs(bar[0]) >= 2**63:
            raise DataError(f"{member.name}: data row {row + number}: expected milliseconds since 1970, found {describe(bar[0])}")
    return bars


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _cells(bars: list[Any], place: Place, options: Options) -> Cells:
    import polars as pl

    columns = list(zip(*bars, strict=True))
    stamp = pl.Series("stamp", columns[0], pl.Int64)
    numbers = [pl.Series(name, [None if value is None else float(value) for value in column], pl.Float64)
               for name, column in zip(_NAMES[1:], columns[1:], strict=True)]  # fmt: skip
    return Cells(pl.DataFrame([stamp, *numbers]), {name: name for name in _NAMES}, place, options)


def _fits(head: Head) -> bool:
    return re.match(rb"\s*\[\s*\[\s*\d{10,}\s*,", head.data) is not None


FORMATS = (
    Format(
        "freqtrade", "JSON of freqtrade", ("bars",), "[[ms, open, high, low, close, volume], ...]", "open", "in file", "file name or user",
        "file", read_json, _fits, "the name of the file carries pair and length of the bars: BTC_USDT-5m.json",
    ),
)  # fmt: skip
