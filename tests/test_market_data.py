"""What training and backtests of a profile share: read anew, so that an edit of data or code within a process is seen."""

from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest

import bellmark
from bellmark import tape
from bellmark.errors import DataError, RunError
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


@pytest.mark.parametrize("key", ["spread_ticks", "slippage_ticks", "slippage_bps", "fee_per_contract", "fee_bps", "fee_minimum"])
def test_a_market_without_costs_says_so_and_one_with_any_cost_does_not(profile_path, key):
    free = {name: (0.0, "test") for name in ("market.spread_ticks", f"market.{key}")}
    assert any("without costs" in text for text in load_market_data(load_profile(profile_path, options=free)).warnings)
    costly = free | {f"market.{key}": (1.0, "test")}
    assert not any("without costs" in text for text in load_market_data(load_profile(profile_path, options=costly)).warnings)


def two_symbols(path, rows):
    text = ["ts,symbol,open,high,low,close,volume", *(f"2020-01-{day:02d},{symbol},10,10,10,10,{volume}" for day, symbol, volume in rows)]
    path.write_text("\n".join(text) + "\n")


def test_unknown_volume_under_a_limit_and_missing_bars_of_a_shared_account_are_said(profile_path, tmp_path):
    days = [(day, symbol, "" if symbol == "B" and day < 5 else 7) for day in range(1, 31) for symbol in "AB" if symbol == "A" or day % 3]
    two_symbols(tmp_path / "bars.csv", days)
    given = {"data.symbol": "", "data.symbol_column": "symbol", "market.participation": [0.1, 0.1, 0.1]}
    profile = load_profile(profile_path, options={key: (value, "test") for key, value in given.items()})
    text = "market.participation: B: 3 bars of unknown volume have no participation limit"
    assert [warning for warning in load_market_data(profile).warnings if "participation" in warning] == [text]
    assert not any("market.account" in warning for warning in load_market_data(profile).warnings)
    shared = {"market.account": "shared", "market.participation": []}
    profile = load_profile(profile_path, options={key: (value, "test") for key, value in (given | shared).items()})
    found = load_market_data(profile).warnings
    assert [warning for warning in found if "market." in warning] == [
        "market.account: B: 10 of 30 stamps have no bar; marked at its last price"
    ]


@pytest.mark.slow
def test_a_policy_that_was_trained_on_fills_at_its_own_close_says_so(profile_path, tmp_path):
    given = {"trainer.epochs": 1, "learners.count": 1, "market.same_close": True}
    result = bellmark.backtest(bellmark.train(profile_path, runs=tmp_path / "runs", overrides=given))
    assert any("the policy was trained on fills at the close that it had just seen" in text for text in result.warnings)
    assert [text.split(":")[0] for text in result.cautions] == ["market.same_close"]


def test_symbols_of_several_currencies_are_refused(profile_path, monkeypatch):
    profile = load_profile(profile_path)
    ((bars, instrument),) = profile.data.read()
    other = replace(bars, symbol="Y"), replace(instrument, symbol="Y", currency="EUR")
    monkeypatch.setattr(type(profile.data), "read", lambda self: [(bars, instrument), other])
    with pytest.raises(DataError, match="expected symbols of one currency, found USD, EUR"):
        load_market_data(profile)


def test_results_name_the_currency_and_the_session_that_years_are_counted_by(profile_path):
    result = bellmark.backtest("flat", profile=profile_path, overrides={"instrument.currency": "EUR"}, runs=profile_path.parent / "runs")
    assert (result.currency, result.session) == ("EUR", "one bar a session")
    assert load_market_data(load_profile("ou", options={"data.bars": (3000, "test")})).session_text == "around the clock"


def test_a_tape_that_other_code_made_is_not_served(profile_path, monkeypatch):
    asked = []
    monkeypatch.setattr(tape.Tape, "save", lambda self, path: asked.append(path.name))
    for code in ("one", "two"):
        monkeypatch.setattr(tape, "_code_hash", lambda code=code: code)
        load_market_data(load_profile(profile_path))
    assert len(set(asked)) == 2
