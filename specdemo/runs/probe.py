"""After the streams, asked of the standard engine: the candidates at the split, and the re-check of the other text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from specdemo.core.events import SIDES, Finished
from specdemo.core.run import Assessment, Probe, RunRecord
from specdemo.errors import EngineError
from specdemo.runs.ports import Engine, ScoredToken

_UNDECIDED = ("near_tie", "different")


async def probe(
    record: RunRecord, assessment: Assessment, standard: Engine, prompt_ids: Sequence[int] | None
) -> Probe | None:
    """Ask what the record leaves open; None if it leaves nothing open. Failures are told inside the Probe.

    ``assessment`` is that of the record without a probe: its verdict says where the texts part.
    """
    ids = _prompt_ids(record) or prompt_ids
    split = _split(record, assessment)
    result: Probe | None = None
    if split is not None:
        result = Probe(position=split)
        if ids is None:
            result = replace(result, error="The engine tells no prompt token ids, so the split could not be looked at.")
        else:
            result = await _candidates(result, assessment, standard, ids, split)
    if record.header.plan.recheck:
        result = await _recheck(result or Probe(), assessment, standard, ids)
    return result


def _prompt_ids(record: RunRecord) -> Sequence[int] | None:
    """The prompt ids that the standard stream itself reported."""
    ends = (event for event in record.events if isinstance(event, Finished) and event.side is SIDES[0])
    return next((event.prompt_token_ids for event in ends if event.prompt_token_ids), None)


def _split(record: RunRecord, assessment: Assessment) -> int | None:
    verdict = assessment.verdict
    if not record.header.plan.prompt.greedy or verdict.level != "ids" or verdict.cls not in _UNDECIDED:
        return None
    return verdict.position


async def _candidates(
    result: Probe, assessment: Assessment, standard: Engine, prompt_ids: Sequence[int], split: int
) -> Probe:
    ours, theirs = assessment.standard.token_ids or (), assessment.speculative.token_ids or ()
    wanted = list(dict.fromkeys(ids[split] for ids in (ours, theirs) if split < len(ids)))
    try:
        best = await standard.candidates([*prompt_ids, *ours[:split]], wanted=wanted)
    except EngineError as error:
        return replace(result, error=f"The split could not be looked at: {error}")
    return replace(result, candidates=tuple((token.id, token.text, token.logprob) for token in best))


async def _recheck(result: Probe, assessment: Assessment, standard: Engine, prompt_ids: Sequence[int] | None) -> Probe:
    """Teacher-force the speculative tokens through the standard engine: is each its own first choice?"""
    output = assessment.speculative.token_ids
    if not output or not prompt_ids:
        return _failed(result, "The re-check needs token ids of prompt and output, and an engine sent none.")
    try:
        scored = await standard.score(prompt_ids, output)
    except EngineError as error:
        return _failed(result, f"The re-check failed: {error}")
    if not scored:
        return _failed(result, "The re-check failed: the engine scored no position.")
    return replace(
        result,
        recheck_positions=len(scored),
        recheck_top_share=sum(token.rank == 1 for token in scored) / len(scored),
        recheck_largest_gap=max(_gap(token) for token in scored),
    )


def _failed(result: Probe, sentence: str) -> Probe:
    return replace(result, error=f"{result.error} {sentence}" if result.error else sentence)


def _gap(token: ScoredToken) -> float:
    """How far (nats) the token lies below the engine's first choice; 0 when it is the first choice."""
    best = max((candidate.logprob for candidate in token.top), default=token.logprob)
    return max(0.0, best - token.logprob)
