"""The market environment as training uses it: episodes, masks, rewards, learners and lanes that do not disturb each other."""

import re
from dataclasses import replace

import numpy as np
import pytest
from market_cases import bars_of, market_data, random_bars

from bellmark import market
from bellmark.actions import ActionSpace
from bellmark.assembly import UniformRandom
from bellmark.backtester import run_batch_policy
from bellmark.buffers import BufferRegistry
from bellmark.control import Control
from bellmark.environment import Windows, draw_episode, size_limit
from bellmark.errors import DataError, PluginError, UsageError
from bellmark.lane import LaneCode
from bellmark.stages import Stage, Step

FEATURES = [("log_return", {"window": 1}), ("position_exposure", {}), ("held_exposure", {})]


class Lanes:
    """A market environment with random actions, stepped like a collector steps it."""

    def __init__(self, data, learners=2, lanes=3, episode_bars=20, seeds=None, window=None, fill_actions=None):
        self.environment = data.environment(data.parts, learners, lanes, episode_bars)
        self.registry = BufferRegistry()
        self.environment.declare(self.registry)
        self.registry.allocate(checked=True, poison=True)
        for name in self.registry.names():
            if not name.endswith(("_ST", "_STF")):
                self.registry[name][:] = 0
        self.environment.fill(self.registry, data.no_normalisation(learners))
        windows = data.windows(learners) if window is None else window
        self.environment.set_windows(self.registry, windows)
        Control(self.registry)["seed"] = list(seeds or range(1, learners + 1))
        self.registry["truncated_LN"][:] = 1
        self.known = self.registry.names()
        self.advance = Step(self.registry, self.environment.advance_stages(), self.known)
        self.move = Step(self.registry, [*self.environment.observe_stages(), *self.environment.step_stages()], self.known)
        self.advance.run()
        self.actions = fill_actions or (lambda k, shape: np.random.default_rng(k).integers(0, data.space.A, shape))

    def steps(self, count, seen=None):
        for k in range(count):
            self.registry["action_LN"][:] = self.actions(k, self.registry["action_LN"].shape)
            self.move.run()
            if seen is not None:
                seen(k, self.registry)
            self.advance.run()
        self.registry.check_guards()


def data_of(seed=0, count=120, **how):
    base = {"features": FEATURES, "rewards": [("log_equity", {})], "sizing": ("equity_fraction", {}), "fee_bps": 5.0}
    return market_data(random_bars(count, seed=seed), **{**base, **how})


def test_episodes_end_by_truncation_after_their_bars_and_begin_elsewhere():
    lanes = Lanes(data_of())
    starts, ends = [lanes.registry["bar_LN"].copy()], []

    def seen(k, registry):
        ends.append((registry["truncated_LN"].copy(), registry["terminated_LN"].copy()))

    lanes.steps(20, seen)
    assert all(not truncated.any() for truncated, _ in ends[:-1]) and ends[-1][0].all()
    assert not any(terminated.any() for _, terminated in ends)
    assert (lanes.registry["episode_LN"] == 2).all()
    assert (lanes.registry["bar_LN"] != starts[0]).any()
    assert (lanes.registry["equity_LN"] == lanes.registry["setting_int_GX"][0, 0]).all()


def test_a_lane_that_is_ruined_terminates_and_is_counted():
    data = data_of(sizing=("equity_fraction", {"fraction": 10.0}), capital_floor=0.9)
    lanes = Lanes(data)
    found = []
    lanes.steps(60, lambda k, registry: found.append(registry["terminated_LN"].copy()))
    assert sum(int(x.sum()) for x in found) == lanes.registry["ruined_lanes_LN"].sum() > 0


def test_reward_is_the_change_of_equity_after_costs():
    lanes = Lanes(data_of(rewards=[("net_pnl", {"unit_currency": 2.0})]))
    before = {}

    def seen(k, registry):
        if k:
            continued = registry["bar_LN"] > before["bar"]
            change = (registry["equity_LN"] - before["equity"]) * 1e-9 / 2.0
            assert np.allclose(registry["reward_LN"][continued], change[continued].astype(np.float32))
        before.update(bar=registry["next_bar_LN"].copy() - 1, equity=registry["equity_LN"].copy())

    lanes.steps(15, seen)


def test_rewards_are_summed_over_the_labels():
    one, two = data_of(rewards=[("log_equity", {})]), data_of(rewards=[("log_equity", {}), ("net_pnl", {})])
    first, second = Lanes(one), Lanes(two)
    got = []
    first.steps(10, lambda k, registry: got.append((registry["reward_LN"].copy(), registry["equity_LN"].copy())))
    second.steps(10, lambda k, registry: got.append((registry["reward_LN"].copy(), registry["equity_LN"].copy())))
    assert all((a[1] == b[1]).all() for a, b in zip(got[:10], got[10:], strict=True))
    assert not all((a[0] == b[0]).all() for a, b in zip(got[:10], got[10:], strict=True))


def test_max_position_masks_targets_beyond_the_limit_and_flat_stays_legal():
    data = data_of(sizing=("fixed_lots", {"lots": 10}), masks=[("max_position", {"max_lots": 5})],
                   space=ActionSpace((-1.0, -0.5, 0.0, 0.5, 1.0)))  # fmt: skip
    lanes = Lanes(data)
    assert lanes.registry["allowed_LNA"][0, 0].tolist() == [0, 1, 1, 1, 0]


def test_a_mask_judges_the_target_of_the_order_that_would_come():
    """A position that is held keeps its lots, so holding it stays legal when the sizing's target outgrows the limit."""
    bars = bars_of([100.0, 100.0, 50.0, 50.0, 50.0, 50.0])
    sized = {"sizing": ("equity_fraction", {"fraction": 0.5}), "features": FEATURES, "masks": [("max_position", {"max_lots": 600})]}
    for resize, legal in (("on_change", 1), ("always", 0)):
        data = market_data(bars, resize=resize, **sized)
        seen = []

        def act(observation, allowed, seen=seen):
            seen.append(allowed[0].tolist())
            return np.array([2 if len(seen) == 1 else 1])

        run_batch_policy(data, act, data.no_normalisation(1))
        assert seen[0] == [1, 1, 1] and seen[1][2] == legal, (resize, seen)


@pytest.mark.slow
def test_labels_that_differ_in_case_alone_keep_their_own_functions():
    swapped = [data_of(rewards=[("log_equity", {}), ("net_pnl", {})]), data_of(rewards=[("net_pnl", {}), ("log_equity", {})])]
    got = []
    for data, labels in zip(swapped, (("rewards.a", "rewards.A"), ("rewards.A", "rewards.a")), strict=True):
        named = tuple(replace(part, label=label) for part, label in zip(data.parts.rewards, labels, strict=True))
        lanes = Lanes(replace(data, parts=replace(data.parts, rewards=named)))
        lanes.steps(10, lambda k, registry: got.append(registry["reward_LN"].copy()))
    assert np.allclose(got[:10], got[10:]) and np.any(got)


def test_the_session_mask_leaves_only_flat_before_the_last_bar():
    hour = 3_600_000_000_000
    bars = random_bars(240, seed=1, step=hour)
    data = market_data(bars, masks=[("session", {"flat_bars": 2})], rewards=[("net_pnl", {})], features=FEATURES)
    lanes = Lanes(data, lanes=8, episode_bars=200)
    left_T = data.tape.session_left_ST[0]

    def seen(k, registry):
        for n in range(8):
            left = left_T[registry["bar_LN"][0, n]]
            assert registry["allowed_LNA"][0, n].tolist() == ([0, 1, 0] if 0 < left <= 2 else [1, 1, 1])

    lanes.steps(60, seen)


# Every rule that keeps something from bar to bar: a queue of orders, levels, standing orders, series.
EVERYTHING = {
    "latency_bars": 3, "trailing_stop": 0.02, "participation": (0.002, 0.005, 0.01), "size_at": "fill", "initial_margin_rate": 0.1,
    "maintenance_margin_rate": 0.05, "sizing": ("volatility_target", {"window": 10}),
    "space": ActionSpace((-1.0, 0.0, 1.0), order_types=("market", "limit", "ioc"), urgencies=("patient", "aggressive")),
}  # fmt: skip


@pytest.mark.parametrize("how", [{}, pytest.param(EVERYTHING, marks=pytest.mark.slow)], ids=["plain", "every rule"])
def test_three_learners_equal_the_same_learners_alone_bit_for_bit(how):
    data = data_of(**how)
    names = ("equity_LN", "bar_LN", "reward_LN", "observation_LNO", "portfolio_LNP", "cash_LN")

    def play(seeds, first):
        actions = lambda k, shape: np.random.default_rng(k).integers(0, data.space.A, (3, shape[1]))[first : first + shape[0]]  # noqa: E731
        lanes = Lanes(data, learners=len(seeds), seeds=seeds, fill_actions=actions)
        lanes.steps(50)
        return {name: lanes.registry[name].copy() for name in names}

    together = play([7, 8, 9], 0)
    for row, seed in enumerate([7, 8, 9]):
        alone = play([seed], row)
        for name in names:
            assert (together[name][row] == alone[name][0]).all(), name


def test_a_step_goes_on_to_the_same_bits_from_what_a_checkpoint_keeps():
    """Every buffer but the tape and the series: nothing of a queue, a level or a standing order lives anywhere else."""
    data = data_of(**EVERYTHING)
    actions = lambda k, shape: np.random.default_rng(k).integers(0, data.space.A, shape)  # noqa: E731
    whole, first = Lanes(data, fill_actions=actions), Lanes(data, fill_actions=actions)
    whole.steps(37)
    first.steps(23)
    second = Lanes(data, fill_actions=lambda k, shape: actions(k + 23, shape))
    kept = [name for name in first.registry.names() if not name.endswith(("_ST", "_STF", "_KST"))]
    for name in kept:
        second.registry[name][:] = first.registry[name]
    second.steps(14)
    assert whole.registry["fills_LN"].any()
    for name in kept:
        assert whole.registry[name].tobytes() == second.registry[name].tobytes(), name


@pytest.mark.slow
def test_many_lanes_in_parallel_equal_the_same_lanes_one_by_one():
    data = data_of()
    actions = lambda k, shape: np.resize(np.random.default_rng(k).integers(0, 3, 600), (1, 600))[:, : shape[1]]  # noqa: E731
    wide = Lanes(data, learners=1, lanes=600, fill_actions=actions)
    narrow = Lanes(data, learners=1, lanes=200, fill_actions=actions)
    wide.steps(30)
    narrow.steps(30)
    for name in ("equity_LN", "bar_LN", "portfolio_LNP", "reward_LN"):
        assert (wide.registry[name][:, :200] == narrow.registry[name]).all(), name


def test_learners_have_windows_of_their_own():
    data = data_of()
    window = Windows(np.array([[0], [60]], np.int32), np.array([[50], [120]], np.int32))
    lanes = Lanes(data, window=window)
    bars = []
    lanes.steps(100, lambda k, registry: bars.append(registry["bar_LN"].copy()))
    stacked = np.stack(bars)
    assert stacked[:, 0].max() < 50 and stacked[:, 1].min() >= 60


def test_an_empty_training_window_is_refused():
    data = data_of()
    with pytest.raises(DataError, match="fewer than 2 bars"):
        Lanes(data, window=Windows(np.array([[0], [10]], np.int32), np.array([[50], [11]], np.int32)))


def test_episodes_are_drawn_from_every_bar_of_every_symbol():
    start_S, end_S = np.array([0, 5, 0]), np.array([10, 25, 1])
    drawn = {draw_episode(1, lane, episode, start_S, end_S, 8) for lane in range(8) for episode in range(60)}
    assert {(symbol, first) for symbol, first, _ in drawn} == {(0, 0), (0, 1)} | {(1, first) for first in range(5, 17)}
    assert all(last == first + 8 for _, first, last in drawn)
    assert draw_episode(1, 0, 0, np.array([3]), np.array([6]), 100) == (0, 3, 5)


def test_settings_are_loaded_and_not_baked_in():
    data = data_of()
    lanes = Lanes(data)
    column = lanes.environment.code.float_columns["sizing", "fraction"]
    lanes.registry["setting_float_GX"][1, column] = 0.1
    lanes.steps(5)
    value = np.abs(lanes.registry["position_LN"]).max(axis=1)
    assert 0 < value[1] < value[0] / 4


def test_an_order_type_that_the_execution_does_not_know_is_refused():
    from typing import ClassVar

    from bellmark.component import component
    from bellmark.plugins.execution.bar import Bar

    @component
    class Plain(Bar):
        name: ClassVar[str] = "plain"
        order_types: ClassVar[tuple[str, ...]] = ("market",)

    data = data_of(space=ActionSpace((-1.0, 0.0, 1.0), order_types=("market", "limit")))
    parts = replace(data.parts, execution=replace(data.parts.execution, component=Plain()))
    with pytest.raises(UsageError, match="execution 'plain' knows market, found 'limit'"):
        data.environment(parts, 1, 1)


def test_a_lane_function_with_a_wrong_argument_name_names_plugin_and_nearest():
    from typing import ClassVar

    from bellmark.component import Reward, component
    from bellmark.lane_layout import LanePart

    @component
    class Wrong(Reward):
        """A reward with a misspelled argument."""

        name: ClassVar[str] = "wrong"

        @staticmethod
        def reward(equty):
            return 0.0

    data = data_of()
    parts = replace(data.parts, rewards=(LanePart("rewards.wrong", Wrong(), "mine"),))
    code = LaneCode(parts)
    with pytest.raises(PluginError, match=r"plugin 'mine': reward 'wrong'\.reward: no argument named 'equty'; did you mean 'equity'\?"):
        code.step_text(("a",))


def test_no_array_is_allocated_while_the_environment_steps():
    import tracemalloc

    from numba.core.runtime import _nrt_python as nrt
    from numba.core.runtime import rtsys

    lanes = Lanes(data_of())
    lanes.steps(2)
    made = lanes.environment
    step = Step(lanes.registry, [*made.observe_stages(), *made.step_stages(), *made.advance_stages()], lanes.known)
    step.run()
    nrt.memsys_enable_stats()
    before = rtsys.get_allocation_stats()
    tracemalloc.start()
    step.run(50)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    after = rtsys.get_allocation_stats()
    nrt.memsys_disable_stats()
    # Numba wraps each array that it is handed in a small record of its own; beyond these nothing may be allocated.
    handed = sum(isinstance(argument, str) for stage in step.stages for argument in stage.arguments)
    assert after.alloc - before.alloc == 50 * handed and size < 20_000


def test_stages_name_the_plugins_whose_functions_run_in_them():
    stage: Stage = data_of().environment(data_of().parts, 1, 1).step_stages()[0]
    assert stage.plugin == "builtin_plugins"


def test_random_actions_take_the_noop_where_nothing_is_legal():
    action_LN, allowed_LNA = np.full((1, 2), -1, np.int32), np.array([[[0, 0, 0], [0, 0, 1]]], np.uint8)
    UniformRandom([1], noop=1)._launch(allowed_LNA, np.zeros((1, 2), np.int32), action_LN)
    assert action_LN.tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("kind", "function", "place"),
    [
        ("sizing", lambda exposure: exposure * 3.5, "target_lots = "),
        ("sizing", lambda exposure: (1, 2), "target_lots = "),
        ("action_mask", lambda exposure: (True, False), "legal = legal and "),
        ("execution", lambda order_lots: (order_lots, 1.5, 0, 0, 0), "lots, reference, spread, slip, filled = "),
        ("reward", lambda equity: (0.0, 1.0), "term = "),
    ],
)
def test_a_lane_function_whose_result_does_not_fit_is_named_with_its_call(kind, function, place):
    from typing import ClassVar

    from bellmark.component import KINDS, component
    from bellmark.lane_layout import LanePart

    names = {"sizing": "target", "action_mask": "allowed", "execution": "fill", "reward": "reward"}
    function.__qualname__ = f"Odd.{names[kind]}"
    made = type("Odd", (KINDS[kind],), {"name": "odd", "__annotations__": {"name": ClassVar[str]}, names[kind]: staticmethod(function)})
    part = LanePart(f"{kind}.odd", component(made)(), "mine")
    data = data_of()
    field = {"sizing": "sizing", "execution": "execution", "action_mask": "masks", "reward": "rewards"}[kind]
    chosen = (part,) if field.endswith("s") else part
    with pytest.raises(PluginError, match=rf"mine.*'Odd\.{names[kind]}' of .*called as '{re.escape(place)}.*does not compile"):
        Lanes(replace(data, parts=replace(data.parts, **{field: chosen}))).steps(1)


def test_lots_whose_spread_fee_or_margin_leave_int64_are_refused():
    data = data_of()
    instrument, free = data.tape.instruments[0], [0] * len(market.COST_FIELDS)
    costs = dict(zip(market.COST_FIELDS, free, strict=True))
    dear = list((costs | {"fee_per_lot": 10**15}).values())
    assert size_limit(instrument, 1000, free) > size_limit(instrument, 1000, dear) <= 2**62 // (4 * 10**15)
    spread = list((costs | {"half_spread": 9_000}).values())
    assert size_limit(instrument, 1000, spread) == size_limit(instrument, 10_000, free)
    for field in ("half_spread", "margin_per_lot", "fee_per_lot"):
        with pytest.raises(UsageError, match="one lot at .* quanta with its fees and margin leaves the range"):
            size_limit(instrument, 1000, list((costs | {field: 2**62}).values()))


@pytest.mark.parametrize(
    ("kind", "function", "name"),
    [("feature", "lane", "previous_equity"), ("sizing", "target", "fill_lots"), ("action_mask", "allowed", "order_lots"),
     ("execution", "fill", "fill_fee")],
)  # fmt: skip
def test_a_function_is_not_offered_what_does_not_exist_yet_when_it_is_called(kind, function, name):
    from typing import ClassVar

    from bellmark.component import KINDS, component
    from bellmark.lane_layout import LanePart

    space = {}
    exec(f"def early({name}):\n    return 0", space)
    members = {"name": "early", "__annotations__": {"name": ClassVar[str]}, function: staticmethod(space["early"])}
    part = LanePart("early", component(type("Early", (KINDS[kind],), members))(), "mine")
    field = {"feature": "features", "sizing": "sizing", "action_mask": "masks", "execution": "execution"}[kind]
    parts = replace(data_of().parts, **{field: (part,) if field.endswith("s") else part})
    with pytest.raises(PluginError, match=f"plugin 'mine': {kind} 'early'.{function}: no argument named '{name}'"):
        LaneCode(parts).step_text(("a",))
