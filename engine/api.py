"""The public typed API: train, backtest, evaluate, report; sweeps, proofs, signals and ledgers. The command line is a thin layer over it.

    import bellmark
    run = bellmark.train("demo", overrides={"learners.count": 2}, seed=7)
    result = bellmark.backtest(run)
    print(bellmark.evaluate(result))

Tables are polars frames. polars, and all that a run needs, is imported inside the functions.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bellmark import trials
from bellmark.errors import RunError, UnknownNameError, UsageError, did_you_mean, known_list
from bellmark.profile import Profile, load_profile
from bellmark.run import Run, find_run, latest_run, manifest_of, run_name

if TYPE_CHECKING:
    import polars

    from bellmark.assembly import Assembly
    from bellmark.component import Metric, Strategy
    from bellmark.datasets.importing import ImportReport
    from bellmark.results import Backtest
    from bellmark.sweeping import Sweep

Progress = Callable[..., None]
SPLITS = ("train", "validation", "test")


@dataclass(frozen=True)
class TrainedRun(Run):
    """A run with its tables as polars frames."""

    def metrics(self) -> polars.DataFrame:
        """The statistics of training: a row an epoch and learner."""
        import polars

        return polars.DataFrame(self.metric_rows(), infer_schema_length=None)

    def timing(self) -> polars.DataFrame:
        """The wall-clock figures of training."""
        import polars

        return polars.DataFrame(self.timing_rows(), infer_schema_length=None)


def resolve_profile(
    profile: str | Path | Profile,
    *,
    overrides: Mapping[str, Any] | None = None,
    sets: Sequence[str] = (),
    seed: int | None = None,
    runs: str | Path | None = None,
    data: str | Path | None = None,
) -> Profile:
    """A profile by built-in name or file, with changes.

    `overrides` maps dotted keys to values, `sets` are texts KEY=VALUE as on the command line; `seed` and `runs` stand for [learners] seed
    and [run] folder. `data` is an imported dataset, by name or folder, in the place of the profile's own. A resolved Profile passes through
    and takes no changes.
    """
    options = {key: (value, "argument") for key, value in (overrides or {}).items()}
    if data is not None:
        from bellmark.datasets.stored import find_dataset

        # first of all, so that overrides of [data] lie over it
        options = {"data.use": ("imported", "--data"), "data.path": (find_dataset(str(data)).as_posix(), "--data"), **options}
    if seed is not None:
        options["learners.seed"] = (seed, "--seed")
    if runs is not None:
        options["run.folder"] = (str(runs), "--runs")
    if isinstance(profile, Profile):
        if options or sets:
            raise UsageError(f"profile '{profile.name}': it is resolved already; give the changes where it is loaded")
        return profile
    return load_profile(profile, sets=sets, options=options)


def train(
    profile: str | Path | Profile,
    *,
    overrides: Mapping[str, Any] | None = None,
    sets: Sequence[str] = (),
    seed: int | None = None,
    name: str | None = None,
    runs: str | Path | None = None,
    data: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> TrainedRun:
    """Trains the learners of a profile and returns their run. `data` is an imported dataset in the place of the profile's own.

    Without a name the run is `PROFILE-1`, `PROFILE-2`, ...; an existing run is never overwritten. `resume` goes on with the run of that
    name (or the last one of the profile) from its newest checkpoint, to the same bits as without the stop; its profile, data and plugins
    must be what they were. `progress` is called as `progress(done, total, loss)` with updates done. Interrupted, it leaves a checkpoint.
    """
    from bellmark import backend
    from bellmark.assembly import assemble
    from bellmark.host import host

    resolved = resolve_profile(profile, overrides=overrides, sets=sets, seed=seed, runs=runs, data=data)
    folder = Path(resolved.run.folder)
    former = _run_to_resume(folder, name, resolved) if resume else None
    _refuse_taken_name(folder, name, resume)
    assembly = assemble(resolved, host())
    manifest = manifest_of(resolved, host(), data_hash=assembly.tape.content_hash, build=backend.build_id())
    run = former or Run.create(folder, name, resolved)
    try:
        _train(run, assembly, manifest, resume, progress)
    except Exception:
        if former is None and not run.has_checkpoint and not run.metric_rows():
            shutil.rmtree(run.path, ignore_errors=True)  # it failed before its first update; its name is free again
        raise
    return TrainedRun(run.path)


def _train(run: Run, assembly: Assembly, manifest: Mapping[str, Any], resume: bool, progress: Progress | None) -> None:
    resolved = assembly.profile
    with run.lock():
        if run.has_checkpoint and not run.manifest:
            raise RunError(f"{run.path / 'manifest.json'}: it is gone; without it nothing says whether data and plugins are what they were")
        if run.manifest:
            _refuse_other_inputs(run, manifest)
        else:
            run.write_manifest(manifest)
        going_on = resume and run.has_checkpoint
        if not going_on:
            run.truncate_metrics(0)  # rows of a run that was killed before its first checkpoint
        window = assembly.data.splits["validation"]
        span = (window.name, window.first, window.last)
        _note_trial("train", run.path.parent, resolved, resolved.configuration_hash, assembly.tape.content_hash, span)
        assembly.train(run, resume=going_on, progress=progress)


def backtest(
    subject: Run | Strategy | str | Path,
    *,
    profile: str | Path | Profile | None = None,
    split: str = "test",
    overrides: Mapping[str, Any] | None = None,
    sets: Sequence[str] = (),
    runs: str | Path | None = None,
    keep_values: bool = False,
) -> Backtest:
    """Runs a trained policy or a rule strategy over one part of the data, `test` unless told otherwise.

    `subject` is a run (or its name or folder), a strategy instance, or the name of a strategy; a strategy needs a profile, which says the
    data and the market rules. A name that is both is taken as the run. A strategy given by name has the settings of [baselines.NAME] where
    the profile has such a table, else its defaults. `keep_values` keeps the value of each action of a policy at each bar, for `decisions`.
    """
    from bellmark.assembly import backtest_run, backtest_strategy

    _check_split(split)
    run = _run_of(subject, runs or "runs")
    if run is not None:
        _refuse_profile_of_run(run, profile, overrides, sets)
        result = backtest_run(run, split, keep_values)
        _note_look("backtest", run.path.parent, run.profile, run.profile.configuration_hash, result)
        return result
    resolved = _profile_for(subject, profile, overrides, sets, runs)
    result = backtest_strategy(_strategy_of(subject, resolved), resolved, split=split)
    configuration = trials.configuration(resolved.configuration_hash, result.name, result.settings)
    _note_look("backtest", Path(resolved.run.folder), None, configuration, result)
    return result


def sweep(
    strategy: Strategy | str,
    sweeps: Sequence[str],
    *,
    profile: str | Path | Profile,
    rank: str = "sharpe_ratio",
    split: str = "train",
    overrides: Mapping[str, Any] | None = None,
    sets: Sequence[str] = (),
    runs: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Sweep:
    """Runs a rule strategy with every combination of `sweeps` and ranks them by a metric; a missing value ranks last.

    `sweeps` are texts `KEY=START:STOP:STEP` or `KEY=a,b,c`; KEY is a setting of the strategy, market.NAME or sizing.NAME. The settings are
    chosen on `split`, so it is train unless told otherwise. Every combination is added to the list of trials; the deflated Sharpe ratio of
    the best counts all that were ever tried on these bars. `polars.DataFrame(result.columns())` is the table.

    Example: `bellmark.sweep("sma_cross", ["fast=5:50:5", "slow=20:200:20"], profile="demo").best`.
    """
    from bellmark import sweeping

    resolved = resolve_profile(profile, overrides=overrides, sets=sets, runs=runs)
    return sweeping.run(strategy, resolved, sweeps, rank, split, progress=progress)


def prove(
    subject: Run | Strategy | str | Path,
    *,
    profile: str | Path | Profile | None = None,
    overrides: Mapping[str, Any] | None = None,
    sets: Sequence[str] = (),
    runs: str | Path | None = None,
) -> list[str]:
    """Proves that nothing that a run or a strategy goes by depends on later bars; what was proven, and what was not, in lines.

    Everything after some bars is replaced by noise, and what was computed up to them must stay the same bits: market features, the
    decisions of a strategy; of a run, under random legal actions, portfolio features, masks and rewards; orders and accounts of both.
    PluginError names what looked ahead and the first bar at which it shows. `subject` and `profile` are as in `backtest`.
    """
    from bellmark.host import host
    from bellmark.market_data import load_market_data
    from bellmark.testing_proof import prove as proven

    run = _run_of(subject, runs or "runs")
    if run is not None:
        _refuse_profile_of_run(run, profile, overrides, sets)
        return proven(load_market_data(run.profile, host()), None, list(run.profile.features.items()))
    resolved = _profile_for(subject, profile, overrides, sets, runs)
    strategy, features = _strategy_of(subject, resolved), list(resolved.features.items())
    return proven(load_market_data(resolved, host()), strategy, features, plugin=host().plugin_of(type(strategy)))


def signals(
    run: Run | str | Path, data: str | Path = "test", *, learner: int | str | None = None, runs: str | Path | None = None
) -> polars.DataFrame:
    """What the policies of a run ask for on data: ts (UTC close), symbol, exposure, target_lots, order_lots, action, learner.

    `data` is a part of the run's own data (train, validation, test, all), a CSV or Parquet file that is read with the settings of the run's
    dataset, or a profile whose [data] is taken. `learner` is a number, or "all"; of several learners one must be named. The frame written
    as CSV by `bellmark signals` is what the strategy `signals` backtests.
    """
    import polars

    rows = signal_rows(signal_backtest(run, data, runs=runs), learner)
    schema = {"ts": polars.String, "symbol": polars.String, "exposure": polars.Float64, "target_lots": polars.Int64}
    schema |= {"order_lots": polars.Int64, "action": polars.String, "learner": polars.Int64}
    frame = polars.DataFrame(list(rows), schema=schema)
    stamp = polars.col("ts").str.strip_chars_end("Z").str.to_datetime(time_unit="ns").dt.replace_time_zone("UTC")
    return frame.with_columns(stamp)


def signal_backtest(run: Run | str | Path, data: str | Path = "test", *, runs: str | Path | None = None) -> Backtest:
    """The backtest that the signals of a run on data come from; see `signals`."""
    from bellmark import policy_signals

    return policy_signals.signal_backtest(_found_run(run, runs), data)


def signal_rows(result: Backtest, learner: int | str | None = None) -> list[dict[str, Any]]:
    """The signals of a learner (a number, "all", or None for the only one) as plain rows."""
    from bellmark import policy_signals

    return list(policy_signals.signal_rows(result, policy_signals.chosen_learner(result, learner)))


def baselines(run: Run, split: str = "test", policy: Backtest | None = None) -> list[Backtest]:
    """The backtests of the rule strategies in [baselines] of the run's profile, on the same data and market, named by their labels.

    With `policy`, strategies that imitate turnover (`random`) change their exposure as much as its median learner.
    """
    from dataclasses import replace

    from bellmark.assembly import backtest_strategy

    turnover = None if policy is None else policy.exposure_turnover()
    results = []
    for label, strategy in run.profile.baselines.items():
        chosen = strategy if turnover is None else strategy.matched(turnover)
        results.append(replace(backtest_strategy(chosen, run.profile, split=split), name=label))
    return results


def evaluate(
    backtests: Backtest | Iterable[Backtest], metrics: Sequence[Metric] | None = None, *, run: Run | None = None
) -> polars.DataFrame:
    """The metrics of backtests: a row an account (learner or strategy) and metric; `value` is null exactly where `reason` says why.

    With `run` the learners are named with their seeds.
    """
    import polars

    rows = []
    described = describe_backtests(backtests, metrics, run)
    units = {metric["name"]: metric["unit"] for metric in described["metrics"]}
    for account in described["accounts"]:
        for name, found in account["metrics"].items():
            rows.append(
                {"account": account["label"], "kind": account["kind"], "learner": account["learner"], "seed": account["seed"]}
                | {"metric": name, "value": found["value"], "reason": found["reason"], "unit": units[name]}
            )
    schema = {"account": polars.String, "kind": polars.String, "learner": polars.Int64, "seed": polars.Int64}
    schema |= {"metric": polars.String, "value": polars.Float64, "reason": polars.String, "unit": polars.String}
    return polars.DataFrame(rows, schema=schema)


def describe_backtests(
    backtests: Backtest | Iterable[Backtest], metrics: Sequence[Metric] | None = None, run: Run | None = None
) -> dict[str, Any]:
    """The content of a report on backtests as one plain document; report.json holds the same."""
    from bellmark.reporting.content import collect

    return collect(run, [backtests] if hasattr(backtests, "lanes") else list(backtests), metrics)  # type: ignore[arg-type]


def report(
    run: Run | str | Path,
    *,
    split: str = "test",
    folder: str | Path | None = None,
    runs: str | Path | None = None,
    backtests: Sequence[Backtest] | None = None,
) -> dict[str, Path]:
    """Backtests a run and its baselines (unless given) and writes the report into its folder; returns the files by report name."""
    from bellmark.reporting import build

    found = _found_run(run, runs)
    if backtests is None:
        policy = backtest(found, split=split)
        backtests = [policy, *baselines(found, split, policy)]
    for result in backtests:
        if result.kind == "policy":
            _note_look("report", found.path.parent, found.profile, found.profile.configuration_hash, result)
    reports = tuple(found.profile.reports.values()) or None
    return build(found, backtests, Path(folder) if folder is not None else found.path, reports)


def export(
    run: Run | str | Path, *, folder: str | Path | None = None, form: str = "parquet", runs: str | Path | None = None
) -> dict[str, Path]:
    """Writes the tables of a run as Parquet or CSV, by default into its folder `export`; returns the files by name.

    metrics and timing; equity, fills, trades, rejections and decisions of each part that it was backtested on, made again to the same bits.
    """
    from bellmark.assembly import assemble
    from bellmark.host import host
    from bellmark.reporting import export as tables

    found = _found_run(run, runs)
    parts = tables.backtested_parts(found)
    assembly = assemble(found.profile, host()) if parts else None
    backtests = {part: assembly.backtest(found, part, keep_values=True) for part in parts} if assembly is not None else {}
    return tables.export(found, backtests, folder, form)


def load_run(run: str | Path, *, runs: str | Path = "runs") -> TrainedRun:
    """A run by its name under `runs`, or by the path of its folder."""
    return TrainedRun(find_run(str(run), runs).path)


def load_dataset(name: str = "sample", **settings: Any) -> polars.DataFrame:
    """The checked bars of a dataset: symbol, ts_event (UTC, close of the bar), open, high, low, close, volume (null = unknown).

    Example: `load_dataset("csv", path="bars.csv", ...)`; `bellmark plugins show csv` lists the settings.
    """
    import polars

    frames = []
    for bars, _ in read_dataset(name, settings):
        columns = {"symbol": [bars.symbol] * len(bars.close), "ts_event": bars.ts_event}
        columns |= {key: getattr(bars, key) for key in ("open", "high", "low", "close", "volume")}
        frame = polars.DataFrame(columns)
        stamp = polars.from_epoch("ts_event", time_unit="ns").dt.replace_time_zone("UTC")
        frames.append(frame.with_columns(stamp, polars.col("volume").fill_nan(None)))
    return polars.concat(frames)


def read_dataset(name: str, settings: Mapping[str, Any]) -> list[Any]:
    """The (Bars, Instrument) of each symbol of a dataset, as arrays."""
    from bellmark.component import make
    from bellmark.host import host
    from bellmark.market_data import read_bars

    return list(read_bars(make(host().get("dataset", name), dict(settings), name)))


def import_dataset(
    files: str | Path | Sequence[str | Path],
    *,
    format: str = "auto",
    name: str | None = None,
    data_dir: str | Path = "data",
    on: Mapping[str, str] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    **settings: Any,
) -> ImportReport:
    """Imports files of a known layout as a checked dataset under `data_dir` and returns where it lies and what was found.

    `on` maps a check to a policy ({"duplicate_conflicting": "keep_last"}); DataError names file and row of what no policy allows. Further
    settings are those of the command line: stamp, zone, symbol (a name or several), bar, resample, instrument, close_time, price, quotes,
    adjustment, funding, actions, factors, replace; of the instrument tick_size, contract_multiplier, lot_size, currency, session; of the
    `csv` and `parquet` layouts their columns and number marks. The same files and settings give the same bytes.

    Example: `import_dataset("aapl.csv", format="yfinance", symbol="AAPL", zone="America/New_York", instrument="us_equity")`.
    """
    from bellmark.datasets import importing, request

    paths = [files] if isinstance(files, str | Path) else list(files)
    asked, options = request.split({"format": format, "name": name or "", "data_dir": data_dir, "on": on or {}, **settings})
    return importing.import_files(paths, asked, options, progress)


def make_dataset(kind: str, name: str, *, data_dir: str | Path = "data", replace: bool = False, **settings: Any) -> Path:
    """Writes what a dataset component reads or makes (`es_regimes`, `sample`) as a dataset folder; `settings` are the component's."""
    from importlib.metadata import version

    from bellmark.datasets import library

    told = {"format": f"made:{kind}", "options": dict(settings), "versions": {"bellmark": version("bellmark")}}
    return library.write(read_dataset(kind, settings), data_dir, name, told, replace)


def list_datasets(data_dir: str | Path = "data") -> list[dict[str, Any]]:
    """The imported datasets of a folder: format, symbols, bars, span; `error` says why one cannot be read."""
    from bellmark.datasets import library

    return library.listing(data_dir)


def dataset_manifest(dataset: str | Path, *, data_dir: str | Path = "data") -> dict[str, Any]:
    """The manifest of an imported dataset, by name or folder: sources with hashes, options, spans, gaps, what was found and done."""
    from bellmark.datasets import stored

    return stored.read_manifest(stored.find_dataset(str(dataset), data_dir))


def check_dataset(dataset: str | Path, *, data_dir: str | Path = "data") -> list[str]:
    """What is wrong with an imported dataset, a line each: every hash and every bar is looked at again."""
    from bellmark.datasets import library, stored

    return library.check(stored.find_dataset(str(dataset), data_dir))


def export_dataset(
    dataset: str | Path, out: str | Path, *, symbols: Sequence[str] = (), data_dir: str | Path = "data"
) -> Path:
    """Writes an imported dataset as one CSV or Parquet file; stamps are closes in UTC."""
    from bellmark.datasets import library, stored

    return library.export(stored.find_dataset(str(dataset), data_dir), Path(out), symbols)


def equity(result: Backtest) -> polars.DataFrame:
    """Equity, position and exposure of each account of a backtest: a row an account and bar.

    An account of several symbols has `position_SYMBOL` columns and gross_exposure.
    """
    from bellmark.reporting import frames

    return frames.equity(result)


def fills(result: Backtest) -> polars.DataFrame:
    """The fills of a backtest: a row a fill with its symbol, bar, cause, lots, prices and costs in currency, and whether it rested."""
    from bellmark.reporting import frames

    return frames.fills(result)


def rejections(result: Backtest) -> polars.DataFrame:
    """The refused orders of a backtest with their symbols, lots and reasons."""
    from bellmark.reporting import frames

    return frames.rejections(result)


def trades(result: Backtest) -> polars.DataFrame:
    """The round trips of a backtest from flat to flat, in order of entry: lots, mean prices, profit after costs, and what ended them.

    Open ones have no exit.
    """
    from bellmark.reporting import frames

    return frames.trades(result)


def decisions(result: Backtest) -> polars.DataFrame:
    """Every decision of a backtest: what was asked for at which close, the order, what filled and what was refused.

    With `backtest(..., keep_values=True)` the value and legality of each action of a policy stand beside it.
    """
    from bellmark.reporting import frames

    return frames.decisions(result)


def _note_trial(kind: str, folder: Path, profile: Profile | None, configuration: str, data: str, window: tuple[str, int, int]) -> None:
    """Adds to the list of everything tried; `profile` gives the seeds."""
    seeds = () if profile is None else tuple(profile.learners.seed + learner for learner in range(profile.learners.count))
    trials.append(folder, trials.Trial(kind, data, *window, configuration, seeds))


def _note_look(kind: str, folder: Path, profile: Profile | None, configuration: str, result: Backtest) -> None:
    first = min(int(lane.stamp_T[0]) for lane in result.lanes)
    last = max(int(lane.stamp_T[-1]) for lane in result.lanes)
    _note_trial(kind, folder, profile, configuration, result.data_hash, (result.split, first, last))


def _check_split(split: str) -> None:
    if split not in SPLITS:
        raise UsageError(f"split: expected one of {', '.join(SPLITS)}, found '{split}'{did_you_mean(split, SPLITS)}")


def _found_run(run: Run | str | Path, runs: str | Path | None) -> Run:
    return run if isinstance(run, Run) else find_run(str(run), runs or "runs")


def _run_of(subject: Any, runs: str | Path) -> Run | None:
    """The run that a subject names; None where it is a strategy or the name of one."""
    if isinstance(subject, Run):
        return subject
    if not isinstance(subject, str | Path):
        return None
    try:
        return find_run(str(subject), runs)
    except RunError:
        from bellmark.host import host
        from bellmark.run import run_names

        strategies = host().catalog["strategy"]
        if str(subject).rpartition(":")[2] in strategies:
            return None
        known = [*run_names(runs), *strategies]
        if Path(subject).exists() or len(Path(subject).parts) > 1:
            raise
        hint = did_you_mean(str(subject), known) + known_list(known)
        raise UnknownNameError(f"no run (under {runs}) and no strategy named '{subject}'{hint}") from None


def _refuse_profile_of_run(run: Run, profile: Any, overrides: Any, sets: Any) -> None:
    if profile is not None or overrides or sets:
        raise UsageError(f"run '{run.name}': a run is backtested with its own profile; a profile goes with a strategy")


def _profile_for(subject: Any, profile: Any, overrides: Any, sets: Sequence[str], runs: Any) -> Profile:
    if profile is None:
        name = subject if isinstance(subject, str) else type(subject).name
        raise UsageError(f"strategy '{name}': expected a profile that says the data and the market (--profile), found none")
    return resolve_profile(profile, overrides=overrides, sets=sets, runs=runs)


def _strategy_of(subject: Any, profile: Profile) -> Strategy:
    """An instance as it is; a name with its settings in [baselines], else with its defaults."""
    from bellmark.component import make, settings_of
    from bellmark.host import host

    if not isinstance(subject, str | Path):
        given: Strategy = subject
        return given
    name = str(subject)
    cls: Any = host().get("strategy", name)
    named: Any = profile.baselines.get(name)
    if type(named) is cls:
        found: Strategy = named
        return found
    required = [info.name for info in settings_of(cls) if info.required]
    if required:
        raise UsageError(f"strategy '{name}': setting '{required[0]}' has no default; give it by --set baselines.{name}.{required[0]}=...")
    strategy: Strategy = make(cls, {}, name)
    return strategy


def _run_to_resume(folder: Path, name: str | None, profile: Profile) -> Run:
    run = Run.open(folder / run_name(name)) if name is not None else latest_run(folder, profile.name)
    differences = profile.differences(run.profile)
    if differences:
        raise RunError(
            f"{run.path}: it cannot be resumed with another profile: {'; '.join(differences[:3])}"
            " (here: asked for now, there: in the run); repeat the settings and the seed that it began with"
        )
    return run


def _refuse_taken_name(folder: Path, name: str | None, resume: bool) -> None:
    """Says so before the data are read; `Run.create` still decides."""
    if name is not None and not resume and (folder / run_name(name)).exists():
        path = folder / run_name(name)
        raise RunError(f"{path}: a run of this name exists: take another --name, or go on with it by --resume")


def _refuse_other_inputs(run: Run, manifest: Mapping[str, Any]) -> None:
    for key, what in (("data_hash", "data"), ("plugins", "plugins")):
        if run.manifest.get(key) != manifest[key]:
            raise RunError(f"{run.path}: it cannot be resumed: its {what} were {run.manifest.get(key)}, they are {manifest[key]}")
