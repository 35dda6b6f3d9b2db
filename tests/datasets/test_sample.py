"""The real daily bars: two splits of AAPL taken out, its real fall kept."""

import importlib.util
import subprocess
import sys

import numpy as np
import pytest

from bellmark import clock
from bellmark.datasets import sample
from bellmark.errors import DataError, UsageError
from bellmark.tape import compile_tape, describe

needs_package = pytest.mark.skipif(importlib.util.find_spec("bokeh_sampledata") is None, reason="bokeh-sampledata is not installed")


def day(bars, t):
    return clock.text(bars.ts_event[t])[:10]


def raw(symbol):
    rows = sample._rows(sample.file_path())[symbol]
    return [row[1] for row in rows], np.array([float(row[5]) for row in rows]), np.array([float(row[7]) for row in rows])


@needs_package
@pytest.mark.parametrize(
    ("symbol", "right"),
    [("AAPL", ["2000-06-21", "2005-02-28"]), ("MSFT", ["2003-02-18"]), ("IBM", []), ("GOOG", []), ("FB", [])],
)
def test_splits_are_found_where_they_happened(symbol, right):
    dates, close_T, adjusted_T = raw(symbol)
    splits = sample.find_splits(close_T, adjusted_T)
    assert [dates[split.bar] for split in splits] == right
    assert all(split.ratio == 2 for split in splits)


@needs_package
def test_aapl_runs_on_through_its_splits_and_keeps_its_real_fall():
    ((bars, _),) = sample.Sample(symbols=("AAPL",)).read()
    change_T = bars.close[1:] / bars.close[:-1] - 1
    by_size = np.argsort(-np.abs(change_T))
    assert day(bars, by_size[0] + 1) == "2000-09-29"
    assert change_T[by_size[0]] == pytest.approx(-0.5187, abs=1e-4)
    assert np.abs(change_T[by_size[1:]]).max() < 0.2
    assert bars.close[0] == 130.31 / 4 and bars.volume[0] == 9616100 * 4
    assert bars.close[-1] == pytest.approx(raw("AAPL")[1][-1])


@needs_package
def test_special_dividend_is_not_a_split():
    """Microsoft paid 3 dollars a share in November 2004: adjusted / raw jumps by 11 %."""
    dates, close_T, adjusted_T = raw("MSFT")
    jump_T = (adjusted_T[1:] / close_T[1:]) / (adjusted_T[:-1] / close_T[:-1])
    assert jump_T[dates.index("2004-11-15") - 1] == pytest.approx(1.112, abs=1e-3)
    assert dates.index("2004-11-15") not in [split.bar for split in sample.find_splits(close_T, adjusted_T)]


@pytest.mark.parametrize(
    ("close", "adjusted", "right"),
    [
        ([100, 100, 50, 51], [50, 50, 50, 51], [(2, 2)]),
        ([100, 100, 34, 33], [100 / 3, 100 / 3, 34, 33], [(2, 3)]),
        ([1, 1, 10.2, 10], [10, 10, 10.2, 10], [(2, 0.1)]),
        ([100, 100, 48, 47], [100, 100, 48, 47], []),
        ([100, 100, 80, 81], [80, 80, 80, 81], [(2, 1.25)]),
        ([100, 100, 88, 88], [88, 88, 88, 88], []),
        ([100, 100, 100, 100], [50, 50, 100, 100], []),
    ],
    ids=["2 for 1", "3 for 1", "reverse", "fall", "5 for 4", "dividend", "jump that the price does not mirror"],
)
def test_split_is_a_jump_of_adjusted_over_raw_that_the_price_mirrors(close, adjusted, right):
    found = sample.find_splits(np.array(close, float), np.array(adjusted, float))
    assert [(split.bar, float(split.ratio)) for split in found] == right


@needs_package
def test_all_companies_compile_exactly_on_their_grid():
    items = sample.Sample(symbols=sample.SYMBOLS).read()
    tape = compile_tape(items, cached=False)
    assert tape.length_S.tolist() == [3270, 196, 2148, 3270, 3270]
    assert [instrument.price_quantum for instrument in tape.instruments] == [2.5e-5, 1e-4, 1e-4, 1e-4, 5e-5]
    assert tape.periods_per_year == 252 and tape.notes == ()
    row = describe(tape)[0]
    assert (row["first"], row["last"]) == ("2000-03-01T21:00:00Z", "2013-03-01T21:00:00Z")
    for s, (bars, instrument) in enumerate(items):
        assert np.allclose(tape.close_ST[s, : len(bars)] * instrument.resolved(1.0).with_costs().price_quantum, bars.close, rtol=1e-12)


def test_unknown_company_is_refused_with_the_known_ones():
    with pytest.raises(UsageError, match="no company 'APPL' .have: AAPL, FB"):
        sample.Sample(symbols=("APPL",)).read()


def test_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setattr(sample.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"pip install 'bellmark\[demo\]'"):
        sample.Sample().read()


def test_damaged_file_is_one_line(tmp_path, monkeypatch):
    path = tmp_path / "stocks.csv.gz"
    path.write_bytes(b"\x1f\x8b rubbish")
    monkeypatch.setattr(sample, "file_path", lambda: path)
    with pytest.raises(DataError, match="stocks.csv.gz: it cannot be read") as caught:
        sample.Sample().read()
    assert "\n" not in str(caught.value)


@needs_package
def test_reading_imports_neither_the_package_nor_pandas_nor_polars_nor_numba():
    code = (
        "import sys; from bellmark.datasets.sample import Sample; Sample().read(); "
        "print([name for name in ('bokeh_sampledata', 'pandas', 'polars', 'numba') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
