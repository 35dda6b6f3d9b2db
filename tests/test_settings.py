"""The typed sections: bounds, meanings, and rules between keys."""

import pytest

from bellmark.component import make, settings_of
from bellmark.errors import UsageError
from bellmark.settings import DEFAULT_USE, LABELLED, ORDER, SECTIONS, SINGLE


def test_every_section_stands_in_the_order_once():
    assert sorted(ORDER) == sorted([*SECTIONS, *SINGLE, *LABELLED])
    assert set(DEFAULT_USE) <= set(SINGLE)


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_has_defaults_and_every_key_a_meaning(name):
    assert SECTIONS[name].name == name
    make(SECTIONS[name], {}, name)
    for info in settings_of(SECTIONS[name]):
        assert info.meaning, f"{name}.{info.name} does not say what it means"


@pytest.mark.parametrize(
    ("section", "values", "message"),
    [
        ("environment", {"lanes": 0}, "environment.lanes: expected int >= 1, found int 0"),
        ("market", {"fee_bps": True}, "market.fee_bps: expected float >= 0 <= 10000, found bool True"),
        ("market", {"capital_floor": 1.0}, "market.capital_floor: expected float >= 0 < 1, found float 1.0"),
        ("learners", {"count": "2"}, "learners.count: expected int >= 1, found str '2'"),
        ("learners", {"count": 2.0}, "learners.count: expected int >= 1, found float 2.0"),
        ("network", {"hidden": [64, 0]}, "each at least 1 wide"),
        ("network", {"hidden": [64, "64"]}, "network.hidden.1: expected int, found str '64'"),
        ("network", {"activation": "tanh"}, "expected one of 'relu', 'gelu', found str 'tanh'"),
        ("action", {"exposures": [-1.0, 1.0]}, "0 must be among them"),
        ("action", {"exposures": [0.0, 1.0, 1.0]}, "they must rise"),
        ("action", {"urgencies": []}, "at least one"),
        ("split", {"train": 1.5}, "a share lies between 0 and 1"),
        ("split", {"train": "soon"}, "an ISO date such as"),
        ("split", {"train": 0.8, "validation": 0.2}, "no test part is left"),
        ("split", {"train": "2012-01-01"}, "two shares or two dates"),
        ("split", {"train": "2012-01-01", "validation": "2011-01-01"}, "expected a date before that of validation"),
        ("market", {"start_equity": 1e10}, "market.start_equity: expected float >= 1e-09 <= 4.6e+09, found float 10000000000.0"),
        ("market", {"start_equity": 1e-12}, "market.start_equity: expected float >= 1e-09"),
        ("market", {"fee_per_contract": 1e300}, "<= 4.6e+09"),
        ("market", {"fee_minimum": 1e300}, "<= 4.6e+09"),
        ("market", {"initial_margin_per_contract": 1e300}, "<= 4.6e+09"),
        ("market", {"initial_margin_rate": 10.0}, "<= 1"),
        ("market", {"fee_bps": 1e300}, "<= 10000"),
        ("market", {"slippage_bps": 20_000.0}, "<= 5000"),
        ("market", {"slippage_ticks": 1e300}, "<= 1e+09"),
        ("market", {"spread_ticks": 1e300}, "<= 1e+09"),
        ("instrument", {"periods_per_year": 1e300}, "<= 1e+09"),
        ("instrument", {"session": "UTC 25:00-26:00"}, "expected a time as HH:MM"),
        ("action", {"exposures": [0.0, 1e300]}, "between -1e6 and 1e6"),
        ("run", {"folder": " "}, "a folder"),
        ("replay", {"capacity": 10, "learning_starts": 11}, "at most the capacity 10, found 11"),
    ],
)
def test_a_wrong_value_says_what_was_expected(section, values, message):
    with pytest.raises(UsageError) as error:
        make(SECTIONS[section], values, section)
    assert message in str(error.value)


def test_a_whole_number_is_taken_where_a_float_is_declared():
    assert make(SECTIONS["market"], {"start_equity": 5000}, "market").start_equity == 5000.0
