"""Sharpe ratio."""

from typing import ClassVar

import numpy as np

from bellmark.component import Metric, component
from bellmark.evaluation.curve import Curve, Undefined
from bellmark.evaluation.statistics import deviation, ratio_to


@component
class SharpeRatio(Metric):
    """Mean over deviation of bar returns, scaled to a year.

    sharpe_ratio = mean(r) / std(r, ddof 1) * sqrt(P): simple bar returns, no risk-free rate. Unit: ratio a year.
    Source: Sharpe (1994), ex-post ratio with a zero benchmark. Undefined where returns never vary.
    """

    name: ClassVar[str] = "sharpe_ratio"
    unit: ClassVar[str] = "ratio a year"
    convention: ClassVar[str] = "mean(r) / std(r, ddof 1) * sqrt(P), simple bar returns, no risk-free rate"
    higher_is_better: ClassVar[bool | None] = True
    annualised: ClassVar[bool] = True
    needs_survival: ClassVar[bool] = True
    position: ClassVar[int] = 50

    def compute(self, curve: Curve) -> float | Undefined:
        """The Sharpe ratio of a curve."""
        spread = deviation(curve.returns)
        if isinstance(spread, Undefined):
            return spread
        value = ratio_to(float(np.mean(curve.returns)), spread, "equity never moved", "returns never vary")
        return value if isinstance(value, Undefined) else value * float(np.sqrt(curve.periods_per_year))
