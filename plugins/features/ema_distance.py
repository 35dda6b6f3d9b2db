from typing import ClassVar

from bellmark.component import Feature, component, setting
from bellmark.plugins.features.timeframe import Timeframe, timeframe_setting


@component
class EmaDistance(Feature):
    """Distance of the close from its exponential moving average.

    ema[0] = close[0]; ema[t] = ema[t - 1] + 2 / (window + 1) (close[t] - ema[t - 1])
    value[t] = (close[t] - ema[t]) / max(|close[t]|, |ema[t]|), within -2 and 2; 0 where both are 0.
    The average starts at the first bar of the data; after the warm-up of 3 windows that bar weighs 0.25 % at most. The value therefore
    depends (below that weight) on where the data begin, unlike that of features over a fixed window.
    """

    name: ClassVar[str] = "ema_distance"
    state: ClassVar[dict[str, str]] = {"ema": "float64"}
    window: int = setting(20, "span of the average: the newest bar weighs 2 / (window + 1)", ge=1, unit="bars")
    timeframe: Timeframe = timeframe_setting()

    @staticmethod
    def scan(t, close_T, ema, window):
        close = float(close_T[t])
        ema = close if t == 0 else ema + 2.0 / (float(window) + 1.0) * (close - ema)
        size = max(abs(close), abs(ema))
        value = (close - ema) / size if size > 0.0 else 0.0
        return value, ema

    def warm_up(self) -> int:
        return 3 * self.window
