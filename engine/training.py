"""Training: builds the steps of a run, runs epochs, writes statistics and checkpoints, resumes to the same bits.

An iteration is one collect step and `updates_per_collect` updates; what happens when is a function of the counters in the control block
alone, so a run that stopped at any moment and resumed equals one that never stopped. An epoch is a number of updates; at its end come the
statistics (of the UPDATED network), validation, the best parameters of each learner, the rows of metrics.jsonl, and the checkpoint.
"""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellmark import backend, optimizer, replay
from bellmark.actions import ActionSpace
from bellmark.buffers import BufferRegistry
from bellmark.collector import Collector, Policy
from bellmark.component import plugin_function
from bellmark.control import Control
from bellmark.errors import GuardError, PluginError, RunError, UsageError
from bellmark.guard import findings
from bellmark.learning import LearnStep
from bellmark.losses import CompiledLoss
from bellmark.network import Network
from bellmark.stages import Step

Progress = Callable[[int, int, float | None], None]
PRIORITY_SCALE = 20.0  # bits after the point of a priority: errors from 1e-10 to 1e10 at alpha 0.6
SHARPE, EPOCH, STEP = range(3)  # fields of best_LE


@dataclass(frozen=True)
class Transitions:
    """A fixed set of V transitions a learner, by which a loss is measured; `terminated` ends the bootstrap."""

    observation_LVO: NDArray[np.float32]
    action_LV: NDArray[np.int32]
    reward_LV: NDArray[np.float32]
    terminated_LV: NDArray[np.uint8]
    next_observation_LVO: NDArray[np.float32]
    next_allowed_LVA: NDArray[np.uint8]


@dataclass(frozen=True)
class Validation:
    """What the greedy policies reached on the validation part: NaN where undefined. `transitions` may be None: then no val_loss."""

    sharpe_L: NDArray[np.float64]
    max_drawdown_L: NDArray[np.float64]
    transitions: Transitions | None = None


@dataclass(frozen=True)
class TrainingSettings:
    """The numbers of a training run, one name each; where they come from is the trainer's business."""

    epochs: int
    updates_per_epoch: int
    batch: int
    updates_per_collect: int
    capacity: int
    source: str
    control: dict[str, float]

    @property
    def updates(self) -> int:
        """Updates of the whole run."""
        return self.epochs * self.updates_per_epoch


@dataclass
class Training:
    """One training run over a registry of its own.

    environment, space, network, loss: what acts and learns. seeds: one a learner. fill(registry): writes the environment's tape, settings
    and lanes. validate(parameter_LP): the greedy policies on the validation part, or None.
    """

    environment: Any
    space: ActionSpace
    network: Network
    loss: CompiledLoss
    settings: TrainingSettings
    seeds: list[int]
    fill: Callable[[BufferRegistry], None]
    validate: Callable[[NDArray[np.float32]], Validation] | None = None
    plugins: dict[str, str] = field(default_factory=dict)
    checked: bool = False

    def __post_init__(self) -> None:
        backend.single_blas_thread()
        environment, settings, L = self.environment, self.settings, len(self.seeds)
        slots = replay.slots(settings.capacity, environment.N, int(settings.control["n_step"]))
        if settings.control["learning_starts"] > slots * environment.N:
            raise UsageError(
                f"replay.learning_starts: expected at most {slots * environment.N}, the records that fit whole steps of "
                f"{environment.N} lanes, found {int(settings.control['learning_starts'])}"
            )
        optimizer.check(*(settings.control[f"adam_{name}"] for name in ("beta1", "beta2", "epsilon")))
        plugin = self.plugins.get("loss", "")
        policy = Policy(self.network, self.space, self.loss, L, environment.N, plugin)
        collector = Collector(policy, environment, settings.source)
        learn = LearnStep(self.network, self.space, self.loss, L, settings.batch, environment.N, plugin)
        self.registry = registry = BufferRegistry()
        environment.declare(registry)
        collector.declare(registry, slots)
        learn.declare(registry)
        registry.declare("parameter_best_LP", "master_weight", (L, self.network.parameters))
        registry.declare("best_LE", "statistic", (L, 3))
        registry.allocate(checked=self.checked, poison=self.checked)
        for name in ("control_float_LC", "control_int_LC", "status_LC"):
            registry[name][:] = 0
        self.control = Control(registry)
        self.control["seed"] = self.seeds
        for name, value in settings.control.items():
            self.control[name] = value
        self.fill(registry)
        collector.fill(registry)
        learn.fill(registry, self.seeds)
        registry["parameter_best_LP"][:] = registry["parameter_LP"]
        registry["best_LE"][:] = (-np.inf, 0, 0)
        given = (*environment.given, *Collector.given, *LearnStep.given)
        self.collect = Step(registry, collector.stages(), given)
        self.learn = Step(registry, learn.stages(), given)
        self.evaluate = Step(registry, learn.evaluate_stages(), (*given, *LearnStep.drawn))
        self.act = Step(registry, policy.stages(explore=True)[:1], (*given, "observation_LNO"))
        self._skipped = {*learn.constants, *learn.scratch, *policy.scratch, "next_observation_LNO"}

    # -- the loop --------------------------------------------------------------------------------------------------------------

    @property
    def step(self) -> int:
        """Updates done."""
        return int(self.control["step"][0])

    @property
    def replay_size(self) -> int:
        """Records in each learner's replay."""
        return min(int(self.control["collect_step"][0]) * self.environment.N, self.registry.shape("replay_reward_LR")[1])

    def warm_up(self, stop: Callable[[], bool]) -> None:
        """Collects until `learning_starts` records are there."""
        while self.replay_size < int(self.control["learning_starts"][0]) and not stop():
            self.collect.run()

    def advance(self, limit: int, stop: Callable[[], bool]) -> None:
        """Iterations up to update `limit`. Stops only between iterations, never inside one."""
        every = self.settings.updates_per_collect
        step = self.step
        while step < limit and not stop():
            if step % every == 0:
                self.collect.run()
            count = min(every - step % every, limit - step)
            self.learn.run(count)
            step += count

    # -- statistics ------------------------------------------------------------------------------------------------------------

    def end_epoch(self) -> list[dict[str, Any]]:
        """The rows of the epoch that ends now; keeps the best parameters by validation Sharpe and clears the sums."""
        registry, control = self.registry, self.control
        epoch_LE = registry["epoch_LE"]
        count_L = epoch_LE[:, optimizer.UPDATES]
        with np.errstate(invalid="ignore", divide="ignore"):
            mean_LE = epoch_LE / count_L[:, None]
        q_LNA = self._joint_values()
        validation = self.validate(registry["parameter_LP"]) if self.validate is not None else None
        val_loss_L = self.validation_loss(validation.transitions) if validation and validation.transitions else None
        epoch = self.step // self.settings.updates_per_epoch
        if validation is not None:
            self._keep_best(validation.sharpe_L, epoch)
        else:
            self._keep_best(np.full(len(self.seeds), np.nan), epoch)
        ruined_LN = registry["ruined_lanes_LN"] if "ruined_lanes_LN" in registry else np.zeros((len(self.seeds), 1))
        rows = [
            {
                "epoch": epoch,
                "step": self.step,
                "learner": learner,
                "seed": self.seeds[learner],
                "train_loss": _number(mean_LE[learner, optimizer.LOSS_SUM]),
                "grad_norm": _number(mean_LE[learner, optimizer.NORM_SUM]),
                "td_error": _number(mean_LE[learner, optimizer.TD_SUM]),
                "q_mean": _number(q_LNA[learner].mean(dtype=np.float64)),
                "q_min": _number(q_LNA[learner].min()),
                "q_max": _number(q_LNA[learner].max()),
                "val_loss": _number(val_loss_L[learner]) if val_loss_L is not None else None,
                "validation_sharpe": _number(validation.sharpe_L[learner]) if validation else None,
                "validation_max_drawdown": _number(validation.max_drawdown_L[learner]) if validation else None,
                "ruined_lanes": int(ruined_LN[learner].sum()),
                "skipped_steps": int(control["skipped"][learner]),
                "epsilon": float(control["epsilon"][learner]),
                "learning_rate": float(control["learning_rate"][learner]),
                "replay_size": self.replay_size,
            }
            for learner in range(len(self.seeds))
        ]
        epoch_LE[:] = 0.0
        return rows

    def _joint_values(self) -> NDArray[np.float32]:
        self.act.run()
        joint = self.registry["acting_q_LND"][:, :, self.space.column_AK].mean(axis=-1, dtype=np.float32)
        return np.asarray(joint, np.float32)

    def validation_loss(self, transitions: Transitions) -> NDArray[np.float64]:
        """Mean loss of each learner over fixed transitions, by the kernels of the learn step, a batch at a time."""
        registry, B = self.registry, self.settings.batch
        legal_LVW = pack(transitions.next_allowed_LVA)
        discount_LV = np.where(transitions.terminated_LV != 0, 0.0, self.control["gamma"][:, None]).astype(np.float32)
        rows, total_L = transitions.action_LV.shape[1], np.zeros(len(self.seeds))
        for first in range(0, rows, B):
            taken = np.minimum(np.arange(first, first + B), rows - 1)  # the last batch repeats its last row; it is not counted
            registry["observation_LBO"][:] = transitions.observation_LVO[:, taken]
            registry["next_observation_LBO"][:] = transitions.next_observation_LVO[:, taken]
            registry["action_LB"][:] = transitions.action_LV[:, taken]
            registry["reward_LB"][:] = transitions.reward_LV[:, taken]
            registry["discount_LB"][:] = discount_LV[:, taken]
            registry["legal_LBW"][:] = legal_LVW[:, taken]
            registry["priority_LB"][:] = 1
            self.evaluate.run()
            total_L += registry["loss_LB"][:, : min(B, rows - first)].sum(axis=1, dtype=np.float64)
        return total_L / rows

    def _keep_best(self, sharpe_L: NDArray[np.float64], epoch: int) -> None:
        best_LE = self.registry["best_LE"]
        for learner, sharpe in enumerate(sharpe_L):
            value = -math.inf if math.isnan(sharpe) else float(sharpe)
            frozen = bool(self.control["frozen"][learner])
            if not frozen and (value > best_LE[learner, SHARPE] or value == best_LE[learner, SHARPE] == -math.inf):
                best_LE[learner] = (value, epoch, self.step)
                self.registry["parameter_best_LP"][learner] = self.registry["parameter_LP"][learner]

    # -- checkpoints -----------------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, NDArray[Any]]:
        """Every buffer that decides how the run goes on: all but the tape, tables that are written anew, and scratch."""
        return {
            name: self.registry[name]
            for name in self.registry.names()
            if name not in self._skipped and not name.endswith(("_ST", "_STF", "_KST")) and self.registry[name].size
        }

    def restore(self, arrays: dict[str, NDArray[Any]], where: str) -> None:
        """Puts a checkpoint back. Buffers that are missing, new or of another shape are refused."""
        state = self.state()
        for name in sorted({*state, *arrays}):
            mine = f"{state[name].dtype}{state[name].shape}" if name in state else "nothing"
            theirs = f"{arrays[name].dtype}{arrays[name].shape}" if name in arrays else "nothing"
            if mine != theirs:
                raise RunError(f"{where}: buffer '{name}': expected {mine}, found {theirs}")
        for name, array in state.items():
            array[:] = arrays[name]


def pack(allowed: NDArray[Any]) -> NDArray[np.uint64]:
    """Legal-action flags (..., A) as 64-bit words (..., W), as the replay keeps them."""
    actions = allowed.shape[-1]
    words = -(-actions // replay.WORD)
    bits = np.zeros((*allowed.shape[:-1], words * replay.WORD), np.uint64)
    bits[..., :actions] = allowed != 0
    shifts = np.arange(replay.WORD, dtype=np.uint64)
    return np.asarray((bits.reshape(*allowed.shape[:-1], words, replay.WORD) << shifts).sum(axis=-1, dtype=np.uint64))


class Interrupts:
    """Turns the first interrupt into a request to stop between iterations; a second one raises at once."""

    def __init__(self) -> None:
        self.asked = False
        self._former: Any = None

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._former = signal.signal(signal.SIGINT, self._ask)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._former is not None:
            signal.signal(signal.SIGINT, self._former)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


def run_training(training: Training, run: Any, *, resume: bool, progress: Progress | None = None, trackers: Any = (),
                 warn: Callable[[str], None] | None = None) -> None:  # fmt: skip
    """Trains to the end, or from where the newest checkpoint stands.

    Rows are written before the checkpoint of their epoch, so a kill at any moment loses nothing that `--resume` does not write again. An
    interrupt finishes the iteration, writes a checkpoint and raises KeyboardInterrupt. Frozen learners raise GuardError at the end.
    """
    settings = training.settings
    if resume:
        checkpoint = run.load_checkpoint()
        training.restore(checkpoint.arrays, str(checkpoint.path))
        epoch = int(checkpoint.metadata["epoch"])
        rows = [(row.get("epoch"), row.get("learner")) for row in run.metric_rows() if row["epoch"] <= epoch]
        if rows != [(past + 1, learner) for past in range(epoch) for learner in range(len(training.seeds))]:
            raise RunError(
                f"{run.path / 'metrics.jsonl'}: expected a row for each of {len(training.seeds)} learners and {epoch} epochs before the "
                f"checkpoint, found {len(rows)} rows; the file was changed"
            )
        run.truncate_metrics(epoch)
    for tracker in trackers:
        with plugin_function(tracker, "start"):
            tracker.start(run)
    status = "failed"
    try:
        with Interrupts() as interrupts:
            def stop() -> bool:
                return interrupts.asked or bool(np.all(training.control["frozen"] != 0))

            training.warm_up(stop)
            while training.step < settings.updates and not stop():
                _epoch(training, run, stop, progress, trackers)
            if interrupts.asked and training.step < settings.updates:
                _checkpoint(training, run)
                status = "interrupted"
                raise KeyboardInterrupt
            if training.step < settings.updates:
                _checkpoint(training, run)  # every learner is frozen
        found = findings(training.control, training.plugins)
        for finding in found:
            (warn or _to_stderr)(str(finding))
        for learner in np.flatnonzero(training.control["empty_masks"]):
            times = int(training.control["empty_masks"][learner])
            (warn or _to_stderr)(
                f"action masks: learner {learner} (seed {training.seeds[learner]}): no action was legal in {times} steps of its lanes; "
                "they held what they had"
            )
        if any(finding.frozen for finding in found):
            status = "guard stopped"
            raise GuardError("; ".join(str(finding) for finding in found if finding.frozen))
        status = "done"
    finally:
        for tracker in trackers:
            try:
                with plugin_function(tracker, "finish"):
                    tracker.finish(status)
            except PluginError as error:
                if status == "done":
                    raise
                (warn or _to_stderr)(str(error))  # what ended the run counts more


def _epoch(training: Training, run: Any, stop: Callable[[], bool], progress: Progress | None, trackers: Any) -> None:
    settings = training.settings
    start, first = time.perf_counter(), training.step
    end = (first // settings.updates_per_epoch + 1) * settings.updates_per_epoch
    while training.step < end and not stop():
        training.advance(min(end, training.step + max(settings.updates_per_collect, 50)), stop)
        if progress is not None:
            progress(training.step, settings.updates, _loss_so_far(training))
    if training.step < end:
        return
    trained = time.perf_counter() - start
    rows = training.end_epoch()
    run.write_metric_rows(rows)
    for tracker in trackers:
        with plugin_function(tracker, "log"):
            tracker.log(rows)
    _checkpoint(training, run)
    run.write_timing(
        {
            "epoch": end // settings.updates_per_epoch,
            "step": end,
            "train_seconds": trained,
            "seconds": time.perf_counter() - start,
            "steps_per_second": (end - first) / trained if trained > 0 else None,
            "learner_steps_per_second": (end - first) * len(training.seeds) / trained if trained > 0 else None,
        }
    )


def _checkpoint(training: Training, run: Any) -> None:
    settings = training.settings
    run.save_checkpoint(
        training.step,
        training.state(),
        {"epoch": training.step // settings.updates_per_epoch, "updates": settings.updates, "seeds": list(training.seeds)},
    )


def _loss_so_far(training: Training) -> float | None:
    sums = training.registry["epoch_LE"]
    count = sums[:, optimizer.UPDATES].sum()
    return float(sums[:, optimizer.LOSS_SUM].sum() / count) if count else None


def _number(value: Any) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None


def _to_stderr(message: str) -> None:
    print(f"warning: {message}", file=sys.stderr)
