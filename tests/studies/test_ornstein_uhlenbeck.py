"""Training learns: on a market whose best policy is known exactly, out of sample and after costs, in each of four seeds."""

import numpy as np
import pytest

from bellmark import backend
from bellmark.assembly import assemble
from bellmark.backtester import run_strategy
from bellmark.component import make
from bellmark.host import host
from bellmark.profile import load_profile
from bellmark.run import Run, manifest_of

pytestmark = pytest.mark.slow
NEEDED = 0.5  # share of what the exact band earns on the same bars, by the issue that asked for this study


def profile_of(tmp_path, **overrides):
    values = {key.replace("__", "."): (value, "test") for key, value in overrides.items()}
    return load_profile("ou", options=values | {"run.folder": (str(tmp_path), "test")})


def earned(lane):
    return float(lane.equity_T[-1] - lane.equity_T[0]) * 1e-9


def best_profit(profile):
    """What the exact no-trade-band policy earns on the test part after the same costs."""
    instrument_tick, market = profile.data.tick_size, profile.market
    cost = market.spread_ticks * instrument_tick / 2 + market.slippage_ticks * instrument_tick
    policy = profile.data.best_policy(cost, float(profile.sizing.lots))
    strategy = make(host().get("strategy", "no_trade_band"), {"level": profile.data.mean, "band": policy.band}, "best")
    return earned(run_strategy(assemble(profile, host()).data, strategy).lanes[0])


def shares_of_best(profile, tmp_path, train=True):
    """Profit of each learner on the test part as a share of the best policy's."""
    assembly = assemble(profile, host())
    run = Run.create(tmp_path, None, profile)
    run.write_manifest(manifest_of(profile, host(), data_hash=assembly.tape.content_hash, build=backend.build_id()))
    if train:
        assembly.train(run)
    else:
        training = profile.trainer.training(assembly)
        run.save_checkpoint(0, training.state(), {"epoch": 0})
    best = best_profit(profile)
    assert best > 0
    return np.array([earned(lane) / best for lane in assembly.backtest(run).lanes])


def test_every_seed_earns_at_least_half_of_the_exact_optimum_out_of_sample(tmp_path):
    shares = shares_of_best(profile_of(tmp_path), tmp_path)
    assert shares.size == 4
    assert (shares >= NEEDED).all(), shares


def test_an_untrained_network_fails_the_same_bar(tmp_path):
    shares = shares_of_best(profile_of(tmp_path), tmp_path, train=False)
    assert not (shares >= NEEDED).all(), shares


def test_a_learning_rate_of_zero_fails_the_same_bar(tmp_path):
    profile = profile_of(tmp_path, optimizer__learning_rate=0.0, trainer__epochs=2)
    shares = shares_of_best(profile, tmp_path)
    assert not (shares >= NEEDED).all(), shares


def test_doing_nothing_fails_the_same_bar(tmp_path):
    profile = profile_of(tmp_path)
    flat = run_strategy(assemble(profile, host()).data, make(host().get("strategy", "flat"), {}, "flat")).lanes[0]
    assert earned(flat) < NEEDED * best_profit(profile)
