"""A made-up tokenizer and language, the same in every process: words with their leading space are tokens."""

from __future__ import annotations

import re
import zlib

_PIECES = re.compile(r"\s?\w+|\s|[^\w\s]", re.UNICODE)
_STORY = (
    "The river was slow that evening, and the two boats went down it side by side. One boat asked the current for "
    "every metre. The other boat guessed where the current would go, and was mostly right. When it was wrong, it went "
    "back one step, and nobody on the bank could tell the difference. So both boats came to the same place, by the "
    "same way, and only the clock knew which one had waited less. "
)


class Words:
    """Text to ids and back. It remembers the pieces it has seen, so that ids can be turned back into text."""

    def __init__(self) -> None:
        self._known: dict[int, str] = {}

    def pieces(self, text: str) -> list[str]:
        """Token texts; joined they are the text again."""
        return _PIECES.findall(text)

    def encode(self, text: str) -> list[int]:
        """One id a piece, in 100..48999."""
        ids = []
        for piece in self.pieces(text):
            token = 100 + zlib.crc32(piece.encode()) % 48900
            self._known[token] = piece
            ids.append(token)
        return ids

    def decode(self, ids: list[int]) -> str:
        """Ids back to text; an unknown id reads as ``<id>``."""
        return "".join(self._known.get(token, f"<{token}>") for token in ids)

    def story(self, count: int) -> list[str]:
        """``count`` pieces of the story, going round."""
        pieces = self.pieces(_STORY)
        return [pieces[index % len(pieces)] for index in range(count)]


def chat_text(messages: object) -> str:
    """The made-up chat template."""
    turns = messages if isinstance(messages, list) else []
    return (
        "".join(f"<{turn.get('role')}>{turn.get('content')}" for turn in turns if isinstance(turn, dict))
        + "<assistant>"
    )
