"""A whole run on the market environment: what must not change its bits does not, and validation is what it says."""

import json
from dataclasses import replace

import numpy as np
import pytest

from bellmark import backend
from bellmark.api import backtest, baselines
from bellmark.assembly import assemble
from bellmark.control import Control
from bellmark.host import host
from bellmark.profile import load_profile
from bellmark.run import Run

SMALL = {"trainer.epochs": 2, "trainer.updates_per_epoch": 40}


def profile_of(folder, **overrides):
    options = {**SMALL, **{key.replace("__", "."): value for key, value in overrides.items()}, "run.folder": str(folder)}
    return load_profile("smoke", options={key: (value, "test") for key, value in options.items()}, environment={})


def trained(folder, **overrides):
    """(rows without numbering, run) of a small run."""
    profile = profile_of(folder, **overrides)
    run = Run.create(folder, None, profile)
    assemble(profile, host()).train(run)
    rows = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in row.items() if key != "learner"} for row in rows], run


def test_references_into_the_tape_and_stored_observations_give_the_same_bits(tmp_path):
    assert trained(tmp_path)[0] == trained(tmp_path, replay__source="stored")[0]


def test_two_learners_on_the_market_equal_each_alone(tmp_path):
    together, run = trained(tmp_path, learners__count=2, learners__seed=5)
    both = run.load_checkpoint().arrays["parameter_LP"]
    for row, seed in enumerate((5, 6)):
        alone, single = trained(tmp_path, learners__count=1, learners__seed=seed)
        assert [line for line in together if line["seed"] == seed] == alone
        assert (single.load_checkpoint().arrays["parameter_LP"][0] == both[row]).all()


def test_bits_of_a_run_do_not_depend_on_the_number_of_threads(tmp_path):
    before = backend.threads()
    try:
        found = [trained(tmp_path, environment__lanes=40) for _ in (backend.threads(1), backend.threads(before))]
    finally:
        backend.threads(before)
    assert found[0][0] == found[1][0]


def test_validation_sharpe_is_that_of_a_backtest_on_the_validation_part(tmp_path):
    rows, run = trained(tmp_path)
    result = backtest(run, split="validation")  # the best parameters of each learner
    sharpe = host().get("metric", "sharpe_ratio")()
    for learner, seed in enumerate((1, 2)):
        best = max(row["validation_sharpe"] for row in rows if row["seed"] == seed)
        assert sharpe.compute(result.portfolio(learner)) == pytest.approx(best, rel=1e-12)


def test_fixed_transitions_of_the_validation_part_are_the_same_for_a_seed_and_differ_between_seeds(tmp_path):
    first, again = (assemble(profile_of(tmp_path), host())._transitions for _ in range(2))
    assert (first.action_LV == again.action_LV).all() and (first.reward_LV == again.reward_LV).all()
    assert not (first.action_LV[0] == first.action_LV[1]).all()
    assert np.isfinite(first.observation_LVO).all() and set(np.unique(first.action_LV)) == {0, 1, 2}


def test_the_guard_can_name_the_plugins_of_a_run(tmp_path):
    found = assemble(profile_of(tmp_path), host()).plugins
    assert found == {"features": "builtin_plugins", "reward": "builtin_plugins", "loss": "builtin_plugins"}


def test_lanes_begin_their_first_episode_when_a_run_is_assembled(tmp_path):
    assembly = assemble(profile_of(tmp_path), host())
    training = assembly.profile.trainer.training(assembly)
    registry = training.registry
    assert (registry["episode_LN"] == 1).all() and (registry["equity_LN"] == registry["setting_int_GX"][0, 0]).all()
    assert (registry["bar_LN"] < registry["end_bar_LN"]).all() and len(set(registry["bar_LN"].ravel())) > 2
    assert Control(registry)["seed"].tolist() == [1, 2]


def traded_lots(result):
    return sum(int(np.abs(lane.fills["lots"]).sum()) for lane in result.lanes) / result.learners


def test_the_random_baseline_trades_about_as_much_as_the_policy(tmp_path):
    _, run = trained(tmp_path)
    policy = backtest(run, split="train")
    lanes = tuple(replace(lane, action_T=np.where(np.arange(lane.action_T.size) % 10 < 5, 0, 2)) for lane in policy.lanes)
    often = replace(policy, lanes=lanes)  # from short to long and back every 5 bars: 0.4 of exposure a bar
    assert often.exposure_turnover() == pytest.approx(0.4, rel=0.02)
    bars = policy.lanes[0].stamp_T.size - 1
    matched = {found.name: found for found in baselines(run, "train", often)}["random"]
    assert traded_lots(matched) == pytest.approx(0.4 * bars, rel=0.15)
    never = replace(policy, lanes=tuple(replace(lane, action_T=np.full_like(lane.action_T, 1)) for lane in policy.lanes))
    assert traded_lots({found.name: found for found in baselines(run, "train", never)}["random"]) == 0
