"""Execution models: every fill, refusal and protective exit against prices worked out by hand or by an independent rule."""

import dataclasses
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from market_cases import bars_of, market_data, random_bars

from bellmark import market
from bellmark.actions import ActionSpace
from bellmark.backtester import run_batch_policy, run_strategy
from bellmark.codegen import lower, parameters
from bellmark.component import make, settings_of
from bellmark.errors import UsageError
from bellmark.host import host
from bellmark.market import BAD_PRICE, FILLED, IOC, IOC_CAP, LIMIT, MAKER, MARKET, NO_VOLUME, NOT_REACHED, STOP, TARGET

pytestmark = pytest.mark.cpu

NEAR = ("open", "high", "low", "close")


compiled = cache(lower)


def call(function: Any, values: dict[str, Any]) -> Any:
    return compiled(function)(*(values[name] for name in parameters(function)))


def execution(name: str, **values: Any) -> Any:
    return make(host().get("execution", name), values, "execution")


def context(rule: Any, bar: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What a lane function sees of one bar: prices by name, `bid` and `ask` as (open, high, low, close)."""
    prices = dict(zip(NEAR, bar["bar"], strict=True)) | {"volume": bar.get("volume", 1000.0)}
    for side in ("bid", "ask"):
        prices |= {f"{side}_{part}": price for part, price in zip(NEAR, bar.get(side, bar["bar"]), strict=True)}
    arrays = {f"{name}_T": np.array([value], np.float64 if name == "volume" else np.int64) for name, value in prices.items()}
    fixed = {"t": 0, "half_spread": 2, "slippage": 1, "slippage_rate": 0, "positive_only": 1, "participation": 0, "limit_price": 0}
    return {**arrays, **fixed, "order_type": MARKET, **{info.name: getattr(rule, info.name) for info in settings_of(type(rule))}, **more}


def fill(rule: Any, bar: dict[str, Any], lots: int, **more: Any) -> tuple[int, ...]:
    return tuple(int(part) for part in call(type(rule).fill, context(rule, bar, order_lots=lots, **more)))


def protect(rule: Any, bar: dict[str, Any], position: int, stop: int | None = None, target: int | None = None, **more: Any) -> Any:
    none = market.NO_LEVEL if position > 0 else -market.NO_LEVEL
    levels = {"stop_price": -none if stop is None else stop, "target_price": none if target is None else target}
    given = {"position": position, **levels, "start_price": bar["bar"][0], "rested": 0, "target_at_open": 0} | more
    return tuple(int(part) for part in call(getattr(type(rule), "protect", market.protect), context(rule, bar, **given)))


# ---- quotes ----------------------------------------------------------------------------------------------------------------------

QUOTES = {"bar": (102, 108, 95, 100), "bid": (100, 106, 93, 98), "ask": (105, 110, 97, 103)}


def test_quotes_buy_at_the_ask_and_sell_at_the_bid_around_their_middle_rounded_down():
    rule = execution("bar_quotes")
    assert fill(rule, QUOTES, 3) == (3, 102, 3, 1, FILLED)  # 102 + 3 = ask 105, and 1 of slippage
    assert fill(rule, QUOTES, -3) == (-3, 102, 2, 1, FILLED)  # 102 - 2 = bid 100
    assert fill(rule, QUOTES, -3, slippage_rate=10**7) == (-3, 102, 2, 2, FILLED)


def test_quotes_ioc_compares_the_touched_side_and_slippage_with_the_cap():
    rule = execution("bar_quotes")
    assert fill(rule, QUOTES, 1, order_type=IOC, limit_price=106)[4] == FILLED
    assert fill(rule, QUOTES, 1, order_type=IOC, limit_price=105) == (0, 102, 3, 1, IOC_CAP)
    assert fill(rule, QUOTES, -1, order_type=IOC, limit_price=99)[4] == FILLED
    assert fill(rule, QUOTES, -1, order_type=IOC, limit_price=100)[4] == IOC_CAP


@pytest.mark.parametrize(
    ("lots", "limit", "expected"),
    [
        (2, 105, (2, 102, 3, 0, FILLED)),  # marketable: pays the ask, no slippage
        (2, 106, (2, 102, 3, 0, FILLED)),
        (2, 104, (2, 104, 0, 0, MAKER)),
        (2, 98, (2, 98, 0, 0, MAKER)),
        (2, 97, (0, 102, 0, 0, NOT_REACHED)),  # ask_low touches it
        (-2, 100, (-2, 102, 2, 0, FILLED)),
        (-2, 101, (-2, 101, 0, 0, MAKER)),
        (-2, 105, (-2, 105, 0, 0, MAKER)),
        (-2, 106, (0, 102, 0, 0, NOT_REACHED)),  # bid_high touches it
    ],
)
def test_quotes_limit_orders_take_at_the_open_or_rest_until_the_other_side_passes_them(lots, limit, expected):
    assert fill(execution("bar_quotes"), QUOTES, lots, order_type=LIMIT, limit_price=limit) == expected


def test_quotes_volume_participation_and_prices_below_zero():
    rule = execution("bar_quotes")
    assert fill(rule, QUOTES | {"volume": 0.0}, 5)[::4] == (0, NO_VOLUME)
    assert fill(rule, QUOTES | {"volume": 30.0}, -5, participation=10**8)[0] == -3
    assert fill(rule, QUOTES | {"volume": np.nan}, -5, participation=10**8)[0] == -5
    cheap = {"bar": (1, 1, 1, 1), "bid": (1, 1, 1, 1), "ask": (2, 2, 2, 2)}
    assert fill(rule, cheap, -1)[::4] == (0, BAD_PRICE)
    assert fill(rule, cheap, -1, positive_only=0) == (-1, 1, 0, 1, FILLED)


@pytest.mark.parametrize(
    ("position", "more", "expected"),
    [
        (1, {"stop": 93}, (95, 2, 1, STOP)),  # bid_low touches the stop; the bid fills at it: 95 - 2 = 93
        (1, {"stop": 92}, (102, 0, 0, 0)),
        (1, {"stop": 101}, (102, 2, 1, STOP)),  # the bar opens beyond: at the bid of the open
        (1, {"target": 106}, (106, 0, 0, TARGET)),
        (1, {"target": 107}, (102, 0, 0, 0)),  # bid_high 106; the trades' high of 108 does not count
        (1, {"target": 99}, (99, 0, 0, TARGET)),
        (1, {"target": 99, "target_at_open": 1}, (100, 0, 0, TARGET)),
        (1, {"stop": 94, "target": 101}, (96, 2, 1, STOP)),  # both: the stop
        (1, {"target": 101, "rested": 1, "start_price": 99}, (102, 0, 0, 0)),  # bid_close 98 after a resting fill
        (1, {"target": 98, "rested": 1, "start_price": 97}, (98, 0, 0, TARGET)),
        (1, {"stop": 96, "rested": 1, "start_price": 95}, (97, 2, 1, STOP)),
        (-1, {"stop": 110}, (107, 3, 1, STOP)),  # 107 + 3 = 110
        (-1, {"stop": 111}, (102, 0, 0, 0)),
        (-1, {"stop": 104}, (102, 3, 1, STOP)),  # at the ask of the open
        (-1, {"target": 97}, (97, 0, 0, TARGET)),
        (-1, {"target": 96}, (102, 0, 0, 0)),
        (-1, {"target": 107, "target_at_open": 1}, (105, 0, 0, TARGET)),
        (-1, {"target": 102, "rested": 1, "start_price": 104}, (102, 0, 0, 0)),  # ask_close 103
    ],
)
def test_quotes_stops_are_hit_on_the_side_that_they_trade_on(position, more, expected):
    assert protect(execution("bar_quotes"), QUOTES, position, **more) == expected


def test_quotes_at_the_close_are_those_of_the_data():
    found = call(host().get("execution", "bar_quotes").quote, context(execution("bar_quotes"), QUOTES))
    assert tuple(int(price) for price in found) == (98, 103)


def quoted(count: int, seed: int) -> Any:
    bars = random_bars(count, seed=seed, scale=0.02)
    random = np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    for side, sign in (("bid", -1), ("ask", 1)):
        shift_T = sign * random.integers(1, 5, count) * 0.01
        for part in NEAR:
            columns[side if part == "close" else f"{side}_{part}"] = np.round(getattr(bars, part) + shift_T, 2)
    return dataclasses.replace(bars, **columns)


def test_a_backtest_on_quotes_fills_at_their_opens_and_pays_their_spread():
    bars = quoted(200, seed=3)
    data = market_data(bars, execution=("bar_quotes", {}), sizing=("fixed_lots", {"lots": 10}), spread_ticks=50.0)
    rule = make(host().get("strategy", "random"), {"change_probability": 0.4}, "rule")
    lane = run_strategy(data, rule).lanes[0]
    quantum = data.tape.instruments[0].price_quantum
    assert len(lane.fills) > 20 and not lane.rejections["reason"][:-1].any()
    for row in lane.fills:
        side = bars.ask_open if row["lots"] > 0 else bars.bid_open
        assert row["price"] * quantum == pytest.approx(side[row["bar"]])
    middle = sum(abs(int(row["lots"])) * abs(int(row["price"]) - int(row["reference"])) for row in lane.fills) * quantum
    assert lane.costs["spread"] == pytest.approx(middle) and lane.costs["slippage"] == 0.0


def test_limit_orders_on_quotes_rest_at_the_near_touch_of_the_decision():
    bars = quoted(150, seed=8)
    space = ActionSpace((-1.0, 0.0, 1.0), order_types=("market", "limit"))
    data = market_data(bars, execution=("bar_quotes", {}), space=space, sizing=("fixed_lots", {"lots": 5}))
    random = np.random.default_rng(1)
    limits = [a for a in range(space.A) if space.order_type_A[a] == LIMIT]
    lane = run_batch_policy(data, lambda observation, allowed: random.choice(limits, 1), data.no_normalisation(1)).lanes[0]
    quantum = data.tape.instruments[0].price_quantum
    makers = lane.fills[lane.fills["maker"]]
    assert 10 < len(makers) < len(lane.fills) and {NOT_REACHED} <= set(lane.rejections["reason"].tolist())
    for row in makers:
        bar = int(row["bar"])
        near = bars.bid[bar - 1] if row["lots"] > 0 else bars.ask[bar - 1]
        passed = bars.ask_low[bar] < near if row["lots"] > 0 else bars.bid_high[bar] > near
        assert row["price"] * quantum == pytest.approx(near) and passed and row["spread"] == 0.0


def test_quotes_that_the_data_do_not_have_are_named():
    with pytest.raises(UsageError, match="execution 'bar_quotes' needs the columns bid_open, .*, ask_close of the data, found bars alone"):
        run_strategy(market_data(bars_of([10.0] * 4), execution=("bar_quotes", {})), make(host().get("strategy", "flat"), {}, "rule"))


@pytest.mark.slow
def test_stops_on_quotes_in_a_backtest_fill_at_the_bid():
    flat = [100.0] * 6
    low = [100.0, 100.0, 100.0, 96.0, 100.0, 100.0]
    bars = bars_of(flat, high_T=flat, low_T=low, close_T=flat)
    sides = {"bid": -0.5, "ask": 0.5}
    columns = {
        (side if part == "close" else f"{side}_{part}"): getattr(bars, part) + shift for side, shift in sides.items() for part in NEAR
    }
    data = market_data(dataclasses.replace(bars, **columns), execution=("bar_quotes", {}), stop_loss=0.03)
    lane = run_strategy(data, make(host().get("strategy", "buy_and_hold"), {}, "rule")).lanes[0]
    quantum = data.tape.instruments[0].price_quantum
    assert lane.fills["cause"].tolist() == [market.ORDER, market.STOP] and lane.fills["bar"].tolist() == [1, 3]
    stop = np.floor(100.5 * 0.97 * 100) / 100  # of a long at 100.5, rounded to worse
    assert (lane.fills["price"] * quantum).tolist() == pytest.approx([100.5, stop])
    assert lane.costs["spread"] == pytest.approx(1.0)


# ---- impact ----------------------------------------------------------------------------------------------------------------------

BAR = {"bar": (10_000, 10_100, 9_900, 10_000), "volume": 400.0}


@pytest.mark.parametrize("lots", [1, -1, 4, 100, -400, 900])
@pytest.mark.parametrize("bps", [0.0, 10.0, 37.5])
def test_impact_adds_the_square_root_of_the_share_of_the_volume(lots, bps):
    found = fill(execution("impact", impact_bps=bps), BAR, lots)
    exact = 10_000 * Fraction(bps) / 10_000 * Fraction((abs(lots) / 400) ** 0.5)
    assert found == (lots, 10_000, 2, 1 + int(exact + Fraction(1, 2)), FILLED)


def test_impact_is_that_of_the_part_that_fills():
    found = fill(execution("impact", impact_bps=100.0), BAR, 400, participation=250_000_000)
    assert found == (100, 10_000, 2, 1 + 50, FILLED)


def test_impact_of_unknown_volume_is_that_of_the_whole_bar_and_zero_volume_does_not_fill():
    rule = execution("impact", impact_bps=100.0)
    assert fill(rule, BAR | {"volume": np.nan}, 1)[3] == 1 + 100
    assert fill(rule, BAR | {"volume": 0.0}, 1)[::4] == (0, NO_VOLUME)


def test_impact_counts_against_the_cap_of_an_ioc_order_and_not_in_a_limit_order():
    rule = execution("impact", impact_bps=100.0)  # 100 lots of 400 move the price by 50
    assert fill(rule, BAR, 100, order_type=IOC, limit_price=10_053)[4] == FILLED
    assert fill(rule, BAR, 100, order_type=IOC, limit_price=10_052)[4] == IOC_CAP
    assert fill(rule, BAR, 100, order_type=LIMIT, limit_price=10_002) == (100, 10_000, 2, 0, FILLED)
    assert fill(rule, BAR, 100, order_type=LIMIT, limit_price=9_950) == (100, 9_950, 0, 0, MAKER)


def test_impact_is_at_most_the_price_and_stays_whole_at_large_prices():
    assert fill(execution("impact", impact_bps=10_000.0), BAR | {"volume": 1e-9}, 1)[3] == 1 + 10_000
    large = {"bar": (2**52,) * 4, "volume": 1.0}
    assert fill(execution("impact", impact_bps=10_000.0), large, 10**9)[3] == 1 + 2**52


def test_a_stop_pays_impact_and_a_target_does_not():
    rule = execution("impact", impact_bps=100.0)
    assert protect(rule, BAR, 100, stop=9_900) == (9_900, 2, 1 + 50, STOP)
    assert protect(rule, BAR, -400, stop=10_050) == (10_050, 2, 1 + 100, STOP)
    assert protect(rule, BAR, 100, target=10_050) == (10_050, 0, 0, TARGET)


@pytest.mark.parametrize(
    ("rules", "lots"),
    [
        pytest.param({}, [50, -50], marks=pytest.mark.slow),
        ({"unaffordable": "cut", "start_equity": 3_000.0, "initial_margin_rate": 1.0}, [30, -30]),
    ],
)
def test_the_closing_at_the_end_pays_impact_and_an_order_that_is_cut_that_of_the_whole(rules, lots):
    more = {"sizing": ("fixed_lots", {"lots": 50}), "execution": ("impact", {"impact_bps": 100.0}), "close_at_end": True}
    data = market_data(bars_of([100.0] * 4, volume_T=[100.0] * 4), **more, **rules)
    fills = run_strategy(data, make(host().get("strategy", "buy_and_hold"), {}, "rule")).lanes[0].fills
    unit = [round(200 * (size / 100) ** 0.5) / 200 for size in (50, -lots[1])]  # sqrt(share) of 1 %, to price quanta of half a cent
    assert fills["lots"].tolist() == lots and fills["cause"].tolist() == [market.ORDER, market.CLOSE_AT_END]
    assert (fills["slippage"] / np.abs(lots)).tolist() == pytest.approx(unit)


def test_impact_makes_a_backtest_dearer_by_what_it_says():
    bars = random_bars(200, seed=5)
    rule = make(host().get("strategy", "random"), {"change_probability": 0.4}, "rule")
    sized = {"sizing": ("fixed_lots", {"lots": 90}), "slippage_ticks": 1.0}
    plain = run_strategy(market_data(bars, **sized), rule).lanes[0]
    moved = run_strategy(market_data(bars, execution=("impact", {"impact_bps": 20.0}), **sized), rule)
    lane, quantum = moved.lanes[0], market_data(bars, **sized).tape.instruments[0].price_quantum
    assert (plain.fills["lots"] == lane.fills["lots"]).all() and len(lane.fills) > 20
    expected = sum(
        abs(int(row["lots"])) * round(int(row["reference"]) * 20e-4 * (abs(int(row["lots"])) / 1000) ** 0.5) * quantum for row in lane.fills
    )
    assert lane.costs["slippage"] - plain.costs["slippage"] == pytest.approx(expected)


# ---- zero cost -------------------------------------------------------------------------------------------------------------------


def test_zero_cost_fills_at_the_reference_price_whatever_the_market_costs():
    rule = execution("zero_cost")
    costs = {"half_spread": 7, "slippage": 9, "slippage_rate": 10**6}
    assert fill(rule, BAR, 5, **costs) == (5, 10_000, 0, 0, FILLED)
    assert fill(rule, BAR, -5, order_type=IOC, limit_price=10_000, **costs) == (-5, 10_000, 0, 0, FILLED)
    assert fill(rule, BAR, 5, order_type=LIMIT, limit_price=9_901, **costs) == (5, 9_901, 0, 0, MAKER)
    assert fill(rule, BAR | {"volume": 0.0}, 5)[::4] == (0, NO_VOLUME)
    assert protect(rule, BAR, 1, stop=9_900, **costs) == (9_900, 0, 0, STOP)
    assert protect(rule, BAR, -1, target=9_900, **costs) == (9_900, 0, 0, TARGET)
    quote = call(type(rule).quote, context(rule, BAR, **costs))
    assert tuple(int(price) for price in quote) == (10_000, 10_000)


def test_zero_cost_leaves_the_fees_and_the_profit_at_reference_prices():
    bars = random_bars(150, seed=6)
    rule = make(host().get("strategy", "random"), {"change_probability": 0.4}, "rule")
    costs = {"spread_ticks": 2.0, "slippage_ticks": 1.0, "slippage_bps": 3.0, "fee_per_contract": 0.5}
    bar = run_strategy(market_data(bars, **costs), rule).lanes[0]
    free = run_strategy(market_data(bars, execution=("zero_cost", {}), **costs), rule).lanes[0]
    assert bar.gross == free.gross and bar.costs["fees"] == free.costs["fees"] > 0
    assert free.costs["spread"] == free.costs["slippage"] == 0.0 < bar.costs["spread"]
    assert int(free.equity_T[-1] - bar.equity_T[-1]) == round((bar.costs["spread"] + bar.costs["slippage"]) * 1e9)


# ---- every execution ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bar", "bar_quotes", "impact", "zero_cost"])
def test_fills_keep_the_order_within_bounds_at_random(name):
    """Side, size, costs and, for resting orders, a price no worse than the limit."""
    random = np.random.default_rng(2)
    rule = execution(name)
    for _ in range(300):
        middle = int(random.integers(50, 200))
        close = middle + int(random.integers(-9, 10))
        traded = (middle, max(middle, close) + int(random.integers(0, 5)), min(middle, close) - int(random.integers(0, 5)), close)
        half = int(random.integers(0, 4))
        bar = {"bar": traded, "bid": tuple(price - half for price in traded), "ask": tuple(price + half for price in traded),
               "volume": float(random.choice([0.0, 3.0, 1e6, np.nan]))}  # fmt: skip
        order = int(random.integers(1, 60)) * int(random.choice([-1, 1]))
        kind, limit = int(random.integers(0, 3)), int(random.integers(40, 210))
        lots, reference, spread, slip, reason = fill(
            rule, bar, order, order_type=kind, limit_price=limit, participation=int(random.choice([0, 10**9]))
        )
        assert (reason in (FILLED, MAKER)) == (lots != 0) and abs(lots) <= abs(order) and lots * order >= 0
        assert spread >= 0 and slip >= 0 and not (reason == MAKER and kind != LIMIT)
        if lots != 0 and kind != MARKET:
            price = reference + (spread + slip) * (1 if lots > 0 else -1)
            assert price <= limit if lots > 0 else price >= limit
            assert reason != MAKER or price == limit
        if lots != 0 and type(rule).within_bar:
            assert traded[2] <= reference <= traded[1]
