"""The headline: one sentence on whether the median learner beat the baselines after costs, made from the numbers alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bellmark.reporting.text import listed, percent, plural

SAME = 1e-12
CAVEAT = "This compares one number on one stretch of data; it is not a test of significance."


def verdict(
    learners: Sequence[float], ruined: int, baselines: Mapping[str, float], split: str, first: str, last: str, bars: int
) -> dict[str, Any]:
    """The sentence and what it rests on.

    learners: total return of each learner after costs; baselines: the same by name; split: the part of the data they ran on. The median
    learner stands for all: no learner is chosen.
    """
    place = f"the {'unseen ' if split == 'test' else ''}{split} part ({first} to {last}, {plural(bars, 'bar')})"
    median = float(np.median(learners)) if learners else None
    beaten = [name for name, value in baselines.items() if median is not None and median > value + SAME]
    matched = [name for name, value in baselines.items() if median is not None and abs(median - value) <= SAME]
    if median is None:
        sentence = f"No learner was backtested on {place}: this report shows rule strategies only."
    else:
        who = "the only learner" if len(learners) == 1 else f"the median of {len(learners)} learners"
        spread = f" (learners ranged from {percent(min(learners), True)} to {percent(max(learners), True)})" if len(learners) > 1 else ""
        comparison = _comparison(baselines, beaten, matched)
        end = f"; {ruined} of {plural(len(learners), 'learner')} {'was' if ruined == 1 else 'were'} ruined" if ruined else ""
        sentence = f"On {place}, after costs, {who} returned {percent(median, True)}{spread} and {comparison}{end}."
        if split != "test":
            sentence += " That part was used to choose, so it says nothing about unseen data."
    return {
        "sentence": sentence,
        "caveat": CAVEAT,
        "beat_every_baseline": bool(baselines) and len(beaten) == len(baselines) if median is not None else None,
        "beaten": beaten,
        "matched": matched,
        "median_total_return": median,
        "baseline_total_return": dict(baselines),
        "learners": len(learners),
        "ruined_learners": ruined,
    }


def _comparison(baselines: Mapping[str, float], beaten: Sequence[str], matched: Sequence[str]) -> str:
    def shown(names: Sequence[str], last: str = "and") -> str:
        return listed([f"{name} ({percent(baselines[name], True)}{', the same' if name in matched else ''})" for name in names], last)

    lost = [name for name in baselines if name not in beaten]
    total = len(baselines)
    if total == 0:
        return "there is no baseline to compare it with"
    if not beaten:
        return f"did not beat {'the baseline' if total == 1 else f'any of the {total} baselines'}: {shown(list(baselines))}"
    if not lost:
        return f"beat {'the one baseline' if total == 1 else f'all {total} baselines'}: {shown(beaten)}"
    return f"beat {len(beaten)} of {total} baselines: {shown(beaten)}, but not {shown(lost, 'or')}"
