"""The sampling validation on imagined engines with known defects."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdemo.bench.prompts import BenchPrompt
from specdemo.bench.sampling.drafts import Lookup, drafted
from specdemo.bench.sampling.duplicates import duplicates
from specdemo.bench.sampling.processed import expected, violates
from specdemo.bench.sampling.scoring import ArmScore, Scorer
from specdemo.bench.sampling.settings import PLAIN, TRUNCATED, SamplingConfig, ValidationPlan, check_validation
from specdemo.bench.sampling.tree import tree_test
from specdemo.bench.sampling.verdict import SamplingVerdict, findings, judge, judge_tree, power_at
from specdemo.core.events import TopToken
from specdemo.errors import UsageError
from tests.fakes.sampled import LOOKUP, PROMPTS, VOCABULARY, Model, arm, processed, raw, score

WARM = SamplingConfig("warm", 0.8, 20, 0.95)


def scored(model: Model, draws: int, *, length: int = 16, seed: int = 1, known: bool = True) -> ArmScore:
    scorer = Scorer(model.config, seed=seed + 77_777)  # not the stream that drew the tokens
    for name, sequences in arm(model, draws, length, seed).items():
        for ids in sequences:
            scorer.add(score(PROMPTS[int(name[1:])], ids, known=known))
    return scorer.result()


def verdict(config: SamplingConfig, draws: int = 40, **defect: object) -> SamplingVerdict:
    standard = scored(Model(config), draws, seed=2)
    tested = scored(Model(config, speculative=True, **defect), draws, seed=3)  # type: ignore[arg-type]
    return judge([standard], [tested])


@pytest.mark.parametrize("config", [PLAIN, TRUNCATED, WARM], ids=lambda c: c.name)
def test_a_correct_speculative_engine_is_consistent(config: SamplingConfig) -> None:
    """Accept-reject sampling with n-gram drafts passes under three settings."""
    found = verdict(config, draws=80)
    assert found.word == "consistent", found.sentence
    assert found.missing == ()


@pytest.mark.parametrize(
    ("config", "defect", "words"),
    [
        (WARM, {"heat": 0.9}, "effective temperature"),
        (WARM, {"heat": 1.1}, "forbidden|effective temperature"),
        (PLAIN, {"heat": 0.9}, "effective temperature is 0.[89]"),
        (WARM, {"no_top_p": True}, "forbidden"),
        (WARM, {"no_top_k": True, "no_top_p": True}, "forbidden"),
        (WARM, {"keeps_draft": True}, "drafted tokens"),
        (PLAIN, {"keeps_draft": True}, "drafted tokens"),
        (WARM, {"eager": 0.5}, "drafted tokens"),
    ],
)
def test_each_named_defect_is_found(config: SamplingConfig, defect: dict[str, object], words: str) -> None:
    """Temperature off by a tenth, top_p or top_k ignored, a residual that keeps the draft, eager acceptance: differs."""
    found = verdict(config, **defect)
    assert found.word == "differs"
    assert re.search(words, found.sentence)


def test_the_quick_profile_finds_gross_faults_but_never_certifies() -> None:
    """With 5 x 32 x 16 tokens a fault is found; without one the answer is 'not enough data'."""
    assert verdict(WARM, draws=20, keeps_draft=True).word == "differs"
    clean = verdict(WARM, draws=20)
    assert clean.word == "not_enough_data"
    assert any("5,000 are needed" in reason for reason in clean.missing)


def test_without_drafts_nothing_is_certified() -> None:
    """An engine that never drafts was not tested, however well it samples."""
    standard = scored(Model(WARM), 80, seed=2)
    idle = scored(Model(WARM), 80, seed=3, known=False)
    found = judge([standard], [idle])
    assert found.word == "not_enough_data"
    assert "drafts were tried at 0%" in found.sentence
    assert judge([standard], [idle], drafted={"warm": 0.6}).word == "consistent"


def test_a_failing_control_takes_the_verdict_away() -> None:
    """If the standard arm itself is off, the speculative one gets no verdict."""
    hot = scored(Model(WARM, heat=1.2), 40, seed=2)
    found = judge([hot], [scored(Model(WARM, speculative=True), 40, seed=3)])
    assert found.word == "invalid"


def test_a_dead_engine_is_a_difference() -> None:
    """Crashing at a setting that the standard engine survives is a failure with its last line."""
    standard = scored(Model(WARM), 20, seed=2)
    assert judge([standard], [], died="index out of bounds").sentence.endswith("index out of bounds")
    assert judge([standard], [], died="x").word == "differs"
    assert judge([standard], []).word == "not_enough_data"


def test_false_alarms_are_rare_over_many_settings_and_seeds() -> None:
    """Sixty validations of a correct engine, a family of four tests each: at most two alarms at the 1 % level (A33)."""
    alarms = sum(
        any(f.decides for f in findings([scored(Model(WARM, speculative=True), 5, seed=100 + s)], 0.01))
        for s in range(60)
    )
    assert alarms <= 2


def test_component_scores_are_standard_normal_when_all_is_right() -> None:
    """Z of temperature, top-1 and leak have mean 0 and spread 1 over seeds, so their p-values can be believed."""
    runs = [scored(Model(WARM, speculative=True), 4, seed=200 + s) for s in range(80)]
    for index in (0, 1, 3):
        values = [run.components[index].z or 0.0 for run in runs]
        mean = sum(values) / len(values)
        spread = (sum((v - mean) ** 2 for v in values) / (len(values) - 1)) ** 0.5
        assert abs(mean) < 3.5 / len(values) ** 0.5
        assert 0.7 < spread < 1.3
    high = sum((run.pit.p or 1.0) < 0.05 for run in runs)
    assert high <= 11


def test_the_first_token_is_blind() -> None:
    """A residual fault can't be seen on first tokens alone, because prefill never has a draft."""
    scorer = Scorer(WARM, seed=1)
    for name, sequences in arm(Model(WARM, speculative=True, keeps_draft=True), 80, 16, 5).items():
        for ids in sequences:
            scorer.add(score(PROMPTS[int(name[1:])], ids)[:1])
    assert not any(f.decides for f in findings([scorer.result()], 0.01))
    assert scorer.result().leak.n == 0


@given(st.integers(0, 59), st.integers(0, 59), st.sampled_from([PLAIN, TRUNCATED, WARM]))
def test_expected_cells_equal_the_whole_distribution(a: int, b: int, config: SamplingConfig) -> None:
    """From 20 candidates alone the exact probabilities of the listed tokens are rebuilt."""
    values = raw((a, b))
    best = sorted(range(VOCABULARY), key=lambda i: -values[i])[:20]
    found = expected([TopToken(i, "", values[i]) for i in best], config, 20)
    assert found is not None
    truth = processed(a, b, config.temperature, config.top_k, config.top_p)
    assert found.probs == pytest.approx([truth[i] for i in found.ids])
    assert sum(found.probs) + found.tail == pytest.approx(1.0)


def test_contexts_that_the_list_cannot_resolve_are_skipped() -> None:
    """A nucleus wider than the list, a top_k beyond it, or a temperature without top_k give no distribution."""
    flat = [TopToken(i, "", -4.0) for i in range(20)]
    assert expected(flat, SamplingConfig("x", 1.0, 0, 0.9), 20) is None
    assert expected(flat, SamplingConfig("x", 1.0, 50, 0.9), 20) is None
    assert expected(flat, SamplingConfig("x", 0.7), 20) is None
    assert expected([], PLAIN, 20) is None
    assert expected(flat, PLAIN, 20) is not None


def test_violations_allow_for_rounding_only() -> None:
    """A token just at the border is rounding; one clearly beyond is a violation."""
    config = SamplingConfig("x", 1.0, 2, 1.0)
    top = [TopToken(1, "", -0.5), TopToken(2, "", -1.0), TopToken(3, "", -1.0005), TopToken(4, "", -2.0)]
    found = expected(top, config, 20)
    assert found is not None
    assert not violates(found, 3, -1.0005, config, (1e-3, 1e-3))
    assert violates(found, 4, -2.0, config, (1e-3, 1e-3))
    nucleus = SamplingConfig("y", 1.0, 0, 0.9)
    wide = expected([TopToken(1, "", -0.05), TopToken(2, "", -3.2)], nucleus, 20)
    assert wide is not None
    assert violates(wide, 2, -3.2, nucleus, (1e-3, 1e-3))
    assert violates(wide, 9, -9.0, nucleus, (1e-3, 1e-3))
    assert not violates(wide, 1, -0.05, nucleus, (1e-3, 1e-3))


def brute(context: Sequence[int], lookup: Lookup) -> tuple[int, ...]:
    for n in range(lookup.longest, lookup.shortest - 1, -1):
        for start in range(len(context) - n):
            if n < len(context) and list(context[start : start + n]) == list(context[-n:]):
                return tuple(context[start + n : start + n + lookup.k])
    return ()


@given(st.lists(st.integers(0, 3), min_size=1, max_size=25), st.integers(1, 5), st.integers(1, 3), st.integers(0, 3))
def test_prompt_lookup_takes_the_longest_match_and_its_first_place(ids: list[int], k: int, low: int, more: int) -> None:
    """The recomputed draft equals a search written down plainly."""
    lookup = Lookup(k, low, low + more)
    assert lookup.draft(ids) == brute(ids, lookup)


def test_drafts_are_laid_along_the_output() -> None:
    """After a match the tried drafts are those up to the first refusal; the first output token never has one."""
    prompt = (1, 2, 3, 4, 9, 1, 2)
    assert Lookup(4, 2, 4).draft((*prompt, 3)) == (4, 9, 1, 2)
    assert drafted(prompt, (3, 4, 9, 7, 8), Lookup(4, 2, 4)) == (None, 4, 9, 1, None)
    assert drafted(prompt, (), LOOKUP) == ()


def test_the_tree_test_finds_a_gross_difference_and_keeps_its_level() -> None:
    """Permutation over shared prefixes: a wrong temperature is found; equal engines alarm at about the nominal rate."""
    a = arm(Model(WARM), 120, 8, 1)
    b = arm(Model(WARM, heat=0.5), 120, 8, 2)
    found = tree_test(a, b)
    assert found.p is not None
    assert found.p <= 0.01
    assert judge_tree(found, tree_test(a, arm(Model(WARM), 120, 8, 3))).word == "differs"
    alarms = 0
    for s in range(40):
        same = tree_test(
            arm(Model(WARM), 25, 6, 10 + s), arm(Model(WARM, speculative=True), 25, 6, 500 + s), permutations=99
        )
        alarms += same.p is not None and same.p < 0.05
    assert alarms <= 6


def test_the_tree_test_never_certifies_and_needs_shared_prefixes() -> None:
    """No difference found is not a certificate; too few draws are not enough data; a failing control invalidates."""
    a, b = arm(Model(WARM), 40, 6, 1), arm(Model(WARM), 40, 6, 2)
    assert judge_tree(tree_test(a, b), None).word == "not_enough_data"
    few = tree_test({"p": [(1, 2)]}, {"p": [(1, 3)]})
    assert few.p is None
    assert judge_tree(few, None).word == "not_enough_data"
    bad = tree_test(a, arm(Model(WARM, heat=0.4), 120, 6, 3))
    assert judge_tree(tree_test(a, b), bad).word == "invalid"


def test_shared_seeds_are_noticed() -> None:
    """An arm that repeats itself, or arms that give equal draws at equal index, are pointed out."""
    a = {"p": [(i, i + 1) for i in range(60)]}
    assert not duplicates(a, {"p": [(i, i + 2) for i in range(60)]}).suspicious
    assert duplicates(a, {"p": [(i // 2, 0) for i in range(60)]}).suspicious
    assert duplicates(a, a).suspicious


def test_seeds_are_disjoint_and_far_apart() -> None:
    """No two requests come within 1,000 of each other's seed, over arms, settings, prompts and draws."""
    plan = ValidationPlan(tuple(BenchPrompt(f"p{i}", "w", text="x") for i in range(3)), draws=5)
    seeds = sorted(plan.seed_of(c, a, p, d) for c in range(2) for a in range(2) for p in range(3) for d in range(5))
    assert min(y - x for x, y in itertools.pairwise(seeds)) >= 1000
    assert max(seeds) < 2**63


@pytest.mark.parametrize(
    "config",
    [
        SamplingConfig("x", 0.0),
        SamplingConfig("x", 0.001),
        SamplingConfig("x", 0.7),
        SamplingConfig("x", 1.0, 0, 0.0),
        SamplingConfig("x", 0.7, 50),
    ],
)
def test_settings_that_cannot_be_judged_are_refused(config: SamplingConfig) -> None:
    """Greedy, rounded-up, or unreconstructable settings are refused with a sentence."""
    with pytest.raises(UsageError):
        check_validation(ValidationPlan((BenchPrompt("p", "w", text="x"),), (config,)))
    with pytest.raises(UsageError):
        check_validation(ValidationPlan((), (PLAIN,)))


def test_power_is_told_for_the_size_at_hand() -> None:
    """The table's column is the largest size reached; below all sizes there is none."""
    assert dict(power_at(10_300))["temperature x 0.95"] == 1.0
    assert dict(power_at(2_560))["acceptance +10 %"] == 0.73
    assert power_at(100) == ()


def test_scoring_is_repeatable() -> None:
    """The randomised transform has its own seed."""
    assert scored(Model(WARM), 3, seed=9) == scored(Model(WARM), 3, seed=9)
