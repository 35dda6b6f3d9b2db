"""The twelve hooks of a plugin. Each returns component classes; all run once, while the catalog is built.

Example of a whole plugin:

    from typing import ClassVar
    from bellmark.component import Reward, component, setting
    from bellmark.hookspecs import hookimpl

    @component
    class ScaledProfit(Reward):
        \"\"\"Profit of the bar in units of `unit_currency`.\"\"\"
        name: ClassVar[str] = "scaled_profit"
        unit_currency: float = setting(100.0, "profit that counts as 1", gt=0.0, unit="currency")

        @staticmethod
        def reward(equity, previous_equity, unit_currency):
            return (equity - previous_equity) * 1e-9 / unit_currency

    @hookimpl
    def bellmark_rewards():
        return [ScaledProfit]
"""

from collections.abc import Iterable

import pluggy

from bellmark.component import (
    ActionMask,
    Dataset,
    Execution,
    Feature,
    Loss,
    Metric,
    Report,
    Reward,
    Sizing,
    Strategy,
    Tracker,
    Trainer,
)

HOOK_API = 1
hookspec = pluggy.HookspecMarker("bellmark")
hookimpl = pluggy.HookimplMarker("bellmark")


@hookspec
def bellmark_datasets() -> Iterable[type[Dataset]]:  # type: ignore[empty-body]
    """Sources of bars. Example: `return [MyReader]`, whose `read()` gives a list of (Bars, Instrument)."""


@hookspec
def bellmark_features() -> Iterable[type[Feature]]:  # type: ignore[empty-body]
    """Columns of the observation. Example: `return [Momentum]`, whose `row(t, close_T, window)` gives a float."""


@hookspec
def bellmark_rewards() -> Iterable[type[Reward]]:  # type: ignore[empty-body]
    """Terms of the reward. Example: `return [ScaledProfit]`, whose `reward(equity, previous_equity)` gives a float."""


@hookspec
def bellmark_action_masks() -> Iterable[type[ActionMask]]:  # type: ignore[empty-body]
    """Legal actions. Example: `return [LongOnly]`, whose `allowed(exposure)` gives `exposure >= 0.0`."""


@hookspec
def bellmark_sizings() -> Iterable[type[Sizing]]:  # type: ignore[empty-body]
    """From exposure to lots. Example: `return [OneLot]`, whose `target(exposure)` gives an int."""


@hookspec
def bellmark_executions() -> Iterable[type[Execution]]:  # type: ignore[empty-body]
    """Execution models. Example: `return [AtOpen]`, whose `fill(t, open_T, order_lots)` gives lots, reference, spread, slippage, reason."""


@hookspec
def bellmark_losses() -> Iterable[type[Loss]]:  # type: ignore[empty-body]
    """Losses. Example: `return [HuberLoss]` with `expected`, `target`, `loss_and_gradient` and `priority`."""


@hookspec
def bellmark_trainers() -> Iterable[type[Trainer]]:  # type: ignore[empty-body]
    """Algorithms. Example: `return [DeepQ]`, whose `train(assembly, run, resume, progress)` fills the run folder."""


@hookspec
def bellmark_strategies() -> Iterable[type[Strategy]]:  # type: ignore[empty-body]
    """Rules. Example: `return [AlwaysLong]`, whose `decide()` gives the exposure 1.0."""


@hookspec
def bellmark_metrics() -> Iterable[type[Metric]]:  # type: ignore[empty-body]
    """Numbers of a backtest. Example: `return [BestBar]`, whose `compute(curve)` gives `float(curve.returns.max())`."""


@hookspec
def bellmark_reports() -> Iterable[type[Report]]:  # type: ignore[empty-body]
    """Report writers. Example: `return [PlainText]`, whose `write(content, folder)` gives the path it wrote."""


@hookspec
def bellmark_trackers() -> Iterable[type[Tracker]]:  # type: ignore[empty-body]
    """Receivers of training statistics. Example: `return [Console]` with `start(run)`, `log(rows)` and `finish(status)`."""
