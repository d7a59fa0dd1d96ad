"""Where a model comes from: "embedded", a hub id, or a local folder."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from specdemo.engines.embedded.build import (
    Progress,
    default_cache_dir,
    embedded_folder,
    ensure_embedded_model,
    silent,
)
from specdemo.engines.embedded.source import SMOLLM2
from specdemo.errors import ConfigError

__all__ = [
    "EMBEDDED",
    "ModelSource",
    "check_folder",
    "default_cache_dir",
    "embedded_folder",
    "ensure_embedded_model",
    "model_source",
    "resolve_model",
]

EMBEDDED: Literal["embedded"] = "embedded"

# Hugging Face: one optional owner, then a name; letters, digits, dot, dash, underscore; at most 96 characters.
_HUB_PART = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_HUB_ID = re.compile(rf"(?:{_HUB_PART}/)?{_HUB_PART}")
_WEIGHTS = ("*.safetensors", "*.bin", "*.pt", "*.pth", "*.gguf")
_TOKENIZERS = (
    "tokenizer.json",
    "tokenizer.model",
    "vocab.json",
    "tekken.json",
    "tiktoken.model",
    "*.tiktoken",
    "spiece.model",
)
_INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")


@dataclass(frozen=True, slots=True)
class ModelSource:
    """``reference`` is what vLLM's --model gets; ``title`` is for people, ``served_name`` for requests."""

    kind: Literal["embedded", "folder", "hub"]
    reference: str
    title: str
    served_name: str


def model_source(name: str) -> ModelSource:
    """Which kind ``name`` is, checked as far as that needs no download; "embedded" keeps an empty reference.

    Raises ConfigError for a folder that lacks files, and for what can be neither a folder nor a hub id.
    """
    text = name.strip()
    if text.lower() == EMBEDDED:
        return ModelSource(EMBEDDED, "", SMOLLM2.title, SMOLLM2.name)
    folder = _as_folder(text)
    if folder is not None:
        check_folder(folder)
        path = folder.resolve()
        return ModelSource("folder", str(path), path.name, path.name)
    if len(text) > 96 or not _HUB_ID.fullmatch(text) or ".." in text or "--" in text:
        raise ConfigError(
            f'"{text[:100]}" is neither "embedded", nor a folder on this machine, nor a hub id such as '
            "Qwen/Qwen2.5-1.5B-Instruct: correct the model's name."
        )
    return ModelSource("hub", text, text, text)


def resolve_model(
    name: str,
    *,
    engine_python: Path | None,
    cache_dir: Path | None = None,
    progress: Progress = silent,
    ensure: Callable[..., Path] = ensure_embedded_model,
) -> ModelSource:
    """``model_source`` with the embedded model built if need be (blocking, see ensure_embedded_model).

    Raises ConfigError or SetupError.
    """
    source = model_source(name)
    if source.kind != EMBEDDED:
        return source
    if engine_python is None:
        raise ConfigError(
            "The embedded model needs the engine environment: run `make setup`, or set SPECDEMO_ENGINE_PYTHON."
        )
    folder = ensure(cache_dir, engine_python=engine_python, progress=progress)
    return ModelSource(EMBEDDED, str(folder), source.title, source.served_name)


def _as_folder(text: str) -> Path | None:
    """``text`` as a path if it looks like one or names an existing folder."""
    looks_local = text.startswith(("/", "./", "../", "~")) or text in {".", ".."}
    path = Path(text).expanduser() if text else None
    if path is not None and (looks_local or path.is_dir()):
        return path
    return None


def check_folder(folder: Path) -> None:
    """A model folder has a config, all its weights and a tokenizer; ConfigError names the first thing missing."""
    if not folder.is_dir():
        raise ConfigError(f"There is no model folder {folder}: correct the path, or use a hub id.")
    config = folder / "config.json"
    if not config.is_file():
        raise ConfigError(f"The model folder {folder} has no config.json: it is not a Hugging Face model folder.")
    try:
        known = isinstance(json.loads(config.read_text(encoding="utf-8")), dict)
    except (OSError, ValueError):
        known = False
    if not known:
        raise ConfigError(f"{config} cannot be read as JSON: copy the model folder again.")
    missing = _missing_shards(folder)
    if missing:
        raise ConfigError(f"The model folder {folder} lacks the weight file {missing[0]}: copy or download it again.")
    if not _any_file(folder, _WEIGHTS):
        raise ConfigError(f"The model folder {folder} has no weights (*.safetensors): copy or download it again.")
    if not _any_file(folder, _TOKENIZERS):
        raise ConfigError(f"The model folder {folder} has no tokenizer (tokenizer.json): copy or download it again.")


def _any_file(folder: Path, patterns: tuple[str, ...]) -> bool:
    # An interrupted download leaves empty files and pointers of a few bytes behind; an empty one is as good as none.
    return any(path.is_file() and path.stat().st_size > 0 for pattern in patterns for path in folder.glob(pattern))


def _missing_shards(folder: Path) -> list[str]:
    for name in _INDEXES:
        index = folder / name
        if not index.is_file():
            continue
        try:
            shards = {str(shard) for shard in json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise ConfigError(f"{index} cannot be read: copy the model folder again.") from None
        return sorted(shard for shard in shards if not _any_file(folder, (re.sub(r"([*?[])", r"[\1]", shard),)))
    return []
