"""Money of the market rules: exact integers, rounded half away from zero once a booking, on every backend the same bits.

Prices are int64 price quanta, positions int64 lots, money int64 nano-currency (1e-9). The value of one quantum of one lot is the ratio
value_numerator / value_denominator. On every lane and after every bar

    equity = start + gross - spread - slippage - fees - funding + rounding

holds exactly, where gross is the profit at reference prices and rounding collects what single roundings leave (zero when the denominator
is 1, and otherwise at most a few nano-currency a bar).
"""

from __future__ import annotations

RATE_ONE = 1_000_000_000  # rates (fees, margins, slippage) are integers in 1e-9
NANO = 1_000_000_000

FILLED, UNAFFORDABLE, NO_VOLUME, BAD_PRICE, LAST_BAR, BAD_EXPOSURE, BAD_SIZE = range(7)
REASONS = (
    "filled",
    "needs more equity than the account has (initial margin and fee)",
    "no volume in the bar",
    "price not positive",
    "order on the last bar of the window",
    "exposure is not a number",
    "size out of range",
)

# Costs of one symbol in one group of lanes, in the order of the last axis of cost_GSJ.
COST_FIELDS = (
    "half_spread",  # quanta
    "slippage",  # quanta
    "slippage_rate",  # 1e-9 of the price
    "fee_per_lot",  # nano-currency
    "fee_rate",  # 1e-9 of the notional
    "fee_minimum",  # nano-currency an order
    "margin_per_lot",  # nano-currency
    "margin_rate",  # 1e-9 of the notional
)
INSTRUMENT_FIELDS = ("value_numerator", "value_denominator", "quanta_per_tick", "positive_only")


def mul_div(value, numerator, denominator):
    """value * numerator / denominator, rounded half away from zero; exact in int64 where the result is and denominator**2 is."""
    if denominator == 1:
        return value * numerator
    magnitude = value if value >= 0 else -value
    times = numerator // denominator  # split off, so that the product of the rests stays below denominator**2
    numerator -= times * denominator
    whole = magnitude // denominator
    rest = (magnitude - whole * denominator) * numerator
    part = rest // denominator
    if 2 * (rest - part * denominator) >= denominator:
        part += 1
    result = magnitude * times + whole * numerator + part
    return result if value >= 0 else -result


def order_fee(lots, price, value_numerator, value_denominator, fee_per_lot, fee_rate, fee_minimum):
    """Fee of one order in nano-currency: per lot and per notional, at least the minimum."""
    size = lots if lots >= 0 else -lots
    level = price if price >= 0 else -price
    fee = size * fee_per_lot
    if fee_rate != 0:
        fee += mul_div(mul_div(size * level, value_numerator, value_denominator), fee_rate, 1_000_000_000)
    if fee < fee_minimum and size > 0:
        fee = fee_minimum
    return fee


def margin_need(lots, price, value_numerator, value_denominator, margin_per_lot, margin_rate):
    """Initial margin of a position in nano-currency."""
    size = lots if lots >= 0 else -lots
    level = price if price >= 0 else -price
    need = size * margin_per_lot
    if margin_rate != 0:
        need += mul_div(mul_div(size * level, value_numerator, value_denominator), margin_rate, 1_000_000_000)
    return need


def increases(position, target):
    """Whether a new position needs margin: larger than the old one, or on the other side."""
    if target == 0:
        return False
    if position == 0 or (position > 0) != (target > 0):
        return True
    return (target if target > 0 else -target) > (position if position > 0 else -position)


def average_entry(position, entry_price, lots, price):
    """Average entry price in quanta after a fill: kept when reducing, averaged when adding, the fill's price when opening or reversing."""
    after = position + lots
    if after == 0:
        return 0.0
    if position == 0 or (position > 0) != (after > 0):
        return price * 1.0
    if (lots > 0) == (position > 0):
        return (entry_price * position + price * 1.0 * lots) / after
    return entry_price
