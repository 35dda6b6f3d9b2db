"""Money arithmetic: exact integers, rounded half away from zero."""

from decimal import ROUND_HALF_UP, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellmark.codegen import lower
from bellmark.market import average_entry, increases, margin_need, mul_div, part_fee


@given(st.integers(-(10**13), 10**13), st.integers(1, 10**5), st.integers(1, 10**6))
def test_mul_div_is_the_exact_ratio_rounded_half_away_from_zero(value, numerator, denominator):
    exact = (Decimal(value) * numerator / denominator).quantize(Decimal(1), ROUND_HALF_UP)
    ratio = value * numerator
    assert mul_div(value, numerator, denominator) == int(exact) or abs(2 * (ratio % denominator)) == denominator
    assert abs(2 * (mul_div(value, numerator, denominator) * denominator - ratio)) <= denominator


@pytest.mark.cpu
def test_mul_div_keeps_to_int64_where_its_result_does():
    value, numerator, denominator = 10**9 - 1, 15_241_578_750_190_521, 10**9  # the naive product is 1.5e25
    assert lower(mul_div)(value, numerator, denominator) == mul_div(value, numerator, denominator) == 15_241_578_734_948_942
    assert lower(mul_div)(-value, numerator, denominator) == -15_241_578_734_948_942


@pytest.mark.parametrize(("value", "expected"), [(1, 1), (-1, -1), (3, 2), (-3, -2), (2, 1), (0, 0)])
def test_a_half_goes_away_from_zero(value, expected):
    assert mul_div(value, 1, 2) == expected


def test_fee_of_a_sale_has_the_sign_of_a_fee():
    buy = part_fee(100, 5_000, 10_000_000, 1, 0, 1_000_000)
    assert buy == part_fee(-100, 5_000, 10_000_000, 1, 0, 1_000_000) > 0


@pytest.mark.parametrize(
    ("position", "target", "needs"),
    [(0, 0, False), (0, 1, True), (2, 1, False), (2, 0, False), (-2, -1, False)]
    + [(1, 2, True), (-1, -2, True), (1, -1, True), (-1, 1, True)],
)
def test_closing_needs_no_margin(position, target, needs):
    assert increases(position, target) is needs


def test_margin_is_per_lot_and_per_notional_at_any_sign_of_price():
    assert margin_need(-3, 100, 10, 1, 7, 500_000_000) == 21 + 1500
    assert margin_need(3, -100, 10, 1, 7, 500_000_000) == 21 + 1500


def test_average_entry_keeps_when_reducing_and_starts_anew_when_reversing():
    assert average_entry(0, 0.0, 2, 100) == 100.0
    assert average_entry(2, 100.0, 2, 110) == 105.0
    assert average_entry(4, 105.0, -1, 200) == 105.0
    assert average_entry(4, 105.0, -4, 200) == 0.0
    assert average_entry(4, 105.0, -6, 90) == 90.0
