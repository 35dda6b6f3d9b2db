"""The blocks of `bellmark.lane_text` filled with the expressions of one run: decide, order, fill and book, stops, mark, observe."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from bellmark.lane_layout import LaneLayout
from bellmark.lane_text import (
    ARRIVE,
    BOOK,
    BREACH,
    CLOSE_ANCHOR,
    CLOSING,
    GUARD,
    MARK_ACCOUNT,
    MARK_POSITION,
    ORDER,
    PEAK,
    REFUSE_AT_ONCE,
    select,
)

_AT_END = {"t": "u", "order_lots": "lots", "order_type": "MARKET", "limit_price": "0", "participation": "0"}
# Once a bar: whole nano-currency a quantum, the usual case, is told apart before the call.
_MONEY = "({0}) * value_numerator if value_denominator == 1 else mul_div({0}, value_numerator, value_denominator)"


class LaneBlocks(LaneLayout):
    """The lines of a step, put together for the rules of a run."""

    def _block(self, text: str, **values: str) -> list[str]:
        return select(text, self.rules, self._values | values)

    @cached_property
    def _values(self) -> dict[str, str]:
        """The expressions that stand in the blocks, for an order that works in bar u at its open."""
        on = self.rules.__contains__
        makers = on("orders") or on("protect")
        held = "sent_exposure" if on("latency") else "held_exposure"
        mark = self._rolled_mark("{0}")
        stop = "(max(stop_price, trail_price) if position > 0 else min(stop_price, trail_price))" if on("trail") else "stop_price"
        fee_per_lot, fee_rate = "fee_per_lot", "fee_rate"
        if makers:
            fee_per_lot = "(maker_fee_per_lot if filled == MAKER else fee_per_lot)"
            fee_rate = "(maker_fee_rate if filled == MAKER else fee_rate)"
        inside = getattr(self.parts.execution.component, "within_bar", True)
        bar, opening = ("t", "close_T") if on("same_close") else ("u", "open_T")
        low, high = (mark.format("t"),) * 2 if on("same_close") else ("low_T[u]", "high_T[u]")
        outside = f" or reference < {low} or reference > {high}" if inside else ""
        # A target fills at its own price even where the bar opened beyond it.
        exit_outside = "((reference < low_T[u] or reference > high_T[u]) and not (exit_cause == TARGET and reference == target_price))"
        exit_outside = f" or {exit_outside}" if inside else ""
        quote_t = self._execution("quote", {}) if on("orders") else ""
        return {
            "MARK_T": mark.format("t"),
            "MARK_U": mark.format("u"),
            # Asking the same again asks nothing; a decision that is no number asked nothing either.
            "STOPPED_AT": self._stopped_at(),
            "MOVED": _MONEY.format(f"position * ({mark.format('u')} - mark)"),
            "HELD": held,
            "LOOSE": self._loose,
            "LEAVES": self._leaves("t"),
            "SIZING": self._sizing({}),
            "QUOTE": quote_t,
            "FILL_AT_END": self._execution("fill", _AT_END, at_close=True) if on("close_at_end") else "",
            "OFFSET": _by_urgency("limit_offset", "ioc_cap"),
            "ROLLED": f" + ({mark.format('t')} - close_T[t])" if on("roll") else "",
            "B": bar,
            "OPEN": opening,
            "DUE": " or liquidate != 0" if on("maintenance") else "",
            "FILL": self._execution("fill", {"t": bar, "participation": self._participation()}, on("same_close")),
            "OUTSIDE": outside,
            "EXIT_OUTSIDE": exit_outside,
            "STOP_LEVEL": stop,
            "PROTECT": self._protect(bar, on("same_close")) if on("protect") else "",
            "PART_FEE": f"part_fee(lots, fill_price, value_numerator, value_denominator, {fee_per_lot}, {fee_rate})",
            "FEE_PER_LOT": fee_per_lot,
            "FEE_RATE": fee_rate,
            "OTHERS": " + others" if on("shared") else "",
            "LEVELS": self._levels(),
            "SIZE_AT_FILL": self._size_at_fill(bar, opening) if on("fill_sizing") else "",
            "MAY_TRADE": " and halted_T[u] == 0" if on("halts") else "",
            "MOVE_WAITING": self._move_waiting() if on("roll") else "",
            "MAY_TEST": " and grew == 0" if on("next_bar") else "",
            "LAST": "last",
            "POINT_BAR": "t - first" if on("same_close") else "u - first",
            "BOOK_ORDER": self._book("ORDER" if not on("maintenance") else "(LIQUIDATION if liquidate != 0 else ORDER)", bar),
            "BOOK_EXIT": self._book("exit_cause", "u"),
            "BOOK_ROLL_OUT": self._book("ROLL_OUT", "u"),
            "BOOK_ROLL_IN": self._book("ROLL_IN", "u"),
            "BOOK_CLOSE_AT_END": self._book("CLOSE_AT_END", "u"),
        }

    def _stopped_at(self) -> str:
        """Flat until something else is asked than what was asked for this bar."""
        lines = ["standing = STOPPED", "if exposure == exposure:", "    held_exposure = exposure"]
        if "latency" in self.rules:
            waiting = " and ".join(f"placed_{place} == 0" for place in range(1, self.latency))
            lines += [f"if {waiting}:", "    sent_exposure = held_exposure"]
        return "\n".join(lines)

    def _move_waiting(self) -> str:
        """Prices of orders that wait over a roll go with it into the next contract."""
        names = ["order_base"] if "decision_anchor" in self.rules else []
        waiting = ["limit_price", *(["base_price"] if names else [])]
        names += [f"{name}_{place}" for place in range(1, self.latency) for name in waiting]
        return "\n".join(f"{name} = {name} + roll_price_T[u] - close_T[u]" for name in names)

    @property
    def _loose(self) -> str:
        """Whether what is held belongs to no exposure, and no order is under way that would mend it."""
        return " and ".join(["(standing == UNSETTLED", *(f"placed_{place} == 0" for place in range(1, self.latency))]) + ")"

    def _rolled_mark(self, bar: str) -> str:
        """The price that marks a position at the close of a bar: after a roll that of the next contract."""
        return f"(roll_price_T[{bar}] if rolls_T[{bar}] != 0 else close_T[{bar}])" if "roll" in self.rules else f"close_T[{bar}]"

    def _leaves(self, bar: str) -> str:
        """Whether the order of a decision at `bar` works in the last bar of a session; the calendar knows that in advance."""
        works = bar if "same_close" in self.rules else f"{bar} + {self.latency}"
        return f"{works} < session_T.shape[0] and session_T[{works}] >= session_T[{bar}] and session_left_T[{works}] == 0"

    def _book(self, cause: str, bar: str) -> str:
        return "\n".join(select(BOOK, self.rules, {"CAUSE": cause, "B": bar}))

    def _participation(self) -> str:
        if "participation" not in self.rules:
            return "0"
        by_urgency = "participation_0 if urgency == 0 else (participation_1 if urgency == 1 else participation_2)"
        return f"(0 if liquidate != 0 else ({by_urgency}))" if "maintenance" in self.rules else f"({by_urgency})"

    def _protect(self, bar: str, at_close: bool = False) -> str:
        context = {"t": bar, "stop_price": "stop_level", "target_at_open": "1" if "target_open" in self.rules else "0"}
        return self._execution("protect", context, at_close)

    def _levels(self) -> str:
        base = "order_base" if "decision_anchor" in self.rules else "nearest(entry_price)"
        distances = "stop_distance, stop_rate, target_distance, target_rate, quanta_per_tick"
        lines = [f"stop_price, target_price = levels(position, {base}, {distances})"]
        if "trail" in self.rules:
            lines += [
                "trail_start = trail_level(position, fill_price, trail_distance, trail_rate, quanta_per_tick)",
                "if before == 0 or (before > 0) != (position > 0):",
                "    trail_price = trail_start",
                "else:",
                "    trail_price = max(trail_price, trail_start) if position > 0 else min(trail_price, trail_start)",
            ]
        return "\n".join(lines)

    def _size_at_fill(self, bar: str, opening: str) -> str:
        """The target at the price of a buy if that buys, else at the price of a sale if that sells, else what is held.

        Both prices are those of one lot of that side in the execution model; the equity is the account's at the open.
        """
        same = "same_close" in self.rules
        equity = f"cash + mul_div(position * {opening}[{bar}], value_numerator, value_denominator)"
        equity += " + others_value" if "shared" in self.rules else ""
        lines = [f"open_equity = {equity}"]
        rolled = [f"reference = reference + ({self._rolled_mark('t')} - close_T[t])"] if {"same_close", "roll"} <= self.rules else []
        known = "t" if same else f"{bar} - 1"
        for sign, name in ((1, "buy"), (-1, "sale")):
            probe = {"t": bar, "order_lots": str(sign), "participation": "0"}
            lines += [
                f"lots, reference, spread, slip, filled = {self._execution('fill', probe, same)}",
                *rolled,
                f"fill_price = reference + {sign} * (spread + slip)",
                f"{name}_target = {self._sizing({'t': known, 'price': 'fill_price', 'equity': 'open_equity'})} | 0",
            ]
        row = f"append(ledger_LNEJ, ledger_count_LN, l, n, {bar}, s, REFUSED, BAD_SIZE, wanted_lots, {opening}[{bar}], 0, 0, 0, 0)"
        return "\n".join(
            [
                *lines,
                "target_lots = buy_target if buy_target > position else (sale_target if sale_target < position else position)",
                "if target_lots > size_limit or target_lots < -size_limit:",
                "    wanted_lots = min(max(target_lots, -NO_LEVEL), NO_LEVEL) - position",
                "    target_lots = position",
                "    reason = BAD_SIZE",
                "    refusals = refusals + 1",
                *([f"    {row}"] if "ledger" in self.rules else []),
            ]
        )

    def _decide_lines(self) -> list[str]:
        """From `exposure` at the close of t to an order that may work: placed, target_lots, limit_price."""
        lines = [*self._block(ORDER)]
        if "decision_anchor" in self.rules:
            lines.append("base_price = price")
        lines += self._block(REFUSE_AT_ONCE)
        if "latency" in self.rules:
            lines += self._queue_lines()
        return lines

    def _queue_lines(self) -> list[str]:
        """The decision goes to the end of the queue, the order at its head works in the next bar."""
        names = self._pending
        lines = ["if placed != 0:", "    sent_exposure = exposure"]
        lines += [f"arriving_{name} = {name}_1" for name in names]
        for place in range(1, self.latency - 1):
            lines += [f"{name}_{place} = {name}_{place + 1}" for name in names]
        lines += [f"{name}_{self.latency - 1} = {name}" for name in names]
        lines += [f"{name} = arriving_{name}" for name in names]
        return [*lines, "reason = FILLED"]

    def _arrive_lines(self) -> list[str]:
        """The order in its working bar, booked."""
        lines = self._block(ARRIVE)
        if "latency" in self.rules:
            # A refused order leaves the account at what it holds: the same exposure asks anew.
            lines += ["if placed != 0 and held_exposure != exposure and sent_exposure == exposure:", "    sent_exposure = held_exposure"]
        return lines

    def _start_lines(self, mark: str) -> list[str]:
        lines = ["previous_equity = equity", "previous_position = position", "change = 0"]
        return [*lines, *self._bar_start_lines(mark)]

    def _bar_start_lines(self, mark: str) -> list[str]:
        lines = [f"mark = {mark}", "fill_lots = 0", "fill_fee = 0", "order_lots = 0", "fills_before = fills"]
        if "protect" in self.rules:
            lines += ["grew = 0", "rested = 0", "start_price = open_T[u]"]
        return lines

    def _bar_lines(self, order: Sequence[str] = ()) -> list[str]:
        """Bar u of an account with one symbol: `order` (the lines that work it), stops, funding and roll, mark. Needs t, u and last."""
        values = self._values
        lines = [*self._start_lines(values["MARK_T"]), *order]
        if "protect" in self.rules:
            lines += self._block(GUARD, PROTECT=self._protect("u"))
            lines += self._block(CLOSE_ANCHOR) if order else []
        lines += self._block(CLOSING)
        lines.append("if position != 0 or fills != fills_before:")
        inner = [*self._block(MARK_POSITION), f"equity = cash + ({_MONEY.format('position * ' + values['MARK_U'])})"]
        inner += [*self._block(MARK_ACCOUNT), *self._block(PEAK)]
        lines += indent(inner)
        return [*lines, *self._block(BREACH)]

    def _same_close_lines(self) -> list[str]:
        """Fills at the close of t that decided them; the point of the curve at t is the account after them."""
        lines = self._start_lines(self._values["MARK_T"])
        lines = [line for line in lines if line != "start_price = open_T[u]"]
        if "protect" in self.rules:
            lines.append("start_price = close_T[t]")
        lines += self._arrive_lines()
        lines += self._block(CLOSE_ANCHOR)
        inner = [f"equity = cash + mul_div(position * {self._values['MARK_T']}, value_numerator, value_denominator)"]
        inner += self._block(MARK_ACCOUNT)
        return [*lines, "if fills != fills_before:", *indent(inner), "worked_lots = order_lots", "worked_reason = reason"]

    def _reward_lines(self) -> list[str]:
        lines = ["reward = 0.0"]
        for part in self.parts.rewards:
            lines.append(self._stateful_call(part, "reward", {"t": "u"}, "term"))
            lines.append("reward = reward + term")
        return lines

    def _observe_lines(self, bar: str, prefix: str) -> list[str]:
        """Portfolio features and legal actions at the close of `bar`, into {prefix}portfolio_LNP and {prefix}allowed_LNA."""
        lines = []
        for column, part in enumerate(self.parts.features):
            lines.append(self._stateful_call(part, "lane", {"t": bar, "price": self._rolled_mark(bar)}, "column_value"))
            lines.append(f"{prefix}portfolio_LNP[l, n, {column}] = float32(column_value)")
        lines += [f"price = {self._rolled_mark(bar)}", "for a in range(exposure_A.shape[0]):", "    exposure = exposure_A[a]"]
        lines += ["    order_type = order_type_A[a]", "    urgency = urgency_A[a]"]
        lines += indent(self._target_lines({"t": bar}))
        lines.append("    legal = True")
        for part in self.parts.masks:
            lines.append(f"    legal = legal and {self._call(part, 'allowed', {'t': bar})} | False")
        return [*lines, f"    {prefix}allowed_LNA[l, n, a] = 1 if legal else 0"]

    def _target_lines(self, context: dict[str, str]) -> list[str]:
        """The target of the order that would come, at the decision's close, so that a mask judges that one."""
        held = "sent_exposure" if "latency" in self.rules else "held_exposure"
        asks = f"exposure != {held} or {'standing != STOPPED' if 'always' in self.rules else self._loose}"
        # Only whole numbers have |: a sizing that gives another thing does not compile.
        lines = ["target_lots = working_target if standing == WORKING else position", f"if {asks}:"]
        lines.append(f"    target_lots = {self._sizing(context)} | 0")
        if "flat_by_close" in self.rules:
            lines += [f"if {self._leaves(context['t'])}:", "    target_lots = 0"]
        return lines


def _by_urgency(limit: str, cap: str) -> str:
    """Distance and rate of a limit order or an ioc order by its urgency, as a pair of expressions."""

    def chosen(name: str) -> str:
        return f"({name}_0 if urgency == 0 else ({name}_1 if urgency == 1 else {name}_2))"

    pair = ((chosen(f"{limit}{suffix}"), chosen(f"{cap}{suffix}")) for suffix in ("", "_rate"))
    return ", ".join(f"({one} if order_type == LIMIT else {other})" for one, other in pair)


def indent(lines: Sequence[str], depth: int = 1) -> list[str]:
    return ["    " * depth + line for line in lines]
