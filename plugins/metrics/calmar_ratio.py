"""Calmar ratio."""

from typing import ClassVar

from bellmark.component import Metric, component
from bellmark.evaluation.curve import Curve, Undefined
from bellmark.evaluation.statistics import ratio_to, yearly_growth
from bellmark.evaluation.summary import Summary


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
        return _ratio(yearly_growth(curve.wealth, curve.bars / curve.periods_per_year), float(curve.drawdown.min()))

    def of_summary(self, summary: Summary) -> float | Undefined:
        """The Calmar ratio of a summary."""
        return _ratio(yearly_growth(summary.wealth, summary.bars / summary.periods_per_year), summary.max_drawdown)


def _ratio(growth: float | Undefined, max_drawdown: float) -> float | Undefined:
    return growth if isinstance(growth, Undefined) else ratio_to(growth, -max_drawdown, "equity never moved", "no drawdown")
