"""The trainer `dqn`: (double) deep Q-learning with prioritised replay, any loss of the catalog."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from bellmark.component import Trainer, component, setting
from bellmark.errors import UsageError


@component
class DQN(Trainer):
    """Deep Q-learning with a target network that follows slowly, double action choice and prioritised replay.

    target = return of n steps + discount * value under the target network of the action that is best, among the legal ones, under the
    online network (`double`) or under the target network itself. Exploration is epsilon-greedy over legal actions.

    Source: Mnih et al. 2015; van Hasselt, Guez and Silver 2016; Schaul et al. 2016; Hessel et al. 2018. Differs: the target network is a
    moving average (tau) and not a periodic copy; priorities are integers.
    """

    name: ClassVar[str] = "dqn"

    epochs: int = setting(10, "epochs; statistics, validation and a checkpoint come after each", ge=1)
    updates_per_epoch: int = setting(500, "updates of the network in an epoch", ge=1)
    batch: int = setting(64, "transitions in an update", ge=1)
    gamma: float = setting(0.99, "discount a step; 0 looks at the next reward alone", ge=0.0, le=1.0)
    tau: float = setting(0.005, "share of the way the target network goes to the online one each update; 1 = no target", gt=0.0, le=1.0)
    double: bool = setting(True, "choose the next action by the online network")
    updates_per_collect: int = setting(1, "updates for each step of all lanes", ge=1)
    epsilon_start: float = setting(1.0, "share of random actions at the start", ge=0.0, le=1.0)
    epsilon_end: float = setting(0.02, "share of random actions from `epsilon_updates` on", ge=0.0, le=1.0)
    epsilon_updates: int = setting(2000, "updates over which the share falls in a straight line", ge=0)
    reward_bound: float = setting(1e6, "a reward beyond it is refused", gt=0.0)
    skip_limit: int = setting(10, "bad updates in a row after which a learner is frozen", ge=1)

    def train(self, assembly: Any, run: Any, *, resume: bool = False, progress: Callable[..., None] | None = None) -> None:
        """Trains every learner of the assembly into the run."""
        from bellmark.training import run_training

        run_training(self.training(assembly), run, resume=resume, progress=progress, trackers=tuple(assembly.profile.trackers.values()))

    def training(self, assembly: Any, *, checked: bool = False) -> Any:
        """The training of an assembly, before its first step; `checked` puts guard zones and NaN around and into its buffers."""
        from bellmark.training import Training

        profile = assembly.profile
        learners = profile.learners
        return Training(
            environment=assembly.environment,
            space=assembly.action_space,
            network=self.network(profile, assembly.action_space, assembly.environment.O),
            loss=self.loss(profile),
            settings=self.settings(profile),
            seeds=[learners.seed + learner for learner in range(learners.count)],
            fill=assembly.fill,
            validate=assembly.validation,
            plugins=assembly.plugins,
            checked=checked,
        )

    def policy(self, profile: Any, space: Any, observation: int, learners: int, lanes: int) -> Any:
        """The network of a profile acting on lanes (see `bellmark.collector.Policy`); the caller fills `parameter_LP`."""
        from bellmark.collector import Policy

        return Policy(self.network(profile, space, observation), space, self.loss(profile), learners, lanes)

    def network(self, profile: Any, space: Any, observation: int) -> Any:
        """The shape of the network of a profile."""
        from bellmark.network import Network

        settings = profile.network
        return Network(observation, tuple(settings.hidden), settings.activation, settings.dueling, space.D, self.loss(profile).outputs)

    def loss(self, profile: Any) -> Any:
        """The loss of a profile, compiled when it is first launched."""
        from bellmark.losses import CompiledLoss

        if len(profile.losses) != 1:
            raise UsageError(f"losses: trainer 'dqn' expected one loss, found {len(profile.losses)}: {', '.join(profile.losses) or 'none'}")
        return CompiledLoss(next(iter(profile.losses.values())), self.double)

    def settings(self, profile: Any) -> Any:
        """The numbers of a profile as the training loop and the control block take them."""
        from bellmark.training import PRIORITY_SCALE, TrainingSettings

        adam, replay, updates = profile.optimizer, profile.replay, self.epochs * self.updates_per_epoch
        end = adam.learning_rate if adam.learning_rate_end is None else adam.learning_rate_end
        return TrainingSettings(
            epochs=self.epochs,
            updates_per_epoch=self.updates_per_epoch,
            batch=self.batch,
            updates_per_collect=self.updates_per_collect,
            capacity=replay.capacity,
            source=replay.source,
            control={
                "learning_rate_start": adam.learning_rate,
                "learning_rate_end": end,
                "learning_rate_updates": updates,
                "adam_beta1": adam.beta1,
                "adam_beta2": adam.beta2,
                "adam_epsilon": adam.epsilon,
                "max_grad_norm": adam.max_grad_norm,
                "gamma": self.gamma,
                "tau": self.tau,
                "epsilon_start": self.epsilon_start,
                "epsilon_end": self.epsilon_end,
                "epsilon_updates": self.epsilon_updates,
                "priority_alpha": replay.alpha,
                "priority_beta_start": replay.beta_start,
                "priority_beta_end": replay.beta_end,
                "beta_updates": updates,
                "priority_epsilon": replay.priority_epsilon,
                "priority_scale": PRIORITY_SCALE,
                "reward_bound": self.reward_bound,
                "n_step": replay.n_step,
                "learning_starts": replay.learning_starts,
                "skip_limit": self.skip_limit,
            },
        )
