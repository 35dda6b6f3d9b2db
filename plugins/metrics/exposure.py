"""Mean exposure."""

from typing import ClassVar

import numpy as np

from bellmark.component import Metric, component
from bellmark.evaluation.curve import Curve, Undefined


@component
class Exposure(Metric):
    """How much of equity was at work on average, whichever the side.

    exposure = mean over bars of sum over symbols of |position value| / equity, at each bar's close. Unit: fraction of equity; above 1
    with leverage.
    """

    name: ClassVar[str] = "exposure"
    unit: ClassVar[str] = "fraction of equity"
    convention: ClassVar[str] = "mean of |position value| / equity at the bars' closes"
    needs_survival: ClassVar[bool] = True
    position: ClassVar[int] = 90

    def compute(self, curve: Curve) -> float | Undefined:
        """The mean absolute exposure of a curve."""
        held = curve.gross_exposure if curve.gross_exposure is not None else curve.exposure
        if held is None or held.size < 2:
            return Undefined("exposure is not known" if held is None else "no bar")
        return float(np.mean(np.abs(held[1:])))
