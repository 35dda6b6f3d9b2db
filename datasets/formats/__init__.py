"""The layouts that people bring, read strictly: each file becomes chunks of canonical rows.

    file -> members and blocks of lines (streams) -> cells (text) -> canonical rows (canonical) -> the checks of an import

A layout that differs from another only in names is a row of a table (`presets`); one that needs code of its own is a file here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from bellmark.datasets.formats import (
    crypto,
    databento,
    dbn,
    freqtrade,
    generic,
    interactive_brokers,
    lean,
    metatrader,
    presets,
    sierra,
    tickers,
    yfinance,
)
from bellmark.datasets.formats.layout import ADJUSTMENTS, Format, Options, RowFacts, Rows, options_from
from bellmark.datasets.formats.streams import Meter, head
from bellmark.errors import DataError, UsageError, did_you_mean, known_list
from bellmark.files import reason

__all__ = ["FORMATS", "Format", "Options", "RowFacts", "Rows", "open_rows", "options_from", "recognise"]

_MODULES = (generic, yfinance, presets, tickers, metatrader, interactive_brokers, databento, dbn, crypto, freqtrade, lean, sierra)
FORMATS: dict[str, Format] = {form.name: form for module in _MODULES for form in module.FORMATS}
"""Every format by its name."""


def recognise(path: Path | str) -> list[str]:
    """The names of the formats whose layout a file has.

    `csv` and `parquet` fit every table and are not among them; but `csv` is where the columns are those that anybody's daily bars have: the
    layouts of several vendors fit then, which differ in what the prices are adjusted for.
    """
    found = head(Path(path))
    return [name for name, form in FORMATS.items() if form.fits(found)]


def open_rows(paths: Iterable[Path | str], name: str, options: Options) -> Iterator[Rows]:
    """The rows of some files of one format, chunk by chunk, file after file.

    Errors: DataError names the file and the data row; UsageError says what the user must say of the file.
    """
    form = FORMATS.get(name)
    if form is None:
        raise UsageError(f"no format named '{name}'{did_you_mean(name, FORMATS)}{known_list(FORMATS, 60)}")
    files = [Path(path) for path in paths]
    meter = Meter(sum(_size(path) for path in files))
    for path in files:
        for rows in form.read(path, options, meter):
            yield rows if options.adjustment is None else _with_adjustment(rows, options)


def _with_adjustment(rows: Rows, options: Options) -> Rows:
    """What the user says of prices that the layout does not know; one that knows cannot be contradicted."""
    said, known = options.adjustment, rows.facts.price_adjustment
    if said not in ADJUSTMENTS:
        raise UsageError(f"{options.said('adjustment')}: expected one of {', '.join(ADJUSTMENTS)}, found {said!r}")
    if rows.kind in ("funding", "actions") or known == said:
        return rows
    if known != "unknown":
        raise UsageError(f"{rows.source}: {options.said('adjustment')} {said}: the layout says that its prices are {known}; leave it out")
    return replace(rows, facts=replace(rows.facts, price_adjustment=said))  # type: ignore[arg-type]


def _size(path: Path) -> int:
    try:
        if not path.is_file():
            raise DataError(f"{path}: {'expected a file, found a folder' if path.is_dir() else 'no such file'}")
        return path.stat().st_size
    except OSError as error:
        raise DataError(f"{path}: it cannot be read: {reason(error)}") from error
