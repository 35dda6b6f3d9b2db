"""Curves for the screen: at most two points a pixel, the lowest and the highest of the bars that fall on it.

What is drawn does not change (a line through all bars covers the same pixels), and the size of a report does not grow with its bars.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PIXELS = 600


def kept_points(values: NDArray[np.floating], pixels: int = PIXELS) -> NDArray[np.int64]:
    """Ascending indices of the points to draw: all of them where they are few, else first, last and each pixel's lowest and highest."""
    count = values.size
    if count <= 2 * pixels:
        return np.arange(count)
    # the first `longer` pixels hold one bar more than the others, so that no pixel is left with the rest
    width, longer = divmod(count, pixels)
    split = longer * (width + 1)
    picks = [np.array([0, count - 1])]
    for offset, part, bars in ((0, values[:split], width + 1), (split, values[split:], width)):
        grid = part.reshape(-1, bars)
        start = offset + np.arange(grid.shape[0]) * bars
        picks += [start + grid.argmin(axis=1), start + grid.argmax(axis=1)] if grid.size else []
    return np.unique(np.concatenate(picks).astype(np.int64))


def extreme_points(values: NDArray[np.floating], pixels: int = PIXELS) -> tuple[NDArray[np.int64], NDArray[np.floating]]:
    """Indices and values to draw of a curve: those of `kept_points`."""
    keep = kept_points(values, pixels)
    return keep, values[keep]


def mean_points(values: NDArray[np.floating], pixels: int = PIXELS) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Indices and values to draw of a curve that jumps: all where they are few, else the mean of each pixel's bars at its first bar.

    Lowest and highest would fill the chart with one block of colour.
    """
    if values.size <= 2 * pixels:
        return np.arange(values.size), np.asarray(values, np.float64)
    start = np.linspace(0, values.size, pixels, endpoint=False).astype(np.int64)
    length = np.diff(np.append(start, values.size))
    return start, np.add.reduceat(values, start) / length


def rounded(values: NDArray[np.floating]) -> list[float]:
    """Values at the precision of a screen (float32), spelled as short as they go."""
    return [float(f"{value:.7g}") for value in np.asarray(values, dtype=np.float32).tolist()]
