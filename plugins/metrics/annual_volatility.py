"""Annual volatility."""

from typing import ClassVar

import numpy as np

from bellmark.component import Metric, component
from bellmark.evaluation.curve import Curve, Undefined
from bellmark.evaluation.statistics import deviation


@component
class AnnualVolatility(Metric):
    """Standard deviation of bar returns, scaled to a year.

    annual_volatility = std(r, ddof 1) * sqrt(P). Unit: fraction a year. Zero where returns never vary.
    """

    name: ClassVar[str] = "annual_volatility"
    unit: ClassVar[str] = "fraction a year"
    convention: ClassVar[str] = "std(r, ddof 1) * sqrt(P)"
    higher_is_better: ClassVar[bool | None] = False
    annualised: ClassVar[bool] = True
    needs_survival: ClassVar[bool] = True
    position: ClassVar[int] = 40

    def compute(self, curve: Curve) -> float | Undefined:
        """The volatility of a curve."""
        value = deviation(curve.returns)
        return value if isinstance(value, Undefined) else value * float(np.sqrt(curve.periods_per_year))
