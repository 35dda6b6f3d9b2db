"""Turnover."""

import math
from typing import ClassVar

import numpy as np

from bellmark.component import Metric, component
from bellmark.evaluation.curve import Curve, Undefined
from bellmark.evaluation.summary import Summary
from bellmark.evaluation.trades import NO_VALUE


@component
class Turnover(Metric):
    """How often the account was traded over in the whole span.

    turnover = sum over fills of |lots x fill price| / mean equity (both sides counted: in and out of full exposure is 2).
    Unit: times mean equity. Not annualised. Zero without a fill.
    """

    name: ClassVar[str] = "turnover"
    unit: ClassVar[str] = "times mean equity"
    convention: ClassVar[str] = "sum of |fill value| / mean equity, both sides, whole span"
    needs_survival: ClassVar[bool] = True
    position: ClassVar[int] = 110

    def compute(self, curve: Curve) -> float | Undefined:
        """The turnover of a curve."""
        return _turnover(curve.fills.size, float(np.sum(np.abs(curve.fills["notional"]))), float(np.mean(curve.equity)))

    def of_summary(self, summary: Summary) -> float | Undefined:
        """The turnover of a summary."""
        return _turnover(summary.fills, summary.traded_value, summary.equity_sum / (summary.bars + 1))


def _turnover(fills: int, traded: float, mean_equity: float) -> float | Undefined:
    if fills == 0:
        return 0.0
    if math.isnan(traded):
        return Undefined(NO_VALUE)
    return traded / mean_equity if mean_equity > 0.0 else Undefined("mean equity is not above zero")
