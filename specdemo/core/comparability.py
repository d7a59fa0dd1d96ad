"""Is this pair comparable? One line per question, before the run (what the engines say) and after it (what they did).

"block" forbids the identity claim, "warn" is printed beside it, "ok" says what was found equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from specdemo.core.engine import EngineFacts
from specdemo.core.events import Side
from specdemo.core.outcome import Outcome
from specdemo.core.prompt import Prompt
from specdemo.core.results import Check, CheckLevel
from specdemo.core.run import Mode

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
        found.append(Check("engines", "warn", f"The {silent} engine did not say how it is set up."))
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
        return Check("prompt_tokens", "warn", "Prompt token ids could not be compared before the run.")
    if tuple(left) == tuple(right):
        return Check("prompt_tokens", "ok", f"Both engines read the same {len(left)} prompt tokens.")
    detail = f"The engines do not read the prompt alike: {len(left)} and {len(right)} prompt tokens"
    if len(left) == len(right):
        detail += " with different ids"
    return Check("prompt_tokens", "block", detail + ".")


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
    return Check("sampling", "ok", f"Sent in full to both: {sent}.")


def _model(left: EngineFacts, right: EngineFacts) -> Check:
    if left.root is not None and right.root is not None:
        if left.root == right.root:
            return Check("model", "ok", f"Both serve {_short(left.root)}.")
        if _short(left.root) == _short(right.root):
            detail = f"Both serve a model called {_short(left.root)}, from different places; are the weights the same?"
            return Check("model", "warn", detail)
        names = _short(left.root), _short(right.root)
        return Check("model", "block", f"The engines serve different models: {names[0]} and {names[1]}.")
    if left.model == right.model:
        return Check("model", "ok", f"Both serve {left.model}.")
    return Check("model", "block", f"The engines serve different models: {left.model} and {right.model}.")


def _short(root: str) -> str:
    """The last part of a hub id or folder: enough to recognise, and no machine path on a shared page."""
    return root.rstrip("/\\").replace("\\", "/").rsplit("/", 1)[-1] or root


def _pair(left: EngineFacts, right: EngineFacts) -> Iterator[Check]:
    yield from _equal("dtype", "number format", left.dtype, right.dtype)
    yield from _equal("max_model_len", "length limit", _text(left.max_model_len), _text(right.max_model_len))
    yield from _equal("version", "engine version", left.version, right.version)
    ours, theirs = dict(left.settings), dict(right.settings)
    for name in sorted((ours.keys() | theirs.keys()) - _OWN_CHECK - _EXPECTED_TO_DIFFER):
        if name in ours and name in theirs:
            yield from _equal(name, name.replace("_", " "), ours[name], theirs[name])
        elif left.managed and right.managed:
            given, side = (ours[name], Side.STANDARD) if name in ours else (theirs[name], Side.SPECULATIVE)
            detail = f"Setting {name.replace('_', ' ')} ({given}) is given to the {side} engine only."
            yield Check(name, "warn", detail)


def _text(value: int | None) -> str | None:
    return None if value is None else str(value)


def _equal(name: str, words: str, left: str | None, right: str | None) -> Iterator[Check]:
    if left is None or right is None:
        return
    if left == right:
        yield Check(name, "ok", f"Same {words}: {left}.")
    else:
        yield Check(name, "warn", f"Different {words}: standard {left}, speculative {right}.")


def _device(left: EngineFacts, right: EngineFacts, mode: Mode) -> Iterator[Check]:
    if left.device_key is None or right.device_key is None:
        if mode == "race":
            yield Check("device", "warn", "Whether both engines share a device is unknown, so the race is for show.")
        return
    if left.device_key != right.device_key:
        yield Check("device", "ok", "The engines run on separate devices.")
    elif mode == "race":
        yield Check("device", "warn", "Both engines run on one device and slow each other: the race is for show.")
    else:
        yield Check("device", "ok", "Both engines run on one device, one at a time.")


def _speculation(standard: EngineFacts | None, speculative: EngineFacts | None) -> Iterator[Check]:
    if standard is not None and standard.speculating:
        yield Check("standard_plain", "block", "The standard engine speculates too, so there is no reference.")
    if speculative is None:
        return
    if speculative.lossy is not None:
        detail = f"Lossy mode on ({speculative.lossy}): its output is not meant to equal the standard engine's."
        yield Check("lossy", "block", detail)
    if speculative.speculating is False:
        yield Check("speculation", "warn", "The speculative engine does not speculate: nothing is tested.")
    elif speculative.speculating is None:
        yield Check("speculation", "warn", "Whether the speculative engine really speculates is unknown.")
    else:
        method = f" with {speculative.method}" if speculative.method else ""
        length = f", up to {speculative.k} tokens a step" if speculative.k else ""
        yield Check("speculation", "ok", f"The speculative engine drafts{method}{length}.")


def _sampling_hazards(speculative: EngineFacts, prompt: Prompt) -> Iterator[Check]:
    if prompt.greedy:
        return
    chosen = prompt.sampling
    if chosen.min_p > 0.0 and speculative.speculating is not False:
        detail = "vLLM refuses min_p together with speculation: expect an error from the speculative engine."
        yield Check("min_p", "warn", detail)
    device = speculative.device or ("cpu" if "+cpu" in (speculative.version or "") else None)
    if speculative.speculating is False or (device is not None and not device.startswith("cpu")):
        return
    if dict(speculative.settings).get(CPU_REPAIR) == "on":
        yield Check("cpu_sampling", "ok", "Sampling with drafts is repaired on this CPU engine.")
        return
    detail = (
        f"{'On a CPU' if device else 'Should this engine run on a CPU'}, vLLM draws drafted tokens with undefined "
        "settings above temperature 0, and top_k can end the engine; use temperature 0."
    )
    yield Check("cpu_sampling", "warn", detail)


def after(standard: Outcome, speculative: Outcome) -> tuple[Check, ...]:
    """What only the answers tell: prompt tokens as the engines counted them, and tokens served from a warm cache."""
    found: list[Check] = []
    sizes = standard.prompt_size, speculative.prompt_size
    if sizes[0] is not None and sizes[1] is not None and sizes[0] != sizes[1]:
        detail = f"The engines did not see the same prompt: {sizes[0]} and {sizes[1]} prompt tokens."
        found.append(Check("prompt_tokens", "block", detail))
    cached = [_cached(side) for side in (standard, speculative)]
    if any(cached):
        counts = " and ".join("unknown" if count is None else str(count) for count in cached)
        level: CheckLevel = "warn"
        detail = f"Prompt tokens came from a warm prefix cache (standard and speculative: {counts})"
        detail += "; first-token times are not comparable." if cached[0] != cached[1] else "."
        found.append(Check("warm_cache", level, detail))
    return tuple(found)


def _cached(side: Outcome) -> int | None:
    usage = side.finished.usage if side.finished else None
    return usage.cached_tokens if usage else None


_RANK: dict[CheckLevel, int] = {"ok": 0, "warn": 1, "block": 2}


def merge(before: Sequence[Check], later: Sequence[Check]) -> tuple[Check, ...]:
    """Both lists; where a question appears in both, the worse answer stands."""
    merged = {check.check: check for check in before}
    for check in later:
        known = merged.get(check.check)
        if known is None or _RANK[check.level] > _RANK[known.level]:
            merged[check.check] = check
    return tuple(merged.values())
