"""The last words of a dead engine → one sentence for the user: what happened, what to do. Pure."""

from __future__ import annotations

import re
import signal

from specdemo.core.engine import EngineSpec

_LONG = 400
_SHELL = 128
_NO_MEMORY = re.compile(r"out of memory|n[o']t allocate memory|^memoryerror|bad_alloc")


def exit_sentence(spec: EngineSpec, code: int | None, problem: str | None, *, ready_before: bool) -> str:
    """Why the engine's process is gone. ``problem`` is LogView.problem; ``code`` is negative for a signal."""
    when = "died" if ready_before else "did not start"
    if code is not None and _SHELL < code < _SHELL + 65:
        code = _SHELL - code  # a script before the engine tells so that a signal ended it
    reason = explain(problem, spec) if problem else _by_code(code)
    if problem and code == -signal.SIGKILL:  # no error of its own ends a program like that
        reason = f"{_by_code(code)} The last error in its log: {_short(problem.strip())}"
    return f"The {spec.side.value} engine {when}: {reason}"


def explain(problem: str, spec: EngineSpec) -> str:
    """The engine's error text with what to do about it; the text itself where we know no better."""
    text = problem.strip()
    found = re.search(
        r"Free memory on device \S* ?\(([\d.]+)/([\d.]+) GiB\) .*utilization \(([\d.]+), ([\d.]+) GiB\)", text
    )
    if found:
        return _card_full(float(found[1]), float(found[2]), float(found[3]))
    low = text.lower()
    if _NO_MEMORY.search(low):
        where = "the GPU" if spec.device == "cuda" else "this machine"
        advice = "Lower `max_model_len` or the memory share, or take a smaller model."
        return f"{where} has too little memory ({_short(text)}). {advice}"
    if "no available memory for the cache" in low or "larger than the available kv cache" in low:
        return (
            "no memory is left for its token cache. Give it more (`memory_share` on a GPU, `kv_cache_bytes` on the "
            f"CPU), or lower `max_model_len` ({_short(text)})"
        )
    if "same vocabulary size" in low:
        sizes = re.search(r"Target model vocab_size=(\d+)\. Draft model vocab_size=(\d+)", text)
        shown = f" (target {sizes[1]}, draft {sizes[2]})" if sizes else ""
        return (
            f"draft and target have vocabularies of different size{shown}. Take a draft of the same family, or `ngram`."
        )
    if "max_model_len" in low and "derived" in low:
        sizes = re.search(r"max_model_len \((\d+)\).*?derived max_model_len \(\w+=(\d+)", text)
        shown = f"; this model can hold {sizes[2]} tokens, {sizes[1]} were asked for" if sizes else ""
        return f"`max_model_len` is too large{shown}."
    if "cannot find any model weights" in low or "deserializing header" in low:
        return f"the model's weights are missing or damaged ({_short(text)}). Copy or download the model again."
    if re.search(
        r"(gated repo|401 client error|403 client error|repository not found|couldn't connect to|offline mode)", low
    ):
        advice = "Check its name, the network, and HF_TOKEN for gated models."
        return f"the model could not be fetched ({_short(text)}). {advice}"
    if "no space left" in low:
        return "the disk is full. Free some space and start it again."
    return _short(text)


def _card_full(free: float, total: float, share: float) -> str:
    fits = max(0.0, int((free / total - 0.03) * 100) / 100) if total else 0.0
    advice = (
        f"Lower its memory share to {fits:.2f}, or free the card."
        if fits >= 0.1
        else "Free the card, or put the engines on one card each."
    )
    return f"the card has {free:g} of {total:g} GiB free, but a share of {share:g} was asked for. {advice}"


def _by_code(code: int | None) -> str:
    if code is None:
        return "its process is gone."
    if code == -signal.SIGKILL:
        return "it was killed (signal 9), most often because the machine ran out of memory."
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        hint = ": the CPU may lack instructions that this vLLM was built for" if code == -signal.SIGILL else ""
        return f"it was ended by {name}{hint}."
    return f"it ended with exit code {code} and gave no reason; the log has its last lines."


def _short(text: str) -> str:
    first = re.split(r"(?<=[.!?]) (?:See https?://|To allow overriding|Try increasing `gpu_memory)", text)[0]
    return first if len(first) <= _LONG else f"{first[: _LONG - 1]}…"
