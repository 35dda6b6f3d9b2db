"""`bellmark plugins`."""

import pytest

BROKEN = "raise RuntimeError('it fell over')\n"
GOOD = '''
from typing import ClassVar
from bellmark.component import Reward, component, setting
from bellmark.hookspecs import hookimpl

@component
class Mine(Reward):
    """Nothing at all."""
    name: ClassVar[str] = "mine"
    size: float = setting(2.0, "how much", gt=0.0, unit="currency")

    @staticmethod
    def reward(equity, size):
        return 0.0 * equity

@hookimpl
def bellmark_rewards():
    return [Mine]
'''


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "plugs").mkdir()
    (tmp_path / "plugs" / "broken.py").write_text(BROKEN)
    (tmp_path / "plugs" / "good.py").write_text(GOOD)
    return tmp_path / "plugs"


def test_list_shows_components_with_plugin_version_and_status(bellmark):
    document = bellmark("plugins", "list", "--json").json
    row = next(row for row in document["components"] if row["name"] == "log_return")
    assert (row["kind"], row["plugin"], row["distribution"]) == ("feature", "builtin_plugins", "bellmark")
    assert all(plugin["status"] == "ok" for plugin in document["plugins"] if plugin["distribution"] == "bellmark")
    assert {row["kind"] for row in bellmark("plugins", "list", "--kind", "loss", "--json").json["components"]} == {"loss"}


def test_a_broken_plugin_is_listed_with_its_reason_and_stops_nothing(bellmark, folder):
    result = bellmark("plugins", "list", "--plugins", folder)
    assert result.code == 0
    assert "mine" in result.out and "failed" in result.out
    assert "RuntimeError: it fell over" in result.err and "broken" in result.err
    plugins = bellmark("plugins", "list", "--plugins", folder, "--json").json["plugins"]
    assert [plugin["status"] for plugin in plugins if plugin["name"] == "broken"] == ["failed"]


def test_show_prints_settings_with_type_default_unit_and_meaning(bellmark, folder):
    document = bellmark("plugins", "show", "mine", "--plugins", folder, "--json").json
    assert document["settings"] == [
        {"name": "size", "type": "float", "default": 2.0, "required": False, "meaning": "how much", "unit": "currency"}
        | {"bounds": {"gt": 0.0}, "choices": []}
    ]
    assert document["json_schema"]["properties"]["size"]["exclusiveMinimum"] == 0.0
    text = bellmark("plugins", "show", "mine", "--plugins", folder).out
    assert "reward mine (plugin good" in text and "float > 0" in text and "how much" in text
    assert "Nothing at all." in text


def test_show_of_every_component_works(bellmark):
    for row in bellmark("plugins", "list", "--json").json["components"]:
        result = bellmark("plugins", "show", row["name"], "--kind", row["kind"], "--json")
        assert result.code == 0, result.err
        assert all(setting["meaning"] for setting in result.json["settings"]), f"{row['name']}: a setting without meaning"


def test_show_of_a_component_of_a_broken_plugin_gives_its_reason(bellmark, folder):
    result = bellmark("plugins", "show", "broken", "--plugins", folder)
    assert (result.code, result.err) == (2, "error: plugin 'broken' did not load: RuntimeError: it fell over\n")


def test_a_folder_of_plugins_that_is_not_there_is_one_line(bellmark):
    result = bellmark("plugins", "list", "--plugins", "nowhere")
    assert (result.code, result.err) == (2, "error: nowhere: expected a folder of plugins, found nothing\n")
