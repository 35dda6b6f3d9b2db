"""A sweep of rule strategies, beside a bare Numba loop and vectorbt: 500,000 bars, SMA crosses on a grid, every metric in the pass.

    env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE python benchmarks/backtest_sweep.py [--peers DIR [--vectorbt PYTHON]] [--out FILE]

DIR holds the peers' scripts (common.py, eng_floor.py, eng_vectorbt.py), which bring bars and grid; PYTHON is an interpreter with vectorbt.
Without DIR Bellmark runs alone, on bars and a grid by the same formulas. Each row is a process of its own; the best of three passes after
a warm-up counts. Rates are bars times configurations by second of processor time, so that a busy machine disturbs them least; compare rows
of one run only. The bare loop knows no stop, no margin and no money in integers.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
QUANTUM = 1e-4
REPEATS = 3
FEE = 1e-4
CASH = 1_000_000.0
MINUTES_PER_YEAR = 252 * 390
RULES = {"stop_loss": 0.02, "take_profit": 0.05, "initial_margin_rate": 1.0, "maintenance_margin_rate": 0.05}
COLUMNS = ("engine", "rules", "configurations", "million bar-configurations a CPU-second", "of the bare loop", "processors used", "peak MB")


def main() -> None:
    """Runs every row in a process of its own and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, metavar="DIR")
    parser.add_argument("--vectorbt", metavar="PYTHON")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--row", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.row:
        print("JSON " + json.dumps(row(given.peers, **json.loads(given.row))))
        return
    if given.peers and not (given.peers / "common.py").exists():
        parser.error(f"--peers {given.peers}: expected a folder with the peers' common.py")
    if given.vectorbt and not given.peers:
        parser.error("--vectorbt: its script is one of the peers'; give --peers DIR too")
    bare = ("eng_floor.py", "bare loop", 100, "--mode", "prefix", "--repeat", str(REPEATS))
    found = [peer(given.peers, sys.executable, *bare)] if given.peers else []
    plans: list[dict[str, Any]] = [
        {"configurations": 100, "protected": True},
        {"configurations": 100, "protected": True, "third_party": True},
        {"configurations": 100, "protected": False},
        {"configurations": 1000, "protected": True},
        {"configurations": 1, "protected": True},
    ]
    for plan in plans:
        peers = ("--peers", str(given.peers)) if given.peers else ()
        found.append(process([sys.executable, __file__, *peers, "--row", json.dumps(plan)]))
    if given.peers:
        found.append(peer(given.peers, sys.executable, *bare))
    if given.vectorbt:
        found.append(peer(given.peers, given.vectorbt, "eng_vectorbt.py", "vectorbt", 100, "--mode", "numba"))
    floor = max((line["rate"] for line in found if line["engine"] == "bare loop"), default=None)
    rows = [
        (line["engine"], line["rules"], line["configurations"], f"{line['rate'] / 1e6:.1f}", f"{line['rate'] / floor:.0%}" if floor else "",
         f"{line['cpu'] / line['wall']:.1f}", f"{line['peak_mb']:.0f}")
        for line in found
    ]  # fmt: skip
    lines = ["| " + " | ".join(map(str, cells)) + " |" for cells in (COLUMNS, ("---",) * len(COLUMNS), *rows)]
    print("\n".join(lines))
    if given.out:
        command = "python benchmarks/backtest_sweep.py"
        document = {"date": datetime.date.today().isoformat(), "machine": machine(), "command": command, "rows": found}
        given.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def machine() -> dict[str, Any]:
    """What the figures were seen on."""
    import numba

    model = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line), "")
    versions = {"python": platform.python_version(), "numba": numba.__version__, "numpy": np.__version__}
    return {"processor": model, "processors": os.cpu_count(), "load": round(os.getloadavg()[0], 2), **versions}


def process(command: list[str], cwd: Path | None = None) -> dict[str, Any]:
    """The JSON line that a process prints."""
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    line = next((line for line in done.stdout.splitlines() if line.startswith("JSON ")), None)
    if line is None:
        raise SystemExit(f"{' '.join(command[:3])}: it gave no result: {done.stderr.strip().splitlines()[-1:]}")
    value: dict[str, Any] = json.loads(line.removeprefix("JSON "))
    return value


def peer(folder: Path, python: str, script: str, name: str, configurations: int, *options: str) -> dict[str, Any]:
    """A row of another engine, measured by its own script."""
    value = process([python, script, "--configs", str(configurations), *options], cwd=folder)
    if "error" in value:
        raise SystemExit(f"{name}: {value['error']}")
    rate = value["bars"] * configurations / value["cpu_s"]
    return {"engine": name, "rules": "fees", "configurations": configurations, "rate": rate, "wall": value["wall_s"], "cpu": value["cpu_s"],
            "peak_mb": value["peak_rss_mb"], "version": value.get("version"), "sample": value["sample"]}  # fmt: skip


def make_bars(count: int = 500_000, seed: int = 7) -> tuple[np.ndarray[Any, Any], ...]:
    """Open, high, low, close and volume of minutes: a geometric walk whose volatility swings within the day and over months."""
    random, minute = np.random.default_rng(seed), np.arange(count, dtype=np.float64)
    volatility = 4e-4 * (1.0 + 0.5 * np.sin(2 * np.pi * minute / 390.0)) * np.exp(0.25 * np.sin(2 * np.pi * minute / 40_000.0))
    close = 100.0 * np.exp(np.cumsum(volatility * random.standard_normal(count)))
    gap = 1e-4 * random.standard_normal(count)
    opening = np.concatenate([[100.0], close[:-1] * np.exp(gap[1:])])
    reach = np.abs(random.standard_normal((2, count))) * volatility
    high, low = np.maximum(opening, close) * np.exp(reach[0]), np.minimum(opening, close) * np.exp(-reach[1])
    return opening, high, low, close, np.floor(1000 * (1.0 + random.random(count)))


def grid(configurations: int) -> list[tuple[int, int]]:
    """(fast, slow) of each configuration: 1, 100 or 1000."""
    grids = {1: ((20,), (100,)), 100: (range(5, 55, 5), range(60, 260, 20)), 1000: (range(4, 54, 2), range(60, 260, 5))}
    return [(fast, slow) for fast in grids[configurations][0] for slow in grids[configurations][1]]


def row(peers: Path | None, configurations: int, protected: bool, third_party: bool = False) -> dict[str, Any]:
    """Bellmark through the `bar` plugin, on the peers' bars and grid where there are peers."""
    common: Any = sys.modules[__name__]
    if peers:
        sys.path.insert(0, str(peers))
        common = importlib.import_module("common")

    with tempfile.TemporaryDirectory() as folder:
        if third_party:
            text = (ROOT / "strategies" / "sma_cross.py").read_text(encoding="utf-8")
            text = text.replace('"sma_cross"', '"their_cross"').replace("class SmaCross", "class TheirCross")
            hook = "\n\nfrom bellmark.hookspecs import hookimpl\n\n\n@hookimpl\ndef bellmark_strategies():\n    return [TheirCross]\n"
            (Path(folder) / "their_cross.py").write_text(text + hook, encoding="utf-8")
            os.environ["BELLMARK_PLUGINS"] = folder
        return measured(common, configurations, protected, "their_cross" if third_party else "sma_cross")


def measured(common: Any, configurations: int, protected: bool, name: str) -> dict[str, Any]:
    """The best of three passes, after one that compiles."""
    from bellmark.backtester import run_sweep
    from bellmark.component import make
    from bellmark.host import host

    data = market_data(common, protected)
    strategies = [make(host().get("strategy", name), {"fast": fast, "slow": slow}, name) for fast, slow in common.grid(configurations)]
    run_sweep(data, strategies[:1] * (8 if configurations > 1 else 1))
    best: tuple[float, float] = (float("inf"), 0.0)
    for _ in range(REPEATS):
        wall, cpu = time.perf_counter(), time.process_time()
        summaries = run_sweep(data, strategies)
        best = min(best, (time.process_time() - cpu, time.perf_counter() - wall))
    bars = int(data.tape.length_S[0])
    first = summaries[0]
    sample = {"end": first.end_equity, "mdd": first.max_drawdown, "trades": first.trades, "fees": first.costs["fees"]}
    rules = "fees, stop, target, margin" if protected else "fees"
    engine = "Bellmark" if name == "sma_cross" else "Bellmark, a third party's strategy"
    return {"engine": engine, "rules": rules, "configurations": configurations, "rate": bars * configurations / best[0], "cpu": best[0],
            "wall": best[1], "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "sample": sample}  # fmt: skip


def market_data(common: Any, protected: bool) -> Any:
    """The bars on a grid of 1e-4 with the same fee and equity; all of them are one part."""
    from types import SimpleNamespace

    from bellmark.actions import ActionSpace
    from bellmark.bars import Bars
    from bellmark.component import make
    from bellmark.features import assemble
    from bellmark.host import host
    from bellmark.instrument import Instrument
    from bellmark.lane_layout import LanePart, LaneParts
    from bellmark.market_data import MarketData, with_quantum
    from bellmark.settings import MarketSettings
    from bellmark.tape import compile_tape

    columns = [np.round(price / QUANTUM) * QUANTUM for price in common.make_bars()[:4]]
    volume = common.make_bars()[4]
    opening, high, low, close = columns
    high, low = np.maximum(high, np.maximum(opening, close)), np.minimum(low, np.minimum(opening, close))
    stamps = 60_000_000_000 * np.arange(1, opening.size + 1, dtype=np.int64)
    values = {"fee_bps": common.FEE * 1e4, "start_equity": common.CASH, **(RULES if protected else {})}
    settings = make(MarketSettings, values, "market")
    instrument = Instrument("X", data_quantum=QUANTUM, price_quantum=QUANTUM, periods_per_year=float(common.MINUTES_PER_YEAR))
    tape = compile_tape([(Bars("X", stamps, opening, high, low, close, volume), with_quantum(instrument, settings))], cached=False)

    def part(kind: str, name: str, **chosen: Any) -> LanePart:
        return LanePart(kind, make(host().get(kind, name), chosen, kind), "builtin_plugins")

    whole = SimpleNamespace(start_S=np.zeros(1, np.int64), end_S=tape.length_S)
    return MarketData(
        tape=tape,
        features=assemble([], tape),
        parts=LaneParts(sizing=part("sizing", "equity_fraction", fraction=0.99), execution=part("execution", "bar")),
        space=ActionSpace((-1.0, 0.0, 1.0)),
        settings=settings,
        splits={"test": whole},  # type: ignore[arg-type]
        profile_hash="",
    )


if __name__ == "__main__":
    main()
