"""Round trips from fills: scaling in and out, turning, open trades, several symbols."""

import numpy as np
import pytest

from bellmark.evaluation.curve import FILLS, Curve
from bellmark.evaluation.trades import trade_summary, trade_table


def table(*fills):
    """Fills as (stamp, symbol, lots, price, fee)."""
    rows = np.zeros(len(fills), FILLS)
    for row, (stamp, symbol, lots, price, fee) in zip(rows, fills, strict=True):
        row["stamp"], row["symbol"], row["lots"], row["notional"], row["fee"] = stamp, symbol, lots, abs(lots) * price, fee
    return trade_table(Curve(stamp_ns=np.array([0, 1]), equity=np.array([1.0, 1.0]), periods_per_year=252, fills=rows))


def test_long_trade_earns_the_difference_less_fees():
    (trade,) = table((1, 0, 2, 10.0, 1.0), (5, 0, -2, 12.0, 1.0))
    assert (trade["entry_ns"], trade["exit_ns"], trade["lots"], trade["closed"]) == (1, 5, 2, True)
    assert trade["profit"] == pytest.approx(2.0)


def test_short_trade_and_scaling_in_and_out_are_one_trade():
    (trade,) = table((1, 0, -1, 10.0, 0.0), (2, 0, -1, 12.0, 0.0), (3, 0, 1, 9.0, 0.0), (4, 0, 1, 8.0, 0.0))
    assert trade["lots"] == -2
    assert trade["profit"] == pytest.approx(5.0)


def test_fill_that_turns_the_position_ends_one_trade_and_starts_the_next():
    trades = table((1, 0, 2, 10.0, 0.0), (2, 0, -5, 11.0, 5.0), (3, 0, 3, 10.0, 0.0))
    assert trades["lots"].tolist() == [2, -3]
    assert trades["closed"].tolist() == [True, True]
    assert trades["profit"] == pytest.approx([2.0 - 2.0, 3.0 - 3.0])  # the fee of 5 is shared 2 to 3
    assert trades["cost"] == pytest.approx([2.0, 3.0])


def test_open_trade_has_no_profit_yet():
    (trade,) = table((1, 0, 2, 10.0, 0.0))
    assert not trade["closed"] and np.isnan(trade["profit"])
    summary = trade_summary(table((1, 0, 2, 10.0, 0.0)))
    assert (summary.closed, summary.open, summary.best) == (0, 1, None)


def test_symbols_are_kept_apart_and_ordered_by_entry():
    trades = table((1, 1, 1, 10.0, 0.0), (2, 0, 1, 20.0, 0.0), (3, 1, -1, 11.0, 0.0), (4, 0, -1, 19.0, 0.0))
    assert trades["symbol"].tolist() == [1, 0]
    assert trades["profit"] == pytest.approx([1.0, -1.0])


def test_no_fill_gives_no_trade():
    assert table().size == 0
    assert trade_summary(table()).average_win is None


def test_money_of_all_trades_equals_the_cash_of_all_fills():
    rng = np.random.default_rng(5)
    fills, position = [], 0
    for stamp in range(400):
        lots = int(rng.integers(-4, 5))
        position += lots
        fills.append((stamp, 0, lots, float(rng.uniform(5, 15)), 0.25 * abs(lots)))
    fills.append((400, 0, -position, 10.0, 0.25 * abs(position)))
    cash = sum(-lots * price - fee for _, _, lots, price, fee in fills)
    trades = table(*fills)
    assert trades["closed"].all()
    assert trades["profit"].sum() == pytest.approx(cash)


def test_what_adding_leaves_below_a_nano_of_currency_is_neither_profit_nor_loss():
    (trade,) = table((1, 0, 1, 0.1, 0.0), (2, 0, 1, 0.2, 0.0), (3, 0, -2, 0.15, 0.0))
    assert -0.1 - 0.2 + 2 * 0.15 != 0.0, "the sum of the floats is not"
    assert trade["profit"] == 0.0


def test_a_trade_at_prices_below_zero_earns_what_the_price_rose():
    (long,) = table((1, 0, 2, -10.0, 1.0), (5, 0, -2, 12.0, 1.0))
    (short,) = table((1, 0, -3, -4.0, 0.0), (5, 0, 3, -9.0, 0.5))
    assert (long["profit"], short["profit"]) == (pytest.approx(42.0), pytest.approx(14.5))
