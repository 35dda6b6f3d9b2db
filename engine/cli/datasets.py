"""`bellmark datasets`: the sources of bars, and what one holds."""

from __future__ import annotations

from typing import Any

import click

from bellmark.cli import Group
from bellmark.cli.output import json_option, plugins_option, print_json, print_table


@click.group(cls=Group)
def command() -> None:
    """Datasets: readers of files and synthetic markets.

    \b
    Example:
        bellmark datasets show sample
    """


@command.command("list")
@plugins_option
@json_option
def list_datasets(as_json: bool) -> None:
    """List the datasets.

    \b
    Example:
        bellmark datasets list
    """
    from bellmark.host import host

    entries = host().entries("dataset")
    if as_json:
        print_json([{"name": entry.name, "plugin": entry.plugin, "summary": entry.summary} for entry in entries])
    else:
        print_table(["name", "plugin", "what it is"], [(entry.name, entry.plugin, entry.summary) for entry in entries])


@command.command()
@click.argument("name")
@click.option("--set", "sets", metavar="KEY=VALUE", multiple=True, help="A setting of the dataset: --set path=bars.csv. Repeatable.")
@plugins_option
@json_option
def show(name: str, sets: tuple[str, ...], as_json: bool) -> None:
    """Read a dataset, check it, and print what it holds: symbols, bars, dates, instrument; halts, funding, rolls and quotes if any.

    \b
    Example:
        bellmark datasets show csv --set path=bars.csv --set stamp=close --set zone=UTC --set symbol=ES
    """
    from bellmark.describe import describe_dataset

    rows = describe_dataset(name, sets=sets)
    if as_json:
        print_json(rows)
        return
    found = ("gaps", "missing_bars", "identical_duplicates", "outside_session", "zero_volume_bars", "unknown_volume_bars")
    events = [name for name in ("halted_bars", "funding_instants", "rolls", "quotes") if any(row[name] for row in rows)]
    keys = ("symbol", "bars", "first", "last", "tick_size", "contract_multiplier", "currency", *found, *events)
    columns = [key.replace("_", " ") for key in keys]
    numbers = [key.replace("_", " ") for key in ("bars", *found, *(name for name in events if name != "quotes"))]
    rare = ("identical_duplicates", "outside_session", "zero_volume_bars", "unknown_volume_bars")
    spare = [key.replace("_", " ") for key in (*rare, "currency", "contract_multiplier", "missing_bars")]
    print_table(columns, [[_cell(row[key]) for key in keys] for row in rows], right=numbers, spare=spare)


def _cell(value: Any) -> Any:
    return ("yes" if value else "no") if isinstance(value, bool) else value
