"""Checkpoints: safetensors files, written beside and renamed, listed with their SHA-256 in index.json.

Order of writing: the file, then the index that names it, then the removal of what the index no longer names. A kill at any moment leaves an
index whose files are whole. The safetensors header carries one metadata key, because the library writes several in a changing order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bellmark.errors import RunError
from bellmark.files import (
    SCHEMA_VERSION,
    check_version,
    json_line,
    make_folder,
    read_json,
    reason,
    sha256_of,
    write_atomically,
    write_json,
)

KEPT = 2
_KEY = "bellmark"


@dataclass(frozen=True)
class Checkpoint:
    """A loaded checkpoint: the arrays and the plain values that were saved, and its step and file."""

    step: int
    arrays: dict[str, np.ndarray]
    metadata: dict[str, Any]
    path: Path


def save(folder: Path, step: int, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any]) -> Path:
    """Writes `step-STEP.safetensors` and the index; keeps the last two files. Returns the path."""
    from safetensors.numpy import save as to_bytes

    make_folder(folder)
    head = json_line({"schema_version": SCHEMA_VERSION, "step": step, **metadata})
    content = to_bytes({name: np.asarray(arrays[name], order="C") for name in sorted(arrays)}, metadata={_KEY: head})
    path = folder / f"step-{step:010d}.safetensors"
    write_atomically(path, content)
    entry = {"file": path.name, "step": step, "bytes": len(content), "sha256": sha256_of(content)}
    older = [item for item in _entries(folder) if item["step"] < step and item["file"] != path.name]
    kept = [*older[-(KEPT - 1) :], entry]
    write_json(folder / "index.json", {"schema_version": SCHEMA_VERSION, "checkpoints": kept})
    named = {item["file"] for item in kept}
    for stale in folder.glob("*.safetensors"):
        if stale.name not in named:
            stale.unlink(missing_ok=True)
    for part in folder.glob(".*.tmp"):  # left by a process that was killed while it wrote
        part.unlink(missing_ok=True)
    return path


def load(folder: Path, warn: Callable[[str], None]) -> Checkpoint:
    """The newest checkpoint that is whole. Damaged ones are passed over with a warning; without a whole one it is a RunError."""
    entries = _entries(folder)
    if not entries:
        raise RunError(f"{folder}: there is no checkpoint; the run stopped before the first was written")
    faults = []
    for entry in reversed(entries):
        path = folder / str(entry["file"])
        try:
            checkpoint = _read(path, entry)
        except RunError as error:
            faults.append(str(error))
            continue
        for fault in faults:
            warn(f"{fault}; using {path.name}")
        return checkpoint
    raise RunError(f"{'; '.join(faults)}; no whole checkpoint is left")


def newest_step(folder: Path) -> int | None:
    """The step of the newest checkpoint that the index names."""
    entries = _entries(folder)
    return int(entries[-1]["step"]) if entries else None


def _read(path: Path, entry: Mapping[str, Any]) -> Checkpoint:
    from safetensors import SafetensorError
    from safetensors.numpy import load as from_bytes

    try:
        content = path.read_bytes()
    except OSError as error:
        raise RunError(f"{path}: it cannot be read: {reason(error)}") from error
    if len(content) != entry["bytes"]:
        raise RunError(f"{path}: the checkpoint is damaged: expected {entry['bytes']} bytes, found {len(content)}")
    if sha256_of(content) != entry["sha256"]:
        raise RunError(f"{path}: the checkpoint is damaged: its SHA-256 is not the one in index.json")
    try:
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        metadata = json.loads(header["__metadata__"][_KEY])
        check_version(metadata, str(path))
        return Checkpoint(int(metadata["step"]), from_bytes(content), {"epoch": int(metadata["epoch"]), **metadata}, path)
    except (ValueError, KeyError, TypeError, AttributeError, SafetensorError) as error:
        raise RunError(f"{path}: expected a checkpoint of Bellmark, found something else: {type(error).__name__}: {error}") from error


def _entries(folder: Path) -> list[dict[str, Any]]:
    index = folder / "index.json"
    if not index.exists():
        orphans = sorted(path.name for path in folder.glob("step-*.safetensors"))
        if len(orphans) > 1:  # one alone may be the first, left by a process that was killed before it wrote the index
            raise RunError(f"{index}: expected the list of checkpoints, found none beside {', '.join(orphans)}")
        return []
    entries = read_json(index).get("checkpoints")
    if not isinstance(entries, list) or not all(_is_entry(item) for item in entries):
        raise RunError(f"{index}: expected a list of checkpoints, each with file, step, bytes and sha256, found something else")
    return entries


def _is_entry(item: Any) -> bool:
    kinds = {"file": str, "step": int, "bytes": int, "sha256": str}
    return isinstance(item, dict) and all(isinstance(item.get(key), kind) for key, kind in kinds.items()) and Path(item["file"]).name == (
        item["file"]
    )
