"""Built-in datasets: readers of files, real daily bars of a sample package, and synthetic markets."""

from bellmark.datasets.chains import FuturesChain
from bellmark.datasets.csv import CsvFile
from bellmark.datasets.es_intraday import EsIntraday
from bellmark.datasets.es_regimes import EsRegimes
from bellmark.datasets.garch_jumps import GarchJumps
from bellmark.datasets.geometric_brownian import GeometricBrownian
from bellmark.datasets.imported import Imported
from bellmark.datasets.ornstein_uhlenbeck import OrnsteinUhlenbeck
from bellmark.datasets.parquet import ParquetFile
from bellmark.datasets.regime_switching import RegimeSwitching
from bellmark.datasets.sample import Sample
from bellmark.hookspecs import hookimpl


@hookimpl
def bellmark_datasets():
    """The components of this package."""
    made = [OrnsteinUhlenbeck, GeometricBrownian, RegimeSwitching, GarchJumps, EsRegimes, EsIntraday]
    return [Imported, FuturesChain, CsvFile, ParquetFile, Sample, *made]
