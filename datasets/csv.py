"""Bars from a CSV file."""

from __future__ import annotations

import csv
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
        """Thousands marks taken out, the decimal mark made a point."""
        text = column.str.strip_chars()
        if self.thousands:
            text = text.str.replace_all(self.thousands, "", literal=True)
        return text.str.replace_all(",", ".", literal=True) if self.decimal == "," else text

    def table(self, path: Path) -> polars.DataFrame:
        """All cells as text, under the names of the header line as they are meant."""
        import polars as pl

        if len(self.separator) != 1:
            raise UsageError(f"data.separator: expected one character, found {self.separator!r}")
        if self.thousands == self.decimal:
            raise UsageError(f"data.thousands: expected another mark than data.decimal, found {self.thousands!r} for both")
        names = self._header(path)
        try:
            return pl.read_csv(
                path, separator=self.separator, has_header=False, skip_rows=1, new_columns=names, schema_overrides=[pl.String] * len(names),
                infer_schema=False, encoding="utf8",
            )  # fmt: skip
        except pl.exceptions.NoDataError as error:
            raise DataError(f"{path}: the file has a header and no bars") from error
        except (pl.exceptions.PolarsError, OSError) as error:
            first = str(error).strip().splitlines()[0]
            raise DataError(f"{path}: it cannot be read as CSV with {self.separator!r} between {len(names)} columns: {first}") from error

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
