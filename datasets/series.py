"""The second pass of an import: the staged rows of one symbol, in time order, block by block through every step to the writer.

Steps in their order: rows of one stamp over pieces and files, quotes joined onto trade bars, unknown quotes, the price grid, bars of zero
volume, the watch over the series (gaps, outliers, splits), missing bars filled, longer bars.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bellmark import clock
from bellmark.bars import ASKS, BIDS, PRICES, Bars
from bellmark.datasets.checks import Findings, Policies, checked_quotes, filled_quotes, place_text
from bellmark.datasets.quotes import QUOTES, Reader, as_known, no_quotes, of_sides
from bellmark.datasets.resample import aggregate, check_upwards, complete_until, joined, span_length, spans_of
from bellmark.datasets.staging import Piece, Sources, Staging, bars_of, blocks, changed, columns_of, frame_of, merged, settled
from bellmark.datasets.watch import Watch
from bellmark.errors import DataError
from bellmark.instrument import Instrument
from bellmark.tape import ON_GRID

if TYPE_CHECKING:
    import polars
MOST_STEPS = 2.0**53  # beyond it numbers are not exact


@dataclass
class Series:
    """One symbol on its way to the writer.

    quotes: whether they are kept. price: of bars made of quotes (mid, bid, ask). adjusted: prices lie on no tick.
    """

    symbol: str
    instrument: Instrument
    staging: Staging
    sources: Sources
    policies: Policies
    findings: Findings
    watch: Watch
    resample: str = ""
    quotes: bool = True
    price: str = "mid"
    adjusted: bool = False
    rows: int = 0
    outside: int = 0
    cut_at_end: int = 0
    quotes_without_bar: int = 0

    def frames(self) -> Iterator[polars.DataFrame]:
        """Everything of the symbol, ready to be written: ts, prices, volume, further columns."""
        frames = self._counted(self._merged())
        stream = self._blocks(frames)
        if self.resample:
            stream = self._resampled(stream)
        for frame in stream:
            if frame.height:
                yield frame.drop("code")

    def _merged(self) -> Iterator[polars.DataFrame]:
        trades, quotes = self.staging.of(self.symbol, "bars"), self._quotes()
        if not trades:
            return quotes
        frames = self._of(trades)
        return self._with_quotes(frames, Reader(quotes, no_quotes())) if self.quotes and self._quoted else frames

    def _of(self, pieces: list[Piece]) -> Iterator[polars.DataFrame]:
        """The rows of some pieces in time order, all with the same columns."""
        columns = columns_of(pieces)
        return (settled(frame, columns) for frame in merged(pieces, self.symbol, self.policies, self.findings, self.sources))

    def _quotes(self) -> Iterator[polars.DataFrame]:
        """Quote bars, or the bars of the bid and of the ask joined."""
        bids, asks = (self.staging.of(self.symbol, f"{side}_bars") for side in ("bid", "ask"))
        if bids or asks:
            return of_sides(self._of(bids), self._of(asks))
        return self._of(self.staging.of(self.symbol, "quotes", "quote_bars"))

    @property
    def _quoted(self) -> bool:
        return bool(self.staging.of(self.symbol, "quotes", "quote_bars", "bid_bars", "ask_bars"))

    @property
    def unpriced(self) -> bool:
        """Whether the bars have no prices but those of their quotes."""
        return not self.staging.of(self.symbol, "bars") and bool(self.staging.of(self.symbol, "quote_bars", "bid_bars", "ask_bars"))

    def _with_quotes(self, frames: Iterable[polars.DataFrame], quotes: Reader) -> Iterator[polars.DataFrame]:
        """Quote bars beside the trade bars of the same close; quote bars without a trade bar are left out and counted.

        Where a blank side may be filled, it is by the last one known at the close of the bar, whether something traded with it or not.
        """
        used, last = 0, {"bid": float("nan"), "ask": float("nan")}
        for frame in frames:
            beside = quotes.until(int(frame["ts"][-1]))
            used += int(np.isin(frame["ts"].to_numpy(), beside["ts"].to_numpy()).sum())
            found = frame.drop([name for name in QUOTES if name in frame.columns])
            found = found.join(beside.select("ts", *QUOTES), on="ts", how="left", maintain_order="left")
            if self.policies["missing_quote"] == "fill":
                found, places = as_known(found, beside, last)
                bars = bars_of(frame, self.symbol)
                shown = [place_text(bars, place, self.sources.where) for place in places[:3]]
                self.findings.add("missing_quote", self.symbol, "filled with the last known", places.size, shown)
            yield found
        self.quotes_without_bar = quotes.all_rows() - used

    def _counted(self, frames: Iterable[polars.DataFrame]) -> Iterator[polars.DataFrame]:
        for frame in frames:
            self.rows += frame.height
            yield frame

    def _blocks(self, frames: Iterable[polars.DataFrame]) -> Iterator[polars.DataFrame]:
        """Each block with the rows that the watch wants to see again before it."""
        import polars as pl

        tail: polars.DataFrame | None = None
        context = 0
        last_quote: dict[str, float] = {}
        for block, last in blocks(frames):
            frame = self._on_grid(self._priced(self._quotes_known(block, last_quote)))
            frame = self._in_hours(self._traded(frame))
            whole = frame if tail is None else pl.concat([tail, frame], how="diagonal")
            if not whole.height:
                continue
            keep = self.watch.look(bars_of(whole, self.symbol), context, last)
            kept = whole if len(keep) == whole.height else whole[keep]
            yield self._filled(whole[:context], kept)
            before = whole[keep[-1:]] if len(keep) else whole[:context]
            tail, context = pl.concat([before, whole[-1:]], how="diagonal"), before.height

    def _quotes_known(self, frame: polars.DataFrame, last: dict[str, float]) -> polars.DataFrame:
        if "bid" not in frame.columns:
            return frame
        bars = bars_of(frame, self.symbol)
        if self.policies["missing_quote"] == "fill":
            found = filled_quotes(bars, last, self.policies, self.findings, self.sources.where)
        else:
            found = checked_quotes(bars, self.policies, self.findings, self.sources.where)
        return frame if found.bars is bars else changed(frame, found.bars, found.places)

    def _priced(self, frame: polars.DataFrame) -> polars.DataFrame:
        """Prices of bars that have quotes alone: of one side, or the middle (of high and low: the middle of the sides' own)."""
        import polars as pl

        if self.unpriced:
            sides = {"bid": BIDS, "ask": ASKS}
            made = {name: (pl.col(bid) + pl.col(ask)) / 2 for name, bid, ask in zip(PRICES, BIDS, ASKS, strict=True)}
            if self.price in sides:
                made = {name: pl.col(side) for name, side in zip(PRICES, sides[self.price], strict=True)}
            frame = frame.with_columns(**made)
        return frame if self.quotes else frame.drop([name for name in QUOTES if name in frame.columns])

    def _traded(self, frame: polars.DataFrame) -> polars.DataFrame:
        import polars as pl

        policy = self.policies["zero_volume"]
        if policy == "report":
            return frame
        places = frame.select((pl.col("volume") == 0).fill_null(False).arg_true()).to_series().to_numpy()
        if not len(places):
            return frame
        bars = bars_of(frame, self.symbol)
        if policy == "error":
            raise DataError(f"{self.sources.where(bars, places)}: the volume is 0{self.policies.hint('zero_volume')}")
        shown = [place_text(bars, place, self.sources.where) for place in places[:3]]
        self.findings.add("zero_volume", self.symbol, "left out", len(places), shown)
        return frame.filter((pl.col("volume") != 0).fill_null(True))

    def _in_hours(self, frame: polars.DataFrame) -> polars.DataFrame:
        """Counts bars that close outside the hours, or leaves them out; refuses those of days on which the calendar is closed."""
        hours, policy = self.watch.hours, self.policies["outside_session"]
        if hours.session is None or not frame.height or (self.resample and policy != "error"):  # counted where longer bars are made
            return frame
        ts_T = frame["ts"].to_numpy()
        outside_T = hours.outside(ts_T)
        if self.watch.length >= clock.DAY * 3 // 4:
            outside_T |= self._closed(frame, hours.closed(ts_T))
        places = np.flatnonzero(outside_T)
        self.outside += places.size
        if not places.size:
            return frame
        bars = bars_of(frame, self.symbol)
        if policy == "error":
            stamp = clock.text(ts_T[places[0]])
            raise DataError(f"{self.sources.where(bars, places)}: the bar that closes at {stamp} lies outside the hours {hours.session}"
                            f"{self.policies.hint('outside_session')}")  # fmt: skip
        shown = [place_text(bars, place, self.sources.where) for place in places[:3]]
        self.findings.add("outside_session", self.symbol, "left out" if policy == "drop" else "reported", places.size, shown)
        return frame if policy == "report" else frame[np.flatnonzero(~outside_T)]

    def _closed(self, frame: polars.DataFrame, closed_T: NDArray[np.bool_]) -> NDArray[np.bool_]:
        if closed_T.any() and "outside_session" not in self.policies.chosen:
            bars, places = bars_of(frame, self.symbol), np.flatnonzero(closed_T)
            stamp = clock.text(bars.ts_event[places[0]])
            raise DataError(
                f"{self.sources.where(bars, places)}: the bar of the day that closes at {stamp} lies on a day on which "
                f"{self.instrument.session} is closed: are the dates shifted?; --on outside_session=report or drop goes on"
            )
        return closed_T

    def check_hours(self) -> None:
        """Refuses a series of which most bars lie outside the hours: then its zone or its hours are wrong."""
        if self.outside * 2 >= max(self.rows, 1) and "outside_session" not in self.policies.chosen:
            raise DataError(
                f"{self.sources.names[0]}: {self.symbol}: {self.outside} of {self.rows} bars close outside {self.instrument.session}: is "
                "the zone right (--tz), the stamp, the --instrument or --session?; --on outside_session=report or drop goes on"
            )

    def _on_grid(self, frame: polars.DataFrame) -> polars.DataFrame:
        """Prices on the instrument's grid: adjusted ones to the nearest step of it, others must lie there."""
        import polars as pl

        grid = self.instrument.grid
        if grid is None:
            return frame
        names = [name for name in (*PRICES, *QUOTES) if name in frame.columns]
        off_T, nearest = np.zeros(frame.height, np.bool_), {}
        for name in names:
            # in NumPy: polars divides by a constant with another rounding
            price_T = frame[name].to_numpy()
            with np.errstate(over="ignore"):
                step_T = price_T * grid.denominator / grid.numerator
            whole_T = np.rint(step_T)
            self._lost(frame, np.flatnonzero(((whole_T == 0) & (price_T != 0)) | (np.abs(step_T) > MOST_STEPS)), name)
            off_T |= np.abs(step_T - whole_T) > ON_GRID + np.abs(step_T) * 2.0**-50
            nearest[name] = whole_T * grid.numerator / grid.denominator
        rounded = [pl.Series(name, column) for name, column in nearest.items()]
        if self.adjusted:
            return frame.with_columns(rounded)
        places = np.flatnonzero(off_T)
        if not len(places):
            return frame
        bars = bars_of(frame, self.symbol)
        if self.policies["off_grid"] == "error":
            t = int(places[0])
            found = max((float(frame[name][t]) for name in names), key=lambda value: abs(value / grid - round(value / grid)))
            raise DataError(
                f"{self.sources.where(bars, places)}: {found!r} is no multiple of the tick {float(grid):g} at "
                f"{clock.text(bars.ts_event[t])}; correct --tick-size (0 = none){self.policies.hint('off_grid')}"
            )
        shown = [place_text(bars, place, self.sources.where) for place in places[:3]]
        self.findings.add("off_grid", self.symbol, "rounded to the tick", len(places), shown)
        return frame.with_columns(rounded)

    def _lost(self, frame: polars.DataFrame, places: NDArray[np.int64], name: str) -> None:
        """Refuses prices that the grid cannot hold."""
        if places.size:
            bars, found = bars_of(frame, self.symbol), float(frame[name][int(places[0])])
            raise DataError(
                f"{self.sources.where(bars, places)}: {name} is {found:g}, which no step of {float(self.instrument.grid or 0):g} is: "
                "is it a price, and is --tick-size (0 = none) right?"
            )

    # missing bars

    def _filled(self, before: polars.DataFrame, frame: polars.DataFrame) -> polars.DataFrame:
        """Flat bars of zero volume where bars are missing on end within a session, if that was asked for."""
        import polars as pl

        if self.policies["missing_bars"] != "fill" or not frame.height:
            return frame
        whole = pl.concat([before, frame], how="diagonal")
        ts_T = whole["ts"].to_numpy()
        late = np.flatnonzero(np.diff(ts_T) * 2 > self.watch.length * 3)
        missing = self.watch.hours.missing(ts_T[late], ts_T[late + 1], self.watch.length)
        # a gap that holds a break or the end of a session has no regular stamps, and stays one
        regular = (missing > 0) & (np.diff(ts_T)[late] == (missing + 1) * self.watch.length)
        late, missing = late[regular], missing[regular]
        if not late.size:
            return frame
        length = self.watch.length
        stamps = np.concatenate([ts_T[place] + length * np.arange(1, count + 1) for place, count in zip(late, missing, strict=True)])
        made = whole[np.repeat(late, missing)]
        flat = [pl.col("close").alias(name) for name in PRICES]
        sides = [pl.col(name.split("_")[0]).alias(name) for name in QUOTES if name in made.columns]
        kept = ("code", "ts", "volume", *PRICES, *QUOTES)
        other = [pl.lit(None, made[name].dtype).alias(name) for name in made.columns if name not in kept]
        made = made.with_columns(*flat, *sides, *other, pl.lit(0.0).alias("volume"), pl.Series("ts", stamps))
        shown = [f"after {clock.text(ts_T[place])}" for place in late[:3]]
        self.findings.add("missing_bars", self.symbol, "filled with flat bars of zero volume", len(stamps), shown)
        return pl.concat([frame, made], how="diagonal").sort("ts", maintain_order=True)

    # longer bars

    def _resampled(self, frames: Iterable[polars.DataFrame]) -> Iterator[polars.DataFrame]:
        """Longer bars; the base bars of a span that is not over wait for the next block, and are left out at the end."""
        hours = self.watch.hours
        length = span_length(self.resample, hours, "--resample")
        waiting: Bars | None = None
        for frame in frames:
            if waiting is None:
                check_upwards(self.resample, length, self.watch.length, "--resample")
            bars = bars_of(frame, self.symbol)
            waiting = bars if waiting is None else joined([waiting, bars])
            end_T, inside_T = spans_of(waiting, length, self.watch.length, hours, "--resample")
            if not inside_T.all():
                self.outside += int(np.count_nonzero(~inside_T))
                waiting, end_T = waiting.take(np.flatnonzero(inside_T)), end_T[inside_T]
            cut = complete_until(waiting.ts_event, end_T)
            yield frame_of(aggregate(waiting.take(np.arange(cut)), end_T[:cut]))
            waiting = waiting.take(np.arange(cut, len(waiting)))
        self.cut_at_end = 0 if waiting is None else len(waiting)
