"""`bellmark doctor`: whether this machine and this installation can do the work."""

from __future__ import annotations

import click

from bellmark.cli import Command
from bellmark.cli.output import json_option, print_json, print_table


@click.command(cls=Command)
@json_option
def command(as_json: bool) -> None:
    """Check Python, packages, caches, BLAS, plugins and the sample data.

    Exits with 3 if something that every command needs is missing.

    \b
    Example:
        bellmark doctor
    """
    from bellmark.doctor import examine
    from bellmark.errors import RequirementError

    findings = examine()
    if as_json:
        print_json([finding.__dict__ for finding in findings])
    else:
        print_table(["check", "status", "found"], [(item.check, item.status, item.found) for item in findings])
    failed = [item for item in findings if item.status == "missing"]
    if failed:
        raise RequirementError(f"{failed[0].check}: {failed[0].found}" + (f" (and {len(failed) - 1} more)" if failed[1:] else ""))
