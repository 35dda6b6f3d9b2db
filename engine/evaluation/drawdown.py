"""Drawdowns: how far, when and how long equity was below its highest point so far.

drawdown_t = equity_t / max(equity_0 .. equity_t) - 1, the start included: at most 0, below -1 where equity is negative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bellmark.evaluation.curve import Curve, drawdown_series

__all__ = ["Drawdown", "drawdown_series", "drawdown_table"]


@dataclass(frozen=True)
class Drawdown:
    """One stretch below the high. Points count from 0 = start; the bar of golden tables is the point minus one.

    peak: the last point on the high before the stretch; recovery: the first point back at or above it, None while it lasts.
    """

    depth: float
    peak: int
    first_underwater: int
    valley: int
    recovery: int | None
    bars_underwater: int
    peak_ns: int
    valley_ns: int
    recovery_ns: int | None


def drawdown_table(curve: Curve, count: int | None = None) -> list[Drawdown]:
    """The deepest drawdowns, deepest first; of equal depths the earliest first. `count` None gives all of them."""
    drawdown = curve.drawdown
    under = drawdown < 0.0
    if not under.any():
        return []
    edges = np.diff(under.astype(np.int8), prepend=0, append=0)
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    # reduceat over alternating bounds: even entries are the stretches; the last stretch may end at the array's end
    bounds = np.ravel(np.column_stack((starts, ends)))
    depths = np.minimum.reduceat(drawdown, bounds[bounds < drawdown.size])[::2]
    order = np.argsort(depths, kind="stable")[:count]
    return [_drawdown(curve, drawdown, int(starts[k]), int(ends[k])) for k in order]


def _drawdown(curve: Curve, drawdown: NDArray[np.float64], start: int, end: int) -> Drawdown:
    valley = start + int(np.argmin(drawdown[start:end]))
    recovery = end if end < drawdown.size else None
    stamp = curve.stamp_ns
    return Drawdown(
        depth=float(drawdown[valley]),
        peak=start - 1,
        first_underwater=start,
        valley=valley,
        recovery=recovery,
        bars_underwater=end - start,
        peak_ns=int(stamp[start - 1]),
        valley_ns=int(stamp[valley]),
        recovery_ns=None if recovery is None else int(stamp[recovery]),
    )
