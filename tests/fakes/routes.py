"""What a scripted engine answers on each path."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.fakes.http11 import Connection, Request
from tests.fakes.metrics_page import page
from tests.fakes.play import Player
from tests.fakes.replies import Asked, Item, asked, payloads, steps_of
from tests.fakes.script import Reply, Step
from tests.fakes.words import chat_text

if TYPE_CHECKING:
    from tests.fakes.vllm import Server


def refusal(message: str, kind: str = "BadRequestError", code: int = 400, param: str | None = None) -> dict[str, Any]:
    """vLLM's error body."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


class Routes:
    """One server's routes."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def serve(self, request: Request, connection: Connection) -> None:
        """Answer one request."""
        server, script = self._server, self._server.script
        if script.drop_reused and request.reused:
            connection.close()
            return
        path = request.path.removeprefix("/proxy/llm")
        if (
            path.startswith("/v1/")
            and script.api_key
            and request.headers.get("authorization") != f"Bearer {script.api_key}"
        ):
            await connection.reply_json(401, {"error": "Unauthorized"})
            return
        if path in ("/v1/chat/completions", "/v1/completions"):
            await self._complete(path.endswith("chat/completions"), request, connection)
        elif path == "/v1/models":
            names = script.models or [script.model]
            await connection.reply_json(200, {"object": "list", "data": [
                {"id": name, "object": "model", "owned_by": "vllm", "root": f"/models/{name}", "max_model_len": script.max_model_len}
                for name in names]})  # fmt: skip
        elif path == "/health":
            await connection.reply(503 if server.dead else script.health, b"")
        elif path == "/ping":
            await connection.reply(200, b"")
        elif path == "/version" and script.version:
            await connection.reply_json(200, {"version": script.version})
        elif path == "/metrics" and script.metrics_route:
            text = script.metrics_text
            if text is None:
                text = page(server.counters, script.model, script.engines, script.metrics_filler)
            await connection.reply(200, text.encode(), "text/plain; version=0.0.4; charset=utf-8")
        elif path == "/tokenize" and script.tokenize:
            await self._tokenize(request, connection)
        elif path == "/detokenize" and script.tokenize:
            await connection.reply_json(200, {"prompt": server.words.decode(request.json().get("tokens", []))})
        elif path == "/server_info" and script.server_info is not None:
            await connection.reply_json(200, script.server_info)
        elif path == "/_seen":
            await connection.reply_json(200, {"requests": server.requests, "aborted": server.counters.aborted})
        elif path == "/_open":
            await connection.reply_json(200, sorted(server.streaming))
        elif path == "/_ended":
            await connection.reply_json(200, dict(server.ended))
        elif path == "/_script":
            server.use(request.json())
            await connection.reply_json(200, {})
        else:
            await connection.reply_json(404, {"detail": "Not Found"})

    async def _tokenize(self, request: Request, connection: Connection) -> None:
        body = request.json()
        text = chat_text(body["messages"]) if "messages" in body else str(body.get("prompt", ""))
        ids = [*self._server.script.bos, *self._server.words.encode(text)]
        await connection.reply_json(
            200, {"count": len(ids), "max_model_len": self._server.script.max_model_len, "tokens": ids}
        )

    async def _complete(self, chat: bool, request: Request, connection: Connection) -> None:
        server, script, body = self._server, self._server.script, request.json()
        server.requests.append(body)
        server.headers.append(request.headers)
        for name, message in script.refuse.items():
            if body.get(name) not in (None, 0, 0.0, {}):
                await connection.reply_json(400, refusal(message, param=name))
                return
        want = asked(chat, body, script.model, server.words, script.bos)
        if want.model not in (script.models or [script.model]):
            await connection.reply_json(
                404, refusal(f"The model `{want.model}` does not exist.", "NotFoundError", 404, "model")
            )
            return
        if not want.stream and body.get("prompt_logprobs") is not None:
            await connection.reply_json(200, self._scored(want, int(body["prompt_logprobs"])))
            return
        if not want.stream and want.max_tokens == 1 and not chat:
            await connection.reply_json(200, self._probed(want))
            return
        await self._reply(server.next_reply(), want, connection)

    async def _reply(self, reply: Reply, want: Asked, connection: Connection) -> None:
        server, loop = self._server, asyncio.get_running_loop()
        delay = reply.delay_s + (server.script.cold_s if server.served == 1 else 0.0)
        if delay and not await connection.until(loop.time() + delay):
            return
        if reply.raw is None and (reply.status != 200 or reply.body is not None):
            text = reply.body if isinstance(reply.body, str) else None
            if text is not None:
                await connection.reply(reply.status, text.encode(), **{"content_type": "text/plain", **reply.headers})
            else:
                await connection.reply_json(reply.status, reply.body)
            return
        if not want.stream or not reply.stream:
            await connection.reply_json(200, self._whole(reply, want))
            return
        counters, player = server.counters, Player(connection, reply, server.counters.step)
        counters.prompt_tokens += len(want.prompt_ids)
        counters.running += 1
        server.idle.clear()
        said = want.said
        server.streaming[said] += 1
        try:
            if reply.raw is not None:
                await player.play_raw(reply.raw)
            else:
                items, _ = payloads(reply, want, server.words, server.script.k)
                await player.play(self._disturbed(items), self._scale(want))
        finally:
            counters.running -= 1
            server.streaming[said] -= 1
            server.streaming += Counter()  # drops what has come to 0
            server.ended.pop(said, None)
            server.ended[said] = time.monotonic()
            while len(server.ended) > 200:
                server.ended.pop(next(iter(server.ended)))
            counters.finished += player.completed
            counters.aborted += not player.completed
            if not counters.running:
                server.idle.set()
            if player.dead:
                server.dead = True
                await server.stop()  # a process that is gone keeps no connection, so that a pooled one answers nothing

    def _scale(self, want: Asked) -> float:
        key = str(want.prompt_ids)
        seen = key in self._server.seen_prompts
        self._server.seen_prompts.add(key)
        return 1 / self._server.script.repeat_speedup if seen else 1.0

    def _disturbed(self, items: list[Item]) -> list[Item]:
        """Reported fault A03: another request in flight flips the third token."""
        if not (self._server.script.flip_when_busy and self._server.counters.running > 1):
            return items
        carrying = [index for index, item in enumerate(items) if item.step is not None and item.step.ids]
        if len(carrying) > 2:
            item = items[carrying[2]]
            choice = {
                **item.payload["choices"][0],
                "token_ids": [7, *item.payload["choices"][0].get("token_ids", [])[1:]],
            }
            items[carrying[2]] = replace(item, payload={**item.payload, "choices": [choice]})
        return items

    def _whole(self, reply: Reply, want: Asked) -> dict[str, Any]:
        steps, reason = steps_of(reply, want, self._server.words, self._server.script.k)
        merged = Step([token for step in steps for token in step.ids], "".join(step.text for step in steps),
                      "".join(step.reasoning for step in steps))  # fmt: skip
        items, metrics = payloads(
            replace(reply, steps=[merged], trace=None, text=None), want, self._server.words, self._server.script.k
        )
        self._server.counters.step(merged)
        chosen = next(item.payload for item in items if item.step is not None)
        choice = {**chosen["choices"][0], "finish_reason": reason}
        if want.chat:
            choice["message"] = {"role": "assistant", **choice.pop("delta")}
        count = len(merged.ids)
        usage = {
            "prompt_tokens": len(want.prompt_ids),
            "completion_tokens": count,
            "total_tokens": len(want.prompt_ids) + count,
        }
        return {**chosen, "choices": [choice], "usage": usage, "metrics": metrics}

    def _probed(self, want: Asked) -> dict[str, Any]:
        found = [(int(token), value) for token, value in self._server.script.candidates or [[11, -0.1], [12, -2.5]]]
        top = {f"token_id:{token}": value for token, value in found[: want.logprobs or 1]}
        text = self._server.words.decode([found[0][0]])
        logprobs = {
            "tokens": [f"token_id:{found[0][0]}"],
            "token_logprobs": [found[0][1]],
            "top_logprobs": [top],
            "text_offset": [0],
        }
        choice = {"index": 0, "text": text, "logprobs": logprobs, "finish_reason": "length", "token_ids": [found[0][0]]}
        return {"id": "cmpl-1", "object": "text_completion", "model": want.model, "choices": [choice]}

    def _scored(self, want: Asked, top: int) -> dict[str, Any]:
        entries: list[Any] = [None]
        for position, token in enumerate(want.prompt_ids[1:], start=1):
            gap = self._server.script.score_gaps.get(str(position), 0.0)
            actual = {
                "logprob": -0.1 - gap,
                "rank": 2 if gap else 1,
                "decoded_token": self._server.words.decode([token]),
            }
            other = {"logprob": -0.1 if gap else -3.0, "rank": 1 if gap else 2, "decoded_token": "~"}
            entries.append({str(token): actual, **({"99999": other} if top > 1 or gap else {})})
        choice = {"index": 0, "text": "", "finish_reason": "length", "prompt_logprobs": entries, "logprobs": None}
        return {"id": "cmpl-2", "object": "text_completion", "model": want.model, "choices": [choice]}
