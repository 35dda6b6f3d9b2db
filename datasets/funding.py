"""Which funding instants are missing: between two of a file, and at the ends of the bars that they go with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bellmark import clock

if TYPE_CHECKING:
    import polars

_HOUR = 3600 * clock.SECOND


def missing(frame: polars.DataFrame, spans: dict[str, tuple[int, int]], hours: float | None = None) -> list[str]:
    """What to say of missing instants, a line for each symbol that misses some.

    frame: symbol, ts (UTC ns, in order) and, where the file knows it, interval_hours. spans: first and last close of the bars of a symbol.
    hours: from one instant to the next by the instrument, where the file does not say; without either nothing is called missing. Between
    two instants the longer of their intervals counts: exchanges change it.
    """
    found = []
    for symbol, (first, last) in spans.items():
        own = frame.filter(frame["symbol"] == symbol)
        if not own.height:
            found.append(f"{symbol}: no funding rates are given for it; its positions pay none")
            continue
        ts_K = own["ts"].to_numpy().astype(np.int64)
        interval_K = _intervals(own, hours)
        if interval_K is not None:
            found += _told(symbol, ts_K, interval_K, first, last)
    return found


def _intervals(own: polars.DataFrame, hours: float | None) -> NDArray[np.int64] | None:
    known = own["interval_hours"].fill_null(float("nan")).to_numpy() if "interval_hours" in own.columns else np.full(own.height, np.nan)
    known = np.where(np.isnan(known), np.nan if hours is None else hours, known)
    return None if np.isnan(known).any() else np.rint(known * _HOUR).astype(np.int64)


def _told(symbol: str, ts_K: NDArray[np.int64], interval_K: NDArray[np.int64], first: int, last: int) -> list[str]:
    """Within the bars alone: what lies outside them is left out anyway."""
    inside = (ts_K[:-1] < last) & (ts_K[1:] > first)
    longer_K = np.maximum(interval_K[:-1], interval_K[1:])
    count_K = np.where(inside & (np.diff(ts_K) * 2 > longer_K * 3), np.rint(np.diff(ts_K) / longer_K).astype(np.int64) - 1, 0)
    holes = [(int(count_K.sum()), int(ts_K[np.argmax(count_K > 0)]))] if count_K.any() else []
    before, after = (ts_K[0] - first) // interval_K[0], (last - ts_K[-1]) // interval_K[-1]
    holes += [(int(before), first)] if before > 0 else []
    holes += [(int(after), int(ts_K[-1]))] if after > 0 else []
    if not holes:
        return []
    total, where = sum(count for count, _ in holes), min(at for _, at in holes)
    told = f"{symbol}: {total} funding instant{'s are' if total > 1 else ' is'} missing, first after {clock.text(where)}"
    return [f"{told}; positions pay none there"]
