"""What a user says of an import, as flat names and values, split into what each part of it takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bellmark import clock
from bellmark.datasets.checks import Policies
from bellmark.datasets.importing import ImportSettings
from bellmark.datasets.resample import length_of
from bellmark.errors import UsageError, did_you_mean
from bellmark.instrument import Instrument

if TYPE_CHECKING:
    from bellmark.datasets.formats import Options

_MADE = ("policies", "overrides")  # of ImportSettings, built here
_READER = ("stamp", "zone", "repeated_hour", "adjustment", "chunk_bytes")
_LISTS = ("bid", "ask", "funding", "actions", "factors")
_CHOICES = {"stamp": ("open", "close"), "price": ("mid", "bid", "ask"), "repeated_hour": ("error", "file_order")}
_CHOICES |= {"adjustment": ("raw", "split", "split_dividend")}


def split(values: Mapping[str, Any]) -> tuple[ImportSettings, Options]:
    """Settings of the import and options of the reader; None counts as not said, an unknown name is refused.

    What belongs to neither import, reader nor instrument is a setting of the `csv` and `parquet` layouts.
    """
    from bellmark.datasets.formats import options_from

    own = {entry.name for entry in dataclasses.fields(ImportSettings)} - set(_MADE)
    instrument = {entry.name for entry in dataclasses.fields(Instrument)} - {"symbol"}
    given = {name: value for name, value in values.items() if value is not None}
    for name, choices in _CHOICES.items():
        if name in given and given[name] not in choices:
            hint = did_you_mean(str(given[name]), choices)
            raise UsageError(f"{name}: expected one of {', '.join(choices)}, found '{given[name]}'{hint}")
    policies = Policies(dict(given.pop("on", {})))
    symbols = _symbols(given.pop("symbol", ()))
    settings = {name: given.pop(name) for name in own & given.keys()}
    settings |= {name: _texts(settings[name]) for name in _LISTS if name in settings}
    settings["data_dir"] = Path(settings.get("data_dir", "data"))
    overrides = {name: given.pop(name) for name in instrument & given.keys()}
    reader = {name: given.pop(name) for name in _READER if name in given}
    if settings.get("bar"):
        reader["bar_seconds"] = length_of(settings["bar"], "--bar") / clock.SECOND
    reader |= {"symbols": symbols, "truncated": policies["truncated"]}
    options = options_from({name: str(value) for name, value in given.items()}, **reader)
    return ImportSettings(**settings, policies=policies, overrides=overrides), options


def _symbols(given: Any) -> tuple[str, ...]:
    symbols = _texts(given)
    for symbol in symbols:
        if not symbol.strip() or not symbol.isprintable():
            raise UsageError(f"symbol: expected a name, found {symbol!r}")
    if len(set(symbols)) < len(symbols):
        raise UsageError(f"symbol: expected each name once, found {', '.join(symbols)}")
    return symbols


def _texts(given: Any) -> tuple[str, ...]:
    return (str(given),) if isinstance(given, str | Path) else tuple(str(each) for each in given)
