"""What training and backtests of a profile share: read anew, so that an edit of data or code within a process is seen."""

from datetime import date, timedelta

import numpy as np
import pytest

import bellmark
from bellmark.errors import RunError
from bellmark.market_data import load_market_data
from bellmark.plugins.features import log_return
from bellmark.profile import load_profile

pytestmark = pytest.mark.cpu

PROFILE = """\
extends = "smoke"
[data]
use = "csv"
path = "{path}"
stamp = "close"
zone = "UTC"
close_time = "16:00"
symbol = "X"
tick_size = 0.01
[baselines]
no_trade_band = false
[features.change]
use = "log_return"
"""


def write_bars(path, seed):
    close_T = 100.0 + np.round(np.cumsum(np.random.default_rng(seed).normal(0.0, 0.3, 400)), 2)
    days = [date(2020, 1, 1) + timedelta(days=t) for t in range(400)]
    rows = [f"{day},{price:.2f},{price:.2f},{price:.2f},{price:.2f},10" for day, price in zip(days, close_T, strict=True)]
    path.write_text("\n".join(["ts,open,high,low,close,volume", *rows]) + "\n")


@pytest.fixture
def profile_path(tmp_path):
    write_bars(tmp_path / "bars.csv", seed=1)
    path = tmp_path / "edited.toml"
    path.write_text(PROFILE.format(path=tmp_path / "bars.csv"))
    return path


def test_features_are_kept_while_bars_and_code_are_the_same(profile_path):
    assert load_market_data(load_profile(profile_path)) is load_market_data(load_profile(profile_path))


def test_an_edited_file_is_seen_by_the_same_process(profile_path, tmp_path):
    before = load_market_data(load_profile(profile_path)).tape
    write_bars(tmp_path / "bars.csv", seed=2)
    after = load_market_data(load_profile(profile_path)).tape
    assert before.content_hash != after.content_hash and (before.close_ST != after.close_ST).any()


def test_an_edited_helper_of_a_feature_is_seen_by_the_same_process(profile_path, monkeypatch):
    before = load_market_data(load_profile(profile_path)).features
    monkeypatch.setattr(log_return, "log_change", lambda new, old: float(new - old))
    after = load_market_data(load_profile(profile_path)).features
    column = before.labels.index("change")
    assert np.nanmax(np.abs(after.feature_STF[..., column])) > 1.0 > np.nanmax(np.abs(before.feature_STF[..., column]))


def test_a_run_is_not_backtested_on_other_bars_than_it_was_trained_on(profile_path, tmp_path):
    run = bellmark.train(profile_path, runs=tmp_path / "runs", overrides={"trainer.epochs": 1, "learners.count": 1})
    assert bellmark.backtest(run).lanes
    write_bars(tmp_path / "bars.csv", seed=2)
    with pytest.raises(RunError, match="its data have changed since it was trained: expected hash"):
        bellmark.backtest(run)
