"""Drawings as SVG text: self-contained, readable in print and by colour-blind eyes, every mark with its numbers. Pure.

Arms differ by colour and by shape; the line of no difference is always drawn; axes are logarithmic for ratios, so that
1.25x and 0.8x stand equally far from 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 720
INK, FAINT, GOOD, BAD, NEUTRAL = "#1c2430", "#d5dbe3", "#0b6e4f", "#b3261e", "#5b6675"
ARM_A, ARM_B = "#5b6675", "#1f5fbf"
FONT = "font-family='system-ui, sans-serif'"


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
    rows = [bar for bar in bars if bar.estimate > 0.0]
    values = [v for b in rows for v in (b.estimate, b.low, b.high, *b.points) if v is not None and v > 0.0]
    low, high = _range(values)
    left, right, top, step = 190, 110, 34, 30
    height = top + step * len(rows) + 44

    def x(value: float) -> float:
        share = (math.log(min(max(value, low), high)) - math.log(low)) / (math.log(high) - math.log(low))
        return left + share * (WIDTH - left - right)

    out = [_open(height, title)]
    for tick in _ticks(low, high):
        strong = tick == 1.0
        out.append(
            f"<line x1='{x(tick):.1f}' y1='{top - 8}' x2='{x(tick):.1f}' y2='{height - 36}' stroke='{INK if strong else FAINT}'"
            f" stroke-width='{1.5 if strong else 1}'{' stroke-dasharray="4 3"' if strong else ''}/>"
        )
        out.append(_text(x(tick), height - 20, f"{tick:g}x", "middle", NEUTRAL))
    out.append(_text((left + WIDTH - right) / 2, height - 4, axis, "middle", NEUTRAL))
    for place, bar in enumerate(rows):
        y = top + step * place + step / 2
        colour = _colour(bar)
        out.append(_text(left - 12, y + 4, bar.label, "end", INK))
        out += [
            f"<circle cx='{x(p):.1f}' cy='{y:.1f}' r='2' fill='{NEUTRAL}' opacity='.35'/>"
            for p in bar.points
            if p > 0.0
        ]
        if bar.low is not None and bar.high is not None and bar.low > 0.0:
            out.append(
                f"<line x1='{x(bar.low):.1f}' y1='{y:.1f}' x2='{x(bar.high):.1f}' y2='{y:.1f}' stroke='{colour}' stroke-width='3'/>"
            )
            out += [
                f"<line x1='{x(v):.1f}' y1='{y - 6:.1f}' x2='{x(v):.1f}' y2='{y + 6:.1f}' stroke='{colour}' stroke-width='2'/>"
                for v in (bar.low, bar.high)
            ]
        out.append(
            f"<rect x='{x(bar.estimate) - 5:.1f}' y='{y - 5:.1f}' width='10' height='10' fill='{colour}'>"
            f"<title>{escape(f'{bar.label}: {bar.estimate:.3f}x')}</title></rect>"
        )
        shown = f"{bar.estimate:.2f}x"
        if bar.low is not None and bar.high is not None:
            shown += f" [{bar.low:.2f}, {bar.high:.2f}]"
        out.append(_text(WIDTH - right + 8, y + 4, shown, "start", colour, size=11))
    return "".join([*out, "</svg>"])


def lines(series: Sequence[Line], title: str, x_axis: str, y_axis: str, *, one: bool = False) -> str:
    """Series over load levels; levels stand at equal distances. ``one`` draws the line of no difference."""
    levels = sorted({point[0] for line in series for point in line.points})
    values = [v for line in series for p in line.points for v in p[1:] if v is not None]
    if not levels or not values:
        return ""
    high = max([*values, 1.0 if one else 0.0]) * 1.1
    left, right, top, bottom, height = 64, 24, 40, 52, 300

    def x(level: float) -> float:
        span = WIDTH - left - right
        return left + span * (levels.index(level) + 0.5) / len(levels)

    def y(value: float) -> float:
        return top + (height - top - bottom) * (1 - min(value, high) / high)

    out = [_open(height, title)]
    for tick in _linear(high):
        out.append(f"<line x1='{left}' y1='{y(tick):.1f}' x2='{WIDTH - right}' y2='{y(tick):.1f}' stroke='{FAINT}'/>")
        out.append(_text(left - 8, y(tick) + 4, f"{tick:g}", "end", NEUTRAL))
    if one:
        out.append(
            f"<line x1='{left}' y1='{y(1.0):.1f}' x2='{WIDTH - right}' y2='{y(1.0):.1f}' stroke='{INK}' stroke-dasharray='4 3'/>"
        )
    out += [_text(x(level), height - bottom + 18, f"{level:g}", "middle", NEUTRAL) for level in levels]
    out.append(_text((left + WIDTH - right) / 2, height - 14, x_axis, "middle", NEUTRAL))
    out.append(_text(14, 18, y_axis, "start", NEUTRAL))
    for place, line in enumerate(series):
        out += _series(line, x, y)
        out.append(
            _text(WIDTH - right, 18 + 15 * place, ("– – " if line.dashed else "— ") + line.label, "end", line.colour)
        )
    return "".join([*out, "</svg>"])


def _series(line: Line, x, y) -> list[str]:  # type: ignore[no-untyped-def]
    dash = " stroke-dasharray='6 4'" if line.dashed else ""
    path = " ".join(f"{x(level):.1f},{y(value):.1f}" for level, value, _, _ in line.points)
    out = [f"<polyline points='{path}' fill='none' stroke='{line.colour}' stroke-width='2'{dash}/>"]
    for level, value, low, high in line.points:
        if low is not None and high is not None:
            out.append(
                f"<line x1='{x(level):.1f}' y1='{y(low):.1f}' x2='{x(level):.1f}' y2='{y(high):.1f}' stroke='{line.colour}' stroke-width='2'/>"
            )
        out.append(
            f"<circle cx='{x(level):.1f}' cy='{y(value):.1f}' r='4' fill='{line.colour}'>"
            f"<title>{escape(f'{line.label}, {level:g}: {value:.3g}')}</title></circle>"
        )
    return out


def _open(height: float, title: str) -> str:
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height:.0f}' role='img' {FONT} font-size='12'>"
        f"<title>{escape(title)}</title>"
    )


def _text(x: float, y: float, text: str, anchor: str, colour: str, *, size: int = 12) -> str:
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' fill='{colour}' font-size='{size}'>{escape(text)}</text>"
    )


def _colour(bar: Bar) -> str:
    if bar.low is None or bar.high is None or bar.low <= 1.0 <= bar.high:
        return NEUTRAL
    return GOOD if bar.low > 1.0 else BAD


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min([*values, 0.95]), max([*values, 1.05])
    return low / 1.05, high * 1.05


def _ticks(low: float, high: float) -> list[float]:
    steps = (0.1, 0.2, 0.25, 0.33, 0.5, 0.67, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
    inside = [tick for tick in steps if low <= tick <= high]
    return (
        inside
        if len(inside) <= 9
        else [tick for tick in inside if tick in (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0)]
    )


def _linear(high: float) -> list[float]:
    raw = high / 5
    size = 10 ** math.floor(math.log10(raw)) if raw > 0.0 else 1.0
    step = next(factor * size for factor in (1, 2, 5, 10) if factor * size >= raw)
    return [round(step * i, 10) for i in range(int(high / step) + 1)]
