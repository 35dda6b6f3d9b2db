"""Local time for arrays against zoneinfo, and the hours that repeat or are skipped."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellmark import clock
from bellmark.errors import UsageError

ZONES = ("America/New_York", "Europe/London", "Asia/Tokyo", "UTC", "Australia/Lord_Howe", "America/Sao_Paulo")


def ns(*texts):
    return np.array(texts, "datetime64[ns]").astype(np.int64)


@settings(max_examples=30, deadline=None)
@given(seconds=st.lists(st.integers(631_152_000, 2_000_000_000), min_size=1, max_size=20), zone=st.sampled_from(ZONES))
def test_to_local_equals_zoneinfo_and_to_utc_takes_it_back(seconds, zone):
    ts_T = np.array(seconds, np.int64) * clock.SECOND
    local_T = clock.to_local(ts_T, zone)
    right = [datetime.fromtimestamp(s, ZoneInfo(zone)).replace(tzinfo=UTC).timestamp() for s in seconds]
    assert np.array_equal(local_T, np.array(right, np.int64) * clock.SECOND)
    first_T, second_T, skipped_T = clock.to_utc(local_T, zone)
    assert np.all((first_T == ts_T) | (second_T == ts_T)) and not skipped_T.any()


def test_to_utc_of_the_hour_that_repeats_gives_both_passes():
    local_T = ns("2025-11-02T00:59", "2025-11-02T01:00", "2025-11-02T01:59", "2025-11-02T02:00")
    first_T, second_T, skipped_T = clock.to_utc(local_T, "America/New_York")
    assert np.array_equal(first_T, ns("2025-11-02T04:59", "2025-11-02T05:00", "2025-11-02T05:59", "2025-11-02T07:00"))
    assert np.array_equal(second_T, ns("2025-11-02T04:59", "2025-11-02T06:00", "2025-11-02T06:59", "2025-11-02T07:00"))
    assert not skipped_T.any()


def test_to_utc_of_the_hour_that_is_skipped_says_so():
    skipped_T = clock.to_utc(ns("2025-03-09T01:59", "2025-03-09T02:00", "2025-03-09T02:59", "2025-03-09T03:00"), "America/New_York")[2]
    assert skipped_T.tolist() == [False, True, True, False]


def test_empty_array_stays_empty():
    assert clock.to_local(ns(), "UTC").size == 0
    assert clock.to_utc(ns(), "UTC")[0].size == 0


def test_unknown_zone_is_one_line_with_the_nearest_name():
    with pytest.raises(UsageError, match="did you mean 'America/New_York'"):
        clock.zone("America/NewYork", "data.zone")
