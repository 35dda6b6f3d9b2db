"""Applies metric components to a curve or a summary; undefined is null with a reason, never infinite and never 0."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bellmark.component import Metric
from bellmark.errors import BellmarkError, PluginError
from bellmark.evaluation.curve import Curve, Undefined
from bellmark.evaluation.summary import Summary

MIN_DAYS_TO_ANNUALISE = 30.0
RUINED = "the account was ruined"
NEEDS_CURVE = "it needs the equity curve, which is not kept"


@dataclass(frozen=True)
class MetricValue:
    """One number of a report: `value` is None exactly where `reason` says why."""

    name: str
    value: float | None
    reason: str | None
    unit: str
    convention: str
    higher_is_better: bool | None


def evaluate(curve: Curve, metrics: Iterable[Metric], *, report_rules: bool = True) -> tuple[MetricValue, ...]:
    """Each metric of a curve, in the order given.

    With `report_rules` a metric that says `annualised` is null for a span under 30 days, and one that says `needs_survival` is null for a
    ruined account; without, only numbers that do not exist are null. A metric that raises is a PluginError that names it.
    """
    return tuple(_evaluate(curve, metric, "compute", report_rules) for metric in metrics)


def evaluate_summary(summary: Summary, metrics: Iterable[Metric], *, report_rules: bool = True) -> tuple[MetricValue, ...]:
    """Each metric of a summary, in the order given, by the rules of `evaluate`.

    A metric that a summary does not suffice for is null, and its reason says so; `summarised` tells which do not.
    """
    return tuple(_evaluate(summary, metric, "of_summary", report_rules) for metric in metrics)


def summarised(metric: Metric) -> bool:
    """Whether a metric can be computed from a summary, without the curve."""
    return getattr(type(metric), "of_summary", Metric.of_summary) is not Metric.of_summary


def order_of(metric: Metric) -> tuple[int, str]:
    """Sorting key for a table: the metric's own `position` (1000 where it has none), then its name."""
    return int(getattr(metric, "position", 1000)), metric.name


def median_of(results: Sequence[MetricValue], owners: Sequence[str]) -> MetricValue:
    """The median of one metric over learners.

    A learner without a value would make the median look better or worse than it is, so the median is null where any learner was ruined;
    where a value is missing for another reason it is taken over the rest and the reason says so.
    """
    first = results[0]
    known = [result.value for result in results if result.value is not None]
    missing = [f"{owner}: {result.reason}" for owner, result in zip(owners, results, strict=True) if result.value is None]
    ruined = any(result.reason == RUINED for result in results)
    note = f"{len(known)} of {len(results)} learners have it ({'; '.join(missing)})" if missing else None
    value = float(np.median(known)) if known and not ruined else None
    return MetricValue(first.name, value, note, first.unit, first.convention, first.higher_is_better)


def _evaluate(subject: Curve | Summary, metric: Metric, function: str, report_rules: bool) -> MetricValue:
    value, reason = _value(subject, metric, function, report_rules)
    return MetricValue(
        name=metric.name,
        value=value,
        reason=reason,
        unit=str(getattr(metric, "unit", "")),
        convention=str(getattr(metric, "convention", "")) or _first_line(metric),
        higher_is_better=getattr(metric, "higher_is_better", None),
    )


def _value(subject: Curve | Summary, metric: Metric, function: str, report_rules: bool) -> tuple[float | None, str | None]:
    if report_rules and getattr(metric, "needs_survival", False) and subject.wiped_out:
        return None, RUINED
    if report_rules and getattr(metric, "annualised", False) and subject.days < MIN_DAYS_TO_ANNUALISE:
        return None, f"span of {subject.days:.1f} days: under {MIN_DAYS_TO_ANNUALISE:.0f} days nothing is annualised"
    compute = getattr(metric, function, None)
    if compute is None:
        raise PluginError(f"metric {metric.name}: it has no function {function}")
    try:
        found = compute(subject)
    except BellmarkError:
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(f"metric {metric.name}: {function} failed: {type(error).__name__}: {error}") from error
    if isinstance(found, Undefined):
        return None, found.reason
    if found is None and function == "of_summary":
        return None, NEEDS_CURVE
    try:
        number = float(found)
    except (TypeError, ValueError) as error:
        raise PluginError(f"metric {metric.name}: expected a number or Undefined, found {type(found).__name__}") from error
    return (number, None) if math.isfinite(number) else (None, f"not a finite number ({number})")


def _first_line(metric: Metric) -> str:
    return (type(metric).__doc__ or "").strip().split("\n", 1)[0]
