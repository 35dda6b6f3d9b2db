"""The contract of every built-in feature: known answers, no look-ahead, honest warm-up, finite on extreme bars, float32."""

from functools import cache
from typing import Any, get_args

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view as windows

from bellmark import features as engine
from bellmark import testing_market as testing
from bellmark.codegen import lower
from bellmark.component import Feature, make, settings_of
from bellmark.errors import PluginError
from bellmark.plugins.features import FEATURES, MARKET_FEATURES, PORTFOLIO_FEATURES
from bellmark.plugins.features.timeframe import Timeframe

TIMEFRAMES = get_args(Timeframe)
MARKET = {cls.name: cls for cls in MARKET_FEATURES}
PORTFOLIO = {cls.name: cls for cls in PORTFOLIO_FEATURES}
SHORT = {"window": 4, "fast": 2, "slow": 4}  # short windows, so that 60-bar groups and sessions need few bars


def short(cls: type[Feature], timeframe: str = "bar", **values: Any) -> Feature:
    known = {info.name for info in settings_of(cls)}
    values = {**{name: value for name, value in SHORT.items() if name in known}, **values}
    if "timeframe" in known:
        values["timeframe"] = timeframe
    return make(cls, values, "test")


def cases() -> list[Any]:
    """Every market feature at every timeframe that it has."""
    found = []
    for cls in MARKET_FEATURES:
        has = any(info.name == "timeframe" for info in settings_of(cls))
        found += [pytest.param(cls, frame, id=f"{cls.name}-{frame}") for frame in (TIMEFRAMES if has else ("bar",))]
    return found


def column(feature: Feature, tape: Any, s: int = 0) -> np.ndarray:
    return engine.assemble([("x", feature)], tape).feature_STF[s, : tape.length_S[s], 0]


@pytest.fixture(scope="module")
def tape() -> Any:
    """2,600 random bars in sessions of 130: two 60-bar groups and a remainder in each."""
    return testing.random_tape(2600, seed=1, bars_per_session=130)


def test_there_are_sixteen_market_and_six_portfolio_features() -> None:
    assert len(MARKET_FEATURES) >= 16 and len(PORTFOLIO_FEATURES) >= 6
    assert len({cls.name for cls in FEATURES}) == len(FEATURES)


# ---- contract of every market feature ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cls", "timeframe"), cases())
def test_changing_the_future_leaves_the_past_bit_equal(cls: type[Feature], timeframe: str, tape: Any) -> None:
    testing.prove_no_look_ahead(short(cls, timeframe), tape)


@pytest.mark.parametrize(("cls", "timeframe"), cases())
def test_values_are_float32_known_from_the_warm_up_on_and_vary(cls: type[Feature], timeframe: str, tape: Any) -> None:
    value_T = column(short(cls, timeframe), tape)
    first = int(np.flatnonzero(np.isfinite(value_T))[0])
    assert value_T.dtype == np.float32
    assert np.isnan(value_T[:first]).all() and np.isfinite(value_T[first:]).all()
    if timeframe == "bar":
        assert first == short(cls).warm_up()
    assert len(np.unique(value_T[first:])) > 1


@pytest.mark.parametrize("cls", [cls for cls in MARKET_FEATURES if hasattr(cls, "row")], ids=lambda cls: cls.name)
def test_warm_up_is_honest_history_before_it_does_not_matter(cls: type[Feature], tape: Any) -> None:
    feature = short(cls)
    full_T = column(feature, tape)
    for t in (200, 391, 2599):
        start = t - feature.warm_up()
        assert column(feature, testing.cut(tape, start, t + 1))[-1] == full_T[t], f"bar {t}"


@pytest.mark.parametrize("name", sorted(testing.EXTREME_TAPES))
@pytest.mark.parametrize("cls", MARKET_FEATURES, ids=lambda cls: cls.name)
def test_values_are_finite_on_extreme_bars(cls: type[Feature], name: str) -> None:
    tape = testing.EXTREME_TAPES[name]()
    for feature in (short(cls), cls()):
        value_T = column(feature, tape)
        assert np.isfinite(value_T[feature.warm_up() :]).all()
        assert np.abs(value_T[feature.warm_up() :]).max() < 100.0


def test_ticks_at_a_high_price_are_not_lost() -> None:
    quanta = np.full(40, 20_000_000) + np.arange(40) % 2  # a price of 5,000,000 that moves by one tick of 0.25
    tape = testing.make_tape(quanta)
    assert np.allclose(column(MARKET["bollinger_score"](window=2), tape)[1:], np.where(np.arange(1, 40) % 2, 1.0, -1.0))
    assert np.allclose(np.abs(column(MARKET["log_return"](), tape)[1:]), 5e-8, rtol=1e-6)


# ---- known answers ---------------------------------------------------------------------------------------------------------------


def padded(value: np.ndarray, count: int) -> np.ndarray:
    return np.concatenate([np.full(count - len(value), np.nan), value])


def quotient(above: np.ndarray, below: np.ndarray, otherwise: float) -> np.ndarray:
    return np.divide(above, below, out=np.full(len(above), otherwise), where=below != 0)


def true_range(b: Any) -> np.ndarray:
    return np.maximum(b.high[1:], b.close[:-1]) - np.minimum(b.low[1:], b.close[:-1])


def relative(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.tanh(0.5 * np.log(first / second))


def ema(close: np.ndarray, window: int) -> np.ndarray:
    weight, average = 2.0 / (window + 1.0), [close[0]]
    for price in close[1:]:
        average.append(weight * price + (1.0 - weight) * average[-1])
    return np.array(average)


def distance(b: Any, w: int) -> np.ndarray:
    return b.close[w:] - windows(b.close, w).mean(1)[1:]


# Each from NumPy and the textbook formula, in currency and not in quanta.
REFERENCE: dict[str, Any] = {
    "log_return": lambda b, w: np.log(b.close[w:] / b.close[:-w]),
    "realized_volatility": lambda b, w: np.sqrt((windows(np.diff(np.log(b.close)), w) ** 2).mean(1)),
    "parkinson_volatility": lambda b, w: np.sqrt((windows(np.log(b.high / b.low), w) ** 2).mean(1) / (4 * np.log(2))),
    "range_position": lambda b, w: quotient(
        b.close[w - 1 :] - windows(b.low, w).min(1), windows(b.high, w).max(1) - windows(b.low, w).min(1), 0.5
    ),
    "average_distance": lambda b, w: distance(b, w) / windows(b.close, w).mean(1)[1:],
    "ema_distance": lambda b, w: ((b.close - ema(b.close, w)) / np.maximum(b.close, ema(b.close, w)))[3 * w :],
    "rsi": lambda b, w: quotient(windows(np.maximum(np.diff(b.close), 0), w).sum(1), windows(np.abs(np.diff(b.close)), w).sum(1), 0.5),
    "average_true_range": lambda b, w: windows(true_range(b), w).mean(1) / windows(b.close[1:], w).mean(1),
    "bollinger_score": lambda b, w: quotient(b.close[w - 1 :] - windows(b.close, w).mean(1), windows(b.close, w).std(1), 0.0),
    "relative_volume": lambda b, w: relative(b.volume[w - 1 :], windows(b.volume, w).mean(1)),
    "volume_trend": lambda b, w: relative(windows(b.volume, w // 2).mean(1)[w - w // 2 :], windows(b.volume, w).mean(1)),
    "close_location": lambda b, w: quotient(b.close - b.low, b.high - b.low, 0.5),
    "opening_gap": lambda b, w: np.log(b.open[1:] / b.close[:-1]),
    "price_level": lambda b, w: np.log(b.close / 100.0),
    "drawdown_from_high": lambda b, w: b.close[w - 1 :] / windows(b.high, w).max(1) - 1.0,
    "up_ratio": lambda b, w: windows(0.5 + 0.5 * np.sign(np.diff(b.close)), w).mean(1),
    "session_sine": lambda b, w: np.sin(2 * np.pi * b.fraction),
    "session_cosine": lambda b, w: np.cos(2 * np.pi * b.fraction),
}


@pytest.mark.parametrize("cls", MARKET_FEATURES, ids=lambda cls: cls.name)
def test_known_answers_of_the_textbook_formula(cls: type[Feature], tape: Any) -> None:
    bars = testing.prices(tape)
    expected_T = padded(REFERENCE[cls.name](bars, SHORT["window"]), len(bars.close))
    np.testing.assert_allclose(column(short(cls), tape), expected_T, rtol=2e-6, atol=1e-9)


HAND = {"close": [400, 404, 400, 408, 408, 402], "high": [402, 406, 404, 410, 408, 410], "low": [398, 400, 400, 400, 408, 400]}


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("log_return", {"window": 2}, np.log(402 / 408)),
        ("range_position", {"window": 3}, 0.2),  # 402 between 400 and 410
        ("range_position", {"window": 1}, 0.2),
        ("average_distance", {"window": 3}, -4.0 / 406.0),
        ("average_distance", {"window": 3, "unit": "volatility"}, -4.0 / np.sqrt((64.0 + 0.0 + 36.0) / 3.0)),
        ("rsi", {"window": 5}, 12.0 / 22.0),
        ("average_true_range", {"window": 2}, (0.0 + 10.0) / (408.0 + 402.0)),
        ("bollinger_score", {"window": 3}, -np.sqrt(2.0)),
        ("drawdown_from_high", {"window": 6}, 402.0 / 410.0 - 1.0),
        ("up_ratio", {"window": 5}, 0.5),  # up, down, up, equal, down
        ("close_location", {}, 0.2),
        ("price_level", {"reference": 100.0}, np.log(1.005)),
    ],
)
def test_known_answers_by_hand(name: str, settings: dict[str, Any], expected: float) -> None:
    tape = testing.make_tape(np.array(HAND["close"]), high_T=np.array(HAND["high"]), low_T=np.array(HAND["low"]))
    assert column(make(MARKET[name], settings, "test"), tape)[-1] == pytest.approx(expected, rel=1e-6)


def test_zero_volume_is_minus_one_and_unknown_volume_is_zero() -> None:
    volume_T = np.array([10.0, np.nan, 30.0, 0.0, np.nan, 20.0])
    tape = testing.make_tape(np.full(6, 400), volume_T=volume_T)
    value_T = column(MARKET["relative_volume"](window=4), tape)
    mean = (30.0 + 0.0 + 20.0) / 3.0  # the unknown one stays out
    assert value_T[3:].tolist() == pytest.approx([-1.0, 0.0, (20.0 - mean) / (20.0 + mean)])


# ---- higher timeframes ---------------------------------------------------------------------------------------------------------------


def test_group_of_five_bars_is_seen_at_its_last_bar_and_not_before(tape: Any) -> None:
    value_T = column(MARKET["log_return"](timeframe="5"), tape)
    close = testing.prices(tape).close
    assert np.isnan(value_T[:9]).all()
    for t in (9, 10, 13, 14, 129):
        end = (t + 1) // 5 * 5 - 1
        assert value_T[t] == pytest.approx(np.log(close[end] / close[end - 5]), rel=1e-5), f"bar {t}"


def test_session_is_seen_when_it_has_ended(tape: Any) -> None:
    value_T = column(MARKET["close_location"](timeframe="session"), tape)
    bars = testing.prices(tape)
    high, low = bars.high[:130].max(), bars.low[:130].min()
    assert np.isnan(value_T[:129]).all()
    assert (value_T[129:259] == value_T[129]).all() and value_T[259] != value_T[129]
    assert value_T[129] == pytest.approx((bars.close[129] - low) / (high - low), rel=1e-6)


def test_groups_do_not_reach_over_a_session_end(tape: Any) -> None:
    value_T = column(MARKET["close_location"](timeframe="60"), tape)
    bars = testing.prices(tape)
    high, low = bars.high[120:130].max(), bars.low[120:130].min()
    assert value_T[129] == pytest.approx((bars.close[129] - low) / (high - low), rel=1e-6)


# ---- portfolio features ----------------------------------------------------------------------------------------------------------------

# An account of 100,000: long 10 lots from 400 quanta, close at 408; a quantum of a lot is worth 12.5 (tick 0.25, $50).
ACCOUNT: dict[str, Any] = {
    "t": 1,
    "close_T": np.array([400, 408]),
    "session_left_T": np.array([31, 30], np.int32),
    "equity": 101_000 * 10**9,
    "start_equity": 100_000 * 10**9,
    "peak_equity": 102_000 * 10**9,
    "position": 10,
    "entry_price": 400.0,
    "bars_in_position": 5,
    "held_exposure": 0.5,
    "value_numerator": 25 * 10**9,
    "value_denominator": 2,
}


def lane(cls: type[Feature], **account: Any) -> float:
    """The compiled lane function on an account, wired by name."""
    feature = cls()
    values = {**ACCOUNT, **{info.name: getattr(feature, info.name) for info in settings_of(cls)}, **account}
    return testing.call(lowered(feature.lane), values)


lowered = cache(lower)  # one compilation a function, not one a case


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("position_exposure", 10 * 408 * 12.5 / 101_000),
        ("unrealized_return", 10 * 8 * 12.5 / 101_000),
        ("bars_in_position", 5 / 25),
        ("equity_drawdown", 101 / 102 - 1),
        ("equity_return", 0.01 / 1.01),
        ("session_left", 0.5),
        ("held_exposure", 0.5),
    ],
)
def test_portfolio_features_on_a_known_account(name: str, expected: float) -> None:
    assert lane(PORTFOLIO[name]) == pytest.approx(expected, rel=1e-12)


def test_a_flat_new_account_is_all_zero_and_a_short_one_has_the_other_sign() -> None:
    flat = {"position": 0, "entry_price": 0.0, "bars_in_position": 0, "equity": 10**14, "peak_equity": 10**14, "held_exposure": 0.0}
    assert [lane(cls, **flat) for cls in PORTFOLIO_FEATURES if cls.name != "session_left"] == [0.0] * 6
    assert lane(PORTFOLIO["position_exposure"], position=-10) == -lane(PORTFOLIO["position_exposure"])
    assert lane(PORTFOLIO["unrealized_return"], position=-10) == -lane(PORTFOLIO["unrealized_return"])


@pytest.mark.parametrize("equity", [10**18, 1, 0, -1, -(10**15), -(2**62)])
@pytest.mark.parametrize("position", [0, 1, -(10**12)])
@pytest.mark.parametrize("cls", PORTFOLIO_FEATURES, ids=lambda cls: cls.name)
def test_portfolio_features_are_finite_and_bounded_whatever_the_account(cls: type[Feature], position: int, equity: int) -> None:
    for price in (0, -400, 2**40):
        value = lane(cls, position=position, equity=equity, peak_equity=max(equity, 1), close_T=np.array([1, price]))
        assert np.isfinite(value) and abs(value) <= 10.0


def test_market_and_portfolio_features_are_told_apart() -> None:
    market, portfolio = engine.split([(cls.name, cls()) for cls in FEATURES])
    assert [label for label, _ in market] == list(MARKET) and [label for label, _ in portfolio] == list(PORTFOLIO)
    with pytest.raises(PluginError, match="one function"):
        engine.function_kind(Feature())
