"""Train, validation and test: consecutive parts of time, the same for every symbol, with an embargo between them.

The cuts are moments. A fraction counts the distinct stamps of all symbols together (the first `train` share of them is the train part); an
ISO date is the first moment after a part. Each symbol then has the bars whose close lies before, between and after the cuts; the first
`embargo_bars` of its bars of validation and test are left out. A symbol that did not trade in a part has an empty window there.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from bellmark import clock
from bellmark.errors import DataError, UsageError
from bellmark.tape import Tape

PARTS = ("train", "validation", "test")


@dataclass(frozen=True)
class Window:
    """Bars [start_S, end_S) of each symbol in one part. first, last: UTC ns of the earliest and latest close in it, of any symbol."""

    name: str
    start_S: NDArray[np.int64]
    end_S: NDArray[np.int64]
    first: int
    last: int

    @property
    def bars(self) -> NDArray[np.int64]:
        """Bars of each symbol; 0 where a symbol has none in this part."""
        return self.end_S - self.start_S

    def __str__(self) -> str:
        return f"{self.name} {clock.text(self.first)} to {clock.text(self.last)}, {int(self.bars.sum())} bars"


@dataclass(frozen=True)
class Splits:
    """The three parts of a tape."""

    train: Window
    validation: Window
    test: Window

    def __getitem__(self, name: str) -> Window:
        if name not in PARTS:
            raise UsageError(f"split: expected one of {', '.join(PARTS)}, found {name!r}")
        return getattr(self, name)


def split_tape(tape: Tape, train: float | str = 0.6, validation: float | str = 0.2, embargo_bars: int = 0) -> Splits:
    """Cuts a tape. `train` and `validation` are two fractions, whose rest is test, or two ISO dates (UTC where they name no offset)."""
    stamps = np.unique(np.concatenate([tape.ts_ST[s, :length] for s, length in enumerate(tape.length_S)]))
    cuts = _cuts(stamps, train, validation)
    edges_S = np.array([np.searchsorted(tape.ts_ST[s, :length], cuts, side="left") for s, length in enumerate(tape.length_S)])
    zero_S = np.zeros(len(tape.symbols), np.int64)
    starts = (zero_S, edges_S[:, 0] + embargo_bars, edges_S[:, 1] + embargo_bars)
    ends = (edges_S[:, 0], edges_S[:, 1], tape.length_S)
    windows = [_window(tape, name, start_S, end_S) for name, start_S, end_S in zip(PARTS, starts, ends, strict=True)]
    return Splits(*windows)


def _cuts(stamps: NDArray[np.int64], train: float | str, validation: float | str) -> NDArray[np.int64]:
    if isinstance(train, str) and isinstance(validation, str):
        cuts = np.array([_moment(train, "split.train"), _moment(validation, "split.validation")], np.int64)
        if cuts[0] >= cuts[1]:
            raise UsageError(f"split.validation: expected a date after split.train {train}, found {validation}")
        return cuts
    if isinstance(train, str) or isinstance(validation, str):
        raise UsageError(f"split: expected two fractions or two dates, found train {train!r} and validation {validation!r}")
    for name, share in (("train", train), ("validation", validation)):
        if not 0.0 < share < 1.0:
            raise UsageError(f"split.{name}: expected a fraction between 0 and 1, found {share:g}")
    if train + validation >= 1.0:
        raise UsageError(f"split: expected train + validation below 1, found {train + validation:g}: no test part is left")
    places = [int(train * len(stamps) + 1e-9), int((train + validation) * len(stamps) + 1e-9)]  # 0.6 + 0.2 is below 0.8 in binary
    return stamps[places]


def _moment(text: str, where: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{where}: expected a fraction or an ISO date such as 2012-01-01, found {text!r}") from None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    if not 1678 <= moment.year <= 2261:
        raise UsageError(f"{where}: expected a date between 1678 and 2261, found {text!r}")
    return round(moment.timestamp()) * clock.SECOND


def _window(tape: Tape, name: str, start_S: NDArray[np.int64], end_S: NDArray[np.int64]) -> Window:
    start_S = np.minimum(start_S, end_S).astype(np.int64)
    filled = np.flatnonzero(end_S - start_S >= 2)
    if filled.size == 0:
        first, last = clock.text(tape.ts_ST[:, 0].min()), clock.text(max(tape.ts_ST[s, n - 1] for s, n in enumerate(tape.length_S)))
        span = f"the data run from {first} to {last}, {int(tape.length_S.max())} bars"
        raise DataError(f"split: the {name} part holds fewer than 2 bars; {span}")
    first_ns = min(int(tape.ts_ST[s, start_S[s]]) for s in filled)
    last_ns = max(int(tape.ts_ST[s, end_S[s] - 1]) for s in filled)
    return Window(name, start_S, end_S.astype(np.int64), first_ns, last_ns)
