"""The market environment: lanes of accounts on a tape, as stages over registry buffers.

Order of a step: observe (observation_LNO) -> [network, action selection write action_LN] -> step (orders, fills, marks, reward, the next
observation's parts) -> [replay] -> advance (lanes that ended begin anew). The backtester uses the same kernels on lanes that it places.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellmark import backend, control, lane_fields, ledger, market
from bellmark.actions import ActionSpace
from bellmark.buffers import BufferRegistry
from bellmark.codegen import build
from bellmark.component import Component, plugin_function, settings_of
from bellmark.errors import DataError, PluginError, UsageError
from bellmark.features import MarketFeatures
from bellmark.instrument import Instrument
from bellmark.lane import LaneCode
from bellmark.lane_layout import LanePart, LaneParts
from bellmark.rng import STREAM_EPISODE, below_64, words
from bellmark.settings import MarketSettings
from bellmark.stages import Stage
from bellmark.tape import EXTRA, Tape, read_only

_TAPE_ROLES = {
    "ts": "stamp", "open": "price", "high": "price", "low": "price", "close": "price", "volume": "volume", "session": "index",
    "session_bar": "index", "session_left": "index", "session_fraction": "feature", "gap": "flag",
}  # fmt: skip
_EXTRA_ROLES = {"int64": "price", "uint8": "flag"}
_PARALLEL_FROM = 512  # lanes from which a step is worth its threads; bits are the same either way
_PARALLEL_RUNS_FROM = 8  # a run of a lane is a whole window
_LARGEST_MONEY = 2**62


@dataclass(frozen=True)
class Windows:
    """Bars that lanes may use: [start, end) of each symbol, a row a learner. The last bar of a window is only marked."""

    start_LS: NDArray[np.int32]
    end_LS: NDArray[np.int32]


@dataclass(frozen=True)
class Variant:
    """What one group of lanes does otherwise: components by label (a strategy with other settings), and other [market] numbers."""

    components: dict[str, Component] = field(default_factory=dict)
    settings: MarketSettings | None = None


def rules_of(settings: MarketSettings, space: ActionSpace, tape: Tape) -> frozenset[str]:
    """The rules of the lane step (lane_text.RULES) that settings, actions and data ask for; all others are compiled out."""
    on = {
        "always": settings.resize == "always",
        "orders": any(name != "market" for name in space.order_types),
        "participation": bool(settings.participation),
        "protect": any((settings.stop_loss, settings.stop_loss_ticks, settings.take_profit, settings.take_profit_ticks)),
        "trail": bool(settings.trailing_stop or settings.trailing_stop_ticks),
        "maintenance": bool(settings.maintenance_margin_rate or settings.maintenance_margin_per_contract),
        "halts": "halted" in tape.extra_ST,
        "funding": "funding_rate" in tape.extra_ST,
        "roll": "rolls" in tape.extra_ST,
        "flat_by_close": settings.flat_by_close,
        "close_at_end": settings.close_at_end,
        "latency": settings.latency_bars > 1,
        "same_close": settings.same_close,
        "fill_sizing": settings.size_at == "fill",
        "cut": settings.unaffordable == "cut",
        "shared": settings.account == "shared",
    }
    return frozenset(name for name, wanted in on.items() if wanted)


def _with_protection(rules: frozenset[str], settings: MarketSettings) -> frozenset[str]:
    """Stops bring their options with them; a trailing stop is one of them."""
    if "trail" in rules:
        rules |= {"protect"}
    if "protect" not in rules:
        return rules
    options = {
        "decision_anchor": settings.stop_anchor == "decision",
        "close_anchor": settings.stop_anchor == "close",
        "next_bar": settings.stop_from == "next_bar" or settings.stop_anchor == "close",  # the close of the bar comes after the bar
        "target_open": settings.target_gap == "open",
    }
    return rules | {name for name, wanted in options.items() if wanted}


class MarketEnvironment:
    """Lanes of one run on one tape.

    tape, features: the compiled data. parts: the components of the lane step. space: the actions. settings: the [market] section.
    learners (L), lanes (N) of each; episode_bars: bars of a training episode, 0 in backtests. Groups (G) of lanes share settings: one a
    learner, or one for each of `variants`. extra_rules: "ledger", "record", "summary" as the kernels are to write them.
    """

    def __init__(
        self,
        tape: Tape,
        features: MarketFeatures,
        parts: LaneParts,
        space: ActionSpace,
        settings: MarketSettings,
        learners: int,
        lanes: int,
        episode_bars: int = 0,
        *,
        variants: Sequence[Variant] = (),
        extra_rules: Sequence[str] = (),
    ) -> None:
        self.tape, self.features, self.parts, self.space, self.settings = tape, features, parts, space, settings
        self.L, self.N, self.episode_bars = learners, lanes, episode_bars
        self.variants = tuple(variants) or (Variant(),) * learners
        self.G = len(self.variants)
        rules = frozenset().union(*(rules_of(one.settings or settings, space, tape) for one in self.variants)) | parts.rules
        rules = _with_protection(rules, settings)
        if episode_bars:
            rules -= {"close_at_end"}  # the end of a training episode is a cut in time, not a trade
        if not tape.extra_ST:
            rules -= {"halts", "funding", "roll"}
        _check_rules(rules, space, parts, tape, settings)
        symbols = len(tape.symbols) if "shared" in rules else 1
        plain = replace(parts, rules=frozenset())
        self.code = LaneCode(plain, rules | set(extra_rules), settings.latency_bars, tuple(tape.extra_ST), symbols, space.rule_order)
        self.F, self.P, self.A = len(features.labels), len(parts.features), space.A
        self.O = self.F + self.P
        self._series, self._series_rows = self._compute_series()
        self._words_of: dict[str, frozenset[str]] = {}

    @property
    def accounts_symbols(self) -> int:
        """Symbols in one account: 1, or all of the data's in a shared one."""
        return self.code.accounted

    def _compute_series(self) -> tuple[dict[str, NDArray[Any]], list[dict[tuple[str, str], int]]]:
        """Arrays of each series by buffer, and for each group which row of it is its own. Computed once for each distinct setting."""
        rows: list[dict[tuple[str, str], int]] = [{} for _ in self.variants]
        found: dict[str, list[NDArray[Any]]] = {}
        for part in self.parts.all():
            names = [name for label, name in self.code.series if label == part.label]
            seen: dict[tuple[Any, ...], int] = {}
            for group, variant in enumerate(self.variants if names else ()):
                component: Any = variant.components.get(part.label, part.component)
                read = component.series_settings
                known = [info.name for info in settings_of(type(component))]
                key = tuple(getattr(component, name) for name in (known if read is None else read))
                if key not in seen:
                    seen[key] = len(seen)
                    with plugin_function(component, "compute_series"):
                        computed = component.compute_series(read_only(self.tape))
                    for name in names:
                        array = _checked_series(part, computed, name, self.code.series[part.label, name], self.tape.close_ST.shape)
                        found.setdefault(self.code.series_buffer(part.label, name), []).append(array)
                rows[group] |= {(part.label, name): seen[key] for name in names}
        return {name: np.stack(arrays) for name, arrays in found.items()}, rows

    # -- buffers ---------------------------------------------------------------------------------------------------------------

    def declare(self, registry: BufferRegistry, *, points: int = 0, ledger_rows: int = 0, runs: bool = False) -> None:
        """Declares the tape, the settings and the lanes, as far as the kernels read them.

        points: of the curve that a run records. ledger_rows: of each lane. runs: for `run_stages` alone, without observations.
        """
        symbols, bars = self.tape.close_ST.shape
        groups, (floats, ints) = self.G, self.code.state_sizes
        read = self._words("run") if runs else self._words("step", "advance", "begin", "finish")
        for name, role in self._tape_buffers(read).items():
            registry.declare(name, role, (symbols, bars))
        for (label, name), kind in self.code.series.items():
            buffer = self.code.series_buffer(label, name)
            registry.declare(buffer, "series_float" if kind == "float64" else "state_int", self._series[buffer].shape)
        if not runs:
            registry.declare("feature_STF", "feature", (symbols, bars, self.F))
            registry.declare("mean_LF", "normalisation", (self.L, self.F))
            registry.declare("scale_LF", "normalisation", (self.L, self.F))
            registry.declare("window_start_LS", "index", (self.L, symbols))
            registry.declare("window_end_LS", "index", (self.L, symbols))
            control.declare(registry, self.L)
        registry.declare("quantum_S", "setting_float", (symbols,))
        registry.declare("instrument_SJ", "setting_int", (symbols, len(market.INSTRUMENT_FIELDS)))
        registry.declare("cost_GSJ", "setting_int", (groups, symbols, len(market.COST_FIELDS) + len(market.LIMITS)))
        registry.declare("setting_int_GX", "setting_int", (groups, len(self.code.int_columns)))
        registry.declare("setting_float_GX", "setting_float", (groups, len(self.code.float_columns)))
        registry.declare("exposure_A", "exposure", (self.A,))
        registry.declare("order_type_A", "index", (self.A,))
        registry.declare("urgency_A", "index", (self.A,))
        lanes = (self.L, self.N)
        for name, role in {**lane_fields.ACCOUNT, **lane_fields.EVENTS, **_LANES}.items():
            registry.declare(f"{name}_LN", role, lanes)
        suffix, shape = ("LNS", (*lanes, symbols)) if "shared" in self.code.rules else ("LN", lanes)
        for name, role in self.code.position_fields.items():
            registry.declare(f"{name}_{suffix}", role, shape)
        for prefix in () if runs else ("", "next_"):
            registry.declare(f"{prefix}portfolio_LNP", "portfolio", (*lanes, self.P))
            registry.declare(f"{prefix}allowed_LNA", "flag", (*lanes, self.A))
            registry.declare(f"{prefix}observation_LNO", "observation", (*lanes, self.O))
        registry.declare("state_float_LNSX", "state_float", (*lanes, self.accounts_symbols, floats))
        registry.declare("state_int_LNSX", "state_int", (*lanes, self.accounts_symbols, ints))
        if "record" in self.code.rules:
            registry.declare("record_equity_LNT", "money", (*lanes, points))
            for name, role in lane_fields.RECORD.items():
                registry.declare(f"record_{name}_LNST", role, (*lanes, self.accounts_symbols, points))
        if "ledger" in self.code.rules:
            registry.declare("ledger_LNEJ", "ledger", (*lanes, ledger_rows, len(ledger.COLUMNS)))
            registry.declare("ledger_count_LN", "counter", lanes)
        if "summary" in self.code.rules:
            registry.declare("summary_float_LNX", "statistic", (*lanes, len(lane_fields.SUMMARY_FLOAT)))
            registry.declare("summary_int_LNX", "counter", (*lanes, len(lane_fields.SUMMARY_INT)))
        if "shared" in self.code.rules:
            registry.declare("clock_KS", "index", (points, symbols))
            registry.declare("last_S", "index", (symbols,))

    def _tape_buffers(self, read: set[str]) -> dict[str, str]:
        """The buffers of the tape that a text reads, with their roles."""
        roles = {f"{name}_ST": role for name, role in _TAPE_ROLES.items()}
        roles |= {f"{name}_ST": _EXTRA_ROLES[np.dtype(EXTRA[name]).name] for name in self.tape.extra_ST}
        return {name: role for name, role in roles.items() if name in read or name in _ALWAYS}

    def _words(self, *kernels: str) -> set[str]:
        for kernel in kernels:
            if kernel not in self._words_of:
                self._words_of[kernel] = frozenset(re.findall(r"\w+", self._text(kernel, ())))
        return set().union(*(self._words_of[kernel] for kernel in kernels))

    def _text(self, kernel: str, arguments: Sequence[str]) -> str:
        if kernel == "run" and "shared" in self.code.rules:
            kernel = "run_shared"
        if (kernel.startswith("run") and self.parts.strategy is None) or (not kernel.startswith("run") and "shared" in self.code.rules):
            return ""
        text: str = getattr(self.code, f"{kernel}_text")(arguments)
        return text

    def fill(self, registry: BufferRegistry, normalisation: Any = None) -> None:
        """Writes everything that does not change while lanes run."""
        for name in registry.names():
            if name.endswith("_ST"):
                column = name.removesuffix("_ST")
                registry[name][:] = self.tape.extra_ST[column] if column in self.tape.extra_ST else getattr(self.tape, name)
        for name, array in self._series.items():
            registry[name][:] = array
        if normalisation is not None and "feature_STF" in registry:
            registry["feature_STF"][:] = self.features.feature_STF
            registry["mean_LF"][:] = normalisation.mean_LF
            registry["scale_LF"][:] = normalisation.scale_LF
        registry["exposure_A"][:] = self.space.exposure_A
        registry["order_type_A"][:] = self.space.order_type_A
        registry["urgency_A"][:] = self.space.urgency_A
        by_learner = np.arange(self.L, dtype=np.int32)[:, None]
        registry["group_LN"][:] = by_learner if self.G == self.L else np.arange(self.N, dtype=np.int32) % self.G
        for s, instrument in enumerate(self.tape.instruments):
            registry["quantum_S"][s] = float(instrument.quantum)
            orders = any(name != "market" for name in self.space.order_types)
            largest = self._largest_price(s)
            rows: dict[int, list[int]] = {}  # by settings: the configurations of a sweep mostly share theirs
            for group, variant in enumerate(self.variants):
                settings = variant.settings or self.settings
                if id(settings) not in rows:
                    costs = cost_row(settings, instrument, orders)
                    rows[id(settings)] = [*costs, size_limit(instrument, largest, costs), _worst_price(largest, costs)]
                registry["cost_GSJ"][group, s] = rows[id(settings)]
            registry["instrument_SJ"][s] = instrument_row(instrument)
        for group, variant in enumerate(self.variants):
            values = _market_values(variant.settings or self.settings)
            ints, floats = self.code.setting_rows(values, variant.components, self._series_rows[group])
            registry["setting_int_GX"][group] = ints
            registry["setting_float_GX"][group] = floats
        if "ledger_count_LN" in registry:
            registry["ledger_count_LN"][:] = 0

    def _largest_price(self, s: int) -> int:
        prices = [self.tape.high_ST[s], self.tape.low_ST[s]]
        prices += [array[s] for name, array in self.tape.extra_ST.items() if name not in ("halted", "rolls", "funding_rate")]
        return max(int(abs(array).max(initial=0)) for array in prices)

    def set_windows(self, registry: BufferRegistry, windows: Windows) -> None:
        """The bars that training episodes are drawn from; bars before every feature is known are left out."""
        start = np.maximum(windows.start_LS, self.features.start_S[None, :]).astype(np.int32)
        if np.any((windows.end_LS - start).max(axis=1) < 2):
            raise DataError("split: a learner's training window holds fewer than 2 bars at which every feature is known")
        registry["window_start_LS"][:] = start
        registry["window_end_LS"][:] = windows.end_LS

    @property
    def account_buffers(self) -> tuple[str, ...]:
        """The buffers of the accounts and of the state of components, a value a lane."""
        return (*self._fields, *_STATE)

    @property
    def _fields(self) -> tuple[str, ...]:
        suffix = "LNS" if "shared" in self.code.rules else "LN"
        return (*(f"{name}_LN" for name in lane_fields.ACCOUNT), *(f"{name}_{suffix}" for name in self.code.position_fields))

    # -- stages ----------------------------------------------------------------------------------------------------------------

    @property
    def given(self) -> tuple[str, ...]:
        """Buffers that are filled before the first step."""
        constant = list(self._tape_buffers(self._words("step", "advance", "begin", "finish", "run")))
        constant += [self.code.series_buffer(label, name) for label, name in self.code.series]
        constant += ["feature_STF", "mean_LF", "scale_LF", "quantum_S", "instrument_SJ", "cost_GSJ", "setting_int_GX", "setting_float_GX"]
        constant += ["exposure_A", "order_type_A", "urgency_A", "window_start_LS", "window_end_LS", "control_int_LC", "clock_KS", "last_S"]
        lanes = [f"{name}_LN" for name in ("symbol", "bar", "end_bar", "episode", "group", "ruined_lanes")]
        written = ["portfolio_LNP", "allowed_LNA", "state_float_LNSX", "state_int_LNSX", "ledger_LNEJ", "ledger_count_LN"]
        return (*constant, *lanes, *self._fields, *written)

    def observe_stages(self) -> list[Stage]:
        """observation_LNO from the tape's features and the portfolio."""
        return [self._gather("observe", "bar_LN", "portfolio_LNP", "observation_LNO")]

    def observe_next_stages(self) -> list[Stage]:
        """next_observation_LNO, for a replay that stores observations."""
        return [self._gather("observe_next", "next_bar_LN", "next_portfolio_LNP", "next_observation_LNO")]

    def _gather(self, name: str, bar: str, portfolio: str, observation: str) -> Stage:
        reads = ("feature_STF", "mean_LF", "scale_LF", "symbol_LN", bar, portfolio)
        return Stage(name, gather_observation, (*reads, observation), reads, (observation,))

    def step_stages(self) -> list[Stage]:
        """Orders, fills, marks, rewards and the next portfolio and legal actions."""
        events = tuple(f"{name}_LN" for name in lane_fields.EVENTS)
        return [self._stage("environment_step", "step", (*self._fields, *_STATE, *_LEDGER, *events, *_STEP_WRITES))]

    def advance_stages(self) -> list[Stage]:
        """Takes over the next bar, or begins a new episode where the last one ended."""
        return [self._stage("environment_advance", "advance", (*self._fields, *_STATE, *_OBSERVED, *_PLACE), "episode")]

    def begin_stages(self) -> list[Stage]:
        """New accounts where the host has put the lanes."""
        return [self._stage("environment_begin", "begin", (*self._fields, *_STATE, *_OBSERVED))]

    def finish_stages(self) -> list[Stage]:
        """The decision at the last bar of the window: its order is listed as unfilled, or fills where orders fill at their own close."""
        events = tuple(f"{name}_LN" for name in lane_fields.EVENTS if name not in ("fill_lots", "fill_fee"))
        return [self._stage("environment_finish", "finish", (*self._fields, *_STATE, *_LEDGER, *events))]

    def run_stages(self) -> list[Stage]:
        """A rule strategy over the window of each lane."""
        records = ("record_equity_LNT", *(f"record_{name}_LNST" for name in lane_fields.RECORD), "summary_float_LNX", "summary_int_LNX")
        return [self._stage("strategy_run", "run", (*self._fields, *_STATE, *_LEDGER, "bar_LN", *records))]

    def _stage(self, name: str, kernel: str, may_write: Sequence[str], extra: str = "") -> Stage:
        """A kernel with the buffers that its text names: those of `may_write` are written, all others read."""
        numbers = ("episode_bars",) if extra == "episode" else ()
        words = self._words(kernel)
        # A run without portfolio features names no next_portfolio_LNP; what comes after the step still asks for it.
        named = words | (set(_STEP_WRITES) if kernel == "step" else set())
        buffers = tuple(buffer for buffer in dict.fromkeys((*self.given, *_LANE_BUFFERS, *may_write)) if buffer in named)
        text = self._text(kernel, (*buffers, *numbers))
        threads_from = _PARALLEL_RUNS_FROM if kernel == "run" else _PARALLEL_FROM
        entry = build(name, text, self.code.symbols, parallel=threads_from <= self.L * self.N)
        arguments = (self.L, self.N, *buffers, *((self.episode_bars,) if numbers else ()))
        writes = tuple(buffer for buffer in buffers if buffer in may_write)
        reads = tuple(buffer for buffer in buffers if buffer not in may_write or (kernel != "run" and buffer in self._in_place))
        plugins = ", ".join(sorted({part.plugin for part in self.parts.all()}))
        return Stage(name, entry, arguments, reads, writes, plugins)

    @property
    def _in_place(self) -> tuple[str, ...]:
        return (*self._fields, *_STATE, *_OBSERVED, *_LEDGER, *_PLACE)


_LANES = {
    "symbol": "index", "bar": "index", "end_bar": "index", "next_bar": "index", "action": "index", "propensity": "propensity",
    "reward": "reward", "terminated": "flag", "truncated": "flag", "episode": "counter", "group": "index", "ruined_lanes": "counter",
}  # fmt: skip
_LANE_BUFFERS = (
    "action_LN", "reward_LN", "next_bar_LN", "terminated_LN", "truncated_LN", "next_portfolio_LNP", "next_allowed_LNA",
)  # fmt: skip
_ALWAYS = ("close_ST",)
_STATE = ("state_float_LNSX", "state_int_LNSX")
_LEDGER = ("ledger_LNEJ", "ledger_count_LN")
_OBSERVED = ("portfolio_LNP", "allowed_LNA")
_PLACE = ("symbol_LN", "bar_LN", "end_bar_LN", "episode_LN", "ruined_lanes_LN")
_STEP_WRITES = ("reward_LN", "next_bar_LN", "terminated_LN", "truncated_LN", "next_portfolio_LNP", "next_allowed_LNA")


@backend.compile
def gather_observation(feature_STF, mean_LF, scale_LF, symbol_LN, bar_LN, portfolio_LNP, observation_LNO):
    """observation = ((feature - mean) * scale, portfolio) for every lane."""
    market_columns = mean_LF.shape[1]
    for learner in range(symbol_LN.shape[0]):
        for n in range(symbol_LN.shape[1]):
            s, t = symbol_LN[learner, n], bar_LN[learner, n]
            for f in range(market_columns):
                observation_LNO[learner, n, f] = (feature_STF[s, t, f] - mean_LF[learner, f]) * scale_LF[learner, f]
            for p in range(portfolio_LNP.shape[2]):
                observation_LNO[learner, n, market_columns + p] = portfolio_LNP[learner, n, p]


def draw_episode(seed, lane_number, episode, window_start_S, window_end_S, episode_bars):
    """Symbol, first bar and last bar of an episode: uniform over all first bars that leave room for it, of all symbols together.

    A window shorter than an episode is one episode. Drawn from Philox (seed, EPISODE) at (lane, episode number).
    """
    total = 0
    for s in range(window_start_S.shape[0]):
        bars = window_end_S[s] - window_start_S[s]
        if bars >= 2:
            total += max(bars - episode_bars, 1)
    word_0, word_1, _, _ = words(seed, STREAM_EPISODE, lane_number, episode, 0)
    choice = np.int64(below_64(word_0, word_1, total))
    symbol, start = 0, 0
    for s in range(window_start_S.shape[0]):
        bars = window_end_S[s] - window_start_S[s]
        if bars >= 2:
            room = max(bars - episode_bars, 1)
            if choice < room:
                symbol, start = s, window_start_S[s] + choice
                break
            choice -= room
    end = min(start + episode_bars, window_end_S[symbol] - 1)
    return symbol, start, end


def instrument_row(instrument: Instrument) -> list[int]:
    """The fields market.INSTRUMENT_FIELDS of an instrument."""
    positive = 0 if instrument.allow_negative_prices else 1
    return [instrument.value_numerator, instrument.value_denominator, instrument.quanta_per_tick or 0, positive]


def size_limit(instrument: Instrument, largest_price: int, costs: Sequence[int]) -> int:
    """The most lots whose value, fees and margin, and the doubles that bookings form, stay within int64. `costs`: see `cost_row`."""
    cost = dict(zip(market.COST_FIELDS, costs, strict=True))
    worst = _worst_price(largest_price, costs)
    value = Fraction(worst * instrument.value_numerator, instrument.value_denominator)
    fee_rate = max(cost["fee_rate"], abs(cost["maker_fee_rate"]))
    taken = value * (market.RATE_ONE + fee_rate + cost["margin_rate"] + cost["maintenance_rate"]) / market.RATE_ONE
    fee_per_lot = max(cost["fee_per_lot"], abs(cost["maker_fee_per_lot"]))
    money = taken + fee_per_lot + cost["margin_per_lot"] + cost["maintenance_per_lot"]
    limit = int(_LARGEST_MONEY / (max(money, Fraction(worst)) * 4))
    if limit < 1:
        raise UsageError(
            f"instrument {instrument.symbol}: one lot at {largest_price} quanta with its fees and margin leaves the range of the accounts; "
            f"take a larger price_quantum than {instrument.price_quantum} or a smaller lot_size"
        )
    return limit


def _worst_price(largest_price: int, costs: Sequence[int]) -> int:
    """The largest price of the data with spread and slippage. What an execution model says beyond twice that is no fill (market.LIMITS)."""
    cost = dict(zip(market.COST_FIELDS, costs, strict=True))
    spread = max(cost["half_spread"], cost["roll_half_spread"])
    return max(largest_price, 1) + spread + cost["slippage"] + largest_price * cost["slippage_rate"] // market.RATE_ONE


def cost_row(settings: MarketSettings, instrument: Instrument, orders: bool = True) -> list[int]:
    """The fields market.COST_FIELDS of a symbol, exact through fractions. `orders`: whether limit and ioc orders may come."""
    units = Fraction(str(instrument.lot_size))

    def ticks(name: str, value: float, factor: Fraction = Fraction(1)) -> int:
        return _in_quanta(f"market.{name}", value, factor, instrument)

    def rate(value: float, one: int = 10_000) -> int:
        return round(_fraction(value) * market.RATE_ONE / one)

    def money(value: float, of: Fraction = Fraction(1)) -> int:
        return round(_fraction(value) * of * market.NANO)

    spread = settings.spread_ticks if settings.roll_spread_ticks is None else settings.roll_spread_ticks
    maker_fee = settings.fee_per_contract if settings.maker_fee_per_contract is None else settings.maker_fee_per_contract
    none = (0.0, 0.0, 0.0)
    resting = ("limit_offset", "ioc_cap")
    by_urgency = {name: getattr(settings, f"{name}_ticks") if orders else none for name in resting}
    values = {
        "half_spread": ticks("spread_ticks", settings.spread_ticks, Fraction(1, 2)),
        "slippage": ticks("slippage_ticks", settings.slippage_ticks),
        "slippage_rate": rate(settings.slippage_bps),
        "fee_per_lot": money(settings.fee_per_contract, units),
        "fee_rate": rate(settings.fee_bps),
        "fee_minimum": money(settings.fee_minimum),
        "margin_per_lot": money(settings.initial_margin_per_contract, units),
        "margin_rate": rate(settings.initial_margin_rate, 1),
        "maker_fee_per_lot": money(maker_fee, units),
        "maker_fee_rate": rate(settings.fee_bps if settings.maker_fee_bps is None else settings.maker_fee_bps),
        "maintenance_per_lot": money(settings.maintenance_margin_per_contract, units),
        "maintenance_rate": rate(settings.maintenance_margin_rate, 1),
        "roll_half_spread": ticks("roll_spread_ticks", spread, Fraction(1, 2)),
        **{f"participation_{place}": rate(share, 1) for place, share in enumerate(settings.participation or none)},
        **{f"{name}_{place}": ticks(f"{name}_ticks", value) for name, three in by_urgency.items() for place, value in enumerate(three)},
        **{f"{name}_rate_{place}": rate(value) for name in resting for place, value in enumerate(getattr(settings, f"{name}_bps"))},
        "stop_distance": ticks("stop_loss_ticks", settings.stop_loss_ticks),
        "stop_rate": rate(settings.stop_loss, 1),
        "target_distance": ticks("take_profit_ticks", settings.take_profit_ticks),
        "target_rate": rate(settings.take_profit, 1),
        "trail_distance": ticks("trailing_stop_ticks", settings.trailing_stop_ticks),
        "trail_rate": rate(settings.trailing_stop, 1),
    }
    for name, value in values.items():
        if abs(value) >= _LARGEST_MONEY // 4:
            raise UsageError(f"market: the {name} of {instrument.symbol}, {value:.3g} in units of 1e-9, leaves the range of the accounts")
    return [values[name] for name in market.COST_FIELDS]


def _in_quanta(where: str, value: float, factor: Fraction, instrument: Instrument) -> int:
    if not value:
        return 0
    per_tick = instrument.quanta_per_tick
    if per_tick is None:
        raise UsageError(f"{where}: instrument {instrument.symbol} has no tick_size; set it to 0 and give basis points or a share instead")
    return _exact(_fraction(value) * per_tick * factor, where, instrument)


def _market_values(settings: MarketSettings) -> dict[str, int]:
    start = round(Fraction(str(settings.start_equity)) * market.NANO)
    if start >= _LARGEST_MONEY:
        largest = _LARGEST_MONEY / market.NANO
        raise UsageError(f"market.start_equity: expected below {largest:.3g}, found {settings.start_equity:g}")
    return {"start_equity": start, "capital_floor": round(Fraction(str(settings.capital_floor)) * start)}


def _checked_series(part: LanePart, computed: Any, name: str, kind: str, shape: tuple[int, ...]) -> NDArray[Any]:
    array = computed.get(name) if isinstance(computed, dict) else None
    if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype.kind not in "iufb":
        found = f"shape {array.shape} of {array.dtype}" if isinstance(array, np.ndarray) else type(computed).__name__
        raise PluginError(f"{part.where}: compute_series: expected '{name}' as an array of shape {shape} of {kind}, found {found}")
    return array.astype(kind)


def _fraction(value: float) -> Fraction:
    return Fraction(str(value))  # the decimal that was written, not its binary neighbour


def _exact(quanta: Fraction, where: str, instrument: Instrument) -> int:
    if quanta.denominator != 1:
        raise UsageError(
            f"{where}: {float(quanta):g} price quanta of {instrument.symbol} is not whole; take a smaller instrument.price_quantum"
        )
    return int(quanta)


def _check_rules(rules: frozenset[str], space: ActionSpace, parts: LaneParts, tape: Tape, settings: MarketSettings) -> None:
    execution: Any = parts.execution.component
    for name in space.order_types:
        if name not in execution.order_types:
            raise UsageError(f"action.order_types: execution '{execution.name}' knows {', '.join(execution.order_types)}, found '{name}'")
    if "flat_by_close" in rules and settings.flat_by_close and int(tape.session_left_ST.max(initial=0)) == 0:
        raise UsageError("market.flat_by_close: expected sessions of several bars, found daily data")
    if "same_close" in rules and "orders" in rules:
        raise UsageError("market.same_close: expected market orders alone, found limit or ioc orders: a close has no bar to rest in")
    if settings.same_close and (settings.maintenance_margin_rate or settings.maintenance_margin_per_contract):
        raise UsageError("market.same_close: expected no maintenance margin, which liquidates at an open")
    if "shared" in rules:
        if "same_close" in rules:
            raise UsageError("market.same_close: expected market.account = 'per_symbol', found 'shared'")
        if parts.strategy is None:
            raise UsageError("market.account: expected 'per_symbol' for a learned policy, found 'shared': it acts symbol by symbol")
