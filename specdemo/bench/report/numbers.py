"""Numbers as cells: shown rounded, kept in full beside it; what does not apply is a dash. Pure."""

from __future__ import annotations

import math
from typing import TypeGuard

from specdemo.bench.report.blocks import Cell

NONE = Cell("–")


def times(value: float) -> str:
    """A ratio: 1.53; with digits that say something where it is very large or very small."""
    return f"{value:.2f}" if value == 0.0 or 0.1 <= abs(value) < 1e5 else f"{value:.3g}"


def known(value: float | None) -> TypeGuard[float]:
    """Whether there is a number to show: neither absent nor infinite."""
    return value is not None and math.isfinite(value)


def factor(value: float | None) -> Cell:
    """A ratio: 1.53x."""
    return Cell(f"{times(value)}x", value) if known(value) else NONE


def plain(value: float | None) -> Cell:
    """Three significant digits."""
    if not known(value):
        return NONE
    return Cell(f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.3g}", value)


def whole(value: int | None, *, mood: str = "") -> Cell:
    """A count."""
    return NONE if value is None else Cell(f"{value:,}", value, mood)


def share(value: float | None) -> Cell:
    """A share in percent."""
    return Cell(f"{100 * value:.1f} %", value) if known(value) else NONE


def points(value: float | None, half_width: float | None = None) -> Cell:
    """A difference of shares in percentage points, with its half-width."""
    if not known(value):
        return NONE
    reach = "" if not known(half_width) else f" ± {100 * half_width:.2f}"
    return Cell(f"{100 * value:+.2f}{reach}", value)
