"""The command line: a thin layer over `bellmark.api`. This module imports click alone, so that `--help` answers at once."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from bellmark.errors import BellmarkError, UsageError, did_you_mean

COMMANDS: dict[str, str] = {
    "demo": "Train, backtest and report on real daily bars, in one go.",
    "train": "Train the policies of a profile.",
    "backtest": "Backtest a run or a rule strategy.",
    "signals": "Write what the policies of a run ask for, bar by bar.",
    "report": "Write the report of a run.",
    "profiles": "Profiles: list, show, check.",
    "datasets": "Datasets: import, list, show, check, export, formats, make.",
    "instruments": "Instruments: list, show; ticks, hours and default costs by name.",
    "runs": "Runs: list, show, export.",
    "plugins": "Plugins and their components: list, show.",
    "doctor": "Check this machine and this installation.",
}
COMMAND_GROUP = "bellmark.commands"
# Each command says it for itself: click keeps a command's help option as it was first asked for, with or without a parent.
HELP_NAMES = {"help_option_names": ["-h", "--help"]}
_state = {"traceback": False}


def _want_traceback(ctx: click.Context, option: click.Parameter, value: bool) -> None:
    if value:
        _state["traceback"] = True


def traceback_option() -> click.Option:
    """`--traceback`, which every command takes."""
    help_text = "Show the whole traceback of an error."
    return click.Option(["--traceback"], is_flag=True, expose_value=False, is_eager=True, callback=_want_traceback, help=help_text)


class Command(click.Command):
    """A command with the common options and a help text that keeps its example as it is written."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        options["context_settings"] = {**HELP_NAMES, **options.get("context_settings", {})}
        super().__init__(*arguments, **options)
        self.params.append(traceback_option())


class Group(click.Group):
    """A noun group: its commands are of our kind, and a wrong name has a nearest right one."""

    command_class = Command

    def __init__(self, *arguments: Any, **options: Any) -> None:
        options["context_settings"] = {**HELP_NAMES, **options.get("context_settings", {})}
        super().__init__(*arguments, **options)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            names = self.list_commands(ctx)
            raise click.UsageError(f"no command named '{args[0]}'{did_you_mean(args[0], names)} (have: {', '.join(names)})", ctx) from error


class Root(Group):
    """The program: imports a command's module only when it is called, and turns failures into one line and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *(name for name in sorted(_plugin_commands()) if name not in COMMANDS)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS:
            found: click.Command = importlib.import_module(f"bellmark.cli.{cmd_name}").command
            return found
        point = _plugin_commands().get(cmd_name)
        if point is None:
            return None
        try:
            loaded: click.Command = point.load()
        except Exception as error:
            raise BellmarkError(f"command '{cmd_name}' of {point.value}: it cannot be loaded: {type(error).__name__}: {error}") from error
        return loaded

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = list(COMMANDS.items())
        rows += [(name, f"From plugin {point.value}.") for name, point in sorted(_plugin_commands().items()) if name not in COMMANDS]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, *extra: Any, **options: Any) -> Any:
        """Runs a command line and exits with its code: 0 done, 1 failed, 2 usage, 3 requirement, 4 guard, 130 interrupted."""
        _state["traceback"] = False
        options["standalone_mode"] = False
        try:
            code = super().main(args, "bellmark", *extra, **options)
        except BaseException as error:  # every end of a command passes here
            code = _report(error)
        sys.exit(code if isinstance(code, int) else 0)


def _report(error: BaseException) -> int:
    """Prints an error in one line (one a problem for a profile) and returns the exit code."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 0
    if _state["traceback"]:
        import traceback

        traceback.print_exception(error)
    if isinstance(error, click.Abort | KeyboardInterrupt):
        _say("interrupted")
        return 130
    if isinstance(error, click.UsageError):
        command = f"; see '{error.ctx.command_path} --help'" if error.ctx else ""
        _say(_lower_first(error.format_message()).rstrip(".") + command)
        return 2
    if isinstance(error, click.ClickException):
        _say(_lower_first(error.format_message()))
        return error.exit_code
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads: end without a second error
        return 1
    if isinstance(error, BellmarkError):
        for problem in getattr(error, "problems", (str(error),)):
            _say(problem)
        return error.exit_code
    hint = "" if _state["traceback"] else "; --traceback shows where"
    text = " ".join(str(error).split())
    _say(f"unexpected {type(error).__name__}: {text}{hint}")
    return 1


def _say(message: str) -> None:
    click.echo("error: " + " ".join(message.split()), err=True)


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


def _plugin_commands() -> dict[str, Any]:
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=COMMAND_GROUP)}


def _print_version(ctx: click.Context, option: click.Parameter, value: bool) -> None:
    if value:
        from bellmark import __version__

        click.echo(f"bellmark {__version__}")
        ctx.exit()


@click.command(cls=Root)
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="Print the version.")
def main() -> None:
    """Train reinforcement-learning trading policies, backtest them and decide whether to trust them.

    \b
    Begin with:
        bellmark demo

    Results go to stdout, progress and messages to stderr; --json prints a result as one JSON document.
    Exit codes: 0 done, 1 failed, 2 usage, profile or name, 3 requirement not met, 4 guard stopped, 130 interrupted.
    """


main.params.append(traceback_option())

__all__ = ["COMMANDS", "Command", "Group", "Root", "UsageError", "main"]
