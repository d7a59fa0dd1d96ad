"""The log of a loading engine: stages, percentages, and the reason of a failure, on recorded real logs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdemo.engines.logview import FIRST_STAGE, TAIL_LINES, LogView, bare, clean

LOGS = Path(__file__).parents[2] / "traces" / "engine_logs"

REASONS = {
    "busy_port": "OSError: [Errno 98] Address already in use",
    "crash_sampling": "RuntimeError: index -1452668493 is out of bounds for dimension 1 with size 49152",
    "damaged_weights": "SafetensorError: Error while deserializing header: incomplete metadata, file not fully covered",
    "lookup": "prompt_lookup_min=6 must be <= prompt_lookup_max=4",
    "no_cache_memory": "ValueError: No available memory for the cache blocks.",
    "no_weights": "RuntimeError: Cannot find any model weights with `/models/noweights`",
    "suffix_package": "ImportError: Arctic Inference is required for suffix decoding.",
    "too_long": "User-specified max_model_len (100000) is greater than the derived max_model_len",
    "vocabulary": "Target and draft model should have the same vocabulary size. Target model vocab_size=49152.",
}


def recorded(name: str) -> bytes:
    return (LOGS / f"{name}.txt").read_bytes()


@pytest.mark.parametrize("name", REASONS)
def test_the_root_cause_of_a_real_failure(name: str) -> None:
    """The reason shown is the root cause in the log, not vLLM's "see root cause above" and not the traceback."""
    view = LogView()
    view.feed(recorded(name))
    view.finish()
    assert view.problem is not None
    assert view.problem.startswith(REASONS[name])
    assert view.port_taken == (name == "busy_port")


def test_stages_of_a_real_start() -> None:
    """A real start passes its stages in order, with the percentage of the weights where the log prints one."""
    view = LogView()
    seen: list[tuple[str, float | None]] = [(view.stage, view.fraction)]
    for line in recorded("loads_ngram").splitlines(keepends=True):
        view.feed(line)
        if seen[-1] != (view.stage, view.fraction):
            seen.append((view.stage, view.fraction))
    assert seen == [
        (FIRST_STAGE, None),
        ("reading the settings", None),
        ("reading the model's configuration", None),
        ("starting the engine core", None),
        ("starting the worker", None),
        ("loading the weights", None),
        ("loading the weights", 0.0),
        ("loading the weights", 1.0),
        ("loading the draft model", None),
        ("reserving the cache", None),
        ("starting the server", None),
        ("waiting for the first answer", None),
    ]
    assert view.problem is None


@given(st.lists(st.integers(1, 400), max_size=60))
def test_pieces_do_not_matter(cuts: list[int]) -> None:
    """However the output is cut into reads, even inside a character, the view ends the same."""
    data = recorded("lookup") + "模型 ✓\n".encode()
    whole, pieces = LogView(), LogView()
    whole.feed(data)
    start = 0
    for size in [*cuts, len(data)]:
        pieces.feed(data[start : start + size])
        start += size
    assert (pieces.stage, pieces.problem, pieces.tail) == (whole.stage, whole.problem, whole.tail)


@given(st.binary(max_size=600))
def test_any_bytes_are_shown_safely(data: bytes) -> None:
    """Whatever a child prints, the kept lines hold no control character and no escape sequence, and are bounded."""
    view = LogView()
    view.feed(data)
    view.finish()
    assert len(view.tail) <= TAIL_LINES
    for line in view.tail:
        assert all(character >= " " or character == "\t" for character in line)
        assert "\x7f" not in line
        assert len(line) <= 2000


def test_an_endless_line_is_bounded() -> None:
    """A child that prints no line end costs bounded memory and still gets its last words through."""
    view = LogView()
    for _ in range(100):
        view.feed(b"x" * 100_000)
    assert len(view._rest) <= 16_000
    view.feed(b"\nRuntimeError: the end\n")
    assert view.problem == "RuntimeError: the end"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("a\x00b\x08c", "abc"),
        ("tab\tstays", "tab\tstays"),
        ("line\u2028separator", "lineseparator"),
        ("end   ", "end"),
    ],
)
def test_clean(raw: str, shown: str) -> None:
    """Terminal colours, titles and control characters are taken out of a line before anybody shows it."""
    assert clean(raw) == shown


def test_secrets_are_masked() -> None:
    """C21: a secret is masked in every line, also in the error."""
    view = LogView(secrets=("sk-test-123",))
    view.feed(b"args: key=sk-test-123\nValueError: bad key sk-test-123\n")
    assert "sk-test-123" not in f"{view.tail}{view.problem}{view.last_line}"


@pytest.mark.parametrize(
    ("line", "level", "text"),
    [
        ("(EngineCore pid=11760) INFO 11-29 23:49:04 [core.py:133] Initializing", "INFO", "Initializing"),
        ("(Worker_TP0 pid=1) ERROR 11-29 23:49:04 [a.py:1] ValueError: x", "ERROR", "ValueError: x"),
        ("INFO 11-29 23:49:04 [core.py:133] text", "INFO", "text"),
        ("INFO:     Started", None, "INFO:     Started"),
        ("plain", None, "plain"),
    ],
)
def test_bare(line: str, level: str | None, text: str) -> None:
    """vLLM's own prefix (process, level, time, place) is told apart from the text."""
    assert bare(line) == (level, text)


@pytest.mark.parametrize(
    "line",
    [
        "WARNING 11-29 23:48:57 [x.py:1] This can cause fd limit errors like `OSError: [Errno 24] Too many`.",
        "    raise ValueError(",
        "INFO 11-29 23:48:57 [x.py:1] no errors: fine",
        "torch.OutOfMemory",
    ],
)
def test_what_is_no_error(line: str) -> None:
    """A warning that mentions an error, and the code lines of a traceback, are no reason of a failure."""
    view = LogView()
    view.feed(line.encode() + b"\n")
    assert view.problem is None


def test_a_wrapper_is_better_than_nothing() -> None:
    """When only vLLM's wrapper was printed, it is shown; a later root cause takes its place."""
    view = LogView()
    view.feed(b"RuntimeError: Engine core initialization failed. See root cause above.\n")
    assert view.problem == "RuntimeError: Engine core initialization failed. See root cause above."
    view.feed(b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.\n")
    assert view.problem == "OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB."


@pytest.mark.parametrize("before", [1, 1960, 1990, 1999, 2100])
def test_no_part_of_a_secret_is_left_at_a_cut(before: int) -> None:
    """A long line is cut after its secrets were taken out (C21)."""
    key = "sk-0123456789abcdefghijklmnopqrstuvwxyz"
    view = LogView(secrets=("sk-0123", key))
    (line,) = view.feed(b"x" * before + b" " + key.encode() + b" and more\n")
    assert "sk-" not in line
    assert "wxyz" not in line


@pytest.mark.parametrize("behind", range(15_960, 16_001, 4))
def test_no_part_of_a_secret_is_left_in_a_line_without_end(behind: int) -> None:
    """The beginning of such a line is dropped, and not through the middle of a secret (C21)."""
    key = "sk-0123456789abcdefghijklmnopqrstuvwxyz"
    view = LogView(secrets=(key,))
    view.feed(b"x" * 100 + key.encode())
    view.feed(b"y" * behind)
    (line,) = view.feed(b"\n")
    assert not any(key[start : start + 4] in line for start in range(len(key) - 3))


CAUSE = b"(EngineCore pid=1) ERROR 11-29 23:49:04 [core.py:1] ValueError: the cause\n"


@pytest.mark.parametrize(
    "later",
    [
        b"ERROR:    Traceback (most recent call last):\nasyncio.exceptions.CancelledError\n",
        b"anyio._backends.CancelledError: Cancelled by cancel scope 7f\n",
        b"BrokenPipeError: [Errno 32] Broken pipe\n",
        b"ConnectionResetError: [Errno 104] Connection reset by peer\n",
        b"    cache[rtype].remove(name)\nKeyError: '/psm_1234'\n",
        b"GeneratorExit\n",
    ],
)
def test_what_falls_over_afterwards_is_not_the_cause(later: bytes) -> None:
    """Tasks, pipes and shared memory of a dying engine complain as well; alone they are better than nothing."""
    view = LogView()
    view.feed(CAUSE + later)
    assert view.problem == "ValueError: the cause"
    alone = LogView()
    alone.feed(later)
    assert alone.problem is not None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/x/bin/python3.11: No module named vllm.entrypoints", "No module named vllm.entrypoints"),
        ("python: /lib/libc.so.6: version `GLIBC_2.38' not found", "/lib/libc.so.6: version `GLIBC_2.38' not found"),
        ("vllm serve: error: unrecognized arguments: --foo", "unrecognized arguments: --foo"),
        ("  what():  CUDA error: an illegal memory access", "CUDA error: an illegal memory access"),
        ("python3: warning: a note", None),
    ],
)
def test_who_speaks_before_and_beneath_python(line: str, said: str | None) -> None:
    """The interpreter, the argument parser and C++ name the reason in forms of their own."""
    view = LogView()
    view.feed(line.encode() + b"\n")
    assert view.problem == said


def test_errors_before_it_was_ready_are_forgiven() -> None:
    """An engine that serves all the same will not die of them (a base model without a template logs one at warm-up)."""
    view = LogView()
    view.feed(CAUSE + b"RuntimeError: Engine core initialization failed.\n")
    view.forgive()
    assert view.problem is None
