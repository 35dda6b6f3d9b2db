"""What yfinance gives, as CSV or Parquet: daily rows are dates of sessions, intraday rows carry offsets and are stamped with the open.

Prices are adjusted for splits always, and for dividends too unless a column `Adj Close` stands beside them (auto_adjust off).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bellmark.bars import PRICES
from bellmark.datasets.formats.canonical import Canonical, Cells, Chosen, Fields, Layout, folded
from bellmark.datasets.formats.generic import read_frames
from bellmark.datasets.formats.layout import Format, Options, RowFacts, Rows
from bellmark.datasets.formats.presets import header_has, preset
from bellmark.datasets.formats.streams import Head, Member, Meter, describe, members, no_panic
from bellmark.datasets.formats.text import Headed, TextReader
from bellmark.datasets.stamps import Place
from bellmark.errors import DataError

if TYPE_CHECKING:
    import polars

_BESIDE = {"adjusted_close": "adj close", "dividend": "dividends", "split": "stock splits"}
_STAMPS = ("date", "datetime", "__index_level_0__", "index")
_PAIR = re.compile(r"\('(.+)', '(.*)'\)")
_MIDNIGHT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2} 00:00:00[+-][0-9]{2}:?[0-9]{2}$"


def _layout(names: list[str], source: str) -> Layout:
    folds = [folded(name) for name in names]
    stamp = next((name for name in _STAMPS if name in folds), "date")
    columns: dict[str, str | tuple[str, ...]] = {**{name: name for name in PRICES}, "volume": "volume", **_BESIDE}
    return Layout("bars", columns, (stamp,), optional=tuple(_BESIDE), facts=_facts(folds), cells=_cells, finish=_length)


def _facts(folds: list[str]) -> RowFacts:
    return RowFacts("open", price_adjustment="split" if "adj close" in folds else "split_dividend")


def _cells(cells: Cells) -> Cells:
    """Stamps that are all local midnights are days: the offset is that of the exchange, and the date is the session's."""
    import polars as pl

    stamp = cells.frame["stamp"]
    if folded(cells.names["stamp"]) == "datetime":  # intraday, where the last rows of a market without hours may all be midnights
        return cells
    if stamp.dtype == pl.String:
        days = stamp.str.contains(_MIDNIGHT)
        return cells.with_columns(pl.col("stamp").str.slice(0, 10)) if days.all() and stamp.null_count() == 0 else cells
    if isinstance(stamp.dtype, pl.Datetime):
        midnight = stamp.dt.truncate("1d") == stamp
        return cells.with_columns(pl.col("stamp").dt.date()) if midnight.all() else cells
    return cells


def _length(cells: Cells, facts: RowFacts) -> RowFacts:
    return replace(facts, bar_seconds=facts.bar_seconds or 86_400.0) if facts.stamp == "session" else facts


# several levels of columns


def read_multi(path: Path, options: Options, meter: Meter) -> Iterator[Rows]:
    """The rows of each ticker of a table whose header has a line of prices and one of tickers."""
    chosen = Chosen(options)
    for member in members(path, meter):
        reader = _Wide(member, options)
        canonical = {
            ticker: Canonical(reader.layouts[ticker], member, options, meter, chosen) for ticker in reader.tickers if chosen.wants(ticker)
        }
        some = False
        for frame, place, notes in reader.tables():
            for ticker, one in canonical.items():
                some = True
                cells = None if frame is None else reader.cells_of(ticker, frame, place)
                yield one.rows(cells, place.first_row, notes)
        for one in canonical.values():
            one.seen.end()
        if not some and canonical:
            raise DataError(f"{member.name}: the file has a header and no bars")
    chosen.check(path)


class _Wide(TextReader):
    """A text whose columns are pairs of a price and a ticker."""

    def __init__(self, member: Member, options: Options) -> None:
        self.pairs: list[tuple[str, str]] = []
        super().__init__(Headed(lambda names, source: self.layouts[self.tickers[0]]), member, options)
        self._fields = {ticker: Fields(layout, self.fields.names, member.name, options) for ticker, layout in self.layouts.items()}

    def _header(self) -> list[str]:
        rows = [self._split(self.lines.take() or "") for _ in range(2)]
        levels = {row[0].strip().casefold(): row[1:] for row in rows if row}
        if set(levels) != {"price", "ticker"} or len(levels["price"]) != len(levels["ticker"]) or not levels["ticker"]:
            raise DataError(f"{self.source}: expected a header of a line 'Price,...' and a line 'Ticker,...', found {describe(rows)}")
        third = self._split(self.lines.peek() or "")
        if third and third[0].strip().casefold() in ("date", "datetime") and not any(cell.strip() for cell in third[1:]):
            self.lines.take()
        self.pairs = [(ticker.strip(), price.strip()) for price, ticker in zip(levels["price"], levels["ticker"], strict=True)]
        self.tickers = list(dict.fromkeys(ticker for ticker, _ in self.pairs))
        self.layouts = {ticker: _ticker_layout(ticker, self.pairs) for ticker in self.tickers}
        return ["Date", *(f"{price} of {ticker}" for ticker, price in self.pairs)]

    def cells_of(self, ticker: str, frame: polars.DataFrame, place: Place) -> Cells:
        """The cells of a ticker, without the rows in which others alone have prices: the table joins all days of all tickers."""
        import polars as pl

        cells = self._fields[ticker].cells(frame.get_columns(), place)
        if len(self.tickers) == 1:
            return cells
        return cells.where(pl.any_horizontal([pl.col(name).is_not_null() for name in cells.frame.columns if name != "stamp"]))


def _ticker_layout(ticker: str, pairs: list[tuple[str, str]]) -> Layout:
    folds = [folded(price) for other, price in pairs if other == ticker]
    layout = _layout(["date", *folds], "")
    columns: dict[str, str | tuple[str, ...]] = {name: f"{column} of {ticker}" for name, column in layout.columns.items()}
    return replace(layout, columns=columns, stamp=("date",), name_of=lambda _: ticker)


# Parquet


def read_parquet(path: Path, options: Options, meter: Meter) -> Iterator[Rows]:
    """A frame of yfinance as pandas writes it; columns of two levels hold one ticker."""
    yield from read_frames(Headed(_frame_layout), path, options, meter)


def _frame_layout(names: list[str], source: str) -> Layout:
    pairs = {name: found.groups() for name in names if (found := _PAIR.fullmatch(name))}
    if not pairs:
        return _layout(names, source)
    tickers = {ticker for _, ticker in pairs.values() if ticker}
    if len(tickers) != 1:
        raise DataError(
            f"{source}: expected one ticker in columns of two levels, found {len(tickers)}; save each ticker, or all of them as CSV"
        )
    by_price = {folded(price): name for name, (price, _) in pairs.items()}
    layout = _layout([*names, *by_price], source)
    columns: dict[str, str | tuple[str, ...]] = {name: by_price.get(str(column), column) for name, column in layout.columns.items()}
    ticker = tickers.pop()
    return replace(layout, columns=columns, stamp=(by_price.get(layout.stamp[0], layout.stamp[0]),), name_of=lambda _: ticker)


def read_any(path: Path, options: Options, meter: Meter) -> Iterator[Rows]:
    """Whichever of the layouts the file has."""
    from bellmark.datasets.formats.streams import head
    from bellmark.datasets.formats.text import read_text

    found = head(path)
    if _fits_parquet(found):
        return read_parquet(path, options, meter)
    return read_multi(path, options, meter) if _fits_multi(found) else read_text(Headed(_layout), path, options, meter)


def _fits_flat(head: Head) -> bool:
    """With the column Adj Close, or without it as any daily bars."""
    return header_has("date", "open", "close", "adj close")(head) or tuple(head.fields(0, ",")) == (*_STAMPS[:1], *PRICES, "volume")


def _fits_multi(head: Head) -> bool:
    return {(head.fields(line, ",") or [""])[0] for line in (0, 1)} == {"price", "ticker"}


def _fits_parquet(head: Head) -> bool:
    """Named by their columns, which stand as plain text in the file."""
    if head.data[:4] != b"PAR1":
        return False
    try:
        import polars as pl

        with no_panic(str(head.path)):
            names = [folded(name) for name in pl.read_parquet_schema(head.path)]
    except Exception:  # whatever a damaged file raises, it is not recognised
        return False
    flat = {"open", "high", "low", "close", "volume"} <= set(names) and any(name in names for name in _STAMPS) and "symbol" not in names
    return flat or any(_PAIR.fullmatch(name) for name in names)


_ADJUSTED = "prices are adjusted for splits, and for dividends too where no Adj Close stands beside them"
FORMATS = (
    Format(
        "yfinance", "yfinance, daily or intraday, CSV or Parquet, whichever it is", ("bars",), "Date Open High Low Close [Adj Close] "
        "Volume", "session",
        "none", "user", "file/know", read_any, _fits_flat,
        f"{_ADJUSTED}; it also reads the three layouts below",
    ),
    Format(
        "yfinance_multi", "yfinance CSV with a line of prices and a line of tickers", ("bars",),
        "Price,Close,High,Low,Open,Volume / Ticker,... / Date,,,,,", "session", "none", "column", "know", read_multi, _fits_multi,
        f"{_ADJUSTED}; columns are in alphabetical order; rows in which a ticker has no cell at all are another ticker's days",
    ),
    preset(
        "yfinance_intraday", "yfinance history, with offsets", Headed(_layout),
        lambda head: header_has("datetime", "open", "close", "volume")(head) or header_has("date", "dividends", "stock splits")(head),
        kinds=("bars",), columns="Datetime Open High Low Close Volume Dividends 'Stock Splits'", stamp="open", zone="in file",
        symbol="user", source="know",
        quirks=f"{_ADJUSTED}; the offset changes with daylight saving; daily rows are stamped with local midnight and are dates",
    ),
    Format(
        "yfinance_parquet", "yfinance frames as Parquet", ("bars",), "Date (ns with zone) Open High Low Close Volume", "session, "
        "intraday: open", "in file",
        "user, or the ticker of two levels", "know", read_parquet, _fits_parquet,
        f"{_ADJUSTED}; a date is local midnight in the zone of the column; the index may be a column __index_level_0__",
    ),
)  # fmt: skip
