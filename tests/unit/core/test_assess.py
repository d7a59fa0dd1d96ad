"""The whole assessment of a record: parts agree with each other, and facts reach the verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdemo.core.assess import assess, badge, limit
from specdemo.core.engine import EngineFacts
from specdemo.core.events import CountersRead, Failed, Noted, RequestSpeculation, SpecCounters, Started, Tokens
from specdemo.core.frames import replay
from specdemo.core.prompt import Prompt, Sampling
from specdemo.core.results import Check
from specdemo.core.run import RunHeader, RunPlan, RunRecord
from tests.golden.unpack import events as unpacked
from tests.unit.core.streams import NAMES, A, B, cut, detailed, ids_stream, record, stream, trace_record

FACTS = (
    EngineFacts(A, "m", dtype="float32", device_key="cpu:0"),
    EngineFacts(B, "m", dtype="float32", device_key="cpu:1", method="draft_model", k=4),
)


def header(mode: str = "race", keys: tuple[str | None, str | None] = ("a", "b"), *, known: bool = True) -> RunHeader:
    """A header with these device keys."""
    facts = (
        tuple(replace(side, device_key=key) for side, key in zip(FACTS, keys, strict=True)) if known else (None, None)
    )
    return RunHeader("x", 0.0, RunPlan(Prompt(text="x"), mode=mode), facts=facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (header("measure", ("a", "a")), "measured"),
        (header("race", ("a", "a")), "race_shared"),
        (header("race", ("a", "b")), "race_separate"),
        (header("race", (None, "b")), "race_shared"),
        (header("race", known=False), "race_shared"),
    ],
)
def test_badge(head: RunHeader, name: str) -> None:
    """Unknown devices count as shared; a replay is always called recorded."""
    assert badge(head) == name
    assert badge(head, recorded=True) == "recorded"


def test_tolerance_follows_the_engines_number_format() -> None:
    """Both float32: 0.001. One bfloat16 or quantised: the wider. Unknown: bfloat16's."""
    assert limit(RunHeader("x", 0.0, RunPlan(Prompt(text="x")), facts=FACTS)).nats == 1e-3
    wide = (FACTS[0], replace(FACTS[1], dtype="bfloat16"))
    assert limit(RunHeader("x", 0.0, RunPlan(Prompt(text="x")), facts=wide)).nats == 0.25
    packed = (FACTS[0], replace(FACTS[1], dtype=None, settings=(("quantization", "gptq"),)))
    assert "gptq" in limit(RunHeader("x", 0.0, RunPlan(Prompt(text="x")), facts=packed)).source
    assert limit(header(known=False)).nats == 0.25


def test_one_failed_side_leaves_the_other_whole() -> None:
    """A06, A23, B11: the failed side keeps its partial text and its reason; the other finishes; no verdict, no ratio."""
    broken = (*ids_stream(B, [1], [2, 3])[:-1], Failed(B, 0.2, "rejected", "min_p is not supported."))
    found = assess(record(ids_stream(A, [1], [2], [3], usage=3), broken))
    assert (found.standard.state, found.speculative.state) == ("finished", "failed")
    assert (found.speculative.error_kind, found.speculative.error_message) == ("rejected", "min_p is not supported.")
    assert found.speculative.text == "<1><2><3>"
    assert found.verdict.cls == "not_comparable"
    assert found.speedup.decode is None
    assert assess(record(cut(broken, "cancelled"))).speculative.state == "cancelled"


def test_red_check_reaches_the_verdict() -> None:
    """A red item of the header forbids the claim; a later one is added; an identical text changes nothing."""
    sides = ids_stream(A, [1], usage=1, prompt=5), ids_stream(B, [1], usage=1, prompt=6)
    found = assess(record(*sides, checks=(Check("lossy", "block", "Lossy mode on."),)))
    assert found.verdict.reason == "Not comparable: Lossy mode on."
    assert [check.level for check in found.checks] == ["block", "block"]


def test_engine_known_not_to_speculate_tests_nothing() -> None:
    """Speculation that is off by the facts makes equal outputs not_tested; "unknown" does not."""
    sides = ids_stream(A, [1], [2], usage=2), ids_stream(B, [1], [2], usage=2)
    found = assess(record(*sides, facts=(FACTS[0], replace(FACTS[1], speculating=False))))
    assert found.verdict.cls == "not_tested"
    assert found.speculative.metrics.acceptance.reason == "The speculative engine does not draft."
    merged = sides[0], ids_stream(B, [1, 2], usage=2)
    assert assess(record(*merged, facts=(FACTS[0], replace(FACTS[1], speculating=False)))).verdict.cls == "not_tested"
    assert assess(record(*sides)).verdict.cls == "identical"


def test_control_run_is_judged_without_drafts() -> None:
    """A control run of the standard engine against itself is identical, not not_tested."""
    sides = ids_stream(A, [1], [2], usage=2), ids_stream(B, [1], [2], usage=2)
    plan = RunPlan(Prompt(text="x"), control=True)
    assert assess(record(*sides, plan=plan)).verdict.cls == "identical"


def test_sampling_run_has_numbers_and_no_identity() -> None:
    """At temperature above 0 speeds are compared over different texts, identity is not."""
    sides = ids_stream(A, [1], [2], usage=2), ids_stream(B, [1], [3], usage=2)
    found = assess(record(*sides, prompt=Prompt(text="x", sampling=Sampling(temperature=1.0))))
    assert found.verdict.cls == "not_comparable"
    assert found.speedup.decode == pytest.approx(1.0)
    assert "2 tokens a side" in found.speedup.basis


def test_clients_notes_are_kept_and_not_doubled() -> None:
    """What the client noted is shown once, also when the core finds the same."""
    sides = (*ids_stream(A, [1], [2])[:-1], Noted(A, 0.15, "no_usage", "No usage."), ids_stream(A, [1], [2])[-1])
    kinds = [note.message for note in assess(record(sides)).notes if note.kind == "no_usage"]
    assert kinds == ["No usage."]


def test_cold_start_is_named_on_the_slow_side() -> None:
    """D19: a first token after more than a second and four times the other's is called a possible cold start."""
    late = (Started(A, 0.0), Tokens(A, 8.0, (1,)))
    found = assess(record(late, ids_stream(B, [1])))
    assert [(note.kind, note.side) for note in found.notes if note.kind == "cold_start"] == [("cold_start", A)]


def test_speedup_above_tokens_per_step_is_doubted() -> None:
    """Speculation cannot gain more than tokens per step, so a larger ratio is a disturbed run and is said so."""
    left = stream(A, [(1.0 * i, (i,), "x") for i in range(1, 7)], usage=6)
    right = stream(B, [(0.1 * i, ids, "x") for i, ids in enumerate(([1], [2, 3, 4], [5, 6]), 1)], usage=6)
    found = assess(record(left, right))
    text = next(note.message for note in found.notes if note.kind == "implausible")
    assert "25.00x is above the 2.50 tokens per step" in text
    quick = stream(A, [(0.1 * i, (i,), "x") for i in range(1, 7)], usage=6)
    assert all(note.kind != "implausible" for note in assess(record(quick, right)).notes)


def test_live_range_is_a_value_for_methods_that_always_draft() -> None:
    """A draft-model engine drafts in every step, so while it runs the lower end is the rate."""
    found = assess(record(ids_stream(B, [1], [2, 3], [4])[:-1], facts=FACTS)).speculative.metrics.acceptance
    assert found.low == found.high == pytest.approx(1 / 8)


@pytest.mark.parametrize("name", NAMES)
def test_same_record_same_words(name: str) -> None:
    """An assessment depends on nothing but the record."""
    assert assess(trace_record(name)) == assess(trace_record(name))


@given(st.integers(0, 60))
def test_any_prefix_of_a_run_can_be_assessed(length: int) -> None:
    """However early a run is looked at, nothing raises and no claim is made before both ended."""
    full = record(ids_stream(A, *[[i] for i in range(20)]), ids_stream(B, [0], [1, 2, 3], spec=detailed([2])))
    part = RunRecord(full.header, full.events[:length])
    found = assess(part)
    if len(part.events) < len(full.events):
        assert found.verdict.cls == "not_comparable"
        assert found.speedup.decode is None


def test_a_control_claims_no_drafts() -> None:
    """Both runs of a control are the standard engine's: nothing is tinted as a draft, live or after."""
    plan = RunPlan(Prompt(text="x"), mode="measure", control=True)
    run = record(ids_stream(A, [1], [2], [3], [4]), ids_stream(B, [1], [2, 3], [4]), plan=plan)
    second = assess(run).speculative
    assert second.provenance.origins == ("target",) * 4
    assert second.metrics.tokens_per_step is None
    assert second.metrics.acceptance.reason == "The standard engine does not draft."
    burst = next(entry for frame in replay(run) for entry in unpacked(frame) if entry.get("n") == 2)
    assert burst["o"] == "tt"


def test_foreign_traffic_leaves_open_whether_anything_was_drafted() -> None:
    """A12: others' drafts in the engine's counters do not prove the test."""
    before, after = SpecCounters(0, 0, 0, generation_tokens=0), SpecCounters(50, 200, 100, generation_tokens=500)
    tokens = ids_stream(B, [1], [2], [3])
    right = (tokens[0], CountersRead(B, 0.0, before), *tokens[1:-1], CountersRead(B, 0.3, after), tokens[-1])
    found = assess(record(ids_stream(A, [1], [2], [3]), right)).verdict
    assert found.cls == "identical"
    assert "does not tell whether drafts" in found.remarks[0]


def test_surplus_ids_do_not_make_the_text_another() -> None:
    """A14: identical up to the stop is said of the speedup, too."""
    left = stream(A, [(0.1, [5], "a"), (0.2, [6], "b"), (0.3, [7], "c")])
    found = assess(record(left, stream(B, [(0.1, [5], "a"), (0.2, [6, 7, 8, 9], "bc")])))
    assert found.verdict.cls == "identical"
    assert "over the same 3 tokens" in found.speedup.basis


def test_odd_step_lists_are_not_laid_on_the_text() -> None:
    """A count below 0 is no step."""
    spec = RequestSpeculation(2, 8, 1, 4, accepted_per_step=(-1, 2))
    run = record(ids_stream(A, [1], [2], [3], [4]), ids_stream(B, [1], [2, 3], [4], spec=spec))
    assert assess(run).speculative.provenance.origins == ("target", "draft", "target", "target")
    far = replace(spec, accepted_per_step=(-7, 0, -7))
    merged = record(ids_stream(A, [1], [2]), ids_stream(B, [1], [2, 3, 4], [5, 6], spec=far))
    shown = [entry.get("o") for frame in replay(merged) for entry in unpacked(frame) if entry.get("s") == str(B)]
    assert [letters for letters in shown if letters] == ["t", "ddt", "dt", "tddtdt"]


@pytest.mark.parametrize("control", [False, True])
def test_a_standard_engine_that_speculates_is_not_said_to_draft_nothing(*, control: bool) -> None:
    """A38: by mistake both addresses name a speculative engine; its bursts are no merged steps."""
    facts = (replace(FACTS[0], speculating=True), replace(FACTS[0 if control else 1], speculating=True))
    plan = RunPlan(Prompt(text="x"), mode="measure", control=control)
    found = assess(record(ids_stream(A, [1], [2, 3], [4]), ids_stream(B, [1], [2, 3], [4]), plan=plan, facts=facts))
    for side in (found.standard, found.speculative):
        assert side.metrics.acceptance.reason == "The engine reported neither per-request numbers nor counters."
        assert side.metrics.tokens_per_step == pytest.approx(1.5)
        assert side.provenance.origins[1] == "draft"
