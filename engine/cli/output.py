"""What commands share: results on stdout as a table or as one JSON document, messages on stderr, and the options of several commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click

_Function = TypeVar("_Function", bound=Callable[..., Any])
_UNSET_WIDTH = 10_000  # a table that nobody looks at is never wrapped

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON document.")
runs_option = click.option("--runs", metavar="DIR", help="Folder of the runs (default: [run] folder of the profile, `runs`).")


def _use_plugins(ctx: click.Context, option: click.Parameter, value: str | None) -> None:
    if value is not None:
        os.environ["BELLMARK_PLUGINS"] = value  # the host reads it, here and in processes that this one starts


plugins_option = click.option(
    "--plugins", metavar="DIR", expose_value=False, is_eager=True, callback=_use_plugins,
    help="Also load the plugins in this folder, one a file (or $BELLMARK_PLUGINS).",
)  # fmt: skip



def profile_options(function: _Function) -> _Function:
    """The options that change a profile."""
    seed = click.option("--seed", type=click.IntRange(min=0), help="Seed of the first learner: [learners] seed.")
    sets = click.option("--set", "sets", metavar="KEY=VALUE", multiple=True, help="Change one value: --set trainer.batch=128. Repeatable.")
    return sets(seed(function))


def print_json(document: Any) -> None:
    """One JSON document on stdout."""
    from bellmark.files import json_text

    click.echo(json_text(document), nl=False)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Sequence[str] = (), title: str = "") -> None:
    """A table on stdout; None is shown as a dash. Columns in `right` are aligned to the right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text("-" if cell is None else str(cell)) for cell in row))
    console(sys.stdout).print(table)


def console(stream: Any) -> Any:
    """A rich console on a stream, as wide as the terminal; NO_COLOR is honoured by rich itself."""
    from rich.console import Console

    width = None if stream.isatty() else _UNSET_WIDTH
    return Console(file=stream, width=width, highlight=False, soft_wrap=not stream.isatty())


def say(message: str) -> None:
    """A message on stderr."""
    click.echo(message, err=True)


def warn(message: str) -> None:
    """A warning on stderr, in one line."""
    click.echo("warning: " + " ".join(message.split()), err=True)


def number(value: float | None, digits: int = 3) -> str | None:
    """A number for a table; None stays None."""
    return None if value is None else f"{value:.{digits}f}"
