"""The report of a run: one content document, written as HTML, JSON and Markdown with the same numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bellmark.component import Report
from bellmark.errors import BellmarkError, PluginError, UsageError
from bellmark.files import OWN_FILES


def build(run: Any, backtests: Sequence[Any], folder: Path | str, reports: Iterable[Report] | None = None) -> dict[str, Path]:
    """Writes the report of a run and its backtests into a folder; returns the files by the report's name.

    run: the run (its `manifest` and metrics rows are shown), or None for a report on rule strategies alone.
    backtests: results of one part of the data; those of kind "policy" are the learners, the others the baselines.
    reports: report components; the built-in HTML, JSON and Markdown by default. The same inputs give the same bytes.
    """
    from bellmark.files import make_folder
    from bellmark.reporting.content import collect

    folder = make_folder(folder)
    content = collect(run, backtests)
    return {report.name: _write(report, content, folder) for report in (default_reports() if reports is None else reports)}


def default_reports() -> list[Report]:
    """The built-in report writers."""
    from bellmark.host import host

    return [host().get("report", name)() for name in ("html", "json", "markdown")]  # type: ignore[misc]


def file_in(folder: Path, name: str) -> Path:
    """The file of a report in its folder: a plain name that is none of the run's own files."""
    if Path(name).name != name or name in (*OWN_FILES, ""):
        raise UsageError(f"reports: expected a plain file name that is none of the run's own, found '{name}'")
    return folder / name


def _write(report: Report, content: dict[str, Any], folder: Path) -> Path:
    write = getattr(report, "write", None)
    if write is None:
        raise PluginError(f"report {report.name}: it has no function write")
    try:
        return Path(write(content, folder))
    except BellmarkError:
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(f"report {report.name}: write failed: {type(error).__name__}: {error}") from error
