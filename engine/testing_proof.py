"""The proof that a strategy with its sizing and execution, or everything that a policy learns from and trades by, does not look ahead.

Everything after a moment becomes noise; what was seen, decided, ordered, held and owned up to that moment must be the same bits. That is
done at several moments, each with prices that jump up and prices that jump down. It cannot see what a file says that was written with
knowledge of the future (see the strategy `signals`), nor a look ahead that changes nothing at any of these moments.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellmark import clock
from bellmark.assembly import UniformRandom
from bellmark.backtester import PolicyRunner, run_strategy
from bellmark.component import Component, Feature
from bellmark.errors import DataError, PluginError
from bellmark.features import MarketFeatures, split
from bellmark.lane_layout import LanePart
from bellmark.market_data import MarketData
from bellmark.results import LaneResult
from bellmark.splits import Splits, Window
from bellmark.tape import ARRAYS, Tape
from bellmark.testing_market import TooFewBarsError, cut, prove_no_look_ahead, with_future_noise

CUTS = 8
_PADDING = 512  # bars behind the last: a function that reads so far beyond it reads noise, and not what lies behind in memory
_FEATURE_BARS = 20_000  # of a symbol, for features: their functions are the same at every bar
_PLAYED_BARS = 2_000  # of a symbol, for random actions, which are played bar by bar
_PRICES = ("open", "high", "low", "close")


def prove(
    data: MarketData,
    strategy: Component | None = None,
    features: Sequence[tuple[str, Feature]] = (),
    *,
    cuts: int = CUTS,
    seed: int = 0,
    plugin: str = "",
) -> list[str]:
    """Proves the market features among `features` (label, component; as in a profile), and the strategy on the data: one line each.

    Without a strategy: everything else that a policy learns from and trades by, with actions at random. A line that says "not proven" names
    what was left out and why. plugin: that brought the strategy, for errors. PluginError: the first component that looks ahead.
    """
    market, _ = split(features)
    lines = [_prove_feature(label, feature, data.tape, cuts, seed) for label, feature in market]
    if strategy is None:
        return [*lines, _prove_policy(data, cuts, seed)]
    moments = prove_strategy_has_no_look_ahead(strategy, data, cuts=cuts, seed=seed, plugin=plugin)
    name = type(strategy).name
    lines.append(f"strategy {name}: no look-ahead: the same decisions, orders, positions and equity up to {moments} cuts")
    unused = _learned_from(data)
    return [*lines, f"{unused}: not proven: a strategy uses none of it; prove a run that was trained on it"] if unused else lines


def _learned_from(data: MarketData) -> str:
    """The portfolio features, masks and rewards of the data by their labels."""
    parts = {"portfolio feature": data.parts.features, "action mask": data.parts.masks, "reward": data.parts.rewards}
    return ", ".join(f"{kind} {_label(part)}" for kind, members in parts.items() for part in members)


def _label(part: LanePart) -> str:
    return part.label.rpartition(".")[2]


def _prove_policy(data: MarketData, cuts: int, seed: int) -> str:
    name = ", ".join(text for text in ("actions at random", _learned_from(data)) if text)
    try:
        moments = prove_policies_have_no_look_ahead(data, cuts=cuts, seed=seed)
    except TooFewBarsError as error:
        return f"{name}: not proven: {error}"
    return f"{name}: no look-ahead: the same observations, legal actions, rewards, orders, positions and equity up to {moments} cuts"


def _prove_feature(label: str, feature: Feature, tape: Tape, cuts: int, seed: int) -> str:
    proven, short = [], []
    for s, symbol in enumerate(tape.symbols):
        one = cut(_symbol(tape, s), 0, min(int(tape.length_S[s]), _FEATURE_BARS))
        try:
            prove_no_look_ahead(feature, one, cuts=cuts, seed=seed)
            proven.append(symbol)
        except (DataError, TooFewBarsError):  # fewer bars than the feature needs
            short.append(symbol)
    left_out = f"; too few bars to tell: {', '.join(short)}" if short else ""
    if not proven:
        return f"feature {label}: not proven{left_out}"
    return f"feature {label}: no look-ahead: the same values up to {cuts} cuts of {', '.join(proven)}{left_out}"


def prove_strategy_has_no_look_ahead(strategy: Component, data: MarketData, *, cuts: int = CUTS, seed: int = 0, plugin: str = "") -> int:
    """Proves on all bars of the data that nothing up to a moment depends on bars after it; returns the number of moments.

    Half of the moments are spread evenly, half are bars in which the position changes. Compared: the exposure decided, the lots ordered,
    the position and the equity of every account at every point up to the moment, bit by bit. PluginError names the strategy (or its
    sizing or execution, where these differ first), symbol, bar and both values. UsageError where the data are too short.
    """
    whole = _whole(data)

    def play(tape: Tape) -> list[_Played]:
        result = run_strategy(replace(whole, tape=tape), strategy, plugin=plugin)
        return [_Played(lane) for lane in result.lanes]

    return _prove(play, whole, f" of strategy '{type(strategy).name}'", f"strategy '{type(strategy).name}'", cuts, seed)


def prove_policies_have_no_look_ahead(data: MarketData, *, cuts: int = CUTS, seed: int = 0) -> int:
    """Proves what every policy on the data stands on, with random legal actions on the first bars; returns the number of moments.

    As `prove_strategy_has_no_look_ahead`; compared, besides, are the portfolio features, which actions are legal, and the rewards up to the
    moment. PluginError names the component: of several rewards or masks all of them, since only what they give together is known.
    """
    whole = _whole(_first_bars(data))

    def play(tape: Tape) -> list[_Played]:
        data = replace(whole, tape=tape)
        runner = PolicyRunner(data, "test", 1, data.no_normalisation(1), lambda lanes: UniformRandom([seed], data.space.noop))
        registry = runner.registry
        kept: list[tuple[NDArray[Any], ...]] = []

        def keep(k: int) -> None:
            kept.append(tuple(registry[name][0].copy() for name in ("portfolio_LNP", "allowed_LNA", "reward_LN")))

        lanes = runner.results(runner.run(keep), [None])
        portfolio_TNP, allowed_TNA, reward_TN = (np.stack(arrays) for arrays in zip(*kept, strict=True))
        return [
            _Played(lane, portfolio_TNP[:, n].T.copy(), allowed_TNA[:, n].T.copy(), reward_TN[:, n][None].copy())
            for n, lane in enumerate(lanes)
        ]

    return _prove(play, whole, "", "what acts at random", cuts, seed)


@dataclass(frozen=True)
class _Played:
    """An account, and of a policy what it saw: portfolio features (P, T), legal actions (A, T), rewards (1, T) of the bar after T."""

    lane: LaneResult
    portfolio_PT: NDArray[Any] | None = None
    allowed_AT: NDArray[Any] | None = None
    reward_T: NDArray[Any] | None = None


def _prove(play: Callable[[Tape], list[_Played]], whole: MarketData, whose: str, decider: str, cuts: int, seed: int) -> int:
    base = play(whole.tape)
    moments = _moments([played.lane for played in base], cuts)
    if not moments:
        found = base[0].lane.stamp_T.size
        raise TooFewBarsError(f"{decider}: expected data of at least 3 bars, found {found}")
    for number, moment in enumerate(moments):
        for tape in _noisy(whole.tape, moment, seed + number):
            for one, other in zip(base, play(tape), strict=True):
                _compare(one, other, whole, whose, decider, moment)
    return len(moments)


def _first_bars(data: MarketData) -> MarketData:
    """The data up to some bars after every feature is known."""
    bars = int(data.features.start_S[data.features.start_S < data.tape.length_S].max(initial=0)) + _PLAYED_BARS
    tape = data.tape
    if tape.close_ST.shape[1] <= bars:
        return data
    arrays: dict[str, Any] = {f"{name}_ST": getattr(tape, f"{name}_ST")[:, :bars] for name in ARRAYS}
    extra = {name: array_ST[:, :bars] for name, array_ST in tape.extra_ST.items()}
    return replace(data, tape=replace(tape, length_S=np.minimum(tape.length_S, bars), extra_ST=extra, **arrays))


def _whole(data: MarketData) -> MarketData:
    """The data with all bars as one part, without features, and with room behind the last bar."""
    tape = _padded(data.tape)
    symbols = len(tape.symbols)
    window = Window("all", np.zeros(symbols, np.int64), tape.length_S, int(tape.ts_ST[:, 0].min()), int(tape.ts_ST.max()))
    features = MarketFeatures((), np.zeros((*tape.close_ST.shape, 0), np.float32), data.features.start_S)
    return replace(data, tape=tape, features=features, splits=Splits(window, window, window), warnings=[])


def _padded(tape: Tape) -> Tape:
    more = ((0, 0), (0, _PADDING))
    arrays: dict[str, Any] = {f"{name}_ST": np.pad(getattr(tape, f"{name}_ST"), more) for name in ARRAYS}
    # The largest price limits the size of orders: it must be the same whatever the noise, which stays below 3 times the level and its walk.
    largest = max(int(np.abs(array).max()) for name, array in arrays.items() if name[:-3] in _PRICES)
    arrays["high_ST"][:, -1] = 4 * max(largest, 1000) + 16 * arrays["high_ST"].shape[1]
    return replace(tape, extra_ST={name: np.pad(array, more) for name, array in tape.extra_ST.items()}, **arrays)


def _moments(lanes: Sequence[LaneResult], cuts: int) -> list[int]:
    """Stamps (UTC ns) up to which all is compared: points of the run before its last, evenly and where the position changes."""
    points = np.unique(np.concatenate([lane.stamp_T for lane in lanes]))[:-1]
    if points.size < 2:
        return []
    changes = [lane.stamp_T[1:][np.any(np.diff(_of(lane.position_ST), axis=1) != 0, axis=0)] for lane in lanes]
    changed = np.intersect1d(np.concatenate(changes), points)
    even = points[np.linspace(0, points.size - 1, max(cuts - cuts // 2, 1)).astype(np.int64)]
    chosen = changed[np.linspace(0, changed.size - 1, cuts // 2).astype(np.int64)] if changed.size else points[:0]
    return [int(moment) for moment in np.unique(np.concatenate([even, chosen]))]


def _noisy(tape: Tape, moment: int, seed: int) -> Iterator[Tape]:
    """The tape with noise in every bar after a moment, once above the last price and once below it."""
    last_S = [int(np.searchsorted(tape.ts_ST[s, :length], moment, side="right")) - 1 for s, length in enumerate(tape.length_S)]
    high_ST = tape.high_ST[:, -1]
    for below in (False, True):
        rows = []
        for s, bar in enumerate(last_S):
            row = with_future_noise(_symbol(tape, s), bar, seed=seed * len(last_S) + s)
            rows.append(_lower(row, bar) if below else row)
        arrays: dict[str, Any] = {f"{name}_ST": np.concatenate([getattr(row, f"{name}_ST") for row in rows]) for name in ARRAYS}
        arrays["high_ST"][:, -1] = high_ST
        yield replace(tape, extra_ST={name: np.concatenate([row.extra_ST[name] for row in rows]) for name in tape.extra_ST}, **arrays)


def _lower(row: Tape, bar: int) -> Tape:
    """Noise that lies above the last price moved to a third of it, and not below 1 quantum; quotes and marks with it."""
    level = int(row.close_ST[0, max(bar, 0)])
    shift = int(row.close_ST[0, bar + 1]) - max(level // 3, 20)

    def moved(array_ST: NDArray[Any]) -> NDArray[Any]:
        array_ST = array_ST.copy()
        array_ST[:, bar + 1 :] = np.maximum(array_ST[:, bar + 1 :] - shift, 1)
        return array_ST

    prices: dict[str, Any] = {f"{name}_ST": moved(getattr(row, f"{name}_ST")) for name in _PRICES}
    quotes = {name: moved(array) for name, array in row.extra_ST.items() if name.startswith(("bid_", "ask_"))}
    for name in ("funding_mark", "roll_price"):
        if name in row.extra_ST:  # 0 stands for none
            quotes[name] = np.where(row.extra_ST[name] != 0, moved(row.extra_ST[name]), 0)
    return replace(row, extra_ST=row.extra_ST | quotes, **prices)


def _symbol(tape: Tape, s: int) -> Tape:
    """One symbol of a tape, as long as it was."""
    rows = {field.name: getattr(tape, field.name)[s : s + 1] for field in dataclasses.fields(tape) if field.name.endswith(("_ST", "_S"))
            and field.name != "extra_ST"}  # fmt: skip
    extra = {name: array[s : s + 1] for name, array in tape.extra_ST.items()}
    return replace(tape, symbols=tape.symbols[s : s + 1], instruments=tape.instruments[s : s + 1], extra_ST=extra, **rows)


@dataclass(frozen=True)
class _Check:
    """Values by point that must agree in their first `count` points. A row is a symbol, or what `rows` names."""

    who: str
    what: str
    before: NDArray[Any]
    after: NDArray[Any]
    count: int
    shift: int = 0  # from the place of a value to the point at which it is known
    rows: tuple[str, ...] = ()

    def first(self) -> tuple[int, int] | None:
        """Point and row of the first value that differs in a bit."""
        before, after = (np.ascontiguousarray(array[:, : self.count]) for array in (self.before, self.after))
        bits = np.dtype(f"u{before.dtype.itemsize}")
        changed = np.argwhere((before.view(bits) != after.view(bits)).T)
        return (int(changed[0, 0]) + self.shift, int(changed[0, 1])) if changed.size else None


def _compare(one: _Played, other: _Played, data: MarketData, whose: str, decider: str, moment: int) -> None:
    checks = _checks(one, other, data, whose, decider, int(np.searchsorted(one.lane.stamp_T, moment, side="right")))
    found = [(point, place, row) for place, check in enumerate(checks) for point, row in filter(None, [check.first()])]
    if not found:
        return
    point, place, row = min(found)  # the earliest point; there, a cause comes before what follows from it
    check, lane = checks[place], one.lane
    symbol = lane.symbols[0] if check.rows else lane.symbols[row]
    who = f"feature '{check.rows[row]}'" if check.rows and not check.who else check.who
    raise PluginError(
        f"{who} looks ahead: bars after {clock.text(moment)} changed its {check.what} of {symbol} at "
        f"{_place(data.tape, symbol, int(lane.stamp_T[point]))} from {check.before[row, point - check.shift]} "
        f"to {check.after[row, point - check.shift]}"
    )


def _checks(one: _Played, other: _Played, data: MarketData, whose: str, decider: str, points: int) -> list[_Check]:
    """What is compared, in the order in which it comes about at a point: the bar's fills, what is seen of them, the decision on it."""
    settings, parts = data.settings, data.parts
    # An order is known at its decision unless the bar in which it works says how large it is.
    late = 0 if settings.same_close or (settings.latency_bars == 1 and settings.size_at == "close") else settings.latency_bars
    sizing, execution = (f"{part.component.kind} '{type(part.component).name}'{whose}" for part in (parts.sizing, parts.execution))
    a, b = one.lane, other.lane
    fills = [
        _Check(execution, "position", _of(a.position_ST), _of(b.position_ST), points),
        _Check(execution, "equity", a.equity_T[None], b.equity_T[None], points),
    ]
    decided = [
        _Check(decider, "decision", _of(a.decided_ST), _of(b.decided_ST), points),
        _Check(sizing, "order", _of(a.order_ST), _of(b.order_ST), max(points - late, 0)),
    ]
    seen = []
    if one.portfolio_PT is not None:
        rewards, masks = (" and ".join(f"{part.component.kind.replace('_', ' ')} '{_label(part)}'" for part in members)
                          for members in (parts.rewards, parts.masks))  # fmt: skip
        actions = tuple(data.space.label(action) for action in range(data.space.A))
        labels = tuple(_label(part) for part in parts.features)
        seen = [
            _Check(rewards, "reward", _of(one.reward_T), _of(other.reward_T), max(points - 1, 0), shift=1),
            _Check("", "value", one.portfolio_PT, _of(other.portfolio_PT), points, rows=labels),
            _Check(masks, "legal actions", _of(one.allowed_AT), _of(other.allowed_AT), points, rows=actions),
        ]
    # At its own close an order is decided before it fills.
    return [*seen[1:], *decided, *fills, *seen[:1]] if settings.same_close else [*fills, *seen, *decided]


def _of(array: NDArray[Any] | None) -> NDArray[Any]:
    assert array is not None, "a strategy's result has a record of its decisions"
    return np.ascontiguousarray(array)


def _place(tape: Tape, symbol: str, stamp: int) -> str:
    s = tape.symbols.index(symbol)
    return f"bar {np.searchsorted(tape.ts_ST[s, : tape.length_S[s]], stamp)} ({clock.text(stamp)})"
