"""Total return."""

from typing import ClassVar

from bellmark.component import Metric, component
from bellmark.evaluation.curve import Curve
from bellmark.evaluation.summary import Summary


@component
class TotalReturn(Metric):
    """Growth of equity over the whole span, after all costs.

    total_return = equity_n / equity_0 - 1. Unit: fraction of start equity. Below -1 where equity ends below zero. Always defined.
    """

    name: ClassVar[str] = "total_return"
    unit: ClassVar[str] = "fraction of start equity"
    convention: ClassVar[str] = "equity_n / equity_0 - 1, after all costs"
    higher_is_better: ClassVar[bool | None] = True
    position: ClassVar[int] = 10

    def compute(self, curve: Curve) -> float:
        """The total return of a curve."""
        return curve.wealth - 1.0

    def of_summary(self, summary: Summary) -> float:
        """The total return of a summary."""
        return summary.wealth - 1.0
