"""The ledger of a backtest as polars frames. Stamps are UTC closes of bars, prices and money in currency, lots signed; null is unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bellmark import records
from bellmark.records import Row
from bellmark.results import Backtest, LaneResult

if TYPE_CHECKING:
    import polars


def equity(result: Backtest) -> polars.DataFrame:
    """A row an account and point: equity, position and exposure.

    position is in lots; an account of several symbols has a column `position_SYMBOL` each instead, and gross_exposure beside exposure.
    """
    import polars

    frames = []
    for lane in result.lanes:
        columns: dict[str, Any] = {"ts_event": lane.stamp_T, "equity": lane.equity_T / 1e9}
        if lane.position_ST is None or len(lane.symbols) == 1:
            columns |= {"position": lane.position_T, "exposure": lane.exposure_T}
        else:
            columns |= {f"position_{symbol}": lane.position_ST[place] for place, symbol in enumerate(lane.symbols)}
            columns |= {"exposure": lane.exposure_T, "gross_exposure": lane.gross_exposure_T}
        head = (polars.lit(lane.learner, dtype=polars.Int64).alias("learner"), polars.lit(lane.symbol).alias("symbol"))
        frames.append(polars.DataFrame(columns).with_columns(_stamp("ts_event")).select(*head, polars.all()))
    return polars.concat(frames)


def fills(result: Backtest) -> polars.DataFrame:
    """A row a fill; see `bellmark.records.fill_rows`."""
    from bellmark.market import CAUSES

    frames = []
    for lane in result.lanes:
        table = lane.fills
        columns = {name: table[name] for name in ("lots", "maker", "notional", "fee", "spread", "slippage")}
        columns |= {name: np.array(records.in_currency(lane, table, name)) for name in ("price", "reference")}
        frames.append(_of_lane(lane, table, columns | {"cause": [CAUSES[code] for code in table["cause"]]}))
    order = ("learner", "symbol", "ts_event", "bar", "cause", "lots", "price", "reference")
    return _joined(frames).select(*order, "notional", "fee", "spread", "slippage", "maker")


def rejections(result: Backtest) -> polars.DataFrame:
    """A row a refused order; see `bellmark.records.rejection_rows`."""
    from bellmark.market import REASONS

    frames = [
        _of_lane(lane, lane.rejections, {"lots": lane.rejections["lots"], "reason": [REASONS[code] for code in lane.rejections["reason"]]})
        for lane in result.lanes
    ]
    return _joined(frames)


def trades(result: Backtest) -> polars.DataFrame:
    """A row a round trip; see `bellmark.records.trade_rows`."""
    import polars

    text, number, whole = polars.String, polars.Float64, polars.Int64
    schema = {"learner": whole, "symbol": text, "entry": text, "exit": text, "lots": whole, "entry_price": number, "exit_price": number}
    frame = _frame(records.trade_rows(result), schema | {"profit": number, "cost": number, "exit_cause": text})
    return frame.with_columns(_moment("entry"), _moment("exit"))


def decisions(result: Backtest) -> polars.DataFrame:
    """A row a decision; see `bellmark.records.decision_rows`.

    The fills of a decision are summed: fill_lots, fill_price (mean over the lots), fill_causes; refused joins the reasons. Values that were
    kept stand in columns `q LABEL` and `legal LABEL`, one an action.
    """
    import polars

    text, number, whole = polars.String, polars.Float64, polars.Int64
    schema: dict[str, Any] = {"learner": whole, "symbol": text, "ts": text, "bar": whole, "close": number, "action": whole}
    schema |= {"decision": text, "exposure": number, "position": whole, "order": whole, "target": whole}
    schema |= {"fill_lots": whole, "fill_price": number, "fill_causes": text, "refused": text}
    if any(lane.q_TA is not None for lane in result.lanes):
        labels = [result.action_space.label(action) for action in range(result.action_space.A)]
        schema |= {f"q {label}": number for label in labels} | {f"legal {label}": polars.Boolean for label in labels}
    frame = _frame((_flat(row) for row in records.decision_rows(result)), schema)
    return frame.with_columns(_moment("ts")).rename({"ts": "ts_event"})


def _flat(row: Row) -> Row:
    fills, size = row["fills"], sum(abs(fill["lots"]) for fill in row["fills"])
    flat = {key: value for key, value in row.items() if key not in ("q", "legal", "fills", "refused")}
    flat["fill_lots"] = sum(fill["lots"] for fill in fills)
    flat["fill_price"] = sum(abs(fill["lots"]) * fill["price"] for fill in fills) / size if size else None
    flat["fill_causes"] = ", ".join(dict.fromkeys(fill["cause"] for fill in fills)) or None
    flat["refused"] = "; ".join(dict.fromkeys(one["reason"] for one in row["refused"])) or None
    for name in ("q", "legal"):
        flat |= {f"{name} {label}": value for label, value in (row[name] or {}).items()}
    return flat


def _frame(rows: Iterable[Row], schema: Mapping[str, Any]) -> polars.DataFrame:
    import polars

    columns: dict[str, list[Any]] = {name: [] for name in schema}
    for row in rows:
        for name, values in columns.items():
            values.append(row[name])
    return polars.DataFrame(columns, schema=dict(schema))


def _of_lane(lane: LaneResult, table: Any, columns: Mapping[str, Any]) -> polars.DataFrame:
    import polars

    symbols = [lane.symbols[place] for place in table["symbol"].tolist()]
    frame = polars.DataFrame({"ts_event": table["stamp"], "bar": table["bar"], **columns})
    head = (polars.lit(lane.learner, dtype=polars.Int64).alias("learner"), polars.Series("symbol", symbols, dtype=polars.String))
    return frame.with_columns(_stamp("ts_event")).select(*head, polars.all())


def _joined(frames: list[polars.DataFrame]) -> polars.DataFrame:
    import polars

    texts = [polars.col(name).cast(polars.String) for name in ("cause", "reason") if name in frames[0].columns]  # no row, no type
    return polars.concat([frame.with_columns(texts) for frame in frames])


def _stamp(name: str) -> polars.Expr:
    import polars

    return polars.from_epoch(name, time_unit="ns").dt.replace_time_zone("UTC")


def _moment(name: str) -> polars.Expr:
    import polars

    return polars.col(name).str.strip_chars_end("Z").str.to_datetime(time_unit="ns", strict=True).dt.replace_time_zone("UTC")
