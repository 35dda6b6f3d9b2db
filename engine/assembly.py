"""Assembly of a run: the profile's data, environment and trainer put together, with validation and the backtests of the result."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellmark import rng
from bellmark.actions import ActionSpace
from bellmark.backtester import PolicyRunner, policy_backtest, run_strategy
from bellmark.buffers import BufferRegistry
from bellmark.checkpoints import Checkpoint
from bellmark.component import Strategy, plugin_function
from bellmark.environment import MarketEnvironment
from bellmark.errors import RunError
from bellmark.evaluation.curve import curve_of_lanes
from bellmark.evaluation.drawdown import drawdown_series
from bellmark.features import Normalisation
from bellmark.host import Host, host
from bellmark.market_data import MarketData, load_market_data, policy_warnings
from bellmark.profile import Profile
from bellmark.results import Backtest, Window
from bellmark.run import Run
from bellmark.stages import Stage, Step
from bellmark.tape import Tape
from bellmark.training import Transitions, Validation

_MOST_TRANSITIONS = 4096  # of a learner, by which the validation loss is measured


@dataclass(frozen=True)
class Assembly:
    """Everything that a trainer needs: profile, environment, action space, `fill`, `validation` and who brought what."""

    profile: Profile
    host: Host
    data: MarketData

    @property
    def tape(self) -> Tape:
        """The compiled bars."""
        return self.data.tape

    @property
    def action_space(self) -> ActionSpace:
        """The actions of the run."""
        return self.data.space

    @property
    def learners(self) -> int:
        """L."""
        return int(self.profile.learners.count)

    @property
    def seeds(self) -> list[int]:
        """Philox seeds of the learners."""
        return [self.profile.learners.seed + learner for learner in range(self.learners)]

    @cached_property
    def environment(self) -> MarketEnvironment:
        """The lanes that collect."""
        settings = self.profile.environment
        return self.data.environment(self.data.parts, self.learners, settings.lanes, settings.episode_bars)

    @cached_property
    def normalisation(self) -> Normalisation:
        """Mean and scale of the features over each learner's training window."""
        return self.data.normalisation(self.data.windows(self.learners))

    @cached_property
    def plugins(self) -> dict[str, str]:
        """Who brought what the guard may have to name: the loss, the rewards, the features."""
        places: dict[str, list[str]] = {}
        kinds = {"losses": ("loss", "loss"), "rewards": ("reward", "reward"), "features": ("feature", "features")}
        for place, use, _ in self.profile.components():
            kind, guarded = kinds.get(place.split(".")[0], ("", ""))
            if kind:
                plugin = self.host.entry(kind, use).plugin
                names = places.setdefault(guarded, [])
                if plugin not in names:
                    names.append(plugin)
        return {guarded: ", ".join(names) for guarded, names in places.items()}

    def fill(self, registry: BufferRegistry) -> None:
        """Writes the tape, the settings and the windows, and begins the first episode of every lane."""
        environment = self.environment
        environment.fill(registry, self.normalisation)
        environment.set_windows(registry, self.data.windows(self.learners))
        for name in ("episode_LN", "ruined_lanes_LN", "next_bar_LN", "terminated_LN", "next_portfolio_LNP", "next_allowed_LNA"):
            registry[name][:] = 0
        for name in (*environment.account_buffers, "symbol_LN", "bar_LN", "end_bar_LN", "portfolio_LNP", "allowed_LNA"):
            registry[name][:] = 0
        registry["truncated_LN"][:] = 1
        Step(registry, environment.advance_stages(), registry.names()).run()

    @cached_property
    def _validator(self) -> PolicyRunner:
        return self._runner("validation")

    @cached_property
    def _transitions(self) -> Transitions:
        return random_transitions(self.data, "validation", self.normalisation, self.seeds)

    def _runner(self, split: str, data: MarketData | None = None, windows: Sequence[Window] | None = None) -> PolicyRunner:
        def make(lanes: int) -> Any:
            return self.profile.trainer.policy(self.profile, self.data.space, self.environment.O, self.learners, lanes)

        return PolicyRunner(data or self.data, split, self.learners, self.normalisation, make, windows=windows)

    def validation(self, parameter_LP: NDArray[np.float32]) -> Validation:
        """The greedy policies over the validation part, and a fixed set of its transitions under random legal actions."""
        runner = self._validator
        runner.registry["parameter_LP"][:] = parameter_LP
        lanes = runner.results(runner.run())
        sharpe_L, drawdown_L = np.full(self.learners, np.nan), np.full(self.learners, np.nan)
        sharpe_ratio = self.host.get("metric", "sharpe_ratio")()
        for learner in range(self.learners):
            curve = curve_of_lanes([lane for lane in lanes if lane.learner == learner], self.data.periods_per_year)
            value = sharpe_ratio.compute(curve)  # type: ignore[attr-defined]
            sharpe_L[learner] = value if isinstance(value, float) else np.nan
            drawdown_L[learner] = float(drawdown_series(curve.equity).min())
        return Validation(sharpe_L, drawdown_L, self._transitions)

    def train(self, run: Run, *, resume: bool = False, progress: Callable[..., None] | None = None) -> None:
        """Trains every learner into the run folder."""
        with plugin_function(self.profile.trainer, "train"):
            self.profile.trainer.train(self, run, resume=resume, progress=progress)

    def backtest(self, run: Run, split: str = "test", keep_values: bool = False) -> Backtest:
        """The policies of a run, each learner with its best parameters by validation, over one part of the data.

        keep_values: the value and legality of each action at each bar stay in the result.
        """
        runner, checkpoint = self.trained(run, split)
        record = runner.run(keep_values=keep_values)
        command = f"bellmark backtest {run.name}" + ("" if split == "test" else f" --split {split}")
        result = policy_backtest(self.data, runner, record, run.name, split, command, checkpoint.step)
        return replace(result, warnings=(*result.warnings, *policy_warnings(self.data.settings)))

    def trained(
        self, run: Run, split: str, data: MarketData | None = None, windows: Sequence[Window] | None = None
    ) -> tuple[PolicyRunner, Checkpoint]:
        """Lanes on which the policies of a run act with their best parameters by validation, and the checkpoint that holds these.

        On other bars than those of the training, parts and normalisation would be others: test could hold bars that it was trained on.
        `data`: to act on other data, under this run's normalisation; `windows`: on other bars than those of the part.
        """
        trained_on = run.manifest.get("data_hash", self.tape.content_hash)
        if trained_on != self.tape.content_hash:
            found = self.tape.content_hash[:12]
            raise RunError(f"{run.path}: its data have changed since it was trained: expected hash {trained_on[:12]}, found {found}")
        checkpoint = run.load_checkpoint()
        runner = self._runner(split, data, windows)
        best_LP, parameter_LP = checkpoint.arrays.get("parameter_best_LP"), runner.registry["parameter_LP"]
        if best_LP is None or best_LP.shape != parameter_LP.shape:
            shape = "nothing" if best_LP is None else best_LP.shape
            raise RunError(f"{checkpoint.path}: buffer 'parameter_best_LP': expected {parameter_LP.shape}, found {shape}")
        parameter_LP[:] = best_LP
        return runner, checkpoint


def assemble(profile: Profile, plugins: Host) -> Assembly:
    """Reads the data of a profile and resolves every component. Errors name the place in the profile."""
    return Assembly(profile, plugins, load_market_data(profile, plugins))


def backtest_run(run: Run, split: str = "test", keep_values: bool = False) -> Backtest:
    """The policies of a run over one part of its data."""
    return assemble(run.profile, host()).backtest(run, split, keep_values)


def backtest_strategy(strategy: Strategy, profile: Profile, split: str = "test") -> Backtest:
    """A rule strategy on the data and market of a profile."""
    data = load_market_data(profile, host())
    changes = profile.command_changes()
    parts = ["bellmark", "backtest", strategy.name, "--profile", profile.name, *changes, *(() if split == "test" else ("--split", split))]
    command = shlex.join(parts)
    return run_strategy(data, strategy, split, host().plugin_of(type(strategy)), command)


class UniformRandom:
    """Random legal actions, each equally likely, from Philox (learner seed, ACTION) at (lane, bar); `noop` where none is legal."""

    given: tuple[str, ...] = ()

    def __init__(self, seeds: list[int], noop: int) -> None:
        self.seeds, self.noop = seeds, noop

    def declare(self, registry: BufferRegistry) -> None:
        """Nothing beyond the environment's buffers."""

    def fill(self, registry: BufferRegistry) -> None:
        """Nothing."""

    def stages(self, *, explore: bool) -> list[Stage]:
        """One launch."""
        reads = ("allowed_LNA", "bar_LN")
        return [Stage("uniform_random", self._launch, (*reads, "action_LN"), reads, ("action_LN",))]

    def _launch(self, allowed_LNA: Any, bar_LN: Any, action_LN: Any) -> None:
        lanes = np.arange(bar_LN.shape[1], dtype=np.uint64)
        for learner, seed in enumerate(self.seeds):
            word_N = rng.words(seed, rng.STREAM_ACTION, lanes, bar_LN[learner].astype(np.uint64), 1)[0]
            count_N = np.maximum(allowed_LNA[learner].sum(axis=1), 1).astype(np.uint64)
            rank_N = ((word_N * count_N) >> np.uint64(32)).astype(np.int64)
            order_NA = np.cumsum(allowed_LNA[learner], axis=1) - 1
            hit_NA = (order_NA == rank_N[:, None]) & (allowed_LNA[learner] != 0)
            action_LN[learner] = np.where(hit_NA.any(axis=1), np.argmax(hit_NA, axis=1), self.noop)


def random_transitions(data: MarketData, split: str, normalisation: Normalisation, seeds: list[int]) -> Transitions:
    """At most 4096 transitions a learner under random legal actions, evenly spread over one part of the data.

    A lane that is ruined stops; its remaining places repeat transitions of the lanes that go on.
    """
    runner = PolicyRunner(data, split, len(seeds), normalisation, lambda lanes: UniformRandom(seeds, data.space.noop))
    registry, environment = runner.registry, runner.environment
    observe_next = Step(registry, environment.observe_next_stages(), registry.names())
    every = -(-runner.bars * environment.N // _MOST_TRANSITIONS)
    kept: list[tuple[NDArray[Any], ...]] = []
    names = ("observation_LNO", "action_LN", "reward_LN", "terminated_LN", "next_observation_LNO", "next_allowed_LNA")

    def keep(k: int) -> None:
        if k % every:
            return
        observe_next.run()
        moved_LN = registry["next_bar_LN"] > registry["bar_LN"]
        kept.append((moved_LN, *(registry[name].copy() for name in names)))

    runner.run(keep)
    moved_LV = np.concatenate([part[0] for part in kept], axis=1)
    rows = int(moved_LV.sum(axis=1).max())
    taken = [np.resize(np.flatnonzero(moved_V), rows) for moved_V in moved_LV]
    joined = [np.concatenate([part[1 + place] for part in kept], axis=1) for place in range(len(names))]
    return Transitions(*(np.stack([array[learner][taken[learner]] for learner in range(len(seeds))]) for array in joined))
