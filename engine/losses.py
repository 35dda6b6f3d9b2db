"""The generated part of acting and learning: a loss component's row functions wired into kernels by parameter name.

A loss gives four row functions. `row` counts the rows of all learners; buffers have the suffix B for them:

    expected(row, logit_BDZ, q_BD)                                     writes the value of every head column of the row into q_BD[row]
    target(row, next_logit_BDZ, next_column_BK, reward_B, discount_B, target_BKZ)       writes the row's target of each branch;
                                                                       next_logit_BDZ is the target network's at the next state
    loss_and_gradient(row, logit_BDZ, column_BK, target_BKZ, gradient_BDZ, scale)       returns the row's loss (not weighted) and writes
                                                                       scale * dloss/dlogit; gradient_BDZ[row] is zero before
    priority(row, loss, logit_BDZ, column_BK, target_BKZ)              returns the size of the error that sets the row's priority

Each takes what it names of these, of its settings (float32 or int64; a static setting is a constant), of `work_BZ` (one row of free space
for it), `columns` D, `branches` K and `outputs` Z. `outputs()` of the component says how many outputs a head column has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numba import prange

from bellmark import network
from bellmark.actions import ActionSpace
from bellmark.buffers import BufferRegistry
from bellmark.codegen import build, call_text
from bellmark.component import Loss, settings_of
from bellmark.control import FLOAT
from bellmark.errors import PluginError
from bellmark.guard import BIT, all_finite, finite_bits
from bellmark.policy import best_action
from bellmark.replay import importance_weight, legal

FUNCTIONS = ("expected", "target", "loss_and_gradient", "priority")

_VALUES = """
def entry(layout_YE, parameter_LP, branch_start_K, branch_size_K, loss_float_LS, loss_int_LS, dueling,
          observation_LNO, before_LNX, after_LNX, head_LNU, logit_LNDZ, work_LNZ, q_LND):
    learners, lanes, columns, outputs = logit_LNDZ.shape
    branches = branch_start_K.shape[0]
    rows = learners * lanes
    observation_RO = observation_LNO.reshape(rows, observation_LNO.shape[2])
    before_RX, after_RX = before_LNX.reshape(rows, before_LNX.shape[2]), after_LNX.reshape(rows, before_LNX.shape[2])
    head_RU, logit_BDZ = head_LNU.reshape(rows, head_LNU.shape[2]), logit_LNDZ.reshape(rows, columns, outputs)
    q_BD, work_BZ = q_LND.reshape(rows, columns), work_LNZ.reshape(rows, outputs)
    tile = tile_rows(lanes)
    tiles = (lanes + tile - 1) // tile
    for task in prange(learners * tiles):
        learner = task // tiles
        first = learner * lanes + task % tiles * tile
        last = min(first + tile, learner * lanes + lanes)
        forward_tile(layout_YE, parameter_LP, learner, observation_RO, before_RX, after_RX, head_RU, first, last)
        for row in range(first, last):
            combine(head_RU, row, dueling, branch_start_K, branch_size_K, logit_BDZ)
            expected(EXPECTED)
"""

_BACKWARD = """
def entry(layout_YE, parameter_LP, head_column_AK, branch_start_K, branch_size_K, loss_float_LS, loss_int_LS, control_float_LC,
          dueling, noop, logit_LBDZ, next_logit_LBDZ, target_logit_LBDZ, before_LBX, after_LBX, action_LB, legal_LBW, reward_LB,
          discount_LB, priority_LB, next_q_LBD, next_action_LB, column_LBK, next_column_LBK, target_LBKZ, work_LBZ, weight_LB, loss_LB,
          td_error_LB, gradient_LBDZ, head_gradient_LBU, delta_LBX, row_guard_LB):
    learners, batch, columns, outputs = logit_LBDZ.shape
    branches, rows = branch_start_K.shape[0], learners * batch
    logit_BDZ, online_BDZ = logit_LBDZ.reshape(rows, columns, outputs), next_logit_LBDZ.reshape(rows, columns, outputs)
    next_logit_BDZ, gradient_BDZ = target_logit_LBDZ.reshape(rows, columns, outputs), gradient_LBDZ.reshape(rows, columns, outputs)
    before_RX, after_RX = before_LBX.reshape(rows, before_LBX.shape[2]), after_LBX.reshape(rows, before_LBX.shape[2])
    delta_RX, head_gradient_RU = delta_LBX.reshape(rows, delta_LBX.shape[2]), head_gradient_LBU.reshape(rows, head_gradient_LBU.shape[2])
    reward_B, discount_B = reward_LB.reshape(rows), discount_LB.reshape(rows)
    next_q_BD, work_BZ = next_q_LBD.reshape(rows, columns), work_LBZ.reshape(rows, outputs)
    column_BK, next_column_BK = column_LBK.reshape(rows, branches), next_column_LBK.reshape(rows, branches)
    target_BKZ, loss_B, td_error_B = target_LBKZ.reshape(rows, branches, outputs), loss_LB.reshape(rows), td_error_LB.reshape(rows)
    tile = tile_rows(batch)
    tiles = (batch + tile - 1) // tile
    for task in prange(learners * tiles):
        learner = task // tiles
        start = learner * batch
        first, last = start + task % tiles * tile, min(start + task % tiles * tile + tile, start + batch)
        smallest = priority_LB[learner, 0]
        for b in range(1, batch):
            smallest = min(smallest, priority_LB[learner, b])
        for row in range(first, last):
            b = row - start
            expected(EXPECTED)
            a = best_action(next_q_BD, row, legal_LBW[learner, b], head_column_AK)
            next_action_LB[learner, b] = a
            a = noop if a < 0 else a
            taken = action_LB[learner, b]
            for k in range(branches):
                next_column_BK[row, k] = head_column_AK[a, k]
                column_BK[row, k] = head_column_AK[taken, k]
            target(TARGET)
            weight = importance_weight(priority_LB[learner, b], smallest, control_float_LC[learner, BETA])
            weight_LB[learner, b] = weight
            scale = weight / float32(batch)
            for d in range(columns):
                for z in range(outputs):
                    gradient_BDZ[row, d, z] = ZERO
            loss = float32(loss_and_gradient(LOSS_AND_GRADIENT))
            loss_B[row] = loss
            td_error_B[row] = priority(PRIORITY)
            combine_backward(gradient_BDZ, row, dueling, branch_start_K, branch_size_K, head_gradient_RU)
            found = 0
            if not all_finite(target_BKZ[row].reshape(branches * outputs).view(int32)):
                found |= TARGET_BIT
            if not finite_bits(loss):
                found |= LOSS_BIT
            if not finite_bits(td_error_B[row]):
                found |= TD_ERROR_BIT
            if not all_finite(head_gradient_RU[row].view(int32)):
                found |= GRADIENT_BIT
            row_guard_LB[learner, b] |= found
        backward_tile(layout_YE, parameter_LP, learner, head_gradient_RU, before_RX, after_RX, delta_RX, first, last)
"""

_ENGINE = {
    "prange": prange,
    "tile_rows": network.tile_rows,
    "forward_tile": network.forward_tile,
    "combine": network.combine,
    "combine_backward": network.combine_backward,
    "backward_tile": network.backward_tile,
    "best_action": best_action,
    "legal": legal,
    "importance_weight": importance_weight,
    "all_finite": all_finite,
    "finite_bits": finite_bits,
    "float32": np.float32,
    "int32": np.int32,
    "ZERO": np.float32(0.0),
    "BETA": FLOAT["priority_beta"],
    "TARGET_BIT": BIT["target_LBKZ"],
    "LOSS_BIT": BIT["loss_LB"],
    "TD_ERROR_BIT": BIT["td_error_LB"],
    "GRADIENT_BIT": BIT["gradient_LBDZ"],
}


@dataclass(frozen=True)
class CompiledLoss:
    """A loss component ready to be launched: its kernels and its settings."""

    loss: Loss
    double: bool

    def __post_init__(self) -> None:
        for name in FUNCTIONS:
            if not callable(getattr(self.loss, name, None)):
                raise PluginError(f"loss '{self.loss.name}': it has no function {name}")

    @cached_property
    def outputs(self) -> int:
        """Z: outputs of a head column."""
        return int(self.loss.outputs())

    @cached_property
    def _settings(self) -> dict[str, str]:
        texts: dict[str, str] = {}
        floats, integers = 0, 0
        for info in settings_of(type(self.loss)):
            if info.static:
                value = getattr(self.loss, info.name)
                number = info.choices.index(value) if info.choices else value
                texts[info.name] = f"float32({number!r})" if info.type is float else repr(int(number))
            elif info.type is float:
                texts[info.name] = f"float32(loss_float_LS[learner, {floats}])"
                floats += 1
            else:
                texts[info.name] = f"loss_int_LS[learner, {integers}]"
                integers += 1
        return texts

    def _dynamic(self, kind: type) -> list[Any]:
        infos = [info for info in settings_of(type(self.loss)) if not info.static and (info.type is float) == (kind is float)]
        return [
            kind(info.choices.index(getattr(self.loss, info.name)) if info.choices else getattr(self.loss, info.name)) for info in infos
        ]

    def declare(self, registry: BufferRegistry, learners: int) -> None:
        """Declares the settings of the loss, one row a learner."""
        registry.declare("loss_float_LS", "setting_float", (learners, len(self._dynamic(float))))
        registry.declare("loss_int_LS", "setting_int", (learners, len(self._dynamic(int))))

    def fill(self, registry: BufferRegistry) -> None:
        """Writes the settings; changing them later changes the next step and compiles nothing."""
        registry["loss_float_LS"][:] = self._dynamic(float)
        registry["loss_int_LS"][:] = self._dynamic(int)

    def _call(self, name: str, names: dict[str, str]) -> str:
        available = {
            "row": "row", "work_BZ": "work_BZ", "columns": "columns", "branches": "branches", "outputs": "outputs",
            **self._settings, **names,
        }  # fmt: skip
        return call_text(getattr(self.loss, name), available, f"loss '{self.loss.name}'.{name}")

    def _symbols(self, names: tuple[str, ...]) -> dict[str, Any]:
        return {**_ENGINE, **{name: getattr(self.loss, name) for name in names}}

    @cached_property
    def values(self) -> Callable[..., None]:
        """The kernel that runs the network on observations and writes the value of every head column."""
        text = _VALUES.replace("EXPECTED", self._call("expected", {"logit_BDZ": "logit_BDZ", "q_BD": "q_BD"}))
        symbols = _used(text, self._symbols(("expected",)))
        return build(f"values_{self.loss.name}", text, symbols, parallel=True)  # type: ignore[no-any-return]

    @cached_property
    def backward(self) -> Callable[..., None]:
        """The kernel from logits to targets, losses, priorities and the gradient of every trunk layer."""
        selected = "online_BDZ" if self.double else "next_logit_BDZ"
        same = {name: name for name in ("logit_BDZ", "column_BK", "target_BKZ")}
        calls = {
            "EXPECTED": self._call("expected", {"logit_BDZ": selected, "q_BD": "next_q_BD"}),
            "TARGET": self._call(
                "target", {name: name for name in ("next_logit_BDZ", "next_column_BK", "reward_B", "discount_B", "target_BKZ")}
            ),
            "LOSS_AND_GRADIENT": self._call("loss_and_gradient", {**same, "gradient_BDZ": "gradient_BDZ", "scale": "scale"}),
            "PRIORITY": self._call("priority", {**same, "loss": "loss"}),
        }
        text = _BACKWARD
        for name, call in calls.items():
            text = text.replace(f"({name})", f"({call})")
        symbols = _used(text, self._symbols(FUNCTIONS))
        return build(f"backward_{self.loss.name}", text, symbols, parallel=True)  # type: ignore[no-any-return]


def _used(text: str, symbols: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in symbols.items() if name in text}


def declare_rows(registry: BufferRegistry, space: ActionSpace, outputs: int, learners: int, batch: int) -> None:
    """Declares what the backward kernel works on."""
    D, K = space.D, space.K
    registry.declare("next_q_LBD", "logit", (learners, batch, D))
    registry.declare("next_action_LB", "index", (learners, batch))
    registry.declare("column_LBK", "index", (learners, batch, K))
    registry.declare("next_column_LBK", "index", (learners, batch, K))
    registry.declare("target_LBKZ", "logit", (learners, batch, K, outputs))
    registry.declare("work_LBZ", "activation", (learners, batch, outputs))
    registry.declare("weight_LB", "importance_weight", (learners, batch))
    registry.declare("loss_LB", "loss", (learners, batch))
    registry.declare("td_error_LB", "td_error", (learners, batch))
    registry.declare("gradient_LBDZ", "gradient", (learners, batch, D, outputs))
