"""`bellmark instruments`: what is known of contracts, shares and coins by name, with the source of each figure."""

from __future__ import annotations

from typing import Any

import click

from bellmark.cli import Group
from bellmark.cli.output import json_option, print_json, print_table


@click.group(cls=Group)
def command() -> None:
    """Instruments: ticks, multipliers, hours and default costs by name, each figure with its source.

    \b
    Example:
        bellmark instruments show ES
    """


@command.command("list")
@click.argument("file", required=False)
@json_option
def list_instruments(file: str | None, as_json: bool) -> None:
    """List the built-in instruments, or those of a TOML FILE.

    \b
    Example:
        bellmark instruments list
    """
    from bellmark import instruments

    rows = [listing.describe() for listing in (instruments.built_in() if file is None else instruments.read(file)).values()]
    if as_json:
        print_json(rows)
        return
    keys = ("tick_size", "contract_multiplier", "lot_size", "currency", "session")
    cells = [(row["name"], row["title"], *(_value(row, key) for key in keys)) for row in rows]
    print_table(["name", "what it is", "tick", "multiplier", "lot", "currency", "session"], cells, right=["tick", "multiplier", "lot"])


@command.command()
@click.argument("name")
@click.option("--toml", "as_toml", is_flag=True, help="Print the sections of a profile that say the same.")
@json_option
def show(name: str, as_toml: bool, as_json: bool) -> None:
    """Print every figure of an instrument: value, source, date, and whether it is an assumption. NAME may be FILE.toml or FILE.toml:NAME.

    \b
    Example:
        bellmark instruments show ES
    """
    from bellmark import instruments

    listing = instruments.find(name)
    if as_json:
        print_json(listing.describe())
    elif as_toml:
        click.echo(instruments.profile_text(listing), nl=False)
    else:
        title = f"{listing.name}: {listing.title}"
        rows = [
            (place, figure.value, figure.date or None, "yes" if figure.assumed else None, figure.source or None)
            for place, figure in listing.sources.items()
        ]
        print_table(["figure", "value", "as of", "assumed", "source"], [[_text(cell) for cell in row] for row in rows], title=title)


def _value(row: dict[str, Any], key: str) -> Any:
    return _text(row["figures"].get(key, {}).get("value"))


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.10g}" if isinstance(value, int | float) else value
