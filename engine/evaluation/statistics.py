"""The few formulas that several metrics share. Conventions: simple bar returns, no risk-free rate, float64."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bellmark.evaluation.curve import Undefined

NEGLIGIBLE = 1e-12


def deviation(returns: NDArray[np.float64]) -> float | Undefined:
    """Sample standard deviation (ddof 1); exactly 0 where it is below 1e-12 of the mean, which is what rounding leaves of no deviation."""
    if returns.size < 2:
        return Undefined("fewer than two bars")
    value = float(np.std(returns, ddof=1))
    return 0.0 if value <= NEGLIGIBLE * abs(float(np.mean(returns))) else value


def downside_deviation(returns: NDArray[np.float64]) -> float | Undefined:
    """sqrt(mean(min(r, 0)^2)) over all bars, the winning ones included as zeros."""
    if returns.size == 0:
        return Undefined("no bar")
    return float(np.sqrt(np.mean(np.minimum(returns, 0.0) ** 2)))


def ratio_to(mean: float, spread: float, nothing: str, certain: str) -> float | Undefined:
    """mean / spread, with the reason for 0/0 (`nothing`) and for x/0 (`certain`)."""
    if spread == 0.0:
        return Undefined(nothing if mean == 0.0 else certain)
    return mean / spread


def yearly_ratio(mean: float, spread: float | Undefined, periods_per_year: float, certain: str) -> float | Undefined:
    """mean / spread * sqrt(P) of bar returns; undefined where the spread is, or is zero (`certain` says why, where the mean is not)."""
    value = spread if isinstance(spread, Undefined) else ratio_to(mean, spread, "equity never moved", certain)
    return value if isinstance(value, Undefined) else value * math.sqrt(periods_per_year)


def yearly_growth(wealth: float, years: float) -> float | Undefined:
    """wealth^(1 / years) - 1, wealth = end over start equity; undefined below zero wealth, without time, or past the largest number."""
    if years <= 0.0:
        return Undefined("no time passes")
    if wealth < 0.0:
        return Undefined("equity ended below zero")
    with np.errstate(over="ignore"):
        grown = float(np.power(np.float64(wealth), 1.0 / years)) - 1.0
    return grown if np.isfinite(grown) else Undefined("too large for a number: the span is too short to compound")
