"""Greedy identity over many prompts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specdemo.bench.identity import Identity, Split, classify, identity, split_of, weigh
from specdemo.bench.plan import BenchPlan
from specdemo.bench.sample import Sample
from specdemo.core.events import TopToken
from tests.fakes.bench_samples import TOKENS, prompts, session

OTHER = (*range(50), 999, *range(51, TOKENS))


def data(count: int = 12, levels: tuple[int, ...] = (1,)) -> list[Sample]:
    return session(BenchPlan(prompts(count), levels=levels, control_prompts=0, load_prompts=None), 1.5)


def differ(samples: list[Sample], names: set[str], *, arms: str = "B", level: int = 1) -> list[Sample]:
    return [
        replace(s, token_ids=OTHER)
        if s.place.prompt_id in names and s.place.arm in arms and s.place.level == level
        else s
        for s in samples
    ]


def judge(samples: list[Sample], splits: dict[str, Split] | None = None, *, drafted: bool | None = True) -> Identity:
    return identity(samples, splits or {}, tolerance=1e-3, greedy=True, drafted=drafted)


def split(name: str, gap: float | None, **more: bool) -> Split:
    return Split(name, 50, 50, 999, "a", "b", gap, more.get("flipped", False), more.get("top_two", True))


def test_all_equal_is_identical_with_its_bound() -> None:
    """Twelve equal prompts: identical, all tokens counted, and the share of misfits may still be 22 %."""
    found = judge(data())
    assert found.word == "identical"
    assert (found.prompts, found.tokens) == (12, 12 * TOKENS)
    assert found.mismatch_bound == pytest.approx(1 - 0.05 ** (1 / 12))


@pytest.mark.parametrize(
    ("gap", "more", "kind", "word"),
    [
        (0.0, {}, "near_tie", "identical_up_to_near_ties"),
        (0.0009, {}, "near_tie", "identical_up_to_near_ties"),
        (0.0009, {"top_two": False}, "suspicious", "suspect"),
        (0.0015, {}, "suspicious", "suspect"),
        (0.0015, {"flipped": True}, "near_tie", "identical_up_to_near_ties"),
        (0.5, {}, "mismatch", "mismatch"),
        (0.5, {"flipped": True}, "mismatch", "mismatch"),
        (None, {}, "unexplained", "suspect"),
    ],
)
def test_one_split_decides_by_its_gap(gap: float | None, more: dict[str, bool], kind: str, word: str) -> None:
    """A split is excused only as a near tie under the standard engine, never by default (A01, A18)."""
    name = prompts(12)[3].id
    found = judge(differ(data(), {name}), {name: split(name, gap, **more)})
    assert dict(found.classes) == {"identical": 11, kind: 1}
    assert found.word == word
    assert found.splits[0][0].position == 50


def test_a_split_that_was_not_looked_at_is_unexplained() -> None:
    """Without a probe, or with a probe of another split, nothing is excused."""
    name = prompts(12)[3].id
    assert judge(differ(data(), {name})).word == "suspect"
    stale = replace(split(name, 0.0), position=7)
    assert judge(differ(data(), {name}), {name: stale}).word == "suspect"


def test_an_engine_that_does_not_repeat_itself_gives_no_verdict() -> None:
    """If the standard engine's own repeats differ, a difference proves nothing."""
    samples = data()
    first = next(i for i, s in enumerate(samples) if s.place.arm == "A")
    samples[first] = replace(samples[first], token_ids=OTHER)
    found = judge(samples)
    assert found.word == "not_comparable"
    assert found.a_repeats_differ == 1


def test_outputs_under_load_are_reported_apart_with_their_control() -> None:
    """Batching that changes texts at level 4 does not touch the verdict at level 1 (A03)."""
    samples = data(10, (1, 4))
    names = {prompts(10)[0].id, prompts(10)[1].id}
    found = judge(differ(samples, names, arms="A", level=4))
    assert found.word == "identical"
    assert found.under_load == (2, 10)
    assert found.batch_control == (2, 10)


def test_more_near_ties_than_batching_explains_are_suspect() -> None:
    """Twelve near ties of sixty where batching alone changes none: not excused as rounding."""
    samples = data(60, (1, 4))
    names = {prompt.id for prompt in prompts(60)[:12]}
    found = judge(differ(samples, names), {name: split(name, 0.0) for name in names})
    assert found.same_as_control_p is not None
    assert found.same_as_control_p < 0.01
    assert found.word == "suspect"
    both = differ(differ(samples, names), names, arms="AB", level=4)
    assert judge(both, {name: split(name, 0.0) for name in names}).word == "identical_up_to_near_ties"


def test_shorter_output_is_truncated_or_a_mismatch() -> None:
    """A prefix cut by the limit is 'truncated'; one that stopped by itself is a mismatch (A16)."""
    samples = [replace(s, token_ids=s.token_ids[:60]) if s.place.arm == "B" and s.token_ids else s for s in data(3)]
    assert dict(judge(samples).classes) == {"truncated": 3}
    stopped = [replace(s, finish_reason="stop") if s.place.arm == "B" else s for s in samples]
    assert judge(stopped).word == "mismatch"


def test_no_drafts_means_not_tested() -> None:
    """Equal texts without a single draft say nothing about speculation (A37)."""
    assert judge(data(), drafted=False).word == "not_tested"
    assert judge([]).word == "not_tested"


def test_candidates_of_the_standard_engine_weigh_a_split() -> None:
    """Gap, flip and rank come from the standard engine's own list."""
    raw = split_of("p", (1, 2, 3), (1, 5, 3))
    assert raw == Split("p", 1, 2, 5)
    assert split_of("p", (1, 2), (1, 2, 3)) is None
    found = weigh(raw, [TopToken(9, "c", -5.0), TopToken(5, "b", -0.6), TopToken(2, "a", -0.5)])
    assert found.gap_nats == pytest.approx(0.1)
    assert (found.flipped, found.top_two, found.standard_text, found.speculative_text) == (False, True, "a", "b")
    assert weigh(raw, [TopToken(5, "b", -0.4), TopToken(2, "a", -0.5)]).flipped
    assert weigh(raw, [TopToken(2, "a", -0.5)]).error is not None
    assert classify(None, 1e-3) == "unexplained"
