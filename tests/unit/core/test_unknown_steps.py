"""A server that tells its drafts but not its drafting steps: what needs no steps is shown, the rest is absent."""

from __future__ import annotations

from specdemo.core.events import Finished, RequestSpeculation, Started, Tokens, Usage
from specdemo.core.meters import side_metrics
from specdemo.core.outcome import collect
from specdemo.core.provenance import provenance
from specdemo.core.results import Acceptance
from specdemo.core.theory import theory
from specdemo.core.verdict import _drafted
from tests.unit.core.streams import A, B

TOLD = RequestSpeculation(None, 100, 80, 4)
EVENTS = (
    Started(B, 0.0), Tokens(B, 0.1, (1,)), Tokens(B, 0.2, (2,)), Tokens(B, 0.3, (3,)),
    Finished(B, 0.3, "stop", None, Usage(3, 3), TOLD),
)  # fmt: skip


def test_numbers_without_steps() -> None:
    """80 % accepted, and no mean length, no drafting steps (A12)."""
    found = side_metrics(EVENTS, B)
    assert (found.acceptance.rate, found.acceptance.mean_length) == (0.8, None)
    assert (found.drafting_steps, found.non_drafting_steps) == (None, None)


def test_origins_theory_and_verdict_without_steps() -> None:
    """Origins go by totals, the prediction says what it lacks, and drafts were there all the same."""
    side = collect(EVENTS, B)
    assert provenance(EVENTS, B).reason == "Assigned from chunk sizes and the engine's totals."
    line = theory(collect((), A), side, side_metrics(EVENTS, B), k=4, measured=None)
    assert dict(line.reasons)["a"] == "The prediction needs the engine's numbers per step."
    other, drafted = collect((), A), Acceptance(source="request", rate=0.8, drafted=100, accepted=80)
    assert _drafted(other, side, drafted, None) is True
    assert _drafted(other, side, Acceptance(source="request"), None) is None
