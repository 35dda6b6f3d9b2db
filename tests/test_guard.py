"""The guard: bits, whole skips, freezing, refused rewards, and what it says."""

import numpy as np
import pytest
from learning_cases import copy_state, differing, never, started, training

from bellmark import guard, policy
from bellmark.guard import BIT, GUARDED, findings

pytestmark = pytest.mark.cpu
BAD = [np.nan, np.inf, -np.inf]
PLACES = dict(GUARDED)


@pytest.mark.parametrize("value", [np.nan, -np.nan, np.inf, -np.inf])
def test_bits_of_what_is_not_finite_are_found(value):
    assert not guard.finite_bits(np.float32(value))
    array = np.ones(100, np.float32)
    array[37] = value
    assert not guard.all_finite(array.view(np.int32))


@pytest.mark.parametrize("value", [0.0, -0.0, 1e-45, 3.4028235e38, -3.4028235e38])
def test_bits_of_finite_numbers_pass(value):
    assert guard.finite_bits(np.float32(value))
    assert guard.all_finite(np.full(9, value, np.float32).view(np.int32))


def counters():
    return ("control_int_LC", "control_float_LC", "status_LC")


def plant(made, buffer, value):
    """Puts a bad number where learner 1 will read it in the next update; returns the buffer the guard should name."""
    registry = made.registry
    if buffer == "parameter":
        registry["parameter_LP"][1, made.network.layers[-1].weight] = value
        return "logit_LBDZ"
    if buffer == "target":
        registry["target_LP"][1, made.network.layers[-1].weight] = value
        return "target_logit_LBDZ"
    if buffer == "feature":
        registry["scale_LF"][1, 0] = value
        return "observation_LBO"
    if buffer == "portfolio":
        registry["replay_next_portfolio_LRP"][1] = value
        return "next_observation_LBO"
    registry["replay_reward_LR"][1] = value
    return "target_LBKZ"


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("buffer", ["parameter", "target", "feature", "portfolio", "reward"])
def test_a_bad_update_leaves_all_training_state_as_it_was_and_others_go_on(buffer, value):
    made = started(8, loss="mse", learners=3)
    places = ("parameter_LP", "target_LP", "scale_LF", "replay_next_portfolio_LRP", "replay_reward_LR")
    kept = {name: made.registry[name].copy() for name in places}
    expected = plant(made, buffer, value)
    before = copy_state(made)
    made.learn.run()
    after = copy_state(made)
    for name in before:
        if name not in counters():
            assert before[name][1].tobytes() == after[name][1].tobytes(), name
            if name.startswith(("parameter_LP", "adam", "target")):
                assert before[name][0].tobytes() != after[name][0].tobytes()
    control = made.control
    assert control["skipped"].tolist() == [0, 1, 0]
    assert control["adam_step"].tolist() == [9, 8, 9]
    assert control["sample_counter"].tolist() == [9, 9, 9]
    assert control["step"].tolist() == [9, 9, 9]
    (found,) = findings(control, {PLACES[expected]: "planted"})
    assert (found.learner, found.seed, found.buffer, found.step, found.plugin, found.frozen) == (1, 2, expected, 8, "planted", False)
    for name, array in kept.items():  # the fault goes away: the run continues
        made.registry[name][:] = array
    made.learn.run()
    assert control["skipped"].tolist() == [0, 1, 0]
    assert control["skipped_in_row"].tolist() == [0, 0, 0]
    assert control["adam_step"][1] == 9
    made.registry.check_guards()


@pytest.mark.parametrize("name", ["loss_LB", "td_error_LB", "gradient_LBDZ", "gradient_LP", "replay_priority_LX"])
def test_every_guarded_buffer_of_an_update_stops_the_write(name):
    made = started(8, loss="mse")
    before = copy_state(made)
    for stage, launch, arguments in made.learn._bound:
        launch(*arguments)
        if stage.name == ("gradient" if name == "gradient_LP" else "backward"):
            registry = made.registry
            if name == "gradient_LP":
                registry["block_guard_LG"][1, 0] |= BIT[name]
            else:
                registry["row_guard_LB"][1, 3] |= BIT[name]
    after = copy_state(made)
    assert all(before[key][1].tobytes() == after[key][1].tobytes() for key in before if key not in counters())
    assert findings(made.control, {})[0].buffer == name


def test_a_squared_loss_that_overflows_is_caught_though_every_input_is_finite():
    made = started(4, loss="mse")
    made.registry["replay_reward_LR"][0] = 1e30
    before = copy_state(made)
    made.learn.run()
    assert before["parameter_LP"][0].tobytes() == made.registry["parameter_LP"][0].tobytes()
    assert findings(made.control, {"loss": "builtin"})[0].buffer == "loss_LB"


def test_a_learner_is_frozen_after_the_limit_and_named_and_the_others_go_on():
    made = started(5, loss="mse", learners=2)  # skip_limit 3
    made.registry["parameter_LP"][0, 0] = np.nan
    made.learn.run(5)
    control = made.control
    assert control["skipped"].tolist() == [3, 0]
    assert control["frozen"].tolist() == [1, 0]
    assert control["adam_step"].tolist() == [5, 10]
    text = str(findings(control, {"network": "someone"})[0])
    assert text == (
        "guard: learner 0 (seed 1): a value that is not finite in logit_LBDZ (plugin 'someone') first at update 5; "
        "3 updates skipped; frozen"
    )


@pytest.mark.parametrize("value", [*BAD, 2e6, -1e7])
def test_a_reward_that_is_not_finite_or_beyond_the_bound_is_refused(value):
    made = training(learners=2, lanes=4, loss="mse", n_step=3)
    made.collect.run(2)
    registry = made.registry
    for stage, launch, arguments in made.collect._bound:
        launch(*arguments)
        if stage.name == "signal_step":
            registry["reward_LN"][1, 2] = value
    made.collect.run(2)
    assert made.control["rewards_refused"].tolist() == [0, 1]
    (found,) = findings(made.control, {"reward": "my_reward"})
    assert "a value above the bound 1e+06 or not finite in reward_LN (plugin 'my_reward')" in str(found)
    assert not found.frozen
    slots = registry["replay_priority_LX"][1, :20]
    assert slots[2 * 4 + 2] == 0
    assert np.count_nonzero(slots) == 19
    made.warm_up(never)
    made.learn.run(30)
    assert made.control["skipped"].tolist() == [0, 0], "no window runs through the refused record"


def test_a_bad_observation_in_acting_takes_the_no_op_and_is_not_kept():
    made = training(learners=2, lanes=4)
    made.collect.run(1)
    made.registry["portfolio_LNP"][1, 3, 0] = np.nan
    made.collect.run(1)
    assert made.registry["action_LN"][1, 3] == made.space.noop
    assert made.registry["replay_priority_LX"][1, 4 + 3] == 0
    assert findings(made.control, {})[0].buffer == "observation_LNO"


def test_an_empty_mask_takes_the_declared_no_op_and_is_counted():
    made = training(learners=2, lanes=4)
    made.registry["allowed_LNA"][1, 2] = 0
    made.collect.run(1)
    assert made.registry["action_LN"][1, 2] == made.space.noop
    assert made.registry["lane_guard_LN"][1, 2] & policy.EMPTY_MASK
    assert made.control["empty_masks"].tolist() == [0, 1]
    assert made.registry["replay_priority_LX"][1, 2] > 0, "the transition is a real one"


def test_an_empty_replay_is_a_bad_update_and_not_a_crash():
    made = training(learners=1)
    made.learn.run()
    assert findings(made.control, {})[0].buffer == "replay_priority_LX"
    assert made.control["skipped"].tolist() == [1]


def test_damaged_moments_freeze_their_learner():
    made = started(5, learners=2)
    made.registry["adam_v_LP"][0, 0] = np.nan
    made.learn.run()
    assert made.control["frozen"].tolist() == [1, 0]
    assert findings(made.control, {})[0].buffer == "parameter_LP"


def test_a_skipped_update_does_not_change_what_follows_but_the_batch():
    """After a skip the run equals one whose update was held back with the same counters."""
    runs = []
    for planted in (True, False):
        made = started(6, loss="mse", learners=1)
        if planted:
            kept = made.registry["scale_LF"].copy()
            made.registry["scale_LF"][:] = np.nan
            made.learn.run()
            made.registry["scale_LF"][:] = kept
        else:
            made.control["stopped"] = 1
            made.learn.run()
            made.control["stopped"] = 0
        made.learn.run(4)
        runs.append(copy_state(made))
    assert differing(*runs, leave=("status_LC",)) == []
