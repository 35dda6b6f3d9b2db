from typing import ClassVar

from bellmark.component import Feature, component, setting
from bellmark.plugins.features.bounds import bounded


@component
class EquityDrawdown(Feature):
    """Fall of the account's equity from its highest value so far.

    value = equity / peak_equity - 1 with the difference taken in whole nano-currency; 0 at the peak, below -1 for a negative equity, held
    at -limit at least; -limit where the peak is not positive.
    """

    name: ClassVar[str] = "equity_drawdown"
    limit: float = setting(2.0, "largest fall that is shown", gt=0.0, unit="fraction of peak equity")

    @staticmethod
    def lane(equity, peak_equity, limit):
        if peak_equity <= 0:
            return -limit
        return bounded(float(equity - peak_equity) / float(peak_equity), limit)
