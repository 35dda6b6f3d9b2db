"""Compound annual growth rate by the calendar."""

from typing import ClassVar

from bellmark.component import Metric, component
from bellmark.evaluation.curve import DAYS_A_YEAR, Curve, Undefined
from bellmark.evaluation.statistics import yearly_growth
from bellmark.evaluation.summary import Summary


@component
class Cagr(Metric):
    """Growth a year by the calendar.

    cagr = (1 + total_return)^(365.25 / days) - 1, days from the first to the last stamp. Unit: fraction a year. Differs from
    `cagr_periods`, which counts bars: the two disagree wherever bars are missing or the periods a year are a convention.
    """

    name: ClassVar[str] = "cagr"
    unit: ClassVar[str] = "fraction a year"
    convention: ClassVar[str] = "(1 + total)^(365.25 / calendar days) - 1"
    higher_is_better: ClassVar[bool | None] = True
    annualised: ClassVar[bool] = True
    needs_survival: ClassVar[bool] = True
    position: ClassVar[int] = 20

    def compute(self, curve: Curve) -> float | Undefined:
        """The calendar growth rate of a curve, also for a short span."""
        return yearly_growth(curve.wealth, curve.days / DAYS_A_YEAR)

    def of_summary(self, summary: Summary) -> float | Undefined:
        """The calendar growth rate of a summary."""
        return yearly_growth(summary.wealth, summary.days / DAYS_A_YEAR)
