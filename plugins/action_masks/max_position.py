"""Action mask: a limit on the size of the position."""

from typing import ClassVar

from bellmark.component import ActionMask, component, setting


@component
class MaxPosition(ActionMask):
    """Allows an action if its target is at most `max_lots` lots on either side. Flat is always allowed.

    The target is that of the order which the action would give: with market.resize = "on_change" the exposure that is held keeps its lots.
    """

    name: ClassVar[str] = "max_position"
    max_lots: int = setting(1_000_000, "largest position on either side", ge=0, unit="lots")

    @staticmethod
    def allowed(target_lots, max_lots):
        return -max_lots <= target_lots <= max_lots
