"""What `bellmark doctor` looks at. A finding is `ok`, `note` (works, but say it) or `missing` (needed by every command)."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

_NEEDED = ("numpy", "numba", "scipy", "polars", "pluggy", "click", "rich", "pydantic", "safetensors", "threadpoolctl", "jinja2", "bokeh")
_LITTLE_SPACE = 1 << 30


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's report."""

    check: str
    status: str
    found: str


def examine() -> list[Finding]:
    """Every check, in the order in which a newcomer meets the parts. None of them raises."""
    findings: list[Finding] = []
    for check in (_python, _packages, _machine, _cache, _build, _plugins, _sample, _gpu):
        try:
            findings += check()
        except Exception as error:
            findings.append(Finding(check.__name__.lstrip("_"), "missing", f"{type(error).__name__}: {error}"))
    return findings


def _python() -> list[Finding]:
    good = sys.version_info >= (3, 11)
    return [Finding("python", "ok" if good else "missing", f"{platform.python_version()} at {sys.executable}")]


def _packages() -> list[Finding]:
    findings = [Finding("bellmark", "ok", metadata.version("bellmark"))]
    for name in _NEEDED:
        try:
            findings.append(Finding(name, "ok", metadata.version(name)))
        except metadata.PackageNotFoundError:
            findings.append(Finding(name, "missing", f"not installed: pip install {name}"))
    return findings


def _machine() -> list[Finding]:
    free = shutil.disk_usage(Path.cwd()).free
    enough = free >= _LITTLE_SPACE
    return [
        Finding("processors", "ok", f"{os.cpu_count()} ({platform.machine()}, {platform.system()})"),
        Finding("disk", "ok" if enough else "note", f"{free / _LITTLE_SPACE:.1f} GiB free in the current folder"),
    ]


def _cache() -> list[Finding]:
    from bellmark.files import cache_folder, cache_root

    folder = cache_folder("code")
    lasting = folder.parent == cache_root()
    text = str(folder.parent) if lasting else f"{cache_root()} is not private or not writable; code is compiled anew in each process"
    return [Finding("cache", "ok" if lasting else "note", text)]


def _build() -> list[Finding]:
    from bellmark import backend

    found = [Finding(name, "ok", str(value)) for name, value in backend.build_id().items() if name not in _NEEDED]
    return [*found, Finding("threads", "ok", str(backend.threads()))]


def _plugins() -> list[Finding]:
    from bellmark.host import host

    loaded = host()
    findings = [Finding("components", "ok", f"{len(loaded.entries())} from {len(loaded.plugins)} plugins")]
    for record in loaded.plugins:
        if record.status != "ok":
            built_in = record.distribution == "bellmark"
            findings.append(Finding(f"plugin {record.name}", "missing" if built_in else "note", str(record.error)))
    return findings


def _sample() -> list[Finding]:
    there = util.find_spec("bokeh_sampledata") is not None
    text = "real daily bars for the demo" if there else "not installed; the demo needs it: pip install 'bellmark[demo]'"
    return [Finding("sample data", "ok" if there else "note", text)]


def _gpu() -> list[Finding]:
    there = util.find_spec("numba_cuda") is not None and shutil.which("nvidia-smi") is not None
    return [Finding("gpu", "note", "found, but this version trains on the CPU" if there else "none needed: this version trains on the CPU")]


