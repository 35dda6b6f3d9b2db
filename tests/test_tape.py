"""The tape: quanta, sessions, gaps, quotes, halts, funding and rolls, hash, files, higher bars."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from bellmark import clock
from bellmark.bars import ASKS, BIDS, SIGNALS, Bars, check, in_order, with_funding
from bellmark.component import make
from bellmark.errors import DataError, UsageError
from bellmark.features import assemble
from bellmark.host import host
from bellmark.instrument import Instrument, Session
from bellmark.tape import ARRAYS, EXTRA, Tape, compile_tape, describe, higher_bars, read_only

GENERATOR = np.random.default_rng(3)


def stamps(*texts):
    return np.array(texts, "datetime64[ns]").astype(np.int64)


def make_bars(ts_T, close_T=None, symbol="X", volume_T=None, **more):
    close_T = np.full(len(ts_T), 100.0) if close_T is None else np.asarray(close_T, float)
    open_T = np.concatenate([close_T[:1], close_T[:-1]])
    volume_T = np.full(len(ts_T), 10.0) if volume_T is None else np.asarray(volume_T, float)
    high_T, low_T = np.maximum(open_T, close_T) + 0.5, np.minimum(open_T, close_T) - 0.5
    return Bars(symbol, np.asarray(ts_T, np.int64), open_T, high_T, low_T, close_T, volume_T, **more)


def minutes(day, first, count):
    return stamps(f"{day}T{first}")[0] + np.arange(count) * 60 * clock.SECOND


def session_bars(days=3, count=30, **more):
    ts_T = np.concatenate([minutes(f"2024-03-0{4 + day}", "14:31", count) for day in range(days)])
    return make_bars(ts_T, 100 + np.cumsum(GENERATOR.integers(-2, 3, len(ts_T))) * 0.25, **more)


ES = Instrument("X", 0.25, 50.0, session=Session.parse("us_equity"))


def test_prices_are_whole_quanta_of_half_a_tick():
    tape = compile_tape([(make_bars(minutes("2024-03-04", "14:31", 3), [100.0, 100.25, 99.75]), ES)], cached=False)
    assert tape.close_ST.tolist() == [[800, 802, 798]]
    assert tape.instruments[0].price_quantum == 0.125
    for name, kind in ARRAYS.items():
        array_ST = getattr(tape, f"{name}_ST")
        assert array_ST.dtype == kind and array_ST.flags.c_contiguous


def test_price_off_the_grid_names_file_row_and_price():
    bars = make_bars(minutes("2024-03-04", "14:31", 3), [100.0, 100.1, 100.0], source="bars.csv", row_T=np.array([1, 2, 7]))
    with pytest.raises(DataError, match=r"bars.csv: X: data rows? .*7.*open 100.1 is not a multiple of 0.25") as caught:
        compile_tape([(bars, ES)], cached=False)
    assert "\n" not in str(caught.value)


def test_price_within_1e_6_of_a_tick_snaps():
    bars = make_bars(minutes("2024-03-04", "14:31", 2), [100.0 + 2e-7, 100.25 - 2e-7])
    assert compile_tape([(bars, ES)], cached=False).close_ST.tolist() == [[800, 802]]


def test_price_without_a_tick_is_rounded_to_8_digits():
    tape = compile_tape([(make_bars(minutes("2024-03-04", "14:31", 2), [100.123456789, 101.0]), Instrument("X"))], cached=False)
    assert tape.close_ST[0].tolist() == [10_012_346, 10_100_000]


@given(steps=st.lists(st.integers(1, 10**7), min_size=2, max_size=30), tick=st.sampled_from([0.01, 0.25, 0.0001, 0.1, 1.0, 0.005]))
@settings(max_examples=60)
def test_every_multiple_of_a_tick_survives_exactly(steps, tick):
    ts_T = minutes("2024-03-04", "14:31", len(steps))
    close_T = np.array(steps) * tick
    bars = Bars("X", ts_T, close_T, close_T, close_T, close_T, np.ones(len(steps)))
    tape = compile_tape([(bars, Instrument("X", tick))], cached=False)
    assert tape.close_ST[0].tolist() == [2 * step for step in steps]


def test_sessions_are_numbered_and_count_down():
    tape = compile_tape([(session_bars(days=2, count=3), ES)], cached=False)
    assert tape.session_ST.tolist() == [[0, 0, 0, 1, 1, 1]]
    assert tape.session_bar_ST.tolist() == [[0, 1, 2, 0, 1, 2]]
    assert tape.session_left_ST.tolist() == [[2, 1, 0, 2, 1, 0]]
    assert np.allclose(tape.session_fraction_ST[0, :3] * 390, [1, 2, 3], atol=1e-4)


def test_session_fraction_at_the_close_stays_below_one():
    tape = compile_tape([(make_bars(minutes("2024-03-04", "20:58", 3)), ES)], cached=False)
    assert tape.session_fraction_ST[0, -1] < 1.0


def test_session_follows_daylight_saving():
    """09:31 in New York is 14:31 UTC before 2024-03-10 and 13:31 after."""
    ts_T = np.concatenate([minutes("2024-03-08", "14:31", 2), minutes("2024-03-11", "13:31", 2)])
    tape = compile_tape([(make_bars(ts_T), ES)], cached=False)
    assert tape.session_bar_ST.tolist() == [[0, 1, 0, 1]]
    assert tape.session_fraction_ST[0, 0] == tape.session_fraction_ST[0, 2]


def test_overnight_session_runs_over_midnight():
    instrument = Instrument("X", 0.25, session=Session.parse("cme_globex"))
    ts_T = stamps("2024-03-04T00:00", "2024-03-04T12:00", "2024-03-04T22:00", "2024-03-04T23:01")
    tape = compile_tape([(make_bars(ts_T), instrument)], cached=False)
    assert tape.session_ST.tolist() == [[0, 0, 0, 1]]


def test_bars_outside_the_session_are_left_out_and_counted():
    ts_T = np.concatenate([minutes("2024-03-04", "14:29", 4), minutes("2024-03-04", "20:59", 4)])
    tape = compile_tape([(make_bars(ts_T), ES)], cached=False)
    assert int(tape.length_S[0]) == 4 and int(tape.outside_S[0]) == 4
    assert "4 bars outside the session America/New_York 09:30-16:00" in tape.notes[0]


def test_no_bar_inside_the_session_is_refused():
    with pytest.raises(DataError, match="no bar closes inside the session"):
        compile_tape([(make_bars(minutes("2024-03-04", "03:00", 4)), ES)], cached=False)


def test_daily_bars_have_no_time_of_session():
    ts_T = stamps("2024-03-04T21:00", "2024-03-05T21:00", "2024-03-06T21:00", "2024-03-07T21:00", "2024-03-08T21:00", "2024-03-11T20:00")
    tape = compile_tape([(make_bars(ts_T), ES)], cached=False)
    assert tape.session_ST.tolist() == [[0, 1, 2, 3, 4, 5]]
    assert not (tape.session_bar_ST.any() or tape.session_left_ST.any() or tape.session_fraction_ST.any() or tape.gap_ST.any())
    assert tape.periods_per_year == 252


def test_missing_bars_and_jump_are_reported():
    """Three minutes are absent and price comes back 39 % higher."""
    ts_T = stamps("2024-05-01T00:00", "2024-05-01T00:01", "2024-05-01T00:05", "2024-05-01T00:06")
    bars = Bars(
        "X", ts_T, np.array([100.0, 100, 140, 140]), np.array([101.0, 101, 141, 142]), np.array([99.0, 100, 139, 140]),
        np.array([100.0, 101, 140, 141]), np.full(4, 4.0),
    )  # fmt: skip
    tape = compile_tape([(bars, Instrument("X", 1.0))], cached=False)
    row = describe(tape)[0]
    assert tape.gap_ST.tolist() == [[0, 0, 1, 0]]
    assert (row["gaps"], row["missing_bars"]) == (1, 3)
    assert row["largest_gap_move"] == pytest.approx(140 / 101 - 1)


def test_filled_bars_of_zero_volume_are_counted_apart_from_unknown_volume():
    bars = make_bars(minutes("2024-05-01", "00:01", 4), volume_T=[4, 0, 0, np.nan])
    tape = compile_tape([(bars, Instrument("X", 0.25))], cached=False)
    row = describe(tape)[0]
    assert (row["zero_volume_bars"], row["unknown_volume_bars"]) == (2, 1)


def test_volume_is_in_lots():
    bars = make_bars(minutes("2024-05-01", "00:01", 2), volume_T=[4, 6])
    tape = compile_tape([(bars, Instrument("X", 0.25, lot_size=0.5))], cached=False)
    assert tape.volume_ST.tolist() == [[8.0, 12.0]]


def test_symbols_of_different_length_are_padded_with_zeros():
    short = make_bars(minutes("2024-03-04", "14:31", 2), symbol="A")
    long = make_bars(minutes("2024-03-04", "14:31", 5), symbol="B")
    tape = compile_tape([(short, Instrument("A", 0.25)), (long, Instrument("B", 0.25))], cached=False)
    assert tape.length_S.tolist() == [2, 5] and tape.close_ST.shape == (2, 5)
    assert not tape.close_ST[0, 2:].any() and not tape.ts_ST[0, 2:].any()
    assert tape.symbol_index("B") == 1
    with pytest.raises(UsageError, match="expected one of A, B"):
        tape.symbol_index("C")


def test_one_symbol_twice_and_no_symbol_are_refused():
    bars = make_bars(minutes("2024-03-04", "14:31", 2))
    with pytest.raises(DataError, match="'X' twice"):
        compile_tape([(bars, ES), (bars, ES)], cached=False)
    with pytest.raises(DataError, match="no symbol"):
        compile_tape([], cached=False)


@pytest.mark.parametrize(
    ("instrument", "ts_T", "right"),
    [
        (ES, minutes("2024-03-04", "14:31", 20), 252 * 390),
        (Instrument("X", 0.25, session=Session.parse("cme_globex")), minutes("2024-03-04", "00:01", 20), 252 * 1380),
        (Instrument("X", 0.25), np.concatenate([minutes(f"2024-03-{day:02}", "00:01", 20) for day in range(1, 15)]), 365 * 1440),
        (Instrument("X", 0.25), stamps("2024-01-06")[0] + np.arange(40) * 7 * clock.DAY, 52),
        (Instrument("X", 0.25), stamps("2024-01-06")[0] + np.arange(40) * clock.DAY, 365),
        (Instrument("X", 0.25, periods_per_year=1000.0), minutes("2024-03-04", "14:31", 20), 1000),
    ],
    ids=["us minutes", "globex minutes", "crypto minutes", "weekly", "daily with weekends", "said by the profile"],
)
def test_periods_per_year_come_from_the_calendar(instrument, ts_T, right):
    assert compile_tape([(make_bars(ts_T), instrument)], cached=False).periods_per_year == right


def test_hash_sees_every_input_and_not_the_quantum():
    bars = session_bars()
    base = compile_tape([(bars, ES)], cached=False).content_hash
    assert compile_tape([(bars, ES.with_costs(slippage_bps=1.0))], cached=False).content_hash == base
    volume_T = bars.volume.copy()
    volume_T[-1] += 1
    later = Bars(bars.symbol, bars.ts_event + 60 * clock.SECOND, bars.open, bars.high, bars.low, bars.close, bars.volume)
    other_volume = Bars(bars.symbol, bars.ts_event, bars.open, bars.high, bars.low, bars.close, volume_T)
    changed = [(later, ES), (other_volume, ES), (bars, ES.with_overrides({"contract_multiplier": 5.0}))]
    hashes = {base, *(compile_tape([item], cached=False).content_hash for item in changed)}
    assert len(hashes) == 4


def test_saved_tape_comes_back_whole(tmp_path):
    tape = compile_tape([(session_bars(volume_T=None), ES)], cached=False)
    tape.save(tmp_path / "a.safetensors")
    again = Tape.load(tmp_path / "a.safetensors")
    for name in (*(f"{name}_ST" for name in ARRAYS), "length_S"):
        assert np.array_equal(getattr(tape, name), getattr(again, name), equal_nan=True)
    assert (again.symbols, again.instruments, again.content_hash, again.periods_per_year) == (
        tape.symbols, tape.instruments, tape.content_hash, tape.periods_per_year,
    )  # fmt: skip
    again.save(tmp_path / "b.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()


def test_damaged_newer_and_foreign_files_are_one_line(tmp_path):
    from safetensors.numpy import save_file

    path = tmp_path / "tape.safetensors"
    compile_tape([(session_bars(), ES)], cached=False).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="cannot be read"):
        Tape.load(path)
    path.write_bytes(whole[:-3] + b"\x01\x02\x03")
    with pytest.raises(DataError, match="damaged"):
        Tape.load(path)
    save_file({"a": np.zeros(2)}, path, {"bellmark_tape": '{"schema_version": 99}'})
    with pytest.raises(DataError, match="schema_version 99 is newer"):
        Tape.load(path)
    save_file({"a": np.zeros(2)}, path)
    with pytest.raises(DataError, match="expected a tape"):
        Tape.load(path)
    with pytest.raises(DataError, match="cannot be read"):
        Tape.load(tmp_path / "none.safetensors")


def test_cached_tape_equals_a_fresh_one_and_a_damaged_cache_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setenv("BELLMARK_CACHE_DIR", str(tmp_path / "cache"))
    bars = session_bars()
    fresh = compile_tape([(bars, ES)])
    (path,) = (tmp_path / "cache" / "tapes").iterdir()
    assert np.array_equal(compile_tape([(bars, ES)]).close_ST, fresh.close_ST)
    path.write_bytes(b"rubbish")
    assert np.array_equal(compile_tape([(bars, ES)]).close_ST, fresh.close_ST)
    assert path.stat().st_size > 100


@pytest.mark.parametrize("every", [2, "5", 7, "session"])
def test_higher_bars_are_made_of_completed_groups_that_start_with_each_session(every):
    tape = compile_tape([(session_bars(days=3, count=12), ES)], cached=False)
    bars = higher_bars(tape, "X", every)
    size = 12 if every == "session" else int(every)
    days = [range(day * 12, (day + 1) * 12) for day in range(3)]
    groups = [list(day[first : first + size]) for day in days for first in range(0, 12, size)]
    assert bars.open_T.tolist() == [tape.open_ST[0, group[0]] for group in groups]
    assert bars.high_T.tolist() == [tape.high_ST[0, group].max() for group in groups]
    assert bars.low_T.tolist() == [tape.low_ST[0, group].min() for group in groups]
    assert bars.close_T.tolist() == [tape.close_ST[0, group[-1]] for group in groups]
    assert bars.volume_T.tolist() == [10.0 * len(group) for group in groups]
    done = [sum(group[-1] <= t for group in groups) - 1 for t in range(36)]
    assert bars.completed_T.tolist() == done and bars.completed_T.dtype == np.int32


def test_higher_bars_of_daily_bars_run_through_and_the_last_stays_open():
    ts_T = stamps("2024-03-04T21:00")[0] + np.arange(7) * clock.DAY
    tape = compile_tape([(make_bars(ts_T), Instrument("X", 0.25))], cached=False)
    assert higher_bars(tape, 0, 3).completed_T.tolist() == [-1, -1, 0, 0, 0, 1, 1]
    assert len(higher_bars(tape, 0, 3).open_T) == 2
    assert higher_bars(tape, 0, "session").completed_T.tolist() == list(range(7))
    assert higher_bars(tape, 0, 10).completed_T.tolist() == [-1] * 7


@pytest.mark.parametrize("every", [0, -1, "day", 2.5])
def test_higher_bars_of_a_wrong_size_are_refused(every):
    tape = compile_tape([(session_bars(), ES)], cached=False)
    with pytest.raises(UsageError, match="expected 'session' or a number"):
        higher_bars(tape, 0, every)


def test_unknown_volume_of_a_part_makes_the_higher_volume_unknown():
    tape = compile_tape([(make_bars(minutes("2024-03-04", "14:31", 4), volume_T=[1, np.nan, 3, 4]), ES)], cached=False)
    volume_T = higher_bars(tape, 0, 2).volume_T
    assert np.isnan(volume_T[0]) and volume_T[1] == 7


@given(cut=st.integers(1, 35), every=st.sampled_from([2, 5, "session"]))
@settings(max_examples=40)
def test_noise_on_later_bars_leaves_completed_higher_bars_as_they_were(cut, every):
    bars = session_bars(days=3, count=12)
    noisy_T = bars.close.copy()
    noisy_T[cut:] += 25.0
    noisy = Bars(bars.symbol, bars.ts_event, bars.open, bars.high + 50.0 * (np.arange(36) >= cut), bars.low, noisy_T, bars.volume)
    before, after = (compile_tape([(item, ES)], cached=False) for item in (bars, noisy))
    a, b = higher_bars(before, 0, every), higher_bars(after, 0, every)
    assert np.array_equal(a.completed_T, b.completed_T)
    seen = int(a.completed_T[cut - 1]) + 1
    for x_T, y_T in zip(a[:5], b[:5], strict=True):
        assert np.array_equal(x_T[:seen], y_T[:seen])
    for name in ARRAYS:
        assert np.array_equal(getattr(before, f"{name}_ST")[0, :cut], getattr(after, f"{name}_ST")[0, :cut])


# ---- extra columns ------------------------------------------------------------------------------------------------------------------

NAN = np.nan


def with_extras(bars, full=True):
    """Quotes a quarter around each price, a halt in bar 1, funding in bars 0 and 2, a roll in bar 2."""
    n = len(bars)
    quotes = {"bid": bars.close - 0.25, "ask": bars.close + 0.25}
    if full:
        for name in BIDS[:3] + ASKS[:3]:
            side, part = name.split("_")
            quotes[name] = getattr(bars, part) + (0.25 if side == "ask" else -0.25)
        quotes |= {name: getattr(bars, name.removeprefix("signal_")) / 2 for name in SIGNALS}
    t = np.arange(n)
    return replace(
        bars,
        **quotes,
        halted=t == 1,
        funding_rate=np.where(t == 0, 0.0001, np.where(t == 2, -0.00002137, NAN)),
        funding_mark=np.where(t == 0, 100.3, NAN),
        roll_price=np.where(t == 2, 104.25, NAN),
    )


def three(**more):
    return make_bars(minutes("2024-03-04", "14:31", 3), [100.0, 100.25, 99.75], **more)


def test_extra_columns_are_quanta_flags_and_whole_rates():
    tape = compile_tape([(with_extras(three()), ES)], cached=False)
    extra = {name: array_ST[0].tolist() for name, array_ST in tape.extra_ST.items()}
    assert tuple(tape.extra_ST) == tuple(EXTRA)
    assert extra["bid_close"] == [798, 800, 796] and extra["ask_close"] == [802, 804, 800]
    assert extra["bid_open"] == [798, 798, 800] and extra["ask_open"] == [802, 802, 804]
    assert extra["bid_high"] == [802, 804, 804] and extra["ask_low"] == [798, 798, 796]
    assert extra["halted"] == [0, 1, 0]
    assert extra["funding_rate"] == [100_000, 0, -21_370]
    assert extra["funding_mark"] == [802, 0, 798]  # 100.3 is no multiple of the tick: the nearest eighth; the close where none is given
    assert (extra["rolls"], extra["roll_price"]) == ([0, 0, 1], [0, 0, 834])
    assert extra["signal_close"] == [400, 401, 399]
    assert tape.signal_price("close") is tape.extra_ST["signal_close"]
    for name, kind in EXTRA.items():
        assert tape.extra_ST[name].dtype == kind and tape.extra_ST[name].shape == (1, 3) and tape.extra_ST[name].flags.c_contiguous


def test_a_tape_holds_only_the_extra_columns_that_the_bars_have():
    assert compile_tape([(three(), ES)], cached=False).extra_ST == {}
    closing = with_extras(three(), full=False)
    only = replace(closing, halted=None, funding_rate=None, funding_mark=None, roll_price=None)
    assert list(compile_tape([(only, ES)], cached=False).extra_ST) == ["bid_close", "ask_close"]


def test_symbols_without_a_column_have_zeros_and_quotes_are_for_all_or_none():
    a, b = replace(three(), symbol="A"), replace(with_extras(make_bars(minutes("2024-03-04", "14:31", 4))), symbol="B")
    plain = {name: None for name in BIDS + ASKS + SIGNALS}
    tape = compile_tape([(a, Instrument("A", 0.25)), (replace(b, **plain), Instrument("B", 0.25))], cached=False)
    assert list(tape.extra_ST) == ["halted", "funding_rate", "funding_mark", "roll_price", "rolls"]
    for array_ST in tape.extra_ST.values():
        assert array_ST.shape == (2, 4) and not array_ST[0].any() and array_ST[1].any()
    with pytest.raises(
        DataError, match="quotes: expected the same columns for every symbol, or none at all, found none for A and bid_open"
    ):
        compile_tape([(a, Instrument("A", 0.25)), (b, Instrument("B", 0.25))], cached=False)
    closing = replace(with_extras(three(), full=False), symbol="A")
    with pytest.raises(
        DataError, match="found bid, ask for A and bid_open, bid_high, bid_low, bid, ask_open, ask_high, ask_low, ask for B"
    ):
        compile_tape([(closing, Instrument("A", 0.25)), (b, Instrument("B", 0.25))], cached=False)


def test_features_of_a_symbol_without_signal_prices_read_the_traded_ones():
    halves = {name: getattr(three(), name.removeprefix("signal_")) / 2 for name in SIGNALS}
    a, b = replace(three(), symbol="A"), replace(three(), symbol="B", **halves)
    tape = compile_tape([(a, Instrument("A", 0.25)), (b, Instrument("B", 0.25))], cached=False)
    assert list(tape.extra_ST) == list(SIGNALS)
    assert np.array_equal(tape.signal_price("close")[0], tape.close_ST[0])
    assert (tape.signal_price("close")[1] * 2).tolist() == tape.close_ST[1].tolist()
    assert higher_bars(tape, "B", "session", signals=True).close_T.tolist() == [tape.close_ST[1, 2] // 2]
    assert higher_bars(tape, "B", "session").close_T.tolist() == [tape.close_ST[1, 2]]
    with pytest.raises(DataError, match="expected signal_open, signal_high, signal_low, signal_close together, found signal_open"):
        compile_tape([(replace(three(), signal_open=three().open), ES)], cached=False)


@pytest.mark.parametrize("name", ["bid", "ask_high", "roll_price"])
def test_an_extra_price_off_the_grid_names_file_row_and_price(name):
    bars = with_extras(three(source="bars.csv", row_T=np.array([1, 2, 7])))
    getattr(bars, name)[2] += 0.0625
    with pytest.raises(DataError, match=rf"bars.csv: X: data row 7 .*: {name} [0-9.]+ is not a multiple of 0.25; correct instrument"):
        compile_tape([(bars, ES)], cached=False)


def test_an_extra_price_out_of_range_is_refused():
    bars = replace(three(), roll_price=np.array([NAN, 1e15, NAN]))
    with pytest.raises(UsageError, match=r"1e\+15 x 1 lots in nano-USD leaves int64"):
        compile_tape([(bars, ES)], cached=False)
    bars = replace(three(), funding_rate=np.array([NAN, 0.1, NAN]), funding_mark=np.array([NAN, 1e300, NAN]))
    with pytest.raises(UsageError, match="leaves int64"):
        compile_tape([(bars, ES)], cached=False)


def test_extra_prices_without_a_tick_are_rounded_and_may_be_negative_where_that_is_legal():
    bars = replace(make_bars(minutes("2024-03-04", "14:31", 2), [-1.0, -2.0]), roll_price=np.array([NAN, -3.123456789]))
    tape = compile_tape([(bars, Instrument("X", allow_negative_prices=True))], cached=False)
    assert tape.extra_ST["roll_price"].tolist() == [[0, -31_234_568]]


def test_session_filter_takes_from_every_column_and_refuses_to_lose_a_roll_or_a_funding_instant():
    ts_T = minutes("2024-03-04", "14:29", 4)  # two bars close before and at the open of 14:30
    bars = replace(make_bars(ts_T), halted=np.array([1, 0, 0, 1], bool), funding_rate=np.array([NAN, NAN, 0.1, NAN]))
    tape = compile_tape([(bars, ES)], cached=False)
    assert tape.extra_ST["halted"].tolist() == [[0, 1]] and tape.extra_ST["funding_rate"].tolist() == [[100_000_000, 0]]
    with pytest.raises(
        DataError, match="data row 1 .*a roll at 2024-03-04T14:29:00Z lies outside the session America/New_York 09:30-16:00"
    ):
        compile_tape([(replace(bars, roll_price=np.array([100.0, NAN, NAN, NAN])), ES)], cached=False)
    with pytest.raises(DataError, match="data row 2 .*a funding instant at 2024-03-04T14:30:00Z lies outside the session"):
        compile_tape([(replace(bars, funding_rate=np.array([NAN, 0.1, NAN, NAN])), ES)], cached=False)


def test_hash_sees_every_extra_column_and_stays_what_it_was_without():
    plain = three()
    bars = with_extras(plain)
    base = compile_tape([(plain, ES)], cached=False).content_hash
    hashes = {base, compile_tape([(bars, ES)], cached=False).content_hash}
    for name, column in bars.extras.items():
        other = ~column if name == "halted" else np.where(np.isnan(column), NAN, column / 2 if name == "funding_rate" else column + 0.25)
        if name in BIDS:  # stays below the ask and within its range
            changed = {each: getattr(bars, each) - 0.25 for each in BIDS}
        elif name in ASKS:
            changed = {each: getattr(bars, each) + 0.25 for each in ASKS}
        else:
            changed = {name: other}
        hashes.add(compile_tape([(replace(bars, **changed), ES)], cached=False).content_hash)
    assert len(hashes) == 2 + 2 + 4 + 4  # the four columns of a side move together
    # of the bars before there were extra columns: trials and runs that name it still find their data
    bars = Bars("X", np.arange(1, 4) * clock.DAY, *(np.array([1.0, 2.0, 3.0]),) * 4, np.array([5.0, NAN, 0.0]))
    found = compile_tape([(bars, Instrument("X", 0.5, 2.0))], cached=False).content_hash
    assert found == "612e58b096fd0d6956140833bfdbc077e1ebcae3cfcd6f904ddef2888b3b3e12"


def test_saved_extra_columns_come_back_whole(tmp_path):
    tape = compile_tape([(with_extras(three()), ES)], cached=False)
    tape.save(tmp_path / "a.safetensors")
    again = Tape.load(tmp_path / "a.safetensors")
    assert list(again.extra_ST) == list(EXTRA)
    for name, array_ST in tape.extra_ST.items():
        assert again.extra_ST[name].dtype == array_ST.dtype and np.array_equal(again.extra_ST[name], array_ST)
    again.save(tmp_path / "b.safetensors")
    whole = (tmp_path / "a.safetensors").read_bytes()
    assert whole == (tmp_path / "b.safetensors").read_bytes()
    (tmp_path / "a.safetensors").write_bytes(whole.replace(b"roll_price", b"bell_price", 1))
    with pytest.raises(DataError, match="damaged|cannot be read"):
        Tape.load(tmp_path / "a.safetensors")


def test_a_file_from_before_there_were_extra_columns_is_still_read(tmp_path):
    import hashlib
    import json

    from safetensors import safe_open

    tape = compile_tape([(three(), ES)], cached=False)
    tape.save(tmp_path / "new.safetensors")
    with safe_open(str(tmp_path / "new.safetensors"), framework="numpy") as file:
        document = json.loads(file.metadata()["bellmark_tape"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    header = json.loads(document["header"])
    del header["extra"]
    text = json.dumps(header)
    order = ("length_S", *(f"{name}_ST" for name in ARRAYS), "duplicates_S", "outside_S")
    digest = hashlib.sha256(text.encode() + b"".join(tensors[name].tobytes() for name in order)).hexdigest()
    save_file(tensors, tmp_path / "old.safetensors", {"bellmark_tape": json.dumps({"schema_version": 1, "header": text, "sha256": digest})})
    old = Tape.load(tmp_path / "old.safetensors")
    assert old.extra_ST == {} and np.array_equal(old.close_ST, tape.close_ST) and old.content_hash == tape.content_hash


def test_cache_tells_bars_with_and_without_extra_columns_and_what_was_left_out_apart(tmp_path, monkeypatch):
    monkeypatch.setenv("BELLMARK_CACHE_DIR", str(tmp_path / "cache"))
    assert compile_tape([(three(), ES)]).extra_ST == {}
    for _ in range(2):
        assert compile_tape([(with_extras(three()), ES)]).extra_ST["halted"].tolist() == [[0, 1, 0]]
    assert compile_tape([(replace(three(), duplicates=3), ES)]).duplicates_S.tolist() == [3]
    assert compile_tape([(three(), ES)]).duplicates_S.tolist() == [0]
    late = compile_tape([(replace(with_extras(three()), instants_outside=5), ES)])
    assert late.notes == ("X: 5 funding instants before the first or after the last bar were left out",)


def test_load_report_counts_halts_instants_and_rolls_and_says_whether_there_are_quotes():
    keys = ("halted_bars", "funding_instants", "rolls", "quotes")
    row = describe(compile_tape([(with_extras(three()), ES)], cached=False))[0]
    assert [row[key] for key in keys] == [1, 2, 1, True]
    row = describe(compile_tape([(three(), ES)], cached=False))[0]
    assert [row[key] for key in keys] == [0, 0, 0, False]
    free = with_funding(three(), minutes("2024-03-04", "14:32", 2), [0.0, 0.0])  # a rate of nothing is an instant too
    assert describe(compile_tape([(free, ES)], cached=False))[0]["funding_instants"] == 2


def test_given_funding_instants_lie_where_they_are_settled(shared):
    """08:00 and 16:00 in the bars that close then, whatever the position does."""
    rows = [line.split(",") for line in (shared / "cases/33_funding_at_the_boundary/funding.csv").read_text().split()[1:]]
    ts_K = np.array([row[0].removesuffix("Z") for row in rows], "datetime64[ns]").astype(np.int64)
    bars = make_bars(minutes("2024-05-01", "07:59", 482), np.full(482, 60000.0))
    bars = with_funding(bars, ts_K, [float(row[1]) for row in rows], [float(row[2]) for row in rows])
    tape = compile_tape([(bars, Instrument("X", 0.5, lot_size=1.0))], cached=False)
    rate_T, mark_T = tape.extra_ST["funding_rate"][0], tape.extra_ST["funding_mark"][0] * float(tape.instruments[0].quantum)
    held = np.flatnonzero(rate_T)
    assert tape.ts_ST[0, held].tolist() == ts_K.tolist()
    assert rate_T[held].tolist() == [100_000, 300_000] and mark_T[held].tolist() == [60000, 61000]
    assert mark_T[held[1]] * rate_T[held[1]] / 1e9 == pytest.approx(18.30)
    assert describe(tape)[0]["funding_instants"] == 2


def filled_bars(shared):
    rows = [line.split(",") for line in (shared / "cases/13_filled_zero_volume_bars/bars.csv").read_text().split()[1:]]
    ts_T = np.array([row[0].removesuffix("Z") for row in rows], "datetime64[ns]").astype(np.int64)
    return Bars("X", ts_T, *(np.array([float(row[k]) for row in rows]) for k in range(1, 6)))


def test_given_bars_filled_by_a_vendor_are_counted(shared):
    row = describe(compile_tape([(filled_bars(shared), Instrument("X", 1.0))], cached=False))[0]
    assert (row["bars"], row["zero_volume_bars"], row["unknown_volume_bars"], row["gaps"]) == (4, 2, 0, 0)


@pytest.mark.cpu
@pytest.mark.parametrize(
    ("name", "values", "at_bar_2"),
    [
        ("parkinson_volatility", {"window": 2}, 0.0),
        ("realized_volatility", {"window": 2}, 0.0),
        ("average_true_range", {"window": 2}, 0.0),
        ("average_distance", {"window": 2, "unit": "volatility"}, 0.0),
        ("bollinger_score", {"window": 2}, 0.0),
        ("range_position", {"window": 2}, 0.5),
        ("close_location", {}, 0.5),
    ],
)
def test_volatility_over_filled_flat_bars_is_defined(shared, name, values, at_bar_2):
    """Bars 1 and 2 have no range: each feature has a stated value there, never one over nothing."""
    tape = compile_tape([(filled_bars(shared), Instrument("X", 1.0))], cached=False)
    market = assemble([(name, make(host().get("feature", name), values, name))], tape)
    value_T = market.feature_STF[0, :, 0]
    assert market.start_S[0] <= 2 and np.isfinite(value_T[market.start_S[0] :]).all() and value_T[2] == at_bar_2


# ---- bars ---------------------------------------------------------------------------------------------------------------------------


def spoiled(name, row, value):
    bars = make_bars(minutes("2024-03-04", "14:31", 4), source="bars.csv")
    getattr(bars, name)[row] = value
    return bars


@pytest.mark.parametrize(
    ("bars", "message"),
    [
        (spoiled("close", 2, np.nan), "data row 3 .*close is missing or not a number"),
        (spoiled("high", 1, np.inf), "data row 2 .*high is infinite"),
        (spoiled("low", 0, 0.0), "data row 1 .*low is 0; prices must be above 0"),
        (spoiled("high", 3, 90.0), "data row 4 .*high 90 is below low 99.5"),
        (spoiled("open", 1, 101.0), "data row 2 .*open 101 lies outside low 99.5 to high 100.5"),
        (spoiled("close", 1, 98.0), "data row 2 .*close 98 lies outside"),
        (spoiled("volume", 1, -1.0), "data row 2 .*volume is -1"),
        (spoiled("volume", 1, np.inf), "data row 2 .*volume is infinite"),
        (spoiled("ts_event", 2, 0), "data row 3 .*does not come after"),
    ],
)
def test_bad_bar_is_one_line_with_its_row(bars, message):
    with pytest.raises(DataError, match=f"bars.csv: X: {message}") as caught:
        check(bars)
    assert "\n" not in str(caught.value)


def test_bars_without_rows_are_refused():
    with pytest.raises(DataError, match="there are no bars"):
        check(make_bars(stamps()))


def test_negative_prices_pass_where_the_instrument_says_so():
    check(make_bars(minutes("2024-03-04", "14:31", 3), [1.0, -37.5, 2.0]), allow_negative_prices=True)


def test_unknown_volume_passes():
    check(spoiled("volume", 1, np.nan))


def test_identical_duplicate_is_kept_once_and_counted_and_rows_keep_their_numbers():
    bars = make_bars(stamps("2024-03-04T14:30", "2024-03-04T14:31", "2024-03-04T14:31", "2024-03-04T14:32"), [100.0, 100, 100, 100])
    kept = in_order(bars)
    assert (len(kept), kept.duplicates, kept.row_T.tolist()) == (3, 1, [1, 2, 4])


def test_conflicting_duplicate_names_stamp_and_both_rows():
    bars = make_bars(stamps("2024-03-04T14:32", "2024-03-04T14:33", "2024-03-04T14:33"), [100.0, 103, 105])
    with pytest.raises(DataError, match=r"data rows 2, 3 .*2024-03-04T14:33:00Z disagree: open 100 and 103"):
        in_order(bars)


def test_rows_out_of_order_are_refused_with_the_first_row():
    with pytest.raises(DataError, match=r"data row 3 .*not in time order"):
        in_order(make_bars(stamps("2024-03-04T14:32", "2024-03-04T14:34", "2024-03-04T14:33")))


@pytest.mark.parametrize("header", ["{", "[]", "{}", '{"schema_version": 1}', '{"schema_version": "x"}'])
def test_a_header_that_is_damaged_is_one_line(tmp_path, header):
    save_file({"x": np.zeros(1)}, tmp_path / "tape.safetensors", metadata={"bellmark_tape": header})
    with pytest.raises(DataError, match="tape.safetensors: the tape (is damaged|cannot be read)"):
        Tape.load(tmp_path / "tape.safetensors")


def test_a_price_far_below_the_step_is_refused_and_does_not_become_nothing():
    """Within 1e-6 of a tick prices snap to it; zero is no tick that a price above zero may snap to."""
    count = 4
    price_T = np.full(count, 1e-8)
    bars = Bars("X", clock.DAY * np.arange(1, count + 1), price_T, price_T, price_T, price_T, np.ones(count))
    for instrument in (Instrument("X", tick_size=0.25), Instrument("X", price_quantum=0.01)):
        with pytest.raises(DataError, match="open 1e-08 is far below a step of the prices"):
            compile_tape([(bars, instrument)], cached=False)


def test_what_plugins_are_handed_cannot_be_written():
    locked = read_only(compile_tape([(session_bars(), Instrument("X", tick_size=0.01))], cached=False))
    with pytest.raises(ValueError, match="read-only"):
        locked.close_ST[:] = 0
