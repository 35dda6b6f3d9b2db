"""The host: each plugin is tried alone; errors name plugin, hook and component; names are found or the nearest is told."""

import types
from typing import ClassVar

import pytest

from bellmark.component import KINDS, Reward, component
from bellmark.errors import PluginError, UnknownNameError, UsageError
from bellmark.hookspecs import hookimpl
from bellmark.host import Host, host


def make_reward(called):
    @component
    class Made(Reward):
        """A made reward."""

        name: ClassVar[str] = called

        @staticmethod
        def reward(equity):
            return equity * 0.0

    return Made


def plugin_of(**hooks):
    module = types.ModuleType("fake")
    for name, function in hooks.items():
        setattr(module, name, function)
    return module


def test_built_ins_come_in_through_the_entry_point_group_and_fill_every_kind():
    loaded = Host().load()
    assert all(record.status == "ok" for record in loaded.plugins), [record.error for record in loaded.plugins]
    assert {entry.kind for entry in loaded.entries()} == set(KINDS)
    assert all(entry.distribution == "bellmark" for entry in loaded.entries() if entry.plugin.startswith("builtin"))


def test_a_registered_plugin_is_found_by_name():
    empty = Host()
    made = make_reward("made")
    empty.register(plugin_of(bellmark_rewards=hookimpl(lambda: [made])), "third")
    assert empty.get("reward", "made") is made
    assert empty.entry("reward", "made").plugin == "third"


def test_an_unknown_name_tells_the_nearest_one():
    with pytest.raises(UnknownNameError, match=r"no loss named 'c52'; did you mean 'c51'\?"):
        host().get("loss", "c52")


def test_two_components_of_one_name_need_the_plugin_in_front():
    empty = Host()
    first, second = make_reward("same"), make_reward("same")
    empty.register(plugin_of(bellmark_rewards=hookimpl(lambda: [first])), "one")
    empty.register(plugin_of(bellmark_rewards=hookimpl(lambda: [second])), "two")
    with pytest.raises(UnknownNameError, match="'one:same' or 'two:same'"):
        empty.get("reward", "same")
    assert empty.get("reward", "two:same") is second


def raising():
    raise ValueError("broken on purpose")


def not_a_hook():
    return []


not_a_hook.bellmark_impl = {}


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (plugin_of(bellmark_rewards=hookimpl(raising)), "hook bellmark_rewards raised ValueError: broken on purpose"),
        (plugin_of(bellmark_rewards=lambda: []), "expected the decorator @hookimpl"),
        (plugin_of(bellmark_reward=not_a_hook), "'bellmark_reward': no such hook; did you mean 'bellmark_rewards'?"),
        (plugin_of(bellmark_rewards=hookimpl(lambda: [int])), "expected classes derived from Reward, found int"),
        (
            plugin_of(bellmark_rewards=hookimpl(lambda: [type("Bare", (Reward,), {"name": "bare"})])),
            "expected the decorator @component",
        ),
    ],
)
def test_a_broken_plugin_is_kept_with_its_reason_and_the_others_go_on(module, message):
    some = Host()
    some.register(plugin_of(bellmark_rewards=hookimpl(lambda: [make_reward("good")])), "good")
    record = some.register(module, "broken")
    assert record.status == "failed" and message in record.error
    assert some.get("reward", "good").name == "good"


def test_a_plugin_that_raises_at_import_is_named(tmp_path):
    (tmp_path / "bad.py").write_text("raise RuntimeError('no licence')\n")
    (tmp_path / "exits.py").write_text("raise SystemExit(3)\n")
    loaded = Host().load(tmp_path)
    failed = {record.name: record.error for record in loaded.plugins if record.status == "failed"}
    assert failed == {"bad": "RuntimeError: no licence", "exits": "SystemExit: 3"}
    with pytest.raises(UnknownNameError, match="plugin 'bad' did not load: RuntimeError: no licence"):
        loaded.get("reward", "bad:thing")


def test_a_plugin_folder_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(UsageError, match="expected a folder of plugins, found nothing"):
        Host().load(tmp_path / "none")


def test_a_component_given_twice_is_refused():
    made = make_reward("twice")
    record = Host().register(plugin_of(bellmark_rewards=hookimpl(lambda: [made, made])), "double")
    assert "given twice" in record.error


def test_errors_are_one_line():
    assert "\n" not in str(PluginError("a\nb\n c"))
