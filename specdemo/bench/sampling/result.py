"""A whole sampling validation as kept and reported. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from specdemo.bench.sampling.duplicates import Duplicates
from specdemo.bench.sampling.scoring import ArmScore
from specdemo.bench.sampling.settings import ValidationPlan
from specdemo.bench.sampling.tree import TreeTest
from specdemo.bench.sampling.verdict import SamplingVerdict
from specdemo.core.engine import EngineFacts

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """Verdict and evidence. ``method``: "scores" (primary) or "tree" (the standard engine gave no scores).

    ``rounds`` of ``plan.draws`` were made (a time budget may end earlier). ``drafted_share`` is the speculative
    engine's own count by setting. ``lookup`` says whether its drafts could be recomputed, in words.
    ``retried`` counts requests made again because they stalled on a living engine.
    """

    verdict: SamplingVerdict
    plan: ValidationPlan
    method: str
    rounds: int
    standard: tuple[ArmScore, ...] = ()
    speculative: tuple[ArmScore, ...] = ()
    duplicates: tuple[Duplicates, ...] = ()
    tree: TreeTest | None = None
    drafted_share: tuple[tuple[str, float], ...] = ()
    lookup: str = ""
    facts: tuple[EngineFacts | None, EngineFacts | None] = (None, None)
    seconds: float = 0.0
    started_at: float = 0.0
    schema: int = SCHEMA
    retried: int = 0

    @property
    def exit_code(self) -> int:
        """0 consistent, 1 differs, 3 not enough data or no valid verdict."""
        return {"consistent": 0, "differs": 1}.get(self.verdict.word, 3)
