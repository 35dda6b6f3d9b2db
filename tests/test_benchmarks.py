"""The benchmarks run from the repository alone."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def sweep():
    spec = importlib.util.spec_from_file_location("backtest_sweep", FOLDER / "backtest_sweep.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_without_peers_bellmark_runs_alone(sweep, monkeypatch, capsys, tmp_path):
    plans = []

    def process(command, cwd=None):
        assert "--peers" not in command
        plans.append(json.loads(command[command.index("--row") + 1]))
        return {"engine": "Bellmark", "rules": "fees", "configurations": plans[-1]["configurations"], "rate": 1e6, "cpu": 1.0, "wall": 1.0,
                "peak_mb": 1.0}  # fmt: skip

    monkeypatch.setattr(sweep, "process", process)
    monkeypatch.setattr(sys, "argv", ["backtest_sweep.py", "--out", str(tmp_path / "seen.json")])
    sweep.main()
    table = capsys.readouterr().out.splitlines()
    assert len(plans) == 5 and len(table) == 7 and table[2] == "| Bellmark | fees | 100 | 1.0 |  | 1.0 | 1 |"
    assert len(json.loads((tmp_path / "seen.json").read_text())["rows"]) == 5


def test_a_folder_without_the_peers_scripts_is_refused(sweep, monkeypatch, capsys, tmp_path):
    for words in (["--peers", str(tmp_path)], ["--vectorbt", "python"]):
        monkeypatch.setattr(sys, "argv", ["backtest_sweep.py", *words])
        with pytest.raises(SystemExit):
            sweep.main()
        assert "peers" in capsys.readouterr().err


def test_bars_and_grid_by_formula_are_legal(sweep):
    opening, high, low, close, volume = sweep.make_bars(2_000)
    assert np.all(low > 0) and np.all(low <= np.minimum(opening, close)) and np.all(high >= np.maximum(opening, close))
    assert np.all(volume >= 1000) and [len(set(sweep.grid(count))) for count in (1, 100, 1000)] == [1, 100, 1000]
    assert all(fast < slow for fast, slow in sweep.grid(1000))
