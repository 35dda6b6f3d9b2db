"""The text of the lane step in blocks, and the small language in which rules that a run does not use are left out.

A block is Python with directives on lines of their own: `#? rule` begins lines that are kept where the rule is on (`#? !rule`: where it
is off, `#? a|b`: where any is), `#:` turns to the other case, `#.` ends. `{NAME}` stands for an expression or lines that
`bellmark.lane` writes.

How an order lives: ORDER decides at the close of t what is to be held and at which price an order may fill; ARRIVE meets the working bar u
and books what fills; GUARD tests stop and target; CLOSING books funding, roll and the end of the window; MARK marks the account. Where an
account has one symbol the blocks work on local variables that live in registers; a shared account loads and stores them for each symbol.
"""

from __future__ import annotations

import re

RULES = (
    "always",  # sizes anew each bar
    "orders",  # limit and ioc orders
    "participation",
    "protect",  # stop, target or trailing stop
    "trail",
    "decision_anchor",
    "close_anchor",  # stops are measured from the close of the fill bar
    "next_bar",  # stops are tested from the bar after the fill
    "target_open",
    "maintenance",
    "halts",
    "funding",
    "roll",
    "flat_by_close",
    "close_at_end",
    "latency",  # of more than one bar
    "same_close",
    "fill_sizing",
    "cut",
    "shared",  # several symbols in one account
    "ledger",
    "record",
    "summary",
)


def select(text: str, rules: frozenset[str], values: dict[str, str]) -> list[str]:
    """The lines of a block with the directives resolved and `{NAME}` replaced; a value of several lines keeps the indentation."""
    keep = [True]
    lines: list[str] = []
    for line in text.strip("\n").splitlines():
        word = line.strip()
        if word.startswith("#? "):
            keep.append(keep[-1] and any((name[1:] not in rules) if name[0] == "!" else (name in rules) for name in word[3:].split("|")))
        elif word == "#:":
            keep[-1] = keep[-2] and not keep[-1]
        elif word == "#.":
            keep.pop()
        elif keep[-1]:
            lines += _filled(line, values)
    return lines


def _filled(line: str, values: dict[str, str]) -> list[str]:
    filled = re.sub(r"\{([A-Z_0-9]+)\}", lambda match: values[match[1]], line)
    indent = line[: len(line) - len(line.lstrip())]
    first, *rest = filled.split("\n")
    return [first, *(indent + more for more in rest)] if filled.strip() else []


ORDER = """
price = {MARK_T}
placed = 0
reason = FILLED
limit_price = 0
wanted_lots = 0
target_lots = position
#? flat_by_close
leaves = {LEAVES}
if leaves:  # whatever was asked, a number or not
    exposure = 0.0
    order_type = MARKET
#.
if unlikely(exposure - exposure != 0.0):
    reason = BAD_EXPOSURE
else:
#? always
    if exposure != {HELD} or standing != STOPPED:
#:
    if unlikely(exposure != {HELD} or {LOOSE}):
#.
        placed = 1
        target_lots = {SIZING} | 0
#? flat_by_close
        if leaves:
            target_lots = 0
#.
        if target_lots > size_limit or target_lots < -size_limit:
            reason = BAD_SIZE
            wanted_lots = min(max(target_lots, -NO_LEVEL), NO_LEVEL) - position
            target_lots = position
            placed = 0
            # The order that stood is given up with the exposure that it was for, as by any other order that is refused.
            held_exposure = 0.0 if standing == STOPPED else held_exposure
            standing = UNSETTLED if standing == WORKING or standing == UNSETTLED else 0
#? orders
        elif order_type != MARKET:
            bid, ask = {QUOTE}
            distance, distance_rate = {OFFSET}
            limit_price = resting_price(
                order_type, target_lots > position, close_T[t], bid, ask, distance, distance_rate, quanta_per_tick
            ){ROLLED}
#.
"""

# Where a decision is refused at once it never reaches the bar; everything else is told apart where the order works.
DECIDED = """
order_lots = target_lots - position if placed != 0 else 0
if placed == 0 and standing == WORKING:
    order_lots = working_target - position
"""

REFUSE_AT_ONCE = """
if unlikely(reason != FILLED):
    refusals = refusals + 1
#? ledger
    append(ledger_LNEJ, ledger_count_LN, l, n, t, s, REFUSED, reason, wanted_lots, close_T[t], 0, 0, 0, 0)
#.
"""

ARRIVE = """
#? halts
if unlikely(halted_T[{B}] != 0):
    if placed != 0:
        order_lots = target_lots - position
    elif standing == WORKING:
        order_lots = working_target - position
    if order_lots != 0:
        reason = HALTED
        refusals = refusals + 1
#? ledger
        append(ledger_LNEJ, ledger_count_LN, l, n, {B}, s, REFUSED, HALTED, order_lots, {OPEN}[{B}], 0, 0, 0, 0)
#.
    elif placed != 0:
        held_exposure = exposure
    if placed != 0 and order_lots == 0:
        standing = 0
    elif standing == WORKING:
        standing = UNSETTLED
    elif placed != 0 and standing == STOPPED:
        standing = 0
        held_exposure = 0.0
elif unlikely(placed != 0 or standing == WORKING{DUE}):
#:
if unlikely(placed != 0 or standing == WORKING{DUE}):
#.
    stood = standing
    if placed != 0:
#? fill_sizing
        {SIZE_AT_FILL}
#.
        order_lots = target_lots - position
        working_target = target_lots
        order_fees = 0
        order_charged = 0
        standing = 0
#? decision_anchor
        order_base = base_price
#.
        if order_lots == 0 and reason == FILLED:
            held_exposure = exposure
#? fill_sizing
        if reason == BAD_SIZE:
            standing = UNSETTLED if stood == WORKING or stood == UNSETTLED else 0
            held_exposure = 0.0 if stood == STOPPED else held_exposure
#.
    elif standing == WORKING:
        order_lots = working_target - position
        order_type = MARKET
#? maintenance
    asked_lots = order_lots
    if liquidate != 0:
        if order_lots != 0:
            reason = LIQUIDATED
            refusals = refusals + 1
#? ledger
            append(ledger_LNEJ, ledger_count_LN, l, n, {B}, s, REFUSED, LIQUIDATED, order_lots, {OPEN}[{B}], 0, 0, 0, 0)
#.
        order_lots = -position
        order_type = MARKET
        order_fees = 0
        order_charged = 0
#.
    if order_lots != 0:
        lots, reference, spread, slip, filled = {FILL}
        lots | reference | spread | slip | filled
#? same_close
#? roll
        reference = reference + ({MARK_T} - close_T[t])
#.
#.
        worse = spread + slip
        fill_price = reference + worse if order_lots > 0 else reference - worse
        if filled == FILLED or filled == MAKER:
            misfit = (lots > 0) != (order_lots > 0) or lots == 0 or abs(lots) > abs(order_lots)
            if misfit or not sane(reference, spread, slip, price_limit){OUTSIDE}:
                filled = BAD_FILL
            elif positive_only != 0 and fill_price <= 0:
                filled = BAD_PRICE
        elif filled < 0 or filled > BAD_FILL:
            filled = BAD_FILL
        if filled != FILLED and filled != MAKER:
            lots = 0
#? protect
#? orders
        if filled == MAKER and position != 0:
            stop_level = {STOP_LEVEL}
            start_price = {OPEN}[{B}]
            rested = 0
            exit_reference, exit_spread, exit_slip, exit_cause = {PROTECT}
            beyond = limit_price <= stop_level if position > 0 else limit_price >= stop_level
            if exit_cause == STOP and ((order_lots > 0) != (position > 0) or beyond):
                filled = CANCELLED
                lots = 0
#.
#.
        cut_lots = 0
        fee = 0
        if lots != 0:
            fee_parts = order_fees + {PART_FEE}
            fee = due_fee(fee_parts, fee_minimum) - order_charged
            after = position + lots
            if increases(position, after):
                budget = cash + mul_div(position * reference, value_numerator, value_denominator){OTHERS}
                if margin_need(after, reference, value_numerator, value_denominator, margin_per_lot, margin_rate) + fee > budget:
#? cut
                    cut_lots = lots
                    lots = affordable(
                        lots, position, reference, worse, budget, order_charged, order_fees, value_numerator, value_denominator,
                        {FEE_PER_LOT}, {FEE_RATE}, fee_minimum, margin_per_lot, margin_rate
                    )
                    cut_lots = cut_lots - lots
                    if lots == 0:
                        filled = UNAFFORDABLE
                        cut_lots = 0
                    else:
                        fee_parts = order_fees + {PART_FEE}
                        fee = due_fee(fee_parts, fee_minimum) - order_charged
                        refusals = refusals + 1
#? ledger
                        append(ledger_LNEJ, ledger_count_LN, l, n, {B}, s, REFUSED, UNAFFORDABLE, cut_lots, reference, 0, 0, 0, 0)
#.
#:
                    filled = UNAFFORDABLE
                    lots = 0
#.
        if lots != 0:
            order_fees = fee_parts
            order_charged = order_charged + fee
            before = position
            {BOOK_ORDER}
#? protect
            if increases(before, position):
                grew = 1
                {LEVELS}
            if filled == MAKER:
                rested = 1
                start_price = fill_price
#.
        rest = order_lots - lots - cut_lots
#? maintenance
        if liquidate != 0:
            if lots != 0:
                {STOPPED_AT}
            else:
                refusals = refusals + 1
                reason = filled
                standing = UNSETTLED if stood == WORKING or stood == UNSETTLED else 0
#? ledger
                append(ledger_LNEJ, ledger_count_LN, l, n, {B}, s, REFUSED, filled, order_lots, reference, 0, 0, 0, 0)
#.
        elif lots != 0 and (rest == 0 or order_type == MARKET):
#:
        if lots != 0 and (rest == 0 or order_type == MARKET):
#.
            if placed != 0:
                held_exposure = exposure
            standing = WORKING if rest != 0 else 0
            reason = filled
        else:
            if lots != 0:
                filled = CANCELLED
            reason = filled
            refusals = refusals + 1
#? ledger
            append(ledger_LNEJ, ledger_count_LN, l, n, {B}, s, REFUSED, filled, rest, reference, 0, 0, 0, 0)
#.
            # What is held is then no exposure's whole position: whatever is asked next is an order.
            standing = UNSETTLED if lots != 0 or stood == WORKING or stood == UNSETTLED else 0
            if standing == UNSETTLED and placed != 0:
                held_exposure = exposure
            elif stood == STOPPED:
                held_exposure = 0.0  # what is really held, now that the stopped position's exposure was given up
            if filled == NO_VOLUME and order_type == MARKET:
                standing = WORKING
                if placed != 0:
                    held_exposure = exposure
#? maintenance
    order_lots = asked_lots
#.
"""

GUARD = """
if position != 0 and volume_T[u] != 0.0{MAY_TRADE}{MAY_TEST}:
    stop_level = {STOP_LEVEL}
    exit_reference, exit_spread, exit_slip, exit_cause = {PROTECT}
    exit_reference | exit_spread | exit_slip | exit_cause
    if unlikely(exit_cause != 0):
        lots = -position
        reference = exit_reference
        spread = exit_spread
        slip = exit_slip
        worse = spread + slip
        fill_price = reference + worse if lots > 0 else reference - worse
        filled = MAKER if exit_cause == TARGET else FILLED
        fee = due_fee({PART_FEE}, fee_minimum)
        unknown = exit_cause != STOP and exit_cause != TARGET
        if unknown or not sane(reference, spread, slip, price_limit){EXIT_OUTSIDE}:
            filled = BAD_FILL
        elif positive_only != 0 and fill_price <= 0:
            filled = BAD_PRICE
        if filled == FILLED or filled == MAKER:
#? trail
            if exit_cause == STOP and stop_level != stop_price:
                exit_cause = TRAILING
#.
            {BOOK_EXIT}
            {STOPPED_AT}
        else:
            refusals = refusals + 1
#? ledger
            append(ledger_LNEJ, ledger_count_LN, l, n, u, s, REFUSED, filled, lots, open_T[u], 0, 0, 0, 0)
#.
#? trail
if position > 0{MAY_TRADE}:
    trail_price = max(trail_price, trail_level(position, high_T[u], trail_distance, trail_rate, quanta_per_tick))
elif position < 0{MAY_TRADE}:
    trail_price = min(trail_price, trail_level(position, low_T[u], trail_distance, trail_rate, quanta_per_tick))
#.
"""

CLOSE_ANCHOR = """
#? close_anchor
if grew != 0 and position != 0:
    stop_price, target_price = levels(
        position, close_T[{B}], stop_distance, stop_rate, target_distance, target_rate, quanta_per_tick
    )
#.
"""

CLOSING = """
#? funding
if unlikely(position != 0 and funding_rate_T[u] != 0):
    paid = mul_rate(mul_div(position * funding_mark_T[u], value_numerator, value_denominator), funding_rate_T[u])
    cash = cash - paid
    funding_cost = funding_cost + paid
    change = change - paid
#.
#? close_at_end
if unlikely(position != 0 and u == {LAST}{MAY_TRADE}):
    lots = -position
    filled_lots, reference, spread, slip, filled = {FILL_AT_END}
    # What cannot be sold stays open, and is listed so.
    if filled == FILLED and filled_lots == lots and sane(reference, spread, slip, price_limit):
        worse = spread + slip
        fill_price = reference + worse if lots > 0 else reference - worse
        fee = due_fee({PART_FEE}, fee_minimum)
        {BOOK_CLOSE_AT_END}
        standing = STOPPED
#.
#? roll
if unlikely(position != 0 and rolls_T[u] != 0):
    rolled = position
    shift = roll_price_T[u] - close_T[u]
    entry_kept = entry_price + shift
    bars_kept = bars_in_position
    spread = roll_half_spread
    slip = 0
    filled = FILLED
    lots = -rolled
    reference = close_T[u]
    fill_price = reference + spread if lots > 0 else reference - spread
    fee = due_fee({PART_FEE}, fee_minimum)
    {BOOK_ROLL_OUT}
    lots = rolled
    reference = roll_price_T[u]
    fill_price = reference + spread if lots > 0 else reference - spread
    fee = due_fee({PART_FEE}, fee_minimum)
    {BOOK_ROLL_IN}
    entry_price = entry_kept
    bars_in_position = bars_kept
#? protect
    stop_price = stop_price + shift if abs(stop_price) != NO_LEVEL else stop_price
    target_price = target_price + shift if abs(target_price) != NO_LEVEL else target_price
#? trail
    trail_price = trail_price + shift if abs(trail_price) != NO_LEVEL else trail_price
#.
#.
#.
#? roll
#? latency|decision_anchor
if unlikely(rolls_T[u] != 0):
    {MOVE_WAITING}
#.
#.
"""

BOOK = """
#? summary
open_money, trade_profit, ended = round_trip(
    position, lots, -mul_div(lots * fill_price, value_numerator, value_denominator) - fee, open_money
)
traded_value = traded_value + abs(lots * 1.0 * fill_price) * value_numerator / value_denominator
if ended != 0:
    trades = trades + 1
    if trade_profit > 0:
        winning_trades = winning_trades + 1
        trade_gain = trade_gain + trade_profit
    elif trade_profit < 0:
        losing_trades = losing_trades + 1
        trade_loss = trade_loss - trade_profit
#.
#? ledger
append(
    ledger_LNEJ, ledger_count_LN, l, n, {B}, s, {CAUSE}, FILLED, lots, reference, spread, slip, fee, 1 if filled == MAKER else 0
)
#.
entry_price = average_entry(position, entry_price, lots, fill_price)
if position == 0 or (position > 0) != (position + lots > 0):
    bars_in_position = 0
position, cash, gross, spread_cost, slippage_cost, fee_cost, change = book(
    lots, reference, spread, slip, fee, mark, position, cash, gross, spread_cost, slippage_cost, fee_cost, change,
    value_numerator, value_denominator
)
mark = reference
fills = fills + 1
fill_lots = fill_lots + lots
fill_fee = fill_fee + fee
"""

# The mark of one symbol's position; `change` and `gross` take it up.
MARK_POSITION = """
part = {MOVED}
gross = gross + part
change = change + part
bars_in_position = bars_in_position + 1 if position != 0 else 0
"""

MARK_ACCOUNT = """
rounding = rounding + (equity - previous_equity - change)
if unlikely(equity <= capital_floor):
    ruined = 1
"""

PEAK = """
if equity > peak_equity:
    peak_equity = equity
"""

BREACH = """
#? maintenance
liquidate = 0
if position != 0:
    if unlikely(equity < (abs(equity - cash) * (maintenance_rate * 1e-9) + abs(position) * 1.0 * maintenance_per_lot) * 1.000001 + 2.0):
        need = margin_need(position, {MARK_U}, value_numerator, value_denominator, maintenance_per_lot, maintenance_rate)
        if equity < need:
            liquidate = 1
#.
"""

# A point of the equity curve, for the metrics: return of the bar that ends here, drawdown from the highest point so far.
POINT = """
if equity != point_equity:
    step_return = (equity - point_equity) / point_equity
    square = step_return * step_return
    return_sum = return_sum + step_return
    return_sum_2 = return_sum_2 + square
    return_sum_3 = return_sum_3 + square * step_return
    return_sum_4 = return_sum_4 + square * square
    loss = min(step_return, 0.0)  # without a branch: whether a bar wins is a coin toss, which no processor predicts
    loss_sum = loss_sum + loss
    loss_sum_2 = loss_sum_2 + loss * loss
    losing_bars = losing_bars + (equity < point_equity)
    moving_bars = moving_bars + 1
    if equity > highest:
        highest = equity
        lowest = equity
        highest_bar = {POINT_BAR}
    elif equity < lowest:
        lowest = equity
        fall = equity / highest - 1.0
        if fall < max_drawdown:
            max_drawdown = fall
            peak_bar = highest_bar
            valley_bar = {POINT_BAR}
    elif equity == highest:
        highest_bar = {POINT_BAR}
        lowest = equity
    point_equity = equity
elif equity == highest:
    highest_bar = {POINT_BAR}
equity_sum = equity_sum + equity
"""

# Bars on which nothing is ordered and nothing filled, one after another, in loops of their own: few variables live in them, so that they
# stay in registers. Each bar is worked as in the whole step; what only adds up is added at the end. A bar on which anything else happens
# (a stop, a target, a breach, the end) is left to the whole step.
QUIET = """
if exposure == held_exposure and (standing == 0 or standing == STOPPED) and value_denominator == 1{NOT_DUE}:
    begun = t
    if position == 0:
        while t < {QUIET_END} and exposure == held_exposure:
            t = t + 1
            assume(t >= 0)
            {DECIDE}
        equity_sum = equity_sum + (t - begun) * 1.0 * equity
        if equity == highest and t != begun:
            highest_bar = t - first
    else:
        worth = position * value_numerator
        safe_low, safe_high = safe_closes(
            position, cash, worth, capital_floor, {MAINTENANCE}
        )
        while t < {QUIET_END} and exposure == held_exposure:
            assume(t >= 0)
            u = t + 1
            if unlikely(close_T[u] < safe_low or close_T[u] > safe_high):
                break
#? protect
            if volume_T[u] != 0.0:
                stop_level = stop_price
                start_price = open_T[u]
                rested = 0
                exit_reference, exit_spread, exit_slip, exit_cause = {PROTECT}
                exit_reference | exit_spread | exit_slip | exit_cause
                if unlikely(exit_cause != 0):
                    break
#.
            equity = cash + close_T[u] * worth
            {POINT}
            t = u
            {DECIDE}
        gross = gross + (close_T[t] - close_T[begun]) * worth
        bars_in_position = bars_in_position + (t - begun)
        peak_equity = max(peak_equity, highest)
    bars = bars + (t - begun)
"""
