"""Drawdown bars and dates against the golden tables."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from bellmark.evaluation.curve import Curve, curve_of_returns
from bellmark.evaluation.drawdown import drawdown_series, drawdown_table

DATA = Path(__file__).parents[1] / "golden" / "data" / "evaluation"
SERIES = json.loads((DATA / "metrics.json").read_text("utf-8"))
EDGES = json.loads((DATA / "edge_cases.json").read_text("utf-8"))


def day(ns):
    return str(np.datetime64(ns, "ns").astype("datetime64[s]")).replace("T", " ").removesuffix(" 00:00:00")


@pytest.mark.parametrize("name", SERIES)
def test_ten_deepest_drawdowns_have_the_golden_bars_dates_and_depths(name):
    rows = list(csv.DictReader((DATA / f"{name}.csv").open(encoding="utf-8")))
    stamps = np.array([row["date"] for row in rows], dtype="datetime64[ns]").astype(np.int64)
    curve = curve_of_returns(np.array([float(row["ret"]) for row in rows]), stamps, 252)
    table = drawdown_table(curve)
    assert len(table) == SERIES[name]["n_drawdowns"]
    for found, wanted in zip(table, SERIES[name]["drawdowns"], strict=False):
        assert found.depth == pytest.approx(wanted["depth"], rel=1e-12)
        assert (found.peak - 1, found.first_underwater - 1, found.valley - 1) == (
            wanted["peak_bar"], wanted["first_underwater_bar"], wanted["valley_bar"]
        )  # fmt: skip
        assert (found.recovery - 1 if found.recovery is not None else None) == wanted["recovery_bar"]
        assert found.bars_underwater == wanted["bars_underwater"]
        assert day(found.valley_ns) == wanted["valley_date"]
        if wanted["peak_bar"] >= 0:
            assert day(found.peak_ns) == wanted["peak_date"]


@pytest.mark.parametrize("name", EDGES)
def test_deepest_drawdown_of_degenerate_inputs(name):
    returns = np.array([float(value) for value in EDGES[name]["returns"]])
    curve = curve_of_returns(returns, np.arange(returns.size), 252)
    reference = EDGES[name]["reference"]
    table = drawdown_table(curve, 1)
    if reference["mdd_valley_bar"] is None:
        assert table == []
        return
    (found,) = table
    assert (found.peak - 1, found.valley - 1) == (reference["mdd_peak_bar"], reference["mdd_valley_bar"])
    assert (found.recovery - 1 if found.recovery is not None else None) == reference["mdd_recovery_bar"]
    assert found.bars_underwater == reference["mdd_bars_underwater"]


def test_equal_depths_are_listed_earliest_first_and_recovery_is_the_bar_at_the_high():
    equity = np.array([100.0, 50.0, 100.0, 50.0, 200.0, 100.0])
    table = drawdown_table(Curve(stamp_ns=np.arange(6), equity=equity, periods_per_year=252))
    assert [row.valley for row in table] == [1, 3, 5]
    assert [row.recovery for row in table] == [2, 4, None]


def test_series_does_not_change_its_input_and_starts_at_zero():
    equity = np.array([1.0, 2.0, 1.0])
    assert drawdown_series(equity).tolist() == [0.0, 0.0, -0.5]
    assert equity.tolist() == [1.0, 2.0, 1.0]
