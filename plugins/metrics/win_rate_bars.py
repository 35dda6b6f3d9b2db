"""Win rate over bars."""

from typing import ClassVar

import numpy as np

from bellmark.component import Metric, component
from bellmark.evaluation.curve import Curve, Undefined


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
        moving = np.count_nonzero(curve.returns)
        return float(np.count_nonzero(curve.returns > 0.0) / moving) if moving else Undefined("equity never moved")
