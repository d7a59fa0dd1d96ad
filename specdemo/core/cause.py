"""Why measured and textbook speedup differ: the one factor that moves the prediction most, in a sentence."""

from __future__ import annotations

from math import log

CLOSE = 0.05
"""A prediction within 5 % of the measurement needs no cause."""

UNKNOWN = "Too little is known of this run to explain the difference."


def cause(
    measured: float | None,
    *,
    textbook: float | None,
    corrected: float | None,
    expected: float | None,
    length: float,
    tokens_per_step: float | None,
    coverage: float | None,
    undrafted: float | None,
    drafted: float | None,
    rejected: bool,
) -> str:
    """The named cause of the gap between ``textbook`` and ``measured`` speedup.

    The gap is a product of four factors, of which the one furthest in the gap's direction is named:
    (``length`` / ``expected``: acceptance is uneven) · (``tokens_per_step`` / ``length``: steps without a draft)
    · (``drafted`` cost / mean step cost) · (``measured`` / ``corrected``: the rest). ``rejected`` says that one fixed
    acceptance chance was tested and does not describe the run.
    """
    if not (measured and textbook and corrected and expected and tokens_per_step and drafted):
        return UNKNOWN
    ratio = measured / textbook
    if abs(log(ratio)) <= log(1.0 + CLOSE):
        return f"As predicted: measured {measured:.2f}x, textbook {textbook:.2f}x."
    factors = {
        "uneven": length / expected,
        "coverage": tokens_per_step / length,
        "cost": drafted * corrected / tokens_per_step,
        "rest": measured / corrected,
    }
    furthest = min if ratio < 1.0 else max
    name = furthest(factors, key=lambda key: factors[key])
    test = " (one fixed acceptance chance is rejected for this run)" if rejected else ""
    sentences = {
        "uneven": (
            f"acceptance is uneven: {length:.2f} tokens per drafting step where {expected:.2f} were expected{test}."
        ),
        "coverage": (
            f"only {coverage or 0.0:.0%} of the decode steps had a draft to check, so a step gave "
            f"{tokens_per_step:.2f} tokens and not {length:.2f}."
        ),
        "cost": (
            f"steps without a draft cost {undrafted or 1.0:.2f} standard steps, and steps with one {drafted:.2f}."
        ),
        "rest": (
            f"single steps varied: step counts and median step times explain {corrected:.2f}x, the rest is noise or "
            "stalls."
        ),
    }
    return f"Measured {measured:.2f}x against {textbook:.2f}x in the textbook, mainly because {sentences[name]}"
