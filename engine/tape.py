"""The tape: bars compiled for the engine. Prices in int64 quanta, sessions numbered, gaps flagged, one content hash.

Arrays have one row a symbol (S) and are padded with zeros to the longest (T); `length_S` says where each symbol's own bars end. Each
symbol has only its own bars: bar t of two symbols need not be at the same time, `ts_ST` says when.

Sessions: with hours (instrument.session) a bar belongs to the session in whose hours it closes, and bars outside the hours are left out and
counted; around the clock a session is a day of UTC. Data with one bar a session at most (daily bars) have no time of session: session_bar,
session_left and session_fraction are 0. What a gap is, calendar.py says: breaks, nights, weekends and holidays are none.

What only some data have (quotes, halts, funding, rolls; see `EXTRA`) stands in `extra_ST`, and costs nothing where it is absent.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bellmark import bars as bars_module
from bellmark import calendar, clock, holidays
from bellmark import instrument as instrument_module
from bellmark.bars import ASKS, BIDS, RATE_ONE, SIGNALS, Bars, check
from bellmark.errors import DataError, UsageError
from bellmark.files import cache_folder, json_line, write_atomically
from bellmark.instrument import LARGEST_PRICE, Instrument, Session

SCHEMA_VERSION = 2  # 1 had no extra columns and is still read
ON_GRID = 1e-6  # of a step of the grid: nearer than this a price snaps to it
_BEFORE_ONE = np.float32(1.0 - 2.0**-24)
_YEAR_SECONDS = 365.25 * 86_400
ARRAYS: dict[str, type[np.generic]] = {
    "ts": np.int64, "open": np.int64, "high": np.int64, "low": np.int64, "close": np.int64, "volume": np.float64, "session": np.int32,
    "session_bar": np.int32, "session_left": np.int32, "session_fraction": np.float32, "gap": np.uint8,
}  # fmt: skip

EXTRA: dict[str, type[np.generic]] = {
    "bid_open": np.int64, "bid_high": np.int64, "bid_low": np.int64, "bid_close": np.int64, "ask_open": np.int64, "ask_high": np.int64,
    "ask_low": np.int64, "ask_close": np.int64, "halted": np.uint8, "funding_rate": np.int64, "funding_mark": np.int64,
    "roll_price": np.int64, "rolls": np.uint8, "signal_open": np.int64, "signal_high": np.int64, "signal_low": np.int64,
    "signal_close": np.int64,
}  # fmt: skip
_QUOTES = {"bid": "bid_close", "ask": "ask_close"} | {name: name for name in BIDS[:3] + ASKS[:3]}  # name in Bars: name here
_HASH = "bellmark bars 1"  # not the schema of the file: bars that stay the same keep their hash

__all__ = ["EXTRA", "Bars", "HigherBars", "Tape", "compile_tape", "describe", "higher_bars", "read_only"]


@dataclass(frozen=True)
class Tape:
    """Compiled bars of S symbols.

    length_S: bars of each. ts_ST: UTC ns of the close. open_ST, high_ST, low_ST, close_ST: quanta of the symbol's instrument.
    volume_ST: lots, NaN where unknown. session_ST: number of the session, session_bar_ST: of the bar in its session, both from 0.
    session_left_ST: bars that the session still has after this one (known from the calendar; early closes too). session_fraction_ST:
    time of session at the close, in [0, 1). gap_ST: 1 where bars are missing before this one. instruments: with their quantum chosen.
    content_hash: SHA-256 of bars and instruments as given (not of the quantum, which costs may change). notes: what was left out, for
    people. duplicates_S, outside_S: identical rows and bars outside the session's hours that were left out.

    extra_ST: the columns of EXTRA that some symbol has, by name; 0 for the symbols without them.
    bid_open, bid_high, bid_low, bid_close, ask_...: quotes in quanta. halted: 1 where nothing trades in the bar. funding_rate: of the
    instant in the bar, in 1e-9, 0 without one; funding_mark: its price, in quanta (rounded to the nearest: a mark is an index, which keeps
    to no tick), 0 without one. rolls: 1 where the position is rolled at the close; roll_price: price of the next contract there, in quanta.
    signal_open, ...: adjusted prices that features read instead of the traded ones, in the nearest quanta; the traded ones for symbols
    without them.
    """

    symbols: tuple[str, ...]
    instruments: tuple[Instrument, ...]
    length_S: NDArray[np.int64]
    ts_ST: NDArray[np.int64]
    open_ST: NDArray[np.int64]
    high_ST: NDArray[np.int64]
    low_ST: NDArray[np.int64]
    close_ST: NDArray[np.int64]
    volume_ST: NDArray[np.float64]
    session_ST: NDArray[np.int32]
    session_bar_ST: NDArray[np.int32]
    session_left_ST: NDArray[np.int32]
    session_fraction_ST: NDArray[np.float32]
    gap_ST: NDArray[np.uint8]
    duplicates_S: NDArray[np.int64]
    outside_S: NDArray[np.int64]
    content_hash: str
    periods_per_year: float
    notes: tuple[str, ...] = ()
    extra_ST: dict[str, NDArray[Any]] = field(default_factory=dict)

    def mark_price(self, s: int, bars: Any) -> NDArray[np.int64]:
        """The price that marks a position at the close of some bars of a symbol: the close, after a roll the next contract's price."""
        close_T = self.close_ST[s, bars]
        if "rolls" not in self.extra_ST:
            return close_T
        marked: NDArray[np.int64] = np.where(self.extra_ST["rolls"][s, bars] != 0, self.extra_ST["roll_price"][s, bars], close_T)
        return marked

    def signal_price(self, name: str) -> NDArray[np.int64]:
        """Open, high, low or close as features read it: adjusted where the data have adjusted prices, else as traded."""
        price_ST: NDArray[np.int64] = self.extra_ST.get(f"signal_{name}", getattr(self, f"{name}_ST"))
        return price_ST

    def symbol_index(self, symbol: int | str) -> int:
        """The row of a symbol, by name or number."""
        if isinstance(symbol, str):
            if symbol not in self.symbols:
                raise UsageError(f"symbol: expected one of {', '.join(self.symbols)}, found '{symbol}'")
            return self.symbols.index(symbol)
        return symbol

    def save(self, path: Path | str) -> None:
        """Writes the tape as a safetensors file with its hash and schema version, atomically."""
        from safetensors.numpy import save

        tensors = {name: np.ascontiguousarray(getattr(self, name)) for name in _TENSORS}
        tensors |= {f"{name}_ST": np.ascontiguousarray(self.extra_ST[name]) for name in EXTRA if name in self.extra_ST}
        header = {
            "content_hash": self.content_hash,
            "symbols": self.symbols,
            "instruments": [instrument.describe() for instrument in self.instruments],
            "periods_per_year": self.periods_per_year,
            "notes": self.notes,
            "extra": [name for name in EXTRA if name in self.extra_ST],
        }
        text = json_line(header)
        document = {"schema_version": SCHEMA_VERSION, "header": text, "sha256": _digest(text, tensors)}
        # One key: safetensors writes several in an order that changes from file to file.
        write_atomically(path, save(tensors, {_METADATA: json_line(document)}))

    @classmethod
    def load(cls, path: Path | str) -> Tape:
        """Reads a tape that `save` wrote; a newer, foreign or damaged file is refused in one line."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(str(path), framework="numpy") as file:
                metadata = (file.metadata() or {}).get(_METADATA)
                if metadata is None:
                    raise DataError(f"{path}: expected a tape of Bellmark, found another safetensors file")
                document = json.loads(metadata)
                version = document["schema_version"]
                if version > SCHEMA_VERSION:
                    raise DataError(f"{path}: schema_version {version} is newer than this Bellmark's {SCHEMA_VERSION}; update Bellmark")
                header_text, digest = document["header"], document["sha256"]
                header = json.loads(header_text)
                extra = tuple(str(name) for name in header.get("extra", ()))
                tensors = {name: file.get_tensor(name) for name in (*_TENSORS, *(f"{name}_ST" for name in extra))}
        except (OSError, SafetensorError) as error:
            raise DataError(f"{path}: the tape cannot be read: {error}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{path}: the tape is damaged: its header cannot be read: {type(error).__name__}: {error}") from error
        if _digest(header_text, tensors) != digest:
            raise DataError(f"{path}: the tape is damaged: its contents do not have the hash written with them")
        return cls(
            symbols=tuple(header["symbols"]),
            instruments=tuple(Instrument.from_description(values) for values in header["instruments"]),
            content_hash=header["content_hash"],
            periods_per_year=header["periods_per_year"],
            notes=tuple(header["notes"]),
            extra_ST={name: tensors.pop(f"{name}_ST") for name in extra},
            **tensors,
        )


_METADATA = "bellmark_tape"
_TENSORS = ("length_S", *(f"{name}_ST" for name in ARRAYS), "duplicates_S", "outside_S")


def _digest(header: str, tensors: dict[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256(header.encode())
    for array in tensors.values():  # in the order of _TENSORS, then of EXTRA
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def compile_tape(items: Sequence[tuple[Bars, Instrument]], *, cached: bool = True) -> Tape:
    """The tape of some symbols, in the order given.

    Bars are checked again (a dataset may be anybody's). A price off the instrument's grid by more than 1e-6 of a step is refused with
    its row; without a grid prices are rounded to the quantum. Quotes are for every symbol or none. A roll or a funding instant in a bar
    outside the session is refused: leaving it out would change what a position earns. With `cached`, a tape compiled before is read from
    the cache folder.
    """
    if not items:
        raise DataError("the dataset gives no symbol")
    symbols = [bars.symbol for bars, _ in items]
    if len(set(symbols)) < len(symbols):
        twice = next(symbol for symbol in symbols if symbols.count(symbol) > 1)
        raise DataError(f"the dataset gives symbol '{twice}' twice")
    for bars, instrument in items:
        check(bars, instrument.allow_negative_prices)
    _check_quotes([bars for bars, _ in items])
    items = [(bars, instrument.resolved(float(bars.close[0]))) for bars, instrument in items]
    content = _content_hash(items)
    quanta = [str(instrument.quantum) for _, instrument in items]
    beside = [
        [bars.symbol, bars.duplicates, bars.instants_outside, bars.notes, calendar.version(one.session)] for bars, one in items
    ]  # on the tape, not in the hash
    key = hashlib.sha256(json_line([SCHEMA_VERSION, _code_hash(), content, quanta, beside]).encode()).hexdigest()[:32]
    path = cache_folder("tapes") / f"{key}.safetensors" if cached else None
    if path is not None and path.exists():
        try:
            return Tape.load(path)
        except DataError:
            path.unlink(missing_ok=True)  # a damaged cache file is no reason to fail
    tape = _assemble(items, content)
    if path is not None:
        tape.save(path)
    return tape


def _check_quotes(symbols: Sequence[Bars]) -> None:
    first = symbols[0]
    for bars in symbols[1:]:
        if set(bars.quotes) != set(first.quotes):
            a, b = (f"{', '.join(each.quotes) or 'none'} for {each.symbol}" for each in (first, bars))
            raise DataError(f"quotes: expected the same columns for every symbol, or none at all, found {a} and {b}")


@lru_cache(maxsize=1)
def _code_hash() -> str:
    """Of the sources that make a tape out of bars: a tape of other code is never served."""
    digest = hashlib.sha256()
    for module in (bars_module, clock, instrument_module, calendar, holidays):
        digest.update(Path(str(module.__file__)).read_bytes())
    digest.update(Path(__file__).read_bytes())
    return digest.hexdigest()


def _content_hash(items: Sequence[tuple[Bars, Instrument]]) -> str:
    digest = hashlib.sha256(_HASH.encode())
    for bars, instrument in items:
        digest.update(json_line(instrument.describe() | {"price_quantum": None}).encode())
        digest.update(np.ascontiguousarray(bars.ts_event, np.int64).tobytes())
        for column in (*bars.prices.values(), bars.volume):
            digest.update(_plain(column))
        for name, column in bars.extras.items():
            digest.update(name.encode())
            digest.update(_plain(column))
    return digest.hexdigest()


def _plain(column: NDArray[Any]) -> bytes:
    """The bytes of a column with one NaN and one zero."""
    return np.where(np.isnan(column), np.nan, np.asarray(column, np.float64) + 0.0).tobytes()


def _assemble(items: Sequence[tuple[Bars, Instrument]], content: str) -> Tape:
    compiled = [_symbol(bars, instrument) for bars, instrument in items]
    longest = max(len(arrays["ts"]) for arrays, _ in compiled)
    rows = [arrays for arrays, _ in compiled]
    if any(SIGNALS[0] in arrays for arrays in rows):
        rows = [{name: arrays[name.removeprefix("signal_")] for name in SIGNALS} | arrays for arrays in rows]
    padded = {f"{name}_ST": _padded(rows, name, kind, longest) for name, kind in ARRAYS.items()}
    extra = {name: _padded(rows, name, kind, longest) for name, kind in EXTRA.items() if any(name in arrays for arrays in rows)}
    notes = [note for (bars, instrument), (_, outside) in zip(items, compiled, strict=True) for note in _notes(bars, instrument, outside)]
    periods = [instrument.periods_per_year or _periods_per_year(arrays, instrument)
               for (_, instrument), (arrays, _) in zip(items, compiled, strict=True)]  # fmt: skip
    if len(set(periods)) > 1:
        shown = ", ".join(f"{bars.symbol} {value:g}" for (bars, _), value in zip(items, periods, strict=True))
        notes.append(f"the symbols differ in bars a year ({shown}); annual figures take the largest")
    return Tape(
        symbols=tuple(bars.symbol for bars, _ in items),
        instruments=tuple(instrument for _, instrument in items),
        length_S=np.array([len(arrays["ts"]) for arrays, _ in compiled], np.int64),
        duplicates_S=np.array([bars.duplicates for bars, _ in items], np.int64),
        outside_S=np.array([outside for _, outside in compiled], np.int64),
        content_hash=content,
        periods_per_year=float(max(periods)),
        notes=tuple(notes),
        extra_ST=extra,
        **padded,
    )


def _padded(rows: Sequence[dict[str, NDArray[Any]]], name: str, kind: type[np.generic], longest: int) -> NDArray[Any]:
    array_ST = np.zeros((len(rows), longest), kind)
    for s, arrays in enumerate(rows):
        if name in arrays:
            array_ST[s, : len(arrays[name])] = arrays[name]
    return array_ST


def _notes(bars: Bars, instrument: Instrument, outside: int) -> list[str]:
    notes = list(bars.notes)
    if bars.duplicates:
        notes.append(f"{bars.symbol}: {bars.duplicates} identical rows were left out")
    if outside:
        notes.append(f"{bars.symbol}: {outside} bars outside the session {instrument.session} were left out")
    session = instrument.session
    if session is not None and session.calendar:
        notes += _calendar_notes(bars, session)
    if bars.instants_outside:
        notes.append(f"{bars.symbol}: {bars.instants_outside} funding instants before the first or after the last bar were left out")
    return notes


def _calendar_notes(bars: Bars, session: Session) -> list[str]:
    """Bars on days without a session by the calendar, which are kept, and dates that it does not know."""
    date_T = np.unique(calendar.session_dates(np.asarray(bars.ts_event, np.int64), session))
    closed_D = date_T[~calendar.held_on(date_T, session)]
    notes = []
    if closed_D.size:
        first = str(closed_D[0].astype("datetime64[D]"))
        days = "a day" if closed_D.size == 1 else f"{closed_D.size} days"
        notes.append(
            f"{bars.symbol}: there are bars on {days} that calendar {session.calendar} has no session on, first {first}; they are kept"
        )
    unknown = calendar.unknown_years(date_T, session)
    return [*notes, f"{bars.symbol}: {unknown}"] if unknown else notes


def _symbol(bars: Bars, instrument: Instrument) -> tuple[dict[str, NDArray[Any]], int]:
    ts_T = np.asarray(bars.ts_event, np.int64)
    day_T, within_T, length_T = calendar.session_days(ts_T, instrument.session)
    inside_T = within_T <= length_T
    outside = int(np.count_nonzero(~inside_T))
    if outside == len(bars):
        raise DataError(
            f"{bars.symbol}: no bar closes inside the session {instrument.session}: the first closes at {clock.text(ts_T[0])}; "
            "look at the time zone, the stamp (open or close) and the session"
        )
    if outside:
        _check_outside(bars, ~inside_T, instrument)
        bars, ts_T, day_T = bars.take(inside_T), ts_T[inside_T], day_T[inside_T]
        within_T, length_T = within_T[inside_T], length_T[inside_T]
    begins_T = np.concatenate([[True], np.diff(day_T) > 0])
    session_T = np.cumsum(begins_T) - 1
    first_S = np.flatnonzero(begins_T)
    end_S = np.append(first_S[1:], len(ts_T))
    t = np.arange(len(ts_T))
    daily = bool(np.all(end_S - first_S == 1))
    fraction_T = np.zeros(len(ts_T), np.float32) if daily else np.minimum((within_T / length_T).astype(np.float32), _BEFORE_ONE)
    arrays = {name: _quanta(bars, name, price_T, instrument) for name, price_T in bars.prices.items()}
    instrument.check_range(float(max(np.abs(bars.high).max(), np.abs(bars.low).max())))
    return {
        "ts": ts_T,
        **arrays,
        "volume": np.asarray(bars.volume, np.float64) / instrument.lot_size,
        "session": session_T,
        "session_bar": t - first_S[session_T],
        "session_left": end_S[session_T] - 1 - t,
        "session_fraction": fraction_T,
        "gap": _gaps(ts_T, session_T, daily, instrument),
        **(_extras(bars, instrument) if bars.extras else {}),
    }, outside


def _check_outside(bars: Bars, outside_T: NDArray[np.bool_], instrument: Instrument) -> None:
    for name, label in (("roll_price", "a roll"), ("funding_rate", "a funding instant")):
        column_T = bars.extras.get(name)
        lost = np.flatnonzero(outside_T & ~np.isnan(column_T)) if column_T is not None else np.zeros(0, np.int64)
        if lost.size:
            raise DataError(
                f"{bars.where(lost)}: {label} at {clock.text(bars.ts_event[lost[0]])} lies outside the session {instrument.session}, whose "
                "bars alone are kept; take a session that holds it, or none"
            )


def _extras(bars: Bars, instrument: Instrument) -> dict[str, NDArray[Any]]:
    """The columns of EXTRA that the bars have; amounts of money are checked for their prices too."""
    arrays: dict[str, NDArray[Any]] = {_QUOTES[name]: _quanta(bars, name, price_T, instrument) for name, price_T in bars.quotes.items()}
    largest = max((float(np.abs(price_T).max()) for price_T in bars.quotes.values()), default=0.0)
    if bars.halted is not None:
        arrays["halted"] = np.asarray(bars.halted, np.uint8)
    if bars.funding_rate is not None:
        given_T = bars.close if bars.funding_mark is None else np.where(np.isnan(bars.funding_mark), bars.close, bars.funding_mark)
        none_T = np.isnan(bars.funding_rate)
        mark_T = np.where(none_T, 0.0, given_T)
        arrays["funding_rate"] = np.rint(np.where(none_T, 0.0, bars.funding_rate) * RATE_ONE).astype(np.int64)
        arrays["funding_mark"] = _rounded(mark_T, instrument)
        largest = max(largest, float(np.abs(mark_T).max()))
    if bars.roll_price is not None:
        rolls = np.flatnonzero(~np.isnan(bars.roll_price))
        price_T, flag_T = np.zeros(len(bars), np.int64), np.zeros(len(bars), np.uint8)
        if rolls.size:
            price_T[rolls] = _quanta(bars.take(rolls), "roll_price", bars.roll_price[rolls], instrument)
            largest = max(largest, float(np.abs(bars.roll_price[rolls]).max()))
        flag_T[rolls] = 1
        arrays |= {"roll_price": price_T, "rolls": flag_T}
    signals = {name: price_T for name, price_T in bars.extras.items() if name in SIGNALS}
    arrays |= {name: _rounded(price_T, instrument) for name, price_T in signals.items()}  # no money is counted in them
    largest = max([largest, *(float(np.abs(price_T).max()) for price_T in signals.values())])
    instrument.check_range(largest)
    return arrays


def _bar_length(ts_T: NDArray[np.int64], session_T: NDArray[np.int64]) -> int:
    """The commonest distance of neighbours within a session, else of any neighbours; 0 for a single bar."""
    step_T = np.diff(ts_T)
    inside = step_T[np.diff(session_T) == 0]
    steps, counts = np.unique(inside if inside.size else step_T, return_counts=True)
    return int(steps[np.argmax(counts)]) if steps.size else 0


def _gaps(ts_T: NDArray[np.int64], session_T: NDArray[np.int64], daily: bool, instrument: Instrument) -> NDArray[np.uint8]:
    gap_T = np.zeros(len(ts_T), np.uint8)
    if not daily or (instrument.session is not None and instrument.session.calendar):  # else nothing says which days are held
        gap_T[1:] = calendar.missing_bars(ts_T[:-1], ts_T[1:], _bar_length(ts_T, session_T), instrument.session) > 0
    return gap_T


def _quanta(bars: Bars, name: str, given_T: NDArray[np.float64], instrument: Instrument) -> NDArray[np.int64]:
    """Prices of a column in quanta; one off the instrument's grid is refused."""
    price_T = np.asarray(given_T, np.float64)
    quantum, grid = instrument.quantum, instrument.grid
    if grid is None:
        return _above_zero(_rounded(price_T, instrument), bars, name, price_T, "price_quantum")
    _check_largest(price_T, instrument)
    step_T = price_T * grid.denominator / grid.numerator
    nearest_T = np.rint(step_T)
    off = np.flatnonzero(np.abs(step_T - nearest_T) > ON_GRID + np.abs(step_T) * 2.0**-50)
    if off.size:
        raise DataError(
            f"{bars.where(off)}: {name} {price_T[off[0]]!s} is not a multiple of {float(grid):g}; "
            "correct instrument.tick_size, or set it to 0 for prices without a tick"
        )
    _above_zero(nearest_T, bars, name, price_T, "tick_size")
    ratio = grid / quantum
    if ratio.denominator == 1:
        return nearest_T.astype(np.int64) * ratio.numerator
    return _rounded(price_T, instrument)


def _above_zero(step_T: NDArray[Any], bars: Bars, name: str, price_T: NDArray[np.float64], setting: str) -> NDArray[Any]:
    """The steps, unless one of a price above zero is none: a price far below the step would become nothing."""
    lost = np.flatnonzero((step_T <= 0) & (price_T > 0))
    if lost.size:
        price = price_T[lost[0]]
        raise DataError(f"{bars.where(lost)}: {name} {price!s} is far below a step of the prices; take a smaller instrument.{setting}")
    return step_T


def _rounded(price_T: NDArray[np.float64], instrument: Instrument) -> NDArray[np.int64]:
    """Prices in the nearest quanta."""
    _check_largest(price_T, instrument)
    quantum = instrument.quantum
    return np.rint(price_T * quantum.denominator / quantum.numerator).astype(np.int64)


def _check_largest(price_T: NDArray[np.float64], instrument: Instrument) -> None:
    largest = float(np.abs(price_T).max())
    if largest / float(instrument.quantum) >= LARGEST_PRICE:
        instrument.check_range(largest)


def _periods_per_year(arrays: dict[str, NDArray[Any]], instrument: Instrument) -> float:
    """Bars in a year: sessions a year times bars a session.

    Sessions a year: as the session's calendar says; without one 252 where no session lies on a weekend, else 365. Bars a session: its
    trading time by the hours of the last bar, over the commonest distance of bars. Daily bars: the sessions; bars further apart than 4
    days: a year over their commonest distance (weekly 52, monthly 12).
    """
    ts_T, session_T, session = arrays["ts"], arrays["session"], instrument.session
    step = _bar_length(ts_T, session_T) / clock.SECOND
    if step > 4 * 86_400:
        return float(round(_YEAR_SECONDS / step))
    date_T = calendar.session_dates(ts_T[arrays["session_left"] == 0], session)
    weekday_T = (date_T + 3) % 7  # 1970-01-01 was a Thursday
    known = None if session is None else calendar.sessions_per_year(session)
    sessions = known or (365.0 if np.mean(weekday_T >= 5) > 0.02 else 252.0)
    if int(arrays["session_bar"].max()) == 0 or step <= 0:
        return sessions
    seconds = 86_400 if session is None else calendar.trading_seconds_on(int(date_T[-1]), session)
    return sessions * max(1.0, float(round(seconds / step)))


def read_only(tape: Tape) -> Tape:
    """The same tape with arrays that cannot be written: what plugins are handed, so that one of them cannot change the bars of another."""

    def locked(array: NDArray[Any]) -> NDArray[Any]:
        view = array.view()
        view.flags.writeable = False
        return view

    arrays: dict[str, Any] = {name: locked(getattr(tape, name)) for name in _TENSORS}
    return dataclasses.replace(tape, **arrays, extra_ST={name: locked(array) for name, array in tape.extra_ST.items()})


class HigherBars(NamedTuple):
    """Bars of a higher time frame of one symbol (H) and, for each of its base bars, the last of them that is complete (-1 for none)."""

    open_T: NDArray[np.int64]
    high_T: NDArray[np.int64]
    low_T: NDArray[np.int64]
    close_T: NDArray[np.int64]
    volume_T: NDArray[np.float64]
    completed_T: NDArray[np.int32]


def higher_bars(tape: Tape, symbol: int | str, every: int | str, signals: bool = False) -> HigherBars:
    """Bars of `every` base bars ("5" and 5 are the same), or of a "session", made of completed groups only.

    Groups start anew with each session where sessions have more than one bar, and run through otherwise. A group is complete at the
    close of its last base bar: the `every`th, or the session's last (when a session ends is taken as known; data that stop inside one
    end it). Prices at bar t therefore depend on bars up to t alone. Volume is NaN where that of any part is. `signals`: of the prices that
    features read (Tape.signal_price).
    """
    s = tape.symbol_index(symbol)
    length = int(tape.length_S[s])
    size = _group_size(every)
    in_sessions = int(tape.session_bar_ST[s, :length].max()) > 0
    t = np.arange(length)
    number_T = tape.session_bar_ST[s, :length].astype(np.int64) if in_sessions else t
    last_of_session_T = tape.session_left_ST[s, :length] == 0 if in_sessions or size is None else np.zeros(length, np.bool_)
    starts_T = number_T == 0 if size is None else number_T % size == 0
    if size is None and not in_sessions:
        starts_T = np.ones(length, np.bool_)
    ends_T = last_of_session_T if size is None else (number_T % size == size - 1) | last_of_session_T
    first_H, last_H = np.flatnonzero(starts_T), np.flatnonzero(ends_T)
    first_H = first_H[: len(last_H)]
    completed_T = (np.cumsum(ends_T) - 1).astype(np.int32)
    if len(last_H) == 0:
        none = np.zeros(0, np.int64)
        return HigherBars(none, none, none, none, np.zeros(0), completed_T)
    until = int(last_H[-1]) + 1
    names = ("open", "high", "low", "close")
    row = {name: (tape.signal_price(name) if signals else getattr(tape, f"{name}_ST"))[s, :until] for name in names}
    return HigherBars(
        row["open"][first_H],
        np.maximum.reduceat(row["high"], first_H),
        np.minimum.reduceat(row["low"], first_H),
        row["close"][last_H],
        np.add.reduceat(tape.volume_ST[s, :until], first_H),
        completed_T,
    )


def _group_size(every: int | str) -> int | None:
    if every == "session":
        return None
    if (isinstance(every, str) and every.isdecimal()) or isinstance(every, int | np.integer):
        size = int(every)
        if size >= 1:
            return size
    raise UsageError(f"higher bars: expected 'session' or a number of bars of at least 1, found {every!r}")


def describe(tape: Tape) -> list[dict[str, Any]]:
    """What a load report says of each symbol: bars, span, sessions, gaps and their largest move, volume, events, what was left out.

    largest_gap_move is the largest |open / close before - 1| over a gap, null without one; missing_bars counts by the commonest distance.
    halted_bars, funding_instants (bars that hold one) and rolls are 0, and quotes false, where the data have no such column.
    """
    return [_describe(tape, s) for s in range(len(tape.symbols))]


def _describe(tape: Tape, s: int) -> dict[str, Any]:
    n = int(tape.length_S[s])
    ts_T, gap = tape.ts_ST[s, :n], np.flatnonzero(tape.gap_ST[s, :n])
    step = _bar_length(ts_T, tape.session_ST[s, :n].astype(np.int64))
    volume_T = tape.volume_ST[s, :n]
    moves = [float(tape.open_ST[s, t] / tape.close_ST[s, t - 1] - 1) for t in gap if tape.close_ST[s, t - 1] != 0]
    extra = {name: array_ST[s, :n] for name, array_ST in tape.extra_ST.items()}
    none_T = np.zeros(n, np.int64)
    instants_T = (extra.get("funding_rate", none_T) != 0) | (extra.get("funding_mark", none_T) != 0)  # a rate may be 0, a mark hardly
    missing = int(calendar.missing_bars(ts_T[gap - 1], ts_T[gap], step, tape.instruments[s].session).sum())
    return {
        "symbol": tape.symbols[s],
        "bars": n,
        "first": clock.text(ts_T[0]),
        "last": clock.text(ts_T[-1]),
        "bar_seconds": step / clock.SECOND,
        "sessions": int(tape.session_ST[s, n - 1]) + 1,
        "gaps": len(gap),
        "missing_bars": missing,
        "largest_gap_move": max(moves, key=abs) if moves else None,
        "zero_volume_bars": int(np.count_nonzero(volume_T == 0)),
        "unknown_volume_bars": int(np.count_nonzero(np.isnan(volume_T))),
        "halted_bars": int(np.count_nonzero(extra.get("halted", none_T))),
        "funding_instants": int(np.count_nonzero(instants_T)),
        "rolls": int(np.count_nonzero(extra.get("rolls", none_T))),
        "quotes": "bid_close" in extra,
        "identical_duplicates": int(tape.duplicates_S[s]),
        "outside_session": int(tape.outside_S[s]),
        "instrument": dataclasses.replace(tape.instruments[s]).describe(),
    }
