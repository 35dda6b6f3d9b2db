"""Tables of any maker: the user says which column is what. `csv` is text with a header line, `parquet` has typed columns."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bellmark.bars import PRICES
from bellmark.datasets.formats.canonical import Canonical, Chosen, Fields, Layout, folded
from bellmark.datasets.formats.layout import COLUMN_SETTINGS, Format, Kind, Options, RowFacts, Rows
from bellmark.datasets.formats.streams import Head, Member, Meter, no_panic
from bellmark.datasets.formats.text import Headed, read_text
from bellmark.datasets.stamps import Place
from bellmark.errors import DataError, UsageError

if TYPE_CHECKING:
    import polars

STAMPS = ("ts", "ts_event", "timestamp", "datetime", "date_time", "date", "time", "open_time", "open time", "unix")
_OTHER_NAMES = {"volume": ("vol",), "symbol": ("ticker",), "close": ("last",)}
LEAST_ROWS = 16
_BYTES_A_CELL = 16


def layout_of(options: Options, fields: list[str], source: str) -> Layout:
    """The layout that the user's names and the names in the file make.

    A column that the user names is needed; one of a canonical name that he does not name is taken where the file has it. Without an open
    but with a price the rows are trades, with a bid and an ask they are quotes.
    """
    names = [folded(name) for name in fields]
    columns: dict[str, str | tuple[str, ...]] = {}
    for name in COLUMN_SETTINGS:
        said = options.columns.get(name)
        if said:
            columns[name] = said
        elif said is None:
            choices = tuple(other for other in (name, *_OTHER_NAMES.get(name, ())) if other in names)
            if choices:
                columns[name] = choices[:1]
    bars = any(name in columns for name in PRICES) or ("price" not in columns and not {"bid", "ask"} <= set(columns))
    kind: Kind = "bars" if bars else "ticks" if "price" in columns else "quotes"
    if kind == "bars":
        columns |= {name: name for name in PRICES if name not in columns}
        columns = {name: column for name, column in columns.items() if name not in ("price", "size", "bid_size", "ask_size")}
    elif kind == "ticks":
        columns.setdefault("size", "volume" if "volume" in columns else "size")
        columns = {name: column for name, column in columns.items() if name in ("price", "size", "bid", "ask", "symbol")}
    else:
        columns = {name: column for name, column in columns.items() if name in ("bid", "ask", "bid_size", "ask_size", "symbol")}
    optional = ("size",) if "size" not in options.columns else ()
    stamp = _stamp_columns(options, names, source)
    facts = RowFacts("" if kind != "bars" else options.stamp or "")
    return Layout(kind, columns, stamp, optional, facts=facts, stamp_said=True, marks_asked=True)


def _stamp_columns(options: Options, names: list[str], source: str) -> tuple[str, ...]:
    if options.date_column:
        return (options.date_column, options.time_column) if options.time_column else (options.date_column,)
    if options.stamp_column:
        return (options.stamp_column,)
    found = [name for name in names if name in STAMPS]
    if sorted(found) == ["date", "time"]:
        return ("date", "time")
    if len(found) == 1:
        return (found[0],)
    shown = f"{len(found)} columns may be it: {', '.join(found)}" if found else f"the file has: {', '.join(map(repr, names))}"
    raise UsageError(f"{source}: which column is the stamp? Say {options.said('stamp_column')} or date_column and time_column ({shown})")


def read_csv(path: Path, options: Options, meter: Meter) -> Iterator[Rows]:
    """Text with a header line."""
    return read_text(Headed(partial(layout_of, options)), path, options, meter)


def read_parquet(path: Path, options: Options, meter: Meter) -> Iterator[Rows]:
    """A Parquet file, some rows at a time."""
    return read_frames(Headed(partial(layout_of, options)), path, options, meter)


def read_frames(headed: Headed, path: Path, options: Options, meter: Meter) -> Iterator[Rows]:
    """The rows of a Parquet file, whose layout depends on the names of its columns."""
    import polars as pl

    chosen = Chosen(options)
    with meter.opened(path) as file:
        member = Member(str(path), path.name, file)
        try:
            with no_panic(str(path)):
                table = pl.scan_parquet(path, glob=False)
                names = table.collect_schema().names()
                count = int(table.select(pl.len()).collect().item())
        except (pl.exceptions.PolarsError, OSError) as error:
            raise DataError(f"{path}: it cannot be read as Parquet: {str(error).strip().splitlines()[0]}") from error
        if not count:
            raise DataError(f"{path}: the file holds no bars")
        layout = headed.make(names, str(path))
        fields = Fields(layout, names, str(path), options)
        canonical = Canonical(layout, member, options, meter, chosen)
        used = sorted(set(fields.places.values()))
        step = max(LEAST_ROWS, options.chunk_bytes // (_BYTES_A_CELL * len(used)))
        for first in range(0, count, step):
            frame = _slice(table, path, [names[place] for place in used], first, step)
            columns = [frame[name] if place in used else frame[frame.columns[0]] for place, name in enumerate(names)]
            file.seek(0, 2)
            yield canonical.rows(fields.cells(columns, Place(str(path), first + 1)), first + 1)
        canonical.seen.end()
    chosen.check(path)


def _slice(table: polars.LazyFrame, path: Path, names: list[str], first: int, count: int) -> polars.DataFrame:
    import polars as pl

    try:
        with no_panic(str(path)):
            return table.select(names).slice(first, count).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path}: it cannot be read as Parquet: {str(error).strip().splitlines()[0]}") from error


COMMON = {("date", "open", "high", "low", "close"), ("date", "open", "high", "low", "close", "volume")}


def _common(head: Head) -> bool:
    """Whether the columns are those that anybody's daily bars have: which vendor's they are cannot be told."""
    return tuple(head.fields(0, ",")) in COMMON


def _never(head: Head) -> bool:
    return False


FORMATS = (
    Format(
        "csv", "any text table with a header line", ("bars", "ticks", "quotes"),
        "as you say: NAME_column, stamp_column or date_column and time_column", "user", "user", "column or user", "",
        read_csv, _common,
        "columns of canonical names (open, high, ..., bid, ask, price, size, symbol) are taken as they are; separator, decimal, "
        "thousands and "
        "stamp_format say how it is written",
    ),
    Format(
        "parquet", "any Parquet table", ("bars", "ticks", "quotes"),
        "as you say: NAME_column, stamp_column", "user", "in file or user", "column or user", "", read_parquet, _never,
        "a stamp with a zone counts as it is; one without is local time of the zone that you say",
    ),
)  # fmt: skip
