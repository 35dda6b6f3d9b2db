"""A second market for tests: every rule again, slowly, in Python's own integers and fractions, one bar after the other.

It shares no arithmetic with the engine: prices are fractions of a quantum until a rule rounds them, money is rounded half away from zero
to nano-currency once a booking. `simulate` plays a list of decisions on it, `play` plays the same list on the engine, `compare` wants them
equal.

Where the rules leave room:
- An order that arrives replaces a standing one; a standing market order works in every bar until it is filled, refused, stopped out or
  replaced, with the urgency of the latest decision. What is cut to the size that the account can carry counts as done.
- An order that is refused, cancelled or replaced before any part of it was filled leaves the exposure held before it; after a part it
  leaves a position that no exposure stands for, so that whatever is asked next is an order.
- A protective exit leaves the exposure asked last, filled or not; an order after it that is refused leaves none.
- A trailing level never loosens when the position grows. A roll happens in a halted bar too, since the data go on in the next contract;
  whatever waits or is decided at its close is moved by the difference of the contracts, shares of price being shares of the old one's.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from types import SimpleNamespace
from typing import ClassVar

import numpy as np

from bellmark import market
from bellmark.actions import ORDER_TYPES, URGENCIES, ActionSpace
from bellmark.backtester import run_batch_policy
from bellmark.component import Strategy, component, setting

MARKET, LIMIT, IOC = (ORDER_TYPES.index(name) for name in ("market", "limit", "ioc"))
NANO = 10**9
EXPOSURES = (-1.0, -0.5, 0.0, 0.5, 1.0)
EVERY_ACTION = ActionSpace(EXPOSURES, ORDER_TYPES, URGENCIES)
SNAP = Fraction(1, 10**6)


def decimal(number):
    """A float as the decimal that was written."""
    return Fraction(repr(float(number)))


def nearest(number):
    """The nearest whole number, half away from zero."""
    whole = math.floor(abs(number) + Fraction(1, 2))
    return whole if number >= 0 else -whole


def fixed_lots(lots):
    """The sizing fixed_lots: exposure * lots, half away from zero."""
    return lambda exposure, price, equity: nearest(Fraction(exposure) * lots)


def grows(position, after):
    """Whether a position opens, turns or becomes larger."""
    return abs(after) > abs(position) or (after != 0 and (after > 0) != (position > 0))


@dataclass
class Fill:
    """A fill: prices in quanta, money in nano-currency."""

    symbol: int
    bar: int
    cause: int
    lots: int
    price: int
    reference: int
    fee: int
    spread: int
    slippage: int
    maker: bool


@dataclass
class Outcome:
    """What an account did: a point at the start and one after each stamp."""

    equity: list = field(default_factory=list)  # nano-currency
    position: list = field(default_factory=list)  # lots of each symbol
    fills: list = field(default_factory=list)
    rejections: list = field(default_factory=list)  # (symbol, bar, lots, reason)
    costs: dict = field(default_factory=lambda: dict.fromkeys(("spread", "slippage", "fees", "funding"), 0))
    gross: Fraction = Fraction(0)  # nano-currency, at reference prices
    ruined: bool = False


@dataclass
class Order:
    """A decision that is to become, or has partly become, a position."""

    exposure: float
    target: int
    kind: int
    urgency: int
    price: int  # limit or cap
    close: int  # of the decision's bar
    arrives: int
    previous: float | None = 0.0  # exposure held before it began, None where the position stood for none
    filled: bool = False  # a part of it
    sized_late: bool = False  # its target is what it would have been at the decision, and is found anew at its fill
    fee_of_parts: int = 0
    charged: int = 0


class Rules:
    """The [market] settings of one instrument: distances in quanta, shares as fractions, money in nano-currency."""

    def __init__(self, settings, instrument):
        self.settings, self.tick = settings, instrument.quanta_per_tick
        self.value = instrument.value
        tick, unit = Fraction(self.tick or 0), decimal(instrument.lot_size)
        self.positive_only = not instrument.allow_negative_prices
        self.half_spread = decimal(settings.spread_ticks) * tick / 2
        roll_spread = settings.spread_ticks if settings.roll_spread_ticks is None else settings.roll_spread_ticks
        self.roll_half_spread = decimal(roll_spread) * tick / 2
        self.slippage_distance = decimal(settings.slippage_ticks) * tick
        self.slippage_share = share_of_bps(settings.slippage_bps)
        maker_lot = settings.fee_per_contract if settings.maker_fee_per_contract is None else settings.maker_fee_per_contract
        maker_bps = settings.fee_bps if settings.maker_fee_bps is None else settings.maker_fee_bps
        self.fee = {
            False: (nearest(decimal(settings.fee_per_contract) * unit * NANO), share_of_bps(settings.fee_bps)),
            True: (nearest(decimal(maker_lot) * unit * NANO), share_of_bps(maker_bps)),
        }
        self.fee_minimum = nearest(decimal(settings.fee_minimum) * NANO)
        self.initial = nearest(decimal(settings.initial_margin_per_contract) * unit * NANO), decimal(settings.initial_margin_rate)
        self.maintenance = (
            nearest(decimal(settings.maintenance_margin_per_contract) * unit * NANO), decimal(settings.maintenance_margin_rate),
        )  # fmt: skip
        self.participation = [decimal(share) for share in settings.participation]
        self.offset = [(decimal(a) * tick, share_of_bps(b)) for a, b in both(settings.limit_offset_ticks, settings.limit_offset_bps)]
        self.cap = [(decimal(a) * tick, share_of_bps(b)) for a, b in both(settings.ioc_cap_ticks, settings.ioc_cap_bps)]
        self.distances = {
            name: (decimal(getattr(settings, f"{name}_ticks")) * tick, decimal(getattr(settings, name)))
            for name in ("stop_loss", "take_profit", "trailing_stop")
        }

    def slippage(self, reference):
        return self.slippage_distance + nearest(abs(reference) * self.slippage_share)

    def money(self, lots, price):
        return nearest(lots * price * self.value)

    def part_fee(self, lots, price, maker):
        per_lot, share = self.fee[maker]
        return abs(lots) * per_lot + nearest(abs(self.money(lots, price)) * share)

    def margin(self, lots, price, need):
        per_lot, share = need
        return abs(lots) * per_lot + nearest(abs(self.money(lots, price)) * share)

    def on_tick(self, price, up):
        """A price on the instrument's tick: up or down, snapping to a tick within 1e-6 of it; the nearest quantum without a tick."""
        if self.tick is None:
            return nearest(price)
        ticks = price / self.tick
        close_by = nearest(ticks)
        if abs(ticks - close_by) <= SNAP:
            return close_by * self.tick
        return (math.ceil(ticks) if up else math.floor(ticks)) * self.tick

    def level(self, name, base, above, up):
        """A protective level at its distance from base; None where the rule is off."""
        distance, share = self.distances[name]
        if not distance and not share:
            return None
        away = distance + abs(base) * share
        return self.on_tick(base + away if above else base - away, up)


def share_of_bps(bps):
    return decimal(bps) / 10_000


def both(first, second):
    return zip(first, second, strict=True)


class Account:
    """Cash and what is owed to it."""

    def __init__(self, settings):
        self.start = nearest(decimal(settings.start_equity) * NANO)
        self.floor = nearest(decimal(settings.capital_floor) * self.start)
        self.cash = self.start
        self.equity = self.start
        self.due = False
        self.symbols = []
        self.outcome = Outcome()

    def worth(self, one, price):
        """Equity with one symbol at a price and the others at their marks."""
        return self.cash + sum(item.rules.money(item.position, price if item is one else item.mark) for item in self.symbols)

    def free(self, one, price):
        """What a new position of one symbol may need: equity less the initial margin of the others."""
        others = sum(item.rules.margin(item.position, item.mark, item.rules.initial) for item in self.symbols if item is not one)
        return self.worth(one, price) - others

    def settle(self):
        """Marks the account; whether it goes on."""
        self.equity = self.worth(None, 0)
        needed = sum(item.rules.margin(item.position, item.mark, item.rules.maintenance) for item in self.symbols)
        self.due = needed > self.equity
        self.outcome.ruined = self.outcome.ruined or self.equity <= self.floor
        return not self.outcome.ruined


class Symbol:
    """One symbol of an account: its bars in quanta, its position, its orders and its protective levels."""

    def __init__(self, number, bars, session_left, instrument, settings, sizing, account):
        self.number, self.settings, self.sizing, self.account = number, settings, sizing, account
        self.rules = Rules(settings, instrument)
        quantum = instrument.quantum
        self.open, self.high, self.low, self.close = (
            [nearest(decimal(price) / quantum) for price in getattr(bars, name)] for name in ("open", "high", "low", "close")
        )
        lot = decimal(instrument.lot_size)
        self.volume = [None if math.isnan(volume) else decimal(volume) / lot for volume in bars.volume]
        count = len(self.close)
        self.halted = [bool(flag) for flag in column(bars, "halted", [False] * count)]
        nothing = [math.nan] * count
        marks = column(bars, "funding_mark", nothing)
        marks = [close if math.isnan(mark) else nearest(decimal(mark) / quantum) for mark, close in both(marks, self.close)]
        rates = column(bars, "funding_rate", nothing)
        self.funding = {
            t: (Fraction(nearest(decimal(rate) * NANO), NANO), marks[t]) for t, rate in enumerate(rates) if not math.isnan(rate)
        }
        rolls = column(bars, "roll_price", nothing)
        self.roll = {t: nearest(decimal(price) / quantum) for t, price in enumerate(rolls) if not math.isnan(price)}
        self.session_left = session_left
        self.last = count - 1
        self.mark = self.close[0]
        self.position = 0
        self.entry = Fraction(0)
        self.held = 0.0  # the exposure whose order is done or stands
        self.asked = {}  # exposure and urgency asked for each bar
        self.stopped = False
        self.standing = None
        self.under_way = []
        self.stop = self.target = self.trail = None
        if self.closes_at(self.last):
            self.roll.pop(self.last, None)

    # -- decisions -------------------------------------------------------------------------------------------------------------

    def decide(self, t, exposure, kind, urgency):
        """The decision at the close of bar t."""
        u = t if self.settings.same_close else t + self.settings.latency_bars
        if self.settings.same_close and self.settings.close_at_end and t == self.last:
            self.standing = None
            return  # the close at the end comes last
        if not math.isfinite(exposure):
            self.reject(t, 0, market.BAD_EXPOSURE)
            return
        if self.settings.flat_by_close and u <= self.last and self.session_left[u] == 0:
            exposure, kind = 0.0, MARKET
        self.asked[u] = exposure, urgency
        asked = self.under_way[-1].exposure if self.under_way else self.held
        if exposure == asked and (self.stopped or self.settings.resize == "on_change"):
            if self.standing and self.settings.same_close:
                self.work_at_close(t)
            return
        target = self.sizing(exposure, self.price_at(t), self.account.equity) if exposure else 0
        self.ask_anew()
        step = self.price_at(t) - self.close[t]
        order = Order(exposure, target, kind, urgency, 0, self.close[t] + step, u)
        if kind != MARKET:
            order.price = self.order_price(order, t, target - self.position > 0) + step
        if self.settings.size_at == "fill" and exposure:
            order.sized_late = True
        self.under_way.append(order)
        if self.settings.same_close:
            self.work_at_close(t)

    def work_at_close(self, t):
        if self.halted[t]:
            self.refuse_all(t, market.HALTED)
        else:
            self.work_order(t, self.price_at(t), None, self.close[t])

    def ask_anew(self):
        if self.stopped:
            self.held, self.stopped = 0.0, False  # what is really held, should the order be refused

    def order_price(self, order, t, buys):
        """Limit or cap, fixed when the order is decided."""
        sign = 1 if buys else -1
        distance, share = (self.rules.offset if order.kind == LIMIT else self.rules.cap)[order.urgency]
        away = distance + self.close[t] * share
        touch = -self.rules.half_spread if order.kind == LIMIT else self.rules.half_spread  # near and far, as seen by a buy
        return self.rules.on_tick(self.close[t] + sign * (touch - away if order.kind == LIMIT else touch + away), up=not buys)

    # -- the working bar -------------------------------------------------------------------------------------------------------

    def work(self, u):
        """Steps 0 to 5 of bar u."""
        opened, rested, start = False, False, self.open[u]
        orders = not self.settings.same_close  # else they work at the close
        if self.halted[u]:
            if orders:
                self.refuse_all(u, market.HALTED)
        else:
            if self.account.due and self.position:
                if orders:
                    self.refuse_all(u, market.LIQUIDATED)
                if self.volume[u] == 0:
                    self.reject(u, -self.position, market.NO_VOLUME)
                else:
                    self.leave(u, self.open[u], market.LIQUIDATION)
            elif orders:
                opened, rested, start = self.work_order(u, self.open[u], self.stop_hit(u))
            if not (opened and self.settings.stop_from == "next_bar"):
                self.protect(u, start, rested)
            self.follow(u)
        self.fund(u)
        if u in self.roll:
            self.roll_over(u)
        elif self.closes_at(u) and self.position:
            self.trade_all(u, self.close[u], market.CLOSE_AT_END)
            self.stopped, self.standing = True, None
            self.held = self.asked[u][0] if self.held is None else self.held

    def take_order(self, u):
        """The order that works in bar u: one that arrives replaces a standing one."""
        arrived = [order for order in self.under_way if order.arrives == u]
        if arrived:
            self.ask_anew()
            self.under_way = [order for order in self.under_way if order.arrives != u]
            arrived[0].previous = self.left_by(self.standing) if self.standing else self.held
            self.standing = None
            return arrived[0]
        order, self.standing = self.standing, None
        if order and u in self.asked:
            order.urgency = self.asked[u][1]
        return order

    @staticmethod
    def left_by(order):
        """The exposure that an order leaves when it ends before it is whole."""
        return None if order.filled else order.previous

    def refuse_all(self, u, reason):
        order = self.take_order(u)
        if order is None:
            return
        lots = order.target - self.position
        if lots:
            self.end(order, u, lots, reason)
        else:
            self.held = order.exposure

    def end(self, order, u, lots, reason):
        """An order, or the rest of one, that is over without having been filled whole."""
        self.held = self.left_by(order)
        self.reject(u, lots, reason)

    def work_order(self, u, reference, stop_hit, slips_on=None):
        """Step 1 for the order of the bar.

        Returns whether it opened or enlarged the position, whether it rested, and the price at which the rest of the bar starts.
        """
        order, rules = self.take_order(u), self.rules
        start = reference
        if order is None:
            return False, False, start
        if order.sized_late:
            order.target, order.sized_late = self.size_at_fill(order, reference), False
        lots = order.target - self.position
        if lots == 0:
            self.held = order.exposure
            return False, False, start
        sign = 1 if lots > 0 else -1
        slippage = 0 if order.kind == LIMIT else rules.slippage(reference if slips_on is None else slips_on)
        spread, maker = rules.half_spread, False
        part = self.largest_part(u, lots, order.urgency)
        taken = reference + sign * (spread + slippage)
        beyond = order.kind != MARKET and (taken - order.price) * sign > 0
        reason = market.FILLED
        if part == 0:
            reason = market.NO_VOLUME
        elif order.kind == IOC and beyond:
            reason = market.IOC_CAP
        elif order.kind == LIMIT and beyond:
            reached = self.low[u] < order.price if lots > 0 else self.high[u] > order.price
            if reached and self.loses_to_the_stop(order, sign, stop_hit):
                reason = market.CANCELLED
            elif reached:
                maker = True
                reference = min(max(order.price, self.low[u]), self.high[u])
                spread = abs(order.price - reference)
            else:
                reason = market.NOT_REACHED
        elif rules.positive_only and lots < 0 and taken <= 0:
            reason = market.BAD_PRICE
        if reason != market.FILLED:
            if order.kind == MARKET and reason == market.NO_VOLUME:
                self.reject(u, lots, reason)
                self.standing, self.held = order, order.exposure
            else:
                self.end(order, u, lots, reason)
            return False, False, start
        affordable = self.affordable(order, part, reference, sign * (spread + slippage), maker)
        if affordable == 0 or (affordable != part and self.settings.unaffordable == "refuse"):
            self.end(order, u, lots, market.UNAFFORDABLE)
            return False, False, start
        was = self.position
        self.trade(u, affordable, reference, spread, slippage, market.ORDER, maker, order)
        order.filled = True
        rest = lots - affordable
        if affordable != part:
            self.held = order.exposure
            self.reject(u, rest, market.UNAFFORDABLE)
        elif rest and order.kind == MARKET:
            self.standing, self.held = order, order.exposure
        elif rest:
            self.end(order, u, rest, market.CANCELLED)
        else:
            self.held = order.exposure
        opened = grows(was, self.position)
        changed_side = (was > 0) != (self.position > 0) or (was < 0) != (self.position < 0)
        return opened, maker, reference + sign * spread if maker and changed_side else start

    def size_at_fill(self, order, reference):
        """The target at the price that the order is expected to pay."""
        for sign in (1, -1) if order.exposure > 0 else (-1, 1):
            price = reference + sign * (self.rules.half_spread + self.rules.slippage(reference))
            target = self.sizing(order.exposure, price, self.account.worth(self, reference))
            if (target - self.position) * sign >= 0:
                return target
        return self.position

    def largest_part(self, u, lots, urgency):
        volume, share = self.volume[u], self.rules.participation
        if volume == 0:
            return 0
        most = abs(lots) if volume is None or not share else min(abs(lots), math.floor(volume * share[urgency]))
        return most if lots > 0 else -most

    def affordable(self, order, lots, reference, worse, maker):
        """The largest part of lots whose margin and fee the account has."""
        free = self.account.free(self, reference)
        sign = 1 if lots > 0 else -1
        for size in range(abs(lots), 0, -1):
            after = self.position + sign * size
            if not grows(self.position, after):
                return sign * size
            fee = self.order_fee(order, sign * size, reference + worse, maker)[0]
            if self.rules.margin(after, reference, self.rules.initial) + fee <= free:
                return sign * size
        return 0

    def order_fee(self, order, lots, price, maker):
        """What a part adds to the fee of its order, and the sum of the parts' own fees."""
        parts = order.fee_of_parts + self.rules.part_fee(lots, price, maker)
        whole = max(parts, self.rules.fee_minimum) if self.rules.fee_minimum else parts
        return whole - order.charged, parts

    def loses_to_the_stop(self, order, sign, stop_hit):
        """Whether a resting limit order may have come after the stop: it reduces the position, or lies beyond the stop."""
        if stop_hit is None or not self.position:
            return False
        if (self.position > 0) != (sign > 0):
            return True
        return (order.price - stop_hit) * sign <= 0

    # -- fills -----------------------------------------------------------------------------------------------------------------

    def trade(self, u, lots, reference, spread, slippage, cause, maker=False, order=None):
        """Books a fill and moves the protective levels of a position that opens, turns or grows."""
        assert all(Fraction(number).denominator == 1 for number in (reference, spread, slippage))
        reference, spread, slippage = int(reference), int(spread), int(slippage)
        price = reference + (spread + slippage) * (1 if lots > 0 else -1)
        order = order or Order(0.0, 0, MARKET, 1, 0, 0, u)
        fee, order.fee_of_parts = self.order_fee(order, lots, price, maker)
        order.charged += fee
        account, outcome = self.account, self.account.outcome
        account.cash -= self.rules.money(lots, price) + fee
        outcome.gross += self.position * (reference - self.mark) * self.rules.value
        self.mark = reference
        paid = self.rules.money(abs(lots), spread), self.rules.money(abs(lots), slippage)
        for name, amount in zip(("spread", "slippage", "fees"), (*paid, fee), strict=True):
            outcome.costs[name] += amount
        outcome.fills.append(Fill(self.number, u, cause, lots, price, reference, fee, *paid, maker))
        was, self.position = self.position, self.position + lots
        if self.position == 0:
            self.stop = self.target = self.trail = None
        elif grows(was, self.position):
            adds = was != 0 and (was > 0) == (self.position > 0)
            self.entry = (self.entry * was + Fraction(price) * lots) / self.position if adds else Fraction(price)
            if cause == market.ORDER:
                self.set_levels(order, price, adds)

    def set_levels(self, order, price, adds):
        long, trail = self.position > 0, self.trail
        base = order.close if self.settings.stop_anchor == "decision" else nearest(self.entry)
        self.stop = self.rules.level("stop_loss", base, above=not long, up=not long)
        self.target = self.rules.level("take_profit", base, above=long, up=long)
        self.trail = self.rules.level("trailing_stop", price, above=not long, up=not long)
        if adds and trail is not None:  # it never loosens
            self.trail = max(trail, self.trail) if long else min(trail, self.trail)

    def trade_all(self, u, reference, cause):
        """Closes the position as a market order."""
        if self.position:
            self.trade(u, -self.position, reference, self.rules.half_spread, self.rules.slippage(reference), cause)

    def leave(self, u, reference, cause):
        """Closes the position though the strategy did not ask for it; it stays flat until it asks anew."""
        self.trade_all(u, reference, cause)
        self.stay_flat(u)

    def stay_flat(self, u):
        self.stopped, self.standing = True, None
        self.held = next((self.asked[t][0] for t in range(u, -1, -1) if t in self.asked), self.held)

    # -- protective levels -----------------------------------------------------------------------------------------------------

    def effective_stop(self):
        levels = [level for level in (self.stop, self.trail) if level is not None]
        if not levels:
            return None
        return max(levels) if self.position > 0 else min(levels)

    def stop_hit(self, u):
        """The stop of the position as it stands, if bar u reaches it."""
        stop = self.effective_stop() if self.position else None
        if stop is None or self.volume[u] == 0:
            return None
        return stop if (self.low[u] <= stop if self.position > 0 else self.high[u] >= stop) else None

    def protect(self, u, start, rested):
        """Step 3."""
        if not self.position or self.volume[u] == 0:
            return
        long = self.position > 0
        stop = self.stop_hit(u)
        if stop is not None:
            cause = market.TRAILING if stop != self.stop else market.STOP
            self.leave(u, min(stop, start) if long else max(stop, start), cause)
            return
        if self.target is None:
            return
        best = self.close[u] if rested else (self.high[u] if long else self.low[u])
        if not (best >= self.target if long else best <= self.target):
            return
        gapped = not rested and (start > self.target if long else start < self.target)
        reference = start if gapped and self.settings.target_gap == "open" else self.target
        self.trade(u, -self.position, reference, 0, 0, market.TARGET, maker=True)
        self.stay_flat(u)

    def follow(self, u):
        """The trailing stop takes the bar's best price at its end."""
        if self.position and self.trail is not None:
            long = self.position > 0
            level = self.rules.level("trailing_stop", self.high[u] if long else self.low[u], above=not long, up=not long)
            self.trail = max(self.trail, level) if long else min(self.trail, level)

    # -- funding, roll, mark ---------------------------------------------------------------------------------------------------

    def fund(self, u):
        if u in self.funding and self.position:
            rate, at = self.funding[u]
            amount = nearest(self.rules.money(self.position, at) * rate)
            self.account.cash -= amount
            self.account.outcome.costs["funding"] += amount

    def closes_at(self, u):
        return self.settings.close_at_end and u == self.last and not self.halted[u] and self.volume[u] != 0

    def roll_over(self, u):
        """The data go on in the next contract: the position and every price that waits go with them, over a halt too."""
        position, step = self.position, self.roll[u] - self.close[u]
        for order in [*self.under_way, *([self.standing] if self.standing else [])]:
            order.price, order.close = order.price + step, order.close + step
        if position:
            entry, levels = self.entry, (self.stop, self.target, self.trail)
            self.trade(u, -position, self.close[u], self.rules.roll_half_spread, 0, market.ROLL_OUT)
            self.mark = self.roll[u]
            self.trade(u, position, self.roll[u], self.rules.roll_half_spread, 0, market.ROLL_IN)
            self.entry = entry + step
            self.stop, self.target, self.trail = (None if level is None else level + step for level in levels)

    def price_at(self, t):
        """The price of what is traded after bar t: its close, or that of the next contract."""
        return self.roll.get(t, self.close[t])

    def mark_to(self, u):
        self.account.outcome.gross += self.position * (self.price_at(u) - self.mark) * self.rules.value
        self.mark = self.price_at(u)

    def list_unfilled(self):
        """What stands at the last bar, or is under way from the bar that decided it, when the window is over."""
        replaced = any(order.arrives == self.last + 1 for order in self.under_way)
        for order in [self.standing] * bool(self.standing and not replaced) + self.under_way:
            lots = order.target - self.position
            if lots:
                decided = order.arrives - self.settings.latency_bars
                self.reject(self.last if order is self.standing else decided, lots, market.LAST_BAR)

    def reject(self, bar, lots, reason):
        self.account.outcome.rejections.append((self.number, bar, int(lots), reason))


def column(bars, name, absent):
    found = getattr(bars, name, None)
    return absent if found is None else found


# -- playing ---------------------------------------------------------------------------------------------------------------------


def simulate(bars, instruments, settings, decisions, sizing, session_left=None):
    """One account over bars of one symbol, or of several at once (shared account).

    bars, instruments: one of each, or lists of them (quantum chosen). settings: MarketSettings. decisions: at each bar (exposure, order
    type, urgency), the last one repeated; a list of such lists for several symbols. sizing(exposure, price in quanta, equity in
    nano-currency) -> lots. session_left: bars left in the session at each bar, for flat_by_close.
    """
    several = isinstance(bars, list)
    bars, instruments, decisions = (bars, instruments, decisions) if several else ([bars], [instruments], [decisions])
    left = session_left or [[1] * len(item) for item in bars]
    account = Account(settings)
    account.symbols = [
        Symbol(number, item, left[number], instruments[number], settings, sizing, account) for number, item in enumerate(bars)
    ]
    places = [{int(stamp): t for t, stamp in enumerate(item.ts_event)} for item in bars]
    outcome = account.outcome
    for stamp in sorted(set().union(*places)):
        present = [(symbol, place[stamp]) for symbol, place in zip(account.symbols, places, strict=True) if stamp in place]
        going = not outcome.ruined and step(account, present, decisions)
        outcome.equity.append(account.equity if outcome.equity else account.start)  # the first point is the start
        outcome.position.append([symbol.position for symbol in account.symbols])
        outcome.ruined = not going
    for symbol in account.symbols if not outcome.ruined else ():
        symbol.list_unfilled()
    return outcome


def step(account, present, decisions):
    for symbol, t in present:
        symbol.work(t)
    for symbol, t in present:
        symbol.mark_to(t)
    if not account.settle():
        return False
    for symbol, t in present:
        played = decisions[symbol.number]
        symbol.decide(t, *played[min(t, len(played) - 1)])
    if not account.symbols[0].settings.same_close:
        return True
    for symbol, t in present:
        symbol.mark_to(t)
    return account.settle()


def as_decisions(exposures, kind="market", urgency="normal"):
    """Decisions of one order type and urgency."""
    return [(float(exposure), ORDER_TYPES.index(kind), URGENCIES.index(urgency)) for exposure in exposures]


def actions_of(space, decisions):
    """The joint actions of decisions."""
    types, urgencies = len(space.order_types), len(space.urgencies)
    levels = {exposure: number for number, exposure in enumerate(space.exposures)}
    return [
        (levels[exposure] * types + space.order_types.index(ORDER_TYPES[kind])) * urgencies + space.urgencies.index(URGENCIES[urgency])
        for exposure, kind, urgency in decisions
    ]


def play(data, decisions):
    """The engine's account of the first symbol for a list of decisions, bar by bar through a batch policy; the last one repeats."""
    actions = actions_of(data.space, decisions)
    bar = iter(range(10**9))

    def act(observation_NO, allowed_NA):
        k = next(bar)
        return np.full(observation_NO.shape[0], actions[min(k, len(actions) - 1)])

    return run_batch_policy(data, act, data.no_normalisation(1)).lanes[0]


@component
class Script(Strategy):
    """A rule strategy that plays a list of exposures, one a bar, symbol after symbol: see `script`."""

    name: ClassVar[str] = "script"
    number: int = setting(0, "which of the lists that there are")
    series: ClassVar[dict[str, str]] = {"script": "float64"}
    lists: ClassVar[list[list[float]]] = []

    def compute_series(self, tape):
        return {"script": np.array(self.lists[self.number], np.float64).reshape(tape.close_ST.shape)}

    @staticmethod
    def decide(t, script_T):
        return script_T[t]


def script(exposures):
    """The strategy that plays exposures at each bar of each symbol of a tape, padded to the longest."""
    Script.lists.append(list(exposures))
    return Script(number=len(Script.lists) - 1)


def reference(data, bars, decisions, sizing):
    """The reference's account for the same market."""
    left = [row[: len(bars)].tolist() for row in data.tape.session_left_ST]
    return simulate(bars, data.tape.instruments[0], data.settings, decisions, sizing, left)


def found_in(lane):
    """A LaneResult in the shape of an Outcome, to compare and to show."""
    fills = [
        Fill(int(row["symbol"]), int(row["bar"]), int(row["cause"]), int(row["lots"]), int(row["price"]), int(row["reference"]),
             *(nearest(decimal(row[name]) * NANO) for name in ("fee", "spread", "slippage")), bool(row["maker"]))
        for row in lane.fills
    ]  # fmt: skip
    rejections = [tuple(int(row[name]) for name in ("symbol", "bar", "lots", "reason")) for row in lane.rejections]
    costs = {name: nearest(decimal(amount) * NANO) for name, amount in lane.costs.items()}
    found = SimpleNamespace(fills=fills, rejections=rejections, costs=costs, ruined=lane.ruined)
    found.equity, found.position = lane.equity_T.tolist(), lane.position_T.tolist()
    return found


def compare(lane, outcome):
    """Asserts that the engine's account equals the reference's: every fill and refusal, every point, every cost, to the nano-currency."""
    found = found_in(lane)
    assert found.fills == outcome.fills
    assert sorted(found.rejections) == sorted(outcome.rejections)
    assert found.equity == outcome.equity
    assert found.costs == outcome.costs
    assert found.ruined == outcome.ruined
    if not outcome.ruined:
        assert lane.position_ST.T.tolist() == outcome.position
        assert list(lane.open_positions.values()) == [lots for lots in outcome.position[-1] if lots]
