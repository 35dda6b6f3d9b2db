"""MetaTrader 4 and 5: bars, quotes and trades as the terminals export them, in the time of the broker's server."""

from __future__ import annotations

from collections.abc import Callable

from bellmark.datasets.formats.canonical import Cells, Layout
from bellmark.datasets.formats.layout import RowFacts
from bellmark.datasets.formats.presets import OHLC, header_has, line_is, preset


def _quote_counts(cells: Cells) -> Cells:
    """A volume of 0 beside quotes means that the broker knows none."""
    import polars as pl

    text = pl.col("volume").str.strip_chars()
    none = text.str.contains(r"^0*(\.0*)?$") & ~pl.col("tick_volume").str.strip_chars().str.contains(r"^0*$")
    return cells.with_columns(pl.when(none.fill_null(False)).then(pl.lit(None, pl.String)).otherwise(pl.col("volume")).alias("volume"))


def _no_volume(cells: Cells) -> Cells:
    import polars as pl

    return cells.with_columns(pl.lit(None, pl.String).alias("volume"))


def _rows_with(*names: str) -> Callable[[Cells], Cells]:
    """Keeps the rows in which one of some cells is filled."""

    def cells_of(cells: Cells) -> Cells:
        import polars as pl

        return cells.where(pl.any_horizontal([pl.col(name).str.strip_chars().fill_null("") != "" for name in names]))

    return cells_of


_MT_FORMS = ("%Y.%m.%d %H:%M:%S%.f", "%Y.%m.%d %H:%M", "%Y.%m.%d")
_MT5_BARS = Layout(
    "bars",
    {**OHLC, "tick_volume": ("tickvol", "tick_volume"), "volume": ("vol", "volume"), "spread_points": "spread"},
    ("date", "time"),
    optional=("spread_points",),
    separator="\t",
    forms=_MT_FORMS,
    cells=_quote_counts,
)
_MT4 = Layout(
    "bars",
    {**OHLC, "tick_volume": "tickvol"},
    ("date", "time"),
    order=(("date", "time", "open", "high", "low", "close", "tickvol"),),
    header="never",
    forms=_MT_FORMS[1:],
    cells=_no_volume,
)
_MT5_QUOTES = Layout(
    "quotes", {"bid": "bid", "ask": "ask"}, ("date", "time"), separator="\t", forms=_MT_FORMS,
    facts=RowFacts("", blank_side="unchanged"), cells=_rows_with("bid", "ask"),
)  # fmt: skip
_MT5_TRADES = Layout(
    "ticks",
    {"price": "last", "size": "volume"},
    ("date", "time"),
    separator="\t",
    forms=_MT_FORMS,
    facts=RowFacts(""),
    cells=_rows_with("price"),
)
FORMATS = (
    preset(
        "mt5", "bars exported from MetaTrader 5", _MT5_BARS, header_has("date", "open", "tickvol", "vol", separator="\t"),
        columns="<DATE> <TIME> <OPEN> <HIGH> <LOW> <CLOSE> <TICKVOL> <VOL> <SPREAD>, tabs", stamp="open", zone="user", symbol="user",
        source="file",
        quirks="times are of the broker's server, nothing in the file says of which zone; often --tz America/New_York+07:00 (UTC+2, +3 "
        "in summer on US dates); TICKVOL counts quotes and is kept as tick_volume; VOL 0 beside quotes is unknown; SPREAD is kept as "
        "spread_points; daily files have no TIME",
    ),
    preset(
        "mt5_ticks", "quotes exported from MetaTrader 5", _MT5_QUOTES, header_has("date", "time", "bid", "ask", "last", separator="\t"),
        columns="<DATE> <TIME> <BID> <ASK> <LAST> <VOLUME> <FLAGS>, tabs", stamp="", zone="user", symbol="user", source="know",
        quirks="a blank side is unchanged; rows of trades alone are no quotes: format mt5_trades reads them",
    ),
    preset(
        "mt5_trades", "trades exported from MetaTrader 5", _MT5_TRADES, lambda head: False,
        columns="<DATE> <TIME> <BID> <ASK> <LAST> <VOLUME> <FLAGS>, tabs", stamp="", zone="user", symbol="user", source="know [unverified]",
        quirks="takes the rows that have a LAST",
    ),
    preset(
        "mt4", "history of MetaTrader 4", _MT4, line_is(r"\d{4}\.\d\d\.\d\d,\d\d:\d\d(,[0-9.]+){5}"),
        columns="date time open high low close tickvol, no header", stamp="open", zone="user", symbol="user", source="know",
        quirks="times are of the broker's server; the last column counts quotes: kept as tick_volume, the volume is unknown",
    ),
)  # fmt: skip
