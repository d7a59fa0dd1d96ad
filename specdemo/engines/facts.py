"""What an engine says of itself, put together from its routes and, for a managed one, from what it was started with."""

from __future__ import annotations

from typing import Any

from specdemo.core.engine import EngineFacts, EngineSpec
from specdemo.core.events import Side
from specdemo.engines.url import BaseUrl
from specdemo.engines.wire import fields
from specdemo.engines.wire.exposition import Exposition

_CACHE_SETTINGS = {
    "cache_dtype": "kv_cache_dtype",
    "enable_prefix_caching": "prefix_caching",
    "block_size": "block_size",
}
_MODEL_SETTINGS = {"dtype": "dtype", "quantization": "quantization", "seed": "seed", "enforce_eager": "enforce_eager"}
_LOSSY = ("synthetic", "fly")


def facts(
    side: Side,
    base: BaseUrl,
    entry: dict[str, Any],
    version: str | None,
    scrape: Exposition | None,
    info: Any,
    spec: EngineSpec | None,
) -> EngineFacts:
    """``entry`` is the model's line in /v1/models, ``info`` the body of /server_info (a developer route) or None."""
    model = str(entry["id"])
    config = fields.mapping(fields.mapping(info).get("vllm_config"))
    speculative = fields.mapping(config.get("speculative_config"))
    settings = _settings(model, scrape, config)
    said = scrape.speculating(model) if scrape is not None else None
    if said is None and spec is not None:
        said = spec.speculation is not None
    method = fields.text(speculative.get("method")) or None
    k = fields.count(speculative.get("num_speculative_tokens"))
    lossy = next((mode for mode in _LOSSY if speculative.get("rejection_sample_method") == mode), None)
    device, device_key = _device(base, version, spec)
    if spec is not None and spec.speculation is not None:
        method, k, lossy = spec.speculation.method, spec.speculation.k, spec.speculation.lossy
    if k is None and scrape is not None:
        k = scrape.draft_limit(model)
    dtype = settings.get("dtype") or (spec.dtype if spec is not None and spec.dtype != "auto" else None)
    return EngineFacts(
        side, model, version, fields.count(entry.get("max_model_len")), said, method, k, lossy, device, device_key,
        dtype, fields.text(entry.get("root")) or None, tuple(sorted(settings.items())), spec is not None,
    )  # fmt: skip


def _settings(model: str, scrape: Exposition | None, config: dict[str, Any]) -> dict[str, str]:
    """Comparable settings as far as the engine publishes them."""
    found: dict[str, str] = {}
    if scrape is not None:
        published = scrape.settings(model)
        found |= {ours: published[theirs] for theirs, ours in _CACHE_SETTINGS.items() if theirs in published}
    model_config = fields.mapping(config.get("model_config"))
    for theirs, ours in _MODEL_SETTINGS.items():
        value = model_config.get(theirs)
        if type(value) in (str, int, bool):
            found[ours] = str(value).removeprefix("torch.")
    return found


def _device(base: BaseUrl, version: str | None, spec: EngineSpec | None) -> tuple[str | None, str | None]:
    """The device, and a key that is equal for engines that share it; None where it cannot be known."""
    host = "here" if base.loopback else base.host
    if spec is not None:
        part = (spec.cores or "all") if spec.device == "cpu" else (spec.gpus or "0")
        return spec.device, f"{spec.device}:{part}@{host}"
    if version is not None and "+cpu" in version:
        return "cpu", f"cpu:all@{host}"
    return None, None
