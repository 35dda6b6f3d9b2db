"""The learn step: sample, gather and forward; loss and backward; weight gradients; verdict; Adam and target; priorities and counters.

Seven launches over registry buffers. The three large ones run in parallel over (learner, tile of rows), (learner, block of weights) and
(learner, chunk of parameters). Everything that decides a bit is cut by fixed sizes, never by the number of threads or of learners.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import prange

from bellmark import backend, losses, network, optimizer, policy, replay
from bellmark.actions import ActionSpace
from bellmark.buffers import BufferRegistry
from bellmark.control import FLOAT, INT
from bellmark.guard import BIT, all_finite
from bellmark.losses import CompiledLoss
from bellmark.network import BIAS, STRIDE, Network, combine, forward_tile, gradient_block, tile_rows
from bellmark.optimizer import square_sum
from bellmark.replay import gather_row, n_step_return, sample_record, total_of
from bellmark.stages import Stage

_GAMMA, _N_STEP, _COLLECT = FLOAT["gamma"], INT["n_step"], INT["collect_step"]
_OBSERVATION, _NEXT_OBSERVATION = BIT["observation_LBO"], BIT["next_observation_LBO"]
_LOGIT, _NEXT_LOGIT, _TARGET_LOGIT = BIT["logit_LBDZ"], BIT["next_logit_LBDZ"], BIT["target_logit_LBDZ"]
_EMPTY_REPLAY, _GRADIENT = BIT["replay_priority_LX"], BIT["gradient_LP"]
_NONE = np.uint64(0)
_ONE = np.uint64(1)


@backend.compile(parallel=True)
def sample(replay_symbol_LR, replay_bar_LR, replay_next_bar_LR, replay_action_LR, replay_reward_LR, replay_terminated_LR,
           replay_truncated_LR, replay_portfolio_LRP, replay_next_portfolio_LRP, replay_legal_LRW, replay_observation_LRO,
           replay_next_observation_LRO, replay_priority_LX, replay_level_VE, feature_STF, mean_LF, scale_LF, control_float_LC,
           control_int_LC, layout_YE, parameter_LP, target_LP, branch_start_K, branch_size_K, dueling, lanes, draw,
           index_LB, priority_LB, action_LB, legal_LBW, reward_LB, discount_LB, observation_LBO, next_observation_LBO,
           before_LBX, after_LBX, head_LBU, logit_LBDZ, next_before_LBX, next_after_LBX, next_head_LBU, next_logit_LBDZ,
           target_before_LBX, target_after_LBX, target_head_LBU, target_logit_LBDZ, row_guard_LB):  # fmt: skip
    """Draws records, gathers both observations and n-step returns, and runs online(s), online(s') and target(s').

    With draw = 0 it takes the batch that is in the buffers and only runs the networks on it.
    """
    learners, batch, columns, outputs = logit_LBDZ.shape
    rows, units, head, observed = learners * batch, before_LBX.shape[2], head_LBU.shape[2], observation_LBO.shape[2]
    observation_RO, next_observation_RO = observation_LBO.reshape(rows, observed), next_observation_LBO.reshape(rows, observed)
    before_RX, after_RX = before_LBX.reshape(rows, units), after_LBX.reshape(rows, units)
    next_before_RX, next_after_RX = next_before_LBX.reshape(rows, units), next_after_LBX.reshape(rows, units)
    target_before_RX, target_after_RX = target_before_LBX.reshape(rows, units), target_after_LBX.reshape(rows, units)
    head_RU, next_head_RU = head_LBU.reshape(rows, head), next_head_LBU.reshape(rows, head)
    target_head_RU = target_head_LBU.reshape(rows, head)
    logit_RDZ, next_logit_RDZ = logit_LBDZ.reshape(rows, columns, outputs), next_logit_LBDZ.reshape(rows, columns, outputs)
    target_logit_RDZ = target_logit_LBDZ.reshape(rows, columns, outputs)
    tile = tile_rows(batch)
    tiles, slots = (batch + tile - 1) // tile, replay_reward_LR.shape[1] // lanes
    for task in prange(learners * tiles):
        learner = task // tiles
        start = learner * batch
        first, last = start + task % tiles * tile, min(start + task % tiles * tile + tile, start + batch)
        empty = draw != 0 and total_of(replay_priority_LX, learner) == _NONE
        newest = (control_int_LC[learner, _COLLECT] - 1) % slots
        for row in range(first, last if draw else first):
            b = row - start
            index = np.int64(0)
            if not empty:
                index = sample_record(replay_priority_LX, replay_level_VE, control_int_LC, learner, b, batch)
            total, discount, end = n_step_return(
                replay_reward_LR, replay_terminated_LR, replay_truncated_LR, replay_priority_LX, learner, index, lanes, newest,
                control_int_LC[learner, _N_STEP], control_float_LC[learner, _GAMMA],
            )  # fmt: skip
            index_LB[learner, b] = index
            priority_LB[learner, b] = max(replay_priority_LX[learner, index], _ONE)
            action_LB[learner, b] = replay_action_LR[learner, index]
            reward_LB[learner, b] = total
            discount_LB[learner, b] = discount
            for word in range(legal_LBW.shape[2]):
                legal_LBW[learner, b, word] = replay_legal_LRW[learner, end, word]
            gather_row(learner, index, end, row, feature_STF, mean_LF, scale_LF, replay_symbol_LR, replay_bar_LR, replay_next_bar_LR,
                       replay_portfolio_LRP, replay_next_portfolio_LRP, replay_observation_LRO, replay_next_observation_LRO,
                       observation_RO, next_observation_RO)  # fmt: skip
        forward_tile(layout_YE, parameter_LP, learner, observation_RO, before_RX, after_RX, head_RU, first, last)
        forward_tile(layout_YE, parameter_LP, learner, next_observation_RO, next_before_RX, next_after_RX, next_head_RU, first, last)
        forward_tile(layout_YE, target_LP, learner, next_observation_RO, target_before_RX, target_after_RX, target_head_RU, first, last)
        for row in range(first, last):
            combine(head_RU, row, dueling, branch_start_K, branch_size_K, logit_RDZ)
            combine(next_head_RU, row, dueling, branch_start_K, branch_size_K, next_logit_RDZ)
            combine(target_head_RU, row, dueling, branch_start_K, branch_size_K, target_logit_RDZ)
            found = _EMPTY_REPLAY if empty else np.int64(0)
            if not all_finite(observation_RO[row].view(np.int32)):
                found |= _OBSERVATION
            if not all_finite(next_observation_RO[row].view(np.int32)):
                found |= _NEXT_OBSERVATION
            if not all_finite(logit_RDZ[row].reshape(columns * outputs).view(np.int32)):
                found |= _LOGIT
            if not all_finite(next_logit_RDZ[row].reshape(columns * outputs).view(np.int32)):
                found |= _NEXT_LOGIT
            if not all_finite(target_logit_RDZ[row].reshape(columns * outputs).view(np.int32)):
                found |= _TARGET_LOGIT
            row_guard_LB[learner, row - start] = found


@backend.compile(parallel=True)
def gradient(layout_YE, block_GE, observation_LBO, after_LBX, head_gradient_LBU, delta_LBX, gradient_LP, block_square_LG, block_guard_LG):
    """dL/dW and dL/db of every layer in fixed blocks of weight rows, the sum of squares of each block, and what is not finite."""
    learners, batch, units = delta_LBX.shape
    rows = learners * batch
    observation_RO, after_RX = observation_LBO.reshape(rows, observation_LBO.shape[2]), after_LBX.reshape(rows, units)
    delta_RX, head_gradient_RU = delta_LBX.reshape(rows, units), head_gradient_LBU.reshape(rows, head_gradient_LBU.shape[2])
    blocks = block_GE.shape[0]
    for task in prange(learners * blocks):
        learner, block = task // blocks, task % blocks
        first, last = gradient_block(layout_YE, block_GE, block, learner, batch, observation_RO, after_RX, head_gradient_RU, delta_RX,
                                     gradient_LP)  # fmt: skip
        row = gradient_LP[learner]
        square = square_sum(row, first, last)
        finite = all_finite(row[first:last].view(np.int32))
        if block_GE[block, 1] == 0:
            layer = block_GE[block, 0]
            bias, stride = layout_YE[layer, BIAS], layout_YE[layer, STRIDE]
            square += square_sum(row, bias, bias + stride)
            finite = finite and all_finite(row[bias : bias + stride].view(np.int32))
        block_square_LG[learner, block] = square
        block_guard_LG[learner, block] = np.int64(0) if finite else _GRADIENT


@dataclass(frozen=True)
class LearnStep:
    """The learn step of a run: its shapes, its buffers and its stages."""

    network: Network
    space: ActionSpace
    loss: CompiledLoss
    learners: int
    batch: int
    lanes: int
    plugin: str = ""

    def declare(self, registry: BufferRegistry) -> None:
        """Declares everything that learning needs, beside the replay, the tape's features and the control block."""
        L, B = self.learners, self.batch
        network.declare_parameters(registry, self.network, L)
        network.declare_head(registry, self.space)
        optimizer.declare(registry, self.network, L, B)
        self.loss.declare(registry, L)
        losses.declare_rows(registry, self.space, self.network.outputs, L, B)
        for prefix in ("", "next_", "target_"):
            network.declare_pass(registry, self.network, prefix, L, B, "B")
        for prefix in ("", "next_"):
            registry.declare(f"{prefix}observation_LBO", "observation", (L, B, self.network.observation))
        registry.declare("head_gradient_LBU", "gradient", (L, B, self.network.head))
        registry.declare("delta_LBX", "gradient", (L, B, self.network.units))
        for name in ("index", "action"):
            registry.declare(f"{name}_LB", "index", (L, B))
        for name in ("priority", "reward", "discount"):
            registry.declare(f"{name}_LB", name, (L, B))
        registry.declare("legal_LBW", "legal_bits", (L, B, -(-self.space.A // replay.WORD)))

    def fill(self, registry: BufferRegistry, seeds: list[int]) -> None:
        """Writes tables, settings, initial parameters, and zeros where a value is read before it is written."""
        network.fill_tables(registry, self.network, self.space)
        registry["block_GE"][:] = self.network.blocks()
        self.loss.fill(registry)
        self.network.initialise(registry["parameter_LP"], seeds)
        registry["target_LP"][:] = registry["parameter_LP"]
        for name in ("adam_m_LP", "adam_v_LP", "epoch_LE"):
            registry[name][:] = 0

    given = (
        "parameter_LP", "target_LP", "adam_m_LP", "adam_v_LP", "epoch_LE", "layout_YE", "block_GE", "head_column_AK", "branch_start_K",
        "branch_size_K", "loss_float_LS", "loss_int_LS", "control_float_LC", "control_int_LC", "status_LC", "feature_STF", "mean_LF",
        "scale_LF", *replay.RECORD, *replay.TREE,
    )  # fmt: skip

    @property
    def constants(self) -> tuple[str, ...]:
        """Buffers that `fill` writes again: no part of a checkpoint."""
        return (*network.TABLES, "block_GE", "loss_float_LS", "loss_int_LS", "replay_level_VE")

    @property
    def scratch(self) -> tuple[str, ...]:
        """Buffers that every learn step writes before it reads them: no part of a checkpoint."""
        written = {name for stage in self.stages() for name in stage.writes}
        return tuple(sorted(written - set(self.given)))

    drawn = ("index_LB", "priority_LB", "action_LB", "legal_LBW", "reward_LB", "discount_LB", "observation_LBO", "next_observation_LBO")

    def evaluate_stages(self) -> list[Stage]:
        """Loss of the batch that the host has put in the buffers `drawn`, under the network as it is; nothing is updated."""
        return self.stages(draw=False)[1:3]

    def stages(self, *, draw: bool = True) -> list[Stage]:
        """The seven launches."""
        dueling = int(self.network.dueling)
        record = tuple(name for name in replay.RECORD if name != "replay_propensity_LR")
        tape, control = ("feature_STF", "mean_LF", "scale_LF"), ("control_float_LC", "control_int_LC")
        shape, weights = ("layout_YE", "parameter_LP"), ("branch_start_K", "branch_size_K")
        passes = tuple(
            f"{prefix}{name}" for prefix in ("", "next_", "target_") for name in ("before_LBX", "after_LBX", "head_LBU", "logit_LBDZ")
        )
        rows = (
            "next_q_LBD", "next_action_LB", "column_LBK", "next_column_LBK", "target_LBKZ", "work_LBZ", "weight_LB", "loss_LB",
            "td_error_LB", "gradient_LBDZ", "head_gradient_LBU", "delta_LBX",
        )  # fmt: skip
        return [
            Stage("schedule", policy.schedule, control, control, ("control_float_LC",)),
            _stage("sample", sample, (*record, *replay.TREE[:2], *tape, *control, *shape, "target_LP", *weights),
                   (dueling, self.lanes, int(draw)), (*self.drawn, *passes, "row_guard_LB")),
            _stage("backward", self.loss.backward,
                   (*shape, "head_column_AK", *weights, "loss_float_LS", "loss_int_LS", "control_float_LC"), (dueling, self.space.noop),
                   (*rows, "row_guard_LB"), between=("logit_LBDZ", "next_logit_LBDZ", "target_logit_LBDZ", "before_LBX", "after_LBX",
                   "action_LB", "legal_LBW", "reward_LB", "discount_LB", "priority_LB"), update=("row_guard_LB",), plugin=self.plugin),
            _stage("gradient", gradient, ("layout_YE", "block_GE", "observation_LBO", "after_LBX", "head_gradient_LBU", "delta_LBX"), (),
                   ("gradient_LP", "block_square_LG", "block_guard_LG")),
            _stage("verdict", optimizer.verdict, ("row_guard_LB", "block_guard_LG", "block_square_LG", *control, "status_LC"), (),
                   ("verdict_L", "update_LE", "gradient_norm_L")),
            _stage("update", optimizer.update, ("gradient_LP", "update_LE"), (),
                   ("parameter_LP", "adam_m_LP", "adam_v_LP", "target_LP", "chunk_guard_LG"),
                   update=("parameter_LP", "adam_m_LP", "adam_v_LP", "target_LP")),
            _stage("finish", optimizer.finish, ("verdict_L", "update_LE", "chunk_guard_LG", "gradient_norm_L", "index_LB", "loss_LB",
                   "td_error_LB", "weight_LB"), (), ("replay_priority_LX", "replay_level_VE", "replay_largest_L", *control, "status_LC",
                   "epoch_LE"), update=("replay_priority_LX", "replay_level_VE", "replay_largest_L", *control, "status_LC", "epoch_LE")),
        ]  # fmt: skip


def _stage(name: str, launch: object, reads: tuple[str, ...], numbers: tuple[int, ...], writes: tuple[str, ...],
           between: tuple[str, ...] = (), update: tuple[str, ...] = (), plugin: str = "") -> Stage:  # fmt: skip
    arguments = (*reads, *numbers, *between, *writes)
    return Stage(name, launch, arguments, tuple(dict.fromkeys((*reads, *between, *update))), writes, plugin)  # type: ignore[arg-type]
