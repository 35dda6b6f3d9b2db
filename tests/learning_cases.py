"""A training run on the small signal environment, for tests of learning."""

from types import SimpleNamespace

import numpy as np

from bellmark import optimizer, replay, settings
from bellmark.actions import ActionSpace
from bellmark.control import FLOAT_FIELDS, INT_FIELDS, STATUS_FIELDS
from bellmark.plugins.losses.c51 import C51
from bellmark.plugins.losses.mse import MeanSquaredError
from bellmark.plugins.trainers.dqn import DQN
from bellmark.testing import SignalEnvironment

LOSSES = {"c51": C51(num_atoms=21, v_min=-3.0, v_max=3.0), "mse": MeanSquaredError()}


def factored():
    """A branching action space: 3 x 2 x 2 actions, 3 branches."""
    return ActionSpace((-1.0, 0.0, 1.0), ("market", "limit"), ("patient", "normal"))


def training(loss="c51", learners=2, lanes=8, seed=1, seeds=None, hidden=(32, 24), activation="relu", space=None, source="tape",
             validate=None, masked=False, checked=True, plugins=None, capacity=4096, n_step=3, alpha=0.6, dueling=True, learning_rate=1e-3,
             observation=7, **trainer):  # fmt: skip
    """A Training over the signal environment; `trainer` are settings of `dqn`."""
    space = space or factored()
    seeds = seeds or [seed + learner for learner in range(learners)]
    environment = SignalEnvironment(space, len(seeds), lanes, market=observation - 2, masked=masked)
    given = {"epochs": 2, "updates_per_epoch": 40, "batch": 48, "gamma": 0.5, "epsilon_updates": 60, "tau": 0.01, "skip_limit": 3}
    dqn = DQN(**(given | trainer))
    profile = SimpleNamespace(
        network=settings.NetworkSettings(hidden=hidden, activation=activation, dueling=dueling),
        replay=settings.ReplaySettings(capacity=capacity, learning_starts=min(200, capacity), source=source, n_step=n_step, alpha=alpha),
        optimizer=settings.OptimizerSettings(learning_rate=learning_rate),
        losses={"main": LOSSES[loss] if isinstance(loss, str) else loss},
        learners=SimpleNamespace(seed=seeds[0], count=len(seeds)),
        trackers={},
    )
    assembly = SimpleNamespace(
        profile=profile, environment=environment, action_space=space, fill=environment.fill, validation=validate, plugins=plugins or {}
    )
    made = dqn.training(assembly, checked=checked)
    made.control["seed"] = made.seeds[:] = seeds  # any seeds, not only consecutive ones
    made.network.initialise(made.registry["parameter_LP"], seeds)
    for name in ("target_LP", "parameter_best_LP"):
        made.registry[name][:] = made.registry["parameter_LP"]
    return made


def started(updates=10, **options):
    """A training run after its warm-up and some updates."""
    made = training(**options)
    made.warm_up(never)
    made.advance(updates, never)
    return made


def never():
    return False


def copy_state(made):
    return {name: array.copy() for name, array in made.state().items()}


def differing(first, second, leave=()):
    """The names of buffers whose bits differ."""
    return [name for name in first if name not in leave and first[name].tobytes() != second[name].tobytes()]


class MemoryRun:
    """A run that keeps its rows and checkpoints in memory."""

    def __init__(self):
        self.rows, self.timing, self.saved = [], [], {}

    def write_metric_rows(self, rows):
        self.rows += rows

    def write_timing(self, row):
        self.timing.append(row)

    def save_checkpoint(self, step, arrays, metadata):
        self.saved[step] = ({name: array.copy() for name, array in arrays.items()}, dict(metadata))

    def load_checkpoint(self):
        step = max(self.saved)
        arrays, metadata = self.saved[step]
        return SimpleNamespace(step=step, arrays=arrays, metadata=metadata, path=f"step-{step}")

    def metric_rows(self):
        return list(self.rows)

    def truncate_metrics(self, epoch):
        self.rows = [row for row in self.rows if row["epoch"] <= epoch]


def flat_batch(rows, columns, outputs, branches=1):
    """Empty arrays that a row function writes: (gradient_BDZ, target_BKZ, work_BZ, q_BD)."""
    return (
        np.zeros((rows, columns, outputs), np.float32),
        np.full((rows, branches, outputs), np.nan, np.float32),
        np.full((rows, max(outputs, 1)), np.nan, np.float32),
        np.full((rows, columns), np.nan, np.float32),
    )


def f32(array):
    return np.ascontiguousarray(array, dtype=np.float32)


def tree_of(leaves):
    table = replay.levels(len(leaves))
    tree = np.zeros((1, int(table[-1].sum())), np.uint64)
    for index, leaf in enumerate(leaves):
        replay.set_leaf(tree, table, 0, index, np.uint64(leaf))
    return tree, table


class OneLearner:
    """The kernels of the optimizer on one learner of any number of parameters."""

    def __init__(self, parameter, lr, beta1=0.9, beta2=0.999, epsilon=1e-8, tau=0.0, max_norm=0.0):
        self.parameter, self.target = f32(parameter)[None].copy(), f32(parameter)[None].copy()
        self.m, self.v = np.zeros_like(self.parameter), np.zeros_like(self.parameter)
        values = {"learning_rate": lr, "adam_beta1": beta1, "adam_beta2": beta2, "adam_epsilon": epsilon, "tau": tau}
        values["max_grad_norm"] = max_norm
        self.floats = np.array([[values.get(name, 0.0) for name in FLOAT_FIELDS]])
        self.ints = np.zeros((1, len(INT_FIELDS)), np.int64)
        self.status = np.zeros((1, len(STATUS_FIELDS)), np.int64)
        self.verdict, self.update = np.zeros(1, np.int64), np.zeros((1, optimizer.UPDATE_FIELDS), np.float32)
        self.norm = np.zeros(1)

    def step(self, gradient):
        gradient = f32(gradient)[None]
        padded = np.zeros(-(-gradient.size // 8) * 8, np.float32)
        padded[: gradient.size] = gradient[0]
        square = np.array([[optimizer.square_sum(padded, 0, padded.size)]])
        optimizer.verdict(np.zeros((1, 1), np.int64), np.zeros((1, 1), np.int64), square, self.floats, self.ints, self.status,
                          self.verdict, self.update, self.norm)  # fmt: skip
        optimizer.update(gradient, self.update, self.parameter, self.m, self.v, self.target, np.zeros((1, 1), np.int64))
        self.ints[0, INT_FIELDS.index("adam_step")] += int(self.update[0, optimizer.OK])


def uses_double(compiled):
    """Whether the machine-independent code of a compiled function, without its Python wrapper, holds a double."""
    for signature in compiled.signatures:
        for body in compiled.inspect_llvm(signature).split("\ndefine ")[1:]:
            head, body = body.split("\n", 1)
            if "cpython" not in head and "cfunc" not in head and "double" in head + body.split("\n}")[0]:
                return True
    return False
