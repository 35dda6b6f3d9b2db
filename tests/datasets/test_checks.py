"""Each check of rows and of their order: the error with its rows, and what every policy does and counts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellmark.bars import Bars, check
from bellmark.datasets.checks import CHECKS, Findings, Policies, apply, filled_quotes
from bellmark.errors import DataError, UsageError

pytestmark = pytest.mark.none

MINUTE = 60_000_000_000
T0 = 1_709_562_600_000_000_000  # 2024-03-04T14:30:00Z


def bars_of(rows, stamps=None, **extras):
    columns = np.array(rows, np.float64).T
    ts_T = np.array([T0 + MINUTE * step for step in (stamps if stamps is not None else range(len(rows)))], np.int64)
    return Bars("X", ts_T, *columns, source="f.csv", **{name: np.array(column) for name, column in extras.items()})


GOOD = [100, 102, 99, 101, 10]
CASE_01 = [[100, 101, 99, 100, 10], [100, 102, 100, 101, 12], [100, 102, 100, 101, 12], [101, 103, 101, 102, 9], [102, 104, 102, 103, 7],
           [102, 106, 102, 105, 31]]  # fmt: skip
STAMPS_01 = [0, 1, 1, 2, 3, 3]


def test_right_bars_pass_untouched():
    bars = bars_of([GOOD] * 3)
    left, findings = apply(bars, Policies())
    assert left is bars and list(findings) == []


def test_conflicting_rows_of_one_stamp_are_refused_with_both_rows_and_the_stamp():
    with pytest.raises(DataError, match=r"f.csv: X: data rows 5, 6 .*two rows for 2024-03-04T14:33:00Z disagree: high 104 and 106"):
        apply(bars_of(CASE_01, STAMPS_01), Policies())


@pytest.mark.parametrize(("policy", "last"), [("keep_first", 103), ("keep_last", 105)])
def test_a_policy_keeps_one_of_two_conflicting_rows_and_identical_ones_count(policy, last):
    left, findings = apply(bars_of(CASE_01, STAMPS_01), Policies({"duplicate_conflicting": policy}))
    assert len(left) == 4 and left.close[-1] == last and left.duplicates == 1
    assert findings.count("duplicate_identical") == 1 and findings.count("duplicate_conflicting") == 1
    assert [finding.places[0] for finding in findings][0] == "f.csv: X: data row 3 at 2024-03-04T14:31:00Z"


def test_identical_rows_can_be_refused():
    with pytest.raises(DataError, match="data row 3 .* the same row is there before"):
        apply(bars_of(CASE_01[:4], STAMPS_01[:4]), Policies({"duplicate_identical": "error"}))


def test_rows_out_of_order_are_refused_or_sorted():
    bars = bars_of([[p, p, p, p, 1] for p in (1, 2, 3)], [0, 2, 1])
    told = r"data row 3 .*not in time order: 2024-03-04T14:31:00Z comes after 2024-03-04T14:32:00Z.*unsorted=sort"
    with pytest.raises(DataError, match=told):
        apply(bars, Policies())
    left, findings = apply(bars, Policies({"unsorted": "sort"}))
    assert left.close.tolist() == [1, 3, 2] and findings.count("unsorted") == 1 and left.row_T.tolist() == [1, 3, 2]


def test_two_series_in_one_file_are_told_from_a_duplicate():
    rows = [[p, p, p, p, 1] for p in (1, 2, 3, 4, 5)]
    other = [[p + 0.5, p + 0.5, p + 0.5, p + 0.5, 1] for p in (1, 2, 3, 4, 5)]
    bars = bars_of(rows + other, [*range(5), *range(5)])
    with pytest.raises(DataError, match=r"f.csv: X: 5 rows share 5 stamps .*two series of one symbol"):
        apply(bars, Policies({"duplicate_conflicting": "keep_first", "unsorted": "sort"}))
    left, _ = apply(bars, Policies({"two_series": "keep_last", "unsorted": "sort"}))
    assert left.close.tolist() == [1.5, 2.5, 3.5, 4.5, 5.5]


@pytest.mark.parametrize(
    ("check_name", "row", "told"),
    [
        ("missing_price", [100, np.nan, 99, 100, 1], "high is missing"),
        ("missing_price", [100, np.inf, 99, 100, 1], "high is missing or no number"),
        ("nonpositive_price", [0, 0, 0, 0, 0], "open is 0; prices must be above 0"),
        ("nonpositive_price", [-1, 2, -1, 1, 0], "open is -1"),
        ("price_range", [100, 98, 99, 99, 1], "high 98 is below low 99"),
        ("price_range", [103, 102, 99, 101, 1], "open 103 lies outside low 99 to high 102"),
        ("price_range", [100, 102, 99, 98, 1], "close 98 lies outside low 99 to high 102"),
        ("bad_volume", [100, 102, 99, 101, -1], "volume is -1"),
        ("bad_volume", [100, 102, 99, 101, np.inf], "volume is inf"),
    ],
)
def test_a_wrong_row_is_refused_with_its_row_or_dropped_and_counted(check_name, row, told):
    bars = bars_of([GOOD, row, GOOD])
    with pytest.raises(DataError, match=f"f.csv: X: data row 2 .*{told}.* at 2024-03-04T14:31:00Z.*--on {check_name}=drop"):
        apply(bars, Policies())
    left, findings = apply(bars, Policies({check_name: "drop"}))
    assert left.row_T.tolist() == [1, 3] and findings.count(check_name) == 1
    check(left)


def test_negative_prices_are_legal_where_allowed():
    left, findings = apply(bars_of([GOOD, [-1, 2, -3, 0, 1]]), Policies({"nonpositive_price": "allow"}))
    assert len(left) == 2 and findings.count("nonpositive_price") == 1
    with pytest.raises(DataError, match="close 5 lies outside"):
        apply(bars_of([[-1, 2, -3, 5, 1]]), Policies({"nonpositive_price": "allow"}))


def test_a_wrong_volume_becomes_unknown_and_a_missing_one_may_be_refused():
    left, _ = apply(bars_of([GOOD, [100, 102, 99, 101, -1]]), Policies({"bad_volume": "null"}))
    assert np.isnan(left.volume[1])
    with pytest.raises(DataError, match="data row 1 .*the volume is missing"):
        apply(bars_of([[100, 102, 99, 101, np.nan]]), Policies({"missing_volume": "error"}))


def test_quotes_are_checked_for_missing_crossed_and_outside():
    quoted = bars_of([GOOD] * 3, bid=[100.0, np.nan, 100.0], ask=[101.0, 101.0, 99.0])
    with pytest.raises(DataError, match="data row 2 .*bid is missing.*missing_quote=drop"):
        apply(quoted, Policies({"crossed_quote": "drop"}))
    with pytest.raises(DataError, match="data row 3 .*ask 99 is below bid 100"):
        apply(quoted, Policies({"missing_quote": "drop"}))
    nulled, findings = apply(quoted, Policies({"missing_quote": "fill", "crossed_quote": "null"}))
    assert np.isnan(nulled.bid).tolist() == [False, True, True] and findings.count("crossed_quote") == 1
    left, findings = apply(quoted, Policies({"missing_quote": "drop", "crossed_quote": "drop"}))
    assert left.row_T.tolist() == [1] and findings.count("crossed_quote") == 1


def test_missing_quotes_are_filled_with_the_last_known_of_their_side_over_blocks():
    names = ("bid_open", "bid_high", "bid_low", "bid", "ask_open", "ask_high", "ask_low", "ask")
    nan = np.nan
    first = bars_of([GOOD] * 2, **{name: [nan, 100.0] if name.startswith("bid") else [101.0, 101.0] for name in names})
    second = bars_of([GOOD] * 2, [2, 3], **{name: [nan, 102.0] if name.startswith("bid") else [103.0, nan] for name in names})
    last, findings, policies = {}, Findings(), Policies({"missing_quote": "fill"})
    a = filled_quotes(first, last, policies, findings)
    b = filled_quotes(second, last, policies, findings)
    assert a.places.tolist() == [1] and b.places.tolist() == [0, 1]
    assert b.bars.bid_low.tolist() == [100, 102] and b.bars.ask.tolist() == [103, 103]
    assert {(one.action, one.count) for one in findings} == {("left out: before the first quote", 1), ("filled with the last known", 2)}


def test_policies_are_read_and_wrong_ones_refused():
    assert Policies.parse(["price-range=drop", "unsorted=sort"]).chosen == {"price_range": "drop", "unsorted": "sort"}
    assert Policies()["unsorted"] == "error" and set(Policies().all()) == set(CHECKS)
    for texts, told in (
        (["unsortd=sort"], "no check named 'unsortd'; did you mean 'unsorted'"),
        (["unsorted=srt"], "check unsorted: expected one of error, sort, found 'srt'; did you mean 'sort'"),
        (["unsorted"], "expected CHECK=POLICY"),
        (["unsorted=sort", "unsorted=error"], "unsorted is given twice"),
    ):
        with pytest.raises(UsageError, match=told):
            Policies.parse(texts)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_shuffling_and_repeating_rows_gives_the_same_bars_or_an_error(data):
    count = data.draw(st.integers(2, 12))
    price = data.draw(st.lists(st.integers(1, 50), min_size=count, max_size=count))
    rows = [[p, p + 1, p, p + 1, p] for p in price]
    whole = bars_of(rows)
    order = data.draw(st.permutations(range(count)))
    again = data.draw(st.lists(st.integers(0, count - 1), max_size=4))
    order = [*order, *again]
    mixed = bars_of([rows[place] for place in order], order)
    try:
        left, _ = apply(mixed, Policies())
    except DataError:
        assert order != sorted(order)
    else:
        assert left.close.tolist() == whole.close.tolist()
    left, findings = apply(mixed, Policies({"unsorted": "sort"}))
    assert left.close.tolist() == whole.close.tolist() and left.ts_event.tolist() == whole.ts_event.tolist()
    assert findings.count("duplicate_identical") == len(again)
