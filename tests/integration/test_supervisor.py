"""Two children under control: readiness, failure while loading, ports, order, and an end without leftovers."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path

import httpx
import psutil
import pytest

from specdemo.core.engine import EngineState
from specdemo.core.events import SIDES, Side
from specdemo.engines.slot import Timing
from specdemo.errors import ConfigError, EngineUnavailable
from tests.fakes.engine_child import Engine
from tests.fakes.supervised import FAST, FakeEngines, launch, reaches, spec, supervisor

READY, FAILED = EngineState.READY, EngineState.FAILED


@contextmanager
def stranger(port: int = 0) -> Iterator[int]:
    """Another program's server that answers /health with 200 and lists its own model."""
    handler = type("Stranger", (Engine,), {"model": "demo"})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def test_both_become_ready_and_leave_nothing_behind(tmp_path: Path) -> None:
    """Both engines get ready on loopback ports of their own; after closing, no process, no record and no port is left."""
    async with supervisor(tmp_path, FakeEngines()) as control:
        await control.start_all()
        await control.wait_ready(30)
        urls = [control.base_url(side) for side in SIDES]
        pids = [control.status(side).pid for side in SIDES]
        for side, url in zip(SIDES, urls, strict=True):
            status = control.status(side)
            assert status.version == "0.32.0"
            assert status.managed
            assert status.memory_bytes
            assert "engine_child.py" in (status.command or "")
            assert httpx.get(f"{url}/health", trust_env=False).status_code == 200
    assert len(set(urls)) == 2
    assert not any(psutil.pid_exists(pid) for pid in pids if pid is not None)
    assert json.loads((tmp_path / "state" / "engines.json").read_text()) == {"children": []}
    assert [control.status(side).state for side in SIDES] == [EngineState.STOPPED] * 2
    for url in urls:
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{url}/health", trust_env=False)


async def test_an_engine_that_exits_while_loading_says_why(tmp_path: Path) -> None:
    """A25: its own last error is shown, it is not tried again by itself, and the other engine is untouched."""
    async with supervisor(tmp_path, FakeEngines(speculative=("--behaviour", "exit"))) as control:
        await control.start_all()
        status = await reaches(control, Side.SPECULATIVE, FAILED)
        assert status.error == (
            "The speculative engine did not start: prompt_lookup_min=6 must be <= prompt_lookup_max=4"
        )
        assert any("Resolved architecture" in line for line in status.log_tail)
        await reaches(control, Side.STANDARD, READY)
        with pytest.raises(EngineUnavailable, match="prompt_lookup_min=6"):
            await control.wait_ready(30)
        assert control.status(Side.STANDARD).state is READY


async def test_a_fixed_port_that_is_taken_is_said_so(tmp_path: Path) -> None:
    """Busy port: the sentence names the port, and nobody mistakes the stranger's server for our engine (A28)."""
    with stranger() as port:
        async with supervisor(tmp_path, FakeEngines(), ports={Side.STANDARD: port}) as control:
            await control.start_all()
            status = await reaches(control, Side.STANDARD, FAILED)
            assert status.error == f"Port {port} is taken by another program: free it, or let specdemo choose a port."
            assert control.base_url(Side.STANDARD) is None
            await reaches(control, Side.SPECULATIVE, READY)


async def test_a_stranger_on_the_port_is_never_ready(tmp_path: Path) -> None:
    """A28: a stranger that even lists the expected model does not count; another port is drawn and the engine gets it."""
    servers = []

    def occupy(port: int) -> None:
        if not servers:
            context = stranger(port)
            context.__enter__()
            servers.append(context)

    engines = FakeEngines(before=occupy)
    async with supervisor(tmp_path, engines) as control:
        await control.start(Side.STANDARD)
        await reaches(control, Side.STANDARD, READY)
        assert len(engines.ports) == 2
        assert control.base_url(Side.STANDARD) == f"http://127.0.0.1:{engines.ports[1]}"
        assert control.status(Side.STANDARD).restarts == 0
    servers[0].__exit__(None, None, None)


async def test_address_in_use_draws_another_port(tmp_path: Path) -> None:
    """A child that finds its drawn port taken is started again on another one, without counting as a failure."""
    engines = FakeEngines(standard=("--behaviour", "taken-once", "--flag", str(tmp_path / "flag")))
    async with supervisor(tmp_path, engines) as control:
        await control.start(Side.STANDARD)
        await reaches(control, Side.STANDARD, READY)
        assert len(set(engines.ports)) == 2


async def test_an_engine_with_another_model_is_not_ready(tmp_path: Path) -> None:
    """Ready means that the expected model is listed; else the wait ends with a sentence when its time is up."""
    now = [0.0]
    engines = FakeEngines(standard=("--behaviour", "other-model"))
    timing = Timing(load=100.0, loading_poll=0.01, grace=5.0)
    async with supervisor(tmp_path, engines, timing=timing, clock=lambda: now[0]) as control:
        await control.start(Side.STANDARD)
        await reaches(control, Side.STANDARD, EngineState.LOADING, stage="waiting for the first answer")
        now[0] = 101.0
        status = await reaches(control, Side.STANDARD, FAILED)
        assert status.error is not None
        assert status.error.startswith("The standard engine was not ready after 100 s; its last line: INFO:")
        assert status.pid is None


async def test_one_after_the_other(tmp_path: Path) -> None:
    """A shared card: the second engine waits, and says for what, until the first has loaded."""
    flag = tmp_path / "go"
    engines = FakeEngines(standard=("--behaviour", "wait", "--flag", str(flag)))
    async with supervisor(tmp_path, engines, parallel=False) as control:
        await control.start_all()
        loading = await reaches(control, Side.STANDARD, EngineState.LOADING, stage="loading the weights")
        assert loading.fraction == 0.5
        waiting = await reaches(control, Side.SPECULATIVE, EngineState.WAITING)
        assert waiting.stage == "waits until the other engine has loaded"
        assert len(engines.ports) == 1
        flag.touch()
        await control.wait_ready(30)


async def test_stop_while_loading(tmp_path: Path) -> None:
    """Stopping an engine that still loads ends it at once; it can be started again."""
    flag = tmp_path / "go"
    engines = FakeEngines(standard=("--behaviour", "wait", "--flag", str(flag)))
    async with supervisor(tmp_path, engines) as control:
        await control.start(Side.STANDARD)
        status = await reaches(control, Side.STANDARD, EngineState.LOADING, stage="loading the weights")
        await control.stop(Side.STANDARD)
        assert status.pid is not None
        assert not psutil.pid_exists(status.pid)
        assert control.status(Side.STANDARD).state is EngineState.STOPPED
        flag.touch()
        await control.start(Side.STANDARD)
        await reaches(control, Side.STANDARD, READY)


async def test_two_copies_at_once(tmp_path: Path) -> None:
    """A second copy is refused with the addresses of the first one's engines; once that is closed it may start."""
    first = supervisor(tmp_path, FakeEngines())
    async with first:
        await first.start_all()
        await first.wait_ready(30)
        with pytest.raises(ConfigError, match=r"already runs here .*--standard-url http://127.0.0.1:\d+") as refused:
            await supervisor(tmp_path, FakeEngines()).start_all()
        assert str(first.base_url(Side.SPECULATIVE)) in str(refused.value)
    async with supervisor(tmp_path, FakeEngines()) as second:
        await second.start_all()
        await second.wait_ready(30)


async def test_ports_are_not_drawn_twice(tmp_path: Path) -> None:
    """The reservation keeps a port from everyone who asks the system for a free one, while the engine may bind it."""
    from specdemo.engines.ports import PortReservation

    held = PortReservation()
    try:
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.1", held.port))
            other.listen()
            with pytest.raises(EngineUnavailable, match=f"Port {held.port} is taken"):
                PortReservation(held.port)
    finally:
        held.close()
    with pytest.raises(EngineUnavailable):
        PortReservation(70000)


async def test_keys_are_masked_in_the_log(tmp_path: Path) -> None:
    """C21: a key that the engine itself prints is masked in the shown lines, the file and the command line."""

    def launcher(asked: object, port: int) -> object:
        return launch(port, key="sk-test-123")

    async with supervisor(tmp_path, launcher, api_key="sk-test-123") as control:
        await control.start(Side.STANDARD)
        status = await reaches(control, Side.STANDARD, READY)
    log = (tmp_path / "state" / "logs" / "standard.log").read_text()
    assert "key is •••" in status.log_tail
    assert "key is •••" in log
    assert "sk-test-123" not in log + repr(status)


async def test_a_program_that_cannot_start(tmp_path: Path) -> None:
    """A missing interpreter is one sentence, not a traceback."""

    def launcher(asked: object, port: int) -> object:
        good = launch(port)
        return type(good)(("/nowhere/python", *good.words[1:]), good.environment, port, good.token)

    async with supervisor(tmp_path, launcher) as control:
        await control.start(Side.STANDARD)
        status = await reaches(control, Side.STANDARD, FAILED)
        assert status.error == "The engine program /nowhere/python cannot be started: No such file or directory."


def test_sides_are_checked(tmp_path: Path) -> None:
    """A pair given the wrong way round is refused, since everything else would be mislabelled."""
    from specdemo.engines.supervisor import Supervisor

    with pytest.raises(ConfigError, match="one spec for the standard"):
        Supervisor(spec(Side.SPECULATIVE), spec(Side.STANDARD), state_dir=tmp_path, launcher=FakeEngines(), timing=FAST)
