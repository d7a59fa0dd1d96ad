"""What the probes saw → findings. Nothing here changes anything."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator
from pathlib import Path

from platformdirs import user_cache_dir, user_data_dir

from specdemo.core.masking import masked
from specdemo.doctor.probes import Machine, Probes
from specdemo.doctor.report import Finding, Report
from specdemo.engines.embedded.build import embedded_folder
from specdemo.engines.embedded.source import SMOLLM2
from specdemo.engines.environment import TESTED, EngineEnvironment, Gpu
from specdemo.engines.models import model_source
from specdemo.errors import ConfigError
from specdemo.settings import Settings

GIB = 1024**3
OLDEST_PYTHON = (3, 11)
NEWEST_TESTED_PYTHON = (3, 13)
TESTED_GRADIO = "6.31."
CPU_ENGINES_BYTES = 7 * GIB
"""Two CPU engines with the embedded model: 3.4 GiB each (proportional set size, 1 GiB of key-value cache included)."""
SHARED_MEMORY_BYTES = 64 * 1024**2
REMOVE_ORPHANS = "`specdemo doctor --remove-orphans`"

# Where specdemo runs from its folder without being installed (a hosted Space), its own metadata is absent.
_NEEDED = (
    "gradio",
    "fastapi",
    "httpx",
    "pydantic",
    "pydantic-settings",
    "rich",
    "typer",
    "uvicorn",
    "psutil",
    "filelock",
)


def examine(settings: Settings | None = None, *, probes: Probes | None = None) -> Report:
    """Look at everything that the settings need (1 s; attached engines: up to 6 s). Never raises for what it finds."""
    settings, probes = settings or Settings(), probes or Probes()
    machine = probes.machine()
    cache = settings.cache_dir or Path(user_cache_dir("specdemo", appauthor=False))
    data = settings.data_dir or Path(user_data_dir("specdemo", appauthor=False))
    findings = [_python(probes), _packages(probes)]
    has_addresses = [side.base_url is not None for side in (settings.standard, settings.speculative)]
    if settings.mode == "attached" or (settings.mode == "auto" and any(has_addresses)):
        findings += _attached(settings, probes)
    elif settings.mode == "replay":
        findings.append(Finding("engines", "ok", "none wanted: the mode is replay, which plays recorded runs"))
    else:
        findings += _managed(settings, probes, machine, cache, data)
    findings += [_disk("data folder", data, probes), _port(settings, probes)]
    return Report(tuple(findings))


def _python(probes: Probes) -> Finding:
    version = probes.python()
    text = ".".join(map(str, version))
    if version[:2] < OLDEST_PYTHON:
        return Finding(
            "python", "fail", f"{text} is too old", "use Python 3.11 or newer: `make setup PYTHON=python3.12`"
        )
    if version[:2] > NEWEST_TESTED_PYTHON:
        return Finding("python", "warn", f"{text} is newer than what was tested", "use Python 3.11 to 3.13")
    return Finding("python", "ok", text)


def _packages(probes: Probes) -> Finding:
    needed = _requirements() or _NEEDED
    missing = [name for name in needed if probes.installed(name) is None]
    if missing:
        return Finding(
            "application packages", "fail", f"missing: {', '.join(missing)}", "`make setup`, or `pip install -e .`"
        )
    gradio = probes.installed("gradio") or ""
    if not gradio.startswith(TESTED_GRADIO):
        return Finding(
            "application packages",
            "warn",
            f"gradio {gradio} instead of {TESTED_GRADIO}*",
            "`make setup`, or `pip install -e .`",
        )
    return Finding("application packages", "ok", f"gradio {gradio}, httpx {probes.installed('httpx')}")


def _requirements() -> tuple[str, ...]:
    """Names of what this installation says that it needs."""
    try:
        lines = importlib.metadata.requires("specdemo") or []
    except importlib.metadata.PackageNotFoundError:
        return ()
    return tuple(re.split(r"[\s<>=!~;\[(]", line)[0] for line in lines if "extra ==" not in line)


def _managed(settings: Settings, probes: Probes, machine: Machine, cache: Path, data: Path) -> Iterator[Finding]:
    gpus = probes.gpus()
    try:
        python = probes.find_engine_python(settings.engine.python)
    except ConfigError as error:
        yield Finding("engine environment", "fail", str(error), "`make setup`, or correct SPECDEMO_ENGINE__PYTHON")
        python = None
    else:
        if python is None:
            yield _no_engine(settings.mode)
    yield from _gpus(gpus)
    if python is not None:
        found = probes.inspect(python)
        yield _environment(found, gpus)
        if found.problem is None and found.device == "cpu":
            yield from _cpu(found, machine, probes)
    yield _shared_memory(machine)
    yield _model(settings, probes, cache)
    yield _disk("cache folder", cache, probes)
    yield _leftovers(data, probes)


def _no_engine(mode: str) -> Finding:
    detail = "none found: recorded runs can be replayed and running engines attached"
    return Finding("engine environment", "fail" if mode == "managed" else "warn", detail, "`make setup`")


def _gpus(gpus: tuple[Gpu, ...]) -> Iterator[Finding]:
    if not gpus:
        yield Finding("GPU", "ok", "no NVIDIA GPU: the CPU profile is used")
    for gpu in gpus:
        detail = f"{gpu.name}, {gpu.free / GIB:.0f} of {gpu.memory / GIB:.0f} GiB free, driver {gpu.driver}"
        busy = gpu.free < gpu.memory / 2
        mend = "`nvidia-smi` shows who uses it; end that, or choose another GPU with SPECDEMO_ENGINE__STANDARD_GPUS"
        yield Finding(f"GPU {gpu.index}", "warn" if busy else "ok", detail, mend if busy else None)


def _environment(found: EngineEnvironment, gpus: tuple[Gpu, ...]) -> Finding:
    name = "engine environment"
    if found.problem is not None or found.flavour is None:
        return Finding(name, "fail", found.problem or "it has no vLLM", "`make setup`")
    detail = f"{found.flavour} {found.version}, torch {found.torch}, Python {found.python_version}, {found.python}"
    if found.device == "cuda" and not gpus:
        return Finding(name, "fail", f"{detail}: made for a GPU, and there is none", "`make setup ENGINE=cpu`")
    if found.device == "cpu" and gpus:
        return Finding(name, "warn", f"{detail}: made for the CPU, and there is a GPU", "`make setup ENGINE=gpu`")
    if not found.tested:
        wanted = TESTED[found.flavour]
        return Finding(name, "warn", f"{detail}: tested with {wanted}", "`make setup` installs the tested version")
    missing = [package for package in ("gguf", "accelerate") if getattr(found, package) is None]
    if missing:
        detail = f"{detail}: without {', '.join(missing)} the embedded model cannot be converted"
        return Finding(name, "warn", detail, "`make setup`")
    return Finding(name, "ok", detail)


def _cpu(found: EngineEnvironment, machine: Machine, probes: Probes) -> Iterator[Finding]:
    cores = f"{machine.cores} usable {'core' if machine.cores == 1 else 'cores'}"
    if machine.architecture == "x86_64" and machine.cpu_flags and "avx2" not in machine.cpu_flags:
        yield Finding(
            "processor", "fail", f"{cores}, without AVX2, which vLLM needs", "use another machine, or attach engines"
        )
    elif machine.cores < 2:
        yield Finding(
            "processor", "warn", f"{cores}: both engines share it, so a race is slow", "give it two cores or more"
        )
    else:
        wide = next((flag for flag in ("amx_bf16", "avx512f", "avx2") if flag in machine.cpu_flags), None)
        yield Finding("processor", "ok", cores + (f", {wide}" if wide else ""))
    memory = f"{machine.available / GIB:.1f} of {machine.memory / GIB:.1f} GiB free"
    if machine.available < CPU_ENGINES_BYTES:
        need = f"two CPU engines with the embedded model take about {CPU_ENGINES_BYTES / GIB:.0f} GiB"
        yield Finding("memory", "warn", f"{memory}; {need}", "end other programs, or use a machine with more memory")
    else:
        yield Finding("memory", "ok", memory)
    yield _compiler(found, probes)
    if machine.architecture == "x86_64":
        yield (
            Finding("OpenMP", "ok", str(found.libiomp5))
            if found.libiomp5
            else Finding("OpenMP", "warn", "libiomp5.so is missing: the engines are slower without it", "`make setup`")
        )


def _compiler(found: EngineEnvironment, probes: Probes) -> Finding:
    """Torch compiles a kernel for the first request with log-probabilities; where it cannot, the engine ends."""
    name = "C++ compiler"
    compiler = probes.which(probes.environ("CXX") or "g++")
    if compiler is None:
        detail = "none: the first request with log-probabilities would end the engine"
        return Finding(name, "fail", detail, "install one (Debian, Ubuntu: `apt-get install g++`), or set CXX")
    if not found.headers:
        detail = f"{compiler}, but Python.h is missing: the first request with log-probabilities would end the engine"
        return Finding(name, "fail", detail, "install Python's headers (Debian, Ubuntu: `apt-get install python3-dev`)")
    return Finding(name, "ok", compiler)


def _shared_memory(machine: Machine) -> Finding:
    if machine.shared_memory is None:
        return Finding("shared memory", "ok", "not used on this system")
    detail = f"{machine.shared_memory / 1024**2:.0f} MiB free in /dev/shm"
    if machine.shared_memory < SHARED_MEMORY_BYTES:
        return Finding("shared memory", "warn", detail, "start the container with `--shm-size=2g` or `--ipc=host`")
    return Finding("shared memory", "ok", detail)


def _model(settings: Settings, probes: Probes, cache: Path) -> Finding:
    try:
        source = model_source(settings.engine.model)
    except ConfigError as error:
        return Finding("model", "fail", str(error), "correct SPECDEMO_ENGINE__MODEL")
    if source.kind == "folder":
        return Finding("model", "ok", f"folder {source.reference}")
    if source.kind == "hub":
        return _hub_model(source.reference, probes)
    folder = embedded_folder(cache, SMOLLM2)
    state = probes.embedded(folder)
    if state.whole:
        return Finding("model", "ok", f"{SMOLLM2.title} (embedded) in {folder}")
    if state.state == "damaged":
        detail = f"the cached {SMOLLM2.title} is damaged: {state.detail}"
        return Finding("model", "warn", detail, "nothing: it is built again at the next start, or now by `make setup`")
    detail = f"{SMOLLM2.title} (embedded) is not cached yet"
    return Finding("model", "warn", detail, "`make setup` fetches it (89 MiB), and so does the first start")


def _hub_model(name: str, probes: Probes) -> Finding:
    home = Path(probes.environ("HF_HOME") or Path.home() / ".cache" / "huggingface")
    hub = Path(probes.environ("HF_HUB_CACHE") or home / "hub")
    if (hub / f"models--{name.replace('/', '--')}" / "snapshots").is_dir():
        return Finding("model", "ok", f"{name} (hub), downloaded before")
    gated = name.startswith(("meta-llama/", "google/gemma")) and not probes.environ("HF_TOKEN")
    if gated and not (home / "token").is_file():
        mend = "accept its licence on the model's page, then set HF_TOKEN, or use another model"
        return Finding("model", "warn", f"{name} (hub) asks for a licence, and no Hugging Face token is set", mend)
    return Finding("model", "ok", f"{name} (hub): vLLM downloads it at the first start")


def _disk(name: str, folder: Path, probes: Probes) -> Finding:
    try:
        free, writable = probes.disk(folder)
    except OSError as error:
        return Finding(name, "fail", f"{folder}: {error.strerror}", "set another folder")
    setting = "SPECDEMO_CACHE_DIR" if name.startswith("cache") else "SPECDEMO_DATA_DIR"
    if not writable:
        return Finding(name, "fail", f"{folder} cannot be written", f"make it writable, or set {setting}")
    detail = f"{folder}, {free / GIB:.1f} GiB free"
    if free < GIB:
        return Finding(name, "warn", detail, f"free some disk, or set {setting} to another one")
    return Finding(name, "ok", detail)


def _leftovers(data: Path, probes: Probes) -> Finding:
    found = probes.leftovers(data / "engines")
    if found is None:
        return Finding("earlier engines", "ok", "a specdemo is running and owns its engines")
    if not found:
        return Finding("earlier engines", "ok", "none left over")
    return Finding("earlier engines", "warn", "; ".join(str(orphan) for orphan in found), REMOVE_ORPHANS)


def _port(settings: Settings, probes: Probes) -> Finding:
    host, port = settings.server.host, settings.server.port
    try:
        user = probes.port_user(host, port) if port else None
    except OSError as error:
        detail = f"nothing can listen on {host}:{port}: {(error.strerror or 'the system refuses').lower()}"
        return Finding("port", "fail", detail, "correct SPECDEMO_SERVER__HOST, or set another SPECDEMO_SERVER__PORT")
    if user is None:
        return Finding("port", "ok", f"{host}:{port} is free" if port else "any free one is taken")
    return Finding(
        "port", "warn", f"{host}:{port} is used by {user}", "end that, or set SPECDEMO_SERVER__PORT to another one"
    )


def _attached(settings: Settings, probes: Probes) -> Iterator[Finding]:
    for side, engine in (("standard", settings.standard), ("speculative", settings.speculative)):
        name, variable = f"{side} engine", f"SPECDEMO_{side.upper()}__BASE_URL"
        if engine.base_url is None:
            yield Finding(name, "fail", "no address is set", f"set {variable}, or give --{side}-url")
            continue
        answer = probes.attached(engine)
        shown = masked(engine.base_url, "…")
        if answer.problem is not None:
            mend = f"start that engine, or correct {variable} (and its key and certificate file)"
            yield Finding(name, "fail", f"{shown}: {answer.problem}", mend)
        elif engine.model is not None and engine.model not in answer.models:
            listed = ", ".join(answer.models) or "no model"
            mend = f"correct SPECDEMO_{side.upper()}__MODEL"
            yield Finding(name, "fail", f"{shown} has {listed}, not {engine.model}", mend)
        else:
            version = f"vLLM {answer.version}" if answer.version else "version unknown"
            yield Finding(name, "ok", f"{shown}: {', '.join(answer.models) or 'no model'}, {version}")
