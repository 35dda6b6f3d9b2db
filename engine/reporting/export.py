"""A run as tables for other programs: its training and, for every part that it was backtested on, the whole ledger."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bellmark.errors import UsageError, did_you_mean
from bellmark.files import make_folder, write_atomically
from bellmark.reporting import frames
from bellmark.results import Backtest
from bellmark.run import Run
from bellmark.splits import PARTS

if TYPE_CHECKING:
    import polars

FORMATS = ("parquet", "csv")
TABLES: Mapping[str, Callable[[Backtest], polars.DataFrame]] = {
    "equity": frames.equity,
    "fills": frames.fills,
    "trades": frames.trades,
    "rejections": frames.rejections,
    "decisions": frames.decisions,
}


def backtested_parts(run: Run) -> list[str]:
    """The parts of the data that a run was backtested on: those whose numbers are in its folder."""
    return [part for part in PARTS if (run.path / "backtests" / f"{part}.json").is_file()]


def export(run: Run, backtests: Mapping[str, Backtest], folder: Path | str | None = None, form: str = "parquet") -> dict[str, Path]:
    """Writes metrics and timing of a run, and under PART/ the tables of each backtest; returns the files by name (`test/fills`).

    folder: `export` in the run's folder by default; files of a former export are replaced. form: parquet or csv.
    """
    if form not in FORMATS:
        raise UsageError(f"--format: expected one of {', '.join(FORMATS)}, found '{form}'{did_you_mean(form, FORMATS)}")
    folder = make_folder(run.path / "export" if folder is None else folder)
    files = {name: _written(_table(rows), folder / f"{name}.{form}") for name, rows in _of_training(run).items()}
    for part, result in backtests.items():
        inner = make_folder(folder / part)
        files |= {f"{part}/{name}": _written(table(result), inner / f"{name}.{form}") for name, table in TABLES.items()}
    return files


def _of_training(run: Run) -> dict[str, list[dict[str, Any]]]:
    return {"metrics": run.metric_rows(), "timing": run.timing_rows()}


def _table(rows: list[dict[str, Any]]) -> polars.DataFrame:
    import polars

    return polars.DataFrame(rows, infer_schema_length=None)


def _written(frame: polars.DataFrame, path: Path) -> Path:
    if path.suffix == ".csv":
        write_atomically(path, frame.write_csv())
    else:
        buffer = io.BytesIO()
        frame.write_parquet(buffer)
        write_atomically(path, buffer.getvalue())
    return path
