"""Splits and dividends: files, adjusted prices, cash, and that an account is the same."""

import zipfile
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellmark import calendar, clock
from bellmark.bars import SIGNALS, Bars, check
from bellmark.datasets.actions import Action, apply, from_columns, ratio, read_actions, split_factors, to_columns
from bellmark.errors import BellmarkError, DataError, UsageError
from bellmark.instrument import Instrument, Session
from bellmark.tape import compile_tape

SHARE = Instrument("X", 0.01)


def number(text):
    return int(np.datetime64(text, "D").astype(np.int64))


def daily(first, closes, symbol="X", session=None):
    """Bars of consecutive weekdays from a date, each within a quarter of its close."""
    date_T = np.busday_offset(first, np.arange(len(closes)), roll="forward").astype(np.int64)
    close_T = np.array(closes, float)
    ts_T = calendar.date_close(date_T, session)
    return Bars(symbol, ts_T, close_T, close_T + 0.25, close_T - 0.25, close_T, np.full(len(closes), 100.0))


def written(tmp_path, text):
    path = tmp_path / "actions.csv"
    path.write_text(text)
    return path


# ---- files --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("date,kind,ratio\n2020-08-31,split,4\n", [Action(number("2020-08-31"), "", 4.0)]),
        ("date,symbol,split,dividend\n2020-08-31,X,4:1,\n2020-08-07,X,,0.82\n",
         [Action(number("2020-08-07"), "X", 1.0, 0.82), Action(number("2020-08-31"), "X", 4.0)]),
        ("\ufeffDate,Dividends,Stock Splits\n2020-08-31 00:00:00-04:00,0.5,4.0\n2020-09-01,0.0,0.0\n",
         [Action(number("2020-08-31"), "", 4.0, 0.5)]),
        ("date,type,value\n20200831,Split,1/10\n20200831,dividend,0.1\n", [Action(number("2020-08-31"), "", 0.1, 0.1)]),
        ("20200828,0.99,0.25,100\n20201105,0.99,1,110\n20501231,1,1,0\n",
         [Action(number("2020-08-29"), "", 4.0), Action(number("2020-11-06"), "", 1.0, 110 * (1 - 0.99))]),
    ],
)  # fmt: skip
def test_files_of_several_layouts(tmp_path, text, right):
    found = read_actions(written(tmp_path, text))
    assert [(each.date, each.symbol, each.split) for each in found] == [(each.date, each.symbol, each.split) for each in right]
    assert np.allclose([each.dividend for each in found], [each.dividend for each in right], rtol=1e-12)
    assert from_columns(to_columns(found)) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "found an empty file"),
        ("date,price\n2020-08-31,4\n", "expected columns date and split, dividend"),
        ("date,split\n2020-13-31,4\n", "line 2: expected a date as YYYY-MM-DD, found '2020-13-31'"),
        ("date,split\n2020-08-31,four\n", "line 2: split: expected new shares for an old one such as 4 or 4:1, found 'four'"),
        ("date,split\n2020-08-31,-4\n", "line 2: split: expected new shares"),
        ("date,dividend\n2020-08-31,nan\n", "line 2: dividend: expected an amount above 0, found 'nan'"),
        ("date,dividend\n2020-08-31,0.5\n2020-08-31,0.6\n", "line 3: a second dividend of the symbol on 2020-08-31"),
        ("date,dividend\n2020-08-31\n", "line 2: expected 2 cells, found 1"),
        ("date,kind,ratio\n2020-08-31,merger,4\n", "line 2: expected split or dividend, found 'merger'"),
        ("20200828,0.99,0.25,100\n20200101,1,1,0\n", "line 2: expected rows in order of time"),
        ("20200828,0.99\n20210101,1,1\n", "expected columns date and split, dividend"),
        ("20200828,0,1,5\n", "line 1: factor: expected an amount above 0, found '0'"),
    ],
)
def test_a_wrong_file_names_the_line(tmp_path, text, message):
    with pytest.raises(DataError, match=message) as caught:
        read_actions(written(tmp_path, text))
    assert "\n" not in str(caught.value) and "actions.csv" in str(caught.value)


def test_absent_and_binary_files_are_one_line(tmp_path):
    with pytest.raises(DataError, match="it cannot be read"):
        read_actions(tmp_path / "no.csv")
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(DataError, match="expected a CSV file of splits and dividends"):
        read_actions(tmp_path / "b.csv")


@pytest.mark.parametrize(
    ("written_as", "exact"), [(6.99998, 7), (0.1428572, Fraction(1, 7)), (1.5, Fraction(3, 2)), (0.05, Fraction(1, 20))]
)
def test_ratios_are_those_of_whole_numbers(written_as, exact):
    assert ratio(written_as) == exact


def test_the_factor_file_of_apple_gives_its_splits_and_dividends(shared):
    found = read_actions(shared / "data/09_us_equity_lean/factor_aapl.csv", "AAPL")
    splits = [(np.datetime64(each.date, "D").item().isoformat(), each.split) for each in found if each.split != 1]
    assert splits == [("2000-06-21", 2.0), ("2005-02-26", 2.0), ("2014-06-07", 7.0), ("2020-08-29", 4.0)]
    cash = {each.date: each.dividend for each in found if each.dividend}
    assert cash[number("2012-08-09")] == pytest.approx(2.65, abs=2e-4)
    assert cash[number("2020-08-07")] == pytest.approx(0.82, abs=2e-4)


# ---- prices -------------------------------------------------------------------------------------------------------------------------


def test_given_split_leaves_the_value_of_a_position_and_its_return(shared):
    folder = shared / "cases/11_split_not_adjusted"
    rows = [line.split(",") for line in (folder / "bars.csv").read_text().split()[1:]]
    columns = np.array([row[1:] for row in rows], float).T
    ts_T = (np.array([row[0] for row in rows], "datetime64[D]").astype(np.int64) + 1) * clock.DAY
    raw = Bars("AAPL", ts_T, *columns)
    actions = read_actions(folder / "actions.csv")
    bars, instrument = apply(raw, SHARE, actions)
    assert bars.close.tolist() == [125.0, 125.0, 129.0, 134.0]
    lots_T = 100 * split_factors(raw, SHARE, actions)[0] / split_factors(raw, SHARE, actions)  # shares of each date
    assert lots_T.tolist() == [100, 100, 400, 400]
    assert (lots_T * raw.close).tolist() == [50_000, 50_000, 51_600, 53_600] == (400 * bars.close).tolist()
    assert bars.volume.tolist() == [184, 188, 225, 152]
    assert instrument.data_quantum == 0.0025
    compile_tape([(bars, instrument)], cached=False)


PRICES = st.lists(st.integers(2_000, 50_000), min_size=6, max_size=12)


@given(PRICES, st.sampled_from([2, 4, 0.1, 1.5, 0.05, 10]), st.sampled_from([2, 5, 0.5, 7, 3]), st.data())
def test_value_and_profit_are_those_of_raw_prices_with_lots_multiplied(cents, first, second, data):
    a, b = sorted(data.draw(st.lists(st.integers(1, len(cents) - 1), min_size=2, max_size=2, unique=True)))
    raw = daily("2024-03-04", [cent / 100 for cent in cents])
    date_T = calendar.session_dates(raw.ts_event, None)
    actions = [Action(int(date_T[a]), "", first), Action(int(date_T[b]), "", second)]
    bars, instrument = apply(raw, SHARE, actions)
    check(bars)
    factor_T = split_factors(raw, SHARE, actions)
    lots_T = 1 / factor_T  # of one share of the last date
    # prices off a decimal grid are rounded to 1e-6, others not at all
    assert np.allclose(lots_T * raw.close, bars.close, rtol=0, atol=6e-7)
    assert np.allclose(raw.volume * factor_T, bars.volume)
    tape = compile_tape([(bars, instrument)], cached=False)
    assert np.allclose(tape.close_ST[0] * float(tape.instruments[0].quantum), bars.close, rtol=0, atol=1e-9)


def test_a_split_that_gives_decimal_prices_is_exact_and_another_is_rounded():
    raw = daily("2024-03-04", [100.01, 25.0])
    assert apply(raw, SHARE, [Action(number("2024-03-05"), "X", 4.0)])[0].close[0] == 25.0025
    bars, instrument = apply(raw, SHARE, [Action(number("2024-03-05"), "X", 7.0)])
    assert (bars.close[0], instrument.data_quantum) == (14.287143, 1e-6)
    without = Instrument("X")
    assert apply(raw, without, [Action(number("2024-03-05"), "X", 7.0)])[0].close[0] == 100.01 / 7


def test_actions_of_others_and_outside_the_bars_change_nothing():
    raw = daily("2024-03-04", [100.0, 101.0])
    away = [Action(number("2024-03-05"), "Y", 4.0), Action(number("2024-03-04"), "X", 4.0), Action(number("2024-03-06"), "X", 4.0)]
    bars, instrument = apply(raw, SHARE, away)
    assert bars is raw and instrument is SHARE


def test_a_split_on_a_weekend_comes_before_the_next_session():
    raw = daily("2024-03-08", [100.0, 25.0])  # a Friday and a Monday
    assert apply(raw, SHARE, [Action(number("2024-03-09"), "", 4.0)])[0].close.tolist() == [25.0, 25.0]


def test_splits_left_in_are_said():
    raw = daily("2024-03-04", [100.0, 25.0])
    bars, _ = apply(raw, SHARE, [Action(number("2024-03-05"), "", 4.0)], adjust="none")
    assert bars.close.tolist() == [100.0, 25.0]
    assert bars.notes == ("X: 1 splits are not taken out of the prices; each looks like a profit or a loss",)


def test_what_the_prices_are_adjusted_for_already_is_not_done_again():
    raw = daily("2024-03-04", [25.0, 25.0])
    both = [Action(number("2024-03-05"), "", 4.0, 0.5)]
    split, _ = apply(raw, SHARE, both, basis="split")
    assert split.close.tolist() == [25.0, 25.0] and split.funding_rate[0] == -0.5 / 25
    assert apply(raw, SHARE, both, basis="split_dividend")[0] is raw
    with pytest.raises(UsageError, match="must be said: one of raw, split, split_dividend, found 'unknown'"):
        apply(raw, SHARE, both, basis="unknown")
    assert apply(raw, SHARE, both, adjust="none", basis="unknown")[0] is raw


# ---- dividends ----------------------------------------------------------------------------------------------------------------------


def test_a_dividend_is_paid_in_cash_to_who_holds_over_the_last_close_before_it():
    raw = daily("2024-03-04", [100.0, 102.0, 101.0, 103.0])
    bars, instrument = apply(raw, SHARE, [Action(number("2024-03-06"), "", 1.0, 1.53)])
    assert bars.close.tolist() == raw.close.tolist() and instrument == SHARE
    assert np.isnan(bars.funding_rate[[0, 2, 3]]).all()
    tape = compile_tape([(bars, instrument)], cached=False)
    rate, mark = tape.extra_ST["funding_rate"][0, 1], tape.extra_ST["funding_mark"][0, 1] * float(tape.instruments[0].quantum)
    assert -rate * 1e-9 * mark == pytest.approx(1.53, abs=1e-7)
    # features see a price without the fall of the ex-date
    assert bars.signal_close == pytest.approx([100.0 * (1 - 1.53 / 102), 102.0 - 1.53, 101.0, 103.0])
    assert tape.signal_price("close")[0] * float(tape.instruments[0].quantum) == pytest.approx(bars.signal_close, abs=0.0026)


def test_dividends_before_a_split_are_shares_of_their_own_date():
    raw = daily("2024-03-04", [400.0, 396.0, 100.0, 101.0])
    actions = [Action(number("2024-03-05"), "", 1.0, 4.0), Action(number("2024-03-06"), "", 4.0)]
    bars, _ = apply(raw, SHARE, actions)
    assert bars.close.tolist() == [100.0, 99.0, 100.0, 101.0]
    assert bars.funding_rate[0] == pytest.approx(-1.0 / 100)  # 4.00 a share are 1.00 a quarter of it


def test_actions_of_one_gap_in_the_bars_are_taken_in_the_order_of_their_dates():
    raw = daily("2024-03-04", [800.0, 100.0, 101.0])
    raw = replace(raw, ts_event=raw.ts_event + np.array([0, 30, 30]) * clock.DAY)
    splits = [Action(number("2024-03-12"), "", 2.0), Action(number("2024-03-20"), "", 4.0)]
    bars, _ = apply(raw, SHARE, splits)
    assert bars.close.tolist() == [100.0, 100.0, 101.0] and bars.volume.tolist() == [800.0, 100.0, 100.0]
    assert split_factors(raw, SHARE, splits).tolist() == [8.0, 1.0, 1.0]
    # 8.00 a share before both splits are 1.00 a share of the last date, between them 2.00, after them 8.00
    for day, cash in (("2024-03-08", 1.0), ("2024-03-15", 2.0), ("2024-03-25", 8.0), ("2024-03-20", 8.0)):
        paid, _ = apply(raw, SHARE, [*splits, Action(number(day), "", 1.0, 8.0)] if day != "2024-03-20" else
                        [splits[0], Action(number(day), "", 4.0, 8.0)])  # fmt: skip
        assert paid.funding_rate[0] == -cash / 100, day


def test_one_split_of_two_files_is_not_taken_out_twice():
    raw = daily("2020-08-28", [500.0, 125.0])
    eve, ex = Action(number("2020-08-29"), "X", 4.0), Action(number("2020-08-31"), "X", 4.0)
    with pytest.raises(DataError, match="the split 4 of X at 2020-08-29 and 2020-08-31 looks like one that is given twice"):
        apply(raw, SHARE, [ex, eve])


def test_dividend_of_a_factor_file_without_prices_is_a_share_of_the_close(shared, tmp_path):
    found = read_actions(shared / "formats" / "lean_factor_xyz.csv", "X")
    assert [(each.date, each.split, each.dividend, round(each.share, 10)) for each in found] == [
        (number("2023-07-01"), 4.0, 0.0, round(1 - 0.9912 / 0.9957, 10)), (number("2024-03-02"), 1.0, 0.0, round(1 - 0.9957, 10)),
    ]  # fmt: skip
    assert from_columns(to_columns(found)) == found
    raw = daily("2024-02-29", [180.0, 181.0, 182.0])
    bars, _ = apply(raw, SHARE, found)
    assert -bars.funding_rate[1] * bars.close[1] == pytest.approx(181.0 * (1 - 0.9957)) and np.isnan(bars.funding_rate[[0, 2]]).all()
    old = {name: column for name, column in to_columns(found).items() if name != "share"}  # of a dataset from before
    assert [each.split for each in from_columns(old)] == [4.0, 1.0]
    both = read_actions(written(tmp_path, "20240301,0.99,0.5,0\n20501231,1,1,0\n"))
    paid = apply(daily("2024-03-01", [100.0, 50.0]), SHARE, both)[0]  # half of the shares' price is 50, of which a hundredth
    assert paid.close[0] == 50.0 and paid.funding_rate[0] == pytest.approx(-0.01)


def test_total_return_prices_earn_what_cash_and_prices_earn_together():
    raw = daily("2024-03-04", [100.0, 102.0, 101.0, 103.0])
    actions = [Action(number("2024-03-06"), "", 1.0, 2.0)]
    whole, instrument = apply(raw, SHARE, actions, adjust="all")
    assert whole.funding_rate is None and not set(SIGNALS) & set(whole.extras)
    assert instrument.data_quantum == 1e-6
    # reinvested at the close before the ex-date less the dividend: 102 / 100 x 101 / (102 - 2) x 103 / 101
    assert whole.close[-1] / whole.close[0] == pytest.approx(1.02 * 1.01 * 103 / 101, rel=1e-7)
    compile_tape([(whole, instrument)], cached=False)


def test_minutes_outside_the_session_take_no_dividend():
    session = Session.parse("us_equity")
    close = calendar.date_close(np.array([number("2024-03-04"), number("2024-03-05")]), session)
    ts_T = np.array([close[0], close[0] + 3600 * clock.SECOND, close[1] - clock.SECOND * 60, close[1]])
    raw = replace(daily("2024-03-04", [100.0, 100.5, 99.0, 99.5]), ts_event=ts_T)
    share = Instrument("X", 0.01, session=session)
    bars, instrument = apply(raw, share, [Action(number("2024-03-05"), "", 1.0, 1.0)])
    assert np.flatnonzero(~np.isnan(bars.funding_rate)).tolist() == [0]
    tape = compile_tape([(bars, instrument)], cached=False)
    assert tape.outside_S.tolist() == [1] and (tape.extra_ST["funding_rate"][0] != 0).tolist() == [True, False, False]


def test_dividends_that_cannot_be_are_one_line():
    raw = daily("2024-03-04", [100.0, 99.0])
    with pytest.raises(DataError, match="X: data row 2 .*below the close before it, 100, found 120 a share"):
        apply(raw, SHARE, [Action(number("2024-03-05"), "", 1.0, 120.0)])
    with pytest.raises(BellmarkError, match="expected dividends or funding, found both"):
        apply(replace(raw, funding_rate=np.full(2, 0.1)), SHARE, [Action(number("2024-03-05"), "", 1.0, 1.0)])


def test_apple_with_its_factors_has_no_day_of_a_split_in_it(shared):
    folder = shared / "data/09_us_equity_lean"
    with zipfile.ZipFile(folder / "daily_aapl.zip") as archive:
        lines = archive.read(archive.namelist()[0]).decode().split("\n")
    rows = [line.strip().split(",") for line in lines if line.strip()]
    date_T = np.array([f"{row[0][:4]}-{row[0][4:6]}-{row[0][6:8]}" for row in rows], "datetime64[D]").astype(np.int64)
    columns = np.array([row[1:6] for row in rows], float).T
    raw = Bars("AAPL", (date_T + 1) * clock.DAY, *(columns[:4] / 10_000), columns[4])
    actions = read_actions(folder / "factor_aapl.csv", "AAPL")
    bars, instrument = apply(raw, Instrument("AAPL", 0.0001), actions)
    places = np.searchsorted(date_T, [each.date for each in actions if each.split != 1])
    moves = [np.abs(np.log(each.open[places] / each.close[places - 1])) for each in (raw, bars)]
    assert len(places) == 4 and moves[0].min() > 0.6 and moves[1].max() < 0.05
    row = int(np.searchsorted(date_T, number("2014-06-09")))
    assert bars.close[row - 1] == pytest.approx(raw.close[row - 1] / 28, abs=1e-8)
    assert np.count_nonzero(~np.isnan(bars.funding_rate)) == sum(1 for each in actions if each.dividend and each.date <= date_T[-1])
    assert (bars.signal_close <= bars.close + 1e-12).all()
    compile_tape([(bars, instrument)], cached=False)
