"""Strategy: exposures from a file that anything may have written."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bellmark import clock
from bellmark.component import Strategy, component, setting
from bellmark.errors import DataError, UsageError, known_list

_COLUMNS = ("ts", "symbol", "exposure")
_MORE = ("target_lots", "order_lots", "action", "learner")  # what `bellmark signals` writes beside them, for people
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9}))?(Z|[+-]\d\d:?\d\d)?", re.ASCII)
_EPOCH = re.compile(r"[0-9]{18,19}", re.ASCII)  # nanoseconds from 1980 to 2100: other units have fewer digits
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_EARLIEST, _LATEST = 315_532_800 * clock.SECOND, 4_102_444_800 * clock.SECOND  # 1980 and 2100
_LARGEST = 1000.0


@component
class Signals(Strategy):
    """At each bar the latest exposure of its symbol in a file whose stamp is not after the bar's close; 0 before the first.

    The file is CSV with the header ts,symbol,exposure in any order (.csv) or one JSON object a line with these three keys (.jsonl). The
    further columns of a file that `bellmark signals` wrote for one learner are passed over.
    ts: ISO 8601 with a time of day (2024-03-04T14:33:00Z; without an offset it is UTC) or nanoseconds since 1970; a date alone is refused,
    because it does not say whether the day's close was known. symbol: one of the tape. exposure: a number within -1000 and 1000. The rows
    of a symbol are in time order, one a stamp; anything else is refused with its row. Symbols without a row stay flat.
    A signal with the stamp of a bar's close counts as known at that close and works in the next bar: writing stamps that are not earlier
    than what the signal was made of is up to its author, no proof here can see it.
    """

    name: ClassVar[str] = "signals"
    path: str = setting(meaning="CSV (.csv) or JSON lines (.jsonl) file with ts, symbol and exposure; ~ is the home folder")
    series: ClassVar[dict[str, str]] = {"signal": "float64"}

    def compute_series(self, tape: Any) -> dict[str, Any]:
        """signal (S, T): the exposure in force at the close of each bar."""
        signal_ST = np.zeros(tape.close_ST.shape)
        for symbol, (ts_K, exposure_K) in read_signals(self.path, tape.symbols).items():
            s = tape.symbols.index(symbol)
            length = int(tape.length_S[s])
            latest_T = np.searchsorted(ts_K, tape.ts_ST[s, :length], side="right") - 1
            signal_ST[s, :length] = np.where(latest_T >= 0, exposure_K[np.maximum(latest_T, 0)], 0.0)
        return {"signal": signal_ST}

    @staticmethod
    def decide(t, signal_T):
        return signal_T[t]


def read_signals(path: str, symbols: tuple[str, ...]) -> dict[str, tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """The signals of a file by symbol: stamps (UTC ns, rising) and exposures. DataError or UsageError names the file and the row."""
    try:
        file = Path(path).expanduser()
    except RuntimeError as error:
        raise UsageError(f"strategy signals.path: {path!r}: {error}") from error
    if not file.is_file():
        raise UsageError(f"strategy signals.path: {path!r}: {'it is a folder' if file.is_dir() else 'there is no such file'}")
    readers = {".csv": _csv_rows, ".jsonl": _json_rows}
    if file.suffix.lower() not in readers:
        raise UsageError(f"strategy signals.path: expected a name that ends in .csv or .jsonl, found {path!r}")
    found: dict[str, tuple[list[int], list[float]]] = {}
    try:
        for where, row in readers[file.suffix.lower()](file):
            _add(found, row, symbols, where)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{file}: it cannot be read as text in UTF-8: {error}") from error
    if not found:
        raise DataError(f"{file}: the file holds no signal")
    return {symbol: (np.array(ts, np.int64), np.array(exposures, np.float64)) for symbol, (ts, exposures) in found.items()}


def _add(found: dict[str, tuple[list[int], list[float]]], row: dict[str, Any], symbols: tuple[str, ...], where: str) -> None:
    symbol = row["symbol"]
    if symbol not in symbols:
        raise DataError(f"{where}: no symbol {_short(symbol)} in the data{_nearest(symbol, symbols)}{known_list(symbols)}")
    ts, exposure = _moment(row["ts"], where), _exposure(row["exposure"], where)
    stamps, exposures = found.setdefault(symbol, ([], []))
    if stamps and ts == stamps[-1]:
        raise DataError(f"{where}: a second signal of {symbol} at {clock.text(ts, 'ns')}")
    if stamps and ts < stamps[-1]:
        last = clock.text(stamps[-1], "ns")
        raise DataError(f"{where}: expected the rows of {symbol} in time order, found {clock.text(ts, 'ns')} after {last}")
    stamps.append(ts)
    exposures.append(exposure)


def _nearest(symbol: str, symbols: tuple[str, ...]) -> str:
    by_lower = {name.lower(): name for name in symbols}
    close = get_close_matches(symbol.lower(), list(by_lower), n=1, cutoff=0.6)
    return f"; did you mean '{by_lower[close[0]]}'?" if close else ""


def _csv_rows(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    with file.open(encoding="utf-8-sig", newline="") as lines:
        rows = csv.reader(lines, strict=True)
        names = [name.strip().lower() for name in next(rows, [])]
        if sorted(name for name in names if name not in _MORE) != sorted(_COLUMNS) or len(set(names)) < len(names):
            raise DataError(f"{file}: expected the header {','.join(_COLUMNS)}, found {_short(','.join(names))}")
        for number, row in enumerate(rows, start=1):
            if not row:
                continue
            where = f"{file}: data row {number} (the header not counted)"
            if len(row) != len(names):
                raise DataError(f"{where}: expected {len(names)} fields, found {len(row)}")
            values: dict[str, Any] = dict(zip(names, (cell.strip() for cell in row), strict=True))
            if _NUMBER.fullmatch(values["exposure"]):
                values["exposure"] = float(values["exposure"])
            yield where, values


def _json_rows(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    with file.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            where = f"{file}: line {number}"
            try:
                pairs = json.loads(line, object_pairs_hook=lambda pairs: pairs)
            except (ValueError, RecursionError) as error:
                raise DataError(f"{where}: it is not JSON: {error}") from error
            if not isinstance(pairs, list) or sorted(str(pair[0]) for pair in pairs if isinstance(pair, tuple)) != sorted(_COLUMNS):
                raise DataError(f"{where}: expected an object with the keys {', '.join(_COLUMNS)}, found {_short(line.strip())}")
            values = dict(pairs)
            if not isinstance(values["symbol"], str):
                raise DataError(f"{where}: expected a text as symbol, found {_short(values['symbol'])}")
            yield where, values


def _moment(value: Any, where: str) -> int:
    """A stamp as UTC nanoseconds."""
    text = str(value) if type(value) in (str, int) else ""
    if _EPOCH.fullmatch(text):
        ts = int(text)
    else:
        parts = _ISO.fullmatch(text)
        if parts is None:
            raise DataError(
                f"{where}: expected ts as 2024-03-04T14:33:00Z or as nanoseconds since 1970 (18 or 19 digits), found {_short(value)}"
            )
        date, time, fraction, offset = parts.groups()
        try:
            moment = datetime.fromisoformat(f"{date}T{time}{(offset or 'Z').replace('Z', '+00:00')}").astimezone(UTC)
        except (ValueError, OverflowError) as error:
            raise DataError(f"{where}: ts {_short(value)}: {error}") from error
        ts = int((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * clock.SECOND + int((fraction or "").ljust(9, "0"))
    if not _EARLIEST <= ts <= _LATEST:
        raise DataError(f"{where}: ts {_short(value)} lies outside 1980 to 2100")
    return ts


def _exposure(value: Any, where: str) -> float:
    if type(value) not in (int, float) or not -_LARGEST <= value <= _LARGEST:
        raise DataError(f"{where}: expected exposure as a number within -{_LARGEST:g} and {_LARGEST:g}, found {_short(value)}")
    return float(value)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
