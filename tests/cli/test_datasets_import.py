"""`datasets import` and what follows it: list, show, check, export, formats, make; and `--data` of the commands that run."""

import json

import pytest

from bellmark.cli import datasets_import
from bellmark.datasets.checks import CHECKS

pytestmark = pytest.mark.none

HEADER = "ts,open,high,low,close,volume"
SAY = ("--format", "csv", "--symbol", "X", "--stamp", "close", "--tz", "UTC")


def write(folder, rows, name="bars.csv"):
    lines = [f"2024-03-04T{14 + minute // 60}:{minute % 60:02d}:00Z,{p},{p + 1},{p - 1},{p},{v}" for minute, p, v in rows]
    (folder / name).write_text("\n".join([HEADER, *lines]) + "\n")


@pytest.fixture
def imported(bellmark, tmp_path):
    write(tmp_path, [(minute, 100 + minute % 5, 3) for minute in range(1, 31)])
    done = bellmark("datasets", "import", "bars.csv", *SAY)
    assert done.code == 0, done.err
    return done


def test_import_says_what_it_holds_where_it_is_and_what_comes_next(imported):
    assert "dataset: data/bars" in imported.out and "2024-03-04T14:01:00Z" in imported.out
    # without a tick there are no costs in ticks
    assert imported.err.splitlines()[-1] == "next: bellmark train quickstart --data data/bars --set market.spread_ticks=0"


def test_import_prints_one_document(bellmark, tmp_path):
    write(tmp_path, [(1, 100, 3), (2, 101, 3), (6, 140, 3)])
    found = bellmark("datasets", "import", "bars.csv", *SAY, "--json").json
    assert found["path"] == "data/bars" and found["symbols"]["X"]["gaps"]["missing_bars"] == 3
    assert found["next"].startswith("bellmark train") and found["warnings"] == []


def test_the_next_command_has_the_costs_of_the_instrument(bellmark, tmp_path):
    write(tmp_path, [(minute, 100, 3) for minute in range(60, 90)])
    found = bellmark("datasets", "import", "bars.csv", *SAY[:2], *SAY[4:], "--symbol", "ESH24", "--instrument", "ES", "--json").json
    assert found["market"]["spread_ticks"] == 1 and " --set market.spread_ticks=1 " in found["next"]
    assert found["symbols"]["ESH24"]["bars"] == 30 and found["symbols"]["ESH24"]["instrument"]["contract_multiplier"] == 50


def test_a_wrong_row_is_one_line_and_leaves_nothing(bellmark, tmp_path):
    write(tmp_path, [(1, 100, 3), (1, 105, 3)])
    done = bellmark("datasets", "import", "bars.csv", *SAY)
    assert done.code == 1 and len(done.errors) == 1
    assert "data rows 1, 2" in done.errors[0] and "duplicate_conflicting=keep_first" in done.errors[0]
    assert not list((tmp_path / "data").iterdir())
    done = bellmark("datasets", "import", "bars.csv", *SAY, "--on", "duplicate-conflicting=keep_last")
    assert done.code == 0 and "left out (keep_last)" in done.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--on", "price_rnge=drop"], "no check named 'price_rnge'; did you mean 'price_range'"),
        (["--on", "price_range"], "--on: expected CHECK=POLICY"),
        (["--set", "opn_column=x"], "'opn_column'"),
        (["--set", "name=x"], "--set name"),
        (["--name", "../x"], "--name: expected letters"),
    ],
)
def test_wrong_options_are_one_line_with_code_two(bellmark, tmp_path, words, told):
    write(tmp_path, [(1, 100, 3), (2, 100, 3)])
    done = bellmark("datasets", "import", "bars.csv", *SAY, *words, *(["--name", "y"] if "name=x" in words else []))
    assert done.code == 2 and len(done.errors) == 1 and told in done.errors[0]


def test_help_names_every_check():
    text = datasets_import.command.help
    assert [name for name in CHECKS if name not in text] == []


def test_list_show_check_export(bellmark, imported, tmp_path):
    rows = bellmark("datasets", "list", "--json").json
    assert [row["name"] for row in rows if row["kind"] == "imported"] == ["bars"] and {"csv", "imported"} <= {row["name"] for row in rows}
    assert "imported, in data/" in bellmark("datasets", "list").out
    assert bellmark("datasets", "show", "bars", "--json").json["bars"] == 30
    shown = bellmark("datasets", "show", "data/bars").out
    assert "bars.csv" in shown and "sha256" in shown and "zone" in shown
    assert bellmark("datasets", "check", "bars").out == "bars: right\n"
    assert bellmark("datasets", "export", "bars", "--out", "out.csv").out == "file: out.csv\n"
    assert (tmp_path / "out.csv").read_text().splitlines()[1] == "X,2024-03-04T14:01:00Z,101.0,102.0,100.0,101.0,3.0"
    (tmp_path / "data/bars/X.parquet").write_bytes(b"PAR1")
    done = bellmark("datasets", "check", "bars", "--json")
    assert done.code == 1 and done.json[0]["ok"] is False and "X.parquet" in done.errors[0]


def test_a_name_that_nothing_has_is_one_line(bellmark, imported):
    done = bellmark("datasets", "show", "bras")
    assert done.code == 2 and "did you mean 'bars'" in done.errors[0]
    assert bellmark("datasets", "check", "nothing").code == 2


def test_formats_and_make(bellmark, tmp_path):
    rows = bellmark("datasets", "formats", "--json").json
    assert {"csv", "parquet"} <= {row["name"] for row in rows} and all(row["summary"] for row in rows)
    assert "csv" in bellmark("datasets", "formats").out
    write(tmp_path, [(minute, 100, 3) for minute in range(1, 31)])
    words = [word for text in ("path=bars.csv", "stamp=close", "zone=UTC", "symbol=X") for word in ("--set", text)]
    done = bellmark("datasets", "make", "csv", "--out", "made", *words)
    assert done.code == 0 and "data/made (30 bars of X)" in done.out and "--data data/made" in done.err
    assert bellmark("datasets", "check", "made").code == 0


def test_data_takes_the_place_of_a_profiles_own_and_is_recorded(bellmark, imported):
    shown = bellmark("profiles", "show", "quickstart", "--data", "bars", "--json").json["values"]["data"]
    assert shown["use"] == {"value": "imported", "origin": "--data"} and shown["path"] == {"value": "data/bars", "origin": "--data"}
    more = bellmark("profiles", "show", "quickstart", "--data", "bars", "--set", "data.every=5m", "--json").json["values"]["data"]
    assert more["every"]["value"] == "5m" and more["path"]["value"] == "data/bars"
    done = bellmark("profiles", "show", "quickstart", "--data", "bars2")
    assert done.code == 2 and "did you mean 'bars'" in done.errors[0]
    done = bellmark("backtest", "flat", "--data", "bars")
    assert done.code == 2 and done.errors[0].startswith("error: --data: it goes with a rule strategy and --profile")


def test_progress_is_a_line_every_ten_seconds_where_there_is_no_terminal(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(datasets_import.time, "perf_counter", lambda: now[0])
    lines = datasets_import._Lines()
    for now[0] in range(1, 26):
        lines("reading", now[0] * 10**6, 10**8)
    lines("writing", 5, 1000)
    assert capsys.readouterr().err.splitlines() == ["import: reading: 10% of 100 MB", "import: reading: 20% of 100 MB"]


@pytest.mark.cpu
def test_a_rule_strategy_runs_on_an_imported_dataset_and_a_suspect_one_warns(bellmark, tmp_path):
    lines = [f"2020-{month:02d}-{day:02d}T21:00:00Z,{p},{p + 1},{p - 1},{p},9"
             for month in range(1, 7) for day in range(1, 29) for p in [400 + day if month < 4 else 107 + day / 4]]  # fmt: skip
    (tmp_path / "bars.csv").write_text("\n".join([HEADER, *lines]) + "\n")
    assert bellmark("datasets", "import", "bars.csv", *SAY, "--name", "daily", "--tick-size", "0.25").code == 0
    done = bellmark("backtest", "buy_and_hold", "--profile", "smoke", "--data", "daily", "--json")
    assert done.code == 0, done.err
    assert "possible split 1:4" in json.dumps(done.json)


def test_bars_of_bid_and_ask_are_joined_and_export_names_every_file(bellmark, tmp_path):
    write(tmp_path, [(minute, 100, 3) for minute in range(1, 6)], "bid.csv")
    write(tmp_path, [(minute, 101, 3) for minute in range(1, 6)], "ask.csv")
    done = bellmark("datasets", "import", "--bid", "bid.csv", "--ask", "ask.csv", *SAY, "--name", "fx", "--json")
    assert done.code == 0 and done.json["symbols"]["X"]["columns"].count("ask_low") == 1, done.err
    assert bellmark("datasets", "export", "fx", "--out", "fx.csv", "--json").json == {"file": "fx.csv"}
    done = bellmark("datasets", "import", *SAY)
    assert done.code == 2 and "at least one file" in done.errors[0]
