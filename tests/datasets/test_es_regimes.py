"""The ES-like market: grid, clock, deviation, smile, regimes."""

import numpy as np
import pytest
from moment_cases import within

from bellmark.component import make
from bellmark.datasets.es_regimes import REGIMES, EsRegimes
from bellmark.errors import DataError, UsageError
from bellmark.tape import compile_tape, describe


def market(**settings):
    return make(EsRegimes, settings, "data")


@pytest.fixture(scope="module")
def year():
    return market(sessions=250, trend=0.0).read()[0][0]


def inside(bars, minutes=390):
    """Changes within sessions, a row a session."""
    return np.diff(bars.close.reshape(-1, minutes), axis=1)


def test_prices_are_on_the_tick_and_bars_hold_together(year):
    for price_T in year.prices.values():
        assert np.array_equal(price_T, np.rint(price_T * 4) / 4)
    sessions = year.close.reshape(-1, 390)
    assert np.array_equal(year.open.reshape(-1, 390)[:, 1:], sessions[:, :-1])
    assert np.std(year.open.reshape(-1, 390)[1:, 0] - sessions[:-1, -1]) == pytest.approx(8.0, rel=0.25)


def test_deviation_of_a_minute_is_the_one_asked_for(year):
    """Rounding to a tick of 0.25 at both ends adds 2/12 of its square."""
    assert inside(year).std() == pytest.approx(np.sqrt(0.45**2 + 0.25**2 / 6), rel=0.1)


def test_volatility_and_volume_smile_over_the_session(year):
    change = inside(year)
    assert change[:, :15].std() > 1.3 * change[:, 180:210].std()
    assert change[:, -15:].std() > 1.3 * change[:, 180:210].std()
    volume = year.volume.reshape(-1, 390)
    assert volume[:, :15].mean() > 2 * volume[:, 180:210].mean()


def test_volatility_clusters_by_regime(year):
    """Half an hour's deviation says something of the next half hour's: it would not without regimes."""
    middle = np.log(inside(year)[:, 29:359].reshape(-1, 11, 30).std(axis=2))
    assert np.corrcoef(middle[:, :-1].ravel(), middle[:, 1:].ravel())[0, 1] > 0.3


def test_truth_is_the_regime_of_each_minute():
    """Its share of time is chance times length, and it is what moves the bars: turbulent minutes move most, rising ones up."""
    dataset = market(sessions=250, trend=0.1)
    truth, bars = dataset.truth(), dataset.read()[0][0]
    assert np.array_equal(bars.close, np.rint(truth["close"] * 4) / 4)
    inside_T = np.arange(len(bars)) % 390 != 0
    change_T = np.diff(bars.close, prepend=bars.close[0])
    moves = [change_T[inside_T & (truth["regime"] == k)] for k in range(len(REGIMES))]
    weight = np.array([length * chance for *_, length, chance in REGIMES])
    for k, share in enumerate(weight / weight.sum()):
        # visits come as a Poisson number does and last exponentially: their total has a relative variance of at most 2 / visits
        visits = len(bars) * share / REGIMES[k][3]
        within(np.mean(truth["regime"] == k), share, share * np.sqrt(2 / visits))
    assert max(np.std(each) for each in moves) == np.std(moves[3])
    assert moves[1].mean() > 0 > moves[2].mean()


def test_chances_of_regimes_add_up_to_one():
    assert sum(chance for *_, chance in REGIMES) == pytest.approx(1.0)


@pytest.mark.parametrize(("hours", "minutes"), [("regular", 390), ("globex", 1380)])
def test_sessions_fill_their_hours_through_daylight_saving(hours, minutes):
    tape = compile_tape(market(sessions=60, hours=hours, start="2020-02-03").read(), cached=False)
    row = describe(tape)[0]
    assert (row["bars"], row["sessions"], row["gaps"], row["outside_session"]) == (60 * minutes, 60, 0, 0)
    assert tape.periods_per_year == 252 * minutes
    assert tape.session_left_ST[0, 0] == minutes - 1
    instrument = tape.instruments[0]
    assert (instrument.price_quantum, instrument.value_numerator, instrument.value_denominator) == (0.125, 6_250_000_000, 1)


def test_longer_path_begins_with_the_shorter_one_and_seeds_differ():
    short, long, other = (market(sessions=n, seed=seed).read()[0][0] for n, seed in ((2, 1), (4, 1), (2, 2)))
    assert np.array_equal(short.close, long.close[:780]) and np.array_equal(short.ts_event, long.ts_event[:780])
    assert not np.array_equal(short.close, other.close)


def test_bad_start_and_path_below_zero_are_one_line():
    with pytest.raises(UsageError, match="data.start: expected an ISO date"):
        market(start="soon").read()
    with pytest.raises(DataError, match="take a higher price"):
        market(price=1.0, sessions=1).read()
