"""The training loop: same bits whatever the threads, learners, chunks and stops; nothing allocated; everything from the control block."""

import json
import os
import signal
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
from learning_cases import LOSSES, MemoryRun, copy_state, differing, factored, never, started, training
from numba.core.runtime import _nrt_python, rtsys

from bellmark import backend
from bellmark.buffers import BufferRegistry
from bellmark.collector import Policy
from bellmark.control import FLOAT
from bellmark.errors import GuardError, PluginError, RunError, UsageError
from bellmark.learning import LearnStep
from bellmark.training import Transitions, Validation, pack, run_training

pytestmark = pytest.mark.cpu


# -- the same bits -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [pytest.param("c51", marks=pytest.mark.slow), "mse"])
def test_three_learners_in_one_run_equal_three_runs_of_one(loss):
    together = started(25, loss=loss, seeds=[5, 9, 2], masked=True)
    for position, seed in enumerate((5, 9, 2)):
        alone = started(25, loss=loss, seeds=[seed], masked=True)
        for name, array in together.state().items():
            if name not in ("exposure_A",):
                assert array[position].tobytes() == alone.registry[name][0].tobytes(), name


def test_bits_do_not_depend_on_the_number_of_threads():
    results = []
    for count in (1, 2):
        backend.threads(count)
        results.append(copy_state(started(25, batch=100, lanes=40)))
    backend.threads(2)
    assert differing(*results) == []


def test_the_same_seed_gives_the_same_bits_and_another_one_does_not():
    first, again, other = (copy_state(started(25, seed=seed)) for seed in (1, 1, 7))
    assert differing(first, again) == []
    assert "parameter_LP" in differing(first, other)


def test_chunks_of_the_host_play_no_part():
    whole, pieces = started(0), started(0)
    whole.advance(30, never)
    for limit in (1, 2, 7, 8, 22, 30):
        pieces.advance(limit, never)
    assert differing(copy_state(whole), copy_state(pieces)) == []


def test_nothing_outside_a_buffer_is_written():
    for masked, source in ((True, "stored"), (False, "tape")):
        made = started(20, masked=masked, source=source)
        made.registry.check_guards()


def test_poisoned_and_clean_arenas_give_the_same_bits():
    assert differing(copy_state(started(20, checked=True)), copy_state(started(20, checked=False))) == []


# -- nothing allocated, nothing hidden -----------------------------------------------------------------------------------------


def test_a_step_allocates_no_array():
    made = started(10, learners=3)
    made.collect.run()
    made.learn.run(5)
    _nrt_python.memsys_enable_stats()
    before = rtsys.get_allocation_stats()
    tracemalloc.start()
    base = tracemalloc.get_traced_memory()[0]
    made.collect.run(20)
    made.learn.run(20)
    grown, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    after = rtsys.get_allocation_stats()
    _nrt_python.memsys_disable_stats()
    # Numba wraps each array argument of a launch in one record and frees it; there must be nothing beyond these
    arguments = sum(isinstance(value, np.ndarray) for step in (made.collect, made.learn) for _, _, bound in step._bound for value in bound)
    assert after.mi_alloc - before.mi_alloc == 20 * arguments
    assert after.alloc - before.alloc == after.free - before.free == 20 * arguments
    assert grown - base < 4_000  # a few Python numbers
    assert peak - base < 40_000


CHANGES = {
    "learning_rate_start": 5e-3, "learning_rate_end": 5e-3, "adam_beta1": 0.5, "adam_beta2": 0.9, "adam_epsilon": 1e-2,
    "max_grad_norm": 1e-3, "gamma": 0.1, "tau": 0.5, "epsilon_start": 0.1, "epsilon_end": 0.5, "priority_alpha": 0.1,
    "priority_beta_start": 0.9, "priority_beta_end": 0.1, "priority_epsilon": 10.0, "priority_scale": 5.0, "reward_bound": 1e-3,
}  # fmt: skip
WHOLE = {"n_step": 1, "epsilon_updates": 5, "learning_rate_updates": 3, "beta_updates": 5, "seed": 99}


@pytest.mark.parametrize("field", [*CHANGES, *WHOLE])
def test_every_scalar_comes_from_the_control_block(field):
    plain, changed = started(5, learning_rate=1e-3), started(5, learning_rate=1e-3)
    for made in (plain, changed):  # so that each schedule and its length matter
        made.control["learning_rate_end"] = 1e-4
        made.advance(8, never)
    compiled = [kernel_count(made) for made in (plain, changed)]
    changed.control[field] = CHANGES.get(field, WHOLE.get(field))
    for made in (plain, changed):
        made.advance(16, never)
    names = differing(copy_state(plain), copy_state(changed), leave=("control_float_LC", "control_int_LC"))
    assert names, "the change had no effect"
    assert [kernel_count(made) for made in (plain, changed)] == compiled, "something was compiled anew"


def kernel_count(made):
    from bellmark.codegen import LazyKernel

    total = 0
    for step in (made.collect, made.learn):
        for stage in step.stages:
            launch = stage.launch.compiled if isinstance(stage.launch, LazyKernel) else stage.launch
            total += len(getattr(launch, "signatures", ()))
    return total


def test_settings_of_the_loss_are_read_while_it_runs():
    plain, changed = started(5), started(5)
    changed.registry["loss_float_LS"][:, 1] = 1.0  # v_max
    for made in (plain, changed):
        made.advance(8, never)
    assert "parameter_LP" in differing(copy_state(plain), copy_state(changed))


def test_frozen_rate_leaves_the_network_as_it_starts():
    made = training(learning_rate=0.0)
    before = made.registry["parameter_LP"].copy()
    made.warm_up(never)
    made.advance(20, never)
    assert np.array_equal(before, made.registry["parameter_LP"])
    assert made.control["adam_step"].tolist() == [20, 20]


# -- learning ------------------------------------------------------------------------------------------------------------------


def greedy_reward(made, steps=300):
    made.control["epsilon_start"] = made.control["epsilon_end"] = 0.0
    total = np.zeros(len(made.seeds))
    for _ in range(steps):
        made.collect.run()
        total += made.registry["reward_LN"].mean(axis=1)
    return total / steps


@pytest.mark.parametrize("loss", ["c51", "mse"])
def test_it_learns_the_signal_and_an_untrained_network_has_not(loss):
    made = training(loss, learners=3, updates_per_epoch=600, epochs=1, lanes=16, checked=False)
    untrained = greedy_reward(training(loss, learners=3, lanes=16, checked=False))
    made.warm_up(never)
    made.advance(600, never)
    assert np.all(greedy_reward(made) > 0.7), "the best possible is about 0.78"
    assert np.all(untrained < 0.5)


def test_every_parameter_with_a_gradient_moves_and_the_norm_is_never_zero():
    made, run = training(epochs=3, updates_per_epoch=30), MemoryRun()
    before = made.registry["parameter_LP"].copy()
    run_training(made, run, resume=False)
    for learner in range(2):
        for name, view in made.network.views(made.registry["parameter_LP"][learner]).items():
            assert np.mean(view != made.network.views(before[learner])[name]) > 0.8, name
    assert all(row["grad_norm"] > 0 for row in run.rows)


# -- rows, validation, best ----------------------------------------------------------------------------------------------------


def transitions(made, rows=70, seed=0):
    random, L, O, A = np.random.default_rng(seed), len(made.seeds), made.environment.O, made.space.A  # noqa: E741
    observed = random.standard_normal((2, L, rows, O)).astype(np.float32)
    return Transitions(
        observed[0], random.integers(0, A, (L, rows)).astype(np.int32), random.standard_normal((L, rows)).astype(np.float32),
        random.integers(0, 2, (L, rows)).astype(np.uint8), observed[1], np.ones((L, rows, A), np.uint8),
    )  # fmt: skip


def test_rows_hold_the_statistics_of_the_updated_network():
    run, seen = MemoryRun(), []

    def validate(parameter_LP):
        seen.append(parameter_LP.copy())
        return Validation(np.array([1.0, np.nan]), np.array([-0.1, 0.0]), transitions(made))

    made = training(epochs=2, updates_per_epoch=30, validate=validate)
    run_training(made, run, resume=False)
    assert len(run.rows) == 4
    assert set(run.rows[0]) == {
        "epoch", "step", "learner", "seed", "train_loss", "grad_norm", "td_error", "q_mean", "q_min", "q_max", "val_loss",
        "validation_sharpe", "validation_max_drawdown", "ruined_lanes", "skipped_steps", "epsilon", "learning_rate", "replay_size",
    }  # fmt: skip
    json.dumps(run.rows, allow_nan=False)
    last = run.rows[-2]
    assert (last["epoch"], last["step"], last["learner"], last["seed"]) == (2, 60, 0, 1)
    assert run.rows[-1]["validation_sharpe"] is None
    made.act.run()  # parameters are those of the end, so the values are too
    q = made.registry["acting_q_LND"][0][:, made.space.column_AK].mean(axis=-1)
    assert (last["q_mean"], last["q_min"], last["q_max"]) == pytest.approx((q.mean(), q.min(), q.max()), rel=1e-5)
    assert np.array_equal(seen[-1], made.registry["parameter_LP"])
    assert last["val_loss"] == pytest.approx(made.validation_loss(transitions(made))[0])


def test_validation_loss_is_the_mean_over_all_rows_whatever_the_batch():
    whole, pieces = started(10, batch=48), started(10, batch=48)
    given = transitions(whole, 70)
    found = pieces.validation_loss(given)
    first, rest = ([array[:, part] for array in vars(given).values()] for part in (slice(0, 48), slice(48, 70)))
    parts = whole.validation_loss(Transitions(*first)), whole.validation_loss(Transitions(*rest))
    np.testing.assert_allclose(found, (48 * parts[0] + 22 * parts[1]) / 70, rtol=1e-12)


def test_validation_changes_nothing_that_training_keeps():
    plain, measured = started(10), started(10)
    measured.validation_loss(transitions(measured))
    measured.act.run()
    for made in (plain, measured):
        made.advance(20, never)
    assert differing(copy_state(plain), copy_state(measured)) == []


def test_the_best_parameters_are_kept_per_learner_by_validation():
    sharpes = iter([[1.0, np.nan], [0.5, np.nan], [2.0, -3.0], [1.0, -4.0]])
    kept = []

    def validate(parameter_LP):
        kept.append(parameter_LP.copy())
        return Validation(np.array(next(sharpes)), np.zeros(2))

    made, run = training(epochs=4, updates_per_epoch=20, validate=validate), MemoryRun()
    run_training(made, run, resume=False)
    best = run.load_checkpoint().arrays["parameter_best_LP"]
    assert np.array_equal(best[0], kept[2][0])
    assert np.array_equal(best[1], kept[2][1])
    assert made.registry["best_LE"].tolist() == [[2.0, 3.0, 60.0], [-3.0, 3.0, 60.0]]


def test_trackers_and_progress_are_told():
    log, told = [], []
    tracker = SimpleNamespace(start=lambda run: log.append("start"), log=lambda rows: log.append(len(rows)), finish=log.append)
    made = training(epochs=2, updates_per_epoch=20)
    run_training(made, MemoryRun(), resume=False, trackers=(tracker,), progress=lambda *seen: told.append(seen))
    assert log == ["start", 2, 2, "done"]
    assert told[-1][:2] == (40, 40)
    assert all(earlier[0] < later[0] for earlier, later in zip(told[:-1], told[1:], strict=True))


# -- stopping and going on -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["tape", "stored"])
@pytest.mark.parametrize("epochs", [1, 2])
def test_resuming_equals_never_having_stopped(source, epochs):
    options = {"epochs": 3, "updates_per_epoch": 25, "updates_per_collect": 3, "source": source, "masked": True}
    whole, straight = training(**options), MemoryRun()
    run_training(whole, straight, resume=False)
    first, run = training(**options), MemoryRun()
    step = 25 * epochs

    def kill(done, total, loss):
        if done > step:  # after the checkpoint of that epoch, in the middle of the next
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        run_training(first, run, resume=False, progress=kill)
    assert max(run.saved) == step
    second = training(**options)
    run_training(second, run, resume=True)
    assert differing(copy_state(whole), copy_state(second)) == []
    assert run.rows == straight.rows
    assert differing(straight.load_checkpoint().arrays, run.load_checkpoint().arrays) == []


@pytest.mark.parametrize("at", [0, 7, 25, 33])
def test_an_interrupt_writes_a_checkpoint_between_iterations_and_the_rest_follows(at):
    options = {"epochs": 2, "updates_per_epoch": 25, "updates_per_collect": 2}
    whole, straight = training(**options), MemoryRun()
    run_training(whole, straight, resume=False)
    first, run = training(**options), MemoryRun()
    step = first.learn.run if at else first.collect.run

    def interrupting(count=1):
        step(count)
        if first.step >= at:
            os.kill(os.getpid(), signal.SIGINT)

    target = first.learn if at else first.collect
    target.run = interrupting
    with pytest.raises(KeyboardInterrupt):
        run_training(first, run, resume=False)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert at <= max(run.saved) <= at + 2
    second = training(**options)
    run_training(second, run, resume=True)
    assert differing(copy_state(whole), copy_state(second)) == []
    assert run.rows == straight.rows


def test_resuming_after_a_skipped_update_equals_never_having_stopped():
    results = []
    for stop in (False, True):
        made = started(10, loss="mse")
        kept = made.registry["scale_LF"].copy()
        made.registry["scale_LF"][1] = np.nan
        made.learn.run()
        made.registry["scale_LF"][:] = kept
        if stop:
            saved = copy_state(made)
            made = training(loss="mse")
            made.restore(saved, "test")
        made.advance(20, never)
        results.append(copy_state(made))
    assert differing(*results) == []


def test_case_53_epsilon_goes_on_where_it_was():
    made = training(epochs=10, updates_per_epoch=100, epsilon_start=1.0, epsilon_end=0.05, epsilon_updates=1000)
    made.control["step"] = 500
    saved = copy_state(made)
    resumed = training(epochs=10, updates_per_epoch=100, epsilon_start=1.0, epsilon_end=0.05, epsilon_updates=1000)
    resumed.restore(saved, "test")
    resumed.collect.run()
    assert resumed.control["epsilon"].tolist() == pytest.approx([0.525, 0.525])


@pytest.mark.parametrize(("change", "match"), [
    ({"hidden": (16, 24)}, r"buffer 'adam_m_LP': expected float32\(2, \d+\), found float32\(2, \d+\)"),
    ({"source": "stored"}, "buffer 'replay_next_observation_LRO': expected float32.*, found nothing"),
    ({"learners": 3}, "buffer 'action_LN'"),
])  # fmt: skip
def test_a_checkpoint_of_another_shape_is_refused(change, match):
    saved = copy_state(training())
    with pytest.raises(RunError, match="step-1: " + match):
        training(**change).restore(saved, "step-1")


def test_a_frozen_learner_ends_with_exit_code_4_and_the_others_finish():
    made, run, said = training("mse", epochs=2, updates_per_epoch=20, plugins={"network": "builtin"}), MemoryRun(), []
    made.registry["parameter_LP"][0, 0] = np.inf
    with pytest.raises(GuardError, match=r"learner 0 \(seed 1\).*logit_LBDZ|learner 0 \(seed 1\).*acting_q_LND") as error:
        run_training(made, run, resume=False, warn=said.append)
    assert error.value.exit_code == 4
    assert made.control["adam_step"].tolist() == [0, 40]
    assert len(run.rows) == 4
    assert said


def test_a_run_whose_learners_are_all_frozen_stops_early_with_a_checkpoint():
    made, run = training("mse", epochs=50, updates_per_epoch=20), MemoryRun()
    made.registry["parameter_LP"][:, 0] = np.inf
    with pytest.raises(GuardError, match="learner 0 .* learner 1 "):
        run_training(made, run, resume=False, warn=lambda text: None)
    assert max(run.saved) < 20


# -- assembly ------------------------------------------------------------------------------------------------------------------


def test_a_policy_acts_alone_on_lanes_of_its_own():
    """What a backtest does: the parameters of a run, greedy, without a replay."""
    made = started(30)
    policy = Policy(made.network, made.space, made.loss, 2, 3)
    registry, environment = BufferRegistry(), type(made.environment)(made.space, 2, 3)
    environment.declare(registry)
    policy.declare(registry)
    registry.allocate(checked=True, poison=True)
    environment.fill(registry)
    policy.fill(registry)
    registry["parameter_LP"][:] = made.registry["parameter_LP"]
    for name in ("control_float_LC", "control_int_LC", "status_LC"):
        registry[name][:] = 0
    from bellmark.stages import Step

    Step(registry, [*environment.observe_stages(), *policy.stages(explore=False)], (*environment.given, *policy.given)).run()
    q = registry["acting_q_LND"][:, :, made.space.column_AK].mean(axis=-1)
    assert np.array_equal(registry["action_LN"], q.argmax(axis=-1))
    assert np.all(registry["propensity_LN"] == 1.0)
    registry.check_guards()


def test_learning_starts_must_fit_the_ring():
    with pytest.raises(UsageError, match="replay.learning_starts: expected at most 96"):
        training(capacity=100, lanes=8, n_step=2).restore({}, "")


def test_two_losses_are_refused():
    from bellmark.plugins.trainers.dqn import DQN

    with pytest.raises(UsageError, match="losses: trainer 'dqn' expected one loss, found 2: a, b"):
        DQN().loss(SimpleNamespace(losses={"a": LOSSES["mse"], "b": LOSSES["mse"]}))


def test_the_plan_reads_nothing_that_was_not_written():
    made = training()
    assert [name for name, _, _ in made.learn.plan()] == ["schedule", "sample", "backward", "gradient", "verdict", "update", "finish"]
    assert [name for name, _, _ in made.collect.plan()][:4] == ["schedule", "observe", "values", "select"]
    assert set(LearnStep.drawn) <= set(made.learn.stages[1].writes)
    assert factored().A == made.space.A
    assert pack(np.ones((2, 12))).tolist() == [[4095], [4095]]
    assert FLOAT["learning_rate"] == 0


@pytest.mark.parametrize("function", ["start", "log", "finish"])
def test_a_tracker_that_raises_is_named(function):
    class Odd:
        kind, name = "tracker", "odd"

        def __getattr__(self, wanted):
            def called(*given):
                if wanted == function:
                    raise KeyError("x")

            return called

    made, run = training(epochs=1, updates_per_epoch=20), MemoryRun()
    with pytest.raises(PluginError, match=f"tracker 'odd'.*: {function} raised KeyError"):
        run_training(made, run, resume=False, trackers=(Odd(),))


def test_a_mask_without_a_legal_action_is_said():
    made, run, said = training(epochs=1, updates_per_epoch=20), MemoryRun(), []
    made.control["empty_masks"] = [3, 0]
    run_training(made, run, resume=False, warn=said.append)
    assert said == ["action masks: learner 0 (seed 1): no action was legal in 3 steps of its lanes; they held what they had"]
