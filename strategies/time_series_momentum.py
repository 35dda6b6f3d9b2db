"""Strategy: the sign of the past return."""

from typing import ClassVar

from bellmark.component import Strategy, component, setting


@component
class TimeSeriesMomentum(Strategy):
    """Long after a rise over `window` bars, `short_exposure` after a fall, flat where the price is where it was.

    Sign of close[t - skip] - close[t - skip - window], in integers; `skip` leaves out the newest bars, which tend to reverse. Flat before
    the symbol has window + skip bars before the present one.
    Source: Moskowitz, Ooi and Pedersen (2012), "Time series momentum". Differs: decided at every bar in place of every month, and not
    scaled by volatility; the sizing `volatility_target` does that.
    """

    name: ClassVar[str] = "time_series_momentum"
    window: int = setting(252, "bars over which the return is taken", ge=1, unit="bars")
    skip: int = setting(0, "newest bars that are left out", ge=0, unit="bars")
    short_exposure: float = setting(0.0, "exposure after a fall", ge=-1.0, le=1.0)

    @staticmethod
    def decide(t, close_T, window, skip, short_exposure):
        if t < window + skip:
            return 0.0
        newest, oldest = close_T[t - skip], close_T[t - skip - window]
        if newest > oldest:
            return 1.0
        return short_exposure if newest < oldest else 0.0
