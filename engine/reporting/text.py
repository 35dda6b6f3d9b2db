"""Numbers, dates and names as people read them. Only ASCII, so that every terminal can print them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

DASH = "-"
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def percent(value: float | None, signed: bool = False) -> str:
    """0.1234 as 12.34%; two digits after the point, or the first two that are not zero."""
    if value is None:
        return DASH
    scaled = 100.0 * value
    sign = "+" if signed and scaled else ""
    if scaled and not 1e-6 <= abs(scaled) < 1e6:
        return f"{scaled:{sign}.2e}%"
    digits = 2 if abs(scaled) >= 0.1 or not scaled else 1 - math.floor(math.log10(abs(scaled)))
    return f"{scaled + 0.0:{sign},.{digits}f}%"  # adding zero takes the sign from -0.0


def number(value: float | None, digits: int = 2) -> str:
    """A plain number with thousands separators; very small and very large ones in powers of ten."""
    if value is None:
        return DASH
    if value == 0.0:
        return "0"
    if not 1e-3 <= abs(value) < 1e9:
        return f"{value:.3g}"
    more = max(0, 1 - math.floor(math.log10(abs(value)))) if abs(value) < 1.0 else 0
    return f"{value:,.{max(digits, more)}f}"


def money(value: float | None) -> str:
    """1234.5 as 1,234.50."""
    if value is None:
        return DASH
    text = f"{value:,.2f}"
    return "0.00" if text == "-0.00" else text


def count(value: float | None) -> str:
    """1234 as 1,234."""
    return DASH if value is None else f"{round(value):,}"


def plain(value: float) -> str:
    """252.0 as 252."""
    return f"{value:,.10g}"


def unit_text(unit: str) -> str:
    """The unit beside a number that `metric` has written: a fraction stands there as percent."""
    return unit.removeprefix("fraction ")


def metric(value: float | None, unit: str, signed: bool = False) -> str:
    """A metric by its unit: fractions as percent, counts whole, the rest with two digits."""
    if unit.startswith("fraction"):
        return percent(value, signed)
    return count(value) if unit.startswith(("closed", "count")) else number(value)


def date(ns: int | None) -> str:
    """A stamp as its UTC date."""
    return DASH if ns is None else str(np.datetime64(int(ns), "ns").astype("datetime64[D]"))


def stamp(ns: int | None) -> str:
    """A stamp as UTC date and minute; the date alone at midnight."""
    return DASH if ns is None else str(np.datetime64(int(ns), "ns").astype("datetime64[m]")).replace("T", " ").removesuffix(" 00:00")


def listed(parts: Sequence[str], last: str = "and") -> str:
    """a, b and c."""
    return " ".join(parts) if len(parts) < 2 else f"{', '.join(parts[:-1])} {last} {parts[-1]}"


def plural(amount: int, word: str) -> str:
    """1 bar, 2 bars."""
    return f"{amount:,} {word}{'' if amount == 1 else 's'}"
