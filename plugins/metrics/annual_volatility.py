"""Annual volatility."""

import math
from typing import ClassVar

from bellmark.component import Metric, component
from bellmark.evaluation.curve import Curve, Undefined
from bellmark.evaluation.statistics import deviation
from bellmark.evaluation.summary import Summary


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
        return _yearly(deviation(curve.returns), curve.periods_per_year)

    def of_summary(self, summary: Summary) -> float | Undefined:
        """The volatility of a summary."""
        return _yearly(summary.deviation(), summary.periods_per_year)


def _yearly(spread: float | Undefined, periods_per_year: float) -> float | Undefined:
    return spread if isinstance(spread, Undefined) else spread * math.sqrt(periods_per_year)
