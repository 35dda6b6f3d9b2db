"""Rows on their way into a dataset: written to disk as they come, read back in time order, with memory bounded by a chunk.

Each chunk of a file leaves a piece for each symbol, sorted by stamp. Pieces that do not overlap in time are read one after the other; those
that do are merged slice by slice, so that a file in any order, or many files of one span, need no more memory than a few chunks.
A row is known by a number that holds its file and its row there (`code`), so that errors found late still name both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bellmark.bars import OPTIONAL, Bars
from bellmark.datasets.checks import Findings, Policies, ordered

if TYPE_CHECKING:
    import polars

BLOCK_ROWS = 262_144
MERGE_ROWS = 2_000_000
HELD_BYTES = 64 << 20
_MANY_SYMBOLS = 32
_ROW_BITS = 40
_SHOWN = 3
_BASE = ("code", "ts", "open", "high", "low", "close", "volume")


@dataclass
class Sources:
    """The names of the files, and what a row's code says."""

    names: list[str] = field(default_factory=list)

    def add(self, source: str) -> int:
        """The number that the codes of a file's rows begin at. Folders are left out: what is found says the same wherever the files lie."""
        path, mark, member = source.partition("!")
        name = Path(path).name + mark + member
        self.names.append(f"{Path(path).parent.name}/{name}" if name in self.names else name)
        return (len(self.names) - 1) << _ROW_BITS

    def where(self, bars: Bars, places: NDArray[Any]) -> str:
        """Files and rows of some bars, to begin an error with; see `Bars.where`."""
        code_K = np.asarray(bars.row_T)[places]
        texts: list[str] = []
        file_K, row_K = code_K >> _ROW_BITS, code_K & ((1 << _ROW_BITS) - 1)
        shown = file_K[:_SHOWN]
        for file in dict.fromkeys(shown.tolist()):
            rows = [str(int(row)) for row in row_K[:_SHOWN][shown == file]]
            texts.append(f"{self.names[file]}: {bars.symbol}: data row{'s' if len(rows) > 1 else ''} {', '.join(rows)}")
        more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
        return f"{'; '.join(texts)}{more} (the header not counted)"


@dataclass(frozen=True)
class Piece:
    """Sorted rows of one symbol in a staged file.

    order: of pieces as they came, which decides between rows of one stamp. columns: those of its rows, with their types. held: the rows of
    the file, where they are in memory.
    """

    path: Path
    offset: int
    rows: int
    first: int
    last: int
    order: int
    columns: tuple[tuple[str, Any], ...] = ()
    held: polars.DataFrame | None = None

    def frame(self, begin: int = 0, end: int | None = None) -> polars.DataFrame:
        """Its rows, or those from one place to another."""
        import polars as pl

        count = (self.rows if end is None else end) - begin
        names = [name for name, _ in self.columns]
        if self.held is not None:
            return self.held[self.offset + begin : self.offset + begin + count][names]
        return pl.scan_ipc(self.path, glob=False).slice(self.offset + begin, count).select(names).collect()

    def stamps(self) -> NDArray[np.int64]:
        """The stamps of its rows."""
        import polars as pl

        if self.held is not None:
            return self.held["ts"][self.offset : self.offset + self.rows].to_numpy()
        return pl.scan_ipc(self.path, glob=False).slice(self.offset, self.rows).select("ts").collect()["ts"].to_numpy()


def columns_of(pieces: Iterable[Piece]) -> dict[str, Any]:
    """Every column that one of some pieces has, and its type: the rows of a series all have them, whatever file they are from."""
    import polars as pl

    found: dict[str, Any] = {}
    for piece in pieces:
        for name, kind in piece.columns:
            former = found.setdefault(name, kind)
            if former != kind:
                found[name] = pl.Float64 if former.is_numeric() and kind.is_numeric() else kind if former == pl.Null else former
    return found


def settled(frame: polars.DataFrame, columns: dict[str, Any]) -> polars.DataFrame:
    """A frame with all of some columns, in their order; what it lacks is not known, and not halted."""
    import polars as pl

    if dict(frame.schema) == columns and "halted" not in columns:
        return frame
    there = []
    for name, kind in columns.items():
        column = (pl.col(name) if name in frame.columns else pl.lit(None)).cast(kind)
        there.append((column.fill_null(False) if name == "halted" else column).alias(name))
    return frame.select(there)


class Staging:
    """Pieces by symbol and stream: `bars`, `quotes` (bars made of quotes, with a price) and `quote_bars` (without one)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pieces: dict[tuple[str, str], list[Piece]] = {}
        self._files = 0
        self._order = 0
        self._held = 0

    def add(self, stream: str, frames: dict[str, polars.DataFrame]) -> None:
        """Stages the frames of one chunk, each sorted by `ts`."""
        import polars as pl

        kept = {symbol: frame for symbol, frame in frames.items() if frame.height}
        if not kept:
            return
        path = self.folder / f"{self._files}.ipc"
        self._files += 1
        whole = pl.concat(list(kept.values()), how="diagonal_relaxed")
        held = whole if len(kept) >= _MANY_SYMBOLS and self._held + whole.estimated_size() <= HELD_BYTES else None
        if held is None:
            whole.write_ipc(path, compression="uncompressed")
        else:  # a file is opened once for each symbol, which takes longer than its few rows
            self._held += int(whole.estimated_size())
        offset = 0
        for symbol, frame in kept.items():
            columns = tuple(frame.schema.items())
            piece = Piece(path, offset, frame.height, int(frame["ts"][0]), int(frame["ts"][-1]), self._order, columns, held)
            self.pieces.setdefault((symbol, stream), []).append(piece)
            offset, self._order = offset + frame.height, self._order + 1

    def symbols(self) -> list[str]:
        """In the order in which they came."""
        return list(dict.fromkeys(symbol for symbol, _ in self.pieces))

    def of(self, symbol: str, *streams: str) -> list[Piece]:
        """The pieces of a symbol in some streams."""
        return [piece for stream in streams for piece in self.pieces.get((symbol, stream), ())]


def merged(pieces: Iterable[Piece], symbol: str, policies: Policies, findings: Findings, sources: Sources) -> Iterator[polars.DataFrame]:
    """The rows of some pieces in time order, one a stamp."""
    for cluster in clusters(pieces):
        if len(cluster) == 1:
            yield cluster[0].frame()
            continue
        stamps = [piece.stamps() for piece in cluster]
        for low, high in _slices(cluster, stamps):
            frame = _between(cluster, stamps, low, high)
            found = ordered(bars_of(frame, symbol), policies, findings, sources.where)
            yield frame if len(found.places) == frame.height else frame[found.places]


def clusters(pieces: Iterable[Piece]) -> list[list[Piece]]:
    """Pieces in time order, those that overlap together."""
    found: list[list[Piece]] = []
    last = 0
    for piece in sorted(pieces, key=lambda piece: (piece.first, piece.order)):
        if found and piece.first <= last:
            found[-1].append(piece)
            last = max(last, piece.last)
        else:
            found.append([piece])
            last = piece.last
    return found


def _slices(cluster: list[Piece], stamps: list[NDArray[np.int64]]) -> Iterator[tuple[int, int]]:
    """Spans of time [low, high) that hold at most MERGE_ROWS rows each; `stamps`: of each piece."""
    spans = [(min(piece.first for piece in cluster), max(piece.last for piece in cluster) + 1)]
    while spans:
        low, high = spans.pop()
        rows = sum(int(np.searchsorted(ts_T, high)) - int(np.searchsorted(ts_T, low)) for ts_T in stamps)
        if rows <= MERGE_ROWS or high - low <= 1:
            if rows:
                yield low, high
            continue
        middle = low + (high - low) // 2
        spans += [(middle, high), (low, middle)]


def _between(cluster: list[Piece], stamps: list[NDArray[np.int64]], low: int, high: int) -> polars.DataFrame:
    """Rows of [low, high) in time order; of one stamp in the order in which they came."""
    import polars as pl

    parts = []
    for piece, ts_T in sorted(zip(cluster, stamps, strict=True), key=lambda pair: pair[0].order):
        begin, end = int(np.searchsorted(ts_T, low)), int(np.searchsorted(ts_T, high))
        if end > begin:
            parts.append(piece.frame(begin, end))
    return pl.concat(parts, how="diagonal_relaxed").sort("ts", maintain_order=True)


def blocks(frames: Iterable[polars.DataFrame], rows: int = BLOCK_ROWS) -> Iterator[tuple[polars.DataFrame, bool]]:
    """The same rows in blocks of equal size, and whether a block is the last: what is found does not depend on the size of chunks."""
    import polars as pl

    waiting: polars.DataFrame | None = None
    for frame in frames:
        waiting = frame if waiting is None else pl.concat([waiting, frame], how="diagonal")
        while waiting.height > rows:
            yield waiting[:rows], False
            waiting = waiting[rows:]
    if waiting is not None and waiting.height:
        yield waiting, True


def bars_of(frame: polars.DataFrame, symbol: str, source: str = "") -> Bars:
    """A frame as bars, without copying what needs none; missing numbers are NaN."""
    import polars as pl

    extras: dict[str, Any] = {}
    for name in OPTIONAL:
        if name in frame.columns:
            column = frame[name]
            boolean = column.dtype == pl.Boolean
            extras[name] = column.fill_null(False).to_numpy() if boolean else column.fill_null(float("nan")).to_numpy()
    price = {name: _numbers(frame[name]) for name in ("open", "high", "low", "close")}
    bars = Bars.from_prices(symbol, frame["ts"].to_numpy(), price, _numbers(frame["volume"]), source)
    return replace(bars, row_T=frame["code"].to_numpy(), **extras)


def _numbers(column: polars.Series) -> NDArray[np.float64]:
    return (column.fill_null(float("nan")) if column.null_count() else column).to_numpy()


def frame_of(bars: Bars) -> polars.DataFrame:
    """Bars as a frame."""
    import polars as pl

    columns = {"code": bars.row_T, "ts": bars.ts_event, **bars.prices, "volume": bars.volume, **bars.extras}
    return pl.DataFrame(columns)


def changed(frame: polars.DataFrame, bars: Bars, places: NDArray[np.int64]) -> polars.DataFrame:
    """A frame after a check: the values of `bars`, which are its rows at `places`, and its further columns."""
    other = [name for name in frame.columns if name not in _BASE and name not in bars.extras]
    made = frame_of(bars)
    if not other:
        return made
    beside = frame.select(other)
    return made.hstack(beside if len(places) == frame.height else beside[places])
