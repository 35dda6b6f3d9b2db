"""Bars from a CSV file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

from bellmark.component import component, setting
from bellmark.datasets.table import TableDataset

if TYPE_CHECKING:
    from bellmark.datasets.formats import Options


@component
class CsvFile(TableDataset):
    """Bars from a CSV file with a header line, one row a bar.

    A byte-order mark, line ends of Windows and blanks around names and cells do not matter; column names are found whatever their case. An
    empty volume is unknown; an empty price is an error. Rows must be in time order; identical rows are kept once and counted. Files may be
    compressed (gzip, zip). `bellmark datasets import` reads the layouts of many vendors and files that are larger than memory.
    """

    name: ClassVar[str] = "csv"
    separator: str = setting(",", "one character between fields")
    decimal: Literal["", ".", ","] = setting("", "decimal mark; empty = a point, but in files where points may part thousands it is asked")
    thousands: Literal["", ".", ",", " ", "'"] = setting("", "mark between thousands; empty = none")

    def options(self) -> Options:
        """What the settings say of the file."""
        return replace(super().options(), separator=self.separator, decimal=self.decimal or None, thousands=self.thousands or None)
