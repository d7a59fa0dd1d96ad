"""Which vLLM flags a user may pass through, and why the others may not.

Host, port, served name, keys, speculation and everything that runs code or opens the engine to others belong to the
supervisor. The list is an allow-list: a flag that nobody thought of is refused, with the nearest allowed name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from specdemo.engines.speculation import nearest
from specdemo.errors import ConfigError

SWITCH, INT, NUMBER, WORD, JSON = "a switch", "a whole number", "a number", "one word", "a JSON object"

ALLOWED: Mapping[str, str] = MappingProxyType({
    "async-scheduling": SWITCH,
    "attention-backend": WORD,
    "block-size": INT,
    "compilation-config": JSON,
    "cpu-offload-gb": NUMBER,
    "cudagraph-capture-sizes": INT,
    "default-chat-template-kwargs": JSON,
    "disable-cascade-attn": SWITCH,
    "disable-custom-all-reduce": SWITCH,
    "enable-auto-tool-choice": SWITCH,
    "enable-chunked-prefill": SWITCH,
    "enable-expert-parallel": SWITCH,
    "kv-cache-dtype": WORD,
    "language-model-only": SWITCH,
    "limit-mm-per-prompt": JSON,
    "load-format": WORD,
    "long-prefill-token-threshold": INT,
    "max-cudagraph-capture-size": INT,
    "max-logprobs": INT,
    "max-num-batched-tokens": INT,
    "max-num-queued-reqs": INT,
    "max-num-queued-tokens": INT,
    "moe-backend": WORD,
    "optimization-level": INT,
    "performance-mode": WORD,
    "pipeline-parallel-size": INT,
    "prefix-caching-hash-algo": WORD,
    "quantization": WORD,
    "reasoning-parser": WORD,
    "revision": WORD,
    "safetensors-load-strategy": WORD,
    "scheduling-policy": WORD,
    "shutdown-timeout": INT,
    "sse-keep-alive-interval": NUMBER,
    "tokenizer-mode": WORD,
    "tokenizer-revision": WORD,
    "tool-call-parser": WORD,
    "uvicorn-log-level": WORD,
})  # fmt: skip
"""Flag without dashes → the form of its value. Switches may also be written ``no-…``."""

_OWN = "specdemo sets it itself"
_CODE = "it lets the engine run code from outside"
_OPEN = "it opens the engine to others"
_LOGS = "it writes prompts to the log"
REFUSED: Mapping[str, str] = MappingProxyType({
    "host": _OWN, "port": _OWN, "uds": _OWN, "served-model-name": _OWN, "root-path": _OWN, "config": _OWN,
    "generation-config": _OWN, "override-generation-config": _OWN, "enable-per-request-metrics": _OWN,
    "per-request-spec-decode-metrics": _OWN, "enable-prompt-tokens-details": _OWN, "logprobs-mode": _OWN,
    "stream-interval": "1 is needed to see single steps", "disable-log-stats": "acceptance is read from these stats",
    "model": "use the setting `model`", "dtype": "use the setting `dtype`", "seed": "use the setting `seed`",
    "max-model-len": "use the setting `max_model_len`", "max-num-seqs": "use the setting `max_num_seqs`",
    "tensor-parallel-size": "use the setting `tensor_parallel`", "enforce-eager": "use the setting `enforce_eager`",
    "gpu-memory-utilization": "use the setting `memory_share`", "api-key": "use the setting for keys",
    "kv-cache-memory-bytes": "use the setting `kv_cache_bytes`", "device-ids": "use the setting `gpus`",
    "enable-prefix-caching": "use the setting `prefix_caching`",
    "speculative-config": "use the setting `speculation`", "spec-method": "use the setting `speculation`",
    "spec-model": "use the setting `speculation`", "spec-tokens": "use the setting `speculation`",
    "trust-remote-code": _CODE, "middleware": _CODE, "logits-processors": _CODE, "worker-cls": _CODE,
    "worker-extension-cls": _CODE, "scheduler-cls": _CODE, "io-processor-plugin": _CODE, "tool-parser-plugin": _CODE,
    "reasoning-parser-plugin": _CODE, "model-class-overrides": _CODE, "trust-request-chat-template": _CODE,
    "tool-server": _OPEN, "allowed-origins": _OPEN, "allowed-local-media-path": _OPEN, "ssl-keyfile": _OWN,
    "ssl-certfile": _OWN, "enable-request-id-headers": _OWN, "grpc": _OWN, "headless": _OWN, "hf-token": "set HF_TOKEN",
    "enable-log-requests": _LOGS, "enable-log-outputs": _LOGS,
})  # fmt: skip


def parse_flags(given: Mapping[str, object] | Iterable[str]) -> tuple[tuple[str, str], ...]:
    """``["--block-size=32", "enable-chunked-prefill"]`` or a mapping → checked (name, value) pairs for EngineSpec.

    Raises ConfigError with one sentence for a flag that is not allowed or a value of the wrong form.
    """
    pairs: list[tuple[str, str]] = []
    if isinstance(given, Mapping):
        for key, value in given.items():
            if value is False or value is None:
                continue
            text = json.dumps(value) if isinstance(value, dict | list) else "" if value is True else str(value)
            pairs.append((str(key), text))
    else:
        for item in given:
            name, _, value = item.partition("=") if "=" in item else item.strip().partition(" ")
            pairs.append((name, value.strip()))
    return tuple(check_flag(name, value) for name, value in pairs)


def check_flag(name: str, value: str) -> tuple[str, str]:
    """One (name, value) in its canonical spelling; ConfigError if it may not be passed through."""
    flag = name.strip().removeprefix("--").replace("_", "-").lower()
    stem = flag.removeprefix("no-")
    if stem in REFUSED:
        raise ConfigError(f"The engine flag --{flag} cannot be passed through: {REFUSED[stem]}.")
    if stem not in ALLOWED:
        raise ConfigError(f"The engine flag --{flag[:60]} is not on the list of allowed flags.{nearest(stem, ALLOWED)}")
    form = ALLOWED[stem]
    if flag != stem and form != SWITCH:
        raise ConfigError(f"The engine flag --{stem} takes {form}, so it has no --{flag}.")
    if not _fits(value, form):
        raise ConfigError(f"The engine flag --{flag} must be {form}, not {value[:60]!r}.")
    return flag, value


def _fits(value: str, form: str) -> bool:
    match form:
        case "a switch":
            return value == ""
        case "a whole number":
            return re.fullmatch(r"\d{1,12}", value) is not None
        case "a number":
            return re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value) is not None
        case "a JSON object":
            try:
                return isinstance(json.loads(value), dict)
            except (ValueError, RecursionError):
                return False
        case _:
            return re.fullmatch(r"[A-Za-z0-9][\w.:/+-]{0,199}", value) is not None
