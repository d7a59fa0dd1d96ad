"""The document of ``specdemo race --json``: strict JSON, fixed names, null for what does not apply.

``say`` holds each sentence's key and values, for programs that react to it or speak another language.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

from specdemo.core.results import Acceptance, Note, SideMetrics, Verdict, VerdictToken
from specdemo.core.run import SCHEMA, Assessment, RunRecord, SideResult
from specdemo.core.sentences import told

Json = dict[str, Any]


def contract(record: RunRecord, assessment: Assessment) -> Json:
    """Plain dicts, lists, strings and finite numbers only; ``json.dumps(..., allow_nan=False)`` never fails on it."""
    plan = record.header.plan
    gained = assessment.speedup
    return {
        "schema": SCHEMA,
        "mode": plan.mode,
        "greedy": plan.prompt.greedy,
        "badge": assessment.badge,
        "control": plan.control,
        "sides": {"standard": _side(assessment.standard), "speculative": _side(assessment.speculative)},
        "speedup": {
            "decode": _number(gained.decode),
            "e2e": _number(gained.e2e),
            "ttft": _number(gained.ttft),
            "basis": gained.basis,
        },
        "verdict": _verdict(assessment.verdict),
        "comparability": [
            {"check": check.check, "level": check.level, "detail": check.detail} for check in assessment.checks
        ],
        "notes": [_note(note) for note in assessment.notes],
        "say": _say(assessment),
    }


def _say(found: Assessment) -> Json:
    """Key and values of each sentence above, at the same place; None for what an engine said itself."""
    verdict = found.verdict
    return {
        "sides": {
            "standard": told(found.standard.error_message),
            "speculative": told(found.speculative.error_message),
        },
        "speedup": told(found.speedup.basis),
        "verdict": {"reason": told(verdict.reason), "remarks": [told(remark) for remark in verdict.remarks]},
        "comparability": [told(check.detail) for check in found.checks],
        "notes": [told(note.message) for note in found.notes],
    }


def _number(value: float | None) -> float | None:
    """JSON has no infinity or NaN; a number that is not finite does not apply."""
    return value if value is not None and isfinite(value) else None


def _side(side: SideResult) -> Json:
    error = None
    if side.error_kind is not None:
        error = {"kind": side.error_kind, "message": side.error_message or ""}
    return {
        "state": side.state,
        "text": side.text,
        "reasoning": side.reasoning,
        "token_ids": None if side.token_ids is None else list(side.token_ids),
        "finish_reason": side.finish_reason,
        "error": error,
        "metrics": _metrics(side.metrics),
    }


def _metrics(metrics: SideMetrics) -> Json:
    return {
        "prompt_tokens": metrics.prompt_tokens,
        "output_tokens": metrics.output_tokens,
        "ttft_s": _number(metrics.ttft_s),
        "tpot_s": _number(metrics.tpot_s),
        "e2el_s": _number(metrics.e2el_s),
        "decode_tokens_per_s": _number(metrics.decode_tokens_per_s),
        "tokens_per_s": _number(metrics.tokens_per_s),
        "steps": metrics.steps,
        "tokens_per_step": _number(metrics.tokens_per_step),
        "acceptance": _acceptance(metrics.acceptance),
        "ttft_role_s": _number(metrics.ttft_role_s),
        "chunk_gap_s": _number(metrics.chunk_gap_s),
        "longest_stall_s": _number(metrics.longest_stall_s),
        "cached_tokens": metrics.cached_tokens,
        "count_source": metrics.count_source,
    }


def _acceptance(taken: Acceptance) -> Json:
    return {
        "source": taken.source,
        "rate": _number(taken.rate),
        "mean_length": _number(taken.mean_length),
        "drafted": taken.drafted,
        "accepted": taken.accepted,
        "drafting_steps": taken.drafting_steps,
        "per_position": [_number(share) for share in taken.per_position],
        "per_position_conditional": [_number(share) for share in taken.per_position_conditional],
        "histogram": list(taken.histogram),
        "delivered": taken.delivered,
        "reason": taken.reason,
    }


def _verdict(verdict: Verdict) -> Json:
    return {
        "class": verdict.cls,
        "position": verdict.position,
        "standard_token": _token(verdict.standard_token),
        "speculative_token": _token(verdict.speculative_token),
        "gap_nats": _number(verdict.gap_nats),
        "tolerance_nats": _number(verdict.tolerance_nats),
        "reason": verdict.reason,
        "compared": verdict.compared,
        "level": verdict.level,
        "remarks": list(verdict.remarks),
    }


def _token(token: VerdictToken | None) -> Json | None:
    return None if token is None else {"id": token.id, "text": token.text, "logprob": _number(token.logprob)}


def _note(note: Note) -> Json:
    return {"kind": note.kind, "message": note.message, "side": None if note.side is None else str(note.side)}
