from typing import ClassVar

from bellmark.component import Feature, component


@component
class HeldExposure(Feature):
    """The exposure that the account holds: the last one whose order was filled or needed none.

    It is on the scale of the actions whatever the lots are worth, so a network sees the position as well with one small contract as with
    all of the equity. 0 before the first fill.
    """

    name: ClassVar[str] = "held_exposure"

    @staticmethod
    def lane(held_exposure):
        return held_exposure
