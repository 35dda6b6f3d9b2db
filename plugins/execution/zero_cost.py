"""Execution: the bar's own prices without spread and slippage."""

from typing import ClassVar

from bellmark.component import Execution, component
from bellmark.market import protect as protect_at
from bellmark.plugins.execution.bar import Bar

_fill = Bar.fill


@component
class ZeroCost(Execution):
    """As `bar`, with a spread and a slippage of 0 whatever [market] says, for orders, stops and targets; fees stay the market's.

    For tests and for the part of a result that is the rule's own: what it loses against `bar` is what trading costs. Not a market.
    """

    name: ClassVar[str] = "zero_cost"
    order_types: ClassVar[tuple[str, ...]] = ("market", "limit", "ioc")

    @staticmethod
    def fill(t, open_T, high_T, low_T, volume_T, order_lots, order_type, limit_price, participation, positive_only):
        return _fill(t, open_T, high_T, low_T, volume_T, order_lots, order_type, limit_price, participation, 0, 0, 0, positive_only)

    @staticmethod
    def quote(t, close_T):
        return close_T[t], close_T[t]

    @staticmethod
    def protect(t, position, stop_price, target_price, start_price, rested, target_at_open, open_T, high_T, low_T, close_T):
        return protect_at(
            t, position, stop_price, target_price, start_price, rested, target_at_open, open_T, high_T, low_T, close_T, 0, 0, 0
        )
