"""The hook of the datasets, and what every dataset must keep."""

import subprocess
import sys

import pytest

from bellmark import datasets
from bellmark.component import make, settings_of
from bellmark.tape import compile_tape

GENERATED = {"ornstein_uhlenbeck": {"bars": 50}, "es_regimes": {"sessions": 2}}


def test_hook_brings_the_five_datasets():
    names = [component.name for component in datasets.bellmark_datasets()]
    assert names == ["csv", "parquet", "sample", "ornstein_uhlenbeck", "es_regimes"]


@pytest.mark.parametrize("component", datasets.bellmark_datasets(), ids=lambda component: component.name)
def test_every_dataset_and_setting_says_what_it_is(component):
    assert component.__doc__ and len(component.__doc__.splitlines()[0]) < 120
    for info in settings_of(component):
        assert info.meaning and not info.meaning.endswith(".")


@pytest.mark.parametrize("name", sorted(GENERATED))
def test_generated_market_gives_the_same_hash_twice(name):
    component = next(item for item in datasets.bellmark_datasets() if item.name == name)
    hashes = {compile_tape(make(component, GENERATED[name], "data").read(), cached=False).content_hash for _ in range(2)}
    assert len(hashes) == 1


def test_importing_the_datasets_imports_neither_polars_nor_numba_nor_scipy():
    code = "import sys, bellmark.datasets; print([name for name in ('polars', 'numba', 'scipy', 'bokeh') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
