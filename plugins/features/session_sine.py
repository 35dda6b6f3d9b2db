from typing import ClassVar

from bellmark.component import Feature, component
from bellmark.math import sin_turn


@component
class SessionSine(Feature):
    """Sine of the time of session.

    value[t] = sin(2 pi session_fraction[t]), the fraction being 0 at the session's start and below 1 within it. Together with
    `session_cosine` it gives each time its own point on a circle. Where every session is one bar (daily data) it is constant.
    """

    name: ClassVar[str] = "session_sine"

    @staticmethod
    def row(t, session_fraction_T):
        return sin_turn(session_fraction_T[t])
