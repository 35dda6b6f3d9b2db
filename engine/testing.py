"""Small things to test learning with: an environment of a few lines whose best policy is known; and the proofs that nothing looks ahead.

`SignalEnvironment` follows the interface that the market environment has (see `bellmark.collector.Environment`), so losses, trainers and
the replay can be tested without market data.
"""

from __future__ import annotations

import numpy as np

from bellmark import backend, control
from bellmark.actions import ActionSpace
from bellmark.buffers import BufferRegistry
from bellmark.stages import Stage
from bellmark.testing_market import prove_no_look_ahead
from bellmark.testing_proof import prove, prove_policies_have_no_look_ahead, prove_strategy_has_no_look_ahead

__all__ = ["SignalEnvironment", "prove", "prove_no_look_ahead", "prove_policies_have_no_look_ahead", "prove_strategy_has_no_look_ahead"]

_STEP_READS = ("symbol_LN", "bar_LN", "end_bar_LN", "action_LN", "exposure_A", "feature_STF")
_STEP_WRITES = ("next_bar_LN", "next_portfolio_LNP", "next_allowed_LNA", "reward_LN", "terminated_LN", "truncated_LN")
_CARRIED = ("bar_LN", "end_bar_LN", "portfolio_LNP", "allowed_LNA")


class SignalEnvironment:
    """Feature 0 says which sign of exposure earns: reward = exposure * feature 0 of the bar seen - 0.02 |exposure - last exposure|.

    Features are standard normal, the portfolio features are the last exposure and 1. An episode ends by truncation after `episode_bars`
    bars, or by termination at every bar that is a multiple of 97. With `masked` the largest exposure is illegal on odd bars.
    """

    def __init__(self, space: ActionSpace, learners: int = 1, lanes: int = 4, *, market: int = 5, bars: int = 600,
                 episode_bars: int = 50, masked: bool = False, seed: int = 0) -> None:  # fmt: skip
        self.space, self.L, self.N, self.F, self.P, self.A = space, learners, lanes, market, 2, space.A
        self.O = market + 2
        self.episode_bars, self.masked = episode_bars, int(masked)
        self.feature_STF = np.random.default_rng(seed).standard_normal((1, bars, market)).astype(np.float32)

    def declare(self, registry: BufferRegistry) -> None:
        """Declares the tape, the lanes and the control block."""
        lanes = (self.L, self.N)
        control.declare(registry, self.L)
        registry.declare("feature_STF", "feature", self.feature_STF.shape)
        for name in ("mean_LF", "scale_LF"):
            registry.declare(name, "normalisation", (self.L, self.F))
        registry.declare("exposure_A", "exposure", (self.A,))
        for name in ("symbol", "bar", "next_bar", "end_bar"):
            registry.declare(f"{name}_LN", "index", lanes)
        registry.declare("reward_LN", "reward", lanes)
        for name in ("terminated", "truncated"):
            registry.declare(f"{name}_LN", "flag", lanes)
        for prefix in ("", "next_"):
            registry.declare(f"{prefix}portfolio_LNP", "portfolio", (*lanes, self.P))
            registry.declare(f"{prefix}allowed_LNA", "flag", (*lanes, self.A))
            registry.declare(f"{prefix}observation_LNO", "observation", (*lanes, self.O))

    def fill(self, registry: BufferRegistry) -> None:
        """The tape and lanes at their first bars."""
        registry["feature_STF"][:] = self.feature_STF
        registry["mean_LF"][:] = 0.0
        registry["scale_LF"][:] = 1.0
        registry["exposure_A"][:] = self.space.exposure_A
        registry["symbol_LN"][:] = 0
        registry["bar_LN"][:] = 1 + np.arange(self.N) * 7
        registry["end_bar_LN"][:] = registry["bar_LN"] + self.episode_bars
        registry["portfolio_LNP"][:] = (0.0, 1.0)
        registry["allowed_LNA"][:] = 1

    @property
    def given(self) -> tuple[str, ...]:
        """Buffers that are filled before the first step."""
        return ("feature_STF", "mean_LF", "scale_LF", "exposure_A", "symbol_LN", *_CARRIED)

    def observe_stages(self) -> list[Stage]:
        """observation_LNO."""
        return [_gather("observe", "bar_LN", "portfolio_LNP", "observation_LNO")]

    def observe_next_stages(self) -> list[Stage]:
        """next_observation_LNO."""
        return [_gather("observe_next", "next_bar_LN", "next_portfolio_LNP", "next_observation_LNO")]

    def step_stages(self) -> list[Stage]:
        """Reward and next state."""
        reads = (*_STEP_READS, "portfolio_LNP")
        return [Stage("signal_step", _step, (*reads, *_STEP_WRITES, self.masked), reads, _STEP_WRITES)]

    def advance_stages(self) -> list[Stage]:
        """Next bar, or a new episode further on."""
        reads = (*_STEP_WRITES, "feature_STF")
        return [Stage("signal_advance", _advance, (*reads, *_CARRIED, self.episode_bars), (*reads, *_CARRIED), _CARRIED)]


def _gather(name: str, bar: str, portfolio: str, observation: str) -> Stage:
    reads = ("feature_STF", "mean_LF", "scale_LF", "symbol_LN", bar, portfolio)
    return Stage(name, _observe, (*reads, observation), reads, (observation,))


@backend.compile
def _observe(feature_STF, mean_LF, scale_LF, symbol_LN, bar_LN, portfolio_LNP, observation_LNO):
    features = feature_STF.shape[2]
    for learner in range(bar_LN.shape[0]):
        for lane in range(bar_LN.shape[1]):
            for f in range(features):
                value = feature_STF[symbol_LN[learner, lane], bar_LN[learner, lane], f]
                observation_LNO[learner, lane, f] = (value - mean_LF[learner, f]) * scale_LF[learner, f]
            for p in range(portfolio_LNP.shape[2]):
                observation_LNO[learner, lane, features + p] = portfolio_LNP[learner, lane, p]


@backend.compile
def _step(symbol_LN, bar_LN, end_bar_LN, action_LN, exposure_A, feature_STF, portfolio_LNP,
          next_bar_LN, next_portfolio_LNP, next_allowed_LNA, reward_LN, terminated_LN, truncated_LN, masked):  # fmt: skip
    for learner in range(bar_LN.shape[0]):
        for lane in range(bar_LN.shape[1]):
            bar, exposure = bar_LN[learner, lane], exposure_A[action_LN[learner, lane]]
            cost = 0.02 * abs(exposure - portfolio_LNP[learner, lane, 0])
            reward_LN[learner, lane] = exposure * feature_STF[symbol_LN[learner, lane], bar, 0] - cost
            next_bar_LN[learner, lane] = bar + 1
            next_portfolio_LNP[learner, lane, 0] = exposure
            next_portfolio_LNP[learner, lane, 1] = 1.0
            for a in range(exposure_A.shape[0]):
                next_allowed_LNA[learner, lane, a] = 0 if masked and bar % 2 == 0 and exposure_A[a] >= 1.0 else 1
            terminated_LN[learner, lane] = 1 if (bar + 1) % 97 == 0 else 0
            truncated_LN[learner, lane] = 1 if bar + 1 >= end_bar_LN[learner, lane] and (bar + 1) % 97 != 0 else 0


@backend.compile
def _advance(next_bar_LN, next_portfolio_LNP, next_allowed_LNA, reward_LN, terminated_LN, truncated_LN, feature_STF,
             bar_LN, end_bar_LN, portfolio_LNP, allowed_LNA, episode_bars):  # fmt: skip
    for learner in range(bar_LN.shape[0]):
        for lane in range(bar_LN.shape[1]):
            bar = next_bar_LN[learner, lane]
            ended = terminated_LN[learner, lane] or truncated_LN[learner, lane]
            if ended:
                bar = (bar + 13) % (feature_STF.shape[1] - episode_bars - 2)
                end_bar_LN[learner, lane] = bar + episode_bars
            bar_LN[learner, lane] = bar
            for p in range(portfolio_LNP.shape[2]):
                portfolio_LNP[learner, lane, p] = next_portfolio_LNP[learner, lane, p] if not ended or p == 1 else 0.0
            for a in range(allowed_LNA.shape[2]):
                allowed_LNA[learner, lane, a] = 1 if ended else next_allowed_LNA[learner, lane, a]
