from typing import ClassVar

from bellmark.component import Feature, component, setting
from bellmark.plugins.features.prices import highest, lowest, position_in_range
from bellmark.plugins.features.timeframe import Timeframe, timeframe_setting


@component
class RangePosition(Feature):
    """Position of the close in the high-low range of `window` bars.

    value[t] = (close[t] - lowest low) / (highest high - lowest low), within 0 and 1; 0.5 where the range has no width.
    Source: Lane's stochastic %K (1950s), here as a fraction in place of percent.
    """

    name: ClassVar[str] = "range_position"
    window: int = setting(20, "bars of the range, the present one among them", ge=1, unit="bars")
    timeframe: Timeframe = timeframe_setting()

    @staticmethod
    def row(t, high_T, low_T, close_T, window):
        return position_in_range(close_T[t], lowest(t, low_T, window), highest(t, high_T, window))

    def warm_up(self) -> int:
        return self.window - 1
