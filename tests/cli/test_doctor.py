"""`bellmark doctor`."""

import pytest

from bellmark import doctor
from bellmark.doctor import Finding

pytestmark = pytest.mark.cpu


def test_doctor_finds_what_is_needed(bellmark):
    findings = bellmark("doctor", "--json").json
    by_name = {finding["check"]: finding for finding in findings}
    assert {"python", "numba", "cache", "blas", "components"} <= by_name.keys()
    assert by_name["python"]["status"] == "ok"


def test_something_missing_is_exit_3(bellmark, monkeypatch):
    monkeypatch.setattr(doctor, "examine", lambda: [Finding("numba", "missing", "not installed: pip install numba")])
    result = bellmark("doctor")
    assert (result.code, result.errors) == (3, ["error: numba: not installed: pip install numba"])


def test_a_check_that_raises_is_a_finding(monkeypatch):
    def broken():
        raise OSError("disk on fire")

    monkeypatch.setattr(doctor, "_machine", broken)
    assert Finding("broken", "missing", "OSError: disk on fire") in doctor.examine()
