"""The code of the README runs, and the numbers in it that do not depend on the processor are what the program prints."""

import re
from pathlib import Path

import pytest

import bellmark
from bellmark.api import describe_backtests, resolve_profile
from bellmark.cli.results import print_backtests

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
API = next(block for block in BLOCKS if "import bellmark\n" in block)
PLUGIN = next(block for block in BLOCKS if "hookimpl" in block)

pytestmark = pytest.mark.cpu


def test_api_is_eight_lines_and_the_plugin_fifteen():
    assert len([line for line in API.splitlines() if line.strip()]) <= 8
    assert len([line for line in PLUGIN.splitlines() if line.strip()]) <= 15


def test_api_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert '"demo"' in API
    exec(API.replace('"demo"', '"smoke"'), {})
    assert "sharpe_ratio" in capsys.readouterr().out
    assert (tmp_path / "runs" / "smoke-1" / "report.html").exists()


def test_plugin_trains_from_a_folder(tmp_path, monkeypatch):
    (tmp_path / "plugs").mkdir()
    (tmp_path / "plugs" / "slope.py").write_text(PLUGIN, encoding="utf-8")
    monkeypatch.setenv("BELLMARK_PLUGINS", str(tmp_path / "plugs"))
    changes = {"features.slope.window": 10}
    assert resolve_profile("smoke", overrides=changes).features["slope"].window == 10
    run = bellmark.train("smoke", overrides=changes, runs=tmp_path / "runs")
    assert [plugin["plugin"] for plugin in run.manifest["plugins"] if plugin["name"] == "slope"] == ["slope"]


@pytest.mark.parametrize("strategy", ["buy_and_hold", "flat", "sma_cross"])
def test_demo_output_holds_what_rule_strategies_earn(strategy, tmp_path, monkeypatch, capsys):
    """Trained learners differ between processors; rule strategies are exact, so a stale sample shows here."""
    monkeypatch.chdir(tmp_path)
    print_backtests(describe_backtests(bellmark.backtest(strategy, profile="demo")))
    printed = capsys.readouterr().out
    title, header = README[README.index("test: ") :].splitlines()[0], "account total return sharpe ratio max drawdown costs trades"
    assert title in printed
    assert set(header.split()) <= set(re.findall(r"\w+", README[README.index(title) : README.index("median of 4 learners")]))
    cells = next(line.split() for line in printed.splitlines() if line.split()[:1] == [strategy])
    name, total, _, sharpe, _, _, drawdown, costs, _, trades = cells
    assert [name, total, sharpe, drawdown, costs, trades] in [line.split() for line in README.splitlines()]


def test_picture_of_the_report_is_small():
    assert "(docs/report.png)" in README
    assert (Path(__file__).parents[2] / "docs" / "report.png").stat().st_size < 300_000
