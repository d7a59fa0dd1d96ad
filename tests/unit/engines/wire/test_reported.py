"""What an engine tells of its own drafting is believed only where it can be."""

from typing import Any

import pytest

from specdemo.core.acceptance import exact
from specdemo.core.events import RequestSpeculation, Side
from specdemo.engines.wire.completions import CompletionReader
from specdemo.engines.wire.reported import MAX_DRAFT, speculation

TOLD: dict[str, Any] = {"num_spec_steps": 1, "num_draft_tokens": 4, "num_accepted_draft_tokens": 1}


@pytest.mark.parametrize(
    "more",
    [
        {"per_step_accepted": [2**53]},
        {"per_step_accepted": [10**9]},
        {"per_step_accepted": [1], "num_spec_tokens": 2**53},
        {"num_spec_tokens": MAX_DRAFT + 1},
        {"per_step_drafted": [10**9], "per_step_accepted": [1]},
        {"per_step_drafted": [1], "per_step_accepted": [2]},
        {"acceptance_histogram": [0] * (MAX_DRAFT + 2)},
        {"num_accepted_draft_tokens": 5},
        {"num_draft_tokens": None},
    ],
)
def test_numbers_that_cannot_be_are_refused(more: dict[str, Any]) -> None:
    """Some become sizes of lists: one message must not take the memory of the machine (A12). The user is told."""
    reader = CompletionReader(Side.SPECULATIVE)
    reader.take({"choices": [], "metrics": {"speculative_decoding": TOLD | more}}, 0.0)
    assert reader.speculation is None
    assert [message for _, message in reader.remarks] == [
        "The engine sent speculative metrics that are incomplete or cannot be right; it was ignored."
    ]


def test_the_largest_that_can_be() -> None:
    """A draft of the greatest length is believed."""
    told = speculation(
        TOLD | {"num_draft_tokens": MAX_DRAFT, "per_step_drafted": [MAX_DRAFT], "per_step_accepted": [1]}
    )
    assert told == RequestSpeculation(1, MAX_DRAFT, 1, None, None, (1,), (MAX_DRAFT,))


@pytest.mark.parametrize(
    ("more", "steps"),
    [({}, None), ({"per_step_accepted": [40, 40]}, 2), ({"per_step_drafted": [50, 50]}, 2), ({"acceptance_histogram": [0, 5, 2]}, 7)],
)  # fmt: skip
def test_steps_are_optional(more: dict[str, Any], steps: int | None) -> None:
    """100 drafted and 80 accepted are 80 % without the number of steps; a list tells that too (A12)."""
    told = speculation({"num_draft_tokens": 100, "num_accepted_draft_tokens": 80} | more)
    assert told is not None
    assert told.steps == steps
    found = exact(told)
    assert (found.source, found.rate, found.drafting_steps) == ("request", 0.8, steps)
    assert (found.mean_length is None) == (steps is None)
