"""The calculator's formulas: the page computes them in JavaScript, and both must give the same values."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import pytest

from specdemo.core.theory import expected_tokens, modelled_speedup, textbook_speedup

CASES = json.loads((Path(__file__).parents[2] / "golden" / "how.json").read_text(encoding="utf-8"))


def test_the_golden_values_are_these_formulas() -> None:
    """Every value that the JavaScript test reads is what theory.py computes."""
    assert len(CASES) > 20
    for case in CASES:
        a, k, c = case["a"], case["k"], case["c"]
        room = math.inf if case["room"] is None else case["room"]
        got = modelled_speedup(a, k, c, coverage=case["coverage"], batch=case["batch"], room=room)
        assert expected_tokens(a, k) == pytest.approx(case["expected"], rel=1e-12)
        assert textbook_speedup(a, k, c) == pytest.approx(case["textbook"], rel=1e-12)
        assert got == pytest.approx(case["modelled"], rel=1e-12)


def test_without_its_extras_it_is_the_textbook() -> None:
    """Drafts in every pass and room for all tokens: Leviathan's speedup."""
    for a in (0.0, 0.3, 0.72, 1.0):
        for k in (1, 5, 8):
            assert modelled_speedup(a, k, 0.1) == pytest.approx(textbook_speedup(a, k, 0.1))


def test_no_drafts_no_change() -> None:
    """With no pass drafting nothing is gained or lost, whatever a draft would cost."""
    assert modelled_speedup(0.9, 8, 0.5, coverage=0.0, batch=64, room=100) == 1.0


def test_a_full_device_pays_for_every_token() -> None:
    """Once arithmetic limits both kinds of pass, the speedup is tokens kept per token checked, below 1."""
    assert modelled_speedup(0.8, 4, 0.0, batch=1000, room=100) == pytest.approx(expected_tokens(0.8, 4) / 5)


def test_a_larger_batch_never_gains_more() -> None:
    """The gain shrinks, or stays, as the batch grows."""
    gains = [modelled_speedup(0.8, 4, 0.05, batch=batch, room=295) for batch in range(1, 400)]
    assert all(later <= earlier + 1e-12 for earlier, later in itertools.pairwise(gains))
