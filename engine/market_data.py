"""What training and backtests of a profile share: the tape, its features, the parts of the lane step, the splits."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellmark import features as feature_module
from bellmark import splits, tape
from bellmark.actions import ActionSpace
from bellmark.bars import Bars
from bellmark.codegen import fingerprint
from bellmark.component import plugin_function, settings_of
from bellmark.environment import MarketEnvironment, Windows
from bellmark.errors import DataError, PluginError
from bellmark.features import MarketFeatures, Normalisation
from bellmark.host import Host, host
from bellmark.instrument import Instrument
from bellmark.lane_layout import LanePart, LaneParts
from bellmark.profile import Profile
from bellmark.settings import MarketSettings
from bellmark.tape import Tape


@dataclass(frozen=True)
class MarketData:
    """The compiled data and rules of a profile, without learners."""

    tape: Tape
    features: MarketFeatures
    parts: LaneParts
    space: ActionSpace
    settings: MarketSettings
    splits: splits.Splits
    profile_hash: str
    warnings: list[str] = field(default_factory=list)

    def environment(self, parts: LaneParts, learners: int, lanes: int, episode_bars: int = 0, **more: Any) -> MarketEnvironment:
        """Lanes on this data; `more` are the keywords of MarketEnvironment."""
        return MarketEnvironment(self.tape, self.features, parts, self.space, self.settings, learners, lanes, episode_bars, **more)

    def bars_of(self, split: str) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """Symbols that have bars in a part of the data, and the first and last bar of each (both are points of the equity curve)."""
        window = self.splits[split]
        first_S = np.maximum(window.start_S, self.features.start_S).astype(np.int32)
        last_S = (window.end_S - 1).astype(np.int32)
        symbols = np.flatnonzero(last_S > first_S).astype(np.int32)
        if not symbols.size:
            raise DataError(f"split: the {split} part holds no bar to trade in; it has {int((window.end_S - window.start_S).sum())} bars")
        return symbols, first_S[symbols], last_S[symbols]

    def windows(self, learners: int) -> Windows:
        """The training window, the same for every learner."""
        window = self.splits["train"]
        return Windows(np.tile(window.start_S, (learners, 1)).astype(np.int32), np.tile(window.end_S, (learners, 1)).astype(np.int32))

    def normalisation(self, windows: Windows) -> Normalisation:
        """Mean and scale of every feature over each learner's training window."""
        fitted = feature_module.fit_normalisation(self.features, np.stack([windows.start_LS, windows.end_LS], axis=2).astype(np.int64))
        self.warnings.extend(text for text in fitted.warnings if text not in self.warnings)
        return fitted

    def no_normalisation(self, learners: int) -> Normalisation:
        """Features as they are, for strategies that look at bars alone."""
        shape = (learners, len(self.features.labels))
        return Normalisation(np.zeros(shape, np.float32), np.ones(shape, np.float32), np.zeros(shape, np.bool_), ())

    @property
    def periods_per_year(self) -> float:
        """Bars in a year, for annual figures."""
        return float(self.tape.periods_per_year)

    @property
    def currency(self) -> str:
        """Currency of the accounts."""
        return self.tape.instruments[0].currency

    @property
    def session_text(self) -> str:
        """The session that the number of periods comes from."""
        session = self.tape.instruments[0].session
        if session is not None:
            return session.label
        return "around the clock" if self.tape.session_bar_ST.any() else "one bar a session"


def load_market_data(profile: Profile, plugins: Host | None = None) -> MarketData:
    """Reads the dataset of a profile, compiles the tape and the features, and resolves the lane functions.

    The bars are read anew each time. What is made of them is kept for the last profile, while bars, plugins and their code are the same.
    """
    plugins = plugins or host()
    compiled = read_tape(profile)
    quanta = tuple(instrument.quantum for instrument in compiled.instruments)
    return _cached(_Key(profile, plugins, compiled, (profile.hash, id(plugins), compiled.content_hash, quanta, _code_of(profile))))


@dataclass(frozen=True)
class _Key:
    profile: Profile = field(compare=False)
    plugins: Host = field(compare=False)
    tape: Tape = field(compare=False)
    identity: tuple[Any, ...]


def _code_of(profile: Profile) -> str:
    """A hash over the functions that features and the lane step are compiled from: an edit in a running process counts too."""
    functions = []
    for _, _, instance in profile.components():
        members = {name: member for cls in reversed(type(instance).__mro__) for name, member in vars(cls).items()}
        functions += [members[name].__func__ for name in sorted(members) if isinstance(members[name], staticmethod)]
    return fingerprint(functions)


@lru_cache(maxsize=1)
def _cached(key: _Key) -> MarketData:
    profile, plugins, compiled = key.profile, key.plugins, key.tape
    space = ActionSpace(profile.action.exposures, profile.action.order_types, profile.action.urgencies, profile.action.head)
    _, portfolio = feature_module.split(list(profile.features.items()))
    table = feature_module.assemble(list(profile.features.items()), compiled)
    return MarketData(
        tape=compiled,
        features=table,
        parts=lane_parts(profile, plugins, portfolio),
        space=space,
        settings=profile.market,
        splits=splits.split_tape(compiled, profile.split.train, profile.split.validation, profile.split.embargo_bars),
        profile_hash=profile.hash,
        warnings=[*compiled.notes, *table.notes, *_market_warnings(profile.market, compiled)],
    )


def _market_warnings(settings: MarketSettings, compiled: Tape) -> list[str]:
    """Where the market rules and the data do not say the same: no costs, a limit that unknown volume lifts, bars that are missing."""
    found = []
    costs = ("spread_ticks", "slippage_ticks", "slippage_bps", "fee_per_contract", "fee_bps", "fee_minimum")
    if not any(getattr(settings, name) for name in costs):
        found.append("market: no spread, slippage or fee is set, so results after costs are results without costs")
    for name in ("per_contract", "rate"):
        initial, maintenance = (getattr(settings, f"{kind}_margin_{name}") for kind in ("initial", "maintenance"))
        if maintenance > initial:
            told = f"maintenance_margin_{name} {maintenance:g} is above initial_margin_{name} {initial:g}"
            found.append(f"market: {told}: a position that may be opened may be liquidated at the next open")
    if settings.participation:
        for symbol, length, volume_T in zip(compiled.symbols, compiled.length_S, compiled.volume_ST, strict=True):
            unknown = int(np.count_nonzero(np.isnan(volume_T[:length])))
            if unknown:
                found.append(f"market.participation: {symbol}: {unknown:,} bars of unknown volume have no participation limit")
    if settings.account == "shared":
        every = np.unique(np.concatenate([ts_T[:length] for length, ts_T in zip(compiled.length_S, compiled.ts_ST, strict=True)]))
        for symbol, length in zip(compiled.symbols, compiled.length_S.tolist(), strict=True):
            if length < every.size:
                absent = f"{every.size - length:,} of {every.size:,} stamps have no bar"
                found.append(f"market.account: {symbol}: {absent}; marked at its last price")
    return found


def policy_warnings(settings: MarketSettings) -> tuple[str, ...]:
    """What to say of a policy that was trained under these rules."""
    if settings.same_close:
        return ("market.same_close: the policy was trained on fills at the close that it had just seen; it cannot be expected to trade so",)
    return ()


def read_tape(profile: Profile) -> Tape:
    """The tape of a profile's dataset with the instrument's overrides and a quantum fine enough for the costs."""
    overrides = {info.name: getattr(profile.instrument, info.name) for info in settings_of(type(profile.instrument))}
    pairs = [(bars, with_quantum(instrument.with_overrides(overrides), profile.market)) for bars, instrument in read_bars(profile.data)]
    currencies = list(dict.fromkeys(instrument.currency for _, instrument in pairs))
    if len(currencies) > 1:
        raise DataError(f"data: expected symbols of one currency, found {', '.join(currencies)}: nothing here converts money")
    return tape.compile_tape(pairs)


def with_quantum(instrument: Instrument, settings: MarketSettings) -> Instrument:
    """The instrument with a price quantum fine enough for the costs and distances of the market settings."""
    ticks = [settings.slippage_ticks, *settings.limit_offset_ticks, *settings.ioc_cap_ticks]
    ticks += [settings.stop_loss_ticks, settings.take_profit_ticks, settings.trailing_stop_ticks]
    halves = [settings.spread_ticks, settings.roll_spread_ticks or 0.0]
    return instrument.with_costs(steps=[*ticks, *(value / 2 for value in halves)], slippage_bps=settings.slippage_bps)


def read_bars(dataset: Any) -> list[tuple[Bars, Instrument]]:
    """The bars and instruments that a dataset reads; whatever else it gives or raises is one line that names it."""
    with plugin_function(dataset, "read"):
        found = dataset.read()
    label = f"dataset '{type(dataset).name}': read"
    if not isinstance(found, list | tuple):
        raise PluginError(f"{label}: expected a list of (Bars, Instrument), found {type(found).__name__}")
    for item in found:
        if not (isinstance(item, tuple | list) and len(item) == 2 and isinstance(item[0], Bars) and isinstance(item[1], Instrument)):
            raise PluginError(f"{label}: expected a list of (Bars, Instrument), found in it {type(item).__name__} {str(item)[:60]}")
    return [(bars, instrument) for bars, instrument in found]


def lane_parts(profile: Profile, plugins: Host, portfolio: list[tuple[str, Any]]) -> LaneParts:
    """The components of the lane step with the plugins that brought them."""
    uses = profile.uses

    def part(place: str, kind: str, component: Any) -> LanePart:
        return LanePart(place, component, plugins.entry(kind, uses[place]).plugin)

    return LaneParts(
        sizing=part("sizing", "sizing", profile.sizing),
        execution=part("execution", "execution", profile.execution),
        rewards=tuple(part(f"rewards.{label}", "reward", item) for label, item in profile.rewards.items()),
        masks=tuple(part(f"action_masks.{label}", "action_mask", item) for label, item in profile.action_masks.items()),
        features=tuple(part(f"features.{label}", "feature", item) for label, item in portfolio),
    )
