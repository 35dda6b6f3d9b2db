"""The list of everything that was tried: one line a configuration evaluated or a look at a test window, in `runs/trials.jsonl`.

The more is tried on the same data, the better the best looks by chance alone. The list outlives the runs themselves, and what it counts
is the "number tried" of the statistics. It has no clock in it: the same work adds the same lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bellmark.errors import RunError, UsageError
from bellmark.files import append_lines, json_line, make_folder

SCHEMA_VERSION = 1
FILE_NAME = "trials.jsonl"
KINDS = ("train", "backtest", "report")


@dataclass(frozen=True)
class Trial:
    """One thing tried.

    kind: train (the validation window chose something), backtest or report (somebody looked). data_hash: content hash of the tape. window:
    the part's name; first_ns, last_ns: UTC ns of its first and last close. configuration_hash: of every value that shapes the result.
    seeds: those run together; a choice among them on a test window counts each.
    """

    kind: str
    data_hash: str
    window: str
    first_ns: int
    last_ns: int
    configuration_hash: str
    seeds: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UsageError(f"trial kind: expected one of {', '.join(KINDS)}, found {self.kind!r}")


def append(folder: Path | str, trials: Trial | Iterable[Trial]) -> None:
    """Adds trials to the list in the folder of runs: whole lines in one write at the end of the file, flushed to disk."""
    items = [trials] if isinstance(trials, Trial) else list(trials)
    append_lines(make_folder(folder) / FILE_NAME, [json_line({"schema_version": SCHEMA_VERSION} | asdict(trial)) for trial in items])


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
            found.append(Trial(**(values | {"seeds": tuple(values.get("seeds", ()))})))
        except TypeError as error:
            raise RunError(f"{path}:{number}: this is not a trial: {error}") from error
    return found


def count(trials: Sequence[Trial], data_hash: str, first_ns: int, last_ns: int) -> int:
    """The number tried on a window: distinct (configuration, seed) pairs that touched it.

    A trial counts if its data are the same and its window overlaps [first_ns, last_ns]. One without seeds counts once. The same
    configuration seen again, by training, backtest or report, is still one.
    """
    tried: set[tuple[str, int | None]] = set()
    for trial in trials:
        if trial.data_hash == data_hash and trial.first_ns <= last_ns and trial.last_ns >= first_ns:
            tried |= {(trial.configuration_hash, seed) for seed in trial.seeds or (None,)}
    return len(tried)
