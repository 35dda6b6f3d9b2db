"""Total costs."""

from typing import ClassVar

from bellmark.component import Metric, component
from bellmark.evaluation.curve import Curve
from bellmark.evaluation.summary import Summary


@component
class Costs(Metric):
    """Everything paid to trade and hold, as a share of the start equity.

    costs = (spread + slippage + fees + funding) / equity_0. Unit: fraction of start equity. Negative where funding
    received exceeds the rest.
    """

    name: ClassVar[str] = "costs"
    unit: ClassVar[str] = "fraction of start equity"
    convention: ClassVar[str] = "(spread + slippage + fees + funding) / equity_0"
    higher_is_better: ClassVar[bool | None] = False
    position: ClassVar[int] = 100

    def compute(self, curve: Curve) -> float:
        """The costs of a curve."""
        return curve.total_cost / float(curve.equity[0])

    def of_summary(self, summary: Summary) -> float:
        """The costs of a summary."""
        return summary.total_cost / summary.start_equity
