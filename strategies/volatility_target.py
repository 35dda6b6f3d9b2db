"""Strategy: hold as much as keeps the volatility at a target."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from bellmark.component import Strategy, component, setting

_WARM_UP = 3  # windows after which the first return weighs 0.25 % at most


@component
class VolatilityTarget(Strategy):
    """Long with exposure min(target / volatility, max_exposure), changed only where it is more than `threshold` away from the one held.

    variance[t] = variance[t - 1] + 2 / (window + 1) (r[t]^2 - variance[t - 1]) with simple returns r of the close, and the first of them
    squared to begin with; volatility = sqrt(variance * bars a year of the tape). Not known, and the exposure 0, in the first 3 * `window`
    returns of a symbol (and anew after a price that is not positive, which has no return) and where no price has moved.
    The exposure is a fraction of the account: the sizing rounds it to lots, and `fixed_lots` with few lots leaves little of it.
    Source: the exponential variance of RiskMetrics (1996) and the scaling of Moreira and Muir (2017), "Volatility-managed portfolios", by
    volatility in place of variance.
    """

    name: ClassVar[str] = "volatility_target"
    target: float = setting(0.1, "volatility a year that the position is to have, 0.1 = 10 %", gt=0.0, le=10.0, unit="fraction a year")
    window: int = setting(60, "span of the variance: the newest return weighs 2 / (window + 1)", ge=1, unit="bars")
    max_exposure: float = setting(1.0, "largest exposure", gt=0.0, le=10.0)
    threshold: float = setting(0.05, "change of exposure below which nothing is done", ge=0.0, le=10.0)
    state: ClassVar[dict[str, str]] = {"held": "float64"}
    series: ClassVar[dict[str, str]] = {"volatility": "float64"}

    def compute_series(self, tape: Any) -> dict[str, Any]:
        """volatility (S, T): a year's volatility at the close of each bar, NaN where it is not known."""
        from bellmark import backend

        variance_ST = np.full(tape.close_ST.shape, np.nan)
        backend.compile(_variance)(tape.close_ST, tape.length_S, self.window, _WARM_UP * self.window, variance_ST)
        return {"volatility": np.sqrt(variance_ST * tape.periods_per_year)}

    @staticmethod
    def decide(t, volatility_T, target, max_exposure, threshold, held):
        wanted = min(target / volatility_T[t], max_exposure) if volatility_T[t] > 0.0 else 0.0
        if wanted == 0.0 or held == 0.0 or abs(wanted - held) > threshold:
            held = wanted
        return held, held


def _variance(close_ST, length_S, window, warm_up, variance_ST):  # type: ignore[no-untyped-def]
    for s in range(close_ST.shape[0]):
        variance, known = 0.0, 0
        for t in range(1, length_S[s]):
            if close_ST[s, t] <= 0 or close_ST[s, t - 1] <= 0:
                known = 0
                continue
            change = float(close_ST[s, t] - close_ST[s, t - 1]) / float(close_ST[s, t - 1])
            variance = change * change if known == 0 else variance + 2.0 / (window + 1.0) * (change * change - variance)
            known += 1
            if known >= warm_up:
                variance_ST[s, t] = variance
