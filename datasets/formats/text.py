"""Tables of text, chunk by chunk: header or none, fields, lines that are empty, cut short or of another length."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bellmark.datasets.formats.canonical import Canonical, Cells, Chosen, Fields, Layout
from bellmark.datasets.formats.layout import EVENTS, Options, Rows
from bellmark.datasets.formats.streams import Block, Lines, Member, Meter, describe, members
from bellmark.datasets.stamps import Place
from bellmark.errors import DataError, UsageError

if TYPE_CHECKING:
    import polars


_QUOTED = re.compile(rb'"[^"\n]*"')


@dataclass(frozen=True)
class Headed:
    """Layouts that the names in the header tell apart: `make` gives one for the names and the source. preamble: as of a `Layout`."""

    make: Callable[[list[str], str], Layout]
    preamble: str = ""


def read_text(layout: Layout | Headed, path: Path, options: Options, meter: Meter) -> Iterator[Rows]:
    """The rows of a file, of all files of a zip one after the other."""
    if options.truncated not in ("error", "drop"):
        raise UsageError(f"{options.said('truncated')}: expected error or drop, found {options.truncated!r}")
    chosen = Chosen(options)
    for member in members(path, meter):
        yield from read_member(layout, member, options, meter, chosen)
    chosen.check(path)


def read_member(layout: Layout | Headed, member: Member, options: Options, meter: Meter, chosen: Chosen) -> Iterator[Rows]:
    """The rows of one text."""
    reader = TextReader(layout, member, options)
    canonical = Canonical(reader.layout, member, options, meter, chosen)
    some = False
    for cells, first_row, notes in reader.chunks():
        some = True
        yield canonical.rows(cells, first_row, notes)
    canonical.seen.end()
    if not some:
        raise DataError(f"{member.name}: the file {'has a header and no bars' if reader.layout.header == 'always' else 'is empty'}")


class TextReader:
    """One text as chunks of cells. Data rows count from 1 and are lines: a line that is empty counts."""

    def __init__(self, layout: Layout | Headed, member: Member, options: Options) -> None:
        self.source, self.options = member.name, options
        self.layout = layout if isinstance(layout, Layout) else Layout("bars", {}, (), preamble=layout.preamble)
        self.separator = _separator(self.layout, options)
        self.lines = Lines(member, options.chunk_bytes)
        names = self._header()
        if isinstance(layout, Headed):
            self.layout = layout.make(names, member.name)
        self.fields = Fields(self.layout, names, member.name, options)
        self.count = len(self.fields.names)
        self._before = self.lines.line - 1
        # An event that is not is an empty cell; a price or a volume that is not is rather a line cut after a separator.
        self._ends_filled = any(place == self.count - 1 and name not in EVENTS for name, place in self.fields.places.items())

    def chunks(self) -> Iterator[tuple[Cells | None, int, tuple[str, ...]]]:
        """Cells, data row of the first line, and notes on what was left out."""
        for frame, place, notes in self.tables():
            yield None if frame is None else self.fields.cells(frame.get_columns(), place), place.first_row, notes

    def tables(self) -> Iterator[tuple[polars.DataFrame | None, Place, tuple[str, ...]]]:
        """All cells of a block as text, where they are, and notes."""
        for block in self.lines.blocks():
            first_row = block.first_line - self._before
            place = Place(self.source, first_row)
            data, notes = (block.data, ()) if block.data.endswith(b"\n") else self._whole_end(block, first_row)
            if data and not data.isspace():
                yield *self._table(data, place), notes
            elif notes:
                yield None, place, notes

    # the header

    def _header(self) -> list[str]:
        first = self.lines.peek()
        while first is not None and self.layout.preamble and re.match(self.layout.preamble, first):
            self.lines.take()
            first = self.lines.peek()
        if first is None or not first.strip():
            raise DataError(
                f"{self.source}: the file is empty" if self.lines.line == 1 else f"{self.source}: the file ends before its header"
            )
        cells = [cell.strip().strip('"').strip() for cell in self._split(first, skipinitialspace=True)]
        if not cells:
            raise DataError(f"{self.source}: line {self.lines.line}: it cannot be read as CSV: {describe(first)}")
        if self.layout.header == "never" or (self.layout.header == "maybe" and cells[0][:1].isdigit()):
            return self._without_header(cells)
        self.lines.take()
        return cells

    def _without_header(self, cells: list[str]) -> list[str]:
        for order in self.layout.order:
            if len(order) == len(cells):
                return list(order)
        counts = " or ".join(str(len(order)) for order in self.layout.order)
        raise DataError(
            f"{self.source}: data row 1: expected {counts} fields with {self.separator!r} between them "
            f"({' '.join(self.layout.order[0])}), found {len(cells)}: {describe(self.separator.join(cells))}"
        )

    def _split(self, line: str, **how: bool) -> list[str]:
        try:
            return next(csv.reader([line], delimiter=self.separator, **how), [])  # type: ignore[arg-type]
        except csv.Error:
            return []

    # the rows

    def _table(self, data: bytes, place: Place) -> tuple[polars.DataFrame, Place]:
        frame, fault = self._parsed(data)
        if frame is not None:
            return frame, place
        frame, rows = self._line_by_line(data, place, fault)
        return frame, place if rows is None else replace(place, rows=rows)

    def _parsed(self, data: bytes) -> tuple[polars.DataFrame | None, str]:
        """All cells as text; None where some row has another number of fields or none, and what was wrong.

        polars fills a row that is cut short with nulls, which empty fields are too: the count of separators tells them apart (a row that is
        too long is an error of its own). Where a quote is not closed on its line, the lines are looked at one by one.
        """
        import polars as pl

        schema = {str(number): pl.String for number in range(self.count)}
        try:
            frame = pl.read_csv(data, separator=self.separator, has_header=False, schema=schema, infer_schema=False)
        except pl.exceptions.PolarsError as error:
            return None, str(error).strip().splitlines()[0]
        lines = data.count(b"\n") + (not data.endswith(b"\n"))
        bare = _QUOTED.sub(b"", data) if b'"' in data else data
        even = frame.height == lines and b'"' not in bare and lines * (self.count - 1) == bare.count(self.separator.encode())
        if even and (self.count > 1 or frame["0"].null_count() == 0):
            return frame, ""
        return None, ""

    def _line_by_line(self, data: bytes, place: Place, fault: str) -> tuple[polars.DataFrame, polars.Series | None]:
        """The slow way: finds the first row with another number of fields; lines that are empty are left out."""
        import polars as pl

        lines = data.decode("utf-8").split("\n")
        kept = [number for number, line in enumerate(lines) if line.strip(" \r")]
        for number in kept:
            found = len(self._split(lines[number].rstrip("\r")))
            if found != self.count:
                raise DataError(f"{self._no_csv()}: {place.row(number).split(': ', 1)[1]}: expected {self.count} fields, found {found}")
        whole = kept == list(range(len(kept)))
        if fault and whole:
            raise DataError(f"{self._no_csv()}: {fault}")
        text = "\n".join([lines[number] for number in kept]).encode()
        schema = {str(number): pl.String for number in range(self.count)}
        frame = pl.read_csv(text, separator=self.separator, has_header=False, schema=schema, infer_schema=False)
        if frame.height != len(kept):
            raise DataError(f"{self._no_csv()}: quotes are not closed in the lines after data row {place.first_row}")
        return frame, None if whole else pl.Series("row", kept, pl.Int64) + place.first_row

    def _no_csv(self) -> str:
        return f"{self.source}: it cannot be read as CSV with {self.separator!r} between {self.count} columns"

    def _whole_end(self, block: Block, first_row: int) -> tuple[bytes, tuple[str, ...]]:
        """The block without a last line that is cut short.

        A line without a line end is a row if it has all its fields; a last one that is empty must be so in the row before.
        """
        data = block.data
        start = data.rfind(b"\n") + 1
        line = data[start:].decode("utf-8")
        row = self._split(line)
        may_be_empty = not self._ends_filled or data[:start].rstrip(b"\r\n").endswith(self.separator.encode())
        below = data.count(b"\n")
        if not line.strip():
            return data, ()
        if len(row) >= self.count and (row[-1].strip() or may_be_empty):
            told = f"{self.source}: line {block.first_line + below}: the last line has no line end: {describe(line)}"
            return data, (f"{told}; if the file was cut short, its last number may be",)
        where = f"{self.source}: data row {first_row + below} (the header not counted), line {block.first_line + below}"
        found = f"the last line is cut short: {describe(line)}: expected {self.count} fields, found {len(row)}"
        if self.options.truncated == "drop":
            return data[:start], (f"{where}: {found}; it was left out",)
        raise DataError(f"{where}: {found}")


def _separator(layout: Layout, options: Options) -> str:
    given = layout.separator if options.separator is None else options.separator
    if len(given) != 1 or not given.isascii() or given in '"\r\n' or given.isalnum():
        raise UsageError(f"{options.said('separator')}: expected one character such as ',' or ';' or a tab, found {given!r}")
    return given
