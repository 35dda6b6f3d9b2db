"""The market rules: an independent reference in fractions, the accounting identity, refusals, what may not leave int64."""

from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from market_cases import bars_of, market_data, random_bars

from bellmark import market
from bellmark.assembly import assemble
from bellmark.backtester import policy_backtest, run_batch_policy, run_strategy
from bellmark.component import Strategy, component, make
from bellmark.errors import UsageError
from bellmark.host import host
from bellmark.instrument import Instrument
from bellmark.profile import load_profile

ES = Instrument("ES", tick_size=0.25, contract_multiplier=50.0)


def strategy(name, **values):
    return make(host().get("strategy", name), values, name)


def run(data, name, **values):
    return run_strategy(data, strategy(name, **values))


def scripted(data, actions):
    """A policy that plays a list of actions, then repeats the last."""
    played = iter([*actions, *[actions[-1]] * 10_000])
    return run_batch_policy(data, lambda observation, allowed: np.array([next(played)]), data.no_normalisation(1))


def reference_equity(bars, exposures, lots, half_spread, slippage, fee_per_lot, value, start):
    """Equity after each bar in exact fractions: fixed lots, orders at the next open, sized when the exposure changes."""
    cash, position, held, equity = Fraction(start), 0, 0.0, [Fraction(start)]
    for t in range(len(bars) - 1):
        if exposures[t] != held:
            target = round(exposures[t] * lots)
            order = target - position
            held = exposures[t]
            if order:
                price = Fraction(str(bars.open[t + 1])) + (half_spread + slippage) * (1 if order > 0 else -1)
                cash -= order * price * value + abs(order) * fee_per_lot
                position = target
        equity.append(cash + position * Fraction(str(bars.close[t + 1])) * value)
    return equity, position


def test_a_round_trip_on_es_pays_a_tick_and_two_fees():
    data = market_data(
        bars_of([5000.0] * 4, close_T=[5000.0] * 4), ES, spread_ticks=1.0, fee_per_contract=2.25, start_equity=50_000.0
    )
    result = scripted(data, [2, 1, 1])
    lane = result.lanes[0]
    assert lane.costs == {"spread": 12.5, "slippage": 0.0, "fees": 4.5, "funding": 0.0}
    assert lane.equity_T[-1] == 50_000 * 10**9 - 17 * 10**9
    assert [(int(fill["bar"]), int(fill["lots"])) for fill in lane.fills] == [(1, 1), (2, -1)]


def test_an_order_decided_at_a_close_fills_at_the_next_open():
    data = market_data(bars_of([10, 20, 30], close_T=[11, 21, 31]))
    lane = scripted(data, [2, 2, 2]).lanes[0]
    assert lane.fills["reference"].tolist() == [round(20 / data.tape.instruments[0].price_quantum)]
    assert (lane.equity_T * 1e-9).round(6).tolist() == [100_000.0, 100_001.0, 100_011.0]


def test_a_reversal_pays_two_sides():
    data = market_data(bars_of([100.0] * 4), ES, spread_ticks=2.0)
    lane = scripted(data, [2, 0, 0]).lanes[0]
    assert lane.fills["lots"].tolist() == [1, -2]
    assert lane.fills["spread"].tolist() == [12.5, 25.0]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 10_000),
    actions=st.lists(st.integers(0, 2), min_size=39, max_size=39),
    spread=st.integers(0, 4),
    slippage=st.integers(0, 3),
    fee=st.integers(0, 500),
)
def test_equity_equals_an_exact_reference_for_random_bars_orders_and_costs(seed, actions, spread, slippage, fee):
    bars = random_bars(40, seed=seed, first=5000.0, tick=0.25, scale=0.02)
    data = market_data(
        bars, ES, sizing=("fixed_lots", {"lots": 3}), spread_ticks=float(spread), slippage_ticks=float(slippage),
        fee_per_contract=fee / 100, start_equity=1e6,
    )  # fmt: skip
    lane = scripted(data, actions).lanes[0]
    tick = Fraction(1, 4)
    expected, position = reference_equity(
        bars, [-1.0 + a for a in actions], 3, tick * spread / 2, tick * slippage, Fraction(fee, 100), Fraction(50), 10**6
    )
    assert [Fraction(int(x), 10**9) for x in lane.equity_T] == expected
    assert lane.open_position == position and lane.rounding == 0.0


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 10_000), bps=st.floats(0, 50), fraction=st.floats(0.1, 2.0))
def test_the_accounts_add_up_with_fractional_fees_and_equity_sizing(seed, bps, fraction):
    # lane_result raises where the identity or its rounding bound fails
    data = market_data(
        random_bars(60, seed=seed, scale=0.05), sizing=("equity_fraction", {"fraction": fraction}), fee_bps=bps, slippage_bps=bps,
        fee_minimum=1.0, resize="always",
    )  # fmt: skip
    lane = run(data, "random", seed=seed, change_probability=0.5).lanes[0]
    total = lane.gross - sum(lane.costs.values()) + lane.rounding
    assert lane.equity_T[-1] * 1e-9 == pytest.approx(100_000.0 + total, rel=1e-12)


def test_equity_never_moves_without_a_position():
    lane = run(market_data(random_bars(50)), "flat").lanes[0]
    assert (lane.equity_T == lane.equity_T[0]).all() and not len(lane.fills)


def test_final_equity_does_not_rise_with_the_fee():
    ends = [
        run(market_data(random_bars(200, seed=5), fee_bps=bps), "random", change_probability=0.3).lanes[0].equity_T[-1]
        for bps in (0.0, 1.0, 5.0, 20.0)
    ]
    assert ends == sorted(ends, reverse=True) and ends[0] > ends[-1]


def test_an_unaffordable_order_is_refused_with_its_reason_and_not_cut():
    data = market_data(bars_of([100.0] * 4), sizing=("fixed_lots", {"lots": 1001}), initial_margin_rate=1.0)
    lane = run(data, "buy_and_hold").lanes[0]
    assert not len(lane.fills)
    assert {market.REASONS[code] for code in lane.rejections["reason"][:-1]} == {market.REASONS[market.UNAFFORDABLE]}
    assert lane.rejections["lots"].tolist() == [1001] * 4


def test_closing_needs_no_margin():
    data = market_data(bars_of([100, 100, 20, 20, 20], close_T=[100, 100, 20, 20, 20]), sizing=("fixed_lots", {"lots": 1000}),
                       initial_margin_rate=1.0)  # fmt: skip
    lane = scripted(data, [2, 2, 1, 1]).lanes[0]
    assert lane.fills["lots"].tolist() == [1000, -1000] and not len(lane.rejections)


def test_a_bar_without_volume_does_not_fill_and_unknown_volume_does():
    data = market_data(bars_of([10.0] * 4, volume_T=[1, 0, 1, 1]))
    lane = run(data, "buy_and_hold").lanes[0]
    assert lane.rejections["reason"].tolist() == [market.NO_VOLUME] and lane.fills["bar"].tolist() == [2]
    unknown = market_data(bars_of([10.0] * 4, volume_T=[np.nan] * 4))
    assert run(unknown, "buy_and_hold").lanes[0].fills["bar"].tolist() == [1]


def test_an_order_on_the_last_bar_is_listed_as_unfilled_and_the_position_is_marked():
    data = market_data(bars_of([10.0, 10.0, 12.0]))
    lane = scripted(data, [1, 1, 2]).lanes[0]
    assert not len(lane.fills)
    assert lane.rejections["reason"].tolist() == [market.LAST_BAR] and lane.rejections["lots"].tolist() == [1]
    held = run(data, "buy_and_hold").lanes[0]
    assert held.open_position == 1 and held.equity_T[-1] == (100_000 + 2) * 10**9


def test_the_last_bar_is_marked():
    lane = run(market_data(bars_of([10.0, 10.0, 10.0], close_T=[10.0, 10.0, 15.0])), "buy_and_hold").lanes[0]
    assert lane.equity_T[-1] == 100_005 * 10**9


def test_a_lane_at_its_capital_floor_is_ruined_and_stops():
    data = market_data(bars_of([100, 100, 50, 10, 100]), sizing=("fixed_lots", {"lots": 2000}), capital_floor=0.2)
    lane = run(data, "buy_and_hold").lanes[0]
    assert lane.ruined
    assert (lane.equity_T * 1e-9).tolist() == [100_000.0, 100_000.0, 0.0, 0.0, 0.0]


def test_a_short_position_gains_when_the_price_falls():
    lane = scripted(market_data(bars_of([100, 100, 90])), [0, 0]).lanes[0]
    assert lane.equity_T[-1] == 100_010 * 10**9


def test_negative_prices_are_legal_where_the_instrument_says_so():
    oil = Instrument("CL", tick_size=0.01, contract_multiplier=1000.0, allow_negative_prices=True)
    lane = scripted(market_data(bars_of([10.0, 10.0, -37.63, -37.63]), oil), [0, 1, 1]).lanes[0]
    assert lane.fills["lots"].tolist() == [-1, 1]
    assert lane.equity_T[-1] == round((100_000 + 47.63 * 1000) * 10**9)


def test_a_sale_at_a_price_that_costs_push_below_zero_is_refused():
    lane = scripted(market_data(bars_of([0.01] * 3), slippage_ticks=2.0), [0, 0]).lanes[0]
    assert lane.rejections["reason"].tolist() == [market.BAD_PRICE] * 2 + [market.LAST_BAR]


def test_flat_by_close_is_flat_at_every_session_end():
    minute = 60_000_000_000
    bars = random_bars(120, seed=2, step=minute * 60)  # sessions of 24 hourly bars, by day of UTC
    data = market_data(bars, flat_by_close=True)
    lane = run(data, "buy_and_hold").lanes[0]
    ends = np.flatnonzero(data.tape.session_left_ST[0] == 0)
    assert not lane.position_T[ends].any()
    inside = [lane.position_T[first + 2 : last].all() for first, last in zip(ends[:-1], ends[1:] - 1, strict=True)]
    assert all(inside)  # the position is taken anew in every session


def test_flat_by_close_on_daily_bars_is_refused():
    with pytest.raises(UsageError, match="flat_by_close: expected sessions of several bars"):
        run(market_data(bars_of([1.0] * 5), flat_by_close=True), "flat")


def test_exposure_is_held_in_lots_unless_resize_is_always():
    bars = bars_of([100, 100, 110, 121, 121])
    sized = ("equity_fraction", {"fraction": 0.5})
    assert len(run(market_data(bars, sizing=sized), "buy_and_hold").lanes[0].fills) == 1
    assert len(run(market_data(bars, sizing=sized, resize="always"), "buy_and_hold").lanes[0].fills) > 1


def test_an_action_out_of_range_or_illegal_is_an_error_with_bar_and_lane():
    data = market_data(bars_of([10.0] * 4))
    with pytest.raises(UsageError, match=r"bar 0, lane 0: expected an action in 0\.\.2, found 3"):
        scripted(data, [3])
    masked = market_data(bars_of([10.0] * 4), masks=[("max_position", {"max_lots": 0})])
    with pytest.raises(UsageError, match="bar 0, lane 0: action 2 is not legal"):
        scripted(masked, [2])


def test_two_symbols_are_two_accounts():
    data = market_data([random_bars(30, seed=1, symbol="A"), random_bars(20, seed=2, symbol="B")])
    result = run(data, "buy_and_hold")
    assert [lane.symbol for lane in result.lanes] == ["A", "B"]
    assert [lane.stamp_T.size for lane in result.lanes] == [30, 20]
    alone = run(market_data(random_bars(20, seed=2, symbol="B")), "buy_and_hold").lanes[0]
    assert (alone.equity_T == result.lanes[1].equity_T).all()


def test_a_strategy_run_and_the_same_actions_bar_by_bar_give_the_same_bits():
    data = market_data(random_bars(120, seed=9), fee_bps=3.0, slippage_bps=2.0, sizing=("equity_fraction", {}))
    whole = run(data, "sma_cross", fast=3, slow=8).lanes[0]
    close_T = data.tape.close_ST[0]

    wanted = [2 if t >= 7 and close_T[t - 2 : t + 1].sum() * 8 > close_T[t - 7 : t + 1].sum() * 3 else 1 for t in range(120)]
    stepped = scripted(data, wanted).lanes[0]
    assert (whole.equity_T == stepped.equity_T).all() and (whole.fills == stepped.fills).all()


def test_the_future_does_not_change_the_past():
    base = random_bars(100, seed=4)
    for name in ("sma_cross", "random", "buy_and_hold"):
        first = run(market_data(base, fee_bps=1.0), name).lanes[0]
        changed = random_bars(100, seed=4)
        for column in (changed.open, changed.high, changed.low, changed.close):
            column[60:] = np.round(column[60:] * 1.5, 2)
        second = run(market_data(changed, fee_bps=1.0), name).lanes[0]
        assert (first.equity_T[:60] == second.equity_T[:60]).all(), name


def test_flat_by_close_takes_the_position_again_in_the_next_session():
    hour = 3_600_000_000_000
    data = market_data(random_bars(120, seed=2, step=hour), flat_by_close=True)
    lane = run(data, "buy_and_hold").lanes[0]
    session_T, left_T = data.tape.session_ST[0], data.tape.session_left_ST[0]
    held = {int(session) for session in np.unique(session_T) if lane.position_T[session_T == session].any()}
    assert held == set(range(int(session_T[-1]) + 1))
    assert not lane.position_T[left_T == 0].any()


def test_flat_by_close_holds_nothing_over_the_close_of_a_session_of_one_bar():
    hour = 3_600_000_000_000
    whole = random_bars(72, seed=2, step=hour)
    data = market_data(whole.take(np.r_[0:24, 30:31, 48:72]), flat_by_close=True)  # the middle day has one bar
    lane = run(data, "buy_and_hold").lanes[0]
    assert data.tape.session_left_ST[0][24] == 0 == data.tape.session_bar_ST[0][24]
    assert not lane.position_T[data.tape.session_left_ST[0] == 0].any() and lane.position_T.any()


@component
class Above(Strategy):
    """Long above a price: sees the close of the bar by the argument `price`."""

    name: ClassVar[str] = "above"

    @staticmethod
    def decide(price):
        return 1.0 if price > 20_000 else 0.0


def test_price_is_the_close_just_seen_in_a_strategy():
    data = market_data(bars_of([100.0, 100.0, 101.0, 99.0, 99.0, 102.0]))
    lane = run_strategy(data, Above()).lanes[0]
    assert data.tape.close_ST[0].max() == 102 * 200
    assert lane.position_T.tolist() == [0, 0, 0, 1, 0, 0]
    assert lane.rejections["lots"].tolist() == [1]  # the last decision sees the last close


def test_a_ruined_account_has_no_action_after_its_ruin():
    data = market_data(bars_of([100.0, 100.0, 50.0, 50.0, 50.0]), sizing=("fixed_lots", {"lots": 100}), start_equity=1000.0)
    lane = scripted(data, [2]).lanes[0]
    assert lane.ruined and lane.action_T.tolist() == [2, 2, -1, -1, -1]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [("start_equity", 1e11, r"market\.start_equity: expected float"), ("fee_minimum", 1e12, r"market\.fee_minimum: expected float"),
     ("fee_per_contract", 1e10, r"market\.fee_per_contract: expected float"), ("fee_bps", 1e12, r"market\.fee_bps: expected float"),
     ("fee_per_contract", 4e9, "leaves the range of the accounts"),
     ("initial_margin_per_contract", 4e9, "leaves the range of the accounts")],
)  # fmt: skip
def test_money_that_leaves_int64_is_refused_when_a_run_is_assembled(key, value, message):
    with pytest.raises(UsageError, match=message):
        run(market_data(bars_of([100.0] * 4), **{key: value}), "flat")


def test_a_size_whose_fee_would_leave_int64_is_refused():
    cheap = Instrument("X", tick_size=0.0001)
    data = market_data(bars_of([0.0001] * 4), cheap, sizing=("fixed_lots", {"lots": 10**13}), fee_per_contract=0.01, start_equity=4e9)
    lane = run(data, "buy_and_hold").lanes[0]
    assert not lane.fills.size and set(lane.rejections["reason"].tolist()) == {market.BAD_SIZE}


def test_decisions_that_a_learner_could_not_make_are_counted_in_the_warnings():
    assembly = assemble(load_profile("smoke", environment={}), host())
    runner = assembly._runner("test")
    runner.registry["parameter_LP"][1] = np.nan
    result = policy_backtest(assembly.data, runner, runner.run(), "x", "test", "", 0)
    bars = int(runner.last_N[0] - runner.first_N[0])
    assert result.warnings[-1] == f"learner 1: {bars} decisions took the no-op: an observation or Q value that is not finite, " + (
        f"first at bar {runner.first_N[0]} of OU (lane 0)"
    )
    assert not any(text.startswith("learner 0") for text in result.warnings)
