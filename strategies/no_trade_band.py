"""Strategy: the band around the mean of a mean-reverting price in which nothing is done."""

from typing import ClassVar

from bellmark.component import Strategy, component, setting


@component
class NoTradeBand(Strategy):
    """Short above level + band, long below level - band, and no change in between.

    For an Ornstein-Uhlenbeck price with proportional cost and a limited position this form is optimal; the dataset
    `ornstein_uhlenbeck` gives the exact band for its parameters and a cost.
    """

    name: ClassVar[str] = "no_trade_band"
    level: float = setting(100.0, "mean of the price", unit="price")
    band: float = setting(1.0, "half width of the band", ge=0.0, unit="price")
    state: ClassVar[dict[str, str]] = {"side": "float64"}

    @staticmethod
    def decide(t, close_T, price_quantum, level, band, side):
        deviation = close_T[t] * price_quantum - level
        if deviation > band:
            side = -1.0
        elif deviation < -band:
            side = 1.0
        return side, side
