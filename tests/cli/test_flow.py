"""`train`, `backtest`, `report`, `runs`, `datasets` and `demo` as a user types them: tables, JSON, files and messages."""

from pathlib import Path

import numpy as np
import pytest

SMALL = ("--set", "trainer.epochs=1", "--set", "trainer.updates_per_epoch=20", "--set", "learners.count=2")
NOTHING = '''
from typing import ClassVar
from bellmark.component import Reward, component, setting
from bellmark.hookspecs import hookimpl

@component
class Nothing(Reward):
    """Nothing at all."""
    name: ClassVar[str] = "nothing"
    size: float = setting(2.0, "how much")

    @staticmethod
    def reward(equity, size):
        return 0.0 * size

@hookimpl
def bellmark_rewards():
    return [Nothing]
'''

pytestmark = pytest.mark.cpu


def test_train_backtest_report_and_runs(bellmark, tmp_path):
    trained = bellmark("train", "smoke", "--name", "first try")
    assert trained.code == 0, trained.err
    assert "run: runs/first-try" in trained.out and "next: bellmark backtest runs/first-try" in trained.err
    assert "train loss" in trained.out
    tested = bellmark("backtest", "first-try")
    assert tested.code == 0, tested.err
    assert "median of 2 learners" in tested.out and "no_trade_band" in tested.out and "sharpe ratio" in tested.out
    reported = bellmark("report", "first-try", "--json")
    assert {name: Path(path).name for name, path in reported.json.items()} == {
        "html": "report.html",
        "json": "report.json",
        "markdown": "report.md",
    }
    rows = bellmark("runs", "list", "--json").json
    assert [(row["name"], row["profile"], row["last_epoch"], row["checkpoint_step"]) for row in rows] == [("first-try", "smoke", 2, 100)]
    shown = bellmark("runs", "show", "first-try", "--json").json
    assert len(shown["last_rows"]) == 2 and shown["manifest"]["device"] == "cpu"
    assert "data hash" in bellmark("runs", "show", "first-try").out
    again = bellmark("train", "smoke", "--name", "first try")
    assert (again.code, again.out) == (1, "")
    assert again.errors == ["error: runs/first-try: a run of this name exists: take another --name, or go on with it by --resume"]


def test_train_json_is_one_document(bellmark):
    result = bellmark("train", "smoke", *SMALL, "--json")
    assert result.json["name"] == "smoke-1" and result.json["last_epoch"] == 1


def test_a_damaged_checkpoint_is_one_line(bellmark, tmp_path):
    assert bellmark("train", "smoke", *SMALL).code == 0
    for path in (tmp_path / "runs" / "smoke-1" / "checkpoints").glob("*.safetensors"):
        path.write_bytes(path.read_bytes()[:-5])
    result = bellmark("backtest", "smoke-1")
    assert (result.code, len(result.errors), result.out) == (1, 1, "")
    assert "the checkpoint is damaged: expected" in result.errors[0]


def test_strategy_has_the_settings_of_its_baseline_in_the_profile(bellmark):
    def fills(*settings):
        sets = [word for text in settings for word in ("--set", text)]
        return bellmark("backtest", "random", "--profile", "smoke", *sets, "--json").json["accounts"][0]["fills"]

    often, never = fills("baselines.random.change_probability=1.0"), fills("baselines.random.change_probability=0.0")
    assert often > fills() > never == 0
    assert fills("baselines.random=false") == fills()


@pytest.mark.slow
def test_a_run_of_a_plugin_in_a_folder_is_shown_with_it_and_said_to_be_unreadable_without(bellmark, tmp_path, monkeypatch):
    (tmp_path / "plugs").mkdir()
    (tmp_path / "plugs" / "nothing.py").write_text(NOTHING)
    given = ("--plugins", tmp_path / "plugs")
    assert bellmark("train", "smoke", *SMALL, "--set", "rewards.nothing.size=1.0", *given).code == 0
    assert bellmark("runs", "show", "smoke-1", *given).code == 0
    assert bellmark("runs", "list", *given, "--json").json[0]["error"] is None
    monkeypatch.setenv("BELLMARK_PLUGINS", "")
    listed = bellmark("runs", "list")
    assert listed.code == 0 and "warning: run 'smoke-1' cannot be read: " in listed.err and "no reward named 'nothing'" in listed.err


def test_strategy_backtest_says_every_number(bellmark):
    document = bellmark("backtest", "no_trade_band", "--profile", "smoke", "--json").json
    assert [account["label"] for account in document["accounts"]] == ["no_trade_band"]
    assert document["part"]["split"] == "test"
    deepest = document["accounts"][0]["drawdowns"][0]
    printed = bellmark("backtest", "no_trade_band", "--profile", "smoke").out
    for stamp in (deepest["peak_ns"], deepest["valley_ns"]):
        assert str(np.datetime64(stamp, "ns"))[:10] in printed
    assert f"{deepest['depth']:.2%}" in printed
    missing = bellmark("backtest", "no_trade_band")
    assert missing.code == 2 and "expected a profile that says the data and the market (--profile)" in missing.errors[0]


def test_datasets_list_and_show(bellmark):
    names = {row["name"] for row in bellmark("datasets", "list", "--json").json}
    assert {"csv", "parquet", "sample", "ornstein_uhlenbeck", "es_regimes"} <= names
    rows = bellmark("datasets", "show", "ornstein_uhlenbeck", "--set", "bars=30", "--json").json
    assert [(row["symbol"], row["bars"]) for row in rows] == [("OU", 30)]
    wrong = bellmark("datasets", "show", "csv")
    assert wrong.code == 2 and wrong.errors[0].startswith("error: csv.path: expected str, found nothing")


@pytest.mark.slow
def test_demo_goes_all_the_way_and_says_where_the_report_is(bellmark):
    result = bellmark("demo", *SMALL, "--seed", "3")
    assert result.code == 0, result.err
    assert "buy_and_hold" in result.out and "html: runs/demo-1/report.html" in result.out
    assert "On the unseen test part" in result.out
    assert "(seed 3)" in result.out and "(seed 4)" in result.out
