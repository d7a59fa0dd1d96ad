"""One real pair for all tests in this folder: the embedded model on the CPU, n-gram speculation, the repair loaded.

The pair runs under the project's own supervisor in a loop of its own thread, so that tests may be plain functions or
use any loop. If it does not start, the error shows the last lines of the engines' logs.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest

from specdemo.core.engine import EngineSpec
from specdemo.core.events import SIDES, Side
from specdemo.engines import environment
from specdemo.engines.models import resolve_model
from specdemo.engines.profiles import EnginePair, build
from specdemo.engines.speculation import parse_speculation
from specdemo.engines.supervisor import Supervisor, vllm_launcher
from specdemo.errors import EngineUnavailable

T = TypeVar("T")

SERVED_NAME = "smollm2"
REPETITIVE = "Repeat this list three times: red, green, blue, yellow, red, green, blue, yellow."


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="engines", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T], timeout: float = 600) -> T:
        """The coroutine's result, from any thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


@dataclass(frozen=True)
class RealPair:
    """Two real engines that are ready."""

    supervisor: Supervisor
    loop: Loop
    pair: EnginePair
    python: Path
    version: str

    def url(self, side: Side) -> str:
        """Base address without ``/v1``; waits out a restart."""
        self.loop.run(self.supervisor.wait_ready(300))
        return str(self.supervisor.base_url(side))

    def chat(self, side: Side, text: str = REPETITIVE, **fields: Any) -> dict[str, Any]:
        """One answer of a real engine, not streamed."""
        return ask(self.url(side), text, **fields)


def ask(url: str, text: str, **fields: Any) -> dict[str, Any]:
    """One chat request over plain HTTP, greedy unless told otherwise; fails unless it is answered with 200."""
    body = {
        "model": SERVED_NAME, "messages": [{"role": "user", "content": text}], "max_tokens": 48, "temperature": 0,
        "return_token_ids": True, **fields,
    }  # fmt: skip
    answer = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=300, trust_env=False)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def log_tails(supervisor: Supervisor) -> str:
    """Both engines' last lines, for a failure's message."""
    return "\n".join(
        f"--- {status.side.value}: {status.state.value} {status.error or ''}\n" + "\n".join(status.log_tail)
        for status in supervisor.statuses()
    )


@pytest.fixture(scope="session")
def engine_python() -> Path:
    python = environment.find_engine_python()
    assert python is not None, "there is no engine environment: run `make setup`"
    return python


@pytest.fixture(scope="session")
def engine_version(engine_python: Path) -> str:
    found = environment.inspect(engine_python)
    assert found.version is not None, found.problem
    return found.version


@pytest.fixture(scope="session")
def embedded_model(engine_python: Path) -> str:
    return resolve_model("embedded", engine_python=engine_python).reference


@pytest.fixture(scope="session")
def engine_loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.close()


@pytest.fixture(scope="session")
def real_pair(
    engine_python: Path,
    engine_version: str,
    embedded_model: str,
    engine_loop: Loop,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RealPair]:
    """Started once; every test that asks for it gets the same two engines."""
    pair = build("cpu", model=embedded_model, served_name=SERVED_NAME, speculation=parse_speculation("ngram"))
    supervisor = start(pair.standard, pair.speculative, engine_python, engine_version, engine_loop, tmp_path_factory)
    yield RealPair(supervisor, engine_loop, pair, engine_python, engine_version)
    engine_loop.run(supervisor.aclose())


@pytest.fixture(scope="session")
def unrepaired_url(real_pair: RealPair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A speculative engine without the repair, for the tests that show the fault. The last tests kill it."""
    off = replace(real_pair.pair.speculative, environment=(("SPECDEMO_CPU_SAMPLING_REPAIR", "0"),))
    supervisor = Supervisor(
        real_pair.pair.standard, off, state_dir=tmp_path_factory.mktemp("unrepaired"),
        launcher=vllm_launcher(real_pair.python, version=real_pair.version), version=real_pair.version,
    )  # fmt: skip
    yield real_pair.loop.run(speculative_alone(supervisor))
    real_pair.loop.run(supervisor.aclose())


async def speculative_alone(supervisor: Supervisor, patience: float = 400) -> str:
    """Start the speculative engine only; its address when it is ready, or a failure that shows its log."""
    await supervisor.start(Side.SPECULATIVE)
    async with asyncio.timeout(patience):
        while supervisor.base_url(Side.SPECULATIVE) is None:
            assert supervisor.status(Side.SPECULATIVE).error is None, log_tails(supervisor)
            await asyncio.sleep(0.2)
    return str(supervisor.base_url(Side.SPECULATIVE))


def start(
    standard: EngineSpec,
    speculative: EngineSpec,
    python: Path,
    version: str,
    loop: Loop,
    folders: pytest.TempPathFactory,
) -> Supervisor:
    """Both engines ready, or a failure that shows their logs."""

    async def begin() -> Supervisor:
        supervisor = Supervisor(
            standard, speculative, state_dir=folders.mktemp("engines"),
            launcher=vllm_launcher(python, version=version), version=version,
        )  # fmt: skip
        await supervisor.start_all()
        try:
            await supervisor.wait_ready(400)
        except EngineUnavailable as error:
            tails = log_tails(supervisor)
            await supervisor.aclose()
            pytest.fail(f"{error}\n{tails}")
        return supervisor

    supervisor = loop.run(begin())
    assert [status.side for status in supervisor.statuses()] == list(SIDES)
    return supervisor
