"""The API end to end on the smallest profile: train, resume, backtest, evaluate, report; and the command line says the same."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import bellmark
from bellmark import api
from bellmark.errors import RunError, UsageError
from bellmark.trials import read as read_trials

pytestmark = pytest.mark.cpu

COMPARED = ("metrics.jsonl", "manifest.json", "checkpoints/index.json")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A finished run of the smoke profile."""
    return bellmark.train("smoke", runs=tmp_path_factory.mktemp("runs"))


def files_of(run):
    found = {name: (run.path / name).read_bytes() for name in COMPARED}
    return found | {path.name: path.read_bytes() for path in run.checkpoint_folder.glob("*.safetensors")}


def cli(*arguments, cwd):
    command = [sys.executable, "-P", "-m", "bellmark", *(str(argument) for argument in arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False, timeout=300)


def test_run_has_a_row_an_epoch_and_learner(trained):
    frame = trained.metrics()
    assert frame.shape[0] == 2 * 2
    assert frame["learner"].to_list() == [0, 1, 0, 1] and frame["seed"].to_list() == [1, 2, 1, 2]
    assert set(frame["step"]) == {50, 100}
    assert trained.timing()["steps_per_second"].min() > 0
    text = (trained.path / "metrics.jsonl").read_text()
    assert "seconds" not in text and "NaN" not in text


def test_same_seed_gives_the_same_bytes_in_another_folder_and_another_process(trained, tmp_path):
    done = cli("train", "smoke", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert files_of(api.load_run("smoke-1", runs=tmp_path / "runs")) == files_of(trained)


def test_another_seed_gives_other_weights(trained, tmp_path):
    other = bellmark.train("smoke", seed=5, runs=tmp_path)
    assert files_of(other)["metrics.jsonl"] != files_of(trained)["metrics.jsonl"]


def test_backtest_evaluate_and_report(trained, tmp_path):
    result = bellmark.backtest(trained)
    assert (result.kind, result.split, result.learners) == ("policy", "test", 2)
    frame = bellmark.evaluate([result, *api.baselines(trained, policy=result)])
    assert {"account", "metric", "value", "reason", "unit"} <= set(frame.columns)
    assert frame.filter(frame["value"].is_null())["reason"].null_count() == 0
    assert {"flat", "no_trade_band", "random"} <= set(frame["account"])
    assert api.equity(result)["equity"][0] == result.start_equity
    assert api.fills(result).shape[0] == sum(len(lane.fills) for lane in result.lanes)
    assert set(api.rejections(result).columns) >= {"ts_event", "lots", "reason"}
    files = bellmark.report(trained, folder=tmp_path / "a")
    assert sorted(files) == ["html", "json", "markdown"]
    again = bellmark.report(trained, folder=tmp_path / "b")
    for name, path in files.items():
        assert path.read_bytes() == again[name].read_bytes(), name


def test_frames_of_the_ledger_are_in_currency_and_say_symbol_and_cause(trained):
    result = bellmark.backtest(trained, keep_values=True)
    fills, trades, decisions = bellmark.fills(result), bellmark.trades(result), bellmark.decisions(result)
    assert set(fills["cause"]) == {"order"} and set(fills["symbol"]) == {"OU"} and fills["price"].is_between(50.0, 150.0).all()
    assert (fills["notional"] - fills["lots"].abs() * fills["price"]).abs().max() < 1e-9
    assert trades["profit"].drop_nulls().len() <= fills.shape[0] and trades.filter(trades["exit"].is_null()).shape[0] <= 2
    assert str(trades["entry"].dtype) == str(decisions["ts_event"].dtype) == "Datetime(time_unit='ns', time_zone='UTC')"
    assert decisions["fill_lots"].sum() == fills["lots"].sum()
    assert decisions["q flat"].null_count() == 0 and decisions["legal flat"].all()
    assert "q flat" not in bellmark.decisions(bellmark.backtest("flat", profile="smoke", runs=trained.path.parent)).columns


def test_frames_without_a_row_have_their_columns(trained):
    flat = bellmark.backtest("flat", profile="smoke", runs=trained.path.parent)
    for frame in (bellmark.fills(flat), bellmark.trades(flat), bellmark.rejections(flat)):
        assert frame.shape[0] == 0 and {"learner", "symbol"} <= set(frame.columns)


def test_a_shared_account_has_a_position_for_each_symbol(tmp_path):
    shares = {"market.account": "shared", "data.symbols": ["AAPL", "MSFT"]}
    result = bellmark.backtest("buy_and_hold", profile="quickstart", overrides=shares, runs=tmp_path)
    frame = bellmark.equity(result)
    assert {"position_AAPL", "position_MSFT", "exposure", "gross_exposure"} <= set(frame.columns) and "position" not in frame.columns
    assert dict(result.lanes[0].open_positions) == {name: frame[f"position_{name}"][-1] for name in ("AAPL", "MSFT")}
    assert set(bellmark.fills(result)["symbol"]) == {"AAPL", "MSFT"}


def test_every_public_name_is_a_documented_function_whatever_was_imported():
    import bellmark.policy_signals
    import bellmark.records
    import bellmark.sweeping

    for name in bellmark.__all__:
        if not name.startswith("__"):
            assert callable(getattr(bellmark, name)) and getattr(bellmark, name).__doc__, name


def test_report_of_an_equal_run_of_another_name_is_equal(trained, tmp_path):
    other = bellmark.train("smoke", name="other", runs=tmp_path / "runs")
    assert bellmark.report(other)["json"].read_bytes() == bellmark.report(trained, folder=tmp_path)["json"].read_bytes()


def test_command_line_prints_what_the_api_gives(trained):
    runs = trained.path.parent
    done = cli("backtest", "smoke-1", "--runs", runs, "--json", cwd=runs)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    policy = bellmark.backtest(trained)
    frame = bellmark.evaluate([policy, *api.baselines(trained, policy=policy)], run=trained)
    printed = {(account["label"], name): found["value"] for account in document["accounts"] for name, found in account["metrics"].items()}
    assert printed == {(row["account"], row["metric"]): row["value"] for row in frame.to_dicts()}
    assert json.loads((trained.path / "backtests" / "test.json").read_text()) == document


def test_strategy_by_name_needs_a_profile(trained, tmp_path):
    with pytest.raises(UsageError, match="expected a profile that says the data and the market"):
        bellmark.backtest("flat", runs=tmp_path)
    result = bellmark.backtest("flat", profile="smoke", runs=tmp_path)
    assert result.kind == "strategy" and result.portfolio().equity[-1] == result.start_equity
    with pytest.raises(UsageError, match="split: expected one of train, validation, test, found 'tst'; did you mean 'test'"):
        bellmark.backtest(trained, split="tst")
    with pytest.raises(UsageError, match="a run is backtested with its own profile"):
        bellmark.backtest(trained, profile="smoke")


def test_every_look_is_counted_and_survives_the_run(tmp_path):
    run = bellmark.train("smoke", runs=tmp_path)
    bellmark.backtest(run)
    bellmark.backtest("flat", profile="smoke", runs=tmp_path)
    kinds = [(trial.kind, trial.window, trial.seeds) for trial in read_trials(tmp_path)]
    assert kinds == [("train", "validation", (1, 2)), ("backtest", "test", (1, 2)), ("backtest", "test", ())]
    assert len({trial.configuration_hash for trial in read_trials(tmp_path)}) == 2


def test_existing_name_is_refused_before_any_data_are_read(trained, monkeypatch):
    from bellmark import assembly

    monkeypatch.setattr(assembly, "assemble", lambda *arguments: pytest.fail("data were read"))
    before = files_of(trained)
    with pytest.raises(RunError, match="a run of this name exists: take another --name"):
        bellmark.train("smoke", name="smoke-1", runs=trained.path.parent)
    assert files_of(trained) == before


def test_resume_of_a_finished_run_changes_nothing(trained):
    before = files_of(trained)
    bellmark.train("smoke", runs=trained.path.parent, resume=True)
    assert files_of(trained) == before


def test_resume_with_another_profile_is_refused_with_the_difference(trained):
    with pytest.raises(RunError, match=r"cannot be resumed with another profile: trainer.batch: 8 here, 16 there"):
        bellmark.train("smoke", sets=["trainer.batch=8"], runs=trained.path.parent, resume=True)


def test_resume_of_a_run_that_is_not_there(tmp_path):
    with pytest.raises(RunError, match="there is no run of profile 'smoke' to resume"):
        bellmark.train("smoke", runs=tmp_path, resume=True)


def start_and_signal(folder, number, *, after_epoch):
    """Starts a run of several epochs and sends a signal once `after_epoch` has its row."""
    command = [sys.executable, "-P", "-m", "bellmark", "train", "smoke", "--set", "trainer.epochs=40", "--runs", str(folder)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    rows = folder / "smoke-1" / "metrics.jsonl"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and child.poll() is None:
        if rows.exists() and f'"epoch":{after_epoch},' in rows.read_text():
            break
        time.sleep(0.01)
    child.send_signal(number)
    _, errors = child.communicate(timeout=120)
    return child.returncode, errors


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_run_resumes_to_the_bits_of_one_that_never_stopped(tmp_path, number):
    whole = bellmark.train("smoke", sets=["trainer.epochs=40"], runs=tmp_path / "whole")
    code, errors = start_and_signal(tmp_path / "stopped", number, after_epoch=3)
    if number == signal.SIGINT:
        assert (code, errors.splitlines()[-1]) == (130, "error: interrupted")
    else:
        assert code == -signal.SIGKILL
    assert len(api.load_run("smoke-1", runs=tmp_path / "stopped").metric_rows()) < 80
    resumed = bellmark.train("smoke", sets=["trainer.epochs=40"], runs=tmp_path / "stopped", resume=True)
    assert files_of(resumed) == files_of(whole)


def test_load_dataset_gives_checked_bars():
    frame = bellmark.load_dataset("ornstein_uhlenbeck", bars=50)
    assert frame.columns == ["symbol", "ts_event", "open", "high", "low", "close", "volume"]
    assert frame.shape[0] == 50
    assert str(frame["ts_event"].dtype) == "Datetime(time_unit='ns', time_zone='UTC')"
    with pytest.raises(UsageError, match="did you mean 'bars'"):
        bellmark.load_dataset("ornstein_uhlenbeck", bar=50)


def test_progress_is_called_with_done_total_and_loss(tmp_path):
    seen = []
    bellmark.train("smoke", runs=tmp_path, progress=lambda done, total, loss=None: seen.append((done, total, loss)))
    assert seen[-1][:2] == (100, 100)
    assert all(total == 100 for _, total, _ in seen)


def test_overrides_of_the_api_are_checked_and_named(tmp_path):
    with pytest.raises(UsageError, match=r"argument: trainer.batch: expected int >= 1, found str 'x'"):
        bellmark.train("smoke", overrides={"trainer.batch": "x"}, runs=tmp_path)
    assert list(Path(tmp_path).iterdir()) == []


def test_a_report_of_a_plugin_named_in_the_profile_is_written(tmp_path, monkeypatch):
    (tmp_path / "plugs").mkdir()
    (tmp_path / "plugs" / "line.py").write_text(
        "from typing import ClassVar\n"
        "from bellmark.component import Report, component\n"
        "from bellmark.hookspecs import hookimpl\n"
        "@component\n"
        "class Line(Report):\n"
        '    """The verdict alone."""\n'
        '    name: ClassVar[str] = "line"\n'
        "    def write(self, content, folder):\n"
        '        path = folder / "line.txt"\n'
        '        path.write_text(content["verdict"]["sentence"])\n'
        "        return path\n"
        "@hookimpl\n"
        "def bellmark_reports():\n"
        "    return [Line]\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("BELLMARK_PLUGINS", str(tmp_path / "plugs"))
    changes = {"reports.line.use": "line", "reports.html": False, "trainer.epochs": 1}
    run = bellmark.train("smoke", overrides=changes, runs=tmp_path / "runs")
    files = bellmark.report(run)
    assert sorted(files) == ["json", "line", "markdown"]
    assert files["line"].read_text().startswith("On the unseen test part")
