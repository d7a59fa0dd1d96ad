"""Why measured and textbook speedup differ: the one factor that moves the prediction most, in a sentence."""

from __future__ import annotations

from math import log

from specdemo.core.sentences import sentence

CLOSE = 0.05
"""A prediction within 5 % of the measurement needs no cause."""

UNKNOWN = sentence("cause_unknown")


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
        return sentence("as_predicted", measured=measured, textbook=textbook)
    factors = {
        "uneven": length / expected,
        "coverage": tokens_per_step / length,
        "cost": drafted * corrected / tokens_per_step,
        "rest": measured / corrected,
    }
    furthest = min if ratio < 1.0 else max
    name = furthest(factors, key=lambda key: factors[key])
    test = sentence("part_rejected") if rejected else ""
    causes = {
        "uneven": sentence("part_uneven", length=length, expected=expected, test=test),
        "coverage": sentence("part_coverage", coverage=coverage or 0.0, per_step=tokens_per_step, length=length),
        "cost": sentence("part_cost", undrafted=undrafted or 1.0, drafted=drafted),
        "rest": sentence("part_rest", corrected=corrected),
    }
    return sentence("measured_against", measured=measured, textbook=textbook, cause=causes[name])
