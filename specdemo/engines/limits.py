"""How long to wait and how much to accept. One frozen value, given to the client."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Times in s, sizes in bytes.

    ``first_token_s`` counts from the request: a long prefill or a queue may take its time. ``stall_s`` is the longest
    silence after the first token. A server that keeps sending comments is alive: then the longer of the two
    counts. ``total_s`` bounds a whole stream. ``request_s`` bounds small requests, ``probe_s`` those that compute.
    ``idle_s`` stays below the 5 s after which vLLM closes idle connections. ``error_bytes``: some servers repeat the
    whole request before they say what is wrong with it.
    """

    connect_s: float = 10.0
    first_token_s: float = 600.0
    stall_s: float = 60.0
    total_s: float = 3600.0
    request_s: float = 15.0
    probe_s: float = 180.0
    idle_s: float = 4.0
    event_bytes: int = 4 * 1024 * 1024
    stream_bytes: int = 256 * 1024 * 1024
    body_bytes: int = 64 * 1024 * 1024
    metrics_bytes: int = 8 * 1024 * 1024
    error_bytes: int = 1024 * 1024
