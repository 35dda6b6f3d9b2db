from typing import ClassVar

from bellmark.component import Feature, component, setting
from bellmark.plugins.features.timeframe import Timeframe, timeframe_setting


@component
class AverageTrueRange(Feature):
    """Average true range of `window` bars relative to the price.

    true_range[k] = max(high[k], close[k - 1]) - min(low[k], close[k - 1])
    value[t] = sum of true_range / sum of |close| over the bars t - window + 1 .. t; 0 where every close is 0.
    Source: Wilder (1978). Differs: a simple mean in place of his smoothing, so that the value does not depend on where the data begin, and
    divided by the average absolute close, so that values of different prices compare.
    """

    name: ClassVar[str] = "average_true_range"
    window: int = setting(14, "bars in the mean", ge=1, unit="bars")
    timeframe: Timeframe = timeframe_setting()

    @staticmethod
    def row(t, high_T, low_T, close_T, window):
        ranges = 0.0
        size = 0.0
        for k in range(t - window + 1, t + 1):
            before = close_T[k - 1]
            ranges += float(max(high_T[k], before) - min(low_T[k], before))
            size += float(abs(close_T[k]))
        return ranges / size if size > 0.0 else 0.0

    def warm_up(self) -> int:
        return self.window
