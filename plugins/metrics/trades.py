"""Number of trades."""

from typing import ClassVar

from bellmark.component import Metric, component
from bellmark.evaluation.curve import Curve
from bellmark.evaluation.summary import Summary
from bellmark.evaluation.trades import trade_table


@component
class Trades(Metric):
    """Round trips that were closed: from flat to flat, or to the opposite side, per symbol. Unit: count. A trade still open is left out."""

    name: ClassVar[str] = "trades"
    unit: ClassVar[str] = "closed trades"
    convention: ClassVar[str] = "from flat to flat or to the other side, per symbol; open ones left out"
    position: ClassVar[int] = 120

    def compute(self, curve: Curve) -> float:
        """The number of closed trades of a curve."""
        return float(trade_table(curve)["closed"].sum())

    def of_summary(self, summary: Summary) -> float:
        """The number of closed trades of a summary."""
        return float(summary.trades)
