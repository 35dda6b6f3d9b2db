"""Acting: masked argmax, masked epsilon-greedy and its propensity, and the order of a collect step."""

import json

import numpy as np
import pytest
from learning_cases import factored, training

from bellmark.actions import ActionSpace
from bellmark.policy import best_action, best_allowed, nth_allowed, ramp
from bellmark.training import pack

pytestmark = pytest.mark.cpu


def test_case_45_greedy_choice_obeys_the_mask(shared):
    folder = shared / "cases" / "45_greedy_predict_without_mask"
    case = json.loads((folder / "q.json").read_text())
    q = np.array([next(value for key, value in case.items() if key.startswith("q"))], np.float32).reshape(1, -1)
    mask = np.array(next(value for key, value in case.items() if "mask" in key or "allowed" in key or "legal" in key)).reshape(1, -1)
    columns = np.arange(q.shape[1], dtype=np.int32)[:, None]
    assert best_action(q, 0, pack(mask)[0], columns) == 2
    assert best_allowed(q, 0, mask[0].astype(np.uint8), columns)[0] == 2


def test_all_q_values_far_below_zero_still_give_a_legal_action():
    q = np.full((1, 6), -1e31, np.float32)
    columns = np.arange(6, dtype=np.int32)[:, None]
    allowed = np.array([0, 0, 1, 0, 1, 0], np.uint8)
    assert best_action(q, 0, pack(allowed), columns) == 2
    q[:] = -np.inf
    assert best_action(q, 0, pack(allowed), columns) == 2
    assert best_action(q, 0, pack(np.zeros(6, np.uint8)), columns) == -1


def test_the_only_legal_action_may_be_the_last():
    q = np.arange(6, 0, -1).astype(np.float32)[None]
    columns = np.arange(6, dtype=np.int32)[:, None]
    allowed = np.array([0, 0, 0, 0, 0, 1], np.uint8)
    assert best_action(q, 0, pack(allowed), columns) == 5
    assert nth_allowed(allowed, 0) == 5


@pytest.mark.parametrize("head", ["branching", "flat"])
def test_joint_argmax_is_the_argmax_over_mean_columns(head):
    space = ActionSpace((-1.0, 0.0, 1.0), ("market", "limit"), ("patient", "normal", "aggressive"), head)
    random = np.random.default_rng(1)
    q, allowed = random.standard_normal((50, space.D)).astype(np.float32), random.integers(0, 2, (50, space.A)).astype(np.uint8)
    allowed[:, 4] = 1
    for row in range(50):
        joint = np.where(allowed[row] != 0, q[row, space.column_AK].mean(axis=1, dtype=np.float64), -np.inf)
        found, count = best_allowed(q, row, allowed[row], space.column_AK)
        assert joint[found] == pytest.approx(joint.max(), abs=1e-6)
        assert count == allowed[row].sum()
        assert best_action(q, row, pack(allowed[row]), space.column_AK) == found


def collected(epsilon, steps=400, masked=True, seed=3):
    made = training("mse", learners=1, lanes=8, masked=masked, seed=seed)
    made.control["epsilon_start"] = made.control["epsilon_end"] = epsilon
    taken = []
    for _ in range(steps):
        for stage, launch, arguments in made.collect._bound:
            launch(*arguments)
            if stage.name == "select":
                names = ("action_LN", "propensity_LN", "allowed_LNA", "acting_q_LND")
                taken.append({name: made.registry[name][0].copy() for name in names})
    return made, {name: np.concatenate([step[name] for step in taken]) for name in taken[0]}


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_epsilon_greedy_takes_legal_actions_with_their_propensity(epsilon):
    made, taken = collected(epsilon)
    action, allowed = taken["action_LN"], taken["allowed_LNA"] != 0
    rows = np.arange(len(action))
    assert allowed[rows, action].all()
    joint = np.where(allowed, taken["acting_q_LND"][:, made.space.column_AK].mean(axis=2), -np.inf)
    greedy, count = joint.argmax(axis=1), allowed.sum(axis=1)
    expected = epsilon / count + np.where(action == greedy, 1.0 - epsilon, 0.0)
    np.testing.assert_allclose(taken["propensity_LN"], expected, rtol=1e-6)
    share = np.mean(action == greedy)
    assert share == pytest.approx(np.mean(1.0 - epsilon + epsilon / count), abs=4 * 0.5 / np.sqrt(len(action)))
    if epsilon == 1.0:  # every legal action is equally likely
        full = count == made.space.A
        frequencies = np.bincount(action[full], minlength=made.space.A) / full.sum()
        assert np.abs(frequencies - 1 / made.space.A).max() < 4 * np.sqrt(1 / made.space.A / full.sum())


def test_draws_depend_on_seed_lane_and_step_alone():
    _, first = collected(1.0, steps=30)
    _, again = collected(1.0, steps=30)
    _, other = collected(1.0, steps=30, seed=4)
    assert np.array_equal(first["action_LN"], again["action_LN"])
    assert not np.array_equal(first["action_LN"], other["action_LN"])
    by_step = first["action_LN"].reshape(30, 8)
    assert len({row.tobytes() for row in by_step}) > 20
    assert len({row.tobytes() for row in by_step.T}) == 8


@pytest.mark.parametrize(("step", "value"), [(0, 1.0), (500, 0.525), (1000, 0.05), (2000, 0.05)])
def test_schedules_are_straight_lines(step, value):
    assert ramp(1.0, 0.05, 1000, step) == pytest.approx(value, abs=1e-12)
    assert ramp(1.0, 0.05, 0, step) == 0.05


def test_a_record_holds_the_step_that_the_lane_took():
    made = training("mse", learners=2, lanes=4, space=factored(), masked=True, source="stored")
    kept = []
    for _ in range(150):
        for stage, launch, arguments in made.collect._bound:
            launch(*arguments)
            if stage.name == "insert":
                names = ("action_LN", "reward_LN", "terminated_LN", "truncated_LN", "bar_LN", "next_bar_LN", "propensity_LN",
                         "next_allowed_LNA", "observation_LNO", "next_observation_LNO", "portfolio_LNP", "next_portfolio_LNP")  # fmt: skip
                kept.append({name: made.registry[name].copy() for name in names})
    registry = made.registry
    for step, expected in enumerate(kept):
        places = slice(step * 4, step * 4 + 4)
        for name in ("action", "reward", "terminated", "truncated", "bar", "next_bar", "propensity"):
            assert np.array_equal(registry[f"replay_{name}_LR"][:, places], expected[f"{name}_LN"]), name
        for name, suffix in (("observation", "O"), ("next_observation", "O"), ("portfolio", "P"), ("next_portfolio", "P")):
            assert np.array_equal(registry[f"replay_{name}_LR{suffix}"][:, places], expected[f"{name}_LN{suffix}"]), name
        assert np.array_equal(registry["replay_legal_LRW"][:, places], pack(expected["next_allowed_LNA"]))
    assert any(step["terminated_LN"].any() for step in kept)
    assert any(step["truncated_LN"].any() for step in kept)
