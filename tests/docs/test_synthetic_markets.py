"""The page on made markets names every one of them, and its example earns what it says."""

import contextlib
import io
import math
import re
from pathlib import Path

import pytest
from moment_cases import within

from bellmark.datasets import bellmark_datasets
from bellmark.datasets.regime_switching import RegimeSwitching

PAGE = (Path(__file__).parents[2] / "docs" / "synthetic-markets.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.cpu


def test_page_lists_every_made_market_and_none_that_is_gone():
    made = {component.name for component in bellmark_datasets() if hasattr(component, "seed")}
    assert len(made) >= 6
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE, flags=re.MULTILINE)) == made


def test_example_runs_and_earns_its_optimum():
    """The standard error is the deviation of a bar, sqrt(0.6 * 0.006^2 + 0.4 * 0.012^2) by the shares of the regimes, over sqrt(49,999)."""
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(block, {})
    earned, best = (float(text) for text in re.findall(r"\d\.\d+", printed.getvalue()))
    assert best == pytest.approx(RegimeSwitching(bars=50_000).best_policy().mean_profit, abs=1e-6)
    within(earned, best, math.sqrt(0.6 * 0.006**2 + 0.4 * 0.012**2) / math.sqrt(49_999))
