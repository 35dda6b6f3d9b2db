"""Bars of Interactive Brokers, as the libraries of its API save them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bellmark.datasets.formats.canonical import Cells, Layout
from bellmark.datasets.formats.presets import OHLC, header_has, preset
from bellmark.datasets.formats.streams import describe
from bellmark.errors import DataError

if TYPE_CHECKING:
    import polars

_IB_STAMP = r"^([0-9]{8})(?:\s+([0-9]{1,2}:[0-9]{2}:[0-9]{2})(?:\s+([A-Za-z_+\-/0-9]+))?)?$"


def _ib_cells(cells: Cells) -> Cells:
    """-1 stands for no volume, average and count; the zone of a stamp is its last word."""
    import polars as pl

    gone = [name for name in ("volume", "vwap", "trades") if name in cells.frame.columns]
    none = [pl.when(~pl.col(name).str.contains(r"^\s*-1(\.0*)?\s*$").fill_null(False)).then(pl.col(name)).alias(name) for name in gone]
    cells = cells.with_columns(*none)
    stamp = cells.frame["stamp"].str.strip_chars()
    if stamp.str.contains(r"^[0-9]{10,}$").fill_null(True).all():
        return cells
    parts = stamp.str.extract_groups(_IB_STAMP).struct.unnest()
    parts.columns = ["date", "time", "zone"]
    text, zone = _ib_stamp(cells, stamp, parts)
    return replace(cells.with_columns(text), zone=zone)


def _ib_stamp(cells: Cells, stamp: polars.Series, parts: polars.DataFrame) -> tuple[polars.Series, str]:
    """Stamps in the form of ISO 8601 without their zone, and the zone, of which a file has one."""
    import polars as pl

    zones = parts["zone"].fill_null("")
    other = (zones != zones[0]).arg_true()
    if len(other):
        row = int(other[0])
        raise DataError(
            f"{cells.place.row(row)}: expected one zone in the stamps of a file, found {describe(stamp[0])} and {describe(stamp[row])}"
        )
    text = parts.select(pl.concat_str(["date", "time"], separator=" ", ignore_nulls=True).alias("stamp"))["stamp"]
    text = text.str.replace(r"^([0-9]{4})([0-9]{2})([0-9]{2})", "${1}-${2}-${3}")
    return pl.select(pl.when(parts["date"].is_null()).then(stamp).otherwise(text).alias("stamp")).to_series(), str(zones[0])


_IB = Layout(
    "bars",
    {**OHLC, "volume": "volume", "vwap": ("average", "wap"), "trades": ("barcount", "bar_count")},
    ("date",),
    optional=("volume", "vwap", "trades"),
    cells=_ib_cells,
)
FORMATS = (
    preset(
        "ib", "bars of Interactive Brokers, as API libraries save them", _IB, header_has("date", "open", "high", "low", "close", "average",
        "barcount"),
        columns="date open high low close volume average barCount", stamp="open", zone="in file or user", symbol="user", source="know",
        quirks="stamps '20240304 09:30:00 US/Eastern', epoch seconds or yyyymmdd; -1 = no volume, average, count (MIDPOINT, BID, ASK)",
    ),
)  # fmt: skip
