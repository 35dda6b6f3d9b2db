"""The replay of every learner: a ring of single steps, n-step returns summed when sampled, and exact integer priorities.

A record's place is slot * N + lane: the steps of a lane follow each other, so the n-step return of a record is summed along its lane when
it is sampled. The sum stops after a terminated or truncated step, before a refused record, and at the newest slot: it never crosses the
write pointer, and the last stored step of a lane counts as truncated. With k rewards summed the discount is 0 if the last step
terminated, else gamma^k. (Summing at insertion needs a queue of unfinished records in every checkpoint; the numbers are the same.)

Priorities (Schaul et al. 2016, with integers in place of floats): leaf = clamp(rint((|td| + eps)^alpha * 2^s), 1, 2^40 - 1), and 0 for
places that are empty or refused. Sums of 256 children each are unsigned 64-bit, exact and free of order; they change by differences.
Sampling is stratified: row b draws an integer target in [total b / B, total (b + 1) / B). A new record gets the largest leaf so far.
Weights are w = exp(beta * (log pmin - log p)) with the smallest priority of the batch, so they lie in (0, 1] and one of them is 1.
alpha = 0 is uniform.

Differs from the usual: no priority is ever a float sum, so no leaf becomes unreachable and no weight infinite (golden/rl per_*).

Source "tape" keeps (symbol, bar) of both states and looks the features up; "stored" keeps both observations.
"""

from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from bellmark import backend, rng
from bellmark.buffers import BufferRegistry
from bellmark.codegen import lower
from bellmark.control import FLOAT, INT, STATUS
from bellmark.errors import UsageError
from bellmark.guard import BAD_LANE, BAD_OBSERVATION, BIT, finite_bits, record

RADIX_BITS = 8
LARGEST_LEAF = np.uint64((1 << 40) - 1)
WORD = 64  # legal actions packed in one word
_WORD_BITS, _WORD_REST = 6, 63

_COLLECT, _SAMPLE, _SEED, _N_STEP = INT["collect_step"], INT["sample_counter"], INT["seed"], INT["n_step"]
_ALPHA = FLOAT["priority_alpha"]
_EPSILON, _SCALE, _BOUND = FLOAT["priority_epsilon"], FLOAT["priority_scale"], FLOAT["reward_bound"]
_REFUSED, _STEP = STATUS["rewards_refused"], INT["step"]
_REWARD_BIT, _OBSERVATION_BIT, _VALUE_BIT = BIT["reward_LN"], BIT["observation_LNO"], BIT["acting_q_LND"]
_ZERO, _ONE = np.uint64(0), np.uint64(1)
_words, _below_64 = lower(rng.words), lower(rng.below_64)
STREAM = rng.STREAM_SAMPLE


def levels(records: int) -> NDArray[np.int64]:
    """The table replay_level_VE: (offset, size) of each level of a priority tree, leaves first, one root last."""
    table, size, offset = [], records, 0
    while True:
        table.append([offset, size])
        offset += size
        if size == 1 and len(table) > 1:
            return np.array(table, np.int64)
        size = (size + 255) >> RADIX_BITS


def slots(capacity: int, lanes: int, n_step: int) -> int:
    """Slots of the ring: how many steps of every lane it holds."""
    count = capacity // lanes
    if count < n_step + 1:
        raise UsageError(
            f"replay.capacity: expected at least (n_step + 1) * lanes = {(n_step + 1) * lanes} records, found {capacity}"
        )
    return count


def declare(registry: BufferRegistry, *, learners: int, lanes: int, slots: int, actions: int, market: int, portfolio: int,
            source: str) -> None:  # fmt: skip
    """Declares the replay's buffers; R = slots * N records a learner, W words of legal-action bits."""
    records, words = slots * lanes, -(-actions // WORD)
    table = levels(records)
    for name in ("symbol", "bar", "next_bar", "action"):
        registry.declare(f"replay_{name}_LR", "index", (learners, records))
    registry.declare("replay_reward_LR", "reward", (learners, records))
    registry.declare("replay_propensity_LR", "propensity", (learners, records))
    for name in ("terminated", "truncated"):
        registry.declare(f"replay_{name}_LR", "flag", (learners, records))
    for name in ("portfolio", "next_portfolio"):
        registry.declare(f"replay_{name}_LRP", "portfolio", (learners, records, portfolio))
    registry.declare("replay_legal_LRW", "legal_bits", (learners, records, words))
    kept = records if source == "stored" else 0
    for name in ("observation", "next_observation"):
        registry.declare(f"replay_{name}_LRO", "stored_observation", (learners, kept, market + portfolio))
    registry.declare("replay_priority_LX", "priority", (learners, int(table[-1].sum())))
    registry.declare("replay_level_VE", "layout", table.shape)
    registry.declare("replay_largest_L", "priority", (learners,))


RECORD = (
    "replay_symbol_LR", "replay_bar_LR", "replay_next_bar_LR", "replay_action_LR", "replay_reward_LR", "replay_propensity_LR",
    "replay_terminated_LR", "replay_truncated_LR", "replay_portfolio_LRP", "replay_next_portfolio_LRP", "replay_legal_LRW",
    "replay_observation_LRO", "replay_next_observation_LRO",
)  # fmt: skip
TREE = ("replay_priority_LX", "replay_level_VE", "replay_largest_L")


@backend.inline
def leaf_of(td_error, alpha, epsilon, scale):
    """The integer priority of a TD error: clamp(rint((|td| + eps)^alpha * 2^s), 1, 2^40 - 1)."""
    value = np.rint((abs(np.float64(td_error)) + epsilon) ** alpha * 2.0**scale)
    if value < 1.0:
        return _ONE
    if value >= np.float64(LARGEST_LEAF):
        return LARGEST_LEAF
    return np.uint64(value)


@backend.inline
def set_leaf(replay_priority_LX, replay_level_VE, learner, index, leaf):
    """Writes a leaf and moves every sum above it by the difference (modulo 2^64, so also downwards)."""
    change = leaf - replay_priority_LX[learner, index]
    for level in range(replay_level_VE.shape[0]):
        replay_priority_LX[learner, replay_level_VE[level, 0] + index] += change
        index = index >> RADIX_BITS


@backend.inline
def total_of(replay_priority_LX, learner):
    """The sum of all leaves of a learner: the root."""
    return replay_priority_LX[learner, replay_priority_LX.shape[1] - 1]


@backend.inline
def find(replay_priority_LX, replay_level_VE, learner, target):
    """The record whose interval of the running sum holds `target` (0 <= target < total): never an empty one."""
    index = np.int64(0)
    for level in range(replay_level_VE.shape[0] - 2, -1, -1):
        offset = replay_level_VE[level, 0]
        index = index << RADIX_BITS
        while target >= replay_priority_LX[learner, offset + index]:
            target -= replay_priority_LX[learner, offset + index]
            index += 1
    return index


@backend.inline
def stratum(total, row, batch):
    """floor(total * row / batch) without overflow: where the stratum of a row begins."""
    rows = np.uint64(batch)
    return (total // rows) * np.uint64(row) + (total % rows) * np.uint64(row) // rows


@backend.inline
def draw_target(total, row, batch, low, high):
    """An integer target in the stratum of `row`, from the low and the high word of a random number."""
    first, last = stratum(total, row, batch), stratum(total, row + 1, batch)
    width = last - first
    if width == _ZERO:
        return first if first < total else total - _ONE
    return first + _below_64(low, high, width)


@backend.inline
def sample_record(replay_priority_LX, replay_level_VE, control_int_LC, learner, row, batch):
    """The record that row `row` of this update draws. The counter advances with every update, skipped ones too."""
    step = control_int_LC[learner, _SAMPLE]
    words = _words(control_int_LC[learner, _SEED], STREAM, row, step, 0)
    target = draw_target(total_of(replay_priority_LX, learner), row, batch, words[0], words[1])
    return find(replay_priority_LX, replay_level_VE, learner, target)


@backend.inline
def n_step_return(replay_reward_LR, replay_terminated_LR, replay_truncated_LR, replay_priority_LX, learner, index, lanes, newest, n, gamma):
    """(sum of discounted rewards, discount of the bootstrap, last record) of the window that starts at a record."""
    records = replay_reward_LR.shape[1]
    total, power, last = 0.0, 1.0, index
    for k in range(n):
        total += power * replay_reward_LR[learner, last]
        power *= gamma
        if replay_terminated_LR[learner, last]:
            return total, 0.0, last
        if k == n - 1 or replay_truncated_LR[learner, last] or last // lanes == newest:
            break
        following = (last + lanes) % records
        if replay_priority_LX[learner, following] == _ZERO:  # refused: the window ends before it
            break
        last = following
    return total, power, last


@backend.inline
def pack_legal(allowed_A, word):
    """64 legal-action flags as the bits of one word."""
    bits = _ZERO
    first = word * WORD
    for a in range(first, min(first + WORD, allowed_A.shape[0])):
        if allowed_A[a]:
            bits |= _ONE << np.uint64(a - first)
    return bits


@backend.inline
def legal(replay_legal_W, action):
    """Whether an action is legal in packed bits."""
    return (replay_legal_W[action >> _WORD_BITS] >> np.uint64(action & _WORD_REST)) & _ONE != _ZERO


@backend.inline
def update_priorities(replay_priority_LX, replay_level_VE, replay_largest_L, index_LB, td_error_LB, control_float_LC, learner):
    """New leaves for a batch. Of two samples of one record the larger priority wins, whatever the order."""
    alpha, epsilon, scale = control_float_LC[learner, _ALPHA], control_float_LC[learner, _EPSILON], control_float_LC[learner, _SCALE]
    for b in range(index_LB.shape[1]):
        set_leaf(replay_priority_LX, replay_level_VE, learner, np.int64(index_LB[learner, b]), _ZERO)
    for b in range(index_LB.shape[1]):
        index = np.int64(index_LB[learner, b])
        leaf = leaf_of(td_error_LB[learner, b], alpha, epsilon, scale)
        if leaf > replay_priority_LX[learner, index]:
            set_leaf(replay_priority_LX, replay_level_VE, learner, index, leaf)
        if leaf > replay_largest_L[learner]:
            replay_largest_L[learner] = leaf


@backend.inline
def importance_weight(priority, smallest, beta):
    """exp(beta * (log pmin - log p)): in (0, 1], exactly 1 for the smallest priority of the batch."""
    return np.float32(np.exp(beta * (np.log(np.float64(smallest)) - np.log(np.float64(priority)))))


@backend.compile(parallel=True)
def insert(symbol_LN, bar_LN, next_bar_LN, action_LN, reward_LN, propensity_LN, terminated_LN, truncated_LN, portfolio_LNP,
           next_portfolio_LNP, next_allowed_LNA, observation_LNO, next_observation_LNO, lane_guard_LN,
           replay_symbol_LR, replay_bar_LR, replay_next_bar_LR, replay_action_LR, replay_reward_LR, replay_propensity_LR,
           replay_terminated_LR, replay_truncated_LR, replay_portfolio_LRP, replay_next_portfolio_LRP, replay_legal_LRW,
           replay_observation_LRO, replay_next_observation_LRO, replay_priority_LX, replay_level_VE, replay_largest_L,
           control_float_LC, control_int_LC, status_LC):  # fmt: skip
    """Writes one step of every lane into the next slot of the ring; a refused reward or observation leaves an empty place."""
    learners, lanes = symbol_LN.shape
    records, words = replay_reward_LR.shape[1], replay_legal_LRW.shape[2]
    stored = replay_observation_LRO.shape[1] > 0
    for learner in prange(learners):
        place = control_int_LC[learner, _COLLECT] % (records // lanes) * lanes
        floor = leaf_of(1.0, 1.0, 0.0, control_float_LC[learner, _SCALE])
        leaf = replay_largest_L[learner] if replay_largest_L[learner] > floor else floor
        for lane in range(lanes):
            index = place + lane
            reward = reward_LN[learner, lane]
            guard = lane_guard_LN[learner, lane]
            refused = not finite_bits(reward) or abs(reward) > control_float_LC[learner, _BOUND]
            if guard & BAD_LANE:  # what was seen was bad; the reward that followed says nothing
                refused = True
                record(status_LC, learner, _OBSERVATION_BIT if guard & BAD_OBSERVATION else _VALUE_BIT, control_int_LC[learner, _STEP])
            elif refused:
                record(status_LC, learner, _REWARD_BIT, control_int_LC[learner, _STEP])
                status_LC[learner, _REFUSED] += 1
            replay_symbol_LR[learner, index] = symbol_LN[learner, lane]
            replay_bar_LR[learner, index] = bar_LN[learner, lane]
            replay_next_bar_LR[learner, index] = next_bar_LN[learner, lane]
            replay_action_LR[learner, index] = action_LN[learner, lane]
            replay_reward_LR[learner, index] = reward
            replay_propensity_LR[learner, index] = propensity_LN[learner, lane]
            replay_terminated_LR[learner, index] = terminated_LN[learner, lane]
            replay_truncated_LR[learner, index] = truncated_LN[learner, lane]
            for p in range(portfolio_LNP.shape[2]):
                replay_portfolio_LRP[learner, index, p] = portfolio_LNP[learner, lane, p]
                replay_next_portfolio_LRP[learner, index, p] = next_portfolio_LNP[learner, lane, p]
            for word in range(words):
                replay_legal_LRW[learner, index, word] = pack_legal(next_allowed_LNA[learner, lane], word)
            if stored:
                for o in range(observation_LNO.shape[2]):
                    replay_observation_LRO[learner, index, o] = observation_LNO[learner, lane, o]
                    replay_next_observation_LRO[learner, index, o] = next_observation_LNO[learner, lane, o]
            set_leaf(replay_priority_LX, replay_level_VE, learner, index, _ZERO if refused else leaf)


@backend.inline
def gather_market(feature_STF, mean_LF, scale_LF, learner, symbol, bar, observation_RO, row):
    """The market part of an observation from the tape: (feature - mean) * scale, with the learner's own fit."""
    for f in range(feature_STF.shape[2]):
        observation_RO[row, f] = (feature_STF[symbol, bar, f] - mean_LF[learner, f]) * scale_LF[learner, f]


@backend.inline
def gather_row(learner, index, last, row, feature_STF, mean_LF, scale_LF, replay_symbol_LR, replay_bar_LR, replay_next_bar_LR,
               replay_portfolio_LRP, replay_next_portfolio_LRP, replay_observation_LRO, replay_next_observation_LRO,
               observation_RO, next_observation_RO):  # fmt: skip
    """Observation of record `index` and next observation of record `last` into one row of the batch, whatever the source."""
    if replay_observation_LRO.shape[1] > 0:
        for o in range(observation_RO.shape[1]):
            observation_RO[row, o] = replay_observation_LRO[learner, index, o]
            next_observation_RO[row, o] = replay_next_observation_LRO[learner, last, o]
        return
    gather_market(feature_STF, mean_LF, scale_LF, learner, replay_symbol_LR[learner, index], replay_bar_LR[learner, index],
                  observation_RO, row)  # fmt: skip
    gather_market(feature_STF, mean_LF, scale_LF, learner, replay_symbol_LR[learner, last], replay_next_bar_LR[learner, last],
                  next_observation_RO, row)  # fmt: skip
    market = feature_STF.shape[2]
    for p in range(replay_portfolio_LRP.shape[2]):
        observation_RO[row, market + p] = replay_portfolio_LRP[learner, index, p]
        next_observation_RO[row, market + p] = replay_next_portfolio_LRP[learner, last, p]
