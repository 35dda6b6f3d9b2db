"""The list of everything that was tried: one line a configuration evaluated or a look at a test window, in `runs/trials.jsonl`.

The more is tried on the same data, the better the best looks by chance alone. The list outlives the runs themselves, and what it counts
is the "number tried" of the statistics. It has no clock in it: the same work adds the same lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bellmark.errors import RunError, UsageError
from bellmark.files import append_lines, json_line, make_folder, sha256_of

SCHEMA_VERSION = 1
FILE_NAME = "trials.jsonl"
KINDS = ("train", "backtest", "report", "sweep")
_DIGITS = 16  # of a configuration's hash in the line of a sweep, which may hold a million: 64 bits tell them apart


@dataclass(frozen=True)
class Trial:
    """One thing tried, or the many configurations of one sweep.

    kind: train (the validation window chose something), backtest or report (somebody looked), sweep (the best of many was looked for).
    data_hash: content hash of the tape. window: the part's name; first_ns, last_ns: UTC ns of its first and last close.
    configuration_hash: of every value that shapes the result; for a sweep of the part that its configurations share. seeds: those run
    together; a choice among them on a test window counts each. configurations: of a sweep, each a trial; first 16 digits of their hashes.
    """

    kind: str
    data_hash: str
    window: str
    first_ns: int
    last_ns: int
    configuration_hash: str
    seeds: tuple[int, ...] = ()
    configurations: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UsageError(f"trial kind: expected one of {', '.join(KINDS)}, found {self.kind!r}")


def configuration(profile_hash: str, strategy: str, settings: Mapping[str, Any]) -> str:
    """The configuration of a rule strategy: the hash of what the profile says (its `configuration_hash`), the name and every setting."""
    return sha256_of(json_line([profile_hash, strategy, dict(settings)]))


def sweep(data_hash: str, window: str, first_ns: int, last_ns: int, shared_hash: str, configurations: Iterable[str]) -> Trial:
    """The trial of a sweep from the hashes of its configurations, each counted once."""
    short = tuple(dict.fromkeys(found[:_DIGITS] for found in configurations))
    return Trial("sweep", data_hash, window, first_ns, last_ns, shared_hash, configurations=short)


def append(folder: Path | str, trials: Trial | Iterable[Trial]) -> None:
    """Adds trials to the list in the folder of runs: whole lines in one write at the end of the file, flushed to disk."""
    items = [trials] if isinstance(trials, Trial) else list(trials)
    append_lines(make_folder(folder) / FILE_NAME, [json_line({"schema_version": SCHEMA_VERSION} | _values(trial)) for trial in items])


def read(folder: Path | str) -> list[Trial]:
    """All trials in the order in which they were made. A line cut short by a crash is left out; a line of a newer schema is refused."""
    path = Path(folder) / FILE_NAME
    if not path.exists():
        return []
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise RunError(f"{path}: it cannot be read: {error.strerror}") from error
    found = []
    for number, line in enumerate(lines, 1):
        try:
            values: dict[str, Any] = json.loads(line)
        except json.JSONDecodeError:
            continue  # the process died while it wrote; the next append began a new line
        version = values.pop("schema_version", None) if isinstance(values, dict) else f"a {type(values).__name__}"
        if not isinstance(version, int) or version > SCHEMA_VERSION:
            raise RunError(f"{path}:{number}: expected schema_version up to {SCHEMA_VERSION}, found {version}; update Bellmark")
        try:
            trial = Trial(**(values | {name: tuple(values.get(name, ())) for name in ("seeds", "configurations")}))
            _check_types(trial)
        except (TypeError, UsageError) as error:
            raise RunError(f"{path}:{number}: this is not a trial: {error}") from error
        found.append(trial)
    return found


def _check_types(trial: Trial) -> None:
    """TypeError where a value of a line is not what the list counts with."""
    for kind, names in ((str, ("data_hash", "window", "configuration_hash")), (int, ("first_ns", "last_ns"))):
        for name in names:
            if not isinstance(getattr(trial, name), kind):
                raise TypeError(f"{name}: expected {kind.__name__}, found {getattr(trial, name)!r}")
    for kind, name in ((int, "seeds"), (str, "configurations")):
        wrong = [value for value in getattr(trial, name) if not isinstance(value, kind)]
        if wrong:
            raise TypeError(f"{name}: expected a list of {kind.__name__}, found {wrong[0]!r} in it")


def count(trials: Sequence[Trial], data_hash: str, first_ns: int, last_ns: int) -> int:
    """The number tried on a window: distinct (configuration, seed) pairs that touched it.

    A trial counts if its data are the same and its window overlaps [first_ns, last_ns]. One without seeds counts once, a sweep once for
    each of its configurations. The same configuration seen again, by training, backtest, report or sweep, is still one.
    """
    tried: set[tuple[str, int | None]] = set()
    for trial in trials:
        if trial.data_hash == data_hash and trial.first_ns <= last_ns and trial.last_ns >= first_ns:
            hashes = trial.configurations or (trial.configuration_hash,)
            tried |= {(found[:_DIGITS], seed) for found in hashes for seed in trial.seeds or (None,)}
    return len(tried)


def _values(trial: Trial) -> dict[str, Any]:
    values = asdict(trial)
    if not trial.configurations:
        del values["configurations"]
    return values
