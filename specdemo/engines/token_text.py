"""The text of each single token of a chunk, by the model's own tokenizer file, only where it is certain.

The engine joins the texts of a burst's tokens. Given ``tokenizer.json`` the same incremental decoder that the engine
uses (the tokenizers library's DecodeStream) gives them one by one. Joined they must be the chunk's text; where they
are not (text held back for a stop string, another model's file), the answer is None and nothing is guessed.
"""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

from specdemo.engines.wire.completions import Split
from specdemo.errors import SetupError


class TokenText:
    """A loaded tokenizer. Calling it starts a stream: it is a ``client.Splitter``."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def __call__(self) -> Split:
        """A fresh splitter for one answer."""
        return _Stream(self._tokenizer).split


def load(path: Path) -> TokenText | None:
    """From a ``tokenizer.json`` or the model folder that holds one; None if there is none.

    Raises SetupError if the file is broken.
    """
    file = path / "tokenizer.json" if path.is_dir() else path
    if not file.is_file():
        return None
    try:
        return TokenText(Tokenizer.from_file(str(file)))
    except Exception as error:  # the library raises bare Exception
        raise SetupError(f"{file.name} cannot be read as a tokenizer; get the model's files again.") from error


class _Stream:
    """One answer's decoder. It keeps going after a chunk that did not fit."""

    __slots__ = ("_decoder", "_tokenizer")

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._decoder = DecodeStream(skip_special_tokens=True)

    def split(self, ids: tuple[int, ...], text: str) -> tuple[str, ...] | None:
        """Every id goes through the decoder, in order; the result counts only if it fits the chunk's text."""
        pieces = tuple(self._step(token) for token in ids)
        return pieces if "".join(pieces) == text else None

    def _step(self, token: int) -> str:
        try:
            return self._decoder.step(self._tokenizer, token) or ""
        except Exception:  # noqa: BLE001 - the library raises bare Exception: an id that the file does not know, or bytes that do not continue: start afresh
            self._decoder = DecodeStream(skip_special_tokens=True)
            return ""
