"""Signals on other data: the policy sees its features as in training, and every row is what it decides on these bars."""

from datetime import date, timedelta

import numpy as np
import polars
import pytest

import bellmark
from bellmark import api
from bellmark.errors import DataError, RunError, UsageError

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
[features.level]
use = "average_distance"
window = 20
[features.change]
use = "log_return"
"""


def bars(count, seed=1, scale=0.3):
    close_T = np.round(100.0 + np.cumsum(np.random.default_rng(seed).normal(0.0, scale, count)), 2)
    days = [date(2020, 1, 1) + timedelta(days=t) for t in range(count)]
    prices = {name: close_T for name in ("open", "high", "low", "close")}
    return polars.DataFrame({"ts": days, **prices, "volume": [10.0] * count})


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run of one learner on 400 daily bars of a file."""
    folder = tmp_path_factory.mktemp("signals")
    bars(400).write_csv(folder / "bars.csv")
    (folder / "mine.toml").write_text(PROFILE.format(path=folder / "bars.csv"))
    run = bellmark.train(folder / "mine.toml", runs=folder / "runs", overrides={"learners.count": 1, "trainer.epochs": 3})
    assert api.signals(run, "all")["exposure"].n_unique() > 1, "a policy that always does the same would prove nothing"
    return run


def test_wild_bars_that_follow_do_not_change_what_is_seen_of_those_before(trained, tmp_path):
    prices = polars.col("open", "high", "low", "close")
    wild = bars(500, seed=7, scale=3.0)[400:].with_columns((prices + 300.0).round(2))
    polars.concat([bars(400), wild]).write_csv(tmp_path / "longer.csv")
    own, longer = api.signals(trained, "all"), api.signals(trained, tmp_path / "longer.csv")
    assert own.shape[0] == 400 - 20 and longer.shape[0] == own.shape[0] + 100
    assert longer[: own.shape[0] - 1].equals(own[:-1])  # at its last bar a window has no bar left to order in
    assert longer["exposure"][: own.shape[0]].equals(own["exposure"])


def test_a_parquet_file_is_read_with_the_settings_of_the_runs_csv(trained, tmp_path):
    bars(400).write_parquet(tmp_path / "same.parquet")
    assert api.signals(trained, tmp_path / "same.parquet").equals(api.signals(trained, "all"))


def test_a_part_is_what_a_backtest_of_it_decides(trained):
    for part in ("train", "validation", "test"):
        frame = api.signals(trained, part)
        decisions = bellmark.decisions(bellmark.backtest(trained, split=part))
        assert frame["ts"].equals(decisions["ts_event"].alias("ts")) and frame["exposure"].equals(decisions["exposure"])
        assert frame["order_lots"].to_list() == decisions["order"].to_list()


def test_a_file_that_is_just_long_enough_gives_the_signal_of_its_last_bar(trained, tmp_path):
    bars(400)[379:].write_csv(tmp_path / "short.csv")
    assert api.signals(trained, tmp_path / "short.csv").shape[0] == 1
    bars(400)[380:].write_csv(tmp_path / "shorter.csv")
    with pytest.raises(DataError, match="20 bars are too few for features.level"):
        api.signals(trained, tmp_path / "shorter.csv")


def test_a_run_whose_own_data_are_gone_or_changed_cannot_say_how_it_saw_them(trained, tmp_path):
    path = trained.path.parents[1] / "bars.csv"
    kept = path.read_bytes()
    bars(400).write_csv(tmp_path / "new.csv")
    try:
        bars(401).write_csv(path)
        with pytest.raises(RunError, match="its data have changed since it was trained"):
            api.signals(trained, tmp_path / "new.csv")
    finally:
        path.write_bytes(kept)


def test_a_setting_that_the_other_reader_lacks_is_named(trained, tmp_path):
    profile = trained.profile
    bars(400).write_parquet(tmp_path / "x.parquet")
    from dataclasses import replace

    from bellmark.policy_signals import _reader

    semicolons = replace(profile, data=replace(profile.data, separator=";"))
    with pytest.raises(UsageError, match="a parquet file has no setting separator of the run's dataset"):
        _reader(semicolons, tmp_path / "x.parquet")
