from typing import ClassVar

from bellmark.component import Feature, component, setting
from bellmark.math import log
from bellmark.plugins.features.timeframe import Timeframe, timeframe_setting


@component
class PriceLevel(Feature):
    """Log of the close against a fixed reference price.

    value[t] = log(close[t] / reference). Prices of zero or less count as one price quantum.
    For markets whose level says something, such as mean-reverting synthetic ones or spreads: on a trending instrument the test part lies
    outside all that training saw, so leave it out there.
    """

    name: ClassVar[str] = "price_level"
    reference: float = setting(100.0, "price at which the value is 0", gt=0.0, unit="currency")
    timeframe: Timeframe = timeframe_setting()

    @staticmethod
    def row(t, close_T, price_quantum, reference):
        return log(float(max(close_T[t], 1)) * price_quantum / reference)
