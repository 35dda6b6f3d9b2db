"""The accounts of a report: each learner and each baseline, their symbols' accounts summed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellmark.errors import UsageError
from bellmark.evaluation.curve import Curve, curve_of_lanes
from bellmark.evaluation.trades import trade_table
from bellmark.market import CAUSES, REASONS


@dataclass(frozen=True)
class Account:
    """One learner or baseline of a report."""

    label: str
    name: str
    is_learner: bool
    learner: int | None
    seed: int | None
    curve: Curve
    trades: NDArray[Any]
    fills_by_cause: dict[str, int]
    rejections: dict[str, int]
    open_lots: dict[str, int]
    ruined_symbols: tuple[str, ...]
    action_space: Any
    action_count_A: NDArray[np.int64] | None


def accounts_of(backtests: Sequence[Any], seeds: Mapping[int, int]) -> list[Account]:
    """Learners first, then baselines, each in the order given; labels are made unique."""
    accounts = []
    for backtest in sorted(backtests, key=lambda one: one.kind != "policy"):
        if not backtest.lanes:
            raise UsageError(f"report: backtest '{backtest.name}' has no account")
        for learner in sorted({lane.learner for lane in backtest.lanes}, key=lambda one: -1 if one is None else one):
            accounts.append(_account(backtest, learner, seeds))
    return _with_unique_labels(accounts)


def _account(backtest: Any, learner: int | None, seeds: Mapping[int, int]) -> Account:
    lanes = [lane for lane in backtest.lanes if lane.learner == learner]
    is_learner = backtest.kind == "policy"
    curve = curve_of_lanes(lanes, float(backtest.periods_per_year))
    seed = seeds.get(learner) if is_learner and learner is not None else None
    several = len({lane.learner for lane in backtest.lanes}) > 1
    label = f"learner {0 if learner is None else learner}" if is_learner else str(backtest.name)
    if seed is not None:
        label += f" (seed {seed})"
    elif not is_learner and several:
        label += f" {learner}"
    return Account(
        label=label,
        name="policy" if is_learner else str(backtest.name),  # a run's name may differ between two equal runs
        is_learner=is_learner,
        learner=learner if is_learner else None,
        seed=seed,
        curve=curve,
        trades=trade_table(curve),
        fills_by_cause=_fills_by_cause(lanes),
        rejections=_rejections(lanes),
        open_lots={symbol: int(lots) for lane in lanes for symbol, lots in lane.open_positions.items()},
        ruined_symbols=tuple(symbol for lane in lanes if lane.ruined for symbol in lane.symbols),
        action_space=backtest.action_space,
        action_count_A=_action_counts(lanes, backtest.action_space),
    )


def _with_unique_labels(accounts: list[Account]) -> list[Account]:
    seen: dict[str, int] = {}
    named = []
    for account in accounts:
        seen[account.label] = seen.get(account.label, 0) + 1
        times = seen[account.label]
        named.append(account if times == 1 else replace(account, label=f"{account.label} #{times}"))
    return named


def _fills_by_cause(lanes: Sequence[Any]) -> dict[str, int]:
    counts = sum((np.bincount(lane.fills["cause"], minlength=len(CAUSES)) for lane in lanes), np.zeros(len(CAUSES), np.int64))
    return {cause: int(count) for cause, count in zip(CAUSES, counts.tolist(), strict=True) if count}


def _rejections(lanes: Sequence[Any]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for lane in lanes:
        if len(lane.rejections) == 0:
            continue
        codes, times = np.unique(lane.rejections["reason"], return_counts=True)
        for code, count in zip(codes.tolist(), times.tolist(), strict=True):
            reason = REASONS[code]
            counts[reason] = counts.get(reason, 0) + int(count)
    return dict(sorted(counts.items()))


def _action_counts(lanes: Sequence[Any], space: Any) -> NDArray[np.int64] | None:
    if space is None:
        return None
    total = np.zeros(space.A, np.int64)
    for lane in lanes:
        actions = np.asarray(lane.action_T)
        total += np.bincount(actions[(actions >= 0) & (actions < space.A)], minlength=space.A)
    return total
