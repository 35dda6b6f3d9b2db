"""Bars from a Parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from bellmark.component import component
from bellmark.datasets.table import TableDataset
from bellmark.errors import DataError

if TYPE_CHECKING:
    import polars


@component
class ParquetFile(TableDataset):
    """Bars from a Parquet file, one row a bar.

    The stamp may be a date, a time stamp with or without a zone, epoch digits or text. A stamp with a zone counts as it is; one without is
    wall-clock time of `zone`. A null volume is unknown; a null price is an error.
    """

    name: ClassVar[str] = "parquet"

    def table(self, path: Path) -> polars.DataFrame:
        """The whole file."""
        import polars as pl

        try:
            return pl.read_parquet(path, glob=False)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise DataError(f"{path}: it cannot be read as Parquet: {str(error).strip().splitlines()[0]}") from error
