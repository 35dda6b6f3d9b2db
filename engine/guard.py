"""The guard: finds numbers that are not finite by their bits, before anything is written, and keeps a record per learner.

Rows (in `row_guard_LB`) and blocks of the gradient (in `block_guard_LG`) carry a mask of what was found; `optimizer.verdict` joins them.
A bad update is skipped whole: weights, moments, Adam's t, target and priorities stay as they are; only the counters of updates and samples
advance, so that the same batch does not come again. After `skip_limit` bad updates in a row the learner is frozen and the others go on.

A reward that is not finite or above `reward_bound` is refused: its record stays out of the replay, and an observation or Q value that is
not finite makes the lane take the declared no-op. The status word of a learner is (mask, first bad step, buffer, ...), see `control`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bellmark import backend
from bellmark.control import INT, STATUS, Control

EXPONENT = np.int32(0x7F800000)  # a float32 whose exponent bits are all ones is infinite or NaN
_ABSOLUTE = np.int32(0x7FFFFFFF)

# bit -> (buffer, what runs there); the position of the bit is the buffer id of the status word
GUARDED: tuple[tuple[str, str], ...] = (
    ("observation_LBO", "features"),
    ("next_observation_LBO", "features"),
    ("logit_LBDZ", "network"),
    ("next_logit_LBDZ", "network"),
    ("target_logit_LBDZ", "network"),
    ("target_LBKZ", "loss"),
    ("loss_LB", "loss"),
    ("td_error_LB", "loss"),
    ("gradient_LBDZ", "loss"),
    ("gradient_LP", "network"),
    ("gradient_norm_L", "network"),
    ("parameter_LP", "optimizer"),
    ("replay_priority_LX", "replay"),
    ("reward_LN", "reward"),
    ("observation_LNO", "features"),
    ("acting_q_LND", "network"),
)
BIT = {name: np.int64(1 << position) for position, (name, _) in enumerate(GUARDED)}

BAD_OBSERVATION, BAD_VALUE, EMPTY_MASK = np.uint8(1), np.uint8(2), np.uint8(4)  # bits of lane_guard_LN
BAD_LANE = np.uint8(3)

_MASK, _FIRST, _BUFFER = STATUS["mask"], STATUS["first_bad_step"], STATUS["buffer"]
_SKIPPED, _IN_ROW, _FROZEN = STATUS["skipped"], STATUS["skipped_in_row"], STATUS["frozen"]
_SKIP_LIMIT = INT["skip_limit"]


@backend.inline
def finite_bits(x):
    """True for a float32 that is neither infinite nor NaN, read from its bits."""
    return (np.float32(x).view(np.int32) & EXPONENT) != EXPONENT


@backend.inline
def all_finite(bits):
    """True if no element of an int32 view of float32 numbers is infinite or NaN. An integer maximum, so the loop vectorises."""
    largest = np.int32(0)
    for i in range(bits.shape[0]):
        size = bits[i] & _ABSOLUTE
        largest = size if size > largest else largest
    return largest < EXPONENT


@backend.inline
def first_bit(mask):
    """The position of the lowest bit of a mask: the id of the first guarded buffer in it."""
    for position in range(63):
        if (mask >> position) & 1:
            return position
    return -1


@backend.inline
def record(status_LC, learner, mask, step):
    """Adds what was found to a learner's status word; the first finding keeps its step and buffer."""
    if status_LC[learner, _MASK] == 0:
        status_LC[learner, _FIRST] = step
        status_LC[learner, _BUFFER] = first_bit(mask)
    status_LC[learner, _MASK] |= mask


@backend.inline
def skip(status_LC, control_int_LC, learner, mask, step):
    """Records a skipped update, and freezes the learner when too many came in a row."""
    record(status_LC, learner, mask, step)
    status_LC[learner, _SKIPPED] += 1
    status_LC[learner, _IN_ROW] += 1
    if status_LC[learner, _IN_ROW] >= control_int_LC[learner, _SKIP_LIMIT]:
        status_LC[learner, _FROZEN] = 1


@dataclass(frozen=True)
class Finding:
    """What the guard found for one learner."""

    learner: int
    seed: int
    buffer: str
    step: int
    plugin: str
    skipped: int
    refused: int
    frozen: bool
    bound: float

    def __str__(self) -> str:
        by = f" (plugin '{self.plugin}')" if self.plugin else ""
        what = f"a value above the bound {self.bound:g} or not finite" if self.buffer == "reward_LN" else "a value that is not finite"
        end = "; frozen" if self.frozen else ""
        refused = f", {self.refused} rewards refused" if self.refused else ""
        return (
            f"guard: learner {self.learner} (seed {self.seed}): {what} in {self.buffer}{by} first at update {self.step}; "
            f"{self.skipped} updates skipped{refused}{end}"
        )


def findings(control: Control, plugins: dict[str, str]) -> list[Finding]:
    """The record of every learner for which the guard found something. `plugins`: who runs at 'features', 'reward', 'loss', ..."""
    found = []
    for learner in np.flatnonzero(control["mask"]):
        buffer, place = GUARDED[int(control["buffer"][learner])]
        found.append(
            Finding(
                learner=int(learner),
                seed=int(control["seed"][learner]),
                buffer=buffer,
                step=int(control["first_bad_step"][learner]),
                plugin=plugins.get(place, ""),
                skipped=int(control["skipped"][learner]),
                refused=int(control["rewards_refused"][learner]),
                frozen=bool(control["frozen"][learner]),
                bound=float(control["reward_bound"][learner]),
            )
        )
    return found

