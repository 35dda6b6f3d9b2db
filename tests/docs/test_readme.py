"""The code of the README runs."""

import re
from pathlib import Path

import pytest

import bellmark
from bellmark.api import resolve_profile

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
