"""The real pair: both ready, one prompt on both, equal texts, and what the engines say of themselves."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import httpx
import psutil

from specdemo.core.engine import EngineState
from specdemo.core.events import SIDES, Side
from specdemo.engines.cores import thread_count
from specdemo.engines.process import session_members
from tests.engine.conftest import REPETITIVE, SERVED_NAME, RealPair, ask


def test_both_are_ready(real_pair: RealPair) -> None:
    """Two real engines on loopback ports of their own, with version, pid, memory and their exact command lines."""
    statuses = real_pair.supervisor.statuses()
    assert len({status.base_url for status in statuses}) == 2
    for status in statuses:
        assert status.state is EngineState.READY
        assert status.version == real_pair.version
        assert status.pid
        assert status.memory_bytes
        assert status.memory_bytes > 500e6
        assert "--host=127.0.0.1" in str(status.command)
    standard, speculative = (str(status.command) for status in statuses)
    assert "--speculative-config" not in standard
    assert "--speculative-config" in speculative


def test_one_prompt_races_on_both(real_pair: RealPair) -> None:
    """The same greedy prompt at the same time on both: equal token ids in float32, and only one of them drafted."""
    urls = [real_pair.url(side) for side in SIDES]
    with ThreadPoolExecutor(2) as both:
        standard, speculative = both.map(lambda url: ask(url, REPETITIVE), urls)
    assert standard["choices"][0]["token_ids"] == speculative["choices"][0]["token_ids"]
    assert len(standard["choices"][0]["token_ids"]) == 48
    assert standard["metrics"].get("speculative_decoding") is None
    drafted = speculative["metrics"]["speculative_decoding"]
    assert drafted["num_accepted_draft_tokens"] > 0
    assert drafted["num_spec_tokens"] == 4


def test_speculation_shows_in_the_metrics(real_pair: RealPair) -> None:
    """/metrics tells the two apart: the standard engine has no speculation series."""
    pages = [httpx.get(f"{real_pair.url(side)}/metrics", trust_env=False, timeout=30).text for side in SIDES]
    assert "vllm:spec_decode_num_drafts_total" not in pages[0]
    assert "vllm:spec_decode_num_drafts_total" in pages[1]


def test_logprobs_are_warm(real_pair: RealPair) -> None:
    """The first request with logprobs, which compiles for seconds, was part of loading: this one compiles nothing."""
    for side in SIDES:
        body = {"model": SERVED_NAME, "prompt": "one two three", "max_tokens": 4, "temperature": 0, "logprobs": 1}
        answer = httpx.post(f"{real_pair.url(side)}/v1/completions", json=body, timeout=60, trust_env=False)
        assert answer.status_code == 200
        assert len(answer.json()["choices"][0]["logprobs"]["token_logprobs"]) == 4


def test_neither_engine_works_with_more_threads(real_pair: RealPair) -> None:
    """n-gram's numba code would raise the speculative worker's threads to all cores (2 to 1 here); it must not."""
    wanted = thread_count(real_pair.pair.speculative.cores)
    assert wanted == thread_count(real_pair.pair.standard.cores)
    for side in SIDES:
        pid = real_pair.supervisor.status(side).pid
        assert pid is not None
        workers = [one for one in session_members(pid) if "Worker" in one.name()]
        assert workers
        before = [seconds(one) for one in workers]
        ask(real_pair.url(side), REPETITIVE)
        for earlier, one in zip(before, workers, strict=True):
            spent = sorted((spent - earlier.get(thread, 0.0) for thread, spent in seconds(one).items()), reverse=True)
            assert sum(part > spent[0] / 4 for part in spent) == wanted, (side, spent[:4])


def seconds(process: psutil.Process) -> dict[int, float]:
    """Processor time of each thread."""
    return {thread.id: thread.user_time + thread.system_time for thread in process.threads()}


def test_an_engine_can_be_restarted(real_pair: RealPair) -> None:
    """Restart takes the whole group of real processes down and brings a new engine up, the other one untouched."""
    before = real_pair.supervisor.status(Side.SPECULATIVE)
    other = real_pair.supervisor.status(Side.STANDARD)
    assert before.pid is not None
    assert len(session_members(before.pid)) >= 3
    real_pair.loop.run(real_pair.supervisor.restart(Side.SPECULATIVE))
    real_pair.loop.run(real_pair.supervisor.wait_ready(300))
    assert session_members(before.pid) == []
    assert real_pair.supervisor.status(Side.STANDARD).pid == other.pid
    assert real_pair.chat(Side.SPECULATIVE)["choices"][0]["message"]["content"]


def test_the_application_has_no_vllm() -> None:
    """The application's own environment runs without vLLM: importing all of this does not load it."""
    code = "import sys, specdemo.engines.supervisor, specdemo.engines.profiles; sys.exit('vllm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
