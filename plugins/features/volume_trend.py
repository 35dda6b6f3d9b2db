from typing import ClassVar

from bellmark.component import Feature, component, setting
from bellmark.plugins.features.timeframe import Timeframe, timeframe_setting
from bellmark.plugins.features.volumes import contrast, mean_volume


@component
class VolumeTrend(Feature):
    """Recent mean volume against the mean volume of a longer window.

    value[t] = (recent - slow) / (recent + slow), within -1 and 1, with the means over `fast` and `slow` bars that end at t.
    Unknown volumes stay out of both means; 0 where both means are zero or unknown.
    """

    name: ClassVar[str] = "volume_trend"
    fast: int = setting(5, "bars in the recent mean", ge=1, unit="bars")
    slow: int = setting(20, "bars in the long mean", ge=2, unit="bars")
    timeframe: Timeframe = timeframe_setting()

    @staticmethod
    def row(t, volume_T, fast, slow):
        return contrast(mean_volume(t, volume_T, fast), mean_volume(t, volume_T, slow))

    def warm_up(self) -> int:
        return max(self.fast, self.slow) - 1
