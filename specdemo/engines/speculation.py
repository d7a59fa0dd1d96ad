"""vLLM's ``speculative_config`` as a preset name, JSON text or mapping → a validated :class:`Speculation`.

vLLM reports a wrong configuration as a traceback half a minute into loading. What can be known before a launch is
checked here, one sentence per mistake. What depends on the target model, the device or vLLM's version is checked in
``drafts.py``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from specdemo.core.engine import Speculation
from specdemo.engines.methods import (
    BOOL,
    INT,
    KEYS,
    LIST,
    LOSSY,
    METHODS,
    NUM,
    REFUSED_METHODS,
    REJECTION,
)
from specdemo.errors import ConfigError

K_LIMITS = (1, 32)
"""Draft tokens per step that specdemo allows; vLLM itself fails above 128 in the middle of a request."""

PRESETS: Mapping[str, Mapping[str, Any] | None] = MappingProxyType({
    "none": None,
    "ngram": {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_min": 2, "prompt_lookup_max": 4},
    "draft_model": {"method": "draft_model", "num_speculative_tokens": 5},
    "eagle3": {"method": "eagle3", "num_speculative_tokens": 3},
    "mtp": {"method": "mtp", "num_speculative_tokens": 1},
    "suffix": {"method": "suffix"},
})  # fmt: skip
"""Preset → speculative_config; ``none`` is the A/A control: two standard engines."""


def parse_speculation(
    value: str | Mapping[str, Any] | None,
    *,
    allow_lossy: bool = False,
    k_limits: tuple[int, int] = K_LIMITS,
    draft_model: str | None = None,
    k: int | None = None,
) -> Speculation | None:
    """The speculation that ``value`` asks for; None for ``none`` (an A/A control) and for empty text.

    ``draft_model`` and ``k`` override the value's own (settings of their own name). Raises ConfigError with one
    sentence that names the mistake and, for an unknown name, the nearest right one.
    """
    config = _config(value)
    if config is None:
        if draft_model or k is not None:
            raise ConfigError("A draft model or a k was set, but speculation is `none`; choose a method or drop them.")
        return None
    if draft_model is not None:
        config["model"] = draft_model
    if k is not None:
        config["num_speculative_tokens"] = k
    _check_keys(config)
    method = _method(config)
    _check_model(config, method)
    size = _check_k(config, method, k_limits)
    _check_lookup(config, method)
    lossy = _check_rejection(config, method, allow_lossy, size)
    model = config.get("model")
    return Speculation(
        method=method,
        k=size,
        config=tuple((key, json.dumps(config[key], ensure_ascii=False)) for key in sorted(config)),
        draft_model=model if isinstance(model, str) and METHODS[method].needs_model else None,
        lossy=lossy,
    )


def lacks_draft(value: str | Mapping[str, Any] | None) -> bool:
    """Whether ``value`` asks for the method ``draft_model`` and names no model. Raises ConfigError like the parser."""
    config = _config(value)
    return config is not None and config.get("method") == "draft_model" and not config.get("model")


def as_config(speculation: Speculation) -> dict[str, Any]:
    """The JSON object for ``--speculative-config``."""
    return {key: json.loads(text) for key, text in speculation.config}


def describe(speculation: Speculation | None) -> str:
    """One short phrase for a label: ``n-gram, k=4, lookup 2-4``."""
    if speculation is None:
        return "no speculation"
    config = as_config(speculation)
    parts = ["n-gram" if speculation.method == "ngram" else speculation.method.replace("_", " ")]
    if speculation.k is not None:
        parts.append(f"k={speculation.k}")
    if "prompt_lookup_min" in config and "prompt_lookup_max" in config:
        parts.append(f"lookup {config['prompt_lookup_min']}-{config['prompt_lookup_max']}")
    if speculation.draft_model:
        parts.append(speculation.draft_model)
    if speculation.lossy:
        parts.append(f"LOSSY ({speculation.lossy})")
    return ", ".join(parts)


def nearest(word: str, known: Mapping[str, object] | tuple[str, ...]) -> str:
    """`` Did you mean `x`?`` or an empty string."""
    found = get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return f" Did you mean `{found[0]}`?" if found else ""


def _config(value: str | Mapping[str, Any] | None) -> dict[str, Any] | None:
    if value is None:
        return None
    if isinstance(value, str):
        text = value.strip()
        if not text:
            return None
        if not text.startswith("{"):
            name = text.lower().replace("-", "_")
            if name not in PRESETS:
                raise ConfigError(
                    f"Speculation {text[:80]!r} is no preset ({', '.join(PRESETS)}) and no JSON object."
                    f"{nearest(name, PRESETS)}"
                )
            preset = PRESETS[name]
            return None if preset is None else dict(preset)
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            where = f" at character {error.pos + 1}: {error.msg}" if isinstance(error, json.JSONDecodeError) else ""
            raise ConfigError(f"The speculation setting is not valid JSON{where}.") from None
    if not isinstance(value, Mapping):
        raise ConfigError("The speculation setting must be a preset name or a JSON object.")
    config = {str(key).replace("-", "_"): item for key, item in value.items() if item is not None}
    if not config:
        raise ConfigError("The speculation setting is an empty object; give a method, or the preset `none`.")
    return config


def _check_keys(config: dict[str, Any]) -> None:
    for key, item in config.items():
        if key == "tensor_parallel_size":
            raise ConfigError(
                "`tensor_parallel_size` does not belong in the speculation setting; "
                "the draft's is `draft_tensor_parallel_size`."
            )
        if key not in KEYS:
            raise ConfigError(f"Unknown speculation key `{key[:60]}`.{nearest(key, KEYS)}")
        if not _fits(item, KEYS[key]):
            raise ConfigError(f"Speculation key `{key}` must be {KEYS[key]}, not {json.dumps(item, default=str)[:60]}.")


def _fits(item: object, form: str) -> bool:
    if form == BOOL or isinstance(item, bool):
        return form == BOOL and isinstance(item, bool)
    if form == INT:
        return isinstance(item, int)
    if form == NUM:
        return isinstance(item, int) or (isinstance(item, float) and math.isfinite(item))
    if form == LIST:
        return isinstance(item, list)
    return isinstance(item, str) and bool(item.strip()) and item.isprintable()


def _method(config: dict[str, Any]) -> str:
    """The method's name as vLLM will understand it; fills in ``method`` where vLLM would guess."""
    name = config.get("method")
    model = config.get("model")
    if name is None:
        if model in ("ngram", "[ngram]"):
            name = "ngram"
        elif model is None:
            raise ConfigError(f"The speculation setting names no `method` ({', '.join(METHODS)}).")
        else:
            low = model.lower()
            name = next(
                (found for mark, found in (("eagle3", "eagle3"), ("eagle-", "eagle"), ("dflash", "dflash"),
                                           ("dspark", "dspark")) if mark in low), "draft_model")  # fmt: skip
    name = name.strip().lower()
    if name == "[ngram]":
        name = "ngram"
    if name.endswith("_mtp"):  # vLLM's deprecated spellings of mtp
        name = "mtp"
    if name in REFUSED_METHODS:
        raise ConfigError(f"Speculation method `{name}` is not offered: {REFUSED_METHODS[name]}.")
    if name not in METHODS:
        raise ConfigError(
            f"Unknown speculation method `{name[:60]}`; vLLM has {', '.join(METHODS)}.{nearest(name, METHODS)}"
        )
    config["method"] = name
    return name


def _check_model(config: dict[str, Any], method: str) -> None:
    model = config.get("model")
    if METHODS[method].needs_model and not model:
        raise ConfigError(
            f"Speculation method `{method}` needs a draft: set the draft model, "
            f'or write {{"method":"{method}","model":"…","num_speculative_tokens":5}}.'
        )
    if method in ("ngram", "ngram_gpu", "suffix") and model not in (None, method, "[ngram]"):
        raise ConfigError(f"Speculation method `{method}` uses no draft model; drop `model` or choose `draft_model`.")
    if isinstance(model, str) and model.startswith("-"):
        raise ConfigError("The draft model's name must not begin with a dash.")


def _check_k(config: dict[str, Any], method: str, limits: tuple[int, int]) -> int | None:
    size = config.get("num_speculative_tokens")
    if size is None:
        if METHODS[method].needs_k:
            raise ConfigError(f"Speculation method `{method}` needs `num_speculative_tokens` (3 to 8 is usual).")
        return None
    low, high = limits
    if not low <= size <= high:
        raise ConfigError(f"`num_speculative_tokens` is {size}; it must lie between {low} and {high}.")
    _check_schedule(config.get("num_speculative_tokens_per_batch_size"), size)
    return int(size)


def _check_schedule(schedule: list[Any] | None, k: int) -> None:
    if schedule is None:
        return
    expected = 1
    for entry in schedule:
        if not (isinstance(entry, list) and len(entry) == 3 and all(_fits(item, INT) for item in entry)):
            raise ConfigError("`num_speculative_tokens_per_batch_size` is a list of [first, last, k] of whole numbers.")
        first, last, size = entry
        if first < expected or (expected == 1 and first != 1) or last < first or not 0 <= size <= k:
            raise ConfigError(
                f"`num_speculative_tokens_per_batch_size` entry {entry} is wrong: ranges start at 1, do not overlap, "
                f"and k lies between 0 and {k}."
            )
        expected = last + 1


def _check_lookup(config: dict[str, Any], method: str) -> None:
    low, high = config.get("prompt_lookup_min"), config.get("prompt_lookup_max")
    if low is None and high is None:
        return
    if method not in ("ngram", "ngram_gpu"):
        raise ConfigError(f"`prompt_lookup_min` and `prompt_lookup_max` belong to `ngram`, not to `{method}`.")
    for name, size in (("prompt_lookup_min", low), ("prompt_lookup_max", high)):
        if size is not None and size < 1:
            raise ConfigError(f"`{name}` is {size}; it must be at least 1.")
    if low is not None and high is not None and low > high:
        raise ConfigError(f"`prompt_lookup_min` ({low}) must not be above `prompt_lookup_max` ({high}).")


def _check_rejection(config: dict[str, Any], method: str, allow_lossy: bool, k: int | None) -> str | None:
    mode = config.get("rejection_sample_method", "standard")
    if mode not in REJECTION:
        raise ConfigError(f"Unknown `rejection_sample_method` `{mode[:40]}`.{nearest(mode, REJECTION)}")
    if config.get("draft_sample_method", "greedy") not in ("greedy", "probabilistic"):
        raise ConfigError("`draft_sample_method` must be `greedy` or `probabilistic`.")
    if config.get("enable_adaptive_verification") and method != "dspark":
        raise ConfigError("`enable_adaptive_verification` works with the method `dspark` alone.")
    if config.get("use_heterogeneous_vocab"):
        if method != "draft_model":
            raise ConfigError("`use_heterogeneous_vocab` works with the method `draft_model` alone.")
        if config.get("draft_sample_method", "greedy") != "greedy":
            raise ConfigError("`use_heterogeneous_vocab` works with greedy drafts alone; drop `draft_sample_method`.")
    given = [key for key in ("synthetic_acceptance_rates", "synthetic_acceptance_length") if key in config]
    if given and mode != "synthetic":
        raise ConfigError(f'`{given[0]}` works with `"rejection_sample_method": "synthetic"` alone.')
    fly = [key for key in config if key.startswith("fly_")]
    if fly and mode != "fly":
        raise ConfigError(f'`{fly[0]}` works with `"rejection_sample_method": "fly"` alone.')
    if mode not in LOSSY:
        return None
    if not allow_lossy:
        raise ConfigError(
            f"`rejection_sample_method` `{mode}` is lossy: {LOSSY[mode]}. "
            "Allow lossy modes in the settings to run it, labelled."
        )
    if mode == "synthetic":
        _check_synthetic(config, given, k)
    elif k is not None and k < 2:
        raise ConfigError("`fly` needs `num_speculative_tokens` of at least 2.")
    return str(mode)


def _check_synthetic(config: dict[str, Any], given: Sequence[str], k: int | None) -> None:
    if len(given) != 1:
        raise ConfigError(
            "`synthetic` needs exactly one of `synthetic_acceptance_rates` and `synthetic_acceptance_length`."
        )
    if k is None:
        raise ConfigError("`synthetic` needs `num_speculative_tokens`.")
    if given[0] == "synthetic_acceptance_length":
        length = config["synthetic_acceptance_length"]
        if not 1 <= length <= k + 1:
            raise ConfigError(f"`synthetic_acceptance_length` is {length}; it must lie between 1 and {k + 1}.")
        return
    rates = config["synthetic_acceptance_rates"]
    if (
        len(rates) != k
        or not all(_fits(rate, NUM) and 0 <= rate <= 1 for rate in rates)
        or any(later > earlier for earlier, later in pairwise(rates))
    ):
        raise ConfigError(
            f"`synthetic_acceptance_rates` must be {k} numbers from 0 to 1, none above the one before it."
        )
