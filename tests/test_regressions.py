"""Failures of the system that Bellmark descends from: each test shows the old formula failing on its input, then ours passing.

Rows of the table that need a GPU are in tests/gpu; canaries and dtypes of the registry are in test_buffers.
"""

import numpy as np
import pytest
from learning_cases import OneLearner, copy_state, never, started, training, tree_of

from bellmark import optimizer, replay
from bellmark.actions import ActionSpace
from bellmark.buffers import ROLES, BufferRegistry
from bellmark.codegen import lower
from bellmark.errors import InternalError, UsageError
from bellmark.guard import all_finite
from bellmark.plugins.losses.c51 import C51

pytestmark = pytest.mark.cpu


def bf16(x):
    """float32 rounded to the nearest bfloat16, ties to even; the values here are finite."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)).view(np.float32)


def test_byte_offsets_with_a_wrong_element_size_cannot_be_written_down():
    old = [4 * index for index in range(8)]  # offsets in bytes, used as elements
    assert max(old) >= 8
    registry = BufferRegistry()
    registry.declare("terminated_LN", "flag", (1, 8))
    registry.declare("reward_LN", "reward", (1, 8))
    registry.allocate(checked=True)
    assert registry["reward_LN"].itemsize == 4
    registry["reward_LN"][:] = 1.0
    with pytest.raises(IndexError):
        registry["reward_LN"][0, max(old)] = 1.0
    registry.check_guards()


def test_ends_of_episodes_are_whole_numbers_between_canaries():
    old = np.zeros(4, np.float32)
    old[1:] = np.nan  # an adjacent buffer ran over
    assert np.isnan(1.0 - old).any()
    made = started(10, masked=True)
    for name in ("terminated_LN", "truncated_LN", "replay_terminated_LR", "replay_truncated_LR"):
        assert made.registry[name].dtype == np.uint8
        assert set(np.unique(made.registry[name])) <= {0, 1}
    made.registry.check_guards()
    raw = made.registry["terminated_LN"]
    end = np.lib.stride_tricks.as_strided(raw.reshape(-1), shape=(raw.size + 64,))
    end[raw.size + 1] = 7  # a write just past the end
    with pytest.raises(InternalError, match="guard zone .*terminated_LN.* was overwritten"):
        made.registry.check_guards()


def test_adam_keeps_beta2_and_epsilon():
    old_beta2, old_epsilon = bf16(0.999), np.float16(1e-8)
    assert float(old_beta2) == 1.0
    assert float(old_epsilon) == 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        assert not np.isfinite(np.float32(1.0) / (1.0 - float(old_beta2) if float(old_beta2) < 1 else np.float32(0.0)))
    one = OneLearner(np.zeros(8), 1e-3)
    for _ in range(3000):
        one.step(np.ones(8))
    np.testing.assert_allclose(one.v, 1.0 - 0.999**3000, rtol=1e-5)
    assert np.isfinite(one.parameter).all()


def test_a_slow_target_reaches_its_network():
    old, online = np.float32(0.0), np.float32(1.0)
    for _ in range(3000):
        old = bf16(old + np.float32(0.005) * (online - old))
    assert old < 0.9, "the average stalls when it is kept in bfloat16"
    one = OneLearner(np.ones(8), 0.0, tau=0.005)
    one.target[:] = 0.0
    for _ in range(3000):
        one.step(np.zeros(8))
    np.testing.assert_allclose(one.target, 1.0, rtol=1e-5)


def test_192_summands_keep_their_digits_and_their_order():
    values = np.random.default_rng(0).uniform(0.5, 1.5, 192).astype(np.float32)
    sums = []
    for order in (values, values[::-1], np.sort(values)):
        total = np.float32(0.0)
        for value in order:
            total = bf16(total + value)  # what a bfloat16 atomic add does
        sums.append(float(total))
    assert max(abs(total / values.astype(np.float64).sum() - 1.0) for total in sums) > 1e-3
    made = started(5, batch=192)
    first = made.registry["gradient_LP"].copy()
    for name in ("sample", "backward", "gradient"):
        assert name in [stage.name for stage in made.learn.stages]
    again = started(5, batch=192)
    assert np.array_equal(first, again.registry["gradient_LP"])
    head = made.registry["head_gradient_LBU"][0].astype(np.float64).sum(axis=0)
    found = made.network.views(made.registry["gradient_LP"][0])["head.bias"]
    assert np.abs(found - head[: found.size]).max() < 1e-6 * np.abs(head).max()


def test_no_maximum_of_floats_by_their_integer_bits():
    old = max(np.array([-2.0, -1.0, -3.0], np.float32).view(np.int32))
    assert np.int32(old).view(np.float32) == -3.0
    from bellmark.policy import best_action

    q, columns = np.array([[-2.0, -1.0, -3.0]], np.float32), np.arange(3, dtype=np.int32)[:, None]
    assert best_action(q, 0, np.array([7], np.uint64), columns) == 1


def test_importance_weights_are_never_negative_infinite_or_undefined():
    probability = np.array([1e-45, 0.0, 0.5], np.float32)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        old = probability ** np.float32(-1.0)
        old = old / old.max()
    assert not np.isfinite(old).all()
    leaves = [int(replay.leaf_of(td, 0.6, 1e-6, 20.0)) for td in (0.0, 1e-45, 0.5, 1e30)]
    assert min(leaves) >= 1
    weights = [replay.importance_weight(np.uint64(leaf), np.uint64(min(leaves)), 1.0) for leaf in leaves]
    assert np.isfinite(weights).all()
    assert max(weights) == 1.0
    assert min(weights) > 0.0


def test_a_small_priority_beside_a_large_one_can_be_drawn():
    old = np.cumsum(np.array([1.0] + [2.9e-8] * 10_000, np.float32), dtype=np.float32)
    assert old[-1] == 1.0, "a running float32 sum never moves, and the tail is out of reach"
    tree, table = tree_of([2**39] + [15_000] * 10_000)
    assert replay.find(tree, table, 0, np.uint64(2**39 + 15_000 * 9_999)) == 10_000


def test_small_differences_of_large_prices_survive():
    prices = np.array([5000.25, 5000.50, 5001.00])
    assert len(np.unique(bf16(prices))) == 1
    difference = np.diff((prices * 4).astype(np.int64)).astype(np.float32)
    assert difference.tolist() == [1.0, 2.0]
    assert ROLES["feature"] == ROLES["observation"] == "float32"
    assert ROLES["price"] == "int64"


def test_gradients_of_1_and_256_make_257():
    assert bf16(bf16(256.0) + bf16(1.0)) == 256.0
    assert ROLES["gradient"] == "float32"
    gradient = np.array([256.0, 1.0] + [0.0] * 6, np.float32)
    assert optimizer.square_sum(gradient, 0, 8) == 256.0**2 + 1.0


def test_c51_fraction_is_not_rounded_to_quarters():
    position = np.float32(40.37)
    assert abs(float(bf16(position)) - 40.37) > 0.1
    logit, target, work = np.zeros((1, 1, 51), np.float32), np.empty((1, 1, 51), np.float32), np.empty((1, 51), np.float32)
    reward, discount = np.float32([40.37 * 0.4 - 10.0]), np.zeros(1, np.float32)
    lower(C51.target)(0, logit, np.zeros((1, 1), np.int32), reward, discount, target, work, 1, 51, np.float32(-10.0), np.float32(10.0))
    found = target[0, 0]
    assert found[40] == pytest.approx(0.63, abs=1e-5)
    assert found[41] == pytest.approx(0.37, abs=1e-5)


def test_isnan_is_not_removed_by_the_compiler():
    import numba

    @numba.njit(fastmath=True)  # noqa: TID251  the old way is what fails here
    def old(values):
        count = 0
        for value in values:
            if value != value or value == np.inf or value == -np.inf:
                count += 1
        return count

    planted = np.array([1.0, np.nan, np.inf, -np.inf], np.float32)
    assert old(planted) < 3
    assert not all_finite(planted.view(np.int32))
    assert not all_finite(planted[2:3].view(np.int32))


def test_the_gradient_norm_is_alive_in_every_epoch():
    made = training(epochs=1, updates_per_epoch=10)
    made.warm_up(never)
    norms = []
    for epoch in range(4):
        before = made.registry["parameter_LP"].copy()
        made.advance(10 * (epoch + 1), never)
        norms.append(made.registry["gradient_norm_L"].copy())
        for learner in range(2):
            moved, kept = (made.network.views(array[learner]) for array in (made.registry["parameter_LP"], before))
            assert all(np.any(moved[name] != kept[name]) for name in moved)
    assert np.all(np.array(norms) > 0.0)


def test_statistics_are_those_of_the_updated_network():
    made = training(epochs=1, updates_per_epoch=40, learning_rate=3e-2)
    made.warm_up(never)
    made.advance(39, never)
    made.act.run()
    stale = made.registry["acting_q_LND"].copy()
    made.advance(40, never)
    rows = made.end_epoch()
    fresh = made.registry["acting_q_LND"][:, :, made.space.column_AK].mean(axis=-1)
    assert rows[0]["q_mean"] == pytest.approx(float(fresh[0].mean()), rel=1e-5)
    assert rows[0]["q_mean"] != pytest.approx(float(stale[0][:, made.space.column_AK].mean()), rel=1e-4)


def test_indices_are_whole_numbers():
    old = np.float32(2**24) + np.float32(1)
    assert old == 2**24
    assert ROLES["index"] == "int32"
    made = started(3)
    assert made.registry["index_LB"].dtype == np.int32
    assert made.registry["action_LB"].max() < made.space.A


def test_one_action_space_for_mask_network_and_decoder():
    wide = ActionSpace(tuple(np.linspace(-1, 1, 9)), ("market", "limit", "ioc"), ("patient", "normal", "aggressive"))
    narrow = ActionSpace((-1.0, -0.5, 0.0, 0.5, 1.0), ("market", "limit", "ioc"), ("patient", "normal", "aggressive"))
    assert (wide.A, narrow.A) == (81, 45)
    with pytest.raises(UsageError, match=r"expected 0..44, found 80"):
        narrow.decode(80)
    made = training(space=wide)
    assert made.registry.shape("allowed_LNA")[-1] == len(made.registry["head_column_AK"]) == wide.A


def test_the_replay_is_not_a_stub():
    made = started(30, masked=True)
    before = copy_state(made)
    made.advance(40, never)
    after = copy_state(made)
    for name in ("replay_priority_LX", "replay_reward_LR", "replay_largest_L", "parameter_LP", "target_LP", "adam_m_LP", "adam_v_LP"):
        assert before[name].tobytes() != after[name].tobytes() or name == "replay_largest_L"
