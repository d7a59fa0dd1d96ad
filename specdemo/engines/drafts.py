"""Whether a speculation can work with this target, device and vLLM version, said before anything is loaded.

Reads ``config.json`` of local folders only; a hub id is left to vLLM, whose last error line is shown if it fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from specdemo.core.engine import Device, EngineSpec, Speculation
from specdemo.engines.methods import METHODS, ONLY_FROM
from specdemo.engines.models import check_folder
from specdemo.engines.speculation import as_config
from specdemo.errors import ConfigError

Version = tuple[int, int]
"""vLLM's major and minor number."""

_MTP_KEYS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "n_predict", "num_mtp_layers")
_TEXT_KEYS = ("text_config", "llm_config", "language_config", "thinker_config", "language_model_config", "lm_config")
_DEEPEST = 4  # thinker_config.text_config is three levels deep; a hostile file may go on
_CONFIG_LIMIT = 4_000_000  # bytes; a config.json is some kilobytes
_V1_ONLY = ("suffix",)


def version_pair(text: str | None) -> Version | None:
    """``0.32.0+cpu`` → (0, 32); None where there is no such number."""
    found = re.match(r"\D{0,3}(\d+)\.(\d+)", text or "")
    return (int(found[1]), int(found[2])) if found else None


def local_folder(model: str) -> Path | None:
    """The folder that ``model`` names, None for a hub id. A path that is written as one must exist: ConfigError."""
    path = Path(model).expanduser()
    if model and path.is_dir():
        return path
    if model.startswith(("/", "./", "../", "~")) or model.endswith("/") or "\\" in model:
        raise ConfigError(f"There is no model folder {model}; give a folder that exists, a hub id, or `embedded`.")
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?", model):
        raise ConfigError(f"{model[:120]!r} is neither a model folder that exists nor a hub id (`owner/name`).")
    return None


def read_config(model: str) -> dict[str, Any] | None:
    """``config.json`` of a local model; None for a hub id. ConfigError where a folder has no readable one."""
    folder = local_folder(model)
    if folder is None:
        return None
    path = folder / "config.json"
    try:
        if path.stat().st_size > _CONFIG_LIMIT:
            raise ConfigError(f"The model folder {folder} has a config.json too large to be one.")
        config = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"The model folder {folder} has no config.json, so vLLM cannot load it.") from None
    except (OSError, ValueError, RecursionError):
        raise ConfigError(f"config.json in the model folder {folder} cannot be read as JSON.") from None
    if not isinstance(config, dict):
        raise ConfigError(f"config.json in the model folder {folder} is not a JSON object.")
    return config


def vocabulary_size(config: Mapping[str, Any]) -> int | None:
    """``vocab_size``, which multimodal models keep in the configuration of their language model."""
    for place in _text_configs(config):
        size = place.get("vocab_size")
        if isinstance(size, int) and not isinstance(size, bool) and size > 0:
            return size
    return None


def _text_configs(config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The configuration itself, then those of its language model, outermost first."""
    level: list[Mapping[str, Any]] = [config]
    for _ in range(_DEEPEST):
        yield from level
        inner = [place.get(key) for place in level for key in _TEXT_KEYS]
        level = [found for found in inner if isinstance(found, Mapping)]


def check_speculation(
    speculation: Speculation | None,
    *,
    target: str,
    device: Device,
    version: str | None = None,
    tensor_parallel: int = 1,
    has_package: Callable[[str], bool] | None = None,
) -> None:
    """Raise ConfigError with one sentence if vLLM would refuse this pairing.

    ``version`` is the engine environment's vLLM, None if unknown (then version rules are skipped).
    ``has_package`` says whether a distribution is installed beside the engine.
    """
    if speculation is None:
        return
    config, pair, method = as_config(speculation), version_pair(version), METHODS[speculation.method]
    name = speculation.method
    _check_version(name, config, pair, version)
    if method.device is not None and device != method.device:
        instead = "; use `ngram`" if name == "ngram_gpu" else ""
        raise ConfigError(f"Speculation method `{name}` does not run on the CPU{instead}.")
    if speculation.lossy and device == "cpu":
        raise ConfigError(f"`rejection_sample_method` `{speculation.lossy}` does not run on the CPU.")
    if config.get("enable_adaptive_verification") and device == "cpu":
        raise ConfigError("`enable_adaptive_verification` does not run on the CPU.")
    if name == "suffix" and has_package is not None and not has_package("arctic-inference"):
        raise ConfigError(
            "Speculation method `suffix` needs the package arctic-inference==0.1.1 in the engine environment."
        )
    draft_tp = config.get("draft_tensor_parallel_size")
    if draft_tp is not None and draft_tp not in (1, tensor_parallel):
        raise ConfigError(
            f"`draft_tensor_parallel_size` is {draft_tp}; it must be 1 or the target's {tensor_parallel}."
        )
    if draft_tp == 1 and tensor_parallel > 1 and name == "draft_model" and runner(speculation, device) == "V1":
        raise ConfigError("`draft_tensor_parallel_size` must be the target's here; leave it out.")
    _check_target(speculation, config, target)


def _check_version(name: str, config: Mapping[str, Any], pair: Version | None, version: str | None) -> None:
    if pair is None:
        return
    until = METHODS[name].until
    if until is not None and pair >= until:
        raise ConfigError(f"Speculation method `{name}` was removed in vLLM {until[0]}.{until[1]}; this is {version}.")
    for key in config:
        first = ONLY_FROM.get(key)
        if first is not None and pair < first:
            raise ConfigError(f"Speculation key `{key}` needs vLLM {first[0]}.{first[1]} or later; this is {version}.")
    if config.get("rejection_sample_method") == "fly" and pair < (0, 33):
        raise ConfigError(f"`rejection_sample_method` `fly` needs vLLM 0.33 or later; this is {version}.")


def _check_target(speculation: Speculation, config: Mapping[str, Any], target: str) -> None:
    target_config = read_config(target)
    if speculation.draft_model is not None:
        draft_config = read_config(speculation.draft_model)
        if speculation.method == "draft_model" and not config.get("use_heterogeneous_vocab"):
            _check_vocabulary(target_config, draft_config)
    if speculation.method != "mtp" or "model" in config or target_config is None:
        return
    if not any(place.get(key) for place in _text_configs(target_config) for key in _MTP_KEYS):
        raise ConfigError(
            "Speculation method `mtp` needs a checkpoint with multi-token-prediction layers; this model has none."
        )


def _check_vocabulary(target: Mapping[str, Any] | None, draft: Mapping[str, Any] | None) -> None:
    sizes = [vocabulary_size(config) if config is not None else None for config in (target, draft)]
    if None not in sizes and sizes[0] != sizes[1]:
        raise ConfigError(
            f"The draft's vocabulary has {sizes[1]} entries, the target's {sizes[0]}: "
            "vLLM needs equal ones. Take a draft of the same family, set `use_heterogeneous_vocab`, or use `ngram`."
        )


def runner(speculation: Speculation | None, device: Device) -> str:
    """Which of vLLM's model runners a speculative engine will use: ``V1`` or ``V2``.

    It matters for reading acceptance: with n-gram, V1 drafts only what it matched, V2 always drafts k tokens and fills
    up with the last one, so rates are not comparable between the two (tokens per step are).
    """
    if device == "cpu":
        return "V1"
    if speculation is not None:
        config = as_config(speculation)
        parallel = config.get("parallel_drafting") and speculation.method not in ("dflash", "dspark")
        if speculation.method in _V1_ONLY or parallel or config.get("use_heterogeneous_vocab"):
            return "V1"
    return "V2"


def check_spec(
    spec: EngineSpec, *, version: str | None = None, has_package: Callable[[str], bool] | None = None
) -> None:
    """All checks of one engine before its launch: model files and speculation."""
    folder = local_folder(spec.model)
    if folder is not None:
        check_folder(folder)
    check_speculation(
        spec.speculation,
        target=spec.model,
        device=spec.device,
        version=version,
        tensor_parallel=spec.tensor_parallel,
        has_package=has_package,
    )


def package_beside(python: Path, name: str) -> bool:
    """Whether distribution ``name`` is installed in the environment of this interpreter (looked up in its folders)."""
    stem = re.sub(r"[-_.]+", "_", name).lower()
    for site in sorted(python.parent.parent.glob("lib/python3*/site-packages")):
        for found in site.glob("*.dist-info"):
            if re.sub(r"[-_.]+", "_", found.name.split("-", 1)[0]).lower() == stem:
                return True
    return False
