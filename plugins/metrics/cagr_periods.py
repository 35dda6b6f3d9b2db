"""Compound annual growth rate by the number of bars."""

from typing import ClassVar

from bellmark.component import Metric, component
from bellmark.evaluation.curve import Curve, Undefined
from bellmark.evaluation.statistics import yearly_growth
from bellmark.evaluation.summary import Summary


@component
class CagrPeriods(Metric):
    """Growth a year by the number of bars.

    cagr_periods = (1 + total_return)^(P / n) - 1 with n bars and P periods a year. Unit: fraction a year.
    """

    name: ClassVar[str] = "cagr_periods"
    unit: ClassVar[str] = "fraction a year"
    convention: ClassVar[str] = "(1 + total)^(P / n) - 1, n bars, P periods a year"
    higher_is_better: ClassVar[bool | None] = True
    annualised: ClassVar[bool] = True
    needs_survival: ClassVar[bool] = True
    position: ClassVar[int] = 30

    def compute(self, curve: Curve) -> float | Undefined:
        """The growth rate of a curve by its bars, also for a short span."""
        return yearly_growth(curve.wealth, curve.bars / curve.periods_per_year)

    def of_summary(self, summary: Summary) -> float | Undefined:
        """The growth rate of a summary by its bars."""
        return yearly_growth(summary.wealth, summary.bars / summary.periods_per_year)
