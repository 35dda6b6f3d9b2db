"""Checks of bars, each with a policy: what is done about rows that break a rule, and where they are.

`screen` looks at rows (prices, ranges, volume, quotes) and at their order (unsorted, duplicates, two series in one file). The first
policy of a check in `CHECKS` is its default. An error names the rows; whatever a policy leaves out or changes is counted, with the first
rows. What can be seen only in the series (gaps, splits, outliers) is in `bellmark.datasets.watch`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bellmark import clock
from bellmark.bars import ASKS, BIDS, Bars
from bellmark.errors import DataError, UsageError, did_you_mean, known_list


class Check(NamedTuple):
    """What one check looks for and the policies it knows, the default first."""

    policies: tuple[str, ...]
    meaning: str


CHECKS: dict[str, Check] = {
    "truncated": Check(("error", "drop"), "a last line that is cut off"),
    "unsorted": Check(("error", "sort"), "rows that go back in time"),
    "duplicate_identical": Check(("keep_first", "error"), "rows of one stamp that are equal"),
    "duplicate_conflicting": Check(("error", "keep_first", "keep_last"), "rows of one stamp that disagree"),
    "two_series": Check(("error", "keep_first", "keep_last"), "a file in which every stamp occurs twice with other prices"),
    "missing_price": Check(("error", "drop"), "a price that is blank, NaN or infinite"),
    "nonpositive_price": Check(("error", "drop", "allow"), "a price at or below zero; allow makes it legal for the instrument"),
    "price_range": Check(("error", "drop"), "a high below the low, an open or close outside them"),
    "bad_volume": Check(("error", "drop", "null"), "a volume below zero or infinite; null = unknown"),
    "missing_volume": Check(("allow", "error"), "a volume that is not there: unknown, not zero"),
    "missing_quote": Check(("error", "drop", "fill"), "a bid or ask that is blank; fill = the last known one at the bar's close"),
    "bad_quote": Check(("error", "drop", "null"), "a quote at or below zero or outside its own low and high; null = taken as blank"),
    "crossed_quote": Check(("error", "drop", "null"), "an ask below the bid; null = both sides taken as blank"),
    "off_grid": Check(("error", "round", "keep"), "a price that is no multiple of the tick; keep = the tick counts for costs alone"),
    "mixed_lengths": Check(("error", "report"), "bars of several lengths in one series"),
    "unfinished_bar": Check(
        ("drop", "keep"), "a bar of ticks whose span is not over where all ticks end: what it lacks is not known; keep = as it is"
    ),
    "outside_session": Check(
        ("report", "drop", "error"),
        "bars that close outside the hours of the instrument, which the tape leaves out. Reported: files hold trading before and after "
        "hours; half of the bars or more, and bars of days on which the calendar is closed, are an error unless a policy is chosen: then "
        "zone, hours or dates are wrong",
    ),
    "level_jump": Check(
        ("report", "error", "allow"),
        "a step of prices by more than a half within a session, or to three times or a third over its end, that does not revert at once: "
        "another unit or instrument. Reported: there are such moves, so every run warns; allow = they are true prices",
    ),
    "missing_bars": Check(
        ("report", "fill", "error"),
        "bars missing within the session; fill = flat bars of zero volume. Reported: quiet markets have minutes without a trade",
    ),
    "zero_volume": Check(("report", "drop", "error"), "bars without volume. Reported: vendors write them where nothing trades"),
    "stale_price": Check(
        ("report", "error"), "runs of bars of one price although there is volume. Reported: thin markets trade at one price for long"
    ),
    "outlier": Check(("report", "drop", "error"), "a jump that reverts at once. Reported: markets have true ones, at openings and on news"),
    "possible_split": Check(
        ("report", "error", "allow"),
        "a jump between sessions to a simple ratio; allow = it is a true price. Reported: prices halve in a crash too, so every run warns",
    ),
}
_SHOWN = 3
_TWO_SERIES_SHARE, _TWO_SERIES_LEAST = 0.9, 4
Where = Callable[[Bars, NDArray[Any]], str]


@dataclass(frozen=True)
class Policies:
    """The policy of each check. `option` says in errors how another policy is asked for: {check} and {policy} are put in."""

    chosen: Mapping[str, str] = field(default_factory=dict)
    option: str = "--on {check}={policy}"

    def __post_init__(self) -> None:
        for name, policy in self.chosen.items():
            if name not in CHECKS:
                raise UsageError(f"no check named '{name}'{did_you_mean(name, CHECKS)}{known_list(CHECKS)}")
            if policy not in CHECKS[name].policies:
                known = ", ".join(CHECKS[name].policies)
                raise UsageError(f"check {name}: expected one of {known}, found '{policy}'{did_you_mean(policy, CHECKS[name].policies)}")

    @classmethod
    def parse(cls, texts: list[str] | tuple[str, ...]) -> Policies:
        """Policies from texts CHECK=POLICY; one check twice with two policies is refused."""
        chosen: dict[str, str] = {}
        for text in texts:
            name, sign, policy = (part.strip() for part in text.partition("="))
            name = name.replace("-", "_")
            if not sign:
                raise UsageError(f"--on: expected CHECK=POLICY, found '{text}'{known_list(CHECKS)}")
            if chosen.setdefault(name, policy) != policy:
                raise UsageError(f"--on: {name} is given twice: {chosen[name]} and {policy}")
        return cls(chosen)

    def __getitem__(self, check: str) -> str:
        return self.chosen.get(check, CHECKS[check].policies[0])

    def all(self) -> dict[str, str]:
        """Every check with its policy."""
        return {name: self[name] for name in CHECKS}

    def hint(self, check: str) -> str:
        """How to go on after an error, as the end of its line."""
        others = [policy for policy in CHECKS[check].policies if policy not in (self[check], "error", "report")]
        if not others or not self.option:
            return ""
        return "; " + " or ".join(self.option.format(check=check, policy=policy) for policy in others) + " goes on"


@dataclass
class Finding:
    """What one check found in one symbol: how many rows (or runs), what was done, and the first places as text."""

    check: str
    symbol: str
    action: str
    count: int = 0
    places: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """As plain values."""
        return {"check": self.check, "symbol": self.symbol, "action": self.action, "count": self.count, "first": list(self.places)}


class Findings:
    """Everything found, by symbol and in the order of the checks."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str], Finding] = {}

    def add(self, check: str, symbol: str, action: str, count: int, places: Sequence[str]) -> None:
        """Counts more of a finding; the first places are kept, by their rows, whatever was found first."""
        if count:
            found = self._found.setdefault((symbol, check, action), Finding(check, symbol, action))
            found.count += count
            found.places = sorted([*found.places, *places], key=lambda text: getattr(text, "row", 0))[:_SHOWN]

    def __iter__(self) -> Any:
        names = list(CHECKS)
        return iter(sorted(self._found.values(), key=lambda one: (one.symbol, names.index(one.check), one.action)))

    def count(self, check: str, symbol: str | None = None) -> int:
        """How many of a check, of a symbol or of all."""
        return sum(one.count for one in self if one.check == check and symbol in (None, one.symbol))


class Screened(NamedTuple):
    """The bars that are left, in time order, and their places among those given."""

    bars: Bars
    places: NDArray[np.int64]


def apply(bars: Bars, policies: Policies, findings: Findings | None = None) -> tuple[Bars, Findings]:
    """The bars after every check of rows and of their order; `Bars.duplicates` counts identical rows left out."""
    findings = Findings() if findings is None else findings
    found = screen(bars, policies, findings).bars
    refuse_two_series(f"{bars.source}: {bars.symbol}", bars.symbol, len(found), policies, findings)
    return found, findings


def refuse_two_series(source: str, symbol: str, rows: int, policies: Policies, findings: Findings) -> None:
    """Refuses a series of `rows` stamps of which nearly all had rows that disagree, though single ones may be left out."""
    left_out = findings.count("duplicate_conflicting", symbol)
    if policies["two_series"] == "error" and left_out >= max(_TWO_SERIES_LEAST, rows * _TWO_SERIES_SHARE):
        raise DataError(
            f"{source}: {left_out} rows share {rows} stamps with rows of other values: it holds two series of one symbol; take one of them "
            f"out{policies.hint('two_series')}"
        )


def screen(bars: Bars, policies: Policies, findings: Findings, where: Where = Bars.where) -> Screened:
    """Rows first, then their order. `where` begins an error with source and rows."""
    rows = checked_rows(bars, policies, findings, where)
    found = ordered(rows.bars, policies, findings, where)
    return Screened(found.bars, rows.places[found.places])


def checked_rows(bars: Bars, policies: Policies, findings: Findings, where: Where = Bars.where) -> Screened:
    """The rows that are right for themselves, in whatever order."""
    return _Rows(bars, policies, findings, where).checked()


def checked_quotes(bars: Bars, policies: Policies, findings: Findings, where: Where = Bars.where) -> Screened:
    """The rows whose quotes are right, of bars that are right otherwise."""
    rows = _Rows(bars, policies, findings, where)
    rows._bad_quotes()
    rows._missing_quotes()
    return Screened(rows.bars, rows.places)


class _Rows:
    """The checks of single rows, one after the other on what the ones before left."""

    def __init__(self, bars: Bars, policies: Policies, findings: Findings, where: Where) -> None:
        self.bars, self.policies, self.findings, self.where = bars, policies, findings, where
        self.places = np.arange(len(bars))

    def checked(self) -> Screened:
        if not self._plain():
            self._prices()
        self._volume()
        if self.bars.quotes:
            self._bad_quotes()
            self._missing_quotes()
        return Screened(self.bars, self.places)

    def _plain(self) -> bool:
        """Whether all prices are right, which nearly always holds and is quick to say. A NaN fails every comparison."""
        bars = self.bars
        inside_T = (bars.low > 0) & (bars.low <= bars.open) & (bars.low <= bars.close)
        inside_T &= (bars.high >= bars.open) & (bars.high >= bars.close) & (bars.high < np.inf)
        return bool(inside_T.all())

    def _prices(self) -> None:
        for name in ("open", "high", "low", "close"):
            self._act("missing_price", ~np.isfinite(getattr(self.bars, name)), _no_number(name))
        if self.policies["nonpositive_price"] == "allow":
            below_T = (self.bars.low <= 0) | (self.bars.open <= 0) | (self.bars.close <= 0) | (self.bars.high <= 0)
            self._note("nonpositive_price", below_T, "allowed")
        else:
            for name in ("open", "high", "low", "close"):
                told = f"{name} is {{}}; prices must be above 0 here"
                self._act("nonpositive_price", getattr(self.bars, name) <= 0, self._value(name, told))
        self._ranges("price_range", "", {name: name for name in ("open", "high", "low", "close")})

    def _ranges(self, check: str, side: str, names: dict[str, str]) -> None:
        high, low = names["high"], names["low"]
        self._act(check, getattr(self.bars, high) < getattr(self.bars, low), self._below(high, low))
        for part in ("open", "close"):
            name = names[part]
            value_T = getattr(self.bars, name)
            outside_T = (value_T > getattr(self.bars, high)) | (value_T < getattr(self.bars, low))
            self._act(check, outside_T, self._outside(name, low, high))

    def _volume(self) -> None:
        volume_T = self.bars.volume
        bad_T = (volume_T < 0) | np.isinf(volume_T)
        if bad_T.any():
            if self.policies["bad_volume"] == "null":
                self._note("bad_volume", bad_T, "null")
                self.bars = replace(self.bars, volume=np.where(bad_T, np.nan, volume_T))
            else:
                self._act("bad_volume", bad_T, self._value("volume", "volume is {}, expected 0 or more"))
        if self.policies["missing_volume"] == "error":
            self._act("missing_volume", np.isnan(self.bars.volume), lambda t: "the volume is missing")

    def _missing_quotes(self) -> None:
        names = tuple(self.bars.quotes)
        if self.policies["missing_quote"] == "fill":
            return  # over the whole series, where the last known quote may lie in an earlier chunk: see `filled_quotes`
        for name in names:
            self._act("missing_quote", ~np.isfinite(self.bars.quotes[name]), _no_number(name))

    def _bad_quotes(self) -> None:
        negative = self.policies["nonpositive_price"] == "allow"
        for name in self.bars.quotes:
            if not negative:
                self._act("bad_quote", self.bars.quotes[name] <= 0, self._value(name, f"{name} is {{}}; prices must be above 0 here"))
        for bid, ask in zip(reversed(BIDS), reversed(ASKS), strict=True):  # the close first
            if bid in self.bars.quotes and ask in self.bars.quotes:
                self._act("crossed_quote", self.bars.quotes[ask] < self.bars.quotes[bid], self._below(ask, bid),
                          ": at the close" if bid == "bid" else ": within the bar alone")  # fmt: skip
        for names in (BIDS, ASKS):
            if set(names) <= set(self.bars.quotes):
                self._ranges("bad_quote", "", dict(zip(("open", "high", "low", "close"), names, strict=True)))

    def _below(self, name: str, other: str) -> Callable[[int], str]:
        return lambda t: f"{name} {getattr(self.bars, name)[t]:g} is below {other} {getattr(self.bars, other)[t]:g}"

    def _outside(self, name: str, low: str, high: str) -> Callable[[int], str]:
        return lambda t: (
            f"{name} {getattr(self.bars, name)[t]:g} lies outside {low} {getattr(self.bars, low)[t]:g} to "
            f"{high} {getattr(self.bars, high)[t]:g}"
        )

    def _value(self, name: str, told: str) -> Callable[[int], str]:
        return lambda t: told.format(f"{getattr(self.bars, name)[t]:g}")

    def _note(self, check: str, bad_T: NDArray[np.bool_], action: str) -> None:
        places = np.flatnonzero(bad_T)
        if places.size:
            shown = [place_text(self.bars, place, self.where) for place in places[:_SHOWN]]
            self.findings.add(check, self.bars.symbol, action, places.size, shown)

    def _act(self, check: str, bad_T: NDArray[np.bool_], say: Callable[[int], str], more: str = "") -> None:
        """Refuses the rows, or leaves them out (of a bad quote perhaps the quotes alone) and counts them; `more`: said of what was done."""
        places = np.flatnonzero(bad_T)
        if not places.size:
            return
        if self.policies[check] == "error":
            t = int(places[0])
            stamp = _stamp(self.bars, t, self.where)
            raise DataError(f"{self.where(self.bars, places)}: {say(t)} at {stamp}{self.policies.hint(check)}")
        if check in ("bad_quote", "crossed_quote") and self.policies[check] == "null":
            self._note(check, bad_T, f"quotes taken as missing{more}")
            quotes: dict[str, Any] = {name: np.where(bad_T, np.nan, column) for name, column in self.bars.quotes.items()}
            self.bars = replace(self.bars, **quotes)
            return
        self._note(check, bad_T, f"left out{more}")
        keep = np.flatnonzero(~bad_T)
        self.bars, self.places = self.bars.take(keep), self.places[keep]


def _no_number(name: str) -> Callable[[int], str]:
    return lambda t: f"{name} is missing or no number"


def ordered(bars: Bars, policies: Policies, findings: Findings, where: Where = Bars.where) -> Screened:
    """The bars in time order, one a stamp.

    Identical rows of a stamp are kept once and counted. Of rows that disagree the first or the last in the order of the file is kept, if
    the policy says so. Rows out of order are refused, or sorted by stamp.
    """
    ts_T = bars.ts_event
    if bool(np.all(ts_T[1:] > ts_T[:-1])):
        return Screened(bars, np.arange(len(bars)))
    order = np.argsort(ts_T, kind="stable")
    earlier, later = order[:-1], order[1:]
    shared = ts_T[earlier] == ts_T[later]
    equal = shared & _same_rows(bars, earlier, later)
    drop_T = np.zeros(len(bars), np.bool_)
    if shared.any():
        drop_T[later[equal]] = True
        _identical(bars, later[equal], policies, findings, where)
        rest = order[~drop_T[order]]
        drop_T[_conflicting(bars, rest, policies, findings, where)] = True
    kept = np.flatnonzero(~drop_T)
    back = np.flatnonzero(ts_T[kept[1:]] <= ts_T[kept[:-1]])
    if back.size:
        _unsorted(bars, kept, back, policies, findings, where)
        kept = kept[np.argsort(ts_T[kept], kind="stable")]
    left = bars.take(kept)
    return Screened(replace(left, duplicates=bars.duplicates + int(np.count_nonzero(equal))), kept)


def _same_rows(bars: Bars, a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.bool_]:
    same = np.ones(len(a), np.bool_)
    for column in (*bars.prices.values(), bars.volume, *bars.extras.values()):
        same &= _same(column[a], column[b])
    return same


def _same(a: Any, b: Any) -> Any:
    return (a == b) | (np.isnan(a) & np.isnan(b))


def _identical(bars: Bars, places: NDArray[np.int64], policies: Policies, findings: Findings, where: Where) -> None:
    if not places.size:
        return
    places = np.sort(places)
    if policies["duplicate_identical"] == "error":
        stamp = clock.text(bars.ts_event[places[0]])
        raise DataError(f"{where(bars, places)}: the same row is there before, at {stamp}{policies.hint('duplicate_identical')}")
    shown = [place_text(bars, place, where) for place in places[:_SHOWN]]
    findings.add("duplicate_identical", bars.symbol, "kept once", places.size, shown)


def _conflicting(bars: Bars, order: NDArray[np.int64], policies: Policies, findings: Findings, where: Where) -> NDArray[np.int64]:
    """Places to leave out among rows (in stable time order) of which some share a stamp and disagree."""
    ts_T = bars.ts_event[order]
    same = ts_T[1:] == ts_T[:-1]
    if not same.any():
        return np.zeros(0, np.int64)
    begins = np.concatenate([[True], ~same])
    unique = int(np.count_nonzero(begins))
    groups = int(np.count_nonzero(np.diff(np.concatenate([[False], same, [False]]).astype(np.int8)) == 1))
    two = groups >= _TWO_SERIES_LEAST and groups >= unique * _TWO_SERIES_SHARE
    # where rows that disagree may be left out, the share of all of them decides, whatever part of a file this is: `refuse_two_series`
    two = two and not (policies["two_series"] == "error" != policies["duplicate_conflicting"])
    check = "two_series" if two else "duplicate_conflicting"
    policy = policies[check]
    if policy == "error":
        first = int(np.flatnonzero(same)[0])
        pair = np.sort(order[first : first + 2])
        _refuse_pair(bars, pair, (groups, unique) if two else None, policies, where)
    ends = np.concatenate([~same, [True]])
    drop = order[~begins] if policy == "keep_first" else order[~ends]
    shown = [place_text(bars, place, where) for place in np.sort(drop)[:_SHOWN]]
    findings.add(check, bars.symbol, f"left out ({policy})", drop.size, shown)
    return drop


def _refuse_pair(bars: Bars, pair: NDArray[np.int64], two: tuple[int, int] | None, policies: Policies, where: Where) -> None:
    a, b = pair
    columns = {**bars.prices, "volume": bars.volume, **bars.extras}
    name, column = next((name, column) for name, column in columns.items() if not _same(column[a], column[b]))
    found = f"{name} {float(column[a]):g} and {float(column[b]):g}"
    stamp = _stamp(bars, a, where)
    if two:
        raise DataError(
            f"{where(bars, pair)}: {two[0]} of {two[1]} stamps occur more than once with other values ({found} at {stamp}): the file "
            f"holds two series of one symbol; take one of them out{policies.hint('two_series')}"
        )
    hint = policies.hint("duplicate_conflicting")
    raise DataError(f"{where(bars, pair)}: two rows for {stamp} disagree: {found}; keep one of them{hint}")


def _unsorted(
    bars: Bars, kept: NDArray[np.int64], back: NDArray[np.int64], policies: Policies, findings: Findings, where: Where
) -> None:
    places = kept[back + 1]
    if policies["unsorted"] == "error":
        before, after = _stamp(bars, kept[back[0]], where), _stamp(bars, places[0], where)
        raise DataError(
            f"{where(bars, places)}: the rows are not in time order: {after} comes after {before}{policies.hint('unsorted')}"
        )
    findings.add("unsorted", bars.symbol, "sorted", places.size, [place_text(bars, place, where) for place in places[:_SHOWN]])


def filled_quotes(bars: Bars, last: dict[str, float], policies: Policies, findings: Findings, where: Where = Bars.where) -> Screened:
    """Missing quotes replaced by the last known close of their side (`last`, changed in place).

    Bars before the first quote are left out and counted.
    """
    known = ~np.isnan(np.stack(list(bars.quotes.values()))).any(axis=0)
    if known.all() and bars.quotes:
        for name in ("bid", "ask"):
            last[name] = float(bars.quotes[name][-1])
        return checked_quotes(bars, policies, findings, where)
    changed: dict[str, Any] = {}
    filled_T = np.zeros(len(bars), np.bool_)
    for names, close in ((BIDS, "bid"), (ASKS, "ask")):
        mine = [name for name in names if name in bars.quotes]
        side_T = np.isnan(np.stack([bars.quotes[name] for name in mine])).any(axis=0)
        source = np.where(side_T, -1, np.arange(len(bars)))
        source = np.maximum.accumulate(source)
        before = np.where(source < 0, last.get(close, np.nan), bars.quotes[close][np.maximum(source, 0)])
        for name in mine:
            changed[name] = np.where(side_T, before, bars.quotes[name])
        filled_T |= side_T & ~np.isnan(before)
        if len(bars) and not np.isnan(before[-1]):
            last[close] = float(before[-1])
    looked = _Rows(replace(bars, **changed), policies, findings, where)
    looked._note("missing_quote", filled_T, "filled with the last known")
    none_T = np.asarray(np.isnan(np.stack(list(looked.bars.quotes.values()))).any(axis=0))
    looked._note("missing_quote", none_T, "left out: before the first quote")
    keep = np.flatnonzero(~none_T)
    looked.bars, looked.places = looked.bars.take(keep), looked.places[keep]
    looked._bad_quotes()
    none_T = np.asarray(np.isnan(np.stack(list(looked.bars.quotes.values()))).any(axis=0))
    looked._note("missing_quote", none_T, "left out: what is known of one side does not fit the other")
    keep = np.flatnonzero(~none_T)
    looked.bars, looked.places = looked.bars.take(keep), looked.places[keep]
    return Screened(looked.bars, looked.places)


def _stamp(bars: Bars, place: Any, where: Where) -> str:
    """The stamp of a row as its file has it, where that is known; else its close."""
    written = getattr(where, "stamp", None)
    return str(written(bars, int(place))) if written else clock.text(bars.ts_event[place])


class PlaceText(str):
    """One row and its moment as text; row: what orders it among others."""

    row: int = 0


def place_text(bars: Bars, place: Any, where: Where = Bars.where) -> PlaceText:
    """One row and its moment, for a list."""
    place = int(place)
    text = where(bars, np.array([place])).removesuffix(" (the header not counted)")
    made = PlaceText(f"{text} at {clock.text(bars.ts_event[place])}")
    made.row = place if bars.row_T is None else int(bars.row_T[place])
    return made
