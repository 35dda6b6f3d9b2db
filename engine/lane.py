"""The generated lane step: one Python text that calls every lane function of a run, for training and backtests alike.

A lane is one account. The text is put together from blocks (`bellmark.lane_text`: decide, order, fill and book, stops, mark) around the
functions of the components, which are wired by parameter name. The same blocks make the kernels that advance all lanes by one bar
(training, learned policies), the kernel that runs a rule strategy over a whole window with the account in registers, and the kernel in
which one account trades several symbols. Only the rules that a run uses, and only the fields that the text then reads, are compiled in.

Arguments that a lane function may ask for by name:
  bars of the lane's symbol   open_T high_T low_T close_T (int64 quanta) volume_T (float64 lots, NaN unknown) ts_T session_T session_bar_T
                              session_left_T session_fraction_T gap_T, the columns of tape.EXTRA that the data have (bid_open_T ...), and t,
                              the bar whose close was just seen (in `fill` and `protect`: the working bar)
  account                     cash equity start_equity peak_equity (int64 nano-currency) position (int64 lots) entry_price (float64
                              quanta) bars_in_position held_exposure fills refusals gross spread_cost slippage_cost fee_cost funding_cost
                              symbols (in the account)
  instrument and costs        price_quantum (float64 currency) value_numerator value_denominator quanta_per_tick positive_only
                              half_spread slippage slippage_rate fee_per_lot fee_rate fee_minimum margin_per_lot margin_rate
  decision                    price (close of t) lane; in sizings, masks, executions and rewards also exposure order_type urgency, in the
                              last three target_lots, in the last two order_lots; in `fill` limit_price participation; in `protect`
                              stop_price target_price start_price rested target_at_open
  reward                      previous_equity previous_position fill_lots fill_fee; with a latency the exposure, order_type, urgency and
                              lots are those of the order that works in the bar
  and the component's own settings, state slots and series (`NAME_T`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bellmark import backend, ledger, market
from bellmark.codegen import Inlined, call_text
from bellmark.component import Component, SettingInfo, settings_of
from bellmark.errors import PluginError, UsageError
from bellmark.lane_text import (
    ARRIVE,
    BOOK,
    BREACH,
    CLOSE_ANCHOR,
    CLOSING,
    DECIDED,
    GUARD,
    MARK_ACCOUNT,
    MARK_POSITION,
    ORDER,
    PEAK,
    POINT,
    QUIET,
    REFUSE_AT_ONCE,
    select,
)

TAPE_ARRAYS = ("ts", "open", "high", "low", "close", "volume", "session", "session_bar", "session_left", "session_fraction", "gap")

# Fields of an account and the roles of their buffers (name_LN). They are loaded before a step and stored after it.
ACCOUNT: dict[str, str] = {
    "cash": "money",
    "equity": "money",
    "peak_equity": "money",
    "gross": "money",
    "spread_cost": "money",
    "slippage_cost": "money",
    "fee_cost": "money",
    "funding_cost": "money",
    "rounding": "money",
    "fills": "counter",
    "refusals": "counter",
    "ruined": "flag",
}
# Fields of one symbol's position (name_LN, in a shared account name_LNS), with the rules that need them ("" = always).
POSITION: dict[str, tuple[str, str]] = {
    "position": ("lots", ""),
    "entry_price": ("state_float", ""),
    "held_exposure": ("exposure", ""),
    "bars_in_position": ("counter", ""),
    "standing": ("counter", ""),
    "working_target": ("lots", ""),
    "order_fees": ("money", ""),
    "order_charged": ("money", ""),
    "order_base": ("price", "decision_anchor"),
    "stop_price": ("price", "protect"),
    "target_price": ("price", "protect"),
    "trail_price": ("price", "trail"),
    "liquidate": ("counter", "maintenance"),
    "mark_price": ("price", "shared"),
    "sent_exposure": ("exposure", "latency"),
    "open_money": ("money", "summary"),
}
# An order between its decision and the bar in which it works: with a latency in the queue, in a shared account until the symbol's next bar.
PENDING: dict[str, str] = {
    "placed": "counter",
    "exposure": "exposure",
    "order_type": "counter",
    "urgency": "counter",
    "target_lots": "lots",
    "limit_price": "price",
    "base_price": "price",
    "point": "counter",
}
# What a step says of its bar (name_LN), written anew by each step. order_lots, reason: of the order that worked in it.
EVENTS: dict[str, str] = {
    "order_lots": "lots",
    "fill_lots": "lots",
    "fill_fee": "money",
    "reason": "index",
    "decided_exposure": "exposure",
    "point_equity": "money",  # at the close of t, after fills at that close
    "point_position": "lots",
}
# What a run keeps of each point of its curve (record_name_LNST): the point after bar k, and the decision at it.
RECORD: dict[str, str] = {
    "position": "lots",
    "order_lots": "lots",
    "reason": "index",
    "decided_exposure": "exposure",
    "mark_price": "price",
}
# What a run adds up for the metrics while it passes over the bars (summary_float_LNX, summary_int_LNX).
SUMMARY_FLOAT = (
    "return_sum", "return_sum_2", "return_sum_3", "return_sum_4", "loss_sum", "loss_sum_2", "max_drawdown", "traded_value", "equity_sum",
)  # fmt: skip
SUMMARY_INT = (
    "bars", "moving_bars", "losing_bars", "peak_bar", "valley_bar", "trades", "winning_trades", "losing_trades", "trade_gain",
    "trade_loss",
)  # fmt: skip
MARKET_SETTINGS = ("start_equity", "capital_floor")  # int64 nano-currency, the first columns of setting_int_GX


@dataclass(frozen=True)
class LanePart:
    """A component as the lane step uses it: its label in the profile, the instance, and who brought it."""

    label: str
    component: Component
    plugin: str

    @property
    def where(self) -> str:
        return f"plugin '{self.plugin}': {self.component.kind} '{self.component.name}'"

    def function(self, name: str) -> Callable[..., Any]:
        found = getattr(type(self.component), name, None)
        if found is None:
            raise PluginError(f"{self.where}: it has no function '{name}'")
        return found


@dataclass(frozen=True)
class LaneParts:
    """Everything that a run's lane step is made of. `rules`: compiled in even where no setting asks for them (tests, sweeps over costs)."""

    sizing: LanePart
    execution: LanePart
    rewards: tuple[LanePart, ...] = ()
    masks: tuple[LanePart, ...] = ()
    features: tuple[LanePart, ...] = ()  # portfolio features, in the order of their columns
    strategy: LanePart | None = None
    rules: frozenset[str] = frozenset()

    def all(self) -> tuple[LanePart, ...]:
        strategy = (self.strategy,) if self.strategy is not None else ()
        return (self.sizing, self.execution, *self.rewards, *self.masks, *self.features, *strategy)


class LaneCode:
    """Writes the text of the lane kernels and lays out the buffers of settings and state.

    rules: of lane_text.RULES. latency: bars from decision to working bar. extras: columns of tape.EXTRA that the data have. symbols: in a
    shared account. rule_order: order type and urgency of a rule strategy's orders.
    """

    def __init__(
        self,
        parts: LaneParts,
        rules: frozenset[str] = frozenset(),
        latency: int = 1,
        extras: Sequence[str] = (),
        symbols: int = 1,
        rule_order: tuple[int, int] = (market.MARKET, 1),
    ) -> None:
        self.rule_order = rule_order
        self.parts, self.rules, self.latency, self.extras, self.accounted = parts, rules | parts.rules, latency, tuple(extras), symbols
        self.symbols: dict[str, Any] = {"prange": __import__("numba").prange, "float32": np.float32, "append": ledger.append}
        self.symbols |= {"unlikely": backend.unlikely, "assume": backend.assume}
        self.symbols |= {"REFUSED": ledger.REFUSED, "NO_LEVEL": market.NO_LEVEL}
        for name in ("mul_div", "part_fee", "margin_need", "increases", "average_entry", "book", "affordable", "resting_price", "levels",
                     "trail_level", "round_trip", "nearest", "due_fee", "mul_rate", "sane", "safe_closes"):  # fmt: skip
            self.symbols[name] = getattr(market, name)
        for name in _CODES:
            self.symbols[name] = getattr(market, name)
        self.int_columns: dict[tuple[str, str], int] = {("market", name): column for column, name in enumerate(MARKET_SETTINGS)}
        self.float_columns: dict[tuple[str, str], int] = {}
        self.state_columns: dict[tuple[str, str], tuple[str, int]] = {}
        self.series: dict[tuple[str, str], str] = {}  # (label, name) -> type; the buffer is `series_buffer`
        self._names: dict[str, dict[str, str]] = {}
        self._prefixes: dict[str, str] = {}
        for index, part in enumerate(parts.all()):
            self._lay_out(index, part)
        if parts.sizing.component.state or any(part.component.state for part in (*parts.masks, parts.execution)):  # type: ignore[attr-defined]
            raise PluginError("sizings, action masks and executions are called more than once a bar and may not have state")
        missing = [column for column in getattr(parts.execution.component, "needs", ()) if column not in self.extras]
        if missing:
            found = ", ".join(self.extras) or "bars alone"
            columns = ", ".join(missing)
            raise UsageError(f"execution '{parts.execution.component.name}' needs the columns {columns} of the data, found {found}"
                             " (for files: data.bid_open_column and its likes)")  # fmt: skip

    # -- layout of settings and state ------------------------------------------------------------------------------------------

    @property
    def position_fields(self) -> dict[str, str]:
        """Fields of a position under the rules of this run, with their roles."""
        fields = {name: role for name, (role, rule) in POSITION.items() if not rule or rule in self.rules}
        if "latency" in self.rules:
            fields |= {f"{name}_{place}": PENDING[name] for place in range(1, self.latency) for name in self._pending}
        if "shared" in self.rules:
            fields |= {f"{name}_0": PENDING[name] for name in self._pending}
        return fields

    @property
    def _pending(self) -> list[str]:
        """What travels with an order to the bar in which it works."""
        unused = {"base_price"} if "decision_anchor" not in self.rules else set()
        unused |= {"point"} if "shared" not in self.rules else set()
        return [name for name in PENDING if name not in unused]

    def _lay_out(self, index: int, part: LanePart) -> None:
        # The number tells labels apart that differ in case or in a letter that is none here.
        prefix = self._prefixes[part.label] = f"{re.sub(r'[^0-9a-z_]', '_', part.label.lower())}_{index}"
        names: dict[str, str] = {}
        for info in settings_of(type(part.component)):
            value = getattr(part.component, info.name)
            if info.static:
                names[info.name] = repr(info.choices.index(value) if info.choices else value)
                continue
            if info.type is str and not info.choices:
                continue  # a path or a name is for the host: compute_series reads it
            columns = self.float_columns if self.setting_is_float(info) else self.int_columns
            columns.setdefault((part.label, info.name), len(columns))
            names[info.name] = f"{prefix}_{info.name}"
        for slot, kind in getattr(part.component, "state", {}).items():
            if kind not in ("float64", "int64"):
                raise PluginError(f"{part.where}: state slot '{slot}': expected 'float64' or 'int64', found {kind!r}")
            count = sum(1 for where, _ in self.state_columns.values() if where == kind)
            self.state_columns[part.label, slot] = (kind, count)
            names[slot] = f"{prefix}_state_{slot}"
        for name, kind in getattr(part.component, "series", {}).items():
            if kind not in ("float64", "int64"):
                raise PluginError(f"{part.where}: series '{name}': expected 'float64' or 'int64', found {kind!r}")
            self.series[part.label, name] = kind
            self.int_columns[part.label, f"{name}_KST"] = len(self.int_columns)
            names[f"{name}_T"] = f"{prefix}_{name}_T"
        self._names[part.label] = names

    def series_buffer(self, label: str, name: str) -> str:
        """The buffer of a series: distinct settings x symbols x bars."""
        return f"{self._prefixes[label]}_{name}_KST"

    @staticmethod
    def setting_is_float(info: SettingInfo) -> bool:
        """Whether a setting lies in the float buffer; numbers, truth values and choices only."""
        if info.choices or info.type in (int, bool):
            return False
        if info.type is float:
            return True
        raise PluginError(f"setting '{info.name}': a compiled component takes int, float, bool or a choice, found {info.type_text}")

    def setting_rows(
        self, market_values: dict[str, int], components: dict[str, Component] | None = None, rows: dict[tuple[str, str], int] | None = None
    ) -> tuple[list[int], list[float]]:
        """The values of one group of lanes, in the order of setting_int_GX and setting_float_GX.

        `components` swaps components by label, `rows` says where a series lies in its buffer.
        """
        chosen = {part.label: part.component for part in self.parts.all()} | (components or {})
        ints = [0] * len(self.int_columns)
        floats = [0.0] * len(self.float_columns)
        for (label, name), column in self.int_columns.items():
            if label == "market":
                ints[column] = market_values[name]
                continue
            if name.endswith("_KST"):
                ints[column] = (rows or {}).get((label, name.removesuffix("_KST")), 0)
                continue
            value = getattr(chosen[label], name)
            info = next(item for item in settings_of(type(chosen[label])) if item.name == name)
            ints[column] = info.choices.index(value) if info.choices else int(value)
        for (label, name), column in self.float_columns.items():
            floats[column] = float(getattr(chosen[label], name))
        return ints, floats

    @property
    def state_sizes(self) -> tuple[int, int]:
        """Float and int state slots a lane."""
        kinds = [kind for kind, _ in self.state_columns.values()]
        return kinds.count("float64"), kinds.count("int64")

    # -- calls and loads -------------------------------------------------------------------------------------------------------

    def _call(self, part: LanePart, function: str, context: dict[str, str], fallback: Any = None) -> str:
        symbol = f"{self._prefixes[part.label]}_{part.component.kind}_{function}"
        found = fallback if fallback is not None and not hasattr(type(part.component), function) else part.function(function)
        self.symbols[symbol] = Inlined(found) if function in _EACH_BAR else found
        extras = tuple(f"{name}_T" for name in self.extras)
        names = (*_ANY_TIME, *extras, *_AT_CALL.get(function, ()))
        available = {name: name for name in names} | {"symbols": str(self.accounted)} | self._names[part.label] | context
        return f"{symbol}({call_text(found, available, f'{part.where}.{function}')})"

    def _stateful_call(self, part: LanePart, function: str, context: dict[str, str], result: str) -> str:
        slots = [self._names[part.label][slot] for slot in getattr(part.component, "state", {})]
        call = self._call(part, function, context)
        return f"{', '.join([result, *slots])} = {call}"

    def _sizing(self, context: dict[str, str]) -> str:
        return self._call(self.parts.sizing, "target", context)

    def _execution(self, function: str, context: dict[str, str], at_close: bool = False) -> str:
        """A function of the execution model. At a close the bar is that one point: its open, high and low are the close."""
        if at_close:
            for bar in ("", "bid_", "ask_"):
                context = context | {f"{bar}{name}_T": f"{bar}close_T" for name in ("open", "high", "low")}
        fallback = {"quote": market.quote, "protect": market.protect}.get(function)
        return self._call(self.parts.execution, function, context, fallback)

    def _symbol_lines(self, body: Sequence[str]) -> list[str]:
        """Loads of the bars, the instrument, the costs and the settings that the text reads."""
        words = set(re.findall(r"\w+", "\n".join(body)))
        loads = [(f"{name}_T", f"{name}_ST[s]") for name in (*TAPE_ARRAYS, *self.extras)]
        loads += [(name, f"instrument_SJ[s, {column}]") for column, name in enumerate(market.INSTRUMENT_FIELDS)]
        loads += [(name, f"cost_GSJ[g, s, {column}]") for column, name in enumerate((*market.COST_FIELDS, *market.LIMITS))]
        loads.append(("price_quantum", "quantum_S[s]"))
        for (label, name), column in self.int_columns.items():
            if name.endswith("_KST"):
                buffer, row = self.series_buffer(label, name.removesuffix("_KST")), f"setting_int_GX[g, {column}]"
                loads.append((self._names[label][f"{name.removesuffix('_KST')}_T"], f"{buffer}[{row}, s]"))
            else:
                loads.append((name if label == "market" else self._names[label][name], f"setting_int_GX[g, {column}]"))
        for (label, name), column in self.float_columns.items():
            loads.append((self._names[label][name], f"setting_float_GX[g, {column}]"))
        return [f"{target} = {source}" for target, source in loads if target in words]

    def _load_lines(self, at: str = "LN[l, n]", kinds: str = "account position") -> list[str]:
        fields = [*(ACCOUNT if "account" in kinds else ()), *(self.position_fields if "position" in kinds else ())]
        return [f"{name} = {name}_{at}" for name in fields] + (self._state_lines("{name} = {slot}") if "position" in kinds else [])

    def _store_lines(self, at: str = "LN[l, n]", kinds: str = "account position") -> list[str]:
        fields = [*(ACCOUNT if "account" in kinds else ()), *(self.position_fields if "position" in kinds else ())]
        return [f"{name}_{at} = {name}" for name in fields] + (self._state_lines("{slot} = {name}") if "position" in kinds else [])

    def _state_lines(self, form: str) -> list[str]:
        lines = []
        for (label, slot), (kind, column) in self.state_columns.items():
            name, short, zero = self._names[label][slot], kind.removesuffix("64"), "0.0" if kind == "float64" else "0"
            where = f"state_{short}_LNSX[l, n, {'s' if 'shared' in self.rules else '0'}, {column}]"
            lines.append(form.format(name=name, slot=where, zero=zero))
        return lines

    def _new_account_lines(self) -> list[str]:
        return [f"{name} = {'start_equity' if name in _AT_START else 0}" for name in ACCOUNT]

    def _new_position_lines(self) -> list[str]:
        zeros = [f"{name} = {'0.0' if role in ('state_float', 'exposure') else '0'}" for name, role in self.position_fields.items()]
        return zeros + self._state_lines("{name} = {zero}")

    # -- blocks of text --------------------------------------------------------------------------------------------------------

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
        lines += _indent(inner)
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
        return [*lines, "if fills != fills_before:", *_indent(inner), "worked_lots = order_lots", "worked_reason = reason"]

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
        lines += _indent(self._target_lines({"t": bar}))
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

    # -- kernels ---------------------------------------------------------------------------------------------------------------

    def step_text(self, arguments: Sequence[str]) -> str:
        """All lanes by one bar: action -> order -> fill -> mark -> reward -> observation of the next bar."""
        body = [*_LANE_HEAD, "if ruined_LN[l, n] == 0 and bar_LN[l, n] < end_bar_LN[l, n]:", *_indent(self._whole_step_lines())]
        return _kernel(arguments, body)

    def _whole_step_lines(self) -> list[str]:
        same = "same_close" in self.rules
        body = [
            "t = bar_LN[l, n] + 0",
            "u = t + 1",
            "last = end_bar_LN[l, n] + 0",
            "exposure = exposure_A[action_LN[l, n]]",
            "order_type = order_type_A[action_LN[l, n]] + 0",
            "urgency = urgency_A[action_LN[l, n]] + 0",
            "decided_exposure = exposure",
            *self._decide_lines(),
            *(["equity_before = equity", *self._same_close_lines()] if same else []),
            "point_equity = equity",
            "point_position = position",
            *(["if ruined == 0:", *_indent(self._bar_lines()), "else:", "    u = t"] if same else self._bar_lines(self._arrive_lines())),
            *(["order_lots = worked_lots", "reason = worked_reason", "previous_equity = equity_before"] if same else []),
            *self._reward_lines(),
            *(f"{name}_LN[l, n] = {name}" for name in EVENTS),
            "reward_LN[l, n] = float32(reward)",
            "next_bar_LN[l, n] = u",
            "terminated_LN[l, n] = ruined",
            "truncated_LN[l, n] = 1 if ruined == 0 and u >= end_bar_LN[l, n] else 0",
            *self._observe_lines("u", "next_"),
        ]
        return [*self._symbol_lines(body), *self._load_lines(), *body, *self._store_lines()]

    def advance_text(self, arguments: Sequence[str]) -> str:
        """Lanes that go on take over the next observation; lanes that ended begin a new episode at a bar drawn for them."""
        self.symbols |= _episode_symbols()
        body = [
            *_LANE_HEAD,
            "if terminated_LN[l, n] == 0 and truncated_LN[l, n] == 0:",
            "    bar_LN[l, n] = next_bar_LN[l, n]",
            "    for p in range(portfolio_LNP.shape[2]):",
            "        portfolio_LNP[l, n, p] = next_portfolio_LNP[l, n, p]",
            "    for a in range(allowed_LNA.shape[2]):",
            "        allowed_LNA[l, n, a] = next_allowed_LNA[l, n, a]",
            "else:",
            *_indent(self._new_episode_lines()),
        ]
        return _kernel(arguments, body)

    def _new_episode_lines(self) -> list[str]:
        return [
            "ruined_lanes_LN[l, n] = ruined_lanes_LN[l, n] + terminated_LN[l, n]",
            "seed, number = control_int_LC[l, SEED], episode_LN[l, n]",
            "symbol, start, end = draw_episode(seed, n, number, window_start_LS[l], window_end_LS[l], episode_bars)",
            "episode_LN[l, n] = episode_LN[l, n] + 1",
            "symbol_LN[l, n] = symbol",
            "bar_LN[l, n] = start",
            "end_bar_LN[l, n] = end",
            *self._begin_lines(),
        ]

    def begin_text(self, arguments: Sequence[str]) -> str:
        """New accounts at the symbol and bar that the host has set (backtests)."""
        return _kernel(arguments, [*_LANE_HEAD, *self._begin_lines()])

    def _begin_lines(self) -> list[str]:
        body = ["t = bar_LN[l, n] + 0", *self._new_account_lines(), *self._new_position_lines(), *self._observe_lines("t", "")]
        return ["s = symbol_LN[l, n]", "g = group_LN[l, n]", *self._symbol_lines(body), *body, *self._store_lines()]

    def finish_text(self, arguments: Sequence[str]) -> str:
        """The decision at the last bar of a window: its order and those under way are listed as unfilled; at the same close it fills."""
        body = [
            "t = bar_LN[l, n] + 0",
            "u = t",
            "exposure = exposure_A[action_LN[l, n]]",
            "order_type = order_type_A[action_LN[l, n]] + 0",
            "urgency = urgency_A[action_LN[l, n]] + 0",
            "decided_exposure = exposure",
            *self._last_lines(),
            "point_equity = equity",
            "point_position = position",
            *(f"{name}_LN[l, n] = {name}" for name in EVENTS if name not in ("fill_lots", "fill_fee")),
        ]
        inside = [*self._symbol_lines(body), *self._load_lines(), *body, *self._store_lines()]
        return _kernel(arguments, [*_LANE_HEAD, "if ruined_LN[l, n] == 0:", *_indent(inside)])

    def _last_lines(self) -> list[str]:
        lines = self._decide_lines()
        if {"same_close", "close_at_end"} <= self.rules:
            return [*lines, "order_lots = 0"]  # the window is closed: its last decision trades no more
        if "same_close" in self.rules:
            row = "append(ledger_LNEJ, ledger_count_LN, l, n, t, s, REFUSED, LAST_BAR, working_target - position, close_T[t], 0, 0, 0, 0)"
            rest = ["if standing == WORKING and working_target != position:", f"    {row}"]
            return [*lines, *self._same_close_lines(), *(rest if "ledger" in self.rules else [])]
        lines += select(DECIDED, self.rules, {})
        if "ledger" in self.rules:
            # Each at the bar that decided it: the order that would work next, then those behind it in the queue.
            late = self.latency - 1
            row = "append(ledger_LNEJ, ledger_count_LN, l, n, t - {1}, s, REFUSED, LAST_BAR, {0}, close_T[t], 0, 0, 0, 0)"
            lines += ["if order_lots != 0:", f"    {row.format('order_lots', f'({late} if placed != 0 else 0)' if late else 0)}"]
            for place in range(1, self.latency):
                lines += [
                    f"if placed_{place} != 0 and target_lots_{place} != position:",
                    f"    {row.format(f'target_lots_{place} - position', late - place)}",
                ]
        return lines

    def run_text(self, arguments: Sequence[str]) -> str:
        """A rule strategy over the window of each lane, bar by bar, with the account in registers."""
        assert self.parts.strategy is not None
        decide = self._stateful_call(self.parts.strategy, "decide", {"price": self._values["MARK_T"]}, "exposure")
        same = "same_close" in self.rules
        begin = [*self._rule_order_lines(), decide, "decided_exposure = exposure"]
        point = [*self._block(POINT), "bars = bars + 1"] if "summary" in self.rules else []
        if same:
            loop = [*self._decide_lines(), *self._same_close_lines()]
            loop += [*self._record_lines("t - first"), *self._point_record_lines("t - first", "t")]
            loop += ["if t != first:", *_indent(point)] if point else []
            bar = ["u = t + 1", *self._bar_lines(), *self._point_record_lines("u - first")]
            loop += ["u = t", "if ruined == 0:", *_indent(bar)]
        else:
            loop = ["u = t + 1", *self._bar_lines(self._order_lines()), *self._record_lines("t - first"), *point]
            loop += self._point_record_lines("u - first")
        loop += ["t = u", "if ruined == 0:", *_indent(begin)]
        if self._has_quiet_bars(decide):
            loop = [*self._quiet_lines(decide), "if t < last:", *_indent(loop)]
        body = [
            *self._new_account_lines(),
            *self._new_position_lines(),
            "first = bar_LN[l, n] + 0",
            "last = end_bar_LN[l, n] + 0",
            *self._summary_start_lines(),
            *self._point_record_lines("0", "first"),
            "t = first",
            *begin,
            "while t < last and ruined == 0:",
            *_indent(loop),
            "u = t",
            "bar_LN[l, n] = t",
            "if ruined == 0:",
            *_indent(self._last_lines()),
            *_indent(["if t != first:", *_indent(point)] if same and point else []),
            *_indent([*self._record_lines("t - first"), *(self._point_record_lines("t - first", "t") if same else [])]),
            *(["elif t != first:", *_indent(point)] if same and point else []),
            *self._summary_store_lines(),
        ]
        # The symbol, not the place among all lanes: a rule draws the same numbers alone, in a sweep and in a second run.
        inner = ["lane = s + 0", *self._symbol_lines(body), *body, *self._store_lines()]
        return _kernel(arguments, [*_LANE_HEAD, *inner])

    def _has_quiet_bars(self, decide: str) -> bool:
        """Whether bars without orders and fills may run in loops of their own: no rule does more in them, and the decision reads no sum."""
        return "summary" in self.rules and not self.rules & _BUSY_RULES and not re.search(_SUMS, decide)

    def _quiet_lines(self, decide: str) -> list[str]:
        return self._block(
            QUIET,
            DECIDE=decide,
            QUIET_END="last - 1" if "close_at_end" in self.rules else "last",
            NOT_DUE=" and liquidate == 0" if "maintenance" in self.rules else "",
            PROTECT=self._protect("u") if "protect" in self.rules else "",
            MAINTENANCE="maintenance_per_lot, maintenance_rate" if "maintenance" in self.rules else "0, 0",
            POINT="\n".join(self._block(POINT)),
        )

    def _order_lines(self) -> list[str]:
        """Decision and order of a bar. Most bars ask for what is held and have no order: one comparison tells them apart."""
        lines = [*self._decide_lines(), *self._arrive_lines()]
        if self.rules & {"always", "flat_by_close", "latency"}:
            return lines
        due = self._values["DUE"]
        return ["reason = FILLED", f"if unlikely(exposure != held_exposure or standing != 0{due}):", *_indent(lines)]

    def _rule_order_lines(self) -> list[str]:
        return [f"order_type = {self.rule_order[0]}", f"urgency = {self.rule_order[1]}"]

    def _summary_start_lines(self) -> list[str]:
        if "summary" not in self.rules:
            return []
        zeros = [f"{name} = 0.0" for name in SUMMARY_FLOAT] + [f"{name} = 0" for name in SUMMARY_INT]
        starts = [f"{name} = start_equity" for name in ("point_equity", "highest", "lowest")]
        return [*zeros, *starts, "highest_bar = 0", "equity_sum = equity_sum + start_equity"]

    def _summary_store_lines(self) -> list[str]:
        if "summary" not in self.rules:
            return []
        lines = [f"summary_float_LNX[l, n, {column}] = {name}" for column, name in enumerate(SUMMARY_FLOAT)]
        return lines + [f"summary_int_LNX[l, n, {column}] = {name}" for column, name in enumerate(SUMMARY_INT)]

    def _record_lines(self, point: str) -> list[str]:
        """The decision at a point; with a latency the order that worked now was decided earlier."""
        if "record" not in self.rules:
            return []
        s = "s" if "shared" in self.rules else "0"
        lines = [f"record_decided_exposure_LNST[l, n, {s}, {point}] = decided_exposure"]
        late = self.latency - 1
        at = f"{point} - {late}" if late else point
        outcome = [f"record_order_lots_LNST[l, n, {s}, {at}] = order_lots", f"record_reason_LNST[l, n, {s}, {at}] = reason"]
        return lines + ([f"if {point} >= {late} and (order_lots != 0 or reason != 0):", *_indent(outcome)] if late else outcome)

    def _point_record_lines(self, point: str, bar: str = "u") -> list[str]:
        if "record" not in self.rules:
            return []
        mark = self._values["MARK_T" if bar == "t" else "MARK_U"] if bar in ("t", "u") else f"close_T[{bar}]"
        return [
            f"record_equity_LNT[l, n, {point}] = equity",
            f"record_position_LNST[l, n, 0, {point}] = position",
            f"record_mark_price_LNST[l, n, 0, {point}] = {mark}",
        ]


    # -- several symbols in one account --------------------------------------------------------------------------------------

    def run_shared_text(self, arguments: Sequence[str]) -> str:
        """A rule strategy on several symbols of one account. The clock has a row for each stamp of any symbol: its bar, or -1 for none.

        At each stamp: every symbol with a bar works its order, in the order of the data; the account is marked, symbols without a bar at
        their last mark; every symbol with a bar decides at the account's equity.
        """
        assert self.parts.strategy is not None
        work, decide = self._shared_work_lines(), self._shared_decide_lines()
        record = [
            "record_equity_LNT[l, n, k] = equity",
            "for s in range(symbols):",
            "    record_position_LNST[l, n, s, k] = position_LNS[l, n, s]",
            "    record_mark_price_LNST[l, n, s, k] = mark_price_LNS[l, n, s]",
        ]
        new = [*self._new_position_lines(), *self._store_lines("LNS[l, n, s]", "position")]
        body = [
            *self._new_account_lines(),
            *self._summary_start_lines(),
            "for s in range(symbols):",
            *_indent(new),
            "k = 0",
            "while k < clock_KS.shape[0] and ruined == 0:",
            *_indent(["previous_equity = equity", "change = 0", "for s in range(symbols):"]),
            *_indent(["u = clock_KS[k, s] + 0", "if u >= 0:"], 2),
            *_indent([*self._symbol_lines(work), *self._load_lines("LNS[l, n, s]", "position"), *work], 3),
            *_indent(self._store_lines("LNS[l, n, s]", "position"), 3),
            *_indent(self._shared_mark_lines()),
            *(_indent(record) if "record" in self.rules else []),
            "    if ruined == 0:",
            "        for s in range(symbols):",
            "            t = clock_KS[k, s] + 0",
            "            if t >= 0:",
            *_indent([*self._symbol_lines(decide), *self._load_lines("LNS[l, n, s]", "position"), *decide], 4),
            *_indent(self._store_lines("LNS[l, n, s]", "position"), 4),
            "    bar_LN[l, n] = k",
            "    k = k + 1",
            *self._summary_store_lines(),
            *self._store_lines(kinds="account"),
        ]
        head = [line for line in _LANE_HEAD if not line.startswith("s = ")]
        s_free = ["s = 0", *self._symbol_lines(["start_equity capital_floor"]), f"symbols = {self.accounted}"]
        return _kernel(arguments, [*head, *s_free, *body])

    def _shared_work_lines(self) -> list[str]:
        pending = self._pending
        record = []
        if "record" in self.rules:
            record = ["if order_lots != 0 or reason != 0:", "    record_order_lots_LNST[l, n, s, point] = order_lots"]
            record += ["    record_reason_LNST[l, n, s, point] = reason"]
        others = [
            "others = 0",
            "others_value = 0",
            "for j in range(symbols):",
            "    if j != s and position_LNS[l, n, j] != 0:",
            "        value_j = mul_div(position_LNS[l, n, j] * mark_price_LNS[l, n, j], instrument_SJ[j, 0], instrument_SJ[j, 1])",
            "        others_value = others_value + value_j",
            "        others = others + value_j - margin_need(",
            "            position_LNS[l, n, j], mark_price_LNS[l, n, j], instrument_SJ[j, 0], instrument_SJ[j, 1],",
            f"            cost_GSJ[g, j, {_COST['margin_per_lot']}], cost_GSJ[g, j, {_COST['margin_rate']}]",
            "        )",
        ]
        return [
            "last = last_S[s] + 0",
            *(f"{name} = {name}_0" for name in pending),
            "reason = FILLED",
            *self._bar_start_lines("mark_price"),
            f"if placed != 0 or standing == WORKING{self._values['DUE']}:",
            *_indent(others),
            *_indent(self._arrive_lines()),
            *([*self._block(GUARD, PROTECT=self._protect("u")), *self._block(CLOSE_ANCHOR)] if "protect" in self.rules else []),
            *self._block(CLOSING),
            # Marked at the close only when every symbol has worked: an order at an open cannot be paid by a close that comes after it.
            "mark_price = mark",
            "bars_in_position = bars_in_position + 1 if position != 0 else 0",
            "placed_0 = 0",
            *record,
        ]

    def _shared_mark_lines(self) -> list[str]:
        close = ["mark = mark_price", f"part = {self._values['MOVED']}", "gross = gross + part", "change = change + part"]
        close += [f"mark_price_LNS[l, n, s] = {self._values['MARK_U']}"]
        fields = ["position = position_LNS[l, n, s]", "mark_price = mark_price_LNS[l, n, s]"]
        lines = [
            "for s in range(symbols):",
            "    u = clock_KS[k, s] + 0",
            "    if u >= 0:",
            *_indent([*self._symbol_lines(close), *fields, *close], 2),
            "equity = cash + 0",
            "for s in range(symbols):",
            "    equity = equity + mul_div(position_LNS[l, n, s] * mark_price_LNS[l, n, s], instrument_SJ[s, 0], instrument_SJ[s, 1])",
            *self._block(MARK_ACCOUNT),
            *self._block(PEAK),
        ]
        if "summary" in self.rules:
            lines += ["if k != 0:", *_indent([*self._block(POINT, POINT_BAR="k"), "bars = bars + 1"])]
        if "maintenance" in self.rules:
            lines += [
                "need = 0",
                "for s in range(symbols):",
                "    need = need + margin_need(",
                "        position_LNS[l, n, s], mark_price_LNS[l, n, s], instrument_SJ[s, 0], instrument_SJ[s, 1],",
                f"        cost_GSJ[g, s, {_COST['maintenance_per_lot']}], cost_GSJ[g, s, {_COST['maintenance_rate']}]",
                "    )",
                "for s in range(symbols):",
                "    liquidate_LNS[l, n, s] = 1 if equity < need and position_LNS[l, n, s] != 0 else 0",
            ]
        return lines

    def _shared_decide_lines(self) -> list[str]:
        assert self.parts.strategy is not None
        decide = self._stateful_call(self.parts.strategy, "decide", {"price": self._values["MARK_T"]}, "exposure")
        lines = ["lane = s + 0", *self._rule_order_lines(), decide, "decided_exposure = exposure"]
        lines.append("point = k + 0")
        record = []
        if "record" in self.rules:
            record = ["record_decided_exposure_LNST[l, n, s, k] = decided_exposure"]
        last = [line for line in self._last_lines()[len(self._decide_lines()) :]]
        unfilled = []
        if "record" in self.rules:
            unfilled = ["if reason != 0:", "    record_reason_LNST[l, n, s, k] = reason"]
        return [
            *lines,
            *self._decide_lines(),
            *record,
            *unfilled,
            *(f"{name}_0 = {name}" for name in self._pending),
            "if t >= last_S[s]:",
            *_indent([*last, "placed_0 = 0"]),
        ]


_CODES = (
    *("FILLED", "MAKER", "UNAFFORDABLE", "NO_VOLUME", "BAD_PRICE", "LAST_BAR", "BAD_EXPOSURE", "BAD_SIZE", "HALTED", "LIQUIDATED"),
    *("CANCELLED", "BAD_FILL", "ORDER", "LIQUIDATION", "STOP", "TRAILING", "TARGET", "ROLL_OUT", "ROLL_IN", "CLOSE_AT_END"),
    *("MARKET", "LIMIT", "WORKING", "STOPPED", "UNSETTLED"),
)
_COST = {name: column for column, name in enumerate(market.COST_FIELDS)}
_AT_START = ("cash", "equity", "peak_equity")
_LANE_HEAD = ["l = i // lanes", "n = i - l * lanes", "lane = n", "s = symbol_LN[l, n]", "g = group_LN[l, n]"]
_ANY_TIME = (
    *(f"{array}_T" for array in TAPE_ARRAYS),
    *market.INSTRUMENT_FIELDS,
    *("half_spread", "slippage", "slippage_rate", "fee_per_lot", "fee_rate", "fee_minimum", "margin_per_lot", "margin_rate"),
    *("price_quantum", "t", "price", "lane", "cash", "equity", "start_equity", "peak_equity", "position", "entry_price"),
    *("bars_in_position", "held_exposure", "gross", "spread_cost", "slippage_cost", "fee_cost", "funding_cost", "fills", "refusals"),
)
_DECISION = ("exposure", "order_type", "urgency")
# What exists beside that at the moment at which a function is called.
_AT_CALL: dict[str, tuple[str, ...]] = {
    "target": _DECISION,
    "allowed": (*_DECISION, "target_lots"),
    "fill": (*_DECISION, "target_lots", "order_lots", "limit_price", "participation"),
    "protect": ("stop_price", "target_price", "start_price", "rested", "target_at_open"),
    "reward": (*_DECISION, "target_lots", "order_lots", "previous_equity", "previous_position", "fill_lots", "fill_fee"),
}


_AT_END = {"t": "u", "order_lots": "lots", "order_type": "MARKET", "limit_price": "0", "participation": "0"}
# Once a bar: whole nano-currency a quantum, the usual case, is told apart before the call.
_MONEY = "({0}) * value_numerator if value_denominator == 1 else mul_div({0}, value_numerator, value_denominator)"
_BUSY_RULES = frozenset(
    ("always", "flat_by_close", "latency", "same_close", "trail", "halts", "funding", "roll", "shared", "record")
)  # with them a bar may do something without an order
_SUMS = r"\b(gross|peak_equity|bars_in_position)\b"  # brought up to date after quiet bars
_EACH_BAR = ("decide", "protect")  # called on every bar of a run, most of which do nothing else


def _by_urgency(limit: str, cap: str) -> str:
    """Distance and rate of a limit order or an ioc order by its urgency, as a pair of expressions."""

    def chosen(name: str) -> str:
        return f"({name}_0 if urgency == 0 else ({name}_1 if urgency == 1 else {name}_2))"

    pair = ((chosen(f"{limit}{suffix}"), chosen(f"{cap}{suffix}")) for suffix in ("", "_rate"))
    return ", ".join(f"({one} if order_type == LIMIT else {other})" for one, other in pair)


def _episode_symbols() -> dict[str, Any]:
    from bellmark.control import INT
    from bellmark.environment import draw_episode

    return {"draw_episode": draw_episode, "SEED": INT["seed"]}


def _indent(lines: Sequence[str], depth: int = 1) -> list[str]:
    return ["    " * depth + line for line in lines]


def _kernel(arguments: Sequence[str], body: Sequence[str]) -> str:
    head = [f"def entry(learners, lanes, {', '.join(arguments)}):", "    for i in prange(learners * lanes):"]
    return "\n".join([*head, *_indent(body, 2), ""])
