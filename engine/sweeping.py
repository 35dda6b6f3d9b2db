"""A sweep: one rule strategy with every combination of some settings, on one part of the data, ranked by a metric.

The more combinations are looked at, the better the best looks by luck alone. So every combination is a trial (`bellmark.trials`), and
beside the best stands its deflated Sharpe ratio: the probability that its true ratio is above the best of as many tries by luck.

Combinations run side by side without a curve; each row equals, to rounding, the backtest of its settings. Where the metric to rank by needs
the curve, or every symbol has an account of its own, curves are made and summed instead: the same numbers, with more memory and time.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from bellmark import backtester, trials
from bellmark.assembly import load_market_data
from bellmark.component import Metric, Strategy, make, settings_of
from bellmark.errors import UsageError, did_you_mean, known_list
from bellmark.evaluation.curve import Undefined
from bellmark.evaluation.metrics import RUINED, MetricValue, evaluate, evaluate_summary, order_of, summarised
from bellmark.evaluation.selection import deflated_sharpe_ratio, expected_maximum_sharpe
from bellmark.evaluation.summary import Summary, summary_of
from bellmark.files import SCHEMA_VERSION
from bellmark.host import host
from bellmark.market import LAST_BAR
from bellmark.market_data import MarketData
from bellmark.profile import Profile
from bellmark.settings import MarketSettings
from bellmark.splits import PARTS
from bellmark.sweep_axes import MARKET, Axis, parse_sweeps

DEFAULT_SPLIT = "train"
DEFAULT_RANK = "sharpe_ratio"
CHOSEN_ON_TEST = "the settings are chosen on the test part, so it tests them no more: choose on train, then look at test once"
_LANES = 4096  # combinations that run side by side
_MEMORY = 128 * 2**20  # bytes of arrays that grow with bars
_BYTES_A_POINT = 128  # of a curve and its decisions
_REASONS_SHOWN = 5

Progress = Callable[[int, int], None]
_Member = tuple[int, Strategy, Profile]  # place among the combinations, the strategy with its settings, the profile with its
_Found = tuple[Summary, Sequence[MetricValue]]


@dataclass(frozen=True, slots=True)
class SweepRow:
    """One combination: its settings by key, the value of each metric (None exactly where `reasons` says why), and its summary."""

    settings: dict[str, Any]
    values: dict[str, float | None]
    reasons: dict[str, str]
    summary: Summary


@dataclass(frozen=True)
class Deflated:
    """The deflated Sharpe ratio of the best row; `value` is None exactly where `reason` says why.

    sharpe: of the best, a bar. variance: of the Sharpe ratios, a bar, over the combinations that have one. expected_maximum_sharpe: the
    Sharpe ratio, a bar, that the best of `trials` has by luck alone.
    """

    value: float | None
    reason: str | None
    trials: int
    sharpe: float | None = None
    variance: float | None = None
    expected_maximum_sharpe: float | None = None
    bars: int | None = None
    skewness: float | None = None
    kurtosis: float | None = None


@dataclass(frozen=True)
class Sweep:
    """The result: rows from the best to the worst by `rank`; without a value last, equal ones in the order of the combinations.

    refused: combinations that a component refused, with their number by reason (the first few reasons). tried: configurations tried on
    this window so far, these included. metrics: name, unit, convention and direction of each.
    """

    strategy: str
    profile: str
    split: str
    rank: str
    axes: tuple[Axis, ...]
    metrics: tuple[dict[str, Any], ...]
    rows: tuple[SweepRow, ...]
    refused: int
    refusals: dict[str, int]
    tried: int
    deflated: Deflated
    first_ns: int
    last_ns: int
    bars: int
    symbols: tuple[str, ...]
    start_equity: float
    currency: str
    session: str
    periods_per_year: float
    profile_hash: str
    data_hash: str
    command: str
    warnings: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()

    @property
    def best(self) -> SweepRow | None:
        """The best row; None where no row has a value to rank by."""
        first = self.rows[0]
        return first if first.values[self.rank] is not None else None

    def columns(self) -> dict[str, list[Any]]:
        """The rows as columns: rank, each setting, each metric (None where it is undefined), and the reasons in one text or None."""
        keys, names = [axis.key for axis in self.axes], [metric["name"] for metric in self.metrics]
        columns: dict[str, list[Any]] = {"rank": list(range(1, len(self.rows) + 1))}
        columns |= {key: [row.settings[key] for row in self.rows] for key in keys}
        columns |= {name: [row.values[name] for row in self.rows] for name in names}
        reasons = ["; ".join(f"{name}: {reason}" for name, reason in row.reasons.items()) or None for row in self.rows]
        return columns | {"reasons": reasons}

    def document(self) -> dict[str, Any]:
        """The whole result as one plain document without NaN."""
        span = {"start_ns": self.first_ns, "end_ns": self.last_ns, "bars": self.bars}
        return {
            "schema_version": SCHEMA_VERSION,
            "strategy": self.strategy,
            "profile": self.profile,
            "part": {"split": self.split, **span, "symbols": list(self.symbols)},
            "start_equity": self.start_equity,
            "currency": self.currency,
            "periods_per_year": self.periods_per_year,
            "session": self.session,
            "provenance": {"command": self.command, "profile_hash": self.profile_hash, "data_hash": self.data_hash},
            "sweeps": [{"key": axis.key, "values": list(axis.values)} for axis in self.axes],
            "rank": self.rank,
            "metrics": list(self.metrics),
            "combinations": len(self.rows) + self.refused,
            "refused": {"count": self.refused, "reasons": self.refusals},
            "tried": self.tried,
            "deflated_sharpe_ratio": asdict(self.deflated),
            "rows": [_row_document(place, row) for place, row in enumerate(self.rows, 1)],
            "warnings": list(self.warnings),
            "cautions": list(self.cautions),
        }


def _row_document(place: int, row: SweepRow) -> dict[str, Any]:
    summary = row.summary
    facts = ("end_equity", "ruined", "fills", "open_position")
    return {
        "rank": place,
        "settings": row.settings,
        "metrics": {name: {"value": value, "reason": row.reasons.get(name)} for name, value in row.values.items()},
        "costs": dict(summary.costs),
        "rejections": summary.refusals,
        **{name: getattr(summary, name) for name in facts},
    }


def run(
    strategy: str | Strategy,
    profile: Profile,
    sweeps: Sequence[str],
    rank: str = DEFAULT_RANK,
    split: str = DEFAULT_SPLIT,
    *,
    metrics: Sequence[Metric] | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Runs every combination of `sweeps` (texts `KEY=START:STOP:STEP` or `KEY=a,b,c`) and ranks them.

    strategy: an instance, whose other settings stay; or a name, with the settings of [baselines.NAME] where the profile has such a table,
    else its defaults. metrics: instances; every metric in the catalog that can be had, where None. Combinations that a component refuses
    are left out and counted. The rest are added to the trials in the profile's run folder. `progress(done, total)` follows it.
    """
    if split not in PARTS:
        raise UsageError(f"split: expected one of {', '.join(PARTS)}, found '{split}'{did_you_mean(split, PARTS)}")
    base, plugin = _base(strategy, profile)
    axes = parse_sweeps(sweeps, type(base), type(profile.sizing))
    chosen, ranked_by = _metrics(rank, metrics)
    search = _Search(profile, base, plugin, axes, split, chosen, ranked_by, progress)
    search.run()
    return search.result(sweeps)


def _base(strategy: str | Strategy, profile: Profile) -> tuple[Strategy, str]:
    """The strategy whose settings are swept, and the plugin that brought it."""
    if isinstance(strategy, Strategy):
        return strategy, host().plugin_of(type(strategy))
    entry = host().entry("strategy", strategy)
    named = profile.baselines.get(strategy)
    if isinstance(named, Strategy) and type(named) is entry.cls:
        return named, entry.plugin
    required = [info.name for info in settings_of(entry.cls) if info.required]
    if required:
        raise UsageError(f"strategy '{strategy}': setting '{required[0]}' has no default; give it in [baselines.{strategy}] of the profile")
    return make(entry.cls, {}, strategy), entry.plugin


def _metrics(rank: str, metrics: Sequence[Metric] | None) -> tuple[list[Metric], Metric]:
    """The metrics of the rows in the order of a table, and the one to rank by, which is among them."""
    if metrics is None:
        entries = {name: found[0] for name, found in host().catalog["metric"].items() if len(found) == 1}
        metrics = [make(entry.cls, {}, f"metric {name}") for name, entry in entries.items() if not _requires(entry.cls)]
    by_name = {metric.name: metric for metric in metrics}
    if rank not in by_name:
        by_name[rank.rpartition(":")[2]] = ranked_by = make(host().get("metric", rank), {}, f"metric {rank}")
    else:
        ranked_by = by_name[rank]
    if ranked_by.higher_is_better is None:
        able = [name for name, metric in by_name.items() if metric.higher_is_better is not None]
        raise UsageError(f"--rank {rank}: this metric does not say which way is better{known_list(able)}")
    return sorted(by_name.values(), key=order_of), ranked_by


def _requires(cls: type[Any]) -> bool:
    return any(info.required for info in settings_of(cls))


class _Search:
    """The combinations of the axes, run group by group: those of one group share the tape and the code."""

    def __init__(
        self,
        profile: Profile,
        base: Strategy,
        plugin: str,
        axes: tuple[Axis, ...],
        split: str,
        metrics: list[Metric],
        ranked_by: Metric,
        progress: Progress | None,
    ) -> None:
        self.profile, self.base, self.plugin, self.axes, self.split = profile, base, plugin, axes, split
        self.metrics, self.ranked_by, self.progress = metrics, ranked_by, progress
        self.combinations = list(itertools.product(*(axis.values for axis in axes)))
        self.rows: dict[int, SweepRow] = {}
        self.configurations: dict[int, str] = {}
        self.refusals: dict[str, int] = {}
        self.warnings: dict[str, None] = {}
        self.cautions: dict[str, None] = {}
        self.data: MarketData | None = None
        self._profiles: dict[tuple[Any, ...], Profile | str] = {}
        self._settings = _settings(base)

    def run(self) -> None:
        """Every combination, or why a component refuses it."""
        groups: dict[tuple[Any, ...], list[int]] = {}
        apart = [place for place, axis in enumerate(self.axes) if axis.structural]
        for index, combination in enumerate(self.combinations):
            groups.setdefault(tuple(combination[place] for place in apart), []).append(index)
        for members in groups.values():
            self._run_group(self._accepted(members))
        if not self.rows:
            reason = next(iter(self.refusals))
            raise UsageError(f"--sweep: each of the {len(self.combinations):,} combinations is refused, the first because: {reason}")

    @cached_property
    def with_curves(self) -> bool:
        """Whether curves are made: the metric to rank by needs one, or an account for each of several symbols has to be summed."""
        if not summarised(self.ranked_by):
            return True
        data = self.data = load_market_data(self.profile, host())
        sharing = any(axis.key == "market.account" for axis in self.axes)
        several = len(data.bars_of(self.split)[0]) > 1
        return several and (sharing or data.settings.account == "per_symbol")

    def _accepted(self, members: list[int]) -> list[_Member]:
        accepted = []
        for index in members:
            values = dict(zip(self.axes, self.combinations[index], strict=True))
            profile = self._profile(values)
            try:
                if isinstance(profile, str):
                    raise UsageError(profile)
                settings = self._settings | {axis.name: value for axis, value in values.items() if not axis.section}
                accepted.append((index, make(type(self.base), settings, self.base.name), profile))
            except UsageError as error:
                reason = str(error).removeprefix(f"{self.base.name}: ")
                self.refusals[reason] = self.refusals.get(reason, 0) + 1
        return accepted

    def _profile(self, values: Mapping[Axis, Any]) -> Profile | str:
        """The profile with the swept settings of its sections, or why they are refused."""
        changed = {axis: value for axis, value in values.items() if axis.section}
        key = tuple(changed.values())
        if key not in self._profiles:
            sections: dict[str, Any] = {}
            try:
                for name in {axis.section for axis in changed}:
                    part = getattr(self.profile, name)
                    own = {axis.name: value for axis, value in changed.items() if axis.section == name}
                    sections[name] = make(type(part), _settings(part) | own, name)
                self._profiles[key] = replace(self.profile, **sections) if sections else self.profile
            except UsageError as error:
                self._profiles[key] = str(error)
        return self._profiles[key]

    def _run_group(self, members: list[_Member]) -> None:
        if not members:
            return
        data = load_market_data(members[0][2], host())
        self.data = self.data or data
        self.warnings |= dict.fromkeys(data.warnings)
        start = 0
        size = self._side_by_side(data)
        while start < len(members):
            part = members[start : start + size]
            found = self._curves(data, part) if self.with_curves else self._summaries(data, part)
            for (index, strategy, profile), (summary, values) in zip(part, found, strict=True):
                self.cautions |= dict.fromkeys(backtester.cautions(profile.market))
                self.configurations[index] = trials.configuration(
                    profile.configuration_hash, strategy.name, {name: getattr(strategy, name) for name in self._settings}
                )
                self.rows[index] = self._row(index, summary, values)
            start += size
            if self.progress is not None:
                self.progress(len(self.rows) + sum(self.refusals.values()), len(self.combinations))

    def _side_by_side(self, data: MarketData) -> int:
        """Combinations that run at once: as many as the arrays that grow with bars leave room for."""
        each = self._bytes_each(data)
        return _LANES if each == 0 else max(1, min(_LANES, _MEMORY // each))

    def _bytes_each(self, data: MarketData) -> int:
        """Bytes of such arrays a combination: of its curve and ledger, or of its series."""
        if not self.with_curves:
            return 8 * len(self.base.series) * data.tape.close_ST.size
        accounts = 1 if data.settings.account == "shared" else len(data.tape.symbols)
        ledger = accounts * backtester.ledger_rows(data, self.split) * backtester.ROW_BYTES
        return _BYTES_A_POINT * data.tape.close_ST.size + ledger

    def _summaries(self, data: MarketData, part: Sequence[_Member]) -> Iterator[_Found]:
        metrics = [metric for metric in self.metrics if summarised(metric)]
        strategies = [strategy for _, strategy, _ in part]
        for summary in backtester.run_sweep(data, strategies, self.split, self.plugin, self._variants(part)):
            yield summary, evaluate_summary(summary, metrics)

    def _curves(self, data: MarketData, part: Sequence[_Member]) -> Iterator[_Found]:
        strategies = [strategy for _, strategy, _ in part]
        for result in backtester.run_strategies(data, strategies, self.split, self.plugin, variants=self._variants(part)):
            curve = result.portfolio()
            refusals = sum(int(np.count_nonzero(lane.rejections["reason"] != LAST_BAR)) for lane in result.lanes)
            open_lots = [lots for lane in result.lanes for lots in lane.open_positions.values()]
            held = sum(abs(lots) for lots in open_lots) if len(open_lots) > 1 else sum(open_lots)
            yield summary_of(curve, refusals=refusals, open_position=held), evaluate(curve, self.metrics)

    def _variants(self, part: Sequence[_Member]) -> list[MarketSettings] | None:
        swept = any(axis.section == MARKET for axis in self.axes)
        return [profile.market for _, _, profile in part] if swept else None

    def _row(self, index: int, summary: Summary, values: Sequence[MetricValue]) -> SweepRow:
        settings = {axis.key: value for axis, value in zip(self.axes, self.combinations[index], strict=True)}
        reasons = {found.name: found.reason for found in values if found.reason is not None}
        return SweepRow(settings, {found.name: found.value for found in values}, reasons, summary)

    def result(self, sweeps: Sequence[str]) -> Sweep:
        """The ranked rows, after the combinations were added to the trials."""
        data = self.data
        assert data is not None  # there are rows
        name = self.ranked_by.name
        rows = _ranked([self.rows[index] for index in sorted(self.rows)], name, bool(self.ranked_by.higher_is_better))
        first = min(row.summary.first_ns for row in rows)
        last = max(row.summary.last_ns for row in rows)
        folder, content = self.profile.run.folder, data.tape.content_hash
        found = [self.configurations[index] for index in sorted(self.configurations)]
        trials.append(folder, trials.sweep(content, self.split, first, last, self.profile.configuration_hash, found))
        tried = trials.count(trials.read(folder), content, first, last)
        shown = {value: None for value in rows[0].values}
        if self.split == "test":
            self.warnings[CHOSEN_ON_TEST] = None
        symbols = data.bars_of(self.split)[0]
        command = ["bellmark", "backtest", self.base.name, "--profile", self.profile.name, *self.profile.command_changes()]
        command += [*itertools.chain(*(("--sweep", text) for text in sweeps)), "--rank", name, "--split", self.split]
        return Sweep(
            strategy=self.base.name,
            profile=self.profile.name,
            split=self.split,
            rank=name,
            axes=self.axes,
            metrics=tuple(_described(metric) for metric in self.metrics if metric.name in shown),
            rows=tuple(rows),
            refused=sum(self.refusals.values()),
            refusals=dict(itertools.islice(self.refusals.items(), _REASONS_SHOWN)),
            tried=tried,
            deflated=_deflated(rows, name, tried),
            first_ns=first,
            last_ns=last,
            bars=max(row.summary.bars for row in rows),
            symbols=tuple(data.tape.symbols[s] for s in symbols),
            start_equity=self.profile.market.start_equity,
            currency=data.currency,
            session=data.session_text,
            periods_per_year=data.periods_per_year,
            profile_hash=self.profile.hash,
            data_hash=content,
            command=shlex.join(command),
            warnings=tuple(self.warnings),
            cautions=tuple(self.cautions),
        )


def _ranked(rows: list[SweepRow], name: str, higher_is_better: bool) -> list[SweepRow]:
    """The best first, those without a value last; equal ones keep their order."""

    def key(row: SweepRow) -> tuple[bool, float]:
        value = row.values[name]
        return (True, 0.0) if value is None else (False, -value if higher_is_better else value)

    return sorted(rows, key=key)


def _deflated(rows: Sequence[SweepRow], rank: str, tried: int) -> Deflated:
    best = rows[0]
    if best.values[rank] is None:
        return Deflated(None, f"no combination has a {rank}: {best.reasons.get(rank, 'it is undefined')}", tried)
    if best.summary.wiped_out:
        return Deflated(None, RUINED, tried)
    moments = best.summary.sharpe(), best.summary.skewness(), best.summary.kurtosis()
    for found in moments:
        if isinstance(found, Undefined):
            return Deflated(None, found.reason, tried)
    sharpe, skewness, kurtosis = (float(found) for found in moments)  # type: ignore[arg-type]
    known = [found for row in rows if not isinstance(found := row.summary.sharpe(), Undefined)]
    facts: dict[str, Any] = {"sharpe": sharpe, "bars": best.summary.bars, "skewness": skewness, "kurtosis": kurtosis}
    if len(known) < 2 and tried > 1:
        reason = f"one combination with a Sharpe ratio does not tell how those of the {tried:,} tried spread"
        return Deflated(None, reason, tried, **facts)
    variance = float(np.var(known, ddof=1)) if len(known) > 1 else 0.0
    facts |= {"variance": variance, "expected_maximum_sharpe": expected_maximum_sharpe(tried, variance)}
    value = deflated_sharpe_ratio(sharpe, best.summary.bars, tried, variance, skewness, kurtosis)
    if isinstance(value, Undefined):
        return Deflated(None, value.reason, tried, **facts)
    return Deflated(value, None, tried, **facts)


def _described(metric: Metric) -> dict[str, Any]:
    return {"name": metric.name, "unit": metric.unit, "convention": metric.convention, "higher_is_better": metric.higher_is_better}


def _settings(component: Any) -> dict[str, Any]:
    return {info.name: getattr(component, info.name) for info in settings_of(type(component))}
