"""What an engine is: what to run (EngineSpec), how it is doing (EngineStatus), what it says of itself (EngineFacts)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from specdemo.core.events import Side

Device = Literal["cpu", "cuda"]


@dataclass(frozen=True, slots=True)
class Speculation:
    """A validated ``speculative_config`` of vLLM.

    ``config`` is the JSON object that vLLM gets, as sorted (key, JSON text) pairs so that the value stays hashable.
    ``k`` is num_speculative_tokens, None where the method brings its own. ``lossy`` names the mode whose output is
    not the target model's distribution, None for lossless ones.
    """

    method: str
    k: int | None
    config: tuple[tuple[str, str], ...]
    draft_model: str | None = None
    lossy: str | None = None


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """One vLLM engine to be started. Both sides get equal specs but for ``speculation``.

    ``model`` is a hub id or a local folder; ``served_name`` is what requests call it. ``cores`` binds CPU threads
    ("0-1"); ``gpus`` sets CUDA_VISIBLE_DEVICES ("0,1"). ``flags`` are extra allow-listed vLLM flags as
    (name without dashes, value or "" for a switch). ``environment`` are extra variables for the child.
    """

    side: Side
    model: str
    served_name: str
    device: Device
    dtype: str = "auto"
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    seed: int = 0
    enforce_eager: bool = False
    memory_share: float | None = None
    kv_cache_bytes: int | None = None
    tensor_parallel: int = 1
    cores: str | None = None
    gpus: str | None = None
    speculation: Speculation | None = None
    prefix_caching: bool = False
    flags: tuple[tuple[str, str], ...] = ()
    environment: tuple[tuple[str, str], ...] = ()


class EngineState(StrEnum):
    """How a managed or attached engine is doing."""

    STOPPED = "stopped"  # nobody asked for it
    WAITING = "waiting"  # wanted, but another engine loads first, or a restart is delayed
    LOADING = "loading"  # the child runs, not ready yet
    READY = "ready"  # child alive, /health 200, expected model listed
    DEAD = "dead"  # was ready, is gone or unhealthy; restart offered
    FAILED = "failed"  # never became ready and will not be tried again by itself
    STOPPING = "stopping"  # stop requested, process group not gone yet


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """A snapshot for page, CLI and doctor. ``seconds`` counts since the state began; ``fraction`` is 0..1 if known.

    ``command`` is the exact command line with secrets masked. ``eta_s`` estimates the time to ready, from earlier
    starts of the same spec, None if never seen. ``log_tail`` holds the last lines, newest last.
    """

    side: Side
    state: EngineState
    managed: bool
    stage: str = ""
    seconds: float = 0.0
    fraction: float | None = None
    eta_s: float | None = None
    last_line: str = ""
    log_tail: tuple[str, ...] = ()
    error: str | None = None
    base_url: str | None = None
    model: str | None = None
    method: str | None = None
    k: int | None = None
    version: str | None = None
    pid: int | None = None
    memory_bytes: int | None = None
    restarts: int = 0
    command: str | None = None


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What a running engine says of itself; None where it does not say.

    ``speculating`` is found from /metrics (a standard engine has no spec_decode series), ``k`` from the number of
    position labels or from the spec of a managed engine. ``settings`` holds comparable settings (dtype, kv cache
    type, quantisation, prefix caching …) as (name, value) pairs as far as known. ``device_key`` is equal for two
    engines that share a device (for example "cpu:0-1@host" or "cuda:0@host"), None if unknown.
    """

    side: Side
    model: str
    version: str | None = None
    max_model_len: int | None = None
    speculating: bool | None = None
    method: str | None = None
    k: int | None = None
    lossy: str | None = None
    device: str | None = None
    device_key: str | None = None
    dtype: str | None = None
    root: str | None = None
    settings: tuple[tuple[str, str], ...] = ()
    managed: bool = False
