from typing import ClassVar

from bellmark.component import Feature, component, setting
from bellmark.math import sqrt
from bellmark.plugins.features.timeframe import Timeframe, timeframe_setting


@component
class BollingerScore(Feature):
    """Distance of the close from the average of `window` closes in standard deviations of these closes.

    value[t] = (close[t] - mean) / deviation, with the population deviation; within -sqrt(window - 1) and sqrt(window - 1); 0 for
    constant closes. Source: Bollinger (2001), "Bollinger on Bollinger Bands": his %b is (value / 2 + 1) / 2 for bands of two deviations.
    Deviations are taken from integer differences in two passes, so that high prices with small moves lose nothing.
    """

    name: ClassVar[str] = "bollinger_score"
    window: int = setting(20, "closes in the mean, the present one among them", ge=2, unit="bars")
    timeframe: Timeframe = timeframe_setting()

    @staticmethod
    def row(t, close_T, window):
        distance = 0.0
        for k in range(t - window + 1, t + 1):
            distance += float(close_T[t] - close_T[k])
        distance /= float(window)
        square = 0.0
        for k in range(t - window + 1, t + 1):
            deviation = distance - float(close_T[t] - close_T[k])
            square += deviation * deviation
        if square == 0.0:
            return 0.0
        return distance / sqrt(square / float(window))

    def warm_up(self) -> int:
        return self.window - 1
