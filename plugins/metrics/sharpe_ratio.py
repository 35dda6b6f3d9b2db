"""Sharpe ratio."""

from typing import ClassVar

import numpy as np

from bellmark.component import Metric, component
from bellmark.evaluation.curve import Curve, Undefined
from bellmark.evaluation.statistics import deviation, yearly_ratio
from bellmark.evaluation.summary import Summary


@component
class SharpeRatio(Metric):
    """Mean over deviation of bar returns, scaled to a year.

    sharpe_ratio = mean(r) / std(r, ddof 1) * sqrt(P): simple bar returns, no risk-free rate. Unit: ratio a year.
    Source: Sharpe (1994), ex-post ratio with a zero benchmark. Undefined where returns never vary.
    """

    name: ClassVar[str] = "sharpe_ratio"
    unit: ClassVar[str] = "ratio a year"
    convention: ClassVar[str] = "mean(r) / std(r, ddof 1) * sqrt(P), simple bar returns, no risk-free rate"
    higher_is_better: ClassVar[bool | None] = True
    annualised: ClassVar[bool] = True
    needs_survival: ClassVar[bool] = True
    position: ClassVar[int] = 50

    def compute(self, curve: Curve) -> float | Undefined:
        """The Sharpe ratio of a curve."""
        spread = deviation(curve.returns)
        mean = float(np.mean(curve.returns)) if curve.bars else 0.0
        return yearly_ratio(mean, spread, curve.periods_per_year, "returns never vary")

    def of_summary(self, summary: Summary) -> float | Undefined:
        """The Sharpe ratio of a summary."""
        return yearly_ratio(summary.mean, summary.deviation(), summary.periods_per_year, "returns never vary")
