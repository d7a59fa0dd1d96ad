"""Where the texts of single tokens come from: the model's own tokenizer file, if it lies on this machine."""

from __future__ import annotations

import logging
import os
from functools import lru_cache
from pathlib import Path

from specdemo.engines.token_text import TokenText, load
from specdemo.errors import SetupError

_log = logging.getLogger(__name__)


@lru_cache(maxsize=4)
def token_texts(model: str) -> TokenText | None:
    """For a model folder, or a hub id whose files are in the hub's cache; None without them, nothing is fetched.

    Without it a burst's tokens are shown as one piece; no number depends on it.
    """
    if not model:
        return None
    try:
        return load(Path(model)) if Path(model).is_dir() else _cached(model)
    except (SetupError, OSError) as error:
        _log.warning("single tokens of a burst cannot be told apart: %s", error)
        return None


def _cached(model: str) -> TokenText | None:
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    hub = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    found = sorted((hub / f"models--{model.replace('/', '--')}" / "snapshots").glob("*/tokenizer.json"))
    return load(found[-1]) if found else None
