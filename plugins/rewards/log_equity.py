"""Reward: the logarithm of the growth of equity."""

from typing import ClassVar

from bellmark.component import Reward, component, setting
from bellmark.math import log


@component
class LogEquity(Reward):
    """Log growth of equity over the bar, after all costs: scale * log(equity / previous_equity).

    Sum over an episode: scale * log of the final over the first equity. A ratio below `floor_ratio` (ruin in one bar) counts as
    `floor_ratio`, so that the reward is finite where the account is wiped out.
    """

    name: ClassVar[str] = "log_equity"
    scale: float = setting(100.0, "reward of one unit of log growth; 100 makes it per cent", gt=0.0)
    floor_ratio: float = setting(1e-3, "smallest growth factor that is told apart", gt=0.0, lt=1.0)

    @staticmethod
    def reward(equity, previous_equity, scale, floor_ratio):
        if previous_equity <= 0:
            return 0.0
        ratio = equity / previous_equity
        if ratio < floor_ratio:
            ratio = floor_ratio
        return scale * log(ratio)
