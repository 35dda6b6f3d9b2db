"""Metrics against the golden values of synthetic series and of degenerate inputs, and against hand-made equity."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest

from bellmark.component import Metric, make, settings_of
from bellmark.errors import PluginError
from bellmark.evaluation.curve import FILLS, Curve, Undefined, curve_of_returns
from bellmark.evaluation.metrics import RUINED, evaluate, median_of
from bellmark.plugins.metrics import METRICS, MaxDrawdown, ProfitFactor, SharpeRatio, TotalReturn, WinRate

DATA = Path(__file__).parents[1] / "golden" / "data" / "evaluation"
SERIES = json.loads((DATA / "metrics.json").read_text("utf-8"))
EDGES = json.loads((DATA / "edge_cases.json").read_text("utf-8"))
DAY = 86_400_000_000_000
# our name -> the golden's name
GOLDEN_NAMES = {
    "total_return": "total_return",
    "cagr": "cagr_calendar_365_25",
    "cagr_periods": "cagr_periods",
    "annual_volatility": "ann_volatility",
    "sharpe_ratio": "sharpe",
    "sortino_ratio": "sortino",
    "calmar_ratio": "calmar",
    "max_drawdown": "max_drawdown",
    "win_rate_bars": "win_rate_nonzero",
    "profit_factor_bars": "profit_factor",
}


def load(name):
    rows = list(csv.DictReader((DATA / f"{name}.csv").open(encoding="utf-8")))
    stamps = np.array([row["date"] for row in rows], dtype="datetime64[ns]").astype(np.int64)
    return curve_of_returns(np.array([float(row["ret"]) for row in rows]), stamps, SERIES[name]["periods_per_year"])


def edge(name):
    returns = np.array([float(value) for value in EDGES[name]["returns"]])
    first = np.datetime64(EDGES[name]["first"][:10], "D")
    stamps = np.busday_offset(first, np.arange(returns.size)).astype("datetime64[ns]").astype(np.int64)
    return curve_of_returns(returns, stamps, 252)


def all_metrics(curve, **rules):
    return {result.name: result for result in evaluate(curve, [metric() for metric in METRICS], **rules)}


def agree(found, wanted):
    wanted = float(wanted)
    if math.isfinite(wanted):
        assert found.value == pytest.approx(wanted, rel=1e-9, abs=1e-15), found.name
        assert found.reason is None
    else:
        assert found.value is None and found.reason, found.name


@pytest.mark.parametrize("name", SERIES)
@pytest.mark.parametrize("ours", GOLDEN_NAMES)
def test_metric_of_a_golden_series_equals_the_reference(name, ours):
    agree(all_metrics(load(name), report_rules=False)[ours], SERIES[name]["reference"][GOLDEN_NAMES[ours]])


@pytest.mark.parametrize("name", EDGES)
@pytest.mark.parametrize("ours", GOLDEN_NAMES)
def test_metric_of_a_degenerate_input_equals_the_reference_or_is_null_with_a_reason(name, ours):
    agree(all_metrics(edge(name), report_rules=False)[ours], EDGES[name]["reference"][GOLDEN_NAMES[ours]])


@pytest.mark.parametrize("name", ["total_loss", "below_minus_one"])
def test_every_ratio_of_a_ruined_account_is_null_in_a_report(name):
    results = all_metrics(edge(name))
    for ratio in ("cagr", "cagr_periods", "annual_volatility", "sharpe_ratio", "sortino_ratio", "calmar_ratio", "profit_factor_bars"):
        assert results[ratio].value is None and results[ratio].reason == RUINED
    assert results["total_return"].value == pytest.approx(EDGES[name]["reference"]["total_return"])
    assert results["max_drawdown"].value == pytest.approx(EDGES[name]["reference"]["max_drawdown"])


def test_span_under_30_days_is_not_annualised_in_a_report_but_the_function_computes_it():
    curve = load("hand8")
    assert all_metrics(curve)["sharpe_ratio"].value is None
    assert "9.0 days" in all_metrics(curve)["sharpe_ratio"].reason
    assert SharpeRatio().compute(curve) == pytest.approx(2.9466867435362976)


@pytest.mark.parametrize(
    ("equity", "days", "growth"), [([1000.0, 1188.0], 182, 0.413015), ([100.0, 200.0], 366, 0.997161)], ids=["half_year", "leap"]
)
def test_cagr_counts_calendar_days(equity, days, growth):
    curve = Curve(stamp_ns=np.array([0, days * DAY]), equity=np.array(equity), periods_per_year=252)
    assert all_metrics(curve)["cagr"].value == pytest.approx(growth, abs=5e-7)


@pytest.mark.parametrize(
    ("equity", "depth", "ruined"), [([80, 90], -0.2, False), ([-20, -50, -100], -2.0, True), ([120, 60, 150], -0.5, False)]
)
def test_drawdown_counts_from_the_start_equity_and_may_pass_minus_one(equity, depth, ruined):
    curve = Curve(stamp_ns=np.arange(len(equity) + 1) * DAY, equity=np.array([100.0, *equity]), periods_per_year=252)
    assert MaxDrawdown().compute(curve) == pytest.approx(depth)
    assert curve.wiped_out is ruined


def trading_curve(profits):
    """An account that buys one lot for 1000 and sells it for 1000 + profit, once a day."""
    fills = np.zeros(2 * len(profits), FILLS)
    fills["stamp"] = np.arange(fills.size) * DAY
    fills["lots"] = np.tile([1, -1], len(profits))
    fills["notional"] = np.ravel([(1000.0, 1000.0 + profit) for profit in profits])
    equity = np.concatenate(([10_000.0], 10_000.0 + np.cumsum(profits)))
    return Curve(stamp_ns=np.arange(equity.size) * DAY, equity=equity, periods_per_year=252, fills=fills)


def test_profit_factor_is_gross_win_over_gross_loss_and_win_rate_counts_flat_trades():
    results = all_metrics(trading_curve([200.0, -100.0, 50.0, -25.0, 0.0]))
    assert results["profit_factor"].value == 2.0
    assert results["win_rate"].value == pytest.approx(0.4)
    assert results["win_rate_bars"].value == pytest.approx(0.5)
    assert results["trades"].value == 5


def test_no_losing_trade_gives_null_with_its_reason_and_strict_json():
    results = all_metrics(trading_curve([100.0, 50.0]))
    assert results["profit_factor"].value is None and results["profit_factor"].reason == "no losing trade"
    assert results["win_rate"].value == 1.0
    text = json.dumps({name: result.value for name, result in results.items()}, allow_nan=False)
    json.loads(text, parse_constant=lambda _: pytest.fail("not strict JSON"))


def test_turnover_counts_both_sides():
    results = all_metrics(trading_curve([0.0, 0.0]))
    assert results["turnover"].value == pytest.approx(4000.0 / 10_000.0)


def test_fills_without_a_value_give_null_turnover_not_nan():
    curve = trading_curve([1.0])
    curve.fills["notional"] = np.nan
    results = all_metrics(curve)
    for name in ("turnover", "win_rate", "profit_factor"):
        assert results[name].value is None and "value" in results[name].reason
    assert results["trades"].value == 1


@pytest.mark.parametrize("cls", METRICS, ids=lambda cls: cls.name)
@pytest.mark.parametrize("points", [1, 2, 3])
def test_every_metric_is_defined_or_null_on_flat_and_one_bar_equity(cls, points):
    curve = Curve(stamp_ns=np.arange(points) * DAY, equity=np.full(points, 100.0), periods_per_year=252, exposure=np.zeros(points))
    (result,) = evaluate(curve, [cls()], report_rules=False)
    assert (result.value is None) == (result.reason is not None)
    assert result.value is None or math.isfinite(result.value)


@pytest.mark.parametrize("cls", METRICS, ids=lambda cls: cls.name)
def test_every_metric_states_unit_convention_and_formula(cls):
    assert cls.unit and cls.convention and cls.kind == "metric"
    assert len(cls.__doc__.splitlines()) > 1 or "Unit:" in cls.__doc__
    assert make(cls, {}, "metrics") == cls()
    assert settings_of(cls) == []


def test_sharpe_reason_distinguishes_nothing_from_certainty():
    flat = evaluate(edge("all_zero"), [SharpeRatio()], report_rules=False)[0]
    sure = evaluate(edge("constant_pos"), [SharpeRatio()], report_rules=False)[0]
    assert flat.reason == "equity never moved" and sure.reason == "returns never vary"


class Broken(Metric):
    name = "broken"

    def __init__(self, answer):
        self.answer = answer

    def compute(self, curve):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(("answer", "words"), [(KeyError("x"), "KeyError"), ("text", "found str"), (None, "found NoneType")])
def test_metric_that_raises_or_returns_nonsense_is_named(answer, words):
    with pytest.raises(PluginError, match=f"metric broken: .*{words}"):
        evaluate(edge("two"), [Broken(answer)])


@pytest.mark.parametrize("answer", [math.nan, math.inf, -math.inf, np.float64("nan")])
def test_number_that_is_not_finite_becomes_null(answer):
    (result,) = evaluate(edge("two"), [Broken(answer)])
    assert result.value is None and "not a finite number" in result.reason


def test_median_is_null_where_a_learner_was_ruined_and_says_what_is_missing():
    good = evaluate(load("gauss1000"), [SharpeRatio()])[0]
    ruined = evaluate(edge("total_loss"), [SharpeRatio()])[0]
    flat = evaluate(edge("all_zero"), [WinRate()])[0]
    assert median_of([good, good], ["0", "1"]).value == good.value
    assert median_of([good, ruined], ["0", "1"]).value is None
    assert median_of([good, flat], ["0", "1"]).value == good.value
    assert "1 of 2 learners" in median_of([good, flat], ["0", "1"]).reason


def test_undefined_keeps_its_reason():
    assert evaluate(edge("two"), [Broken(Undefined("because"))])[0].reason == "because"


def test_metric_compute_of_profit_factor_without_trades_is_undefined():
    assert ProfitFactor().compute(edge("two")) == Undefined("no closed trade")
    assert TotalReturn().compute(edge("two")) == pytest.approx(0.0098)
