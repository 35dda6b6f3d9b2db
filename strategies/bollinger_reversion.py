"""Strategy: against closes outside Bollinger's bands."""

from __future__ import annotations

from typing import ClassVar

from pydantic import model_validator

from bellmark.component import Strategy, component, setting
from bellmark.math import sqrt


@component
class BollingerReversion(Strategy):
    """Long from a close below mean - `entry_deviations` * deviation until one at or above mean - `exit_deviations` * deviation.

    mean and (population) deviation are those of the last `window` closes, the present one included. Mirrored for the short side
    (`short_exposure`, 0 = none): from a close above the upper band until one at or below mean + exit_deviations * deviation. The other
    band reverses at once. Flat before the symbol has `window` bars, and in a window from its start until the first close outside the bands.
    Compared as window * close - sum against sqrt(window * sum of squares - sum^2), over differences to a close that is chosen anew every
    `window` bars: in whole numbers, and so exact, until the sum of squares passes 2^53; a bar costs the same whatever the window.
    Source: Bollinger (2001), "Bollinger on Bollinger Bands". A close lies never further than sqrt(window - 1) deviations from the mean.
    """

    name: ClassVar[str] = "bollinger_reversion"
    window: int = setting(20, "closes in the mean, the present one among them", ge=2, unit="bars")
    entry_deviations: float = setting(2.0, "deviations from the mean to the bands", gt=0.0, le=100.0, unit="deviations")
    exit_deviations: float = setting(0.0, "deviations from the mean at which a position is closed", ge=0.0, le=100.0, unit="deviations")
    short_exposure: float = setting(0.0, "exposure after a close above the upper band", ge=-1.0, le=1.0)
    state: ClassVar[dict[str, str]] = {"anchor": "int64", "total": "int64", "square": "float64", "since": "int64", "side": "int64"}

    @model_validator(mode="after")
    def _exit_inside_the_bands(self) -> BollingerReversion:
        if self.exit_deviations >= self.entry_deviations:
            found = f"{self.exit_deviations:g} and {self.entry_deviations:g}"
            raise ValueError(f"expected exit_deviations below entry_deviations, found {found}")
        if self.entry_deviations**2 >= self.window - 1:
            raise ValueError(
                f"expected entry_deviations below sqrt(window - 1) = {(self.window - 1) ** 0.5:.4g}, beyond which no close can lie, "
                f"found {self.entry_deviations:g}"
            )
        return self

    @staticmethod
    def decide(t, close_T, window, entry_deviations, exit_deviations, short_exposure, anchor, total, square, since, side):
        if t + 1 < window:
            return 0.0, 0, 0, 0.0, 0, 0
        if since == 0:  # from scratch: what rounding left of larger squares before is gone
            anchor = close_T[t]
            total = 0
            square = 0.0
            for bar in range(t - window + 1, t + 1):
                distance = close_T[bar] - anchor
                total += distance
                square += float(distance) * float(distance)
        else:
            change = close_T[t] - close_T[t - window]
            total += change
            square += float(change) * float(close_T[t] - anchor + (close_T[t - window] - anchor))
        since = since + 1 if since + 1 < window else 0
        gap = float(window * (close_T[t] - anchor) - total)
        deviation = sqrt(max(window * square - float(total) * float(total), 0.0))
        if gap < -entry_deviations * deviation:
            side = 1
        elif gap > entry_deviations * deviation:
            side = -1
        elif (side > 0 and gap >= -exit_deviations * deviation) or (side < 0 and gap <= exit_deviations * deviation):
            side = 0
        exposure = 1.0 if side > 0 else (short_exposure if side < 0 else 0.0)
        return exposure, anchor, total, square, since, side
