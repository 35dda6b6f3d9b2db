"""Tables of <TICKER>,<PER>,<DATE>,<TIME>,...: MetaStock-like ASCII and the bulk files of Stooq."""

from __future__ import annotations

from dataclasses import replace

from bellmark.datasets.formats.canonical import Cells, Layout, one_value
from bellmark.datasets.formats.layout import RowFacts
from bellmark.datasets.formats.presets import OHLC, header_has, preset
from bellmark.datasets.formats.streams import describe
from bellmark.errors import DataError


def _period(cells: Cells) -> Cells:
    """Daily rows have no time of day: it is cut off."""
    import polars as pl

    value = one_value(cells, "_period", "period").upper()
    if value == "D":
        clear = cells.frame["stamp"].str.contains(r"^\s*[0-9]{8}(\s+0+)?\s*$").fill_null(True)
        if not clear.all():
            row = int((~clear).arg_true()[0])
            raise DataError(f"{cells.place.row(row)}: expected no time of day in a daily row, found {describe(cells.frame['stamp'][row])}")
        return cells.with_columns(pl.col("stamp").str.strip_chars().str.slice(0, 8))
    if not value.isdigit() or int(value) < 1:
        raise DataError(f"{cells.place.row(0)}, column {cells.names['_period']!r}: expected minutes or D, found {describe(value)}")
    return cells


def _period_length(cells: Cells, facts: RowFacts) -> RowFacts:
    value = str(cells.frame["_period"][0]).strip().upper()
    return replace(facts, bar_seconds=86_400.0 if value == "D" else int(value) * 60.0)


_TICKER_TABLE = Layout(
    "bars",
    {**OHLC, "symbol": "ticker", "_period": "per", "volume": "vol", "open_interest": "openint"},
    ("date", "time"),
    optional=("volume", "open_interest"),
    forms=("%Y%m%d %H%M%S", "%Y%m%d"),
    cells=_period,
    finish=_period_length,
)
FORMATS = (
    preset(
        "stooq_bulk", "bulk files of Stooq, one ticker each", replace(_TICKER_TABLE, doubtful=("stamp",)),
        header_has("ticker", "per", "date", "openint"),
        columns="<TICKER>,<PER>,<DATE>,<TIME>,<OPEN>,<HIGH>,<LOW>,<CLOSE>,<VOL>,<OPENINT>", stamp="open [unverified]", zone="user",
        symbol="column", source="know [unverified]",
        quirks="<PER> is minutes or D; the zone is said to be Europe/Warsaw [unverified], so you must say it; suffix .US of tickers is "
        "kept",
    ),
    preset(
        "metastock", "MetaStock-like ASCII", replace(_TICKER_TABLE, stamp_said=True, facts=RowFacts("")),
        header_has("ticker", "per", "date", without=("openint",)),
        columns="<TICKER>,<PER>,<DATE>,<TIME>,<OPEN>,<HIGH>,<LOW>,<CLOSE>,<VOL>", stamp="user", zone="user", symbol="column", source="doc",
        quirks="every vendor defines stamps and zone for itself; <PER> is minutes or D",
    ),
)  # fmt: skip
