"""Adam, the target network's moving average, the gradient norm and the verdict that every writer of a training step obeys.

Adam (Kingma and Ba 2015), with the bias corrections from the same beta as the averages, as -expm1(t log beta) in float64:

    m += (1 - beta1) (g - m)         v += (1 - beta2) (g^2 - v)
    p -= lr (m / c1) / (sqrt(v / c2) + eps)        c = 1 - beta^t
    target += tau (p - target)

The averages take 1 - beta, computed in float64, because beta itself is lost in float32: 1 - 0.999f is off by 1.3e-5.

The global norm is a sum of squares a block in float64, added in the order of blocks, so its bits do not depend on threads; clipping scales
by min(1, max_norm / (norm + 1e-6)), and max_norm = 0 turns it off. If anything in the step was not finite, nothing is written at all and
Adam's t stays. Everything a learner's update needs is computed once (`verdict`) and stored as float32 in `update_LE`.
"""

from __future__ import annotations

import math

import numpy as np
from numba import prange

from bellmark import backend
from bellmark.buffers import BufferRegistry
from bellmark.control import FLOAT, INT, STATUS
from bellmark.errors import UsageError
from bellmark.guard import BIT, all_finite, record, skip
from bellmark.network import Network
from bellmark.replay import update_priorities

CHUNK = 8192  # parameters that one task updates
OK, CLIP, RATE, CORRECT1, CORRECT2, REST1, REST2, EPSILON, TAU = range(9)  # fields of update_LE
UPDATE_FIELDS = 9
LOSS_SUM, NORM_SUM, TD_SUM, UPDATES = range(4)  # fields of epoch_LE
EPOCH_FIELDS = 4

_LR, _BETA1, _BETA2, _EPSILON = FLOAT["learning_rate"], FLOAT["adam_beta1"], FLOAT["adam_beta2"], FLOAT["adam_epsilon"]
_MAX_NORM, _TAU, _ADAM_STEP, _STEP, _SAMPLE = FLOAT["max_grad_norm"], FLOAT["tau"], INT["adam_step"], INT["step"], INT["sample_counter"]
_STOPPED, _FROZEN, _IN_ROW = INT["stopped"], STATUS["frozen"], STATUS["skipped_in_row"]
_NORM_BIT, _PARAMETER_BIT = BIT["gradient_norm_L"], BIT["parameter_LP"]
_LARGEST_SQUARE = 1.8e19  # a gradient above it has a square that float32 cannot hold
_ZERO, _ONE = np.float32(0.0), np.float32(1.0)


def check(beta1: float, beta2: float, epsilon: float) -> None:
    """Refuses settings that float32 turns into others: a beta that becomes 1, an epsilon that is lost."""
    for name, beta in (("beta1", beta1), ("beta2", beta2)):
        if not 0.0 <= beta < 1.0 or float(np.float32(beta)) >= 1.0:
            raise UsageError(f"optimizer.{name}: expected at least 0 and, as float32, below 1, found {beta!r}")
    if not epsilon >= 1e-12:
        raise UsageError(f"optimizer.epsilon: expected at least 1e-12, found {epsilon!r}")


def declare(registry: BufferRegistry, network: Network, learners: int, batch: int) -> None:
    """Declares the moments, the target, the gradient, the verdict and the sums of an epoch."""
    shape, blocks = (learners, network.parameters), len(network.blocks())
    registry.declare("target_LP", "target_weight", shape)
    registry.declare("adam_m_LP", "moment", shape)
    registry.declare("adam_v_LP", "moment", shape)
    registry.declare("gradient_LP", "gradient", shape)
    registry.declare("block_GE", "layout", (blocks, 3))
    registry.declare("block_square_LG", "statistic", (learners, blocks))
    registry.declare("block_guard_LG", "counter", (learners, blocks))
    registry.declare("row_guard_LB", "counter", (learners, batch))
    registry.declare("chunk_guard_LG", "counter", (learners, -(-network.parameters // CHUNK)))
    registry.declare("verdict_L", "counter", (learners,))
    registry.declare("update_LE", "gradient", (learners, UPDATE_FIELDS))
    registry.declare("gradient_norm_L", "statistic", (learners,))
    registry.declare("epoch_LE", "statistic", (learners, EPOCH_FIELDS))


@backend.inline
def square_sum(gradient_P, first, last):
    """Sum of squares in float64 by eight accumulators in a fixed pattern."""
    s0, s1, s2, s3, s4, s5, s6, s7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(first, last, 8):  # strides are multiples of 8
        s0 += np.float64(gradient_P[i]) * np.float64(gradient_P[i])
        s1 += np.float64(gradient_P[i + 1]) * np.float64(gradient_P[i + 1])
        s2 += np.float64(gradient_P[i + 2]) * np.float64(gradient_P[i + 2])
        s3 += np.float64(gradient_P[i + 3]) * np.float64(gradient_P[i + 3])
        s4 += np.float64(gradient_P[i + 4]) * np.float64(gradient_P[i + 4])
        s5 += np.float64(gradient_P[i + 5]) * np.float64(gradient_P[i + 5])
        s6 += np.float64(gradient_P[i + 6]) * np.float64(gradient_P[i + 6])
        s7 += np.float64(gradient_P[i + 7]) * np.float64(gradient_P[i + 7])
    return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))


@backend.inline
def bias_correction(beta, t):
    """1 - beta^t, without cancellation."""
    if beta == 0.0:
        return 1.0
    return -np.expm1(np.float64(t) * np.log(beta))


@backend.inline
def clip_scale(norm, max_norm):
    """min(1, max_norm / (norm + 1e-6)); 1 where max_norm is 0."""
    if max_norm <= 0.0:
        return 1.0
    scale = max_norm / (norm + 1e-6)
    return scale if scale < 1.0 else 1.0


@backend.compile
def verdict(row_guard_LB, block_guard_LG, block_square_LG, control_float_LC, control_int_LC, status_LC,
            verdict_L, update_LE, gradient_norm_L):  # fmt: skip
    """Joins what the guard found, takes the norm, and computes once all that a learner's update needs."""
    for learner in range(verdict_L.shape[0]):
        mask = np.int64(0)
        for b in range(row_guard_LB.shape[1]):
            mask |= row_guard_LB[learner, b]
        total = 0.0
        for g in range(block_guard_LG.shape[1]):
            mask |= block_guard_LG[learner, g]
            total += block_square_LG[learner, g]
        norm = math.sqrt(total)
        scale = clip_scale(norm, control_float_LC[learner, _MAX_NORM])
        if mask == 0 and not norm * scale < _LARGEST_SQUARE:  # also true for NaN
            mask |= _NORM_BIT
        gradient_norm_L[learner] = norm
        verdict_L[learner] = mask
        held = status_LC[learner, _FROZEN] != 0 or control_int_LC[learner, _STOPPED] != 0
        beta1, beta2 = control_float_LC[learner, _BETA1], control_float_LC[learner, _BETA2]
        t = control_int_LC[learner, _ADAM_STEP] + 1
        update_LE[learner, OK] = _ZERO if mask != 0 or held else _ONE
        update_LE[learner, CLIP] = scale
        update_LE[learner, RATE] = control_float_LC[learner, _LR]
        update_LE[learner, CORRECT1] = 1.0 / bias_correction(beta1, t)
        update_LE[learner, CORRECT2] = 1.0 / bias_correction(beta2, t)
        update_LE[learner, REST1], update_LE[learner, REST2] = 1.0 - beta1, 1.0 - beta2
        update_LE[learner, EPSILON] = control_float_LC[learner, _EPSILON]
        update_LE[learner, TAU] = control_float_LC[learner, _TAU]


@backend.compile(parallel=True)
def update(gradient_LP, update_LE, parameter_LP, adam_m_LP, adam_v_LP, target_LP, chunk_guard_LG):
    """Adam and the target's moving average in one pass over the parameters; a chunk that turns not finite says so."""
    learners, parameters = parameter_LP.shape
    chunks = chunk_guard_LG.shape[1]
    for task in prange(learners * chunks):
        learner, chunk = task // chunks, task % chunks
        chunk_guard_LG[learner, chunk] = 0
        if update_LE[learner, OK] == _ZERO:
            continue
        clip, rate = update_LE[learner, CLIP], update_LE[learner, RATE]
        correct1, correct2 = update_LE[learner, CORRECT1], update_LE[learner, CORRECT2]
        rest1, rest2 = update_LE[learner, REST1], update_LE[learner, REST2]
        epsilon, tau = update_LE[learner, EPSILON], update_LE[learner, TAU]
        first, last = chunk * CHUNK, min(chunk * CHUNK + CHUNK, parameters)
        g_P, p_P = gradient_LP[learner, first:last], parameter_LP[learner, first:last]
        m_P, v_P, target_P = adam_m_LP[learner, first:last], adam_v_LP[learner, first:last], target_LP[learner, first:last]
        for i in range(last - first):
            g = g_P[i] * clip
            m = m_P[i] + rest1 * (g - m_P[i])
            v = v_P[i] + rest2 * (g * g - v_P[i])
            p = p_P[i] - rate * (m * correct1) / (np.sqrt(v * correct2) + epsilon)
            m_P[i] = m
            v_P[i] = v
            p_P[i] = p
            target_P[i] += tau * (p - target_P[i])
        if not (all_finite(p_P.view(np.int32)) and all_finite(target_P.view(np.int32))):
            chunk_guard_LG[learner, chunk] = _PARAMETER_BIT


@backend.compile
def finish(verdict_L, update_LE, chunk_guard_LG, gradient_norm_L, index_LB, loss_LB, td_error_LB, weight_LB,
           replay_priority_LX, replay_level_VE, replay_largest_L, control_float_LC, control_int_LC, status_LC, epoch_LE):  # fmt: skip
    """Ends an update: priorities, counters, the status word and the sums of the epoch. A skipped update only counts."""
    batch = index_LB.shape[1]
    for learner in range(verdict_L.shape[0]):
        step = control_int_LC[learner, _STEP]
        control_int_LC[learner, _STEP] += 1
        control_int_LC[learner, _SAMPLE] += 1
        if status_LC[learner, _FROZEN] != 0 or control_int_LC[learner, _STOPPED] != 0:
            continue
        if update_LE[learner, OK] == _ZERO:
            skip(status_LC, control_int_LC, learner, verdict_L[learner], step)
            continue
        control_int_LC[learner, _ADAM_STEP] += 1
        status_LC[learner, _IN_ROW] = 0
        update_priorities(replay_priority_LX, replay_level_VE, replay_largest_L, index_LB, td_error_LB, control_float_LC, learner)
        loss, td = 0.0, 0.0
        for b in range(batch):
            loss += np.float64(weight_LB[learner, b]) * np.float64(loss_LB[learner, b])
            td += np.float64(td_error_LB[learner, b])
        epoch_LE[learner, LOSS_SUM] += loss / batch
        epoch_LE[learner, TD_SUM] += td / batch
        epoch_LE[learner, NORM_SUM] += gradient_norm_L[learner]
        epoch_LE[learner, UPDATES] += 1.0
        for chunk in range(chunk_guard_LG.shape[1]):
            if chunk_guard_LG[learner, chunk] != 0:  # moments or target were damaged from outside: no good state is left to keep
                record(status_LC, learner, chunk_guard_LG[learner, chunk], step)
                status_LC[learner, _FROZEN] = 1
