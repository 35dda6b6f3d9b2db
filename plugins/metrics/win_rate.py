"""Win rate over trades."""

from typing import ClassVar

import numpy as np

from bellmark.component import Metric, component
from bellmark.evaluation.curve import Curve, Undefined
from bellmark.evaluation.trades import closed_profits


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
