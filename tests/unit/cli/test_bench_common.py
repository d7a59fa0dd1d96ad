"""Budgets, levels and clocks as people write and read them."""

from __future__ import annotations

import pytest

from specdemo.cli.bench_common import clock, seconds, whole_numbers
from specdemo.errors import UsageError


@pytest.mark.parametrize(
    "text, value", [("90", 90), ("90s", 90), ("5m", 300), ("1.5h", 5400), (" 2M ", 120), (None, None)]
)
def test_time_budgets(text: str | None, value: float | None) -> None:
    """Seconds, minutes and hours."""
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "5x", "-3m", "0", "m", "1m30s", "nan", "inf"])
def test_wrong_budgets_show_the_form(text: str) -> None:
    """A budget that can't be read is answered with the forms that can."""
    with pytest.raises(UsageError, match="90s, 5m or 1h"):
        seconds(text)


def test_levels() -> None:
    """Numbers with commas; anything else is refused."""
    assert whole_numbers("1, 2,4,") == (1, 2, 4)
    assert whole_numbers("1-4,8") == (1, 2, 3, 4, 8)
    for wrong in ("1,two", "8-1", "1-999999", "-3", "1--2", "1.5"):
        with pytest.raises(UsageError, match="1,2,4,8"):
            whole_numbers(wrong)


@pytest.mark.parametrize("value, text", [(0.4, "0 s"), (59.4, "59 s"), (200, "3 min 20 s"), (3900, "1 h 5 min")])
def test_durations_in_words(value: float, text: str) -> None:
    """Shown as a person says it."""
    assert clock(value) == text
