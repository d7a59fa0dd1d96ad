"""Why a number is absent, in one sentence each: an empty field always says its reason."""

from __future__ import annotations

from specdemo.core.sentences import sentence


def rate(tokens: int | None, chunks: int) -> str:
    """Why there is no time per token, for a side with so many ``tokens`` in so many ``chunks``."""
    if not tokens:
        return sentence("no_token")
    if tokens == 1:
        return sentence("one_token")
    if chunks <= 1:
        return sentence("one_chunk")
    return sentence("at_once")


def steps(*, merged: bool, counted: bool) -> str:
    """Why there is no number of tokens per step; ``counted``: each chunk's tokens are known."""
    if merged:
        return sentence("steps_merged")
    if not counted:
        return sentence("steps_no_ids")
    return sentence("no_step")
