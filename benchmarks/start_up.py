"""How long the command line takes to answer: the best of ten runs of each command, wall clock and processor time.

    python benchmarks/start_up.py
"""

import os
import subprocess
import sys
import time

COMMANDS = (["--help"], ["plugins", "list"], ["profiles", "show", "demo"])


def main() -> None:
    """Prints a line a command."""
    for arguments in COMMANDS:
        walls, processors = [], []
        for _ in range(10):
            before, start = os.times(), time.perf_counter()
            subprocess.run([sys.executable, "-P", "-m", "bellmark", *arguments], stdout=subprocess.DEVNULL, check=True)
            walls.append(time.perf_counter() - start)
            after = os.times()
            processors.append(after.children_user + after.children_system - before.children_user - before.children_system)
        print(f"bellmark {' '.join(arguments)}: {min(walls):.3f} s wall, {min(processors):.3f} s of processor")


if __name__ == "__main__":
    main()
