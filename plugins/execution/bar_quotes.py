"""Execution: orders against the quotes of a bar."""

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
    STOP,
    TARGET,
    largest_part,
    mul_rate,
)


@component
class BarQuotes(Execution):
    """Buys at the ask and sells at the bid of the bar's open, worse by the slippage; the spread is the data's and not that of [market].

    reference = floor((bid_open + ask_open) / 2), spread = distance of the touched side from it.
    market: at the touched side. ioc: the same, if with the slippage it is no worse than its cap. limit: at the touched side as taker where
    the open is no worse than the limit; else as maker at the limit (reference = limit, spread 0) if the other side's quotes pass it: a
    buy where ask_low < limit, a sale where bid_high > limit; touching is not enough. Volume and participation as in `bar`.
    Stops of a long are hit on bid_low and fill at the stop or, where the bar opens beyond it, at bid_open; those of a short on ask_high and
    ask_open. The open's distance from bid or ask to the middle is taken as their spread, so that gross profit and loss are those of the
    middle. Targets of a long are hit on bid_high, of a short on ask_low, and fill at their price as maker.
    Limits and caps are fixed from bid_close and ask_close of the decision bar. Quotes are prices of the bar's own trading hours: how many
    lots stand behind them is not known, so large orders fill here at prices that they would have moved (see `impact`).
    """

    name: ClassVar[str] = "bar_quotes"
    order_types: ClassVar[tuple[str, ...]] = ("market", "limit", "ioc")
    needs: ClassVar[tuple[str, ...]] = (
        "bid_open", "bid_high", "bid_low", "bid_close", "ask_open", "ask_high", "ask_low", "ask_close",
    )  # fmt: skip
    within_bar: ClassVar[bool] = False  # the middle of the quotes may lie outside the traded range

    @staticmethod
    def fill(t, bid_open_T, bid_high_T, ask_open_T, ask_low_T, volume_T, order_lots, order_type, limit_price, participation, slippage,
             slippage_rate, positive_only):  # fmt: skip
        sign = 1 if order_lots > 0 else -1
        middle = (bid_open_T[t] + ask_open_T[t]) // 2
        touched = ask_open_T[t] if sign > 0 else bid_open_T[t]
        spread = (touched - middle) * sign
        slip = 0 if order_type == LIMIT else slippage + mul_rate(abs(middle), slippage_rate)
        lots = largest_part(order_lots, volume_T[t], participation)
        if lots == 0:
            return 0, middle, spread, slip, NO_VOLUME
        beyond = (touched + sign * slip - limit_price) * sign > 0
        if order_type == IOC and beyond:
            return 0, middle, spread, slip, IOC_CAP
        if order_type == LIMIT and beyond:
            reached = ask_low_T[t] < limit_price if sign > 0 else bid_high_T[t] > limit_price
            return (lots, limit_price, 0, 0, MAKER) if reached else (0, middle, 0, 0, NOT_REACHED)
        if positive_only != 0 and sign < 0 and touched - slip <= 0:
            return 0, middle, spread, slip, BAD_PRICE
        return lots, middle, spread, slip, FILLED

    @staticmethod
    def quote(t, bid_close_T, ask_close_T):
        return bid_close_T[t], ask_close_T[t]

    @staticmethod
    def protect(t, position, stop_price, target_price, start_price, rested, target_at_open, bid_open_T, bid_high_T, bid_low_T, bid_close_T,
                ask_open_T, ask_high_T, ask_low_T, ask_close_T, slippage, slippage_rate):  # fmt: skip
        middle = (bid_open_T[t] + ask_open_T[t]) // 2
        if position > 0:
            opened, spread = bid_open_T[t], middle - bid_open_T[t]
            exit_price = min(stop_price, start_price if rested != 0 else opened)
            stopped, reference = bid_low_T[t] <= stop_price, exit_price + spread
            taken = bid_close_T[t] >= target_price if rested != 0 else bid_high_T[t] >= target_price
            better = opened > target_price
        else:
            opened, spread = ask_open_T[t], ask_open_T[t] - middle
            exit_price = max(stop_price, start_price if rested != 0 else opened)
            stopped, reference = ask_high_T[t] >= stop_price, exit_price - spread
            taken = ask_close_T[t] <= target_price if rested != 0 else ask_low_T[t] <= target_price
            better = opened < target_price
        if stopped:
            return reference, spread, slippage + mul_rate(abs(reference), slippage_rate), STOP
        if taken:
            return opened if better and target_at_open != 0 and rested == 0 else target_price, 0, 0, TARGET
        return middle, 0, 0, 0
