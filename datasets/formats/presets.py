"""Layouts that differ in names and marks alone: one row each, and the few cells that must be changed before they are read.

The source of each row is marked: doc (a page of the vendor), file (seen in real files), know (general knowledge); what nobody checked is
marked [unverified]. Layouts that need more code than this have files of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from bellmark.datasets.formats.canonical import Layout
from bellmark.datasets.formats.layout import Format, RowFacts
from bellmark.datasets.formats.streams import Head, Member
from bellmark.datasets.formats.text import Headed, read_text

if TYPE_CHECKING:
    pass

OHLC = {name: name for name in ("open", "high", "low", "close")}
OHLCV: dict[str, str | tuple[str, ...]] = {**OHLC, "volume": "volume"}


def preset(name: str, summary: str, layout: Layout | Headed, fits: Callable[[Head], bool], **known: Any) -> Format:
    """A format that is a layout of text."""
    kinds = known.pop("kinds", None) or (layout.kind,)  # type: ignore[union-attr]
    return Format(name=name, summary=summary, kinds=kinds, read=partial(read_text, layout), fits=fits, **known)


def header_has(*names: str, line: int = 0, separator: str = ",", without: tuple[str, ...] = ()) -> Callable[[Head], bool]:
    """Whether the header has all of some names and none of others."""

    def fits(head: Head) -> bool:
        fields = [field.strip("<>") for field in head.fields(line, separator)]
        return all(name in fields for name in names) and not any(name in fields for name in without)

    return fits


def line_is(pattern: str, line: int = 0) -> Callable[[Head], bool]:
    """Whether a line is written in a way."""

    def fits(head: Head) -> bool:
        return len(head.lines) > line and re.fullmatch(pattern, head.lines[line]) is not None

    return fits


def _fits_stooq(head: Head) -> bool:
    fields = head.fields(0, ",")
    return fields in (["date", "open", "high", "low", "close"], ["date", "open", "high", "low", "close", "volume"])


def _all_without_volume(head: Head) -> bool:
    """Whether the first lines all end in a volume of 0."""
    return all(line.endswith(";0") for line in head.lines if line)


# NinjaTrader

_NINJA_NAME = re.compile(r"(.+)\.(?:Last|Bid|Ask)\.txt", re.IGNORECASE)


def _ninja_name(member: Member) -> str | None:
    found = _NINJA_NAME.fullmatch(member.inner)
    return None if found is None else found[1]


_COMPACT = ("%Y%m%d %H%M%S", "%Y%m%d")
_NINJA = Layout(
    "bars",
    OHLCV,
    ("stamp",),
    order=(("stamp", "open", "high", "low", "close", "volume"),),
    header="never",
    separator=";",
    forms=_COMPACT,
    stamp_said=True,
    facts=RowFacts("", zone="UTC"),
    name_of=_ninja_name,
)
_NINJA_TICK = Layout(
    "ticks", {"price": "price", "size": "size"}, ("stamp",), order=(("stamp", "price", "size"),), header="never", separator=";",
    forms=_COMPACT[:1],
    facts=RowFacts("", zone="UTC"), name_of=_ninja_name,
)  # fmt: skip

# vendors of minute and daily bars

_KIBOT = Layout(
    "bars",
    OHLCV,
    ("date", "time"),
    order=(("date", "time", "open", "high", "low", "close", "volume"), ("date", "open", "high", "low", "close", "volume")),
    header="never",
    forms=("%m/%d/%Y %H:%M", "%m/%d/%Y"),
    facts=RowFacts("open", zone="America/New_York"),
)
_FIRSTRATE = Layout(
    "bars",
    OHLCV,
    ("stamp",),
    optional=("volume",),
    order=(("stamp", "open", "high", "low", "close", "volume"), ("stamp", "open", "high", "low", "close")),
    header="never",
    doubtful=("zone",),
    facts=RowFacts("open", zone="America/New_York"),
)
_POLYGON = Layout(
    "bars",
    {**OHLCV, "symbol": "ticker", "trades": "transactions"},
    ("window_start",),
    optional=("trades",),
    facts=RowFacts("open", price_adjustment="raw"),
)
_HISTDATA = Layout(
    "bars",
    OHLCV,
    ("stamp",),
    order=(("stamp", "open", "high", "low", "close", "volume"),),
    header="never",
    separator=";",
    forms=_COMPACT[:1],
    unknown_volume=0.0,
    facts=RowFacts("open", 60.0, "Etc/GMT+5", "raw"),
)
_DUKASCOPY = Layout(
    "bars", OHLCV, ("gmt time",), forms=("%d.%m.%Y %H:%M:%S%.f",), facts=RowFacts("open", zone="UTC", price_adjustment="raw")
)
_TRADINGVIEW = Layout("bars", OHLCV, ("time",), optional=("volume",), facts=RowFacts("open"))
_STOOQ = Layout("bars", OHLCV, ("date",), optional=("volume",), facts=RowFacts("session", 86_400.0, price_adjustment="split"))
_SIERRA_TEXT = Layout(
    "bars",
    {
        **OHLC,
        "close": ("last", "close"),
        "volume": "volume",
        "trades": ("numberoftrades", "number of trades", "# of trades"),
        "bid_volume": ("bidvolume", "bid volume"),
        "ask_volume": ("askvolume", "ask volume"),
    },
    ("date", "time"),
    optional=("trades", "bid_volume", "ask_volume"),
    forms=("%Y/%m/%d %H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y/%m/%d", "%Y-%m-%d"),
)

FORMATS = (
    preset(
        "stooq", "daily bars as the site of Stooq gives them", _STOOQ, _fits_stooq,
        columns="Date Open High Low Close [Volume]", stamp="session", zone="none", symbol="user", source="know",
        quirks="prices are adjusted for splits; FX and indices have no volume",
    ),
    preset(
        "ninjatrader", "bars of NinjaTrader", _NINJA,
        lambda head: line_is(r"\d{8}( \d{6})?(;[0-9.]+){5}")(head) and not _all_without_volume(head),
        columns="yyyyMMdd HHmmss;open;high;low;close;volume, no header", stamp="user", zone="UTC", symbol="file name or user", source="doc",
        quirks="whether a stamp is the end (the default there: --stamp close) or the start was chosen when the file was made; the name "
        "of the file carries the symbol: 'ES 03-24.Last.txt'",
    ),
    preset(
        "ninjatrader_tick", "trades of NinjaTrader", _NINJA_TICK, line_is(r"\d{8} \d{6};[0-9.]+;[0-9.]+"),
        columns="yyyyMMdd HHmmss;price;volume, no header", stamp="", zone="UTC", symbol="file name or user", source="doc",
        quirks="stamps are whole seconds: several trades share one",
    ),
    preset(
        "tradingview", "chart data exported from TradingView", _TRADINGVIEW,
        lambda head: header_has("time", "open", "high", "low", "close")(head) and head.fields(0, ",")[:1] == ["time"],
        columns="time open high low close [Volume] [plots]", stamp="open", zone="in file", symbol="user", source="know",
        quirks="epoch seconds, or ISO with the offset of the chart's zone; columns of plots are not read, two may have one name",
    ),
    preset(
        "kibot", "bars of Kibot", _KIBOT, line_is(r"\d\d/\d\d/\d{4}(,\d\d:\d\d)?(,[0-9.]+){5}"),
        columns="mm/dd/yyyy [hh:mm] open high low close volume, no header", stamp="open", zone="America/New_York", symbol="user",
        source="doc",
        quirks="adjusted unless ordered otherwise (the file does not say); daily files have no time",
    ),
    preset(
        "firstrate", "bars of FirstRate Data", _FIRSTRATE, line_is(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d)?(,[0-9.]+){4,5}"),
        columns="yyyy-mm-dd HH:MM:SS open high low close volume, no header", stamp="open", zone="America/New_York", symbol="user",
        source="know",
        quirks="minutes without trades are absent",
    ),
    preset(
        "polygon", "flat files of aggregates of Polygon (Massive)", _POLYGON, header_has("ticker", "window_start", "open"),
        columns="ticker volume open close high low window_start transactions", stamp="open", zone="in file", symbol="column", source="doc",
        quirks="open, close, high, low in this order; all tickers of a day in one file (.csv.gz); the file does not say how long its "
        "bars are",
    ),
    preset(
        "sierra_text", "bars exported as text from Sierra Chart", _SIERRA_TEXT, header_has("date", "time", "open", "last", "volume"),
        columns="Date, Time, Open, High, Low, Last, Volume, NumberOfTrades, BidVolume, AskVolume", stamp="open", zone="user", symbol="user",
        source="doc/know", quirks="blanks after commas; the zone is that of the chart or the file, often UTC",
    ),
    preset(
        "histdata", "one-minute bars of HistData", _HISTDATA,
        lambda head: line_is(r"\d{8} \d{6}(;[0-9.]+){4};0")(head) and _all_without_volume(head),
        columns="yyyymmdd hhmmss;open;high;low;close;0, no header", stamp="open", zone="Etc/GMT+5", symbol="user", source="doc",
        quirks="bid prices; New York standard time without daylight saving; volume is always 0, which is unknown",
    ),
    preset(
        "dukascopy", "bars of Dukascopy", _DUKASCOPY, header_has("gmt time", "open", "close"),
        columns="Gmt time,Open,High,Low,Close,Volume", stamp="open", zone="UTC", symbol="user", source="file",
        quirks="dd.mm.yyyy; volume in millions; flat bars of zero volume at weekends",
    ),
)  # fmt: skip
