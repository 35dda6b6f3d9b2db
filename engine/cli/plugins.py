"""`bellmark plugins`: what is installed, what it brings, and the settings of a component."""

from __future__ import annotations

import inspect
from typing import Any

import click

from bellmark.cli import Group
from bellmark.cli.output import json_option, plugins_option, print_json, print_table, warn


@click.group(cls=Group)
def command() -> None:
    """Plugins and the components that they bring.

    \b
    Example:
        bellmark plugins show c51
    """


@command.command("list")
@click.option("--kind", help="Only this kind of component, such as feature or loss.")
@plugins_option
@json_option
def list_plugins(kind: str | None, as_json: bool) -> None:
    """List every component with its kind, plugin, version and status.

    A plugin that did not load is listed with its reason; the others work.

    \b
    Example:
        bellmark plugins list --kind feature
    """
    from bellmark.component import KIND_NAMES
    from bellmark.errors import UsageError, did_you_mean, known_list
    from bellmark.host import host

    if kind is not None and kind not in KIND_NAMES:
        raise UsageError(f"--kind: no kind named '{kind}'{did_you_mean(kind, KIND_NAMES)}{known_list(KIND_NAMES)}")
    loaded = host()
    rows = [_row(entry) for entry in loaded.entries(kind)]
    broken = [record for record in loaded.plugins if record.status != "ok"]
    if as_json:
        plugins = [_plugin(record) for record in loaded.plugins]
        print_json({"components": rows, "plugins": plugins})
        return
    columns = ["name", "kind", "plugin", "version", "status", "what it is"]
    table = [(row["name"], row["kind"], row["plugin"], row["version"], "ok", row["summary"]) for row in rows]
    table += [(None, None, record.name, record.version, record.status, record.error) for record in broken]
    print_table(columns, table, whole=("kind", "plugin"), spare=("version", "plugin"))
    for record in broken:
        warn(f"plugin '{record.name}' ({record.source}) did not load: {record.error}")


@command.command()
@click.argument("name")
@click.option("--kind", help="Kind of the component, where a name is used by several.")
@plugins_option
@json_option
def show(name: str, kind: str | None, as_json: bool) -> None:
    """Show a component: what it is, and its settings with default, type and meaning.

    \b
    Example:
        bellmark plugins show log_return --json
    """
    from bellmark.component import json_schema, settings_of
    from bellmark.host import host

    loaded = host()
    entry = _find(loaded, name, kind)
    infos = settings_of(entry.cls)
    text = inspect.getdoc(entry.cls) or ""
    if as_json:
        details = [
            {"name": info.name, "type": info.type_text, "default": _default(info), "required": info.required}
            | {"meaning": info.meaning, "unit": info.unit, "bounds": info.bounds, "choices": list(info.choices)}
            for info in infos
        ]
        print_json({**_row(entry), "documentation": text, "settings": details, "json_schema": json_schema(entry.cls)})
        return
    click.echo(f"{entry.kind.replace('_', ' ')} {entry.name} (plugin {entry.plugin}, {entry.distribution} {entry.version})\n\n{text}\n")
    if infos:
        table = [(info.name, info.expected, "(required)" if info.required else _default(info), info.unit, info.meaning) for info in infos]
        print_table(["setting", "type", "default", "unit", "meaning"], table)
    else:
        click.echo("It has no settings.")


def _find(loaded: Any, name: str, kind: str | None) -> Any:
    from bellmark.component import KIND_NAMES
    from bellmark.errors import UnknownNameError, UsageError, did_you_mean

    if kind is not None:
        if kind not in KIND_NAMES:
            raise UsageError(f"--kind: no kind named '{kind}'{did_you_mean(kind, KIND_NAMES)}")
        return loaded.entry(kind, name)
    bare = name.rpartition(":")[2]
    kinds = [each for each in KIND_NAMES if bare in loaded.catalog[each]]
    if len(kinds) == 1:
        return loaded.entry(kinds[0], name)
    if kinds:
        raise UnknownNameError(f"'{name}' is the name of several components: say --kind {' or --kind '.join(kinds)}")
    for record in loaded.plugins:
        if record.status != "ok" and (record.name == name or bare in (record.error or "")):
            raise UnknownNameError(f"plugin '{record.name}' did not load: {record.error}")
    known = [entry.name for entry in loaded.entries()]
    raise UnknownNameError(f"no component named '{name}'{did_you_mean(bare, known)}; see 'bellmark plugins list'")


def _default(info: Any) -> Any:
    return list(info.default) if isinstance(info.default, tuple) else info.default


def _row(entry: Any) -> dict[str, Any]:
    return {
        "name": entry.name,
        "kind": entry.kind,
        "plugin": entry.plugin,
        "distribution": entry.distribution,
        "version": entry.version,
        "summary": entry.summary,
    }


def _plugin(record: Any) -> dict[str, Any]:
    return {
        "name": record.name,
        "distribution": record.distribution,
        "version": record.version,
        "status": record.status,
        "error": record.error,
        "components": len(record.components),
    }
