"""The proof itself: honest rules pass it on every kind of account, and cheats of many kinds do not."""

import dataclasses
from typing import Any, ClassVar

import numpy as np
import pytest
from market_cases import bars_of, market_data, random_bars

from bellmark import testing_proof
from bellmark.component import ActionMask, Execution, Feature, Reward, Sizing, Strategy, component, make
from bellmark.errors import PluginError, UsageError
from bellmark.host import host
from bellmark.lane_layout import LanePart
from bellmark.market import FILLED
from bellmark.testing_proof import prove, prove_policies_have_no_look_ahead, prove_strategy_has_no_look_ahead

pytestmark = pytest.mark.cpu


def strategy(name: str, **values: Any) -> Any:
    return make(host().get("strategy", name), values, "rule")


@component
class NextClose(Strategy):
    """Long if the next close is higher."""

    name: ClassVar[str] = "next_close"

    @staticmethod
    def decide(t, close_T):
        return 1.0 if close_T[t + 1] > close_T[t] else 0.0


@component
class NextLow(Strategy):
    """Leaves before a bar that falls far below its open."""

    name: ClassVar[str] = "next_low"

    @staticmethod
    def decide(t, open_T, low_T):
        return 0.0 if low_T[t + 1] * 1.02 < open_T[t + 1] else 1.0


@component
class NextAsk(Strategy):
    """Long if the next bar's ask opens above the close."""

    name: ClassVar[str] = "next_ask"

    @staticmethod
    def decide(t, ask_open_T, close_T):
        return 1.0 if ask_open_T[t + 1] > close_T[t] else 0.0


@component
class OncePeeking(Strategy):
    """Looks ahead at its own changes of position only: in one bar of twenty."""

    name: ClassVar[str] = "once_peeking"
    state: ClassVar[dict[str, str]] = {"held": "float64"}

    @staticmethod
    def decide(t, close_T, held):
        if t % 20 == 0:
            held = 1.0 if close_T[t + 1] > close_T[t] else -1.0
        return held, held


@component
class SmallPeek(Strategy):
    """An honest exposure plus a term of the next return that no chart would show."""

    name: ClassVar[str] = "small_peek"

    @staticmethod
    def decide(t, close_T):
        return 0.5 + 1e-12 * (close_T[t + 1] - close_T[t])


@component
class Normalised(Strategy):
    """Its series is normalised over all bars: no index ever reads beyond t."""

    name: ClassVar[str] = "normalised"
    series: ClassVar[dict[str, str]] = {"score": "float64"}

    def compute_series(self, tape: Any) -> dict[str, Any]:
        close_ST = tape.close_ST.astype(float)
        length = int(tape.length_S.min())
        inside_ST = close_ST[:, :length]
        return {"score": (close_ST - inside_ST.mean(axis=1, keepdims=True)) / inside_ST.std(axis=1, keepdims=True)}

    @staticmethod
    def decide(t, score_T):
        return 1.0 if score_T[t] > 0.0 else 0.0


@component
class ShiftedSeries(Strategy):
    """Its series stands one bar early."""

    name: ClassVar[str] = "shifted_series"
    series: ClassVar[dict[str, str]] = {"change": "int64"}

    def compute_series(self, tape: Any) -> dict[str, Any]:
        return {"change": np.diff(tape.close_ST, axis=1, append=tape.close_ST[:, -1:])}

    @staticmethod
    def decide(t, change_T):
        return 1.0 if change_T[t] > 0 else 0.0


@component
class WrapsAround(Strategy):
    """Reads bars before the first, which are the last ones."""

    name: ClassVar[str] = "wraps_around"

    @staticmethod
    def decide(t, close_T):
        return 1.0 if close_T[t] > close_T[t - 600] else 0.0


@component
class SizedByTheNextBar(Sizing):
    """More lots before a rise."""

    name: ClassVar[str] = "sized_by_the_next_bar"

    @staticmethod
    def target(t, exposure, close_T):
        if exposure == 0.0:
            return 0
        return 2 if close_T[t + 1] > close_T[t] else 1


@component
class SizedByAllBars(Sizing):
    """Volatility over all bars."""

    name: ClassVar[str] = "sized_by_all_bars"
    series: ClassVar[dict[str, str]] = {"size": "float64"}

    def compute_series(self, tape: Any) -> dict[str, Any]:
        spread = np.std(np.diff(tape.close_ST.astype(float), axis=1), axis=1, keepdims=True)
        return {"size": np.broadcast_to(1e6 / spread, tape.close_ST.shape).copy()}

    @staticmethod
    def target(t, exposure, size_T):
        return int(exposure * size_T[t])


@component
class FillsAtTheBestOfTwoBars(Execution):
    """Waits for a better open without saying so."""

    name: ClassVar[str] = "best_of_two_bars"
    within_bar: ClassVar[bool] = False

    @staticmethod
    def fill(t, open_T, order_lots):
        price = min(open_T[t], open_T[t + 1]) if order_lots > 0 else max(open_T[t], open_T[t + 1])
        return order_lots, price, 0, 0, FILLED


CHEATS = [NextClose, NextLow, OncePeeking, SmallPeek, Normalised, ShiftedSeries, WrapsAround]


def quoted(bars: Any) -> Any:
    columns = {}
    for side, shift in (("bid", -0.02), ("ask", 0.02)):
        for part in ("open", "high", "low", "close"):
            columns[side if part == "close" else f"{side}_{part}"] = np.round(getattr(bars, part) + shift, 2)
    return dataclasses.replace(bars, **columns)


@pytest.mark.parametrize("cheat", [CHEATS[0], *(pytest.param(one, marks=pytest.mark.slow) for one in CHEATS[1:])], ids=lambda cls: cls.name)
def test_a_strategy_that_looks_ahead_is_caught_with_its_name_bar_and_values(cheat):
    data = market_data(random_bars(400, seed=2))
    pattern = rf"^strategy '{cheat.name}' looks ahead: bars after \S+Z changed its decision of X at bar \d+ \(\S+Z\) from \S+ to \S+$"
    with pytest.raises(PluginError, match=pattern):
        prove_strategy_has_no_look_ahead(cheat(), data)


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, 4, 5, 8])
@pytest.mark.parametrize("cheat", [NextClose, ShiftedSeries], ids=lambda cls: cls.name)
def test_reading_beyond_the_last_bar_of_short_data_is_caught_and_crashes_nothing(cheat, count):
    with pytest.raises(PluginError, match=f"strategy '{cheat.name}' looks ahead"):
        prove_strategy_has_no_look_ahead(cheat(), market_data(random_bars(count, seed=1)))


@pytest.mark.slow
def test_a_look_at_the_next_quote_is_caught():
    data = market_data(quoted(random_bars(300, seed=4)), execution=("bar_quotes", {}))
    with pytest.raises(PluginError, match="strategy 'next_ask' looks ahead"):
        prove_strategy_has_no_look_ahead(NextAsk(), data)


@pytest.mark.slow
@pytest.mark.parametrize("cheat", [SizedByTheNextBar, SizedByAllBars], ids=lambda cls: cls.name)
def test_a_sizing_that_looks_ahead_is_named(cheat):
    data = market_data(random_bars(300, seed=5))
    parts = dataclasses.replace(data.parts, sizing=LanePart("sizing", cheat(), "mine"))
    with pytest.raises(PluginError, match=f"^sizing '{cheat.name}' of strategy 'random' looks ahead: .* changed its order of X at bar"):
        prove_strategy_has_no_look_ahead(strategy("random", change_probability=0.5), dataclasses.replace(data, parts=parts))


def test_an_execution_that_looks_ahead_is_named():
    data = market_data(random_bars(300, seed=6))
    parts = dataclasses.replace(data.parts, execution=LanePart("execution", FillsAtTheBestOfTwoBars(), "mine"))
    with pytest.raises(PluginError, match=r"^execution 'best_of_two_bars' of strategy 'random' looks ahead: .* changed its equity of X at"):
        prove_strategy_has_no_look_ahead(strategy("random", change_probability=0.2), dataclasses.replace(data, parts=parts))


HONEST = [
    ("bollinger_reversion", {"window": 6, "entry_deviations": 1.5}), ("buy_and_hold", {}), ("donchian_breakout", {"entry": 8, "exit": 4}),
    ("ema_cross", {"fast": 3, "slow": 8}), ("flat", {}), ("no_trade_band", {}), ("random", {}), ("rsi_reversion", {"window": 4}),
    ("sma_cross", {"fast": 3, "slow": 8}), ("time_series_momentum", {"window": 10}), ("volatility_target", {"window": 8, "target": 0.2}),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "values"), [pytest.param(*case, marks=() if case[0] == "donchian_breakout" else pytest.mark.slow) for case in HONEST]
)
def test_every_built_in_strategy_passes(name, values):
    data = market_data(random_bars(260, seed=7), sizing=("volatility_target", {"window": 10}))
    assert prove_strategy_has_no_look_ahead(strategy(name, **values), data, cuts=4) >= 2


@pytest.mark.slow
def test_signals_pass_and_what_their_author_knew_is_not_seen(tmp_path):
    bars = random_bars(60, seed=7)
    path = tmp_path / "signals.csv"
    rows = [f"{ts},X,{1 if bars.close[t + 1] > bars.close[t] else -1}" for t, ts in enumerate(bars.ts_event[:-1])]
    # Daily bars begin in 1970; signals are refused before 1980.
    bars = dataclasses.replace(bars, ts_event=bars.ts_event + 20 * 365 * 86_400_000_000_000)
    rows = [f"{bars.ts_event[t]},{row.split(',', 1)[1]}" for t, row in enumerate(rows)]
    path.write_text("ts,symbol,exposure\n" + "\n".join(rows) + "\n")
    assert prove_strategy_has_no_look_ahead(strategy("signals", path=str(path)), market_data(bars), cuts=4) >= 2


RULES: dict[str, dict[str, Any]] = {
    "latency": {"latency_bars": 3},
    "sized at the fill": {"size_at": "fill"},
    "at the same close": {"same_close": True},
    "stops": {"stop_loss": 0.02, "take_profit": 0.03, "trailing_stop": 0.04, "resize": "always"},
    "participation and margin": {
        "participation": (0.001, 0.002, 0.003), "initial_margin_rate": 0.5, "maintenance_margin_rate": 0.4, "unaffordable": "cut",
    },
    "closed at the end": {"close_at_end": True, "fee_bps": 2.0, "spread_ticks": 2.0},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "rules", [pytest.param(rules, id=name, marks=() if name == "latency" else pytest.mark.slow) for name, rules in RULES.items()]
)
def test_honest_rules_pass_under_every_market_rule(rules):
    data = market_data(random_bars(260, seed=8), sizing=("equity_fraction", {"fraction": 0.9}), **rules)
    assert prove_strategy_has_no_look_ahead(strategy("random", change_probability=0.3), data, cuts=6) >= 4


@pytest.mark.slow
def test_quotes_halts_funding_and_rolls_pass():
    bars = quoted(random_bars(200, seed=9))
    every = np.arange(200)
    bars = dataclasses.replace(
        bars, halted=every % 17 == 5, funding_rate=np.where(every % 8 == 0, 1e-4, np.nan),
        funding_mark=np.where(every % 8 == 0, bars.close, np.nan), roll_price=np.where(every % 50 == 49, bars.close + 1.0, np.nan),
    )  # fmt: skip
    data = market_data(bars, execution=("bar_quotes", {}))
    assert prove_strategy_has_no_look_ahead(strategy("random", change_probability=0.3), data, cuts=6) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("account", ["per_symbol", "shared"])
def test_symbols_of_different_times_are_cut_at_one_moment(account):
    hour = 3_600_000_000_000
    early = random_bars(120, seed=1, symbol="A", step=hour)
    late = random_bars(60, seed=2, symbol="B", step=2 * hour, start=50 * hour)
    data = market_data([early, late], account=account, sizing=("equity_fraction", {}))
    assert prove_strategy_has_no_look_ahead(strategy("random", change_probability=0.4), data) >= 4
    with pytest.raises(PluginError, match="strategy 'next_close' looks ahead"):
        prove_strategy_has_no_look_ahead(NextClose(), data)


def test_a_size_near_the_limit_of_the_accounts_is_no_look_ahead():
    # The noise is three times as high, and at that price so many lots would not fit into int64.
    data = market_data(bars_of(100.0 + np.arange(60) % 5), sizing=("fixed_lots", {"lots": 5_000_000}), start_equity=4e9)
    assert prove_strategy_has_no_look_ahead(strategy("random", change_probability=0.5), data, cuts=4) >= 2


def test_data_of_two_bars_are_too_short():
    with pytest.raises(UsageError, match="strategy 'flat': expected data of at least 3 bars, found 2"):
        prove_strategy_has_no_look_ahead(strategy("flat"), market_data(bars_of([1.0, 2.0])))


# ---- prove ---------------------------------------------------------------------------------------------------------------------------


@component
class NextReturn(Feature):
    """The next return as a feature."""

    name: ClassVar[str] = "next_return"

    @staticmethod
    def row(t, close_T):
        return float(close_T[t + 1] - close_T[t]) if t + 1 < close_T.shape[0] else 0.0


def feature(name: str, **values: Any) -> Any:
    return make(host().get("feature", name), values, "feature")


def test_prove_says_one_line_of_each_market_feature_and_the_strategy():
    data = market_data([random_bars(300, seed=1, symbol="A"), random_bars(20, seed=2, symbol="B")])
    features = [("fast", feature("log_return")), ("held", feature("position_exposure")), ("slow", feature("log_return", window=30))]
    assert prove(data, strategy("flat"), features, cuts=4) == [
        "feature fast: no look-ahead: the same values up to 4 cuts of A, B",
        "feature slow: no look-ahead: the same values up to 4 cuts of A; too few bars to tell: B",
        "strategy flat: no look-ahead: the same decisions, orders, positions and equity up to 2 cuts",
    ]


def test_prove_names_the_feature_that_looks_ahead():
    data = market_data(random_bars(100, seed=1))
    with pytest.raises(PluginError, match="feature 'next_return' looks ahead: bars after"):
        prove(data, None, [("peek", NextReturn())])


def test_a_feature_that_cannot_be_computed_is_not_said_to_have_too_few_bars():
    with pytest.raises(UsageError, match="timeframe"):
        prove(market_data(random_bars(100, seed=1)), None, [("odd", feature("log_return", timeframe="7x"))])


def test_an_error_names_the_plugin_that_brought_the_strategy():
    @component
    class Misspelt(Strategy):
        """Asks for an argument that nothing gives."""

        name: ClassVar[str] = "misspelt"

        @staticmethod
        def decide(t, clsoe_T):
            return 1.0

    data = market_data(random_bars(50, seed=1))
    with pytest.raises(PluginError, match="^plugin 'mine': strategy 'misspelt'"):
        prove(data, Misspelt(), plugin="mine")
    with pytest.raises(PluginError, match=f"^plugin '{__name__}': strategy 'misspelt'"):
        prove_strategy_has_no_look_ahead(Misspelt(), data)


# ---- what a policy learns from and trades by -----------------------------------------------------------------------------------------


@component
class HoldsTheNextBar(Feature):
    """The position times the next change."""

    name: ClassVar[str] = "holds_the_next_bar"

    @staticmethod
    def lane(t, close_T, position):
        return float(position * (close_T[t + 1] - close_T[t]))


@component
class RewardOfTheBarAfter(Reward):
    """The change of the bar after the one that is paid for."""

    name: ClassVar[str] = "bar_after"

    @staticmethod
    def reward(t, close_T, position):
        return float(position * (close_T[t + 2] - close_T[t + 1]))


@component
class LegalBeforeARise(ActionMask):
    """A position is legal before a rise alone."""

    name: ClassVar[str] = "before_a_rise"

    @staticmethod
    def allowed(t, close_T, exposure):
        return exposure == 0.0 or close_T[t + 1] > close_T[t]


LEARNED = {"features": [("position_exposure", {})], "rewards": [("log_equity", {})], "masks": [("max_position", {"max_lots": 5_000})]}
PEEKS = [
    ("features", LanePart("features.held", HoldsTheNextBar(), "mine"), "feature 'held' looks ahead: .* changed its value of X at bar"),
    ("rewards", LanePart("rewards.a", RewardOfTheBarAfter(), "mine"), "reward 'a' looks ahead: .* changed its reward of X at bar"),
    (
        "masks",
        LanePart("action_masks.up", LegalBeforeARise(), "mine"),
        "action mask 'up' looks ahead: .* changed its legal actions of X at",
    ),
    ("sizing", LanePart("sizing", SizedByTheNextBar(), "mine"), "sizing 'sized_by_the_next_bar' looks ahead: .* changed its order of X at"),
    ("execution", LanePart("execution", FillsAtTheBestOfTwoBars(), "mine"), "execution 'best_of_two_bars' looks ahead: .* its equity of X"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("place", "part", "pattern"), PEEKS, ids=[place for place, _, _ in PEEKS])
def test_a_part_that_a_policy_stands_on_and_that_looks_ahead_is_named(place, part, pattern):
    data = market_data(random_bars(120, seed=3), sizing=("equity_fraction", {"fraction": 0.9}), **LEARNED)
    several = place in ("features", "rewards", "masks")
    parts = dataclasses.replace(data.parts, **{place: (part,) if several else part})
    with pytest.raises(PluginError, match=f"^{pattern}"):
        prove_policies_have_no_look_ahead(dataclasses.replace(data, parts=parts))


@pytest.mark.parametrize("rules", [{}, pytest.param({"latency_bars": 3, "stop_loss": 0.02, "size_at": "fill"}, marks=pytest.mark.slow)])
def test_honest_parts_pass_under_random_actions_and_are_named(rules):
    bars = [random_bars(160, seed=1, symbol="A"), random_bars(90, seed=2, symbol="B")]
    data = market_data(bars, sizing=("equity_fraction", {"fraction": 0.9}), **LEARNED, **rules)
    (line,) = prove(data, cuts=4)
    names = "actions at random, portfolio feature position_exposure_0, action mask max_position, reward log_equity"
    same = "the same observations, legal actions, rewards, orders, positions and equity"
    assert line in {f"{names}: no look-ahead: {same} up to {count} cuts" for count in (3, 4)}
    lines = prove(data, strategy("flat"), cuts=2)
    assert lines[-1].endswith(": not proven: a strategy uses none of it; prove a run that was trained on it")


@pytest.mark.slow
def test_long_data_are_played_at_their_begin_and_short_data_are_said_to_be():
    data = market_data(random_bars(150, seed=1))
    assert testing_proof._first_bars(data) is data
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(testing_proof, "_PLAYED_BARS", 40)
        first = testing_proof._first_bars(data)
    assert first.tape.close_ST.shape == (1, 40) and first.tape.length_S.tolist() == [40]
    (line,) = prove(market_data(bars_of([1.0, 2.0])))
    assert line == "actions at random: not proven: what acts at random: expected data of at least 3 bars, found 2"


@pytest.mark.slow
def test_an_execution_is_blamed_before_the_sizing_that_its_equity_moves():
    data = market_data(random_bars(300, seed=6), sizing=("equity_fraction", {"fraction": 0.9}))
    parts = dataclasses.replace(data.parts, execution=LanePart("execution", FillsAtTheBestOfTwoBars(), "mine"))
    with pytest.raises(PluginError, match=r"^execution 'best_of_two_bars' of strategy 'random' looks ahead: .* changed its equity of X at"):
        prove_strategy_has_no_look_ahead(strategy("random", change_probability=0.2), dataclasses.replace(data, parts=parts))
