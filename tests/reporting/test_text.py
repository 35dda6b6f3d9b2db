"""Numbers as people read them."""

import pytest

from bellmark.reporting.text import listed, metric, money, number, percent, plain, plural, stamp


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1234, "12.34%"), (0.0, "0.00%"), (-0.00045, "-0.045%"), (3.1e-5, "0.0031%"), (1e-12, "1.00e-10%"), (12.5, "1,250.00%")],
)  # fmt: skip
def test_percent(value, text):
    assert percent(value) == text


def test_signed_percent_marks_gains_but_not_zero():
    assert [percent(value, True) for value in (0.01, 0.0, -0.01, 1e7)] == ["+1.00%", "0.00%", "-1.00%", "+1.00e+09%"]


@pytest.mark.parametrize(("value", "text"), [(0.0, "0"), (1234.5, "1,234.50"), (0.0123, "0.012"), (1e-9, "1e-09"), (None, "-")])
def test_number(value, text):
    assert number(value) == text


def test_metric_follows_its_unit():
    assert metric(0.5, "fraction a year") == "50.00%"
    assert metric(12.0, "closed trades") == "12"
    assert metric(1.234, "ratio a year") == "1.23"
    assert metric(None, "ratio") == "-"


def test_words():
    assert listed(["a"]) == "a" and listed(["a", "b", "c"], "or") == "a, b or c"
    assert plural(1, "bar") == "1 bar" and plural(2000, "bar") == "2,000 bars"
    assert plain(252.0) == "252" and money(-0.001) == "0.00"
    assert stamp(0) == "1970-01-01" and stamp(3_600_000_000_000) == "1970-01-01 01:00"
