"""Stamps: fast and slow ways agree, formats are as strict as they look, local times are told apart by series."""

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellmark import clock
from bellmark.datasets.stamps import Place, Seen, StampForm, split_zone, stamps_of
from bellmark.errors import DataError, UsageError

PLACE = Place("f")
UTC_FORM = StampForm(zone="UTC")
MOMENTS = st.datetimes(datetime(1980, 1, 2), datetime(2099, 12, 30))


def read(texts, form=UTC_FORM, seen=None, series=None):
    column = pl.Series("ts", texts, pl.String)
    return stamps_of(column, form, PLACE, seen, None if series is None else pl.Series(series)).utc_T.tolist()


def ns(moment):
    return ((moment - datetime(1970, 1, 1)) // timedelta(microseconds=1)) * 1000


WRITTEN = {
    "T and Z": lambda m: f"{m:%Y-%m-%dT%H:%M:%S}.{m.microsecond:06}Z",
    "blank": lambda m: f"{m:%Y-%m-%d %H:%M:%S}.{m.microsecond:06}",
    "offset": lambda m: f"{m + timedelta(hours=5, minutes=30):%Y-%m-%d %H:%M:%S}.{m.microsecond:06}+05:30",
    "offset west": lambda m: f"{m - timedelta(hours=5):%Y-%m-%dT%H:%M:%S}.{m.microsecond:06}000-0500",
    "microseconds": lambda m: str(ns(m) // 1000).rjust(16, "0"),
    "nanoseconds": lambda m: str(ns(m)).rjust(19, "0"),
}


@settings(max_examples=30, deadline=None)
@given(st.lists(MOMENTS, min_size=1, max_size=5), st.sampled_from(sorted(WRITTEN)))
def test_every_way_of_writing_gives_the_same_moments_or_an_error(moments, way):
    texts = [WRITTEN[way](moment) for moment in moments]
    try:
        assert read(texts) == [ns(moment) for moment in moments]
    except DataError:
        assert way in ("microseconds", "nanoseconds") and min(moments) < datetime(2001, 9, 10)  # fewer digits, or before the bound


@settings(max_examples=30, deadline=None)
@given(st.lists(MOMENTS, min_size=2, max_size=4))
def test_ways_that_differ_by_row_give_the_same_as_one_way(moments):
    texts = [f"{moment:%Y-%m-%dT%H:%M:%S}" + ("" if n % 2 else f".{moment.microsecond:06}") for n, moment in enumerate(moments)]
    right = [ns(moment.replace(microsecond=0) if n % 2 else moment) for n, moment in enumerate(moments)]
    assert read(texts) == right == [value for text in texts for value in read([text])]


ZONES = ["America/New_York", "Europe/Berlin", "Asia/Tokyo", "America/New_York+07:00"]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.datetimes(datetime(2023, 1, 2), datetime(2024, 12, 30)), min_size=1, max_size=6), st.sampled_from(ZONES))
def test_local_time_comes_back_or_is_refused(moments, zone):
    name, ahead = split_zone(zone)
    utc_T = np.array([ns(moment) for moment in sorted(moments)], np.int64)
    local_T = clock.to_local(utc_T, name) + ahead
    texts = [clock.text(local, "us").replace("T", " ").removesuffix("Z") for local in local_T]
    try:
        assert read(texts, StampForm(zone=zone)) == utc_T.tolist()
    except DataError as error:
        assert "happened twice" in str(error)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("2024034 143000", "%Y%m%d %H%M%S"),  # 3 April, or 34 of 0?
        ("20240304 93000", "%Y%m%d %H%M%S"),
        ("2024-03-04 14:30:60", "%Y-%m-%d %H:%M:%S"),
        ("2024-03-0414:30:00", "%Y-%m-%d %H:%M:%S"),
        ("1000-03-04 14:30:00", "%Y-%m-%d %H:%M:%S"),
        ("2500-03-04 14:30:00", "%Y-%m-%d %H:%M:%S"),
        ("2500-03-04 14:30:00.5", "%Y-%m-%d %H:%M:%S%.f"),
        ("99999-03-04 14:30:00", "%Y-%m-%d %H:%M:%S"),
        ("04.03.24 14:30", "%d.%m.%Y %H:%M"),
        ("2024-02-30 14:30:00", "%Y-%m-%d %H:%M:%S"),
    ],
)
def test_format_is_as_strict_as_it_looks(text, form):
    with pytest.raises(DataError, match="f: data row 1 .*(expected a stamp like|lies outside 1678 to 2261)"):
        read([text], StampForm((form,), "UTC"))


def test_fraction_of_a_second_is_written_with_a_point():
    assert read(["04.03.2024 14:30:00.25"], StampForm(("%d.%m.%Y %H:%M:%S.%f",), "UTC"))[0] % clock.SECOND == 250_000_000
    assert read(["2024-03-04 14:30:00.123456789"], StampForm(("%Y-%m-%d %H:%M:%S%.f",), "UTC"))[0] % clock.SECOND == 123_456_789
    with pytest.raises(UsageError, match=r"data.stamp_format: expected a fraction of a second as %.f"):
        read(["143000 25"], StampForm(("%H%M%S %f",), "UTC"))


@pytest.mark.parametrize("text", ["2024-03-04T14:30:60Z", "2024-03-04T24:00:00Z", "2024-13-04T14:30:00Z", "2024-03-04T14:60Z"])
def test_time_that_no_clock_shows_is_refused(text):
    with pytest.raises(DataError, match="f: data row 2 .*expected a stamp such as"):
        read(["2024-03-04T14:30:00Z", text])


FOLD = ["00:59:00", "01:00:00", "01:30:00", "01:00:00", "01:30:00", "02:00:00"]
RIGHT = ["04:59", "05:00", "05:30", "06:00", "06:30", "07:00"]


def fold(times, cut, series=None, **how):
    """Stamps of 2025-11-02 in New York, in chunks that end at `cut`."""
    form, seen = StampForm(zone="America/New_York", repeated_hour="file_order", **how), Seen()
    found = []
    for part in (slice(0, cut), slice(cut, None)):
        if times[part]:
            found += read([f"2025-11-02 {time}" for time in times[part]], form, seen, series and series[part])
    seen.end()
    return [clock.text(ts)[11:16] for ts in found]


@pytest.mark.parametrize("cut", range(7))
def test_passes_of_the_repeated_hour_do_not_depend_on_the_chunks(cut):
    assert fold(FOLD, cut) == RIGHT


@pytest.mark.parametrize("cut", range(0, 13, 3))
def test_passes_are_told_within_each_series(cut):
    times = [time for time in FOLD for _ in range(2)]
    assert fold(times, cut, ["A", "B"] * 6) == [text for text in RIGHT for _ in range(2)]


def test_hourly_bars_of_both_passes_share_their_time():
    assert fold(["00:00:00", "01:00:00", "01:00:00", "02:00:00"], 2) == ["04:00", "05:00", "06:00", "07:00"]
    ticks = ["00:00:00", "01:00:00", "01:00:00", "01:30:00", "01:00:00", "02:00:00"]
    assert fold(ticks, 2, ties=True) == ["04:00", "05:00", "05:00", "05:30", "06:00", "07:00"]


@pytest.mark.parametrize("times", [["00:59:00", "01:10:00", "01:15:00", "02:00:00"], ["00:59:00", "01:10:00", "03:00:00"]])
def test_passes_are_not_told_where_the_clock_is_not_seen_to_go_back(times):
    """01:15 may be 5 or 65 minutes after 01:10."""
    for cut in range(len(times) + 1):
        with pytest.raises(DataError, match="data row [12] .*01:10:00 happened twice .*, and the clock is not seen to go back after it"):
            fold(times, cut)
    names = ["A", "B"] * len(times)
    for cut in range(0, len(names) + 1, 3):
        with pytest.raises(DataError, match="the clock is not seen to go back"):
            fold([time for time in times for _ in range(2)], cut, names)


@pytest.mark.parametrize("times", [["01:20:00", "02:00:00"], ["01:20:00", "01:10:00"], ["01:20:00"]])
def test_file_that_begins_in_the_repeated_hour_does_not_tell_the_passes(times):
    for cut in range(len(times) + 1):
        with pytest.raises(DataError, match="data row 1 .*2025-11-02 01:20:00 happened twice in America/New_York, and no row"):
            fold(times, cut)


def test_series_that_begins_in_the_repeated_hour_is_not_told_by_others():
    with pytest.raises(DataError, match="data row 2 .*no row of its series before it"):
        fold(["00:59:00", "01:20:00"], 2, ["A", "B"])


@pytest.mark.parametrize("times", [["02:00:00", "01:59:00"], ["00:59:00", "02:00:00", "01:30:00"], [*FOLD[:5], "01:00:00"]])
def test_rows_out_of_order_do_not_tell_the_passes(times):
    for cut in range(len(times) + 1):
        with pytest.raises(DataError, match="happened twice .* the row before it is later than both"):
            fold(times, cut)


def test_zone_ahead_of_another():
    assert split_zone("America/New_York+07:00") == ("America/New_York", 7 * 3600 * clock.SECOND)
    assert split_zone("Etc/GMT+5") == ("Etc/GMT+5", 0) and split_zone("UTC-03:30")[1] == -12600 * clock.SECOND
    moment = datetime(2024, 7, 1, 12, tzinfo=UTC)
    assert read(["2024-07-01 15:00:00"], StampForm(zone="America/New_York+07:00")) == [int(moment.timestamp()) * clock.SECOND]
