"""Profit factor over bars."""

from typing import ClassVar

from bellmark.component import Metric, component
from bellmark.evaluation.curve import Curve, Undefined
from bellmark.evaluation.summary import Summary


@component
class ProfitFactorBars(Metric):
    """Positive over negative bar returns (also known as the omega ratio at 0).

    profit_factor_bars = sum of r > 0 / |sum of r < 0|. Unit: ratio. Undefined without a losing bar.
    """

    name: ClassVar[str] = "profit_factor_bars"
    unit: ClassVar[str] = "ratio"
    convention: ClassVar[str] = "sum of positive r / |sum of negative r|, simple bar returns"
    higher_is_better: ClassVar[bool | None] = True
    needs_survival: ClassVar[bool] = True
    position: ClassVar[int] = 160

    def compute(self, curve: Curve) -> float | Undefined:
        """The profit factor of a curve's bars."""
        returns = curve.returns
        return _factor(float(returns[returns > 0.0].sum()), -float(returns[returns < 0.0].sum()))

    def of_summary(self, summary: Summary) -> float | Undefined:
        """The profit factor of a summary's bars."""
        return _factor(summary.gain_sum, -summary.loss_sum)


def _factor(won: float, lost: float) -> float | Undefined:
    if lost > 0.0:
        return won / lost
    return Undefined("no losing bar" if won > 0.0 else "equity never moved")
