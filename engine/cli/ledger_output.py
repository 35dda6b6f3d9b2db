"""How round trips and decisions are printed, and which decisions are asked for."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from bellmark.cli.output import print_table
from bellmark.errors import UsageError

TRADES_SHOWN = 20
_VALUES_SHOWN = 9  # of the actions, the best first
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

Wanted = Callable[[Mapping[str, Any]], bool]


def wanted_decisions(text: str) -> Wanted:
    """Which rows `--on` asks for: a day (2015-10-15), a moment (2015-10-15T14:30), a bar (120), or a range A..B of one of them, B included.

    Days and moments are UTC; a bar belongs to the day in which it closes.
    """
    first, dots, last = (part.strip() for part in text.partition(".."))
    last = last if dots else first
    if re.fullmatch("[0-9]+", first) and re.fullmatch("[0-9]+", last):
        low, high = int(first), int(last)
        _in_order(low <= high, text)
        return lambda row: low <= row["bar"] <= high
    start, end = _moment(first, text, last=False), _moment(last, text, last=True)
    _in_order(start <= end, text)
    return lambda row: start <= _moment(row["ts"], text, last=False) <= end


def _in_order(right: bool, text: str) -> None:
    if not right:
        raise UsageError(f"--on: expected A..B with A before B, found '{text}'")


def _moment(word: str, text: str, *, last: bool) -> datetime.datetime:
    """A moment in UTC; of a day alone its first or its last one. Below a microsecond nothing is told apart."""
    try:
        if not re.match("[0-9]{4}-[0-9]{2}-[0-9]{2}", word):  # a week (2020-W01) would be its Monday
            raise ValueError(word)
        whole = re.sub(r"(\.\d{6})\d+", r"\1", word)
        moment = datetime.datetime.fromisoformat(whole)
    except ValueError:
        raise UsageError(f"--on: expected a date such as 2015-10-15, a bar number, or a range A..B of them, found '{text}'") from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)
    return moment + datetime.timedelta(days=1, microseconds=-1) if last and len(word) <= len("2015-10-15") else moment


def print_trades(rows: Sequence[Mapping[str, Any]], total: int) -> None:
    """The first round trips with what they earned after costs."""
    from bellmark.reporting.text import money, number, plural

    columns = [*_whose(rows), "entry (UTC)", "exit (UTC)", "lots", "entry price", "exit price", "profit", "cost", "ended by"]
    table = []
    for row in rows:
        prices = (None if row[name] is None else number(row[name], 4) for name in ("entry_price", "exit_price"))
        profit = None if row["profit"] is None else money(row["profit"])
        ended = row["exit_cause"] or "open at the end"
        cells = (_time(row["entry"]), _time(row["exit"]), f"{row['lots']:+,}", *prices, profit, money(row["cost"]), ended)
        table.append([*(row[name] for name in _whose(rows)), *cells])
    title = plural(total, "round trip") if total == len(rows) else f"first {len(rows)} of {plural(total, 'round trip')}"
    right = ("lots", "entry price", "exit price", "profit", "cost")
    print_table(columns, table, right=right, title=title, whole=("entry (UTC)", "exit (UTC)"), spare=("cost", "entry price", "exit price"))


def print_decisions(rows: Sequence[Mapping[str, Any]], text: str) -> None:
    """What was decided at each close, why, and what became of it."""
    from bellmark.reporting.text import number, plural

    valued, refused = any(row["q"] for row in rows), any(row["refused"] for row in rows)
    columns = [*_whose(rows), "close of (UTC)", "price", "held", "asked", *(["values"] if valued else []), "order", "fills"]
    table = []
    for row in rows:
        asked = row["decision"] or (None if row["exposure"] is None else f"{row['exposure']:+g}")
        fills = "; ".join(f"{fill['lots']:+,} at {number(fill['price'], 4)} ({fill['cause']})" for fill in row["fills"])
        order = None if row["order"] is None else f"{row['order']:+,}" if row["order"] else "none"
        held = f"{row['position']:+,}" if row["position"] else "0"
        cells = (_time(row["ts"]), number(row["close"], 4), held, asked, *([_values(row)] if valued else []), order, fills or None)
        table.append([*(row[name] for name in _whose(rows)), *cells, *(["; ".join(map(_refusal, row["refused"]))] if refused else [])])
    columns += ["refused"] if refused else []
    title = f"{plural(len(rows), 'decision')} on {text}"
    print_table(columns, table, right=("price", "held", "order"), title=title, whole=("close of (UTC)",), spare=("price", "held"))


def _whose(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns that tell accounts and symbols apart."""
    names = [name for name in ("learner", "symbol") if len({row[name] for row in rows}) > 1]
    return names or ["symbol"]


def _values(row: Mapping[str, Any]) -> str:
    """The value of each action, the best first; Q of what was not legal is shown too, since it explains why it was not taken."""
    from bellmark.reporting.text import number

    ranked = sorted(row["q"].items(), key=lambda pair: float("inf") if pair[1] is None else -pair[1])
    texts = []
    for label, value in ranked[:_VALUES_SHOWN]:
        legal = "" if row["legal"][label] else " (not legal)"
        texts.append(f"{label}: {'no number' if value is None else number(value, 4)}{legal}")
    more = len(ranked) - _VALUES_SHOWN
    return ", ".join(texts) + (f", and {more} more" if more > 0 else "")


def _refusal(one: Mapping[str, Any]) -> str:
    return one["reason"] if one["lots"] is None else f"{one['lots']:+,}: {one['reason']}"


def _time(text: str | None) -> str | None:
    """A stamp as people read it."""
    return None if text is None else text.removesuffix("Z").replace("T", " ").removesuffix(":00").removesuffix(" 00:00")


def print_proofs(lines: Sequence[str]) -> None:
    """What was proven, a line each."""
    for line in lines:
        click.echo(line)
