"""A scripted engine: an HTTP server that behaves like vLLM, or misbehaves exactly as a script says.

As a program::

    python -m tests.fakes.vllm --script script.json [--port 0] [--host 127.0.0.1]
    python -m tests.fakes.vllm --trace ngram-list [--speed 4]          one engine replaying a recorded stream
    python -m tests.fakes.vllm --pair [--trace list] [--speed 1]       a standard and a speculative engine

It prints one JSON line when it listens, ``{"urls": ["http://127.0.0.1:PORT", …]}`` (standard first), and stops on SIGTERM.

In a test::

    async with serving({"k": 4, "reply": {"bursts": [1, 3, 5], "step_s": 0.02}}) as server:
        server.base_url …; server.requests (bodies seen); server.counters; server.use({...}) changes the script

A script is a JSON object (all keys optional; unknown ones are errors; defaults in ``tests/fakes/script.py``)::

    model, models, version, max_model_len, api_key, health (status of /health), tokenize (route there?), metrics_route,
    k                 set: a speculative engine (spec_decode series in /metrics, metrics object in the last chunk)
    reply / replies   one reply, or several used in turn (the last repeats)
    metrics_text      exact text of /metrics;  metrics_filler: extra lines;  engines: data-parallel engine labels
    refuse            {"min_p": "message"}: 400 when that field is sent with a value other than null and 0
    candidates        [[id, logprob], …]: what a one-token probe answers
    score_gaps        {"position": gap}: prompt_logprobs positions where another token is better by that gap (nats)
    flip_when_busy, repeat_speedup, cold_s (first reply later), drop_reused (a second request on a kept connection
    gets no answer), bos (ids put before a text prompt), server_info (body of /server_info)

A reply::

    what is said      one of: text | tokens (that many words of a built-in story) | steps | trace (+ speed; 0: no pauses)
                      | raw ([text or {"at","data"|"b64","repeat"}], exact bytes of the body)
    steps             [{"ids":[…],"text":"…","reasoning":"…","at":s,"logprobs":…,"accepted":n,"drafted":n,"choice":{…}}]
                      (``repeat`` plays the list n times)
    pace              first_s, step_s, bursts ([1,3,5]: tokens a step after the first, going round), role_at, role_chunk
    end               finish_reason (default by length; null: none), stop_reason, finish_alone (a chunk of its own),
                      usage: "final"|"none"|"running"|"twice"|{…}, metrics: "auto"|"none"|{…}, timings {…}
    level             token_ids, prompt_ids (false: an older server), stream (false: one JSON body), stamp (the text
                      of each step is the server's monotonic clock when it was sent)
    HTTP              status, body (then nothing is streamed), headers, delay_s (before the status line)
    wire              newline, space (after "data:"), bom, split (bytes a write), prelude (raw text first),
                      comment_every_s, gzip, buffer_events (a proxy that releases n at once), done (how many [DONE]),
                      framing ("chunked"|"close"), content_type, ascii, flood (no pauses, big writes)
    fault             {"kind": close|reset|end|half|silence|alive|error|die|inject|raw, "after": n steps, "body": …}

Also served: /health /version /ping /v1/models /tokenize /detokenize /metrics /server_info, one-token probes, prompt_logprobs
scoring; ``GET /_seen`` lists request bodies, ``GET /_open`` the prompts that are being answered, ``GET /_ended`` when (s, monotonic) the last ones ceased
to be, ``POST /_script`` swaps the script.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.http11 import Connection, Request
from tests.fakes.metrics_page import Counters
from tests.fakes.routes import Routes
from tests.fakes.script import Reply, Script, load, parse
from tests.fakes.words import Words


@dataclass(slots=True)
class Server:
    """A running scripted engine. ``requests`` holds the bodies of completion requests, oldest first."""

    script: Script
    counters: Counters = field(init=False)
    words: Words = field(default_factory=Words)
    requests: list[dict[str, Any]] = field(default_factory=list)
    streaming: Counter[str] = field(default_factory=Counter)
    ended: dict[str, float] = field(default_factory=dict)
    headers: list[dict[str, str]] = field(default_factory=list)
    connections: set[Connection] = field(default_factory=set)
    accepted: int = 0
    served: int = 0
    dead: bool = False
    seen_prompts: set[str] = field(default_factory=set)
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    base_url: str = ""
    _listener: asyncio.Server | None = None

    def __post_init__(self) -> None:
        self.counters = Counters(self.script.k)
        self.idle.set()

    def use(self, script: Script | dict[str, Any]) -> None:
        """Change the script; replies start over, counters go on."""
        self.script = parse(script)
        self.counters.k = self.script.k
        self.served = 0

    def next_reply(self) -> Reply:
        """The reply to the next completion request."""
        reply = self.script.replies[min(self.served, len(self.script.replies) - 1)]
        self.served += 1
        return reply

    async def start(self, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        """Listen; ``base_url`` is set afterwards."""
        routes = Routes(self)

        async def serve(request: Request, connection: Connection) -> None:
            await routes.serve(request, connection)

        def connected() -> Connection:
            self.accepted += 1
            return Connection(serve, self.connections)

        self._listener = await asyncio.get_running_loop().create_server(connected, host, port, ssl=tls)
        bound = self._listener.sockets[0].getsockname()[1]
        self.base_url = f"http{'s' if tls else ''}://{f'[{host}]' if ':' in host else host}:{bound}"

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self.base_url.rsplit(":", 1)[1])

    def refuse_connections(self) -> None:
        """Stop listening; open connections go on."""
        if self._listener is not None:
            self._listener.close()

    async def stop(self) -> None:
        """Stop listening and drop all connections."""
        self.refuse_connections()
        for connection in list(self.connections):
            connection.close()
        await asyncio.sleep(0)


@asynccontextmanager
async def serving(
    script: Script | dict[str, Any] | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Server]:
    """A scripted engine in this process, on a free port."""
    server = Server(parse(script or {}))
    await server.start(host, port, tls)
    try:
        yield server
    finally:
        await server.stop()


def pair_scripts(trace: str | None, speed: float) -> tuple[Script, Script]:
    """A standard and a speculative engine that say the same."""
    if trace:
        return (parse({"reply": {"trace": f"std-{trace}", "speed": speed}}),
                parse({"k": 4, "reply": {"trace": f"ngram-{trace}", "speed": speed}}))  # fmt: skip
    pace = 1 / speed if speed else 0.0
    return (parse({"reply": {"first_s": 0.2 * pace, "step_s": 0.05 * pace}}),
            parse({"k": 4, "reply": {"first_s": 0.2 * pace, "step_s": 0.055 * pace, "bursts": [1, 3, 5, 2]}}))  # fmt: skip


async def _main(arguments: argparse.Namespace) -> None:
    if arguments.pair:
        scripts = list(pair_scripts(arguments.trace, arguments.speed))
    elif arguments.trace:
        k = 4 if arguments.trace.startswith("ngram") else None
        scripts = [parse({"k": k, "reply": {"trace": arguments.trace, "speed": arguments.speed}})]
    else:
        scripts = [load(arguments.script) if arguments.script else Script()]
    servers = [Server(script) for script in scripts]
    for index, server in enumerate(servers):
        await server.start(arguments.host, arguments.port + index if arguments.port else 0)
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    print(json.dumps({"urls": [server.base_url for server in servers]}), flush=True)
    await stop.wait()
    for server in servers:
        await server.stop()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="A scripted engine; see the module's docstring for the script format.")
    parser.add_argument("--script")
    parser.add_argument("--trace", help="ngram-list and so on; with --pair only list, chat, code, summ or zh")
    parser.add_argument("--speed", type=float, default=1.0)
    parser.add_argument("--pair", action="store_true")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    asyncio.run(_main(parser.parse_args()))


if __name__ == "__main__":
    main()
