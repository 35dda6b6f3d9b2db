"""The engine of market features: wiring, settings, warm-up, higher bars, errors, and the normalisation."""

from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pytest

from bellmark import codegen
from bellmark import testing_market as testing
from bellmark.component import Feature, component, setting
from bellmark.errors import DataError, PluginError, UsageError
from bellmark.features import MarketFeatures, assemble, fit_normalisation
from bellmark.plugins.features import EquityReturn, LogReturn, SessionSine


@component
class Mixture(Feature):
    """A feature with a setting of every type."""

    name: ClassVar[str] = "mixture"
    count: int = setting(2, "an int")
    share: float = setting(0.5, "a float")
    add: bool = setting(False, "a bool")
    mode: Literal["one", "two", "three"] = setting("one", "a choice")
    fixed: int = setting(7, "a constant", static=True)

    @staticmethod
    def row(close_T, t, mode, share, count, add, fixed):
        return close_T[t] * count + share + 100.0 * mode + (1000.0 if add else 0.0) + 10000.0 * fixed


@component
class RunningHigh(Feature):
    """A scan with two slots of state of different types."""

    name: ClassVar[str] = "running_high"
    state: ClassVar[dict[str, str]] = {"high": "int64", "total": "float64"}
    start: int = setting(3, "warm-up", ge=0)

    @staticmethod
    def scan(t, close_T, high, total):
        high = max(high, close_T[t])
        return high + total, high, total + 0.5

    def warm_up(self) -> int:
        return self.start


@component
class Ahead(Feature):
    """Looks one bar ahead."""

    name: ClassVar[str] = "ahead"

    @staticmethod
    def row(t, close_T):
        return close_T[min(t + 1, len(close_T) - 1)] - close_T[t]


@component
class Division(Feature):
    """Divides by the move, which may be zero."""

    name: ClassVar[str] = "division"

    @staticmethod
    def row(t, close_T):
        return 1.0 / (close_T[t] - close_T[t - 1])

    def warm_up(self) -> int:
        return 1


def broken(function: Any, **members: Any) -> Feature:
    """A feature with some row function."""
    body = {"name": "broken", "__module__": __name__, "__annotations__": {"name": ClassVar[str]}, "row": staticmethod(function)}
    return component(type("Broken", (Feature,), body | members))()


def one(feature: Feature, tape: Any) -> np.ndarray:
    return assemble([("x", feature)], tape).feature_STF[0, :, 0]


def test_settings_of_every_type_reach_the_function() -> None:
    tape = testing.make_tape([1, 2, 3, 4])
    assert one(Mixture(), tape).tolist() == [70002.5, 70004.5, 70006.5, 70008.5]
    assert one(Mixture(count=3, share=0.25, add=True, mode="three", fixed=1), tape)[1] == 6 + 0.25 + 200 + 1000 + 10000


def test_other_values_of_a_setting_compile_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    tape = testing.make_tape([1, 2, 3, 4])
    first = codegen.build("feature_probe", "def entry():\n    return 1\n", {})
    built = []
    monkeypatch.setattr("bellmark.features.build", lambda *a: built.append(codegen.build(*a)) or built[-1])
    one(Mixture(), tape)
    one(Mixture(count=9, mode="two", add=True), tape)
    assert built[0] is built[1] and built[0] is not first
    assert len(built[0].signatures) == 1


def test_scan_keeps_its_state_and_is_unknown_before_its_warm_up() -> None:
    value_T = one(RunningHigh(), testing.make_tape([5, 9, 7, 11, 8]))
    assert np.isnan(value_T[:3]).all() and value_T[3:].tolist() == [11 + 1.5, 11 + 2.0]


def test_several_symbols_have_their_own_start_state_and_padding() -> None:
    tape = testing.join([testing.make_tape([5, 9, 7, 11, 8]), testing.make_tape([4, 3, 2, 6])])
    market = assemble([("high", RunningHigh(start=1)), ("log", LogReturn(window=2))], tape)
    assert market.labels == ("high", "log") and market.feature_STF.dtype == np.float32
    assert market.start_S.tolist() == [2, 2]
    assert market.feature_STF[1, :4, 0].tolist()[1:] == [4.5, 5.0, 7.5]
    assert np.isnan(market.feature_STF[1, 4]).all()


def test_portfolio_features_come_last_and_are_left_to_the_environment() -> None:
    features = [("account", EquityReturn()), ("log", LogReturn()), ("again", LogReturn(window=2))]
    assert assemble(features, testing.make_tape([1, 2, 3, 4])).labels == ("log", "again")
    assert assemble(features[:1], testing.make_tape([1, 2])).feature_STF.shape == (1, 2, 0)


def test_the_tape_stays_as_it_was_if_a_function_writes_to_it() -> None:
    def write(t, close_T):  # type: ignore[no-untyped-def]
        close_T[t] = 0
        return 1.0

    tape = testing.make_tape([1, 2, 3])
    one(broken(write), tape)
    assert tape.close_ST.tolist() == [[1, 2, 3]]


# ---- look-ahead ------------------------------------------------------------------------------------------------------------------------


def test_a_feature_that_looks_ahead_is_found_and_the_bar_named() -> None:
    with pytest.raises(PluginError, match=r"feature 'ahead' looks ahead: bars after (\d+) changed its value at bar \1 of TEST"):
        testing.prove_no_look_ahead(Ahead(), testing.random_tape(300, seed=3))


def test_a_warm_up_that_is_too_short_is_found_as_it_reads_from_the_end() -> None:
    def short(t, close_T):  # type: ignore[no-untyped-def]
        return float(close_T[t - 5])  # an index below zero is the end of the array

    with pytest.raises(PluginError, match="looks ahead"):
        testing.prove_no_look_ahead(broken(short), testing.random_tape(300, seed=3))


def test_the_proof_needs_a_tape_on_which_values_are_known() -> None:
    with pytest.raises(UsageError, match="longer than 42 bars"):
        testing.prove_no_look_ahead(LogReturn(window=40), testing.random_tape(41, seed=3))


# ---- errors ----------------------------------------------------------------------------------------------------------------------------


def test_unknown_argument_is_named_with_the_nearest_right_one() -> None:
    with pytest.raises(PluginError, match=r"features.x: feature 'broken' .*no argument named 'closes_T'; did you mean 'close_T'"):
        one(broken(lambda t, closes_T: 0.0), testing.make_tape([1, 2]))


def test_time_of_session_is_not_there_for_higher_bars() -> None:
    feature = broken(lambda t, session_fraction_T: 0.0, timeframe="5")
    with pytest.raises(PluginError, match="no argument named 'session_fraction_T'"):
        one(feature, testing.random_tape(20, seed=1, bars_per_session=10))
    assert one(SessionSine(), testing.random_tape(20, seed=1, bars_per_session=10)).std() > 0.1


def test_value_that_is_not_finite_names_feature_symbol_and_bar() -> None:
    with pytest.raises(PluginError, match=r"'division' .*found inf for TEST at bar 3 \(2020-01-01T00:04:00 UTC\)"):
        one(Division(), testing.make_tape([4, 5, 6, 6, 7]))


def test_function_that_does_not_compile_is_one_line() -> None:
    with pytest.raises(PluginError, match="features.x: feature 'broken' .*it does not compile") as caught:
        one(broken(lambda t, close_T: close_T[t].no_such_thing), testing.make_tape([1, 2]))
    assert "\n" not in str(caught.value)


def test_too_few_bars_say_how_many_are_needed() -> None:
    with pytest.raises(DataError, match="TEST: 3 bars are too few for features.x, which needs 6 completed bars"):
        one(LogReturn(window=5), testing.make_tape([1, 2, 3]))
    with pytest.raises(DataError, match="needs 2 completed sessions"):
        one(LogReturn(timeframe="session"), testing.random_tape(15, seed=1, bars_per_session=10))


@pytest.mark.parametrize(
    ("member", "message"), [("7.5", "number of bars above 1, found '7.5'"), ("hour", "found 'hour'"), ("1", "found '1'")]
)
def test_unknown_timeframe_is_refused(member: str, message: str) -> None:
    with pytest.raises(PluginError, match=message):
        one(broken(lambda t: 0.0, timeframe=member), testing.make_tape([1, 2]))


@pytest.mark.parametrize(("bars", "message"), [(-1, "expected an int >= 0, found -1"), (1.5, "found 1.5"), (None, "found None")])
def test_warm_up_that_is_no_count_is_refused(bars: Any, message: str) -> None:
    with pytest.raises(PluginError, match=message):
        one(broken(lambda t: 0.0, warm_up=lambda self: bars), testing.make_tape([1, 2]))


# ---- normalisation ---------------------------------------------------------------------------------------------------------------------


def market_of(*columns: Any, start: int = 0) -> MarketFeatures:
    feature_STF = np.array(columns, np.float32).T[None].copy()
    return MarketFeatures(tuple("abcdef"[: len(columns)]), feature_STF, np.array([start]))


def test_normalisation_is_that_of_the_training_window_alone() -> None:
    raw_T = np.concatenate([np.random.default_rng(0).normal(5.0, 2.0, 400), np.full(100, 1e6)])
    result = fit_normalisation(market_of(raw_T), np.array([[[0, 400]], [[100, 300]]]))
    for learner, (begin, end) in enumerate([(0, 400), (100, 300)]):
        window_T = raw_T[begin:end].astype(np.float32).astype(np.float64)
        assert result.mean_LF[learner, 0] == np.float32(window_T.mean())
        assert result.scale_LF[learner, 0] == pytest.approx(1.0 / window_T.std(), rel=1e-6)
    assert result.mean_LF.dtype == result.scale_LF.dtype == np.float32 and not result.warnings


def test_normalisation_of_one_learner_has_the_same_bits_beside_others() -> None:
    market = market_of(np.random.default_rng(0).normal(size=300), np.arange(300.0))
    together = fit_normalisation(market, np.array([[[0, 200]], [[50, 250]], [[0, 200]]]))
    for learner, window in enumerate([[0, 200], [50, 250], [0, 200]]):
        alone = fit_normalisation(market, np.array([[window]]))
        assert together.mean_LF[learner].tobytes() == alone.mean_LF[0].tobytes()
        assert together.scale_LF[learner].tobytes() == alone.scale_LF[0].tobytes()


def test_small_moves_on_a_high_level_keep_their_deviation() -> None:
    raw_T = np.float32(5000.0) + np.float32(0.25) * (np.arange(10_000) % 2)
    assert fit_normalisation(market_of(raw_T), np.array([[[0, 10_000]]])).scale_LF[0, 0] == pytest.approx(8.0, rel=1e-6)


def test_bars_before_the_features_are_known_are_left_out() -> None:
    raw_T = [np.nan, np.nan, 1.0, 2.0, 3.0, 4.0]
    result = fit_normalisation(market_of(raw_T, start=2), np.array([[[0, 6]]]))
    assert result.mean_LF[0, 0] == 2.5 and result.scale_LF[0, 0] == pytest.approx(1.0 / np.sqrt(1.25))


def test_windows_of_several_symbols_are_fitted_together() -> None:
    feature_STF = np.array([[[1.0], [2.0], [np.nan]], [[5.0], [6.0], [7.0]]], np.float32)
    market = MarketFeatures(("a",), feature_STF, np.zeros(2, np.int64))
    result = fit_normalisation(market, np.array([[[0, 2], [1, 3]], [[0, 0], [0, 3]]]))
    assert result.mean_LF[:, 0].tolist() == [4.0, 6.0]


def test_window_without_a_known_bar_is_refused() -> None:
    with pytest.raises(DataError, match="learner 1 has no training bar"):
        fit_normalisation(market_of([np.nan, 1.0, 2.0, 3.0], start=1), np.array([[[0, 4]], [[0, 1]]]))


def test_constant_feature_stays_zero_for_ever_and_is_named() -> None:
    # The old formula gives 1e4 and more here: (5.0001 - 5) / (0 + 1e-8).
    market = market_of([5.0, 5.0, 5.0, 5.0, 5.0001], [1.0, 2.0, 3.0, 4.0, 5.0])
    result = fit_normalisation(market, np.array([[[0, 4]]]))
    observation_TF = (market.feature_STF[0] - result.mean_LF[0]) * result.scale_LF[0]
    assert observation_TF[:, 0].tolist() == [0.0] * 5
    assert observation_TF[:4, 1].tolist() == pytest.approx([-1.341641, -0.447214, 0.447214, 1.341641], abs=1e-6)
    assert result.constant_LF.tolist() == [[True, False]]
    assert result.warnings == ("features.a: constant over the training window of the learner; it is passed on as 0",)


def test_constant_feature_of_some_learners_names_them() -> None:
    market = market_of([0.0, 0.0, 0.0, 1.0, 2.0])
    result = fit_normalisation(market, np.array([[[0, 3]], [[0, 5]], [[1, 3]]]))
    assert result.warnings == ("features.a: constant over the training window of learners 0, 2; it is passed on as 0",)
    assert result.constant_LF[:, 0].tolist() == [True, False, True]


def test_case_of_the_public_report_when_present() -> None:
    case = Path(__file__).parents[2] / "shared" / "cases" / "49_constant_feature" / "feature.csv"
    if not case.exists():
        pytest.skip("../shared is absent")
    table = np.genfromtxt(case, delimiter=",", names=True)
    market = market_of(table["a"], table["b"])
    result = fit_normalisation(market, np.array([[[0, len(table)]]]))
    observation_TF = (market.feature_STF[0] - result.mean_LF[0]) * result.scale_LF[0]
    assert observation_TF[:, 0].tolist() == [0.0] * 4
    assert observation_TF[:, 1].tolist() == pytest.approx([-1.341641, -0.447214, 0.447214, 1.341641], abs=1e-6)


def test_no_market_features_at_all_is_an_empty_normalisation() -> None:
    result = fit_normalisation(MarketFeatures((), np.zeros((1, 5, 0), np.float32), np.zeros(1, np.int64)), np.array([[[0, 5]]]))
    assert result.mean_LF.shape == result.scale_LF.shape == (1, 0) and not result.warnings
