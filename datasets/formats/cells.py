"""Cells of text as numbers, strictly: what is no number is an error with its row, its column and the option that would read it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bellmark.datasets.formats.layout import Options
from bellmark.datasets.formats.streams import describe
from bellmark.datasets.stamps import Place
from bellmark.errors import DataError, UsageError

if TYPE_CHECKING:
    import polars

    from bellmark.datasets.formats.canonical import Cells

_DOTTED_DATE = r"^\s*[0-9]{1,2}\.[0-9]{1,2}\.([0-9]{4}|[0-9]{2})\b"
_THOUSANDS_OR_NOT = r"^[+-]?(0|[1-9][0-9]{0,2}(\.[0-9]{3})?)$"


@dataclass(frozen=True)
class NumberForm:
    """How numbers are written."""

    decimal: str = "."
    thousands: str = ""

    @classmethod
    def of(cls, options: Options) -> NumberForm:
        """As the user said; marks that cannot be are a UsageError."""
        decimal = "." if options.decimal is None else options.decimal
        thousands = options.thousands or ""
        if decimal not in (".", ","):
            raise UsageError(f"{options.said('decimal')}: expected '.' or ',', found {decimal!r}")
        if thousands not in ("", ".", ",", " ", "'"):
            raise UsageError(f"{options.said('thousands')}: expected '.', ',', ' ', \"'\" or nothing, found {thousands!r}")
        if thousands == decimal:
            shown = f"{options.said('thousands')}: expected another mark than {options.said('decimal')}"
            raise UsageError(f"{shown}, found {thousands!r} for both")
        return cls(decimal, thousands)

    def plain(self, column: polars.Expr) -> polars.Expr:
        """Thousands marks taken out, the decimal mark made a point; a number written another way is left for the cast to refuse.

        A mark in a place where it cannot be one (17.735 with a decimal comma, 1,5 with a comma for thousands) would change the value by
        powers of ten.
        """
        import polars as pl

        text = column.str.strip_chars()
        if not self.thousands and self.decimal == ".":
            return text
        whole = rf"[0-9]{{1,3}}({re.escape(self.thousands)}[0-9]{{3}})+|[0-9]+" if self.thousands else "[0-9]+"
        form = rf"^[+-]?({whole})?({re.escape(self.decimal)}[0-9]*)?([eE][+-]?[0-9]+)?$|^[+-]?(?i:nan|inf|infinity)$|^$"
        plain = text.str.replace_all(self.thousands, "", literal=True) if self.thousands else text
        plain = plain.str.replace_all(",", ".", literal=True) if self.decimal == "," else plain
        return pl.when(text.is_null() | text.str.contains(form)).then(plain).otherwise(pl.lit("not a number"))


def numbers(column: polars.Series, name: str, form: NumberForm, place: Place, options: Options) -> polars.Series:
    """A column as Float64; an empty cell is null, NaN stays NaN."""
    import polars as pl

    if column.dtype == pl.String:
        if form == NumberForm():
            cast = column.cast(pl.Float64, strict=False)
            if cast.null_count() == column.null_count():
                return cast
        plain = column.to_frame("x").select(form.plain(pl.col("x")))["x"]
        cast = plain.cast(pl.Float64, strict=False)
        if cast.null_count() > column.null_count():
            wrong = (cast.is_null() & plain.is_not_null() & (plain != "")).arg_true()
            if len(wrong):
                _no_number(column, name, int(wrong[0]), place, options)
        return cast
    if column.dtype == pl.Null:
        return column.cast(pl.Float64)
    if not column.dtype.is_numeric():
        raise DataError(f"{place.source}: column {name!r}: expected numbers, found {column.dtype}")
    return column.cast(pl.Float64)


def ask_marks(column: polars.Series, name: str, cells: Cells) -> None:
    """Refuses a column whose dots may be decimal marks or thousands marks, in a file that looks European, until the user says which.

    17.735 and 1.204 may be prices of three decimals or index points without any: all dots stand before three digits and no number begins
    with a zero. European: fields between semicolons, or dates as dd.mm.yyyy. One chunk, the first of a file, is enough to ask.
    """
    import polars as pl

    options = cells.options
    if column.dtype != pl.String or options.decimal is not None or options.thousands is not None:
        return
    if options.separator != ";" and not cells.frame["stamp"].cast(pl.String).str.contains(_DOTTED_DATE).fill_null(False).any():
        return
    text = column.str.strip_chars()
    text = text.filter(text.is_not_null() & (text != ""))
    dotted = text.str.contains(".", literal=True)
    if dotted.any() and text.str.contains(_THOUSANDS_OR_NOT).all():
        row = int((column.str.contains(".", literal=True).fill_null(False)).arg_true()[0])
        may = "may be a number with three decimals or one with a mark between thousands"
        ways = f"say {_way(options, 'decimal', '.')} or {_way(options, 'thousands', '.')} and {_way(options, 'decimal', ',')}"
        raise UsageError(f"{cells.place.row(row)}, column {name!r}: {column[row].strip()!r} {may}; {ways}")


def _way(options: Options, name: str, value: str) -> str:
    return f"{options.said(name)} = '{value}'" if options.in_profile else f"--set {name}={value}"


def divided(column: polars.Series, divisor: float) -> polars.Series:
    """A column of Float64 divided by a number, correctly rounded; polars multiplies by 1 / divisor, and 180.1 is 180.10000000000002."""
    import polars as pl

    quotient = pl.Series(column.name, column.fill_null(float("nan")).to_numpy() / divisor)
    return pl.select(pl.when(column.is_not_null()).then(quotient).alias(column.name)).to_series()


def _no_number(column: polars.Series, name: str, row: int, place: Place, options: Options) -> None:
    cell = column[row]
    hint = ""
    if "," in cell or "'" in cell or cell.count(".") > 1 or re.search(r"\d \d", cell):
        hint = f"; {options.said('decimal')} and {options.said('thousands')} say how numbers are written"
    raise DataError(f"{place.row(row)}, column {name!r}: expected a number, found {describe(cell)}{hint}")


def flags(column: polars.Series, name: str, place: Place) -> polars.Series:
    """A column of 1, 0, true or false as Boolean; an empty cell is no."""
    import polars as pl

    if column.dtype == pl.Boolean:
        return column.fill_null(False)
    text = column.cast(pl.String).str.strip_chars().str.to_lowercase().fill_null("")
    on = text.is_in(["1", "1.0", "true"])
    wrong = (~on & ~text.is_in(["", "0", "0.0", "false"])).arg_true()
    if len(wrong):
        row = int(wrong[0])
        raise DataError(f"{place.row(row)}, column {name!r}: expected 0, 1, true or false, found {column[row]!r}")
    return on


def symbols(column: polars.Series, name: str, place: Place) -> polars.Series:
    """A column as names of symbols: not empty, printable."""
    import polars as pl

    if column.dtype not in (pl.String, pl.Categorical, pl.Enum) and not column.dtype.is_integer():
        raise DataError(f"{place.source}: column {name!r}: expected names of symbols, found {column.dtype}")
    text = column.cast(pl.String).str.strip_chars().fill_null("")
    for symbol in text.unique(maintain_order=True).to_list():
        if not symbol or not symbol.isprintable() or len(symbol) > 120:
            row = int((text == symbol).arg_true()[0])
            found = f"is {describe(symbol)}, expected the name of a symbol" if symbol else "is empty"
            raise DataError(f"{place.row(row)}: column {name!r} {found}")
    return text
