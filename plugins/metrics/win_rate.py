"""Win rate over trades."""

import math
from typing import ClassVar

import numpy as np

from bellmark.component import Metric, component
from bellmark.evaluation.curve import Curve, Undefined
from bellmark.evaluation.summary import Summary
from bellmark.evaluation.trades import NO_TRADE, NO_VALUE, closed_profits


@component
class WinRate(Metric):
    """Share of closed trades that made money.

    win_rate = trades with profit > 0 / all closed trades; a trade of exactly zero counts as not won. Unit: fraction of closed trades.
    Profit is net of spread, slippage and fees. Undefined without a closed trade.
    """

    name: ClassVar[str] = "win_rate"
    unit: ClassVar[str] = "fraction of closed trades"
    convention: ClassVar[str] = "closed trades with net profit > 0 / all closed trades"
    higher_is_better: ClassVar[bool | None] = True
    position: ClassVar[int] = 130

    def compute(self, curve: Curve) -> float | Undefined:
        """The win rate of a curve."""
        profits = closed_profits(curve)
        return profits if isinstance(profits, Undefined) else float(np.mean(profits > 0.0))

    def of_summary(self, summary: Summary) -> float | Undefined:
        """The win rate of a summary."""
        if summary.trades == 0:
            return Undefined(NO_TRADE)
        return Undefined(NO_VALUE) if math.isnan(summary.trade_gain) else summary.winning_trades / summary.trades
