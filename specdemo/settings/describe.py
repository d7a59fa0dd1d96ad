"""The settings as a list: name, variable, default and meaning of each. README's table and every message use it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, get_args

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from specdemo.core.masking import MASK, is_secret_name, masked
from specdemo.settings.schema import DELIMITER, PREFIX, Settings

_PARTS = re.compile(r"[.]|__")


@dataclass(frozen=True, slots=True)
class Described:
    """One setting. ``name`` is dotted as in TOML, ``variable`` its environment name, ``default`` as shown."""

    name: str
    variable: str
    default: str
    description: str
    secret: bool
    field: FieldInfo


def described() -> tuple[Described, ...]:
    """All settings in the order of the schema."""
    return tuple(_walk(Settings, ()))


def by_name() -> dict[str, Described]:
    """The settings by dotted name."""
    return {entry.name: entry for entry in described()}


def _walk(model: type[BaseModel], path: tuple[str, ...]) -> Iterator[Described]:
    for name, field in model.model_fields.items():
        here = (*path, name)
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _walk(kind, here)
            continue
        secret = SecretStr in (kind, *get_args(kind))
        yield Described(
            name=".".join(here),
            variable=PREFIX + DELIMITER.join(here).upper(),
            default=show(field.default),
            description=field.description or "",
            secret=secret,
            field=field,
        )


def show(value: Any) -> str:
    """A value as a person would write it; secrets, and logins and keys inside addresses, are masked."""
    if isinstance(value, SecretStr):
        return MASK
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return " ".join(f"--{name}={given}" if given else f"--{name}" for name, given in _flags(value).items())
    return masked(value) if isinstance(value, str) else str(value)


def plain(value: Any) -> Any:
    """The same for JSON: numbers stay numbers, what is not set is null."""
    if isinstance(value, SecretStr):
        return MASK
    if isinstance(value, tuple):
        return _flags(value)
    if isinstance(value, PurePath):
        return str(value)
    return show(value) if isinstance(value, str) else value


def _flags(pairs: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return {name: MASK if given and is_secret_name(name) else masked(given) for name, given in pairs}


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like ``name``, or None when nothing is near.

    The right last part in a wrong (or no) table is the commonest slip ("port" for "server.port"), so last parts are
    compared too.
    """
    asked = name.upper().removeprefix(PREFIX)
    scored = [(_likeness(asked, choice.upper().removeprefix(PREFIX)), choice) for choice in known]
    score, best = max(scored, default=(0.0, ""))
    return best if score >= 0.6 else None


def _likeness(asked: str, choice: str) -> float:
    whole = difflib.SequenceMatcher(None, asked, choice).ratio()
    last = difflib.SequenceMatcher(None, _PARTS.split(asked)[-1], _PARTS.split(choice)[-1]).ratio()
    return max(whole, 0.95 * last)


def markdown() -> str:
    """README's table of settings."""
    lines = ["| variable | setting | default | meaning |", "|---|---|---|---|"]
    for entry in described():
        default = f"`{entry.default}`" if entry.default else "–"
        lines.append(f"| `{entry.variable}` | `{entry.name}` | {default} | {entry.description} |")
    return "\n".join(lines) + "\n"
