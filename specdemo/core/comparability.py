"""Is this pair comparable? One line per question, before the run (what the engines say) and after it (what they did).

"block" forbids the identity claim, "warn" is printed beside it, "ok" says what was found equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from specdemo.core import odd
from specdemo.core.compare import common_prefix
from specdemo.core.engine import EngineFacts
from specdemo.core.events import Side
from specdemo.core.outcome import Outcome
from specdemo.core.prompt import Prompt
from specdemo.core.results import Check, CheckLevel
from specdemo.core.run import Mode
from specdemo.core.sentences import sentence

Facts = tuple[EngineFacts | None, EngineFacts | None]
PromptIds = tuple[Sequence[int] | None, Sequence[int] | None]

CPU_REPAIR = "cpu_sampling_repair"
"""Setting ("on") of a CPU engine whose sampling at temperature > 0 was repaired."""

_OWN_CHECK = frozenset({"dtype", "max_model_len", "model", "served_model_name", CPU_REPAIR})
_EXPECTED_TO_DIFFER = frozenset({"speculative_config", "port", "host", "seed", "cores", "gpus"})


def checks(
    facts: Facts,
    prompt_ids: PromptIds,
    prompt: Prompt,
    *,
    control: bool = False,
    mode: Mode = "race",
) -> tuple[Check, ...]:
    """Everything that can be said before the run; pairs are standard first, None where an engine did not say.

    ``prompt_ids`` come from each engine's own ``/tokenize``. ``control``: both sides are the standard engine.
    """
    found = [_prompt(prompt_ids), _sampling(prompt)]
    standard, speculative = facts
    if standard is None or speculative is None:
        silent = " and ".join(str(side) for side, known in zip(Side, facts, strict=True) if known is None)
        found.append(Check("engines", "warn", sentence("engines_silent", silent=silent)))
    if standard is not None and speculative is not None:
        found.append(_model(standard, speculative))
        found.extend(_pair(standard, speculative))
        found.extend(_device(standard, speculative, mode))
    if not control:
        found.extend(_speculation(standard, speculative))
    if speculative is not None:
        found.extend(_sampling_hazards(speculative, prompt))
    return tuple(found)


def _prompt(ids: PromptIds) -> Check:
    left, right = ids
    if left is None or right is None:
        return Check("prompt_tokens", "warn", sentence("prompt_unknown"))
    if tuple(left) == tuple(right):
        return Check("prompt_tokens", "ok", sentence("prompt_same", count=len(left)))
    key = "prompt_other_ids" if len(left) == len(right) else "prompt_other"
    return Check("prompt_tokens", "block", sentence(key, left=len(left), right=len(right)))


def _sampling(prompt: Prompt) -> Check:
    chosen = prompt.sampling
    fields = [
        ("temperature", f"{chosen.temperature:g}"),
        ("top_p", f"{chosen.top_p:g}"),
        ("top_k", str(chosen.top_k)),
        ("min_p", f"{chosen.min_p:g}"),
        ("presence_penalty", f"{chosen.presence_penalty:g}"),
        ("frequency_penalty", f"{chosen.frequency_penalty:g}"),
        ("repetition_penalty", f"{chosen.repetition_penalty:g}"),
        ("seed", "none" if chosen.seed is None else str(chosen.seed)),
        ("max_tokens", str(chosen.max_tokens)),
        ("ignore_eos", "yes" if chosen.ignore_eos else "no"),
        ("stop", str(len(chosen.stop)) if chosen.stop else "none"),
    ]
    sent = ", ".join(f"{name} {value}" for name, value in fields)
    return Check("sampling", "ok", sentence("sampling_sent", fields=sent))


def _model(left: EngineFacts, right: EngineFacts) -> Check:
    if left.root is not None and right.root is not None:
        if left.root == right.root:
            return Check("model", "ok", sentence("model_same", model=_short(left.root)))
        if _short(left.root) == _short(right.root):
            return Check("model", "warn", sentence("model_called", model=_short(left.root)))
        names = _short(left.root), _short(right.root)
        return Check("model", "block", sentence("model_other", left=names[0], right=names[1]))
    if left.model == right.model:
        return Check("model", "ok", sentence("model_same", model=left.model))
    return Check("model", "block", sentence("model_other", left=left.model, right=right.model))


def _short(root: str) -> str:
    """The last part of a hub id or folder: enough to recognise, and no machine path on a shared page."""
    return root.rstrip("/\\").replace("\\", "/").rsplit("/", 1)[-1] or root


def _pair(left: EngineFacts, right: EngineFacts) -> Iterator[Check]:
    yield from _equal("dtype", sentence("part_dtype"), left.dtype, right.dtype)
    yield from _equal(
        "max_model_len", sentence("part_max_model_len"), _text(left.max_model_len), _text(right.max_model_len)
    )
    yield from _equal("version", sentence("part_version"), left.version, right.version)
    ours, theirs = dict(left.settings), dict(right.settings)
    for name in sorted((ours.keys() | theirs.keys()) - _OWN_CHECK - _EXPECTED_TO_DIFFER):
        if name in ours and name in theirs:
            yield from _equal(name, name.replace("_", " "), ours[name], theirs[name])
        elif left.managed and right.managed:
            given, side = (ours[name], Side.STANDARD) if name in ours else (theirs[name], Side.SPECULATIVE)
            words = name.replace("_", " ")
            yield Check(name, "warn", sentence("setting_one", name=words, value=given, side=side))


def _text(value: int | None) -> str | None:
    return None if value is None else str(value)


def _equal(name: str, words: str, left: str | None, right: str | None) -> Iterator[Check]:
    if left is None or right is None:
        return
    if _spelt(left) == _spelt(right):
        yield Check(name, "ok", sentence("setting_same", words=words, value=left))
    else:
        yield Check(name, "warn", sentence("setting_other", words=words, left=left, right=right))


def _spelt(value: str) -> str:
    """A setting as versions of an engine agree on it: "True" is "true", and "torch.float16" is "float16"."""
    return value.strip().lower().removeprefix("torch.")


def _device(left: EngineFacts, right: EngineFacts, mode: Mode) -> Iterator[Check]:
    if left.device_key is None or right.device_key is None:
        if mode == "race":
            yield Check("device", "warn", sentence("device_unknown"))
        return
    if left.device_key != right.device_key:
        yield Check("device", "ok", sentence("device_separate"))
    elif mode == "race":
        yield Check("device", "warn", sentence("device_shared"))
    else:
        yield Check("device", "ok", sentence("device_in_turn"))


def _speculation(standard: EngineFacts | None, speculative: EngineFacts | None) -> Iterator[Check]:
    if standard is not None and standard.speculating:
        yield Check("standard_plain", "block", sentence("standard_speculates"))
    if speculative is None:
        return
    if speculative.lossy is not None:
        yield Check("lossy", "block", sentence("lossy", mode=speculative.lossy))
    if speculative.speculating is False:
        yield Check("speculation", "warn", sentence("not_speculating"))
    elif speculative.speculating is None:
        yield Check("speculation", "warn", sentence("speculating_unknown"))
    else:
        key = "drafts" + ("_with" if speculative.method else "") + ("_up_to" if speculative.k else "")
        yield Check("speculation", "ok", sentence(key, method=speculative.method, count=speculative.k))


def _sampling_hazards(speculative: EngineFacts, prompt: Prompt) -> Iterator[Check]:
    if prompt.greedy:
        return
    chosen = prompt.sampling
    if chosen.min_p > 0.0 and speculative.speculating is not False:
        yield Check("min_p", "warn", sentence("min_p_refused"))
    device = speculative.device or ("cpu" if "+cpu" in (speculative.version or "") else None)
    if speculative.speculating is False or (device is not None and not device.startswith("cpu")):
        return
    if dict(speculative.settings).get(CPU_REPAIR) == "on":
        yield Check("cpu_sampling", "ok", sentence("cpu_repaired"))
        return
    yield Check("cpu_sampling", "warn", sentence("cpu_sampling" if device else "cpu_sampling_unknown"))


def after(standard: Outcome, speculative: Outcome) -> tuple[Check, ...]:
    """What only the answers tell: prompt tokens as the engines counted them, and tokens served from a warm cache."""
    found: list[Check] = []
    different = other_prompts(standard, speculative)
    if different is not None:
        found.append(Check("prompt_tokens", "block", different))
    cached = [_cached(side) for side in (standard, speculative)]
    if any(cached):
        counts = " and ".join("unknown" if count is None else str(count) for count in cached)
        key = "warm_cache_uneven" if cached[0] != cached[1] else "warm_cache"
        found.append(Check("warm_cache", "warn", sentence(key, counts=counts)))
    return tuple(found)


def other_prompts(standard: Outcome, speculative: Outcome) -> str | None:
    """How the prompts differ that the engines read; None if they do not, or nothing tells.

    Ids that both echoed settle it: servers count start tokens differently.
    """
    left, right = (side.finished.prompt_token_ids if side.finished else None for side in (standard, speculative))
    if left and right:
        if left == right:
            return None
        at = common_prefix(left, right)
        return sentence("prompt_parts", left=len(left), right=len(right), position=at + 1)
    sizes = standard.prompt_size, speculative.prompt_size
    if None not in sizes and sizes[0] != sizes[1]:
        return sentence("prompt_sizes", left=sizes[0], right=sizes[1])
    return None


def _cached(side: Outcome) -> int | None:
    usage = side.finished.usage if side.finished else None
    return odd.count(usage.cached_tokens) if usage else None


_RANK: dict[CheckLevel, int] = {"ok": 0, "warn": 1, "block": 2}


def merge(before: Sequence[Check], later: Sequence[Check]) -> tuple[Check, ...]:
    """Both lists; where a question appears in both, the worse answer stands."""
    merged = {check.check: check for check in before}
    for check in later:
        known = merged.get(check.check)
        if known is None or _RANK[check.level] > _RANK[known.level]:
            merged[check.check] = check
    return tuple(merged.values())
