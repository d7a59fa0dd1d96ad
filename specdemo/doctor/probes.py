"""Looks at the outside world. Each is a function in ``Probes``, so that a test can show the checks any machine."""

from __future__ import annotations

import asyncio
import errno
import importlib.metadata
import os
import platform
import shutil
import socket
import ssl
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from specdemo.engines import environment, orphans
from specdemo.engines.cores import usable_cores
from specdemo.engines.embedded import cache
from specdemo.engines.environment import EngineEnvironment, Gpu
from specdemo.engines.ledger import Ledger
from specdemo.engines.orphans import Orphan
from specdemo.engines.probe import Probe
from specdemo.engines.url import parse_base_url
from specdemo.errors import ConfigError
from specdemo.settings.schema import Attached


@dataclass(frozen=True, slots=True)
class Machine:
    """Sizes in bytes. ``cpu_flags`` are Linux's names of the processor's abilities, empty where unknown."""

    system: str
    architecture: str
    cores: int
    memory: int
    available: int
    shared_memory: int | None
    cpu_flags: frozenset[str]


@dataclass(frozen=True, slots=True)
class AttachedEngine:
    """What an address answered. ``problem`` is a sentence, None when it is an engine."""

    problem: str | None
    models: tuple[str, ...] = ()
    version: str | None = None


def machine() -> Machine:
    """This machine, as far as this process may use it."""
    memory = psutil.virtual_memory()
    shared = Path("/dev/shm")  # noqa: S108 - its size is asked for, nothing is put there
    return Machine(
        system=platform.system(),
        architecture=platform.machine(),
        cores=len(usable_cores()),
        memory=memory.total,
        available=memory.available,
        shared_memory=shutil.disk_usage(shared).free if shared.is_dir() else None,
        cpu_flags=_cpu_flags(),
    )


def _cpu_flags() -> frozenset[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    flags = (line.partition(":")[2].split() for line in lines if line.startswith(("flags", "Features")))
    return frozenset(next(flags, ()))


def installed(name: str) -> str | None:
    """Version of an installed distribution."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def disk(folder: Path) -> tuple[int, bool]:
    """(free bytes, writable) of a folder, or of the nearest one above it that exists."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free, os.access(folder, os.W_OK)


def port_user(host: str, port: int) -> str | None:
    """Who has the port: None when it is free, else a program's name, or "another program".

    Raises OSError where nothing could listen there at all: no such host here, or no right to the port.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except (UnicodeError, TypeError):  # a label of over 63 letters
            raise OSError(errno.EINVAL, "this is no host name") from None
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return _listener(port)
    return None


def _listener(port: int) -> str:
    try:
        for connection in psutil.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr[1:2] == (port,) and connection.pid:
                return f"{psutil.Process(connection.pid).name()} (process {connection.pid})"
    except (psutil.Error, OSError):
        pass  # other users' sockets are not ours to see
    return "another program"


def leftovers(state_dir: Path) -> tuple[Orphan, ...] | None:
    """Engines of a crashed run; None while a running specdemo owns the recorded ones."""
    if not state_dir.is_dir():
        return ()
    ledger = Ledger(state_dir)
    try:
        ledger.acquire()
    except ConfigError:
        return None
    except OSError:
        return ()
    try:
        return orphans.find(state_dir)
    finally:
        ledger.release()


def attached(engine: Attached) -> AttachedEngine:
    """Ask an address three short questions. Blocking; never raises."""
    try:
        base = parse_base_url(engine.base_url or "")
        verify = ssl.create_default_context(cafile=str(engine.ca_file)) if engine.ca_file else True
    except ConfigError as error:
        return AttachedEngine(str(error))
    except (OSError, ssl.SSLError):
        return AttachedEngine(f"The certificate file {engine.ca_file} cannot be read.")
    key = engine.api_key.get_secret_value() if engine.api_key else None
    if key and not (key.isascii() and key.isprintable()):
        return AttachedEngine("The API key contains characters that cannot be sent; check it for line breaks.")

    async def ask() -> AttachedEngine:
        # By the same way as a run's requests: with the address's login, through the environment's proxy.
        probe = Probe(base.root if key else base.with_login, api_key=key, verify=verify, trust_env=not base.loopback)
        try:
            health, models, version = await asyncio.gather(probe.health(), probe.models(), probe.version())
        finally:
            await probe.aclose()
        if health == "silent":
            return AttachedEngine("Nobody answers there.")
        if models is None:
            return AttachedEngine(
                "It answers, but /v1/models is refused or is not that of an OpenAI-compatible server."
            )
        if health == "dead":
            return AttachedEngine("It answers, but says that it is not healthy.", models, version)
        return AttachedEngine(None, models, version)

    try:
        return asyncio.run(ask())
    except Exception as error:  # noqa: BLE001 - such as a proxy variable that cannot be used; its text may hold a password
        return AttachedEngine(f"It could not be asked ({type(error).__name__}); check the proxy variables.")


@dataclass(frozen=True, slots=True)
class Probes:
    """Everything that the checks want to know, injectable."""

    python: Callable[[], tuple[int, ...]] = lambda: sys.version_info[:3]
    installed: Callable[[str], str | None] = installed
    machine: Callable[[], Machine] = machine
    find_engine_python: Callable[[Path | None], Path | None] = environment.find_engine_python
    inspect: Callable[[Path], EngineEnvironment] = environment.inspect
    gpus: Callable[[], tuple[Gpu, ...]] = environment.gpus
    disk: Callable[[Path], tuple[int, bool]] = disk
    port_user: Callable[[str, int], str | None] = port_user
    which: Callable[[str], str | None] = shutil.which
    embedded: Callable[[Path], cache.CacheState] = cache.check
    leftovers: Callable[[Path], tuple[Orphan, ...] | None] = leftovers
    attached: Callable[[Attached], AttachedEngine] = attached
    environ: Callable[[str], str | None] = os.environ.get
