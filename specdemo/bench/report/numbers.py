"""Numbers as cells: shown rounded, kept in full beside it; what does not apply is a dash. Pure."""

from __future__ import annotations

from specdemo.bench.report.blocks import Cell

NONE = Cell("–")


def factor(value: float | None) -> Cell:
    """A ratio: 1.53x."""
    return NONE if value is None else Cell(f"{value:.2f}x", value)


def plain(value: float | None) -> Cell:
    """Three significant digits."""
    return NONE if value is None else Cell(f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}", value)


def whole(value: int | None, *, mood: str = "") -> Cell:
    """A count."""
    return NONE if value is None else Cell(f"{value:,}", value, mood)


def share(value: float | None) -> Cell:
    """A share in percent."""
    return NONE if value is None else Cell(f"{100 * value:.1f} %", value)


def points(value: float | None, half_width: float | None = None) -> Cell:
    """A difference of shares in percentage points, with its half-width."""
    if value is None:
        return NONE
    reach = "" if half_width is None else f" ± {100 * half_width:.2f}"
    return Cell(f"{100 * value:+.2f}{reach}", value)
