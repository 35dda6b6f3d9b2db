from typing import ClassVar

from bellmark.component import Feature, component, setting


@component
class BarsInPosition(Feature):
    """Age of the open position, squashed.

    value = bars / (bars + scale), within 0 (flat) and 1; 0.5 at `scale` bars.
    """

    name: ClassVar[str] = "bars_in_position"
    scale: float = setting(20.0, "age at which the value is 0.5", gt=0.0, unit="bars")

    @staticmethod
    def lane(bars_in_position, scale):
        return float(bars_in_position) / (float(bars_in_position) + scale)
