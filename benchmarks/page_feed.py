"""Two servers for ``page_stream.py``, each a process of its own: specdemo's page, and what one would write without it.

    PYTHONPATH=. python benchmarks/page_feed.py ours|naive PORT

Both are fed by the same two paced engines in the same process: one token an event, RATE events a second a side, stamped
with the wall clock when the engine says it. ``/bench/start?tokens=N`` prepares a run and says its id (ours),
``/bench/go`` lets the engines speak, ``/bench/said`` gives the stamps and the CPU seconds of this process.
"""
# ruff: noqa: ARG001, ARG002 - routes and a Protocol's methods have parameters that not everyone needs

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Sequence

import gradio as gr
import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from specdemo.core.engine import EngineFacts
from specdemo.core.events import (
    SIDES,
    Event,
    Finished,
    ScoredToken,
    Side,
    SpecCounters,
    Started,
    Tokens,
    TopToken,
    Usage,
)
from specdemo.core.prompt import Prompt, Sampling, chat
from specdemo.core.run import RunPlan
from specdemo.runs.registry import Registry
from specdemo.ui.server import build_app
from specdemo.ui.services import Services

RATE = 100.0
"""Events a second a side."""
WORDS_A_PARAGRAPH = 12


def word(index: int) -> str:
    """Token number ``index``: its own number, so that the page can be asked how far it is."""
    return f" w{index}," + ("\n\n" if index % WORDS_A_PARAGRAPH == WORDS_A_PARAGRAPH - 1 else "")


class Pacer:
    """What both engines share: how many tokens, when to begin, and when each was said."""

    def __init__(self) -> None:
        self.tokens = 0
        self.go = asyncio.Event()
        self.said: dict[Side, list[float]] = {side: [] for side in SIDES}

    def prepare(self, tokens: int) -> None:
        """Forget the last run."""
        self.tokens, self.go = tokens, asyncio.Event()
        self.said = {side: [] for side in SIDES}

    async def words(self, side: Side) -> AsyncIterator[tuple[int, str]]:
        """The tokens of one side, each at its own time however late the one before was taken."""
        await self.go.wait()
        begun = time.monotonic()
        for index in range(self.tokens):
            await asyncio.sleep(max(0.0, begun + index / RATE - time.monotonic()))
            self.said[side].append(time.time())
            yield index, word(index)


class PacedEngine:
    """Fulfils ``runs.ports.Engine``."""

    model = "paced"

    def __init__(self, side: Side, pacer: Pacer) -> None:
        self.side, self._pacer = side, pacer

    async def stream(self, prompt: Prompt, *, zero: float, cache_salt: str | None = None) -> AsyncIterator[Event]:
        """One token an event, then the end."""
        now = time.monotonic
        yield Started(self.side, now() - zero)
        async for index, text in self._pacer.words(self.side):
            yield Tokens(self.side, now() - zero, ids=(index,), text=text, pieces=(text,))
        yield Finished(
            self.side, now() - zero, "length", usage=Usage(3, self._pacer.tokens), prompt_token_ids=(1, 2, 3)
        )

    async def facts(self) -> EngineFacts:
        """Nothing to hide."""
        return EngineFacts(side=self.side, model=self.model, speculating=self.side is Side.SPECULATIVE, method="paced")

    async def tokenize(self, prompt: Prompt) -> tuple[int, ...] | None:
        """Every prompt is the same to it."""
        return (1, 2, 3)

    async def counters(self) -> SpecCounters | None:
        """It has none."""
        return None

    async def candidates(self, token_ids: Sequence[int], *, wanted: Sequence[int] = ()) -> tuple[TopToken, ...]:
        """Never asked: both sides say the same."""
        return ()

    async def score(
        self, prompt_ids: Sequence[int], output_ids: Sequence[int], *, top: int = 2
    ) -> tuple[ScoredToken, ...]:
        """Never asked."""
        return ()


def ours(pacer: Pacer) -> tuple[ASGIApp, Registry]:
    """specdemo's page with everything behind it: registry, race, log, feed, routes."""
    engines = {side: PacedEngine(side, pacer) for side in SIDES}
    registry = Registry(lambda: engines)
    return build_app(Services(registry=registry, mode="attached")), registry


def naive(pacer: Pacer) -> ASGIApp:
    """A generator that yields both whole texts to two Markdown components at every token."""

    async def stream() -> AsyncIterator[tuple[str, str]]:
        news: asyncio.Queue[tuple[Side, str] | None] = asyncio.Queue()

        async def read(side: Side) -> None:
            async for _, text in pacer.words(side):
                news.put_nowait((side, text))
            news.put_nowait(None)

        tasks = [asyncio.create_task(read(side)) for side in SIDES]
        texts = dict.fromkeys(SIDES, "")
        ended = 0
        try:
            while ended < len(tasks):
                item = await news.get()
                if item is None:
                    ended += 1
                    continue
                texts[item[0]] += item[1]
                yield texts[Side.STANDARD], texts[Side.SPECULATIVE]
        finally:
            for task in tasks:
                task.cancel()

    with gr.Blocks(title="naive", analytics_enabled=False) as demo:
        button = gr.Button("Run", elem_id="naive-run")
        with gr.Row():
            texts = [gr.Markdown(elem_id=f"naive-{side}", height=400) for side in SIDES]
        button.click(stream, None, texts)
    app = FastAPI()
    gr.mount_gradio_app(app, demo, path="/", ssr_mode=False, run_history=False)
    return app


def beside(app: ASGIApp, pacer: Pacer, registry: Registry | None) -> ASGIApp:
    """The app, with the benchmark's own routes in front of it."""

    async def start(request: Request) -> Response:
        tokens = int(request.query_params["tokens"])
        pacer.prepare(tokens)
        prompt = chat("Count.", sampling=Sampling(max_tokens=tokens))
        run = registry.start(RunPlan(prompt=prompt, warmup=False)).id if registry is not None else None
        return JSONResponse({"run": run})

    async def go(request: Request) -> Response:
        pacer.go.set()
        return JSONResponse({"cpu": time.process_time()})

    async def said(request: Request) -> Response:
        return JSONResponse({"cpu": time.process_time(), "said": pacer.said, "tokens": pacer.tokens})

    bench = Starlette(routes=[Route("/bench/start", start), Route("/bench/go", go), Route("/bench/said", said)])

    async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
        mine = scope["type"] == "http" and scope["path"].startswith("/bench/")
        await (bench if mine else app)(scope, receive, send)

    return dispatch


async def main(kind: str, port: int) -> None:
    """Serve one of the two."""
    pacer = Pacer()
    app, registry = ours(pacer) if kind == "ours" else (naive(pacer), None)
    config = uvicorn.Config(beside(app, pacer, registry), host="127.0.0.1", port=port, log_level="warning", ws="none")
    await uvicorn.Server(config).serve()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
