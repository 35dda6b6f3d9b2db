"""Quotes that meet the bars of their series in the second pass of an import: by stamp, bid with ask, or the last one known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bellmark.bars import ASKS, BIDS, PRICES

if TYPE_CHECKING:
    import polars

QUOTES = (*BIDS, *ASKS)
SIDES = {"bid": BIDS, "ask": ASKS}
END = int(np.iinfo(np.int64).max)


class Reader:
    """Frames in time order, read once and handed out up to a moment at a time."""

    def __init__(self, frames: Iterator[polars.DataFrame], empty: polars.DataFrame) -> None:
        self.rows = 0
        self._frames, self._empty = frames, empty
        self._rest = empty

    def until(self, ts: int) -> polars.DataFrame:
        """The rows up to and with a moment, but for those that were given before."""
        import polars as pl

        parts = [self._rest]
        while not parts[-1].height or int(parts[-1]["ts"][-1]) <= ts:
            frame = next(self._frames, None)
            if frame is None:
                break
            self.rows += frame.height
            parts.append(frame)
        cut = int(np.searchsorted(parts[-1]["ts"].to_numpy(), ts, side="right"))
        *whole, last = parts
        self._rest = last[cut:]
        return pl.concat([*whole, last[:cut]], how="diagonal_relaxed")

    def all_rows(self) -> int:
        """How many rows there are, those that nobody asked for too."""
        self.rows += sum(frame.height for frame in self._frames)
        return self.rows


def no_quotes() -> polars.DataFrame:
    """Quote bars of which there are none."""
    import polars as pl

    return pl.DataFrame(schema={"code": pl.Int64, "ts": pl.Int64, **dict.fromkeys(QUOTES, pl.Float64)})


def of_sides(bids: Iterator[polars.DataFrame], asks: Iterator[polars.DataFrame]) -> Iterator[polars.DataFrame]:
    """Quote bars of the bars of the bid and those of the ask, joined by their stamps; a side that has no bar at one is blank.

    A row is known by that of the bid, where there is one. Volumes are kept as those of their side.
    """
    import polars as pl

    names = {"code": pl.Int64, "ts": pl.Int64, **dict.fromkeys((*PRICES, "volume"), pl.Float64)}
    other = Reader(asks, pl.DataFrame(schema=names))
    for frame in bids:
        yield _joined(frame, other.until(int(frame["ts"][-1])))
    rest = other.until(END)
    if rest.height:
        yield _joined(pl.DataFrame(schema=names), rest)


def _joined(bids: polars.DataFrame, asks: polars.DataFrame) -> polars.DataFrame:
    import polars as pl

    parts = []
    for side, frame in (("bid", bids), ("ask", asks)):
        named = [pl.col(name).alias(quote) for name, quote in zip(PRICES, SIDES[side], strict=True)]
        parts.append(frame.select("ts", pl.col("code").alias(f"{side}_code"), *named, pl.col("volume").alias(f"{side}_volume")))
    both = parts[0].join(parts[1], on="ts", how="full", coalesce=True).sort("ts")
    code = pl.coalesce("bid_code", "ask_code").alias("code")
    stand_in = [pl.lit(1.0).alias(name) for name in PRICES]  # their prices are made where the missing sides are known
    volumes = ["bid_volume", "ask_volume"]
    return both.select(code, "ts", *stand_in, pl.lit(None, pl.Float64).alias("volume"), *QUOTES, *volumes)


def as_known(frame: polars.DataFrame, quotes: polars.DataFrame, last: dict[str, float]) -> tuple[polars.DataFrame, NDArray[np.int64]]:
    """The bars of a frame with their blank sides replaced by the last one known at the close of each, and the places of those bars.

    quotes: every quote bar up to the last bar's close that was not given before. last: the close of each side that was known before, by
    `bid` and `ask`, changed in place. A side is known where all of its prices are; bars before the first stay blank.
    """
    import polars as pl

    at_T = np.searchsorted(quotes["ts"].to_numpy(), frame["ts"].to_numpy(), side="right")
    filled_T = np.zeros(frame.height, np.bool_)
    columns: list[Any] = []
    for side, names in SIDES.items():
        known_K = np.concatenate([[last[side]], _numbers(quotes, names[-1])])
        known_K[1:][_blank(quotes, names)] = np.nan
        place_K = np.maximum.accumulate(np.where(np.isnan(known_K), 0, np.arange(len(known_K))))
        known_K = known_K[place_K]
        last[side] = float(known_K[-1])
        blank_T, known_T = _blank(frame, names), known_K[at_T]
        filled_T |= blank_T & ~np.isnan(known_T)
        columns += [pl.Series(name, np.where(blank_T, known_T, _numbers(frame, name))) for name in names]
    return frame.with_columns(columns), np.flatnonzero(filled_T)


def _blank(frame: polars.DataFrame, names: tuple[str, ...]) -> NDArray[np.bool_]:
    return np.asarray(np.isnan(np.stack([_numbers(frame, name) for name in names])).any(axis=0))


def _numbers(frame: polars.DataFrame, name: str) -> NDArray[np.float64]:
    return frame[name].fill_null(float("nan")).to_numpy()
