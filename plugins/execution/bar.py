"""Execution: orders work within the bar that follows the decision."""

from typing import ClassVar

from bellmark.component import Execution, component
from bellmark.market import (
    BAD_PRICE,
    FILLED,
    IOC,
    IOC_CAP,
    LIMIT,
    MAKER,
    NO_VOLUME,
    NOT_REACHED,
    largest_part,
    mul_rate,
)


@component
class Bar(Execution):
    """Orders against the bar's own prices, half the spread and the slippage on either side of them.

    market: at the open, worse by half the spread and the slippage (ticks plus a share of the price, rounded half away from zero to quanta).
    ioc: the same, if the price is no worse than its cap. limit: at the open as taker if half the spread beside it is no worse than the
    limit; else as maker at the limit if the bar trades through it (touching it is not enough). At most the participation's share of the
    volume in whole lots; zero volume fills nothing, unknown volume has no limit. A price that is not positive after the costs is refused
    where the instrument's prices are positive.
    Returns lots, reference price, spread and slippage in quanta a unit, and the reason code.
    """

    name: ClassVar[str] = "bar"
    order_types: ClassVar[tuple[str, ...]] = ("market", "limit", "ioc")

    @staticmethod
    def fill(t, open_T, high_T, low_T, volume_T, order_lots, order_type, limit_price, participation, half_spread, slippage, slippage_rate,
             positive_only):  # fmt: skip
        sign = 1 if order_lots > 0 else -1
        reference = open_T[t]
        level = reference if reference >= 0 else -reference
        slip = 0 if order_type == LIMIT else slippage + mul_rate(level, slippage_rate)
        lots = largest_part(order_lots, volume_T[t], participation)
        if lots == 0:
            return 0, reference, half_spread, slip, NO_VOLUME
        beyond = (reference + sign * (half_spread + slip) - limit_price) * sign > 0
        if order_type == IOC and beyond:
            return 0, reference, half_spread, slip, IOC_CAP
        if order_type == LIMIT and beyond:
            reached = low_T[t] < limit_price if sign > 0 else high_T[t] > limit_price
            if not reached:
                return 0, reference, 0, 0, NOT_REACHED
            inside = min(max(limit_price, low_T[t]), high_T[t])
            return lots, inside, (limit_price - inside) * sign, 0, MAKER
        if positive_only != 0 and sign < 0 and reference - half_spread - slip <= 0:
            return 0, reference, half_spread, slip, BAD_PRICE
        return lots, reference, half_spread, slip, FILLED
