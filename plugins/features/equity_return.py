from typing import ClassVar

from bellmark.component import Feature, component
from bellmark.plugins.features.bounds import squashed


@component
class EquityReturn(Feature):
    """Return of the account since its start, squashed.

    value = r / (1 + |r|) with r = (equity - start_equity) / start_equity, within -1 and 1; about r while r is small; -0.5 at an equity
    of 0; 0 where the start is not positive.
    """

    name: ClassVar[str] = "equity_return"

    @staticmethod
    def lane(equity, start_equity):
        if start_equity <= 0:
            return 0.0
        return squashed(float(equity - start_equity) / float(start_equity))
