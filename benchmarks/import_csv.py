"""Import of a CSV of many rows: rows a second and peak memory of the whole process, and how long the dataset takes to become a tape.

    python benchmarks/import_csv.py [--rows 10000000] [--stamps iso|plain|epoch] [--out FILE]

The file holds one-second bars: stamp, four prices on a tick of 0.25, volume. The import runs in a process of its own, which is measured by
the operating system (ru_maxrss: it counts mapped files too).
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from backtest_sweep import machine

CHUNK = 1_000_000
FIRST = 1_577_836_800  # 2020-01-01
STAMPS = {"iso": "%Y-%m-%dT%H:%M:%SZ", "plain": "%Y-%m-%d %H:%M:%S", "epoch": ""}
IMPORT = """
import json, resource, sys, time
import bellmark
start = time.perf_counter()
report = bellmark.import_dataset(sys.argv[1], format="csv", stamp="open", bar="1s", zone="UTC", symbol="ES", tick_size=0.25,
                                 name="big", data_dir=sys.argv[2], stamp_column="ts")
seconds = time.perf_counter() - start
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"rows": report.manifest["bars"], "seconds": seconds, "cpu": used.ru_utime + used.ru_stime,
                  "peak_mb": used.ru_maxrss / 1024}))
"""
TAPE = """
import json, resource, sys, time
from bellmark.component import make
from bellmark.datasets.imported import Imported
from bellmark.tape import compile_tape
start = time.perf_counter()
tape = compile_tape(make(Imported, {"path": sys.argv[1]}, "data").read(), cached=False)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"tape_bars": int(tape.length_S[0]), "tape_seconds": time.perf_counter() - start, "tape_peak_mb": peak}))
"""


def main() -> None:
    """Makes the file, imports it, compiles it, prints what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--stamps", choices=sorted(STAMPS), default="iso")
    parser.add_argument("--folder", type=Path, help="where to work (default: a temporary folder)")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        path = folder / "bars.csv"
        make_file(path, given.rows, given.stamps)
        found = {"stamps": given.stamps, "file_mb": path.stat().st_size / 1e6, **process(IMPORT, path, folder / "data")}
        found |= process(TAPE, folder / "data" / "big")
    rate = found["rows"] / found["seconds"]
    times = f"{found['seconds']:.1f} s ({found['cpu']:.1f} s of processor time), {rate:,.0f} rows/s"
    tape = f"tape of {found['tape_bars']:,} bars: {found['tape_seconds']:.2f} s"
    print(f"{found['rows']:,} rows ({found['file_mb']:.0f} MB, {given.stamps}): {times}, peak {found['peak_mb']:.0f} MB; {tape}")
    if given.out:
        command = "python benchmarks/import_csv.py"
        document = {"date": datetime.date.today().isoformat(), "machine": machine(), "command": command, "rows": [found]}
        given.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def process(code: str, *arguments: Path) -> dict[str, Any]:
    """Runs a script in a process of its own and reads the one line that it prints."""
    words = [sys.executable, "-P", "-c", code, *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def make_file(path: Path, rows: int, stamps: str) -> None:
    """A random walk on the tick, written in pieces."""
    import polars as pl

    random, level = np.random.default_rng(1), 4500.0
    with path.open("wb") as stream:
        for first in range(0, rows, CHUNK):
            count = min(CHUNK, rows - first)
            close = np.maximum(level + np.cumsum(random.integers(-2, 3, count)) * 0.25, 100.0)
            level = float(close[-1])
            opened = np.concatenate([close[:1], close[:-1]])
            second = pl.Series("ts", FIRST + np.arange(first, first + count))
            if stamps != "epoch":
                second = pl.from_epoch(second, time_unit="s").dt.to_string(STAMPS[stamps]).alias("ts")
            prices = {"open": opened, "high": np.maximum(opened, close) + 0.25, "low": np.minimum(opened, close) - 0.25, "close": close}
            frame = pl.DataFrame([second, *(pl.Series(name, column) for name, column in prices.items()),
                                  pl.Series("volume", random.integers(1, 500, count))])  # fmt: skip
            frame.write_csv(stream, include_header=first == 0)


if __name__ == "__main__":
    start = time.perf_counter()
    main()
    print(f"in all {time.perf_counter() - start:.0f} s", file=sys.stderr)
