"""The market environment: lanes of accounts on a tape, as stages over registry buffers.

Order of a step: observe (observation_LNO) -> [network, action selection write action_LN] -> step (orders, fills, marks, reward, the next
observation's parts) -> [replay] -> advance (lanes that ended begin anew). The backtester uses the same kernels on lanes that it places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellmark import backend, control, lane, market
from bellmark.actions import ActionSpace
from bellmark.buffers import BufferRegistry
from bellmark.codegen import build
from bellmark.component import Component
from bellmark.errors import DataError, UsageError
from bellmark.features import MarketFeatures
from bellmark.instrument import Instrument
from bellmark.lane import LaneCode, LaneParts
from bellmark.rng import STREAM_EPISODE, below_64, words
from bellmark.settings import MarketSettings
from bellmark.stages import Stage
from bellmark.tape import Tape

_TAPE_ROLES = {
    "ts": "stamp", "open": "price", "high": "price", "low": "price", "close": "price", "volume": "volume", "session": "index",
    "session_bar": "index", "session_left": "index", "session_fraction": "feature", "gap": "flag",
}  # fmt: skip
_PARALLEL_FROM = 512  # lanes from which a kernel is worth its threads; bits are the same either way
_LARGEST_MONEY = 2**62


@dataclass(frozen=True)
class Windows:
    """Bars that lanes may use: [start, end) of each symbol, a row a learner. The last bar of a window is only marked."""

    start_LS: NDArray[np.int32]
    end_LS: NDArray[np.int32]


class MarketEnvironment:
    """Lanes of one run on one tape.

    tape, features: the compiled data. parts: the components of the lane step. space: the actions. settings: the [market] section.
    learners (L), lanes (N) of each; episode_bars: bars of a training episode. Groups (G) of lanes share settings: one a learner.
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
    ) -> None:
        self.tape, self.features, self.parts, self.space, self.settings = tape, features, parts, space, settings
        self.L, self.N, self.episode_bars = learners, lanes, episode_bars
        self.code = LaneCode(parts)
        self.F, self.P, self.A = len(features.labels), len(parts.features), space.A
        self.O = self.F + self.P
        _check_order_types(space, parts)
        if parts.flat_by_close and int(tape.session_left_ST.max(initial=0)) == 0:
            raise UsageError("market.flat_by_close: expected sessions of several bars, found daily data")

    # -- buffers ---------------------------------------------------------------------------------------------------------------

    def declare(self, registry: BufferRegistry, *, record_bars: int = 0) -> None:
        """Declares the tape, the settings, the lanes and, for rule strategies, the record of `record_bars` bars."""
        symbols, bars = self.tape.close_ST.shape
        groups, (floats, ints) = self.L, self.code.state_sizes
        for name, role in _TAPE_ROLES.items():
            registry.declare(f"{name}_ST", role, (symbols, bars))
        registry.declare("feature_STF", "feature", (symbols, bars, self.F))
        registry.declare("mean_LF", "normalisation", (self.L, self.F))
        registry.declare("scale_LF", "normalisation", (self.L, self.F))
        registry.declare("quantum_S", "setting_float", (symbols,))
        registry.declare("instrument_SJ", "setting_int", (symbols, len(market.INSTRUMENT_FIELDS) + 1))
        registry.declare("cost_GSJ", "setting_int", (groups, symbols, len(market.COST_FIELDS)))
        registry.declare("setting_int_GX", "setting_int", (groups, len(self.code.int_columns)))
        registry.declare("setting_float_GX", "setting_float", (groups, len(self.code.float_columns)))
        registry.declare("exposure_A", "exposure", (self.A,))
        registry.declare("order_type_A", "index", (self.A,))
        registry.declare("urgency_A", "index", (self.A,))
        registry.declare("window_start_LS", "index", (self.L, symbols))
        registry.declare("window_end_LS", "index", (self.L, symbols))
        control.declare(registry, self.L)
        lanes = (self.L, self.N)
        for name, role in {**lane.ACCOUNT, **lane.EVENTS, **_LANES}.items():
            registry.declare(f"{name}_LN", role, lanes)
        for prefix in ("", "next_"):
            registry.declare(f"{prefix}portfolio_LNP", "portfolio", (*lanes, self.P))
            registry.declare(f"{prefix}allowed_LNA", "flag", (*lanes, self.A))
            registry.declare(f"{prefix}observation_LNO", "observation", (*lanes, self.O))
        registry.declare("state_float_LNX", "state_float", (*lanes, floats))
        registry.declare("state_int_LNX", "state_int", (*lanes, ints))
        if record_bars:
            for name in ("equity", "position", *lane.EVENTS):
                role = lane.EVENTS.get(name) or lane.ACCOUNT[name]
                registry.declare(f"record_{name}_LNT", role, (*lanes, record_bars))

    def fill(self, registry: BufferRegistry, normalisation: Any, replace: Sequence[dict[str, Component]] = ()) -> None:
        """Writes everything that does not change while lanes run. `replace[l]` swaps components of learner l by label."""
        for name in _TAPE_ROLES:
            registry[f"{name}_ST"][:] = getattr(self.tape, f"{name}_ST")
        registry["feature_STF"][:] = self.features.feature_STF
        registry["mean_LF"][:] = normalisation.mean_LF
        registry["scale_LF"][:] = normalisation.scale_LF
        registry["exposure_A"][:] = self.space.exposure_A
        registry["order_type_A"][:] = self.space.order_type_A
        registry["urgency_A"][:] = self.space.urgency_A
        registry["group_LN"][:] = np.arange(self.L, dtype=np.int32)[:, None]
        start = round(Fraction(str(self.settings.start_equity)) * market.NANO)
        floor = round(Fraction(str(self.settings.capital_floor)) * start)
        for s, instrument in enumerate(self.tape.instruments):
            price = int(max(abs(self.tape.high_ST[s]).max(), abs(self.tape.low_ST[s]).max()))
            registry["quantum_S"][s] = float(instrument.quantum)
            costs = cost_row(self.settings, instrument)
            registry["instrument_SJ"][s] = [*instrument_row(instrument), size_limit(instrument, price, costs)]
            registry["cost_GSJ"][:, s] = costs
        for group in range(self.L):
            swap = replace[group] if replace else {}
            ints, floats = self.code.setting_rows({"start_equity": start, "capital_floor": floor}, swap)
            registry["setting_int_GX"][group] = ints
            registry["setting_float_GX"][group] = floats

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
        return (*_ACCOUNT_LN, *_STATE)

    # -- stages ----------------------------------------------------------------------------------------------------------------

    @property
    def given(self) -> tuple[str, ...]:
        """Buffers that are filled before the first step."""
        constant = [f"{name}_ST" for name in _TAPE_ROLES]
        constant += ["feature_STF", "mean_LF", "scale_LF", "quantum_S", "instrument_SJ", "cost_GSJ", "setting_int_GX", "setting_float_GX"]
        constant += ["exposure_A", "order_type_A", "urgency_A", "window_start_LS", "window_end_LS", "control_int_LC"]
        lanes = [f"{name}_LN" for name in (*lane.ACCOUNT, "symbol", "bar", "end_bar", "episode", "group", "ruined_lanes")]
        return (*constant, *lanes, "portfolio_LNP", "allowed_LNA", "state_float_LNX", "state_int_LNX")

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
        return [self._stage("environment_step", self.code.step_text, _STEP_READS, _STEP_WRITES)]

    def advance_stages(self) -> list[Stage]:
        """Takes over the next bar, or begins a new episode where the last one ended."""
        return [self._stage("environment_advance", self.code.advance_text, _ADVANCE_READS, _ADVANCE_WRITES, "episode")]

    def begin_stages(self) -> list[Stage]:
        """New accounts where the host has put the lanes."""
        return [self._stage("environment_begin", self.code.begin_text, _BEGIN_READS, _BEGIN_WRITES)]

    def order_stages(self) -> list[Stage]:
        """The order that the chosen action would give now."""
        return [self._stage("environment_order", self.code.order_text, (*_ACCOUNT_LN, "action_LN"), ("order_lots_LN",))]

    def run_stages(self) -> list[Stage]:
        """A rule strategy over the window of each lane."""
        records = tuple(f"record_{name}_LNT" for name in ("equity", "position", *lane.EVENTS))
        return [self._stage("strategy_run", self.code.run_text, (), (*_ACCOUNT_LN, *_STATE, "bar_LN", "order_lots_LN", *records))]

    def _stage(self, name: str, write_text: Any, reads: Sequence[str], writes: Sequence[str], extra: str = "") -> Stage:
        buffers = tuple(dict.fromkeys((*_COMMON, *reads, *writes)))
        numbers = ("episode_bars",) if extra == "episode" else ()
        text = write_text((*buffers, *numbers))
        entry = build(name, text, self.code.symbols, parallel=self.L * self.N >= _PARALLEL_FROM)
        arguments = (self.L, self.N, *buffers, *((self.episode_bars,) if numbers else ()))
        in_place = tuple(name for name in writes if name in _IN_PLACE)
        plugins = ", ".join(sorted({part.plugin for part in self.parts.all()}))
        return Stage(name, entry, arguments, tuple(dict.fromkeys((*_COMMON, *reads, *in_place))), tuple(writes), plugins)


_LANES = {
    "symbol": "index", "bar": "index", "end_bar": "index", "next_bar": "index", "action": "index", "propensity": "propensity",
    "reward": "reward", "terminated": "flag", "truncated": "flag", "episode": "counter", "group": "index", "ruined_lanes": "counter",
}  # fmt: skip
_COMMON = (
    *(f"{name}_ST" for name in _TAPE_ROLES),
    *("quantum_S", "instrument_SJ", "cost_GSJ", "setting_int_GX", "setting_float_GX", "exposure_A", "order_type_A", "urgency_A"),
    *("symbol_LN", "bar_LN", "end_bar_LN", "group_LN"),
)
_ACCOUNT_LN = tuple(f"{name}_LN" for name in lane.ACCOUNT)
_STATE = ("state_float_LNX", "state_int_LNX")
_OBSERVED = ("portfolio_LNP", "allowed_LNA")
_NEXT = ("next_portfolio_LNP", "next_allowed_LNA")
_IN_PLACE = (*_ACCOUNT_LN, *_STATE, *_OBSERVED, "symbol_LN", "bar_LN", "end_bar_LN", "episode_LN", "ruined_lanes_LN")
_STEP_READS = ("action_LN", *_STATE)
_STEP_WRITES = (
    *_ACCOUNT_LN, *_STATE, *(f"{name}_LN" for name in lane.EVENTS),
    "reward_LN", "next_bar_LN", "terminated_LN", "truncated_LN", *_NEXT,
)  # fmt: skip
_ADVANCE_READS = ("terminated_LN", "truncated_LN", "next_bar_LN", *_NEXT, "control_int_LC", "window_start_LS", "window_end_LS")
_ADVANCE_WRITES = (*_ACCOUNT_LN, *_STATE, *_OBSERVED, "symbol_LN", "bar_LN", "end_bar_LN", "episode_LN", "ruined_lanes_LN")
_BEGIN_READS = ()
_BEGIN_WRITES = (*_ACCOUNT_LN, *_STATE, *_OBSERVED)


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
    """The most lots whose value, fee and margin, and their doubles that bookings form, stay within int64. `costs`: see `cost_row`."""
    cost = dict(zip(market.COST_FIELDS, costs, strict=True))
    largest_price = largest_price + cost["half_spread"] + cost["slippage"]
    numerator, denominator = instrument.value_numerator, instrument.value_denominator
    by_value = _LARGEST_MONEY * denominator // (numerator * max(largest_price, 1) * 4)
    by_product = _LARGEST_MONEY // (max(largest_price, 1) * 4)
    per_lot = max(cost["fee_per_lot"], cost["margin_per_lot"], 1)
    limit = min(by_value, by_product, _LARGEST_MONEY // (per_lot * 4))
    if per_lot * 4 > _LARGEST_MONEY:
        raise UsageError(f"market: a fee or margin of {per_lot / market.NANO:g} for one lot of {instrument.symbol} leaves int64")
    if limit < 1:
        raise UsageError(
            f"instrument {instrument.symbol}: one lot at {largest_price} quanta, costs included, leaves the range of the accounts; "
            f"take a larger price_quantum than {instrument.price_quantum} or a smaller lot_size"
        )
    return limit


def cost_row(settings: MarketSettings, instrument: Instrument) -> list[int]:
    """The fields market.COST_FIELDS of a symbol, exact through fractions."""
    quanta_per_tick = instrument.quanta_per_tick
    if quanta_per_tick is None and (settings.spread_ticks or settings.slippage_ticks):
        raise UsageError(f"market.spread_ticks, market.slippage_ticks: instrument {instrument.symbol} has no tick_size; use slippage_bps")
    per_tick = Fraction(quanta_per_tick or 0)
    units = Fraction(str(instrument.lot_size))
    half_spread = _exact(_fraction(settings.spread_ticks) * per_tick / 2, "market.spread_ticks", instrument)
    slippage = _exact(_fraction(settings.slippage_ticks) * per_tick, "market.slippage_ticks", instrument)
    return [
        half_spread,
        slippage,
        round(_fraction(settings.slippage_bps) * market.RATE_ONE / 10_000),
        round(_fraction(settings.fee_per_contract) * units * market.NANO),
        round(_fraction(settings.fee_bps) * market.RATE_ONE / 10_000),
        round(_fraction(settings.fee_minimum) * market.NANO),
        round(_fraction(settings.initial_margin_per_contract) * units * market.NANO),
        round(_fraction(settings.initial_margin_rate) * market.RATE_ONE),
    ]


def _fraction(value: float) -> Fraction:
    return Fraction(str(value))  # the decimal that was written, not its binary neighbour


def _exact(quanta: Fraction, where: str, instrument: Instrument) -> int:
    if quanta.denominator != 1:
        raise UsageError(
            f"{where}: {float(quanta):g} price quanta of {instrument.symbol} is not whole; take a smaller instrument.price_quantum"
        )
    return int(quanta)


def _check_order_types(space: ActionSpace, parts: LaneParts) -> None:
    execution: Any = parts.execution.component
    for name in space.order_types:
        if name not in execution.order_types:
            raise UsageError(f"action.order_types: execution '{execution.name}' knows {', '.join(execution.order_types)}, found '{name}'")
