"""Results as Vega-Lite specifications, drawn by the Vega that comes with Gradio. Pure.

Colours are the page's own variables, so a plot follows the theme at once; nothing is loaded from anywhere.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.components.plot import PlotData

Spec = dict[str, Any]
Row = dict[str, Any]

GOOD, BAD, NEUTRAL = "var(--sd-good)", "var(--sd-bad)", "var(--sd-quiet)"
STANDARD, SPECULATIVE = "var(--sd-standard)", "var(--sd-speculative)"
SERIES = (SPECULATIVE, STANDARD, GOOD, BAD, "var(--sd-warn)", "var(--sd-hl-word)")
_TEXT, _LINE = "var(--sd-text)", "var(--sd-line)"
_AXIS = {
    "labelColor": _TEXT,
    "titleColor": NEUTRAL,
    "gridColor": _LINE,
    "tickColor": _LINE,
    "domainColor": _LINE,
    "labelFontSize": 12,
    "titleFontSize": 12,
    "titleFontWeight": "normal",
}
_CONFIG: Spec = {
    "background": "transparent",
    "font": "IBM Plex Sans, system-ui, sans-serif",
    "padding": {"left": 12, "right": 16, "top": 10, "bottom": 6},
    "view": {"stroke": None},
    "axis": _AXIS,
    "legend": {"labelColor": _TEXT, "orient": "top", "title": None, "labelFontSize": 12, "labelLimit": 260},
    "text": {"color": _TEXT},
    "title": {"color": _TEXT, "fontSize": 14, "fontWeight": 600},
}


@dataclass(frozen=True, slots=True)
class Bar:
    """A value with its interval on a row of its own; ``points`` are its single prompts, ``shown`` its text."""

    label: str
    value: float
    low: float | None
    high: float | None
    shown: str
    colour: str = NEUTRAL
    points: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """A series: (x, y, low, high) a point."""

    label: str
    points: tuple[tuple[float, float, float | None, float | None], ...]
    colour: str
    dashed: bool = False


def plot(spec: Spec | None) -> Any:
    """For a ``gr.Plot``: the drawing, or nothing to be seen."""
    if spec is None:
        return gr.update(value=None, visible=False)
    return gr.update(value=PlotData(type="altair", plot=json.dumps(spec, allow_nan=False)), visible=True)


def forest(
    bars: Sequence[Bar], name: str, title: str, *, log: bool = True, band: tuple[float, float] | None = None
) -> Spec | None:
    """Values with intervals around 1, one row each, on an axis with ``title``; ``band`` shades what is tolerated.

    None without a value.
    """
    if not bars:
        return None
    rows = [_bar(bar) for bar in bars]
    dots = [{"label": bar.label, "x": x} for bar in bars for x in bar.points if x > 0]
    ends = [v for bar in bars for v in (bar.value, bar.low, bar.high, *bar.points, *(band or ())) if v is not None]
    inside = [v for v in ends if v > 0]
    domain = [min([*inside, 0.95]) / 1.03, max([*inside, 1.05]) * 1.03]
    # No title on y: the labels say what the rows are.
    y = {"field": "label", "type": "nominal", "sort": None, "title": None, "axis": {"labelLimit": 180, "grid": False}}
    scale: Spec = {"type": "log", "domain": domain, "nice": False}
    if not log:
        scale |= {"type": "linear", "zero": False}
    x = {
        "field": "x",
        "type": "quantitative",
        "scale": scale,
        "title": title,
        "axis": {"format": ".3~g", "tickCount": 6},
    }
    tip = [{"field": "label", "title": " "}, {"field": "shown", "title": title}]
    colour = {"field": "colour", "type": "nominal", "scale": None}
    layers: list[Spec] = []
    if band is not None:
        layers.append({
            "data": {"values": [{"x": band[0], "x2": band[1]}]},
            "mark": {"type": "rect", "color": GOOD, "opacity": 0.12},
            "encoding": {"x": {**x, "title": title}, "x2": {"field": "x2"}},
        })  # fmt: skip
    layers += [
        {
            "data": {"values": [{"x": 1}]},
            "mark": {"type": "rule", "color": _TEXT, "strokeDash": [4, 3], "opacity": 0.7},
            "encoding": {"x": x},
        },
        {
            "data": {"values": dots},
            "mark": {"type": "circle", "color": NEUTRAL, "opacity": 0.35, "size": 22},
            "encoding": {"x": x, "y": y},
        },
        {
            "mark": {"type": "rule", "strokeWidth": 3, "strokeCap": "round"},
            "encoding": {
                "x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "color": colour, "tooltip": tip,
            },
        },
        {
            "mark": {"type": "square", "size": 90, "opacity": 1},
            "encoding": {"x": x, "y": y, "color": colour, "tooltip": tip},
        },
        {
            "mark": {"type": "text", "dy": -11, "fontSize": 11, "fontWeight": 600},
            "encoding": {"x": x, "y": y, "text": {"field": "short"}, "color": colour},
        },
    ]  # fmt: skip
    return {**_frame(name), "height": 38 * len(rows), "data": {"values": rows}, "layer": layers}


def lines(series: Sequence[Line], name: str, x_title: str, y_title: str, *, one: bool = False) -> Spec | None:
    """Series over load levels or draft lengths, with intervals; ``one`` draws no difference. None without a point."""
    rows = [_point(line, point) for line in series for point in line.points]
    if not rows:
        return None
    names = [line.label for line in series if line.points]
    colour = {
        "field": "series",
        "type": "nominal",
        "scale": {"domain": names, "range": [line.colour for line in series if line.points]},
    }
    x = {"field": "x", "type": "ordinal", "title": x_title, "axis": {"labelAngle": 0, "grid": False}}
    y = {"field": "y", "type": "quantitative", "title": y_title, "scale": {"zero": True}, "axis": {"tickCount": 6}}
    dash = {
        "field": "dashed",
        "type": "nominal",
        "scale": {"domain": [False, True], "range": [[1, 0], [6, 4]]},
        "legend": None,
    }
    tip = [{"field": "series", "title": " "}, {"field": "x", "title": x_title}, {"field": "shown", "title": y_title}]
    layers: list[Spec] = [
        {"mark": {"type": "line", "strokeWidth": 2}, "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dash}},
        {
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
            "encoding": {"x": x, "y": y, "color": colour, "tooltip": tip},
        },
    ]  # fmt: skip
    if one:
        layers.insert(0, {
            "data": {"values": [{"y": 1}]},
            "mark": {"type": "rule", "color": _TEXT, "strokeDash": [4, 3], "opacity": 0.7},
            "encoding": {"y": {**y, "field": "y"}},
        })  # fmt: skip
    return {**_frame(name), "height": 240, "data": {"values": rows}, "layer": layers}


def _frame(name: str) -> Spec:
    return {
        "title": {"text": name, "anchor": "start", "frame": "group", "offset": 14},
        "description": name,
        "width": "container",
        "autosize": {"type": "fit-x", "contains": "padding"},
        # As SVG, since a canvas knows no variables; the menu would offer a page of a third party.
        "usermeta": {"embedOptions": {"renderer": "svg", "actions": False}},
        "config": _CONFIG,
    }


def _bar(bar: Bar) -> Row:
    known = bar.low is not None and bar.high is not None and bar.low > 0
    return {
        "label": bar.label,
        "x": bar.value,
        "low": bar.low if known else bar.value,
        "high": bar.high if known else bar.value,
        "shown": bar.shown,
        "short": bar.shown.split(" ", 1)[0],
        "colour": bar.colour,
    }


def _point(line: Line, point: tuple[float, float, float | None, float | None]) -> Row:
    x, y, low, high = point
    reach = "" if low is None or high is None else f" ({low:.3g} – {high:.3g})"
    return {
        "series": line.label,
        "x": int(x) if x == int(x) else x,
        "y": y,
        "low": y if low is None else low,
        "high": y if high is None else high,
        "dashed": line.dashed,
        "shown": f"{y:.3g}{reach}",
    }
