"""Sizing: a fraction of the equity."""

from typing import ClassVar

from bellmark.component import Sizing, component, setting


@component
class EquityFraction(Sizing):
    """Target = exposure * fraction * equity / value of one lot at the decision close, rounded towards zero.

    With `fraction` = 1 and a gap against the order the fill may need more than the account has; it is then refused with its reason.
    No target is given for an account without equity or at a price that is not positive (the order is to go flat).
    """

    name: ClassVar[str] = "equity_fraction"
    fraction: float = setting(0.95, "share of the equity held at an exposure of 1", gt=0.0, le=10.0)

    @staticmethod
    def target(exposure, equity, price, value_numerator, value_denominator, fraction):
        if equity <= 0 or price <= 0:
            return 0
        value_of_lot = price * 1.0 * value_numerator / value_denominator
        return int(exposure * fraction * equity / value_of_lot)
