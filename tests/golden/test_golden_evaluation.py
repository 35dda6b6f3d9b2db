"""Golden values of evaluation: probabilistic and deflated Sharpe ratio, minimum track record, expected maximum of normals, to 1e-10.

Runs on the numbers kept in the repository, or with `--golden DIR` on every case in DIR/evaluation/psr_dsr_mintrl.json: a section of cases
that no test here knows is a failure.
"""

import json
from math import sqrt
from pathlib import Path

import pytest

from bellmark.evaluation import selection

KEPT = Path(__file__).parent / "data"
FILE = Path("evaluation") / "psr_dsr_mintrl.json"


def cases(folder):
    path = folder / FILE
    document = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for family, rows in document.items():
        if isinstance(rows, list):
            for number, row in enumerate(rows):
                label = row.get("label", row.get("n", number))
                yield pytest.param(family, row, id=f"{family}-{number}-{label}")


def pytest_generate_tests(metafunc):
    if "family" in metafunc.fixturenames:
        metafunc.parametrize(("family", "case"), list(cases(Path(metafunc.config.getoption("--golden") or KEPT))))


def test_case(family, case):
    assert family in CHECKS, f"{FILE}: no test checks the section {family}"
    CHECKS[family](case)


def close(found, expected):
    assert found == pytest.approx(float(expected), rel=1e-10, abs=0.0)


def probabilistic(case):
    found = selection.probabilistic_sharpe_ratio(case["sr_per_bar"], case["n"], case["skew"], case["kurtosis_raw"], case["sr0_per_bar"])
    close(found, case["psr"])


def track_record(case):
    year = sqrt(case["periods_per_year"])
    bars = selection.minimum_track_record_length(
        case["sr_ann"] / year, case["skew"], case["kurtosis_raw"], case["target_ann"] / year, case["confidence"]
    )
    close(bars, case["min_trl_bars"])
    close(bars / case["periods_per_year"], case["min_trl_years"])


def deflated(case):
    periods = case["periods_per_year"]
    variance, sharpe = case["var_trials_ann"] / periods, case["sr_ann"] / sqrt(periods)
    benchmark = selection.expected_maximum_sharpe(case["n_trials"], variance)
    close(benchmark, case["sr0_per_bar"])
    close(benchmark * sqrt(periods), case["sr0_ann"])
    found = selection.deflated_sharpe_ratio(sharpe, case["n"], case["n_trials"], variance, case["skew"], case["kurtosis_raw"])
    close(found, case["dsr"])


def maximum(case):
    close(selection.expected_maximum(case["n"]), case["approx"])
    close(selection.expected_maximum(case["n"], exact=True), case["exact_by_quadrature"])


CHECKS = {"psr": probabilistic, "min_trl": track_record, "dsr": deflated, "expected_max_of_n_std_normals": maximum}


def test_cases_are_found():
    assert len(list(cases(KEPT))) >= 16
