"""`bellmark backtest`: a run or a rule strategy on data that it was not made from."""

from __future__ import annotations

import click

from bellmark.cli import Command
from bellmark.cli.output import json_option, plugins_option, print_json, runs_option


@click.command(cls=Command)
@click.argument("subject", metavar="RUN|STRATEGY")
@click.option("--profile", help="Data and market for a rule strategy: a built-in name or a TOML file.")
@click.option("--set", "sets", metavar="KEY=VALUE", multiple=True, help="Change one value of the profile. Repeatable.")
@click.option("--split", default="test", show_default=True, metavar="PART", help="Part of the data: train, validation or test.")
@runs_option
@plugins_option
@json_option
def command(subject: str, profile: str | None, sets: tuple[str, ...], split: str, runs: str | None, as_json: bool) -> None:
    """Backtest a trained run, or a rule strategy on the data of a profile.

    For a run the baselines of its profile are shown beside it, and the result is kept in its folder. A strategy has the settings of
    [baselines.STRATEGY] in the profile, or its defaults.

    \b
    Examples:
        bellmark backtest demo-1
        bellmark backtest sma_cross --profile demo
        bellmark backtest sma_cross --profile demo --set baselines.sma_cross.slow=200
    """
    from bellmark import api
    from bellmark.cli.results import backtest_document, print_backtests

    result = api.backtest(subject, profile=profile, sets=sets, split=split, runs=runs)
    if result.kind == "policy":
        run = api.load_run(subject, runs=runs or "runs")
        described = api.describe_backtests([result, *api.baselines(run, split, result)], run=run)
        run.write_backtest(split, backtest_document(described))
    else:
        described = api.describe_backtests(result)
    if as_json:
        print_json(backtest_document(described))
    else:
        print_backtests(described)
