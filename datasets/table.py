"""What the readers of tables share: settings that name columns and stamps, and the way from a table to checked bars.

Nothing is guessed: whether a stamp is the open or the close of its bar and in which zone it is must be said; a time that the zone has
twice or never is an error, and so is a cell that is not a number. Files are read by the same code as an import reads them (`formats`).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bellmark import clock
from bellmark.bars import OPTIONAL, PRICES, Bars, check
from bellmark.component import Dataset, component, setting
from bellmark.datasets.checks import Finding, Policies, apply
from bellmark.datasets.hours import time_of_day
from bellmark.errors import DataError, UsageError
from bellmark.files import reason
from bellmark.instrument import Instrument, Session

if TYPE_CHECKING:
    import polars

    from bellmark.datasets.formats import Options, RowFacts

_ROW_CHECKS = ("missing_price", "nonpositive_price", "price_range", "bad_volume", "missing_quote", "bad_quote", "crossed_quote")


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
    duplicates: Literal["error", "keep_first", "keep_last"] = setting("error", "rows of one stamp that disagree: refuse, or keep one")
    bad_rows: Literal["error", "drop"] = setting("error", "rows of an impossible price, volume or quote: refuse, or leave out and say so")
    tick_size: float = setting(0.0, "smallest price step; 0 = prices have no grid", ge=0.0, unit="price")
    contract_multiplier: float = setting(1.0, "value of one price unit of one contract", gt=0.0, unit="currency")
    lot_size: float = setting(1.0, "contracts, shares or coins in one lot", gt=0.0, unit="units")
    currency: str = setting("USD", "currency of the prices")
    session: str = setting("none", "trading session: a known name, 'ZONE HH:MM-HH:MM', or none for around the clock and daily bars")
    allow_negative_prices: bool = setting(False, "whether prices at or below zero are legal")

    def options(self) -> Options:
        """What the settings say of the file."""
        from bellmark.datasets.formats import Options

        columns = {name: getattr(self, f"{name}_column") for name in (*PRICES, "volume", "symbol", *OPTIONAL)}
        columns |= dict.fromkeys(("price", "size", "bid_size", "ask_size"), "")
        return Options(
            stamp=self.stamp, zone=self.zone, symbol=None if self.symbol_column else self.symbol or None, repeated_hour=self.repeated_hour,
            stamp_column=self.stamp_column, stamp_format=self.stamp_format or None, columns=columns, in_profile=True,
        )  # fmt: skip

    def read(self) -> list[Any]:
        """Checked bars and instrument of each symbol, in the order in which the file first names them."""
        path = _file(self.path)
        session = Session.parse(self.session, "data.session")
        clock.zone(self.zone, "data.zone")
        frame, facts, notes = self._rows(path)
        everything = replace(self._bars(frame, facts, path), notes=notes)
        found = []
        for symbol, places in _symbols(frame).items():
            bars = self._checked(replace(everything.take(places), symbol=symbol))
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

    def _checked(self, bars: Bars) -> Bars:
        """The bars of one symbol after the checks; what a setting left out is counted in a note."""
        chosen: dict[str, str] = dict.fromkeys(_ROW_CHECKS, self.bad_rows) | {"duplicate_conflicting": self.duplicates}
        if self.allow_negative_prices:
            chosen["nonpositive_price"] = "allow"
        bars, findings = apply(bars, Policies(chosen, option=""))
        notes = [_left_out(one) for one in findings if one.check != "duplicate_identical" and one.action != "allowed"]
        bars = replace(bars, notes=(*bars.notes, *notes))
        check(bars, self.allow_negative_prices)
        return bars

    def _rows(self, path: Path) -> tuple[polars.DataFrame, RowFacts, tuple[str, ...]]:
        """All rows of the file, what is known of them, and what the reader noted."""
        import polars as pl

        from bellmark.datasets.formats import open_rows

        chunks = list(open_rows([path], self.name, self.options()))
        frame = pl.concat([rows.frame for rows in chunks])
        if frame.height == 0:
            raise DataError(f"{path}: the file holds no bars")
        return frame, chunks[0].facts, tuple(note for rows in chunks for note in rows.notes)

    def _bars(self, frame: polars.DataFrame, facts: RowFacts, path: Path) -> Bars:
        row_T = frame["row"].to_numpy()
        columns = {name: _numbers(frame[name]) for name in PRICES}
        for name in PRICES:
            missing = np.flatnonzero(np.isnan(columns[name]))
            if missing.size and self.bad_rows == "error":
                column = getattr(self, f"{name}_column")
                raise DataError(f"{path}: data row {row_T[missing[0]]} (the header not counted): {column!r} is missing or NaN")
        volume_T = _numbers(frame["volume"]) if "volume" in frame.columns else np.full(frame.height, np.nan)
        extras: dict[str, Any] = {
            name: frame[name].to_numpy().astype(np.bool_) if name == "halted" else _numbers(frame[name])
            for name in OPTIONAL
            if name in frame.columns
        }
        bars = Bars.from_prices("", self._closes(frame["ts"].to_numpy(), facts, path), columns, volume_T, str(path))
        return replace(bars, row_T=row_T, **extras)

    def _closes(self, ts_T: NDArray[np.int64], facts: RowFacts, path: Path) -> NDArray[np.int64]:
        close_time = self.close_time and time_of_day(self.close_time, "data.close_time")
        if self.stamp == "open":
            if self.bar_seconds is None:
                raise UsageError("data.bar_seconds: expected the length of a bar, found nothing; it is needed where data.stamp is 'open'")
            return ts_T + round(self.bar_seconds * clock.SECOND)
        if facts.stamp != "session":
            return ts_T
        if close_time == "":
            raise UsageError(
                f"{path}: the stamps are dates alone, and data.stamp is 'close': say when a bar closes in data.close_time, such as "
                "16:00, or take data.stamp = 'open' with data.bar_seconds = 86400"
            )
        midnight_T = clock.to_local(ts_T, self.zone)
        return clock.to_utc(midnight_T + int(close_time) * clock.SECOND, self.zone)[0]


def _left_out(finding: Finding) -> str:
    rows = f"{finding.count} row{'s' if finding.count > 1 else ''}"
    return f"{rows} left out, check {finding.check} ({finding.action}): {', '.join(finding.places)}"


def _numbers(column: polars.Series) -> NDArray[np.float64]:
    return column.fill_null(float("nan")).to_numpy().astype(np.float64)


def _symbols(frame: polars.DataFrame) -> dict[str, NDArray[np.int64]]:
    """Places of the rows of each symbol."""
    names = frame["symbol"].unique(maintain_order=True).to_list()
    if len(names) == 1:
        return {names[0]: np.arange(frame.height)}
    symbol_T = frame["symbol"].to_numpy()
    return {name: np.flatnonzero(symbol_T == name) for name in names}


def _file(text: str) -> Path:
    """The file of a path as written in a profile."""
    try:
        path = Path(text) if Path(text).is_file() else Path(text).expanduser()
        if path.is_file():
            return path
        found = "a folder" if path.is_dir() else "something else" if path.exists() else "no such file"
    except (OSError, RuntimeError, ValueError) as error:  # a name too long, a home folder of nobody, a zero byte
        path, found = Path(text[:80]), str(reason(error) if isinstance(error, OSError) else error)
    raise DataError(f"data.path: {path}: {found if found == 'no such file' else 'expected a file, found ' + found}")
