"""A dataset on disk: a folder with a manifest and the Parquet files of each symbol.

    data/NAME/manifest.json      what it is, where it came from, what was found and done, hashes
    data/NAME/SYMBOL.parquet     bars by their close: ts_event (UTC), open, high, low, close, volume (null = unknown), optional columns
    data/NAME/SYMBOL+1.parquet   ... the next part of a long series

It is written under another name beside and renamed once it is whole. Nothing in the manifest says when it was made: the same files and
options give the same bytes.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import platform
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bellmark.bars import OPTIONAL, PRICES, SIGNALS, Bars
from bellmark.errors import DataError, RunError, UsageError, did_you_mean, known_list
from bellmark.files import json_line, make_folder, read_json, reason, safe_name, sha256_of, write_json
from bellmark.instrument import Instrument

if TYPE_CHECKING:
    import polars

MANIFEST = "manifest.json"
SCHEMA_VERSION = 1
FOLDER = "data"  # of datasets, where nobody says another
PART_ROWS = 2_000_000
ROW_GROUP = 262_144
_NUMBERS = itertools.count()  # threads of one process write beside one another
_LEFT_OVER = re.compile(r"\.(?P<name>.+)\.(?P<host>[^.]+)\.(?P<process>[0-9]+)\.[0-9]+(?P<old>\.old)?\.tmp")
SUSPECT = "; the dataset is suspect"  # ends the note of a possible split
_SHAPE = {"schema_version": int, "name": str, "symbols": dict, "bars": int, "bar_seconds": (int, float), "suspect": list, "findings": list,
          "sources": list, "price_adjustment": str, "content_hash": str}  # fmt: skip
_SYMBOL_SHAPE = {"files": list, "bars": int, "first": str, "last": str, "bar_seconds": (int, float), "columns": list, "instrument": dict,
                 "duplicates": int, "suspect": list, "content_hash": str}  # fmt: skip
_FILE_SHAPE = {"name": str, "rows": int, "bytes": int, "sha256": str}
KNOWN = (*OPTIONAL, *SIGNALS)
COLUMNS = ("ts_event", *PRICES, "volume")


class Content:
    """The hash of a series, the same however it is cut into blocks: SHA-256 of each column, then of those."""

    def __init__(self) -> None:
        self._columns: dict[str, Any] = {}

    def update(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Adds a block; a missing number has one form, and so has zero."""
        for name, column in columns.items():
            digest = self._columns.setdefault(name, hashlib.sha256(name.encode()))
            if column.dtype.kind == "f":
                column = np.where(np.isnan(column), np.nan, column + 0.0)
            digest.update(np.ascontiguousarray(column).data)

    def hexdigest(self) -> str:
        """Of all that was added."""
        return sha256_of("\n".join(f"{name} {self._columns[name].hexdigest()}" for name in sorted(self._columns)))


def hashed(frame: polars.DataFrame, names: Iterable[str]) -> dict[str, NDArray[Any]]:
    """The columns of numbers and of truth values, as they go into a content hash."""
    import polars as pl

    columns: dict[str, NDArray[Any]] = {}
    for name in names:
        column = frame[name]
        if column.dtype == pl.Boolean:
            columns[name] = column.fill_null(False).to_numpy()
        elif column.dtype.is_numeric():
            columns[name] = (column.fill_null(float("nan")) if column.null_count() else column).to_numpy()
    return columns


class SymbolWriter:
    """Writes the bars of one symbol as Parquet parts of at most PART_ROWS rows; in memory is one part."""

    def __init__(self, folder: Path, stem: str, zone_free: bool = False) -> None:
        self.folder, self.stem = folder, stem
        self.files: list[dict[str, Any]] = []
        self.rows = 0
        self.columns: list[str] = []
        self.first: int | None = None
        self.last: int | None = None
        self.content = Content()
        self._waiting: list[polars.DataFrame] = []
        self._waiting_rows = 0

    def write(self, frame: polars.DataFrame) -> None:
        """Adds bars in time order; `ts` is the close in UTC ns, volume and further columns may be null or NaN."""
        if not frame.height:
            return
        ts_T = frame["ts"].to_numpy()
        self.first = int(ts_T[0]) if self.first is None else self.first
        self.last = int(ts_T[-1])
        self.columns = [name for name in frame.columns if name != "ts"]
        self.content.update({"ts_event": ts_T, **hashed(frame, self.columns)})
        self.rows += frame.height
        self._waiting.append(frame)
        self._waiting_rows += frame.height
        while self._waiting_rows >= PART_ROWS:
            self._flush(PART_ROWS)

    def close(self) -> None:
        """Writes what waits."""
        if self._waiting_rows:
            self._flush(self._waiting_rows)

    def _flush(self, rows: int) -> None:
        import polars as pl

        whole = pl.concat(self._waiting) if len(self._waiting) > 1 else self._waiting[0]
        part, rest = whole[:rows], whole[rows:]
        self._waiting, self._waiting_rows = ([rest] if rest.height else []), rest.height
        stamp = pl.from_epoch("ts", time_unit="ns").dt.replace_time_zone("UTC").alias("ts_event")
        columns = [pl.col(name).fill_nan(None) if part[name].dtype.is_float() else pl.col(name) for name in self.columns]
        shaped = part.select(stamp, *columns)
        name = f"{self.stem}.parquet" if not self.files else f"{self.stem}+{len(self.files)}.parquet"  # no symbol gives a '+'
        self.files.append(write_parquet(self.folder / name, shaped))


def write_parquet(path: Path, frame: polars.DataFrame) -> dict[str, Any]:
    """Writes a Parquet file and returns its name, rows, bytes and SHA-256."""
    try:
        frame.write_parquet(path, compression="zstd", compression_level=1, row_group_size=ROW_GROUP)
    except OSError as error:
        raise RunError(f"{path}: it cannot be written: {reason(error)}") from error
    return {"name": path.name, "rows": frame.height, "bytes": path.stat().st_size, "sha256": file_hash(path)}


def file_hash(path: Path) -> str:
    """SHA-256 of a file, read in pieces."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{path}: it cannot be read: {reason(error)}") from error


def stems(symbols: Sequence[str]) -> dict[str, str]:
    """A file name for each symbol that every file system takes; names that would be one get a number."""
    found: dict[str, str] = {}
    taken: set[str] = {"funding", "actions"}
    for symbol in symbols:
        stem, number = safe_name(symbol), 1
        while stem.casefold() in taken:
            number += 1
            stem = f"{safe_name(symbol)}-{number}"
        taken.add(stem.casefold())
        found[symbol] = stem
    return found


@contextmanager
def new_dataset(data_dir: Path | str, name: str, replacing: bool = False) -> Iterator[Path]:
    """A folder to write a dataset into, which takes its name once the block ends without an error; else nothing of it is left."""
    if safe_name(name) != name or name.startswith("."):
        raise UsageError(f"--name: expected letters, digits, '_', '-' and '.', found {name!r}; '{safe_name(name)}' would do")
    parent = make_folder(data_dir)
    target = parent / name
    _clear_up(parent)
    if target.exists() and not replacing:
        raise UsageError(f"{target}: a dataset of this name exists: take another --name, or --replace it")
    if target.exists() and not (target / MANIFEST).is_file():
        raise UsageError(f"{target}: it is no dataset (it has no {MANIFEST}); nothing there is replaced")
    owner = f"{_owner()}.{next(_NUMBERS)}"
    beside, former = parent / f".{name}.{owner}.tmp", parent / f".{name}.{owner}.old.tmp"
    shutil.rmtree(beside, ignore_errors=True)
    make_folder(beside)
    try:
        yield beside
        if target.exists() and not replacing:
            raise UsageError(f"{target}: another import made a dataset of this name meanwhile: take another --name, or --replace it")
        _take_place(beside, target, former)
    except OSError as error:
        raise RunError(f"{target}: it cannot be written: {reason(error)}") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _take_place(beside: Path, target: Path, former: Path) -> None:
    """Renames a whole folder over another; whatever fails, the old one stays or comes back."""
    replaced = target.exists()
    if replaced:
        os.rename(target, former)
    try:
        os.rename(beside, target)
    except BaseException:
        if replaced:
            os.rename(former, target)
        raise
    shutil.rmtree(former, ignore_errors=True)


def _owner() -> str:
    """This process on this machine: on a disk that machines share the number alone is that of several processes."""
    return f"{safe_name(platform.node()).replace('.', '-')}.{os.getpid()}"


def _clear_up(parent: Path) -> None:
    """Takes away what a killed import of this machine left; a dataset that it had put aside to be replaced comes back."""
    host = _owner().rpartition(".")[0]
    for path in sorted(parent.glob(".*.tmp")):
        found = _LEFT_OVER.fullmatch(path.name)
        if not found or not path.is_dir() or found["host"] != host or _alive(int(found["process"])):
            continue
        target = parent / found["name"]
        try:
            if found["old"] and (path / MANIFEST).is_file() and not target.exists():
                os.rename(path, target)
                continue
        except OSError as error:
            raise RunError(f"{target}: what a killed import put aside as {path.name} cannot be put back: {reason(error)}") from error
        shutil.rmtree(path, ignore_errors=True)


def _alive(process: int) -> bool:
    if os.name != "posix":
        return True  # there a signal of 0 would end the process
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def write_manifest(folder: Path, document: dict[str, Any]) -> dict[str, Any]:
    """Writes the manifest with the hash of itself."""
    whole = {"schema_version": SCHEMA_VERSION, **document}
    whole["manifest_hash"] = _manifest_hash(whole)
    write_json(folder / MANIFEST, whole)
    return whole


def _manifest_hash(document: Mapping[str, Any]) -> str:
    return sha256_of(json_line({key: value for key, value in document.items() if key != "manifest_hash"}))


def find_dataset(text: str, data_dir: Path | str = FOLDER) -> Path:
    """The folder of a dataset by its path or by its name under the folder of datasets."""
    try:
        given = Path(text).expanduser()
        for path in (given, Path(data_dir) / text):
            if (path / MANIFEST).is_file():
                return path
    except (OSError, RuntimeError, ValueError) as error:  # a home folder of nobody, a zero byte
        raise UsageError(f"dataset {text[:80]!r}: {error}") from error
    known = dataset_names(data_dir)
    raise UsageError(f"no dataset '{text}' (a folder with a {MANIFEST}), nor one of that name in {data_dir}{did_you_mean(text, known)}"
                     f"{known_list(known)}")  # fmt: skip


def dataset_names(data_dir: Path | str = FOLDER) -> list[str]:
    """Names of the datasets in a folder."""
    try:
        return sorted(path.parent.name for path in Path(data_dir).glob(f"*/{MANIFEST}") if not path.parent.name.startswith("."))
    except OSError:
        return []


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a dataset, unchanged since it was written; one of a newer Bellmark is refused in one line."""
    path = folder / MANIFEST
    try:
        document = read_json(path)
    except RunError as error:
        raise DataError(str(error)) from error
    if document.get("manifest_hash") != _manifest_hash(document):
        raise DataError(f"{path}: it was changed after it was written: its contents do not have the hash in it; import the files again")
    _whole(document, _SHAPE, str(path))
    for symbol, entry in document["symbols"].items():
        _whole(entry, _SYMBOL_SHAPE, f"{path}: symbol {symbol}")
    files = [file for entry in document["symbols"].values() for file in entry["files"]]
    for file in [*files, *(document[name] for name in ("funding", "actions") if name in document)]:
        _whole(file, _FILE_SHAPE, f"{path}: a file of the dataset")
    return document


def _whole(document: Any, shape: Mapping[str, Any], where: str) -> None:
    """Refuses a part of a manifest that lacks something, or has something else in its place; nothing that must be there may be empty."""
    for name, kind in shape.items():
        value = document.get(name) if isinstance(document, Mapping) else None
        empty = name in ("symbols", "files") and not value
        if not isinstance(value, kind) or isinstance(value, bool) or empty:
            told = kind.__name__ if isinstance(kind, type) else "number"
            raise DataError(f"{where}: expected {name} ({told}), found {value!r}"[:300] + "; import the files again")


def checked_files(folder: Path, files: Sequence[Mapping[str, Any]], hashes: bool = False) -> list[Path]:
    """The paths of files that a manifest names; each must be there with its size, and with `hashes` with its SHA-256."""
    paths = []
    for entry in files:
        name = str(entry["name"])
        if Path(name).name != name or not name.endswith(".parquet"):
            raise DataError(f"{folder / MANIFEST}: expected the name of a Parquet file of the folder, found {name!r}")
        path = folder / name
        try:
            size = path.stat().st_size
        except OSError as error:
            raise DataError(f"{path}: a part of the dataset cannot be read: {reason(error)}") from error
        if size != entry["bytes"]:
            raise DataError(f"{path}: expected {entry['bytes']} bytes, found {size}: the file was changed; import again")
        if hashes and file_hash(path) != entry["sha256"]:
            raise DataError(f"{path}: its bytes do not have the hash written with them: the file was changed; import again")
        paths.append(path)
    return paths


def read_symbol(folder: Path, manifest: Mapping[str, Any], symbol: str) -> tuple[Bars, Instrument]:
    """Bars and instrument of one symbol, as they were written."""
    entry = manifest["symbols"][symbol]
    paths = checked_files(folder, entry["files"], hashes=True)
    names = [*COLUMNS, *(name for name in KNOWN if name in entry["columns"])]
    parts = [_part(path, names) for path in paths]
    columns = {name: np.concatenate([part[place] for part in parts]) for place, name in enumerate(names)}
    if len(columns["ts_event"]) != entry["bars"]:
        raise DataError(f"{folder}: {symbol}: expected {entry['bars']} bars, found {len(columns['ts_event'])}")
    extras: dict[str, Any] = {name: columns[name] for name in names if name not in COLUMNS}
    notes = (*(f"{symbol}: {text}{SUSPECT}" for text in entry.get("suspect", ())), *entry.get("notes", ()))
    bars = Bars.from_prices(symbol, columns["ts_event"], columns, columns["volume"], str(folder))
    bars = replace(bars, duplicates=int(entry.get("duplicates", 0)), notes=notes, **extras)
    return bars, instrument_of(folder, symbol, entry)


def instrument_of(folder: Path, symbol: str, entry: Mapping[str, Any]) -> Instrument:
    """The instrument of a symbol, as the manifest has it."""
    try:
        return Instrument.from_description(dict(entry["instrument"]))
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{folder / MANIFEST}: symbol {symbol}: expected an instrument, found {error!r}; import the files again") from error


def _part(path: Path, names: Sequence[str]) -> list[NDArray[Any]]:
    import polars as pl

    try:
        frame = pl.read_parquet(path, columns=list(names), glob=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path}: it cannot be read as Parquet: {str(error).strip().splitlines()[0]}") from error
    return [_array(frame, name) for name in names]


def _array(frame: polars.DataFrame, name: str) -> NDArray[Any]:
    import polars as pl

    column = frame[name]
    if name == "ts_event":
        return column.to_physical().to_numpy()
    if column.dtype == pl.Boolean:
        return column.fill_null(False).to_numpy()
    return column.cast(pl.Float64).fill_null(float("nan")).to_numpy()


def bars_of(frame: polars.DataFrame, symbol: str, extras: Iterable[str], source: str) -> Bars:
    """The rows of a file of a dataset, with some optional columns."""
    columns = {name: _array(frame, name) for name in (*COLUMNS, *extras)}
    more: dict[str, Any] = {name: columns[name] for name in columns if name not in COLUMNS}
    bars = Bars.from_prices(symbol, columns["ts_event"], columns, columns["volume"], source)
    return replace(bars, **more)
