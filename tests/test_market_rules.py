"""Every market rule by example: short bars, numbers worked out by hand. The reference market plays each example too.

Prices are in points of 1.00, a lot is worth 1.00 a point, the account starts with 100,000 unless an example says otherwise.
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from market_cases import ALL_RULES, bars_of, market_data
from reference_market import EVERY_ACTION, as_decisions, compare, fixed_lots, play, reference, script, simulate

from bellmark import market
from bellmark.actions import ActionSpace
from bellmark.backtester import run_strategy
from bellmark.errors import UsageError
from bellmark.instrument import Instrument

pytestmark = pytest.mark.cpu
NAN = float("nan")
POINT = Instrument("X", tick_size=1.0)
NO_GRID = Instrument("X", price_quantum=0.01)
OIL = Instrument("CL", tick_size=0.01, contract_multiplier=1000.0, allow_negative_prices=True)
HOUR = 3_600_000_000_000
# Rules that are compiled in or out, in few sets so that few kernels are compiled.
LEAN = {"rules": (), "space": ActionSpace(EVERY_ACTION.exposures)}
OPTIONS = {"stop_from": "next_bar", "stop_anchor": "decision", "target_gap": "open"}
LATE = {"latency_bars": 2, "unaffordable": "cut", "close_at_end": True}
CUT = {"stop_anchor": "decision", "unaffordable": "cut", "rules": ("orders", "protect")}
LATER = {**LEAN, "latency_bars": 3, "flat_by_close": True}  # needs hourly bars
AT_FILL = {**LEAN, "size_at": "fill", "resize": "always"}


def limit(exposure, urgency="normal"):
    return as_decisions([exposure], "limit", urgency)[0]


def ioc(exposure, urgency="normal"):
    return as_decisions([exposure], "ioc", urgency)[0]


def bars_from(rows, step=86_400_000_000_000, **columns):
    """Bars of (open, high, low, close[, volume]) or of one price; volume 1000 unless it is given."""
    full = [(row,) * 4 if isinstance(row, int | float) else row for row in rows]
    price = [np.array([row[k] for row in full], float) for k in range(4)]
    volume = np.array([row[4] if len(row) > 4 else 1000.0 for row in full], float)
    bars = bars_of(*price, volume_T=volume, step=step)
    never = {"halted": [False] * len(rows), **dict.fromkeys(("funding_rate", "funding_mark", "roll_price"), [NAN] * len(rows))}
    return replace(bars, **{name: np.asarray(values) for name, values in (never | columns).items()})


def whole_market(bars, instrument=POINT, lots=1, **how):
    """The data of bars with every rule compiled in, so that nearly all examples share a kernel; same_close knows market orders alone."""
    kept = {"rules": "all", "space": EVERY_ACTION, "sizing": ("fixed_lots", {"lots": lots})}
    if how.get("same_close"):
        kept |= {**LEAN, "rules": tuple(rule for rule in ALL_RULES if rule != "orders")}
    return market_data(bars, instrument, **(kept | how))


def market_of(rows, instrument=POINT, lots=1, step=86_400_000_000_000, columns=None, **how):
    """The data of an example, and its bars."""
    bars = bars_from(rows, step, **(columns or {}))
    return whole_market(bars, instrument, lots, **how), bars


def played(rows, asked, instrument=POINT, lots=1, **how):
    """What the engine did, in units of price and currency; a number in `asked` is an exposure by a market order, the last one repeats."""
    data, bars = market_of(rows, instrument, lots, **how)
    decisions = [item if isinstance(item, tuple) else as_decisions([item])[0] for item in asked]
    lane = play(data, decisions)
    compare(lane, reference(data, bars, decisions, fixed_lots(lots)))
    return seen(lane, data)


def seen(lane, data):
    quantum = float(data.tape.instruments[0].quantum)
    return SimpleNamespace(
        lane=lane,
        fills=[(int(row["bar"]), int(row["lots"]), round(int(row["price"]) * quantum, 9)) for row in lane.fills],
        causes=[market.CAUSES[row["cause"]] for row in lane.fills],
        maker=lane.fills["maker"].astype(bool).tolist(),
        fees=[round(float(fee), 9) for fee in lane.fills["fee"]],
        refused=[(int(row["bar"]), int(row["reason"])) for row in lane.rejections],
        refused_lots=lane.rejections["lots"].tolist(),
        equity=[round(int(value) / 1e9, 9) for value in lane.equity_T],
        position=lane.position_T.tolist(),
        costs={name: round(amount, 9) for name, amount in lane.costs.items()},
    )


# -- market orders, clock, participation -----------------------------------------------------------------------------------------


def test_a_market_order_pays_half_the_spread_and_the_slippage_at_the_next_open():
    found = played([100, (101, 104, 100, 103), 103], [1], spread_ticks=2.0, slippage_ticks=1.0, slippage_bps=100.0)
    # open 101, half the spread 1, slippage 1 and one percent of 101 (1.01, rounded to the quantum of 0.01)
    assert found.fills == [(1, 1, 104.01)]
    assert found.costs == {"spread": 1.0, "slippage": 2.01, "fees": 0.0, "funding": 0.0}
    assert found.equity == [100_000.0, 99_998.99, 99_998.99]


def test_a_sale_is_worse_downwards():
    assert played([100, 101, 101], [-1], spread_ticks=2.0, slippage_ticks=1.0).fills == [(1, -1, 99.0)]


@pytest.mark.parametrize(("latency", "how"), [(1, {}), (2, LATE), pytest.param(3, LATER, marks=pytest.mark.slow)])
def test_an_order_works_latency_bars_after_its_decision(latency, how):
    found = played([100, 101, 102, 103, 104, 105], [1], step=HOUR, **how)
    assert found.fills[0] == (latency, 1, 100.0 + latency)
    assert found.equity[-1] == 100_000.0 + 5 - latency


def test_the_exposure_of_an_order_under_way_counts_as_held():
    found = played([100, 101, 102, 103, 104, 105, 106], [1, 1, 1, 0, 0, 1, 1], **LATE)
    assert found.fills == [(2, 1, 102.0), (5, -1, 105.0)]
    assert found.refused == [(5, market.LAST_BAR)]


def test_the_order_of_a_late_arrival_is_the_difference_at_its_arrival():
    found = played([100] * 6, [1, -1, 0, 0], **LATE)
    assert found.fills == [(2, 1, 100.0), (3, -2, 100.0), (4, 1, 100.0)]


def test_an_order_under_way_counts_as_held_after_a_part_fill_too():
    found = played([(100, 100, 100, 100, 4)] * 8, [ioc(1)], lots=10, participation=(0.1, 0.25, 0.5), **LATE)
    assert found.fills[:-1] == [(2, 1, 100.0), (4, 1, 100.0), (6, 1, 100.0)]  # the last one is the close at the end


def test_a_refused_order_makes_the_same_exposure_ask_again():
    found = played([100, 100, 100, 100], [1], lots=2000, initial_margin_rate=1.0)
    assert found.refused == [(1, market.UNAFFORDABLE), (2, market.UNAFFORDABLE), (3, market.UNAFFORDABLE), (3, market.LAST_BAR)]
    assert not found.fills


def test_an_order_takes_its_share_of_the_volume_and_the_rest_works_on():
    found = played([(100, 100, 100, 100, 10)] * 5, [1], lots=5, participation=(0.1, 0.25, 0.5))
    assert found.fills == [(1, 2, 100.0), (2, 2, 100.0), (3, 1, 100.0)]
    assert not found.refused


@pytest.mark.parametrize(("urgency", "lots"), [("patient", 1), ("normal", 2), ("aggressive", 5)])
def test_urgency_sets_the_share_of_the_volume(urgency, lots):
    asked = as_decisions([1], "market", urgency)
    assert played([(100, 100, 100, 100, 10)] * 2, asked, lots=9, participation=(0.1, 0.25, 0.5)).fills == [(1, lots, 100.0)]


def test_the_rest_of_an_order_is_dropped_when_another_exposure_is_asked():
    found = played([(100, 100, 100, 100, 10)] * 5, [1, 0, 0, 0], lots=9, participation=(0.1, 0.25, 0.5))
    assert found.fills == [(1, 2, 100.0), (2, -2, 100.0)]
    assert found.position == [0, 2, 0, 0, 0]


def test_unknown_volume_sets_no_limit():
    assert played([(100, 100, 100, 100, NAN)] * 3, [1], lots=50, participation=(0.1, 0.25, 0.5)).fills == [(1, 50, 100.0)]


def test_zero_volume_fills_nothing_and_the_order_works_on():
    rows = [100, (100, 100, 100, 100, 0), (90, 91, 89, 90), 90]
    found = played(rows, [1])
    assert found.fills == [(2, 1, 90.0)] and found.refused == [(1, market.NO_VOLUME)]


def test_a_share_below_one_lot_fills_nothing():
    found = played([(100, 100, 100, 100, 3), (100, 100, 100, 100, 3), (100, 100, 100, 100, 8)], [1], participation=(0.1, 0.25, 0.5))
    assert found.fills == [(2, 1, 100.0)] and found.refused == [(1, market.NO_VOLUME)]


def test_an_order_that_stands_on_the_last_bar_is_listed_with_its_rest():
    found = played([(100, 100, 100, 100, 10)] * 3, [1], lots=9, participation=(0.1, 0.25, 0.5))
    assert found.fills == [(1, 2, 100.0), (2, 2, 100.0)]
    assert (found.refused, found.refused_lots) == ([(2, market.LAST_BAR)], [5])
    assert found.lane.open_position == 4


# -- fees ------------------------------------------------------------------------------------------------------------------------


def test_the_minimum_fee_counts_once_an_order_over_all_its_parts():
    found = played([(20, 20, 20, 20, 8)] * 5, [1], lots=6, participation=(0.1, 0.25, 0.5), fee_per_contract=0.01, fee_minimum=1.0)
    assert found.fills == [(1, 2, 20.0), (2, 2, 20.0), (3, 2, 20.0)]
    assert found.fees == [1.0, 0.0, 0.0]


def test_parts_beyond_the_minimum_pay_what_they_add():
    found = played([(20, 20, 20, 20, 8)] * 5, [1], lots=6, participation=(0.1, 0.25, 0.5), fee_per_contract=0.3, fee_minimum=1.0)
    assert found.fees == [1.0, 0.2, 0.6]  # 0.6, 1.2 and 1.8 in all


def test_another_order_pays_the_minimum_anew():
    assert played([100] * 4, [1, 0, 1], fee_per_contract=0.3, fee_minimum=1.0).fees == [1.0, 1.0, 1.0]


def test_a_resting_order_pays_the_maker_fee_and_a_marketable_one_the_takers():
    how = {"fee_per_contract": 2.0, "fee_bps": 10.0, "maker_fee_per_contract": 0.5, "maker_fee_bps": 1.0}
    resting = played([100, (101, 102, 99, 101)], [limit(1)], **how)
    assert (resting.fills, resting.maker, resting.fees) == ([(1, 1, 100.0)], [True], [0.51])
    marketable = played([100, (98, 99, 97, 98)], [limit(1)], **how)
    assert (marketable.fills, marketable.maker, marketable.fees) == ([(1, 1, 98.0)], [False], [2.098])


def test_the_makers_fee_is_the_takers_where_none_is_set():
    assert played([100, (101, 102, 99, 101)], [limit(1)], fee_per_contract=2.0).fees == [2.0]


def test_a_rebate_is_paid():
    found = played([100, (101, 102, 99, 100)], [limit(1)], lots=4, fee_per_contract=2.0, maker_fee_per_contract=-0.25)
    assert found.fees == [-1.0] and found.costs["fees"] == -1.0
    assert found.equity == [100_000.0, 100_001.0]


def test_a_reversal_pays_two_sides_in_one_fill():
    found = played([100] * 4, [1, -1, -1], spread_ticks=2.0, fee_per_contract=1.5)
    assert found.fills == [(1, 1, 101.0), (2, -2, 99.0)] and found.fees == [1.5, 3.0]
    assert found.costs == {"spread": 3.0, "slippage": 0.0, "fees": 4.5, "funding": 0.0}


# -- limit and ioc orders --------------------------------------------------------------------------------------------------------


def test_a_limit_rests_at_the_near_touch_and_fills_when_the_bar_trades_through_it():
    # bid 99: half a spread of 2 below the close
    found = played([100, (101, 102, 98, 101)], [limit(1)], spread_ticks=2.0)
    assert (found.fills, found.maker) == ([(1, 1, 99.0)], [True])
    assert found.costs == {"spread": 0.0, "slippage": 0.0, "fees": 0.0, "funding": 0.0}


def test_touching_a_limit_is_not_a_fill():
    found = played([100, (101, 102, 99, 101)], [limit(1)], spread_ticks=2.0)
    assert not found.fills and found.refused == [(1, market.NOT_REACHED), (1, market.LAST_BAR)]


def test_a_limit_to_sell_is_the_mirror():
    found = played([100, (99, 102, 98, 99)], [limit(-1)], spread_ticks=2.0)
    assert (found.fills, found.maker) == ([(1, -1, 101.0)], [True])
    assert played([100, (99, 101, 98, 99)], [limit(-1)], spread_ticks=2.0).refused[0] == (1, market.NOT_REACHED)


def test_a_limit_that_is_marketable_at_the_open_fills_there_as_taker():
    found = played([100, (97, 99, 96, 98)], [limit(1)], spread_ticks=2.0, slippage_ticks=3.0)
    assert (found.fills, found.maker) == ([(1, 1, 98.0)], [False])  # open 97, half the spread, no slippage
    assert found.costs["spread"] == 1.0 and found.costs["slippage"] == 0.0


def test_a_limit_at_the_open_and_half_the_spread_is_marketable():
    assert played([100, (98, 99, 98, 98)], [limit(1)], spread_ticks=2.0).maker == [False]


def test_a_limit_beyond_the_bars_range_costs_the_distance_to_it():
    # limit 100; the bar's prices end at 99.5 and 99.5 + 1 is not marketable
    instrument = replace(POINT, tick_size=0.5)
    found = played([100, (99.5, 99.5, 98, 99)], [limit(1)], instrument, spread_ticks=4.0, limit_offset_ticks=(1.0, -2.0, -1.0))
    assert (found.fills, found.maker, found.costs["spread"]) == ([(1, 1, 100.0)], [True], 0.5)


@pytest.mark.parametrize(("urgency", "price"), [("patient", 98.0), ("normal", 99.0), ("aggressive", 100.0)])
def test_urgency_sets_the_offset_of_a_limit(urgency, price):
    assert played([100, (101, 103, 90, 101)], [limit(1, urgency)], spread_ticks=2.0).fills == [(1, 1, price)]
    assert played([100, (99, 110, 97, 99)], [limit(-1, urgency)], spread_ticks=2.0).fills == [(1, -1, 200.0 - price)]


def test_an_offset_in_basis_points_is_a_share_of_the_close():
    found = played([200, (201, 203, 150, 201)], [limit(1)], limit_offset_bps=(0.0, 100.0, 0.0))
    assert found.fills == [(1, 1, 198.0)]


def test_a_limit_lasts_one_bar_and_is_asked_again_at_the_next_close():
    found = played([100, (103, 104, 102, 103), (104, 104, 101, 102), 102], [limit(1)])
    assert found.fills == [(2, 1, 103.0)] and found.refused == [(1, market.NOT_REACHED)]


def test_the_rest_of_a_limit_is_cancelled_and_asked_again():
    rows = [(100, 100, 100, 100, 8), (101, 102, 99, 100, 8), (101, 102, 99, 100, 8), 100]
    found = played(rows, [limit(1)], lots=3, participation=(0.1, 0.25, 0.5))
    assert found.fills == [(1, 2, 100.0), (2, 1, 100.0)]
    assert (found.refused, found.refused_lots) == ([(1, market.CANCELLED)], [1])


@pytest.mark.parametrize(("urgency", "price"), [("patient", None), ("normal", 102.0), ("aggressive", 102.0)])
def test_an_ioc_order_fills_at_the_open_up_to_its_cap(urgency, price):
    # far touch at the decision 101, caps 101, 102 and 103; the open costs 101 + 1
    found = played([100, 101, 101], [ioc(1, urgency), 0], spread_ticks=2.0)
    assert found.fills[:1] == ([] if price is None else [(1, 1, price)])
    assert found.refused == ([(1, market.IOC_CAP)] if price is None else [])


def test_an_ioc_order_to_sell_is_the_mirror():
    assert played([100, 99, 99], [ioc(-1)], spread_ticks=2.0).fills == [(1, -1, 98.0)]
    assert played([100, 98, 99], [ioc(-1)], spread_ticks=2.0).refused[0] == (1, market.IOC_CAP)


def test_slippage_counts_against_the_cap():
    assert played([100, 100], [ioc(1)], slippage_ticks=1.0).fills == [(1, 1, 101.0)]
    assert played([100, 100], [ioc(1)], slippage_ticks=2.0).refused[0] == (1, market.IOC_CAP)


def test_the_rest_of_an_ioc_order_ends():
    found = played([(100, 100, 100, 100, 8)] * 3, [ioc(1), 0, 0], lots=5, participation=(0.1, 0.25, 0.5))
    assert found.fills == [(1, 2, 100.0), (2, -2, 100.0)]
    assert (found.refused, found.refused_lots) == ([(1, market.CANCELLED)], [3])


def test_a_resting_order_that_turns_the_position_pays_two_sides():
    found = played([100, 100, (99, 103, 98, 99)], [1, limit(-1), limit(-1)], fee_per_contract=1.0)
    assert found.fills == [(1, 1, 100.0), (2, -2, 100.0)] and found.fees == [1.0, 2.0]


# -- off the tick ----------------------------------------------------------------------------------------------------------------


def test_limits_off_the_tick_round_away_from_the_market():
    off = {"limit_offset_bps": (0.0, 50.0, 0.0)}  # half a point of 100
    assert played([100, (101, 103, 90, 101)], [limit(1)], **off).fills == [(1, 1, 99.0)]
    assert played([100, (99, 110, 97, 99)], [limit(-1)], **off).fills == [(1, -1, 101.0)]


def test_a_touch_between_ticks_rounds_away_from_the_market():
    # half a spread of one tick: the bid is 99.5
    assert played([100, (101, 103, 90, 101)], [limit(1)], spread_ticks=1.0).fills == [(1, 1, 99.0)]
    assert played([100, (99, 110, 97, 99)], [limit(-1)], spread_ticks=1.0).fills == [(1, -1, 101.0)]


@pytest.mark.parametrize(("bps", "price"), [(100.00005, 99.0), (99.99995, 99.0), (100.001, 98.0), (99.999, 99.0)])
def test_a_limit_within_a_millionth_of_a_tick_snaps_to_it(bps, price):
    assert played([100, (101, 103, 90, 101)], [limit(1)], limit_offset_bps=(0.0, bps, 0.0)).fills == [(1, 1, price)]


def test_a_cap_off_the_tick_rounds_down_for_a_buy():
    capped = {"ioc_cap_ticks": (0.0, 0.0, 0.0), "ioc_cap_bps": (0.0, 150.0, 0.0)}  # 101.5 becomes 101
    assert played([100, 101], [ioc(1)], **capped).fills == [(1, 1, 101.0)]
    assert played([100, 102], [ioc(1)], **capped).refused[0] == (1, market.IOC_CAP)
    assert played([100, 99], [ioc(-1)], **capped).fills == [(1, -1, 99.0)]
    assert played([100, 98], [ioc(-1)], **capped).refused[0] == (1, market.IOC_CAP)


def test_stops_round_to_worse_and_targets_away_from_the_entry():
    wide = {"stop_loss": 0.015, "take_profit": 0.015}  # 1.515 points of 101
    assert played([101, 101, (101, 101, 99, 100), 100], [1], **wide).fills[1] == (2, -1, 99.0)
    assert played([101, 101, (101, 103, 101, 102), 102], [1], **wide).fills[1] == (2, -1, 103.0)
    assert played([101, 101, (101, 103, 101, 102), 102], [-1], **wide).fills[1] == (2, 1, 103.0)
    assert played([101, 101, (101, 101, 99, 100), 100], [-1], **wide).fills[1] == (2, 1, 99.0)


def test_without_a_tick_prices_are_rounded_to_the_nearest_quantum():
    none = {"limit_offset_ticks": (0.0, 0.0, 0.0), "ioc_cap_ticks": (0.0, 0.0, 0.0)}
    found = played([100, (101, 103, 90, 101)], [limit(1)], NO_GRID, limit_offset_bps=(0.0, 0.57, 0.0), **none)
    assert found.fills == [(1, 1, 99.99)]  # 99.9943
    found = played([101.37, 101.37, (101, 101, 90, 100)], [1], NO_GRID, stop_loss=0.015, **none)
    assert found.fills[1] == (2, -1, 99.85)  # 99.84945


# -- stop, target, trailing stop -------------------------------------------------------------------------------------------------


def test_a_stop_fills_at_its_price_and_pays_half_the_spread_and_slippage():
    found = played([100, 100, (101, 101, 90, 95), 95], [1], spread_ticks=2.0, slippage_ticks=1.0, stop_loss_ticks=5.0)
    # bought at 102, stop 97, sold at 95
    assert found.fills == [(1, 1, 102.0), (2, -1, 95.0)] and found.causes == ["order", "stop"]


def test_touching_the_stop_is_enough():
    assert played([100, 100, (100, 100, 95, 100), 100], [1], stop_loss=0.05).fills[1] == (2, -1, 95.0)
    assert len(played([100, 100, (100, 100, 96, 100), 100], [1], stop_loss=0.05).fills) == 1


def test_share_and_ticks_of_a_stop_add():
    assert played([100, 100, (100, 100, 80, 100), 100], [1], stop_loss=0.05, stop_loss_ticks=3.0).fills[1] == (2, -1, 92.0)


def test_a_bar_that_opens_beyond_the_stop_fills_at_the_open():
    assert played([100, 100, (90, 92, 88, 91), 91], [1], stop_loss=0.05).fills[1] == (2, -1, 90.0)
    assert played([100, 100, (110, 112, 108, 109), 109], [-1], stop_loss=0.05).fills[1] == (2, 1, 110.0)


def test_a_target_fills_at_its_price_as_maker_without_costs():
    how = {"spread_ticks": 2.0, "slippage_ticks": 1.0, "take_profit_ticks": 5.0, "fee_per_contract": 2.0, "maker_fee_per_contract": 0.5}
    found = played([100, 100, (101, 110, 101, 105), 105], [1], **how)
    assert found.fills == [(1, 1, 102.0), (2, -1, 107.0)] and found.causes == ["order", "target"]
    assert found.maker == [False, True] and found.fees == [2.0, 0.5]


def test_a_target_is_hit_where_the_bar_touches_it():
    assert played([100, 100, (100, 105, 100, 100), 100], [1], take_profit=0.05).fills[1] == (2, -1, 105.0)
    assert played([100, 100, (100, 100, 95, 100), 100], [-1], take_profit=0.05).fills[1] == (2, 1, 95.0)


def test_a_gapped_target_fills_at_its_price_or_by_option_at_the_open():
    rows = [100, 100, (110, 112, 108, 111), 111]
    assert played(rows, [1], take_profit=0.05).fills[1] == (2, -1, 105.0)
    assert played(rows, [1], take_profit=0.05, **OPTIONS).fills[1] == (2, -1, 110.0)
    short = [100, 100, (90, 92, 88, 91), 91]
    assert played(short, [-1], take_profit=0.05).fills[1] == (2, 1, 95.0)
    assert played(short, [-1], take_profit=0.05, **OPTIONS).fills[1] == (2, 1, 90.0)


def test_the_stop_goes_before_the_target():
    rows = [100, 100, (100, 110, 90, 100), 100]
    assert played(rows, [1], stop_loss=0.05, take_profit=0.05).causes == ["order", "stop"]
    assert played(rows, [-1], stop_loss=0.05, take_profit=0.05).causes == ["order", "stop"]


def test_levels_are_tested_in_the_bar_of_the_fill():
    assert played([100, (100, 100, 90, 100), 100], [1], stop_loss=0.05).fills == [(1, 1, 100.0), (1, -1, 95.0)]
    assert played([100, (100, 110, 100, 100), 100], [1], take_profit=0.05).fills == [(1, 1, 100.0), (1, -1, 105.0)]


def test_levels_are_tested_from_the_bar_after_the_fill_by_option():
    how = {"stop_loss": 0.05, **OPTIONS}
    rows = [100, (100, 100, 90, 100), (100, 100, 97, 100), (100, 100, 94, 100), 100]
    assert played(rows, [1], **how).fills == [(1, 1, 100.0), (3, -1, 95.0)]


def test_a_position_that_grows_is_not_tested_in_that_bar_by_option():
    how = {"stop_loss": 0.05, **OPTIONS}
    rows = [100, 100, (100, 100, 90, 100), (100, 100, 90, 100), 100]
    assert played(rows, [0.5, 1], lots=2, **how).fills == [(1, 1, 100.0), (2, 1, 100.0), (3, -2, 95.0)]


def test_levels_are_measured_from_the_close_of_the_decision_by_option():
    how = {"stop_loss_ticks": 5.0, **OPTIONS}
    assert played([104, 100, (100, 101, 90, 100), 100], [1], **how).fills[1] == (2, -1, 99.0)
    assert played([104, 100, (100, 101, 90, 100), 100], [1], stop_loss_ticks=5.0).fills[1] == (2, -1, 95.0)


def test_a_trailing_stop_follows_the_best_price_at_the_end_of_each_bar():
    rows = [100, (100, 103, 99, 103), (104, 110, 101, 109), (109, 109, 103, 106), 106]
    found = played(rows, [1], trailing_stop_ticks=5.0)
    # 95 at the fill, 98 after the high of 103, 105 after that of 110: the low of 101 in between is not below 98
    assert found.fills == [(1, 1, 100.0), (3, -1, 105.0)] and found.causes[1] == "trailing stop"


def test_a_trailing_stop_of_a_short_follows_the_lows():
    rows = [100, (100, 101, 97, 97), (96, 99, 90, 91), (91, 97, 91, 94), 94]
    assert played(rows, [-1], trailing_stop_ticks=5.0).fills == [(1, -1, 100.0), (3, 1, 95.0)]


def test_a_trailing_stop_never_loosens():
    rows = [100, (100, 110, 100, 110), (110, 110, 106, 106), (106, 106, 105, 105), 105]
    assert played(rows, [1], trailing_stop_ticks=5.0).fills[1] == (3, -1, 105.0)


def test_of_stop_and_trailing_stop_the_nearer_one_holds():
    rows = [100, 100, (100, 100, 90, 95), 95]
    assert played(rows, [1], stop_loss_ticks=3.0, trailing_stop_ticks=5.0).fills[1] == (2, -1, 97.0)
    assert played(rows, [1], stop_loss_ticks=5.0, trailing_stop_ticks=3.0).causes[1] == "trailing stop"


def test_after_a_stop_the_position_stays_flat_until_something_else_is_asked():
    rows = [100, 100, (100, 100, 90, 100), 100, 100, 100, 100, 100]
    found = played(rows, [1, 1, 1, 1, 0, 1, 1], stop_loss=0.05)
    assert found.fills == [(1, 1, 100.0), (2, -1, 95.0), (6, 1, 100.0)]
    assert not found.refused


def test_after_a_stop_the_other_side_may_be_asked_at_once():
    rows = [100, 100, (100, 100, 90, 100), 100, 100]
    assert played(rows, [1, 1, -1], stop_loss=0.05).fills[2] == (3, -1, 100.0)


def test_after_a_stop_the_exposure_asked_last_is_no_new_request():
    rows = [100, 100, (100, 100, 94, 95), 95, 95, 95]
    resting = played(rows, [1, limit(0.5, "patient")], lots=2, stop_loss=0.05, limit_offset_ticks=(10.0, 0.0, 0.0))
    assert resting.fills == [(1, 2, 100.0), (2, -2, 95.0)] and resting.refused == [(2, market.NOT_REACHED)]
    parts = [(100, 100, 100, 100, 8), (100, 100, 90, 100, 8), *[(100, 100, 100, 100, 8)] * 3]
    how = {"lots": 4, "participation": (0.1, 0.25, 0.5), "stop_loss": 0.05}
    assert played(parts, [ioc(1)], **how).fills == [(1, 2, 100.0), (1, -2, 95.0)]
    assert played(parts, [ioc(1), ioc(0.5)], **how).fills == [(1, 2, 100.0), (1, -2, 95.0), (2, 2, 100.0)]


def test_an_order_after_a_stop_that_is_refused_leaves_nothing_held():
    rows = [100, 100, (100, 100, 90, 100), 90, 90, 90]
    found = played(rows, [1, 1, ioc(-1, "patient"), 1], stop_loss=0.05)
    assert found.fills == [(1, 1, 100.0), (2, -1, 95.0), (4, 1, 90.0)] and found.refused == [(3, market.IOC_CAP)]


def test_a_market_exit_at_the_open_comes_before_a_stop_in_the_bar():
    found = played([100, 100, (99, 100, 90, 95), 95], [1, 0], stop_loss=0.05)
    assert found.fills == [(1, 1, 100.0), (2, -1, 99.0)] and found.causes[1] == "order"


def test_a_position_that_grows_has_its_levels_from_the_average_entry():
    rows = [100, 100, (110, 110, 110, 110), (110, 110, 99, 100), 100]
    found = played(rows, [0.5, 1], lots=2, stop_loss_ticks=5.0)
    assert found.fills == [(1, 1, 100.0), (2, 1, 110.0), (3, -2, 100.0)]  # average 105


def test_a_position_that_shrinks_keeps_its_levels():
    rows = [100, 100, (110, 110, 110, 110), (110, 110, 90, 100), 100]
    found = played(rows, [1, 0.5], lots=2, stop_loss_ticks=5.0)
    assert found.fills == [(1, 2, 100.0), (2, -1, 110.0), (3, -1, 95.0)]


def test_a_stop_ends_the_rest_of_a_standing_order():
    rows = [(100, 100, 100, 100, 8), (100, 100, 90, 100, 8), (100, 100, 100, 100, 8), (100, 100, 100, 100, 8)]
    found = played(rows, [1], lots=5, participation=(0.1, 0.25, 0.5), stop_loss=0.05)
    assert found.fills == [(1, 2, 100.0), (1, -2, 95.0)]
    assert found.position == [0, 0, 0, 0]


def test_a_resting_order_that_reduces_loses_to_the_stop_of_its_bar():
    found = played([100, 100, (99, 110, 90, 100), 100], [1, limit(0)], stop_loss=0.05)
    assert found.fills == [(1, 1, 100.0), (2, -1, 95.0)] and found.causes[1] == "stop"
    assert found.refused == [(2, market.CANCELLED)]


def test_a_resting_order_beyond_the_stop_loses_to_it_and_one_before_it_fills_first():
    how = {"lots": 2, "stop_loss_ticks": 5.0}
    beyond = played([100, 100, (100, 100, 90, 100), 100], [0.5, limit(1, "patient"), 0], limit_offset_ticks=(6.0, 0.0, 0.0), **how)
    assert beyond.fills[:2] == [(1, 1, 100.0), (2, -1, 95.0)] and beyond.refused == [(2, market.CANCELLED)]
    before = played([100, 100, (100, 100, 90, 100), 100], [0.5, limit(1, "patient"), 0], limit_offset_ticks=(2.0, 0.0, 0.0), **how)
    # the second lot at 98 makes the average 99 and the stop 94
    assert before.fills[:3] == [(1, 1, 100.0), (2, 1, 98.0), (2, -2, 94.0)]


def test_a_resting_order_may_be_stopped_out_in_its_own_bar():
    found = played([100, (102, 103, 90, 95), 95], [limit(1)], stop_loss=0.05)
    assert found.fills == [(1, 1, 100.0), (1, -1, 95.0)] and found.maker == [True, False]


def test_a_resting_orders_target_counts_in_its_own_bar_only_at_the_close():
    # the high of 110 may have been before the fill at 100
    assert len(played([100, (109, 110, 99, 104), 104], [limit(1)], take_profit=0.05).fills) == 1
    assert played([100, (109, 110, 99, 106), 106], [limit(1)], take_profit=0.05).fills == [(1, 1, 100.0), (1, -1, 105.0)]


def test_levels_sleep_in_a_bar_without_volume():
    rows = [100, 100, (90, 90, 90, 90, 0), (91, 92, 91, 92), 92]
    assert played(rows, [1], stop_loss=0.05).fills == [(1, 1, 100.0), (3, -1, 91.0)]


# -- margin, floor, size ---------------------------------------------------------------------------------------------------------


def test_the_initial_margin_and_the_fee_must_be_there():
    exact = played([100, 100], [1], lots=999, initial_margin_rate=1.0, fee_per_contract=0.1)  # 99,900 and 99.90
    assert exact.fills == [(1, 999, 100.0)]
    assert played([100, 100], [1], lots=1000, initial_margin_rate=1.0, fee_per_contract=0.1).refused[0] == (1, market.UNAFFORDABLE)


def test_margin_per_contract_and_margin_rate_add():
    how = {"initial_margin_per_contract": 40.0, "initial_margin_rate": 0.1}  # 50 a lot at 100
    assert played([100, 100], [1], lots=2000, **how).fills == [(1, 2000, 100.0)]
    assert played([100, 100], [1], lots=2001, **how).refused[0] == (1, market.UNAFFORDABLE)


def test_a_reversal_needs_the_margin_of_the_new_side():
    how = {"initial_margin_rate": 1.0, "lots": 1000}
    assert played([100, 100, 100, 100], [1, -1], **how).fills == [(1, 1000, 100.0), (2, -2000, 100.0)]
    poor = played([100, 100, (90, 90, 90, 90), 90], [-0.5, 1], start_equity=50_000.0, **how)
    # the short of 500 gained 5,000: 55,000 are there, 90,000 needed
    assert poor.refused[0] == (2, market.UNAFFORDABLE) and poor.position == [0, -500, -500, -500]


def test_an_order_that_is_cut_takes_the_largest_size_of_its_side():
    how = {"initial_margin_rate": 1.0, **CUT}
    found = played([100, 100, 100], [1], lots=1500, fee_per_contract=1.0, **how)
    assert found.fills == [(1, 990, 100.0)]  # 990 * 100 + 990
    assert (found.refused, found.refused_lots) == ([(1, market.UNAFFORDABLE)], [510])
    turned = played([100, 100, (150, 150, 150, 150), 150], [1, -1], lots=1000, **how)
    # worth 150,000 after the rise: a short of 1000 fits
    assert turned.fills == [(1, 1000, 100.0), (2, -2000, 150.0)]
    part = played([100, 100, (50, 50, 50, 50), 50], [-0.5, 1], lots=1000, start_equity=50_000.0, **how)
    # short 500 at 100, worth 75,000 at 50: long 1000 needs 50,000 and fits
    assert part.fills == [(1, -500, 100.0), (2, 1500, 50.0)]
    less = played([100, 100, (120, 120, 120, 120), 120], [-0.5, 1], lots=1000, start_equity=50_000.0, **how)
    # worth 40,000 at 120: 500 to close and 333 lots of 120
    assert less.fills == [(1, -500, 100.0), (2, 833, 120.0)]


def test_an_order_of_which_nothing_fits_is_refused_even_where_orders_are_cut():
    found = played([100, 100], [1], start_equity=99.0, initial_margin_rate=1.0, **CUT)
    assert not found.fills and found.refused[0] == (1, market.UNAFFORDABLE)


def test_a_maintenance_breach_liquidates_at_the_next_open():
    rows = [100, 100, (100, 100, 60, 60), (55, 58, 54, 58), 58, 58]
    found = played(rows, [1], lots=1000, start_equity=50_000.0, maintenance_margin_rate=0.25, spread_ticks=2.0, capital_floor=0.0)
    # bought at 101 for 101,000; at 60 the equity is 9,000 and a quarter of 60,000 is needed
    assert found.fills == [(1, 1000, 101.0), (3, -1000, 54.0)] and found.causes[1] == "liquidation"
    assert found.equity == [50_000.0, 49_000.0, 9_000.0, 3_000.0, 3_000.0, 3_000.0]


def test_the_order_of_a_bar_that_liquidates_is_refused():
    rows = [100, 100, (100, 100, 60, 60), (55, 58, 54, 58), 58, 58]
    how = {"lots": 1000, "start_equity": 50_000.0, "maintenance_margin_per_contract": 20.0}
    found = played(rows, [0.5, 1, -1, 0, 0.5], **how)
    assert found.causes[2] == "liquidation" and found.fills[2] == (3, -1000, 55.0)
    assert found.refused == [(3, market.LIQUIDATED)]


def test_a_liquidation_is_whole_whatever_the_share_of_the_volume():
    rows = [(100, 100, 100, 100, NAN), (100, 100, 100, 100, NAN), (100, 100, 60, 60, NAN), (60, 60, 60, 60, 8), 60]
    how = {"lots": 1000, "start_equity": 50_000.0, "maintenance_margin_rate": 0.25, "participation": (0.1, 0.25, 0.5)}
    assert played(rows, [1], **how).fills[1] == (3, -1000, 60.0)


def test_a_liquidation_waits_for_a_bar_with_volume():
    rows = [100, 100, (100, 100, 60, 60), (61, 61, 60, 60, 0), (62, 62, 61, 61)]
    found = played(rows, [1], lots=1000, start_equity=50_000.0, maintenance_margin_rate=0.25)
    assert found.fills[1] == (4, -1000, 62.0) and (found.refused, found.refused_lots) == ([(3, market.NO_VOLUME)], [-1000])


def test_after_a_liquidation_the_position_stays_flat_until_something_else_is_asked():
    rows = [100, 100, (100, 100, 60, 60), 60, 60, 60]
    found = played(rows, [1], lots=1000, start_equity=50_000.0, maintenance_margin_rate=0.25)
    assert [fill[0] for fill in found.fills] == [1, 3] and found.position == [0, 1000, 1000, 0, 0, 0]


def test_an_account_at_its_capital_floor_stops():
    found = played([100, 100, (100, 100, 60, 60), 100], [1], lots=1000, capital_floor=0.6)
    assert found.lane.ruined and found.equity == [100_000.0, 100_000.0, 60_000.0, 60_000.0]


# -- session, halt, funding, roll ------------------------------------------------------------------------------------------------


def test_flat_by_close_sells_in_the_last_bar_of_the_session_and_asks_again_in_the_next():
    found = played([100 + k for k in range(48)], [1], step=HOUR, **LATER)
    # sessions of 24 bars: bar 23 is the last of the first one, and the order that works in it was decided 3 bars before
    assert found.fills == [(3, 1, 103.0), (23, -1, 123.0), (24, 1, 124.0), (47, -1, 147.0)]


def test_no_order_works_over_a_halt():
    rows = [100, (100, 100, 100, 100), (90, 90, 90, 90), 100, 100]
    found = played(rows, [1], columns={"halted": [False, True, False, False, False]})
    assert found.refused == [(1, market.HALTED)] and found.fills == [(2, 1, 90.0)]


def test_a_halt_ends_a_standing_order_and_levels_sleep_through_it():
    rows = [(100, 100, 100, 100, 8), (100, 100, 100, 100, 8), (80, 80, 80, 80, 8), (85, 85, 85, 85, 8), (85, 85, 85, 85, 8)]
    halted = {"halted": [False, False, True, False, False]}
    found = played(rows, [1], lots=5, participation=(0.1, 0.25, 0.5), stop_loss=0.05, columns=halted)
    assert found.fills[0] == (1, 2, 100.0) and found.refused[0] == (2, market.HALTED)
    assert found.refused_lots[0] == 3 and found.equity[2] == 100_000.0 - 40


def test_a_halted_bar_is_marked():
    assert played([100, 100, 120], [1], columns={"halted": [False, False, True]}).equity == [100_000.0, 100_000.0, 100_020.0]


def test_a_trailing_stop_does_not_follow_a_halted_bar():
    rows = [100, 100, (100, 120, 100, 100), (100, 100, 98, 99), 99]
    found = played(rows, [1], trailing_stop_ticks=5.0, columns={"halted": [False, False, True, False, False]})
    assert found.fills == [(1, 1, 100.0)]


def test_the_close_at_the_end_is_no_trade_over_a_halt():
    found = played([100] * 4, [1], columns={"halted": [False, False, False, True]}, **LATE)
    assert found.fills == [(2, 1, 100.0)] and found.lane.open_position == 1


def test_a_gap_in_the_data_is_not_a_halt():
    data, bars = market_of([100, 100, 100])
    late = replace(bars, ts_event=bars.ts_event + np.array([0, 40 * HOUR, 400 * HOUR]))
    lane = play(whole_market(late), as_decisions([1]))
    assert lane.fills["bar"].tolist() == [1]


def test_a_long_pays_a_positive_funding_rate_and_a_short_receives_it():
    columns = {"funding_rate": [NAN, NAN, 0.001], "funding_mark": [NAN, NAN, 200.0]}
    rows = [100, 100, 100]
    assert played(rows, [1], lots=10, columns=columns).costs["funding"] == 2.0
    assert played(rows, [-1], lots=10, columns=columns).costs["funding"] == -2.0
    assert played(rows, [-1], lots=10, columns=columns).equity[-1] == 100_002.0


def test_funding_is_of_the_position_after_the_bars_trades_and_without_a_mark_at_its_close():
    columns = {"funding_rate": [NAN, 0.001, 0.001], "funding_mark": [NAN, NAN, NAN]}
    assert played([100, 100, (100, 300, 100, 300)], [1, 0], columns=columns).costs["funding"] == 0.1


def test_a_roll_sells_the_old_contract_and_buys_the_next_at_half_the_roll_spread():
    columns = {"roll_price": [NAN, NAN, 95.0, NAN]}
    found = played([100, 100, 101, (96, 97, 96, 97)], [1], lots=2, columns=columns, roll_spread_ticks=2.0, fee_per_contract=1.0)
    assert found.fills == [(1, 2, 100.0), (2, -2, 100.0), (2, 2, 96.0)] and found.causes == ["order", "roll out", "roll in"]
    assert found.costs == {"spread": 4.0, "slippage": 0.0, "fees": 6.0, "funding": 0.0}
    # +1 in the old contract, +2 in the next, less costs
    assert found.equity[-1] == 100_000.0 + 2 * (1 + 2) - 10


def test_the_spread_of_a_roll_is_that_of_an_order_where_none_is_set():
    columns = {"roll_price": [NAN, NAN, 95.0]}
    assert played([100, 100, 101], [1], columns=columns, spread_ticks=2.0).costs["spread"] == 3.0


def test_levels_move_with_a_roll():
    columns = {"roll_price": [NAN, NAN, 90.0, NAN, NAN]}
    rows = [100, 100, 100, (90, 90, 86, 88), (88, 88, 84, 86)]
    found = played(rows, [1], stop_loss_ticks=5.0, columns=columns)
    assert found.fills[-1] == (4, -1, 85.0)


def test_a_roll_is_not_put_off_by_a_halt():
    columns = {"roll_price": [NAN, NAN, 95.0, NAN], "halted": [False, False, True, False]}
    assert played([100, 100, 101, 97], [1], columns=columns).equity[-1] == 100_000.0 + 1 + 2


def test_what_is_decided_at_a_roll_is_priced_in_the_next_contract():
    columns = {"roll_price": [110.0, NAN, NAN]}
    assert played([100, (111, 112, 109, 111), 111], [limit(1)], columns=columns).fills == [(1, 1, 110.0)]
    assert played([100, (111, 112, 111, 111), 111], [ioc(1)], columns=columns).fills == [(1, 1, 111.0)]


def test_what_is_under_way_at_a_roll_moves_with_it():
    columns = {"roll_price": [NAN, 110.0, NAN, NAN]}
    found = played([100, 100, (111, 112, 109, 111), 111], [limit(1)], columns=columns, **LATE)
    assert found.fills[0] == (2, 1, 110.0)


def test_a_flat_account_does_not_roll():
    assert not played([100, 100, 100], [0], columns={"roll_price": [NAN, 95.0, NAN]}).fills


# -- instruments -----------------------------------------------------------------------------------------------------------------


def test_lots_may_be_fractions_of_a_unit():
    coin = Instrument("X", tick_size=0.01, lot_size=0.001)
    found = played([60_000, 60_000, 61_000], [1], coin, lots=3, fee_bps=5.0)  # 0.003 coins
    assert found.fills == [(1, 3, 60_000.0)] and found.fees == [0.09]
    assert found.equity == [100_000.0, 99_999.91, 100_002.91]


def test_volume_counts_in_lots():
    coin = Instrument("X", tick_size=0.01, lot_size=0.001)
    rows = [(100, 100, 100, 100, 0.01)] * 3
    assert played(rows, [1], coin, lots=50, participation=(0.1, 0.25, 0.5)).fills == [(1, 2, 100.0), (2, 2, 100.0)]


def test_a_contract_is_worth_its_multiplier():
    es = Instrument("X", tick_size=0.25, contract_multiplier=50.0)
    found = played([5000.0, 5000.0, 5000.25], [1], es, spread_ticks=1.0, fee_per_contract=2.25)
    assert found.costs["spread"] == 6.25 and found.equity[-1] == 100_000 + 12.5 - 6.25 - 2.25


def test_negative_prices_are_legal_where_the_instrument_says_so():
    found = played([10.0, 10.0, -37.63, -37.63], [-1, 0], OIL, fee_bps=10.0)
    assert found.fills == [(1, -1, 10.0), (2, 1, -37.63)]
    assert found.fees == [10.0, 37.63]  # of the size of the value, never its sign
    assert found.equity[-1] == 100_000 + 47_630 - 47.63


def test_a_stop_of_a_short_at_a_negative_price():
    rows = [-10.0, -10.0, (-10.0, -9.0, -10.0, -9.5), -9.5]
    found = played(rows, [-1], OIL, stop_loss=0.05)  # 0.5 above -10
    assert found.fills[1] == (2, 1, -9.5)


def test_a_sale_that_costs_push_to_zero_is_refused_where_prices_are_positive():
    found = played([1, 1, 1], [-1, 0], slippage_ticks=1.0)
    assert found.refused == [(1, market.BAD_PRICE)] and not found.fills


# -- options of the clock --------------------------------------------------------------------------------------------------------


def test_same_close_fills_at_the_close_just_seen():
    found = played([(100, 101, 99, 101), (102, 103, 100, 103), 105], [1, 1, 0], spread_ticks=2.0, same_close=True)
    assert found.fills == [(0, 1, 102.0), (2, -1, 104.0)]
    assert found.equity == [100_000.0, 100_001.0, 100_002.0]  # the first point is the start, before the fill at its close
    assert not found.refused


def test_same_close_and_a_stop_in_the_bar_after():
    found = played([(100, 101, 99, 100), (100, 100, 94, 95), 95], [1], stop_loss=0.05, same_close=True)
    assert found.fills == [(0, 1, 100.0), (1, -1, 95.0)]


def test_same_close_at_a_roll_fills_in_the_next_contract():
    found = played([100, 100, 110], [0, 1], same_close=True, columns={"roll_price": [NAN, 110.0, NAN]})
    assert found.fills == [(1, 1, 110.0)] and found.equity == [100_000.0] * 3


def test_same_close_lists_the_rest_of_an_order_at_the_last_close():
    found = played([(100, 100, 100, 100, 8)] * 2, [0, 1], lots=5, participation=(0.1, 0.25, 0.5), same_close=True)
    assert found.fills == [(1, 2, 100.0)] and (found.refused, found.refused_lots) == ([(1, market.LAST_BAR)], [3])


@pytest.mark.parametrize("asked", [limit(1), ioc(1)])
def test_same_close_knows_market_orders_alone(asked):
    with pytest.raises(UsageError, match="same_close"):
        played([100, 100], [asked], same_close=True, space=EVERY_ACTION)


def test_sizing_at_the_fill_sees_its_price_and_the_equity_at_the_open():
    how = {"sizing": ("equity_fraction", {"fraction": 1.0}), "spread_ticks": 2.0, "slippage_ticks": 1.0, **AT_FILL}
    data = whole_market(bars_from([100, 120, 120]), **how)
    assert play(data, as_decisions([1])).fills["lots"][0] == 100_000 // 122
    assert play(data, as_decisions([-1])).fills["lots"][0] == -(100_000 // 118)


def test_resize_always_sizes_in_every_bar():
    data = whole_market(bars_from([100, 100, 80, 80, 80]), sizing=("equity_fraction", {"fraction": 0.5}), **AT_FILL)
    # 500 lots; at 80 the account has 90,000 and half of it buys 562
    assert play(data, as_decisions([1])).fills["lots"].tolist() == [500, 62]


def test_the_end_is_no_trade_and_closing_there_is_an_option():
    rows = [100, 100, 100, (100, 110, 100, 110)]
    open_end = played(rows, [1], spread_ticks=2.0)
    assert open_end.lane.open_position == 1 and open_end.equity[-1] == 100_009.0
    closed = played(rows, [1], spread_ticks=2.0, **LATE)
    assert closed.fills == [(2, 1, 101.0), (3, -1, 109.0)] and closed.causes[1] == "close at end"
    assert closed.lane.open_position == 0 and closed.equity[-1] == 100_008.0


def test_an_order_on_the_last_bar_is_listed_as_unfilled():
    found = played([100, 100, 100], [0, 0, -1])
    assert (found.refused, found.refused_lots) == ([(2, market.LAST_BAR)], [-1])


# -- reported cases --------------------------------------------------------------------------------------------------------------


def test_case_13_filled_zero_volume_bars():
    rows = [(100, 101, 99, 100, 4), (100, 100, 100, 100, 0), (100, 100, 100, 100, 0), (90, 91, 89, 90, 12)]
    found = played(rows, [-1], participation=(1.0, 1.0, 1.0))
    assert found.fills == [(3, -1, 90.0)]
    assert found.refused == [(1, market.NO_VOLUME), (2, market.NO_VOLUME)]


def test_case_19_futures_roll_gap():
    es = Instrument("X", tick_size=0.25, contract_multiplier=50.0)
    columns = {"roll_price": [NAN, 1770.25, NAN]}
    for side, profit in ((1, 475.0), (-1, -475.0)):
        found = played([1776.0, 1775.5, 1780.25], [side], es, same_close=True, fee_per_contract=2.0, columns=columns)
        assert found.lane.gross == profit and found.costs["fees"] == 6.0
        assert found.equity[-1] == 100_000 + profit - 6


def test_case_21_gap_through_stop():
    tenth = Instrument("X", tick_size=0.5)
    long = played([(100, 101, 99, 100, 9), (100, 102, 99.5, 101, 9), (85, 88, 84, 86, 9)], [1], tenth, lots=10, stop_loss=0.025)
    assert long.fills == [(1, 10, 100.0), (2, -10, 85.0)] and long.equity[-1] == 100_000 - 150
    short = played([(100, 101, 99, 100, 9), (100, 100.5, 98, 99, 9), (115, 116, 112, 114, 9)], [-1], tenth, lots=10, stop_loss=0.025)
    assert short.fills == [(1, -10, 100.0), (2, 10, 115.0)] and short.equity[-1] == 100_000 - 150


def test_case_23_entry_gaps_below_own_stop():
    how = {"lots": 10, "limit_offset_ticks": (0.0, 4.0, 0.0), "stop_loss_ticks": 9.0, **CUT}
    long = played([(104, 105, 103, 104, 9), (93, 94, 90, 92, 9), (91, 96, 91, 95, 9)], [limit(1)], **how)
    assert long.fills == [(1, 10, 93.0), (1, -10, 93.0)] and long.maker == [False, False]
    assert long.causes[1] == "stop" and long.equity[-1] == 100_000.0 and long.position == [0, 0, 0]
    short = played([(96, 97, 95, 96, 9), (107, 110, 106, 108, 9), (109, 109, 104, 105, 9)], [limit(-1)], **how)
    assert short.fills == [(1, -10, 107.0), (1, 10, 107.0)] and short.equity[-1] == 100_000.0


@pytest.mark.parametrize("side", [1, -1])
def test_case_25_commission_sign_on_partial_orders(side):
    rows = [(20, 20, 20, 20, 1), (20, 20, 20, 20, 1), (20, 20, 20, 20, 1), (20, 20, 20, 20, 28), 20]
    found = played(rows, [side], lots=30, participation=(1.0, 1.0, 1.0), fee_per_contract=0.01, fee_minimum=1.0)
    assert [fill[1] for fill in found.fills] == [side, side, 28 * side]
    assert found.fees == [1.0, 0.0, 0.0] and found.costs["fees"] == 1.0


@pytest.mark.parametrize("side", [1, -1])
def test_case_27_lots_from_bar_volume(side):
    found = played([(50, 51, 49, 50, 150)] * 4, [side], lots=51, participation=(0.25, 0.25, 0.25))
    assert found.fills == [(1, 37 * side, 50.0), (2, 14 * side, 50.0)]
    assert found.position == [0, 37 * side, 51 * side, 51 * side]


def test_case_29_closing_needs_no_margin():
    rows = [(100, 101, 99, 100, 9000), (100, 101, 99, 100, 9000), (95, 96, 94, 95, 9000), (94, 95, 93, 94, 9000)]
    long = played(rows, [1, 0, 0], lots=1000, initial_margin_rate=1.0)
    assert long.fills == [(1, 1000, 100.0), (2, -1000, 95.0)] and not long.refused
    assert long.equity[-1] == 95_000.0
    rise = [(100, 101, 99, 100, 9000), (100, 101, 99, 100, 9000), (105, 106, 104, 105, 9000), 106]
    short = played(rise, [-1, 0, 0], lots=1000, initial_margin_rate=1.0)
    assert short.fills == [(1, -1000, 100.0), (2, 1000, 105.0)] and short.equity[-1] == 95_000.0 and not short.refused


def test_case_31_last_bar_equity_is_marked():
    rows = [100, (100, 102, 100, 102), (102, 109, 102, 109)]
    assert played(rows, [1], lots=10, start_equity=1000.0, same_close=True).equity == [1000.0, 1020.0, 1090.0]
    down = [100, (100, 100, 98, 98), (98, 98, 91, 91)]
    assert played(down, [-1], lots=10, start_equity=1000.0, same_close=True).equity == [1000.0, 1020.0, 1090.0]


def test_case_33_funding_at_the_boundary():
    coin = Instrument("X", tick_size=1.0)
    # bars close at 00:00, 08:00, 16:00 and 24:00; the order decided at 08:00 works after it, the one decided at 16:00 too
    columns = {"funding_rate": [NAN, 0.0001, 0.0003, NAN], "funding_mark": [NAN, 60_000.0, 61_000.0, NAN]}
    rows = [60_000, 60_000, (60_000, 61_000, 60_000, 61_000), 61_000]
    found = played(rows, [0, 1, 0, 0], coin, step=8 * HOUR, columns=columns)
    assert found.costs["funding"] == 18.3 and found.position == [0, 0, 1, 0]
    at_the_close = played(rows, [0, 1, 0, 0], coin, step=8 * HOUR, columns=columns, same_close=True)
    assert at_the_close.costs["funding"] == 18.3 and at_the_close.position == [0, 1, 0, 0]
    short = played(rows, [0, -1, 0, 0], coin, step=8 * HOUR, columns=columns)
    assert short.costs["funding"] == -18.3


def test_case_51_short_leg_counts():
    found = played([100, 90, 99], [-1, 1, 1], start_equity=1000.0, same_close=True)
    assert np.diff(found.equity).tolist() == [10.0, 9.0]
    data, _ = market_of([100, 90, 99], start_equity=1000.0, same_close=True)
    steps = np.diff(play(data, as_decisions([-1, 1, 1])).equity_T)
    assert steps.sum() == 19 * 10**9  # what the steps earn is what the account has at the end, exactly


# -- several symbols in one account ----------------------------------------------------------------------------------------------


def three_symbols(first, second):
    """Two symbols that are traded and one that is not."""
    return [replace(bars_from(rows), symbol=name) for name, rows in zip("ABC", (first, second, first), strict=True)]


def shared(bars, lots=1, **rules):
    """One account that is long the first two symbols."""
    data = whole_market(bars, lots=lots, account="shared", **rules)
    longest = data.tape.close_ST.shape[1]
    lanes = run_strategy(data, script([1.0] * 2 * longest + [0.0] * longest)).lanes
    assert len(lanes) == 1 and lanes[0].symbols == ("A", "B", "C")
    outcome = simulate(bars, list(data.tape.instruments), data.settings, [as_decisions([side]) for side in (1, 1, 0)], fixed_lots(lots))
    compare(lanes[0], outcome)
    return lanes[0]


def test_symbols_of_a_shared_account_share_its_cash():
    lane = shared(three_symbols([100, 100, 110, 110], [50, 50, 50, 60]), lots=10)
    assert (lane.equity_T / 1e9).tolist() == [100_000.0, 100_000.0, 100_100.0, 100_200.0]
    assert lane.open_positions == {"A": 10, "B": 10}


def test_a_symbol_without_a_bar_is_held_at_its_last_mark():
    bars = three_symbols([100, 100, 110, 120], [50, 50, 50, 60])
    bars[1] = bars[1].take(np.array([0, 1, 3]))
    assert (shared(bars).equity_T / 1e9).tolist() == [100_000.0, 100_000.0, 100_010.0, 100_030.0]


def test_orders_of_one_stamp_take_the_margin_in_the_order_of_the_symbols():
    lane = shared(three_symbols([100, 100, 100], [100, 100, 100]), lots=600, initial_margin_rate=1.0)
    assert lane.fills["symbol"].tolist() == [0] and lane.fills["lots"].tolist() == [600]
    assert lane.rejections["symbol"].tolist() == [1, 1, 1]
    assert lane.rejections["reason"].tolist() == [market.UNAFFORDABLE, market.UNAFFORDABLE, market.LAST_BAR]
