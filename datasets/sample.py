"""Real daily bars of five companies from the package bokeh-sampledata, with their stock splits taken out."""

from __future__ import annotations

import csv
import gzip
import importlib.util
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bellmark import clock
from bellmark.bars import Bars, check, in_order
from bellmark.component import Dataset, component, setting
from bellmark.errors import DataError, UsageError
from bellmark.instrument import Instrument, Session

SYMBOLS = ("AAPL", "FB", "GOOG", "IBM", "MSFT")
# New shares for one old one. A quarter more is the least: dividends move the same ratio, and the largest here is 11 % (MSFT, 2004-11-15).
_RATIOS = tuple(Fraction(a, b) for a, b in ((5, 4), (4, 3), (3, 2), (5, 2), *((n, 1) for n in range(2, 11)), (15, 1), (20, 1)))
_ON_RATIO = 0.005
_ORDINARY_MOVE = 0.35  # of price, once the split is taken out
_FILE_STEP = Fraction(1, 10_000)  # the file has up to four decimals
_TICK = 0.01


@dataclass(frozen=True)
class Split:
    """A stock split: the first bar at the new price, and the new shares for one old one."""

    bar: int
    ratio: Fraction


@component
class Sample(Dataset):
    """Real daily bars of AAPL, FB, GOOG, IBM and MSFT from 2000 to 2013, with their stock splits taken out.

    2000-03-01 to 2013-03-01; GOOG from 2004-08-19, FB from 2012-05-18.
    The file holds raw prices and a close adjusted for splits and dividends. A split is a jump of adjusted / raw close to a simple ratio
    that the raw price mirrors. Prices before it are divided and volumes multiplied, so that both run on through it; dividends stay in
    the prices. A fall without such a jump is a fall: AAPL lost 52 % on 2000-09-29.
    Bars are stamped 16:00 New York (the file has dates alone; early closes too).
    """

    name: ClassVar[str] = "sample"
    symbols: tuple[str, ...] = setting(("AAPL", "FB", "GOOG", "IBM", "MSFT"), "companies to read, in this order; FB has 196 bars")

    def read(self) -> list[Any]:
        """Checked bars and instrument of each company."""
        for symbol in self.symbols:
            if symbol not in SYMBOLS:
                raise UsageError(f"data.symbols: no company '{symbol}' (have: {', '.join(SYMBOLS)})")
        if not self.symbols:
            raise UsageError(f"data.symbols: expected at least one of {', '.join(SYMBOLS)}, found none")
        path = file_path()
        rows = _rows(path)
        return [_symbol(rows[symbol], symbol, path.name) for symbol in self.symbols]


def file_path() -> Path:
    """The file inside the package, which is not imported: its import would load pandas."""
    spec = importlib.util.find_spec("bokeh_sampledata")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        for path in sorted(Path(folder).rglob("stocks.csv*")):
            return path
    raise DataError("data.use = 'sample': the package bokeh-sampledata is not installed; install it with: pip install 'bellmark[demo]'")


def _rows(path: Path) -> dict[str, list[list[str]]]:
    rows: dict[str, list[list[str]]] = {symbol: [] for symbol in SYMBOLS}
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        reader = csv.reader(content.decode("utf-8").splitlines())
        if next(reader, None) != ["Ticker", "Date", "Open", "High", "Low", "Close", "Volume", "Adj Close"]:
            raise DataError(f"{path}: expected the columns of bokeh-sampledata's stocks, found others")
        for row in reader:
            rows.setdefault(row[0], []).append(row)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: it cannot be read: {error}") from error
    return rows


def _symbol(rows: list[list[str]], symbol: str, source: str) -> tuple[Bars, Instrument]:
    local_T = np.array([row[1] for row in rows], "datetime64[ns]").astype(np.int64) + 16 * 3600 * clock.SECOND
    price = {name: np.array([float(row[2 + place]) for row in rows]) for place, name in enumerate(("open", "high", "low", "close"))}
    volume_T = np.array([float(row[6]) for row in rows])
    splits = find_splits(price["close"], np.array([float(row[7]) for row in rows]))
    factor_T, quantum = split_factors(splits, len(rows))
    ts_T = clock.to_utc(local_T, "America/New_York")[0]
    whole = {name: column / factor_T for name, column in price.items()}
    bars = in_order(Bars.from_prices(symbol, ts_T, whole, volume_T * factor_T, source))
    check(bars)
    tick = None if quantum is None else _TICK
    instrument = Instrument(symbol, tick, session=Session.parse("us_equity"), data_quantum=None if quantum is None else float(quantum))
    return bars, instrument


def find_splits(close_T: NDArray[np.float64], adjusted_T: NDArray[np.float64]) -> list[Split]:
    """The stock splits between a raw and an adjusted close.

    Where the raw close falls to 1/r of itself by a split, adjusted / raw rises by r. Both are asked for: the jump lies within 0.5 % of a
    simple ratio (or its inverse: a reverse split) of at least 5:4, and the price without the split moved by less than 35 %. A dividend
    jumps less than 5:4; a fall of the price moves both closes and their ratio not at all.
    """
    ratio_T = adjusted_T / close_T
    jump_T = ratio_T[1:] / ratio_T[:-1]
    found = []
    for t in np.flatnonzero(np.abs(np.log(jump_T)) > 0.2):
        jump = float(jump_T[t])
        nearest = min((option for ratio in _RATIOS for option in (ratio, 1 / ratio)), key=lambda option: abs(jump / float(option) - 1))
        move = float(close_T[t + 1] / close_T[t]) * float(nearest) - 1
        if abs(jump / float(nearest) - 1) < _ON_RATIO and abs(move) < _ORDINARY_MOVE:
            found.append(Split(int(t) + 1, nearest))
    return found


def split_factors(splits: list[Split], bars: int) -> tuple[NDArray[np.float64], Fraction | None]:
    """What each bar's price is divided by (its later splits together), and the decimal grid of the quotients, None where there is none."""
    factor_T = np.ones(bars)
    total, step = Fraction(1), _FILE_STEP
    for split in reversed(splits):
        total *= split.ratio
        factor_T[: split.bar] = float(total)
        step = min(step, _FILE_STEP / total.numerator)  # prices there are multiples of _FILE_STEP * denominator / numerator
    rest = step.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return factor_T, step if rest == 1 else None
