"""Flags that every command has: where settings come from, and which engines are meant."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from specdemo.cli.logs import set_up
from specdemo.settings import Loaded, load, parse_assignment

_ATTACHED = "Attached engines"
_MANAGED = "Engines that specdemo starts"
_SETTINGS = "Settings"


def _flag(name: str, help_text: str, panel: str, **more: Any) -> Any:
    return typer.Option(name, help=help_text, rich_help_panel=panel, **more)


def _shared(
    standard_url: Annotated[str | None, _flag("--standard-url", "Address of the standard engine.", _ATTACHED)] = None,
    speculative_url: Annotated[
        str | None, _flag("--speculative-url", "Address of the speculative engine.", _ATTACHED)
    ] = None,
    standard_key: Annotated[str | None, _flag("--standard-key", "API key of the standard engine.", _ATTACHED)] = None,
    speculative_key: Annotated[
        str | None, _flag("--speculative-key", "API key of the speculative engine.", _ATTACHED)
    ] = None,
    standard_ca: Annotated[
        Path | None, _flag("--standard-ca", "Private certificate authority of the standard engine.", _ATTACHED)
    ] = None,
    speculative_ca: Annotated[
        Path | None, _flag("--speculative-ca", "The same for the speculative engine.", _ATTACHED)
    ] = None,
    model: Annotated[
        str | None, _flag("--model", "Model to start engines with, or to ask attached engines for.", _MANAGED)
    ] = None,
    speculation: Annotated[
        str | None, _flag("--speculation", "Preset (ngram, draft_model, …, none) or vLLM's JSON.", _MANAGED)
    ] = None,
    draft_model: Annotated[str | None, _flag("--draft-model", "Draft model.", _MANAGED)] = None,
    k: Annotated[int | None, _flag("--k", "Draft tokens a step.", _MANAGED)] = None,
    profile: Annotated[str | None, _flag("--profile", "Named set of engine flags.", _MANAGED)] = None,
    engines: Annotated[
        str | None, _flag("--engines", "managed, attached or replay; found by itself when not given.", _SETTINGS)
    ] = None,
    config: Annotated[Path | None, _flag("--config", "TOML file with settings.", _SETTINGS)] = None,
    assign: Annotated[list[str] | None, _flag("--set", "NAME=VALUE: any setting, again and again.", _SETTINGS)] = None,
    log_level: Annotated[str | None, _flag("--log-level", "debug, info, warning or error.", _SETTINGS)] = None,
) -> tuple[dict[str, Any], Path | None, str | None]:
    """These flags as settings by dotted name, the TOML file, and the model that was named."""
    flags: dict[str, Any] = dict(parse_assignment(text) for text in assign or ())
    named = {
        "standard.base_url": standard_url,
        "speculative.base_url": speculative_url,
        "standard.api_key": standard_key,
        "speculative.api_key": speculative_key,
        "standard.ca_file": standard_ca,
        "speculative.ca_file": speculative_ca,
        "engine.speculation": speculation,
        "engine.draft_model": draft_model,
        "engine.k": k,
        "engine.profile": profile,
        "mode": engines,
        "log_level": log_level,
    }
    flags.update({name: value for name, value in named.items() if value is not None})
    return flags, config, model


def _load(flags: dict[str, Any], config: Path | None, model: str | None) -> Loaded:
    loaded = load(flags, config=config)
    if model is not None:
        # One flag for both worlds: what to load into our own engines, or what to ask attached ones for.
        names = ("standard.model", "speculative.model") if _attaches(loaded) else ("engine.model",)
        loaded = load({**flags, **dict.fromkeys(names, model)}, config=config)
    set_up(loaded.settings)
    return loaded


def _attaches(loaded: Loaded) -> bool:
    settings = loaded.settings
    given = settings.standard.base_url is not None or settings.speculative.base_url is not None
    return settings.mode == "attached" or (settings.mode == "auto" and given)


def with_settings(command: Callable[..., int | None]) -> Callable[..., None]:
    """The command with the shared flags beside its own; it gets the loaded settings first and returns its exit code.

    ``command.settings_flags``, if there, is a function whose parameters are further flags and whose result is settings
    by dotted name (None: not set); so a command may have flags of its own for settings.
    """
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    further = getattr(command, "settings_flags", None)
    sources = [_shared] if further is None else [_shared, further]
    extra = [list(inspect.signature(source, eval_str=True).parameters.values()) for source in sources]
    parameters = [p.replace(kind=p.KEYWORD_ONLY) for group in (own, *reversed(extra)) for p in group]

    @functools.wraps(command)
    def wrapper(**given: Any) -> None:
        flags, config, model = _shared(**{p.name: given.pop(p.name) for p in extra[0]})
        if further is not None:
            more = further(**{p.name: given.pop(p.name) for p in extra[1]})
            flags.update({name: value for name, value in more.items() if value is not None})
        code = command(_load(flags, config, model), **given)
        if code:
            raise typer.Exit(code)

    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
    return wrapper
