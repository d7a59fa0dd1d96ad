"""The sampling validation against imagined engines, in virtual time."""

from __future__ import annotations

import pytest

from specdemo.bench.jsonable import strict_json
from specdemo.bench.sampling.drafts import Lookup
from specdemo.bench.sampling.result import ValidationResult
from specdemo.bench.sampling.settings import TRUNCATED, SamplingConfig, ValidationPlan
from specdemo.core.events import Side
from specdemo.errors import EngineUnavailable, UsageError
from specdemo.runs.validate import ValidationAround, ValidationProgress, validate
from tests.fakes import virtual_time
from tests.fakes.sampled import LOOKUP
from tests.fakes.sampled_engine import TEXTS, SampledEngine

QUICK = ValidationPlan(TEXTS[:5], (TRUNCATED,), draws=12)


def run(
    plan: ValidationPlan = QUICK,
    *,
    standard: SampledEngine | None = None,
    lookup: Lookup | None = LOOKUP,
    **speculative: object,
) -> tuple[ValidationResult, dict[Side, SampledEngine], list[ValidationProgress]]:
    engines = {
        Side.STANDARD: standard or SampledEngine(Side.STANDARD),
        Side.SPECULATIVE: SampledEngine(Side.SPECULATIVE, **speculative),  # type: ignore[arg-type]
    }
    seen: list[ValidationProgress] = []

    async def work() -> ValidationResult:
        around = ValidationAround(virtual_time.clock, lambda: 5.0, lookup, seen.append)
        return await validate(plan, engines, around)

    return virtual_time.run(work()), engines, seen


def test_a_correct_engine_is_certified_with_enough_draws() -> None:
    """Right sampling, drafts at a third of the tokens or more, 7,680 tokens a setting: consistent, exit code 0."""
    result, _engines, seen = run(ValidationPlan(TEXTS, (TRUNCATED,), draws=60))
    assert result.verdict.word == "consistent", result.verdict.sentence
    assert result.exit_code == 0
    assert dict(result.drafted_share)["truncated"] > 0.3
    assert seen[-1].rounds == 60
    assert seen[-1].sequences == 2 * 8 * 60


def test_every_request_is_complete_and_has_a_seed_of_its_own() -> None:
    """Fixed length, all fields, and no seed twice over both arms."""
    _, engines, _ = run()
    asked = [prompt for engine in engines.values() for prompt in engine.asked]
    seeds = [prompt.sampling.seed for prompt in asked]
    assert len(set(seeds)) == len(seeds) == 2 * 5 * 12
    assert {(p.sampling.top_k, p.sampling.top_p, p.sampling.ignore_eos) for p in asked} == {(20, 0.9, True)}


@pytest.mark.parametrize("wrong", [{"keeps_draft": True}, {"heat": 1.5}, {"no_top_k": True, "no_top_p": True}])
def test_a_broken_engine_differs(wrong: dict[str, object]) -> None:
    """Defects of the speculative engine come out as 'differs' and exit code 1, even in a quick run."""
    result, _, _ = run(ValidationPlan(TEXTS[:5], (TRUNCATED,), draws=32), wrong=wrong)
    assert result.verdict.word == "differs"
    assert result.exit_code == 1


def test_quick_runs_do_not_certify() -> None:
    """Too few tokens: not enough data, exit code 3."""
    result, _, _ = run()
    assert result.verdict.word == "not_enough_data"
    assert result.exit_code == 3


def test_an_engine_that_dies_while_sampling_differs() -> None:
    """The speculative engine's death is the finding, with its last line."""
    result, _, _ = run(dies_after=20)
    assert result.verdict.word == "differs"
    assert "out of bounds" in result.verdict.sentence
    assert result.rounds < 12


def test_a_stalled_request_is_made_again_and_counted() -> None:
    """A living engine that stalls now and then costs time, not the validation; one that only stalls is given up."""
    result, engines, _ = run(stalls=(3, 17))
    assert result.retried == 2
    assert result.rounds == 12
    assert len(engines[Side.SPECULATIVE].asked) == 5 * 12 + 2
    with pytest.raises(EngineUnavailable, match="failed 3 times"):
        run(stalls=tuple(range(1000)))


def test_losing_the_standard_engine_is_an_engine_error() -> None:
    """Without the reference there is no verdict, but a failure of that engine."""
    with pytest.raises(EngineUnavailable, match="standard"):
        run(standard=SampledEngine(Side.STANDARD, dies_after=20))


def test_without_scores_the_prefix_tree_takes_over() -> None:
    """A standard engine without prompt logprobs leaves the permutation test: it finds, but never certifies."""
    mute = SampledEngine(Side.STANDARD, scores=False)
    plan = ValidationPlan(TEXTS[:4], (TRUNCATED,), draws=60, tokens=8)
    clean, _, _ = run(plan, standard=mute)
    assert clean.method == "tree"
    assert clean.verdict.word == "not_enough_data"
    broken, _, _ = run(plan, standard=SampledEngine(Side.STANDARD, scores=False), wrong={"heat": 0.3})
    assert broken.verdict.word == "differs"


def test_shared_seeds_invalidate_the_draws() -> None:
    """An engine that ignores seeds and repeats one sequence is noticed before any distribution test is believed."""
    result, _, _ = run(same_seed=True)
    assert result.verdict.word in {"differs", "invalid"}
    assert result.duplicates[0].arm_b > 10 * max(1, result.duplicates[0].arm_a) or result.duplicates[0].suspicious


def test_a_time_budget_ends_after_a_whole_round() -> None:
    """The budget leaves equal draws of every prompt, arm and setting."""
    plan = ValidationPlan(TEXTS[:4], (TRUNCATED,), draws=50, budget_s=2.0)
    result, engines, _ = run(plan)
    assert 0 < result.rounds < 50
    assert len(engines[Side.STANDARD].asked) == len(engines[Side.SPECULATIVE].asked) == 4 * result.rounds


def test_unknown_drafts_are_named_and_not_counted_as_known() -> None:
    """With a draft model and no count of its own nothing is certified; the guess is named as one."""
    result, _, _ = run(lookup=None, method="draft_model")
    assert "drafts unknown" in result.lookup
    sure, _, _ = run(lookup=None)
    assert "usual lengths" in sure.lookup


def test_impossible_settings_are_refused_before_anything_is_sent() -> None:
    """Temperature 0.7 without top_k can't be judged from 20 candidates."""
    with pytest.raises(UsageError, match="top_k"):
        run(ValidationPlan(TEXTS, (SamplingConfig("x", 0.7),)))


def test_the_result_is_strict_json() -> None:
    """The whole result can be written without NaN."""
    result, _, _ = run()
    assert '"not_enough_data"' in strict_json(result)
