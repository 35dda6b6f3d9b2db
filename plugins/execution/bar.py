"""Execution: orders work within the bar that follows the decision."""

from typing import ClassVar

from bellmark.component import Execution, component
from bellmark.market import BAD_PRICE, FILLED, NO_VOLUME, RATE_ONE, mul_div


@component
class Bar(Execution):
    """A market order fills whole at the open of the working bar, worse by half the spread and the slippage.

    Slippage is a number of ticks plus a share of the price, rounded half away from zero to quanta. A bar with zero volume does not fill;
    unknown volume does. A price that is not positive after the costs is refused where the instrument's prices are positive.
    Returns lots, reference price, spread and slippage in quanta a unit, and the reason code.
    """

    name: ClassVar[str] = "bar"
    order_types: ClassVar[tuple[str, ...]] = ("market",)

    @staticmethod
    def fill(t, open_T, volume_T, order_lots, half_spread, slippage, slippage_rate, positive_only):
        reference = open_T[t]
        level = reference if reference >= 0 else -reference
        slip = slippage + mul_div(level, slippage_rate, RATE_ONE)
        if volume_T[t] == 0.0:
            return 0, reference, half_spread, slip, NO_VOLUME
        worst = reference - half_spread - slip if order_lots < 0 else reference
        if positive_only != 0 and worst <= 0:
            return 0, reference, half_spread, slip, BAD_PRICE
        return order_lots, reference, half_spread, slip, FILLED
