"""The tables of a report as text cells, made from the content alone; HTML and Markdown print the same ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bellmark.reporting.series import MEDIAN
from bellmark.reporting.text import DASH, MONTHS, count, date, metric, money, number, percent, plain, stamp, unit_text

Content = Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """Rows of text. The first column names the row; `text_columns` are the further ones that hold words, not numbers."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    text_columns: tuple[int, ...] = ()
    emphasis: tuple[int, ...] = ()


def metric_table(content: Content) -> Table:
    """Every metric for the median, the learners and the baselines."""
    accounts = content["accounts"]
    median = [MEDIAN] if _several(content) else []
    rows = []
    for info in content["metrics"]:
        found = [account["metrics"][info["name"]]["value"] for account in accounts]
        if median:
            found.insert(0, content["median"][info["name"]]["value"])
        signed = info["name"] in ("total_return", "cagr", "cagr_periods")
        rows.append((info["name"], *(metric(value, info["unit"], signed) for value in found)))
    head = ("metric", *median, *(account["label"] for account in accounts))
    title = f"Metrics (P = {plain(content['periods_per_year'])} periods a year)"
    return Table(title, head, tuple(rows), _reasons(content), emphasis=(1,))


def convention_table(content: Content) -> Table:
    """What each metric is, exactly: two programs that print a Sharpe ratio seldom mean the same number."""
    rows = [(info["name"], unit_text(info["unit"]), info["convention"]) for info in content["metrics"]]
    title = f"How each metric is computed (P = {plain(content['periods_per_year'])})"
    notes = ("r: simple return of a bar; n: number of bars; P: periods a year; equity is after all costs.",)
    return Table(title, ("metric", "unit", "convention"), tuple(rows), notes, text_columns=(1, 2))


def _reasons(content: Content) -> tuple[str, ...]:
    """Why a cell is empty: metrics of one account that lack for one reason stand together."""
    owners = [(account["label"], account["metrics"]) for account in content["accounts"]]
    if _several(content):
        owners.insert(0, (MEDIAN, content["median"]))
    notes = []
    for label, values in owners:
        by_reason: dict[str, list[str]] = {}
        for name, found in values.items():
            if found["reason"] is not None:
                by_reason.setdefault(found["reason"], []).append(name)
        notes += [f"{label}: {', '.join(names)}: {reason}" for reason, names in by_reason.items()]
    return tuple(notes)


def _several(content: Content) -> bool:
    return sum(account["kind"] == "learner" for account in content["accounts"]) > 1


def chart_table(content: Content, name: str, title: str) -> Table:
    """The values under a chart of equity, drawdown or exposure at evenly spaced bars."""
    table = content["charts"][name]["table"]
    shown = money if name == "equity" else percent
    rows = [(stamp(ns), *(shown(column["value"][row]) for column in table["columns"])) for row, ns in enumerate(table["stamp_ns"])]
    return Table(title, ("bar close (UTC)", *(column["label"] for column in table["columns"])), tuple(rows))


def month_table(content: Content) -> Table:
    """Returns by month, a row a month and a column an account."""
    months = content["months"]
    rows = [
        (month, *(percent(column["month"][row], True) for column in months["columns"])) for row, month in enumerate(months["months"])
    ] + [(year, *(percent(column["year"][row], True) for column in months["columns"])) for row, year in enumerate(months["years"])]
    return Table("Returns by month and year", ("period", *(column["label"] for column in months["columns"])), tuple(rows))


def drawdown_table(content: Content) -> Table:
    """The deepest drawdowns of each account with their dates."""
    rows = [
        (
            account["label"],
            percent(row["depth"]),
            date(row["peak_ns"]),
            date(row["valley_ns"]),
            date(row["recovery_ns"]) if row["recovery_ns"] is not None else "not yet",
            count(row["bars_underwater"]),
        )
        for account in content["accounts"]
        for row in account["drawdowns"]
    ]
    head = ("account", "depth", "peak", "valley", "recovery", "bars under water")
    note = "Peak: last bar on the high. Recovery: first bar back at it."
    return Table("Deepest drawdowns", head, tuple(rows), (note,))


def cost_table(content: Content) -> Table:
    """Costs by kind in currency, the profit before them and what is left."""
    kinds = list(dict.fromkeys(kind for account in content["accounts"] for kind in account["costs"]))
    rows = []
    for account in content["accounts"]:
        total = sum(account["costs"].values())
        profit = account["end_equity"] - content["start_equity"]
        costs = (money(account["costs"].get(kind, 0.0)) for kind in kinds)
        rows.append((account["label"], count(account["fills"]), money(account["gross"]), *costs, money(total), money(profit)))
    head = ("account", "fills", "profit before costs", *kinds, "all costs", "profit after costs")
    return Table(f"Costs by kind ({content['currency']})", head, tuple(rows))


def cause_table(content: Content) -> Table:
    """Fills by what caused them: orders, stops, targets, liquidations, rolls."""
    accounts = content["accounts"]
    causes = dict.fromkeys(cause for account in accounts for cause in account["fills_by_cause"])
    rows = [(cause, *(count(account["fills_by_cause"].get(cause, 0)) for account in accounts)) for cause in causes]
    head = ("cause", *(account["label"] for account in accounts))
    return Table("Fills by cause", head, tuple(rows), () if rows else ("Nothing was filled.",))


def rule_table(content: Content) -> Table:
    """Market rules: execution, sizing, and the settings that are not their defaults."""
    rows = [(rule["key"], _rule_value(rule["value"]), rule["unit"], rule["meaning"]) for rule in content["rules"]]
    note = "Settings of [market] that are not listed have their defaults."
    return Table("Market rules", ("rule", "value", "unit", "what it is"), tuple(rows), (note,), text_columns=(2, 3))


def _rule_value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return plain(value)
    return ", ".join(_rule_value(item) for item in value) if isinstance(value, list | tuple) else str(value)


def rejection_table(content: Content) -> Table:
    """Rejected orders by reason."""
    reasons = sorted({reason for account in content["accounts"] for reason in account["rejections"]})
    labels = [account["label"] for account in content["accounts"]]
    rows = [(reason, *(count(account["rejections"].get(reason, 0)) for account in content["accounts"])) for reason in reasons]
    return Table("Rejected orders by reason", ("reason", *labels), tuple(rows), () if rows else ("No order was rejected.",))


def open_table(content: Content) -> Table:
    """Positions that were still open at the end."""
    rows = [(account["label"], symbol, f"{lots:+,}") for account in content["accounts"] for symbol, lots in account["open_lots"].items()]
    notes = ("Valued at the last close; closing them would cost more.",) if rows else ("No position was open at the end.",)
    return Table("Positions open at the end", ("account", "symbol", "lots"), tuple(rows), notes, text_columns=(1,))


def trade_summary_table(content: Content) -> Table:
    """Trades of each account."""
    rows = []
    for account in content["accounts"]:
        found = account["trades"]
        counts = (count(found[key]) for key in ("closed", "open", "wins", "losses"))
        sums = (money(found[key]) for key in ("average_win", "average_loss", "best", "worst"))
        rows.append((account["label"], *counts, *sums, number(found["average_days"])))
    head = ("account", "closed", "open", "won", "lost", "average win", "average loss", "best", "worst", "average days")
    note = "A trade goes from flat to flat or to the other side. Profit is net of spread, slippage and fees, before funding."
    return Table(f"Trades ({content['currency']})", head, tuple(rows), (note,))


def trade_list(content: Content) -> Table | None:
    """The first trades of the learner in the middle by total return."""
    trades = content["trades"]
    if trades is None:
        return None
    rows = [
        (
            stamp(row["entry_ns"]),
            stamp(row["exit_ns"]) if row["exit_ns"] is not None else "open",
            row["symbol"],
            f"{row['lots']:+,}",
            money(row["profit"]),
            money(row["cost"]),
        )
        for row in trades["rows"]
    ]
    head = ("entry (UTC)", "exit (UTC)", "symbol", "largest lots", "profit", "cost")
    title = f"First trades of {trades['label']}, the one in the middle by total return ({len(rows):,} of {trades['total']:,})"
    return Table(title, head, tuple(rows), text_columns=(1, 2))


def action_table(content: Content) -> Table:
    """Share of decisions by target exposure."""
    actions = content["actions"]
    head = ("account", "decisions", *(f"{exposure:+.2f}" if exposure else "flat" for exposure in actions["exposures"]))
    rows = [(row["label"], count(row["decisions"]), *(percent(share) for share in row["share"])) for row in actions["rows"]]
    return Table("Share of decisions by target exposure", head, tuple(rows))


def training_table(chart: Mapping[str, Any]) -> Table:
    """The values under a training curve."""
    table = chart["table"]
    rows = [(count(epoch), *(number(column["value"][row], 4) for column in table["columns"])) for row, epoch in enumerate(table["epoch"])]
    return Table(f"{chart['title']} ({chart['unit']})", ("epoch", *(column["label"] for column in table["columns"])), tuple(rows))


def provenance_table(content: Content) -> Table:
    """What the report was made from and how to make it again."""
    facts = content["provenance"]
    trained = facts["trained_with"]
    rows = [
        ("command", facts["command"] or DASH),
        ("profile", content["title"]),
        ("profile hash", facts["profile_hash"] or DASH),
        ("data hash", facts["data_hash"] or DASH),
        ("seeds", ", ".join(str(seed) for seed in facts["seeds"]) or DASH),
        (
            "part of the data",
            f"{content['part']['split']}: {stamp(content['part']['start_ns'])} to {stamp(content['part']['end_ns'])} (UTC)",
        ),
        ("bars", count(content["part"]["bars"])),
        ("periods a year", f"{plain(content['periods_per_year'])}{' (' + content['session'] + ')' if content['session'] else ''}"),
        ("start equity", f"{money(content['start_equity'])} {content['currency']}"),
        ("versions", _pairs(facts["versions"])),
    ]
    rows += [(f"trained with: {key}", _plain(value)) for key, value in sorted(trained.items())]
    return Table("Provenance", ("what", "value"), tuple(rows), text_columns=(1,))


def _pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in values.items())


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return _pairs(value)
    if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        return ", ".join(" ".join(str(item[key]) for key in ("kind", "name", "plugin") if key in item) for item in value)
    return ", ".join(str(item) for item in value) if isinstance(value, list) else str(value)


def heat_years(content: Content) -> tuple[tuple[str, ...], list[tuple[str, list[float | None], float | None]]]:
    """The first column of the months as a calendar: month names, and (year, twelve values, the year's value) rows."""
    months = content["months"]
    column: dict[str, Sequence[float | None]] = months["columns"][0]
    value = dict(zip(months["months"], column["month"], strict=True))
    year_value = dict(zip(months["years"], column["year"], strict=True))
    return MONTHS, [(year, [value.get(f"{year}-{month:02d}") for month in range(1, 13)], year_value[year]) for year in months["years"]]
