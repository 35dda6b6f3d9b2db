"""The folder of a run: resolved profile, manifest, metrics, timing and checkpoints, never half written.

    runs/NAME/profile.toml    the resolved profile, every value with its origin
              manifest.json   versions, plugins, data hash, seeds, build, device
              metrics.jsonl   a row an epoch and learner
              timing.jsonl    every wall-clock figure; the only file that is not a function of the inputs alone
              checkpoints/    step-*.safetensors and index.json with their SHA-256
              backtests/, report.html, report.json, report.md

Every JSON file carries `schema_version`; a newer one is refused in one line. Nothing is pickled.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bellmark import checkpoints
from bellmark.checkpoints import Checkpoint
from bellmark.errors import RunError, UnknownRunError, UsageError, did_you_mean, known_list
from bellmark.files import (
    SCHEMA_VERSION,
    append_lines,
    check_version,
    json_line,
    make_folder,
    read_json,
    reason,
    safe_name,
    sha256_of,
    write_atomically,
    write_json,
)

if TYPE_CHECKING:
    import numpy as np

    from bellmark.host import Host
    from bellmark.profile import Profile

_PARTS = ("cuda_kernels", "datasets", "plugins", "profiles", "strategies")
_PACKAGES = ("bellmark", "numpy", "numba", "llvmlite", "scipy", "safetensors", "pydantic", "pluggy")


@dataclass(frozen=True)
class Run:
    """A run's folder. `Run.create` makes a new one, `Run.open` an existing one."""

    path: Path

    @classmethod
    def create(cls, folder: Path | str, name: str | None, profile: Profile) -> Run:
        """A new run under `folder`. Without a name it is `PROFILE-1`, `PROFILE-2`, ... An existing run is never overwritten."""
        folder = make_folder(folder)
        staging = make_folder(folder / f".new-run-{os.getpid()}")  # a run appears whole or not at all
        try:
            for part in ("checkpoints", "backtests"):
                make_folder(staging / part)
            write_atomically(staging / "profile.toml", profile.to_toml())
            return cls(_place(staging, folder, run_name(name) if name is not None else None, profile.name))
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    @classmethod
    def open(cls, path: Path | str) -> Run:
        """An existing run by the path of its folder."""
        path = Path(path)
        if not path.is_dir():
            near = did_you_mean(path.name, run_names(path.parent)) + known_list(run_names(path.parent))
            raise UnknownRunError(f"{path}: no such run{near}")
        if not (path / "profile.toml").is_file():
            raise RunError(f"{path}: expected a run folder with profile.toml, found none in it")
        return cls(path)

    @property
    def name(self) -> str:
        """The name of the run: its folder's."""
        return self.path.name

    @property
    def checkpoint_folder(self) -> Path:
        """Where the checkpoints are."""
        return self.path / "checkpoints"

    @cached_property
    def profile(self) -> Profile:
        """The resolved profile that the run was made with; environment and command line do not change it."""
        from bellmark.profile import load_profile

        return load_profile(self.path / "profile.toml", environment={})

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What the run was made with; empty if training never began."""
        path = self.path / "manifest.json"
        return read_json(path) if path.exists() else {}

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Writes manifest.json (see `manifest_of`)."""
        write_json(self.path / "manifest.json", {"schema_version": SCHEMA_VERSION, **manifest})
        self.__dict__.pop("manifest", None)

    def write_metric_rows(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Adds rows to metrics.jsonl, one an epoch and learner. They must be written before the checkpoint of that epoch.

        Undefined values are None; a NaN is an InternalError.
        """
        append_lines(self.path / "metrics.jsonl", [json_line({"schema_version": SCHEMA_VERSION, **row}) for row in rows])

    def metric_rows(self) -> list[dict[str, Any]]:
        """The rows of metrics.jsonl; a last line cut short by a crash is left out."""
        return list(_rows(self.path / "metrics.jsonl"))

    def truncate_metrics(self, epoch: int) -> None:
        """Drops every row after `epoch`, so that a resumed run continues as if it had never stopped."""
        kept = [row for row in self.metric_rows() if row["epoch"] <= epoch]
        for part in self.path.glob(".*.tmp"):  # left by a process that was killed while it wrote
            part.unlink(missing_ok=True)
        write_atomically(self.path / "metrics.jsonl", "".join(json_line(row) + "\n" for row in kept))

    def write_timing(self, row: Mapping[str, Any]) -> None:
        """Adds a row to timing.jsonl, the place of every wall-clock figure."""
        append_lines(self.path / "timing.jsonl", [json_line({"schema_version": SCHEMA_VERSION, **row})])

    def timing_rows(self) -> list[dict[str, Any]]:
        """The rows of timing.jsonl."""
        return list(_rows(self.path / "timing.jsonl"))

    def save_checkpoint(self, step: int, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any]) -> Path:
        """Writes a checkpoint beside and renames it; keeps the last two. `metadata` is plain values, `epoch` among them."""
        return checkpoints.save(self.checkpoint_folder, step, arrays, metadata)

    def load_checkpoint(self, warn: Callable[[str], None] | None = None) -> Checkpoint:
        """The newest checkpoint whose hash is right. A damaged one is passed over with a warning; none left is a RunError."""
        return checkpoints.load(self.checkpoint_folder, warn or _to_stderr)

    @property
    def checkpoint_step(self) -> int | None:
        """The step of the newest checkpoint in the index, None before the first."""
        return checkpoints.newest_step(self.checkpoint_folder)

    @property
    def has_checkpoint(self) -> bool:
        """Whether any checkpoint was ever written."""
        return self.checkpoint_step is not None

    def write_backtest(self, split: str, document: Mapping[str, Any]) -> Path:
        """Keeps the numbers of a backtest as backtests/SPLIT.json."""
        path = make_folder(self.path / "backtests") / f"{safe_name(split)}.json"
        write_json(path, {"schema_version": SCHEMA_VERSION, **document})
        return path

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Holds the run for one writer; a second one gets a RunError. The system frees it when the process ends, however it ends."""
        path = self.path / ".lock"
        try:
            stream = open(path, "a+b")  # noqa: SIM115  it is closed below
        except OSError as error:
            raise RunError(f"{path}: it cannot be written: {reason(error)}") from error
        with stream:
            try:
                _lock(stream.fileno())
            except OSError:
                raise RunError(f"{self.path}: another process is writing this run; wait for it or take another --name") from None
            yield


def _place(staging: Path, folder: Path, wanted: str | None, profile_name: str) -> Path:
    """Renames a prepared run to its name; another process that takes a counted name first only moves the counter on."""
    while True:
        path = folder / (wanted or f"{safe_name(profile_name)}-{_last_number(folder, profile_name) + 1}")
        if not path.exists():
            try:
                staging.rename(path)
                return path
            except OSError as error:
                if not path.exists():
                    raise RunError(f"{path}: the run cannot be made: {reason(error)}") from error
        if wanted is not None:
            raise RunError(f"{path}: a run of this name exists: take another --name, or go on with it by --resume")


def find_run(name: str, folder: Path | str) -> Run:
    """A run by its name under `folder`, or by the path of its folder."""
    path = Path(name)
    a_path = len(path.parts) != 1 or name == ".." or (path / "profile.toml").is_file()
    return Run.open(path if a_path else Path(folder) / name)


def run_name(name: str) -> str:
    """The name of the folder of a run that a user named; a name without a letter or digit is refused."""
    if not any(letter.isalnum() for letter in name):
        raise UsageError(f"--name: expected a name with letters or digits, found {name!r}")
    return safe_name(name)


def latest_run(folder: Path | str, profile_name: str) -> Run:
    """The last of the runs `PROFILE-1`, `PROFILE-2`, ... that a resume without a name goes on with."""
    number = _last_number(Path(folder), profile_name)
    if number == 0:
        raise RunError(f"{folder}: there is no run of profile '{profile_name}' to resume{known_list(run_names(folder))}")
    return Run.open(Path(folder) / f"{safe_name(profile_name)}-{number}")


def run_names(folder: Path | str) -> list[str]:
    """The names of the runs under a folder, sorted so that `demo-10` follows `demo-9`."""
    folder = Path(folder)
    names = [item.name for item in folder.iterdir() if (item / "profile.toml").is_file()] if folder.is_dir() else []
    return sorted(names, key=lambda name: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)])


def manifest_of(profile: Profile, host: Host, *, data_hash: str, build: Mapping[str, Any]) -> dict[str, Any]:
    """What decides the bits of a run: versions, the plugins used, data, profile hash, seeds, build, device. No clock, no path."""
    from importlib import metadata

    plugins = []
    for place, use, instance in profile.components():
        entry = host.entry(instance.kind, use)
        plugins.append(
            {"place": place, "kind": entry.kind, "name": entry.name, "plugin": entry.plugin}
            | {"distribution": entry.distribution, "version": entry.version}
        )
    return {
        "profile": profile.name,
        "profile_hash": profile.hash,
        "data_hash": data_hash,
        "seeds": [profile.learners.seed + learner for learner in range(profile.learners.count)],
        "versions": {"python": sys.version.split()[0]} | {name: metadata.version(name) for name in _PACKAGES},
        "plugins": plugins,
        "build": {**build, "source": source_hash()},
        "device": "cpu",
    }


@lru_cache(maxsize=1)
def source_hash() -> str:
    """SHA-256 over the Python sources of the installed package: the same for a wheel and for an editable install."""
    sources = {}
    for package in ("bellmark", *(f"bellmark.{part}" for part in _PARTS)):
        folder = Path(next(iter(importlib.import_module(package).__path__)))
        for path in folder.rglob("*.py"):
            name = f"{package.replace('.', '/')}/{path.relative_to(folder).as_posix()}"
            sources[name] = sha256_of(path.read_bytes())
    return sha256_of(json_line(sources))


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"{path}: it cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
        except ValueError:
            if number == len(lines):
                return
            raise RunError(f"{path}:{number}: expected one JSON object a line, found {line[:40]!r}") from None
        if not isinstance(row, dict) or not isinstance(row.get("epoch"), int):
            raise RunError(f"{path}:{number}: expected one JSON object a line with its epoch, found {line[:40]!r}")
        check_version(row, f"{path}:{number}")
        yield row


def _last_number(folder: Path, profile_name: str) -> int:
    pattern = re.compile(re.escape(safe_name(profile_name)) + r"-(\d+)")
    found = [pattern.fullmatch(item.name) for item in folder.iterdir()] if folder.is_dir() else []
    return max((int(match[1]) for match in found if match), default=0)


def _lock(handle: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _to_stderr(message: str) -> None:
    print(f"warning: {message}", file=sys.stderr)
