from typing import ClassVar

from bellmark.component import Feature, component
from bellmark.plugins.features.prices import position_in_range
from bellmark.plugins.features.timeframe import Timeframe, timeframe_setting


@component
class CloseLocation(Feature):
    """Position of the close within its own bar.

    value[t] = (close[t] - low[t]) / (high[t] - low[t]), within 0 (at the low) and 1 (at the high); 0.5 for a bar without range.
    Source: the close location value of Chaikin's accumulation line, which is 2 value - 1.
    """

    name: ClassVar[str] = "close_location"
    timeframe: Timeframe = timeframe_setting()

    @staticmethod
    def row(t, high_T, low_T, close_T):
        return position_in_range(close_T[t], low_T[t], high_T[t])
