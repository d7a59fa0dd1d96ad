"""Where the prompt of a command comes from, and the sampling fields around it."""

from __future__ import annotations

import sys
from pathlib import Path

from specdemo.core.prompt import Message, Prompt, Sampling
from specdemo.errors import PromptError, UsageError

MOST_BYTES = 8_000_000


def read_prompt(text: str | None, file: Path | None) -> str:
    """The prompt from the argument, from stdin ("-") or from a file; exactly one of them.

    One final line break of stdin or file is dropped, as it belongs to the shell or the editor.
    """
    if (text is None) == (file is None):
        raise UsageError("Give the prompt as an argument, as - for stdin, or with --file; exactly one of them.")
    if text is not None and text != "-":
        return text
    raw = sys.stdin.buffer.read(MOST_BYTES + 1) if file is None else _bytes(file)
    if len(raw) > MOST_BYTES:
        raise PromptError(f"The prompt is larger than {MOST_BYTES // 1_000_000} MB; no engine reads that much.")
    try:
        decoded = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PromptError(f"The prompt is not UTF-8 text (byte {error.start}); save it as UTF-8.") from None
    if "\x00" in decoded:  # UTF-16 without a mark reads as UTF-8 where it has Latin letters only
        raise PromptError("The prompt holds a zero byte, so it is no text in UTF-8; save it as UTF-8.")
    return decoded.removesuffix("\n").removesuffix("\r")


def _bytes(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise PromptError(f"{file} cannot be read: {error.strerror or error}.") from None


def build_prompt(text: str, *, system: str, plain: bool, sampling: Sampling, logprobs: int | None) -> Prompt:
    """A chat of one turn, or with ``plain`` the text itself for plain completions on both sides."""
    if plain:
        if system:
            raise UsageError("--system needs a chat; with --plain write it into the prompt itself.")
        return Prompt(text=text, sampling=sampling, logprobs=logprobs)
    turns = (*((Message("system", system),) if system else ()), Message("user", text))
    return Prompt(messages=turns, sampling=sampling, logprobs=logprobs)
