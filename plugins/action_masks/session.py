"""Action mask: no position over the end of the session."""

from typing import ClassVar

from bellmark.component import ActionMask, component, setting


@component
class Session(ActionMask):
    """Allows only flat from `flat_bars` bars before the session's last bar on; other actions are allowed before that.

    An order that is decided at the close of a bar works in the next bar, so with `flat_bars` = 1 the position is closed at the open of
    the session's last bar. On the last bar itself an order would work in the next session and is allowed. Sessions of one bar (daily
    data) are not restricted.
    """

    name: ClassVar[str] = "session"
    flat_bars: int = setting(1, "bars before the session's last bar from which only flat is legal", ge=1, unit="bars")

    @staticmethod
    def allowed(exposure, t, session_left_T, flat_bars):
        left = session_left_T[t]
        return exposure == 0.0 or left == 0 or left > flat_bars
