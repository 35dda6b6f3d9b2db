"""What commands share: results on stdout as a table or as one JSON document, messages on stderr, and the options of several commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import click

_Function = TypeVar("_Function", bound=Callable[..., Any])
_UNSET_WIDTH = 10_000  # a table that nobody looks at is never wrapped
_LEAST_TEXT = 12  # a text that wraps keeps at least so many columns
_GAP = 3  # between two columns of a table; one less before the first and after the last together

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON document.")
runs_option = click.option("--runs", metavar="DIR", help="Folder of the runs (default: [run] folder of the profile, `runs`).")


data_option = click.option("--data", metavar="NAME|DIR", help="An imported dataset in the place of the profile's own data.")


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


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    right: Sequence[str] = (),
    title: str = "",
    whole: Sequence[str] = (),
    spare: Sequence[str] = (),
) -> None:
    """A table on stdout; None is shown as a dash. Columns in `right` are aligned to the right; the first and those in `whole` never wrap.

    Columns in `spare` go, the first first, while the terminal is too narrow for the rest; a line below names them.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    cells: dict[str, list[str]] = {column: [] for column in columns}
    for row in rows:
        for column, cell in zip(columns, row, strict=True):
            cells[column].append("-" if cell is None else str(cell))
    out, shown = console(sys.stdout), list(columns)
    fixed = {columns[0], *right, *whole}
    for column in ("", *spare):
        shown = [each for each in shown if each != column]
        widths = _widths({each: cells[each] for each in shown}, fixed, out.width)
        if widths is not None:
            break
    table = Table(box=SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False)
    for column in shown:
        width = None if widths is None else widths[column]
        table.add_column(column, justify="right" if column in right else "left", overflow="fold", width=width)
    for texts in zip(*(cells[column] for column in shown), strict=True):
        table.add_row(*(Text(text) for text in texts))
    out.print(table)
    hidden = [column for column in columns if column not in shown]
    if hidden:
        out.print(Text(f"left out at {out.width} columns: {', '.join(hidden)}"))


def _widths(cells: Mapping[str, Sequence[str]], fixed: Collection[str], available: int) -> dict[str, int] | None:
    """The width of each column, or None where they cannot all be read.

    Headers wrap between words; cells wrap too, but not those of a column in `fixed`. What is free goes to all alike, up to what each needs.
    """
    least, wanted = {}, {}
    for column, texts in cells.items():
        widest = max((len(text) for text in texts), default=0)
        wanted[column] = max(widest, len(column))
        least[column] = max([widest if column in fixed else min(widest, _LEAST_TEXT), *map(len, column.split())])
    free = available - sum(least.values()) - _GAP * len(cells) + 1
    if free < 0:
        return None
    widths = {}
    for count, column in zip(range(len(cells), 0, -1), sorted(cells, key=lambda each: wanted[each] - least[each]), strict=True):
        more = min(wanted[column] - least[column], free // count)
        widths[column], free = least[column] + more, free - more
    return widths


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


def caution(message: str) -> None:
    """What makes a result better than life, beside the result: in red where the terminal has colours."""
    from rich.text import Text

    console(sys.stdout).print(Text(f"caution: {' '.join(message.split())}", style="bold red"))


def number(value: float | None, digits: int = 3) -> str | None:
    """A number for a table; None stays None."""
    return None if value is None else f"{value:.{digits}f}"
