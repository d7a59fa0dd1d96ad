"""How close two candidates must be for a split to be called a near tie: by number format, with the price stated.

Two kernels that add the same numbers in another order round differently; a verify pass (k+1 rows) and a decode pass
(one row) of the same model therefore differ by a few spacings of the format. The defaults are two to four spacings of
a logit at 16 to 32 (float32: a round value 25 times the largest change seen). A larger tolerance excuses more real
faults: the share of positions whose two best candidates lie that close was 0 % below 0.001 nats, 2.3 % below 0.06 and
10 % below 0.25 (a small model on a CPU).
"""

from __future__ import annotations

from dataclasses import dataclass

from specdemo.core.sentences import sentence

_BY_DTYPE = {
    "float32": 1e-3,
    "float16": 0.06,
    "bfloat16": 0.25,
}
_ALIASES = {"float": "float32", "fp32": "float32", "half": "float16", "fp16": "float16", "bf16": "bfloat16"}
_PLAIN = frozenset({"", "none", "null", "false", "no"})


@dataclass(frozen=True, slots=True)
class Tolerance:
    """``nats`` between two log-probabilities; ``source`` says in words where the value comes from."""

    nats: float
    source: str


def tolerance(dtype: str | None, quantization: str | None = None) -> Tolerance:
    """The default for a number format; quantised and unknown formats get bfloat16's, and say so."""
    name = (dtype or "").lower().removeprefix("torch.")
    name = _ALIASES.get(name, name)
    if (quantization or "").lower() not in _PLAIN:
        return Tolerance(_BY_DTYPE["bfloat16"], sentence("part_quantised", name=quantization))
    known = _BY_DTYPE.get(name)
    if known is not None:
        return Tolerance(known, sentence("part_default", name=name))
    return Tolerance(_BY_DTYPE["bfloat16"], sentence("part_dtype_unknown"))
