"""The one action space of a run: exposure x order type x urgency, and how a network's head columns make the value of an action.

A joint action is a number in 0..A-1, exposure varying slowest. A flat head has one column an action; a branching head has one column a
level of each factor. Both are read the same way: Q(a) is the mean over branches of the columns of a, so one argmax over the legal joint
actions serves both; with a mask that is a product over factors it equals the argmax of each branch on its own.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bellmark.errors import UsageError, did_you_mean, known_list

ORDER_TYPES = ("market", "limit", "ioc")
URGENCIES = ("patient", "normal", "aggressive")


@dataclass(frozen=True)
class Action:
    """A decoded action."""

    exposure: float
    order_type: str
    urgency: str


@dataclass(frozen=True)
class ActionSpace:
    """Sizes, tables and decoding of the actions of a run.

    exposures: fractions of the sizing's full position, ascending, in [-1, 1] unless the sizing says otherwise.
    head: "flat" (D = A columns, K = 1 branch) or "branching" (D = sum of the factor sizes, K = number of factors with more than one level).
    """

    exposures: tuple[float, ...]
    order_types: tuple[str, ...] = ("market",)
    urgencies: tuple[str, ...] = ("normal",)
    head: str = "branching"

    def __post_init__(self) -> None:
        if not self.exposures or list(self.exposures) != sorted(set(self.exposures)):
            raise UsageError(f"action.exposures: expected ascending numbers without repetition, found {list(self.exposures)}")
        for key, values, known in (("order_types", self.order_types, ORDER_TYPES), ("urgencies", self.urgencies, URGENCIES)):
            for value in values:
                if value not in known:
                    raise UsageError(f"action.{key}: no '{value}'{did_you_mean(value, known)}{known_list(known)}")
            if not values or len(set(values)) != len(values):
                raise UsageError(f"action.{key}: expected at least one, without repetition, found {list(values)}")
        if self.head not in ("flat", "branching"):
            raise UsageError(f"action.head: expected 'flat' or 'branching', found '{self.head}'")

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Levels of exposure, order type and urgency."""
        return len(self.exposures), len(self.order_types), len(self.urgencies)

    @property
    def A(self) -> int:  # noqa: N802
        """Number of joint actions."""
        return self.sizes[0] * self.sizes[1] * self.sizes[2]

    @property
    def D(self) -> int:  # noqa: N802
        """Number of head columns."""
        return int(sum(self.branch_size_K))

    @property
    def K(self) -> int:  # noqa: N802
        """Number of branches."""
        return len(self.branch_size_K)

    @cached_property
    def branch_size_K(self) -> NDArray[np.int32]:  # noqa: N802
        """Columns of each branch. A factor with one level has no branch, since it decides nothing."""
        if self.head == "flat":
            return np.array([self.A], np.int32)
        sizes = [size for size in self.sizes if size > 1]
        return np.array(sizes or [1], np.int32)

    @cached_property
    def branch_start_K(self) -> NDArray[np.int32]:  # noqa: N802
        """First column of each branch."""
        return np.concatenate([[0], np.cumsum(self.branch_size_K)[:-1]]).astype(np.int32)

    @cached_property
    def factor_AK(self) -> NDArray[np.int32]:  # noqa: N802
        """Levels of exposure, order type and urgency of each joint action, shape (A, 3)."""
        return np.array(list(itertools.product(*(range(size) for size in self.sizes))), np.int32)

    @cached_property
    def column_AK(self) -> NDArray[np.int32]:  # noqa: N802
        """Head column of each joint action in each branch, shape (A, K)."""
        if self.head == "flat":
            return np.arange(self.A, dtype=np.int32)[:, None]
        factors = [index for index, size in enumerate(self.sizes) if size > 1] or [0]
        return (self.factor_AK[:, factors] + self.branch_start_K[None, :]).astype(np.int32)

    @cached_property
    def exposure_A(self) -> NDArray[np.float64]:  # noqa: N802
        """Exposure of each joint action."""
        return np.array(self.exposures, np.float64)[self.factor_AK[:, 0]]

    @cached_property
    def order_type_A(self) -> NDArray[np.int32]:  # noqa: N802
        """Order type of each joint action as its place in ORDER_TYPES."""
        return np.array([ORDER_TYPES.index(name) for name in self.order_types], np.int32)[self.factor_AK[:, 1]]

    @cached_property
    def urgency_A(self) -> NDArray[np.int32]:  # noqa: N802
        """Urgency of each joint action as its place in URGENCIES."""
        return np.array([URGENCIES.index(name) for name in self.urgencies], np.int32)[self.factor_AK[:, 2]]

    @property
    def noop(self) -> int:
        """The declared action of an empty mask: the exposure nearest to flat, first order type, first urgency."""
        level = int(np.argmin(np.abs(np.array(self.exposures))))
        return level * self.sizes[1] * self.sizes[2]

    @property
    def rule_order(self) -> tuple[int, int]:
        """Order type and urgency of rule strategies, which choose exposures alone: market and normal where they are among the actions."""
        order_type = "market" if "market" in self.order_types else self.order_types[0]
        urgency = "normal" if "normal" in self.urgencies else self.urgencies[0]
        return ORDER_TYPES.index(order_type), URGENCIES.index(urgency)

    def decode(self, action: int) -> Action:
        """Exposure, order type and urgency of a joint action."""
        if not 0 <= action < self.A:
            raise UsageError(f"action: expected 0..{self.A - 1}, found {action}")
        exposure, order_type, urgency = self.factor_AK[action]
        return Action(self.exposures[exposure], self.order_types[order_type], self.urgencies[urgency])

    def label(self, action: int) -> str:
        """A short text for tables: '+0.50 market normal', shortened where a factor has one level."""
        decoded = self.decode(action)
        parts = [f"{decoded.exposure:+.2f}" if decoded.exposure else "flat"]
        parts += [decoded.order_type] if len(self.order_types) > 1 else []
        parts += [decoded.urgency] if len(self.urgencies) > 1 else []
        return " ".join(parts)
