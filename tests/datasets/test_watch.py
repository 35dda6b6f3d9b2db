"""What only a series shows: gaps, splits, outliers, stale prices, mixed lengths; and that blocks do not change what is found."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellmark import clock
from bellmark.bars import Bars
from bellmark.datasets.checks import Findings, Policies
from bellmark.datasets.hours import Hours
from bellmark.datasets.staging import bars_of, blocks, frame_of
from bellmark.datasets.watch import Watch
from bellmark.errors import DataError
from bellmark.instrument import Instrument, Session

pytestmark = pytest.mark.none

MINUTE, DAY = 60 * clock.SECOND, clock.DAY
MONDAY = 1_709_510_400_000_000_000  # 2024-03-04 00:00 UTC


def series(close, step=MINUTE, stamps=None, start=MONDAY, volume=None):
    close_T = np.asarray(close, float)
    ts_T = start + step * np.asarray(stamps if stamps is not None else np.arange(1, len(close_T) + 1), np.int64)
    open_T = np.concatenate([close_T[:1], close_T[:-1]])
    high_T, low_T = np.maximum(open_T, close_T), np.minimum(open_T, close_T)
    volume_T = np.ones(len(close_T)) if volume is None else np.asarray(volume, float)
    return Bars("X", ts_T, open_T, high_T, low_T, close_T, volume_T, source="f.csv")


def watched(bars, policies=None, session="none", splits=None, length=0):
    findings = Findings()
    hours = Hours(Instrument("X", session=Session.parse(session)))
    watch = Watch("X", hours, length, Policies(policies or {}), findings, Bars.where, splits or {})
    return watch, findings, watch.look(bars, 0, True)


def wave(count, seed=1, scale=0.001):
    return 100 * np.exp(np.cumsum(np.random.default_rng(seed).normal(0, scale, count)))


def test_gaps_are_counted_with_their_move_and_can_be_refused():
    watch, _, keep = watched(series([100, 101, 140, 141], stamps=[1, 2, 6, 7]))
    assert (watch.gaps.count, watch.gaps.missing) == (1, 3) and watch.gaps.first[0]["missing_bars"] == 3 and len(keep) == 4
    assert watch.gaps.first[0]["after"] == "2024-03-04T00:02:00Z" and watch.gaps.first[0]["until"] == "2024-03-04T00:06:00Z"
    with pytest.raises(DataError, match="data row 3 .*3 bars are missing between 2024-03-04T00:02:00Z and 2024-03-04T00:06:00Z"):
        watched(series([100, 101, 140, 141], stamps=[1, 2, 6, 7]), {"missing_bars": "error"})


def test_nights_are_no_gaps_where_the_session_ends():
    minutes = np.concatenate([np.arange(391), np.arange(391) + 1440])
    minutes = minutes[(minutes % 1440) > 0] + 870  # New York opens at 14:30 UTC
    bars = series(wave(len(minutes)), stamps=minutes)
    assert watched(bars, session="us_equity")[0].gaps.count == 0
    assert watched(bars, session="none")[0].gaps.count == 1


def test_a_possible_split_is_reported_with_ratio_and_date_and_makes_the_data_suspect():
    watch, findings, _ = watched(series([500, 500, 129, 134], DAY, [1, 2, 5, 6], start=MONDAY - DAY // 6))
    assert watch.splits == ["possible split 1:4 at 2024-03-08"] and findings.count("possible_split") == 1
    day = int(np.datetime64("2024-03-08", "D").astype(int))
    bars = series([500, 500, 129, 134], DAY, [1, 2, 5, 6], start=MONDAY - DAY // 6)
    assert watched(bars, splits={day: 4.0})[0].splits == [] == watched(bars, splits={day - 1: 2.0, day: 2.0})[0].splits
    for wrong in (0.25, 7.0, 2.0):  # a split that is given must be the one that the prices show
        text = f"split {wrong:g} of the actions does not fit prices that moved by 0.2"
        assert watched(bars, splits={day: wrong})[0].splits[0].startswith(text)
    flat = watched(series([100, 100, 101, 102], DAY, [1, 2, 5, 6], start=MONDAY - DAY // 6), splits={day: 4.0})[0].splits
    assert flat == ["split 4 of the actions does not fit prices that moved by 1.01 at 2024-03-08"]
    allowed, findings, _ = watched(bars, {"possible_split": "allow"})
    assert allowed.splits == [] and findings.count("possible_split") == 1
    with pytest.raises(DataError, match="data row 3 .*possible split 1:4 at 2024-03-08; give the splits in --actions"):
        watched(bars, {"possible_split": "error"})


@pytest.mark.parametrize(("after", "told"), [(50.5, "1:2"), (151, "3:2"), (1010, "10:1"), (75, "3:4")])
def test_simple_ratios_are_named(after, told):
    assert watched(series([100, 100, after, after], DAY))[0].splits[0].startswith(f"possible split {told} ")


@pytest.mark.parametrize("after", [90, 110, 62, 120])
def test_other_moves_are_no_splits(after):
    assert watched(series([100, 100, after, after], DAY))[0].splits == []


def test_within_a_session_a_jump_is_no_split_but_another_level():
    watch, _, _ = watched(series([100, 100, 50, 50, 50]))
    assert watch.splits == [] and watch.levels == ["prices jump to 0.5 times at 2024-03-04T00:03:00Z"]
    assert watched(series([100, 100, 70, 70, 70]))[0].levels == []


@pytest.mark.parametrize(
    ("close", "step", "ratios"),
    [
        ([7, 7, 700, 701, 702], MINUTE, ["100"]),
        ([7, 7, 7000, 7010], DAY, ["1000"]),
        ([10, 10, *[30] * 10, 10, 10], MINUTE, ["3", "0.3333"]),  # a block that comes back
        ([10, 10, 34, 34, 10, 10, 34, 34], MINUTE, ["3.4", "0.2941", "3.4"]),  # two instruments under one symbol
        ([10, 10, 30, 10, 10], MINUTE, []),  # reverts at once: an outlier
        ([10, 10, 30, 10, 30, 10, 10], MINUTE, []),
        ([10, 10, 4, 4], DAY, []),
    ],
)
def test_prices_that_jump_to_another_level_are_reported_and_suspect(close, step, ratios):
    watch, findings, _ = watched(series(close, step))
    assert [text.split()[3] for text in watch.levels] == ratios and findings.count("level_jump") == len(ratios)
    if ratios:
        with pytest.raises(DataError, match="data rows? 3.* prices jump to .* times at .*another unit or instrument.*level_jump=allow"):
            watched(series(close, step), {"level_jump": "error"})
        assert watched(series(close, step), {"level_jump": "allow"})[0].levels == []


def test_a_jump_that_reverts_at_once_is_reported_dropped_or_refused():
    close = wave(200)
    close[100] *= 1.2
    bars = series(close)
    _, findings, keep = watched(bars)
    assert findings.count("outlier") == 1 and len(keep) == 200
    _, findings, keep = watched(bars, {"outlier": "drop"})
    assert findings.count("outlier") == 1 and 100 not in keep and len(keep) == 199
    with pytest.raises(DataError, match="data row 101 .*a jump that reverts at once"):
        watched(bars, {"outlier": "error"})


def test_a_jump_that_stays_is_no_outlier_and_a_wick_far_outside_is_one():
    close = wave(200)
    close[100:] *= 1.2
    bars = series(close)
    assert watched(bars)[1].count("outlier") == 0
    bars.high[50] *= 1.3
    assert watched(bars)[1].count("outlier") == 1


def test_stale_prices_are_runs_and_zero_volume_is_counted_apart():
    close = np.concatenate([wave(50), np.full(40, 100.0), wave(50, 2)])
    bars = series(close)
    assert watched(bars)[1].count("stale_price") == 1
    still = series(close, volume=np.concatenate([np.ones(50), np.zeros(40), np.ones(50)]))
    watch, findings, _ = watched(still)
    assert findings.count("stale_price") == 0 and (watch.zero_volume, watch.flat_zero_volume) == (40, 39)
    with pytest.raises(DataError, match="data row 71 .*20 bars on end of one price"):
        watched(bars, {"stale_price": "error"})


def test_bars_of_several_lengths_are_refused():
    short = series(wave(60), stamps=[*range(1, 31), *(30 + np.arange(1, 31) * 5)])
    with pytest.raises(DataError, match="bars of several lengths: 300 s after the bar before, where bars are 60 s long"):
        watched(short, length=MINUTE)
    half = series(wave(4), MINUTE // 2, [2, 4, 5, 6])
    with pytest.raises(DataError, match="data row.* bars of several lengths: 30 s"):
        watched(half, length=MINUTE)
    assert watched(half, {"mixed_lengths": "report"}, length=MINUTE)[1].count("mixed_lengths") == 2


def test_bars_that_are_all_farther_apart_than_long_are_refused():
    with pytest.raises(DataError, match="all bars lie a multiple of 3600 s apart, and their length is 60 s; is --bar right?"):
        watched(series(wave(6), 60 * MINUTE), length=MINUTE)
    assert watched(series(wave(6), 60 * MINUTE), {"mixed_lengths": "report"}, length=MINUTE)[1].count("mixed_lengths") == 1
    assert watched(series(wave(6), MINUTE, [1, 3, 5, 7, 9, 10]), length=MINUTE)[0].gaps.missing == 4


def test_the_short_last_bar_of_a_session_is_no_other_length():
    hours = np.array([60, 120, 180, 240, 300, 360, 390])
    bars = series(wave(14), stamps=np.concatenate([hours, hours + 1440]) + 870)
    assert watched(bars, session="us_equity", length=60 * MINUTE)[1].count("mixed_lengths") == 0


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_what_is_found_does_not_depend_on_blocks(data):
    count = 120
    close = wave(count, data.draw(st.integers(0, 50)))
    for place in data.draw(st.lists(st.integers(1, count - 1), max_size=3)):
        close[place:] *= data.draw(st.sampled_from([0.5, 1.0, 2.0]))
    stamps = np.cumsum(data.draw(st.lists(st.sampled_from([1, 1, 1, 4]), min_size=count, max_size=count)))
    flat = data.draw(st.integers(0, count - 40))
    close[flat : flat + data.draw(st.integers(0, 39))] = close[flat]
    bars = series(close, 6 * 60 * MINUTE, stamps)
    policies = Policies({"mixed_lengths": "report"})

    def run(cuts):
        findings = Findings()
        watch = Watch("X", Hours(Instrument("X")), 6 * 60 * MINUTE, policies, findings, Bars.where)
        tail, context, done = np.zeros(0, np.int64), 0, 0
        for cut in [*cuts, count]:
            places = np.concatenate([tail, np.arange(done, cut)]).astype(np.int64)
            if not len(places):
                continue
            keep = places[watch.look(bars.take(places), context, cut == count)]
            before = keep[-1:] if len(keep) else places[:context]
            tail, context, done = np.concatenate([before, places[-1:]]), len(before), cut
        counted = {check: findings.count(check) for check in ("possible_split", "stale_price", "zero_volume")}
        return watch.gaps, watch.splits, watch.levels, counted, watch.unknown_volume

    cuts = sorted(set(data.draw(st.lists(st.integers(1, count - 1), max_size=4))))
    assert run(cuts) == run([])


def in_blocks(bars, rows, cuts=()):
    """What a watch finds in the blocks that an import makes of chunks."""
    findings = Findings()
    watch = Watch("X", Hours(Instrument("X")), MINUTE, Policies({"mixed_lengths": "report"}), findings, Bars.where)
    frame = frame_of(bars.take(np.arange(len(bars))))
    chunks = [frame[int(a) : int(b)] for a, b in zip([0, *cuts], [*cuts, len(bars)], strict=True)]
    tail, context = frame[:0], 0
    for block, last in blocks(chunks, rows):
        whole = tail.vstack(block)
        keep = watch.look(bars_of(whole, "X"), context, last)
        before = whole[keep[-1:].tolist()] if len(keep) else whole[:context]
        tail, context = before.vstack(whole[-1:]), before.height
    return [one.document() for one in findings], watch.gaps, watch.splits, watch.levels, watch.zero_volume, watch.unknown_volume


@pytest.mark.parametrize("place", [3, 150, 203, 207])
def test_a_jump_in_a_short_last_block_is_found_as_anywhere(place):
    close = wave(210)
    close[place] *= 1.2
    (found,) = in_blocks(series(close), 100)[0]
    assert (found["check"], found["count"]) == ("outlier", 1) and found["first"][0].startswith(f"X: data row {place + 1} ")


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_what_is_found_in_an_import_does_not_depend_on_chunks(data):
    count = data.draw(st.integers(60, 130))
    close = wave(count, data.draw(st.integers(0, 50)))
    for place in data.draw(st.lists(st.integers(1, count - 1), max_size=4)):
        close[place] *= data.draw(st.sampled_from([0.8, 1.3]))
    bars = series(close, stamps=np.cumsum(data.draw(st.lists(st.sampled_from([1, 1, 4]), min_size=count, max_size=count))))
    cuts = sorted(set(data.draw(st.lists(st.integers(1, count - 1), max_size=6))))
    assert in_blocks(bars, 48, cuts) == in_blocks(bars, 48)
