from typing import ClassVar

from bellmark.component import Feature, component, setting
from bellmark.plugins.features.timeframe import Timeframe, timeframe_setting
from bellmark.plugins.features.volumes import contrast, mean_volume


@component
class RelativeVolume(Feature):
    """Volume of the bar against the mean volume of `window` bars.

    value[t] = (volume[t] - mean) / (volume[t] + mean), within -1 and 1: tanh(log(volume / mean) / 2), so that a bar with 100 times the
    usual volume does not drown the rest. The mean includes bar t and leaves out unknown volumes. A volume of zero gives -1, an unknown
    volume gives 0, and so does a mean of zero: where volume is unknown the column is constant and carries nothing.
    """

    name: ClassVar[str] = "relative_volume"
    window: int = setting(20, "bars in the mean, the present one among them", ge=2, unit="bars")
    timeframe: Timeframe = timeframe_setting()

    @staticmethod
    def row(t, volume_T, window):
        if not volume_T[t] >= 0.0:  # true for NaN: unknown
            return 0.0
        return contrast(volume_T[t], mean_volume(t, volume_T, window))

    def warm_up(self) -> int:
        return self.window - 1
