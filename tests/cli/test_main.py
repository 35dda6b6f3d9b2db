"""The program: quick help, one line an error, exit codes."""

import re
import subprocess
import sys

import click
import pytest

from bellmark import cli
from bellmark.cli import COMMANDS, main
from bellmark.errors import GuardError, InternalError, RequirementError, UsageError


def commands():
    found = [("", main)]
    for name in COMMANDS:
        command = main.get_command(click.Context(main), name)
        found.append((name, command))
        if isinstance(command, click.Group):
            found += [(f"{name} {inner}", command.commands[inner]) for inner in sorted(command.commands)]
    return found


@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_every_command_has_help_with_an_example(bellmark, name):
    result = bellmark(*name.split(), "--help")
    assert result.code == 0
    assert "Usage: bellmark" in result.out
    assert "bellmark " in result.out.split("Usage:")[1].split("\n", 1)[1], "no example in the help text"
    assert "--traceback" in result.out or isinstance(dict(commands())[name], click.Group)


def test_every_command_that_prints_a_result_has_json():
    for name, command in commands():
        if not isinstance(command, click.Group):
            assert any("--json" in option.opts for option in command.params), f"{name} has no --json"


def test_help_loads_nothing_heavy():
    """What makes it quick; benchmarks/start_up.py says how quick."""
    code = "import sys; from bellmark.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    code += "print(sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    loaded = set(re.findall(r"'(\w+)'", done.stderr))
    assert not loaded & {"rich", "numpy", "pydantic", "numba", "polars", "pluggy", "scipy", "bokeh", "jinja2"}


def test_version_goes_to_stdout(process):
    result = process("--version")
    assert re.fullmatch(r"bellmark \d+\.\d+\.\d+\S*\n", result.out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("trian", "demo"), "error: no command named 'trian'; did you mean 'train'?"),
        (("--fast",), "error: no such option '--fast'"),
        (("profiles", "shw"), "error: no command named 'shw'; did you mean 'show'?"),
        (("train",), "error: missing argument 'PROFILE'"),
        (("train", "no-such"), "error: no profile named 'no-such'"),
        (("train", "no-such.toml"), "error: no-such.toml: the profile cannot be read: no such file or directory"),
        (("backtest", "no-such"), "error: no run (under runs) and no strategy named 'no-such'"),
        (("runs", "show", "no-such"), "error: runs/no-such: no such run"),
        (("plugins", "show", "log_retrn"), "error: no component named 'log_retrn'; did you mean 'log_return'?"),
        (("plugins", "list", "--kind", "featur"), "error: --kind: no kind named 'featur'; did you mean 'feature'?"),
        (("datasets", "show", "smple"), "error: no dataset named 'smple'; did you mean 'sample'?"),
        (("train", "smoke", "--set", "batch=1"), "error: --set: expected SECTION.KEY=VALUE, found 'batch=1'"),
        (("train", "smoke", "--seed", "x"), "error: invalid value for '--seed': 'x' is not a valid integer"),
    ],
)
def test_a_wrong_name_or_option_is_one_line_and_exit_2(bellmark, arguments, message):
    result = bellmark(*arguments)
    assert (result.code, result.out) == (2, "")
    assert len(result.err.splitlines()) == 1
    assert result.err.startswith(message)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (UsageError("a: expected b"), 2, "error: a: expected b\n"),
        (RequirementError("not reached"), 3, "error: not reached\n"),
        (GuardError("learner 2 stopped"), 4, "error: learner 2 stopped\n"),
        (InternalError("adds up to 3"), 1, "error: adds up to 3\n"),
        (KeyboardInterrupt(), 130, "error: interrupted\n"),
        (OSError("two\nlines"), 1, "error: unexpected OSError: two lines; --traceback shows where\n"),
    ],
)
def test_exit_code_and_line_of_an_error(bellmark, monkeypatch, error, code, message):
    @click.command(cls=cli.Command)
    def failing():
        """Fails."""
        raise error

    monkeypatch.setattr(cli.Root, "get_command", lambda self, ctx, name: failing)
    result = bellmark("doctor")
    assert result.code == code
    assert result.err.lstrip("\n") == message
    shown = bellmark("--traceback", "doctor")
    assert "Traceback" in shown.err or isinstance(error, KeyboardInterrupt)
    assert "Traceback" in bellmark("doctor", "--traceback").err or isinstance(error, KeyboardInterrupt)


def test_a_plugin_command_is_listed_and_a_broken_one_is_named(bellmark, monkeypatch):
    class Point:
        value = "somewhere:command"

        def load(self):
            raise ImportError("no module named 'gone'")

    monkeypatch.setattr(cli, "_plugin_commands", lambda: {"extra": Point()})
    assert "extra" in bellmark("--help").out
    result = bellmark("extra")
    assert result.code == 1
    assert result.err == "error: command 'extra' of somewhere:command: it cannot be loaded: ImportError: no module named 'gone'\n"


def test_reader_that_goes_away_is_not_a_crash(tmp_path):
    command = f"{sys.executable} -P -m bellmark plugins list --json | head -c 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert "Traceback" not in done.stderr
