"""Golden backtests: numbers agreed by several engines, to 1e-9 on money and exact on counts.

Runs on the cases kept in the repository, or with `--golden DIR` on every case of DIR/backtest/golden.json over DIR/backtest/bars.csv, its
equity_CASE.csv and fills_CASE.csv compared bar by bar where they are there. A case that needs what is not known here is a failure.
"""

import csv
import hashlib
import itertools
import json
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from market_cases import market_data

from bellmark.backtester import run_strategy
from bellmark.bars import Bars
from bellmark.component import make
from bellmark.host import host
from bellmark.instrument import Instrument

pytestmark = pytest.mark.cpu
KEPT = Path(__file__).parent / "data"
FAMILIES = ("backtest", "evaluation", "optimum", "rl")
KINDS = ("hold", "sma", "sma_close", "reverse_units", "stop")
SETTINGS = {"cash", "fee", "slip", "price_rounding", "lo", "kind", "units", "stop", "anchor", "arm", "fast", "slow"}
ARMS = {"same": "fill_bar", "next": "next_bar"}
METRICS = {
    "total_return": "total_return", "max_drawdown": "max_drawdown", "sharpe": "sharpe_ratio", "sortino": "sortino_ratio",
    "ann_volatility": "annual_volatility", "closed_trades": "trades",
}  # fmt: skip
ACCOUNT = {"end_equity", "fees", "fills", "open_units"}


def pytest_generate_tests(metafunc):
    if "case" in metafunc.fixturenames:
        given = metafunc.config.getoption("--golden")
        folder = (Path(given) if given else KEPT) / "backtest"
        golden = documents(folder)
        names = dict.fromkeys((*golden.get("parameters", {}), *golden.get("results", {})))
        metafunc.parametrize("case", [(folder, name) for name in names], ids=list(names))


@cache
def documents(folder):
    return json.loads((folder / "golden.json").read_text()) if folder.is_dir() else {}


@cache
def bars_in(folder):
    """The bars, and the grid on which their prices lie."""
    with (folder / "bars.csv").open() as file:
        rows = list(csv.DictReader(file))
    stamps = [int(datetime.fromisoformat(row["date"]).replace(hour=21, tzinfo=UTC).timestamp()) * 10**9 for row in rows]
    columns = {name: np.array([float(row[name]) for row in rows]) for name in ("open", "high", "low", "close", "volume")}
    decimals = max(-Decimal(row[name]).as_tuple().exponent for row in rows for name in ("open", "high", "low", "close"))
    return Bars(symbol="GOLD", ts_event=np.array(stamps), **columns), Fraction(1, 10 ** max(decimals, 0))


def common(a, b):
    """The largest number that divides both."""
    return Fraction(np.gcd.reduce([a.numerator * b.denominator, b.numerator * a.denominator]).item(), a.denominator * b.denominator)


def exact(value):
    return Fraction(str(value))


def grids(values, grid, bars):
    """Price quantum and lot: the finest exact ones, or the next coarser with which money stays in int64.

    A fill is a price of the grid times (1 + slip), a stop such a fill times (1 - stop), its own fill that times (1 - slip) again. All-in
    units are fractions: a lot is about 1e-10 of them, or 1e-9.
    """
    quantum, stop = grid, values.get("stop", 0)
    for share in (values["slip"], *((stop, values["slip"]) if stop else ())):
        quantum = common(quantum, quantum * exact(share)) if share else quantum
    units, highest, lowest = exact(values["units"]), exact(bars.high.max()), exact(bars.low.min())
    lots = [common(Fraction(1), units)]
    if units == 0:
        units = 2 * exact(values["cash"]) / lowest
        tens = Fraction(10) ** (len(str(int(units))) - 1)
        lots = [tens / 10**10, tens / 10**9]
    for coarser, lot in itertools.product(range(12), lots):
        step = quantum if coarser == 0 else common(grid, Fraction(1, 10 ** (12 - coarser)))
        value = step * lot * 10**9
        if step >= quantum and value.denominator < 10**9 and highest / step * (units / lot) * max(value, 1) * 4 < 2**62:
            return step, lot
    raise AssertionError(f"no quantum and lot for {values}")


def backtest_of(folder, name):
    """The case on the engine, and its lot."""
    golden = documents(folder)
    own = golden["parameters"][name]
    values = {**golden["defaults"], **own}
    kind = values["kind"]
    assert kind in KINDS, f"{name}: no test knows the kind {kind!r}"
    assert not values.keys() - SETTINGS, f"{name}: no test knows {sorted(values.keys() - SETTINGS)}"
    assert str(values.get("price_rounding", "none")).startswith("none"), f"{name}: {values['price_rounding']}"
    bars, grid = bars_in(folder)
    quantum, lot = grids(values, grid, bars)
    instrument = Instrument("GOLD", price_quantum=float(quantum), data_quantum=float(grid), lot_size=float(lot))
    market = {
        "start_equity": float(values["cash"]), "fee_bps": float(exact(values["fee"]) * 10_000),
        "slippage_bps": float(exact(values["slip"]) * 10_000), "same_close": kind == "sma_close",
    }  # fmt: skip
    sizing = ("fixed_lots", {"lots": int(exact(values["units"]) / lot)})
    if values["units"] == 0:
        sizing = ("equity_fraction", {"fraction": 1.0, "fees": True})
        market |= {"size_at": "fill", "initial_margin_rate": 0.0 if values["lo"] < 0 else 1.0}
    if kind == "stop":
        market |= {"stop_loss": float(values["stop"]), "stop_from": ARMS[values["arm"]], "stop_anchor": values["anchor"]}
    averages = {"fast": values.get("fast", 10), "slow": values.get("slow", 30)}
    lowest = own.get("lo", -1) if kind == "reverse_units" else values["lo"]
    strategy = ("buy_and_hold", {}) if kind == "hold" else ("sma_cross", {**averages, "short_exposure": float(lowest)})
    data = market_data(bars, instrument, sizing=sizing, rules=("protect",), **market)
    return run_strategy(data, make(host().get("strategy", strategy[0]), strategy[1], strategy[0])), float(lot)


def close(value):
    return pytest.approx(value, rel=1e-9, abs=1e-9 if value == 0 else 0.0)


def rows_of(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_case(case):
    folder, name = case
    assert name in documents(folder)["parameters"], f"{name}: results without parameters"
    result, lot = backtest_of(folder, name)
    lane, curve = result.lanes[0], result.portfolio()
    expected = documents(folder)["results"].get(name, {})
    assert not expected.keys() - METRICS.keys() - ACCOUNT, f"{name}: no test knows {sorted(expected.keys() - METRICS.keys() - ACCOUNT)}"
    found = {
        "end_equity": lane.equity_T[-1] / 1e9, "fees": lane.costs["fees"], "fills": len(lane.fills), "open_units": lane.open_position * lot,
        **{theirs: host().get("metric", ours)().compute(curve) for theirs, ours in METRICS.items()},
    }  # fmt: skip
    for key, value in expected.items():
        if value is None:
            assert found[key] is None or np.isnan(found[key]), key
        elif key in ("fills", "closed_trades"):
            assert found[key] == value, key
        else:
            assert found[key] == close(value), key
    equity, fills = folder / f"equity_{name}.csv", folder / f"fills_{name}.csv"
    assert expected or equity.exists() or fills.exists(), f"{name}: there is nothing to compare with"
    if equity.exists():
        compare_equity(rows_of(equity), lane)
    if fills.exists():
        compare_fills(rows_of(fills), lane, lot, result)


def day(stamp):
    return datetime.fromtimestamp(int(stamp) // 10**9, UTC).date().isoformat()


def compare_equity(rows, lane):
    assert [row["date"] for row in rows] == [day(stamp) for stamp in lane.stamp_T]
    for t, row in enumerate(rows):
        assert lane.equity_T[t] / 1e9 == close(float(row["equity"])), f"bar {t}"


def compare_fills(rows, lane, lot, result):
    assert [int(row["bar"]) for row in rows] == lane.fills["bar"].tolist()
    for row, fill in zip(rows, lane.fills, strict=True):
        units = int(fill["lots"]) * lot
        found = {"units": units, "price": float(fill["notional"]) / abs(units), "fee": float(fill["fee"])}
        assert day(fill["stamp"]) == row["date"]
        assert found == {key: close(float(row[key])) for key in found}, f"bar {row['bar']}"


def test_kept_bars_are_those_that_the_numbers_were_made_from():
    folder = KEPT / "backtest"
    given = (folder / "bars.csv").read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")  # a checkout may have changed line ends
    assert hashlib.sha256(given).hexdigest() == documents(folder)["bars_sha256"]


def test_every_family_that_is_given_is_known(request):
    given = request.config.getoption("--golden")
    folders = sorted(path.name for path in Path(given or KEPT).iterdir() if path.is_dir())
    assert not set(folders) - set(FAMILIES), f"no test knows {sorted(set(folders) - set(FAMILIES))}"
    assert folders, f"{given}: holds none of {', '.join(FAMILIES)}"
