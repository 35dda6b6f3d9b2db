"""Accounts over splits, dividends and rolls: the simulator's own, on adjusted bars."""

from dataclasses import replace

import numpy as np
import pytest
from market_cases import bars_of, market_data

from bellmark import calendar
from bellmark.backtester import run_batch_policy
from bellmark.bars import Bars
from bellmark.contracts import splice
from bellmark.datasets.actions import Action, apply, read_actions
from bellmark.datasets.chains import adjusted
from bellmark.instrument import Instrument

pytestmark = [pytest.mark.cpu, pytest.mark.slow]  # three kernels of the lane step

SHARE = Instrument("X", tick_size=0.01)


def played(data, actions):
    """Plays exposures -1, 0 and 1 as 0, 1 and 2 in turn, then repeats the last; equity after each bar in currency, and what was booked."""
    order = iter([*actions, *[actions[-1]] * 100])
    found = run_batch_policy(data, lambda observation, allowed: np.array([next(order)]), data.no_normalisation(1))
    return (found.lanes[0].equity_T * 1e-9).round(6).tolist(), found.lanes[0].costs


def test_the_given_split_earns_its_return_and_not_a_crash(shared):
    folder = shared / "cases/11_split_not_adjusted"
    rows = np.array([line.split(",")[1:] for line in (folder / "bars.csv").read_text().split()[1:]], float)
    raw = replace(bars_of(rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3], rows[:, 4]), symbol="X")
    date_T = np.array([18_501, 18_502, 18_505, 18_506])  # 2020-08-27, 28, 31, 09-01
    raw = replace(raw, ts_event=calendar.date_close(date_T, None))
    bars, instrument = apply(raw, SHARE, read_actions(folder / "actions.csv"))
    data = market_data(bars, instrument, sizing=("fixed_lots", {"lots": 400}), same_close=True, start_equity=50_000.0)
    equity, _ = played(data, [2])
    assert equity == [50_000.0, 50_000.0, 51_600.0, 53_600.0]  # +7.2 %


def test_a_dividend_is_cash_of_the_holder_and_a_debt_of_the_short():
    raw = bars_of([100.0, 100.0, 100.0, 98.0, 98.0])
    ex = int(calendar.session_dates(raw.ts_event, None)[3])
    bars, instrument = apply(raw, SHARE, [Action(ex, "X", 1.0, 2.0)])
    long = market_data(bars, instrument, sizing=("fixed_lots", {"lots": 10}))
    equity, costs = played(long, [2])
    assert equity == [100_000.0, 100_000.0, 100_020.0, 100_000.0, 100_000.0]  # 2.00 a share, and then the fall of the ex-date
    assert costs["funding"] == -20.0
    equity, costs = played(long, [0])
    assert equity[-1] == 100_000.0 and costs["funding"] == 20.0
    assert played(long, [1, 1, 2])[1]["funding"] == 0.0  # who buys at the open of the ex-date has no right to it
    assert played(long, [2, 1, 1])[1]["funding"] == 0.0
    raw_data = market_data(raw, SHARE, sizing=("fixed_lots", {"lots": 10}))
    assert played(raw_data, [2])[0][-1] == 99_980.0


def test_an_account_in_split_adjusted_prices_is_that_of_raw_prices_with_lots_multiplied():
    """Before the split of 3:2 the raw account holds two thirds of the lots; both go from 30,000 to the same equity, bar by bar."""
    close = [30.0, 31.5, 33.0, 22.5, 23.0, 21.0]
    raw = bars_of(close)
    ex = int(calendar.session_dates(raw.ts_event, None)[3])
    bars, instrument = apply(raw, SHARE, [Action(ex, "X", 1.5)])
    data = market_data(bars, instrument, sizing=("fixed_lots", {"lots": 300}), same_close=True, start_equity=30_000.0)
    equity, _ = played(data, [2])
    shares = [200, 200, 200, 300, 300, 300]
    by_hand = [30_000 - 200 * 30 + count * price for count, price in zip(shares, close, strict=True)]
    assert equity == by_hand


def test_features_see_prices_freed_of_the_roll_and_the_account_pays_what_the_contracts_did():
    date_T = np.arange(16_000, 16_006)
    ts_T = calendar.date_close(date_T, None)

    def contract(symbol, ts, close):
        close_T = np.array(close)
        return Bars(symbol, ts, close_T, close_T, close_T, close_T, np.full(len(close_T), 1000.0))

    front = contract("A", ts_T[:4], [1776.0, 1775.5, 1775.5, 1775.0])
    following = contract("B", ts_T[2:], [1770.25, 1769.75, 1780.25, 1780.25])
    joined = splice([front, following], [int(ts_T[3])], "X")
    bars = adjusted(joined, "difference")
    es = Instrument("X", tick_size=0.25, contract_multiplier=50.0)
    features = [("log_return", {"window": 1})]
    data = market_data(bars, es, sizing=("fixed_lots", {"lots": 1}), same_close=True, features=features)
    seen = data.features.feature_STF[0, 1:, 0]
    assert seen == pytest.approx(np.diff(np.log(bars.signal_close)), abs=1e-7)
    jump = market_data(joined, es, features=features).features.feature_STF[0, 4, 0]
    assert jump == pytest.approx(np.log(1780.25 / 1775), abs=1e-7)
    equity, _ = played(data, [2])
    earned = (1775.0 - 1775.5) * 50 + (1780.25 - 1769.75) * 50  # from the second bar on, where the feature is known
    assert equity[-1] - equity[0] == earned == (bars.signal_close[-1] - bars.signal_close[1]) * 50
