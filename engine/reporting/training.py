"""Training curves from the rows of metrics.jsonl."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bellmark.reporting.decimate import extreme_points, rounded
from bellmark.reporting.series import MEDIAN

# column of metrics.jsonl, title, unit
CHARTS = (
    ("train_loss", "Training loss", "loss"),
    ("validation_sharpe", "Validation Sharpe ratio", "ratio a year"),
    ("grad_norm", "Gradient norm", "norm before clipping"),
    ("q_mean", "Mean Q value of the updated network", "reward units"),
)
TABLE_ROWS = 11


def training_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Charts over epochs by learner, a table of the last epoch, skipped steps, and the seed of each learner."""
    learners = sorted({int(row["learner"]) for row in rows if row.get("learner") is not None})
    by_learner = {learner: [row for row in rows if row.get("learner") == learner] for learner in learners}
    seeds = {learner: int(of[-1]["seed"]) for learner, of in by_learner.items() if of[-1].get("seed") is not None}
    charts = [_chart(column, title, unit, by_learner) for column, title, unit in CHARTS]
    return {
        "seeds": seeds,
        "charts": [chart for chart in charts if chart["lines"]],
        "epochs": max((int(row.get("epoch", 0)) for row in rows), default=0),
        "skipped_steps": {str(learner): int(of[-1].get("skipped_steps") or 0) for learner, of in by_learner.items()},
    }


def _chart(column: str, title: str, unit: str, by_learner: Mapping[int, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    points = {learner: _points(rows, column) for learner, rows in by_learner.items()}
    lines = [_line(f"learner {learner}", "learner", *found) for learner, found in points.items() if found[0]]
    median = _median_line(list(points.values()))
    if len(lines) == 1:
        lines[0]["role"] = "median"
    elif median is not None:
        lines.insert(0, _line(MEDIAN, "median", *median))
    return {"name": column, "title": title, "unit": unit, "lines": lines, "table": _table(points)}


def _line(label: str, role: str, epochs: Sequence[int], values: Sequence[float]) -> dict[str, Any]:
    keep, drawn = extreme_points(np.array(values))
    return {"label": label, "role": role, "epoch": [epochs[k] for k in keep], "value": rounded(drawn)}


def _points(rows: Sequence[Mapping[str, Any]], column: str) -> tuple[list[int], list[float]]:
    found = [(int(row["epoch"]), float(row[column])) for row in rows if _is_number(row.get(column))]
    return [epoch for epoch, _ in found], [value for _, value in found]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _median_line(points: Sequence[tuple[list[int], list[float]]]) -> tuple[list[int], list[float]] | None:
    """Median over learners at the epochs that all of them have."""
    tables = [dict(zip(epochs, values, strict=True)) for epochs, values in points]
    common = sorted(set.intersection(*(set(table) for table in tables))) if tables else []
    return (common, [float(np.median([table[epoch] for table in tables])) for epoch in common]) if common else None


def _table(points: Mapping[int, tuple[list[int], list[float]]]) -> dict[str, Any]:
    epochs = sorted({epoch for found, _ in points.values() for epoch in found})
    picked = [epochs[int(k)] for k in np.unique(np.linspace(0, len(epochs) - 1, TABLE_ROWS).astype(int))] if epochs else []
    columns = []
    for learner, (found, values) in points.items():
        known = dict(zip(found, values, strict=True))
        columns.append({"label": f"learner {learner}", "value": [known.get(epoch) for epoch in picked]})
    return {"epoch": picked, "columns": columns}
