"""What only a series shows: missing bars, jumps that revert, possible splits, stale prices, bars of several lengths.

A watch reads the checked bars of one symbol block by block, in time order, and keeps a few rows between blocks: gaps, splits and stale
prices do not depend on where the blocks are cut. Blocks are of one size (staging.blocks), so that nothing depends on the chunks of files.
Bounds are stated here:

outlier: a close whose log change and the change after it are of opposite sign, both beyond max(20 s, 0.005), and cancel to less than half;
or a high or low that lies so far outside open and close. s = median |log change| / 0.6745 of the changes that are not zero, in the block;
where it has fewer than 30 of them, of the block before. Of a series with fewer than 30 nothing is said.
possible split: consecutive closes of two sessions whose ratio lies within 5 % of n:1 or 1:n (n = 2 to 10, 15, 20, 25, 50, 100), 3:2 or 4:3
(or the inverse), beyond 0.2 in its log and beyond 6 s where bars are daily; or a split of the actions with which the prices do not go, to
0.2 in the log.
level jump: a close beyond 3:2 or 2:3 of the one before within a session, beyond 3:1 or 1:3 over its end or of daily bars, that does not
come back by half with the next bar and is no possible split. Within a session markets halt long before; over a night it is rare.
stale price: at least 20 bars on end (5 of a day or longer) of one and the same price although volume is not 0.
mixed lengths: a bar that closes less than 3/4 of the length after the one before (but for a last bar of a session), 20 equal steps of
several lengths on end, or bars that all lie multiples of several lengths apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellmark import calendar, clock
from bellmark.bars import Bars
from bellmark.datasets.checks import Findings, Policies, Where, place_text
from bellmark.datasets.hours import Hours
from bellmark.errors import DataError

OUTLIER_SCALES, OUTLIER_LEAST = 20.0, 0.005
SPLIT_TOLERANCE, SPLIT_SCALES, SPLIT_LEAST = 0.05, 6.0, 0.2
LEVEL_WITHIN, LEVEL_OVER_NIGHT = float(np.log(1.5)), float(np.log(3))
STALE_BARS, STALE_DAYS = 20, 5
MIXED_RUN, MIXED_SHARE = 20, 0.75
_NORMAL = 0.6745  # median |x| of a standard normal number
_LEAST_SAMPLE = 30
_GAPS_KEPT = 50
_LEVELS_TOLD = 5
_LEAST_STEPS = 5
_RATIOS = sorted({ratio for pair in (*((n, 1) for n in (*range(2, 11), 15, 20, 25, 50, 100)), (3, 2), (4, 3))
                  for ratio in (Fraction(*pair), 1 / Fraction(*pair))})  # fmt: skip


@dataclass
class Gaps:
    """Gaps of one symbol: how many, bars missing in them, the largest |open / close before - 1|, and the first of them as plain values."""

    count: int = 0
    missing: int = 0
    largest_move: float | None = None
    first: list[dict[str, Any]] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """As plain values."""
        return {"count": self.count, "missing_bars": self.missing, "largest_move": self.largest_move, "first": self.first}


@dataclass
class Watch:
    """The checks of one symbol's series.

    length: of a bar, ns; 0 = unknown. known_splits: ratios of known splits by ex date (days since 1970) that are in the prices; none of
    prices that are said to be adjusted: a jump that looks like a split then says that they are not.
    """

    symbol: str
    hours: Hours
    length: int
    policies: Policies
    findings: Findings
    where: Where
    known_splits: Mapping[int, float] = field(default_factory=dict)
    gaps: Gaps = field(default_factory=Gaps)
    splits: list[str] = field(default_factory=list)
    levels: list[str] = field(default_factory=list)
    zero_volume: int = 0
    unknown_volume: int = 0
    flat_zero_volume: int = 0
    _stale: int = 0
    _scale: float = 0.0
    _begun: bool = False
    _spiked: bool = False

    def look(self, bars: Bars, context: int, last: bool) -> NDArray[np.int64]:
        """Places of bars to keep.

        The first `context` bars (0 or 1) were kept before and are there to compare with. Unless it is the last block, its last bar is not
        judged yet (what reverts is seen one bar later) and comes again, with the bar before it, in the next block.
        """
        end = len(bars) if last else len(bars) - 1
        if not self.length:
            self.length = _commonest(np.diff(bars.ts_event))
        elif not self._begun:
            self._apart(bars)
        self._begun = True
        change_T = self._changes(bars)
        scale = self._scale = _scale(change_T) or self._scale
        judged = np.arange(context, end)
        keep = judged[~self._outliers(bars, change_T, scale)[judged]]
        path = np.concatenate([np.arange(context), keep])
        if path.size > 1:
            self._steps(bars, path)
            self._splits(bars, path, scale)
            self._levels(bars, path)
        self._volumes(bars, keep, path)
        return keep

    def _apart(self, bars: Bars) -> None:
        """Refuses bars that are all farther apart than they are said to be long."""
        step_T = np.diff(bars.ts_event)
        apart = int(np.gcd.reduce(step_T)) if len(step_T) >= _LEAST_STEPS else 0
        if apart < 2 * self.length:
            return
        told = f"all bars lie a multiple of {_seconds(apart)} apart, and their length is {_seconds(self.length)}"
        if self.policies["mixed_lengths"] == "error":
            raise DataError(f"{self.where(bars, np.array([1]))}: {told}; is --bar right? --on mixed_lengths=report goes on")
        self._note("mixed_lengths", bars, np.array([1]), "reported")

    def _changes(self, bars: Bars) -> NDArray[np.float64]:
        with np.errstate(divide="ignore", invalid="ignore"):
            change_T = np.concatenate([[0.0], np.diff(np.log(bars.close))])
        return np.where(np.isfinite(change_T), change_T, 0.0)  # prices at or below zero have no ratio

    def _outliers(self, bars: Bars, change_T: NDArray[np.float64], scale: float) -> NDArray[np.bool_]:
        bound = max(OUTLIER_SCALES * scale, OUTLIER_LEAST)
        if len(bars) < 3 or scale == 0.0:
            return np.zeros(len(bars), np.bool_)
        after_T = np.concatenate([change_T[1:], [0.0]])
        reverts_T = (np.abs(change_T) > bound) & (np.abs(after_T) > bound) & (change_T * after_T < 0)
        reverts_T &= np.abs(change_T + after_T) < np.minimum(np.abs(change_T), np.abs(after_T)) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            above_T = np.log(bars.high / np.maximum(bars.open, bars.close))
            below_T = np.log(np.minimum(bars.open, bars.close) / bars.low)
        found_T = reverts_T | (above_T > bound) | (below_T > bound)
        places = np.flatnonzero(found_T)
        if not places.size:
            return found_T
        policy = self.policies["outlier"]
        if policy == "error":
            raise DataError(
                f"{self.where(bars, places)}: a jump that reverts at once, beyond {bound:.2%}, at {clock.text(bars.ts_event[places[0]])}"
                f"{self.policies.hint('outlier')}"
            )
        self._note("outlier", bars, places, "left out" if policy == "drop" else "reported")
        return found_T if policy == "drop" else np.zeros(len(bars), np.bool_)

    def _note(self, check: str, bars: Bars, places: NDArray[np.int64], action: str) -> None:
        self.findings.add(check, self.symbol, action, places.size, [place_text(bars, place, self.where) for place in places[:3]])

    def _steps(self, bars: Bars, path: NDArray[np.int64]) -> None:
        ts_T = bars.ts_event[path]
        step_T = np.diff(ts_T)
        short = np.flatnonzero(step_T < MIXED_SHARE * self.length)
        short = short[~self.hours.at_close(ts_T[short + 1])] if short.size else short
        run = short if short.size else _equal_run(step_T, self.length)
        if run.size:
            self._mixed(bars, path[run + 1], int(step_T[run[0]]))
        late = np.flatnonzero(step_T * 2 > self.length * 3)
        if late.size:
            missing = self.hours.missing(ts_T[late], ts_T[late + 1], self.length)
            self._gap(bars, path[late[missing > 0]], path[late[missing > 0] + 1], missing[missing > 0])

    def _mixed(self, bars: Bars, places: NDArray[np.int64], step: int) -> None:
        if self.policies["mixed_lengths"] == "error":
            raise DataError(
                f"{self.where(bars, places)}: bars of several lengths: {_seconds(step)} after the bar before, where bars are "
                f"{_seconds(self.length)} long, at {clock.text(bars.ts_event[places[0]])}; import each length on its own"
                "; --on mixed_lengths=report goes on"
            )
        self._note("mixed_lengths", bars, places, "reported")

    def _gap(self, bars: Bars, before: NDArray[np.int64], after: NDArray[np.int64], missing: NDArray[np.int64]) -> None:
        if not after.size:
            return
        if self.policies["missing_bars"] == "error":
            stamp, until = clock.text(bars.ts_event[before[0]]), clock.text(bars.ts_event[after[0]])
            raise DataError(
                f"{self.where(bars, after)}: {int(missing[0])} bars are missing between {stamp} and {until}"
                f"{self.policies.hint('missing_bars')}"
            )
        with np.errstate(divide="ignore", invalid="ignore"):
            move_K = bars.open[after] / bars.close[before] - 1
        for b, a, count, move in zip(before, after, missing, move_K, strict=True):
            if len(self.gaps.first) >= _GAPS_KEPT:
                break
            span = {"after": clock.text(bars.ts_event[b]), "until": clock.text(bars.ts_event[a])}
            self.gaps.first.append({**span, "missing_bars": int(count), "move": float(move) if np.isfinite(move) else None})
        self.gaps.count += after.size
        self.gaps.missing += int(missing.sum())
        finite = move_K[np.isfinite(move_K)]
        if finite.size:
            largest = float(finite[np.argmax(np.abs(finite))])
            if self.gaps.largest_move is None or abs(largest) > abs(self.gaps.largest_move):
                self.gaps.largest_move = largest

    def _splits(self, bars: Bars, path: NDArray[np.int64], scale: float) -> None:
        close_T, day_T = bars.close[path], self.hours.day(bars.ts_event[path])
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio_T = close_T[1:] / close_T[:-1]
        bound = SPLIT_SCALES * scale if self.length >= clock.DAY * MIXED_SHARE and len(path) > _LEAST_SAMPLE else 0.0
        far_T = np.abs(np.log(np.maximum(ratio_T, 1e-300))) > max(bound, SPLIT_LEAST)
        jumps = np.flatnonzero((ratio_T > 0) & far_T & (np.diff(day_T) > 0))
        known = self._known(bars, path)
        for jump in sorted({*jumps.tolist(), *known}):
            ratio, place = float(ratio_T[jump]), int(path[jump + 1])
            if jump in known:
                if ratio > 0 and abs(np.log(ratio * known[jump])) > SPLIT_LEAST:
                    self._split(bars, place, f"split {known[jump]:g} of the actions does not fit prices that moved by {ratio:.4g}")
                continue
            nearest = _RATIOS[int(np.argmin(np.abs(ratio / np.array(_RATIOS, np.float64) - 1)))]
            if abs(ratio / float(nearest) - 1) <= SPLIT_TOLERANCE:
                self._split(bars, place, f"possible split {nearest.numerator}:{nearest.denominator}")

    def _levels(self, bars: Bars, path: NDArray[np.int64]) -> None:
        """Steps to another level, but for jumps that revert at once and for splits, known or possible."""
        close_T, day_T = bars.close[path], self.hours.day(bars.ts_event[path])
        after_T = np.concatenate([bars.close, bars.close[-1:]])[path + 1]  # also of the bar that is not judged yet
        with np.errstate(divide="ignore", invalid="ignore"):
            step_T = np.log(close_T[1:] / close_T[:-1])
            back_T = np.log(after_T[1:] / close_T[:-1])
        over_T = (np.diff(day_T) > 0) | (self.length >= clock.DAY * MIXED_SHARE)
        far_T = np.isfinite(step_T) & (np.abs(step_T) > np.where(over_T, LEVEL_OVER_NIGHT, LEVEL_WITHIN))
        back = far_T & (path[1:] + 1 < len(bars)) & (np.abs(back_T) < np.abs(step_T) / 2)
        found, spike = [], -1 if self._spiked else -2
        for step in np.flatnonzero(far_T).tolist():  # a jump that is gone with the next bar is an outlier, and so is its way back
            if step - 1 == spike:
                continue
            if back[step]:
                spike = step
            else:
                found.append(step)
        self._spiked = spike == len(step_T) - 1
        steps = np.array(found, np.int64)
        if not steps.size:
            return
        known = self._known(bars, path)
        ratio_K = np.exp(step_T[steps])
        split_K = over_T[steps] & (np.abs(ratio_K[:, None] / np.array(_RATIOS, np.float64) - 1).min(axis=1) <= SPLIT_TOLERANCE)
        steps = np.array([step for step, split in zip(steps.tolist(), split_K, strict=True) if not split and step not in known], np.int64)
        if steps.size:
            self._level(bars, path[steps + 1], np.exp(step_T[steps]))

    def _level(self, bars: Bars, places: NDArray[np.int64], ratio_K: NDArray[np.float64]) -> None:
        policy = self.policies["level_jump"]
        texts = [f"prices jump to {ratio:.4g} times at {clock.text(bars.ts_event[t])}" for t, ratio in zip(places, ratio_K, strict=True)]
        if policy == "error":
            where, hint = self.where(bars, places), self.policies.hint("level_jump")
            raise DataError(f"{where}: {texts[0]} and stay there: another unit or instrument?{hint}")
        self._note("level_jump", bars, places, "allowed" if policy == "allow" else "reported")
        if policy == "report":
            self.levels += texts[: max(_LEVELS_TOLD - len(self.levels), 0)]

    def _known(self, bars: Bars, path: NDArray[np.int64]) -> dict[int, float]:
        """Ratios of known splits by the step between two closes in which they lie; their dates may be those of a weekend."""
        found: dict[int, float] = {}
        date_T = calendar.session_dates(bars.ts_event[path], self.hours.session) if self.known_splits else np.zeros(0, np.int64)
        for date, ratio in self.known_splits.items():
            step = int(np.searchsorted(date_T, date)) - 1
            if 0 <= step < len(path) - 1:
                found[step] = found.get(step, 1.0) * ratio
        return found

    def _split(self, bars: Bars, place: int, told: str) -> None:
        text = f"{told} at {clock.day_text(self.hours.date(bars.ts_event[place]))}"
        policy = self.policies["possible_split"]
        if policy == "error":
            where, hint = self.where(bars, np.array([place])), self.policies.hint("possible_split")
            raise DataError(f"{where}: {text}; give the splits in --actions{hint}")
        self._note("possible_split", bars, np.array([place]), "allowed" if policy == "allow" else "reported")
        if policy == "report":
            self.splits.append(text)

    def _volumes(self, bars: Bars, keep: NDArray[np.int64], path: NDArray[np.int64]) -> None:
        volume_T = bars.volume[keep]
        zero_T = volume_T == 0
        flat_T = bars.high[keep] == bars.low[keep]
        self.zero_volume += int(np.count_nonzero(zero_T))
        self.flat_zero_volume += int(np.count_nonzero(zero_T & flat_T))
        self.unknown_volume += int(np.count_nonzero(np.isnan(volume_T)))
        close_T = bars.close[path]
        same_T = np.concatenate([[False], close_T[1:] == close_T[:-1]])[path.size - keep.size :]
        self._stale_runs(bars, keep, flat_T & same_T & ~zero_T)

    def _stale_runs(self, bars: Bars, keep: NDArray[np.int64], stale_T: NDArray[np.bool_]) -> None:
        """Runs are counted where they reach the bound; one may have begun in the block before."""
        if not keep.size:
            return
        least = STALE_DAYS if self.length >= clock.DAY * MIXED_SHARE else STALE_BARS
        number = np.arange(1, keep.size + 1)
        since_T = number - np.maximum.accumulate(np.where(stale_T, 0, number))
        since_T += np.where(np.logical_and.accumulate(stale_T), self._stale, 0)
        self._stale = int(since_T[-1])
        reached = keep[since_T == least]
        if not reached.size:
            return
        if self.policies["stale_price"] == "error":
            stamp = clock.text(bars.ts_event[reached[0]])
            raise DataError(f"{self.where(bars, reached)}: {least} bars on end of one price although there is volume, until {stamp}")
        self._note("stale_price", bars, reached, "reported")


def _scale(change_T: NDArray[np.float64]) -> float:
    moved = np.abs(change_T[change_T != 0])
    return float(np.median(moved)) / _NORMAL if moved.size >= _LEAST_SAMPLE else 0.0


def _commonest(step_T: NDArray[np.int64]) -> int:
    steps, counts = np.unique(step_T, return_counts=True)
    return int(steps[np.argmax(counts)]) if steps.size else 0


def _equal_run(step_T: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """Places of the first run of equal steps that are several lengths long."""
    if len(step_T) < MIXED_RUN or not length:
        return np.zeros(0, np.int64)
    change = np.flatnonzero(np.diff(step_T)) + 1
    begin, end = np.concatenate([[0], change]), np.concatenate([change, [len(step_T)]])
    # days and longer have holidays and weekends at equal distances
    long = (end - begin >= MIXED_RUN) & (step_T[begin] >= 2 * length) & (step_T[begin] < clock.DAY)
    if not long.any():
        return np.zeros(0, np.int64)
    first = int(np.flatnonzero(long)[0])
    return np.arange(begin[first], end[first])


def _seconds(length: int) -> str:
    return f"{length / clock.SECOND:g} s"
