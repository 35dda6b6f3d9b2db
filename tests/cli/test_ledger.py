"""`backtest` with trades, decisions, proofs and sweeps, `signals` and `runs export`, as a user types them."""

import csv
import io
import json

import numpy as np
import polars
import pytest

import bellmark
from bellmark import api
from bellmark.cli.ledger_output import wanted_decisions
from bellmark.errors import UsageError

pytestmark = pytest.mark.cpu

AHEAD = '''
from bellmark.component import Strategy, component
from bellmark.hookspecs import hookimpl

@component
class Ahead(Strategy):
    """Knows the next close."""
    name = "ahead"

    @staticmethod
    def decide(t, close_T):
        return 1.0 if t + 1 < close_T.shape[0] and close_T[t + 1] > close_T[t] else 0.0

@hookimpl
def bellmark_strategies():
    return [Ahead]
'''


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run of two learners that was trained for a moment."""
    return bellmark.train("smoke", overrides={"trainer.epochs": 1}, runs=tmp_path_factory.mktemp("runs"))


@pytest.fixture
def on_run(bellmark, trained):
    """A command on the trained run, from an empty folder."""
    return lambda *words: bellmark(*(trained.path if word == "RUN" else word for word in words))


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_decisions_of_a_day_say_why(on_run, trained):
    result = api.backtest(trained, keep_values=True)
    stamp = np.datetime64(int(result.lanes[0].stamp_T[20]), "ns")
    done = on_run("backtest", "RUN", "--decisions", "--on", str(stamp)[:10])
    assert done.code == 0, done.err
    assert f"2 decisions on {str(stamp)[:10]}" in done.out and "close of (UTC)" in done.out and "values" in done.out
    path = trained.path / "backtests" / "test" / "decisions.jsonl"
    assert f"decisions: {path}" in done.err
    rows = lines(path)
    assert len(rows) == 2 * result.lanes[0].stamp_T.size
    row = rows[20]
    assert row["ts"] == f"{stamp.astype('datetime64[s]')}Z" and set(row["q"]) == set(row["legal"]) == {"-1.00", "flat", "+1.00"}
    best = max((label for label in row["q"] if row["legal"][label]), key=row["q"].get)
    assert best == row["decision"] in done.out
    assert row["q"][best] == pytest.approx(float(result.lanes[0].q_TA[20].max()), rel=1e-6)


def test_decisions_as_json_are_in_the_one_document(on_run, trained):
    shown = on_run("backtest", "RUN", "--decisions", "--on", "700..1000000", "--json").json
    assert {row["bar"] for row in shown["decisions"]} and min(row["bar"] for row in shown["decisions"]) >= 700
    kept = json.loads((trained.path / "backtests" / "test.json").read_text())
    assert kept == {key: value for key, value in shown.items() if key not in ("decisions", "files")}


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("2015-10-15", ["2015-10-15T00:00:00Z", "2015-10-15T20:00:00Z"]),
        ("2015-10-15T20:00", ["2015-10-15T20:00:00Z"]),
        ("2015-10-14..2015-10-15", ["2015-10-14T20:00:00Z", "2015-10-15T00:00:00Z", "2015-10-15T20:00:00Z"]),
        ("2015-10-15T01:00..2015-10-16", ["2015-10-15T20:00:00Z", "2015-10-16T00:00:00.000000001Z"]),
        ("1..2", ["2015-10-15T00:00:00Z", "2015-10-15T20:00:00Z"]),
        ("3", ["2015-10-16T00:00:00.000000001Z"]),
    ],
)
def test_on_takes_days_moments_bars_and_ranges(text, kept):
    stamps = ["2015-10-14T20:00:00Z", "2015-10-15T00:00:00Z", "2015-10-15T20:00:00Z", "2015-10-16T00:00:00.000000001Z"]
    wanted = wanted_decisions(text)
    assert [ts for bar, ts in enumerate(stamps) if wanted({"bar": bar, "ts": ts})] == kept


@pytest.mark.parametrize("text", ["15 October", "2015-13-01", "2015-10-16..2015-10-15", "5..2", "..", "1..2015-10-15", "2020-W01"])
def test_on_refuses_what_is_no_date_in_one_line(text):
    with pytest.raises(UsageError, match="^--on: expected"):
        wanted_decisions(text)


def test_a_day_without_a_bar_is_named_with_the_span(on_run):
    done = on_run("backtest", "RUN", "--decisions", "--on", "1999-01-01")
    assert done.code == 2 and done.errors[0].startswith("error: --on: no decision at 1999-01-01: the ") and " run from " in done.errors[0]


def test_trades_of_a_strategy_are_printed_and_written_to_a_new_folder_each_time(bellmark, tmp_path):
    words = ("backtest", "random", "--profile", "smoke", "--trades", "--set", "baselines.random.change_probability=1.0")
    done = bellmark(*words)
    assert done.code == 0, done.err
    folder = tmp_path / "runs" / "backtests"
    assert [path.name for path in sorted((folder / "random-test-1").iterdir())] == ["fills.jsonl", "rejections.jsonl", "trades.jsonl"]
    trades = lines(folder / "random-test-1" / "trades.jsonl")
    assert f"first 20 of {len(trades)} round trips" in done.out and "ended by" in done.out
    assert done.out.count("order") >= 20
    shown = bellmark(*words, "--json").json
    assert (folder / "random-test-2").is_dir()
    assert shown["round_trips"]["total"] == len(trades) and shown["round_trips"]["rows"] == [
        {key: value for key, value in row.items() if key != "schema_version"} for row in trades[:20]
    ]
    bellmark(*words, "--out", "here")
    assert lines(tmp_path / "here" / "trades.jsonl") == trades and not (folder / "random-test-3").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--on", "2015-10-15"), "--on: it says which decisions to print; give --decisions too"),
        (("--rank", "cagr"), "--rank: it goes with --sweep"),
        (("--top", "3"), "--top: it goes with --sweep"),
        (("--out", "x"), "--out: there is no file to write without --trades or --decisions"),
        (("--sweep", "band=1,2", "--trades"), "--trades: a sweep keeps no ledger"),
        (("--decisions", "--on", "yesterday"), "--on: expected a date such as 2015-10-15"),
    ],
)
def test_options_that_do_not_go_together_are_refused_before_anything_runs(bellmark, tmp_path, words, message):
    done = bellmark("backtest", "no_trade_band", "--profile", "smoke", *words)
    assert (done.code, done.out) == (2, "") and done.errors[0].startswith(f"error: {message}")
    assert list(tmp_path.iterdir()) == []


def test_a_sweep_prints_the_best_and_its_json_is_that_of_the_api(bellmark, tmp_path):
    words = ("backtest", "no_trade_band", "--profile", "smoke", "--sweep", "band=0.5:2:0.5", "--rank", "total_return")
    done = bellmark(*words, "--top", "2")
    assert done.code == 0, done.err
    assert "best 2 of 4 combinations by total return" in done.out and "tried: 4 configurations" in done.out
    assert "deflated Sharpe ratio" in done.out
    found = api.sweep("no_trade_band", ["band=0.5:2:0.5"], profile="smoke", rank="total_return", runs=tmp_path / "other")
    assert bellmark(*words, "--json").json == found.document()
    frame = polars.DataFrame(found.columns())
    assert frame["rank"].to_list() == [1, 2, 3, 4] and frame["total_return"].is_sorted(descending=True)
    assert bellmark("backtest", "no_trade_band", "--sweep", "band=1,2").code == 2
    nothing = bellmark(*words[:-1], "")
    assert nothing.code == 2 and "no metric named ''" in nothing.errors[0]


def test_a_wrong_value_of_a_setting_without_default_is_one_error(bellmark):
    done = bellmark("backtest", "signals", "--profile", "smoke", "--set", "baselines.signals.path=5")
    assert (done.code, done.errors) == (2, ["error: --set: baselines.signals.path: expected str, found int 5"])


def test_a_proof_is_printed_and_one_that_fails_is_one_line(bellmark, tmp_path):
    done = bellmark("backtest", "no_trade_band", "--profile", "smoke", "--prove")
    assert done.code == 0, done.err
    level, rule, rest = done.out.splitlines()[:3]
    assert level.startswith("feature level: no look-ahead: ") and rule.startswith("strategy no_trade_band: no look-ahead: ")
    assert "reward " in rest and ": not proven: a strategy uses none of it" in rest
    (tmp_path / "plugs").mkdir()
    (tmp_path / "plugs" / "ahead.py").write_text(AHEAD)
    cheat = bellmark("backtest", "ahead", "--profile", "smoke", "--prove", "--plugins", tmp_path / "plugs")
    assert (cheat.code, cheat.out, len(cheat.errors)) == (1, "", 1)
    assert cheat.errors[0].startswith("error: strategy 'ahead' looks ahead: bars after ")
    assert bellmark("backtest", "ahead", "--profile", "smoke", "--plugins", tmp_path / "plugs").code == 0


@pytest.mark.slow
def test_a_run_is_proven_feature_by_feature(on_run):
    done = on_run("backtest", "RUN", "--prove", "--json")
    assert done.code == 0, done.err
    level, played = done.json["proofs"]
    assert level.startswith("feature level: no look-ahead: ") and played.startswith("actions at random, ")
    assert "reward" in played and ": no look-ahead: the same observations, legal actions, rewards, orders" in played


def test_cautions_are_printed_beside_the_result(bellmark):
    done = bellmark("backtest", "no_trade_band", "--profile", "smoke", "--set", "market.same_close=true")
    assert "caution: market.same_close: orders fill at the very close that decided them" in done.out
    document = bellmark("backtest", "no_trade_band", "--profile", "smoke", "--set", "market.same_close=true", "--json").json
    assert document["cautions"] and {"market.same_close", "market.spread_ticks"} <= {rule["key"] for rule in document["rules"]}


@pytest.mark.parametrize("learner", [0, 1])
def test_signals_backtest_to_the_positions_and_equity_of_the_policy(on_run, trained, tmp_path, learner):
    done = on_run("signals", "RUN", "test", "--learner", learner, "--out", "signals.csv")
    assert done.code == 0, done.err
    given = {"profile": trained.path / "profile.toml", "sets": ["baselines.signals.path=signals.csv"], "runs": tmp_path / "runs"}
    again = api.backtest("signals", **given)
    (policy,) = api.backtest(trained).lanes_of(learner)
    (lane,) = again.lanes
    assert len(policy.fills) > 0
    for name in ("stamp_T", "position_T", "equity_T", "order_T"):
        assert (getattr(lane, name) == getattr(policy, name)).all(), name
    assert lane.fills.tolist() == policy.fills.tolist() and lane.costs == policy.costs


def test_signals_go_to_stdout_as_csv_and_hold_what_the_account_did(on_run, trained):
    done = on_run("signals", "RUN", "all", "--learner", "all")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert list(rows[0]) == ["ts", "symbol", "exposure", "target_lots", "order_lots", "action", "learner"]
    assert {row["learner"] for row in rows} == {"0", "1"} and len(rows) == 2 * 1200
    frame = api.signals(trained, "all", learner=1)
    mine = [row for row in rows if row["learner"] == "1"]
    assert frame["exposure"].to_list() == [float(row["exposure"]) for row in mine]
    assert frame["target_lots"].to_list() == [int(row["target_lots"]) for row in mine]
    shown = on_run("signals", "RUN", "all", "--learner", "1", "--json").json
    assert [row["exposure"] for row in shown["rows"]] == frame["exposure"].to_list()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("test",), "--learner: run '{name}' has 2 learners; say which (0 to 1) or all"),
        (("test", "--learner", "2"), "--learner: expected 0 to 1 or all, found '2'"),
        (("tst", "--learner", "0"), "DATA: expected a part of the run's data, a .csv or .parquet file, or a profile, found 'tst'"),
        (("none.csv", "--learner", "0"), "none.csv: the run's dataset 'ornstein_uhlenbeck' reads no file"),
        (("test", "--learner", "0", "--out", "x.txt"), "--out: expected a name that ends in .csv, found 'x.txt'"),
    ],
)  # fmt: skip
def test_signals_that_cannot_be_made_are_one_line(on_run, trained, words, message):
    done = on_run("signals", "RUN", *words)
    assert (done.code, done.out) == (2, "") and done.errors[0].startswith("error: " + message.format(name=trained.name))


@pytest.mark.slow
def test_signals_on_a_profile_take_its_data(on_run, tmp_path):
    (tmp_path / "other.toml").write_text('extends = "smoke"\n[data]\nbars = 40\nseed = 9\n')
    shown = on_run("signals", "RUN", "other.toml", "--learner", "0", "--json").json
    assert len(shown["rows"]) == 40 and shown["data"] == "other.toml"


@pytest.mark.slow
def test_a_run_is_exported_as_tables(on_run, trained, tmp_path):
    trained.write_backtest("validation", {})
    for form, read in (("parquet", polars.read_parquet), ("csv", polars.read_csv)):
        done = on_run("runs", "export", "RUN", "--out", tmp_path / form, "--format", form, "--json")
        assert done.code == 0, done.err
        files = {name: read(path) for name, path in done.json.items()}
        ledger = ("equity", "fills", "trades", "rejections", "decisions")
        assert set(files) >= {"metrics", "timing", *(f"validation/{name}" for name in ledger)}
        assert files["metrics"].height == 2 and "train_loss" in files["metrics"].columns
        result = api.backtest(trained, split="validation", keep_values=True)
        for name in ledger:
            assert files[f"validation/{name}"].shape == getattr(api, name)(result).shape, name
        assert {"q flat", "legal flat", "ts_event", "refused"} <= set(files["validation/decisions"].columns)
    wrong = on_run("runs", "export", "RUN", "--format", "parquett")
    assert wrong.code == 2 and "did you mean 'parquet'" in wrong.errors[0]
