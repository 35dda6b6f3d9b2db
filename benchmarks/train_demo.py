"""Steps a second of the demo's training after warm-up: the second epoch of two, 300 updates of 4 learners each.

    python benchmarks/train_demo.py
"""

import os
import tempfile

import bellmark


def main() -> None:
    """Trains two short epochs in a temporary folder and prints the speed of the second, without compilation."""
    with tempfile.TemporaryDirectory() as folder:
        overrides = {"trainer.epochs": 2, "trainer.updates_per_epoch": 300}
        run = bellmark.train("demo", overrides=overrides, runs=folder)
        last = run.timing_rows()[-1]
    load = f", load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors" if hasattr(os, "getloadavg") else ""
    print(f"demo: {last['steps_per_second']:.0f} steps/s, {last['learner_steps_per_second']:.0f} learner-steps/s{load}")


if __name__ == "__main__":
    main()
