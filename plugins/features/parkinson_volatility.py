from typing import ClassVar

from bellmark.component import Feature, component, setting
from bellmark.math import sqrt
from bellmark.plugins.features.prices import log_change
from bellmark.plugins.features.timeframe import Timeframe, timeframe_setting

FOUR_LOG_TWO = 2.772588722239781


@component
class ParkinsonVolatility(Feature):
    """Volatility from the high-low ranges of `window` bars.

    value[t] = sqrt(sum_k log(high[t - k] / low[t - k])^2 / (4 log 2 window)); per bar, not annualised; 0 for bars without range.
    Source: Parkinson (1980), "The extreme value method for estimating the variance of the rate of return", equation 9.
    Prices that are not positive: see `log_return`.
    """

    name: ClassVar[str] = "parkinson_volatility"
    window: int = setting(20, "bars in the mean", ge=1, unit="bars")
    timeframe: Timeframe = timeframe_setting()

    @staticmethod
    def row(t, high_T, low_T, window):
        total = 0.0
        for k in range(t - window + 1, t + 1):
            change = log_change(high_T[k], low_T[k])
            total += change * change
        return sqrt(total / (FOUR_LOG_TWO * float(window)))

    def warm_up(self) -> int:
        return self.window - 1
