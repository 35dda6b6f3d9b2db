"""Bars from a Parquet file."""

from __future__ import annotations

from typing import ClassVar

from bellmark.component import component
from bellmark.datasets.table import TableDataset


@component
class ParquetFile(TableDataset):
    """Bars from a Parquet file, one row a bar.

    The stamp may be a date, a time stamp with or without a zone, epoch digits or text. A stamp with a zone counts as it is; one without is
    wall-clock time of `zone`. A null volume is unknown; a null price is an error.
    """

    name: ClassVar[str] = "parquet"
