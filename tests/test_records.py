"""The ledger as rows: every fill and refusal belongs to one decision, prices are in currency, files are whole."""

import json
from dataclasses import replace

import numpy as np
import pytest
from market_cases import bars_of, market_data, random_bars

from bellmark import files, market
from bellmark.actions import ActionSpace
from bellmark.backtester import PolicyRunner, policy_backtest, run_batch_policy, run_strategies, run_strategy
from bellmark.component import Strategy, component, make
from bellmark.host import host
from bellmark.instrument import Instrument
from bellmark.records import KINDS, decision_rows, fill_rows, rejection_rows, trade_rows, write_rows

pytestmark = pytest.mark.cpu

ES = Instrument("ES", tick_size=0.25, contract_multiplier=50.0)


def strategy(name, **values):
    return make(host().get("strategy", name), values, name)


def scripted(data, actions):
    """A policy that plays a list of actions, then repeats the last."""
    played = iter([*actions, *[actions[-1]] * 10_000])
    return run_batch_policy(data, lambda observation, allowed: np.array([next(played)]), data.no_normalisation(1))


def one_lane(result):
    (lane,) = result.lanes
    return lane


@pytest.fixture(scope="module")
def busy():
    """A market with stops, thin volume and a margin, and a strategy that changes its mind often."""
    bars = random_bars(300, seed=3, scale=0.02)
    bars.volume[:] = np.random.default_rng(1).integers(0, 60, 300)
    rules = {"stop_loss": 0.03, "take_profit": 0.05, "participation": (0.5, 0.5, 0.5), "initial_margin_rate": 0.9, "spread_ticks": 2.0}
    data = market_data(bars, sizing=("fixed_lots", {"lots": 40}), start_equity=5_000.0, fee_per_contract=0.01, **rules)
    return run_strategy(data, strategy("random", seed=4, change_probability=0.4))


def test_fills_are_in_currency_with_symbol_cause_and_stamp(busy):
    lane, rows = one_lane(busy), list(fill_rows(busy))
    assert len(rows) == len(lane.fills) and {row["cause"] for row in rows} >= {"order", "stop", "target"}
    assert {row["symbol"] for row in rows} == {"X"} and rows[0]["learner"] is None
    value = sum(row["lots"] * row["price"] + row["fee"] for row in rows)
    held = lane.open_position * lane.close_ST[0, -1]
    assert lane.equity_T[-1] / 1e9 == pytest.approx(5_000.0 - value + held, abs=1e-6)
    bar, first = rows[0]["bar"], lane.bar_ST[0, 0]
    assert rows[0]["ts"] == f"{np.datetime64(int(lane.stamp_T[bar - first]), 'ns').astype('datetime64[s]')}Z"
    assert {row["price"] for row in rows} == {round(row["price"], 3) for row in rows}  # the nearest float64 of half a tick


def test_every_fill_and_refusal_belongs_to_exactly_one_decision(busy):
    rows = list(decision_rows(busy))
    assert len(rows) == one_lane(busy).stamp_T.size
    assert sum(len(row["fills"]) for row in rows) == len(one_lane(busy).fills)
    assert sum(len(row["refused"]) for row in rows) == len(one_lane(busy).rejections)
    assert sum(fill["lots"] for row in rows for fill in row["fills"]) == one_lane(busy).open_position
    assert {one["reason"] for row in rows for one in row["refused"]} == {row["reason"] for row in rejection_rows(busy)}
    positions = [row["position"] for row in rows]
    for now, after, row in zip(positions, positions[1:], rows, strict=False):
        assert after - now == sum(fill["lots"] for fill in row["fills"])


@pytest.mark.parametrize(
    "rules",
    [{"latency_bars": 2}, *(pytest.param(one, marks=pytest.mark.slow) for one in ({"latency_bars": 3}, {"same_close": True}))],
)
@pytest.mark.parametrize("kind", ["strategy", "policy"])
def test_fills_are_those_of_the_bar_that_worked_the_order(rules, kind):
    data = market_data(random_bars(40, seed=1), **rules)
    if kind == "strategy":
        result = run_strategy(data, strategy("random", seed=2, change_probability=0.5))
    else:
        result = scripted(data, np.random.default_rng(0).integers(0, 3, 40).tolist())
    rows = list(decision_rows(result))
    late = 0 if rules.get("same_close") else rules["latency_bars"]
    assert sum(len(row["fills"]) for row in rows) == len(one_lane(result).fills) > 5
    for row in rows[: len(rows) - max(late, 1)]:
        assert sum(fill["lots"] for fill in row["fills"]) == row["order"]
    assert {row["bar"] + late for row in rows if row["fills"]} == {row["bar"] for row in fill_rows(result)}
    waiting = [row for row in rows[len(rows) - max(late, 1) :] if row["order"] is None]
    assert len(waiting) == max(late - 1, 0)  # the first in the queue is known, the others never came to be orders
    last = [one for row in rows for one in row["refused"] if one["reason"] == market.REASONS[market.LAST_BAR]]
    assert len(last) == len(one_lane(result).rejections)


def test_an_order_on_the_last_bar_stands_at_its_decision():
    rows = list(decision_rows(scripted(market_data(bars_of([10.0, 10.0, 12.0])), [1, 1, 2])))
    assert [row["order"] for row in rows] == [0, 0, 1] and rows[-1]["target"] == 1
    assert rows[-1]["refused"] == [{"lots": 1, "reason": market.REASONS[market.LAST_BAR]}]


@component
class Last(Strategy):
    """Asks for something else at each of bars 4 to 7."""

    name = "last"

    @staticmethod
    def decide(t):
        return 0.0 if t < 4 else 0.5 - 0.5 * (t - 4)


# Of 4 lots the targets of bars 4 to 7 are 2, 0, -2, -4; the window ends with bar 7. What is left over is told from the lots held there.
LEFT_OVER = {1: {7: -2}, 2: {6: -2, 7: -4}, 3: {5: -2, 6: -4, 7: -6}, 4: {4: 2, 6: -2, 7: -4}}


@pytest.mark.parametrize("latency", [late if late == 3 else pytest.param(late, marks=pytest.mark.slow) for late in LEFT_OVER])
@pytest.mark.parametrize("kind", ["strategy", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("shared", "policy"))])
def test_an_order_that_the_end_left_over_stands_at_the_bar_that_decided_it(kind, latency):
    space = ActionSpace((-1.0, -0.5, 0.0, 0.5), ("market",), ("normal",))
    rules = {"account": "shared"} if kind == "shared" else {}
    data = market_data(bars_of([10.0] * 8), sizing=("fixed_lots", {"lots": 4}), space=space, latency_bars=latency, **rules)
    result = scripted(data, [2, 2, 2, 2, 3, 2, 1, 0]) if kind == "policy" else run_strategy(data, Last())
    expected = LEFT_OVER[latency]
    rejections = one_lane(result).rejections
    assert dict(zip(rejections["bar"].tolist(), rejections["lots"].tolist(), strict=True)) == expected
    assert rejections["stamp"].tolist() == [one_lane(result).stamp_T[bar] for bar in rejections["bar"]]
    rows = list(decision_rows(result))
    reason = market.REASONS[market.LAST_BAR]
    assert {row["bar"]: row["refused"] for row in rows if row["refused"]} == {
        bar: [{"lots": lots, "reason": reason}] for bar, lots in expected.items()
    }
    first = 8 - latency  # the first in the queue would work next; those behind it never came to be orders
    assert rows[first]["order"] == expected.get(first, 0) and [row["order"] for row in rows[first + 1 :]] == [None] * (latency - 1)
    assert {row["bar"] + latency for row in rows if row["fills"]} == set(one_lane(result).fills["bar"].tolist())


def test_a_decision_names_action_price_order_fill_and_refusal():
    bars = bars_of([100.0, 101.0, 102.0, 103.0], close_T=[100.5, 101.5, 102.5, 103.5])
    data = market_data(bars, ES, sizing=("fixed_lots", {"lots": 2}), spread_ticks=2.0, initial_margin_per_contract=30_000.0)
    rows = list(decision_rows(scripted(data, [2, 0, 1])))
    long, short, flat = rows[:3]
    assert (long["action"], long["decision"], long["exposure"], long["close"], long["bar"]) == (2, "+1.00", 1.0, 100.5, 0)
    assert (long["position"], long["order"], long["target"]) == (0, 2, 2)
    assert long["fills"] == [{"lots": 2, "price": 101.25, "cause": "order"}] and long["refused"] == []
    assert (long["q"], long["legal"]) == (None, None)
    assert (short["order"], short["target"]) == (-4, -2) and short["fills"] == [{"lots": -4, "price": 101.75, "cause": "order"}]
    assert (flat["order"], flat["target"], flat["decision"]) == (2, 0, "flat")
    poor = market_data(bars, ES, sizing=("fixed_lots", {"lots": 9}), initial_margin_per_contract=30_000.0)
    (refused,) = next(iter(decision_rows(scripted(poor, [2]))))["refused"]
    assert refused == {"lots": 9, "reason": market.REASONS[market.UNAFFORDABLE]}


@component
class Broken(Strategy):
    """Asks for what is no number now and then."""

    name = "broken"

    @staticmethod
    def decide(t, close_T):
        return 0.0 / (t % 3) if t % 3 == 0 else 1.0


def test_a_decision_on_no_number_is_a_row_with_its_reason():
    rows = list(decision_rows(run_strategy(market_data(bars_of([10.0] * 8)), Broken())))
    assert len(rows) == 8
    for row in rows[::3]:
        assert row["exposure"] is None and [one["reason"] for one in row["refused"]] == [market.REASONS[market.BAD_EXPOSURE]]


def test_a_ruined_account_decides_no_more():
    data = market_data(bars_of([100.0, 100.0, 50.0, 50.0, 50.0]), sizing=("fixed_lots", {"lots": 100}), start_equity=1000.0)
    assert [row["bar"] for row in decision_rows(run_strategy(data, strategy("buy_and_hold")))] == [0, 1]


def test_values_and_masks_that_were_kept_stand_beside_each_action():
    bars, space = random_bars(6), ActionSpace((-1.0, 0.0, 1.0), ("market",), ("normal",))
    data = market_data(bars, masks=[("max_position", {"max_lots": 0})], space=space)

    class Acting:
        given = ()

        def declare(self, registry):
            registry.declare("acting_q_LND", "logit", (1, 1, 3))

        def fill(self, registry):
            registry["acting_q_LND"][:] = [0.5, 0.25, np.nan]

        def stages(self, *, explore):
            from bellmark.stages import Stage

            def launch(action_LN):
                action_LN[:] = 1

            return [Stage("acting", launch, ("action_LN",), (), ("action_LN",))]

    runner = PolicyRunner(data, "test", 1, data.no_normalisation(1), lambda lanes: Acting())
    result = policy_backtest(data, runner, runner.run(keep_values=True), "x", "test", "", 0)
    row = next(iter(decision_rows(result)))
    assert row["q"] == {"-1.00": 0.5, "flat": 0.25, "+1.00": None}
    assert row["legal"] == {"-1.00": False, "flat": True, "+1.00": False}


def test_trades_have_mean_prices_of_building_and_reducing():
    prices = [100.0, 100.0, 110.0, 120.0, 120.0, 130.0, 90.0, 90.0]
    rows = trade_rows(scripted(market_data(bars_of(prices)), [2, 2, 0, 0, 1, 2, 2]))
    assert [(row["lots"], row["entry_price"], row["exit_price"], row["profit"], row["exit_cause"]) for row in rows] == [
        (1, 100.0, 120.0, 20.0, "order"),
        (-1, 120.0, 130.0, -10.0, "order"),
        (1, 90.0, None, None, None),
    ]
    assert rows[0]["exit"] == rows[1]["entry"] and rows[2]["exit"] is None


def test_a_stop_ends_a_trade_at_a_loss_of_price(busy):
    closed = [row for row in trade_rows(busy) if row["exit"] is not None]
    assert len(closed) > 20
    stopped = [row for row in closed if row["exit_cause"] == "stop"]
    assert stopped and all((row["exit_price"] - row["entry_price"]) * row["lots"] < 0 for row in stopped)


def test_a_shared_account_says_which_symbol_and_follows_each_symbols_own_bars():
    first, second = random_bars(30, seed=1, symbol="A"), random_bars(30, seed=2, symbol="B")
    thin = second.take(np.flatnonzero(np.arange(30) % 3 != 1))
    data = market_data([first, thin], account="shared", sizing=("fixed_lots", {"lots": 3}))
    (result,) = run_strategies(data, [strategy("random", seed=1, change_probability=0.6)])
    lane, rows = one_lane(result), list(decision_rows(result))
    assert [sum(row["symbol"] == name for row in rows) for name in ("A", "B")] == [30, 20]
    assert sum(len(row["fills"]) for row in rows) == len(lane.fills)
    for name, bars in (("A", first), ("B", thin)):
        own = [row for row in rows if row["symbol"] == name]
        assert [row["close"] for row in own] == pytest.approx(bars.close.tolist())
        for now, after in zip(own, own[1:], strict=False):
            assert after["position"] - now["position"] == sum(fill["lots"] for fill in now["fills"]) == now["order"]
        assert own[-1]["position"] == lane.open_positions.get(name, 0)
        filled = [row for row in fill_rows(result) if row["symbol"] == name]
        assert sum(row["lots"] for row in filled) == lane.open_positions.get(name, 0)
        assert {row["price"] for row in filled} <= set(np.round(bars.open, 2).tolist())
    assert {row["symbol"] for row in trade_rows(result)} == {"A", "B"}


def test_files_are_json_lines_with_a_version_and_nothing_is_left_beside(busy, tmp_path):
    found = write_rows(busy, tmp_path / "out", KINDS)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(f"{kind}.jsonl" for kind in KINDS)
    for kind, path in found.items():
        rows = [json.loads(line, parse_constant=pytest.fail) for line in path.read_text().splitlines()]
        expected = [{"schema_version": 1, **row} for row in KINDS[kind](busy)]
        assert rows == expected and rows
    before = found["fills"].read_bytes()
    write_rows(busy, tmp_path / "out", ["fills"])
    assert found["fills"].read_bytes() == before


def test_lines_that_fail_half_way_leave_the_old_file(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("old\n")

    def lines():
        yield "new"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        files.write_lines(path, lines())
    assert path.read_text() == "old\n" and [item.name for item in tmp_path.iterdir()] == ["a.jsonl"]


def test_a_counted_folder_is_never_one_that_is_there(tmp_path):
    assert [files.new_folder(tmp_path / "in", "x").name for _ in range(3)] == ["x-1", "x-2", "x-3"]


def test_a_shared_account_of_one_symbol_counts_bars_of_its_data():
    data = market_data([random_bars(20, seed=1)], account="shared", start_bar=7)
    rows = list(decision_rows(run_strategy(data, strategy("buy_and_hold"))))
    assert [row["bar"] for row in rows] == list(range(7, 20)) and len(rows[0]["fills"]) == 1


def test_symbols_of_a_shared_account_that_begin_at_different_bars_keep_their_fills_at_their_decisions():
    first, second = random_bars(40, seed=1, symbol="A"), random_bars(40, seed=2, symbol="B")
    every_other = first.take(np.flatnonzero((np.arange(40) % 2 == 0) | (np.arange(40) > 20)))
    data = market_data([every_other, second], account="shared")
    data = replace(data, features=replace(data.features, start_S=np.array([0, 15])))  # B trades from bar 15, and has bars before
    result = run_strategy(data, strategy("random", seed=3, change_probability=0.7))
    rows = [row for row in decision_rows(result) if row["symbol"] == "B"]
    assert [row["bar"] for row in rows] == list(range(15, 40)) and sum(len(row["fills"]) for row in rows) > 5
    for now, after in zip(rows, rows[1:], strict=False):
        assert after["position"] - now["position"] == sum(fill["lots"] for fill in now["fills"]) == now["order"]
