"""Sortino ratio."""

from typing import ClassVar

import numpy as np

from bellmark.component import Metric, component
from bellmark.evaluation.curve import Curve, Undefined
from bellmark.evaluation.statistics import downside_deviation, yearly_ratio
from bellmark.evaluation.summary import Summary


@component
class SortinoRatio(Metric):
    """Mean over downside deviation of bar returns, scaled to a year.

    sortino_ratio = mean(r) / sqrt(mean(min(r, 0)^2)) * sqrt(P); the mean of squares runs over all bars. Unit: ratio a year.
    Source: Sortino and van der Meer (1991) with target 0. Undefined without a losing bar.
    """

    name: ClassVar[str] = "sortino_ratio"
    unit: ClassVar[str] = "ratio a year"
    convention: ClassVar[str] = "mean(r) / sqrt(mean(min(r, 0)^2)) * sqrt(P), over all bars, target 0"
    higher_is_better: ClassVar[bool | None] = True
    annualised: ClassVar[bool] = True
    needs_survival: ClassVar[bool] = True
    position: ClassVar[int] = 60

    def compute(self, curve: Curve) -> float | Undefined:
        """The Sortino ratio of a curve."""
        spread = downside_deviation(curve.returns)
        mean = float(np.mean(curve.returns)) if curve.bars else 0.0
        return yearly_ratio(mean, spread, curve.periods_per_year, "no losing bar")

    def of_summary(self, summary: Summary) -> float | Undefined:
        """The Sortino ratio of a summary."""
        return yearly_ratio(summary.mean, summary.downside_deviation(), summary.periods_per_year, "no losing bar")
