"""Bars and funding of crypto exchanges: Binance's own files, and CryptoDataDownload's."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from bellmark import clock
from bellmark.datasets.formats.canonical import Cells, Layout
from bellmark.datasets.formats.layout import RowFacts
from bellmark.datasets.formats.presets import OHLC, OHLCV, header_has, line_is, preset
from bellmark.datasets.formats.streams import Member
from bellmark.datasets.formats.text import Headed
from bellmark.datasets.stamps import epoch_units
from bellmark.errors import DataError

_USUAL_SHARE = 0.9
KLINES = (
    "open_time",
    "open",
    "high",
    "low",
    "close",
    "volume",
    "close_time",
    "quote_volume",
    "count",
    "taker_buy_base",
    "taker_buy_quote",
    "ignore",
)
_NAMED = re.compile(r"([A-Z0-9]+(?:_[A-Z0-9]+)?)-(?:\d+[smhdw]|1mo|fundingRate)-\d{4}-\d{2}(?:-\d{2})?\.(?:csv|zip)", re.IGNORECASE)


def _binance_name(member: Member) -> str | None:
    found = _NAMED.fullmatch(member.inner)
    return None if found is None else found[1].upper()


def _binance_length(cells: Cells, facts: RowFacts) -> RowFacts:
    """The commonest distance from open to close time, which ends one unit before the next open; months have none."""
    import polars as pl

    opens, closes = (cells.frame[name].str.strip_chars() for name in ("stamp", "_close_time"))
    unit_T = epoch_units(closes.str.len_bytes().fill_null(0).to_numpy())
    open_unit_T = epoch_units(opens.str.len_bytes().to_numpy())
    last_T, first_T = (column.cast(pl.Int64, strict=False).fill_null(0).to_numpy() for column in (closes, opens))
    spans, counts = np.unique((last_T + 1) * unit_T - first_T * open_unit_T, return_counts=True)
    best = int(np.argmax(counts))
    usual = counts[best] >= _USUAL_SHARE * counts.sum() and spans[best] > 0
    return replace(facts, bar_seconds=float(spans[best] / clock.SECOND)) if usual else facts


_BINANCE = Layout(
    "bars",
    {**OHLCV, "_close_time": "close_time", "quote_volume": ("quote_volume", "quote_asset_volume"), "trades": ("count", "number_of_trades")},
    ("open_time",),
    order=(KLINES,),
    header="maybe",
    facts=RowFacts("open", price_adjustment="raw"),
    finish=_binance_length,
    name_of=_binance_name,
)
_BINANCE_FUNDING = Layout(
    "funding",
    {"rate": "last_funding_rate", "interval_hours": "funding_interval_hours", "mark": "mark_price", "symbol": "symbol"},
    ("calc_time",),
    optional=("mark", "symbol"),
    facts=RowFacts(""),
    name_of=_binance_name,
)


_OLD_FORMS = ("%Y-%m-%d %I:%M %p", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d")


def _crypto_layout(names: list[str], source: str) -> Layout:
    """The columns of volume carry the names of coins: the first is counted in the coin itself, the second in the quote currency."""
    volumes = [name for name in names if name.strip().casefold().startswith("volume")]
    if not volumes:
        raise DataError(f"{source}: volume: no column that begins with 'Volume' (the file has: {', '.join(map(repr, names))})")
    unix = any(name.strip().casefold() == "unix" for name in names)
    columns: dict[str, str | tuple[str, ...]] = {**OHLC, "symbol": "symbol", "volume": volumes[0], "trades": ("tradecount", "trade count")}
    if len(volumes) > 1:
        columns["quote_volume"] = volumes[1]
    facts = RowFacts("open", zone="UTC", price_adjustment="raw", order="descending")
    if unix:
        return Layout("bars", columns, ("unix",), optional=("trades",), facts=facts)
    return Layout("bars", columns, ("date",), optional=("trades",), forms=_OLD_FORMS, facts=facts, cells=_with_minutes)


def _with_minutes(cells: Cells) -> Cells:
    """`2019-10-17 09-AM` as `2019-10-17 09:00 AM`: an hour of twelve is only parsed beside minutes."""
    import polars as pl

    return cells.with_columns(pl.col("stamp").str.strip_chars().str.replace(r" (0[1-9]|1[0-2])-([AP]M)$", " ${1}:00 ${2}"))


_CRYPTO = Headed(_crypto_layout, preamble=r"(?i)(https?://|timestamps are |.*cryptodatadownload\.com)")


FORMATS = (
    preset(
        "binance", "spot and futures klines of Binance", _BINANCE,
        lambda head: line_is(r"\d{13}(\d{3})?(,[0-9.]+){11}")(head) or header_has("open_time", "close_time", "open", "count")(head),
        columns=" ".join(KLINES), stamp="open", zone="in file", symbol="file name or user", source="doc/know",
        quirks="header or none; milliseconds until 2024 and microseconds since 2025 in spot files, told by the digits of each row",
    ),
    preset(
        "binance_funding", "funding rates of Binance futures", _BINANCE_FUNDING, header_has("calc_time", "last_funding_rate"),
        columns="calc_time funding_interval_hours last_funding_rate", stamp="", zone="in file", symbol="file name or user", source="know",
        quirks="settlements are stamped some milliseconds late; the interval is not always 8 hours",
    ),
    preset(
        "cryptodatadownload", "bars of CryptoDataDownload, now and old", _CRYPTO,
        lambda head: any(header_has("date", "symbol", "open", "high", line=line)(head)
                         and any(name.startswith("volume ") for name in head.fields(line, ",")) for line in (0, 1)),
        kinds=("bars",), columns="[line with the address] [unix] date symbol open high low close 'Volume BTC' 'Volume USDT' [tradecount]",
        stamp="open", zone="UTC", symbol="column", source="file/know",
        quirks="newest row first; old files: '2019-10-17 09-AM'; the first volume counts coins, the second (kept as quote_volume) money",
    ),
)  # fmt: skip
