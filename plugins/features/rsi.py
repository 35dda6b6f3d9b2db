from typing import ClassVar

from bellmark.component import Feature, component, setting
from bellmark.plugins.features.timeframe import Timeframe, timeframe_setting


@component
class RelativeStrengthIndex(Feature):
    """Relative strength index: the share of gains in all moves of `window` bars.

    value[t] = gains / (gains + losses) with sums of positive and negative close-to-close moves, within 0 and 1; 0.5 without any move.
    Source: Wilder (1978), "New Concepts in Technical Trading Systems". Differs: simple sums in place of Wilder's smoothing (Cutler's
    form), so that a value depends on `window` + 1 closes only and not on where the data begin; a fraction in place of percent.
    """

    name: ClassVar[str] = "rsi"
    window: int = setting(14, "moves in the sums", ge=1, unit="bars")
    timeframe: Timeframe = timeframe_setting()

    @staticmethod
    def row(t, close_T, window):
        gains = 0.0
        moves = 0.0
        for k in range(t - window + 1, t + 1):
            change = close_T[k] - close_T[k - 1]
            moves += float(abs(change))
            if change > 0:
                gains += float(change)
        return gains / moves if moves > 0.0 else 0.5

    def warm_up(self) -> int:
        return self.window
