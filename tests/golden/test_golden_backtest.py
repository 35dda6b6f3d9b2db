"""Golden backtests: 500 bars, numbers agreed by several engines, to 1e-9 on money and exact on counts.

The cases are those of fixed lots and market orders at the next open; the others come with the rules that they need.
"""

import csv
import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from market_cases import market_data

from bellmark.backtester import run_strategy
from bellmark.bars import Bars
from bellmark.component import make
from bellmark.host import host
from bellmark.instrument import Instrument

DATA = Path(__file__).parent / "data" / "backtest"
GOLDEN = json.loads((DATA / "golden.json").read_text())
STRATEGIES = {
    "hold": ("buy_and_hold", {}),
    "sma": ("sma_cross", {"fast": 10, "slow": 30}),
    "reverse_units": ("sma_cross", {"fast": 10, "slow": 30, "short_exposure": -1.0}),
}


def bars():
    with (DATA / "bars.csv").open() as file:
        rows = list(csv.DictReader(file))
    stamps = [int(datetime.fromisoformat(row["date"]).replace(hour=21, tzinfo=UTC).timestamp()) * 10**9 for row in rows]
    columns = {name: np.array([float(row[name]) for row in rows]) for name in ("open", "high", "low", "close", "volume")}
    return Bars(symbol="GOLD", ts_event=np.array(stamps), **columns)


def result_of(name):
    values = {**GOLDEN["defaults"], **GOLDEN["parameters"][name]}
    strategy, settings = STRATEGIES[values["kind"]]
    data = market_data(
        bars(), Instrument("GOLD", tick_size=0.01), sizing=("fixed_lots", {"lots": values["units"]}), start_equity=float(values["cash"]),
        fee_bps=values["fee"] * 1e4, slippage_bps=values["slip"] * 1e4,
    )  # fmt: skip
    return run_strategy(data, make(host().get("strategy", strategy), settings, strategy))


@pytest.mark.parametrize("name", GOLDEN["results"])
def test_golden_backtest(name):
    expected, result = GOLDEN["results"][name], result_of(name)
    lane, curve = result.lanes[0], result.portfolio()
    assert lane.equity_T[-1] / 1e9 == pytest.approx(expected["end_equity"], rel=1e-9)
    assert lane.costs["fees"] == pytest.approx(expected["fees"], rel=1e-9)
    assert (len(lane.fills), lane.open_position) == (expected["fills"], expected["open_units"])
    wanted = {"total_return": "total_return", "max_drawdown": "max_drawdown", "sharpe": "sharpe_ratio", "sortino": "sortino_ratio",
              "ann_volatility": "annual_volatility"}  # fmt: skip
    for theirs, ours in wanted.items():
        assert host().get("metric", ours)().compute(curve) == pytest.approx(expected[theirs], rel=1e-9), ours
    assert host().get("metric", "trades")().compute(curve) == expected["closed_trades"]
