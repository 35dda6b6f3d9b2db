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

(FILLED, MAKER, UNAFFORDABLE, NO_VOLUME, BAD_PRICE, LAST_BAR, BAD_EXPOSURE, BAD_SIZE, HALTED, LIQUIDATED, IOC_CAP, NOT_REACHED, CANCELLED,
 BAD_FILL) = range(14)  # fmt: skip
REASONS = (
    "filled",
    "filled at its limit",
    "needs more equity than the account has (initial margin and fee)",
    "no volume in the bar",
    "price not positive",
    "order on the last bar of the window",
    "exposure is not a number",
    "size out of range",
    "trading is halted in the bar",
    "the account is being liquidated",
    "price beyond the cap of the ioc order",
    "the bar did not trade through the limit",
    "the rest was cancelled",
    "the execution model gave a fill that the order or the bar does not allow",
)
"""What became of an order, by code; FILLED and MAKER are fills, all others refusals."""

ORDER, LIQUIDATION, STOP, TRAILING, TARGET, ROLL_OUT, ROLL_IN, CLOSE_AT_END = range(8)
CAUSES = ("order", "liquidation", "stop", "trailing stop", "target", "roll out", "roll in", "close at end")
"""What caused a fill, by code."""

MARKET, LIMIT, IOC = range(3)  # order types, as in actions.ORDER_TYPES
# `standing`: a market order whose rest works on; flat after a protective exit until something else is asked; an order that ended with a
# part of it filled, so that what is held belongs to no exposure.
WORKING, STOPPED, UNSETTLED = 1, 2, 3
NO_LEVEL = 2**62  # where a stop or target that is not set lies: never reached

# Costs and limits of one symbol in one group of lanes, in the order of the last axis of cost_GSJ. Three of a kind: one an urgency.
COST_FIELDS = (
    "half_spread",  # quanta
    "slippage",  # quanta
    "slippage_rate",  # 1e-9 of the price
    "fee_per_lot",  # nano-currency
    "fee_rate",  # 1e-9 of the notional
    "fee_minimum",  # nano-currency an order
    "margin_per_lot",  # nano-currency
    "margin_rate",  # 1e-9 of the notional
    "maker_fee_per_lot",
    "maker_fee_rate",
    "maintenance_per_lot",
    "maintenance_rate",
    "roll_half_spread",  # quanta
    *(f"participation_{urgency}" for urgency in range(3)),  # 1e-9 of the bar's volume, 0 = no limit
    *(f"limit_offset_{urgency}" for urgency in range(3)),  # quanta
    *(f"limit_offset_rate_{urgency}" for urgency in range(3)),  # 1e-9 of the close
    *(f"ioc_cap_{urgency}" for urgency in range(3)),
    *(f"ioc_cap_rate_{urgency}" for urgency in range(3)),
    *("stop_distance", "stop_rate", "target_distance", "target_rate", "trail_distance", "trail_rate"),  # quanta; 1e-9 of the base
)
# What keeps the accounts within int64, after the costs: the largest position in lots, and the largest price in quanta with its costs. Sizes
# leave room for four times that price, so reference price and costs of a fill may each be twice as large.
LIMITS = ("size_limit", "price_limit")
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


def mul_rate(value, rate):
    """value * rate / 1e9, rounded half away from zero: `mul_div` for a rate (below 9e9), whose divisor the compiler knows."""
    if rate == 0:
        return 0
    magnitude = value if value >= 0 else -value
    share = rate if rate >= 0 else -rate
    rest = magnitude % 1_000_000_000 * share
    part = rest // 1_000_000_000
    if 2 * (rest - part * 1_000_000_000) >= 1_000_000_000:
        part += 1
    result = magnitude // 1_000_000_000 * share + part
    return result if (value >= 0) == (rate >= 0) else -result


def part_fee(lots, price, value_numerator, value_denominator, fee_per_lot, fee_rate):
    """Fee of one part of an order in nano-currency, per lot and per notional, before the order's minimum. Never of a signed size."""
    size = lots if lots >= 0 else -lots
    level = price if price >= 0 else -price
    fee = size * fee_per_lot
    if fee_rate != 0:
        fee += mul_rate(mul_div(size * level, value_numerator, value_denominator), fee_rate)
    return fee


def margin_need(lots, price, value_numerator, value_denominator, margin_per_lot, margin_rate):
    """Initial margin of a position in nano-currency."""
    size = lots if lots >= 0 else -lots
    level = price if price >= 0 else -price
    need = size * margin_per_lot
    if margin_rate != 0:
        need += mul_rate(mul_div(size * level, value_numerator, value_denominator), margin_rate)
    return need


def safe_closes(position, cash, worth, capital_floor, margin_per_lot, margin_rate):
    """Closes between which a position surely breaches neither its margin nor the capital floor; beyond them both are to be looked at.

    worth: nano-currency of one quantum of the position. Equity cash + close * worth and need |lots| * margin_per_lot + |close * worth| *
    rate are linear in a close above 0; where they meet is found in float64 and narrowed by 1e-6 of it and two quanta, far more than
    roundings.
    No close is safe for a long below 0, nor for a short whose cash does not cover the margin of its lots.
    """
    size = position if position >= 0 else -position
    rate = margin_rate * 1e-9
    spare = cash * 1.0 - size * 1.0 * margin_per_lot
    if position > 0:
        low = (capital_floor - cash) / (worth * 1.0)
        if rate < 1.0:
            low = max(low, -spare / (worth * (1.0 - rate)))
        elif spare < 0.0:
            low = 1e18
        low = max(low, 0.0) * 1.000001 + 2.0
        return int(min(low, 1e18)), NO_LEVEL
    if spare < 0.0:
        return NO_LEVEL, -NO_LEVEL
    high = min((capital_floor - cash) / (worth * 1.0), spare / (-worth * (1.0 + rate)))
    high = high - abs(high) * 1e-6
    return -NO_LEVEL, int(max(min(high, 1e18), -1e18)) - 2


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


def due_fee(parts, minimum):
    """What an order owes in all once its parts' fees add up to `parts`: at least the minimum, where there is one."""
    return minimum if minimum != 0 and parts < minimum else parts


def affordable(lots, position, reference, worse, budget, charged, parts, numerator, denominator, fee_per_lot, fee_rate, fee_minimum,
               margin_per_lot, margin_rate):  # fmt: skip
    """The largest part of an order, of its side, whose initial margin and fee the budget covers; what only closes needs nothing.

    budget: nano-currency, the account's equity at the reference price. charged, parts: fees of earlier parts of the order, as charged and
    as they add up. Found by bisection: need and fee grow with the size.
    """
    sign = 1 if lots > 0 else -1
    most = lots * sign
    held = position * sign
    least = min(-held, most) if held < 0 else 0  # closing the other side is always possible
    while least < most:
        size = least + (most - least + 1) // 2
        price = reference + sign * worse
        after = position + sign * size
        due = due_fee(parts + part_fee(size, price, numerator, denominator, fee_per_lot, fee_rate), fee_minimum) - charged
        need = margin_need(after, reference, numerator, denominator, margin_per_lot, margin_rate)
        if increases(position, after) and need + due > budget:
            most = size - 1
        else:
            least = size
    return sign * least


def book(lots, reference, spread, slippage, fee, mark, position, cash, gross, spread_cost, slippage_cost, fee_cost, change, numerator,
         denominator):  # fmt: skip
    """Books a fill: the old position is marked from `mark` to the reference price, costs and cash move.

    change: of the equity in this bar so far. Returns position, cash, gross, spread_cost, slippage_cost, fee_cost, change.
    """
    size = lots if lots > 0 else -lots
    worse = spread + slippage
    price = reference + worse if lots > 0 else reference - worse
    spread_part = mul_div(size * spread, numerator, denominator)
    slippage_part = mul_div(size * slippage, numerator, denominator)
    moved = mul_div(position * (reference - mark), numerator, denominator)
    cash = cash - mul_div(lots * price, numerator, denominator) - fee
    change = change + moved - spread_part - slippage_part - fee
    return (position + lots, cash, gross + moved, spread_cost + spread_part, slippage_cost + slippage_part, fee_cost + fee, change)


def sane(reference, spread, slippage, price_limit):
    """Whether a fill's price and costs lie where the accounts stay within int64."""
    largest = 2 * price_limit
    return -largest <= reference <= largest and 0 <= spread <= largest and 0 <= slippage <= largest and spread + slippage <= largest


def quote(t, close_T, half_spread):
    """Bid and ask at the close of bar t: half a spread on either side of the close."""
    return close_T[t] - half_spread, close_T[t] + half_spread


def protect(t, position, stop_price, target_price, start_price, rested, target_at_open, open_T, high_T, low_T, close_T, half_spread,
            slippage, slippage_rate):  # fmt: skip
    """Whether a bar reaches the position's stop or target; the stop if it may have reached both.

    start_price: where the position stood when the bar could first reach a level: its open, or the price at which a resting order filled in
    it (rested = 1; what the bar did before that is unknown, so its target counts only if the bar closes there). A stop that the bar opens
    beyond fills at the open; a target at its own price, at the open with target_at_open = 1.
    Returns reference price, spread and slippage in quanta a unit, and the cause: 0, STOP or TARGET.
    """
    if position > 0:
        stopped = low_T[t] <= stop_price
        taken = high_T[t] >= target_price
    else:
        stopped = high_T[t] >= stop_price
        taken = low_T[t] <= target_price
    if not stopped and not taken:
        return open_T[t], 0, 0, 0
    sign = 1 if position > 0 else -1
    if stopped:
        reference = min(stop_price, start_price) if sign > 0 else max(stop_price, start_price)
        level = reference if reference >= 0 else -reference
        return reference, half_spread, slippage + mul_rate(level, slippage_rate), STOP
    if rested != 0:
        return target_price, 0, 0, TARGET if (close_T[t] - target_price) * sign >= 0 else 0
    better = (open_T[t] - target_price) * sign > 0 and target_at_open != 0
    return open_T[t] if better else target_price, 0, 0, TARGET


def away(price, distance, rate, of, up, quanta_per_tick, round_up):
    """price + (distance + rate of the size of `of`), or minus it where `up` is 0, on the instrument's tick.

    Rounded up where round_up is 1, else down, to whole ticks; what lies within 1e-6 of a tick snaps to it. Without a tick the nearest
    quantum, half away from zero. The rate is in 1e-9; the product is split, so that nothing leaves int64 and no rest is lost.
    """
    level = of if of >= 0 else -of
    whole = level // RATE_ONE * rate
    rest = level % RATE_ONE * rate
    whole += rest // RATE_ONE
    rest = rest % RATE_ONE
    if up == 0:
        whole, rest = -whole, -rest
        distance = -distance
    base = price + distance + whole + (-1 if rest < 0 else 0)  # the result is base + rest / 1e9 with rest in [0, 1e9)
    rest = rest + RATE_ONE if rest < 0 else rest
    if quanta_per_tick == 0:
        if 2 * rest > RATE_ONE or (2 * rest == RATE_ONE and base >= 0):
            base += 1
        return base
    snap = 1_000 * quanta_per_tick  # 1e-6 of a tick in 1e-9 quanta
    inside = base % quanta_per_tick  # quanta above the tick below
    if inside == 0 and rest <= snap:
        return base
    if inside == quanta_per_tick - 1 and RATE_ONE - rest <= snap:
        return base + 1
    below = base - inside
    return below + quanta_per_tick if round_up != 0 else below


def resting_price(order_type, buys, close, bid, ask, distance, rate, quanta_per_tick):
    """The limit of a limit order, beside the near touch; the cap of an ioc order, beyond the far touch. Rounded away from the market."""
    if order_type == LIMIT:
        return away(bid, distance, rate, close, 0, quanta_per_tick, 0) if buys else away(ask, distance, rate, close, 1, quanta_per_tick, 1)
    return away(ask, distance, rate, close, 1, quanta_per_tick, 0) if buys else away(bid, distance, rate, close, 0, quanta_per_tick, 1)


def levels(position, base, stop_distance, stop_rate, target_distance, target_rate, quanta_per_tick):
    """Stop and target of a position, measured from `base`; a stop rounds to worse, a target away from the entry."""
    side = 1 if position > 0 else 0
    stop = -NO_LEVEL if side == 1 else NO_LEVEL
    target = -stop
    if stop_distance != 0 or stop_rate != 0:
        stop = away(base, stop_distance, stop_rate, base, 1 - side, quanta_per_tick, 1 - side)
    if target_distance != 0 or target_rate != 0:
        target = away(base, target_distance, target_rate, base, side, quanta_per_tick, side)
    return stop, target


def trail_level(position, price, distance, rate, quanta_per_tick):
    """The trailing stop of a position whose best price is `price`; rounded to worse."""
    if distance == 0 and rate == 0:
        return -NO_LEVEL if position > 0 else NO_LEVEL
    up = 0 if position > 0 else 1
    return away(price, distance, rate, price, up, quanta_per_tick, up)


def round_trip(position, lots, money, open_money):
    """The money of a trade from flat to flat: what it had before this fill, this fill's part of it, and the profit where the fill ends it.

    money: what the fill brought in, fee included. A fill that turns the position ends one trade and begins the next, its money shared by
    lots. Returns the money of the trade that goes on, the profit of the trade that ended, and whether one ended.
    """
    after = position + lots
    if position != 0 and (after == 0 or (after > 0) != (position > 0)):
        ending = int(money * (-position / lots)) if after != 0 else money
        return money - ending, open_money + ending, 1
    return open_money + money, 0, 0


def nearest(value):
    """The nearest whole number, half away from zero."""
    return int(value + 0.5) if value >= 0.0 else -int(0.5 - value)


def whole_lots(size):
    """A size in lots as a whole number, towards zero; one that no int64 holds becomes 2^62, which is beyond every size limit."""
    return int(min(max(size, -4.611686018427388e18), 4.611686018427388e18))


def largest_part(order_lots, volume, participation):
    """The part of an order that a bar's volume (lots) allows, in whole lots: all of it where the volume is unknown or no share is set."""
    if volume == 0.0:
        return 0
    if participation == 0 or volume != volume:
        return order_lots
    size = order_lots if order_lots > 0 else -order_lots
    # Volumes are float64 lots and the share is a float64 of 9 digits: half a digit of it forgives what their product loses.
    most = volume * (participation * 1e-9) + 5e-10
    if most >= size:
        return order_lots
    part = int(most)
    return part if order_lots > 0 else -part
