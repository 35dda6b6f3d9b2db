"""CSV of Databento, raw or pretty.

Bars are stamped with their open, trades with ts_recv, the time at which the vendor received them, by which the files are sorted: ts_event,
the exchange's own, may go back. Raw prices are integers of 1e-9; INT64_MAX stands for none.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from bellmark.datasets.formats.canonical import Cells, Layout, one_value
from bellmark.datasets.formats.cells import divided
from bellmark.datasets.formats.layout import PRICES, RowFacts
from bellmark.datasets.formats.presets import header_has, preset
from bellmark.datasets.formats.streams import describe
from bellmark.datasets.formats.text import Headed
from bellmark.errors import DataError

if TYPE_CHECKING:
    import polars

UNIT = 1e9
UNDEFINED = 2**63 - 1
_BAR_SECONDS = {"32": 1.0, "33": 60.0, "34": 3600.0, "35": 86_400.0}


# CSV


def _csv_layout(names: list[str], source: str) -> Layout:
    folded = [name.strip().casefold() for name in names]
    beside: dict[str, str | tuple[str, ...]] = {"symbol": ("symbol", "instrument_id"), "_id": "instrument_id", "_rtype": "rtype"}
    optional = ("_id", "_rtype")
    if "open" in folded:
        columns = {**beside, **{name: name for name in PRICES}, "volume": "volume"}
        facts = RowFacts("open", price_adjustment="raw")
        return Layout("bars", columns, ("ts_event",), optional, facts=facts, cells=partial(_csv_cells, []), finish=_csv_length)
    if "action" in folded and "price" in folded and "bid_px_01" not in folded:
        columns = {**beside, "price": "price", "size": "size", "bid": "bid_px_00", "ask": "ask_px_00", "_action": "action"}
        stamp = "ts_recv" if "ts_recv" in folded else "ts_event"
        facts = RowFacts("", price_adjustment="raw")
        return Layout("ticks", columns, (stamp,), (*optional, "bid", "ask"), facts=facts, cells=partial(_csv_cells, []))
    raise DataError(
        f"{source}: expected bars (ohlcv), trades or tbbo, found columns {', '.join(names[:12])}; decode other schemas from DBN"
    )


def _csv_cells(said: list[bool], cells: Cells) -> Cells:
    """Prices as decimals. The symbol is the user's where the file has but an id. `said`: what the chunks before found of the file."""
    import polars as pl

    columns = {name: cells.frame[name].str.strip_chars() for name in (*PRICES, "price", "bid", "ask") if name in cells.frame.columns}
    raw = _raw(cells, columns, said)
    cells = cells.with_columns(*(_decimals(column) if raw else column for column in columns.values()))
    if cells.names["symbol"].strip().casefold() == "instrument_id" and cells.options.wanted and not cells.options.wanted[0].isdigit():
        one_value(cells, "symbol", "instrument, since --symbol names one")
        cells = cells.with_columns(pl.lit(cells.options.the_symbol).alias("symbol"))
    if "_action" in cells.frame.columns:
        other = (cells.frame["_action"].str.strip_chars() != "T").arg_true()
        if len(other):
            raise DataError(
                f"{cells.place.row(int(other[0]))}: expected trades alone (action T), found {cells.frame['_action'][int(other[0])]!r}"
            )
    return cells


def _raw(cells: Cells, columns: dict[str, polars.Series], said: list[bool]) -> bool:
    """Whether prices are integers of 1e-9: all of a file are, or none. Integers beside stamps as text may be either, and are refused."""
    found: dict[bool, tuple[int, str]] = {}
    for name, column in columns.items():
        whole = column.str.contains(r"^-?[0-9]+$")
        for raw, places in ((True, whole.fill_null(False)), (False, (~whole).fill_null(False) & (column != "").fill_null(False))):
            if raw not in found and places.any():
                found[raw] = int(places.arg_true()[0]), name
    if said and (not said[0]) in found:
        found = {said[0]: (0, next(iter(columns))), **found}
    if len(found) == 2:
        row, name = found[False] if not (said and not said[0]) else found[True]
        raise DataError(
            f"{cells.place.row(row)}, column {cells.names[name]!r}: expected prices in one form, integers of 1e-9 or decimals, in a file, "
            f"found {describe(columns[name][row])} among others"
        )
    if not found:
        return False
    said[:] = [next(iter(found))]
    row, name = found[said[0]]
    if said[0] and not cells.frame["stamp"].str.strip_chars().str.contains(r"^[0-9]+$").fill_null(True).all():
        raise DataError(
            f"{cells.place.row(row)}, column {cells.names[name]!r}: prices without a point, {describe(columns[name][row])}, beside stamps "
            "as text may be whole or counted in 1e-9; save prices with decimals, or stamps in ns, or take --format csv for whole prices"
        )
    return said[0]


def _decimals(column: polars.Series) -> polars.Series:
    """Integers of 1e-9 as numbers; the mark of an undefined price is none."""
    import polars as pl

    nano = column.cast(pl.Int64, strict=False)
    nano = pl.select(pl.when(nano != UNDEFINED).then(nano)).to_series()
    return divided(nano.cast(pl.Float64), UNIT).alias(column.name)


def _csv_length(cells: Cells, facts: RowFacts) -> RowFacts:
    if "_rtype" not in cells.frame.columns:
        return facts
    value = one_value(cells, "_rtype", "kind of record")
    if value not in _BAR_SECONDS:
        raise DataError(
            f"{cells.place.row(0)}, column 'rtype': expected 32, 33, 34 or 35 (bars of a second, minute, hour, day), found {value!r}"
        )
    return replace(facts, bar_seconds=_BAR_SECONDS[value])


FORMATS = (
    preset(
        "databento_csv", "CSV of Databento, raw or pretty: bars, trades, tbbo", Headed(_csv_layout),
        lambda head: header_has("ts_event", "rtype", "instrument_id", "open")(head) or header_has("ts_event", "rtype", "action",
        "price")(head),
        kinds=("bars", "ticks"), columns="ts_event rtype publisher_id instrument_id open high low close volume [symbol]", stamp="open",
        zone="in file", symbol="column, else the instrument's number", source="doc/file",
        quirks="raw: stamps in ns and prices as integers of 1e-9; pretty: ISO stamps, 9 decimals; bars without trades are absent",
    ),
)  # fmt: skip
