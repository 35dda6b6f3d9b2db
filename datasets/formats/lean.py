"""The zips of LEAN: one text a contract or share, without a header, the date and the symbol in the names.

20131007_trade.zip / 20131007_es_minute_trade_201312.csv    futures: ms since midnight, open high low close volume
20131007_quote.zip / 20131007_es_minute_quote_201312.csv    ms, bid open high low close, size, ask open high low close, size
20131007_trade.zip / 20131007_spy_minute_trade.csv          shares: the same with prices of 1/10000
spy.zip / spy.csv                                           daily and hourly shares: yyyymmdd hh:mm, open high low close volume
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path

import numpy as np

from bellmark import clock
from bellmark.datasets.formats.canonical import Cells, Chosen, Layout
from bellmark.datasets.formats.layout import Format, Options, RowFacts, Rows
from bellmark.datasets.formats.presets import OHLCV
from bellmark.datasets.formats.streams import Head, Member, Meter, describe, members
from bellmark.datasets.formats.text import read_member
from bellmark.errors import DataError, UsageError
from bellmark.instruments import MONTHS

_MEMBER = re.compile(r"(\d{8})_([a-z0-9.]+)_(second|minute)_(trade|quote)(?:_(\d{4})(\d{2})(\d{2})?)?\.csv", re.IGNORECASE)
_DAILY = re.compile(r"([a-z0-9.]+)\.csv", re.IGNORECASE)
_SECONDS = {"second": 1.0, "minute": 60.0}
_TRADE = ("stamp", "open", "high", "low", "close", "volume")
_SIDES = [f"{side}{part}" for side in ("bid", "ask") for part in ("_open", "_high", "_low", "", "_size")]
_QUOTE = ("stamp", *_SIDES)
_SHARE_UNIT = 10_000.0


@dataclass(frozen=True)
class _Kind:
    """What futures and shares differ in. zone: "" = the user must say it."""

    future: bool
    zone: str
    divisor: float


FUTURE, SHARE = _Kind(True, "", 1.0), _Kind(False, "America/New_York", _SHARE_UNIT)


def read_lean(kind: _Kind, path: Path, options: Options, meter: Meter) -> Iterator[Rows]:
    """The bars of a zip, contract after contract; those that the user did not name are passed over."""
    chosen = Chosen(options)
    for member in members(path, meter):
        layout, symbol = _layout(kind, member, options)
        if not chosen.wants(symbol):
            continue
        yield from read_member(layout, member, replace(options, symbol=None, symbols=()), meter, Chosen(Options()))
    chosen.check(path)


def contract(root: str, year: str, month: str) -> str:
    """The usual name of a contract: es, 2013, 12 is ESZ13."""
    return f"{root.upper()}{MONTHS[int(month) - 1]}{year[2:]}"


def _layout(kind: _Kind, member: Member, options: Options) -> tuple[Layout, str]:
    named = _MEMBER.fullmatch(member.inner)
    if named is None:
        return _long_bars(kind, member)
    day, root, resolution, what, year, month, _ = named.groups()
    if kind.future != (year is not None):
        found = "a share: take format lean_equity" if kind.future else "a contract: take format lean_future"
        raise DataError(f"{member.name}: expected {'a contract' if kind.future else 'a share'}, the name is that of {found}")
    if year is not None and not 1 <= int(month) <= 12:
        raise DataError(f"{member.name}: expected year and month of delivery at the end of the name, found {year}{month}")
    symbol = root.upper() if year is None else contract(root, year, month)
    zone = kind.zone or options.zone
    if not zone:
        raise UsageError(
            f"{member.name}: LEAN keeps each market in a zone of its own, and the file does not say which: say {options.said('zone')} "
            "UTC for CME, Europe/Berlin for Eurex, America/New_York for shares"
        )
    facts = RowFacts("open", _SECONDS[resolution.lower()], zone, "raw", off_tick=not kind.future)
    cells = partial(_moments, _midnight(member, day))
    if what.lower() == "trade":
        layout = Layout("bars", OHLCV, ("stamp",), order=(_TRADE,), header="never", divisor=kind.divisor, facts=facts, cells=cells)
    else:
        columns: dict[str, str | tuple[str, ...]] = {name: name for name in _SIDES}
        layout = Layout("quote_bars", columns, ("stamp",), order=(_QUOTE,), header="never", divisor=kind.divisor, facts=facts, cells=cells)
    return replace(layout, name_of=lambda _: symbol), symbol


def _long_bars(kind: _Kind, member: Member) -> tuple[Layout, str]:
    """Daily bars, and hourly ones, which have times of day."""
    named = _DAILY.fullmatch(member.inner)
    if named is None or kind.future:
        raise DataError(f"{member.name}: expected a name such as 20131007_es_minute_trade_201312.csv, found {describe(member.inner)}")
    symbol = named[1].upper()
    facts = RowFacts("open", None, kind.zone, "raw", off_tick=True)
    layout = Layout(
        "bars", OHLCV, ("stamp",), order=(_TRADE,), header="never", forms=("%Y%m%d %H:%M", "%Y%m%d"), divisor=kind.divisor, facts=facts,
        cells=_daily, finish=_daily_length, name_of=lambda _: symbol,
    )  # fmt: skip
    return layout, symbol


def _midnight(member: Member, day: str) -> int:
    """Nanoseconds of the day in the name of a file."""
    try:
        return int((datetime.strptime(day, "%Y%m%d") - datetime(1970, 1, 1)).total_seconds()) * clock.SECOND
    except ValueError:
        raise DataError(f"{member.name}: expected a date at the beginning of the name, found {day!r}") from None


def _moments(midnight: int, cells: Cells) -> Cells:
    """Milliseconds since midnight of the day in the name as wall-clock time."""
    import polars as pl

    stamp = cells.frame["stamp"].str.strip_chars()
    ms = stamp.str.extract(r"^([0-9]{1,8})$").cast(pl.Int64)
    wrong = (ms.is_null() | (ms >= 86_400_000)).arg_true()
    if len(wrong):
        row = int(wrong[0])
        raise DataError(f"{cells.place.row(row)}: expected milliseconds since midnight, found {describe(stamp[row])}")
    moments = pl.Series("stamp", np.int64(midnight) + ms.to_numpy() * 1_000_000)
    return cells.with_columns(moments.cast(pl.Datetime("ns")))


def _daily(cells: Cells) -> Cells:
    """Rows that are all stamped midnight are days: the time is cut off."""
    import polars as pl

    stamp = cells.frame["stamp"].str.strip_chars()
    days = stamp.str.ends_with(" 00:00").fill_null(True)
    return cells.with_columns(pl.col("stamp").str.strip_chars().str.slice(0, 8)) if days.all() else cells


def _daily_length(cells: Cells, facts: RowFacts) -> RowFacts:
    return replace(facts, bar_seconds=86_400.0 if facts.stamp == "session" else 3600.0)


def _fits(future: bool, head: Head) -> bool:
    if not head.zipped or not head.names:
        return False
    names = [name.rsplit("/", 1)[-1] for name in head.names]
    found = [_MEMBER.fullmatch(name) for name in names]
    if all(found):
        return all((match[5] is not None) == future for match in found if match)
    daily = not future and len(names) == 1 and _DAILY.fullmatch(names[0]) is not None
    return daily and bool(head.lines) and re.fullmatch(r"\d{8} \d\d:\d\d(,\d+){5}", head.lines[0]) is not None


FORMATS = (
    Format(
        "lean_future", "minute zips of futures of LEAN, trades or quotes", ("bars", "quote_bars"),
        "ms since midnight, open high low close volume; quotes: ms, bid open high low close size, ask open high low close size", "open",
        "user",
        "file name", "file/doc", partial(read_lean, FUTURE), partial(_fits, True),
        "one text a contract, named ESZ13 here; the date is only in the name; CME is kept in UTC, Eurex in Europe/Berlin; a side may be "
        "empty",
    ),
    Format(
        "lean_equity", "daily, hourly and minute zips of US shares of LEAN", ("bars", "quote_bars"),
        "ms since midnight or yyyymmdd hh:mm, open high low close volume; quotes as for futures", "open, daily: session",
        "America/New_York",
        "file name", "file", partial(read_lean, SHARE), partial(_fits, False),
        "prices are integers of 1/10000 and raw, kept to a hundredth of the tick; splits and dividends are in a factor file of their own",
    ),
)  # fmt: skip
