"""The shipped prompts keep what is promised of them."""

from __future__ import annotations

import pytest

from specdemo.bench.workloads import choose, shipped
from specdemo.errors import UsageError

EXPECTED = {
    "code_generation",
    "code_editing",
    "open_chat",
    "summarisation",
    "rag_qa",
    "templated_output",
    "translation",
}


def test_seven_workloads_of_at_least_sixteen_prompts_in_two_languages() -> None:
    """Every workload has 16 prompts or more, both languages, and a reason in both languages."""
    workloads = shipped()
    assert {w.name for w in workloads} == EXPECTED
    for workload in workloads:
        assert len(workload.prompts) >= 16, workload.name
        assert {p.language for p in workload.prompts} == {"en", "zh"}, workload.name
        assert "n-gram" in workload.why_en
        assert "n-gram" in workload.why_zh
        assert "draft model" in workload.why_en
        assert "草稿模型" in workload.why_zh
        assert dict(workload.expects).keys() == {"ngram", "draft_model"}


def test_ids_and_texts_are_unique_and_fit_a_small_context() -> None:
    """No prompt appears twice, and each leaves room for its budget in a context of 1,024 tokens."""
    prompts = choose()
    assert len({p.id for p in prompts}) == len({p.shown for p in prompts}) == len(prompts)
    for prompt in prompts:
        rough = len(prompt.shown.encode()) / (1.2 if prompt.language == "zh" else 3.0)
        assert rough + (prompt.max_tokens or 2000) < 1000, prompt.id


def test_rag_prompts_hold_fragments_and_a_question() -> None:
    """Each RAG prompt carries numbered answer fragments in its context."""
    for prompt in choose(["rag_qa"]):
        assert "[1]" in prompt.shown
        assert "[2]" in prompt.shown
        assert "Question:" in prompt.shown or "问题：" in prompt.shown


def test_a_small_choice_keeps_both_languages() -> None:
    """Four prompts of a workload are spread over the file."""
    assert {p.language for p in choose(["open_chat"], limit=4)} == {"en", "zh"}
    assert len(choose(limit=4)) == 4 * len(EXPECTED)
    assert {p.language for p in choose(languages=["zh"])} == {"zh"}


def test_unknown_names_are_answered_with_the_known_ones() -> None:
    """A wrong workload name lists the right ones."""
    with pytest.raises(UsageError, match="open_chat"):
        choose(["chat"])
    with pytest.raises(UsageError, match="en or zh"):
        choose(languages=["fr"])
