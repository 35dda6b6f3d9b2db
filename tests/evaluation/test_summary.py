"""The summary of an account against its curve: filled bar by bar as a simulator does, and read by every metric."""

import math

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as some
from scipy import stats

from bellmark.errors import PluginError
from bellmark.evaluation.curve import FILLS, Curve, Undefined
from bellmark.evaluation.drawdown import drawdown_table
from bellmark.evaluation.metrics import NEEDS_CURVE, evaluate, evaluate_summary, summarised
from bellmark.evaluation.statistics import deviation
from bellmark.evaluation.summary import Summary, summary_of
from bellmark.plugins.metrics import METRICS, Exposure, SharpeRatio

DAY = 86_400_000_000_000
ALL = [metric() for metric in METRICS]


def passed(curve):
    """A summary filled in one pass over the bars, written apart from the engine's: plain sums, one bar after the other."""
    sums, loss, loss_2, up, down = [0.0] * 4, 0.0, 0.0, 0, 0
    high, high_at, deepest, peak, valley = curve.equity[0], 0, 0.0, 0, 0
    for point in range(1, curve.equity.size):
        change = float(curve.equity[point] / curve.equity[point - 1] - 1.0) if curve.equity[point - 1] != 0.0 else 0.0
        for power in range(4):
            sums[power] += change ** (power + 1)
        loss, loss_2 = loss + min(change, 0.0), loss_2 + min(change, 0.0) ** 2
        up, down = up + (change > 0.0), down + (change < 0.0)
        if curve.equity[point] >= high:
            high, high_at = curve.equity[point], point
        elif curve.equity[point] / high - 1.0 < deepest:
            deepest, peak, valley = curve.equity[point] / high - 1.0, high_at, point
    profits = trade_profits(curve.fills)
    return Summary(
        bars=curve.bars, start_equity=float(curve.equity[0]), end_equity=float(curve.equity[-1]), return_sum=sums[0],
        return_sum_2=sums[1], return_sum_3=sums[2], return_sum_4=sums[3], loss_sum=loss, loss_sum_2=loss_2, winning_bars=up,
        losing_bars=down, max_drawdown=float(deepest), peak_bar=peak, valley_bar=valley, trades=len(profits),
        winning_trades=sum(profit > 0 for profit in profits), losing_trades=sum(profit < 0 for profit in profits),
        trade_gain=sum(max(profit, 0) for profit in profits) / 1e9, trade_loss=-sum(min(profit, 0) for profit in profits) / 1e9,
        fills=curve.fills.size, refusals=0, costs=dict(curve.costs), gross=0.0, traded_value=math.fsum(curve.fills["notional"]),
        equity_sum=math.fsum(curve.equity), ruined=curve.ruined, periods_per_year=curve.periods_per_year,
        first_ns=int(curve.stamp_ns[0]), last_ns=int(curve.stamp_ns[-1]), open_position=0,
    )  # fmt: skip


def trade_profits(fills):
    """Profits of closed trades in whole nano-currency, one fill after the other."""
    position, money, profits = 0, 0, []
    for row in fills:
        lots = int(row["lots"])
        cash = round(-math.copysign(row["notional"], lots) * 1e9) - round(row["fee"] * 1e9)
        after = position + lots
        if position and (after == 0 or (after > 0) != (position > 0)):
            ending = cash if after == 0 else round(cash * -position / lots)
            profits.append(money + ending)
            money, cash = 0, cash - ending
        money, position = money + cash, after
    return profits


def curve_of(equity, fills=(), step=DAY, **more):
    table = np.zeros(len(fills), FILLS)
    for row, (lots, price, fee) in zip(table, fills, strict=True):
        row["lots"], row["notional"], row["fee"] = lots, abs(lots) * price, fee
    table["stamp"] = np.arange(len(fills)) * step
    costs = {"spread": 1.5, "slippage": 0.0, "fees": float(table["fee"].sum()), "funding": -0.25}
    equity = np.asarray(equity, float)
    exposure = np.full(equity.size, 0.5)
    return Curve(np.arange(equity.size) * step, equity, 252.0, exposure=exposure, fills=table, costs=costs, gross=0.0, **more)


@some.composite
def curves(draw):
    changes = draw(some.lists(some.one_of(some.just(0.0), some.floats(-0.6, 0.8), some.floats(-0.01, 0.01)), min_size=1, max_size=40))
    equity = np.round(1e5 * np.concatenate(([1.0], np.cumprod(1.0 + np.array(changes)))), 9)
    price = some.integers(1, 10**6).map(lambda cents: cents / 100)
    fill = some.tuples(some.integers(-5, 5).filter(bool), price, some.sampled_from([0.0, 1.25]))
    return curve_of(equity, draw(some.lists(fill, max_size=12)), step=draw(some.sampled_from([DAY // 24, DAY, 9 * DAY])))


def resolved(curve):
    """Whether sums of squares tell the deviation to 1e-9: it is none, or at least a hundredth of the mean (a Sharpe ratio of 100 a bar)."""
    spread = deviation(curve.returns[np.isfinite(curve.returns)])
    return isinstance(spread, Undefined) or spread == 0.0 or spread > 0.01 * abs(float(np.mean(curve.returns)))


def agree(curve, summary, **rules):
    """Compares every metric that a summary can tell; the number of them that have a value."""
    known = 0
    for wanted, found in zip(evaluate(curve, ALL, **rules), evaluate_summary(summary, ALL, **rules), strict=True):
        if wanted.name == "exposure":
            continue
        assert found.reason == wanted.reason, wanted.name
        if wanted.value is not None:
            known += 1
            assert found.value == pytest.approx(wanted.value, rel=1e-9, abs=1e-12), wanted.name
    return known


CONSTANT = curve_of(1e5 * 1.001 ** np.arange(50))
ZERO = curve_of(np.full(30, 1e5))
ONE_BAR = curve_of([1e5, 1.01e5])
RUINED = curve_of([1e5, 5e4, -1e3, -1e3, -1e3], ruined=True)
ALL_LOST = curve_of([1e5, 5e4, 0.0, 0.0], ruined=True)
ONLY_DOWN = curve_of(np.linspace(1e5, 5e4, 40))
NO_BAR = curve_of([1e5])


@settings(max_examples=300)
@given(curves())
@example(CONSTANT)
@example(ZERO)
@example(ONE_BAR)
@example(RUINED)
@example(ALL_LOST)
@example(ONLY_DOWN)
@example(NO_BAR)
def test_every_metric_of_the_summary_equals_that_of_the_curve(curve):
    assume(resolved(curve))
    for made in (passed(curve), summary_of(curve)):
        assert agree(curve, made) >= 2  # total return and maximum drawdown always exist
        if not curve.ruined:  # after ruin a report shows none of the ratios
            agree(curve, made, report_rules=False)


@given(curves())
def test_summary_of_a_curve_equals_the_one_filled_bar_by_bar(curve):
    one, other = passed(curve), summary_of(curve)
    for name in Summary.__dataclass_fields__:
        wanted, found = getattr(one, name), getattr(other, name)
        assert found == wanted if not isinstance(wanted, float) else found == pytest.approx(wanted, rel=1e-9, abs=1e-9), name


@given(curves())
def test_peak_and_valley_are_those_of_the_deepest_drawdown(curve):
    summary, table = summary_of(curve), drawdown_table(curve, 1)
    assert (summary.peak_bar, summary.valley_bar) == ((table[0].peak, table[0].valley) if table else (0, 0))


@given(curves())
def test_moments_are_those_of_the_population(curve):
    assume(resolved(curve))
    summary = summary_of(curve)
    spread = summary.deviation()
    if isinstance(spread, Undefined) or spread == 0.0:
        assert isinstance(summary.skewness(), Undefined) and isinstance(summary.kurtosis(), Undefined)
        return
    assert spread == pytest.approx(curve.returns.std(ddof=1), rel=1e-9)
    assert summary.skewness() == pytest.approx(stats.skew(curve.returns), rel=1e-7, abs=1e-7)
    assert summary.kurtosis() == pytest.approx(stats.kurtosis(curve.returns, fisher=False), rel=1e-7)


def test_moments_of_tiny_returns_neither_vanish_nor_overflow():
    # powers of the returns themselves would leave the range of float64 from here on
    for scale in (1e-60, 1e-18, 1e70):
        returns = scale * np.array([1.0, -2.0, 4.0, 0.5])
        base = summary_of(curve_of(np.full(5, 1.0)))
        sums = {f"return_sum{end}": float((returns**power).sum()) for power, end in enumerate(("", "_2", "_3", "_4"), 1)}
        made = Summary(**{name: getattr(base, name) for name in Summary.__dataclass_fields__} | sums)
        assert made.skewness() == pytest.approx(stats.skew(returns), rel=1e-9)
        assert made.kurtosis() == pytest.approx(stats.kurtosis(returns, fisher=False), rel=1e-9)


def test_deviation_is_zero_where_rounding_is_all_that_is_left_of_it():
    long = curve_of(1e5 * 1.00001 ** np.arange(20_000))
    assert passed(long).deviation() == 0.0 == summary_of(long).deviation()
    assert passed(long).sharpe() == Undefined("returns never vary")
    changes = 1e-3 + 1e-6 * np.random.default_rng(1).standard_normal(5000)  # a thousandth of the mean is a deviation
    curve = curve_of(1e5 * np.concatenate(([1.0], np.cumprod(1.0 + changes))))
    assert passed(curve).deviation() == pytest.approx(curve.returns.std(ddof=1), rel=1e-6)


def test_sharpe_a_bar_is_the_metric_without_its_year():
    curve = curve_of([1e5, 1.01e5, 1.0e5, 1.03e5])
    assert summary_of(curve).sharpe() * math.sqrt(252.0) == pytest.approx(SharpeRatio().compute(curve), rel=1e-12)
    assert summary_of(ZERO).sharpe() == Undefined("equity never moved")
    assert summary_of(ONE_BAR).sharpe() == Undefined("fewer than two bars")


def test_fills_without_a_value_leave_the_same_reasons():
    curve = curve_of([1e5, 1.01e5, 1.0e5], [(1, 10.0, 0.0), (-1, 11.0, 0.0)])
    curve.fills["notional"] = np.nan
    assert agree(curve, summary_of(curve), report_rules=False) >= 2
    reasons = {one.name: one.reason for one in evaluate_summary(summary_of(curve), ALL, report_rules=False)}
    assert reasons["turnover"] == reasons["win_rate"] == "the fills do not state their value"


def test_metric_that_needs_the_curve_is_null_and_says_so():
    (found,) = evaluate_summary(summary_of(ONE_BAR), [Exposure()])
    assert (found.value, found.reason) == (None, NEEDS_CURVE)
    assert [metric.name for metric in ALL if not summarised(metric)] == ["exposure"]


def test_metric_that_fails_on_a_summary_is_named():
    class Broken(SharpeRatio):
        name = "broken"

        def of_summary(self, summary):
            raise KeyError("x")

    with pytest.raises(PluginError, match="metric broken: of_summary failed: KeyError"):
        evaluate_summary(summary_of(curve_of([1e5] * 50)), [Broken()])
