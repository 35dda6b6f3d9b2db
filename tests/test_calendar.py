"""Sessions by calendar: hours that changed, breaks, early closes, holidays, and which bars are missing."""

from collections import Counter
from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lean_minutes import lean_minutes

from bellmark import calendar, clock, holidays
from bellmark.bars import Bars
from bellmark.errors import UsageError
from bellmark.instrument import SESSIONS, Instrument, Session
from bellmark.tape import compile_tape, describe

MINUTE = 60 * clock.SECOND
FUTURES = Session.parse("cme_equity_index")
NYSE = Session.parse("nyse")


def stamps(*texts):
    return np.array(texts, "datetime64[ns]").astype(np.int64)


def number(text):
    return int(np.datetime64(text, "D").astype(np.int64))


def missing(before, after, session, length=MINUTE):
    return int(calendar.missing_bars(stamps(before), stamps(after), length, session)[0])


# ---- text ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in SESSIONS if name != "none"])
def test_the_text_of_a_session_gives_it_back(name):
    session = Session.parse(name)
    assert str(session) == SESSIONS[name]
    assert Session.parse(str(session)) == session
    instrument = Instrument("X", session=session)
    assert Instrument.from_description(instrument.describe()) == instrument


def test_hours_breaks_and_dates_are_read():
    assert [(one.length_seconds, one.trading_seconds, one.until) for one in FUTURES.hours] == [
        (83_700, 82_800, "2015-09-20"), (82_800, 81_900, "2021-06-27"), (82_800, 82_800, ""),
    ]  # fmt: skip
    assert FUTURES.hours[0].break_seconds == ((80_100, 81_000),)
    assert FUTURES.calendar == "cme" and FUTURES.label == "cme_equity_index (America/Chicago 17:00-16:00)"
    assert Session.parse("us_equity").label == "America/New_York 09:30-16:00"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("America/Chicago 17:00-16:00 break 16:30-16:45", "expected breaks in order of time within 17:00-16:00"),
        ("America/Chicago 17:00-16:00 break 15:15", "expected hours as HH:MM-HH:MM"),
        ("America/Chicago 17:00-16:00 until 2015-09-20", "expected hours without 'until' at the end"),
        ("America/Chicago 17:00-16:15; 17:00-16:00", "expected former hours with rising dates"),
        ("America/Chicago 17:00-16:15 until 2015-09-31; 17:00-16:00", "expected a date as YYYY-MM-DD"),
        ("America/Chicago 08:30-15:15 until 2015-09-20; 17:00-16:00", "expected one open"),
        ("America/Chicago 17:00-16:00 calendar a b", "expected a name"),
        ("nysee", "did you mean 'nyse'"),
    ],
)
def test_wrong_text_is_one_line(text, message):
    with pytest.raises(UsageError, match=message) as caught:
        Session.parse(text)
    assert "\n" not in str(caught.value)


# ---- holidays -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("year", "day"), [(1961, "04-02"), (2000, "04-23"), (2011, "04-24"), (2024, "03-31"), (2038, "04-25")])
def test_easter(year, day):
    assert holidays.easter(year) == date.fromisoformat(f"{year}-{day}")


@pytest.mark.parametrize(
    ("day", "open_on"),
    [
        ("2021-12-24", False), ("2021-12-31", True), ("2022-06-20", False), ("2021-06-18", True), ("2001-09-12", False),
        ("2024-03-29", False), ("2020-07-03", False), ("2024-07-04", False), ("2024-07-05", True), ("2024-07-06", False),
    ],
)  # fmt: skip
def test_new_york_is_closed_where_it_was(day, open_on):
    assert calendar.held_on(np.array([number(day)]), NYSE).tolist() == [open_on]


def test_the_built_in_calendar_of_new_york_is_that_of_the_package_day_by_day():
    package = pytest.importorskip("exchange_calendars", reason="needs the extra 'calendars'")
    assert package.__version__
    ours, theirs = holidays.days_of("nyse", 0, 0), holidays.days_of("XNYS", number("1994-01-01"), number("2034-01-01"))
    years = range(number("1993-01-02"), number("2035-12-31"))
    weekdays = {day for day in years if (day + 3) % 7 < 5}
    assert len(theirs.closed) > 350
    assert ours.closed & weekdays == theirs.closed & weekdays
    assert {day: end for day, end in ours.early.items() if day in weekdays} == {
        day: end for day, end in theirs.early.items() if day in weekdays
    }


def test_another_exchange_comes_from_the_package():
    pytest.importorskip("exchange_calendars", reason="needs the extra 'calendars'")
    london = Session.parse("Europe/London 08:00-16:30 calendar XLON")
    assert calendar.held_on(np.array([number("2024-05-06"), number("2024-05-07")]), london).tolist() == [False, True]
    assert calendar.version(london).startswith("exchange_calendars ") and calendar.version(NYSE) == ""
    assert calendar.sessions_per_year(london) == 253
    half_day = calendar.date_close(np.array([number("2024-12-24"), number("2024-12-23")]), london)
    assert half_day.tolist() == stamps("2024-12-24T12:30", "2024-12-23T16:30").tolist()
    with pytest.raises(UsageError, match="no calendar 'XLONN'; did you mean 'XLON'"):
        calendar.held_on(np.array([number("2024-05-06")]), Session.parse("Europe/London 08:00-16:30 calendar XLONN"))


def test_without_the_package_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "exchange_calendars", None)
    with pytest.raises(UsageError, match=r"pip install 'bellmark\[calendars\]'"):
        holidays.version("XPAR")
    assert calendar.held_on(np.array([number("2024-05-06")]), NYSE).all()


# ---- missing bars -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "count"),
    [
        ("2013-10-08T20:15", "2013-10-08T20:31", 0),  # the halt
        ("2013-10-08T20:14", "2013-10-08T20:32", 2),
        ("2013-10-08T21:15", "2013-10-08T22:01", 0),  # the night, by the hours of 2013
        ("2020-01-07T21:15", "2020-01-07T21:31", 0),
        ("2020-01-07T22:00", "2020-01-07T23:01", 0),
        ("2021-06-28T20:15", "2021-06-28T20:31", 15),  # there is no halt any more
        ("2021-06-25T20:15", "2021-06-25T20:31", 0),
        ("2020-01-10T22:00", "2020-01-12T23:01", 0),  # the weekend
        ("2020-01-10T22:00", "2020-01-13T23:01", 23 * 60 - 15),  # and a session
        ("2023-12-22T22:00", "2023-12-25T23:01", 0),  # Christmas on a Monday
        ("2024-01-15T18:00", "2024-01-15T23:01", 0),  # Martin Luther King Day: trading ends at noon
        ("2013-07-04T15:30", "2013-07-04T22:01", 0),
        ("2013-03-08T22:15", "2013-03-10T22:01", 0),  # clocks go forward on that Sunday
        ("2013-12-18T10:00", "2013-12-18T10:03", 2),
    ],
)
def test_only_trading_time_misses_bars_of_futures(before, after, count):
    assert missing(before, after, FUTURES) == count


@pytest.mark.parametrize(
    ("before", "after", "session", "length", "count"),
    [
        ("2024-11-29T18:00", "2024-12-02T14:31", NYSE, MINUTE, 0),  # the half day after Thanksgiving
        ("2024-11-28T21:00", "2024-11-29T14:32", NYSE, MINUTE, 1),
        ("2024-07-02T21:00", "2024-07-05T21:00", NYSE, clock.DAY, 1),  # 3 July is missing, the 4th is not
        ("2024-03-28T20:00", "2024-04-01T20:00", NYSE, clock.DAY, 0),  # Good Friday, and an hour of daylight saving before
        ("2024-03-01T20:30", "2024-03-04T15:30", NYSE, 60 * MINUTE, 0),  # hourly bars, the last of half an hour, which is not here
        ("2024-03-01T21:00", "2024-03-04T15:30", NYSE, 60 * MINUTE, 0),
        ("2024-03-01T22:00", "2024-03-03T22:01", Session.parse("fx"), MINUTE, 0),
        ("2024-03-01T21:55", "2024-03-03T22:05", Session.parse("fx"), MINUTE, 9),
        ("2024-03-01T22:00", "2024-03-03T22:01", Session.parse("cme_globex"), MINUTE, 0),  # hours alone say nothing of days
        ("2024-03-01T15:00", "2024-03-01T15:20", Session.parse("America/New_York 09:30-16:00 break 10:00-10:15"), MINUTE, 4),
        ("2024-03-01T00:00", "2024-03-01T00:05", None, MINUTE, 4),
        ("2024-03-02T00:00", "2024-03-05T00:00", None, clock.DAY, 0),  # no bar on a weekend: an exchange
        ("2024-03-01T00:00", "2024-03-08T00:00", None, clock.DAY, 6),
        ("2024-02-27T00:00", "2024-03-02T00:01", None, clock.DAY, 3),  # a Saturday
    ],
)
def test_missing_bars_by_what_is_known_of_a_session(before, after, session, length, count):
    assert missing(before, after, session, length) == count


@given(
    first=st.integers(number("2012-01-01"), number("2025-01-01")), minutes=st.integers(1, 20_000), cut=st.integers(0, 20_000),
    name=st.sampled_from(["cme_equity_index", "nyse", "fx", "cme_energy_metals"]),
)  # fmt: skip
def test_trading_time_only_grows_and_adds_up(first, minutes, cut, name):
    session = Session.parse(name)
    start = first * clock.DAY
    points = np.array([start, start + min(cut, minutes) * MINUTE, start + minutes * MINUTE])
    whole = np.diff(calendar.trading_time(points, session))
    assert (whole >= 0).all() and whole.sum() <= minutes * MINUTE
    parts = [np.diff(calendar.trading_time(points[i : i + 2], session))[0] for i in range(2)]
    assert whole.tolist() == parts  # whatever else is asked at once


@given(st.integers(number("1995-01-01"), number("2030-01-01")))
def test_a_bar_that_closes_with_the_session_lies_in_it_and_the_next_moment_does_not(day):
    for session in (NYSE, FUTURES, Session.parse("fx")):
        close = calendar.date_close(np.array([day]), session)
        if not calendar.held_on(np.array([day]), session)[0]:
            continue
        inside = calendar.session_days(close, session)
        assert inside.within_T[0] == inside.length_T[0] and calendar.session_dates(close, session)[0] == day
        after = calendar.session_days(close + 1, session)
        assert after.within_T[0] > after.length_T[0] or session.length_seconds == 86_400


def test_bars_close_no_later_than_their_session():
    hours = stamps("2024-03-04T14:30", "2024-03-04T20:30", "2024-11-29T17:30", "2024-03-04T23:00")
    closes = calendar.close_of(hours, 60 * MINUTE, NYSE)
    assert closes.tolist() == stamps("2024-03-04T15:30", "2024-03-04T21:00", "2024-11-29T18:00", "2024-03-05T00:00").tolist()
    assert calendar.close_of(hours, 60 * MINUTE, None).tolist() == (hours + 60 * MINUTE).tolist()
    assert calendar.close_of(hours[:1], 7 * clock.DAY, NYSE).tolist() == (hours[:1] + 7 * clock.DAY).tolist()


def test_years_beyond_the_table_are_said():
    assert "1990 to 2050" in calendar.unknown_years(np.array([number("1962-01-02"), number("2000-01-03")]), NYSE)
    assert calendar.unknown_years(np.array([number("1990-01-02"), number("2050-12-30")]), NYSE) == ""
    assert calendar.unknown_years(np.array([number("1962-01-02")]), Session.parse("us_equity")) == ""


# ---- tape ---------------------------------------------------------------------------------------------------------------------------


def flat(ts_T, symbol="X"):
    price_T = np.full(len(ts_T), 100.0)
    return Bars(symbol, ts_T, price_T, price_T, price_T, price_T, np.full(len(ts_T), 5.0))


def minutes_of(day, count, session):
    close = int(calendar.date_close(np.array([number(day)]), session)[0])
    return close - np.arange(count)[::-1] * MINUTE


def test_half_days_end_early_in_the_tape_and_bars_after_them_are_left_out():
    ts_T = np.concatenate([minutes_of("2024-11-27", 390, NYSE), minutes_of("2024-11-29", 210, NYSE)])
    later = ts_T[-1] + np.arange(1, 4) * MINUTE
    tape = compile_tape([(flat(np.concatenate([ts_T, later])), Instrument("X", 0.01, session=NYSE))], cached=False)
    assert tape.length_S.tolist() == [600] and tape.outside_S.tolist() == [3]
    assert not tape.gap_ST.any() and tape.session_fraction_ST[0, -1] == tape.session_fraction_ST[0, 389] < 1
    assert tape.periods_per_year == 252 * 390


def test_bars_on_a_holiday_are_kept_and_said():
    session = Session.parse("cme_equity_index")
    ts_T = minutes_of("2024-03-28", 60, session)
    good_friday = stamps("2024-03-29T12:01")[0] + np.arange(60) * MINUTE
    tape = compile_tape([(flat(np.concatenate([ts_T, good_friday])), Instrument("X", 0.25, session=session))], cached=False)
    assert tape.length_S.tolist() == [120] and not tape.gap_ST.any()
    assert tape.notes == ("X: there are bars on a day that calendar cme has no session on, first 2024-03-29; they are kept",)


def test_daily_bars_have_gaps_where_a_calendar_knows_the_days():
    days = [day for day in range(number("2024-06-03"), number("2024-07-12")) if calendar.held_on(np.array([day]), NYSE)[0]]
    ts_T = calendar.date_close(np.array([day for day in days if day != number("2024-06-12")]), NYSE)
    tape = compile_tape([(flat(ts_T), Instrument("X", 0.01, session=NYSE))], cached=False)
    assert np.flatnonzero(tape.gap_ST[0]).tolist() == [days.index(number("2024-06-12"))]
    row = describe(tape)[0]
    assert (row["gaps"], row["missing_bars"], tape.periods_per_year) == (1, 1, 252)
    plain = compile_tape([(flat(ts_T), Instrument("X", 0.01, session=Session.parse("us_equity")))], cached=False)
    assert not plain.gap_ST.any()


@pytest.mark.parametrize(("day", "periods"), [("2013-10-08", 1380), ("2020-01-07", 1365), ("2023-01-10", 1380)])
def test_periods_a_year_of_futures_are_trading_minutes_of_their_time(day, periods):
    tape = compile_tape([(flat(minutes_of(day, 30, FUTURES)), Instrument("X", 0.25, session=FUTURES))], cached=False)
    assert tape.periods_per_year == 258 * periods


@pytest.mark.parametrize(("name", "sessions"), [("nyse", 252), ("cme_currency", 258), ("fx", 259), ("us_equity", None)])
def test_sessions_a_year_are_those_that_the_calendar_holds(name, sessions):
    session = Session.parse(name)
    assert calendar.sessions_per_year(session) == sessions
    date_D = np.arange(number("2000-01-01"), number("2028-01-01"))  # 28 years: every date on every weekday
    if sessions:
        weekday_D = (date_D + 3) % 7 < 5
        assert abs((calendar.held_on(date_D, session) & weekday_D).sum() / 28 - sessions) < 0.6


@pytest.mark.parametrize(("contract", "year", "rows", "holes"), [("201312", 2013, 16_673, 311), ("202003", 2020, 1425, 0)])
def test_minutes_of_es_have_only_the_gaps_that_their_manifest_names(shared, contract, year, rows, holes):
    bars = lean_minutes(shared / "data/01_es_minute_lean", contract, year)
    tape = compile_tape([(bars, Instrument("ES", 0.25, 50.0, session=FUTURES))], cached=False)
    assert (len(bars), int(tape.length_S[0]), int(tape.outside_S[0])) == (rows, rows, 0)
    ts_T, gap = tape.ts_ST[0], np.flatnonzero(tape.gap_ST[0])
    counts = Counter(calendar.missing_bars(ts_T[gap - 1], ts_T[gap], MINUTE, FUTURES).tolist())
    assert counts[1] == holes  # of two minutes
    assert counts[15] == counts[45] == counts[60] == 0  # neither a halt nor a night is one
    whole_days = sum(count for missed, count in counts.items() if missed >= 1380)
    assert whole_days == (5 if year == 2013 else 0)  # days that are not in the files


def test_cached_tapes_know_the_calendar_they_were_made_with(tmp_path, monkeypatch):
    monkeypatch.setenv("BELLMARK_CACHE_DIR", str(tmp_path))
    item = (flat(minutes_of("2024-03-28", 60, NYSE)), Instrument("X", 0.01, session=NYSE))
    compile_tape([item])
    compile_tape([item])
    monkeypatch.setattr(holidays, "version", lambda calendar: "another")
    compile_tape([(replace(item[0]), item[1])])
    assert len(list((tmp_path / "tapes").glob("*.safetensors"))) == 2
