from typing import ClassVar

from bellmark.component import Feature, component, setting
from bellmark.plugins.features.bounds import bounded


@component
class UnrealizedReturn(Feature):
    """Unrealised profit of the open position relative to the equity of the account.

    value = position x (close[t] - average entry price) x (value of one quantum of one lot) / equity, held within -limit and limit;
    0 when flat and where the equity is not positive. Costs are in the equity already and are not counted again.
    """

    name: ClassVar[str] = "unrealized_return"
    limit: float = setting(1.0, "largest size that is shown", gt=0.0, unit="fraction of equity")

    @staticmethod
    def lane(t, close_T, equity, position, entry_price, value_numerator, value_denominator, limit):
        if position == 0 or equity <= 0:
            return 0.0
        nano = float(position) * (float(close_T[t]) - entry_price) * (float(value_numerator) / float(value_denominator))
        return bounded(nano / float(equity), limit)
