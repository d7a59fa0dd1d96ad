"""Short questions to a managed or attached engine: does it live, which models, which version; and the warm-up."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Literal

import httpx

from specdemo.core.engine import EngineSpec

Health = Literal["ok", "dead", "unknown", "silent"]
"""ok: 200. dead: the server says that its engine is gone. unknown: no such route, or a refusal. silent: no answer."""

_GONE = (500, 502, 503, 504)

_MOST_BYTES = 1_000_000
_WARM_UP_TEXT = "one two three four five six seven eight, one two three four five six seven eight, one two three"


class Probe:
    """Questions to one base URL (without ``/v1``). Never raises for what an engine does; ``aclose`` when done."""

    def __init__(
        self,
        root: str,
        *,
        api_key: str | None = None,
        timeout_s: float = 5.0,
        verify: Any = True,
        trust_env: bool = False,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._timeout_s = timeout_s
        self._client = httpx.AsyncClient(
            base_url=root, headers=headers, timeout=timeout_s, trust_env=trust_env, verify=verify, transport=transport
        )

    async def health(self) -> Health:
        status, _ = await self._get("/health")
        if status is None:
            return "silent"
        return "ok" if status == 200 else "dead" if status in _GONE else "unknown"

    async def models(self) -> tuple[str, ...] | None:
        """Ids listed by /v1/models; None where it does not answer as such."""
        data = await self._json("/v1/models")
        entries = data.get("data") if isinstance(data, dict) else None
        if not isinstance(entries, list):
            return None
        return tuple(entry["id"] for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str))

    async def version(self) -> str | None:
        data = await self._json("/version")
        found = data.get("version") if isinstance(data, dict) else None
        return found[:40] if isinstance(found, str) else None

    async def warm_up(self, spec: EngineSpec, *, timeout_s: float = 180.0) -> str | None:
        """The requests whose first use is slow, so that no visitor meets it; a sentence if one fails, else None.

        On the CPU the first request with logprobs compiles a kernel (about 10 s) and the first drafts compile the
        n-gram search. A repetitive text makes drafts certain.
        """
        common = {"model": spec.served_name, "max_tokens": 12, "temperature": 0, "ignore_eos": True}
        problem = await self._post("/v1/completions", {**common, "prompt": _WARM_UP_TEXT, "logprobs": 1}, timeout_s)
        # The first chat request renders the template; a base model has none and says 400, which is no fault here.
        messages = [{"role": "user", "content": _WARM_UP_TEXT}]
        chat = await self._post("/v1/chat/completions", {**common, "messages": messages, "max_tokens": 4}, timeout_s)
        return problem or (chat if chat is not None and "HTTP 400" not in chat else None)

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _post(self, path: str, body: dict[str, Any], timeout_s: float) -> str | None:
        try:
            answer = await self._client.post(path, json=body, timeout=timeout_s)
        except httpx.HTTPError as error:
            return f"The warm-up request got no answer ({type(error).__name__})."
        return None if answer.status_code == 200 else f"The warm-up request was refused with HTTP {answer.status_code}."

    async def _json(self, path: str) -> Any:
        status, body = await self._get(path)
        try:
            return json.loads(body) if status == 200 else None
        except (ValueError, RecursionError):
            return None

    async def _get(self, path: str) -> tuple[int | None, bytes]:
        """Status and body; no status without an answer, no body where it is too long or does not end in time.

        A stranger on the port may send for ever: neither memory nor patience may be without a limit.
        """
        status: int | None = None
        body = bytearray()
        try:
            async with asyncio.timeout(self._timeout_s), self._client.stream("GET", path) as answer:
                status = answer.status_code
                async for piece in answer.aiter_bytes():
                    body += piece
                    if len(body) > _MOST_BYTES:
                        return status, b""
        except (httpx.HTTPError, TimeoutError):
            return status, b""
        return status, bytes(body)
