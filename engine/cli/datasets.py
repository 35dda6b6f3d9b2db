"""`bellmark datasets`: files to datasets, what there is, and what one holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from bellmark.cli import Group
from bellmark.cli.datasets_import import command as import_command
from bellmark.cli.output import caution, json_option, plugins_option, print_json, print_table, say
from bellmark.errors import DataError, UsageError

data_dir_option = click.option("--data-dir", metavar="DIR", default="data", show_default=True, help="Folder of the datasets.")
sets_option = click.option("--set", "sets", metavar="KEY=VALUE", multiple=True,
                           help="A setting of the component: --set path=bars.csv. Repeatable.")  # fmt: skip


@click.group(cls=Group)
def command() -> None:
    """Datasets: imported files, readers of files and synthetic markets.

    \b
    Examples:
        bellmark datasets import aapl.csv --format yfinance --symbol AAPL --tz America/New_York --instrument us_equity
        bellmark datasets show sample
    """


command.add_command(import_command)


@command.command("list")
@data_dir_option
@plugins_option
@json_option
def list_datasets(data_dir: str, as_json: bool) -> None:
    """List the imported datasets of a folder and the components that read or make data.

    \b
    Example:
        bellmark datasets list
    """
    from bellmark import api
    from bellmark.host import host

    entries = host().entries("dataset")
    imported = api.list_datasets(data_dir)
    if as_json:
        rows = [{"kind": "component", "name": entry.name, "plugin": entry.plugin, "summary": entry.summary} for entry in entries]
        print_json([*rows, *({"kind": "imported", **row} for row in imported)])
        return
    if imported:
        columns = ["name", "bars", "symbols", "bar s", "first", "last", "what"]
        print_table(columns, [_listed(row) for row in imported], right=["bars", "bar s"], title=f"imported, in {data_dir}/")
    print_table(["name", "plugin", "what it is"], [(entry.name, entry.plugin, entry.summary) for entry in entries])


def _listed(row: Mapping[str, Any]) -> list[Any]:
    if row["error"]:
        return [row["name"], None, None, None, None, None, row["error"]]
    shown = ", ".join(row["symbols"][:3]) + (f" and {len(row['symbols']) - 3} more" if len(row["symbols"]) > 3 else "")
    form = row["format"] if isinstance(row["format"], str) else ", ".join(row["format"])
    return [row["name"], f"{row['bars']:,}", shown, f"{row['bar_seconds']:g}", row["first"], row["last"],
            form + (" (suspect)" if row["suspect"] else "")]  # fmt: skip


@command.command()
@click.argument("name")
@sets_option
@data_dir_option
@plugins_option
@json_option
def show(name: str, sets: tuple[str, ...], data_dir: str, as_json: bool) -> None:
    """Print what a dataset holds: NAME of a component, or name or folder of an imported dataset.

    A component is read and checked: symbols, bars, dates, instrument; halts, funding, rolls and quotes if any. Of an imported dataset the
    manifest is printed: where it comes from, what was found in it and what was done.

    \b
    Examples:
        bellmark datasets show csv --set path=bars.csv --set stamp=close --set zone=UTC --set symbol=ES
        bellmark datasets show data/es
    """
    from bellmark.describe import describe_dataset
    from bellmark.host import host

    if name.rpartition(":")[2] not in host().catalog["dataset"]:
        _show_imported(name, sets, data_dir, as_json)
        return
    rows = describe_dataset(name, sets=sets)
    if as_json:
        print_json(rows)
        return
    found = ("gaps", "missing_bars", "identical_duplicates", "outside_session", "zero_volume_bars", "unknown_volume_bars")
    events = [name for name in ("halted_bars", "funding_instants", "rolls", "quotes") if any(row[name] for row in rows)]
    keys = ("symbol", "bars", "first", "last", "tick_size", "contract_multiplier", "currency", *found, *events)
    columns = [key.replace("_", " ") for key in keys]
    numbers = [key.replace("_", " ") for key in ("bars", *found, *(name for name in events if name != "quotes"))]
    rare = ("identical_duplicates", "outside_session", "zero_volume_bars", "unknown_volume_bars")
    spare = [key.replace("_", " ") for key in (*rare, "currency", "contract_multiplier", "missing_bars")]
    print_table(columns, [[_cell(row[key]) for key in keys] for row in rows], right=numbers, spare=spare)


def _show_imported(name: str, sets: tuple[str, ...], data_dir: str, as_json: bool) -> None:
    from bellmark import api
    from bellmark.cli.datasets_import import print_manifest
    from bellmark.errors import did_you_mean
    from bellmark.host import host

    try:
        manifest = api.dataset_manifest(name, data_dir=data_dir)
    except UsageError as error:
        known = host().catalog["dataset"]
        if (near := did_you_mean(name, known)) and "did you mean" not in str(error):
            raise UsageError(f"no dataset named '{name}'{near}") from error
        raise UsageError(f"no dataset named '{name}': {error}") from error
    if sets:
        raise UsageError(f"--set: '{name}' is an imported dataset, which has no settings here")
    if as_json:
        print_json(manifest)
        return
    sources = [[source["name"], f"{source['bytes']:,}", source["sha256"][:12]] for source in manifest["sources"]]
    if sources:
        print_table(["source", "bytes", "sha256"], sources, right=["bytes"])
    print_manifest(manifest)
    said = [*manifest.get("options", {}).items()]
    if said:
        print_table(["option", "value"], [(key, value) for key, value in said])


@command.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@data_dir_option
@json_option
def check(names: tuple[str, ...], data_dir: str, as_json: bool) -> None:
    """Check imported datasets, by name or folder: every hash and every bar is looked at again.

    \b
    Example:
        bellmark datasets check es
    """
    from bellmark import api

    rows: list[dict[str, Any]] = []
    for name in names:
        problems = api.check_dataset(name, data_dir=data_dir)
        suspect = [] if problems else api.dataset_manifest(name, data_dir=data_dir)["suspect"]
        rows.append({"name": name, "ok": not problems, "problems": problems, "suspect": suspect})
    if as_json:
        print_json(rows)
    else:
        for row in rows:
            if row["ok"]:
                click.echo(f"{row['name']}: right")
            for text in row["suspect"]:
                caution(f"{row['name']}: {text}")
    found = [problem for row in rows for problem in row["problems"]]
    if found:
        error = DataError(found[0])
        error.problems = found  # type: ignore[attr-defined]
        raise error


@command.command()
@click.argument("name")
@click.option("--out", metavar="FILE", required=True, help="File to write: .csv or .parquet.")
@click.option("--symbol", "symbols", multiple=True, help="Only this symbol. Repeatable.")
@data_dir_option
@json_option
def export(name: str, out: str, symbols: tuple[str, ...], data_dir: str, as_json: bool) -> None:
    """Write an imported dataset as one CSV or Parquet file; stamps are closes in UTC.

    Funding goes into OUT.funding.csv, splits and dividends into OUT.actions.csv, as --funding and --actions read them.

    \b
    Example:
        bellmark datasets export es --out es.csv
    """
    from bellmark import api
    from bellmark.datasets.library import beside

    path = api.export_dataset(name, out, symbols=symbols, data_dir=data_dir)
    more = {kind: str(other) for kind, other in beside(api.dataset_manifest(name, data_dir=data_dir), path).items()}
    if as_json:
        print_json({"file": str(path), **more})
    else:
        for file in (path, *more.values()):
            click.echo(f"file: {file}")


@command.command()
@json_option
def formats(as_json: bool) -> None:
    """List the layouts of files that `datasets import` reads, and what must be said of each.

    \b
    Example:
        bellmark datasets formats
    """
    from bellmark.datasets.formats import FORMATS

    names = ("name", "summary", "kinds", "stamp", "zone", "symbol", "columns", "quirks", "source", "extra")
    rows = [{name: getattr(form, name) for name in names} for form in FORMATS.values()]
    if as_json:
        print_json(rows)
        return
    shown = ("name", "summary", "kinds", "stamp", "zone", "symbol", "source")
    cells = [[", ".join(row[name]) if name == "kinds" else row[name] or None for name in shown] for row in rows]
    print_table(shown, cells, spare=["source", "kinds", "symbol"])
    click.echo("user = it must be said: --stamp, --tz, --symbol; --json prints the columns and what is peculiar too")


@command.command()
@click.argument("kind")
@click.option("--out", metavar="NAME", required=True, help="Name of the dataset to write.")
@sets_option
@data_dir_option
@click.option("--replace", is_flag=True, help="Replace a dataset of this name.")
@plugins_option
@json_option
def make(kind: str, out: str, sets: tuple[str, ...], data_dir: str, replace: bool, as_json: bool) -> None:
    """Write what the dataset component KIND makes or reads as a dataset: a synthetic market, or the bars of a plugin.

    \b
    Example:
        bellmark datasets make es_regimes --out regimes --set sessions=20
    """
    from bellmark import api
    from bellmark.profile_layers import parse_settings

    path = api.make_dataset(kind, out, data_dir=data_dir, replace=replace, **parse_settings(sets))
    manifest = api.dataset_manifest(path)
    if as_json:
        print_json({"path": str(path), **manifest})
        return
    click.echo(f"dataset: {path} ({manifest['bars']:,} bars of {', '.join(manifest['symbols'])})")
    say(f"next: bellmark train quickstart --data {path.as_posix()}")


def _cell(value: Any) -> Any:
    return ("yes" if value else "no") if isinstance(value, bool) else value
