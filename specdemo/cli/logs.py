"""Logging of every command: to stderr, at the level that was set, as text or as JSON lines, without secrets.

A line tells what happened to which run; never a prompt, an output or an address of a visitor.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from collections.abc import Iterable
from urllib.parse import quote

from pydantic import SecretStr
from pythonjsonlogger.json import JsonFormatter

from specdemo.core.masking import MASK, address_secrets, masked
from specdemo.settings import Settings

_PATTERNS = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[^\s\"',;<>]{4,}"), r"\1 ********"),
    (re.compile(r"\b(sk|hf)([-_])[A-Za-z0-9_-]{6,}"), r"\1\2********"),
)
_TALKATIVE = ("alembic", "httpx", "httpcore", "urllib3", "asyncio", "matplotlib", "multipart", "python_multipart")


class MaskingFormatter(logging.Formatter):
    """Masks known secrets, and what looks like one, in the whole text of a record: message, arguments and traceback."""

    def __init__(self, secrets: Iterable[str] = (), *, inner: logging.Formatter | None = None) -> None:
        super().__init__()
        self._inner = inner or logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s", "%H:%M:%S")
        kept = {secret for secret in secrets if len(secret) >= 4}
        kept |= {form for secret in kept for form in (quote(secret), quote(secret, safe=""))}
        kept |= {json.dumps(secret, ensure_ascii=plain)[1:-1] for secret in kept for plain in (True, False)}
        # Longest first, so that a key that contains another one is masked as a whole.
        self._secrets = sorted(kept, key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        """The record's text without secrets."""
        return self.mask(self._inner.format(record))

    def mask(self, text: str) -> str:
        """``text`` without secrets."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        for pattern, replacement in _PATTERNS:
            text = pattern.sub(replacement, text)
        return masked(text)


def secrets_of(settings: Settings) -> tuple[str, ...]:
    """Every secret value among the settings, and the logins and keys inside their addresses, in every form."""
    server = settings.server
    held = [
        settings.standard.api_key,
        settings.speculative.api_key,
        server.auth,
        server.token,
        server.secret,
        server.metrics_token,
    ]
    values = [secret.get_secret_value() for secret in held if secret is not None]
    addresses = [settings.standard.base_url, settings.speculative.base_url, _plain(settings.store.url)]
    inside = [secret for address in addresses if address for secret in address_secrets(address)]
    return (*values, *(value.partition(":")[2] for value in values if ":" in value), *inside)


def _plain(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret is not None else None


def set_up(settings: Settings) -> None:
    """Send all logging to stderr; call once a process, again to change the level or the secrets."""
    handler = logging.StreamHandler(sys.stderr)
    inner = _json() if settings.log_format == "json" else None
    handler.setFormatter(MaskingFormatter(secrets_of(settings), inner=inner))
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler], force=True)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)


def _json() -> logging.Formatter:
    """One JSON object a line: time (UTC), level, logger, message, and what the place adds (event, run, seconds …)."""
    fields = {"asctime": "time", "levelname": "level", "name": "logger"}
    formatter = JsonFormatter(
        "%(asctime)s %(levelname)s %(name)s %(message)s", datefmt="%Y-%m-%dT%H:%M:%SZ", rename_fields=fields
    )
    formatter.converter = time.gmtime
    return formatter
