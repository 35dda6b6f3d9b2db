"""What the readers of tables share: settings that name columns and stamps, and the way from a table to checked bars.

Nothing is guessed: whether a stamp is the open or the close of its bar and in which zone it is must be said; a time that the zone has
twice or never is an error, and so is a cell that is not a number.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bellmark import clock
from bellmark.bars import OPTIONAL, Bars, check, in_order
from bellmark.component import Dataset, component, setting
from bellmark.datasets.stamps import stamps_of
from bellmark.errors import DataError, PluginError, UsageError, did_you_mean
from bellmark.files import reason
from bellmark.instrument import Instrument, Session

if TYPE_CHECKING:
    import polars

PRICES = ("open", "high", "low", "close")


@component
class TableDataset(Dataset):
    """A table of bars, one row a bar: the settings that `csv` and `parquet` share."""

    name: ClassVar[str] = "table"
    path: str = setting(meaning="file to read; ~ is the home folder")
    stamp: Literal["open", "close"] = setting(meaning="what the stamp of a row is: the open or the close of its bar")
    zone: str = setting(meaning="IANA time zone of stamps that carry no offset, such as UTC or America/New_York")
    stamp_column: str = setting("ts", "column of the stamp")
    stamp_format: str = setting("", "format of the stamp as in strftime; empty = ISO 8601, or epoch digits (10 s, 13 ms, 16 us, 19 ns)")
    bar_seconds: float | None = setting(None, "length of a bar; needed where the stamp is the open", ge=1e-9, le=31_622_400.0, unit="s")
    close_time: str = setting("", "HH:MM at which a bar closes whose stamp is a date alone; needed where such a stamp is the close")
    repeated_hour: Literal["error", "file_order"] = setting("error", "local times that the zone has twice: refuse, or tell them by order")
    symbol: str = setting("", "symbol of the bars where no column says it")
    symbol_column: str = setting("", "column of the symbol; empty = one symbol")
    open_column: str = setting("open", "column of the open")
    high_column: str = setting("high", "column of the high")
    low_column: str = setting("low", "column of the low")
    close_column: str = setting("close", "column of the close")
    volume_column: str = setting("volume", "column of the volume; empty = unknown")
    bid_column: str = setting("", "column of the bid at the close; empty = no quotes; bid and ask go together, as all eight do")
    ask_column: str = setting("", "column of the ask at the close; empty = no quotes")
    bid_open_column: str = setting("", "column of the bid at the open; empty = quotes at the close alone")
    bid_high_column: str = setting("", "column of the highest bid; empty = quotes at the close alone")
    bid_low_column: str = setting("", "column of the lowest bid; empty = quotes at the close alone")
    ask_open_column: str = setting("", "column of the ask at the open; empty = quotes at the close alone")
    ask_high_column: str = setting("", "column of the highest ask; empty = quotes at the close alone")
    ask_low_column: str = setting("", "column of the lowest ask; empty = quotes at the close alone")
    halted_column: str = setting("", "column that says where trading is halted (1, 0, true, false; an empty cell = no); empty = never")
    funding_rate_column: str = setting("", "column of the funding rate settled in a bar (0.0001; an empty cell = none); empty = no funding")
    funding_mark_column: str = setting("", "column of the price at which funding is settled; empty, and an empty cell = the close")
    roll_price_column: str = setting("", "column of the next contract's price where a future is rolled at the close; empty = no rolls")
    tick_size: float = setting(0.0, "smallest price step; 0 = prices have no grid", ge=0.0, unit="price")
    contract_multiplier: float = setting(1.0, "value of one price unit of one contract", gt=0.0, unit="currency")
    lot_size: float = setting(1.0, "contracts, shares or coins in one lot", gt=0.0, unit="units")
    currency: str = setting("USD", "currency of the prices")
    session: str = setting("none", "trading session: a known name, 'ZONE HH:MM-HH:MM', or none for around the clock and daily bars")
    allow_negative_prices: bool = setting(False, "whether prices at or below zero are legal")

    def table(self, path: Path) -> polars.DataFrame:
        """The file as a table; numbers may still be text."""
        raise PluginError(f"dataset {self.name}: it has no function table")

    def number_text(self, column: polars.Expr) -> polars.Expr:
        """Text of a number in the form that a cast takes; what is not a number is left as it is no number."""
        return column.str.strip_chars()

    def read(self) -> list[Any]:
        """Checked bars and instrument of each symbol, in the order in which the file first names them."""
        path = _file(self.path)
        session = Session.parse(self.session, "data.session")
        frame = self.table(path)
        if frame.height == 0:
            raise DataError(f"{path}: the file holds no bars")
        names = self._columns(frame, path)
        everything = self._bars(frame, names, path)
        found = []
        for symbol, places in self._symbols(frame, names, path).items():
            bars = in_order(_named(everything.take(places), symbol))
            check(bars, self.allow_negative_prices)
            instrument = Instrument(
                symbol,
                tick_size=self.tick_size or None,
                contract_multiplier=self.contract_multiplier,
                lot_size=self.lot_size,
                currency=self.currency,
                session=session,
                allow_negative_prices=self.allow_negative_prices,
            )
            found.append((bars, instrument))
        return found

    def _columns(self, frame: polars.DataFrame, path: Path) -> dict[str, str]:
        wanted = {"stamp": self.stamp_column, **{name: getattr(self, f"{name}_column") for name in PRICES}}
        wanted |= {name: column for name in ("volume", "symbol", *OPTIONAL) if (column := getattr(self, f"{name}_column"))}
        return {name: _found(frame.columns, column, f"{path}: data.{name}_column") for name, column in wanted.items()}

    def _bars(self, frame: polars.DataFrame, names: dict[str, str], path: Path) -> Bars:
        ts_T = self._close_stamps(frame[names["stamp"]], path)
        columns = {name: self._numbers(frame[names[name]], path) for name in PRICES}
        for name in PRICES:
            missing = np.flatnonzero(np.isnan(columns[name]))
            if missing.size:
                raise DataError(f"{path}: data row {missing[0] + 1} (the header not counted): {names[name]!r} is missing or NaN")
        volume = self._numbers(frame[names["volume"]], path) if "volume" in names else np.full(frame.height, np.nan)
        extras: dict[str, Any] = {
            name: self._flags(frame[names[name]], path) if name == "halted" else self._numbers(frame[names[name]], path)
            for name in OPTIONAL
            if name in names
        }
        return replace(Bars.from_prices("", ts_T, columns, volume, str(path)), **extras)

    def _flags(self, column: polars.Series, path: Path) -> NDArray[np.bool_]:
        import polars as pl

        if column.dtype == pl.Boolean:
            return column.fill_null(False).to_numpy().astype(np.bool_)
        text = column.cast(pl.String).str.strip_chars().str.to_lowercase().fill_null("")
        on = text.is_in(["1", "1.0", "true"])
        wrong = (~on & ~text.is_in(["", "0", "0.0", "false"])).arg_true()
        if len(wrong):
            row = int(wrong[0])
            raise DataError(
                f"{path}: data row {row + 1} (the header not counted), column {column.name!r}: expected 0, 1, true or false, "
                f"found {column[row]!r}"
            )
        return on.to_numpy().astype(np.bool_)

    def _numbers(self, column: polars.Series, path: Path) -> NDArray[np.float64]:
        import polars as pl

        numbers = column
        if column.dtype == pl.String:
            numbers = column.to_frame("x").select(self.number_text(pl.col("x")).replace("", None).alias("x"))["x"]
            cast = numbers.cast(pl.Float64, strict=False)
            wrong = (cast.is_null() & numbers.is_not_null()).arg_true()
            if len(wrong):
                row = int(wrong[0])
                hint = "; data.decimal and data.thousands say how numbers are written" if "," in str(column[row]) else ""
                raise DataError(
                    f"{path}: data row {row + 1} (the header not counted), column {column.name!r}: expected a number, "
                    f"found {column[row]!r}{hint}"
                )
            numbers = cast
        elif column.dtype == pl.Null:
            numbers = column
        elif not column.dtype.is_numeric():
            raise DataError(f"{path}: column {column.name!r}: expected numbers, found {column.dtype}")
        return numbers.cast(pl.Float64).fill_null(float("nan")).to_numpy().astype(np.float64)

    def _close_stamps(self, column: polars.Series, path: Path) -> NDArray[np.int64]:
        close_time = self.close_time and _close_seconds(self.close_time)
        found = stamps_of(column, self.stamp_format, self.zone, self.repeated_hour, str(path))
        if self.stamp == "open":
            if self.bar_seconds is None:
                raise UsageError("data.bar_seconds: expected the length of a bar, found nothing; it is needed where data.stamp is 'open'")
            return found.utc_T + round(self.bar_seconds * clock.SECOND)
        if found.date_only:
            if close_time == "":
                raise UsageError(
                    f"{path}: the stamps are dates alone, and data.stamp is 'close': say when a bar closes in data.close_time, such as "
                    "16:00, or take data.stamp = 'open' with data.bar_seconds = 86400"
                )
            return clock.to_utc(found.local_T + int(close_time) * clock.SECOND, self.zone)[0]
        return found.utc_T

    def _symbols(self, frame: polars.DataFrame, names: dict[str, str], path: Path) -> dict[str, NDArray[np.int64]]:
        import polars as pl

        if "symbol" not in names:
            if not self.symbol.strip() or not self.symbol.isprintable():
                given = repr(self.symbol) if self.symbol else "nothing"
                raise UsageError(f"data.symbol: expected a name, found {given}; name the symbol or data.symbol_column")
            return {self.symbol: np.arange(frame.height)}
        column = frame[names["symbol"]].cast(pl.String).str.strip_chars()
        empty = (column.is_null() | (column == "")).arg_true()
        if len(empty):
            raise DataError(f"{path}: data row {int(empty[0]) + 1} (the header not counted): column {names['symbol']!r} is empty")
        symbol_T = column.to_numpy()
        found: dict[str, NDArray[np.int64]] = {}
        for symbol in column.unique(maintain_order=True).to_list():
            found[symbol] = np.flatnonzero(symbol_T == symbol)
        return found


def _named(bars: Bars, symbol: str) -> Bars:
    return replace(bars, symbol=symbol)


def _close_seconds(text: str) -> int:
    if text == "24:00":
        return 86_400
    try:
        return Session("UTC", text, "00:00").open_seconds
    except UsageError:
        raise UsageError(f"data.close_time: expected a time as HH:MM, found {text!r}") from None


def _file(text: str) -> Path:
    """The file of a path as written in a profile."""
    try:
        path = Path(text).expanduser()
        if path.is_file():
            return path
        found = "a folder" if path.is_dir() else "something else" if path.exists() else "no such file"
    except (OSError, RuntimeError, ValueError) as error:  # a name too long, a home folder of nobody, a zero byte
        path, found = Path(text[:80]), str(reason(error) if isinstance(error, OSError) else error)
    raise DataError(f"data.path: {path}: {found if found == 'no such file' else 'expected a file, found ' + found}")


def _found(columns: list[str], wanted: str, where: str) -> str:
    if wanted in columns:
        return wanted
    folded = [column for column in columns if column.strip().casefold() == wanted.strip().casefold()]
    if len(folded) == 1:
        return folded[0]
    shown = ", ".join(repr(column) for column in columns)
    raise DataError(f"{where}: no column {wanted!r}{did_you_mean(wanted, columns)} (the file has: {shown})")
