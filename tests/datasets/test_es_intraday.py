"""ES-like minutes with quotes: ticks, spread, smile, bounce; and that no policy earns, least of all one that flips each minute."""

from typing import ClassVar

import numpy as np
import pytest
from market_cases import market_data
from moment_cases import ERRORS, mean_is, within

from bellmark.backtester import run_strategy
from bellmark.component import Strategy, component, make, setting
from bellmark.datasets.es_intraday import MULTIPLIER, TICK, EsIntraday
from bellmark.errors import DataError, UsageError
from bellmark.tape import compile_tape, describe

pytestmark = pytest.mark.cpu
FEE = 2.25
ROUND_TRIP = TICK + 2 * FEE / MULTIPLIER  # points
MINUTES = 390


def market(**settings):
    return make(EsIntraday, settings, "data")


@pytest.fixture(scope="module")
def year():
    """250 sessions: bars and truth."""
    dataset = market(sessions=250, seed=3)
    return dataset.read()[0][0], dataset.truth()


def test_quotes_are_the_two_ticks_around_the_efficient_price_and_trades_print_at_one_of_them(year):
    bars, truth = year
    for name, x_T, trade_T in (("_open", truth["open"], bars.open), ("", truth["close"], bars.close)):
        bid_T, ask_T = bars.quotes[f"bid{name}"], bars.quotes[f"ask{name}"]
        assert np.array_equal(ask_T - bid_T, np.full(len(bars), TICK)) and np.array_equal(bid_T, np.rint(bid_T * 4) / 4)
        assert np.all((bid_T <= x_T) & (x_T < ask_T)) and np.all((trade_T == bid_T) | (trade_T == ask_T))
        within(np.mean(trade_T == ask_T), 0.5, 0.5 / np.sqrt(len(bars)))
    assert np.array_equal(bars.ask_high - bars.bid_high, np.full(len(bars), TICK))
    assert np.all(bars.high <= bars.ask_high) and np.all(bars.low >= bars.bid_low)


def test_trades_do_not_lean_away_from_the_efficient_price(year):
    """E[trade | x] = x; given a place u of x in its tick, the deviation is tick sqrt(u (1 - u)), on average tick / sqrt(6)."""
    bars, truth = year
    off_T = (bars.close - truth["close"]) / TICK
    place_T = truth["close"] / TICK % 1
    within(off_T.mean(), 0.0, np.sqrt(1 / 6 / off_T.size))
    within(np.mean(off_T * (place_T - 0.5)), 0.0, np.sqrt(1 / 72 / off_T.size))  # E u (1 - u) (u - 1/2)^2 = 1/120, below 1/72


def test_minutes_move_by_the_stated_deviation_of_the_session(year):
    bars, truth = year
    z_T = (truth["close"] - truth["open"]).reshape(-1, MINUTES) / truth["deviation"]
    assert np.sqrt(np.mean(truth["deviation"] ** 2)) == pytest.approx(0.45, rel=1e-12)
    assert truth["deviation"][0] / truth["deviation"][195] == pytest.approx(2.0, rel=0.01)  # 1.6 over 0.8
    within(z_T.std(), 1.0, 1 / np.sqrt(2 * z_T.size))
    for part in (slice(0, 30), slice(180, 210), slice(360, 390)):
        within(z_T[:, part].std(), 1.0, 1 / np.sqrt(2 * z_T[:, part].size))
    volume = bars.volume.reshape(-1, MINUTES)
    assert volume[:, :15].mean() > 2 * volume[:, 180:210].mean()


def test_gaps_are_between_sessions_alone(year):
    _, truth = year
    gap_T = truth["open"][1:] - truth["close"][:-1]
    inside = np.arange(1, len(truth["open"])) % MINUTES != 0
    assert not gap_T[inside].any()
    within(gap_T[~inside].std(), 8.0, 8 / np.sqrt(2 * 249))


def test_closes_bounce_between_the_quotes(year):
    """Trades lean on x with a mean square of tick^2 / 6: changes of closes have 2 of it more, and neighbours minus one in common (Roll)."""
    change = np.diff(year[0].close.reshape(-1, MINUTES), axis=1)
    square_M = year[1]["deviation"][1:] ** 2
    mean_is((change**2).mean(axis=1), square_M.mean() + 2 * TICK**2 / 6)
    mean_is((change[:, 1:] * change[:, :-1]).mean(axis=1), -(TICK**2) / 6)


def flips(bars, side_T):
    """Points earned before commissions of holding side_T[t] over minute t + 1, bought at the ask and sold at the bid of its open."""
    traded_T = np.diff(side_T, prepend=0.0)[:-1]
    price_T = np.where(traded_T > 0, bars.ask_open[1:], bars.bid_open[1:])
    middle_T = (bars.bid + bars.ask) / 2
    return side_T[:-1] * (middle_T[1:] - price_T) - (side_T[:-1] - traded_T) * (middle_T[:-1] - price_T), np.abs(traded_T)


def test_flipping_each_minute_loses_a_round_trip_a_minute():
    """x is a martingale and each reversal trades twice at half a tick from it, so the mean is -0.34 points exactly.

    Marking at the middle of the quotes adds noise that the next minute takes back: the standard error is, if anything, too large.
    """
    bars = market(sessions=60, gap_deviation=0.0).read()[0][0]
    profit_T, traded_T = flips(bars, np.where(np.arange(len(bars)) % 2 == 0, 1.0, -1.0))
    net_T = profit_T - FEE / MULTIPLIER * traded_T
    assert pytest.approx(0.34) == ROUND_TRIP and np.all(traded_T[1:] == 2)
    mean_is(net_T[1:], -ROUND_TRIP)
    assert net_T[1:].mean() < -ERRORS * net_T.std() / np.sqrt(net_T.size)  # a loss beyond chance


@pytest.mark.parametrize("rule", ["follow", "fade", "against the bounce"])
def test_rules_that_look_at_prices_lose_at_least_their_commissions(rule):
    """Whatever they know, x is a martingale: before commissions they lose the distance of the quotes from x and win nothing."""
    dataset = market(sessions=120, gap_deviation=0.0, seed=11)
    bars, truth = dataset.read()[0][0], dataset.truth()
    moved_T = np.sign(np.diff(bars.close, prepend=bars.close[0]))
    side_T = {"follow": moved_T, "fade": -moved_T, "against the bounce": np.sign((bars.bid + bars.ask) / 2 - bars.close)}[rule]
    profit_T, traded_T = flips(bars, side_T)
    x_T = truth["open"][1:]
    paid_T = np.where(np.diff(side_T, prepend=0.0)[:-1] > 0, bars.ask_open[1:] - x_T, x_T - bars.bid_open[1:]) * traded_T
    assert paid_T.min() >= 0 and traded_T.sum() > 0.2 * len(bars)
    mean_is(side_T[:-1] * (truth["close"][1:] - x_T), 0.0)
    mean_is(profit_T + paid_T, 0.0)
    assert (profit_T - FEE / MULTIPLIER * traded_T).sum() < 0


@component
class Flip(Strategy):
    """Long and short in turns, or nothing where `size` is 0."""

    name: ClassVar[str] = "flip"
    size: float = setting(1.0, "exposure of each side")

    @staticmethod
    def decide(t, size):
        return size if t % 2 == 0 else -size


def test_simulator_takes_the_round_trip_off_who_flips_each_minute_and_nothing_off_who_does_nothing():
    ((bars, instrument),) = market(sessions=20, gap_deviation=0.0, seed=6).read()
    data = market_data(bars, instrument, execution=("bar_quotes", {}), start_equity=1e6, fee_per_contract=FEE)
    equity_T = run_strategy(data, make(Flip, {}, "flip")).lanes[0].equity_T / 1e9
    earned_T = np.diff(equity_T)[1:-1] / MULTIPLIER  # the first minute opens the position, the last may close it
    mean_is(earned_T, -ROUND_TRIP)
    assert earned_T.mean() < -ERRORS * earned_T.std() / np.sqrt(earned_T.size)
    idle_T = run_strategy(data, make(Flip, {"size": 0.0}, "idle")).lanes[0].equity_T
    assert np.all(idle_T == idle_T[0])


@pytest.mark.parametrize(("hours", "minutes"), [("regular", 390), ("globex", 1380)])
def test_sessions_fill_their_hours_through_daylight_saving(hours, minutes):
    tape = compile_tape(market(sessions=30, hours=hours, start="2020-02-24").read(), cached=False)
    row = describe(tape)[0]
    assert (row["bars"], row["sessions"], row["outside_session"], row["quotes"]) == (30 * minutes, 30, 0, True)
    assert tape.session_left_ST[0, 0] == minutes - 1


def test_seed_and_length_of_the_path():
    short, long, other = (market(sessions=n, seed=seed).read()[0][0] for n, seed in ((2, 1), (4, 1), (2, 2)))
    assert np.array_equal(short.close, long.close[: 2 * MINUTES]) and np.array_equal(short.ask_high, long.ask_high[: 2 * MINUTES])
    assert not np.array_equal(short.close, other.close)


def test_bad_start_and_path_below_zero_are_one_line():
    with pytest.raises(UsageError, match="data.start: expected an ISO date"):
        market(start="soon").read()
    with pytest.raises(DataError, match="take a higher price than 1"):
        market(price=1.0, sessions=1).read()
