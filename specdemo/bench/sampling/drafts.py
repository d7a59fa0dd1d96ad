"""The n-gram drafts that the speculative engine must have made, recomputed from the token ids. Pure.

vLLM's prompt lookup: the longest suffix of the context with length min..max that occurs earlier; of several places the
first; the k tokens after it. A step delivers the leading drafts that were accepted and one more token, so with a
lossless engine the ids themselves tell where each step began. Under the null hypothesis the leak test is valid for any
prediction that depends on the past alone; a wrong guess of the drafts costs power, never truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lookup:
    """Prompt lookup: draft length and n-gram lengths (vLLM's num_speculative_tokens, prompt_lookup_min, _max)."""

    k: int = 4
    shortest: int = 2
    longest: int = 4

    def draft(self, context: Sequence[int]) -> tuple[int, ...]:
        """The tokens proposed after ``context``; empty if nothing matches."""
        size = len(context)
        for length in range(min(self.longest, size - 1), self.shortest - 1, -1):
            suffix = tuple(context[size - length :])
            for start in range(size - length):
                if context[start] == suffix[0] and tuple(context[start : start + length]) == suffix:
                    return tuple(context[start + length : start + length + self.k])
        return ()


def drafted(prompt: Sequence[int], output: Sequence[int], lookup: Lookup) -> tuple[int | None, ...]:
    """For each output position the drafted token that was tried there, None where none was.

    The first output token comes from prefill and never has a draft.
    """
    tried: list[int | None] = [None] * len(output)
    context = [*prompt, *output[:1]]
    at = 1
    while at < len(output):
        for token in lookup.draft(context):
            if at >= len(output):
                break
            tried[at] = token
            context.append(output[at])
            at += 1
            if output[at - 1] != token:
                break
        else:
            if at < len(output):
                context.append(output[at])
                at += 1
    return tuple(tried)
