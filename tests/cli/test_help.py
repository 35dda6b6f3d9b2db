"""Examples in the help texts are command lines that the program takes."""

import shlex

import click
import pytest

from bellmark.api import resolve_profile
from bellmark.cli import COMMANDS, main
from bellmark.component import settings_of
from bellmark.host import Host


def commands():
    context = click.Context(main)
    for name in COMMANDS:
        command = main.get_command(context, name)
        yield [name], command
        if isinstance(command, click.Group):
            yield from (([name, inner], found) for inner, found in command.commands.items())


def examples():
    texts = [main.help, *(command.help for _, command in commands())]
    return [line.strip() for text in texts for line in text.splitlines() if line.strip().startswith("bellmark ")]


LINES = examples()


def test_every_command_has_an_example():
    assert [words for words, command in commands() if f"bellmark {words[0]}" not in (command.help or "")] == []


@pytest.mark.parametrize("line", LINES)
def test_example_is_a_command_line(line):
    _, *words = shlex.split(line)
    command = main.get_command(click.Context(main), words[0])
    arguments = words[1:]
    if isinstance(command, click.Group):
        command, arguments = command.commands[arguments[0]], arguments[1:]
    context = command.make_context(" ".join(words), list(arguments))
    for text in context.params.get("sets") or ():
        key = text.partition("=")[0]
        if words[:2] in (["datasets", "show"], ["datasets", "make"]):
            name = context.params.get("name") or context.params["kind"]
            assert key in {info.name for info in settings_of(Host().load().entry("dataset", name).cls)}
        else:
            resolve_profile("demo", sets=[text])


def test_example_of_a_dataset_names_every_setting_that_it_needs():
    line = next(line for line in LINES if "datasets show csv" in line)
    infos = settings_of(Host().load().entry("dataset", "csv").cls)
    assert [info.name for info in infos if info.required and f"--set {info.name}=" not in line] == []
