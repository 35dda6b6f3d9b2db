"""The replay: exact integer sums, sampling, n-step windows, both sources, duplicates and weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from learning_cases import copy_state, never, started, training, tree_of

from bellmark import replay
from bellmark.errors import UsageError

pytestmark = pytest.mark.cpu


@pytest.mark.parametrize("records", [1, 2, 255, 256, 257, 65_535, 65_536, 65_537, 100_000])
def test_levels_end_in_one_root(records):
    table = replay.levels(records)
    assert table[0].tolist() == [0, records]
    assert table[-1, 1] == 1
    for (offset, size), (next_offset, next_size) in zip(table[:-1], table[1:], strict=True):
        assert next_offset == offset + size
        assert next_size == -(-size // 256)


@given(st.lists(st.integers(0, 2**40 - 1), min_size=1, max_size=700).filter(any), st.integers(0, 2**64 - 1))
@settings(deadline=None, max_examples=60)
def test_found_record_equals_a_big_integer_reference(leaves, draw):
    tree, table = tree_of(leaves)
    target = draw % sum(leaves)
    running, expected = 0, 0
    for expected, leaf in enumerate(leaves):  # noqa: B007
        running += leaf
        if target < running:
            break
    assert replay.find(tree, table, 0, np.uint64(target)) == expected
    assert leaves[expected] > 0


@pytest.mark.parametrize("records", [2**20, 2**24])
def test_sums_are_exact_at_any_size(records):
    table = replay.levels(records)
    random = np.random.default_rng(3)
    leaves = random.integers(1, 2**40, records, dtype=np.uint64)
    leaves[random.integers(0, records, records // 4)] = 1
    tree = np.zeros((1, int(table[-1].sum())), np.uint64)
    tree[0, :records] = leaves
    for (offset, size), (next_offset, next_size) in zip(table[:-1], table[1:], strict=True):
        padded = np.zeros(next_size * 256, np.uint64)
        padded[:size] = tree[0, offset : offset + size]
        tree[0, next_offset : next_offset + next_size] = padded.reshape(-1, 256).sum(axis=1, dtype=np.uint64)
    changed = random.integers(0, records, 500)
    for index in changed:
        leaves[index] = random.integers(1, 2**40)
        replay.set_leaf(tree, table, 0, index, leaves[index])
    prefix = np.cumsum(leaves, dtype=np.uint64)
    assert tree[0, -1] == prefix[-1]
    targets = np.concatenate([prefix[random.integers(0, records, 100)] - np.uint64(1), np.uint64([0])])
    found = [replay.find(tree, table, 0, target) for target in targets]
    assert np.array_equal(found, np.searchsorted(prefix, targets, side="right"))


@given(st.integers(1, 2**64 - 1), st.integers(1, 700))
@settings(deadline=None, max_examples=100)
def test_strata_tile_the_total_and_draws_stay_inside(total, batch):
    edges = [int(replay.stratum(np.uint64(total), row, batch)) for row in range(batch + 1)]
    assert edges[0] == 0
    assert edges[-1] == total
    assert all(edge == total * row // batch for row, edge in enumerate(edges)) or all(
        0 <= later - earlier <= total // batch + 1 for earlier, later in zip(edges[:-1], edges[1:], strict=True)
    )
    for row in (0, batch // 2, batch - 1):
        for word in (0, 2**32 - 1):
            drawn = int(replay.draw_target(np.uint64(total), row, batch, np.uint64(word), np.uint64(word)))
            assert 0 <= drawn < total
            if edges[row + 1] > edges[row]:
                assert edges[row] <= drawn < edges[row + 1]


def test_permuted_updates_give_equal_trees_and_the_larger_of_duplicates_wins():
    random = np.random.default_rng(5)
    index = random.integers(0, 40, 64).astype(np.int32)
    error = random.uniform(0, 5, 64).astype(np.float32)
    floats = np.zeros((1, 64))
    from bellmark.control import FLOAT

    floats[0, FLOAT["priority_alpha"]], floats[0, FLOAT["priority_scale"]] = 0.6, 20.0
    trees, largest = [], []
    for order in (np.arange(64), np.arange(64)[::-1], random.permutation(64)):
        tree, table = tree_of([7] * 600)
        most = np.zeros(1, np.uint64)
        replay.update_priorities(tree, table, most, index[order][None], error[order][None], floats, 0)
        trees.append(tree.tobytes())
        largest.append(int(most[0]))
    assert len(set(trees)) == 1
    assert len(set(largest)) == 1
    for record in np.unique(index):
        assert int(tree[0, record]) == int(replay.leaf_of(error[index == record].max(), 0.6, 0.0, 20.0))
    assert int(tree[0, -1]) == int(tree[0, :600].sum())


@given(st.floats(0, 1e38), st.sampled_from([0.0, 0.3, 0.6, 1.0]))
@settings(deadline=None)
def test_leaves_lie_between_1_and_40_bits(error, alpha):
    assert 1 <= int(replay.leaf_of(error, alpha, 1e-6, 20.0)) <= 2**40 - 1
    if alpha == 0.0:
        assert int(replay.leaf_of(error, alpha, 1e-6, 20.0)) == 2**20


@given(st.lists(st.integers(1, 2**40 - 1), min_size=1, max_size=100), st.floats(0, 1))
@settings(deadline=None, max_examples=200)
def test_weights_are_finite_in_0_1_and_the_largest_is_1(priorities, beta):
    smallest = min(priorities)
    weights = [replay.importance_weight(np.uint64(priority), np.uint64(smallest), beta) for priority in priorities]
    assert all(np.isfinite(weight) and 0.0 < weight <= 1.0 for weight in weights)
    assert max(weights) == 1.0
    if beta == 0.0:
        assert set(weights) == {1.0}


def brute_force(stream, index, n, gamma):
    """n-step return, discount and last record of one lane's stream, by the golden convention."""
    total, last = 0.0, index
    for k in range(n):
        last = index + k
        total += gamma**k * stream["reward"][last]
        if stream["terminated"][last] or stream["truncated"][last] or last == len(stream["reward"]) - 1:
            break
    return total, 0.0 if stream["terminated"][last] else gamma ** (last - index + 1), last


@pytest.mark.parametrize("wrapped", [False, True])
def test_windows_follow_their_lane_and_never_cross_the_write_pointer(wrapped):
    made = training(learners=1, lanes=3, capacity=60, n_step=5)
    steps = 47 if wrapped else 15  # 20 slots
    kept = []
    for _ in range(steps):
        made.collect.run()
        kept.append({name: made.registry[f"{name}_LN"][0].copy() for name in ("reward", "terminated", "truncated")})
    slots, newest = 20, (steps - 1) % 20
    oldest = max(0, steps - slots)
    registry = made.registry
    for lane in range(3):
        stream = {name: [step[name][lane] for step in kept[oldest:]] for name in kept[0]}
        for position in range(steps - oldest):
            index = (oldest + position) % slots * 3 + lane
            found = replay.n_step_return(
                registry["replay_reward_LR"], registry["replay_terminated_LR"], registry["replay_truncated_LR"],
                registry["replay_priority_LX"], 0, index, 3, newest, 5, 0.5,
            )  # fmt: skip
            total, discount, last = brute_force(stream, position, 5, 0.5)
            assert found[0] == pytest.approx(total, rel=1e-6, abs=1e-7)
            assert found[1] == discount
            assert found[2] == (oldest + last) % slots * 3 + lane


def test_both_sources_give_equal_batches():
    batches = []
    for source in ("tape", "stored"):
        made = started(5, source=source, masked=True)
        batches.append({name: made.registry[name].copy() for name in made.learn.stages[1].writes})
    assert all(np.array_equal(batches[0][name], batches[1][name], equal_nan=True) for name in batches[0])


def test_gathered_rows_are_the_records_normalised_by_each_learner():
    made = training(n_step=1)
    made.registry["mean_LF"][1] = 0.5
    made.registry["scale_LF"][1] = 2.0
    made.warm_up(never)
    made.learn.run()
    registry = made.registry
    for learner in range(2):
        for row, index in enumerate(registry["index_LB"][learner]):
            bar = registry["replay_bar_LR"][learner, index]
            raw = registry["feature_STF"][0, bar]
            expected = (raw - registry["mean_LF"][learner]) * registry["scale_LF"][learner]
            assert np.array_equal(registry["observation_LBO"][learner, row, :5], expected)
            assert np.array_equal(registry["observation_LBO"][learner, row, 5:], registry["replay_portfolio_LRP"][learner, index])
            following = registry["replay_next_bar_LR"][learner, index]
            raw = registry["feature_STF"][0, following]
            expected = (raw - registry["mean_LF"][learner]) * registry["scale_LF"][learner]
            assert np.array_equal(registry["next_observation_LBO"][learner, row, :5], expected)
            assert registry["discount_LB"][learner, row] == (0.0 if registry["replay_terminated_LR"][learner, index] else 0.5)


def test_legal_bits_survive_more_than_one_word():
    random = np.random.default_rng(2)
    allowed = random.integers(0, 2, 81).astype(np.uint8)
    packed = np.array([replay.pack_legal(allowed, word) for word in range(2)], np.uint64)
    assert [bool(replay.legal(packed, action)) for action in range(81)] == (allowed != 0).tolist()


def test_new_records_get_the_largest_leaf_so_far():
    made = started(20)
    registry = made.registry
    largest = registry["replay_largest_L"].copy()
    assert np.all(largest >= 2**20) or np.all(largest > 0)
    made.collect.run()
    slot = (int(made.control["collect_step"][0]) - 1) % (registry.shape("replay_reward_LR")[1] // 8)
    for learner in range(2):
        assert set(registry["replay_priority_LX"][learner, slot * 8 : slot * 8 + 8].tolist()) == {max(int(largest[learner]), 2**20)}


def test_uniform_replay_has_equal_leaves_and_weights_1():
    made = started(20, alpha=0.0)
    records = made.registry.shape("replay_reward_LR")[1]
    leaves = made.registry["replay_priority_LX"][:, :records]
    assert set(np.unique(leaves)) <= {0, 2**20}
    assert np.all(made.registry["weight_LB"] == 1.0)


def test_frequencies_follow_the_priorities():
    from scipy.stats import chisquare

    leaves = np.array([1, 2, 3, 10, 0, 50, 34])
    tree, table = tree_of(leaves.tolist())
    from bellmark.control import INT

    counts, ints = np.zeros(len(leaves)), np.zeros((1, len(INT)), np.int64)
    ints[0, INT["seed"]] = 11
    for step in range(400):
        ints[0, INT["sample_counter"]] = step
        for row in range(10):
            counts[replay.sample_record(tree, table, ints, 0, row, 10)] += 1
    assert counts[4] == 0
    filled = leaves > 0
    assert chisquare(counts[filled], counts.sum() * leaves[filled] / leaves.sum()).pvalue > 1e-3


def test_capacity_must_hold_a_window():
    with pytest.raises(UsageError, match=r"replay.capacity: expected at least \(n_step \+ 1\) \* lanes = 32 records, found 31"):
        replay.slots(31, 8, 3)


def test_the_same_state_draws_the_same_batch_and_the_next_one_differs():
    made = started(3)
    before = copy_state(made)
    made.learn.run()
    first = made.registry["index_LB"].copy()
    made.learn.run()
    assert not np.array_equal(first, made.registry["index_LB"])
    made.restore(before, "test")
    made.learn.run()
    assert np.array_equal(first, made.registry["index_LB"])
