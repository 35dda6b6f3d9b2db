"""What a sweep runs over: `KEY=START:STOP:STEP` (the stop included) or `KEY=a,b,c` as checked values of a setting.

KEY is a setting of the strategy, or `market.NAME` or `sizing.NAME`, a setting of that section of the profile. Numbers are read as the
decimals that were written, so 0.1:0.3:0.1 ends at 0.3.
"""

from __future__ import annotations

import math
import operator
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation, localcontext
from fractions import Fraction
from typing import Any, Literal

from bellmark.component import Component, SettingInfo, settings_of
from bellmark.errors import UsageError, did_you_mean, known_list
from bellmark.settings import MarketSettings

MOST = 1_000_000  # combinations of one sweep
STRATEGY, MARKET, SIZING = "", "market", "sizing"
_BOUNDS = {"ge": operator.ge, "gt": operator.gt, "le": operator.le, "lt": operator.lt}
_TRUTH = {"true": True, "false": False}


@dataclass(frozen=True)
class Axis:
    """One setting with the values that it takes, in their order. section: "" for the strategy, else market or sizing.

    structural: whether its value decides the code or the tape, so that values cannot run side by side.
    """

    section: str
    name: str
    values: tuple[Any, ...]
    structural: bool

    @property
    def key(self) -> str:
        """The setting as the command line names it."""
        return f"{self.section}.{self.name}" if self.section else self.name


def parse_sweeps(texts: Sequence[str], strategy: type[Component], sizing: type[Component]) -> tuple[Axis, ...]:
    """The axes of texts like `fast=5:50:5`, in their order. Raises UsageError where one cannot be read or never holds.

    Every value must have the type and lie within the bounds of its setting; whether settings go together only the component says.
    """
    if not texts:
        raise UsageError("--sweep: expected KEY=START:STOP:STEP or KEY=a,b,c, found nothing to sweep")
    axes: list[Axis] = []
    for text in texts:
        axis = _axis(text, strategy, {STRATEGY: strategy, MARKET: MarketSettings, SIZING: sizing})
        if any(axis.key == other.key for other in axes):
            raise UsageError(f"--sweep {axis.key}: expected each setting once, found it twice")
        axes.append(axis)
    total = math.prod(len(axis.values) for axis in axes)
    if total > MOST:
        sizes = " x ".join(f"{len(axis.values):,}" for axis in axes)
        raise UsageError(f"--sweep: expected at most {MOST:,} combinations, found {total:,} ({sizes})")
    return tuple(axes)


def _axis(text: str, strategy: type[Component], classes: Mapping[str, type[Component]]) -> Axis:
    key, sign, values = (part.strip() for part in text.partition("="))
    if not sign or not key or not values:
        raise UsageError(f"--sweep: expected KEY=START:STOP:STEP or KEY=a,b,c, found '{text}'")
    section, _, name = key.rpartition(".")
    known = {f"{where}.{info.name}" if where else info.name: info for where, cls in classes.items() for info in settings_of(cls)}
    if key not in known:
        own = [info.name for info in settings_of(classes.get(section, strategy))]
        if section in (MARKET, SIZING):
            raise UsageError(f"--sweep {key}: [{section}] has no setting '{name}'{did_you_mean(name, own)}{known_list(own)}")
        have = known_list([*own, "market.NAME", "sizing.NAME"])
        raise UsageError(f"--sweep {key}: strategy '{strategy.name}' has no setting '{key}'{did_you_mean(key, known)}{have}")
    found = _values(values, known[key], f"--sweep {key}")
    return Axis(section, name, found, _structural(section, known[key]))


def _structural(section: str, info: SettingInfo) -> bool:
    """Static settings are constants of the code; distances in ticks and slippage choose the price quantum; sizings belong to the run."""
    return info.static or section == SIZING or (section == MARKET and (info.unit == "ticks" or info.name == "slippage_bps"))


def _values(text: str, info: SettingInfo, where: str) -> tuple[Any, ...]:
    kinds = _kinds(info.type)
    if not kinds & {int, float, str, bool} and not info.choices:
        raise UsageError(f"{where}: expected a setting with single values, found {info.type_text}: it cannot be swept")
    numeric = bool(kinds & {int, float})
    if numeric and ":" in text:
        numbers = _range(text, info, where)
    else:
        numbers = tuple(_read(part.strip(), info, kinds, where) for part in text.split(","))
    values = tuple(_checked(number, info, kinds, where) for number in numbers)
    if len(set(values)) < len(values):
        twice = next(value for place, value in enumerate(values) if value in values[:place])
        raise UsageError(f"{where}: expected each value once, found {twice!r} twice")
    return values


def _kinds(kind: Any) -> set[Any]:
    parts = typing.get_args(kind) if typing.get_origin(kind) in (typing.Union, types.UnionType) else (kind,)
    return {part for part in parts if part is not type(None) and typing.get_origin(part) is not Literal}


def _range(text: str, info: SettingInfo, where: str) -> tuple[Decimal, ...]:
    parts = [part.strip() for part in text.split(":")]
    if len(parts) != 3 or "," in text:
        raise UsageError(f"{where}: expected START:STOP:STEP or a,b,c, found '{text}'")
    start, stop, step = (_number(part, info, where) for part in parts)
    if step == 0:
        raise UsageError(f"{where}: expected a step other than 0, found '{text}'")
    steps = (Fraction(stop) - Fraction(start)) / Fraction(step)
    if steps < 0:
        raise UsageError(f"{where}: expected a step that leads from {parts[0]} to {parts[1]}, found {parts[2]}")
    count = math.floor(steps) + 1
    if count > MOST:
        raise UsageError(f"{where}: expected at most {MOST:,} values, found {count:,}")
    with localcontext(prec=80):  # sums of numbers of 18 digits are exact
        return tuple(start + step * place for place in range(count))


def _number(text: str, info: SettingInfo, where: str) -> Decimal:
    try:
        value = Decimal(text if text.isascii() and "_" not in text else "NaN")
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite():
        raise UsageError(f"{where}: expected {info.expected}, found '{text}'")
    if value and not -18 <= value.adjusted() < 18 or len(value.as_tuple().digits) > 18:
        raise UsageError(f"{where}: expected a number of at most 18 digits, found '{text[:40]}'")
    return value


def _read(text: str, info: SettingInfo, kinds: set[Any], where: str) -> Any:
    if info.choices:
        if text not in info.choices:
            raise UsageError(f"{where}: expected {info.expected}, found '{text}'{did_you_mean(text, info.choices)}")
        return text
    if bool in kinds:
        if text not in _TRUTH:
            raise UsageError(f"{where}: expected true or false, found '{text}'")
        return _TRUTH[text]
    if kinds & {int, float}:
        return _number(text, info, where)
    if not text:
        raise UsageError(f"{where}: expected {info.expected}, found an empty value")
    return text


def _checked(value: Any, info: SettingInfo, kinds: set[Any], where: str) -> Any:
    """The value in the setting's own type, within its bounds."""
    if not isinstance(value, Decimal):
        return value
    whole = value == value.to_integral_value()
    if float not in kinds and not whole:
        raise UsageError(f"{where}: expected {info.expected}, found {value}")
    found: int | float = int(value) if int in kinds and whole else float(value)
    for bound, limit in info.bounds.items():
        if not _BOUNDS[bound](found, limit):
            raise UsageError(f"{where}: expected {info.expected}, found {value}")
    return found
