"""Curves and months of a report: every account on one set of stamps, with the median learner at each point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellmark.evaluation.curve import sampled, union_of_stamps
from bellmark.reporting.accounts import Account
from bellmark.reporting.decimate import extreme_points, mean_points, rounded

TABLE_ROWS = 13
MEDIAN = "median learner"


def equity_charts(learners: Sequence[Account], baselines: Sequence[Account]) -> dict[str, Any]:
    """The charts `equity` (currency), `drawdown` (fraction of peak) and `exposure` (fraction of equity), each with its table.

    The median line is the median over learners at each bar; its last point is the median of the total returns.
    """
    stamps = union_of_stamps([account.curve for account in (*learners, *baselines)])
    kinds = {
        "equity": lambda account: account.curve.equity,
        "drawdown": lambda account: account.curve.drawdown,
        "exposure": lambda account: account.curve.exposure,
    }
    # the baselines' exposure would hide the learners': it stands in the table alone
    return {name: _chart(values_of, learners, baselines, stamps, name == "exposure") for name, values_of in kinds.items()}


def _chart(
    values_of: Any, learners: Sequence[Account], baselines: Sequence[Account], stamps: NDArray[np.int64], jumps: bool
) -> dict[str, Any]:
    rows = np.unique(np.linspace(0, stamps.size - 1, TABLE_ROWS).astype(np.int64))
    lines: list[dict[str, Any]] = []
    columns: list[dict[str, Any]] = []

    def add(label: str, role: str, values: NDArray[np.float64]) -> None:
        keep, drawn = mean_points(values) if jumps else extreme_points(values)
        points = {"ms": (stamps[keep] // 1_000_000).tolist(), "value": rounded(drawn)}
        lines.append({"label": label, "role": role, **points})
        columns.append({"label": label, "role": role, "value": [float(value) for value in values[rows]]})

    known = [(account, values_of(account)) for account in (*learners, *baselines)]
    aligned = [(account, sampled(values, account.curve.stamp_ns, stamps)) for account, values in known if values is not None]
    of_learners = [values for account, values in aligned if account.is_learner]
    if len(of_learners) > 1:
        add(MEDIAN, "median", _median(of_learners))
    for account, values in aligned:
        role = "baseline" if not account.is_learner else "median" if len(of_learners) == 1 else "learner"
        add(account.label, role, values)
    if of_learners and jumps:
        lines = [line for line in lines if line["role"] != "baseline"]
    return {"lines": lines, "table": {"stamp_ns": stamps[rows].tolist(), "columns": columns}}


def _median(values: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The median at each point, a block at a time so that a long curve does not need all learners twice in memory."""
    block = 1 << 16
    out = np.empty(values[0].size)
    for start in range(0, out.size, block):
        part = slice(start, start + block)
        out[part] = np.median(np.stack([value[part] for value in values]), axis=0)
    return out


def months_of(learners: Sequence[Account], baselines: Sequence[Account]) -> dict[str, Any]:
    """Return of each calendar month (UTC, by bar close) and year, per account and for the median over learners.

    A bar that closes at midnight belongs to the day before. A month without a bar is left out.
    """
    accounts = [*learners, *baselines]
    columns = [(account, _monthly(account)) for account in accounts]
    months = sorted({month for _, column in columns for month in column[0]})
    years = sorted({year for _, column in columns for year in column[1]})
    found: list[dict[str, Any]] = [
        {
            "label": account.label,
            "role": "learner" if account.is_learner else "baseline",
            "month": [column[0].get(month) for month in months],
            "year": [column[1].get(year) for year in years],
        }
        for account, column in columns
    ]
    of_learners = [column for column in found if column["role"] == "learner"]
    if of_learners:
        median = {key: _medians([column[key] for column in of_learners]) for key in ("month", "year")}
        found.insert(0, {"label": MEDIAN if len(of_learners) > 1 else of_learners[0]["label"], "role": "median", **median})
    if len(of_learners) == 1:
        found = [column for column in found if column["role"] != "learner"]
    return {"months": months, "years": years, "columns": found}


def _monthly(account: Account) -> tuple[dict[str, float], dict[str, float]]:
    curve = account.curve
    if curve.bars == 0:
        return {}, {}
    instants = (curve.stamp_ns[1:] - 1).astype("datetime64[ns]")
    return tuple(_by_period(instants.astype(f"datetime64[{unit}]"), curve.equity) for unit in "MY")  # type: ignore[return-value]


def _by_period(period_n: NDArray[Any], equity: NDArray[np.float64]) -> dict[str, float]:
    last = np.flatnonzero(np.concatenate((period_n[1:] != period_n[:-1], [True])))
    ends = equity[last + 1]
    starts = np.concatenate((equity[:1], ends[:-1]))
    # from zero or negative equity a return has no meaning: such periods are left out
    return {str(period_n[k]): float(end / start - 1.0) for k, start, end in zip(last, starts, ends, strict=True) if start > 0.0}


def _medians(rows: Sequence[Sequence[float | None]]) -> list[float | None]:
    return [float(np.median(values)) if None not in values else None for values in zip(*rows, strict=True)]  # type: ignore[arg-type]
