"""Turnover."""

from typing import ClassVar

import numpy as np

from bellmark.component import Metric, component
from bellmark.evaluation.curve import Curve, Undefined


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
        if curve.fills.size == 0:
            return 0.0
        traded = float(np.sum(curve.fills["notional"]))
        if np.isnan(traded):
            return Undefined("the fills do not state their value")
        mean = float(np.mean(curve.equity))
        return traded / mean if mean > 0.0 else Undefined("mean equity is not above zero")
