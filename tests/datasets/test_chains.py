"""Chains of futures contracts: when each rolls, that nothing is decided by what comes later, and prices that features see."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lean_minutes import lean_minutes

from bellmark import calendar, clock
from bellmark.bars import SIGNALS, Bars
from bellmark.contracts import difference_adjusted, splice
from bellmark.datasets import chains
from bellmark.datasets.chains import FuturesChain, adjusted, left_out, roll_before_expiry, roll_by_volume, roll_on_dates, third_friday_of
from bellmark.errors import BellmarkError, DataError, UsageError
from bellmark.instrument import Instrument, Session
from bellmark.tape import compile_tape, describe

GLOBEX = Session.parse("cme_equity_index")


def number(text):
    return int(np.datetime64(text, "D").astype(np.int64))


def contract(symbol, first, closes, volumes):
    """Daily bars of consecutive weekdays."""
    date_T = np.busday_offset(first, np.arange(len(closes)), roll="forward").astype(np.int64)
    close_T = np.array(closes, float)
    ts_T = calendar.date_close(date_T, GLOBEX)
    return Bars(symbol, ts_T, close_T, close_T + 0.5, close_T - 0.25, close_T, np.array(volumes, float))


def dates(stamps):
    return [str(np.datetime64(int(day), "D")) for day in calendar.session_dates(np.array(stamps, np.int64), GLOBEX)]


# Monday 2013-12-09 to Friday 2013-12-20; volume moves over on Thursday 12 December
FRONT = contract("ESZ3", "2013-12-09", [1800 + i for i in range(10)], [90, 80, 70, 40, 30, 20, 10, 5, 4, 3])
NEXT = contract("ESH4", "2013-12-09", [1795 + i for i in range(15)], [10, 20, 30, 60, 70, 80, 90, 95, 96, 97, 98, 99, 99, 99, 99])
LAST = contract("ESM4", "2013-12-23", [1790 + i for i in range(10)], [1, 2, 3, 100, 200, 300, 300, 300, 300, 300])


def test_volume_rolls_at_the_end_of_the_session_after_the_one_that_shows_it():
    assert dates(roll_by_volume([FRONT, NEXT], GLOBEX)) == ["2013-12-13"]
    bars = splice([FRONT, NEXT], roll_by_volume([FRONT, NEXT], GLOBEX))
    assert bars.close[:6].tolist() == [1800, 1801, 1802, 1803, 1804, 1800]
    assert bars.roll_price[4] == 1799


def test_volume_that_never_moves_over_rolls_with_the_last_session_of_both():
    shy = replace(NEXT, volume=np.zeros(len(NEXT)))
    assert dates(roll_by_volume([FRONT, shy], GLOBEX)) == ["2013-12-20"]


@given(st.integers(5, 9), st.data())
def test_what_comes_after_a_roll_does_not_move_it(cut, data):
    later = np.array(data.draw(st.lists(st.floats(0, 1e6), min_size=15, max_size=15)))
    changed = [
        replace(bars, volume=np.where(np.arange(len(bars)) < cut, bars.volume, later[: len(bars)])) for bars in (FRONT, NEXT)
    ]  # the first five sessions decide: the fourth shows it, the fifth rolls
    assert roll_by_volume(changed, GLOBEX) == roll_by_volume([FRONT, NEXT], GLOBEX)


def test_each_roll_comes_after_the_one_before():
    rolls = roll_by_volume([FRONT, NEXT, LAST], GLOBEX)
    assert dates(rolls) == ["2013-12-13", "2013-12-27"]
    with pytest.raises(DataError, match="ESZ3 and ESM4: the two contracts have no bar of one stamp, so nothing can be rolled"):
        roll_by_volume([FRONT, LAST], GLOBEX)


def test_unknown_volume_is_said():
    with pytest.raises(DataError, match="ESZ3: the volume of 2013-12-09 is not known, and data.roll = 'volume' needs it"):
        roll_by_volume([replace(FRONT, volume=np.full(10, np.nan)), NEXT], GLOBEX)


@pytest.mark.parametrize(("days", "right"), [(0, "2013-12-20"), (1, "2013-12-19"), (4, "2013-12-16"), (5, "2013-12-13"), (7, "2013-12-13")])
def test_days_before_expiry_count_by_the_calendar(days, right):
    assert dates(roll_before_expiry([FRONT, NEXT], [date(2013, 12, 20), date(2014, 3, 21)], days, GLOBEX)) == [right]


def test_days_that_no_session_leaves_are_one_line():
    with pytest.raises(
        DataError, match="no session of both closes 30 days or more before the expiry 2013-12-20; the first of both is 2013-12-09"
    ):
        roll_before_expiry([FRONT, NEXT], [date(2013, 12, 20), date(2014, 3, 21)], 30, GLOBEX)
    with pytest.raises(UsageError, match="expected 2 dates, one of each contract, found 1"):
        roll_before_expiry([FRONT, NEXT], [date(2013, 12, 20)], 5, GLOBEX)


def test_named_dates_must_be_sessions_of_both():
    assert dates(roll_on_dates([FRONT, NEXT], [date(2013, 12, 17)], GLOBEX)) == ["2013-12-17"]
    with pytest.raises(DataError, match="no bar of one stamp in the session of 2013-12-15; the nearest is 2013-12-1[36]"):
        roll_on_dates([FRONT, NEXT], [date(2013, 12, 15)], GLOBEX)
    with pytest.raises(UsageError, match="expected 1 dates between 2 contracts, found 0"):
        roll_on_dates([FRONT, NEXT], [], GLOBEX)


@pytest.mark.parametrize(
    ("symbol", "last", "right"),
    [("ESZ3", "2013-12-18", "2013-12-20"), ("ESZ3", "2023-12-01", "2023-12-15"), ("NQH24", "2024-03-01", "2024-03-15"),
     ("ESH0", "2019-12-30", "2020-03-20"), ("MESM2021", "2021-05-03", "2021-06-18")],
)  # fmt: skip
def test_expiry_of_an_index_future_is_the_third_friday_of_its_month(symbol, last, right):
    bars = replace(contract(symbol, last, [1.0], [1]))
    assert third_friday_of(bars).isoformat() == right


@pytest.mark.parametrize(
    ("symbol", "last", "right"),
    [("ESH2008", "2008-03-10", "2008-03-20"),  # the third Friday was Good Friday
     ("ESM2026", "2026-06-10", "2026-06-18")],  # and Juneteenth
)  # fmt: skip
def test_expiry_on_a_holiday_is_the_day_before(symbol, last, right):
    assert third_friday_of(contract(symbol, last, [1.0], [1])).isoformat() == right


def test_contracts_that_a_chain_passes_over_are_said():
    assert left_out([FRONT, NEXT, LAST]) == []
    assert left_out([FRONT, LAST]) == ["ESZ3 and ESM4: contracts between them are left out: ESH14"]
    far = replace(LAST, symbol="ESH15")
    assert left_out([FRONT, far]) == ["ESZ3 and ESH15: contracts between them are left out: ESH14, ESM14, ESU14, ESZ14"]
    assert left_out([replace(FRONT, symbol="FDAXZ3"), replace(LAST, symbol="FDAXZ4")]) == []  # whose months nobody said


def test_expiry_of_another_future_is_not_guessed():
    with pytest.raises(UsageError, match="give the expiry of each contract; that of CLF4 follows no rule that is known here"):
        third_friday_of(replace(FRONT, symbol="CLF4"))
    with pytest.raises(UsageError, match="'ES1!' does not say the contract's month"):
        chains._month_of(replace(FRONT, symbol="ES1!"))


# ---- prices -------------------------------------------------------------------------------------------------------------------------


def test_given_contracts_have_their_adjusted_prices_beside_the_traded_ones(shared):
    def read(name):
        rows = [line.split(",") for line in (shared / "cases/19_futures_roll_gap" / name).read_text().split()[1:]]
        close_T = np.array([float(row[2]) for row in rows])
        ts_T = calendar.date_close(np.array([number(row[0]) for row in rows]), GLOBEX)
        return Bars(rows[0][1], ts_T, close_T, close_T, close_T, close_T, np.full(len(rows), np.nan))

    contracts = [read("front.csv"), read("next.csv")]
    rolls = roll_on_dates(contracts, [date(2013, 12, 13)], GLOBEX)
    bars = adjusted(splice(contracts, rolls, "ES"), "difference")
    assert bars.close.tolist() == [1776.00, 1775.50, 1780.25]
    assert bars.signal_close.tolist() == [1770.75, 1770.25, 1780.25]
    earned = (bars.close[1] - bars.close[0]) * 50 + (bars.close[2] - bars.roll_price[1]) * 50
    assert earned == 475.0 == (bars.signal_close[2] - bars.signal_close[0]) * 50
    tape = compile_tape([(bars, Instrument("ES", 0.25, 50.0, session=GLOBEX))], cached=False)
    assert (tape.signal_price("close")[0] * 0.125).tolist() == [1770.75, 1770.25, 1780.25]


def test_difference_is_that_of_the_contracts_module_and_ratio_keeps_ratios():
    joined = splice([FRONT, NEXT, LAST], roll_by_volume([FRONT, NEXT, LAST], GLOBEX))
    shifted = difference_adjusted(joined)
    both = adjusted(joined, "difference")
    for name in SIGNALS:
        assert np.array_equal(getattr(both, name), getattr(shifted, name.removeprefix("signal_")))
    scaled = adjusted(joined, "ratio").signal_close
    paid_T = np.where(np.isnan(joined.roll_price), joined.close, joined.roll_price)
    assert scaled[1:] / scaled[:-1] == pytest.approx(joined.close[1:] / paid_T[:-1], rel=1e-12)
    assert scaled[-1] == joined.close[-1]
    assert adjusted(joined, "none") is joined and adjusted(FRONT, "ratio") is FRONT


def test_adjusted_prices_that_mean_nothing_are_one_line():
    old, new = contract("ESZ3", "2013-12-09", [5, 8, 20], [1, 1, 1]), contract("ESH4", "2013-12-09", [1, 2, 3, 4], [1, 1, 1, 1])
    joined = splice([old, new], [int(old.ts_event[-1])])
    with pytest.raises(DataError, match="the differences of the rolls take prices to .*take data.adjust = 'ratio'"):
        adjusted(joined, "difference")
    below = replace(FRONT, **{name: price - 1900 for name, price in FRONT.prices.items()})
    with pytest.raises(DataError, match="at a roll has no ratio; take data.adjust = 'difference'"):
        adjusted(splice([below, NEXT], [int(FRONT.ts_event[4])]), "ratio")
    with pytest.raises(DataError, match="expected traded prices alone, found signal_open"):
        splice([adjusted(splice([FRONT, NEXT], [int(FRONT.ts_event[4])]), "ratio"), LAST], [int(LAST.ts_event[1])])


# ---- component ----------------------------------------------------------------------------------------------------------------------


class Folder:
    """Stands for an imported dataset: gives its contracts in the order of their names."""

    def __init__(self, path, symbols=(), every="", adjust=""):
        found = {bars.symbol: bars for bars in (NEXT, LAST, FRONT)}
        self.pairs = [(found[name], Instrument(name, 0.25, 50.0, session=GLOBEX)) for name in symbols or found]

    def read(self):
        return self.pairs


@pytest.fixture
def folder(monkeypatch):
    monkeypatch.setattr(chains, "Imported", Folder)
    return Folder


def test_the_component_joins_what_a_dataset_holds_in_the_order_of_months(folder):
    ((bars, instrument),) = FuturesChain(path="data/es").read()
    assert (bars.symbol, instrument.symbol, instrument.session) == ("ES", "ES", GLOBEX)
    row = describe(compile_tape([(bars, instrument)], cached=False))[0]
    assert (row["bars"], row["rolls"]) == (len(bars), 2)
    assert set(SIGNALS) <= set(bars.extras)
    ((plain, _),) = FuturesChain(path="data/es", adjust="none", symbol="front").read()
    assert plain.symbol == "front" and "signal_close" not in plain.extras


def test_rules_and_contracts_of_the_component_are_those_of_its_settings(folder):
    ((bars, _),) = FuturesChain(path="x", symbols=("ESZ3", "ESH4"), roll="days_before_expiry", days_before_expiry=4).read()
    assert dates([bars.ts_event[~np.isnan(bars.roll_price)][0]]) == ["2013-12-16"]
    given = FuturesChain(path="x", symbols=("ESZ3", "ESH4"), roll="dates", roll_dates=("2013-12-18",))
    ((bars, _),) = given.read()
    assert dates([bars.ts_event[~np.isnan(bars.roll_price)][0]]) == ["2013-12-18"]
    with pytest.raises(UsageError, match="data.roll_dates: expected a date as YYYY-MM-DD, found 'soon'"):
        FuturesChain(path="x", roll="dates", roll_dates=("soon",)).read()


def test_ratios_get_a_quantum_that_features_do_not_notice(folder):
    ((bars, instrument),) = FuturesChain(path="x", adjust="ratio").read()
    assert instrument.price_quantum == 0.00025
    tape = compile_tape([(bars, instrument.with_costs(spread_ticks=1.0))], cached=False)
    assert tape.signal_price("close")[0] * 0.00025 == pytest.approx(bars.signal_close, abs=0.000126)


def test_contracts_of_several_instruments_are_refused(folder, monkeypatch):
    class Mixed(Folder):
        def read(self):
            (first, second, *rest) = super().read()
            return [first, (second[0], replace(second[1], contract_multiplier=5.0)), *rest]

    monkeypatch.setattr(chains, "Imported", Mixed)
    with pytest.raises(BellmarkError, match="expected the same tick, multiplier, lot and hours as"):
        FuturesChain(path="x").read()


def test_minutes_of_es_roll_when_volume_moves_over(shared):
    folder = shared / "data/01_es_minute_lean"
    front = replace(lean_minutes(folder, "201312", 2013), symbol="ESZ13")
    following = replace(lean_minutes(folder, "201403", 2013), symbol="ESH14")
    (roll,) = roll_by_volume([front, following], GLOBEX)
    # the front month trades 284,376 contracts on 18 December, the next 2,261,640; of the session after it the files hold an hour
    assert clock.text(roll) == "2013-12-19T00:00:00Z"
    bars = adjusted(splice([front, following], [roll], "ES"), "difference")
    at = int(np.flatnonzero(~np.isnan(bars.roll_price))[0])
    assert np.allclose(np.diff(bars.signal_close)[:at], np.diff(bars.close)[:at])
    compile_tape([(bars, Instrument("ES", 0.25, 50.0, session=GLOBEX))], cached=False)
