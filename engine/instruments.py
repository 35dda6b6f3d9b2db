"""Instruments by name: the table that comes with Bellmark and files of the user's own.

A listing says what an instrument is (tick, multiplier, lot, currency, session), and which [market] settings its default scenario has. Each
figure of the built-in table carries where it was read and when it held; `assumed` marks one that no document was read for. A file is TOML,
either one instrument

    [instrument]
    tick_size = 0.5
    contract_multiplier = 10.0
    currency = "EUR"
    session = "Europe/Berlin 08:00-22:00 calendar XEUR"
    [market]                       # settings of a profile's [market], as the default scenario; may be left out
    fee_per_contract = 1.5

or several, each a table of its name with `NAME.market` inside, as in instruments.toml. A figure is a plain value or { value, source, date,
assumed }.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from bellmark.errors import DataError, UsageError, did_you_mean, known_list
from bellmark.files import reason
from bellmark.instrument import Instrument, Session
from bellmark.profile_text import toml_value

SCHEMA_VERSION = 1
TABLE = Path(__file__).with_name("instruments.toml")
KINDS = ("future", "perpetual", "equity", "currency", "other")
_NUMBERS = ("tick_size", "contract_multiplier", "lot_size", "data_quantum", "price_quantum", "periods_per_year")
_INSTRUMENT = (*_NUMBERS, "currency", "session", "allow_negative_prices")
_FIGURES = (*_INSTRUMENT, "funding_interval_hours")
_OVERRIDES = ("tick_size", "contract_multiplier", "lot_size", "price_quantum", "currency", "session", "periods_per_year")  # of a profile
_WORDS = ("title", "kind", "months")
MONTHS = "FGHJKMNQUVXZ"  # letters of the months of delivery, January to December
_LARGEST_FILE = 1_000_000


@dataclass(frozen=True)
class Figure:
    """A value, where it was read and when it held; empty where a user's file does not say. assumed: no document was read for it."""

    value: Any
    source: str = ""
    date: str = ""
    assumed: bool = False


@dataclass(frozen=True)
class Listing:
    """One instrument of a table.

    figures: of the instrument, by name. costs: [market] settings of the default scenario, by name. months: letters of the months in which
    contracts of a future end, empty where nobody said. origin: the file, empty for the built-in table.
    """

    name: str
    title: str
    kind: str
    figures: Mapping[str, Figure]
    costs: Mapping[str, Figure]
    months: str = ""
    origin: str = ""

    def instrument(self, symbol: str | None = None) -> Instrument:
        """The instrument, under the symbol of its bars where one is given."""
        values = {name: figure.value for name, figure in self.figures.items() if name in _INSTRUMENT}
        if "session" in values:
            values["session"] = Session.parse(values["session"], f"instrument {self.name}.session")
        return Instrument(symbol or self.name, **values)

    @property
    def market(self) -> dict[str, Any]:
        """Settings of [market] by name: the default scenario."""
        return {name: figure.value for name, figure in self.costs.items()}

    @property
    def sources(self) -> dict[str, Figure]:
        """Every figure by its place: `tick_size`, `market.spread_ticks`."""
        return {**self.figures, **{f"market.{name}": figure for name, figure in self.costs.items()}}

    @property
    def funding_interval_hours(self) -> float | None:
        """Hours between two funding instants, None where there is none."""
        figure = self.figures.get("funding_interval_hours")
        return None if figure is None else float(figure.value)

    def describe(self) -> dict[str, Any]:
        """Everything of it as plain values."""
        figures = {
            place: {"value": figure.value, "source": figure.source, "date": figure.date, "assumed": figure.assumed}
            for place, figure in self.sources.items()
        }
        return {
            "name": self.name, "title": self.title, "kind": self.kind, "months": self.months, "origin": self.origin or "built in",
            "figures": figures,
        }  # fmt: skip


def names() -> list[str]:
    """The names of the built-in table, in its order."""
    return list(built_in())


@lru_cache(maxsize=1)
def built_in() -> dict[str, Listing]:
    """The built-in table."""
    return _read(TABLE, "")


def read(file: str) -> dict[str, Listing]:
    """The instruments of a TOML file by name."""
    return _read(Path(file).expanduser(), file)


def profile_text(listing: Listing) -> str:
    """The sections [instrument] and [market] of a profile that say what a listing says, with the source of each figure as a comment."""
    kept = {name: figure for name, figure in listing.figures.items() if name in _OVERRIDES}
    lines = [f"# {listing.name}: {listing.title}"]
    for section, figures in (("instrument", kept), ("market", listing.costs)):
        if figures:
            lines += ["", f"[{section}]"] if len(lines) > 1 else [f"[{section}]"]
        for name, figure in figures.items():
            note = ", ".join(text for text in (figure.date, "assumed" if figure.assumed else "", figure.source) if text)
            lines.append(f"{name} = {toml_value(figure.value)}" + (f"  # {note}" if note else ""))
    return "\n".join(lines) + "\n"


def find(text: str, symbol: str | None = None) -> Listing:
    """A listing by name or file.

    `ES`, or a contract of it such as ESZ3 and ESH24; `FILE.toml`, which holds one instrument or one named as `symbol` or its root, or
    `FILE.toml:NAME`. UsageError names the nearest.
    """
    path, _, name = text.rpartition(":") if ".toml:" in text else (text, "", "")
    if not path.endswith(".toml"):
        return _named(built_in(), text, "instrument", f"; or name a FILE.toml{known_list(built_in())}")
    listings = read(path)
    if name:
        return _named(listings, name, f"{path}: instrument", known_list(listings))
    if len(listings) == 1:
        return next(iter(listings.values()))
    if symbol is None:
        raise UsageError(f"{path}: it holds several instruments{known_list(listings)}; name one as {path}:NAME")
    return _named(listings, symbol, f"{path}: instrument", f"{known_list(listings)}; name one as {path}:NAME")


def root_of(symbol: str) -> str:
    """The root of a futures contract's symbol: ES of ESZ3, ESH24 and ESM2024; the symbol itself where it is none."""
    found = re.fullmatch(rf"([A-Z0-9]{{1,5}}?)[{MONTHS}](\d{{1,2}}|\d{{4}})", symbol)
    return found[1] if found else symbol


def _named(listings: Mapping[str, Listing], name: str, where: str, hint: str) -> Listing:
    for wanted in (name, root_of(name)):
        found = listings.get(wanted)
        if found is not None and (wanted == name or found.kind == "future"):
            return found
    raise UsageError(f"{where}: no instrument '{name}'{did_you_mean(name, listings)}{hint}")


def _read(path: Path, shown: str) -> dict[str, Listing]:
    label = shown or path.name
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise DataError(f"{label}: expected a small file of instruments, found {path.stat().st_size:,} bytes")
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RuntimeError) as error:
        text = reason(error) if isinstance(error, OSError) else str(error)
        raise UsageError(f"{label}: the instruments cannot be read: {text}") from error
    version = values.pop("schema_version", SCHEMA_VERSION)
    if not isinstance(version, int) or version != SCHEMA_VERSION:
        raise UsageError(f"{label}: schema_version: expected {SCHEMA_VERSION}, found {version!r}")
    sources = values.pop("sources", {})
    if "instrument" in values:
        values = {path.stem: {**_table(values.pop("instrument"), f"{label}: instrument"), "market": values.pop("market", {}), **values}}
    if not values:
        raise UsageError(f"{label}: expected [instrument], or a table for each instrument, found nothing")
    return {name: _listing(name, _table(entry, f"{label}: {name}"), sources, f"{label}: {name}", shown) for name, entry in values.items()}


def _listing(name: str, entry: dict[str, Any], sources: dict[str, Any], where: str, origin: str) -> Listing:
    for key in entry:
        if key not in (*_FIGURES, *_WORDS, "market"):
            raise UsageError(f"{where}.{key}: no such figure{did_you_mean(key, _FIGURES)}{known_list((*_FIGURES, *_WORDS, 'market'))}")
    words = {key: entry.get(key, "") for key in _WORDS}
    for key, value in words.items():
        if not isinstance(value, str) or not value.isprintable():
            raise UsageError(f"{where}.{key}: expected text, found {value!r}")
    kind = words["kind"] or "other"
    if kind not in KINDS:
        raise UsageError(f"{where}.kind: expected one of {', '.join(KINDS)}, found {kind!r}")
    if set(words["months"]) - set(MONTHS):
        raise UsageError(f"{where}.months: expected letters of {MONTHS}, found {words['months']!r}")
    figures = {key: _figure(entry[key], sources, f"{where}.{key}") for key in _FIGURES if key in entry}
    market = _table(entry.get("market", {}), f"{where}.market")
    costs = {key: _figure(value, sources, f"{where}.market.{key}") for key, value in market.items()}
    _check_kinds(figures, where)
    _check_market(costs, f"{where}.market")
    found = Listing(name, words["title"] or name, kind, figures, costs, words["months"], origin)
    try:
        found.instrument()  # what cannot be one is said when the file is read
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error
    return found


def _table(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{where}: expected a table of figures, found {value!r}")
    return value


def _figure(value: Any, sources: dict[str, Any], where: str) -> Figure:
    if not isinstance(value, dict):
        return Figure(value)
    unknown = sorted(value.keys() - {"value", "source", "date", "assumed"})
    if unknown or "value" not in value:
        raise UsageError(f"{where}: expected a value or {{ value, source, date, assumed }}, found {', '.join(value) or 'nothing'}")
    source = str(value.get("source", ""))
    return Figure(value["value"], str(sources.get(source, source)), str(value.get("date", "")), bool(value.get("assumed", False)))


def _check_kinds(figures: Mapping[str, Figure], where: str) -> None:
    for name, figure in figures.items():
        value = figure.value
        if name in ("currency", "session"):
            if not isinstance(value, str):
                raise UsageError(f"{where}.{name}: expected text, found {value!r}")
        elif name == "allow_negative_prices":
            if not isinstance(value, bool):
                raise UsageError(f"{where}.{name}: expected true or false, found {value!r}")
        elif isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
            raise UsageError(f"{where}.{name}: expected a number above 0, found {value!r}")


def _check_market(costs: Mapping[str, Figure], where: str) -> None:
    if costs:
        from bellmark.component import make
        from bellmark.settings import MarketSettings

        make(MarketSettings, {name: figure.value for name, figure in costs.items()}, where)
