"""`bellmark runs`: the runs in a folder and what one holds."""

from __future__ import annotations

import click

from bellmark.cli import Group
from bellmark.cli.output import json_option, number, plugins_option, print_json, print_table, warn


@click.group(cls=Group)
def command() -> None:
    """Runs: what was trained, how it went, and its tables for other programs.

    \b
    Example:
        bellmark runs show demo-1
    """


_folder = click.option("--runs", "folder", metavar="DIR", default="runs", show_default=True, help="Folder of the runs.")


@command.command("list")
@_folder
@plugins_option
@json_option
def list_runs(folder: str, as_json: bool) -> None:
    """List the runs in a folder.

    \b
    Example:
        bellmark runs list --runs results
    """
    from bellmark.describe import list_runs

    rows = list_runs(folder)
    if as_json:
        print_json(rows)
        return
    if not rows:
        click.echo(f"no runs in {folder}", err=True)
        return
    columns = ["name", "profile", "epochs", "learners", "last epoch", "checkpoint", "report"]
    table = [[row[key] for key in ("name", "profile", "epochs", "learners", "last_epoch", "checkpoint_step", "report")] for row in rows]
    print_table(columns, table, right=("epochs", "learners", "last epoch", "checkpoint"), whole=("report",), spare=("epochs", "report"))
    for row in rows:
        if row["error"]:
            warn(f"run '{row['name']}' cannot be read: {row['error']}")


@command.command()
@click.argument("run")
@_folder
@plugins_option
@json_option
def show(run: str, folder: str, as_json: bool) -> None:
    """Show a run: its manifest and the statistics of its last epoch.

    \b
    Example:
        bellmark runs show demo-1 --json
    """
    from bellmark.describe import describe_run

    document = describe_run(run, folder)
    if as_json:
        print_json(document)
        return
    manifest = document["manifest"]
    facts = {
        "run": document["path"],
        "profile": document["profile"],
        "profile hash": document["profile_hash"],
        "data hash": manifest.get("data_hash"),
        "seeds": ", ".join(str(seed) for seed in manifest.get("seeds", [])) or None,
        "checkpoint at step": document["checkpoint_step"],
        "device": manifest.get("device"),
    }
    print_table(["what", "value"], facts.items())
    keys = ("epoch", "learner", "seed", "step", "train_loss", "q_mean", "validation_sharpe", "skipped_steps")
    table = [[number(row.get(key)) if isinstance(row.get(key), float) else row.get(key) for key in keys] for row in document["last_rows"]]
    print_table([key.replace("_", " ") for key in keys], table, right=[key.replace("_", " ") for key in keys], title="last epoch")


@command.command("export")
@click.argument("run")
@click.option("--out", metavar="FOLDER", help="Folder to write into (default: `export` in the run's own).")
@click.option("--format", "form", default="parquet", show_default=True, metavar="FORMAT", help="parquet or csv.")
@_folder
@plugins_option
@json_option
def export_run(run: str, out: str | None, form: str, folder: str, as_json: bool) -> None:
    """Write a run as tables: metrics, timing, and the ledger of each part that it was backtested on.

    The backtests are made again, to the same bits: equity, fills, trades, rejections, and decisions with the value of each action.

    \b
    Example:
        bellmark runs export demo-1 --format csv
    """
    from bellmark import api
    from bellmark.cli.output import say
    from bellmark.cli.results import print_files

    files = api.export(run, folder=out, form=form, runs=folder)
    if as_json:
        print_json(files)
    else:
        print_files(files)
    if not any("/" in name for name in files):
        say(f"run '{run}' was not backtested yet, so there is no ledger to write: bellmark backtest {run}")
