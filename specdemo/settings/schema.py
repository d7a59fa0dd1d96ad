"""Every setting: its name, type, default and meaning. ``Settings`` is frozen and read once, at the composition root."""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, StringConstraints
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

PREFIX = "SPECDEMO_"
DELIMITER = "__"


def _json_text(value: Any) -> Any:
    """A TOML table or a decoded JSON object becomes JSON text again: one frozen form for all sources."""
    return _dumps(value) if isinstance(value, dict) else value


def _dumps(value: Any) -> str:
    try:
        return json.dumps(value, sort_keys=True)
    except (ValueError, RecursionError):
        raise ValueError("must hold no number of thousands of digits and no table too deep") from None


def _flag_pairs(value: Any) -> Any:
    """``{"block-size": 16, "enable-x": true}`` becomes ordered pairs; a switch has the empty value."""
    if not isinstance(value, dict):
        return value
    pairs = []
    for name, given in value.items():
        if given is False:
            continue
        pairs.append((str(name).lstrip("-"), "" if given is True else _plain(given)))
    return tuple(pairs)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else _dumps(value)


def _networks(value: str) -> str:
    for part in filter(None, map(str.strip, value.split(","))):
        ipaddress.ip_network(part, strict=False)  # its ValueError is the message
    return value


def _login(value: SecretStr | None) -> SecretStr | None:
    name, colon, password = value.get_secret_value().partition(":") if value is not None else ("-", ":", "-")
    if not (name and colon and password):
        raise ValueError("must be name:password; a browser asks for both")
    return value


_CORES = r"^(any:[1-9]\d*|auto|nobind|\d[\d,|-]*)$"
"""What vLLM understands as a binding, and `any:N` (engines/cores.py)."""


class _Group(BaseModel):
    """A table of settings: frozen, and a name that does not exist is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False)


class Attached(_Group):
    """An engine that somebody else runs."""

    base_url: str | None = Field(default=None, description="Address of a running engine, with or without `/v1`.")
    api_key: SecretStr | None = Field(default=None, description="API key that this engine asks for.")
    ca_file: Path | None = Field(
        default=None, description="File with the private certificate authority of this engine."
    )
    model: str | None = Field(default=None, description="Model name to ask for; found from `/v1/models` when not set.")


class Engine(_Group):
    """The two engines that specdemo starts itself; both get equal flags but for speculation."""

    model: str = Field(default="embedded", description="`embedded`, a hub id, or a local folder.")
    python: Path | None = Field(
        default=None, description="Python of the engine environment; `.venv-engine` when not set."
    )
    profile: str = Field(default="auto", description="Named set of engine flags; `auto` chooses by the machine.")
    speculation: Annotated[str | None, BeforeValidator(_json_text)] = Field(
        default=None,
        description="Preset (`ngram`, `draft_model`, …, `none`) or vLLM's speculative_config as JSON; "
        "the profile's own when not set.",
    )
    draft_model: str | None = Field(
        default=None, description="Draft model for presets that need one; one ships for `embedded`."
    )
    k: int | None = Field(default=None, gt=0, description="Draft tokens a step; the preset's own when not set.")
    allow_lossy: bool = Field(
        default=False, description="Allow speculation whose output is not the target model's; it is then labelled."
    )
    cpu_repair: bool = Field(default=True, description="Load the plugin that repairs sampling with speculation on CPU.")
    autostart: bool = Field(default=True, description="Start both engines when the page is served.")
    ready_timeout_s: float = Field(default=900.0, gt=0, description="Longest wait for an engine to become ready (s).")
    dtype: str | None = Field(
        default=None, description="Number format of weights and cache; the profile's own when not set."
    )
    max_model_len: int | None = Field(default=None, gt=0, description="Longest prompt plus output (tokens).")
    max_num_seqs: int | None = Field(default=None, gt=0, description="Most requests in one engine step.")
    memory_share: float | None = Field(default=None, gt=0, le=1, description="Share of a GPU's memory for each engine.")
    kv_cache_bytes: int | None = Field(default=None, gt=0, description="Key-value cache of each engine (bytes).")
    tensor_parallel: int | None = Field(default=None, gt=0, description="GPUs that one engine is spread over.")
    seed: int | None = Field(default=None, description="Seed of both engines.")
    enforce_eager: bool | None = Field(
        default=None, description="Run without compiled graphs: quicker start, slower steps."
    )
    prefix_caching: bool | None = Field(
        default=None, description="Let engines reuse cached prompt prefixes; off keeps comparisons clean."
    )
    standard_cores: str | None = Field(
        default=None,
        pattern=_CORES,
        description="CPU of the standard engine: `0-1` binds it to cores, `any:2` gives it two threads on any core.",
    )
    speculative_cores: str | None = Field(
        default=None, pattern=_CORES, description="CPU of the speculative engine, in the same notation."
    )
    standard_gpus: str | None = Field(default=None, description="GPUs of the standard engine, such as `0,1`.")
    speculative_gpus: str | None = Field(default=None, description="GPUs of the speculative engine.")
    flags: Annotated[tuple[tuple[str, str], ...], BeforeValidator(_flag_pairs)] = Field(
        default=(),
        description='More vLLM flags for both engines, from an allow-list, as a table: `{"block-size": 16}`.',
    )


class Server(_Group):
    """The page."""

    host: str = Field(default="127.0.0.1", description="Address that the page is served on.")
    port: int = Field(default=7860, ge=0, le=65535, description="Port of the page; 0 takes a free one.")
    root_path: Annotated[str, StringConstraints(pattern=r"^(/[^?#\s]*)?$")] = Field(
        default="", description="Path under which a reverse proxy shows the page, such as `/demo`."
    )
    public: bool = Field(
        default=False,
        description="The page is open to strangers: controls and logs are hidden, and limits apply (docs/hosting.md).",
    )
    auth: Annotated[SecretStr | None, AfterValidator(_login)] = Field(
        default=None, description="`name:password` that visitors must give."
    )
    token: SecretStr | None = Field(
        default=None, description="Bearer token that programs may give instead of a name and a password."
    )
    secret: SecretStr | None = Field(
        default=None,
        description="Key that signs visitors' cookies; made and kept in `data_dir` when not set. Replicas share one.",
    )
    proxies: Annotated[str, AfterValidator(_networks)] = Field(
        default="127.0.0.1,::1",
        description="Addresses and networks of reverse proxies whose `X-Forwarded-*` headers are believed.",
    )
    hosts: str = Field(
        default="",
        description="Host names that the page answers to, such as `demo.example.org`; when not set any, but only local "
        "ones for a page on a loopback address without `root_path`, `public` or sign-in.",
    )
    metrics: bool | None = Field(
        default=None, description="Serve figures for Prometheus at `/metrics`; when not set, unless `public`."
    )
    metrics_token: SecretStr | None = Field(
        default=None, description="Bearer token that `/metrics` asks for; it is served then, public or not."
    )
    drain_s: float = Field(
        default=0.0, ge=0, description="How long running runs may go on when the page is told to end (s)."
    )


class Limits(_Group):
    """How much one visitor, and all of them together, may ask for."""

    max_tokens: int = Field(default=2048, gt=0, description="Most output tokens of one run.")
    prompt_chars: int = Field(default=32_000, gt=0, description="Longest prompt (characters).")
    prompt_tokens: int | None = Field(default=None, gt=0, description="Longest prompt (tokens).")
    runs_per_minute: int | None = Field(default=None, gt=0, description="Runs that a visitor may start a minute.")
    open_runs: int | None = Field(
        default=None, gt=0, description="Runs that a visitor may have going or waiting at once."
    )
    stored_runs: int | None = Field(default=None, gt=0, description="Runs kept for one visitor; the oldest go first.")
    requests_per_minute: int | None = Field(
        default=None, gt=0, description="Requests that a visitor may send a minute, static files aside."
    )
    streams: int | None = Field(default=None, gt=0, description="Event streams that a visitor may hold open.")
    per_address: int = Field(
        default=5, gt=0, description="Visitors' worth of these limits that one network address may use up."
    )
    upload_mb: float = Field(default=64.0, gt=0, description="Largest upload (MB).")
    races_at_once: int = Field(
        default=1,
        gt=0,
        description="Races that may share the engines; above 1 their texts may differ from batching alone.",
    )
    waiting_runs: int = Field(default=32, gt=0, description="Runs that may wait for the engines; more are refused.")
    kept_runs: int = Field(default=64, gt=0, description="Finished runs kept in memory.")
    kept_s: float = Field(default=3600.0, gt=0, description="How long a finished run is kept in memory (s).")
    first_token_s: float = Field(default=600.0, gt=0, description="Longest wait for an engine's first token (s).")
    stall_s: float = Field(default=60.0, gt=0, description="Longest silence of an engine after its first token (s).")
    run_s: float = Field(default=1800.0, gt=0, description="Longest run (s); it is then stopped, with what it has.")


class Store(_Group):
    """Where runs are kept, and how many: the oldest go first."""

    keep: bool = Field(default=True, description="Keep runs for later; off keeps none beyond memory.")
    url: SecretStr | None = Field(
        default=None,
        description="Database of runs, such as `postgresql://user:password@host/name` for several copies of the page; "
        "SQLite in the data folder when not set.",
    )
    days: float = Field(default=365.0, gt=0, description="How long a run is kept (days).")
    runs: int = Field(default=10_000, gt=0, description="Most runs kept.")
    megabytes: float = Field(default=2000.0, gt=0, description="Most room that kept runs may take (MB, compressed).")


class Settings(BaseSettings):
    """All settings. Build it with :func:`specdemo.settings.load`, which alone reads the outside world."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", validate_default=True)

    mode: Literal["auto", "managed", "attached", "replay"] = Field(
        default="auto", description="`managed` starts both engines, `attached` uses running ones, `replay` plays "
        "recorded runs; `auto` takes the first that is possible."
    )  # fmt: skip
    data_dir: Path | None = Field(
        default=None, description="Folder for stored runs, logs and state; the system's own when not set."
    )
    cache_dir: Path | None = Field(
        default=None, description="Folder for the embedded model; the system's own when not set."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severe message that is logged."
    )
    log_format: Literal["text", "json"] = Field(
        default="text", description="`json` logs one object a line, for a log collector."
    )
    standard: Attached = Attached()
    speculative: Attached = Attached()
    engine: Engine = Engine()
    server: Server = Server()
    limits: Limits = Limits()
    store: Store = Store()

    @classmethod
    def settings_customise_sources(  # the signature is pydantic-settings' own
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Constructing reads nothing by itself: ``load`` hands in the merged layers."""
        return (init_settings,)
