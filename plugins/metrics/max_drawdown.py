"""Maximum drawdown."""

from typing import ClassVar

from bellmark.component import Metric, component
from bellmark.evaluation.curve import Curve
from bellmark.evaluation.summary import Summary


@component
class MaxDrawdown(Metric):
    """The deepest fall below the highest equity so far.

    max_drawdown = min over t of equity_t / max(equity_0 .. equity_t) - 1, the start included. Unit: fraction of peak equity, at most 0;
    below -1 where equity fell below zero. Always defined; its dates come from `bellmark.evaluation.drawdown.drawdown_table`.
    """

    name: ClassVar[str] = "max_drawdown"
    unit: ClassVar[str] = "fraction of peak equity"
    convention: ClassVar[str] = "min over t of equity_t / highest equity so far - 1, the start included"
    higher_is_better: ClassVar[bool | None] = True
    position: ClassVar[int] = 80

    def compute(self, curve: Curve) -> float:
        """The deepest drawdown of a curve."""
        return float(curve.drawdown.min())

    def of_summary(self, summary: Summary) -> float:
        """The deepest drawdown of a summary."""
        return float(summary.max_drawdown)
