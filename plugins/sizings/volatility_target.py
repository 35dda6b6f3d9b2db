"""Sizing: as many lots as have the volatility that the account is to have."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from bellmark.component import Sizing, component, setting
from bellmark.market import whole_lots


@component
class VolatilityTarget(Sizing):
    """Target = exposure * target_volatility * equity / symbols / (sigma * value of one lot at the decision close), rounded towards zero.

    sigma = standard deviation (of a sample: divided by window - 1) of the last `window` simple returns of the close up to the decision,
    times sqrt(bars a year of the tape). The value of the target is at most `max_fraction` of the account's share of the equity, which is
    what binds in calm markets. symbols: how many share the account, 1 unless market.account is "shared"; the correlation between them is
    left out, so that an account of several has less than the target unless they move together.
    No lots where sigma is not known: in a symbol's first `window` bars, within `window` bars of a price that is not positive, and where no
    price has moved; nor for an account without equity.
    """

    name: ClassVar[str] = "volatility_target"
    target_volatility: float = setting(0.1, "volatility a year at an exposure of 1, 0.1 = 10 %", gt=0.0, le=10.0, unit="fraction a year")
    window: int = setting(60, "returns in the deviation", ge=2, unit="bars")
    max_fraction: float = setting(1.0, "largest value of the position over the equity", gt=0.0, le=10.0)
    series: ClassVar[dict[str, str]] = {"sigma": "float64"}

    def compute_series(self, tape: Any) -> dict[str, Any]:
        """sigma (S, T): a year's volatility at the close of each bar, NaN where it is not known."""
        from bellmark import backend

        deviation_ST = np.full(tape.close_ST.shape, np.nan)
        return_T = np.zeros(tape.close_ST.shape[1])
        backend.compile(_deviation)(tape.close_ST, tape.length_S, self.window, return_T, deviation_ST)
        return {"sigma": deviation_ST * np.sqrt(tape.periods_per_year)}

    @staticmethod
    def target(t, exposure, equity, price, value_numerator, value_denominator, symbols, target_volatility, max_fraction, sigma_T):
        sigma = sigma_T[t]
        if equity <= 0 or price <= 0 or not sigma > 0.0:
            return 0
        fraction = exposure * target_volatility / sigma
        fraction = min(max(fraction, -max_fraction), max_fraction)
        return whole_lots(fraction * equity / (price * 1.0 * value_numerator / value_denominator * symbols))


def _deviation(close_ST, length_S, window, return_T, deviation_ST):  # type: ignore[no-untyped-def]
    # Two passes over each window: a running sum of squares would keep what a jump left in its last digits.
    for s in range(close_ST.shape[0]):
        known = 0
        for t in range(1, length_S[s]):
            if close_ST[s, t] <= 0 or close_ST[s, t - 1] <= 0:
                known = 0
                continue
            return_T[t] = float(close_ST[s, t] - close_ST[s, t - 1]) / float(close_ST[s, t - 1])
            known += 1
            if known < window:
                continue
            mean = 0.0
            for k in range(t - window + 1, t + 1):
                mean += return_T[k]
            mean /= window
            square = 0.0
            for k in range(t - window + 1, t + 1):
                square += (return_T[k] - mean) * (return_T[k] - mean)
            deviation_ST[s, t] = np.sqrt(square / (window - 1.0))
