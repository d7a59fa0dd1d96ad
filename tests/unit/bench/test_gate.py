"""The gate decides on bounds and explains itself."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from specdemo.bench.gate import GateCheck, GateResult, GateRule, decide, junit
from specdemo.bench.plan import BenchPlan
from specdemo.bench.summary import Summary, summarise
from tests.fakes.bench_samples import TOKENS, failed, prompts, session


def summary(speedup: float, *, count: int = 12, noise: float = 0.01) -> Summary:
    plan = BenchPlan(prompts(count))
    return summarise(plan, session(plan, speedup, noise=noise), planned=100)


def test_a_clear_speedup_passes() -> None:
    """1.5x with a narrow interval passes a demand of 1.2x: exit code 0, every check with its reason."""
    result = decide(summary(1.5), GateRule(1.2))
    assert (result.word, result.exit_code) == ("pass", 0)
    assert len(result.checks) == 3
    assert "95 % interval" in result.reason


@pytest.mark.parametrize("demand, words", [(1.6, "is below 1.6x"), (1.5, "is not shown by this much data")])
def test_the_bound_decides_and_not_the_point(demand: float, words: str) -> None:
    """A point at or near the demand does not pass; the reason tells 'below' from 'not shown'."""
    result = decide(summary(1.5), GateRule(demand))
    assert (result.word, result.exit_code) == ("fail", 1)
    assert words in result.reason


def test_a_slowdown_fails_a_demand_of_one() -> None:
    """A workload that does not speed up gives exit code 1."""
    assert decide(summary(0.9), GateRule(1.0)).exit_code == 1


def test_one_prompt_has_no_bound() -> None:
    """Without an interval nothing can be shown."""
    assert "at least two prompts" in decide(summary(3.0, count=1), GateRule(1.1)).reason


def test_a_mismatch_fails_and_more_may_be_allowed() -> None:
    """Texts that differ fail the default of none, and pass when so many are allowed."""
    plan = BenchPlan(prompts(12))
    other = (*range(50), 999, *range(51, TOKENS))
    samples = [
        replace(s, token_ids=other)
        if s.place.arm == "B" and s.place.prompt_id == "work-p3" and s.place.kind == "measure"
        else s
        for s in session(plan, 1.5)
    ]
    found = summarise(plan, samples, planned=100)
    strict, lenient = decide(found, GateRule(1.2)), decide(found, GateRule(1.2, 1))
    assert "1 of 12 prompts differ" in strict.reason
    assert (strict.exit_code, lenient.exit_code) == (1, 0)
    assert decide(found, GateRule(1.2, None)).exit_code == 0


def test_untested_identity_does_not_pass() -> None:
    """If identity can't be judged, a demand for it is not met."""
    plan = BenchPlan(prompts(12))
    samples = [replace(s, token_ids=None) for s in session(plan, 1.5)]
    assert "could not be judged" in decide(summarise(plan, samples, planned=1), GateRule(None, 0)).reason


def test_failed_requests_fail_the_gate() -> None:
    """A winner that refuses a third of its requests does not pass (D12)."""
    plan = BenchPlan(prompts(12))
    samples = [failed(s) if s.place.arm == "B" and i % 3 == 0 else s for i, s in enumerate(session(plan, 1.5))]
    result = decide(summarise(plan, samples, planned=100), GateRule(1.1))
    assert result.exit_code == 1
    assert "requests failed on the speculative engine" in result.reason


def test_no_data_is_an_error_not_a_failure() -> None:
    """A lost engine or an empty benchmark gives exit code 3."""
    plan = BenchPlan(prompts(3))
    assert decide(summarise(plan, [], planned=3), GateRule(1.1)).exit_code == 3
    assert decide(summary(1.5), GateRule(1.1), engine_lost="it died").exit_code == 3


def test_junit_is_well_formed_whatever_the_text() -> None:
    """Reasons with markup and control characters become valid XML with the right counts."""
    nasty = 'a <b> & "c" \x00\x1b ]]> \ufffe'
    result = GateResult("fail", nasty, (GateCheck("one", True, nasty), GateCheck(nasty, False, nasty)))
    tree = ET.fromstring(junit(result, seconds=1.5))
    assert (tree.get("tests"), tree.get("failures"), tree.get("errors")) == ("2", "1", "0")
    error = ET.fromstring(junit(GateResult("error", nasty, ()), seconds=0.0))
    assert (error.get("tests"), error.get("errors")) == ("1", "1")


def test_a_null_test_is_no_evidence() -> None:
    """The standard engine against itself says nothing about the speculative one, so nothing passes."""
    plan = BenchPlan(prompts(12), null=True)
    result = decide(summarise(plan, session(plan, 1.0), planned=48), GateRule(None, 0))
    assert (result.word, result.exit_code) == ("error", 3)
    assert "null test" in result.reason


def test_a_part_of_a_plan_is_told() -> None:
    """A decision on an unfinished benchmark says how much of it there was."""
    result = decide(summary(1.5), GateRule(1.2))
    assert result.notes == ("68 of 100 planned requests were made",)


@pytest.mark.parametrize("bound", ["low", "high"])
def test_a_demand_exactly_at_a_bound(bound: str) -> None:
    """The lower bound itself is reached; the upper bound itself is not below."""
    found = summary(1.5)
    assert found.suite is not None
    assert found.suite.speedup is not None
    result = decide(found, GateRule(getattr(found.suite.speedup, bound)))
    assert (result.word == "pass") == (bound == "low")
    assert "below" not in result.reason
