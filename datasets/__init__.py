"""Built-in datasets: readers of files, real daily bars of a sample package, and synthetic markets."""

from bellmark.datasets.csv import CsvFile
from bellmark.datasets.es_regimes import EsRegimes
from bellmark.datasets.ornstein_uhlenbeck import OrnsteinUhlenbeck
from bellmark.datasets.parquet import ParquetFile
from bellmark.datasets.sample import Sample
from bellmark.hookspecs import hookimpl


@hookimpl
def bellmark_datasets():
    """The components of this package."""
    return [CsvFile, ParquetFile, Sample, OrnsteinUhlenbeck, EsRegimes]
