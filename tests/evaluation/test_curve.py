"""Curves: from returns, from accounts, aligned by stamp."""

from types import SimpleNamespace

import numpy as np
import pytest

from bellmark.errors import BellmarkError
from bellmark.evaluation.curve import FILLS, Curve, curve_of_lanes, curve_of_returns, sampled

FILL = np.dtype([("stamp", "i8"), ("lots", "i8"), ("notional", "f8"), ("fee", "f8"), ("spread", "f8"), ("slippage", "f8")])


def lane(symbol, stamps, equity, exposure, *, fills=(), costs=None, ruined=False):
    table = np.array(list(fills), FILL) if fills else np.zeros(0, FILL)
    return SimpleNamespace(
        symbol=symbol, stamp_T=np.array(stamps, np.int64), equity_T=np.array(equity, np.int64) * 1_000_000_000,
        exposure_T=np.array(exposure, float), fills=table, costs=costs or {"spread": 1.0}, gross=2.0, ruined=ruined,
    )  # fmt: skip


def test_accounts_are_summed_at_the_union_of_their_stamps():
    a = lane("A", [0, 2, 4], [100, 110, 120], [0.0, 1.0, 1.0])
    b = lane("B", [0, 1, 2], [100, 90, 80], [0.0, -1.0, -1.0])
    curve = curve_of_lanes([a, b], 252)
    assert curve.stamp_ns.tolist() == [0, 1, 2, 4]
    assert curve.equity == pytest.approx([200.0, 190.0, 190.0, 200.0])
    assert curve.exposure == pytest.approx([0.0, -90 / 190, 30 / 190, 40 / 200])
    assert curve.gross_exposure == pytest.approx([0.0, 90 / 190, 190 / 190, 200 / 200])
    assert curve.symbols == ("A", "B")
    assert curve.costs == {"spread": 2.0} and curve.gross == 4.0


def test_one_account_keeps_its_arrays_and_its_fills_in_order():
    fills = [(4, -1, 90.0, 1.0, 0.0, 0.0), (2, 1, 80.0, 1.0, 0.0, 0.0)]
    curve = curve_of_lanes([lane("A", [0, 2, 4], [100, 110, 120], [0.0, 1.0, 0.5], fills=fills)], 252)
    assert curve.exposure.tolist() == [0.0, 1.0, 0.5] and curve.gross_exposure is None
    assert curve.fills["stamp"].tolist() == [2, 4]
    assert curve.fills.dtype == FILLS


def test_portfolio_is_ruined_only_when_every_account_is():
    alive, dead = lane("A", [0, 1], [100, 100], [0, 0]), lane("B", [0, 1], [100, 1], [0, 0], ruined=True)
    assert not curve_of_lanes([alive, dead], 252).wiped_out
    assert curve_of_lanes([dead], 252).wiped_out


def test_returns_are_equity_over_the_equity_before():
    curve = Curve(stamp_ns=np.arange(3), equity=np.array([100.0, 110.0, 99.0]), periods_per_year=252)
    assert curve.returns == pytest.approx([0.1, -0.1])
    assert curve.bars == 2


def test_curve_of_returns_drops_unknown_bars_but_keeps_the_span():
    curve = curve_of_returns(np.array([np.nan, 0.1, np.nan, 0.1]), np.array([10, 20, 30, 40]), 252)
    assert curve.stamp_ns.tolist() == [10, 20, 40]
    assert curve.equity == pytest.approx([1.0, 1.1, 1.21])


def test_sampling_takes_the_latest_known_value():
    values = sampled(np.array([1.0, 2.0, 3.0]), np.array([10, 20, 30]), np.array([5, 10, 25, 99]))
    assert values.tolist() == [1.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize("equity", [[], [0.0, 1.0], [-1.0, 1.0], [np.nan, 1.0]])
def test_curve_without_a_start_equity_above_zero_is_refused(equity):
    with pytest.raises(BellmarkError, match="curve: expected"):
        Curve(stamp_ns=np.arange(len(equity)), equity=np.array(equity, float), periods_per_year=252)


def test_no_account_is_refused():
    with pytest.raises(BellmarkError, match="at least one account"):
        curve_of_lanes([], 252)


def test_one_account_of_several_symbols_names_them_all_and_its_fills_say_which():
    table = np.zeros(2, [*FILL.descr, ("symbol", "i4")])
    table["stamp"], table["symbol"], table["lots"] = [2, 4], [1, 0], [3, -3]
    both = lane("A+B", [0, 2, 4], [100, 110, 120], [0.0, 0.2, 0.0])
    both.symbols, both.gross_exposure_T, both.fills = ("A", "B"), np.array([0.0, 0.8, 0.0]), table
    curve = curve_of_lanes([both], 252)
    assert curve.symbols == ("A", "B") and curve.fills["symbol"].tolist() == [1, 0]
    assert curve.exposure.tolist() == [0.0, 0.2, 0.0] and curve.gross_exposure.tolist() == [0.0, 0.8, 0.0]
    other = lane("C", [0, 2, 4], [100, 100, 100], [0.0, -0.5, 0.0], fills=[(2, -1, 50.0, 0.0, 0.0, 0.0)])
    summed = curve_of_lanes([both, other], 252)
    assert summed.symbols == ("A", "B", "C") and sorted(summed.fills["symbol"]) == [0, 1, 2]
    assert summed.gross_exposure == pytest.approx([0.0, (0.8 * 110 + 50) / 210, 0.0])
