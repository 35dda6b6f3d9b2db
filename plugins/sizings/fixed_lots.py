"""Sizing: a fixed number of lots at full exposure."""

from typing import ClassVar

from bellmark.component import Sizing, component, setting
from bellmark.market import whole_lots


@component
class FixedLots(Sizing):
    """Target = exposure * lots, rounded half away from zero."""

    name: ClassVar[str] = "fixed_lots"
    lots: int = setting(1, "lots held at an exposure of 1", ge=1, unit="lots")

    @staticmethod
    def target(exposure, lots):
        size = exposure * lots
        return whole_lots(size + 0.5) if size >= 0.0 else -whole_lots(0.5 - size)
