"""Backtests: rule strategies, trained policies and any batch policy over one part of the data, through the lane step that trains.

A strategy runs whole windows in one generated kernel. A policy runs bar by bar: observe, act, step. Each symbol is an account of its own
that starts with `market.start_equity`; a learner's result is the sum of its accounts. The end of the window is not a trade: the position
is marked and listed as open, and an order that would be due after it is listed as unfilled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bellmark import backend, lane_fields
from bellmark.buffers import BufferRegistry
from bellmark.component import Component, settings_of
from bellmark.environment import Variant
from bellmark.errors import InternalError, UsageError
from bellmark.evaluation.summary import Summary
from bellmark.features import Normalisation
from bellmark.guard import BAD_LANE, EMPTY_MASK
from bellmark.lane_layout import LanePart
from bellmark.ledger import COLUMNS, ROWS_A_BAR
from bellmark.market_data import MarketData
from bellmark.results import COSTS, Backtest, LaneResult, Record, Window, check_identity, lane_result
from bellmark.settings import MarketSettings
from bellmark.stages import Stage, Step
from bellmark.tape import ARRAYS, Tape

_KEPT_ROWS = 32  # of a lane's ledger, beside what one bar may write
_OUTCOME = ("equity", "position", "point_equity", "point_position", "decided_exposure", "order_lots", "reason")
_EVENT = {"mark_price": "equity"}  # a record without an event of its own; the type is that of money
BatchPolicy = Callable[[NDArray[np.float32], NDArray[np.bool_]], NDArray[np.integer[Any]]]


def run_strategy(data: MarketData, strategy: Component, split: str = "test", plugin: str = "", command: str = "") -> Backtest:
    """A rule strategy on every symbol of one part of the data, each in an account of its own or all in a shared one.

    The strategy sees all bars before the window too (its averages are warm), but trades only within it.
    """
    return run_strategies(data, [strategy], split, plugin, command)[0]


def run_strategies(
    data: MarketData,
    strategies: Sequence[Component],
    split: str = "test",
    plugin: str = "",
    command: str = "",
    variants: Sequence[MarketSettings] | None = None,
) -> list[Backtest]:
    """The same strategy with several settings, side by side, each with its whole curve and ledger; `variants` as in `run_sweep`."""
    markets = list(variants or [data.settings] * len(strategies))
    found: dict[int, Backtest] = {}
    waiting, rows = list(range(len(strategies))), ledger_rows(data, split)
    together = len(waiting)
    while waiting:
        members, waiting = waiting[:together], waiting[together:]
        chosen, rules = [strategies[k] for k in members], [markets[k] for k in members]
        run = _StrategyRun(data, chosen, split, plugin, ("record", "ledger"), ledger_rows=rows, variants=rules)
        record = run.record()
        needed_K = run.registry["ledger_count_LN"][0].reshape(len(members), run.accounts).max(axis=1)
        for place, (k, needed) in enumerate(zip(members, needed_K.tolist(), strict=True)):
            if needed > rows:
                continue
            lanes = tuple(
                lane_result(run.registry, run.tape, record, 0, n, run.windows[n], None)
                for n in range(place * run.accounts, (place + 1) * run.accounts)
            )
            more = {"settings": _settings(strategies[k])}
            found[k] = _backtest(replace(data, settings=markets[k]), _name(strategies[k]), "strategy", split, lanes, 1, command, **more)
        full = [k for k, needed in zip(members, needed_K.tolist(), strict=True) if needed > rows]
        if full:  # run again with room: the same to the bit, only what could not be written is written now
            rows = int(needed_K.max())
            together = max(1, _LEDGER_MEMORY // (rows * ROW_BYTES * run.accounts))
            waiting = full + waiting
    return [found[k] for k in range(len(strategies))]


def ledger_rows(data: MarketData, split: str) -> int:
    """Rows that the ledger of a lane begins with; a lane that needs more is run again."""
    _, first_S, last_S = data.bars_of(split)
    bars_S = last_S - first_S + 1
    bars = int(bars_S.sum() if data.settings.account == "shared" else bars_S.max())
    return min(_FIRST_ROWS, 2 * bars)


def run_sweep(
    data: MarketData,
    strategies: Sequence[Component],
    split: str = "test",
    plugin: str = "",
    variants: Sequence[MarketSettings] | None = None,
) -> list[Summary]:
    """The same strategy with several settings, side by side, metrics in the pass: no curve and no ledger, whose memory grows with bars.

    One account a setting: data of one symbol, or a shared account. `variants` gives each its own [market] numbers.
    """
    run = _StrategyRun(data, strategies, split, plugin, ("summary",), variants=variants)
    if run.accounts > 1:
        raise UsageError(f"sweep: expected one account a setting, found {run.accounts} symbols with an account each (market.account)")
    return [run.summary(n, data) for n in range(len(strategies))]


ROW_BYTES = 8 * len(COLUMNS)  # of a row of the ledger
_FIRST_ROWS = 4096  # of the ledger of a lane
_LEDGER_MEMORY = 64 * 2**20  # bytes of the ledgers of lanes that are run again with more rows


class _StrategyRun:
    """Lanes for every strategy and account of one part of the data, run."""

    def __init__(
        self,
        data: MarketData,
        strategies: Sequence[Component],
        split: str,
        plugin: str,
        write: tuple[str, ...],
        ledger_rows: int = 0,
        variants: Sequence[MarketSettings] | None = None,
    ) -> None:
        settings = variants or [data.settings] * len(strategies)
        part = LanePart("strategy", strategies[0], plugin or type(strategies[0]).__module__)
        parts = replace(data.parts, strategy=part, rewards=(), masks=(), features=())
        symbols, first_S, last_S = data.bars_of(split)
        shared = data.settings.account == "shared"
        windows = [_shared_window(data.tape, symbols, first_S, last_S)] if shared else _windows(data.tape, symbols, first_S, last_S)
        self.accounts = len(windows)
        self.windows = windows * len(strategies)
        groups = [Variant({"strategy": strategy}, market) for strategy, market in zip(strategies, settings, strict=True)]
        tape_data = data if not shared else _of_symbols(data, symbols)
        environment = tape_data.environment(parts, 1, len(self.windows), variants=groups, extra_rules=write)
        self.registry = BufferRegistry()
        points = max(window.stamp_T.size for window in windows)
        environment.declare(self.registry, points=points, ledger_rows=ledger_rows, runs=True)
        self.registry.allocate(checked=True)
        environment.fill(self.registry)
        count = len(strategies)
        self.registry["group_LN"][:] = np.repeat(np.arange(count), self.accounts)
        self.registry["symbol_LN"][:] = np.tile([window.symbols[0] for window in windows], count)
        self.registry["bar_LN"][:] = np.tile([0 if shared else window.first for window in windows], count)
        last = [points - 1 if shared else window.first + window.stamp_T.size - 1 for window in windows]
        self.registry["end_bar_LN"][:] = np.tile(last, count)
        if shared:
            self.registry["clock_KS"][:] = _clock(data.tape, symbols, first_S, last_S, windows[0].stamp_T)
            self.registry["last_S"][:] = last_S
            self.windows = [replace(window, symbols=tuple(range(len(symbols)))) for window in self.windows]
        if "record_order_lots_LNST" in self.registry:
            self.registry["record_order_lots_LNST"][:] = 0
            self.registry["record_reason_LNST"][:] = 0
            self.registry["record_decided_exposure_LNST"][:] = np.nan
        self.tape = tape_data.tape
        Step(self.registry, environment.run_stages(), environment.given).run()
        self.registry.check_guards()

    def record(self) -> Record:
        """What the run wrote."""
        arrays = {name: self.registry[f"record_{name}_LNST"] for name in lane_fields.RECORD}
        counts = self.registry["ledger_count_LN"][0]
        rows = {(0, n): self.registry["ledger_LNEJ"][0, n, : counts[n]] for n in range(len(self.windows))}
        actions = np.full((1, len(self.windows), 0), -1, np.int32)
        return Record(self.registry["record_equity_LNT"], arrays, rows, actions)

    def summary(self, n: int, data: MarketData) -> Summary:
        """The metrics' sums of lane n."""
        registry, window = self.registry, self.windows[n]
        value: dict[str, Any] = dict(zip(lane_fields.SUMMARY_FLOAT, registry["summary_float_LNX"][0, n].tolist(), strict=True))
        value |= dict(zip(lane_fields.SUMMARY_INT, registry["summary_int_LNX"][0, n].tolist(), strict=True))
        # After its ruin an account stands still to the end of the window, as its curve does.
        planned = window.stamp_T.size - 1
        value["equity_sum"] += (planned - value["bars"]) * float(registry["equity_LN"][0, n])
        value["bars"] = planned
        for name in ("traded_value", "equity_sum", "trade_gain", "trade_loss"):
            value[name] = value[name] / 1e9
        value["winning_bars"] = value.pop("moving_bars") - value["losing_bars"]
        account = {name: int(registry[f"{name}_LN"][0, n]) for name in ("equity", "gross", *COSTS.values())}
        start = int(registry["setting_int_GX"][registry["group_LN"][0, n], 0])
        shared = "position_LNS" in registry
        reached = int(registry["bar_LN"][0, n])
        position_S = registry["position_LNS"][0, n] if shared else registry["position_LN"][0, n].reshape(1)
        mark_S = registry["mark_price_LNS"][0, n] if shared else np.array([self.tape.mark_price(window.symbols[0], reached)])
        check_identity(registry, self.tape, (0, n), window, start, planned, position_S, mark_S)
        position = position_S.tolist()
        return Summary(
            **value,
            start_equity=start / 1e9,
            end_equity=account["equity"] / 1e9,
            fills=int(registry["fills_LN"][0, n]),
            refusals=int(registry["refusals_LN"][0, n]),
            costs={name: account[field_name] / 1e9 for name, field_name in COSTS.items()},
            gross=account["gross"] / 1e9,
            ruined=bool(registry["ruined_LN"][0, n]),
            periods_per_year=data.periods_per_year,
            first_ns=int(window.stamp_T[0]),
            last_ns=int(window.stamp_T[-1]),
            open_position=int(sum(abs(lots) for lots in position)) if len(position) > 1 else int(position[0]),
        )


def _windows(tape: Tape, symbols: NDArray[np.int32], first_S: NDArray[np.int32], last_S: NDArray[np.int32]) -> list[Window]:
    """One account a symbol."""
    return [
        Window((int(s),), tape.ts_ST[s, first : last + 1].astype(np.int64), int(first))
        for s, first, last in zip(symbols, first_S, last_S, strict=True)
    ]


def _shared_window(tape: Tape, symbols: NDArray[np.int32], first_S: NDArray[np.int32], last_S: NDArray[np.int32]) -> Window:
    """One account for all symbols: a point for each stamp of any of them."""
    stamps = [tape.ts_ST[s, first : last + 1] for s, first, last in zip(symbols, first_S, last_S, strict=True)]
    return Window(tuple(int(s) for s in symbols), np.unique(np.concatenate(stamps)).astype(np.int64), 0)


def _clock(
    tape: Tape, symbols: NDArray[np.int32], first_S: NDArray[np.int32], last_S: NDArray[np.int32], stamp_T: NDArray[np.int64]
) -> NDArray[np.int32]:
    clock_KS = np.full((stamp_T.size, len(symbols)), -1, np.int32)
    for place, (s, first, last) in enumerate(zip(symbols, first_S, last_S, strict=True)):
        clock_KS[np.searchsorted(stamp_T, tape.ts_ST[s, first : last + 1]), place] = np.arange(first, last + 1)
    return clock_KS


def _of_symbols(data: MarketData, symbols: NDArray[np.int32]) -> MarketData:
    """The data of some symbols, in their order."""
    tape = data.tape
    if len(symbols) == len(tape.symbols):
        return data
    arrays: dict[str, Any] = {f"{name}_ST": getattr(tape, f"{name}_ST")[symbols] for name in ARRAYS}
    arrays |= {name: getattr(tape, name)[symbols] for name in ("length_S", "duplicates_S", "outside_S")}
    arrays["extra_ST"] = {name: array[symbols] for name, array in tape.extra_ST.items()}
    names: dict[str, Any] = {"symbols": tuple(tape.symbols[s] for s in symbols), "instruments": tuple(tape.instruments[s] for s in symbols)}
    return replace(data, tape=replace(tape, **names, **arrays))


def _settings(component: Component) -> dict[str, Any]:
    return {info.name: getattr(component, info.name) for info in settings_of(type(component))}


def _name(component: Component) -> str:
    return type(component).name


class ActingPolicy(Protocol):
    """What acts on the lanes: it declares and fills its buffers and gives the stages from observation_LNO to action_LN."""

    @property
    def given(self) -> tuple[str, ...]: ...
    def declare(self, registry: BufferRegistry) -> None: ...
    def fill(self, registry: BufferRegistry) -> None: ...
    def stages(self, *, explore: bool) -> list[Stage]: ...


class PolicyRunner:
    """Lanes for every learner and symbol of one part of the data, and a policy that acts greedily on all of them bar by bar.

    windows: other lanes than one a symbol. variants: each window under each of these [market] numbers (cost scenarios), the windows of the
    first scenario first. Every learner has all of these lanes.
    """

    def __init__(
        self,
        data: MarketData,
        split: str,
        learners: int,
        normalisation: Normalisation,
        make: Callable[[int], ActingPolicy],
        *,
        windows: Sequence[Window] | None = None,
        variants: Sequence[MarketSettings] = (),
        ledger: bool = True,
    ) -> None:
        backend.single_blas_thread()  # as in training: the same bits, and no threads of BLAS within threads of Numba
        self.data, self.split = data, split
        base = list(windows) if windows is not None else _windows(data.tape, *data.bars_of(split))
        self.windows = base * max(len(variants), 1)
        groups = [Variant(settings=market) for market in variants] or [Variant()]
        write = ("ledger",) if ledger else ()
        self.environment = data.environment(data.parts, learners, len(self.windows), variants=groups * (1 if variants else learners),
                                            extra_rules=write)  # fmt: skip
        self.policy = make(len(self.windows))
        self.registry = BufferRegistry()
        # At the end of a window every order under way is listed beside what happens in the bar.
        self._bar_rows = ROWS_A_BAR + data.settings.latency_bars
        self.environment.declare(self.registry, ledger_rows=self._bar_rows + _KEPT_ROWS)
        self.policy.declare(self.registry)
        self.registry.allocate(checked=True)
        self.environment.fill(self.registry, normalisation)
        if variants:
            self.registry["group_LN"][:] = np.repeat(np.arange(len(variants)), len(base))
        self.policy.fill(self.registry)
        self.first_N = np.array([window.first for window in self.windows], np.int32)
        self.last_N = self.first_N + np.array([window.stamp_T.size - 1 for window in self.windows], np.int32)
        self.bars = int((self.last_N - self.first_N).max())
        self._no_op_L2 = np.zeros((learners, 2), np.int64)  # decisions without a finite value, without a legal action
        self._first_no_op: dict[tuple[int, int], tuple[int, int]] = {}  # bar and lane of the first of each
        known = (*self.environment.given, *self.policy.given, "next_bar_LN")
        self._begin = Step(self.registry, self.environment.begin_stages(), known)
        self._act = Step(self.registry, [*self.environment.observe_stages(), *self.policy.stages(explore=False)], known)
        moves = self.environment.step_stages()
        self._move = Step(self.registry, moves, (*known, "action_LN"))
        self._follow = Step(self.registry, [_follow_stage()], (*known, *moves[0].writes))
        self._finish = Step(self.registry, self.environment.finish_stages(), (*known, "action_LN"))

    def begin(self) -> None:
        """Puts every lane at the start of its window with a new account."""
        self.registry["symbol_LN"][:] = [window.symbols[0] for window in self.windows]
        self.registry["bar_LN"][:] = self.first_N
        self.registry["end_bar_LN"][:] = self.last_N
        self.registry["next_bar_LN"][:] = self.registry["bar_LN"]
        self._begin.run()

    def run(self, each_bar: Callable[[int], None] | None = None, *, keep_values: bool = False) -> Record:
        """The whole window. `each_bar(k)` is called after the k-th step, before lanes move on.

        keep_values: the value and the legality of every action at every point, for `--decisions`.
        """
        self.begin()
        self._no_op_L2[:] = 0
        self._first_no_op.clear()
        registry, shape = self.registry, (self.environment.L, self.environment.N)
        points = self.bars + 1
        equity_LNT = np.zeros((*shape, points), np.int64)
        equity_LNT[:, :, 0] = registry["equity_LN"]
        arrays = {name: np.zeros((*shape, 1, points), registry[f"{_EVENT.get(name, name)}_LN"].dtype) for name in lane_fields.RECORD}
        arrays["decided_exposure"][:] = np.nan
        action_LNT = np.zeros((*shape, points), np.int32)
        rows: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]] = []
        values = self._value_arrays(points) if keep_values else None
        same, late = self.data.settings.same_close, self.data.settings.latency_bars - 1
        moving_LN = np.zeros(shape, np.uint8)
        place = tuple(registry[name] for name in ("bar_LN", "end_bar_LN", "ruined_LN"))
        outcome = tuple(registry[f"{name}_LN"] for name in _OUTCOME)
        kept = (equity_LNT, *(arrays[name] for name in ("position", "decided_exposure", "order_lots", "reason")))
        for k in range(self.bars):
            self._act.run()
            self._count_no_ops()
            self._keep_values(values, k)
            keep_action(*place, registry["action_LN"], moving_LN, action_LNT, k)
            self._move.run()
            keep_outcome(moving_LN, *outcome, *kept, k, late, same)
            self._drain(rows, self._bar_rows)
            if each_bar is not None:
                each_bar(k)
            self._follow.run()
        self._act.run()
        self._last_actions(action_LNT)
        self._keep_values(values, self.bars)
        self._finish.run()
        self._drain(rows)
        self._keep_last(equity_LNT, arrays, same, late)
        registry.check_guards()
        self._mark_prices(arrays["mark_price"])
        return Record(equity_LNT, arrays, _by_lane(rows, self.environment.N), action_LNT, *(values or (None, None)))

    def _value_arrays(self, points: int) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
        shape = (self.environment.L, self.environment.N, points, self.environment.A)
        return np.full(shape, np.nan, np.float32), np.zeros(shape, np.uint8)

    def _keep_values(self, values: tuple[NDArray[np.float32], NDArray[np.uint8]] | None, k: int) -> None:
        """Q of each joint action (the mean over its branches' columns) and the mask; NaN where the policy has no Q values."""
        if values is None:
            return
        q_LNTA, allowed_LNTA = values
        at_LN = np.minimum(self.last_N - self.first_N, k)[None, :] == k
        allowed_LNTA[:, :, k] = np.where(at_LN[..., None], self.registry["allowed_LNA"], 0)
        if "acting_q_LND" in self.registry:
            branches = np.float32(1.0) / np.float32(self.data.space.K)  # as policy.joint_value, to the bit
            q_LNA = self.registry["acting_q_LND"][:, :, self.data.space.column_AK].sum(axis=3, dtype=np.float32) * branches
            q_LNTA[:, :, k] = np.where(at_LN[..., None], q_LNA, np.nan)

    def _keep_last(self, equity_LNT: NDArray[np.int64], arrays: dict[str, NDArray[Any]], same: bool, late: int) -> None:
        registry = self.registry
        for learner, n in np.argwhere(registry["ruined_LN"] == 0):
            at = int(self.last_N[n] - self.first_N[n])
            arrays["decided_exposure"][learner, n, 0, at] = registry["decided_exposure_LN"][learner, n]
            for name in ("order_lots", "reason") if at >= late else ():
                arrays[name][learner, n, 0, at - late] = registry[f"{name}_LN"][learner, n]
            if same:
                equity_LNT[learner, n, at] = registry["point_equity_LN"][learner, n]
                arrays["position"][learner, n, 0, at] = registry["point_position_LN"][learner, n]

    def _mark_prices(self, mark_price_LNST: NDArray[np.int64]) -> None:
        """The price that marks a position at each point: the close, after a roll the next contract's."""
        tape = self.data.tape
        for n, window in enumerate(self.windows):
            s, first, count = window.symbols[0], window.first, window.stamp_T.size
            mark_T = tape.mark_price(s, slice(first, first + count))
            mark_price_LNST[:, n, 0, :count] = mark_T

    def _drain(self, rows: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]], room: int | None = None) -> None:
        """Takes what the lanes wrote since the last time: their numbers, how many rows each wrote, the rows.

        With `room` only where a lane has no room left for so many rows: a bar writes few, and most lanes none.
        """
        if "ledger_count_LN" not in self.registry:
            return
        counts, ledger = self.registry["ledger_count_LN"], self.registry["ledger_LNEJ"]
        most, rows_of_lane = int(counts.max()), ledger.shape[2]
        if most > rows_of_lane:
            raise InternalError(f"ledger: {most} rows of a lane; at most {rows_of_lane} were expected")
        if most and (room is None or most > rows_of_lane - room):
            lanes = np.flatnonzero(counts)
            rows.append((lanes, counts.reshape(-1)[lanes], ledger.reshape(-1, *ledger.shape[2:])[lanes, :most]))
            counts[:] = 0

    def _count_no_ops(self) -> None:
        if "lane_guard_LN" not in self.registry or not self.registry["lane_guard_LN"].any():
            return
        lives_LN = (self.registry["bar_LN"] < self.registry["end_bar_LN"]) & (self.registry["ruined_LN"] == 0)
        for place, bits in enumerate((BAD_LANE, EMPTY_MASK)):
            hit_LN = lives_LN & (self.registry["lane_guard_LN"] & bits != 0)
            self._no_op_L2[:, place] += hit_LN.sum(axis=1)
            for learner in np.flatnonzero(hit_LN.any(axis=1)):
                n = int(np.argmax(hit_LN[learner]))
                self._first_no_op.setdefault((int(learner), place), (int(self.registry["bar_LN"][learner, n]), n))

    def no_op_warnings(self) -> tuple[str, ...]:
        """Which learners took the no-op in the last run since they could not decide, and how often."""
        causes = ("an observation or Q value that is not finite", "no legal action")
        return tuple(
            f"learner {learner}: {count} decisions took the no-op: {cause}, first at bar {bar} of {symbol} (lane {n})"
            for learner, counts in enumerate(self._no_op_L2.tolist())
            for place, (count, cause) in enumerate(zip(counts, causes, strict=True))
            if count
            for bar, n in [self._first_no_op[learner, place]]
            for symbol in [self.data.tape.symbols[self.windows[n].symbols[0]]]
        )

    def _last_actions(self, action_LNT: NDArray[np.int32]) -> None:
        for n in range(self.environment.N):
            action_LNT[:, n, int(self.last_N[n] - self.first_N[n])] = self.registry["action_LN"][:, n]

    def results(self, record: Record, learners: Sequence[int | None] | None = None) -> tuple[LaneResult, ...]:
        """One result a learner and symbol."""
        names = list(range(self.environment.L)) if learners is None else learners
        return tuple(
            lane_result(self.registry, self.data.tape, record, row, n, self.windows[n], name)
            for row, name in enumerate(names)
            for n in range(self.environment.N)
        )


def run_batch_policy(
    data: MarketData, act: BatchPolicy, normalisation: Normalisation, split: str = "test", name: str = "policy"
) -> Backtest:
    """Any callable as a policy: act(observation_NO, allowed_NA) -> action_N, called once a bar for all symbols.

    An action that is out of range or illegal is an error that names the bar and the lane: it is never adjusted.
    """
    runner = PolicyRunner(data, split, 1, normalisation, lambda lanes: _Callable(act, data.space.A, name))
    record = runner.run()
    return _backtest(data, name, "policy", split, runner.results(record, [None]), 1, "")


@dataclass(frozen=True)
class _Callable:
    act: BatchPolicy
    actions: int
    name: str
    given: tuple[str, ...] = ()

    def declare(self, registry: BufferRegistry) -> None:
        pass

    def fill(self, registry: BufferRegistry) -> None:
        pass

    def stages(self, *, explore: bool) -> list[Stage]:
        reads = ("observation_LNO", "allowed_LNA", "bar_LN")
        return [Stage("batch_policy", self._launch, (*reads, "action_LN"), reads, ("action_LN",), self.name)]

    def _launch(self, observation_LNO: Any, allowed_LNA: Any, bar_LN: Any, action_LN: Any) -> None:
        chosen_N = np.asarray(self.act(observation_LNO[0].copy(), allowed_LNA[0].astype(bool)))
        _check_actions(chosen_N, allowed_LNA[0], self.actions, bar_LN[0])
        action_LN[0] = chosen_N


def _check_actions(chosen_N: NDArray[Any], allowed_NA: NDArray[Any], actions: int, bar_N: NDArray[Any]) -> None:
    if chosen_N.shape != bar_N.shape or chosen_N.dtype.kind not in "iu":
        raise UsageError(f"policy: expected {bar_N.size} whole numbers, found shape {chosen_N.shape} of {chosen_N.dtype}")
    for n, action in enumerate(chosen_N):
        if not 0 <= action < actions:
            raise UsageError(f"policy: bar {bar_N[n]}, lane {n}: expected an action in 0..{actions - 1}, found {action}")
        if not allowed_NA[n, action] and allowed_NA[n].any():
            raise UsageError(f"policy: bar {bar_N[n]}, lane {n}: action {action} is not legal")


def _backtest(
    data: MarketData, name: str, kind: str, split: str, lanes: Sequence[LaneResult], learners: int, command: str, **more: Any
) -> Backtest:
    return Backtest(
        name=name,
        kind=kind,
        split=split,
        lanes=tuple(lanes),
        learners=learners,
        start_equity=data.settings.start_equity,
        periods_per_year=data.periods_per_year,
        session=data.session_text,
        currency=data.currency,
        action_space=data.space,
        profile_hash=data.profile_hash,
        data_hash=data.tape.content_hash,
        command=command,
        warnings=tuple(data.warnings),
        cautions=cautions(data.settings),
        rules=_rules(data),
        **more,
    )


def _rules(data: MarketData) -> dict[str, dict[str, Any]]:
    """What the account went by: the [market] settings, and execution and sizing with theirs."""
    parts = {"execution": data.parts.execution.component, "sizing": data.parts.sizing.component}
    return {"market": _settings(data.settings)} | {place: {"use": _name(part), **_settings(part)} for place, part in parts.items()}


def _by_lane(
    rows: Sequence[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]], lanes: int
) -> dict[tuple[int, int], NDArray[np.int64]]:
    """What the lanes wrote bar by bar, lane by lane."""
    parts = [(np.repeat(owner, count), block[np.arange(block.shape[1]) < count[:, None]]) for owner, count, block in rows]
    if not parts:
        return {}
    owner = np.concatenate([part[0] for part in parts])
    order = np.argsort(owner, kind="stable")
    ledger = np.concatenate([part[1] for part in parts])[order]
    found, starts = np.unique(owner[order], return_index=True)
    return {divmod(int(lane), lanes): block for lane, block in zip(found, np.split(ledger, starts[1:]), strict=True)}


def cautions(settings: MarketSettings) -> tuple[str, ...]:
    """Rules of an account that make it look better than life."""
    if settings.same_close:
        return ("market.same_close: orders fill at the very close that decided them, which nobody can trade",)
    return ()


def policy_backtest(
    data: MarketData, runner: PolicyRunner, record: Record, name: str, split: str, command: str, step: int | None
) -> Backtest:
    """The result of a trained run's policy."""
    lanes = runner.results(record)
    result = _backtest(data, name, "policy", split, lanes, runner.environment.L, command, step=step)
    return replace(result, warnings=(*result.warnings, *runner.no_op_warnings()))


@backend.compile
def keep_action(bar_LN, end_bar_LN, ruined_LN, action_LN, moving_LN, action_LNT, k):
    """Keeps the action at point k, and which lanes are about to move."""
    for learner in range(bar_LN.shape[0]):
        for n in range(bar_LN.shape[1]):
            action_LNT[learner, n, k] = action_LN[learner, n]
            moving_LN[learner, n] = bar_LN[learner, n] < end_bar_LN[learner, n] and ruined_LN[learner, n] == 0


@backend.compile
def keep_outcome(moving_LN, equity_LN, position_LN, point_equity_LN, point_position_LN, decided_exposure_LN, order_lots_LN,
                 reason_LN, equity_LNT, position_LNST, decided_exposure_LNST, order_lots_LNST, reason_LNST, k, late, same):  # fmt: skip
    """Keeps the account at point k + 1, the decision at point k, and what became of the order that worked now.

    With a latency that order was decided `late` points before. same: orders fill at point k itself, and the account there has them.
    """
    for learner in range(moving_LN.shape[0]):
        for n in range(moving_LN.shape[1]):
            equity_LNT[learner, n, k + 1] = equity_LN[learner, n]
            position_LNST[learner, n, 0, k + 1] = position_LN[learner, n]
            if moving_LN[learner, n] == 0:
                continue
            if same:
                position_LNST[learner, n, 0, k] = point_position_LN[learner, n]
                if k != 0:
                    equity_LNT[learner, n, k] = point_equity_LN[learner, n]
            decided_exposure_LNST[learner, n, 0, k] = decided_exposure_LN[learner, n]
            if k >= late:
                order_lots_LNST[learner, n, 0, k - late] = order_lots_LN[learner, n]
                reason_LNST[learner, n, 0, k - late] = reason_LN[learner, n]


@backend.compile
def follow(bar_LN, next_bar_LN, portfolio_LNP, next_portfolio_LNP, allowed_LNA, next_allowed_LNA):
    """Every lane takes over its next bar; none begins anew."""
    for learner in range(bar_LN.shape[0]):
        for n in range(bar_LN.shape[1]):
            bar_LN[learner, n] = next_bar_LN[learner, n]
            for p in range(portfolio_LNP.shape[2]):
                portfolio_LNP[learner, n, p] = next_portfolio_LNP[learner, n, p]
            for a in range(allowed_LNA.shape[2]):
                allowed_LNA[learner, n, a] = next_allowed_LNA[learner, n, a]


def _follow_stage() -> Stage:
    pairs = ("bar_LN", "next_bar_LN", "portfolio_LNP", "next_portfolio_LNP", "allowed_LNA", "next_allowed_LNA")
    return Stage("follow", follow, pairs, pairs, ("bar_LN", "portfolio_LNP", "allowed_LNA"))
