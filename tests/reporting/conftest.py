"""Synthetic backtests with the attribute names of real ones, for the report's tests."""

from types import SimpleNamespace

import numpy as np
import pytest

from bellmark.actions import ActionSpace
from bellmark.market import STOP

DAY = 86_400_000_000_000
FILL = np.dtype([("bar", "i4"), ("stamp", "i8"), ("symbol", "i4"), ("cause", "i4"), ("lots", "i8"), ("price", "f8"), ("reference", "f8"),
                 ("fee", "f8"), ("spread", "f8"), ("slippage", "f8"), ("notional", "f8")])  # fmt: skip
REJECTION = np.dtype([("bar", "i4"), ("stamp", "i8"), ("symbol", "i4"), ("lots", "i8"), ("reason", "i4")])
RULES = {
    "market": {"spread_ticks": 1.0, "same_close": False, "latency_bars": 1, "participation": (0.1, 0.2, 0.3)},
    "execution": {"use": "bar"},
    "sizing": {"use": "fixed_lots", "lots": 500},
}
SPACE = ActionSpace(exposures=(-1.0, -0.5, 0.0, 0.5, 1.0))


def make_lane(returns, *, learner=None, symbol="AAPL", start=100_000.0, step=DAY, ruined=False, trading=True, seed=0, first="2011-01-03"):
    """One account whose equity follows the given bar returns."""
    rng = np.random.default_rng(seed)
    n = len(returns)
    stamps = np.datetime64(first, "ns").astype(np.int64) + 21 * 3_600_000_000_000 + np.arange(n + 1, dtype=np.int64) * step
    equity = start * np.cumprod(np.concatenate(([1.0], 1.0 + np.asarray(returns))))
    actions = np.full(n + 1, -1, np.int32)
    exposure = np.zeros(n + 1)
    fills, rejections = np.zeros(0, FILL), np.zeros(0, REJECTION)
    if trading and n:
        actions[:-1] = np.repeat(rng.integers(0, SPACE.A, n // 5 + 1), 5)[:n]
        exposure[1:] = SPACE.exposure_A[actions[:-1]]
        lots = np.diff(np.round(exposure * 500)).astype(np.int64)
        at = np.flatnonzero(lots)
        fills = np.zeros(at.size, FILL)
        fills["bar"], fills["stamp"], fills["lots"] = at, stamps[at + 1], lots[at]
        fills["price"] = 200.0
        fills["notional"] = np.abs(lots[at]) * 200.0 + rng.normal(0, 30, at.size)
        fills["fee"], fills["spread"] = 1.0, 2.0
        fills["cause"][::7] = STOP
        rejections = np.zeros(min(3, n), REJECTION)
        rejections["reason"] = (1, 4, 1)[: rejections.size]
    costs = {"spread": float(fills["spread"].sum()), "slippage": 0.0, "fees": float(fills["fee"].sum()), "funding": 0.0}
    held = int(np.round(exposure[-1] * 500)) if n else 0
    return SimpleNamespace(
        symbol=symbol, symbols=(symbol,), open_positions={symbol: held} if held else {}, learner=learner,
        stamp_T=stamps, equity_T=np.rint(equity * 1e9).astype(np.int64),
        position_T=np.round(exposure * 500).astype(np.int64), exposure_T=exposure, action_T=actions, fills=fills, rejections=rejections,
        costs=costs, gross=float(equity[-1] - start + sum(costs.values())), ruined=ruined,
        open_position=held,
    )  # fmt: skip


def make_backtest(name, lanes, kind="policy", **changes):
    """A backtest result around accounts."""
    values = dict(
        name=name, kind=kind, split="test", lanes=tuple(lanes), learners=len({lane.learner for lane in lanes}), start_equity=100_000.0,
        periods_per_year=252.0, session="NYSE", action_space=SPACE if kind == "policy" else None, profile_hash="a1b2c3", data_hash="d4e5f6",
        command="bellmark demo --seed 1", warnings=("prices are adjusted for two splits",), cautions=(), rules=RULES,
    )  # fmt: skip
    return SimpleNamespace(**(values | changes))


def walk(n, seed, drift=0.0002, size=0.012):
    return np.random.default_rng(seed).normal(drift, size, n)


def make_rows(learners=4, epochs=30):
    rng = np.random.default_rng(9)
    return [
        {
            "schema_version": 1, "epoch": epoch, "step": epoch * 500, "learner": learner, "seed": learner + 1,
            "train_loss": 2.0 * float(np.exp(-epoch / 9)) + 0.1 * float(rng.random()), "grad_norm": 1.0 + float(rng.random()),
            "q_mean": 0.05 * epoch + 0.1 * float(rng.random()), "validation_sharpe": float(rng.normal(0.3, 0.4)) if epoch > 1 else None,
            "skipped_steps": 0,
        }
        for epoch in range(1, epochs + 1)
        for learner in range(learners)
    ]  # fmt: skip


def make_run(rows=None, seeds=(1, 2, 3, 4)):
    rows = make_rows() if rows is None else rows
    manifest = {"profile": "quickstart", "seeds": list(seeds), "device": "cpu", "versions": {"numpy": "2"},
                "build": {"blas": "haswell"}, "plugins": [{"kind": "loss", "name": "c51", "plugin": "builtin"}]}  # fmt: skip
    return SimpleNamespace(manifest=manifest, metric_rows=lambda: rows, name="quickstart-1")


def typical(n=503, learners=4, size=0.012, **options):
    """Four learners and four baselines."""
    scale = size / 0.012
    lanes = [make_lane(walk(n, k, 0.0002 * scale, size), learner=k, seed=k, **options) for k in range(learners)]
    rules = {"buy_and_hold": (11, 0.0007), "sma_cross": (12, 0.0003), "random": (13, -0.0002)}
    baselines = [
        make_backtest(name, [make_lane(walk(n, seed, drift * scale, size), seed=seed, **options)], "strategy")
        for name, (seed, drift) in rules.items()
    ]
    flat = make_backtest("flat", [make_lane(np.zeros(n), trading=False, **options)], "strategy")
    return [make_backtest("quickstart-1", lanes), *baselines, flat]


@pytest.fixture
def synthetic():
    """The builders, as one namespace."""
    return SimpleNamespace(lane=make_lane, backtest=make_backtest, walk=walk, rows=make_rows, run=make_run, typical=typical, space=SPACE)
