"""The recorded streams of real engines, against figures that were worked out from them independently."""

from __future__ import annotations

import json

import pytest

from specdemo.core.assess import assess
from specdemo.core.events import Finished
from specdemo.core.run import Assessment
from tests.unit.core.streams import NAMES, TRACES, trace, trace_record

# name: a, acceptance rate, coverage, tokens per step, mean length, r0, rv, textbook c=0, with c, corrected, measured
TABLE = {
    "chat": (0.52, 0.24, 0.12, 1.11, 1.94, 1.31, 1.70, 1.99, 1.17, 0.82, 0.83),
    "summ": (0.77, 0.53, 0.26, 1.48, 3.13, 1.29, 1.81, 3.19, 1.76, 1.04, 1.08),
    "code": (0.91, 0.81, 1.00, 4.22, 4.22, None, 1.85, 4.15, 2.24, 2.28, 2.41),
    "list": (0.99, 0.99, 0.58, 3.31, 4.96, 1.08, 1.50, 4.91, 3.27, 2.50, 2.52),
    "zh": (0.97, 0.92, 0.71, 3.53, 4.69, 1.01, 1.32, 4.68, 3.56, 2.88, 2.94),
}


@pytest.fixture(scope="module", params=NAMES)
def pair(request: pytest.FixtureRequest) -> tuple[str, Assessment]:
    """Each recorded pair, assessed."""
    return request.param, assess(trace_record(request.param))


def test_theory_and_metrics_match_the_worked_table(pair: tuple[str, Assessment]) -> None:
    """Every column of the method's table comes out within rounding."""
    name, found = pair
    line, metrics = found.theory, found.speculative.metrics
    got = (
        line.a, metrics.acceptance.rate, line.coverage, metrics.tokens_per_step, metrics.acceptance.mean_length,
        line.undrafted_step_cost, line.drafted_step_cost, line.expected_tokens_per_step, line.textbook_speedup,
        line.corrected_speedup, line.measured_speedup,
    )  # fmt: skip
    for value, expected in zip(got, TABLE[name], strict=True):
        assert value == (None if expected is None else pytest.approx(expected, abs=0.00501))


def test_recorded_pairs_are_identical(pair: tuple[str, Assessment]) -> None:
    """Both engines wrote the same ids, so the verdict is one of the identical classes and counts all tokens."""
    name, found = pair
    assert found.verdict.cls == ("identical" if name in ("summ", "code") else "identical_to_limit")
    assert found.verdict.compared == found.standard.metrics.output_tokens
    assert found.verdict.remarks == ()


def test_recorded_provenance_is_exact_and_adds_up(pair: tuple[str, Assessment]) -> None:
    """Each token has an origin, steps cover the output, and delivered drafts are accepted ones less what was cut."""
    _, found = pair
    side = found.speculative
    origins, steps = side.provenance.origins, side.provenance.steps
    assert side.provenance.exact
    assert len(origins) == side.metrics.output_tokens == sum(step.tokens for step in steps)
    assert origins.count("draft") == sum(step.accepted or 0 for step in steps)
    taken = side.metrics.acceptance
    assert taken.accepted is not None
    assert taken.delivered is not None
    assert 0 <= taken.accepted - taken.delivered <= 4
    assert origins.count("draft") == taken.delivered


@pytest.mark.parametrize("name", NAMES)
def test_acceptance_equals_the_engines_own_summary(name: str) -> None:
    """Rate, mean length and histogram equal what the engine itself printed in its metrics object."""
    document = json.loads((TRACES / f"ngram-{name}.json").read_text(encoding="utf-8"))
    numbers = document["final"]["metrics"]["speculative_decoding"]
    taken = assess(trace_record(name)).speculative.metrics.acceptance
    assert taken.rate == pytest.approx(numbers["draft_acceptance_rate"])
    assert taken.mean_length == pytest.approx(numbers["mean_acceptance_length"])
    assert list(taken.histogram) == numbers["acceptance_histogram"]
    assert taken.source == "request"


def test_only_the_cold_first_run_is_noted() -> None:
    """The first n-gram run had a cold start in its first token; no other recording breaks a cross-check."""
    notes = {name: [note.kind for note in assess(trace_record(name)).notes] for name in NAMES}
    assert notes == {"chat": ["cold_start"], "summ": [], "code": [], "list": [], "zh": []}


@pytest.mark.parametrize("name", NAMES)
def test_identities_of_the_method_hold(name: str) -> None:
    """N = 1 + U + S + A - X and E = 1 + U + S hold on every recording, which is what the cross-checks rest on."""
    events = trace("ngram", name)
    end = events[-1]
    assert isinstance(end, Finished)
    assert end.speculation is not None
    found = assess(trace_record(name)).speculative
    metrics, spec = found.metrics, end.speculation
    assert metrics.steps is not None
    assert metrics.output_tokens is not None
    assert metrics.non_drafting_steps == metrics.steps - 1 - spec.steps >= 0
    missing = spec.accepted - (metrics.output_tokens - metrics.steps)
    assert missing == {"zh": 4, "summ": 2}.get(name, 0)
