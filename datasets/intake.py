"""The first pass of an import: rows of files become checked, close-stamped pieces on disk.

Bars: the stamp as written becomes the close, rows are checked one by one and in their order within the file. Ticks and quotes become bars
by time at once, so that only bars are kept. Files of ticks must not overlap: a tick that is in both cannot be told from two equal ticks.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bellmark import calendar, clock
from bellmark.bars import ASKS, BIDS, PRICES, Bars
from bellmark.datasets.checks import Findings, Policies, Screened, checked_rows, ordered, place_text
from bellmark.datasets.hours import Hours, time_of_day
from bellmark.datasets.resample import joined, length_of, merged, span_length, tick_bars
from bellmark.datasets.staging import Sources, Staging, bars_of, changed, frame_of
from bellmark.errors import DataError, UsageError
from bellmark.instrument import Instrument

if TYPE_CHECKING:
    import polars

    from bellmark.datasets.formats import Rows



@dataclass(frozen=True)
class StampRules:
    """How stamps become closes. bar: length of the bars in the files as text, empty = what the layout says. close_time: HH:MM or empty.
    price: of bars made of quotes. quotes: whether they are kept."""

    bar: str = ""
    close_time: str = ""
    price: str = "mid"
    quotes: bool = True

    def bar_length(self, facts: Any, source: str) -> int:
        """Length of a bar in ns; the layout and the user must not say different things."""
        given = length_of(self.bar, "--bar") if self.bar else None
        known = None if facts.bar_seconds is None else round(facts.bar_seconds * clock.SECOND)
        if given is not None and known is not None and given != known:
            raise UsageError(f"--bar: {source} holds bars of {known / clock.SECOND:g} s, found '{self.bar}'; --resample makes longer ones")
        return given or known or 0


@dataclass
class Intake:
    """Takes the rows of files in; `instrument` gives the instrument of a symbol."""

    rules: StampRules
    policies: Policies
    staging: Staging
    sources: Sources
    instrument: Any
    findings: Findings = field(default_factory=Findings)
    rows: int = 0
    length: int = 0
    facts: list[Any] = field(default_factory=list)
    cut_at_close: int = 0
    outside: dict[str, int] = field(default_factory=dict)
    _hours: dict[str, Hours] = field(default_factory=dict)
    _bases: dict[str, int] = field(default_factory=dict)
    _last: dict[tuple[str, str, str], int] = field(default_factory=dict)
    _first: dict[tuple[str, str, str], int] = field(default_factory=dict)
    _until: int = 0
    _ticks_of: dict[str, int] = field(default_factory=dict)
    _border: dict[tuple[str, str], tuple[str, Any]] = field(default_factory=dict)
    _open_bar: dict[tuple[str, str], Bars] = field(default_factory=dict)
    _quote: dict[tuple[str, str], float] = field(default_factory=dict)

    def hours(self, symbol: str) -> Hours:
        """The hours of a symbol's instrument."""
        if symbol not in self._hours:
            instrument: Instrument = self.instrument(symbol)
            self._hours[symbol] = Hours(instrument)
        return self._hours[symbol]

    def take(self, rows: Rows, side: str = "") -> None:
        """One chunk of one file; `side`: whose bars it holds, `bid` or `ask`, empty = bars of trades or whatever the layout says."""
        if rows.facts not in self.facts:
            self.facts.append(rows.facts)
        self.rows += rows.frame.height
        if not rows.frame.height:
            return
        if side and rows.kind != "bars":
            found = rows.kind.replace("_", " ")
            raise UsageError(f"--{side}: {rows.source}: expected bars of the {side}, found {found}; give it as a FILE")
        frame = self._coded(rows)
        if rows.kind in ("bars", "quote_bars"):
            stream: str = f"{side}_bars" if side else rows.kind
            frames = {symbol: self._bars(frame, symbol, rows, stream) for symbol, frame in _by_symbol(frame)}
        elif rows.kind in ("ticks", "quotes"):
            stream = "bars" if rows.kind == "ticks" else "quotes"
            frames = {symbol: self._ticks(frame, symbol, rows, stream) for symbol, frame in _by_symbol(frame)}
        else:
            raise UsageError(f"{rows.source}: it holds {rows.kind}, not bars, ticks or quotes; give it by --{rows.kind}")
        self.staging.add(stream, frames)

    def finish(self) -> None:
        """Stages the last bar of each series of ticks, if its span is over: a later tick is there, of whatever series."""
        self._check_hours()
        policy = self.policies["unfinished_bar"]
        frames: dict[str, dict[str, polars.DataFrame]] = {}
        for (symbol, stream), bars in self._open_bar.items():
            if int(bars.ts_event[0]) > self._until:
                shown = [f"the bar until {clock.text(bars.ts_event[0])}; the ticks end at {clock.text(self._until, 'ms')}"]
                self.findings.add("unfinished_bar", symbol, "left out" if policy == "drop" else "kept", 1, shown)
                if policy == "drop":
                    continue
            frames.setdefault(stream, {})[symbol] = frame_of(bars)
        for stream, found in frames.items():
            self.staging.add(stream, found)
        self._open_bar.clear()

    def _check_hours(self) -> None:
        """Refuses ticks of which most lie outside the hours, or any where the policy says so: they make no bars."""
        policy = self.policies["outside_session"]
        for symbol, count in self.outside.items():
            total = self._ticks_of[symbol]
            if policy == "error" or (count * 2 >= total and "outside_session" not in self.policies.chosen):
                raise DataError(
                    f"{self.sources.names[0]}: {symbol}: {count} of {total} ticks lie outside {self.hours(symbol).session}: is the zone "
                    "right (--tz), the --instrument or --session?; --on outside_session=report or drop goes on"
                )

    def _base(self, source: str) -> int:
        if source not in self._bases:
            self._bases[source] = self.sources.add(source)
        return self._bases[source]

    def _coded(self, rows: Rows) -> polars.DataFrame:
        """The rows known by their file and row; once for all symbols, of which there may be thousands."""
        import polars as pl

        return rows.frame.with_columns((pl.col("row") + self._base(rows.source)).alias("code")).drop("row")

    # bars

    def _bars(self, frame: polars.DataFrame, symbol: str, rows: Rows, stream: str) -> polars.DataFrame:
        import polars as pl

        if rows.facts.order == "descending":
            frame = frame.reverse()
        stamp_T = frame["ts"].to_numpy()
        close_T = self._closes(stamp_T, symbol, rows)
        if close_T is not stamp_T:
            frame = frame.with_columns(pl.Series("ts", close_T))
        if stream == "quote_bars":  # their prices are made where the missing sides are known
            frame = frame.with_columns(*(pl.lit(1.0).alias(name) for name in PRICES), pl.lit(None, pl.Float64).alias("volume"))
        if stream == "bars" and not self.rules.quotes:
            frame = frame.drop([name for name in (*BIDS, *ASKS) if name in frame.columns])
        if "volume" not in frame.columns:
            frame = frame.with_columns(pl.lit(None, pl.Float64).alias("volume"))
        policies = self.policies
        if stream == "quote_bars":  # whether a side may be missing is asked when they meet their bars
            policies = replace(policies, chosen={**policies.chosen, "missing_quote": "fill", "missing_volume": "allow"})
            if not self.rules.quotes:  # they may not be needed at all
                policies = replace(policies, chosen={**policies.chosen, "bad_quote": "null", "crossed_quote": "null"})
        bars, where = bars_of(frame, symbol), _Written(self.sources, frame["code"].to_numpy(), stamp_T)
        looked = checked_rows(bars, policies, self.findings, where)
        late_T = self._late(looked.bars.ts_event, symbol, rows, stream)
        if late_T.any() and policies["unsorted"] == "sort":
            looked = self._sorted(looked, late_T, symbol)
        found = ordered(looked.bars, policies, self.findings, where)
        if late_T.any() and policies["unsorted"] == "error":
            self._refuse_order(looked.bars, late_T, symbol, rows, stream)
        if found.bars is bars:
            return frame
        return changed(frame, found.bars, looked.places[found.places])

    def _late(self, ts_T: NDArray[np.int64], symbol: str, rows: Rows, stream: str) -> NDArray[np.bool_]:
        """Which rows come after a row of the file with a later stamp (an earlier one, where the layout is newest first)."""
        if not len(ts_T):
            return np.zeros(0, np.bool_)
        key, down = (rows.source, symbol, stream), rows.facts.order == "descending"
        self._first.setdefault(key, int(ts_T[0]))
        step_T = -ts_T[::-1] if down else ts_T
        before_T = np.maximum.accumulate(np.concatenate([[self._last.get(key, int(step_T[0]))], step_T]))
        self._last[key] = int(before_T[-1])
        late_T = step_T < before_T[:-1]
        return late_T[::-1] if down else late_T

    def _sorted(self, looked: Screened, late_T: NDArray[np.bool_], symbol: str) -> Screened:
        bars, places = looked.bars, np.flatnonzero(late_T)
        shown = [place_text(bars, place, self.sources.where) for place in places[:3]]
        self.findings.add("unsorted", symbol, "sorted", places.size, shown)
        order = np.argsort(bars.ts_event, kind="stable")
        return Screened(bars.take(order), looked.places[order])

    def _refuse_order(self, bars: Bars, late_T: NDArray[np.bool_], symbol: str, rows: Rows, stream: str) -> None:
        places = np.flatnonzero(late_T)
        where, stamp = self.sources.where(bars, places), int(bars.ts_event[places[0]])
        if stamp == self._first[rows.source, symbol, stream]:
            raise DataError(
                f"{where}: the stamps begin again at {clock.text(stamp)}, where the file began: it holds two series of one symbol, or rows "
                f"twice; take one of them out{self.policies.hint('unsorted')}"
            )
        last = self._last[rows.source, symbol, stream] * (-1 if rows.facts.order == "descending" else 1)
        raise DataError(
            f"{where}: the rows are not in time order: {clock.text(stamp)} comes after rows up to {clock.text(last)}"
            f"{self.policies.hint('unsorted')}"
        )

    def _closes(self, ts_T: NDArray[np.int64], symbol: str, rows: Rows) -> NDArray[np.int64]:
        """UTC ns of the closes of stamps as written."""
        facts = rows.facts
        length = self.rules.bar_length(facts, rows.source)
        hours = self.hours(symbol)
        if facts.stamp == "session":
            self._one_length(length or clock.DAY, rows)
            return self._session_closes(ts_T, hours, rows)
        if facts.stamp == "close":
            self._one_length(length, rows)
            return ts_T
        if facts.stamp != "open":
            raise UsageError(f"{rows.source}: nothing says whether a stamp is the open or the close of its bar; say --stamp open or close")
        if not length:
            raise UsageError(f"{rows.source}: the stamps are opens, so the length of a bar must be known: say it, as in --bar 1m")
        self._one_length(length, rows)
        close_T = hours.close_of(ts_T, length)  # the last bar of a session ends with it
        self.cut_at_close += int(np.count_nonzero(close_T < ts_T + length))
        return close_T

    def _one_length(self, length: int, rows: Rows) -> None:
        if self.length and length and self.length != length:
            raise DataError(
                f"{rows.source}: its bars are {length / clock.SECOND:g} s long, those of the files before "
                f"{self.length / clock.SECOND:g} s; import each length on its own"
            )
        self.length = self.length or length

    def _session_closes(self, ts_T: NDArray[np.int64], hours: Hours, rows: Rows) -> NDArray[np.int64]:
        """Dates to the close of the session of that date, or to --close-time."""
        zone = rows.facts.zone or "UTC"
        date_T = clock.to_local(ts_T, zone) // clock.DAY
        if self.rules.close_time and not rows.facts.zone:
            raise UsageError(f"{rows.source}: --close-time: it is a local time; say of which zone, as in --tz America/New_York")
        if self.rules.close_time:
            return clock.to_utc(date_T * clock.DAY + time_of_day(self.rules.close_time, "--close-time") * clock.SECOND, zone)[0]
        if hours.session is not None:
            return calendar.date_close(date_T, hours.session)
        raise UsageError(
            f"{rows.source}: the stamps are dates alone: say when a bar closes, as in --close-time 16:00, or give an --instrument or "
            "--session with hours"
        )

    # ticks

    def _ticks(self, frame: polars.DataFrame, symbol: str, rows: Rows, stream: str) -> polars.DataFrame:
        if not self.rules.bar:
            raise UsageError(f"{rows.source}: it holds {rows.kind}; say the length of the bars to make of them, as in --bar 1m")
        self._ticks_in_order(frame, symbol, rows, stream)
        frame = self._once(frame, symbol, rows, stream)
        ticks = self._tick_columns(frame, symbol, rows, stream)
        hours = self.hours(symbol)
        length = span_length(self.rules.bar, hours, "--bar")
        self._one_length(length, rows)
        bars, outside = tick_bars(ticks, length, hours, symbol)
        self._ticks_of[symbol] = self._ticks_of.get(symbol, 0) + frame.height
        if outside:
            self.outside[symbol] = self.outside.get(symbol, 0) + outside
        return frame_of(self._whole_bars(bars, symbol, stream))

    def _whole_bars(self, bars: Bars, symbol: str, stream: str) -> Bars:
        """The bars that are over; the last one waits for what the next chunk adds to it."""
        former = self._open_bar.get((symbol, stream))
        if not len(bars):
            return bars
        if former is not None:
            if former.ts_event[0] == bars.ts_event[0]:
                bars = joined([merged(former, bars.take(np.array([0]))), bars.take(np.arange(1, len(bars)))])
            else:
                bars = joined([former, bars])
        self._open_bar[symbol, stream] = bars.take(np.array([len(bars) - 1]))
        return bars.take(np.arange(len(bars) - 1))

    def _ticks_in_order(self, frame: polars.DataFrame, symbol: str, rows: Rows, stream: str) -> None:
        ts_T = frame["ts"].to_numpy()
        key = (symbol, stream, "ticks")
        before = self._last.get(key)
        back = np.flatnonzero(ts_T[1:] < ts_T[:-1])
        place, former = (int(back[0]) + 1, int(ts_T[back[0]])) if back.size else (0, before if before is not None else int(ts_T[0]))
        if int(ts_T[place]) < former:
            bars = Bars(symbol, *(ts_T[place : place + 1],) * 6, row_T=frame["code"].to_numpy()[place : place + 1])
            raise DataError(
                f"{self.sources.where(bars, np.array([0]))}: the {rows.kind} are not in time order, or two files overlap: "
                f"{clock.text(ts_T[place], 'ms')} comes after {clock.text(former, 'ms')}"
            )
        self._last[key] = int(ts_T[-1])
        self._until = max(self._until, self._last[key])

    def _tick_columns(self, frame: polars.DataFrame, symbol: str, rows: Rows, stream: str) -> dict[str, NDArray[Any]]:
        """Arrays for `tick_bars`, after the checks of prices and quotes."""
        import polars as pl

        quotes = [name for name in ("bid", "ask") if name in frame.columns and (self.rules.quotes or stream == "quotes")]
        if stream == "quotes":
            frame = self._quoted(frame, symbol, rows)
        if "size" not in frame.columns:
            frame = frame.with_columns(pl.lit(None, pl.Float64).alias("size"))
        size = pl.lit(None, pl.Float64) if stream == "quotes" else pl.col("size").cast(pl.Float64)
        price = pl.col("price").cast(pl.Float64)
        frame = frame.with_columns(*(price.alias(name) for name in PRICES), size.alias("volume")).drop("price", "size")
        policies = replace(self.policies, chosen={**self.policies.chosen, "missing_quote": "fill", "missing_volume": "allow"})
        bars = bars_of(frame.select("code", "ts", *PRICES, "volume", *quotes), symbol)
        looked = checked_rows(bars, policies, self.findings, self.sources.where).bars
        found = {"ts": looked.ts_event, "row": np.asarray(looked.row_T), "price": looked.close, "size": looked.volume}
        return found | {name: looked.quotes[name] for name in quotes}

    def _quoted(self, frame: polars.DataFrame, symbol: str, rows: Rows) -> polars.DataFrame:
        """Quotes with a price of their own; where a blank side means that it is unchanged, it is the last known one."""
        import polars as pl

        if rows.facts.blank_side == "unchanged":
            for side in ("bid", "ask"):
                last = self._quote.get((symbol, side), float("nan"))
                frame = frame.with_columns(pl.col(side).forward_fill().fill_null(last))
                self._quote[symbol, side] = float(frame[side][-1])
        frame = self._both_sides(frame, symbol)
        price = {"mid": (pl.col("bid") + pl.col("ask")) / 2, "bid": pl.col("bid"), "ask": pl.col("ask")}[self.rules.price]
        return frame.with_columns(price.alias("price"))

    def _both_sides(self, frame: polars.DataFrame, symbol: str) -> polars.DataFrame:
        """Quotes of a book of one side have no price between the sides: refused, left out, or with the last one known of the other."""
        import polars as pl

        policy = self.policies["missing_quote"]
        blank = [pl.col(side).is_null() | pl.col(side).is_infinite() | pl.col(side).is_nan() for side in ("bid", "ask")]
        places = frame.select((blank[0] | blank[1]).arg_true()).to_series().to_numpy()
        if policy == "fill":
            known = {side: pl.when(~blank[place]).then(pl.col(side)) for place, side in enumerate(("bid", "ask"))}
            last = {side: self._quote.get((symbol, side), float("nan")) for side in known}
            frame = frame.with_columns(expression.forward_fill().fill_null(last[side]).alias(side) for side, expression in known.items())
            self._quote |= {(symbol, side): float(frame[side][-1]) for side in known}
        if not places.size:
            return frame
        bars = Bars(symbol, *(frame["ts"].to_numpy(),) * 6, row_T=frame["code"].to_numpy())
        if policy == "error":
            stamp = clock.text(bars.ts_event[places[0]], "ms")
            raise DataError(f"{self.sources.where(bars, places)}: bid or ask is missing at {stamp}{self.policies.hint('missing_quote')}")
        left = frame.filter(pl.col("bid").is_finite() & pl.col("ask").is_finite())
        shown = [place_text(bars, place, self.sources.where) for place in places[:3]]
        self.findings.add("missing_quote", symbol, "quotes of one side left out" if policy == "drop" else "filled with the last known",
                          places.size, shown)  # fmt: skip
        return left

    # files of ticks that touch

    def _once(self, frame: polars.DataFrame, symbol: str, rows: Rows, stream: str) -> polars.DataFrame:
        """Ticks without those at the border of two files that are in both: rows of the file before with its last stamp, equal in all."""
        import polars as pl

        key = (symbol, stream)
        source, border = self._border.get(key, ("", frame[:0]))
        first, last = int(frame["ts"][0]), int(frame["ts"][-1])
        columns = [name for name in frame.columns if name != "code"]
        if source and source != rows.source and border.height and border.columns == frame.columns and int(border["ts"][0]) == first:
            numbered = [part.with_columns(pl.int_range(pl.len()).over(columns).alias("number")) for part in (frame, border)]
            again = numbered[0].join(numbered[1], on=[*columns, "number"], how="semi", nulls_equal=True)
            if again.height:
                bars = Bars(symbol, *(again["ts"].to_numpy(),) * 6, row_T=again["code"].to_numpy())
                shown = [place_text(bars, place, self.sources.where) for place in range(min(3, again.height))]
                self.findings.add("duplicate_identical", symbol, "kept once", again.height, shown)
                frame = frame.filter(~pl.col("code").is_in(again["code"].implode()))
        edge = frame.filter(pl.col("ts") == last)
        if source == rows.source and border.height and int(border["ts"][0]) == last:
            edge = pl.concat([border, edge], how="diagonal_relaxed")
        self._border[key] = (rows.source, edge)
        return frame


@dataclass(frozen=True)
class _Written:
    """Names rows, and their stamps as they stand in the file: the open of a bar where the layout has opens."""

    sources: Sources
    code_T: NDArray[np.int64]
    stamp_T: NDArray[np.int64]

    def __call__(self, bars: Bars, places: NDArray[Any]) -> str:
        return self.sources.where(bars, places)

    def stamp(self, bars: Bars, place: int) -> str:
        """In UTC."""
        found = np.flatnonzero(self.code_T == np.asarray(bars.row_T)[place])
        return clock.text(self.stamp_T[found[0]] if found.size else bars.ts_event[place])


def _by_symbol(frame: polars.DataFrame) -> list[tuple[str, polars.DataFrame]]:
    column = frame["symbol"]
    first = column[0]
    if bool((column == first).all()):
        return [(str(first), frame.drop("symbol"))]
    parts = frame.partition_by("symbol", maintain_order=True, as_dict=True, include_key=False)
    return [(str(key[0]), part) for key, part in parts.items()]
