"""Strategy: random positions, the baseline of a policy that trades as often and knows nothing."""

from dataclasses import replace
from typing import ClassVar

from bellmark.component import Strategy, component, setting
from bellmark.rng import STREAM_STRATEGY, uniform, words


@component
class Random(Strategy):
    """Holds a position drawn from -1, 0 and 1 and draws anew with `change_probability` a bar.

    Drawn from Philox (seed, STRATEGY) at (lane, bar): the same for a seed whatever else runs. A draw may repeat the held position, so the
    expected number of trades is 2/3 of the number of draws.
    """

    name: ClassVar[str] = "random"
    seed: int = setting(1, "seed of the draws", ge=0)
    change_probability: float = setting(0.1, "chance of a new draw a bar", ge=0.0, le=1.0)
    state: ClassVar[dict[str, str]] = {"side": "float64"}

    def matched(self, exposure_turnover: float) -> Strategy:
        """With the chance of a draw at which the exposure is expected to change as much: a draw changes it by 8/9 on average."""
        return replace(self, change_probability=min(1.0, exposure_turnover * 9.0 / 8.0))

    @staticmethod
    def decide(t, lane, seed, change_probability, side):
        change, choice, _, _ = words(seed, STREAM_STRATEGY, lane, t, 0)
        if uniform(change) < change_probability:
            level = uniform(choice)
            side = -1.0 if level < 1.0 / 3.0 else (0.0 if level < 2.0 / 3.0 else 1.0)
        return side, side
