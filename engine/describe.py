"""Lists and descriptions that the command line prints, as plain documents."""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bellmark.errors import BellmarkError
from bellmark.profile import Profile
from bellmark.profile_layers import builtin_profiles, parse_settings
from bellmark.run import Run, find_run, run_names


def list_profiles() -> list[dict[str, Any]]:
    """The built-in profiles: name, base and description."""
    rows = []
    for name, path in builtin_profiles().items():
        head = tomllib.loads(path.read_text(encoding="utf-8"))
        rows.append({"name": name, "extends": head.get("extends"), "description": head.get("description", "")})
    return rows


def describe_profile(profile: Profile) -> dict[str, Any]:
    """Every value of a profile with its origin: section (with label) -> key -> {value, origin}."""
    sections: dict[str, Any] = {}
    for section, values in profile.values().items():
        labelled = bool(values) and all(isinstance(value, dict) for value in values.values())
        tables = {(section, label): inner for label, inner in values.items()} if labelled else {(section,): values}
        for path, table in tables.items():
            found = {key: {"value": value, "origin": profile.origin((*path, key))} for key, value in table.items()}
            sections[".".join(path)] = found
    return {"name": profile.name, "description": profile.description, "hash": profile.hash, "values": sections}


def list_runs(folder: str | Path) -> list[dict[str, Any]]:
    """The runs under a folder; one that cannot be read says why in `error`."""
    return [_row(Path(folder) / name) for name in run_names(folder)]


def describe_run(name: str, folder: str | Path) -> dict[str, Any]:
    """A run: its row, manifest, and the statistics of its last epoch."""
    run = find_run(name, folder)
    rows = run.metric_rows()
    last = max((row["epoch"] for row in rows), default=None)
    return {
        **_summary(run, last),
        "path": str(run.path),
        "profile_hash": run.profile.hash,
        "manifest": run.manifest,
        "last_rows": [row for row in rows if row["epoch"] == last],
    }


def describe_dataset(name: str, sets: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Reads a dataset and compiles it: a row a symbol with its bars, dates, instrument, and what was found in them."""
    from bellmark import tape
    from bellmark.api import read_dataset

    pairs = read_dataset(name, parse_settings(sets))
    report = tape.describe(tape.compile_tape([(bars, instrument.with_costs()) for bars, instrument in pairs], cached=False))
    found = (
        *("gaps", "missing_bars", "largest_gap_move", "identical_duplicates", "outside_session", "zero_volume_bars"),
        *("unknown_volume_bars", "halted_bars", "funding_instants", "rolls", "quotes"),
    )
    rows = []
    for (bars, instrument), facts in zip(pairs, report, strict=True):
        rows.append(
            {
                "symbol": bars.symbol,
                "bars": len(bars.close),
                "first": _date(bars.ts_event[0]),
                "last": _date(bars.ts_event[-1]),
                **{key: _number(getattr(instrument, key)) for key in ("tick_size", "contract_multiplier")},
                "currency": instrument.currency,
                **{key: facts[key] for key in found},
            }
        )
    return rows


def _row(path: Path) -> dict[str, Any]:
    try:
        run = Run.open(path)
        return _summary(run, max((row["epoch"] for row in run.metric_rows()), default=None)) | {"error": None}
    except BellmarkError as error:
        empty = dict.fromkeys(("profile", "epochs", "learners", "last_epoch", "checkpoint_step", "report"))
        return {"name": path.name, **empty, "error": str(error)}


def _summary(run: Run, last: int | None) -> dict[str, Any]:
    report = run.path / "report.html"
    return {
        "name": run.name,
        "profile": run.profile.name,
        "epochs": getattr(run.profile.trainer, "epochs", None),
        "learners": run.profile.learners.count,
        "last_epoch": last,
        "checkpoint_step": run.checkpoint_step,
        "report": str(report) if report.exists() else None,
    }


def _date(stamp_ns: Any) -> str:
    moment = datetime.datetime.fromtimestamp(int(stamp_ns) // 1_000_000_000, datetime.UTC)
    return moment.isoformat(sep=" ", timespec="minutes").removesuffix("+00:00") + " UTC"


def _number(value: Any) -> Any:
    return None if value is None else float(value)
