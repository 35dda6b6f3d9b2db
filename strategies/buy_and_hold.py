"""Strategy: buy at the first bar and hold."""

from typing import ClassVar

from bellmark.component import Strategy, component, setting


@component
class BuyAndHold(Strategy):
    """A constant exposure from the first bar to the last; sized once, not rebalanced (unless market.resize is "always")."""

    name: ClassVar[str] = "buy_and_hold"
    exposure_level: float = setting(1.0, "exposure that is held", ge=-1.0, le=1.0)

    @staticmethod
    def decide(exposure_level):
        return exposure_level
