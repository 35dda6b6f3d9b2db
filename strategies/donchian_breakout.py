"""Strategy: breakout of a price channel."""

from __future__ import annotations

from typing import ClassVar

from pydantic import model_validator

from bellmark.component import Strategy, component, setting


@component
class DonchianBreakout(Strategy):
    """Long from a close above the highest high of the `entry` bars before it until a close below the lowest low of the `exit` bars before.

    Mirrored for the short side: from a close below the lowest low of the `entry` bars (exposure `short_exposure`, 0 = none) until one above
    the highest high of the `exit` bars. A breakout of the other side reverses at once. A close on the edge of a channel is inside it. Flat
    before the symbol has `entry` bars before the present one, and in a window from its start until the first breakout within it.
    Compared in integers. A look back stops at the first bar that the close is not beyond, and no side is looked at that could change
    nothing, so that a bar costs a few comparisons and the whole window only where a position begins.
    Source: the channel rule of Donchian as in Brock, Lakonishok and LeBaron (1992), "trading range break". Differs: highs and lows in place
    of closes, and an exit channel of its own in place of a fixed holding period.
    """

    name: ClassVar[str] = "donchian_breakout"
    entry: int = setting(55, "bars of the channel whose breakout opens a position", ge=1, unit="bars")
    exit: int = setting(20, "bars of the channel whose breakout closes it; at most entry", ge=1, unit="bars")
    short_exposure: float = setting(0.0, "exposure after a breakout downwards", ge=-1.0, le=1.0)
    state: ClassVar[dict[str, str]] = {"side": "int64"}

    @model_validator(mode="after")
    def _exit_within_entry(self) -> DonchianBreakout:
        if self.exit > self.entry:
            raise ValueError(f"expected exit at most entry, found exit {self.exit} and entry {self.entry}")
        return self

    @staticmethod
    def decide(t, high_T, low_T, close_T, entry, exit, short_exposure, side):
        if t < entry:
            return 0.0, 0
        if side <= 0 and _above(t, high_T, close_T[t], entry):
            side = 1
        elif side >= 0 and _below(t, low_T, close_T[t], entry):
            side = -1
        elif (side > 0 and _below(t, low_T, close_T[t], exit)) or (side < 0 and _above(t, high_T, close_T[t], exit)):
            side = 0
        if side == 0:
            return 0.0, side
        return 1.0 if side > 0 else short_exposure, side


def _above(t, high_T, price, bars):
    bar = t - 1
    while bar >= t - bars and high_T[bar] < price:
        bar -= 1
    return bar < t - bars


def _below(t, low_T, price, bars):
    bar = t - 1
    while bar >= t - bars and low_T[bar] > price:
        bar -= 1
    return bar < t - bars
