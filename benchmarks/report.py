"""How long a report takes and how large it is: 2,520 and 1,000,000 bars, three rule strategies, imports apart.

    python benchmarks/report.py
"""

import tempfile
import time
from pathlib import Path

from bellmark import api
from bellmark.reporting import build

BARS = (2_520, 1_000_000)
STRATEGIES = ("flat", "sma_cross", "random")


def main() -> None:
    """Prints a line a number of bars."""
    with tempfile.TemporaryDirectory() as folder:
        build(None, [api.backtest("flat", profile="smoke", runs=folder)], folder)  # imports and compilation
        for bars in BARS:
            sets = [f"data.bars={bars}", "data.bar_seconds=60", "split.train=0.1", "split.validation=0.1"]
            results = [api.backtest(name, profile="smoke", sets=sets, runs=folder) for name in STRATEGIES]
            start = time.perf_counter()
            files = build(None, results, folder)
            seconds = time.perf_counter() - start
            size = Path(files["html"]).stat().st_size / 1e6
            print(f"{bars:,} bars: {seconds:.2f} s, {size:.2f} MB of HTML")


if __name__ == "__main__":
    main()
