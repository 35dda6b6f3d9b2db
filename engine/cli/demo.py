"""`bellmark demo`: the whole way on real daily bars, in one command."""

from __future__ import annotations

import click

from bellmark.cli import Command
from bellmark.cli.output import json_option, plugins_option, print_json, profile_options, runs_option, say


@click.command(cls=Command)
@profile_options
@runs_option
@plugins_option
@json_option
def command(sets: tuple[str, ...], seed: int | None, runs: str | None, as_json: bool) -> None:
    """Train four learners on real daily bars, backtest them and the baselines on years they never saw, and write the report.

    \b
    Example:
        bellmark demo --seed 7
    """
    from bellmark import api
    from bellmark.cli.progress import training_progress
    from bellmark.cli.results import backtest_document, print_backtests, print_files

    with training_progress() as progress:
        run = api.train("demo", sets=sets, seed=seed, runs=runs, progress=progress)
    say(f"trained {run.profile.learners.count} learners: {run.path}")
    policy = api.backtest(run)
    backtests = [policy, *api.baselines(run, policy=policy)]
    described = api.describe_backtests(backtests, run=run)
    run.write_backtest("test", backtest_document(described))
    files = api.report(run, backtests=backtests)
    if as_json:
        print_json({"run": str(run.path), "backtest": backtest_document(described), "report": files})
        return
    print_backtests(described)
    click.echo(described["verdict"]["sentence"])
    print_files(files)
