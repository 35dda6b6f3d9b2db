"""Strategy: never trade."""

from typing import ClassVar

from bellmark.component import Strategy, component


@component
class Flat(Strategy):
    """No position at any time: the baseline that costs nothing."""

    name: ClassVar[str] = "flat"

    @staticmethod
    def decide():
        return 0.0
