"""Win rate over bars."""

from typing import ClassVar

import numpy as np

from bellmark.component import Metric, component
from bellmark.evaluation.curve import Curve, Undefined
from bellmark.evaluation.summary import Summary


@component
class WinRateBars(Metric):
    """Share of the bars with a return that had a positive one.

    win_rate_bars = bars with r > 0 / bars with r != 0. Unit: fraction of moving bars. Undefined where equity never moved.
    """

    name: ClassVar[str] = "win_rate_bars"
    unit: ClassVar[str] = "fraction of moving bars"
    convention: ClassVar[str] = "bars with r > 0 / bars with r != 0"
    higher_is_better: ClassVar[bool | None] = True
    position: ClassVar[int] = 150

    def compute(self, curve: Curve) -> float | Undefined:
        """The share of winning bars of a curve."""
        return _share(int(np.count_nonzero(curve.returns > 0.0)), int(np.count_nonzero(curve.returns < 0.0)))

    def of_summary(self, summary: Summary) -> float | Undefined:
        """The share of winning bars of a summary."""
        return _share(summary.winning_bars, summary.losing_bars)


def _share(winning: int, losing: int) -> float | Undefined:
    return winning / (winning + losing) if winning + losing else Undefined("equity never moved")
