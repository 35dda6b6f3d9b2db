"""What the policies of a run ask for, bar by bar, on its own data or on others: the rows of a signal file.

A policy goes on seeing its features as it saw them in training: mean and scale are those of its own training windows, never fitted anew.
They are computed from the data of the run, which must be what they were (its content hash says so).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from bellmark.assembly import Assembly, assemble
from bellmark.backtester import policy_backtest
from bellmark.component import make, settings_of
from bellmark.errors import DataError, UsageError, did_you_mean, known_list
from bellmark.host import host
from bellmark.market_data import MarketData, load_market_data, policy_warnings
from bellmark.profile import Profile, load_profile
from bellmark.profile_layers import builtin_profiles
from bellmark.records import Row, decision_rows
from bellmark.results import Backtest, Window
from bellmark.run import Run
from bellmark.settings import SplitSettings
from bellmark.splits import PARTS

ALL = "all"
COLUMNS = ("ts", "symbol", "exposure", "target_lots", "order_lots", "action", "learner")
READERS = {".csv": "csv", ".parquet": "parquet"}


def signal_backtest(run: Run, data: str | Path = "test") -> Backtest:
    """The policies of a run, greedily, over all bars of `data` at which their features are known.

    data: a part of the run's own data (train, validation, test) or all of it; a CSV or Parquet file, read with the settings of the run's
    dataset; or a profile, a built-in name or a TOML file, whose [data] and [instrument] are taken. The market rules are the run's own.
    """
    assembly = assemble(run.profile, host())
    name = str(data)
    own = name in (*PARTS, ALL)
    other = None if own else _market_data(run.profile, name)
    windows = None if name in PARTS else _whole(other or assembly.data)
    runner, checkpoint = assembly.trained(run, name if name in PARTS else ALL, other, windows)
    command = f"bellmark signals {run.name} {name}"
    result = policy_backtest(other or assembly.data, runner, runner.run(), run.name, name, command, checkpoint.step)
    return replace(result, warnings=(*result.warnings, *policy_warnings(run.profile.market), *_order_warnings(assembly)))


def _order_warnings(assembly: Assembly) -> tuple[str, ...]:
    other = [name for name in assembly.action_space.order_types if name != "market"]
    if not other:
        return ()
    return (f"signals: the policy also gives {' and '.join(other)} orders; a file of exposures is backtested with market orders alone",)


def _whole(data: MarketData) -> list[Window]:
    """A window for each symbol over all bars at which every feature is known."""
    tape, windows = data.tape, []
    for s, (first, length) in enumerate(zip(data.features.start_S.tolist(), tape.length_S.tolist(), strict=True)):
        if first < length:
            windows.append(Window((s,), tape.ts_ST[s, first:length].copy(), first))
    if not windows:
        raise DataError("signals: the data hold no bar at which every feature is known")
    return windows


def _market_data(profile: Profile, name: str) -> MarketData:
    """Other data under the rules of a run's profile. Their parts are not used: all of their bars are one window."""
    if Path(name).suffix.lower() in READERS:
        changed: dict[str, Any] = _reader(profile, Path(name))
    else:
        given = _profile(name)
        changed = {"data": given.data, "instrument": given.instrument, "uses": profile.uses | {"data": given.uses["data"]}}
    return load_market_data(replace(profile, split=SplitSettings(train=0.4, validation=0.3, embargo_bars=0), **changed), host())


def _profile(name: str) -> Profile:
    known = [*PARTS, ALL, *builtin_profiles()]
    if name not in known and Path(name).suffix != ".toml":
        hint = did_you_mean(name, known) + known_list(known)
        raise UsageError(f"DATA: expected a part of the run's data, a .csv or .parquet file, or a profile, found '{name}'{hint}")
    return load_profile(name)


def _reader(profile: Profile, path: Path) -> dict[str, Any]:
    """The run's dataset on another file: its settings of the bars' columns, stamps and instrument."""
    dataset, use = profile.data, READERS[path.suffix.lower()]
    values = {info.name: getattr(dataset, info.name) for info in settings_of(type(dataset))}
    if "path" not in values:
        use = profile.uses["data"]
        raise UsageError(f"{path}: the run's dataset '{use}' reads no file, so it does not say how to read one; give a profile with [data]")
    cls: Any = type(dataset)
    if cls.name in READERS.values() and cls.name != use:
        cls = host().get("dataset", use)
        defaults = {info.name: info.default for info in settings_of(type(dataset))}
        shared = {info.name for info in settings_of(cls)}
        lost = [key for key in values if key not in shared and values[key] != defaults[key]]
        values = {key: value for key, value in values.items() if key in shared}
        if lost:
            raise UsageError(f"{path}: a {use} file has no setting {', '.join(lost)} of the run's dataset; give a profile with [data]")
    data = make(cls, values | {"path": str(path)}, "data")
    return {"data": data, "uses": profile.uses | {"data": cls.name if cls is not type(dataset) else profile.uses["data"]}}


def signal_rows(result: Backtest, learner: int | None = None) -> Iterator[Row]:
    """The signals of one learner (None: of all, one after the other), symbol by symbol in time order, with the COLUMNS.

    exposure: what the policy asked for at that close; target_lots and order_lots: what the account of the backtest was to hold and ordered
    for it (None where no order could arrive any more). A file of one learner is what the strategy `signals` reads.
    """
    kept = tuple(lane for lane in result.lanes if learner is None or lane.learner == learner)
    for row in decision_rows(replace(result, lanes=kept)):
        yield {
            "ts": row["ts"],
            "symbol": row["symbol"],
            "exposure": row["exposure"],
            "target_lots": row["target"],
            "order_lots": row["order"],
            "action": row["decision"],
            "learner": row["learner"],
        }


def chosen_learner(result: Backtest, learner: int | str | None) -> int | None:
    """The learner to write: the only one, the one that was named, or None for all of them.

    No learner is chosen here: the best of several by any measure would be one more trial.
    """
    if learner == ALL:
        return None
    if learner is None:
        if result.learners == 1:
            return 0
        raise UsageError(f"--learner: run '{result.name}' has {result.learners} learners; say which (0 to {result.learners - 1}) or all")
    text = str(learner)
    if not text.isdecimal() or int(text) >= result.learners:
        raise UsageError(f"--learner: expected 0 to {result.learners - 1} or all, found '{learner}'")
    return int(text)


def csv_lines(rows: Iterable[Row]) -> Iterator[str]:
    """Rows as lines of CSV with a header; what is not known is empty."""
    yield ",".join(COLUMNS)
    for row in rows:
        yield ",".join(_cell(row[name]) for name in COLUMNS)


def _cell(value: Any) -> str:
    text = "" if value is None else repr(value) if isinstance(value, float) else str(value)
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\r\n') else text
