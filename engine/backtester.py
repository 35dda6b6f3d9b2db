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

from bellmark import backend
from bellmark.buffers import BufferRegistry
from bellmark.component import Component, settings_of
from bellmark.errors import UsageError
from bellmark.features import Normalisation
from bellmark.guard import BAD_LANE, EMPTY_MASK
from bellmark.lane import LanePart
from bellmark.market_data import MarketData
from bellmark.results import Backtest, LaneResult, Record, lane_result, record_names
from bellmark.stages import Stage, Step

BatchPolicy = Callable[[NDArray[np.float32], NDArray[np.bool_]], NDArray[np.integer[Any]]]


def run_strategy(data: MarketData, strategy: Component, split: str = "test", plugin: str = "", command: str = "") -> Backtest:
    """A rule strategy on every symbol of one part of the data.

    The strategy sees all bars before the window too (its averages are warm), but trades only within it.
    """
    part = LanePart("strategy", strategy, plugin or "strategy")
    parts = replace(data.parts, strategy=part, rewards=(), masks=(), features=())
    symbols, first_S, last_S = data.bars_of(split)
    environment = data.environment(parts, learners=1, lanes=len(symbols))
    registry = BufferRegistry()
    bars = int((last_S - first_S).max())
    environment.declare(registry, record_bars=bars)
    registry.allocate(checked=True)
    environment.fill(registry, data.no_normalisation(1))
    _place(registry, symbols, first_S, last_S)
    Step(registry, environment.run_stages(), environment.given).run()
    registry.check_guards()
    arrays = {name: registry[f"record_{name}_LNT"] for name in record_names()}
    actions = np.full((1, len(symbols), 0), -1, np.int32)
    record = Record(arrays, actions, registry["order_lots_LN"])
    lanes = tuple(lane_result(registry, data.tape, record, 0, n, int(first_S[n]), None) for n in range(len(symbols)))
    settings = {info.name: getattr(strategy, info.name) for info in settings_of(type(strategy))}
    return _backtest(data, strategy.name, "strategy", split, lanes, 1, command, settings=settings)


class ActingPolicy(Protocol):
    """What acts on the lanes: it declares and fills its buffers and gives the stages from observation_LNO to action_LN."""

    @property
    def given(self) -> tuple[str, ...]: ...
    def declare(self, registry: BufferRegistry) -> None: ...
    def fill(self, registry: BufferRegistry) -> None: ...
    def stages(self, *, explore: bool) -> list[Stage]: ...


class PolicyRunner:
    """Lanes for every learner and symbol of one part of the data, and a policy that acts greedily on all of them bar by bar."""

    def __init__(
        self, data: MarketData, split: str, learners: int, normalisation: Normalisation, make: Callable[[int], ActingPolicy]
    ) -> None:
        self.data, self.split = data, split
        self._symbols, self.first_S, self.last_S = data.bars_of(split)
        self.environment = data.environment(data.parts, learners=learners, lanes=len(self._symbols))
        self.policy = make(len(self._symbols))
        self.registry = BufferRegistry()
        self.environment.declare(self.registry)
        self.policy.declare(self.registry)
        self.registry.allocate(checked=True)
        self.environment.fill(self.registry, normalisation)
        self.policy.fill(self.registry)
        self.bars = int((self.last_S - self.first_S).max())
        self._no_op_L2 = np.zeros((learners, 2), np.int64)  # decisions without a finite value, without a legal action
        known = (*self.environment.given, *self.policy.given, "next_bar_LN")
        self._begin = Step(self.registry, self.environment.begin_stages(), known)
        self._act = Step(self.registry, [*self.environment.observe_stages(), *self.policy.stages(explore=False)], known)
        moves = self.environment.step_stages()
        self._move = Step(self.registry, moves, (*known, "action_LN"))
        self._follow = Step(self.registry, [_follow_stage()], (*known, *moves[0].writes))
        self._order = Step(self.registry, self.environment.order_stages(), (*known, "action_LN"))

    def begin(self) -> None:
        """Puts every lane at the start of its window with a new account."""
        _place(self.registry, self._symbols, self.first_S, self.last_S)
        self.registry["next_bar_LN"][:] = self.registry["bar_LN"]
        self._begin.run()

    def run(self, each_bar: Callable[[int], None] | None = None) -> Record:
        """The whole window. `each_bar(k)` is called after the k-th step, before lanes move on."""
        self.begin()
        self._no_op_L2[:] = 0
        shape = (self.environment.L, self.environment.N, self.bars)
        arrays = {name: np.zeros(shape, self.registry[f"{name}_LN"].dtype) for name in record_names()}
        action_LNT = np.zeros((*shape[:2], self.bars + 1), np.int32)
        for k in range(self.bars):
            self._act.run()
            self._count_no_ops()
            action_LNT[:, :, k] = self.registry["action_LN"]
            self._move.run()
            for name, array in arrays.items():
                array[:, :, k] = self.registry[f"{name}_LN"]
            if each_bar is not None:
                each_bar(k)
            self._follow.run()
        self._act.run()
        self._last_actions(action_LNT)
        self._order.run()
        self.registry.check_guards()
        open_order_LN = np.where(self.registry["ruined_LN"] == 0, self.registry["order_lots_LN"], 0)
        return Record(arrays, action_LNT, open_order_LN)

    def _count_no_ops(self) -> None:
        if "lane_guard_LN" not in self.registry:
            return
        lives_LN = (self.registry["bar_LN"] < self.registry["end_bar_LN"]) & (self.registry["ruined_LN"] == 0)
        for place, bits in enumerate((BAD_LANE, EMPTY_MASK)):
            self._no_op_L2[:, place] += (lives_LN & (self.registry["lane_guard_LN"] & bits != 0)).sum(axis=1)

    def no_op_warnings(self) -> tuple[str, ...]:
        """Which learners took the no-op in the last run since they could not decide, and how often."""
        causes = ("an observation or Q value that is not finite", "no legal action")
        return tuple(
            f"learner {learner}: {count} decisions took the no-op: {cause}"
            for learner, counts in enumerate(self._no_op_L2.tolist())
            for count, cause in zip(counts, causes, strict=True)
            if count
        )

    def _last_actions(self, action_LNT: NDArray[np.int32]) -> None:
        for n in range(self.environment.N):
            action_LNT[:, n, int(self.last_S[n] - self.first_S[n])] = self.registry["action_LN"][:, n]

    def results(self, record: Record, learners: Sequence[int | None] | None = None) -> tuple[LaneResult, ...]:
        """One result a learner and symbol."""
        names = list(range(self.environment.L)) if learners is None else learners
        return tuple(
            lane_result(self.registry, self.data.tape, record, row, n, int(self.first_S[n]), name)
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
        action_space=data.space,
        profile_hash=data.profile_hash,
        data_hash=data.tape.content_hash,
        command=command,
        warnings=tuple(data.warnings),
        **more,
    )


def policy_backtest(
    data: MarketData, runner: PolicyRunner, record: Record, name: str, split: str, command: str, step: int | None
) -> Backtest:
    """The result of a trained run's policy."""
    lanes = runner.results(record)
    result = _backtest(data, name, "policy", split, lanes, runner.environment.L, command, step=step)
    return replace(result, warnings=(*result.warnings, *runner.no_op_warnings()))


def _place(registry: BufferRegistry, symbols: NDArray[np.int32], first_S: NDArray[np.int32], last_S: NDArray[np.int32]) -> None:
    registry["symbol_LN"][:] = symbols
    registry["bar_LN"][:] = first_S
    registry["end_bar_LN"][:] = last_S


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
