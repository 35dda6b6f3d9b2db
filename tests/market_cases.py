"""Small markets for tests: bars by hand or at random, and the MarketData of them with chosen rules."""

import dataclasses
from types import SimpleNamespace

import numpy as np

from bellmark.actions import ActionSpace
from bellmark.bars import Bars
from bellmark.component import make
from bellmark.features import assemble, split
from bellmark.host import host
from bellmark.instrument import Instrument
from bellmark.lane_layout import LanePart, LaneParts
from bellmark.market_data import MarketData, with_quantum
from bellmark.settings import MarketSettings
from bellmark.tape import compile_tape

ALL_RULES = ("orders", "participation", "protect", "trail", "maintenance")
DAY = 86_400_000_000_000


def bars_of(open_T, high_T=None, low_T=None, close_T=None, volume_T=None, symbol="X", start=0, step=DAY):
    """Bars of one symbol; high and low are made to fit where they are not given."""
    open_T = np.asarray(open_T, float)
    close_T = open_T if close_T is None else np.asarray(close_T, float)
    high_T = np.maximum(open_T, close_T) if high_T is None else np.asarray(high_T, float)
    low_T = np.minimum(open_T, close_T) if low_T is None else np.asarray(low_T, float)
    volume_T = np.full(len(open_T), 1000.0) if volume_T is None else np.asarray(volume_T, float)
    stamps = start + step * np.arange(1, len(open_T) + 1)
    return Bars(symbol=symbol, ts_event=stamps, open=open_T, high=high_T, low=low_T, close=close_T, volume=volume_T)


def random_bars(count, seed=0, scale=0.01, first=100.0, symbol="X", tick=0.01, **how):
    """A geometric random walk on a tick grid with gaps between bars."""
    rng = np.random.default_rng(seed)
    close_T = first * np.exp(np.cumsum(rng.standard_normal(count) * scale))
    open_T = np.concatenate([[first], close_T[:-1]]) * np.exp(rng.standard_normal(count) * scale / 3)
    spread_T = np.abs(rng.standard_normal((2, count))) * scale / 2
    high_T = np.maximum(open_T, close_T) * (1 + spread_T[0])
    low_T = np.minimum(open_T, close_T) / (1 + spread_T[1])
    grid = [np.maximum(np.round(price_T / tick), 1) * tick for price_T in (open_T, high_T, low_T, close_T)]
    return bars_of(*grid, symbol=symbol, **how)


def market_data(
    bars, instrument=None, *, sizing=("fixed_lots", {}), execution=("bar", {}), rewards=(), masks=(), features=(), space=None,
    start_bar=0, rules=(), **market,
):  # fmt: skip
    """The MarketData of bars (or a list of them) and rules; the test part is everything from `start_bar` on.

    rules: of the lane step, compiled in whether or not the settings use them; "all" are those that numbers alone turn on and off. Tests
    that share them share a kernel.
    """
    items = bars if isinstance(bars, list) else [bars]
    base = instrument or Instrument("X", tick_size=0.01)
    settings = make(MarketSettings, market, "market")
    pairs = [(item, with_quantum(dataclasses.replace(base, symbol=item.symbol), settings)) for item in items]
    compiled = compile_tape(pairs, cached=False)

    def part(kind, label, named):
        name, values = named
        return LanePart(label, make(host().get(kind, name), values, label), "builtin_plugins")

    made = [(f"{name}_{number}", make(host().get("feature", name), values, name)) for number, (name, values) in enumerate(features)]
    market_features, portfolio = split(made)
    parts = LaneParts(
        sizing=part("sizing", "sizing", sizing),
        execution=part("execution", "execution", execution),
        rewards=tuple(part("reward", f"rewards.{named[0]}", named) for named in rewards),
        masks=tuple(part("action_mask", f"action_masks.{named[0]}", named) for named in masks),
        features=tuple(LanePart(f"features.{label}", item, "builtin_plugins") for label, item in portfolio),
        rules=frozenset(ALL_RULES if rules == "all" else rules),
    )
    length_S = compiled.length_S
    test = SimpleNamespace(start_S=np.full(len(items), start_bar), end_S=length_S)
    windows = {name: test for name in ("train", "validation", "test")}
    return MarketData(
        tape=compiled,
        features=assemble(market_features, compiled),
        parts=parts,
        space=space or ActionSpace((-1.0, 0.0, 1.0)),
        settings=settings,
        splits=windows,
        profile_hash="",
    )
