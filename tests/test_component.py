"""Components: settings are typed, frozen and strict, and errors say where, what was expected and what was found."""

from typing import ClassVar, Literal

import pytest

from bellmark.component import KINDS, Execution, Reward, component, hook_name, json_schema, make, setting, settings_of
from bellmark.errors import PluginError, UsageError


@component
class Example(Reward):
    """An example."""

    name: ClassVar[str] = "example"
    window: int = setting(5, "bars", ge=1, unit="bars")
    scale: float = setting(1.0, "factor", gt=0.0)
    side: Literal["long", "short"] = setting("long", "which side")
    levels: tuple[float, ...] = setting((1.0,), "levels")
    required: str = setting(meaning="must be given")


GOOD = {"required": "x"}


def test_settings_are_listed_with_type_bounds_unit_and_choices():
    infos = {info.name: info for info in settings_of(Example)}
    assert infos["window"].expected == "int >= 1" and infos["window"].unit == "bars" and infos["window"].default == 5
    assert infos["side"].choices == ("long", "short")
    assert infos["required"].required and not infos["window"].required


def test_a_whole_number_is_a_legal_float_and_a_list_a_legal_tuple():
    made = make(Example, {**GOOD, "scale": 2, "levels": [1.0, 2.0]}, "rewards.x")
    assert made.scale == 2.0 and made.levels == (1.0, 2.0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"window": 0}, r"rewards\.x\.window: expected int >= 1, found int 0"),
        ({"window": "5"}, r"rewards\.x\.window: expected int >= 1, found str '5'"),
        ({"window": True}, r"rewards\.x\.window: expected int >= 1, found bool True"),
        ({"scale": 0.0}, r"rewards\.x\.scale: expected float > 0, found float 0\.0"),
        ({"side": "longg"}, r"rewards\.x\.side: expected one of 'long', 'short', found str 'longg'"),
        ({"widow": 3}, r"rewards\.x\.widow: reward 'example' has no such setting; did you mean 'window'\?"),
    ],
)
def test_a_wrong_value_is_one_line_with_place_expectation_and_finding(values, message):
    with pytest.raises(UsageError, match=message) as caught:
        make(Example, {**GOOD, **values}, "rewards.x")
    assert "\n" not in str(caught.value)


def test_a_missing_required_setting_is_named():
    with pytest.raises(UsageError, match=r"rewards\.x\.required: expected str, found nothing"):
        make(Example, {}, "rewards.x")


def test_an_instance_is_frozen():
    made = make(Example, GOOD, "x")
    with pytest.raises(AttributeError):
        made.window = 3


def test_the_decorator_refuses_a_class_of_no_kind_or_without_a_name():
    with pytest.raises(PluginError, match="one of the component kinds"):
        component(type("Loose", (), {}))
    with pytest.raises(PluginError, match="expected an identifier"):
        component(type("Nameless", (Reward,), {}))


@pytest.mark.parametrize(
    ("attribute", "value", "words"),
    [
        ("order_types", "market", "order_types: expected a tuple of names, found 'market'"),
        ("order_types", (), r"order_types: expected some of market, limit, ioc, found \(\)"),
        ("order_types", ("stop",), r"order_types: expected some of market, limit, ioc, found \('stop',\)"),
        ("needs", "bid_open", "needs: expected a tuple of names, found 'bid_open'"),
        ("state", {"last": "float64"}, "expected no state, found last: it is called more than once a bar"),
    ],
)
def test_an_execution_that_describes_itself_wrongly_is_named(attribute, value, words):
    with pytest.raises(PluginError, match=rf"^execution 'made' \(.*Made\): {words}"):
        component(type("Made", (Execution,), {"name": "made", "__doc__": "x", attribute: value}))


def test_json_schema_refuses_other_keys():
    schema = json_schema(Example)
    assert schema["additionalProperties"] is False
    assert schema["properties"]["window"]["minimum"] == 1


def test_there_are_twelve_kinds_and_each_has_a_hook():
    from bellmark import hookspecs

    assert len(KINDS) == 12
    for kind in KINDS:
        hook = getattr(hookspecs, hook_name(kind))
        assert "Example" in hook.__doc__


@pytest.mark.parametrize("error", [ValueError("x"), KeyError("x"), SystemExit(0), MemoryError()])
def test_whatever_a_plugin_function_raises_is_one_line_that_names_it(error):
    from bellmark.component import plugin_function

    class Odd(Reward):
        name = "odd"

    message = rf"^reward 'odd' \(.*Odd\): read raised {type(error).__name__}"
    with pytest.raises(PluginError, match=message), plugin_function(Odd(), "read"):
        raise error
    with pytest.raises(KeyboardInterrupt), plugin_function(Odd(), "read"):
        raise KeyboardInterrupt
