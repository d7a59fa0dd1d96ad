"""How much faster the speculative side was: measured ratios, never clamped, with a sentence on what is compared."""

from __future__ import annotations

from specdemo.core.results import SideMetrics, Speedup
from specdemo.core.sentences import sentence

LONG_ENOUGH = 2
"""Output tokens below which there is no decode time at all."""


def speedup(
    standard: SideMetrics, speculative: SideMetrics, *, ended: bool = True, same_tokens: bool | None = None
) -> Speedup:
    """Standard time / speculative time. ``ended``: both sides finished by themselves (a cut stream has no ratio).

    ``decode`` compares time per output token, so it holds for unequal lengths too. ``e2e`` compares wall times and is
    None when the outputs differ in length: a shorter answer is no speedup (reported fault D16). ``same_tokens`` is
    whether both wrote the same tokens, None if unknown; ids that a server left behind the end make no other text.
    Counts estimated by chunks are no basis: a speculative chunk holds several tokens (reported fault D04).
    """
    if not ended:
        reason = sentence("both_finish")
        return Speedup(basis=reason, reasons=tuple((name, reason) for name in ("decode", "e2e", "ttft")))
    reasons: list[tuple[str, str]] = []
    lengths = standard.output_tokens, speculative.output_tokens
    decode = None
    estimated = "approximate" in (standard.count_source, speculative.count_source)
    if estimated:
        lengths = None, None
        reasons.append(("decode", sentence("by_chunks")))
    else:
        decode = _ratio(speculative.decode_tokens_per_s, standard.decode_tokens_per_s)
        if decode is None:
            reasons.append(("decode", sentence("no_decode_rate")))
    ttft = _ratio(standard.ttft_s, speculative.ttft_s)
    if ttft is None:
        reasons.append(("ttft", sentence("side_no_token")))
    e2e = None
    if estimated and not same_tokens:
        reasons.append(("e2e", sentence("by_chunks")))
    elif lengths[0] != lengths[1] and not (same_tokens and None not in lengths):
        reasons.append(("e2e", sentence("other_lengths", left=lengths[0], right=lengths[1])))
    else:
        e2e = _ratio(standard.e2el_s, speculative.e2el_s)
        if e2e is None:
            reasons.append(("e2e", sentence("no_e2e")))
    return Speedup(decode, e2e, ttft, _basis(lengths, same_tokens), tuple(reasons))


def _ratio(top: float | None, bottom: float | None) -> float | None:
    return top / bottom if top is not None and bottom else None


def _basis(lengths: tuple[int | None, int | None], same_tokens: bool | None) -> str:
    if lengths[0] is None or lengths[1] is None:
        return sentence("basis_unknown")
    if same_tokens:
        return sentence("basis_same", count=min(lengths[0], lengths[1]))
    if lengths[0] != lengths[1]:
        return sentence("basis_lengths", left=lengths[0], right=lengths[1])
    if same_tokens is False:
        return sentence("basis_texts", count=lengths[0])
    return sentence("basis_each", count=lengths[0])
