"""`bellmark datasets import`: files of a known layout become a checked dataset, or an error that says which row and why."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click

from bellmark.cli import Command
from bellmark.cli.output import caution, json_option, plugins_option, print_json, print_table, say
from bellmark.errors import UsageError

_LINE_SECONDS = 10.0
_GAPS_SHOWN, _GAP_ROWS, _SYMBOLS_SHOWN = 3, 12, 40
_LEFT_OUT = {
    "outside_session": "bars or ticks lie outside the session: no tape has them",
    "cut_at_end": "bars at the end were left out: the longer bar that they begin is not over",
    "quotes_without_bar": "quote bars without a trade bar were left out",
}


def _together(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def apply(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return apply


_reading = _together(
    click.option("--format", default="auto", show_default=True, help="Layout of the files: see `bellmark datasets formats`."),
    click.option("--symbol", "symbol", multiple=True, help="Name of the series, or which of the file's symbols to take. Repeatable."),
    click.option("--tz", "zone", metavar="ZONE", help="Time zone of stamps without an offset: America/New_York."),
    click.option("--stamp", type=click.Choice(["open", "close"]), help="What a stamp is: the open or the close of its bar."),
    click.option("--bar", metavar="LENGTH", help="Length of the bars in the files, or to make of ticks: 30s, 1m, 1h, 1d."),
    click.option("--close-time", metavar="HH:MM", help="When a bar closes whose stamp is a date alone."),
    click.option("--repeated-hour", type=click.Choice(["error", "file_order"]), help="Local times that a zone has twice."),
    click.option("--adjustment", type=click.Choice(["raw", "split", "split_dividend"]),
                 help="What prices are adjusted for already, where the layout does not know; --actions and --factors need it."),
    click.option("--price", type=click.Choice(["mid", "bid", "ask"]), help="Price of bars made of quotes (default: mid)."),
    click.option("--no-quotes", is_flag=True, help="Leave bid and ask out."),
    click.option("--set", "sets", metavar="KEY=VALUE", multiple=True,
                 help="A setting of the csv and parquet layouts: --set open_column=Erster, --set decimal=','. Repeatable."),
)  # fmt: skip
_instrument = _together(
    click.option("--instrument", metavar="NAME|FILE.toml", help="What is traded: see `bellmark instruments list`."),
    click.option("--session", metavar="HOURS", help="Hours, over those of the instrument: us_equity, 'America/New_York 09:30-16:00'."),
    click.option("--tick-size", type=float, help="Smallest price step; 0 = none."),
    click.option("--multiplier", "contract_multiplier", type=float, help="Value of one price unit of one contract."),
    click.option("--lot-size", type=float, help="Contracts, shares or coins in one lot."),
    click.option("--currency", help="Currency of the prices."),
)
_writing = _together(
    click.option("--name", help="Name of the dataset (default: after the first file)."),
    click.option("--data-dir", metavar="DIR", default="data", show_default=True, help="Folder of the datasets."),
    click.option("--replace", is_flag=True, help="Replace a dataset of this name."),
    click.option("--resample", metavar="LENGTH", help="Make longer bars: 5m, 1h, 1d, session."),
    click.option("--on", "on", metavar="CHECK=POLICY", multiple=True,
                 help="What to do about rows that break a rule: duplicate_conflicting=keep_last, price_range=drop. Repeatable."),
    click.option("--bid", multiple=True, metavar="FILE", help="Bars of the bid alone; with --ask they become quote bars. Repeatable."),
    click.option("--ask", multiple=True, metavar="FILE", help="Bars of the ask alone. Repeatable."),
    click.option("--funding", multiple=True, metavar="FILE", help="Funding rates of a perpetual."),
    click.option("--actions", multiple=True, metavar="FILE", help="Splits and dividends."),
    click.option("--factors", multiple=True, metavar="FILE", help="A factor file (LEAN) with splits and dividends."),
)  # fmt: skip


@click.command("import", cls=Command)
@click.argument("files", nargs=-1, metavar="[FILE...]")
@_reading
@_instrument
@_writing
@plugins_option
@json_option
def command(files: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Import FILEs (or quoted patterns: 'ES_*.csv') of one layout as a checked dataset.

    A row that breaks a rule is an error that names file and row, unless --on says what to do about it; whatever was left out or changed is
    counted in the manifest. Checks: truncated, unsorted, duplicate_identical, duplicate_conflicting, two_series, missing_price,
    nonpositive_price, price_range, bad_volume, missing_volume, missing_quote, bad_quote, crossed_quote, off_grid, mixed_lengths,
    unfinished_bar, outside_session, level_jump, missing_bars, zero_volume, stale_price, outlier, possible_split. Files may be larger
    than memory.

    \b
    Examples:
        bellmark datasets import aapl.csv --format yfinance --symbol AAPL --tz America/New_York --instrument us_equity
        bellmark datasets import 'ES_*.csv' --format databento_csv --instrument ES --name es
        bellmark datasets import --bid bid.csv --ask ask.csv --format dukascopy --bar 1m --symbol EURUSD --instrument EURUSD
    """
    from bellmark.api import import_dataset

    given = _given(options)
    with _progress() as progress:
        report = import_dataset(list(files), progress=progress, **given)
    document = {"path": str(report.path), **report.manifest, "warnings": report.warnings, "next": _next(report)}
    if as_json:
        print_json(document)
        return
    _print(document)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """The settings of the API from the options; a column named twice is refused."""
    from bellmark.datasets.checks import Policies
    from bellmark.profile_layers import parse_settings

    given = {name: value for name, value in options.items() if name not in ("sets", "on", "no_quotes") and value not in (None, ())}
    given["on"] = dict(Policies.parse(options["on"]).chosen)
    if options["no_quotes"]:
        given["quotes"] = False
    for name, value in parse_settings(options["sets"]).items():
        if name in given:
            raise UsageError(f"--set {name}: it has an option of its own, which is given too")
        given[name] = value
    return given


def _next(report: Any) -> str:
    """The command to go on with."""
    market = dict(report.manifest.get("market") or {})
    if any(entry["instrument"]["tick_size"] is None for entry in report.manifest["symbols"].values()):
        market["spread_ticks"] = 0.0  # there is no tick to count costs in
    sets = "".join(f" --set market.{name}={value:g}" for name, value in market.items())
    return f"bellmark train quickstart --data {report.path.as_posix()}{sets}"


def _print(document: Mapping[str, Any]) -> None:
    print_manifest(document)
    click.echo(f"dataset: {document['path']}")
    say(f"next: {document['next']}")


def print_manifest(document: Mapping[str, Any]) -> None:
    """What an imported dataset holds: a row a symbol, the first gaps, what was done about broken rules, and what is suspicious."""
    from bellmark.datasets.importing import warnings_of

    columns = ["symbol", "bars", "bar s", "first", "last", "gaps", "missing bars", "duplicates", "zero volume", "unknown volume"]
    symbols = list(document["symbols"].items())
    print_table(columns, [_row(symbol, entry) for symbol, entry in symbols[:_SYMBOLS_SHOWN]],
                right=["bars", "bar s", *columns[5:]], spare=["unknown volume", "zero volume", "duplicates", "missing bars"])  # fmt: skip
    if len(symbols) > _SYMBOLS_SHOWN:
        click.echo(f"and {len(symbols) - _SYMBOLS_SHOWN:,} symbols more")
    _print_gaps(symbols)
    for symbol, entry in symbols[:_SYMBOLS_SHOWN]:
        for name, told in _LEFT_OUT.items():
            if entry.get(name):
                click.echo(f"{symbol}: {entry[name]:,} {told}")
    done = [finding for finding in document["findings"] if finding["action"] != "reported"]
    if done:
        rows = [[one["symbol"], one["check"], one["action"], f"{one['count']:,}", (one["first"] or ["-"])[0]] for one in done]
        print_table(["symbol", "check", "what was done", "rows", "first"], rows, right=["rows"])
    for warning in warnings_of(document):
        caution(warning)


def _row(symbol: str, entry: Mapping[str, Any]) -> list[Any]:
    gaps = entry.get("gaps", {"count": 0, "missing_bars": 0})
    volumes = [entry.get(name, 0) for name in ("zero_volume_bars", "unknown_volume_bars")]
    counts = (gaps["count"], gaps["missing_bars"], entry["duplicates"], *volumes)
    return [symbol, f"{entry['bars']:,}", f"{entry['bar_seconds']:g}", entry["first"], entry["last"], *(f"{count:,}" for count in counts)]


def _print_gaps(symbols: Sequence[tuple[str, Any]]) -> None:
    rows: list[list[Any]] = []
    for symbol, entry in symbols:
        for gap in entry.get("gaps", {"first": []})["first"][:_GAPS_SHOWN]:
            move = None if gap["move"] is None else f"{gap['move']:+.2%}"
            rows.append([symbol, gap["after"], gap["until"], gap["missing_bars"], move])
    if rows:
        columns = ["symbol", "last bar before", "next bar", "missing", "move"]
        print_table(columns, rows[:_GAP_ROWS], right=["missing", "move"], title="first gaps")


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """How far an import is, on stderr: a bar on a terminal, else a line every ten seconds."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    from bellmark.cli.output import console

    columns: Sequence[Any] = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(sys.stderr), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(f"{stage} ({_amount(stage, total)})", total=total)
            bar.update(tasks[stage], completed=done)

        yield show


class _Lines:
    def __init__(self) -> None:
        self.printed = time.perf_counter()

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.perf_counter()
        if now - self.printed >= _LINE_SECONDS:
            self.printed = now
            say(f"import: {stage}: {done / max(total, 1):.0%} of {_amount(stage, total)}")


def _amount(stage: str, total: int) -> str:
    return f"{total / 1e6:,.0f} MB" if stage == "reading" else f"{total:,} rows"
