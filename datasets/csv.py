"""Bars from a CSV file."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from bellmark.component import component, setting
from bellmark.datasets.table import TableDataset
from bellmark.errors import DataError, UsageError

if TYPE_CHECKING:
    import polars


@component
class CsvFile(TableDataset):
    """Bars from a CSV file with a header line, one row a bar.

    A byte-order mark, line ends of Windows and blanks around names and cells do not matter; column names are found whatever their case. An
    empty volume is unknown; an empty price is an error. Rows must be in time order; identical rows are kept once and counted.
    """

    name: ClassVar[str] = "csv"
    separator: str = setting(",", "one character between fields")
    decimal: Literal[".", ","] = setting(".", "decimal mark")
    thousands: Literal["", ".", ",", " ", "'"] = setting("", "mark between thousands; empty = none")

    def number_text(self, column: polars.Expr) -> polars.Expr:
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

    def table(self, path: Path) -> polars.DataFrame:
        """All cells as text, under the names of the header line as they are meant."""
        import polars as pl

        if len(self.separator) != 1 or not self.separator.isascii() or self.separator in '"\r\n' or self.separator.isalnum():
            raise UsageError(f"data.separator: expected one character such as ',' or ';' or a tab, found {self.separator!r}")
        if self.thousands == self.decimal:
            raise UsageError(f"data.thousands: expected another mark than data.decimal, found {self.thousands!r} for both")
        names = self._header(path)
        try:
            frame = pl.read_csv(
                path, separator=self.separator, has_header=False, skip_rows=1, new_columns=names, schema_overrides=[pl.String] * len(names),
                infer_schema=False, encoding="utf8", glob=False,
            )  # fmt: skip
        except pl.exceptions.NoDataError as error:
            raise DataError(f"{path}: the file has a header and no bars") from error
        except (pl.exceptions.PolarsError, OSError) as error:
            fault = self._uneven_row(path, len(names)) or str(error).strip().splitlines()[0]
            raise DataError(f"{path}: it cannot be read as CSV with {self.separator!r} between {len(names)} columns: {fault}") from error
        # polars fills a row that is cut short with nulls, which an empty last field is too: only the text tells them apart.
        if frame[names[-1]].null_count() and (fault := self._uneven_row(path, len(names))):
            raise DataError(f"{path}: {fault}")
        return frame

    def _uneven_row(self, path: Path, fields: int) -> str:
        """What is wrong with the first row that has another number of fields, empty lines aside; it reads the file row by row."""
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                for number, row in enumerate(csv.reader(file, delimiter=self.separator)):
                    if number and row and len(row) != fields:
                        return f"data row {number} (the header not counted): expected {fields} fields, found {len(row)}"
        except (OSError, UnicodeDecodeError, csv.Error):
            pass
        return ""

    def _header(self, path: Path) -> list[str]:
        try:
            with path.open(encoding="utf-8-sig", newline="") as file:
                line = file.readline()
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"{path}: it cannot be read as UTF-8 text: {error}") from error
        if not line.strip():
            raise DataError(f"{path}: the file is empty")
        names = [name.strip().strip('"').strip() for name in next(csv.reader([line], delimiter=self.separator, skipinitialspace=True))]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise DataError(f"{path}: two columns are named {twice!r}")
        return names
