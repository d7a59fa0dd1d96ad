"""Logging of every command: to stderr, at the level that was set, without secrets."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterable

from specdemo.settings import Settings

_PATTERNS = (
    (re.compile(r"(://)[^/@\s]+@"), r"\1********@"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{4,}"), r"\1 ********"),
    (re.compile(r"\b(sk|hf)([-_])[A-Za-z0-9_-]{6,}"), r"\1\2********"),
)
_TALKATIVE = ("httpx", "httpcore", "urllib3", "asyncio", "matplotlib", "multipart", "python_multipart")


class MaskingFormatter(logging.Formatter):
    """Masks known secrets, and what looks like one, in the whole text of a record: message, arguments and traceback."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s", datefmt="%H:%M:%S")
        # Longest first, so that a key that contains another one is masked as a whole.
        self._secrets = sorted({secret for secret in secrets if len(secret) >= 4}, key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        """The record's text without secrets."""
        return self.mask(super().format(record))

    def mask(self, text: str) -> str:
        """``text`` without secrets."""
        for secret in self._secrets:
            text = text.replace(secret, "********")
        for pattern, replacement in _PATTERNS:
            text = pattern.sub(replacement, text)
        return text


def secrets_of(settings: Settings) -> tuple[str, ...]:
    """Every secret value among the settings."""
    held = [settings.standard.api_key, settings.speculative.api_key, settings.server.auth]
    values = [secret.get_secret_value() for secret in held if secret is not None]
    return (*values, *(value.partition(":")[2] for value in values if ":" in value))


def set_up(settings: Settings) -> None:
    """Send all logging to stderr; call once a process, again to change the level or the secrets."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(MaskingFormatter(secrets_of(settings)))
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler], force=True)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)
