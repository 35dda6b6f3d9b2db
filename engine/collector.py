"""The collect step: observe, network, select, environment, replay, advance; and the same policy acting greedily in a backtest.

The environment brings its stages (observe, step, advance; see `bellmark.environment`); this module puts the policy and the replay between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from bellmark import network, policy, replay
from bellmark.actions import ActionSpace
from bellmark.buffers import BufferRegistry
from bellmark.losses import CompiledLoss
from bellmark.network import Network
from bellmark.stages import Stage


class Environment(Protocol):
    """What the collector needs of an environment: its sizes, its stages, and the buffers that are filled before the first step."""

    L: int
    N: int
    F: int
    P: int
    O: int  # noqa: E741
    A: int

    @property
    def given(self) -> tuple[str, ...]: ...
    def declare(self, registry: BufferRegistry) -> None: ...
    def observe_stages(self) -> list[Stage]: ...
    def observe_next_stages(self) -> list[Stage]: ...
    def step_stages(self) -> list[Stage]: ...
    def advance_stages(self) -> list[Stage]: ...


@dataclass(frozen=True)
class Policy:
    """The network acting on the lanes of a registry that holds `observation_LNO` and `allowed_LNA`."""

    network: Network
    space: ActionSpace
    loss: CompiledLoss
    learners: int
    lanes: int
    plugin: str = ""

    given = ("parameter_LP", "layout_YE", "head_column_AK", "branch_start_K", "branch_size_K", "loss_float_LS", "loss_int_LS",
             "control_float_LC", "control_int_LC", "status_LC")  # fmt: skip

    scratch = tuple(f"acting_{name}" for name in ("before_LNX", "after_LNX", "head_LNU", "logit_LNDZ", "work_LNZ", "q_LND"))

    def declare(self, registry: BufferRegistry) -> None:
        """Declares what acting needs: parameters, tables, one pass over the lanes, and the choice."""
        lanes = (self.learners, self.lanes)
        network.declare_parameters(registry, self.network, self.learners)
        network.declare_head(registry, self.space)
        self.loss.declare(registry, self.learners)
        network.declare_pass(registry, self.network, "acting_", self.learners, self.lanes, "N")
        registry.declare("acting_work_LNZ", "activation", (*lanes, self.network.outputs))
        registry.declare("acting_q_LND", "logit", (*lanes, self.space.D))
        registry.declare("action_LN", "index", lanes)
        registry.declare("propensity_LN", "propensity", lanes)
        registry.declare("lane_guard_LN", "flag", lanes)

    def fill(self, registry: BufferRegistry) -> None:
        """Writes the tables and the settings of the loss; the caller writes `parameter_LP`."""
        network.fill_tables(registry, self.network, self.space)
        self.loss.fill(registry)

    def stages(self, *, explore: bool) -> list[Stage]:
        """From `observation_LNO` and `allowed_LNA` to `action_LN` and `propensity_LN`; greedy unless `explore`."""
        tables = ("layout_YE", "parameter_LP", "branch_start_K", "branch_size_K", "loss_float_LS", "loss_int_LS")
        scratch = self.scratch
        read = ("observation_LNO", "acting_q_LND", "allowed_LNA", "head_column_AK", "control_float_LC", "control_int_LC")
        chosen = ("action_LN", "propensity_LN", "lane_guard_LN")
        return [
            Stage("values", self.loss.values, (*tables, int(self.network.dueling), "observation_LNO", *scratch),
                  (*tables, "observation_LNO"), scratch, self.plugin),
            Stage("select", policy.select, (*read, self.space.noop, int(explore), *chosen), read, chosen),
        ]  # fmt: skip


@dataclass(frozen=True)
class Collector:
    """The collect step of a run."""

    policy: Policy
    environment: Any
    source: str

    given = (*Policy.given, *replay.RECORD, *replay.TREE)

    def declare(self, registry: BufferRegistry, slots: int) -> None:
        """Declares acting and the replay; the environment declares itself."""
        environment = self.environment
        self.policy.declare(registry)
        replay.declare(
            registry, learners=environment.L, lanes=environment.N, slots=slots, actions=environment.A, market=environment.F,
            portfolio=environment.P, source=self.source,
        )  # fmt: skip

    def fill(self, registry: BufferRegistry) -> None:
        """An empty replay."""
        self.policy.fill(registry)
        for name in (*replay.RECORD, *replay.TREE):
            registry[name][:] = 0
        registry["replay_level_VE"][:] = replay.levels(registry.shape("replay_reward_LR")[1])

    def stages(self) -> list[Stage]:
        """observe -> values -> select -> environment -> insert -> advance -> count."""
        environment, control = self.environment, ("control_float_LC", "control_int_LC")
        lanes = (
            "symbol_LN", "bar_LN", "next_bar_LN", "action_LN", "reward_LN", "propensity_LN", "terminated_LN", "truncated_LN",
            "portfolio_LNP", "next_portfolio_LNP", "next_allowed_LNA", "observation_LNO",
        )  # fmt: skip
        # With references the replay never reads the next observation: the current one stands in its place.
        following = "next_observation_LNO" if self.source == "stored" else "observation_LNO"
        read = (*lanes, following, "lane_guard_LN")
        written = (*replay.RECORD, *replay.TREE)
        insert = Stage("insert", replay.insert, (*read, *written, *control, "status_LC"),
                       tuple(dict.fromkeys((*read, *written, *control, "status_LC"))), (*written, "status_LC"))  # fmt: skip
        count = Stage("count", policy.count, ("lane_guard_LN", "control_int_LC", "status_LC"),
                      ("lane_guard_LN", "control_int_LC", "status_LC"), ("control_int_LC", "status_LC"))  # fmt: skip
        return [
            Stage("schedule", policy.schedule, control, control, ("control_float_LC",)),
            *environment.observe_stages(),
            *self.policy.stages(explore=True),
            *environment.step_stages(),
            *(environment.observe_next_stages() if self.source == "stored" else []),
            insert,
            *environment.advance_stages(),
            count,
        ]
