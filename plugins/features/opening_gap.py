from typing import ClassVar

from bellmark.component import Feature, component
from bellmark.plugins.features.prices import log_change
from bellmark.plugins.features.timeframe import Timeframe, timeframe_setting


@component
class OpeningGap(Feature):
    """Log change from the close of the bar before to the open of the bar.

    value[t] = log(open[t] / close[t - 1]). With `timeframe = "session"` it is the overnight gap into the last COMPLETED session, not into
    the present one. Prices that are not positive: see `log_return`.
    """

    name: ClassVar[str] = "opening_gap"
    timeframe: Timeframe = timeframe_setting()

    @staticmethod
    def row(t, open_T, close_T):
        return log_change(open_T[t], close_T[t - 1])

    def warm_up(self) -> int:
        return 1
