"""Bokeh figures of a report and their embedding: one document, ids counted from 1, no request to anywhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from bellmark.reporting.palette import AXIS, GRID, Style

HEIGHT = 320
SMALL = 220


def figures(content: Mapping[str, Any], styles: Mapping[str, Style]) -> dict[str, Any]:
    """A Bokeh figure a chart name: equity, drawdown and exposure (one shared time axis), and the training curves."""
    from bokeh.models import Range1d

    start, end = content["part"]["start_ns"] / 1e6, content["part"]["end_ns"] / 1e6
    room = (end - start or 1.0) * 0.01
    shared = Range1d(start - room, end + room, bounds=(start - 20 * room, end + 20 * room))
    figs = {}
    for name, form in (("equity", "0,0"), ("drawdown", "0.[0000]%"), ("exposure", "0.[0000]%")):
        lines = content["charts"][name]["lines"]
        if lines:
            height = HEIGHT if name == "equity" else SMALL
            figs[name] = _figure(lines, "ms", styles, height, form, name == "exposure", x_axis_type="datetime", x_range=shared)
    for chart in content["training"]["charts"]:
        figs[f"training_{chart['name']}"] = _figure(chart["lines"], "epoch", styles, SMALL, "0,0.[0000]", False, x_axis_label="epoch")
    return figs


def embedded(figs: Mapping[str, Any]) -> tuple[str, list[tuple[str, str]]]:
    """The document as JSON text that is safe inside a script element, and (chart name, root id) pairs."""
    from bokeh.document import Document

    document = Document(title="")
    for fig in figs.values():
        document.add_root(fig)
    plain = json.loads(_plain_json(document))
    names: dict[str, str] = {}
    _renumber(plain, names)
    roots = [root["id"] for root in plain["roots"]]
    text = json.dumps(plain, separators=(",", ":"))  # not sorted: a model is spelled out where it is first named
    # "<" would let a name end the script element; the two separators are line ends in older JavaScript
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text, list(zip(figs, roots, strict=True))


def bokeh_script() -> str:
    """Bokeh's core library as JavaScript text, without widgets, tables, WebGL and formulas."""
    from bokeh.resources import Resources

    return "\n".join(Resources(mode="inline", components=["bokeh"], minified=True).js_raw)


def _plain_json(document: Any) -> str:
    from bokeh.core.json_encoder import serialize_json

    return serialize_json(document.to_json(deferred=False))


def _renumber(node: Any, names: dict[str, str]) -> None:
    """Replaces the ids that Bokeh counts per process by ids counted per report, in order of appearance."""
    if isinstance(node, dict):
        if isinstance(node.get("id"), str):
            node["id"] = names.setdefault(node["id"], f"m{len(names) + 1}")
        for value in node.values():
            _renumber(value, names)
    elif isinstance(node, list):
        for value in node:
            _renumber(value, names)


def _figure(lines: list[dict[str, Any]], x: str, styles: Mapping[str, Style], height: int, form: str, steps: bool, **options: Any) -> Any:
    from bokeh.models import BoxZoomTool, NoOverlap, NumeralTickFormatter, PanTool, ResetTool
    from bokeh.plotting import figure

    tools = [PanTool(), BoxZoomTool(), ResetTool()]
    fig = figure(height=height, sizing_mode="stretch_width", tools=tools, toolbar_location="above", output_backend="canvas", **options)
    # no tool is active at first, so that a finger that scrolls the page does not move a chart
    fig.toolbar.active_drag = None
    fig.toolbar.logo = None
    fig.toolbar.autohide = True
    fig.xaxis.major_label_policy = NoOverlap(min_distance=10)
    fig.yaxis.formatter = NumeralTickFormatter(format=form)
    if x == "ms":
        _date_axis(fig)
    _transparent(fig)
    order = {"learner": 0, "baseline": 1, "median": 2}
    renderers = [_line(fig, line, x, styles[line["label"]], steps) for line in sorted(lines, key=lambda line: order[line["role"]])]
    fig.add_tools(_hover(renderers, x, form))
    return fig


def _date_axis(fig: Any) -> None:
    from bokeh.models import DatetimeTickFormatter

    fig.xaxis.formatter = DatetimeTickFormatter(days="%d %b %Y", months="%b %Y", years="%Y", hours="%d %b %H:%M", minutes="%d %b %H:%M")
    fig.xaxis.ticker.desired_num_ticks = 5


def _transparent(fig: Any) -> None:
    """Nothing but mid-tone ink: one drawing that reads on light paper, on a dark screen and in print."""
    fig.background_fill_alpha = 0
    fig.border_fill_alpha = 0
    fig.outline_line_color = None
    fig.min_border_left = 8
    fig.min_border_right = 12
    for axis in fig.axis:
        axis.axis_line_color = AXIS
        axis.major_tick_line_color = AXIS
        axis.minor_tick_line_color = None
        axis.major_label_text_color = AXIS
        axis.major_label_text_font = "system-ui, sans-serif"
        axis.major_label_text_font_size = "12px"
        axis.axis_label_text_color = AXIS
        axis.axis_label_text_font = "system-ui, sans-serif"
        axis.axis_label_text_font_size = "12px"
        axis.axis_label_text_font_style = "normal"
    fig.grid.grid_line_color = GRID
    fig.grid.grid_line_alpha = 0.25
    fig.xgrid.grid_line_color = None


def _line(fig: Any, line: Mapping[str, Any], x: str, style: Style, steps: bool) -> Any:
    from bokeh.models import ColumnDataSource

    # a tooltip shows the name as text; without these letters it is text in any version of Bokeh
    name = line["label"].translate(str.maketrans("<>&", "()+"))
    horizontal = np.array(line[x], np.float64 if x == "ms" else np.float32)
    vertical = np.array(line["value"], np.float32)
    source = ColumnDataSource({"x": horizontal, "y": vertical})
    options = {"line_color": style.color, "line_width": style.width, "line_alpha": style.alpha, "line_dash": list(style.dash)}
    if vertical.size == 1:
        return fig.scatter("x", "y", source=source, size=7, color=style.color, name=name)
    if steps:
        return fig.step("x", "y", source=source, mode="after", name=name, **options)
    return fig.line("x", "y", source=source, name=name, **options)


def _hover(renderers: list[Any], x: str, form: str) -> Any:
    from bokeh.models import HoverTool

    horizontal = ("date", "$snap_x{%F %H:%M}") if x == "ms" else ("epoch", "$snap_x{0}")
    tips = [("", "$name"), horizontal, ("value", f"$snap_y{{{form if form != '0,0' else '0,0.00'}}}")]
    return HoverTool(tooltips=tips, renderers=renderers, formatters={"$snap_x": "datetime"} if x == "ms" else {}, line_policy="nearest")
