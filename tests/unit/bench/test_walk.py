"""A recorded run, step by step: the walk's tokens are the run's own, and what is not known is not shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from specdemo.bench.walk import Proposed, Walk, walk
from specdemo.core.assess import assess
from specdemo.core.engine import EngineFacts
from specdemo.core.events import Event, Finished, RequestSpeculation, Side, Started, Tokens, Usage
from specdemo.core.prompt import chat
from specdemo.core.run import RunHeader, RunPlan, RunRecord
from specdemo.runs import stored

RUNS = sorted((Path(__file__).parents[3] / "assets" / "runs").glob("*.json"))
WORDS = {1: "a", 2: "b", 3: "c", 4: "d", 5: "e"}
PROMPT = (1, 2, 3, 4, 5, 9)


def text_of(found: Walk) -> str:
    said = [found.start]
    for step in found.steps:
        said += [one.text or "" for one in step.proposed if one.taken]
        said += [step.own or ""]
    return "".join(said)


def record(
    bursts: list[tuple[int, ...]], counts: list[tuple[int, int]], *, method: str = "ngram", reason: str = "stop"
) -> RunRecord:
    """Both sides of a run: the speculative one in ``bursts``, with (drafted, accepted) of its drafting steps."""
    ids = [token for burst in bursts for token in burst]
    events: list[Event] = [Started(side, 0.0) for side in Side]
    events += [
        Tokens(Side.STANDARD, 0.1 * (i + 1), (token,), WORDS[token], pieces=(WORDS[token],))
        for i, token in enumerate(ids)
    ]
    events += [
        Tokens(
            Side.SPECULATIVE,
            0.1 * (i + 1),
            burst,
            "".join(WORDS[one] for one in burst),
            pieces=tuple(WORDS[one] for one in burst),
        )
        for i, burst in enumerate(bursts)
    ]
    spec = RequestSpeculation(
        steps=len(counts), drafted=sum(d for d, _ in counts), accepted=sum(a for _, a in counts), max_draft=3,
        accepted_per_step=tuple(a for _, a in counts), drafted_per_step=tuple(d for d, _ in counts),
    )  # fmt: skip
    usage = Usage(len(PROMPT), len(ids))
    events.append(Finished(Side.STANDARD, 2.0, reason, usage=usage, prompt_token_ids=PROMPT))
    events.append(Finished(Side.SPECULATIVE, 2.0, reason, usage=usage, speculation=spec, prompt_token_ids=PROMPT))
    facts = EngineFacts(Side.SPECULATIVE, "m", speculating=True, method=method, k=3)
    header = RunHeader("x", 0.0, RunPlan(chat("hi")), facts=(replace(facts, side=Side.STANDARD), facts))
    return RunRecord(header, tuple(events))


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_recordings_are_told_exactly(path: Path) -> None:
    """Every shipped run with drafts can be walked, and its walk writes the run's text with the engine's own counts."""
    kept = stored.load(path)
    found, said = walk(kept), assess(kept).speculative
    acceptance = said.metrics.acceptance
    if not acceptance.drafted:
        assert found is None
        return
    assert found is not None
    assert text_of(found) == said.text
    drafting = [step for step in found.steps if step.proposed]
    assert len(drafting) == acceptance.drafting_steps
    assert sum(len(step.proposed) for step in drafting) == acceptance.drafted
    taken = sum(one.taken is True for step in drafting for one in step.proposed)
    cut = sum(one.taken is None for one in found.steps[-1].proposed)
    assert acceptance.accepted is not None
    assert acceptance.accepted - cut <= taken <= acceptance.accepted


def test_refused_tokens_of_a_lookup_are_recomputed() -> None:
    """After "a b" the prompt goes on "c d e"; the target took two of them and wrote its own token."""
    found = walk(record([(1,), (2,), (3, 4, 1)], [(3, 2)]))
    assert found is not None
    assert found.known
    assert found.steps[0].proposed == ()
    assert found.steps[1].proposed == (Proposed("c", True), Proposed("d", True), Proposed(None, False))
    assert found.steps[1].own == "a"


def test_lookups_that_contradict_the_engine_are_not_shown() -> None:
    """If the recomputed drafts do not give the engine's counts, there is no walk rather than a wrong one."""
    assert walk(record([(1,), (2,), (3, 4, 1)], [(3, 1)])) is None
    assert walk(record([(1,), (2,), (3, 4, 1)], [(2, 2)])) is None


def test_refused_tokens_of_a_draft_model_stay_unknown() -> None:
    """The engine says how many were refused; which ones, nobody knows, so they have no text."""
    found = walk(record([(1,), (2,), (3, 4, 1)], [(3, 0), (3, 2)], method="draft_model"))
    assert found is not None
    assert not found.known
    assert found.steps[0].proposed == (Proposed(None, False),) * 3
    assert found.steps[1].proposed[:2] == (Proposed("c", True), Proposed("d", True))
    assert found.steps[1].proposed[2] == Proposed(None, False)


def test_merged_bursts_of_a_draft_model_are_taken_apart() -> None:
    """A draft model drafts in every step, so its counts tell each step even where two came in one chunk."""
    found = walk(record([(1,), (2, 3, 4, 1), (2,)], [(3, 0), (3, 2), (3, 0)], method="draft_model"))
    assert found is not None
    assert [(len(step.proposed), step.own) for step in found.steps] == [(3, "b"), (3, "a"), (3, "b")]
    assert text_of(found) == "abcdab"
    assert walk(record([(1,), (2, 3, 4, 1), (2,)], [(3, 1)], method="draft_model")) is None


def test_a_burst_cut_by_the_limit_says_so() -> None:
    """What the end of the run cut off is neither accepted nor refused, and the step has no token of the target's."""
    found = walk(record([(1,), (2,), (3, 4)], [(3, 3)], reason="length"))
    assert found is not None
    assert [one.taken for one in found.steps[-1].proposed] == [True, True, None]
    assert found.steps[-1].own is None


def test_without_drafts_there_is_nothing_to_walk() -> None:
    """A run that drafted nothing, and one whose burst is one piece of text, have no walk."""
    assert walk(record([(1,), (3,)], [])) is None
    whole = record([(1,), (2,), (3, 4, 1)], [(3, 2)])
    events = tuple(replace(e, pieces=None) if isinstance(e, Tokens) else e for e in whole.events)
    assert walk(RunRecord(whole.header, events)) is None
