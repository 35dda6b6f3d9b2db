from typing import ClassVar

from bellmark.component import Feature, component, setting
from bellmark.plugins.features.prices import log_change
from bellmark.plugins.features.timeframe import Timeframe, timeframe_setting


@component
class LogReturn(Feature):
    """Log return over `window` bars.

    value[t] = log(close[t] / close[t - window]), a natural log (not annualised).
    Where one of the two prices is not positive: (new - old) / max(|new|, |old|), so that it stays within -2 and 2.
    """

    name: ClassVar[str] = "log_return"
    window: int = setting(1, "bars over which the return is taken", ge=1, unit="bars")
    timeframe: Timeframe = timeframe_setting()

    @staticmethod
    def row(t, close_T, window):
        return log_change(close_T[t], close_T[t - window])

    def warm_up(self) -> int:
        return self.window
