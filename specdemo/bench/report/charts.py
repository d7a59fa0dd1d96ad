"""Drawings as SVG text: self-contained, readable in print and by colour-blind eyes, every mark with its numbers. Pure.

Arms differ by colour and by shape; the line of no difference is always drawn; axes are logarithmic for ratios, so that
1.25x and 0.8x stand equally far from 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from html import escape

from specdemo.bench.report.numbers import times

WIDTH = 720
INK, FAINT, GOOD, BAD, NEUTRAL = "#1c2430", "#d5dbe3", "#0b6e4f", "#b3261e", "#5b6675"
ARM_A, ARM_B = "#5b6675", "#1f5fbf"
RATIO_TICKS = (0.1, 0.25, 0.5, 0.67, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0)
LEAST, MOST = 1e-100, 1e100
"""Ratios beyond these stand at the edge."""
FEW_TICKS = frozenset((0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0))

Scale = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class Bar:
    """A ratio with its interval; ``points`` are single prompts."""

    label: str
    estimate: float
    low: float | None
    high: float | None
    points: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """A series over load levels: (x, y, low, high)."""

    label: str
    colour: str
    points: tuple[tuple[float, float, float | None, float | None], ...]
    dashed: bool = False


def forest(bars: Sequence[Bar], title: str, axis: str) -> str:
    """Speedups with intervals, one row each, on a logarithmic axis around 1."""
    rows = [bar for bar in bars if 0.0 < bar.estimate < math.inf]
    values = [v for b in rows for v in (b.estimate, b.low, b.high, *b.points) if v is not None and 0.0 < v < math.inf]
    low, high = max(min([*values, 0.95]) / 1.05, LEAST), min(max([*values, 1.05]) * 1.05, MOST)
    left, right, top, step = 190, 130, 20, 30
    bottom = top + step * len(rows)

    def x(value: float) -> float:
        share = math.log(min(max(value, low), high) / low) / math.log(high / low)
        return left + share * (WIDTH - left - right)

    out = []
    for tick in _ratio_ticks(low, high):
        out.append(_rule(x(tick), top - 8, x(tick), bottom + 6, one=tick == 1.0))
        out.append(_text(x(tick), bottom + 22, f"{tick:g}x", "middle", NEUTRAL))
    out.append(_text((left + WIDTH - right) / 2, bottom + 40, axis, "middle", NEUTRAL))
    for place, bar in enumerate(rows):
        y = top + step * place + step / 2
        out.append(_text(left - 12, y + 4, bar.label, "end", INK))
        out += _bar(bar, x, y)
        out.append(_text(WIDTH - right + 10, y + 4, _numbers(bar), "start", _colour(bar)))
    return _svg(bottom + 48, title, out)


def _bar(bar: Bar, x: Scale, y: float) -> list[str]:
    colour = _colour(bar)
    out = [_element("circle", cx=x(p), cy=y, r=2, fill=NEUTRAL, opacity=0.35) for p in bar.points if p > 0.0]
    if bar.low is not None and bar.high is not None and bar.low > 0.0:
        out.append(_segment(x(bar.low), y, x(bar.high), y, colour, 3))
        out += [_segment(x(v), y - 6, x(v), y + 6, colour, 2) for v in (bar.low, bar.high)]
    mark = f"{bar.label}: {bar.estimate:.3f}x"
    out.append(_element("rect", mark, x=x(bar.estimate) - 5, y=y - 5, width=10, height=10, fill=colour))
    return out


def lines(series: Sequence[Line], title: str, x_axis: str, y_axis: str, *, one: bool = False) -> str:
    """Series over load levels; levels stand at equal distances. ``one`` draws the line of no difference."""
    series = [replace(line, points=tuple(p for p in line.points if math.isfinite(p[1]))) for line in series]
    levels = sorted({point[0] for line in series for point in line.points})
    values = [v for line in series for p in line.points for v in p[1:] if v is not None and math.isfinite(v)]
    if not levels or not values:
        return ""
    high = min(max([*values, 1.0 if one else 0.0]), MOST) * 1.1 or 1.0
    left, right, top, bottom, height = 64, 24, 24 + 15 * len(series), 52, 320

    def x(level: float) -> float:
        return left + (WIDTH - left - right) * (levels.index(level) + 0.5) / len(levels)

    def y(value: float) -> float:
        return top + (height - top - bottom) * (1 - max(0.0, min(value, high)) / high)

    out = [_text(14, 18, y_axis, "start", NEUTRAL)]
    for tick in _linear_ticks(high):
        out.append(_rule(left, y(tick), WIDTH - right, y(tick), one=False))
        out.append(_text(left - 8, y(tick) + 4, f"{tick:g}", "end", NEUTRAL))
    if one:
        out.append(_rule(left, y(1.0), WIDTH - right, y(1.0), one=True))
    out += [_text(x(level), height - bottom + 18, f"{level:g}", "middle", NEUTRAL) for level in levels]
    out.append(_text((left + WIDTH - right) / 2, height - 14, x_axis, "middle", NEUTRAL))
    for place, line in enumerate(series):
        out += _series(line, x, y)
        sign = "- - " if line.dashed else "── "
        out.append(_text(WIDTH - right, 18 + 15 * place, sign + line.label, "end", line.colour))
    return _svg(height, title, out)


def _series(line: Line, x: Scale, y: Scale) -> list[str]:
    path = " ".join(f"{x(level):.1f},{y(value):.1f}" for level, value, _, _ in line.points)
    dash = "6 4" if line.dashed else "none"
    out = [_element("polyline", points=path, fill="none", stroke=line.colour, stroke_width=2, stroke_dasharray=dash)]
    for level, value, low, high in line.points:
        if low is not None and high is not None:
            out.append(_segment(x(level), y(low), x(level), y(high), line.colour, 2))
        mark = f"{line.label}, {level:g}: {value:.3g}"
        out.append(_element("circle", mark, cx=x(level), cy=y(value), r=4, fill=line.colour))
    return out


def _svg(height: float, title: str, inside: Sequence[str]) -> str:
    box = f"0 0 {WIDTH} {height:.0f}"
    head = f'<svg viewBox="{box}" role="img" font-family="sans-serif" font-size="12">'
    return f"{head}<title>{escape(title)}</title>{''.join(inside)}</svg>"


def _element(name: str, hover: str = "", **attributes: float | str) -> str:
    """One SVG element; underscores in names become hyphens, numbers get one decimal, everything is escaped."""
    shown = " ".join(
        f'{key.replace("_", "-")}="{escape(value) if isinstance(value, str) else format(round(value, 2), "g")}"'
        for key, value in attributes.items()
    )
    return f"<{name} {shown}><title>{escape(hover)}</title></{name}>" if hover else f"<{name} {shown}/>"


def _segment(x1: float, y1: float, x2: float, y2: float, colour: str, width: float) -> str:
    return _element("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=colour, stroke_width=width)


def _rule(x1: float, y1: float, x2: float, y2: float, *, one: bool) -> str:
    """A grid line; the one of no difference is darker and dashed."""
    if not one:
        return _segment(x1, y1, x2, y2, FAINT, 1)
    return _element("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=INK, stroke_width=1.5, stroke_dasharray="4 3")


def _text(x: float, y: float, text: str, anchor: str, colour: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'


def _numbers(bar: Bar) -> str:
    if bar.low is None or bar.high is None:
        return f"{times(bar.estimate)}x"
    return f"{times(bar.estimate)}x [{times(bar.low)}, {times(bar.high)}]"


def _colour(bar: Bar) -> str:
    if bar.low is None or bar.high is None or bar.low <= 1.0 <= bar.high:
        return NEUTRAL
    return GOOD if bar.low > 1.0 else BAD


def _ratio_ticks(low: float, high: float) -> list[float]:
    inside = [tick for tick in RATIO_TICKS if low <= tick <= high]
    return inside if len(inside) <= 8 else [tick for tick in inside if tick in FEW_TICKS]


def _linear_ticks(high: float) -> list[float]:
    raw = high / 5
    size = 10 ** math.floor(math.log10(raw)) if raw > 0.0 else 1.0
    step = next(factor * size for factor in (1, 2, 5, 10) if factor * size >= raw)
    return [round(step * i, 10) for i in range(int(high / step) + 1)]
