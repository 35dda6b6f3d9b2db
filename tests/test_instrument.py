"""Instruments: exact values, the choice of the quantum, ranges and sessions."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellmark.errors import UsageError
from bellmark.instrument import Instrument, Session, exact


def es(**more):
    return Instrument("ES", 0.25, 50.0, session=Session.parse("cme_regular"), **more)


def test_numbers_are_read_as_the_decimal_that_was_written():
    assert exact(0.1) == Fraction(1, 10)
    assert exact(1e-8) == Fraction(1, 10**8)
    assert exact("2.50") == Fraction(5, 2)


def test_half_of_a_spread_of_one_tick_is_whole_quanta():
    found = es().with_costs(spread_ticks=1.0)
    assert found.price_quantum == 0.125
    assert found.quanta_per_tick == 2
    assert (found.value_numerator, found.value_denominator) == (6_250_000_000, 1)


def test_quantum_without_costs_already_takes_half_a_tick():
    assert es().resolved(4500.0).price_quantum == 0.125


def test_slippage_in_fractions_of_a_tick_makes_the_quantum_finer():
    assert es().with_costs(slippage_ticks=0.1).price_quantum == 0.025


@given(price=st.integers(1, 10**7), basis_points=st.sampled_from([0.5, 1.0, 2.5, 5.0, 10.0, 12.5]))
def test_slippage_in_basis_points_of_any_price_on_the_grid_is_whole_quanta(price, basis_points):
    instrument = Instrument("X", 0.01).with_costs(slippage_bps=basis_points)
    slippage = Fraction(price, 100) * exact(basis_points) / 10_000
    assert (slippage / instrument.quantum).denominator == 1


def test_slippage_of_5_basis_points_on_a_cent_takes_the_quantum_of_the_golden_backtests():
    assert Instrument("X", 0.01).with_costs(slippage_bps=5.0).price_quantum == 5e-6


def test_slippage_in_odd_basis_points_stops_at_1e_5_of_the_grid():
    assert Instrument("X", 0.01).with_costs(slippage_bps=0.123456789).quantum >= Fraction(1, 10**7)


def test_quantum_chosen_by_the_profile_is_left_by_costs():
    instrument = Instrument("X", 0.01).with_overrides({"price_quantum": 0.001})
    assert instrument.with_costs(slippage_bps=5.0).price_quantum == 0.001


def test_data_quantum_is_divided_by_the_price_quantum():
    found = Instrument("AAPL", 0.01, data_quantum=0.000025).with_costs(spread_ticks=1.0)
    assert found.price_quantum == 0.000025 and found.quanta_per_tick == 400


@pytest.mark.parametrize(("price", "quantum"), [(93_500.1, 0.001), (1.0847, 1e-7), (100.0, 1e-5), (0.00012, 1e-11)])
def test_without_a_tick_the_quantum_takes_8_digits_of_the_first_price(price, quantum):
    assert Instrument("X").resolved(price).price_quantum == quantum


def test_value_of_a_fraction_of_a_coin_is_a_ratio():
    instrument = Instrument("BTC", 0.1, lot_size=1e-8, price_quantum=0.05)
    assert (instrument.value_numerator, instrument.value_denominator) == (1, 2)


def test_overrides_replace_and_none_leaves():
    changed = es().with_overrides({"tick_size": 0.5, "contract_multiplier": None, "session": "us_equity", "currency": "EUR"})
    assert (changed.tick_size, changed.contract_multiplier, changed.currency) == (0.5, 50.0, "EUR")
    assert str(changed.session) == "America/New_York 09:30-16:00"
    assert es().with_overrides({"tick_size": 0.0}).tick_size is None
    assert es().with_overrides({"session": "none"}).session is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"tick": 1.0}, "did you mean 'tick_size'"),
        ({"tick_size": -1.0}, "tick_size: expected a number above 0"),
        ({"lot_size": 0.0}, "lot_size: expected a number above 0"),
        ({"contract_multiplier": "50"}, "expected a number above 0, found '50'"),
        ({"price_quantum": 0.03}, "divided by a whole number"),
        ({"session": "us_equty"}, "did you mean 'us_equity'"),
        ({"session": "America/New_York 9-16"}, "HH:MM"),
    ],
)
def test_bad_override_is_one_line(values, message):
    with pytest.raises(UsageError, match=message) as caught:
        es().with_overrides(values)
    assert "\n" not in str(caught.value)


def test_range_names_the_quantum_to_take():
    with pytest.raises(UsageError, match="take price_quantum 1e-09 instead of 1e-12"):
        Instrument("X", 0.01, price_quantum=1e-12).check_range(1e6)


def test_where_the_tick_itself_is_too_fine_the_range_names_the_tick_to_take():
    with pytest.raises(UsageError, match="take tick_size 1e-06 instead of 1e-09, and no price_quantum") as caught:
        Instrument("X", 1e-9, price_quantum=1e-9).check_range(1e9)
    assert "\n" not in str(caught.value)
    Instrument("X", 1e-6, price_quantum=1e-6).check_range(1e9)


def test_range_names_the_lot_to_take_for_one_lot_too_large():
    with pytest.raises(UsageError, match=r"take lot_size 0\.001 instead of 1$"):
        Instrument("X", 1.0, 1e9, price_quantum=1.0).check_range(1000.0)


@pytest.mark.parametrize("setting", [{"lot_size": 1e-300}, {"tick_size": None, "price_quantum": 1e-300}])
def test_ratio_beyond_all_remedies_is_one_line_too(setting):
    with pytest.raises(UsageError, match="take a larger lot_size or price_quantum"):
        Instrument(**{"symbol": "X", "tick_size": 0.01, "price_quantum": 1e-8} | setting).check_range(10.0)


def test_range_names_the_lot_to_take_for_too_fine_a_ratio():
    with pytest.raises(UsageError, match="take lot_size 1e-10 instead of 1e-11"):
        Instrument("X", 0.01, lot_size=1e-11, price_quantum=1e-8).check_range(10.0)


def test_range_holds_for_a_large_account_in_es():
    es().resolved(4500.0).check_range(10_000.0, 1e9)


@pytest.mark.parametrize(("name", "hours"), [("us_equity", 6.5), ("cme_regular", 6.5), ("cme_globex", 23), ("UTC 00:00-00:00", 24)])
def test_session_length(name, hours):
    assert Session.parse(name).length_seconds == hours * 3600


def test_description_gives_the_instrument_back():
    for instrument in (es(), Instrument("X", data_quantum=0.5, allow_negative_prices=True)):
        assert Instrument.from_description(instrument.describe()) == instrument
