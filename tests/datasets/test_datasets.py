"""The hook of the datasets, and what every dataset must keep."""

import subprocess
import sys

import pytest

import bellmark
from bellmark import datasets
from bellmark.component import make, settings_of
from bellmark.tape import compile_tape

GENERATED = {
    "ornstein_uhlenbeck": {"bars": 50},
    "geometric_brownian": {"bars": 50},
    "regime_switching": {"bars": 50},
    "garch_jumps": {"bars": 50},
    "es_regimes": {"sessions": 2},
    "es_intraday": {"sessions": 2},
}
READERS = {"csv", "parquet", "sample", "imported", "futures_chain"}


def test_hook_brings_every_reader_and_every_market():
    names = [component.name for component in datasets.bellmark_datasets()]
    assert len(set(names)) == len(names) and set(names) == READERS | set(GENERATED)


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


@pytest.mark.cpu
@pytest.mark.parametrize("name", sorted(GENERATED))
def test_seed_of_a_generated_market_is_all_of_its_chance(name):
    """Another seed is another path; the default of the seed is written down, so nothing depends on the clock or on a global state."""
    component = next(item for item in datasets.bellmark_datasets() if item.name == name)
    first, other = (make(component, GENERATED[name] | {"seed": seed}, "data").read()[0][0].close for seed in (1, 2))
    default = make(component, GENERATED[name], "data").read()[0][0].close
    assert (first == default).all() and (first != other).any()


@pytest.mark.cpu
@pytest.mark.parametrize("name", sorted(GENERATED))
def test_truth_of_a_generated_market_is_an_array_a_bar_beside_the_bars(name):
    market = make(next(item for item in datasets.bellmark_datasets() if item.name == name), GENERATED[name], "data")
    bars = market.read()[0][0]
    assert any(len(array) == len(bars) for array in market.truth().values())


@pytest.mark.cpu
@pytest.mark.parametrize("name", sorted(GENERATED))
def test_a_market_written_out_is_the_market_itself(name, tmp_path):
    """Bars, quotes, instrument and bars a year: the tape of the folder that `datasets make` writes has the hash of the component's own."""
    component = next(item for item in datasets.bellmark_datasets() if item.name == name)
    path = bellmark.make_dataset(name, "made", data_dir=tmp_path, **GENERATED[name])
    own, written = (make(one, values, "data") for one, values in ((component, GENERATED[name]), (datasets.Imported, {"path": str(path)})))
    first, second = (compile_tape(one.read(), cached=False) for one in (own, written))
    assert first.content_hash == second.content_hash and first.periods_per_year == second.periods_per_year
    assert sorted(first.extra_ST) == sorted(second.extra_ST)
    assert bellmark.check_dataset(path) == []


def test_importing_the_datasets_imports_neither_polars_nor_numba_nor_scipy():
    code = "import sys, bellmark.datasets; print([name for name in ('polars', 'numba', 'scipy', 'bokeh') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
