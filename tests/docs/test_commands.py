"""Every command line in the pages is one that the program takes."""

import re
import shlex
from pathlib import Path

import click
import pytest

from bellmark.cli import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def lines(page):
    """The command lines of a page, in blocks (those over several lines joined) and within sentences."""
    blocks = r"```\w*\n(.*?)```"
    text = page.read_text(encoding="utf-8")
    for block in re.findall(blocks, text, flags=re.DOTALL):
        yield from (line for line in block.replace("\\\n", " ").splitlines() if line.startswith("bellmark "))
    yield from re.findall(r"`(bellmark [^`\n]+)`", re.sub(blocks, "", text, flags=re.DOTALL))


LINES = [(page.name, line) for page in PAGES for line in lines(page)]


def test_pages_have_command_lines():
    assert len(LINES) > 20 and {"README.md", "data.md", "synthetic-markets.md"} <= {name for name, _ in LINES}


@pytest.mark.parametrize(("page", "line"), LINES)
def test_command_line_is_taken(page, line, monkeypatch):
    monkeypatch.setenv("BELLMARK_PLUGINS", "")  # so that what --plugins sets is undone
    _, *words = shlex.split(line, comments=True)
    command, names = main.get_command(click.Context(main), words[0]), [words.pop(0)]
    assert command is not None, f"no command {names[0]}"
    while isinstance(command, click.Group):
        assert words and words[0] in command.commands, f"no command {' '.join([*names, *words[:1]])}"
        command = command.commands[words[0]]
        names.append(words.pop(0))
    if words or not any(parameter.required for parameter in command.params):  # in a sentence a command may stand by its name alone
        command.make_context(" ".join(names), words)
