"""Why an engine is gone, in one sentence with what to do."""

from __future__ import annotations

import pytest

from specdemo.core.engine import EngineSpec
from specdemo.core.events import Side
from specdemo.engines.diagnosis import exit_sentence, explain
from specdemo.engines.logview import LogView
from tests.unit.engines.test_logview import recorded

CPU = EngineSpec(Side.SPECULATIVE, "owner/model", "demo", "cpu")
NO_CACHE = (
    "ValueError: To serve at least one request with the model's max seq len (32768), (9.0 GiB KV cache is needed, "
    "which is larger than the available KV cache memory (1.0 GiB)."
)
GPU = EngineSpec(Side.SPECULATIVE, "owner/model", "demo", "cuda", memory_share=0.5)


def test_a_card_that_is_taken() -> None:
    """A26: the second engine on one card says how much is free and which smaller share would fit."""
    problem = (
        "ValueError: Free memory on device cuda:0 (38.91/79.15 GiB) on startup is less than desired GPU memory "
        "utilization (0.5, 39.58 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes."
    )
    assert exit_sentence(GPU, 1, problem, ready_before=False) == (
        "The speculative engine did not start: the card has 38.91 of 79.15 GiB free, but a share of 0.5 was asked for. "
        "Lower its memory share to 0.46, or free the card."
    )
    full = problem.replace("38.91", "2.00")
    assert "put the engines on one card each" in explain(full, GPU)


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        ("OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "the GPU has too little memory"),
        (NO_CACHE, "no memory is left for its token cache"),
        ("OSError: [Errno 28] No space left on device", "the disk is full"),
        ("OSError: You are trying to access a gated repo.", "HF_TOKEN"),
        ("RuntimeError: something new", "RuntimeError: something new"),
    ],
)  # fmt: skip
def test_known_reasons(problem: str, words: str) -> None:
    """What vLLM says is put into words with a way out; what is unknown is shown as it is."""
    assert words in explain(problem, GPU)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("vocabulary", "vocabularies of different size (target 49152, draft 49280). Take a draft of the same family"),
        ("too_long", "`max_model_len` is too large; this model can hold 8192 tokens, 100000 were asked for."),
        ("no_weights", "the model's weights are missing or damaged"),
        ("damaged_weights", "the model's weights are missing or damaged"),
        ("no_cache_memory", "no memory is left for its token cache"),
        ("lookup", "prompt_lookup_min=6 must be <= prompt_lookup_max=4"),
    ],
)
def test_recorded_failures(name: str, words: str) -> None:
    """Real failures, from the log's bytes to the sentence."""
    view = LogView()
    view.feed(recorded(name))
    view.finish()
    sentence = exit_sentence(CPU, 1, view.problem, ready_before=False)
    assert words in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (-9, "killed (signal 9), most often because the machine ran out of memory"),
        (-4, "ended by SIGILL: the CPU may lack instructions"),
        (-15, "ended by SIGTERM."),
        (-99, "ended by signal 99."),
        (137, "killed (signal 9), most often because the machine ran out of memory"),
        (139, "ended by SIGSEGV."),
        (128, "exit code 128 and gave no reason"),
        (255, "exit code 255 and gave no reason"),
        (3, "exit code 3 and gave no reason"),
        (None, "its process is gone"),
    ],
)
def test_exits_without_a_word(code: int | None, words: str) -> None:
    """Without an error in the log, the exit code or the signal is put into words."""
    assert words in exit_sentence(CPU, code, None, ready_before=True)


@pytest.mark.parametrize("code", [-9, 137])
def test_a_killed_engine_did_not_die_of_a_refused_request(code: int) -> None:
    """SIGKILL comes from outside: an error in the log may be of any request before, and is told as no more."""
    refused = "ValueError: This model's maximum context length is 2048 tokens."
    said = exit_sentence(CPU, code, refused, ready_before=True)
    assert said.startswith("The speculative engine died: it was killed (signal 9)")
    assert said.endswith(f"The last error in its log: {refused}")
    assert exit_sentence(CPU, 1, refused, ready_before=True) == f"The speculative engine died: {refused}"


@pytest.mark.parametrize(
    "problem",
    ["MemoryError", "RuntimeError: DefaultCPUAllocator: can't allocate memory", "std::bad_alloc",
     "OSError: [Errno 12] Cannot allocate memory"],
)  # fmt: skip
def test_too_little_memory_in_other_words(problem: str) -> None:
    """Python, PyTorch, C++ and the system each say it their own way."""
    assert "this machine has too little memory" in explain(problem, CPU)


def test_long_texts_are_cut() -> None:
    """A page of error text becomes a sentence that fits the page."""
    assert len(explain("RuntimeError: " + "x" * 5000, CPU)) <= 400
