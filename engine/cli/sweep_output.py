"""How a sweep is printed: the best combinations, and what the best is worth after so many tries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import click

from bellmark.cli.output import caution, print_table, warn
from bellmark.cli.results import SPARE, TABLE


def print_sweep(document: Mapping[str, Any], top: int = 10) -> None:
    """The `top` best rows of a sweep's document, the number tried, the deflated Sharpe ratio, and every warning."""
    from bellmark.reporting.text import date, plural
    from bellmark.reporting.text import metric as shown

    rank, part = document["rank"], document["part"]
    metrics = sorted((one for one in document["metrics"] if one["name"] in (*TABLE, rank)), key=lambda one: one["name"] != rank)
    keys, names = [axis["key"] for axis in document["sweeps"]], [one["name"].replace("_", " ") for one in metrics]
    rows = []
    for row in document["rows"][:top]:
        cells = (shown(row["metrics"][one["name"]]["value"], one["unit"]) for one in metrics)
        rows.append([row["rank"], *map(_setting, row["settings"].values()), *cells])
    bars = f"{plural(part['bars'], 'bar')} of {' '.join(part['symbols'])}"
    title = (
        f"{document['strategy']} on {part['split']}: {date(part['start_ns'])} to {date(part['end_ns'])}, {bars}, after costs\n"
        f"best {len(rows)} of {plural(len(document['rows']), 'combination')} by {rank.replace('_', ' ')}"
    )
    spare = [name for name in SPARE if name != names[0]]
    print_table(["rank", *keys, *names], rows, right=("rank", *keys, *names), title=title, spare=spare)
    for line in _lines(document):
        click.echo(line)
    for text in document["cautions"]:
        caution(text)
    for text in document["warnings"]:
        warn(text)


def _lines(document: Mapping[str, Any]) -> list[str]:
    from bellmark.reporting.text import number, plural

    tried, found, refused = document["tried"], document["deflated_sharpe_ratio"], document["refused"]
    lines = [f"tried: {plural(tried, 'configuration')} on these bars, this sweep and all before it"]
    tries = "1 try" if tried == 1 else f"{tried:,} tries"
    if found["value"] is None:
        lines.append(f"deflated Sharpe ratio: undefined: {found['reason']}")
    else:
        meaning = f"probability that its true Sharpe ratio is above the best that {tries} give by luck"
        lines.append(f"deflated Sharpe ratio: {number(found['value'], 3)} ({meaning})")
    if found["expected_maximum_sharpe"] is not None:
        year = math.sqrt(document["periods_per_year"])
        best, luck = number(found["sharpe"] * year), number(found["expected_maximum_sharpe"] * year)
        lines.append(f"Sharpe ratio a year: {best} of the best, {luck} by the luck of {tries} alone")
    if refused["count"]:
        first = next(iter(refused["reasons"]))
        lines.append(f"refused: {plural(refused['count'], 'combination')}, the first because: {first}")
    missing = document["rows"][0]["metrics"][document["rank"]]
    if missing["value"] is None:
        lines.append(f"nothing to rank by: {document['rank']} is undefined: {missing['reason']}")
    return lines


def _setting(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.10g}" if isinstance(value, float) else str(value)
