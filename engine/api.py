"""The public typed API: `train, backtest, evaluate, report, load_run, load_dataset`. The command line is a thin layer over it.

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

from bellmark.errors import RunError, UnknownNameError, UsageError, did_you_mean, known_list
from bellmark.files import json_line, sha256_of
from bellmark.profile import Profile, load_profile
from bellmark.run import Run, find_run, latest_run, manifest_of, run_name

if TYPE_CHECKING:
    import polars

    from bellmark.assembly import Assembly
    from bellmark.component import Metric, Strategy
    from bellmark.results import Backtest

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
) -> Profile:
    """A profile by built-in name or file, with changes.

    `overrides` maps dotted keys to values, `sets` are texts KEY=VALUE as on the command line; `seed` and `runs` stand for [learners] seed
    and [run] folder. A resolved Profile passes through and takes no changes.
    """
    options = {key: (value, "argument") for key, value in (overrides or {}).items()}
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
    resume: bool = False,
    progress: Progress | None = None,
) -> TrainedRun:
    """Trains the learners of a profile and returns their run.

    Without a name the run is `PROFILE-1`, `PROFILE-2`, ...; an existing run is never overwritten. `resume` goes on with the run of that
    name (or the last one of the profile) from its newest checkpoint, to the same bits as without the stop; its profile, data and plugins
    must be what they were. `progress` is called as `progress(done, total, loss)` with updates done. Interrupted, it leaves a checkpoint.
    """
    from bellmark import backend
    from bellmark.assembly import assemble
    from bellmark.host import host

    resolved = resolve_profile(profile, overrides=overrides, sets=sets, seed=seed, runs=runs)
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
) -> Backtest:
    """Runs a trained policy or a rule strategy over one part of the data, `test` unless told otherwise.

    `subject` is a run (or its name or folder), a strategy instance, or the name of a strategy; a strategy needs a profile, which says the
    data and the market rules. A name that is both is taken as the run. A strategy given by name has the settings of [baselines.NAME] where
    the profile has such a table, else its defaults.
    """
    from bellmark.assembly import backtest_run, backtest_strategy

    if split not in SPLITS:
        raise UsageError(f"split: expected one of {', '.join(SPLITS)}, found '{split}'{did_you_mean(split, SPLITS)}")
    run, strategy = _subject(subject, runs or "runs")
    if run is not None:
        if profile is not None or overrides or sets:
            raise UsageError(f"run '{run.name}': a run is backtested with its own profile; a profile goes with a strategy")
        result = backtest_run(run, split=split)
        _note_look("backtest", run.path.parent, run.profile, run.profile.configuration_hash, result)
        return result
    if profile is None:
        raise UsageError(f"strategy '{strategy.name}': expected a profile that says the data and the market (--profile), found none")
    resolved = resolve_profile(profile, overrides=overrides, sets=sets, runs=runs)
    if isinstance(subject, str):
        named = resolved.baselines.get(subject)
        strategy = named if type(named) is type(strategy) else strategy
    result = backtest_strategy(strategy, resolved, split=split)
    configuration = sha256_of(json_line([resolved.configuration_hash, result.name, result.settings]))
    _note_look("backtest", Path(resolved.run.folder), None, configuration, result)
    return result


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

    found = run if isinstance(run, Run) else find_run(str(run), runs or "runs")
    if backtests is None:
        policy = backtest(found, split=split)
        backtests = [policy, *baselines(found, split, policy)]
    for result in backtests:
        if result.kind == "policy":
            _note_look("report", found.path.parent, found.profile, found.profile.configuration_hash, result)
    reports = tuple(found.profile.reports.values()) or None
    return build(found, backtests, Path(folder) if folder is not None else found.path, reports)


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


def equity(result: Backtest) -> polars.DataFrame:
    """Equity, position and exposure of each account of a backtest: a row an account and bar."""
    import polars

    frames = []
    for lane in result.lanes:
        columns = {"ts_event": lane.stamp_T, "equity": lane.equity_T / 1e9, "position": lane.position_T, "exposure": lane.exposure_T}
        frames.append(_of_lane(polars.DataFrame(columns), lane))
    return polars.concat(frames)


def fills(result: Backtest) -> polars.DataFrame:
    """The fills of a backtest: a row a fill, with its costs in currency; prices in quanta of the instrument."""
    import polars

    frames = [polars.DataFrame({name: lane.fills[name] for name in lane.fills.dtype.names or ()}) for lane in result.lanes]
    renamed = [frame.rename({"stamp": "ts_event"}) for frame in frames]
    return polars.concat([_of_lane(frame, lane) for frame, lane in zip(renamed, result.lanes, strict=True)])


def rejections(result: Backtest) -> polars.DataFrame:
    """The refused orders of a backtest with their reasons."""
    import polars

    from bellmark.market import REASONS

    frames = []
    for lane in result.lanes:
        reasons = polars.Series("reason", [REASONS[code] for code in lane.rejections["reason"]], dtype=polars.String)
        frame = polars.DataFrame({"bar": lane.rejections["bar"], "ts_event": lane.rejections["stamp"], "lots": lane.rejections["lots"]})
        frames.append(_of_lane(frame.with_columns(reasons), lane))
    return polars.concat(frames)


def _note_trial(kind: str, folder: Path, profile: Profile | None, configuration: str, data: str, window: tuple[str, int, int]) -> None:
    """Adds to the list of everything tried; `profile` gives the seeds."""
    from bellmark import trials

    seeds = () if profile is None else tuple(profile.learners.seed + learner for learner in range(profile.learners.count))
    trials.append(folder, trials.Trial(kind, data, *window, configuration, seeds))


def _note_look(kind: str, folder: Path, profile: Profile | None, configuration: str, result: Backtest) -> None:
    first = min(int(lane.stamp_T[0]) for lane in result.lanes)
    last = max(int(lane.stamp_T[-1]) for lane in result.lanes)
    _note_trial(kind, folder, profile, configuration, result.data_hash, (result.split, first, last))


def _of_lane(frame: polars.DataFrame, lane: Any) -> polars.DataFrame:
    import polars

    stamp = polars.from_epoch("ts_event", time_unit="ns").dt.replace_time_zone("UTC")
    learner = polars.lit(lane.learner, dtype=polars.Int64).alias("learner")
    return frame.with_columns(stamp).select(learner, polars.lit(lane.symbol).alias("symbol"), polars.all())


def _strategy(name: str) -> Strategy:
    from bellmark.component import make
    from bellmark.host import host

    strategy: Strategy = make(host().get("strategy", name), {}, name)
    return strategy


def _subject(subject: Any, runs: str | Path) -> tuple[Run | None, Any]:
    if isinstance(subject, Run):
        return subject, None
    if not isinstance(subject, str | Path):
        return None, subject
    try:
        return find_run(str(subject), runs), None
    except RunError:
        from bellmark.host import host
        from bellmark.run import run_names

        strategies = host().catalog["strategy"]
        if str(subject).rpartition(":")[2] in strategies:
            return None, _strategy(str(subject))
        known = [*run_names(runs), *strategies]
        if Path(subject).exists() or len(Path(subject).parts) > 1:
            raise
        hint = did_you_mean(str(subject), known) + known_list(known)
        raise UnknownNameError(f"no run (under {runs}) and no strategy named '{subject}'{hint}") from None


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
            raise RunError(
            f"{run.path}: it cannot be resumed: its {what} were {run.manifest.get(key)}, they are {manifest[key]}")
