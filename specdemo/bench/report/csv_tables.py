"""Results and samples as CSV that a spreadsheet opens safely. Pure.

A text cell that a spreadsheet could take for a formula (it begins with = + - @, their full-width forms, a tab or a line
end, whatever stands unseen before) gets a leading apostrophe (C22). Numbers are written as numbers, negative ones
untouched; what does not apply is an empty cell.
"""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterable, Sequence

from specdemo.bench.record import BenchRecord
from specdemo.bench.sample import Sample
from specdemo.bench.summary import Result, Summary

Value = str | float | int | None
_RISKY = ("=", "+", "-", "@", "\t", "\r", "\n")
_SIGNS = ("=", "+", "-", "@", "\u2212")
_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Mn", "Me", "Zl", "Zp", "Zs"})
"""Categories of characters that a spreadsheet drops, skips or shows as nothing at the start of a cell."""

RESULT_COLUMNS = (
    "scope", "name", "concurrency", "prompts", "speedup", "low", "high", "word", "totals_ratio", "throughput_ratio",
    "standard_tokens_per_s", "speculative_tokens_per_s", "standard_failed", "speculative_failed", "tokens_per_step",
    "acceptance_rate", "mean_acceptance_length", "draft_coverage", "predicted_speedup",
)  # fmt: skip
SAMPLE_COLUMNS = (
    "prompt", "workload", "kind", "concurrency", "arm", "side", "attempt", "state", "failure", "message",
    "output_tokens", "ttft_s", "tpot_s", "e2el_s", "decode_s", "steps", "drafted", "accepted",
)  # fmt: skip


def neutral(text: str) -> str:
    """The text so that no spreadsheet takes it for a formula, whatever stands before its first visible character."""
    first = next((char for char in text if unicodedata.category(char) not in _UNSEEN), "")
    # Full-width and small forms of the signs are folded to the plain ones, as some programs do on import.
    risky = text.startswith(_RISKY) or unicodedata.normalize("NFKC", first).startswith(_SIGNS)
    return f"'{text}" if risky else text


def write(columns: Sequence[str], rows: Iterable[Sequence[Value]]) -> str:
    """CSV text with CRLF line ends and a byte order mark, so that spreadsheets read it as UTF-8."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    writer.writerow(columns)
    for row in rows:
        writer.writerow(
            [neutral(cell) if isinstance(cell, str) else "" if cell is None else repr(cell) for cell in row]
        )
    return "\ufeff" + buffer.getvalue()


def results(summary: Summary) -> str:
    """One row a result: suite, workloads, levels."""
    listed = [*([summary.suite] if summary.suite else []), *summary.workloads, *summary.levels]
    return write(RESULT_COLUMNS, (_result(result) for result in listed))


def _result(result: Result) -> list[Value]:
    speed, pool = result.speedup, result.acceptance
    return [
        result.scope, result.name, result.level, result.prompts, speed.estimate if speed else None,
        speed.low if speed else None, speed.high if speed else None, result.verdict.word,
        result.totals.estimate if result.totals else None, result.throughput_ratio, result.arm_a.tokens_per_s,
        result.arm_b.tokens_per_s, result.arm_a.failed, result.arm_b.failed, pool.tokens_per_step, pool.rate,
        pool.mean_length, pool.coverage, pool.predicted,
    ]  # fmt: skip


def samples(record: BenchRecord) -> str:
    """One row a request, in order of finishing, re-runs included."""
    workloads = {prompt.id: prompt.workload for prompt in record.header.plan.prompts}
    return write(SAMPLE_COLUMNS, (_sample(sample, workloads[sample.place.prompt_id]) for sample in record.samples))


def _sample(sample: Sample, workload: str) -> list[Value]:
    place = sample.place
    return [
        place.prompt_id, workload, place.kind, place.level, place.arm, sample.side.value, place.attempt, sample.state,
        sample.failure, sample.message, sample.output_tokens, sample.ttft_s, sample.tpot_s, sample.e2el_s,
        sample.decode_s, sample.steps, sample.drafted, sample.accepted,
    ]  # fmt: skip
