"""Profit factor over trades."""

import math
from typing import ClassVar

from bellmark.component import Metric, component
from bellmark.evaluation.curve import Curve, Undefined
from bellmark.evaluation.summary import Summary
from bellmark.evaluation.trades import NO_TRADE, NO_VALUE, closed_profits


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
        return _factor(float(profits[profits > 0.0].sum()), -float(profits[profits < 0.0].sum()))

    def of_summary(self, summary: Summary) -> float | Undefined:
        """The profit factor of a summary's closed trades."""
        if summary.trades == 0:
            return Undefined(NO_TRADE)
        return Undefined(NO_VALUE) if math.isnan(summary.trade_loss) else _factor(summary.trade_gain, summary.trade_loss)


def _factor(won: float, lost: float) -> float | Undefined:
    return won / lost if lost > 0.0 else Undefined("no losing trade")
