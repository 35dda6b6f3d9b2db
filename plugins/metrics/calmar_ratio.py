"""Calmar ratio."""

from typing import ClassVar

from bellmark.component import Metric, component
from bellmark.evaluation.curve import Curve, Undefined
from bellmark.evaluation.statistics import ratio_to, yearly_growth


@component
class CalmarRatio(Metric):
    """Growth a year over the deepest drawdown.

    calmar_ratio = cagr_periods / |max_drawdown|, over the whole span (Young, 1991, takes the last 36 months: a backtest has one span).
    Unit: ratio a year. Undefined without a drawdown.
    """

    name: ClassVar[str] = "calmar_ratio"
    unit: ClassVar[str] = "ratio a year"
    convention: ClassVar[str] = "cagr_periods / |max_drawdown|, whole span"
    higher_is_better: ClassVar[bool | None] = True
    annualised: ClassVar[bool] = True
    needs_survival: ClassVar[bool] = True
    position: ClassVar[int] = 70

    def compute(self, curve: Curve) -> float | Undefined:
        """The Calmar ratio of a curve."""
        growth = yearly_growth(curve, curve.bars / curve.periods_per_year)
        if isinstance(growth, Undefined):
            return growth
        return ratio_to(growth, -float(curve.drawdown.min()), "equity never moved", "no drawdown")
