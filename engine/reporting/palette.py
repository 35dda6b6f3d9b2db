"""Colours of a report: told apart with any colour vision, and with the dashes even without colour. They read on white and on near-black."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

AXIS = "#7c8087"
GRID = "#7c8087"
LEARNER = "#2f81c7"
BASELINES = ("#d55e00", "#1a9e77", "#b7791f", "#b5659b", "#7c8087", "#8c6d46")
DASHES = ((), (6, 3), (2, 3), (8, 3, 2, 3), (12, 4), (4, 2, 1, 2))
GAIN, LOSS = (47, 129, 199), (213, 94, 0)


@dataclass(frozen=True)
class Style:
    """How a line is drawn, in the chart and in its legend."""

    color: str
    width: float
    alpha: float
    dash: tuple[int, ...] = ()

    @property
    def svg_dash(self) -> str:
        """The dash as SVG writes it."""
        return " ".join(str(length) for length in self.dash) or "none"


def styles_of(content: Mapping[str, Any]) -> dict[str, Style]:
    """The style of each line label of a report: the median thick, the learners thin, each baseline with its colour and dash."""
    styles: dict[str, Style] = {}
    charts = [*content["charts"].values(), *content["training"]["charts"]]
    for line in (line for chart in charts for line in chart["lines"]):
        label, role = line["label"], line["role"]
        if label in styles:
            continue
        if role == "baseline":
            number = sum(style.color != LEARNER for style in styles.values())
            styles[label] = Style(BASELINES[number % len(BASELINES)], 1.75, 1.0, DASHES[(number + 1) % len(DASHES)])
        else:
            styles[label] = Style(LEARNER, 3.0, 1.0) if role == "median" else Style(LEARNER, 1.0, 0.65)
    return styles


def exposure_color(exposure: float, largest: float) -> str:
    """Orange for short, blue for long, grey for flat, stronger with size."""
    grey = (140, 144, 150)
    share = min(1.0, abs(exposure) / largest) if largest > 0.0 else 0.0
    target = GAIN if exposure > 0.0 else LOSS
    share = 0.35 + 0.65 * share if exposure else 0.0
    mixed = [round(grey[k] + (target[k] - grey[k]) * share) for k in range(3)]
    return f"rgb({mixed[0]} {mixed[1]} {mixed[2]})"


def heat_color(value: float, largest: float) -> str:
    """The background of a month: transparent at zero, blue for gains, orange for losses."""
    strength = min(1.0, abs(value) / largest) if largest > 0.0 else 0.0
    red, green, blue = GAIN if value >= 0.0 else LOSS
    return f"rgb({red} {green} {blue} / {0.05 + 0.5 * strength:.3f})" if value else "transparent"
