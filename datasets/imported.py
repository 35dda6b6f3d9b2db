"""Bars of a dataset that `bellmark datasets import` wrote."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from bellmark import clock
from bellmark.bars import Bars, with_funding
from bellmark.component import Dataset, component, setting
from bellmark.datasets import stored
from bellmark.datasets.hours import Hours
from bellmark.datasets.resample import resample
from bellmark.errors import UsageError, did_you_mean, known_list
from bellmark.instrument import Instrument


@component
class Imported(Dataset):
    """Bars that were imported before: a folder with a manifest, made by `bellmark datasets import`.

    The manifest must be unchanged since it was written and every file must have its size; the bytes of the files are not hashed again
    (`bellmark datasets check` does). Longer bars are made first, then splits and dividends are taken out, then funding is put in.
    A dataset in which a split seems not to be taken out warns in every run.
    """

    name: ClassVar[str] = "imported"
    path: str = setting(meaning="folder of the dataset, such as data/es, or its name under data/")
    symbols: tuple[str, ...] = setting((), "symbols to read, in this order; empty = all")
    every: str = setting("", "longer bars to make of the bars, such as 5m, 1h, 1d or session; empty = as they are")
    adjust: Literal["splits", "all", "none"] = setting("splits", "what is taken out of raw prices where the dataset has its actions")

    def read(self) -> list[Any]:
        """Bars and instrument of each symbol."""
        folder = stored.find_dataset(self.path)
        manifest = stored.read_manifest(folder)
        known = list(manifest["symbols"])
        for symbol in self.symbols:
            if symbol not in known:
                raise UsageError(f"data.symbols: {folder} has no symbol '{symbol}'{did_you_mean(symbol, known)}{known_list(known)}")
        return [self._symbol(folder, manifest, symbol) for symbol in self.symbols or known]

    def _symbol(self, folder: Path, manifest: dict[str, Any], symbol: str) -> tuple[Bars, Instrument]:
        bars, instrument = stored.read_symbol(folder, manifest, symbol)
        if self.every:
            base = round(manifest["bar_seconds"] * clock.SECOND)
            bars, cut = resample(bars, self.every, Hours(instrument), base, "data.every")
            if cut:
                bars = _noted(bars, f"{symbol}: {cut} bars at the end were left out: their span of {self.every} is not over")
        if "actions" in manifest:
            bars, instrument = _adjusted(folder, manifest, bars, instrument, self.adjust)
        if "funding" in manifest:
            bars = _funded(folder, manifest, bars)
        return bars, instrument


def _noted(bars: Bars, text: str) -> Bars:
    return replace(bars, notes=(*bars.notes, text))


def _funded(folder: Path, manifest: dict[str, Any], bars: Bars) -> Bars:
    import polars as pl

    (path,) = stored.checked_files(folder, [manifest["funding"]])
    frame = pl.read_parquet(path, glob=False).filter(pl.col("symbol") == bars.symbol)
    if not frame.height:
        return bars
    mark = frame["mark"].fill_null(float("nan")).to_numpy() if "mark" in frame.columns else None
    return with_funding(bars, frame["ts"].to_numpy().astype(np.int64), frame["rate"].to_numpy(), mark)


def _adjusted(
    folder: Path, manifest: dict[str, Any], bars: Bars, instrument: Instrument, adjust: Literal["splits", "all", "none"]
) -> tuple[Bars, Instrument]:
    import polars as pl

    from bellmark.datasets import actions

    (path,) = stored.checked_files(folder, [manifest["actions"]])
    table = pl.read_parquet(path, glob=False).filter(pl.col("symbol") == bars.symbol)
    found = actions.from_columns(table.to_dict(as_series=False))
    return actions.apply(bars, instrument, found, adjust=adjust, basis=manifest["price_adjustment"])
