"""Where settings come from, weakest first: public profile < hosted Space < SPECDEMO_* < .env < TOML < command line.

Each layer is a flat mapping from dotted names to raw values, so that the origin of every effective value is known
and an unknown name can be answered with the nearest right one.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dotenv import dotenv_values
from pydantic import SecretStr, TypeAdapter, ValidationError
from pydantic_settings import EnvSettingsSource
from pydantic_settings.exceptions import SettingsError

from specdemo.errors import ConfigError
from specdemo.settings.describe import Described, by_name, described, nearest, plain, show
from specdemo.settings.schema import DELIMITER, PREFIX, Settings

TEST_PREFIX = "SPECDEMO_TEST_"  # for the test suite alone, such as the browser to use
CONFIG_VARIABLE = "SPECDEMO_CONFIG"
DEFAULT_FILE = "specdemo.toml"

ALIASES = {"SPECDEMO_PUBLIC": "SPECDEMO_SERVER__PUBLIC"}
"""Short names of variables that people set most."""
PUBLIC: dict[str, Any] = {
    "limits.max_tokens": 512,
    "limits.prompt_chars": 8000,
    "limits.prompt_tokens": 2000,
    "limits.runs_per_minute": 6,
    "limits.open_runs": 2,
    "limits.waiting_runs": 16,
    "limits.stored_runs": 20,
    "limits.requests_per_minute": 600,
    "limits.streams": 24,
    "limits.upload_mb": 1.0,
    "limits.first_token_s": 120.0,
    "limits.run_s": 300.0,
}
"""What changes by itself when strangers may come; every setting of its own still wins."""

Flat = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Layer:
    """One source: its name for people, and the values it sets."""

    origin: str
    values: Flat


@dataclass(frozen=True, slots=True)
class Loaded:
    """The effective settings, and the origin of every one that is not a default."""

    settings: Settings
    origins: Mapping[str, str]

    def rows(self) -> list[dict[str, Any]]:
        """Name, value (masked), origin and the rest of every setting, for ``specdemo config``."""
        rows = []
        for entry in described():
            value = _get(self.settings, entry.name)
            rows.append({
                "name": entry.name, "value": plain(value), "shown": show(value),
                "origin": self.origins.get(entry.name, "default"),
                "default": entry.default, "variable": entry.variable, "description": entry.description,
            })  # fmt: skip
        return rows


class _Variables(EnvSettingsSource):
    """pydantic-settings' reading of variables (nesting, JSON in complex fields), from a mapping that we hand in."""

    def __init__(self, variables: Mapping[str, str | None]) -> None:
        self._variables = variables
        super().__init__(Settings, case_sensitive=False, env_prefix=PREFIX, env_nested_delimiter=DELIMITER)

    def _load_env_vars(self) -> Mapping[str, str | None]:
        return self._variables


def load(
    flags: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
    config: Path | None = None,
) -> Loaded:
    """Read all layers and validate. ``flags`` are dotted names from the command line; None values are not set.

    ``environ`` and ``folder`` stand in for the process's own environment and working folder. Raises ConfigError,
    one sentence a fault, none of them with a secret in it.
    """
    environ = os.environ if environ is None else environ
    folder = Path.cwd() if folder is None else folder
    dotenv = _dotenv(folder / ".env")
    layers = [
        Layer("hosted Space", _hosted(environ)),
        Layer("environment", _variables(environ, "the environment")),
        Layer(".env", _variables(dotenv, ".env")),
        _toml(config, environ, dotenv, folder),
        Layer("command line", _named({k: v for k, v in (flags or {}).items() if v is not None}, "the command line")),
    ]
    if _is_public(layers):
        layers.insert(0, Layer("public profile", dict(PUBLIC)))
    merged: Flat = {}
    origins: dict[str, str] = {}
    for layer in layers:
        for name, value in layer.values.items():
            merged[name] = value
            origins[name] = layer.origin
    try:
        settings = Settings(**_nested(merged))
    except ValidationError as error:
        raise ConfigError(_sentences(error, origins)) from None
    except RecursionError:
        raise ConfigError("A setting holds lists or tables too deep to be read; make it flatter.") from None
    for entry in described():
        value = _get(settings, entry.name)
        if isinstance(value, int) and abs(value) >= 2**63:
            raise ConfigError(_bad(entry, origins[entry.name], "must have fewer digits", value))
        if isinstance(value, str | Path) and "\0" in str(value):
            raise ConfigError(_bad(entry, origins[entry.name], "must not hold a null character", str(value)))
    return Loaded(settings, origins)


def _is_public(layers: list[Layer]) -> bool:
    given = [layer.values["server.public"] for layer in layers if "server.public" in layer.values]
    try:
        return bool(given) and TypeAdapter(bool).validate_python(given[-1])
    except ValidationError:
        return False  # the whole is validated afterwards, and says what is wrong


def hosted(environ: Mapping[str, str] | None = None) -> bool:
    """Whether this process runs in a hosted Space."""
    return bool((os.environ if environ is None else environ).get("SPACE_ID"))


def _hosted(environ: Mapping[str, str]) -> Flat:
    """A hosted Space says where to listen, and whoever opens it is a stranger."""
    if not hosted(environ):
        return {}
    port = environ.get("GRADIO_SERVER_PORT", "")
    everywhere = "0.0.0.0"  # noqa: S104 - the Space's own proxy comes from outside the container
    return {
        "server.host": everywhere,
        "server.port": int(port) if re.fullmatch(r"[0-9]{1,5}", port) else 7860,
        "server.public": True,
        "server.proxies": "10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,127.0.0.1,::1",
    }


def _dotenv(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    try:
        # As it stands: a "$" in a password is no variable, and editors on Windows put a mark before the first name.
        found = dotenv_values(path, interpolate=False, encoding="utf-8-sig")
        return {name: value for name, value in found.items() if value is not None}
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"{path.name} cannot be read as text; mend or remove it.") from None


def _variables(variables: Mapping[str, str], where: str) -> Flat:
    """The SPECDEMO_* variables by dotted name. One underscore instead of two is accepted where only one name fits."""
    known = {entry.variable: entry for entry in described()}
    loose = {name.replace(DELIMITER, "_"): name for name in known}
    found: dict[str, str] = {}
    for given, value in variables.items():
        name = ALIASES.get(given.upper(), given.upper())
        if not name.startswith(PREFIX) or name.startswith(TEST_PREFIX) or name == CONFIG_VARIABLE or value == "":
            continue
        right = name if name in known else loose.get(name)
        if right is None:
            raise ConfigError(_unknown(given, where, nearest(name, known)))
        found[right] = value
    values: Flat = {}
    for name, value in found.items():
        entry = known[name]
        try:
            values.update(_flat(_Variables({name.lower(): value})()))
        except (SettingsError, RecursionError, ValueError):
            raise ConfigError(_bad(entry, where, "must be JSON", value)) from None
    return values


def _toml(config: Path | None, environ: Mapping[str, str], dotenv: Mapping[str, str], folder: Path) -> Layer:
    variable = dotenv.get(CONFIG_VARIABLE) or environ.get(CONFIG_VARIABLE)
    named = config or (Path(variable) if variable else None)
    path = folder / (named or DEFAULT_FILE)
    origin = str(named or DEFAULT_FILE)
    if not path.is_file():
        if named is not None:
            raise ConfigError(f"The settings file {origin} does not exist; name another or leave it out.")
        return Layer(origin, {})
    try:
        table = _flat(tomllib.loads(path.read_text(encoding="utf-8-sig")))
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"The settings file {origin} cannot be read as text.") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"The settings file {origin} is not TOML: {error}.") from None
    except (ValueError, RecursionError):
        raise ConfigError(f"The settings file {origin} has a number too long or tables too deep to be read.") from None
    return Layer(origin, _named(table, origin))


def _named(values: Flat, where: str) -> Flat:
    known = by_name()
    for name in values:
        if name not in known:
            raise ConfigError(_unknown(name, where, nearest(name, known)))
    return values


def _flat(table: Mapping[str, Any], path: tuple[str, ...] = ()) -> Flat:
    """Nested tables to dotted names, stopping at a setting: a table may be a setting's own value."""
    known = by_name()
    flat: Flat = {}
    for key, value in table.items():
        name = ".".join((*path, key))
        if isinstance(value, Mapping) and name not in known:
            flat.update(_flat(value, (*path, key)))
        else:
            flat[name] = value
    return flat


def _nested(flat: Flat) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, value in flat.items():
        *tables, last = name.split(".")
        here = tree
        for table in tables:
            here = here.setdefault(table, {})
        here[last] = value
    return tree


def _get(settings: Settings, name: str) -> Any:
    value: Any = settings
    for part in name.split("."):
        value = getattr(value, part)
    return value


def parse_assignment(text: str) -> tuple[str, Any]:
    """``engine.max_model_len=4096`` of ``--set``: JSON where it parses to an object or list, else the text itself."""
    name, mark, value = text.partition("=")
    if not mark:
        raise ConfigError(f"--set takes NAME=VALUE, and {text!r} has no '='.")
    name = name.strip()
    if value[:1] in "{[":
        try:
            return name, json.loads(value)
        except (ValueError, RecursionError):
            fault = "looks like JSON and cannot be read as such: check its brackets, quotes and numbers"
            raise ConfigError(f"--set {name} {fault}.") from None
    return name, value


def _unknown(name: str, where: str, near: str | None) -> str:
    hint = f" Did you mean {near}?" if near else " `specdemo config` lists them all."
    return f"{name} in {where} is not a setting.{hint}"


def _bad(entry: Described, where: str, rule: str, value: Any) -> str:
    given = "" if entry.secret else f", not {_short(value)}"
    return f"{entry.name} ({where}) {rule}{given}."


def _short(value: Any) -> str:
    if isinstance(value, SecretStr):
        return "that"
    try:
        text = show(value) if isinstance(value, str) else json.dumps(value, default=str)
    except (ValueError, RecursionError):
        return "that"  # a number of thousands of digits, or a table too deep
    text = text if len(text) <= 60 else text[:57] + "…"
    return f'"{text}"' if isinstance(value, str) else text


_RULES = {
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "string_type": "must be text",
    "path_type": "must be a path",
    "tuple_type": "must be a table of flags",
}


def _own_words(message: str) -> str:
    message = message.removeprefix("Value error, ")
    return message if message.startswith("must ") else "is not valid: " + message[:1].lower() + message[1:]


def _sentences(error: ValidationError, origins: Mapping[str, str]) -> str:
    """One sentence a fault: the setting, where the value came from, what it must be, what it was."""
    known = by_name()
    sentences = []
    for fault in error.errors(include_url=False):
        parts = [str(part) for part in fault["loc"]]
        name = next((".".join(parts[:n]) for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in known), None)
        if name is None:
            sentences.append(f"{'.'.join(parts)} must be a table of settings, not {_short(fault['input'])}.")
            continue
        context = fault.get("ctx", {})
        match fault["type"]:
            case "literal_error":
                rule = f"must be one of {context.get('expected', '')}"
            case "greater_than":
                rule = f"must be above {context['gt']}"
            case "greater_than_equal":
                rule = f"must be at least {context['ge']}"
            case "less_than_equal":
                rule = f"must be at most {context['le']}"
            case "string_pattern_mismatch":
                rule = "must be empty or a path that starts with /"
            case kind:
                rule = _RULES.get(kind) or _own_words(fault["msg"])
        sentence = _bad(known[name], origins.get(name, "default"), rule, fault["input"])
        if sentence not in sentences:
            sentences.append(sentence)
    return "\n".join(sentences)
