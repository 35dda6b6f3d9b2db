"""The generated lane step: one Python text that calls every lane function of a run, for training and backtests alike.

A lane is one account. The text is put together from blocks (load the account, decide, order, fill and book, mark, reward, observe, store)
around the functions of the components, which are wired by parameter name. The same blocks make the kernels that advance all lanes by one
bar (training, learned policies) and the kernel that runs a rule strategy over a whole window with the account in registers.

Arguments that a lane function may ask for by name:
  bars of the lane's symbol   open_T high_T low_T close_T (int64 quanta) volume_T (float64 lots, NaN unknown) ts_T session_T session_bar_T
                              session_left_T session_fraction_T gap_T, and t, the bar whose close was just seen (in `fill`: the working bar)
  account                     cash equity start_equity peak_equity (int64 nano-currency) position (int64 lots) entry_price (float64
                              quanta) bars_in_position held_exposure fills refusals gross spread_cost slippage_cost fee_cost
  instrument and costs        price_quantum (float64 currency) value_numerator value_denominator quanta_per_tick positive_only
                              half_spread slippage slippage_rate fee_per_lot fee_rate fee_minimum margin_per_lot margin_rate
  decision                    price (close of t) lane; in sizings, masks, executions and rewards also exposure order_type urgency, in the
                              last three target_lots, in the last two order_lots
  reward                      previous_equity previous_position fill_lots fill_fee
  and the component's own settings and state slots.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellmark import market
from bellmark.codegen import call_text
from bellmark.component import Component, SettingInfo, settings_of
from bellmark.errors import PluginError

TAPE_ARRAYS = ("ts", "open", "high", "low", "close", "volume", "session", "session_bar", "session_left", "session_fraction", "gap")

# Account fields and the roles of their buffers (name_LN). They are loaded before a step and stored after it.
ACCOUNT: dict[str, str] = {
    "cash": "money",
    "position": "lots",
    "equity": "money",
    "peak_equity": "money",
    "entry_price": "state_float",
    "held_exposure": "exposure",
    "bars_in_position": "counter",
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
# What a step says of its bar (name_LN), written anew by each step.
EVENTS: dict[str, str] = {
    "order_lots": "lots",
    "fill_lots": "lots",
    "reference_price": "price",
    "fill_spread": "price",
    "fill_slippage": "price",
    "fill_fee": "money",
    "reason": "index",
}
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
    """Everything that a run's lane step is made of."""

    sizing: LanePart
    execution: LanePart
    rewards: tuple[LanePart, ...] = ()
    masks: tuple[LanePart, ...] = ()
    features: tuple[LanePart, ...] = ()  # portfolio features, in the order of their columns
    strategy: LanePart | None = None
    flat_by_close: bool = False
    resize: str = "on_change"

    def all(self) -> tuple[LanePart, ...]:
        strategy = (self.strategy,) if self.strategy is not None else ()
        return (self.sizing, self.execution, *self.rewards, *self.masks, *self.features, *strategy)


class LaneCode:
    """Writes the text of the lane kernels and lays out the buffers of settings and state."""

    def __init__(self, parts: LaneParts) -> None:
        self.parts = parts
        self.symbols: dict[str, Any] = {
            "prange": __import__("numba").prange,
            "float32": np.float32,
            "mul_div": market.mul_div,
            "order_fee": market.order_fee,
            "margin_need": market.margin_need,
            "increases": market.increases,
            "average_entry": market.average_entry,
        }
        self.int_columns: dict[tuple[str, str], int] = {("market", name): column for column, name in enumerate(MARKET_SETTINGS)}
        self.float_columns: dict[tuple[str, str], int] = {}
        self.state_columns: dict[tuple[str, str], tuple[str, int]] = {}
        self._names: dict[str, dict[str, str]] = {}
        self._prefixes: dict[str, str] = {}
        for index, part in enumerate(parts.all()):
            self._lay_out(index, part)
        if parts.sizing.component.state or any(part.component.state for part in (*parts.masks, parts.execution)):  # type: ignore[attr-defined]
            raise PluginError("sizings, action masks and executions are called more than once a bar and may not have state")

    # -- layout of settings and state ------------------------------------------------------------------------------------------

    def _lay_out(self, index: int, part: LanePart) -> None:
        # The number tells labels apart that differ in case or in a letter that is none here.
        prefix = self._prefixes[part.label] = f"{re.sub(r'[^0-9a-z_]', '_', part.label.lower())}_{index}"
        names: dict[str, str] = {}
        for info in settings_of(type(part.component)):
            value = getattr(part.component, info.name)
            if info.static:
                names[info.name] = repr(info.choices.index(value) if info.choices else value)
                continue
            columns = self.float_columns if self.setting_is_float(info) else self.int_columns
            columns.setdefault((part.label, info.name), len(columns))
            names[info.name] = f"{prefix}_{info.name}"
        for slot, kind in getattr(part.component, "state", {}).items():
            if kind not in ("float64", "int64"):
                raise PluginError(f"{part.where}: state slot '{slot}': expected 'float64' or 'int64', found {kind!r}")
            count = sum(1 for where, _ in self.state_columns.values() if where == kind)
            self.state_columns[part.label, slot] = (kind, count)
            names[slot] = f"{prefix}_state_{slot}"
        self._names[part.label] = names

    @staticmethod
    def setting_is_float(info: SettingInfo) -> bool:
        """Whether a setting lies in the float buffer; numbers, truth values and choices only."""
        if info.choices or info.type in (int, bool):
            return False
        if info.type is float:
            return True
        raise PluginError(f"setting '{info.name}': a compiled component takes int, float, bool or a choice, found {info.type_text}")

    def setting_rows(self, market_values: dict[str, int], replace: dict[str, Component] | None = None) -> tuple[list[int], list[float]]:
        """The values of one group of lanes, in the order of setting_int_GX and setting_float_GX. `replace` swaps components by label."""
        components = {part.label: part.component for part in self.parts.all()} | (replace or {})
        ints = [0] * len(self.int_columns)
        floats = [0.0] * len(self.float_columns)
        for (label, name), column in self.int_columns.items():
            if label == "market":
                ints[column] = market_values[name]
                continue
            value = getattr(components[label], name)
            info = next(item for item in settings_of(type(components[label])) if item.name == name)
            ints[column] = info.choices.index(value) if info.choices else int(value)
        for (label, name), column in self.float_columns.items():
            floats[column] = float(getattr(components[label], name))
        return ints, floats

    @property
    def state_sizes(self) -> tuple[int, int]:
        """Float and int state slots a lane."""
        kinds = [kind for kind, _ in self.state_columns.values()]
        return kinds.count("float64"), kinds.count("int64")

    # -- blocks of text --------------------------------------------------------------------------------------------------------

    def _call(self, part: LanePart, function: str, context: dict[str, str]) -> str:
        symbol = f"{self._prefixes[part.label]}_{part.component.kind}_{function}"
        self.symbols[symbol] = part.function(function)
        available = {name: name for name in (*_ANY_TIME, *_AT_CALL.get(function, ()))} | self._names[part.label] | context
        return f"{symbol}({call_text(part.function(function), available, f'{part.where}.{function}')})"

    def _stateful_call(self, part: LanePart, function: str, context: dict[str, str], result: str) -> str:
        slots = [self._names[part.label][slot] for slot in getattr(part.component, "state", {})]
        call = self._call(part, function, context)
        return f"{', '.join([result, *slots])} = {call}"

    def _symbol_lines(self) -> list[str]:
        lines = [f"{name}_T = {name}_ST[s]" for name in TAPE_ARRAYS]
        lines += [f"{name} = instrument_SJ[s, {column}]" for column, name in enumerate((*market.INSTRUMENT_FIELDS, "size_limit"))]
        lines += [f"{name} = cost_GSJ[g, s, {column}]" for column, name in enumerate(market.COST_FIELDS)]
        lines.append("price_quantum = quantum_S[s]")
        for (label, name), column in self.int_columns.items():
            target = name if label == "market" else self._names[label][name]
            lines.append(f"{target} = setting_int_GX[g, {column}]")
        for (label, name), column in self.float_columns.items():
            lines.append(f"{self._names[label][name]} = setting_float_GX[g, {column}]")
        return lines

    def _load_lines(self) -> list[str]:
        lines = [f"{name} = {name}_LN[l, n]" for name in ACCOUNT]
        return lines + self._state_lines("{name} = state_{kind}_LNX[l, n, {column}]")

    def _store_lines(self) -> list[str]:
        lines = [f"{name}_LN[l, n] = {name}" for name in ACCOUNT]
        return lines + self._state_lines("state_{kind}_LNX[l, n, {column}] = {name}")

    def _state_lines(self, form: str) -> list[str]:
        lines = []
        for (label, slot), (kind, column) in self.state_columns.items():
            name, short, zero = self._names[label][slot], kind.removesuffix("64"), "0.0" if kind == "float64" else "0"
            lines.append(form.format(name=name, kind=short, column=column, zero=zero))
        return lines

    def _new_account_lines(self) -> list[str]:
        zeros = {name: "0.0" if role in ("state_float", "exposure") else "0" for name, role in ACCOUNT.items()}
        zeros |= {"cash": "start_equity", "equity": "start_equity", "peak_equity": "start_equity"}
        return [f"{name} = {value}" for name, value in zeros.items()] + self._state_lines("{name} = {zero}")

    def _target_lines(self, context: dict[str, str]) -> list[str]:
        """From `exposure` to `target_lots`: the same for orders and for masks, so that a mask judges the order that would come."""
        # Only whole numbers have |: a sizing that gives another thing does not compile.
        sized = f"target_lots = {self._call(self.parts.sizing, 'target', context)} | 0"
        if self.parts.resize == "always":
            return [sized]
        return ["target_lots = position", "if exposure != held_exposure:", f"    {sized}"]

    def _order_lines(self) -> list[str]:
        """From `exposure` at the close of t to `order_lots` and `reason`."""
        # The account then holds no exposure: what the policy wants in the next session is a new order.
        flat = [f"if {_WORKS_IN_THE_LAST_BAR}:", "    exposure = 0.0", "    target_lots = 0"] if self.parts.flat_by_close else []
        return [
            "price = close_T[t]",
            "target_lots = position",
            f"reason = {market.FILLED}",
            "if exposure - exposure != 0.0:",
            f"    reason = {market.BAD_EXPOSURE}",
            "else:",
            *_indent([*self._target_lines({}), *flat]),
            "    if target_lots > size_limit or target_lots < -size_limit:",
            f"        reason = {market.BAD_SIZE}",
            "        target_lots = position",
            "order_lots = target_lots - position",
        ]

    def _fill_lines(self) -> list[str]:
        """The order in the working bar u, the booking, and the mark at its close."""
        fill = self._call(self.parts.execution, "fill", {"t": "u"})
        return [
            "previous_equity = equity",
            "previous_position = position",
            "mark = close_T[t]",
            "fill_lots = 0",
            "reference_price = mark",
            "fill_spread = 0",
            "fill_slippage = 0",
            "fill_fee = 0",
            "change = 0",
            "if order_lots != 0:",
            f"    fill_lots, reference_price, fill_spread, fill_slippage, reason = {fill}",
            "    fill_lots | reference_price | fill_spread | fill_slippage | reason",  # whole numbers, or it does not compile
            "    if fill_lots != 0:",
            "        worse = fill_spread + fill_slippage",
            "        fill_price = reference_price + worse if fill_lots > 0 else reference_price - worse",
            "        fill_fee = order_fee(fill_lots, fill_price, value_numerator, value_denominator, fee_per_lot, fee_rate, fee_minimum)",
            "        after = position + fill_lots",
            "        if increases(position, after):",
            "            need = margin_need(after, reference_price, value_numerator, value_denominator, margin_per_lot, margin_rate)",
            "            if need + fill_fee > cash + mul_div(position * reference_price, value_numerator, value_denominator):",
            f"                reason = {market.UNAFFORDABLE}",
            "                fill_lots = 0",
            "                fill_fee = 0",
            "    if fill_lots != 0:",
            "        size = fill_lots if fill_lots > 0 else -fill_lots",
            "        cash = cash - mul_div(fill_lots * fill_price, value_numerator, value_denominator) - fill_fee",
            "        spread_part = mul_div(size * fill_spread, value_numerator, value_denominator)",
            "        slippage_part = mul_div(size * fill_slippage, value_numerator, value_denominator)",
            "        change = mul_div(position * (reference_price - mark), value_numerator, value_denominator)",
            "        gross = gross + change",
            "        change = change - spread_part - slippage_part - fill_fee",
            "        spread_cost = spread_cost + spread_part",
            "        slippage_cost = slippage_cost + slippage_part",
            "        fee_cost = fee_cost + fill_fee",
            "        entry_price = average_entry(position, entry_price, fill_lots, fill_price)",
            "        if position == 0 or (position > 0) != (position + fill_lots > 0):",
            "            bars_in_position = 0",
            "        position = position + fill_lots",
            "        fills = fills + 1",
            "        mark = reference_price",
            f"if reason == {market.FILLED}:",
            "    held_exposure = exposure",
            "else:",
            "    refusals = refusals + 1",
            "part = mul_div(position * (close_T[u] - mark), value_numerator, value_denominator)",
            "gross = gross + part",
            "change = change + part",
            "equity = cash + mul_div(position * close_T[u], value_numerator, value_denominator)",
            "rounding = rounding + (equity - previous_equity - change)",
            "if equity > peak_equity:",
            "    peak_equity = equity",
            "bars_in_position = bars_in_position + 1 if position != 0 else 0",
            "if equity <= capital_floor:",
            "    ruined = 1",
        ]

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
            lines.append(self._stateful_call(part, "lane", {"t": bar, "price": f"close_T[{bar}]"}, "column_value"))
            lines.append(f"{prefix}portfolio_LNP[l, n, {column}] = float32(column_value)")
        lines += [f"price = close_T[{bar}]", "for a in range(exposure_A.shape[0]):", "    exposure = exposure_A[a]"]
        lines += ["    order_type = order_type_A[a]", "    urgency = urgency_A[a]"]
        lines += _indent(self._target_lines({"t": bar}))
        lines.append("    legal = True")
        for part in self.parts.masks:
            lines.append(f"    legal = legal and {self._call(part, 'allowed', {'t': bar})} | False")
        return [*lines, f"    {prefix}allowed_LNA[l, n, a] = 1 if legal else 0"]

    # -- kernels ---------------------------------------------------------------------------------------------------------------

    def step_text(self, arguments: Sequence[str]) -> str:
        """All lanes by one bar: action -> order -> fill -> mark -> reward -> observation of the next bar."""
        body = [
            *_LANE_HEAD,
            "if ruined_LN[l, n] == 0 and bar_LN[l, n] < end_bar_LN[l, n]:",
            *_indent(self._whole_step_lines()),
        ]
        return _kernel(arguments, body)

    def _whole_step_lines(self) -> list[str]:
        return [
            *self._symbol_lines(),
            *self._load_lines(),
            "t = bar_LN[l, n] + 0",
            "u = t + 1",
            "exposure = exposure_A[action_LN[l, n]]",
            "order_type = order_type_A[action_LN[l, n]]",
            "urgency = urgency_A[action_LN[l, n]]",
            *self._order_lines(),
            *self._fill_lines(),
            *self._reward_lines(),
            *(f"{name}_LN[l, n] = {name}" for name in EVENTS),
            "reward_LN[l, n] = float32(reward)",
            "next_bar_LN[l, n] = u",
            "terminated_LN[l, n] = ruined",
            "truncated_LN[l, n] = 1 if ruined == 0 and u >= end_bar_LN[l, n] else 0",
            *self._observe_lines("u", "next_"),
            *self._store_lines(),
        ]

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
        return [
            "s = symbol_LN[l, n]",
            "g = group_LN[l, n]",
            *self._symbol_lines(),
            *self._new_account_lines(),
            "t = bar_LN[l, n] + 0",
            *self._observe_lines("t", ""),
            *self._store_lines(),
        ]

    def order_text(self, arguments: Sequence[str]) -> str:
        """The order that the action would give, without a fill: for the last bar of a window."""
        body = [
            *_LANE_HEAD,
            *self._symbol_lines(),
            *self._load_lines(),
            "t = bar_LN[l, n] + 0",
            "exposure = exposure_A[action_LN[l, n]]",
            *self._order_lines(),
            "order_lots_LN[l, n] = order_lots",
        ]
        return _kernel(arguments, body)

    def run_text(self, arguments: Sequence[str]) -> str:
        """A rule strategy over the window of each lane, bar by bar, with the account in registers; every bar goes into the record."""
        assert self.parts.strategy is not None
        decide = self._stateful_call(self.parts.strategy, "decide", {"price": "close_T[t]"}, "exposure")
        record = [f"record_{name}_LNT[l, n, t - first] = {name}" for name in ("equity", "position", *EVENTS)]
        body = [
            *_LANE_HEAD,
            *self._symbol_lines(),
            *self._new_account_lines(),
            "first = bar_LN[l, n] + 0",
            "last = end_bar_LN[l, n] + 0",
            "order_type = 0",
            "urgency = 1",
            "for t in range(first, last):",
            "    u = t + 1",
            "    if ruined == 0:",
            *_indent([decide, *self._order_lines(), *self._fill_lines(), *record, "bar_LN[l, n] = u"], 2),
            "t = bar_LN[l, n] + 0",
            "if ruined == 0 and t == last:",
            *_indent([decide, *self._order_lines(), "order_lots_LN[l, n] = order_lots"]),
            *self._store_lines(),
        ]
        return _kernel(arguments, body)


# A session of one bar begins and ends in the working bar.
_WORKS_IN_THE_LAST_BAR = (
    "session_left_T[t] == 1 or (t + 1 < session_T.shape[0] and session_T[t + 1] > session_T[t] and session_left_T[t + 1] == 0)"
)
_LANE_HEAD = ["l = i // lanes", "n = i - l * lanes", "lane = n", "s = symbol_LN[l, n]", "g = group_LN[l, n]"]
_ANY_TIME = (
    *(f"{array}_T" for array in TAPE_ARRAYS),
    *market.INSTRUMENT_FIELDS,
    *market.COST_FIELDS,
    *("price_quantum", "t", "price", "lane", "cash", "equity", "start_equity", "peak_equity", "position", "entry_price"),
    *("bars_in_position", "held_exposure", "gross", "spread_cost", "slippage_cost", "fee_cost", "fills", "refusals"),
)
_DECISION = ("exposure", "order_type", "urgency")
# What exists beside that at the moment at which a function is called.
_AT_CALL: dict[str, tuple[str, ...]] = {
    "target": _DECISION,
    "allowed": (*_DECISION, "target_lots"),
    "fill": (*_DECISION, "target_lots", "order_lots"),
    "reward": (*_DECISION, "target_lots", "order_lots", "previous_equity", "previous_position", "fill_lots", "fill_fee"),
}


def _episode_symbols() -> dict[str, Any]:
    from bellmark.control import INT
    from bellmark.environment import draw_episode

    return {"draw_episode": draw_episode, "SEED": INT["seed"]}


def _indent(lines: Sequence[str], depth: int = 1) -> list[str]:
    return ["    " * depth + line for line in lines]


def _kernel(arguments: Sequence[str], body: Sequence[str]) -> str:
    head = [f"def entry(learners, lanes, {', '.join(arguments)}):", "    for i in prange(learners * lanes):"]
    return "\n".join([*head, *_indent(body, 2), ""])
