"""Things that the numerical and security rules ban are nowhere in the package: a word here is a fault that was seen somewhere."""

import re
from pathlib import Path

import pytest

import bellmark

ROOT = Path(bellmark.__file__).parent
BANNED = {
    "fastmath": r"fastmath\s*=\s*True|use_fast_math",  # a guard that is compiled away finds nothing
    "hidden NaN": r"nan_to_num",
    "pickle": r"\bpickle\b(?!d)|\bjoblib\b|allow_pickle",
    "eval": r"(?<![\w.])eval\(",
    "network": r"\b(urllib|requests|http\.client|socket)\b",
    "bf16 by shifting": r">>\s*16\b",  # truncates, and turns a NaN into a zero
    "default for falsy numbers": r"\bor\s+(0\.\d|[1-9]\d*\.?\d*)\b\s*$",
}


def sources():
    import bellmark.datasets
    import bellmark.plugins
    import bellmark.strategies

    folders = {ROOT, *(Path(module.__file__).parent for module in (bellmark.datasets, bellmark.plugins, bellmark.strategies))}
    return sorted({path for folder in folders for path in folder.rglob("*.py")})


def test_the_whole_package_is_looked_at():
    names = {path.name for path in sources()}
    assert {"training.py", "c51.py", "sample.py", "sma_cross.py", "log_return.py"} <= names and len(names) > 100


@pytest.mark.parametrize("what", BANNED)
def test_nothing_banned_is_in_the_package(what):
    found = [
        f"{path.name}:{number}: {line.strip()}"
        for path in sources()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(BANNED[what], line.split("#")[0])
    ]
    assert not found, found
