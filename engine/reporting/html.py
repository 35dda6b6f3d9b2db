"""The report as one HTML file that needs no network: text and tables without scripts, charts by an inlined Bokeh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bellmark.reporting import tables
from bellmark.reporting.charts import bokeh_script, embedded, figures
from bellmark.reporting.palette import Style, exposure_color, heat_color, styles_of
from bellmark.reporting.text import date, metric, money, number, percent, unit_text

TITLES = {
    "equity": "Equity",
    "drawdown": "Under water: distance from the highest equity so far",
    "exposure": "Exposure: position value over equity",
}
UNITS = {"drawdown": "% of peak equity", "exposure": "% of equity, short below zero"}
KEY_METRICS = ("total_return", "sharpe_ratio", "max_drawdown", "costs", "turnover")


def html_text(content: Mapping[str, Any]) -> str:
    """The whole page. Every name in the content is escaped."""
    styles = styles_of(content)
    figs = figures(content, styles)
    document, roots = embedded(figs)
    return (
        _environment()
        .get_template("report.html")
        .render(
            content=content,
            bokeh=bokeh_script(),
            document=document,
            roots=roots,
            curves=[_curve(content, name, styles) for name in TITLES if content["charts"][name]["lines"]],
            training=[_training(chart, styles) for chart in content["training"]["charts"]],
            keys=_keys(content),
            heat=_heat(content),
            mix=_mix(content),
            months=tables.month_table(content),
            metrics=tables.metric_table(content),
            conventions=tables.convention_table(content),
            drawdowns=tables.drawdown_table(content),
            costs=tables.cost_table(content),
            causes=tables.cause_table(content),
            rejections=tables.rejection_table(content),
            rules=tables.rule_table(content),
            trades=tables.trade_summary_table(content),
            trade_list=tables.trade_list(content),
            positions=tables.open_table(content),
            provenance=tables.provenance_table(content),
            first=date(content["part"]["start_ns"]),
            last=date(content["part"]["end_ns"]),
        )
    )


def _environment() -> Any:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("bellmark.reporting", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment


def _legend(lines: Sequence[Mapping[str, Any]], styles: Mapping[str, Style]) -> list[dict[str, Any]]:
    """One entry a kind of line: the thin learner lines share theirs."""
    entries: dict[str, dict[str, Any]] = {}
    for line in lines:
        text = "each learner" if line["role"] == "learner" else line["label"]
        entries.setdefault(text, {"text": text, "style": styles[line["label"]]})
    return list(entries.values())


def _curve(content: Mapping[str, Any], name: str, styles: Mapping[str, Style]) -> dict[str, Any]:
    lines = content["charts"][name]["lines"]
    unit = UNITS.get(name, content["currency"])
    return {
        "name": name,
        "title": TITLES[name],
        "unit": unit,
        "alt": _alternative(content, name),
        "legend": _legend(lines, styles),
        "table": tables.chart_table(content, name, f"{TITLES[name]} ({unit})"),
    }


def _alternative(content: Mapping[str, Any], name: str) -> str:
    """What a chart shows, in words, with the numbers that matter."""
    columns = content["charts"][name]["table"]["columns"]
    lines = content["charts"][name]["lines"]
    span = f"from {date(content['part']['start_ns'])} to {date(content['part']['end_ns'])}"
    if name == "equity":
        ends = "; ".join(f"{column['label']} ends at {money(column['value'][-1])}" for column in columns)
        return f"Line chart of equity {span}. {ends}."
    lowest = "; ".join(f"{line['label']} {percent(min(line['value']))} to {percent(max(line['value']))}" for line in lines)
    return f"Line chart of {'drawdown' if name == 'drawdown' else 'exposure'} {span}. Lowest to highest: {lowest}."


def _training(chart: Mapping[str, Any], styles: Mapping[str, Style]) -> dict[str, Any]:
    ends = "; ".join(f"{line['label']} {number(line['value'][0], 4)} to {number(line['value'][-1], 4)}" for line in chart["lines"])
    return {
        "name": f"training_{chart['name']}",
        "title": chart["title"],
        "unit": chart["unit"],
        "alt": f"Line chart over epochs, first to last: {ends}.",
        "legend": _legend(chart["lines"], styles),
        "table": tables.training_table(chart),
    }


def _keys(content: Mapping[str, Any]) -> list[dict[str, str]]:
    """The few numbers under the headline: the median learner's (the first account's where there is no learner)."""
    infos = {info["name"]: info for info in content["metrics"]}
    learners = [account for account in content["accounts"] if account["kind"] == "learner"]
    values = content["median"] or content["accounts"][0]["metrics"]
    cards = []
    for name in KEY_METRICS:
        if name not in infos:
            continue
        unit, found, signed = infos[name]["unit"], values[name], name == "total_return"
        spread = [one["metrics"][name]["value"] for one in learners if one["metrics"][name]["value"] is not None]
        note = f"learners {metric(min(spread), unit, signed)} to {metric(max(spread), unit, signed)}" if len(spread) > 1 else ""
        cards.append(
            {
                "name": name.replace("_", " "),
                "value": metric(found["value"], unit, signed) if found["value"] is not None else "undefined",
                "unit": unit_text(unit),
                "note": note or (found["reason"] or ""),
            }
        )
    return cards


def _heat(content: Mapping[str, Any]) -> dict[str, Any] | None:
    if not content["months"]["columns"] or not content["months"]["months"]:
        return None
    names, years = tables.heat_years(content)
    largest = max((abs(value) for _, values, _ in years for value in values if value is not None), default=0.0)

    def cell(value: float | None, scale: float) -> dict[str, str]:
        return {"text": percent(value, True) if value is not None else "", "color": heat_color(value or 0.0, scale)}

    whole = max((abs(value) for _, _, value in years if value is not None), default=0.0)
    rows = [{"year": year, "cells": [cell(v, largest) for v in values], "total": cell(total, whole)} for year, values, total in years]
    label = content["months"]["columns"][0]["label"]
    best = max((v, f"{y}-{k + 1:02d}") for y, values, _ in years for k, v in enumerate(values) if v is not None)
    worst = min((v, f"{y}-{k + 1:02d}") for y, values, _ in years for k, v in enumerate(values) if v is not None)
    alt = f"Returns of {label} by month. Best {best[1]} with {percent(best[0], True)}, worst {worst[1]} with {percent(worst[0], True)}."
    return {"names": names, "rows": rows, "label": label, "alt": alt}


def _mix(content: Mapping[str, Any]) -> dict[str, Any] | None:
    actions = content["actions"]
    if not actions["rows"]:
        return None
    largest = max(abs(exposure) for exposure in actions["exposures"])
    levels = [
        {"text": f"{exposure:+.2f}" if exposure else "flat", "color": exposure_color(exposure, largest)}
        for exposure in actions["exposures"]
    ]
    rows = [{"label": row["label"], "parts": _bar_parts(row["share"], levels)} for row in actions["rows"]]
    said = []
    for row in actions["rows"]:
        top = row["share"].index(max(row["share"]))
        said.append(f"{row['label']} chose {levels[top]['text']} most ({percent(row['share'][top])})")
    return {"levels": levels, "rows": rows, "alt": "; ".join(said) + ".", "table": tables.action_table(content)}


def _bar_parts(share: Sequence[float], levels: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    return [{"width": f"{100.0 * part:.4f}%", "percent": percent(part), **levels[k]} for k, part in enumerate(share) if part]
