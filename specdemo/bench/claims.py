"""What the project's source article claims, beside what recorded runs of this machine show. Pure.

Every figure is computed from records when it is asked for; a claim that no record can speak to has none. Rows are
numbered as in the article's table; the words are in ``assets/i18n/how.*.json``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from specdemo.core.assess import assess
from specdemo.core.events import SIDES
from specdemo.core.outcome import collect
from specdemo.core.run import Assessment, RunRecord

ROWS = tuple(range(1, 16))


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured statement: ``say`` names its sentence, ``values`` fill it, ``run`` is the recording that shows it.

    Names of values tell their form: ``…_share`` 0 to 1, ``…_x`` a ratio, ``…_s`` seconds, others numbers or words.
    """

    say: str
    values: tuple[tuple[str, float | int | str], ...]
    run: str | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """One recorded run beside the theory line; None where the run does not tell."""

    run: str
    title: str
    method: str | None
    k: int | None
    a: float | None
    c: float | None
    coverage: float | None
    measured: float | None
    predicted: float | None
    rate: float | None
    e2e: float | None
    tokens_per_step: float | None
    verdict: str


@dataclass(frozen=True, slots=True)
class _Run:
    id: str
    record: RunRecord
    said: Assessment

    @property
    def kind(self) -> str:
        return self.id.split("-", 2)[-1]

    @property
    def method(self) -> str | None:
        facts = self.record.header.facts[1]
        return facts.method if facts is not None else None


def points(records: Mapping[str, RunRecord]) -> tuple[Point, ...]:
    """All recorded runs, drafting or not."""
    return tuple(_point(run) for run in _runs(records))


def figures(records: Mapping[str, RunRecord]) -> dict[int, tuple[Figure, ...]]:
    """Row of the article's table → what the records show; rows without an entry were not measured by them."""
    runs = _runs(records)
    found = {row: tuple(make(runs)) for row, make in _MAKERS.items()}
    return {row: said for row, said in found.items() if said}


def _runs(records: Mapping[str, RunRecord]) -> list[_Run]:
    return [_Run(name, record, assess(record)) for name, record in records.items()]


def _point(run: _Run) -> Point:
    line, facts = run.said.theory, run.record.header.facts[1]
    return Point(
        run=run.id,
        title=run.record.header.title or run.id,
        method=run.method,
        k=line.k or (facts.k if facts is not None else None),
        a=line.a,
        c=line.c,
        coverage=line.coverage,
        measured=run.said.speedup.decode,
        predicted=line.corrected_speedup,
        rate=run.said.speculative.metrics.acceptance.rate,
        e2e=run.said.speedup.e2e,
        tokens_per_step=line.tokens_per_step,
        verdict=run.said.verdict.cls,
    )


def _one_pass(runs: list[_Run]) -> list[Figure]:
    """Row 1: the most tokens that one pass delivered, and the mean over drafting passes."""
    best = max((run for run in runs if _length(run)), key=lambda run: _length(run) or 0.0, default=None)
    if best is None:
        return []
    k = best.said.theory.k
    values = (("length", _length(best) or 0.0), ("most", (k or 0) + 1))
    return [Figure("how_here_pass", values, best.id)]


def _length(run: _Run) -> float | None:
    return run.said.speculative.metrics.acceptance.mean_length


def _presets(runs: list[_Run]) -> list[Figure]:
    """Row 3: which methods were run here."""
    methods = sorted({run.method for run in runs if run.method and _length(run)})
    return [Figure("how_here_methods", (("methods", ", ".join(methods)),))] if methods else []


def _lengths(runs: list[_Run]) -> list[Figure]:
    """Row 4: the draft lengths of the records."""
    ks = sorted({run.said.theory.k for run in runs if run.said.theory.k})
    return [Figure("how_here_k", (("ks", ", ".join(map(str, ks))),))] if ks else []


def _kinds(*kinds: str, method: str | None = None) -> Callable[[list[_Run]], list[Figure]]:
    """Rows 5, 6 and 15: acceptance and speedup of the records of these kinds, or of this method."""

    def make(runs: list[_Run]) -> list[Figure]:
        found = []
        for run in runs:
            rate, gained = run.said.speculative.metrics.acceptance.rate, run.said.speedup.decode
            wanted = run.kind in kinds or (method is not None and run.method == method)
            if wanted and rate is not None and gained is not None:
                values = (("title", run.record.header.title or run.id), ("method", run.method or ""),
                          ("k", run.said.theory.k or 0), ("rate_share", rate), ("a", run.said.theory.a or 0.0),
                          ("speedup_x", gained))  # fmt: skip
                found.append(Figure("how_here_run", values, run.id))
        return found

    return make


def _benchmark(runs: list[_Run]) -> list[Figure]:
    """Row 7: tokens and time of all records together, and the ratio of the totals."""
    totals = {side: [0, 0.0] for side in SIDES}
    count = 0
    for run in runs:
        metrics = [run.said.standard.metrics, run.said.speculative.metrics]
        if any(one.output_tokens is None or one.e2el_s is None for one in metrics):
            continue
        count += 1
        for side, one in zip(SIDES, metrics, strict=True):
            totals[side][0] += one.output_tokens or 0
            totals[side][1] += one.e2el_s or 0.0
    (tokens_a, time_a), (tokens_b, time_b) = totals.values()
    if not count or not time_a or not time_b:
        return []
    values = (("count", count), ("tokens", int(tokens_a)), ("standard_s", time_a), ("speculative_s", time_b),
              ("standard_rate", tokens_a / time_a), ("speculative_rate", tokens_b / time_b),
              ("speedup_x", (tokens_b / time_b) / (tokens_a / time_a)))  # fmt: skip
    return [Figure("how_here_bench", values)]


def _same(runs: list[_Run]) -> list[Figure]:
    """Row 10: verdicts of all records with drafts."""
    tested = [run.said.verdict.cls for run in runs if run.said.verdict.cls not in ("not_tested", "not_comparable")]
    if not tested:
        return []
    same = sum(cls in ("identical", "identical_to_limit") for cls in tested)
    return [Figure("how_here_same", (("same", same), ("ties", tested.count("near_tie")), ("count", len(tested))))]


def _bursts(runs: list[_Run]) -> list[Figure]:
    """Row 11: the share of tokens that arrived together with others, and the largest burst."""
    best: tuple[float, int, str] | None = None
    for run in runs:
        sizes = [len(chunk.ids) for chunk in collect(run.record.events, SIDES[1]).chunks if chunk.ids]
        if sizes:
            share = sum(size for size in sizes if size > 1) / sum(sizes)
            best = max(best or (0.0, 0, ""), (share, max(sizes), run.id))
    if best is None or not best[0]:
        return []
    return [Figure("how_here_bursts", (("burst_share", best[0]), ("largest", best[1])), best[2])]


def _versions(runs: list[_Run]) -> list[Figure]:
    """Row 13: the vLLM versions behind the records."""
    known = sorted({facts.version for run in runs for facts in run.record.header.facts if facts and facts.version})
    return [Figure("how_here_version", (("versions", ", ".join(known)),))] if known else []


_MAKERS: Mapping[int, Callable[[list[_Run]], list[Figure]]] = {
    1: _one_pass,
    3: _presets,
    4: _lengths,
    5: _kinds("code", "chat", method="draft_model"),
    6: _kinds("list", "chinese", "summary", "rag"),
    7: _benchmark,
    10: _same,
    11: _bursts,
    13: _versions,
    15: _kinds(method="draft_model"),
}
