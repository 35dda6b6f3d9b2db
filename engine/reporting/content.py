"""Everything a report says, as one plain document: no NaN, no wall clock, no path, the same for the same inputs.

HTML, JSON and Markdown are written from this document alone, so they cannot disagree.
"""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellmark.component import Metric, make, settings_of
from bellmark.errors import UsageError
from bellmark.evaluation.curve import Curve
from bellmark.evaluation.drawdown import drawdown_table
from bellmark.evaluation.metrics import MetricValue, evaluate, median_of, order_of
from bellmark.evaluation.trades import trade_summary
from bellmark.files import SCHEMA_VERSION
from bellmark.reporting.accounts import Account, accounts_of
from bellmark.reporting.series import equity_charts, months_of
from bellmark.reporting.text import date
from bellmark.reporting.training import training_of
from bellmark.reporting.verdict import verdict
from bellmark.settings import MarketSettings

DRAWDOWNS_AN_ACCOUNT = 3
TRADES_SHOWN = 50
VERSIONS_SHOWN = ("bellmark", "numpy", "numba", "scipy", "bokeh")
MANIFEST_KEYS = ("versions", "plugins", "build", "device")


def collect(run: Any, backtests: Sequence[Any], metrics: Sequence[Metric] | None = None) -> dict[str, Any]:
    """The content of a report. Backtests must be of one part of the data and one start equity.

    metrics: instances to compute; every metric in the catalog with its default settings where None.
    """
    _check(backtests)
    found, left_out = _all_metrics() if metrics is None else (list(metrics), [])
    chosen = sorted(found, key=order_of)
    manifest = dict(run.manifest) if run is not None else {}
    training = training_of(_metric_rows(run))
    seeds = dict(enumerate(manifest.get("seeds", []))) | training.pop("seeds")
    accounts = accounts_of(backtests, seeds)
    learners = [account for account in accounts if account.is_learner]
    baselines = [account for account in accounts if not account.is_learner]
    results = {account.label: evaluate(account.curve, chosen) for account in accounts}
    first = backtests[0]
    span = min(int(account.curve.stamp_ns[0]) for account in accounts), max(int(account.curve.stamp_ns[-1]) for account in accounts)
    bars = max(account.curve.bars for account in accounts)
    middle = _middle(learners)
    return {
        "schema_version": SCHEMA_VERSION,
        "title": str(manifest.get("profile", "") or "Rule strategies"),
        "verdict": verdict(
            [_total_return(account.curve) for account in learners],
            sum(account.curve.wiped_out for account in learners),
            _baseline_returns(baselines),
            str(first.split),
            date(span[0]),
            date(span[1]),
            bars,
        ),
        "part": {
            "split": str(first.split), "start_ns": span[0], "end_ns": span[1], "bars": bars, "symbols": list(accounts[0].curve.symbols),
            "shared_account": any(len(lane.symbols) > 1 for lane in first.lanes),
        },
        "start_equity": float(accounts[0].curve.equity[0]),
        "currency": str(getattr(first, "currency", "") or "account currency"),
        "periods_per_year": float(first.periods_per_year),
        "session": str(getattr(first, "session", "") or ""),
        "provenance": _provenance(manifest, _command(run, first), first, seeds),
        "cautions": list(dict.fromkeys(str(text) for backtest in backtests for text in backtest.cautions)),
        "warnings": [*_warnings(backtests, accounts), *left_out],
        "rules": _rules(first.rules),
        "metrics": [
            {"name": one.name, "unit": one.unit, "convention": one.convention, "higher_is_better": one.higher_is_better}
            for one in results[accounts[0].label]
        ],
        "median": _medians([results[account.label] for account in learners], [account.label for account in learners]),
        "accounts": [_account(account, results[account.label]) for account in accounts],
        "charts": equity_charts(learners, baselines),
        "months": months_of(learners, baselines),
        "actions": _actions(accounts),
        "training": training,
        "trades": _trades(middle) if middle is not None else None,
    }


def _check(backtests: Sequence[Any]) -> None:
    if not backtests:
        raise UsageError("report: expected at least one backtest, found none")
    splits = sorted({str(backtest.split) for backtest in backtests})
    if len(splits) > 1:
        raise UsageError(f"report: expected backtests of one part of the data, found {', '.join(splits)}")


def _all_metrics() -> tuple[list[Metric], list[str]]:
    """Every metric that has a name of its own and needs no setting, and a warning for each other one."""
    from bellmark.host import host

    chosen: list[Metric] = []
    left_out = []
    for name, entries in sorted(host().catalog["metric"].items()):
        if len(entries) > 1:
            left_out.append(f"metric {name}: left out: brought by {' and '.join(entry.plugin for entry in entries)}")
        elif any(info.required for info in settings_of(entries[0].cls)):
            left_out.append(f"metric {name}: left out: it has a setting without a default")
        else:
            chosen.append(make(entries[0].cls, {}, f"metric {name}"))
    return chosen, left_out


def _metric_rows(run: Any) -> list[dict[str, Any]]:
    return [] if run is None else list(run.metric_rows())


def _total_return(curve: Curve) -> float:
    return float(curve.equity[-1] / curve.equity[0] - 1.0)


def _baseline_returns(baselines: Sequence[Account]) -> dict[str, float]:
    names = dict.fromkeys(account.name for account in baselines)
    return {name: float(np.median([_total_return(one.curve) for one in baselines if one.name == name])) for name in names}


def _middle(learners: Sequence[Account]) -> Account | None:
    """The learner in the middle by total return (the lower one of two): the one whose trades are listed."""
    ranked = sorted(learners, key=lambda account: _total_return(account.curve))
    return ranked[(len(ranked) - 1) // 2] if ranked else None


def _command(run: Any, backtest: Any) -> str:
    """What makes these results again. RUN stands for the run's own name, which may differ between two equal runs."""
    if run is None:
        return str(backtest.command)
    part = "" if backtest.split == "test" else f" --split {backtest.split}"
    return f"bellmark train RUN/profile.toml --name NEW && bellmark report NEW{part}"


def _provenance(manifest: Mapping[str, Any], command: str, backtest: Any, seeds: Mapping[int, int]) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "command": command,
        "profile_hash": str(backtest.profile_hash),
        "data_hash": str(backtest.data_hash),
        "seeds": [seeds[learner] for learner in sorted(seeds)],
        "versions": {name: importlib.metadata.version(name) for name in VERSIONS_SHOWN} | {"python": platform.python_version()},
    }
    facts["trained_with"] = {key: manifest[key] for key in MANIFEST_KEYS if key in manifest}
    return facts


def _warnings(backtests: Sequence[Any], accounts: Sequence[Account]) -> list[str]:
    """Each warning of a backtest once, then the ruined accounts."""
    given = [str(text) for backtest in backtests for text in backtest.warnings]
    ruined = [f"{account.label} was ruined ({', '.join(account.ruined_symbols)})" for account in accounts if account.ruined_symbols]
    return list(dict.fromkeys([*given, *ruined]))


def _rules(rules: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What the accounts went by: execution and sizing with their settings, and every [market] setting that is not its default."""
    rows = []
    for section in ("execution", "sizing"):
        for key, value in rules.get(section, {}).items():
            rows.append({"key": section if key == "use" else f"{section}.{key}", "value": value, "unit": "", "meaning": ""})
    given = rules.get("market", {})
    for info in settings_of(MarketSettings):
        value = given.get(info.name, info.default)
        if value != info.default:
            plain = list(value) if isinstance(value, tuple) else value
            rows.append({"key": f"market.{info.name}", "value": plain, "unit": info.unit, "meaning": info.meaning})
    return rows


def _medians(results: Sequence[Sequence[MetricValue]], owners: Sequence[str]) -> dict[str, Any]:
    return {row[0].name: _value(median_of(row, owners)) for row in zip(*results, strict=True)}


def _value(result: Any) -> dict[str, Any]:
    return {"value": result.value, "reason": result.reason}


def _account(account: Account, results: Sequence[Any]) -> dict[str, Any]:
    curve = account.curve
    summary = trade_summary(account.trades)
    return {
        "label": account.label,
        "name": account.name,
        "kind": "learner" if account.is_learner else "baseline",
        "learner": account.learner,
        "seed": account.seed,
        "symbols": list(curve.symbols),
        "ruined": curve.wiped_out,
        "end_equity": float(curve.equity[-1]),
        "gross": curve.gross,
        "costs": {kind: float(value) for kind, value in curve.costs.items()},
        "fills": int(curve.fills.size),
        "fills_by_cause": account.fills_by_cause,
        "rejections": account.rejections,
        "open_lots": account.open_lots,
        "metrics": {result.name: _value(result) for result in results},
        "drawdowns": [asdict(row) for row in drawdown_table(curve, DRAWDOWNS_AN_ACCOUNT)],
        "trades": asdict(summary),
    }


def _actions(accounts: Sequence[Account]) -> dict[str, Any]:
    """Share of decisions by target exposure, and of every joint action, for the accounts that act by number."""
    acting = [account for account in accounts if account.action_count_A is not None and account.action_count_A.sum() > 0]
    if not acting:
        return {"exposures": [], "labels": [], "rows": []}
    space = acting[0].action_space
    rows = []
    for account in acting:
        count_A: NDArray[np.int64] = account.action_count_A  # type: ignore[assignment]
        by_exposure = [int(count_A[space.factor_AK[:, 0] == level].sum()) for level in range(len(space.exposures))]
        decisions = int(count_A.sum())
        rows.append(
            {
                "label": account.label,
                "decisions": decisions,
                "share": [count / decisions for count in by_exposure],
                "joint_count": [int(count) for count in count_A],
            }
        )
    return {"exposures": list(space.exposures), "labels": [space.label(action) for action in range(space.A)], "rows": rows}


def _trades(account: Account) -> dict[str, Any]:
    table = account.trades
    shown = table[:TRADES_SHOWN]
    symbols = account.curve.symbols
    return {
        "label": account.label,
        "total": int(table.size),
        "rows": [
            {
                "symbol": symbols[row["symbol"]] if row["symbol"] < len(symbols) else "",
                "entry_ns": int(row["entry_ns"]),
                "exit_ns": int(row["exit_ns"]) if row["closed"] else None,
                "lots": int(row["lots"]),
                "profit": float(row["profit"]) if np.isfinite(row["profit"]) else None,
                "cost": float(row["cost"]),
            }
            for row in shown
        ],
    }
