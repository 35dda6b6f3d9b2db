"""Stages and steps: the plan is checked before anything runs."""

import pytest

from bellmark.buffers import BufferRegistry
from bellmark.errors import InternalError, PluginError
from bellmark.stages import Stage, Step


def add_one(source, target):
    target[:] = source + 1


def registry():
    made = BufferRegistry()
    for name in "abc":
        made.declare(name, "counter", (2,))
    made.allocate()
    return made


def test_stages_run_in_order_over_named_buffers():
    made = registry()
    step = Step(made, [Stage("one", add_one, ("a", "b"), ("a",), ("b",)), Stage("two", add_one, ("b", "c"), ("b",), ("c",))], ["a"])
    step.run(2)
    assert made["c"].tolist() == [2, 2]


def test_reading_what_nothing_wrote_is_refused():
    with pytest.raises(InternalError, match="stage 'one': it reads 'a', which nothing before it writes"):
        Step(registry(), [Stage("one", add_one, ("a", "b"), ("a",), ("b",))])


def test_a_second_writer_is_refused_but_updating_in_place_is_not():
    made = registry()
    first = Stage("one", add_one, ("a", "b"), ("a",), ("b",))
    with pytest.raises(InternalError, match="stage 'two': it writes 'b', which 'one' writes already"):
        Step(made, [first, Stage("two", add_one, ("a", "b"), ("a",), ("b",))], ["a"])
    Step(made, [first, Stage("two", add_one, ("b", "b"), ("b",), ("b",))], ["a"])


def test_an_argument_that_is_neither_read_nor_written_is_refused():
    with pytest.raises(InternalError, match="argument 'c' is neither"):
        Step(registry(), [Stage("one", add_one, ("a", "c"), ("a",), ("b",))], ["a"])


def test_a_step_of_a_released_arena_raises():
    made = registry()
    step = Step(made, [Stage("one", add_one, ("a", "b"), ("a",), ("b",))], ["a"])
    made.release()
    made.allocate()
    with pytest.raises(InternalError, match="build the step anew"):
        step.run()


def test_an_error_in_a_plugin_stage_names_stage_and_plugin():
    def broken(_):
        raise ValueError("bad")

    step = Step(registry(), [Stage("mine", broken, ("a",), ("a",), (), "third_party")], ["a"])
    with pytest.raises(PluginError, match="stage 'mine' of plugin 'third_party': ValueError: bad"):
        step.run()
