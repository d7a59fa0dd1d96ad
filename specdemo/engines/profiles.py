"""Named ways to run a pair of engines on a machine. Both sides get equal flags; speculation is the one difference.

cpu              no GPU: float32, eager, OpenMP preloaded, the same threads for each engine
gpu_shared       one card: memory split in two, started one after the other
gpu_each         one card for each engine
tensor_parallel  half of the cards for each engine
production       the article's large pair: tensor parallel, chunked prefill, 32k context, memory share 0.92
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any

from specdemo.core.engine import Device, EngineSpec, Speculation
from specdemo.core.events import Side
from specdemo.core.prompt import Sampling
from specdemo.engines.cores import floating_cores
from specdemo.engines.drafts import read_config
from specdemo.engines.environment import Gpu
from specdemo.engines.flags import parse_flags
from specdemo.engines.footprint import check_shares, kv_cache_bytes
from specdemo.engines.shipped import shipped_draft
from specdemo.engines.speculation import PRESETS, lacks_draft, nearest, parse_speculation
from specdemo.errors import ConfigError

PROFILES: Mapping[str, str] = MappingProxyType({
    "cpu": "no GPU: float32, eager, half of the cores' threads for each engine",
    "gpu_shared": "one card shared by both engines, memory 0.45 each, loaded one after the other",
    "gpu_each": "one card for each engine",
    "tensor_parallel": "half of the cards for each engine",
    "production": "the article's large pair: tensor parallel 4, chunked prefill, 32k context, memory share 0.92",
})  # fmt: skip

CPU_K = 8
"""Draft tokens of the CPU profile's n-gram speculation."""

CPU_DRAFT_K = 3
"""Draft tokens of the shipped draft model on the CPU (docs/draft-model.md)."""

PRODUCTION_SAMPLING = Sampling(max_tokens=2048, temperature=0.7, top_p=0.9)
"""What the article samples with in production."""


_GPU = re.compile(r"\d{1,3}|(?:GPU|MIG)-[\w/-]+", re.ASCII)  # a number, or an identifier as nvidia-smi -L prints it


@dataclass(frozen=True, slots=True)
class ProductionPair:
    """Target and draft of the article.

    ``heterogeneous``: the vocabularies differ in size (152,064 and 151,936 entries for Qwen2.5-72B and -1.5B), which
    vLLM refuses unless it is told to draft from the shared part.
    """

    target: str
    draft: str
    k: int = 5
    heterogeneous: bool = False

    @property
    def speculation(self) -> Speculation:
        config: dict[str, Any] = {"method": "draft_model", "model": self.draft, "num_speculative_tokens": self.k}
        if self.heterogeneous:
            config["use_heterogeneous_vocab"] = True
        found = parse_speculation(config)
        if found is None:
            raise ConfigError("The production pair names no speculation.")
        return found


PRODUCTION_PAIRS: Mapping[str, ProductionPair] = MappingProxyType({
    "qwen2.5-72b": ProductionPair("Qwen/Qwen2.5-72B-Instruct", "Qwen/Qwen2.5-1.5B-Instruct", heterogeneous=True),
    "llama-3.1-70b": ProductionPair("meta-llama/Llama-3.1-70B-Instruct", "meta-llama/Llama-3.2-1B-Instruct"),
})  # fmt: skip
"""Short name → pair; the first is the default of the profile ``production``."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """Wishes that replace a profile's own choice; None keeps it.

    ``cores`` and ``gpus`` are (standard, speculative), as EngineSpec takes them.
    """

    dtype: str | None = None
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    seed: int | None = None
    enforce_eager: bool | None = None
    memory_share: float | None = None
    kv_cache_bytes: int | None = None
    tensor_parallel: int | None = None
    prefix_caching: bool | None = None
    cores: tuple[str | None, str | None] = (None, None)
    gpus: tuple[str | None, str | None] = (None, None)


@dataclass(frozen=True, slots=True)
class EnginePair:
    """Two specs, equal but for side, speculation and place. ``parallel``: they may load at the same time."""

    standard: EngineSpec
    speculative: EngineSpec
    profile: str
    parallel: bool

    @property
    def shared_device(self) -> bool:
        """Whether a race between them is a fight over one device."""
        return device_key(self.standard) == device_key(self.speculative)


def choose(device: Device, gpus: Sequence[Gpu]) -> str:
    """The profile for this machine: by the engine environment's device and the cards found."""
    if device == "cpu" or not gpus:
        return "cpu"
    return "gpu_shared" if len(gpus) == 1 else "gpu_each"


def default_speculation(profile: str, model: str) -> Speculation | None:
    """What a profile speculates with when nobody chose: the article's draft for its own large models, else n-gram.

    On the CPU with k=8, not 4: longer drafts gain more there (benchmarks/results/engine_profile.txt).
    """
    if profile == "production":
        for pair in PRODUCTION_PAIRS.values():
            if pair.target == model:
                return pair.speculation
    return parse_speculation("ngram", k=CPU_K if profile == "cpu" else None)


def wanted_speculation(
    profile: str,
    model: str,
    *,
    speculation: str | Mapping[str, Any] | None,
    draft_model: str | None = None,
    k: int | None = None,
    allow_lossy: bool = False,
) -> Speculation | None:
    """What the settings ask for. The method ``draft_model`` without a model means the draft that ships for ``model``.

    Raises ConfigError, and SetupError when the shipped draft's files are damaged.
    """
    if not (speculation or draft_model or k):
        return default_speculation(profile, model)
    wanted = speculation or "ngram"
    if not draft_model and lacks_draft(wanted):
        draft_model = shipped_draft(model)
        if draft_model is not None and k is None and isinstance(wanted, str) and "{" not in wanted:
            k = first_k("draft_model", "cpu" if profile == "cpu" else "cuda")
    return parse_speculation(wanted, allow_lossy=allow_lossy, draft_model=draft_model, k=k)


def first_k(preset: str, device: Device) -> int | None:
    """A preset's draft length to begin with; on the CPU it was chosen by measurement."""
    measured = {"ngram": CPU_K, "draft_model": CPU_DRAFT_K}
    if device == "cpu" and preset in measured:
        return measured[preset]
    config = PRESETS.get(preset)
    return config.get("num_speculative_tokens") if config else None


def build(
    profile: str,
    *,
    model: str,
    served_name: str,
    speculation: Speculation | None,
    tuning: Tuning | None = None,
    gpus: Sequence[Gpu] = (),
    cores: Sequence[int] | None = None,
    flags: Mapping[str, object] | Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> EnginePair:
    """The pair of specs. Raises ConfigError with one sentence where the machine cannot hold it.

    ``gpus`` are the cards found, ``cores`` the CPU numbers that may be used (None: all of this process).
    """
    name = profile.strip().lower().replace("-", "_")
    if name not in PROFILES:
        raise ConfigError(
            f"Unknown profile {profile[:40]!r}; there are {', '.join(PROFILES)}.{nearest(name, PROFILES)}"
        )
    wishes = tuning or Tuning()
    base = EngineSpec(
        side=Side.STANDARD,
        model=model,
        served_name=served_name,
        device="cpu" if name == "cpu" else "cuda",
        flags=parse_flags(flags),
        environment=tuple(sorted((environment or {}).items())),
    )
    pair = _on_cpu(base, wishes, cores) if name == "cpu" else _on_gpus(name, base, wishes, gpus)
    pair = replace(pair, speculative=replace(pair.speculative, side=Side.SPECULATIVE, speculation=speculation))
    if name != "cpu":
        check_shares(pair.standard, pair.speculative, gpus)
    return pair


def device_key(spec: EngineSpec) -> str:
    """Equal for two engines of this machine that share a device: ``cpu:0-1``, ``cuda:0``."""
    return f"cpu:{spec.cores or 'all'}" if spec.device == "cpu" else f"cuda:{spec.gpus or '0'}"


def _on_cpu(base: EngineSpec, wishes: Tuning, cores: Sequence[int] | None) -> EnginePair:
    spec = _tuned(
        replace(base, dtype="float32", enforce_eager=True, max_model_len=8192, max_num_seqs=32), wishes, cap_length=True
    )
    if wishes.kv_cache_bytes is None:
        spec = replace(spec, kv_cache_bytes=kv_cache_bytes(spec))
    own = floating_cores(cores)
    places = (wishes.cores[0] or own, wishes.cores[1] or own)
    return EnginePair(replace(spec, cores=places[0]), replace(spec, cores=places[1]), "cpu", parallel=True)


def _on_gpus(name: str, base: EngineSpec, wishes: Tuning, gpus: Sequence[Gpu]) -> EnginePair:
    size = wishes.tensor_parallel or 1
    if name == "production":
        base = replace(base, max_model_len=32768, memory_share=0.92, flags=_with_chunked_prefill(base.flags))
        size = wishes.tensor_parallel or 4
    elif name == "tensor_parallel":
        size = wishes.tensor_parallel or _half(len(gpus))
        base = replace(base, memory_share=0.9)
    else:
        base = replace(base, memory_share=0.45 if name == "gpu_shared" else 0.9)
    spec = replace(_tuned(base, wishes), tensor_parallel=size)
    places = _wished(wishes.gpus, size, gpus) or _places(name, size, gpus)
    standard, speculative = replace(spec, gpus=places[0]), replace(spec, gpus=places[1])
    return EnginePair(standard, speculative, name, parallel=not set(places[0].split(",")) & set(places[1].split(",")))


def _wished(wishes: tuple[str | None, str | None], size: int, gpus: Sequence[Gpu]) -> tuple[str, str] | None:
    """The user's own choice of cards, None if there is none. Raises ConfigError for one that cannot work."""
    chosen = ["".join((wish or "").split()) for wish in wishes]
    if not any(chosen):
        return None
    if not all(chosen):
        raise ConfigError("Name the GPUs of both engines (`standard_gpus`, `speculative_gpus`), or of neither.")
    known = {str(gpu.index) for gpu in gpus}
    for side, text in zip(("standard", "speculative"), chosen, strict=True):
        numbers = text.split(",")
        if not all(_GPU.fullmatch(number) for number in numbers) or len(set(numbers)) != len(numbers):
            raise ConfigError(f"`{side}_gpus` is a list of different GPU numbers such as `0,1`, not {text[:60]!r}.")
        missing = [number for number in numbers if known and number.isdecimal() and number not in known]
        if missing:
            raise ConfigError(f"`{side}_gpus` names GPU {missing[0]}, but here are {', '.join(sorted(known))}.")
        if len(numbers) < size:
            raise ConfigError(
                f"`{side}_gpus` names {len(numbers)} of the {size} GPUs that tensor parallel {size} needs."
            )
    return chosen[0], chosen[1]


def _places(name: str, size: int, gpus: Sequence[Gpu]) -> tuple[str, str]:
    numbers = [str(gpu.index) for gpu in gpus]
    needed = size if name == "gpu_shared" else 2 * size
    if len(numbers) < needed:
        one_card = "; the profile `gpu_shared` does with one card" if name == "gpu_each" else ""
        raise ConfigError(
            f"The profile `{name}` needs {needed} GPUs (tensor parallel {size}), "
            f"but {len(numbers)} were found{one_card}."
        )
    first = numbers[:size]
    second = first if name == "gpu_shared" else numbers[size : 2 * size]
    return ",".join(first), ",".join(second)


def _half(count: int) -> int:
    """The largest power of two that two engines can both have; vLLM divides attention heads by it."""
    size = 1
    while size * 4 <= count:
        size *= 2
    return size


def _with_chunked_prefill(flags: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    named = {name for name, _ in flags}
    if named & {"enable-chunked-prefill", "no-enable-chunked-prefill"}:
        return flags
    return (*flags, ("enable-chunked-prefill", ""))


def _tuned(spec: EngineSpec, wishes: Tuning, *, cap_length: bool = False) -> EngineSpec:
    changes = {
        field.name: value
        for field in fields(wishes)
        if field.name not in ("cores", "gpus") and (value := getattr(wishes, field.name)) is not None
    }
    if cap_length and "max_model_len" not in changes:
        changes["max_model_len"] = _cap(spec)
    return replace(spec, **changes)


def _cap(spec: EngineSpec) -> int | None:
    config = read_config(spec.model)
    longest = config.get("max_position_embeddings") if config else None
    if isinstance(longest, int) and spec.max_model_len is not None:
        return min(longest, spec.max_model_len)
    return spec.max_model_len
