"""What holds for any market: the engine equals the reference, the accounts add up, nothing comes from nowhere.

Random bars with gaps, halts, rolls, funding, bars without volume and of unknown volume; orders of every type and urgency; random costs,
margins and protective levels. The rules that are compiled in are few sets, so that the examples share their kernels.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from market_cases import ALL_RULES, market_data, random_bars
from reference_market import (
    EVERY_ACTION,
    EXPOSURES,
    NANO,
    compare,
    decimal,
    fixed_lots,
    found_in,
    nearest,
    play,
    reference,
    script,
    simulate,
)

from bellmark import market
from bellmark.actions import ActionSpace
from bellmark.backtester import run_strategy
from bellmark.instrument import Instrument

pytestmark = pytest.mark.cpu
BARS, LOTS = 40, 20
QUARTER = Instrument("X", tick_size=0.25)
COIN = Instrument("X", tick_size=0.01, lot_size=0.003, contract_multiplier=7.0)  # a quantum of a lot is no whole number of nano-currency
FREE = Instrument("X", price_quantum=0.001, contract_multiplier=10.0)
MARKET_SPACE = ActionSpace(EXPOSURES)
STATIC = {
    "default": {},
    "options": {"stop_from": "next_bar", "stop_anchor": "decision", "target_gap": "open"},
    "late": {"latency_bars": 2, "unaffordable": "cut", "close_at_end": True},
    "same_close": {"same_close": True},
}
few = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def random_market(seed, instrument=QUARTER, count=BARS, symbol="X", extras=True):
    """Bars with gaps and everything that may happen in them; without `extras` there are no halts, fundings and rolls in their columns."""
    rng = np.random.default_rng(seed)
    tick = instrument.tick_size or 0.01
    bars = random_bars(count, seed=seed, scale=rng.choice([0.003, 0.01, 0.04]), tick=tick, symbol=symbol)
    unit = instrument.lot_size
    volume = rng.choice([0.0, np.nan, *(unit * np.array([1, 3, 8, 20, 50, 200]))], size=count)
    bars = replace(bars, volume=volume)
    if not extras:
        never = np.full(count, np.nan)
        return replace(bars, halted=np.zeros(count, bool), funding_rate=never, funding_mark=never, roll_price=never)
    rolls = rng.random(count) < 0.05
    settles = rng.random(count) < 0.1
    step = tick * rng.integers(-20, 20, count)
    return replace(
        bars,
        halted=rng.random(count) < 0.05,
        funding_rate=np.where(settles, rng.choice([-0.0003, 0.0001, 0.0025], count), np.nan),
        funding_mark=np.where(rng.random(count) < 0.5, bars.close, np.nan),
        roll_price=np.where(rolls, np.maximum(bars.close + step, tick), np.nan),
    )


def random_decisions(seed, space, count=BARS):
    """Decisions that last a while."""
    rng = np.random.default_rng(seed + 1_000_000)
    asked = []
    for _ in range(count):
        if not asked or rng.random() < 0.4:
            asked.append(
                (float(rng.choice(space.exposures)), int(rng.integers(len(space.order_types))), int(rng.integers(len(space.urgencies))))
            )
        else:
            asked.append(asked[-1])
    if len(space.urgencies) == 1:
        return [(exposure, kind, 1) for exposure, kind, _ in asked]
    return asked


@st.composite
def costs(draw, ticks=True):
    """Settings that numbers alone turn on and off."""
    pick = lambda *values: draw(st.sampled_from(values))  # noqa: E731
    in_ticks = lambda *values: pick(0.0, *values) if ticks else 0.0  # noqa: E731
    three = st.tuples(*[st.sampled_from([-2.0, 0.0, 1.0, 3.0])] * 3) if ticks else st.just((0.0, 0.0, 0.0))
    shares = st.tuples(*[st.sampled_from([0.0, 3.0, 25.0])] * 3)
    return {
        "start_equity": pick(2_500.0, 100_000.0),
        "spread_ticks": in_ticks(1.0, 2.0, 3.0),
        "slippage_ticks": in_ticks(1.0),
        "slippage_bps": pick(0.0, 5.0),
        "roll_spread_ticks": pick(None, 0.0, 4.0) if ticks else None,
        "fee_per_contract": pick(0.0, 0.07, 1.0),
        "fee_bps": pick(0.0, 3.0),
        "maker_fee_per_contract": pick(None, 0.0, -0.02),
        "maker_fee_bps": pick(None, 1.0),
        "fee_minimum": pick(0.0, 0.0, 1.5),
        "initial_margin_rate": pick(0.0, 0.2, 1.0),
        "initial_margin_per_contract": pick(0.0, 3.0),
        "maintenance_margin_rate": pick(0.0, 0.0, 0.15, 0.6),
        "capital_floor": pick(0.0, 0.5),
        "participation": pick((), (0.1, 0.25, 0.5), (1.0, 1.0, 1.0)),
        "limit_offset_ticks": draw(three),
        "limit_offset_bps": draw(shares),
        "ioc_cap_ticks": draw(three),
        "ioc_cap_bps": draw(shares),
        "stop_loss": pick(0.0, 0.0, 0.004, 0.02),
        "stop_loss_ticks": in_ticks(3.0),
        "take_profit": pick(0.0, 0.0, 0.01, 0.03),
        "take_profit_ticks": in_ticks(5.0),
        "trailing_stop": pick(0.0, 0.0, 0.008, 0.025),
        "trailing_stop_ticks": in_ticks(4.0),
    }


def market_of(bars, instrument, static, **rules):
    """All rules compiled in; same_close knows market orders alone, and no maintenance margin."""
    late = not static.get("same_close")
    if not late:
        rules["maintenance_margin_rate"] = 0.0
    kept = "all" if late else tuple(rule for rule in ALL_RULES if rule != "orders")
    return market_data(
        bars, instrument, sizing=("fixed_lots", {"lots": LOTS}), space=EVERY_ACTION if late else MARKET_SPACE, rules=kept, **static, **rules
    )


@pytest.mark.parametrize("static", [name if name == "default" else pytest.param(name, marks=pytest.mark.slow) for name in STATIC])
@few
@given(seed=st.integers(0, 10**6), rules=costs())
def test_the_engine_equals_the_reference(static, seed, rules):
    bars = random_market(seed)
    data = market_of(bars, QUARTER, STATIC[static], **rules)
    decisions = random_decisions(seed, data.space)
    lane = play(data, decisions)
    compare(lane, reference(data, bars, decisions, fixed_lots(LOTS)))
    check_account(lane, data, bars, STATIC[static])


@pytest.mark.parametrize(("instrument", "ticks"), [(COIN, True), (FREE, False)], ids=["fractions", "no tick"])
@few
@given(data=st.data(), seed=st.integers(0, 10**6))
def test_the_engine_equals_the_reference_for_other_instruments(instrument, ticks, data, seed):
    bars = random_market(seed, instrument)
    market_of_it = market_of(bars, instrument, {}, **data.draw(costs(ticks)))
    decisions = random_decisions(seed, EVERY_ACTION)
    compare(play(market_of_it, decisions), reference(market_of_it, bars, decisions, fixed_lots(LOTS)))


def check_account(lane, data, bars, static):
    """What holds on any account, whatever the reference says."""
    found, instrument = found_in(lane), data.tape.instruments[0]
    total = nearest(decimal(lane.gross) * NANO) - sum(found.costs.values()) + nearest(decimal(lane.rounding) * NANO)
    start = nearest(decimal(data.settings.start_equity) * NANO)
    assert found.equity[-1] == start + total
    low, high, close = (getattr(data.tape, f"{name}_ST")[0].tolist() for name in ("low", "high", "close"))
    quantum = float(instrument.quantum)
    mark = [price if math.isnan(roll) else round(roll / quantum) for price, roll in zip(close, bars.roll_price, strict=True)]
    shares = data.settings.participation
    traded = set()
    for fill in found.fills:
        gapped = fill.cause == market.TARGET and not static.get("target_gap")
        in_next = fill.reference == mark[fill.bar] and (fill.cause == market.ROLL_IN or static.get("same_close"))
        assert gapped or in_next or low[fill.bar] <= fill.reference <= high[fill.bar]
        paid = abs(fill.lots) * abs(fill.price - fill.reference) * instrument.value
        assert fill.spread + fill.slippage == paid  # of all lots: a reversal pays for both sides
        assert (fill.price - fill.reference) * fill.lots >= 0
        if fill.cause == market.ORDER:
            volume = bars.volume[fill.bar]
            assert volume != 0 and not bars.halted[fill.bar]
            assert not shares or math.isnan(volume) or abs(fill.lots) <= max(shares) * volume
        traded.add(fill.bar)
    alive = len(found.equity) if not lane.ruined else found.equity.index(found.equity[-1]) + 1
    for t in range(2 if static.get("same_close") else 1, alive):  # the first point is the start, before a fill at its close
        if t not in traded and (found.position[t] == 0 or math.isnan(bars.funding_rate[t])):
            assert found.position[t] == found.position[t - 1]
            assert found.equity[t] - found.equity[t - 1] == found.position[t] * (close[t] - mark[t - 1]) * instrument.value
        assert abs(found.position[t]) <= LOTS


@few
@given(seed=st.integers(0, 10**6), first=st.integers(0, 300), more=st.integers(1, 300))
def test_final_equity_does_not_rise_with_the_fee_for_the_same_fills(seed, first, more):
    bars = random_market(seed)
    decisions = random_decisions(seed, EVERY_ACTION)
    lanes = [
        play(market_of(bars, QUARTER, {}, fee_per_contract=fee / 1000, fee_bps=fee / 100, start_equity=1e6), decisions)
        for fee in (0, first, first + more)
    ]
    assert len({tuple(lane.fills["lots"].tolist()) for lane in lanes}) == 1
    ends = [int(lane.equity_T[-1]) for lane in lanes]
    assert ends == sorted(ends, reverse=True)
    assert not len(lanes[0].fills) or ends[1] > ends[2]


@few
@given(seed=st.integers(0, 10**6), before=st.integers(1, 9), after=st.integers(1, 9), long=st.booleans())
def test_a_reversal_pays_two_sides(seed, before, after, long):
    bars = replace(random_market(seed, extras=False), volume=np.full(BARS, np.nan))
    side = 1 if long else -1
    how = {"fee_per_contract": 0.5, "spread_ticks": 2.0}
    data = market_data(bars, QUARTER, sizing=("fixed_lots", {"lots": 10}), space=WIDE, rules="all", **how)
    lane = play(data, [(side * before / 10, 0, 0)] * 3 + [(-side * after / 10, 0, 0)])
    assert lane.fills["lots"].tolist() == [side * before, -side * (before + after)]
    assert lane.fills["fee"].tolist() == [before * 0.5, (before + after) * 0.5]
    assert lane.fills["spread"].tolist() == [before * 0.25, (before + after) * 0.25]


WIDE = ActionSpace(tuple(level / 10 for level in range(-10, 11)), EVERY_ACTION.order_types, EVERY_ACTION.urgencies)


def same_bits(one, other):
    for name in ("equity_T", "position_T", "exposure_T", "fills", "rejections", "decided_T", "order_T", "reason_T"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    for name in ("costs", "gross", "rounding", "ruined", "open_position"):
        assert getattr(one, name) == getattr(other, name), name


@few
@given(seed=st.integers(0, 10**6), fee=st.integers(0, 100), margin=st.sampled_from([0.0, 0.3]))
def test_rules_with_neutral_settings_equal_rules_compiled_out(seed, fee, margin):
    """Stops, participation, orders, maintenance, halts, funding and rolls compiled in and never used."""
    bars = random_market(seed, extras=False)
    how = {"fee_per_contract": fee / 100, "spread_ticks": 1.0, "initial_margin_rate": margin, "start_equity": 5_000.0}
    decisions = random_decisions(seed, MARKET_SPACE)
    plain = replace(bars, halted=None, funding_rate=None, funding_mark=None, roll_price=None)
    lean = market_data(plain, QUARTER, sizing=("fixed_lots", {"lots": LOTS}), space=MARKET_SPACE, **how)
    whole = market_of(bars, QUARTER, {}, **how)
    one, other = play(lean, decisions), play(whole, decisions)
    same_bits(one, other)
    assert one.equity_T[0] == other.equity_T[0] == 5_000 * NANO


@few
@given(seed=st.integers(0, 10**6), rules=costs())
@example(seed=0, rules={"stop_loss": 0.01, "participation": (0.1, 0.25, 0.5)})
def test_a_rule_strategy_equals_the_same_decisions_bar_by_bar(seed, rules):
    bars = random_market(seed)
    data = market_of(bars, QUARTER, {}, **rules)
    decisions = [(exposure, 0, 1) for exposure, _, _ in random_decisions(seed, MARKET_SPACE)]
    whole = run_strategy(data, script(exposure for exposure, _, _ in decisions)).lanes[0]
    stepped = play(data, decisions)
    same_bits(whole, stepped)
    # ruin ends the decisions of both at the same point
    assert np.count_nonzero(~np.isnan(whole.decided_T)) == np.count_nonzero(~np.isnan(stepped.decided_T)) > 0


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 10**6), rules=costs())
def test_a_shared_account_equals_the_reference(seed, rules):
    rng = np.random.default_rng(seed)
    whole = [random_market(seed + number, symbol=name) for number, name in enumerate("ABC")]
    bars = [item.take(np.sort(rng.choice(BARS, size, replace=False))) for item, size in zip(whole, (BARS, 30, 25), strict=True)]
    data = market_of(bars, QUARTER, {"account": "shared"}, **rules)
    decisions = [[(exposure, 0, 1) for exposure, _, _ in random_decisions(seed + number, MARKET_SPACE)] for number in range(3)]
    lane = run_strategy(data, script(exposure for asked in decisions for exposure, _, _ in asked)).lanes[0]
    left = [row[: len(item)].tolist() for row, item in zip(data.tape.session_left_ST, bars, strict=True)]
    outcome = simulate(bars, list(data.tape.instruments), data.settings, decisions, fixed_lots(LOTS), left)
    compare(lane, outcome)
