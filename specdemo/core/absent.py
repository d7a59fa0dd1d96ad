"""Why a number is absent, in one sentence each: an empty field always says its reason."""

from __future__ import annotations


def rate(tokens: int | None, chunks: int) -> str:
    """Why there is no time per token, for a side with so many ``tokens`` in so many ``chunks``."""
    if not tokens:
        return "No token has arrived."
    if tokens == 1:
        return "One token has no time per token."
    if chunks <= 1:
        return "All tokens came in one chunk, so no rate can be told."
    return "All chunks came at once, so no rate can be told."


def steps(*, merged: bool, counted: bool) -> str:
    """Why there is no number of tokens per step; ``counted``: each chunk's tokens are known."""
    if merged:
        return "The server merged several engine steps into one chunk."
    if not counted:
        return "The server sends no token ids, so steps cannot be counted."
    return "No decode step was seen."
