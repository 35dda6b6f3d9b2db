from typing import ClassVar

from bellmark.component import Feature, component, setting
from bellmark.math import sqrt
from bellmark.plugins.features.prices import log_change
from bellmark.plugins.features.timeframe import Timeframe, timeframe_setting


@component
class RealizedVolatility(Feature):
    """Root mean square of the log returns of `window` bars.

    value[t] = sqrt(sum_k r[t - k]^2 / window), r[k] = log(close[k] / close[k - 1]); per bar, not annualised; 0 for constant prices.
    Source: Andersen, Bollerslev, Diebold and Labys (2003), realised variance. Differs by the mean over bars in place of the sum, so that
    values of different windows compare. The mean return is not removed, as there. Prices that are not positive: see `log_return`.
    """

    name: ClassVar[str] = "realized_volatility"
    window: int = setting(20, "returns in the mean", ge=1, unit="bars")
    timeframe: Timeframe = timeframe_setting()

    @staticmethod
    def row(t, close_T, window):
        total = 0.0
        for k in range(t - window + 1, t + 1):
            change = log_change(close_T[k], close_T[k - 1])
            total += change * change
        return sqrt(total / float(window))

    def warm_up(self) -> int:
        return self.window
