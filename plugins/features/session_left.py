from typing import ClassVar

from bellmark.component import Feature, component, setting


@component
class SessionLeft(Feature):
    """Bars left to the last bar of the session, squashed.

    value = left / (left + scale), within 0 (the session's last bar) and 1; 0.5 at `scale` bars. It changes most near the close, where a
    flat-by-close rule bites. 0 throughout where every session is one bar (daily data).
    """

    name: ClassVar[str] = "session_left"
    scale: float = setting(30.0, "bars left at which the value is 0.5", gt=0.0, unit="bars")

    @staticmethod
    def lane(t, session_left_T, scale):
        left = float(session_left_T[t])
        return left / (left + scale)
