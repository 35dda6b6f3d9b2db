"""Acting: Q values of the legal joint actions, masked argmax, masked epsilon-greedy with its propensity.

Q(a) is the mean over branches of the head columns of a. The argmax runs over legal actions only and the lowest index wins ties; masks are
applied to Q values, never to the logits of a distribution. With n legal actions the propensity of an action is epsilon / n, and
1 - epsilon + epsilon / n for the greedy one. A lane without a legal action takes the declared no-op and is counted.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from bellmark import backend, rng
from bellmark.codegen import lower
from bellmark.control import FLOAT, INT, STATUS
from bellmark.guard import BAD_OBSERVATION, BAD_VALUE, EMPTY_MASK, all_finite
from bellmark.replay import legal

STREAM = rng.STREAM_ACTION
_words, _uniform, _below = lower(rng.words), lower(rng.uniform), lower(rng.below)
_EPSILON, _SEED, _COLLECT, _STEP = FLOAT["epsilon"], INT["seed"], INT["collect_step"], INT["step"]
_EMPTY = STATUS["empty_masks"]
_ZERO, _ONE = np.float32(0.0), np.float32(1.0)


@backend.inline
def joint_value(q_BD, row, head_column_AK, action):
    """Q(a): the mean over branches of a's head columns."""
    total = _ZERO
    for k in range(head_column_AK.shape[1]):
        total += q_BD[row, head_column_AK[action, k]]
    return total * (_ONE / np.float32(head_column_AK.shape[1]))


@backend.inline
def best_action(q_BD, row, legal_W, head_column_AK):
    """The legal action of the largest Q, the lowest index on ties; -1 if no action is legal."""
    best, largest = -1, _ZERO
    for a in range(head_column_AK.shape[0]):
        if legal(legal_W, a):
            value = joint_value(q_BD, row, head_column_AK, a)
            if best < 0 or value > largest:
                best, largest = a, value
    return best


@backend.inline
def best_allowed(q_BD, row, allowed_A, head_column_AK):
    """As `best_action`, from flags; also the number of legal actions."""
    best, largest, count = -1, _ZERO, 0
    for a in range(head_column_AK.shape[0]):
        if allowed_A[a]:
            count += 1
            value = joint_value(q_BD, row, head_column_AK, a)
            if best < 0 or value > largest:
                best, largest = a, value
    return best, count


@backend.inline
def nth_allowed(allowed_A, n):
    """The n-th legal action, counted from 0."""
    for a in range(allowed_A.shape[0]):
        if allowed_A[a]:
            if n == 0:
                return a
            n -= 1
    return -1


@backend.compile(parallel=True)
def select(observation_LNO, q_LND, allowed_LNA, head_column_AK, control_float_LC, control_int_LC, noop, explore,
           action_LN, propensity_LN, lane_guard_LN):  # fmt: skip
    """Chooses an action for every lane: epsilon-greedy if `explore`, else greedy. Draws by (learner seed, ACTION), (lane, step)."""
    learners, lanes, columns = q_LND.shape
    q_RD = q_LND.reshape(learners * lanes, columns)
    for row in prange(learners * lanes):
        learner, lane = row // lanes, row % lanes
        allowed_A = allowed_LNA[learner, lane]
        guard = np.uint8(0)
        if not all_finite(observation_LNO[learner, lane].view(np.int32)):
            guard |= BAD_OBSERVATION
        elif not all_finite(q_LND[learner, lane].view(np.int32)):
            guard |= BAD_VALUE
        best, count = best_allowed(q_RD, row, allowed_A, head_column_AK)
        if best < 0:
            guard |= EMPTY_MASK
        action, propensity = best, 1.0
        if guard != 0:
            action = noop
        elif explore:
            epsilon = control_float_LC[learner, _EPSILON]
            words = _words(control_int_LC[learner, _SEED], STREAM, lane, control_int_LC[learner, _COLLECT], 0)
            if _uniform(words[0]) < epsilon:
                action = nth_allowed(allowed_A, _below(words[1], count))
            propensity = epsilon / count
            if action == best:
                propensity += 1.0 - epsilon
        action_LN[learner, lane] = action
        propensity_LN[learner, lane] = propensity
        lane_guard_LN[learner, lane] = guard


@backend.compile
def count(lane_guard_LN, control_int_LC, status_LC):
    """Ends a collect step: counts empty masks and the step."""
    for learner in range(lane_guard_LN.shape[0]):
        for lane in range(lane_guard_LN.shape[1]):
            if lane_guard_LN[learner, lane] & EMPTY_MASK:
                status_LC[learner, _EMPTY] += 1
        control_int_LC[learner, _COLLECT] += 1


@backend.inline
def ramp(start, end, duration, step):
    """Linear from start at step 0 to end at `duration`, constant after; the end at once if the duration is 0."""
    if step >= duration:
        return end
    return start + (end - start) * (np.float64(step) / np.float64(duration))


_SCHEDULES = (
    (FLOAT["learning_rate"], FLOAT["learning_rate_start"], FLOAT["learning_rate_end"], INT["learning_rate_updates"]),
    (FLOAT["epsilon"], FLOAT["epsilon_start"], FLOAT["epsilon_end"], INT["epsilon_updates"]),
    (FLOAT["priority_beta"], FLOAT["priority_beta_start"], FLOAT["priority_beta_end"], INT["beta_updates"]),
)


@backend.compile
def schedule(control_float_LC, control_int_LC):
    """Evaluates learning rate, epsilon and beta from the number of updates done, inside the step: the host's chunks play no part."""
    for learner in range(control_int_LC.shape[0]):
        step = control_int_LC[learner, _STEP]
        for field, start, end, updates in _SCHEDULES:
            control_float_LC[learner, field] = ramp(
                control_float_LC[learner, start], control_float_LC[learner, end], control_int_LC[learner, updates], step
            )
