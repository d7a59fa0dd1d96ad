"""How much memory a pair will need, checked before anything is loaded. Sizes in bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from specdemo.core.engine import EngineSpec
from specdemo.engines.drafts import local_folder, read_config
from specdemo.engines.environment import Gpu
from specdemo.errors import ConfigError

GIB = 2**30
_CARD_LIMIT = 0.95  # of a card, for all engines together: drivers and contexts need the rest
_LEAST_SHARE = 0.1  # with less of a card there is nothing to try
_OVERHEAD = 1.5 * GIB  # CUDA context, activations, graphs; an estimate that only decides about a warning beforehand
_ROUND = 2**26


def kv_bytes_per_token(config: dict[str, Any], *, element_bytes: int = 4) -> int | None:
    """Bytes of key and value for one token; None where config.json does not say."""
    try:
        heads = int(config.get("num_key_value_heads") or config["num_attention_heads"])
        width = int(config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"])
        return 2 * int(config["num_hidden_layers"]) * heads * width * element_bytes
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return None


def kv_cache_bytes(spec: EngineSpec) -> int:
    """A cache for the CPU engine: two full-length requests, at least 0.5 GiB; 2 GiB where the model is not at hand."""
    config = read_config(spec.model)
    per_token = kv_bytes_per_token(config, element_bytes=4 if spec.dtype == "float32" else 2) if config else None
    if per_token is None or spec.max_model_len is None:
        return 2 * GIB
    wanted = max(GIB // 2, 2 * per_token * spec.max_model_len)
    return math.ceil(wanted / _ROUND) * _ROUND


def weight_bytes(model: str) -> int | None:
    """Size of a local model's weight files; None for a hub id."""
    folder = local_folder(model)
    if folder is None:
        return None
    return sum(path.stat().st_size for path in folder.glob("*.safetensors")) or None


_STORED = {"float32": 4, "float16": 2, "bfloat16": 2, "float64": 8}


def draft_bytes(spec: EngineSpec) -> int | None:
    """Weights that a draft model adds in memory, in the engine's own number format: an estimate from its files.

    0 without a draft model, None where the files are not at hand (a hub id).
    """
    draft = spec.speculation.draft_model if spec.speculation is not None else None
    if draft is None:
        return 0
    size, config = weight_bytes(draft), read_config(draft)
    if size is None or config is None:
        return size
    stored = _STORED.get(str(config.get("dtype") or config.get("torch_dtype")))
    used = _STORED.get(spec.dtype)
    return size * used // stored if stored and used else size


def check_shares(standard: EngineSpec, speculative: EngineSpec, gpus: Sequence[Gpu]) -> None:
    """Whether the memory shares fit the cards. Raises ConfigError with a smaller share to try.

    vLLM takes its share of the whole card, whatever else is on it, and fails late when that is not free.
    """
    for gpu in gpus:
        users = [spec for spec in (standard, speculative) if str(gpu.index) in (spec.gpus or "0").split(",")]
        shares = [spec.memory_share or 0.9 for spec in users]
        if not users:
            continue
        if sum(shares) > _CARD_LIMIT:
            each = math.floor(_CARD_LIMIT / len(users) * 100) / 100
            raise ConfigError(
                f"Both engines together ask for {sum(shares):.2f} of GPU {gpu.index}; "
                f"set the memory share to {each:.2f} or less each, or give each engine its own card."
            )
        if sum(shares) * gpu.memory > gpu.free:
            each = math.floor((gpu.free / gpu.memory - 0.02) / len(users) * 100) / 100
            advice = f"set the memory share to {each:.2f} each, or free" if each >= _LEAST_SHARE else "free"
            raise ConfigError(
                f"GPU {gpu.index} has {gpu.free / GIB:.1f} of {gpu.memory / GIB:.1f} GiB free, "
                f"but {sum(shares):.2f} of it was asked for; {advice} the card."
            )
        for spec, share in zip(users, shares, strict=True):
            _check_weights(spec, share, gpu)


def _check_weights(spec: EngineSpec, share: float, gpu: Gpu) -> None:
    draft = spec.speculation.draft_model if spec.speculation is not None else None
    sizes = [weight_bytes(model) for model in (spec.model, draft) if model is not None]
    known = sum(size for size in sizes if size is not None) / spec.tensor_parallel
    if known and known + _OVERHEAD > share * gpu.memory:
        needed = math.ceil((known + _OVERHEAD) / gpu.memory * 100) / 100
        larger = f"a share of about {needed:.2f}, " if needed <= _CARD_LIMIT else ""
        raise ConfigError(
            f"The {spec.side.value} engine's weights ({known / GIB:.1f} GiB a card) do not fit into {share:.2f} of "
            f"GPU {gpu.index} ({gpu.memory / GIB:.1f} GiB); it needs {larger}more cards, "
            "or a smaller model."
        )
