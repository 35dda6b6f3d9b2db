from typing import ClassVar

from bellmark.component import Feature, component, setting
from bellmark.plugins.features.timeframe import Timeframe, timeframe_setting


@component
class UpRatio(Feature):
    """Share of rising closes among `window` bars.

    value[t] = (number of close[k] > close[k - 1] + half the number of equal ones) / window, within 0 and 1; 0.5 for constant prices.
    """

    name: ClassVar[str] = "up_ratio"
    window: int = setting(20, "moves that are counted", ge=1, unit="bars")
    timeframe: Timeframe = timeframe_setting()

    @staticmethod
    def row(t, close_T, window):
        halves = 0
        for k in range(t - window + 1, t + 1):
            if close_T[k] > close_T[k - 1]:
                halves += 2
            elif close_T[k] == close_T[k - 1]:
                halves += 1
        return float(halves) / float(2 * window)

    def warm_up(self) -> int:
        return self.window
