"""Writes the reference pages from the program itself: command line, components, profile, data formats. `--check` says which are stale.

Nothing that the program can print is typed by hand; tests/docs checks that the pages are what this writes.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from bellmark import settings
from bellmark.cli import COMMANDS, main
from bellmark.component import KINDS, hook_name, settings_of
from bellmark.datasets.checks import CHECKS
from bellmark.datasets.formats import FORMATS
from bellmark.host import Host

REFERENCE = Path(__file__).parent / "reference"
NOTE = "<!-- Written by docs/generate.py (make docs). Do not edit. -->\n"


def pages() -> dict[str, str]:
    """The pages by file name."""
    return {"command-line.md": command_line(), "components.md": components(), "profile.md": profile(), "data-formats.md": data_formats()}


def command_line() -> str:
    """The help text of every command."""
    parts = [NOTE, "# Command line\n"]
    for words, command in _commands():
        name = " ".join(["bellmark", *words])
        parts.append(f"## {name}\n\n```text\n{_help(name, command)}\n```\n")
    return "\n".join(parts)


def components() -> str:
    """Every built-in component with its settings."""
    loaded = Host().load()
    parts = [NOTE, "# Components\n", "`bellmark plugins show NAME` prints the same of any installed component.\n"]
    for kind, base in KINDS.items():
        parts.append(f"## {kind.replace('_', ' ')}\n\nHook `{hook_name(kind)}`. {_first_line(base)}\n")
        for entry in loaded.entries(kind):
            if entry.distribution == "bellmark":
                parts.append(f"### {entry.name}\n\n{inspect.getdoc(entry.cls)}\n\n{_settings(entry.cls)}")
    return "\n".join(parts)


def profile() -> str:
    """The sections of a profile."""
    parts = [NOTE, "# Profile\n", "A TOML file; `bellmark profiles show NAME` prints every value and where it comes from.\n"]
    for section in settings.ORDER:
        if section in settings.SECTIONS:
            cls = settings.SECTIONS[section]
            parts.append(f"## [{section}]\n\n{inspect.getdoc(cls)}\n\n{_settings(cls)}")
        elif section in settings.SINGLE:
            use = settings.DEFAULT_USE.get(section)
            default = f" (default `{use}`)" if use else ""
            parts.append(f"## [{section}]\n\n`use` names a {settings.SINGLE[section]}{default}; its settings stand beside it.\n")
        else:
            kind = settings.LABELLED[section].replace("_", " ")
            parts.append(f"## [{section}.LABEL]\n\nA {kind} each; `use` names it (default: the label). `LABEL = false` takes one away.\n")
    return "\n".join(parts)


def data_formats() -> str:
    """Every layout that an import knows, and every check with its policies."""
    found = list(FORMATS.values())
    titles = ("format", "what it is", "holds", "stamp", "zone", "symbol", "source")
    formats = [(f"`{each.name}`", each.summary, each.kinds, each.stamp, each.zone, each.symbol, each.source) for each in found]
    details = [f"- `{each.name}`: {_cell('; '.join(filter(None, (each.columns, each.quirks, _extra(each.extra)))))}" for each in found]
    checks = [(f"`{name}`", check.meaning, ", ".join(f"`{policy}`" for policy in check.policies)) for name, check in CHECKS.items()]
    return "\n".join([
        NOTE,
        "# Data formats and checks\n",
        "What `bellmark datasets import` reads. user = it is in no file of that layout and must be said: `--stamp`, `--tz`, `--symbol`.",
        "Source: doc = the vendor's page, file = seen in real files, know = general knowledge; unverified says that it is not checked.\n",
        "## Formats\n", _table(titles, formats),
        "Columns, and what is peculiar:\n", *details, "",
        "## Checks\n", "`--on CHECK=POLICY`; the first policy is taken unless another is asked for.\n",
        _table(("check", "what is wrong", "policies"), checks),
    ])  # fmt: skip


def _extra(name: str) -> str:
    return f'needs `pip install "bellmark[{name}]"`' if name else ""


def _table(titles: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    def line(cells: Iterable[Any]) -> str:
        return "| " + " | ".join(_cell(cell) for cell in cells) + " |"

    titles = list(titles)
    return "\n".join([line(titles), "|" + "---|" * len(titles), *(line(row) for row in rows)]) + "\n"


def _cell(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value or "")
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _commands() -> Iterator[tuple[list[str], click.Command]]:
    yield [], main
    for name in COMMANDS:
        command = main.get_command(click.Context(main), name)
        assert command is not None
        yield [name], command
        if isinstance(command, click.Group):
            for inner in sorted(command.commands):
                yield [name, inner], command.commands[inner]


def _help(name: str, command: click.Command) -> str:
    names = list(main.context_settings["help_option_names"])
    context = click.Context(command, info_name=name, terminal_width=100, max_content_width=100, help_option_names=names)
    return command.get_help(context).rstrip()


def _settings(cls: Any) -> str:
    infos = settings_of(cls)
    rows = [f"| `{info.name}` | {info.expected} | {_default(info)} | {info.unit} | {info.meaning} |" for info in infos]
    rows = [row.replace("<", "&lt;") for row in rows]
    if not rows:
        return "No settings.\n"
    return "\n".join(["| setting | type | default | unit | meaning |", "|---|---|---|---|---|", *rows]) + "\n"


def _default(info: Any) -> str:
    if info.required:
        return "required"
    return "not set" if info.default is None else f"`{list(info.default) if isinstance(info.default, tuple) else info.default!r}`"


def _first_line(cls: type) -> str:
    return (inspect.getdoc(cls) or "").split("\n", 1)[0]


def run(check: bool) -> int:
    """Writes the pages, or with `check` names those that differ."""
    stale = []
    for name, text in pages().items():
        path = REFERENCE / name
        if check:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                stale.append(str(path))
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
    for path_text in stale:
        print(f"{path_text}: stale; run make docs", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(run("--check" in sys.argv[1:]))
