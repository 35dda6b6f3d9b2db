"""`bellmark profiles`: the built-in profiles, a profile with the origin of each value, and whether one is right."""

from __future__ import annotations

import click

from bellmark.cli import Group
from bellmark.cli.output import data_option, json_option, plugins_option, print_json, print_table, profile_options


@click.group(cls=Group)
def command() -> None:
    """Profiles: TOML files that say what a run is.

    \b
    Example:
        bellmark profiles show demo --set trainer.batch=128
    """


@command.command("list")
@json_option
def list_profiles(as_json: bool) -> None:
    """List the built-in profiles.

    \b
    Example:
        bellmark profiles list
    """
    from bellmark.describe import list_profiles

    rows = list_profiles()
    if as_json:
        print_json(rows)
    else:
        print_table(["name", "extends", "description"], [(row["name"], row["extends"], row["description"]) for row in rows])


@command.command()
@click.argument("profile")
@profile_options
@data_option
@plugins_option
@json_option
def show(profile: str, sets: tuple[str, ...], seed: int | None, data: str | None, as_json: bool) -> None:
    """Print every value of a profile and where it comes from.

    \b
    Example:
        bellmark profiles show my.toml --set learners.count=8
    """
    from bellmark.api import resolve_profile
    from bellmark.describe import describe_profile

    resolved = resolve_profile(profile, sets=sets, seed=seed, data=data)
    if as_json:
        print_json(describe_profile(resolved))
    else:
        click.echo(resolved.to_toml(), nl=False)


@command.command()
@click.argument("profiles", nargs=-1, required=True)
@profile_options
@plugins_option
@json_option
def check(profiles: tuple[str, ...], sets: tuple[str, ...], seed: int | None, as_json: bool) -> None:
    """Check profiles: every problem is one line with file, line and key.

    \b
    Example:
        bellmark profiles check my.toml
    """
    from bellmark.api import resolve_profile
    from bellmark.errors import ProfileError
    from bellmark.profile import InvalidProfileError

    problems: list[str] = []
    rows = []
    for name in profiles:
        try:
            resolved = resolve_profile(name, sets=sets, seed=seed)
        except ProfileError as error:
            found = list(getattr(error, "problems", (str(error),)))
            problems += found
            rows.append({"profile": name, "ok": False, "problems": found, "hash": None})
        else:
            rows.append({"profile": name, "ok": True, "problems": [], "hash": resolved.hash})
    if as_json:
        print_json(rows)
    else:
        for row in rows:
            if row["ok"]:
                click.echo(f"{row['profile']}: right (hash {str(row['hash'])[:12]})")
    if problems:
        raise InvalidProfileError(problems)
