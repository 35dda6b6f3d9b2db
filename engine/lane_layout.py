"""What the lane step is made of: its components, the buffers of their settings and state, and calls wired by parameter name."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import prange

from bellmark import backend, ledger, market
from bellmark.codegen import Inlined, call_text
from bellmark.component import Component, SettingInfo, settings_of
from bellmark.errors import PluginError, UsageError
from bellmark.lane_fields import ACCOUNT, MARKET_SETTINGS, PENDING, POSITION, TAPE_ARRAYS

_CODES = (
    *("FILLED", "MAKER", "UNAFFORDABLE", "NO_VOLUME", "BAD_PRICE", "LAST_BAR", "BAD_EXPOSURE", "BAD_SIZE", "HALTED", "LIQUIDATED"),
    *("CANCELLED", "BAD_FILL", "ORDER", "LIQUIDATION", "STOP", "TRAILING", "TARGET", "ROLL_OUT", "ROLL_IN", "CLOSE_AT_END"),
    *("MARKET", "LIMIT", "WORKING", "STOPPED", "UNSETTLED"),
)
_AT_START = ("cash", "equity", "peak_equity")
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
_EACH_BAR = ("decide", "protect")  # called on every bar of a run, most of which do nothing else


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


class LaneLayout:
    """Lays out the buffers of settings and state, and writes loads, stores and calls.

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
        self.symbols: dict[str, Any] = {"prange": prange, "float32": np.float32, "append": ledger.append}
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
