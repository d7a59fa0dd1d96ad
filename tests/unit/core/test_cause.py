"""The named cause of the gap between prediction and measurement."""

from __future__ import annotations

from specdemo.core.cause import UNKNOWN, cause


def explain(measured: float | None, *, rejected: bool = False, **change: float | None) -> str:
    """The cause sentence of a run in which the textbook is right (E 3.36, every step drafts at cost 1.4)."""
    known: dict[str, float | None] = {
        "expected": 3.36, "length": 3.36, "tokens_per_step": 3.36, "coverage": 1.0, "undrafted": None, "drafted": 1.4,
        "textbook": 2.4, "corrected": 2.4,
    }  # fmt: skip
    known.update(change)
    return cause(measured, rejected=rejected, **known)  # type: ignore[arg-type]  # length is always a number here


def test_cause_as_predicted() -> None:
    """Within 5 % nothing needs a cause."""
    assert explain(2.45) == "As predicted: measured 2.45x, textbook 2.40x."


def test_cause_coverage() -> None:
    """When most steps had no draft, that is the cause, with its share and tokens."""
    text = explain(0.83, coverage=0.12, tokens_per_step=1.11, undrafted=1.3, corrected=0.82)
    assert "only 12% of the decode steps had a draft" in text
    assert text.startswith("Measured 0.83x against 2.40x in the textbook")


def test_cause_uneven_acceptance() -> None:
    """When drafting steps gave fewer tokens than one fixed chance predicts, acceptance is uneven."""
    text = explain(1.6, length=2.2, tokens_per_step=2.2, corrected=1.57, rejected=True)
    assert "acceptance is uneven: 2.20 tokens per drafting step where 3.36 were expected" in text
    assert "rejected for this run" in text
    assert "rejected" not in explain(1.6, length=2.2, tokens_per_step=2.2, corrected=1.57)


def test_cause_step_cost() -> None:
    """When undrafted steps cost as much as drafting ones, cost is the cause."""
    text = explain(1.2, coverage=0.9, tokens_per_step=3.3, undrafted=8.0, corrected=1.6)
    assert "steps without a draft cost 8.00 standard steps, and steps with one 1.40" in text


def test_cause_noise() -> None:
    """What step counts and costs do not explain is called noise, in either direction."""
    assert "the rest is noise or stalls" in explain(1.2)
    assert "the rest is noise or stalls" in explain(3.9)


def test_cause_unknown() -> None:
    """Without the numbers no cause is named."""
    for text in (explain(None), explain(1.0, textbook=None), explain(1.0, tokens_per_step=None)):
        assert text == UNKNOWN


def test_cause_needs_a_drafted_cost() -> None:
    """A run without bursts has no drafted cost, hence no textbook line and no cause."""
    assert explain(1.0, drafted=None) == UNKNOWN
