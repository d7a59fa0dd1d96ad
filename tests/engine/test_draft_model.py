"""The shipped draft model in real engines: chosen by one setting it drafts, it is accepted, and no token changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from specdemo.bench.workloads import shipped
from specdemo.core.events import Side
from specdemo.engines.profiles import CPU_DRAFT_K, wanted_speculation
from specdemo.engines.supervisor import Supervisor, vllm_launcher
from tests.engine.conftest import RealPair, ask, speculative_alone

WORKLOADS = ("code_editing", "open_chat", "summarisation", "templated_output")
ACCEPTED_FLOOR = 0.10
"""Share of all drafted tokens; docs/draft-model.md has what was measured on all shipped prompts."""


@pytest.fixture(scope="module")
def drafting_url(real_pair: RealPair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The speculative engine with what ``SPECDEMO_ENGINE__SPECULATION=draft_model`` means, and nothing else changed."""
    speculation = wanted_speculation("cpu", real_pair.pair.standard.model, speculation="draft_model")
    supervisor = Supervisor(
        real_pair.pair.standard,
        replace(real_pair.pair.speculative, speculation=speculation),
        state_dir=tmp_path_factory.mktemp("drafting"),
        launcher=vllm_launcher(real_pair.python, version=real_pair.version),
        version=real_pair.version,
    )
    yield real_pair.loop.run(speculative_alone(supervisor))
    real_pair.loop.run(supervisor.aclose())


@pytest.fixture(scope="module")
def answered(real_pair: RealPair, drafting_url: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Two shipped prompts of each of four workloads, greedy, on the standard engine and on the drafting one."""
    texts = [p.shown for w in shipped() if w.name in WORKLOADS for p in w.prompts[:2]]
    standard = real_pair.url(Side.STANDARD)
    return [(ask(standard, text, max_tokens=64), ask(drafting_url, text, max_tokens=64)) for text in texts]


def test_greedy_output_is_identical(answered: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    """Token for token what the target says alone, on every prompt."""
    assert len(answered) == 2 * len(WORKLOADS)
    for plain, fast in answered:
        assert fast["choices"][0]["token_ids"] == plain["choices"][0]["token_ids"]


def test_it_drafts_in_every_step_and_is_accepted(answered: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    """k drafts a step, as the preset asks, and a share of them right that a draft model of no use would not reach."""
    told = [fast["metrics"]["speculative_decoding"] for _, fast in answered]
    assert all(one["num_spec_tokens"] == CPU_DRAFT_K for one in told)
    drafted = sum(one["num_draft_tokens"] for one in told)
    accepted = sum(one["num_accepted_draft_tokens"] for one in told)
    tokens = sum(fast["usage"]["completion_tokens"] for _, fast in answered)
    # The first token of an answer is the prefill's; every later step brings its accepted drafts and one token more.
    assert sum(one["num_spec_steps"] for one in told) + accepted >= tokens - 2 * len(answered)
    assert accepted / drafted >= ACCEPTED_FLOOR, f"{accepted} of {drafted} drafted tokens were accepted"


def test_sampled_answers_are_drafted_too(drafting_url: str) -> None:
    """At temperature 0.7 the repaired sampler accepts some drafts and refuses some."""
    fast = ask(drafting_url, "List the days of the week three times.", temperature=0.7, seed=7, max_tokens=96)
    told = fast["metrics"]["speculative_decoding"]
    assert 0 < told["num_accepted_draft_tokens"] < told["num_draft_tokens"]
