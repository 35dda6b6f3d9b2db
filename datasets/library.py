"""What is done with datasets that are on disk: list, describe, check, export; and any dataset component written as one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bellmark import bars as bars_module
from bellmark import clock
from bellmark.bars import Bars
from bellmark.datasets import stored
from bellmark.errors import BellmarkError, DataError, RunError, UsageError, did_you_mean, known_list
from bellmark.files import reason, write_atomically
from bellmark.instrument import Instrument

if TYPE_CHECKING:
    import polars

FORMS = (".csv", ".parquet")


def listing(data_dir: Path | str = stored.FOLDER) -> list[dict[str, Any]]:
    """A row for each dataset of a folder; one that cannot be read says why in `error`."""
    rows = []
    for name in stored.dataset_names(data_dir):
        empty = dict.fromkeys(("format", "symbols", "bars", "bar_seconds", "first", "last", "suspect"))
        try:
            document = stored.read_manifest(Path(data_dir) / name)
            entries = document["symbols"].values()
            found = {
                "format": document["format"],
                "symbols": list(document["symbols"]),
                "bars": document["bars"],
                "bar_seconds": document["bar_seconds"],
                "first": min(entry["first"] for entry in entries),
                "last": max(entry["last"] for entry in entries),
                "suspect": bool(document["suspect"]),
            }
            rows.append({"name": name, **found, "error": None})
        except BellmarkError as error:
            rows.append({"name": name, **empty, "error": str(error)})
    return rows


def check(folder: Path) -> list[str]:
    """Everything that is wrong with a dataset, a line each; an empty list where nothing is.

    Every byte is hashed and every bar is checked again: the manifest, the files, the content hash of each symbol, and the rules of bars
    (order, prices, volumes, quotes, halts, funding, rolls, prices of signals). Gaps, outliers and splits were looked for by the import.
    """
    try:
        manifest = stored.read_manifest(folder)
    except DataError as error:
        return [str(error)]
    problems = []
    for entry in (manifest[name] for name in ("funding", "actions") if name in manifest):
        problems += _told(lambda entry=entry: stored.checked_files(folder, [entry], hashes=True))
    for symbol in manifest["symbols"]:
        problems += _told(lambda symbol=symbol: _check_symbol(folder, manifest, symbol))
    return problems


def _told(what: Any) -> list[str]:
    try:
        what()
    except BellmarkError as error:
        return [str(error)]
    return []


def _check_symbol(folder: Path, manifest: Mapping[str, Any], symbol: str) -> None:
    entry = manifest["symbols"][symbol]
    content, before = stored.Content(), None
    instrument = stored.instrument_of(folder, symbol, entry)
    for path in stored.checked_files(folder, entry["files"], hashes=True):
        frame = _frame(path)
        ts_T = frame["ts_event"].to_physical().to_numpy()
        content.update({"ts_event": ts_T, **stored.hashed(frame, entry["columns"])})
        bars = stored.bars_of(frame, symbol, [name for name in stored.KNOWN if name in entry["columns"]], str(path))
        bars_module.check(bars, instrument.allow_negative_prices)
        if before is not None and ts_T[0] <= before:
            raise DataError(f"{path}: {symbol}: its first bar {clock.text(ts_T[0])} does not come after the part before")
        before = int(ts_T[-1])
    if content.hexdigest() != entry["content_hash"]:
        raise DataError(f"{folder}: {symbol}: its bars do not have the content hash in the manifest; import again")


def _frame(path: Path) -> polars.DataFrame:
    import polars as pl

    try:
        return pl.read_parquet(path, glob=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path}: it cannot be read as Parquet: {str(error).strip().splitlines()[0]}") from error


def export(folder: Path, out: Path, symbols: Sequence[str] = ()) -> Path:
    """Writes a dataset as one CSV or Parquet file, streamed: symbol, ts_event (UTC, close), prices, volume (blank = unknown), the rest.

    Funding and splits and dividends go into files of their own, as `datasets import` reads them: see `beside`.
    """
    import polars as pl

    if out.suffix not in FORMS:
        raise UsageError(f"--out: expected a file that ends in {' or '.join(FORMS)}, found '{out.name}'")
    manifest = stored.read_manifest(folder)
    known = manifest["symbols"]
    for symbol in symbols:
        if symbol not in known:
            raise UsageError(f"{folder} has no symbol '{symbol}'{did_you_mean(symbol, known)}{known_list(known)}")
    scans = []
    for symbol in symbols or known:
        for path in stored.checked_files(folder, known[symbol]["files"]):
            scans.append(pl.scan_parquet(path, glob=False).select(pl.lit(symbol).alias("symbol"), pl.all()))
    table = pl.concat(scans, how="diagonal")
    for name, path in beside(manifest, out).items():
        _export_beside(folder, manifest[name], name, path, symbols)
    partial = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        if out.suffix == ".csv":
            table.sink_csv(partial, datetime_format="%Y-%m-%dT%H:%M:%S%.fZ")
        else:
            table.sink_parquet(partial)
        os.replace(partial, out)
    except (OSError, pl.exceptions.PolarsError) as error:
        told = reason(error) if isinstance(error, OSError) else str(error).splitlines()[0]
        raise RunError(f"{out}: it cannot be written: {told}") from error
    finally:
        partial.unlink(missing_ok=True)
    return out


def beside(manifest: Mapping[str, Any], out: Path) -> dict[str, Path]:
    """The files that an export writes beside OUT: OUT.funding.csv and OUT.actions.csv, where the dataset has such."""
    return {name: out.with_suffix(f".{name}.csv") for name in ("funding", "actions") if name in manifest}


def _export_beside(folder: Path, entry: Mapping[str, Any], name: str, path: Path, symbols: Sequence[str]) -> None:
    """Funding in the columns of Binance, whose stamps may be ns too; splits and dividends by their dates."""
    import polars as pl

    (source,) = stored.checked_files(folder, [entry], hashes=True)
    frame = _frame(source)
    if symbols:
        frame = frame.filter(pl.col("symbol").is_in(list(symbols)))
    if name == "funding":
        names = {"ts": "calc_time", "interval_hours": "funding_interval_hours", "rate": "last_funding_rate", "mark": "mark_price"}
        frame = frame.rename({old: new for old, new in names.items() if old in frame.columns})
        frame = frame.select([*(new for new in names.values() if new in frame.columns), "symbol"])
    else:
        frame = frame.select("date", "symbol", "split", "dividend")
    write_atomically(path, frame.write_csv())


def write(
    pairs: Sequence[tuple[Bars, Instrument]], data_dir: Path | str, name: str, told: Mapping[str, Any], replace: bool = False
) -> Path:
    """Writes bars that a component made as a dataset; `told` says in the manifest where they are from."""
    with stored.new_dataset(data_dir, name, replace) as folder:
        names = stored.stems([bars.symbol for bars, _ in pairs])
        symbols = {bars.symbol: _symbol(folder, names[bars.symbol], bars, instrument) for bars, instrument in pairs}
        document = {
            "name": name,
            "sources": [],
            "stamp": "close",
            "zone": "UTC",
            "price_adjustment": "raw",
            "bar_seconds": next(iter(symbols.values()))["bar_seconds"],
            "bars": sum(entry["bars"] for entry in symbols.values()),
            "symbols": symbols,
            "findings": [],
            "suspect": [f"{symbol}: {text}" for symbol, entry in symbols.items() for text in entry["suspect"]],
            "content_hash": stored.sha256_of("\n".join(f"{symbol} {entry['content_hash']}" for symbol, entry in symbols.items())),
            **told,
        }
        stored.write_manifest(folder, document)
    return Path(data_dir) / name


def _symbol(folder: Path, stem: str, bars: Bars, instrument: Instrument) -> dict[str, Any]:
    import polars as pl

    bars_module.check(bars, instrument.allow_negative_prices)
    writer = stored.SymbolWriter(folder, stem)
    writer.write(pl.DataFrame({"ts": bars.ts_event, **bars.prices, "volume": bars.volume, **bars.extras}))
    writer.close()
    steps, counts = np.unique(np.diff(bars.ts_event), return_counts=True)
    length = int(steps[np.argmax(counts)]) if steps.size else 0
    return {
        "files": writer.files,
        "bars": writer.rows,
        "first": clock.text(writer.first),
        "last": clock.text(writer.last),
        "bar_seconds": length / clock.SECOND,
        "columns": writer.columns,
        "instrument": instrument.describe(),
        "duplicates": bars.duplicates,
        "notes": [note for note in bars.notes if not note.endswith(stored.SUSPECT)],
        "suspect": [_bare(note, bars.symbol) for note in bars.notes if note.endswith(stored.SUSPECT)],
        "content_hash": writer.content.hexdigest(),
    }


def _bare(note: str, symbol: str) -> str:
    return note.removeprefix(f"{symbol}: ").removesuffix(stored.SUSPECT)
