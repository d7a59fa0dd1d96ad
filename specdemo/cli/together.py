"""Checks before engines are loaded: flags that would have no effect, and files that could not be written at the end."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from specdemo.errors import StoreError, UsageError


def alone(command: Callable[..., Any], given: Mapping[str, object], chosen: str, *, but: Collection[str]) -> None:
    """Refuse the command's own flags beside ``chosen`` that it would leave without effect. Raises UsageError.

    ``given`` are the values by parameter; ``but`` names the parameters that keep their meaning beside it.
    """
    for parameter in list(inspect.signature(command, eval_str=True).parameters.values())[1:]:
        option = parameter.annotation.__metadata__[0]
        flag = next(word for word in (option.default, *(option.param_decls or ())) if isinstance(word, str))
        if flag != chosen and parameter.name not in but and given[parameter.name] not in (None, parameter.default):
            raise UsageError(f"{flag} has no effect with {chosen}; leave one of them out.")


def check_target(path: Path | None) -> None:
    """Whether a file can be written there, as far as can be told without writing. Raises StoreError."""
    if path is None:
        return
    if path.is_dir():
        raise StoreError(f"{path} can't be written: it is a folder.")
    above = next(folder for folder in path.absolute().parents if folder.exists())
    if not above.is_dir():
        raise StoreError(f"{path} can't be written: {above} is no folder.")
    if not os.access(path if path.exists() else above, os.W_OK):
        raise StoreError(f"{path} can't be written: permission denied.")


def check_new(path: Path | None) -> None:
    """The same for a file that must not exist yet. Raises StoreError."""
    if path is not None and path.exists():
        raise StoreError(f"{path} exists already; resume it with --resume, or choose another name.")
    check_target(path)
