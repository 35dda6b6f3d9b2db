"""The tracker that copies the statistics of a run to a file of its own."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from bellmark.component import Tracker, component, setting
from bellmark.errors import PluginError, UsageError
from bellmark.files import OWN_FILES


@component
class Jsonl(Tracker):
    """Copies the rows of metrics.jsonl, as they come, to a file that another program may watch.

    One JSON object a line: one row an epoch and learner, undefined values null. The run's own metrics.jsonl is written in any case. At the
    start the file is made equal to what the run holds, so that a resumed run leaves the same bytes as one that never stopped. A file that
    holds anything but such rows is refused, and so is one of the run's own.
    """

    name: ClassVar[str] = "jsonl"
    file: str = setting("tracker.jsonl", "where the rows go; a relative path starts at the folder of the run")

    def start(self, run: Any) -> None:
        """Binds the tracker to a run and writes the rows that the run has so far."""
        from bellmark.files import json_line, make_folder, write_atomically

        path = Path(run.path) / self.file
        _refuse_foreign(path, Path(run.path))
        make_folder(path.parent)
        write_atomically(path, "".join(json_line(row) + "\n" for row in run.metric_rows()))
        object.__setattr__(self, "_path", path)  # a component is frozen: the path is its one piece of state, not a setting

    def log(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Adds the rows of one epoch."""
        from bellmark.files import SCHEMA_VERSION, append_lines, json_line

        path = getattr(self, "_path", None)
        if path is None:
            raise PluginError("tracker jsonl: expected start(run) before log(rows)")
        append_lines(path, [json_line({"schema_version": SCHEMA_VERSION, **row}) for row in rows])

    def finish(self, status: str) -> None:
        """Ends the tracking; nothing is left to write."""
        object.__setattr__(self, "_path", None)


def _refuse_foreign(path: Path, run: Path) -> None:
    """Refuses a file that the tracker would spoil: one of a run's own, or one that holds anything but rows of a run."""
    import json
    import os.path

    where = Path(os.path.normpath(path))
    inside = where.relative_to(os.path.normpath(run)).parts if where.is_relative_to(os.path.normpath(run)) else ()
    if (inside and (inside[0] in OWN_FILES or inside[0].startswith("report."))) or (path.parent / "profile.toml").exists() and (
        path.name in OWN_FILES
    ):
        raise UsageError(f"tracker jsonl: file: {path} belongs to the run itself; name another file")
    if not path.exists():
        return
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        whole = lines[:-1] if len(lines) > 1 else lines  # a kill may have cut the last line short
        rows = [json.loads(line) for line in whole]
    except (OSError, ValueError):
        rows = [None]
    if any(not isinstance(row, dict) or not {"schema_version", "epoch", "learner"} <= row.keys() for row in rows):
        raise UsageError(f"tracker jsonl: file: {path} holds something other than the rows of a run, and would be lost; name another file")
