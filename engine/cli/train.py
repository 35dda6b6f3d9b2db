"""`bellmark train`: trains the learners of a profile into a run folder."""

from __future__ import annotations

import click

from bellmark.cli import Command
from bellmark.cli.output import data_option, json_option, plugins_option, print_json, profile_options, runs_option, say


@click.command(cls=Command)
@click.argument("profile")
@profile_options
@data_option
@click.option("--name", help="Name of the run (default: PROFILE-1, PROFILE-2, ...).")
@runs_option
@plugins_option
@click.option("--resume", is_flag=True, help="Go on with a run that stopped, from its newest checkpoint; give the same --set and --seed.")
@json_option
def command(
    profile: str, sets: tuple[str, ...], seed: int | None, data: str | None, name: str | None, runs: str | None, resume: bool, as_json: bool
) -> None:
    """Train the policies of PROFILE, a built-in name or a TOML file.

    \b
    Examples:
        bellmark train demo --seed 7
        bellmark train quickstart --data data/es
        bellmark train my.toml --set trainer.epochs=20 --name long
        bellmark train my.toml --set trainer.epochs=20 --name long --resume
    """
    from bellmark.api import train
    from bellmark.cli.progress import training_progress
    from bellmark.cli.results import print_training
    from bellmark.describe import describe_run

    with training_progress() as progress:
        run = train(profile, sets=sets, seed=seed, name=name, runs=runs, data=data, resume=resume, progress=progress)
    document = describe_run(run.name, run.path.parent)
    if as_json:
        print_json(document)
        return
    print_training(document)
    click.echo(f"run: {run.path}")
    say(f"next: bellmark backtest {run.path}")
