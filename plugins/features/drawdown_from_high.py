from typing import ClassVar

from bellmark.component import Feature, component, setting
from bellmark.plugins.features.prices import highest
from bellmark.plugins.features.timeframe import Timeframe, timeframe_setting


@component
class DrawdownFromHigh(Feature):
    """Fall of the close from the highest high of `window` bars.

    value[t] = (close[t] - highest) / max(|close[t]|, |highest|), which is close / highest - 1 for positive prices; within -2 and 0; 0 where
    both are 0.
    """

    name: ClassVar[str] = "drawdown_from_high"
    window: int = setting(60, "bars searched for the high, the present one among them", ge=1, unit="bars")
    timeframe: Timeframe = timeframe_setting()

    @staticmethod
    def row(t, high_T, close_T, window):
        high = highest(t, high_T, window)
        size = max(abs(close_T[t]), abs(high))
        return float(close_T[t] - high) / float(size) if size > 0 else 0.0

    def warm_up(self) -> int:
        return self.window - 1
