"""Profit factor over trades."""

from typing import ClassVar

from bellmark.component import Metric, component
from bellmark.evaluation.curve import Curve, Undefined
from bellmark.evaluation.trades import closed_profits


@component
class ProfitFactor(Metric):
    """Money won over money lost, by closed trade.

    profit_factor = sum of winning trades / |sum of losing trades|, net of spread, slippage and fees (not net profit over gross loss).
    Unit: ratio. Undefined without a losing trade. `profit_factor_bars` is the same over bar returns.
    """

    name: ClassVar[str] = "profit_factor"
    unit: ClassVar[str] = "ratio"
    convention: ClassVar[str] = "sum of winning trades / |sum of losing trades|, net of costs"
    higher_is_better: ClassVar[bool | None] = True
    needs_survival: ClassVar[bool] = True
    position: ClassVar[int] = 140

    def compute(self, curve: Curve) -> float | Undefined:
        """The profit factor of a curve's closed trades."""
        profits = closed_profits(curve)
        if isinstance(profits, Undefined):
            return profits
        lost = -float(profits[profits < 0.0].sum())
        return float(profits[profits > 0.0].sum()) / lost if lost > 0.0 else Undefined("no losing trade")
