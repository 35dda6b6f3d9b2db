from typing import ClassVar, Literal

from bellmark.component import Feature, component, setting
from bellmark.math import sqrt
from bellmark.plugins.features.timeframe import Timeframe, timeframe_setting

RELATIVE = 0  # place in the choices of `unit`


@component
class AverageDistance(Feature):
    """Distance of the close from the simple average of `window` closes.

    distance[t] = close[t] - mean of close[t - window + 1 .. t]
    unit "relative": distance / mean |close|, within -2 and 2.
    unit "volatility": distance / sqrt(mean of (close[k] - close[k - 1])^2 over the same bars), a number of typical one-bar moves.
    0 where the divisor is 0 (constant prices). Differences are taken in whole quanta, so that a price of 5000 with ticks of 0.25 loses
    nothing.
    """

    name: ClassVar[str] = "average_distance"
    window: int = setting(20, "closes in the average, the present one among them", ge=2, unit="bars")
    unit: Literal["relative", "volatility"] = setting("relative", "what the distance is divided by")
    timeframe: Timeframe = timeframe_setting()

    @staticmethod
    def row(t, close_T, window, unit):
        distance = 0.0
        size = 0.0
        square = 0.0
        for k in range(t - window + 1, t + 1):
            distance += float(close_T[t] - close_T[k])
            size += float(abs(close_T[k]))
            change = float(close_T[k] - close_T[k - 1])
            square += change * change
        divisor = size if unit == RELATIVE else float(window) * sqrt(square / float(window))
        if divisor == 0.0:
            return 0.0
        return distance / divisor

    def warm_up(self) -> int:
        return self.window
