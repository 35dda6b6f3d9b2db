"""What a file format is, what a user may say about a file, and the canonical rows that every format gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bellmark.bars import PRICES
from bellmark.errors import UsageError

if TYPE_CHECKING:
    import polars

    from bellmark.datasets.formats.streams import Head, Meter

Kind = Literal["bars", "quote_bars", "ticks", "quotes", "funding", "actions"]
QUOTES = ("bid", "ask", "bid_open", "bid_high", "bid_low", "ask_open", "ask_high", "ask_low")
EVENTS = ("halted", "funding_rate", "funding_mark", "roll_price")
COLUMN_SETTINGS = ("symbol", *PRICES, "volume", *QUOTES, *EVENTS, "price", "size", "bid_size", "ask_size")
"""Canonical names with a setting NAME_column in the formats `csv` and `parquet`."""
LEAST_CHUNK = 1024
_OPTIONS = {"zone": "--tz", "stamp": "--stamp", "symbol": "--symbol", "repeated_hour": "--repeated-hour", "bar_seconds": "--bar"}
_OPTIONS |= {"truncated": "--on truncated=drop", "adjustment": "--adjustment"}


@dataclass(frozen=True)
class Options:
    """What the user said about a file; None = not said.

    stamp: "open" or "close", what the stamp of a bar is. zone: IANA name for stamps that carry no offset. symbol, symbols: those to take of
    a file that holds several, or the name where the file has none. bar_seconds: length of the bars in the file. repeated_hour: "error", or
    "file_order" to tell local times that the zone has twice by the order of rows. truncated: "error" or "drop", what to do with a last line
    that is cut short. absent_symbol: "error", or "skip" where a named symbol may be in another of several files. chunk_bytes: text read at
    once. decimal, thousands, separator: how numbers and fields are written. adjustment: what the prices are adjusted for already, "raw",
    "split" or "split_dividend".
    columns: for `csv` and `parquet`, the column of the file by canonical name (`open`: "Erster"; "" = there is none). stamp_column,
    date_column, time_column, stamp_format: where and how the stamp is written. in_profile: whether errors name settings (`data.zone`) or
    options (`--tz`).
    """

    stamp: str | None = None
    zone: str | None = None
    symbol: str | None = None
    symbols: tuple[str, ...] = ()
    bar_seconds: float | None = None
    repeated_hour: str = "error"
    decimal: str | None = None
    thousands: str | None = None
    separator: str | None = None
    adjustment: str | None = None
    truncated: str = "error"
    absent_symbol: str = "error"
    chunk_bytes: int = 32 << 20
    stamp_column: str | None = None
    date_column: str | None = None
    time_column: str | None = None
    stamp_format: str | None = None
    columns: dict[str, str] = field(default_factory=dict)
    in_profile: bool = False

    @property
    def wanted(self) -> tuple[str, ...]:
        """The symbols that the user named."""
        return (*((self.symbol,) if self.symbol is not None else ()), *self.symbols)

    def said(self, name: str) -> str:
        """How the user says an option, for errors."""
        return f"data.{name}" if self.in_profile else _OPTIONS.get(name, f"--set {name}=...")

    @property
    def the_symbol(self) -> str:
        """The name of the symbol of a file that has none."""
        if len(self.wanted) == 1 and self.wanted[0].strip() and self.wanted[0].isprintable():
            return self.wanted[0]
        found = " and ".join(repr(name) for name in self.wanted) or "nothing"
        more = "; name the symbol or data.symbol_column" if self.in_profile else "; the file does not name its symbol"
        raise UsageError(f"{self.said('symbol')}: expected a name, found {found}{more}")


def options_from(settings: dict[str, str], **given: object) -> Options:
    """Options from text, as `--set KEY=VALUE` gives them: NAME_column, stamp_format, decimal, thousands, separator, chunk_bytes."""
    plain: dict[str, object] = {}
    columns: dict[str, str] = {}
    for key, value in settings.items():
        name = key.removesuffix("_column")
        if key != name and name in COLUMN_SETTINGS:
            columns[name] = value
        elif key in ("stamp_column", "date_column", "time_column", "stamp_format", "decimal", "thousands", "separator"):
            plain[key] = "\t" if key == "separator" and value in ("\\t", "tab") else value
        else:
            known = ["stamp_column", "date_column", "time_column", "stamp_format", "decimal", "thousands", "separator"]
            from bellmark.errors import did_you_mean, known_list

            known += [f"{name}_column" for name in COLUMN_SETTINGS]
            raise UsageError(f"--set: the formats have no setting '{key}'{did_you_mean(key, known)}{known_list(known, 40)}")
    return Options(**{**plain, **given, "columns": columns})  # type: ignore[arg-type]


@dataclass(frozen=True)
class RowFacts:
    """What is known of the rows beside themselves.

    stamp: "open" or "close" of the bar, "session" = the date of a session, "" = a moment (ticks). bar_seconds: of the layout or the file,
    None = unknown. zone: the zone in which stamps were read, "" = none was needed or said. price_adjustment: what the prices are adjusted
    for. name: default instrument name. order: "descending" where the layout is newest first. blank_side: "unchanged" where an empty bid or
    ask of a quote means that it is as before. off_tick: whether raw prices lie between ticks by nature, as those of US shares in the middle
    of a spread.
    """

    stamp: str
    bar_seconds: float | None = None
    zone: str = ""
    price_adjustment: Literal["raw", "split", "split_dividend", "unknown"] = "unknown"
    name: str | None = None
    order: Literal["ascending", "descending"] = "ascending"
    blank_side: Literal["", "unchanged"] = ""
    off_tick: bool = False


ADJUSTMENTS = ("raw", "split", "split_dividend")


@dataclass(frozen=True)
class Rows:
    """One chunk of one file in canonical columns, in the order of the file.

    All: row (Int64, data row of the source from 1), ts (Int64 UTC ns of the stamp as written), symbol (String). Numbers are Float64 and
    null where they are unknown; NaN is kept as it is written.
    bars: open high low close volume and what the layout has beside them. quote_bars: bid_open bid_high bid_low bid, the same of the ask,
    bid_size ask_size. ticks: price size. quotes: bid ask bid_size ask_size. funding: rate interval_hours mark.
    first_row: the data row of the first line of the chunk. read_bytes, total_bytes: progress over all files. notes: what was left out.
    """

    kind: Kind
    frame: polars.DataFrame
    source: str
    first_row: int
    read_bytes: int
    total_bytes: int
    facts: RowFacts
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Format:
    """A file layout: how to read it and what a user must know.

    kinds: what it holds. columns: in their order. stamp: what the stamp of a bar is; "user" = must be said. zone: IANA name, "in file",
    "none" (dates alone) or "user". symbol: "column", "file name" or "user". quirks: what differs from what one expects. source: where this
    is from: doc (a vendor's page), file (real files), know (general knowledge), [unverified] where nobody checked. extra: pip extra that it
    needs.
    """

    name: str
    summary: str
    kinds: tuple[Kind, ...]
    columns: str
    stamp: str
    zone: str
    symbol: str
    source: str
    read: Callable[[Path, Options, Meter], Iterator[Rows]] = field(repr=False)
    fits: Callable[[Head], bool] = field(repr=False)
    quirks: str = ""
    extra: str = ""
