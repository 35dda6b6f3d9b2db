"""How training and backtests are printed, for the commands that have such a result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from bellmark.cli.output import number, print_table

TABLE = ("total_return", "cagr", "sharpe_ratio", "sortino_ratio", "calmar_ratio", "max_drawdown", "turnover", "costs", "trades")
SPARE = ("calmar ratio", "sortino ratio", "cagr", "turnover")  # the first to go in a narrow terminal; --json has them all
_NAMED = 6  # more symbols are counted, not named
_SHOWN = (
    *("schema_version", "title", "verdict", "part", "start_equity", "currency", "periods_per_year", "session"),
    *("provenance", "cautions", "warnings", "rules", "metrics", "median", "accounts"),
)


def backtest_document(described: Mapping[str, Any]) -> dict[str, Any]:
    """What `--json` prints of backtests: the report's numbers without its chart points."""
    return {key: described[key] for key in _SHOWN}


def print_backtests(described: Mapping[str, Any]) -> None:
    """The accounts with their main metrics, the median learner first, and every caution and warning."""
    from bellmark.cli.output import caution, warn
    from bellmark.reporting.text import date
    from bellmark.reporting.text import metric as shown

    metrics = [metric for metric in described["metrics"] if metric["name"] in TABLE]
    accounts = described["accounts"]
    rows = []
    learners = [account for account in accounts if account["kind"] == "learner"]
    if len(learners) > 1:
        rows.append([f"median of {len(learners)} learners", *(_cell(described["median"], metric, shown) for metric in metrics)])
    rows += [[account["label"], *(_cell(account["metrics"], metric, shown) for metric in metrics)] for account in accounts]
    names = [metric["name"].replace("_", " ") for metric in metrics]
    part = described["part"]
    symbols = accounts[0]["symbols"]
    traded = " ".join(symbols) if len(symbols) <= _NAMED else f"{len(symbols)} symbols"
    title = f"{part['split']}: {date(part['start_ns'])} to {date(part['end_ns'])}, {part['bars']} bars of {traded}, after costs"
    print_table(["account", *names], rows, right=names, title=title, spare=SPARE)
    deepest = [[account["label"], *_drawdown(account["drawdowns"][0], date)] for account in accounts if account["drawdowns"]]
    if deepest:
        print_table(["account", "deepest drawdown", "from", "lowest", "recovered"], deepest, right=("deepest drawdown",))
    refused = [[account["label"], reason, count] for account in accounts for reason, count in account["rejections"].items()]
    if refused:
        print_table(["account", "orders refused because", "orders"], refused, right=("orders",))
    caused = [[account["label"], cause, count] for account in accounts for cause, count in account["fills_by_cause"].items()]
    if any(cause != "order" for _, cause, _ in caused):
        print_table(["account", "fills caused by", "fills"], caused, right=("fills",))
    for text in described["cautions"]:
        caution(text)
    for text in described["warnings"]:
        warn(text)


def print_training(document: Mapping[str, Any]) -> None:
    """The last epoch of a run, a row a learner."""
    keys = ("learner", "seed", "step", "train_loss", "q_mean", "validation_sharpe", "validation_max_drawdown", "skipped_steps")
    names = [key.replace("_", " ") for key in keys]
    rows = [[_plain(row.get(key)) for key in keys] for row in document["last_rows"]]
    print_table(names, rows, right=names, title=f"{document['name']}: epoch {document['last_epoch']}")


def print_files(files: Mapping[str, Any]) -> None:
    """The files of a report, one a line."""
    for name, path in files.items():
        click.echo(f"{name}: {path}")


def _drawdown(found: Mapping[str, Any], date: Any) -> list[str]:
    recovered = "not yet" if found["recovery_ns"] is None else date(found["recovery_ns"])
    return [f"{found['depth']:.2%}", date(found["peak_ns"]), date(found["valley_ns"]), recovered]


def _cell(values: Mapping[str, Any], metric: Mapping[str, Any], shown: Any) -> str:
    return str(shown(values[metric["name"]]["value"], metric["unit"]))


def _plain(value: Any) -> Any:
    return number(value, 4) if isinstance(value, float) else value
