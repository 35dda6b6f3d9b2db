"""`bellmark backtest`: a run or a rule strategy on data that it was not made from, with its ledger, its proof, or a sweep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bellmark.cli import Command
from bellmark.cli.output import data_option, json_option, plugins_option, print_json, runs_option, say
from bellmark.errors import UsageError

if TYPE_CHECKING:
    from bellmark.results import Backtest
    from bellmark.run import Run


@click.command(cls=Command)
@click.argument("subject", metavar="RUN|STRATEGY")
@click.option("--profile", help="Data and market for a rule strategy: a built-in name or a TOML file.")
@click.option("--set", "sets", metavar="KEY=VALUE", multiple=True, help="Change one value of the profile. Repeatable.")
@data_option
@click.option("--split", metavar="PART", help="Part of the data: train, validation or test (default: test; with --sweep train).")
@click.option("--trades", is_flag=True, help="Print the round trips, and write fills, trades and rejections as JSON lines.")
@click.option("--decisions", is_flag=True, help="Write every decision, its order, fills and rejections as JSON lines.")
@click.option("--on", metavar="DATE", help="With --decisions: print those of a day (2015-10-15), a bar (120), or a range A..B of them.")
@click.option("--out", metavar="FOLDER", help="Folder for these files (default: backtests/ of the run or of the folder of runs).")
@click.option("--prove", is_flag=True, help="First prove that no feature, and no decision of the strategy, looks ahead.")
@click.option("--sweep", "sweeps", metavar="KEY=...", multiple=True,
              help="Try every value of a setting: START:STOP:STEP or a,b,c. Repeatable: every combination.")  # fmt: skip
@click.option("--rank", metavar="METRIC", help="With --sweep: the metric to rank by (default: sharpe_ratio).")
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="With --sweep: rows to print (default: 10).")
@runs_option
@plugins_option
@json_option
def command(
    subject: str, profile: str | None, sets: tuple[str, ...], split: str | None, runs: str | None, as_json: bool, **options: Any
) -> None:
    """Backtest a trained run, or a rule strategy on the data of a profile.

    For a run the baselines of its profile are shown beside it, and the result is kept in its folder. A strategy has the settings of
    [baselines.STRATEGY] in the profile, or its defaults. KEY of --sweep is a setting of the strategy, market.NAME or sizing.NAME.

    \b
    Examples:
        bellmark backtest demo-1
        bellmark backtest demo-1 --decisions --on 2011-10-14
        bellmark backtest buy_and_hold --profile quickstart --data data/es
        bellmark backtest sma_cross --profile demo --set baselines.sma_cross.slow=200 --trades
        bellmark backtest sma_cross --profile demo --sweep fast=5:50:5 --sweep slow=20:200:20 --rank sharpe_ratio
    """
    from bellmark import api
    from bellmark.cli import ledger_output

    _check_together(options, profile)
    resolved = None if profile is None else api.resolve_profile(profile, sets=sets, runs=runs, data=options["data"])
    given: dict[str, Any] = {"sets": sets, "runs": runs} if resolved is None else {"profile": resolved}
    wanted = ledger_output.wanted_decisions(options["on"]) if options["on"] else None
    proofs = api.prove(subject, **given) if options["prove"] else []
    if options["sweeps"]:
        _sweep(subject, resolved, split, proofs, options, as_json)
        return
    split = split or "test"
    result = api.backtest(subject, split=split, keep_values=options["decisions"], **given)
    run = api.load_run(subject, runs=runs or "runs") if result.kind == "policy" else None
    described = api.describe_backtests([result, *api.baselines(run, split, result)], run=run) if run else api.describe_backtests(result)
    more: dict[str, Any] = {"proofs": proofs} if options["prove"] else {}
    more |= _ledger(result, run, resolved, options, wanted)
    _show(described, run, split, more, options, as_json)


def _check_together(options: Mapping[str, Any], profile: str | None) -> None:
    if options["data"] and profile is None:
        raise UsageError("--data: it goes with a rule strategy and --profile; a run is backtested on the data that it was trained with")
    if options["on"] and not options["decisions"]:
        raise UsageError("--on: it says which decisions to print; give --decisions too")
    for name in ("rank", "top"):
        if options[name] is not None and not options["sweeps"]:
            raise UsageError(f"--{name}: it goes with --sweep")
    for name in ("trades", "decisions", "out"):
        if options[name] and options["sweeps"]:
            raise UsageError(f"--{name}: a sweep keeps no ledger; backtest the settings that you choose with --{name}")
    if options["out"] and not (options["trades"] or options["decisions"]):
        raise UsageError("--out: there is no file to write without --trades or --decisions")


def _sweep(subject: str, profile: Any, split: str | None, proofs: list[str], options: Mapping[str, Any], as_json: bool) -> None:
    from bellmark import api
    from bellmark.cli.ledger_output import print_proofs
    from bellmark.cli.sweep_output import print_sweep

    if profile is None:
        raise UsageError(f"--sweep: expected a rule strategy and a profile that says the data and the market, found '{subject}' alone")
    chosen: dict[str, Any] = {"split": split} if split else {}
    chosen |= {"rank": options["rank"]} if options["rank"] is not None else {}
    document = api.sweep(subject, options["sweeps"], profile=profile, **chosen).document()
    if as_json:
        print_json(document | ({"proofs": proofs} if options["prove"] else {}))
        return
    print_proofs(proofs)
    print_sweep(document, options["top"] or 10)


def _ledger(result: Backtest, run: Run | None, profile: Any, options: Mapping[str, Any], wanted: Any) -> dict[str, Any]:
    """Writes the files that were asked for; what to print of them, and where they are."""
    from bellmark.cli.ledger_output import TRADES_SHOWN
    from bellmark.records import decision_rows, trade_rows, write_rows

    kinds = [*(("fills", "trades", "rejections") if options["trades"] else ()), *(("decisions",) if options["decisions"] else ())]
    if not kinds:
        return {}
    found: dict[str, Any] = {}
    if wanted is not None:
        found["decisions"] = _wanted(decision_rows(result), wanted, options["on"])
    if options["trades"]:
        trades = trade_rows(result)
        found |= {"round_trips": {"total": len(trades), "rows": trades[:TRADES_SHOWN]}}
    folder = Path(options["out"]) if options["out"] else _folder(result, run, profile)
    return found | {"files": write_rows(result, folder, kinds)}


def _wanted(rows: Iterable[dict[str, Any]], wanted: Any, text: str) -> list[dict[str, Any]]:
    kept, count, span = [], 0, ["", ""]
    for row in rows:
        count += 1
        span = [min(span[0] or row["ts"], row["ts"]), max(span[1], row["ts"])]
        if wanted(row):
            kept.append(row)
    if not kept:
        raise UsageError(f"--on: no decision at {text}: the {count:,} run from {span[0]} to {span[1]}")
    return kept


def _folder(result: Backtest, run: Run | None, profile: Any) -> Path:
    """Where files go that nobody gave a folder: of a run to its own, of a strategy to a new one."""
    from bellmark.files import new_folder, safe_name

    if run is not None:
        return run.path / "backtests" / result.split
    return new_folder(Path(profile.run.folder) / "backtests", f"{safe_name(result.name)}-{result.split}")


def _show(described: dict[str, Any], run: Run | None, split: str, more: dict[str, Any], options: Mapping[str, Any], as_json: bool) -> None:
    from bellmark.cli import ledger_output
    from bellmark.cli.results import backtest_document, print_backtests

    document = backtest_document(described)
    if run is not None:
        run.write_backtest(split, document)
    if as_json:
        print_json(document | more)
        return
    ledger_output.print_proofs(more.get("proofs", []))
    print_backtests(described)
    if "round_trips" in more:
        ledger_output.print_trades(more["round_trips"]["rows"], more["round_trips"]["total"])
    if "decisions" in more:
        ledger_output.print_decisions(more["decisions"], options["on"])
    for kind, path in more.get("files", {}).items():
        say(f"{kind}: {path}")
