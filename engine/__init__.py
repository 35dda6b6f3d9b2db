"""Bellmark: train reinforcement-learning trading policies, backtest them and decide whether to trust them.

    import bellmark
    run = bellmark.train("demo")
    print(run.metrics())
    print(bellmark.evaluate(bellmark.backtest(run)))
    bellmark.report(run)

Attributes are loaded at first use, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bellmark.api import (
        backtest,
        baselines,
        check_dataset,
        dataset_manifest,
        decisions,
        equity,
        evaluate,
        export,
        export_dataset,
        fills,
        import_dataset,
        list_datasets,
        load_dataset,
        load_run,
        make_dataset,
        prove,
        rejections,
        report,
        signals,
        sweep,
        trades,
        train,
    )

    __version__: str

__all__ = [
    "__version__",
    "backtest",
    "baselines",
    "check_dataset",
    "dataset_manifest",
    "decisions",
    "equity",
    "evaluate",
    "export",
    "export_dataset",
    "fills",
    "import_dataset",
    "list_datasets",
    "load_dataset",
    "load_run",
    "make_dataset",
    "prove",
    "rejections",
    "report",
    "signals",
    "sweep",
    "trades",
    "train",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("bellmark")
    if name in __all__:
        return getattr(importlib.import_module("bellmark.api"), name)
    raise AttributeError(f"module 'bellmark' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
