"""Temperature above 0 on the CPU: wrong and deadly without the repair, right with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest

from specdemo.core.events import SIDES, Side
from specdemo.core.prompt import Sampling
from specdemo.engines.safety import refusal_for_spec
from specdemo.engines.supervisor import Supervisor
from tests.engine.conftest import REPETITIVE, SERVED_NAME, RealPair, ask, start

WARM = {"temperature": 0.8, "max_tokens": 64}
CUTS = [{"top_k": 20}, {"top_p": 0.9}, {"top_k": 20, "top_p": 0.9}]
COPY = "Copy this text exactly, ten times: one two three four five six seven eight nine ten."


def accepted(answer: dict) -> tuple[int, int]:
    """(accepted, drafted) tokens of one answer."""
    found = answer["metrics"]["speculative_decoding"]
    return found["num_accepted_draft_tokens"], found["num_draft_tokens"]


def sums(url: str) -> tuple[int, int]:
    """(accepted, drafted) over some seeds at temperature 0.8."""
    pairs = [accepted(ask(url, COPY, seed=seed, **WARM)) for seed in range(1, 4)]
    return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)


def test_drafts_are_accepted_with_the_repair(real_pair: RealPair) -> None:
    """At temperature 0.8 a good share of the drafts of a copied text is accepted."""
    taken, drafted = sums(real_pair.url(Side.SPECULATIVE))
    assert drafted > 10
    assert taken > 0.2 * drafted


@pytest.mark.parametrize("cut", CUTS, ids=str)
def test_top_k_and_top_p_with_the_repair(real_pair: RealPair, cut: dict[str, float]) -> None:
    """top_k, top_p and both are answered, twice the same for the same seed, and the engine lives on."""
    first, second = (real_pair.chat(Side.SPECULATIVE, COPY, seed=5, **WARM, **cut) for _ in range(2))
    assert first["choices"][0]["token_ids"] == second["choices"][0]["token_ids"]
    health = httpx.get(f"{real_pair.url(Side.SPECULATIVE)}/health", trust_env=False, timeout=30)
    assert health.status_code == 200
    assert real_pair.supervisor.status(Side.SPECULATIVE).restarts == 0


def test_mixed_batches_with_the_repair(real_pair: RealPair) -> None:
    """A greedy request keeps its text while a sampled one shares its steps: the fault touched neighbours too."""
    from concurrent.futures import ThreadPoolExecutor

    url = real_pair.url(Side.SPECULATIVE)
    alone = ask(url, REPETITIVE)["choices"][0]["token_ids"]
    with ThreadPoolExecutor(2) as both:
        sampled = both.submit(ask, url, COPY, seed=1, top_k=50, **WARM)
        greedy = both.submit(ask, url, REPETITIVE)
        assert greedy.result()["choices"][0]["token_ids"] == alone
        sampled.result()


def test_the_engine_says_that_it_is_repaired(real_pair: RealPair) -> None:
    """The worker's own log line tells that the repair is in place, and the application then lets requests through."""
    log = (real_pair.supervisor.ledger.folder / "logs" / "speculative.log").read_text()
    assert any("VllmWorker" in line and "CPU sampling repair applied" in line for line in log.splitlines())
    assert all(real_pair.supervisor.repaired(side) for side in SIDES)
    spec = real_pair.supervisor.spec(Side.SPECULATIVE)
    assert refusal_for_spec(spec, Sampling(temperature=0.8, top_k=20), version=real_pair.version) is None


def test_without_the_repair_the_engine_fails(unrepaired_url: str) -> None:
    """The fault itself: the first step with top_k ends the engine, whatever lies in its memory.

    How many drafts it rejects depends on that memory; test_bench_real.py judges that by statistics.
    """
    body = {"model": SERVED_NAME, "messages": [{"role": "user", "content": COPY}], "top_k": 20, "seed": 5, **WARM}
    try:
        answer = httpx.post(f"{unrepaired_url}/v1/chat/completions", json=body, timeout=300, trust_env=False)
    except httpx.HTTPError:
        return
    assert answer.status_code == 500


@pytest.fixture(scope="module")
def in_parts(real_pair: RealPair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Supervisor]:
    """Two engines that prefill at most 32 tokens a step; the standard one without the repair."""
    flags = (("max-num-batched-tokens", "32"),)
    off = (("SPECDEMO_CPU_SAMPLING_REPAIR", "0"),)
    supervisor = start(
        replace(real_pair.pair.standard, flags=flags, max_num_seqs=4, environment=off),
        replace(real_pair.pair.speculative, flags=flags, max_num_seqs=4),
        real_pair.python, real_pair.version, real_pair.loop, tmp_path_factory,
    )  # fmt: skip
    yield supervisor
    real_pair.loop.run(supervisor.aclose())


SEEDED = {"seed": 7, "temperature": 0.8, "max_tokens": 12, "ignore_eos": True}
LONG = f"{COPY} {COPY} {COPY}"


def test_a_seed_survives_a_prompt_in_parts(real_pair: RealPair, in_parts: Supervisor) -> None:
    """With the repair a seeded request is answered, and its tokens are those of the same prompt read at once."""
    split = ask(str(in_parts.base_url(Side.SPECULATIVE)), LONG, **SEEDED)
    whole = real_pair.chat(Side.SPECULATIVE, LONG, **SEEDED)
    assert split["usage"]["prompt_tokens"] > 64
    assert split["choices"][0]["token_ids"] == whole["choices"][0]["token_ids"]
    assert in_parts.status(Side.SPECULATIVE).restarts == 0


def test_without_the_repair_a_seed_ends_the_engine(in_parts: Supervisor) -> None:
    """The fault itself, on an engine that does not even speculate; without a seed the same prompt is answered."""
    url = str(in_parts.base_url(Side.STANDARD))
    spec, sampling = in_parts.spec(Side.STANDARD), Sampling(temperature=0.8, seed=7)
    assert "seed" in (refusal_for_spec(spec, sampling, version=in_parts.version) or "")
    assert refusal_for_spec(spec, replace(sampling, seed=None), version=in_parts.version) is None
    ask(url, LONG, **{name: value for name, value in SEEDED.items() if name != "seed"})
    body = {"model": SERVED_NAME, "messages": [{"role": "user", "content": LONG}], **SEEDED}
    try:
        answer = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=300, trust_env=False)
    except httpx.HTTPError:
        return
    assert answer.status_code == 500
