"""The control block: every scalar that may change while a run goes on, one row a learner, read by kernels by column.

Floats are float64 on the host (0.999 is not 1 and 1e-8 is not 0 in them); a kernel casts once to float32 where it computes in float32.
Counters are int64. The status words hold what the guard found.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bellmark.buffers import BufferRegistry
from bellmark.errors import InternalError, did_you_mean, known_list

# Schedules are (start, end, duration in updates); the control stage evaluates them into the plain column before each step.
FLOAT_FIELDS = (
    "learning_rate", "learning_rate_start", "learning_rate_end",
    "adam_beta1", "adam_beta2", "adam_epsilon", "max_grad_norm",
    "gamma", "tau",
    "epsilon", "epsilon_start", "epsilon_end",
    "priority_alpha", "priority_beta", "priority_beta_start", "priority_beta_end", "priority_epsilon", "priority_scale",
    "reward_bound",
)  # fmt: skip
INT_FIELDS = (
    "step", "adam_step", "sample_counter", "collect_step",
    "learning_rate_updates", "epsilon_updates", "beta_updates",
    "n_step", "learning_starts", "skip_limit",
    "seed", "stopped",
)  # fmt: skip
STATUS_FIELDS = ("mask", "first_bad_step", "buffer", "skipped", "skipped_in_row", "frozen", "empty_masks", "rewards_refused")

FLOAT = {name: column for column, name in enumerate(FLOAT_FIELDS)}
INT = {name: column for column, name in enumerate(INT_FIELDS)}
STATUS = {name: column for column, name in enumerate(STATUS_FIELDS)}


def declare(registry: BufferRegistry, learners: int) -> None:
    """Declares control_float_LC, control_int_LC and status_LC."""
    registry.declare("control_float_LC", "control_float", (learners, len(FLOAT_FIELDS)))
    registry.declare("control_int_LC", "control_int", (learners, len(INT_FIELDS)))
    registry.declare("status_LC", "status", (learners, len(STATUS_FIELDS)))


class Control:
    """Reads and sets fields of the control block by name on the host."""

    def __init__(self, registry: BufferRegistry) -> None:
        self._float = registry["control_float_LC"]
        self._int = registry["control_int_LC"]
        self._status = registry["status_LC"]

    def __getitem__(self, name: str) -> Any:
        """The column of a field, one value a learner (a view: writing to it changes the next step)."""
        for fields, block in ((FLOAT, self._float), (INT, self._int), (STATUS, self._status)):
            if name in fields:
                return block[:, fields[name]]
        known = (*FLOAT, *INT, *STATUS)
        raise InternalError(f"no control field '{name}'{did_you_mean(name, known)}{known_list(known, 60)}")

    def __setitem__(self, name: str, value: Any) -> None:
        values = np.asarray(value, dtype=np.float64)
        if not np.all(np.isfinite(values)):
            raise InternalError(f"control field '{name}': expected finite values, found {value}")
        self[name][:] = value
