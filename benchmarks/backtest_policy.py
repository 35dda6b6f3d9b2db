"""A learned policy over many windows and cost scenarios at once: 64 inputs, two layers of 256, C51; 100 windows x 5 scenarios x 5,000 bars.

    env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE python benchmarks/backtest_policy.py [--bars 5000] [--out FILE]

The parameters are random (the time does not depend on them), the market is synthetic, every window is an account with its own curve and
costs. The time is that of the whole backtest, after one short one that compiles.
"""

from __future__ import annotations

import argparse
import datetime
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from backtest_sweep import machine

INPUTS, WINDOWS, SCENARIOS = 64, 100, 5
PROFILE = """
schema_version = 1
extends = "ou"
description = "A policy of 64 inputs and two layers of 256"

[data]
bars = 40_000
bar_seconds = 60

[split]
train = 0.05
validation = 0.05

[network]
hidden = [256, 256]

[action]
exposures = [-1.0, -0.5, 0.0, 0.5, 1.0]

[learners]
count = 1
"""


def main() -> None:
    """Prints the seconds of the whole backtest."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bars", type=int, default=5_000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    assembly = assembled()
    backtest(assembly, 20)
    wall, cpu = time.perf_counter(), time.process_time()
    lanes = backtest(assembly, given.bars)
    found = {"bars": given.bars, "windows": WINDOWS, "scenarios": SCENARIOS, "inputs": assembly.environment.O, "accounts": lanes,
             "wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}  # fmt: skip
    print(f"{WINDOWS} windows x {SCENARIOS} scenarios x {given.bars} bars: {found['wall']:.2f} s, {found['cpu']:.2f} s of processor time")
    if given.out:
        command = "python benchmarks/backtest_policy.py"
        document = {"date": datetime.date.today().isoformat(), "machine": machine(), "command": command, "rows": [found]}
        given.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def assembled() -> Any:
    """The profile with features until the observation has its 64 columns."""
    from bellmark.assembly import assemble
    from bellmark.host import host
    from bellmark.profile import load_profile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.toml"
        path.write_text(PROFILE, encoding="utf-8")
        own = assemble(load_profile(str(path), environment={}), host()).environment.O
        lines = [f'[features.return_{window}]\nuse = "log_return"\nwindow = {window}\n' for window in range(1, INPUTS - own + 1)]
        path.write_text(PROFILE + "\n" + "\n".join(lines), encoding="utf-8")
        return assemble(load_profile(str(path), environment={}), host())


def backtest(assembly: Any, bars: int) -> int:
    """Every window under every scenario of costs; returns the number of accounts."""
    from bellmark.backtester import PolicyRunner
    from bellmark.results import Window

    data, profile = assembly.data, assembly.profile
    _, first_S, last_S = data.bars_of("test")
    stamp_T = data.tape.ts_ST[0].astype(np.int64)
    starts = np.linspace(first_S[0], last_S[0] - bars - 1, WINDOWS).astype(int)
    windows = [Window((0,), stamp_T[start : start + bars + 1], int(start)) for start in starts]
    scenarios = [replace(profile.market, spread_ticks=10.0 * number) for number in range(SCENARIOS)]

    def make(lanes: int) -> Any:
        return profile.trainer.policy(profile, data.space, assembly.environment.O, 1, lanes)

    runner = PolicyRunner(data, "test", 1, assembly.normalisation, make, windows=windows, variants=scenarios)
    parameters = runner.registry["parameter_LP"]
    parameters[:] = np.random.default_rng(0).standard_normal(parameters.shape) * 0.05
    return len(runner.results(runner.run()))


if __name__ == "__main__":
    main()
