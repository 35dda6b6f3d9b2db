"""`bellmark signals`: what the policies of a run ask for, by time stamp."""

from __future__ import annotations

import click

from bellmark.cli import Command
from bellmark.cli.output import json_option, plugins_option, print_json, runs_option, say, warn


@click.command(cls=Command)
@click.argument("run")
@click.argument("data")
@click.option("--learner", metavar="N", help="Learner to take, from 0, or all; needed where the run has several.")
@click.option("--out", metavar="FILE", help="CSV file to write (default: stdout).")
@runs_option
@plugins_option
@json_option
def command(run: str, data: str, learner: str | None, out: str | None, runs: str | None, as_json: bool) -> None:
    """Run the policies of RUN on DATA and write their signals as CSV: ts, symbol, exposure, target_lots, order_lots, action, learner.

    DATA is a part of the run's own data (train, validation, test, all); a .csv or .parquet file, read with the settings of the run's
    dataset; or a profile (a built-in name or a TOML file) whose [data] is taken. Features are normalised as in training. A row is a bar:
    what was asked for at its close, to work in the next one. The strategy `signals` backtests such a file of one learner.

    \b
    Examples:
        bellmark signals demo-1 test --learner 0 --out signals.csv
        bellmark backtest signals --profile demo --set baselines.signals.path=signals.csv
        bellmark signals mine-1 new_bars.csv --learner all
    """
    from bellmark import api
    from bellmark.errors import UsageError
    from bellmark.files import write_lines
    from bellmark.policy_signals import csv_lines

    if out is not None and not out.endswith(".csv"):
        raise UsageError(f"--out: expected a name that ends in .csv, found '{out}'")
    result = api.signal_backtest(run, data, runs=runs)
    rows = api.signal_rows(result, learner)
    if out is not None:
        write_lines(out, csv_lines(rows))
    if as_json:
        files = {} if out is None else {"file": out}
        facts = {"run": result.name, "data": data, "data_hash": result.data_hash, "step": result.step, "warnings": list(result.warnings)}
        print_json(facts | files | {"cautions": list(result.cautions), "rows": rows})
        return
    if out is None:
        for line in csv_lines(rows):
            click.echo(line)
    else:
        say(f"{len(rows):,} signals: {out}")
    for text in (*result.cautions, *result.warnings):  # stdout holds the signals alone
        warn(text)
