from typing import ClassVar

from bellmark.component import Feature, component, setting
from bellmark.plugins.features.bounds import bounded


@component
class PositionExposure(Feature):
    """Value of the position relative to the equity of the account.

    value = position x close[t] x (value of one quantum of one lot) / equity, marked at the close just seen, held within -limit and limit;
    0 when flat and where the equity is not positive. Negative when short (or long at a negative price).
    """

    name: ClassVar[str] = "position_exposure"
    limit: float = setting(10.0, "largest size that is shown", gt=0.0, unit="multiples of equity")

    @staticmethod
    def lane(t, close_T, equity, position, value_numerator, value_denominator, limit):
        if position == 0 or equity <= 0:
            return 0.0
        nano = float(position) * float(close_T[t]) * (float(value_numerator) / float(value_denominator))
        return bounded(nano / float(equity), limit)
