"""`bellmark report`: the report of a run as HTML, JSON and Markdown."""

from __future__ import annotations

import click

from bellmark.cli import Command
from bellmark.cli.output import json_option, plugins_option, print_json, runs_option
from bellmark.cli.results import print_files


@click.command(cls=Command)
@click.argument("run")
@click.option("--split", default="test", show_default=True, metavar="PART", help="Part of the data: train, validation or test.")
@click.option("--to", "folder", metavar="DIR", help="Folder to write into (default: the run's own).")
@runs_option
@plugins_option
@json_option
def command(run: str, split: str, folder: str | None, runs: str | None, as_json: bool) -> None:
    """Backtest RUN and its baselines and write its report.

    \b
    Example:
        bellmark report demo-1
    """
    from bellmark import api

    files = api.report(run, split=split, folder=folder, runs=runs)
    if as_json:
        print_json(files)
    else:
        print_files(files)
