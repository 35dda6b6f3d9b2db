"""`bellmark runs`: the runs in a folder and what one holds."""

from __future__ import annotations

import click

from bellmark.cli import Group
from bellmark.cli.output import json_option, number, print_json, print_table, warn


@click.group(cls=Group)
def command() -> None:
    """Runs: what was trained, and how it went.

    \b
    Example:
        bellmark runs show demo-1
    """


_folder = click.option("--runs", "folder", metavar="DIR", default="runs", show_default=True, help="Folder of the runs.")


@command.command("list")
@_folder
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
    print_table(columns, table, right=("epochs", "learners", "last epoch", "checkpoint"))
    for row in rows:
        if row.get("error"):
            warn(f"{row['name']}: {row['error']}")


@command.command()
@click.argument("run")
@_folder
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
