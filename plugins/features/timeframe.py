"""The setting that says which bars a market feature reads."""

from typing import Any, Literal

from bellmark.component import setting

# A number is a count of base bars within one session; features see completed higher bars only.
Timeframe = Literal["bar", "5", "15", "60", "session"]


def timeframe_setting() -> Any:
    """The common setting `timeframe`. It is static: the engine picks the bars, the row function never sees it."""
    return setting("bar", "bars that are read: base bars, groups of 5, 15 or 60 base bars, or sessions", static=True)
