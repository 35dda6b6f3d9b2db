from typing import ClassVar

from bellmark.component import Feature, component
from bellmark.math import cos_turn


@component
class SessionCosine(Feature):
    """Cosine of the time of session.

    value[t] = cos(2 pi session_fraction[t]); see `session_sine`.
    """

    name: ClassVar[str] = "session_cosine"

    @staticmethod
    def row(t, session_fraction_T):
        return cos_turn(session_fraction_T[t])
