"""The web application: Gradio's page and our own routes behind one guard, served by uvicorn."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import gradio as gr
import uvicorn
from fastapi import FastAPI
from gradio import processing_utils
from starlette.types import ASGIApp

from specdemo.errors import ConfigError
from specdemo.ui import assets, page, sessions, tabs
from specdemo.ui.bench_routes import add_bench_routes
from specdemo.ui.front import Front
from specdemo.ui.how import add_how
from specdemo.ui.routes import add_routes
from specdemo.ui.services import Services
from specdemo.ui.switching import add_switch
from specdemo.ui.theme import theme
from specdemo.ui.uploads import LIMITS

_log = logging.getLogger(__name__)

MOST_CONNECTIONS = 2000
"""Requests in hand at once; more are told to come again, before they cost anything."""


def build_app(
    services: Services,
    *,
    root_path: str = "",
    auth: str | None = None,
    front: Front | None = None,
    at_once: int = 32,
    on_close: Callable[[], None] | None = None,
) -> ASGIApp:
    """The whole application as ASGI. ``root_path`` as a reverse proxy shows it; ``auth`` is short for a front."""
    front = front or Front(auth=auth)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        forgetting = asyncio.create_task(sessions.forgetting(demo), name="closed pages")
        yield
        forgetting.cancel()
        services.feeds.close()
        if on_close is not None:
            on_close()

    app = FastAPI(title="specdemo", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    add_routes(app, services)
    add_switch(app, services)
    add_how(app, services)
    front.add_metrics(app, services)
    results = tabs.results_of(services)
    if results is not None:
        add_bench_routes(app, results)
    words = page.words()
    demo = page.build(services, words, at_once=at_once)
    demo.state_session_capacity = sessions.MOST_SESSIONS
    gr.mount_gradio_app(
        app,
        demo,
        path="/",
        root_path=root_path or None,
        theme=theme(),
        css_paths=assets.stylesheets(),
        i18n=words,
        favicon_path=str(assets.folder() / "html" / "favicon.svg"),
        footer_links=["api", "settings"],
        run_history=False,
        ssr_mode=False,
        show_error=False,
        pwa=False,
        enable_monitoring=False,
        max_file_size=min(front.upload_bytes, LIMITS.file_bytes),  # prompt files and stored runs
    )
    _calm(demo)
    _fetch_nothing()
    head = assets.text("html/head.html").strip()  # its addresses are relative: right under any sub-path
    return front.before(app, services, root_path=root_path, head=head)


def _calm(demo: gr.Blocks) -> None:
    # Gradio's queue looks for work a thousand times a second, about 6 % of a core at rest. Fifty times are enough.
    queue = demo._queue  # noqa: SLF001 - there is no public setting
    if hasattr(queue, "sleep_when_free"):
        queue.sleep_when_free = 0.02
    if hasattr(queue, "progress_update_sleep_when_free"):
        queue.progress_update_sleep_when_free = 0.05
    # It also keeps ten thousand past events for a monitor that is off here, and sums them up after each one.
    if hasattr(queue, "ANALYTICS_MAX_EVENTS"):
        queue.ANALYTICS_MAX_EVENTS = 100


async def _refuse_address(url: str, cache_dir: str) -> str:  # noqa: ARG001 - Gradio's own names
    raise gr.Error("This page fetches nothing from other addresses; send the file itself.", print_exception=False)


def _fetch_nothing() -> None:
    # A file that is named by an address would be fetched by Gradio, from any public server and whatever its size.
    # Replaced in the module, since Gradio makes new components while it runs: on components it would be lost.
    processing_utils.async_ssrf_protected_download = _refuse_address


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, so that a taken port is told in one sentence. Raises ConfigError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except (OSError, OverflowError) as error:
        bound.close()
        raise ConfigError(
            f"The page cannot be served on {host}:{port} ({error}); free that port or choose another with --port."
        ) from error
    bound.listen(128)
    return bound


class _Server(uvicorn.Server):
    """uvicorn that leaves signals to its caller, who has engines to stop as well."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _worth_telling(record: logging.LogRecord) -> bool:
    """Streams that are cut at the end are no error: that is how a page with viewers ends."""
    cut = record.exc_info is not None and isinstance(record.exc_info[1], asyncio.CancelledError)
    return not cut and not record.getMessage().startswith("Cancel ")


async def serve(
    app: ASGIApp,
    bound: socket.socket,
    *,
    stop: asyncio.Event | None = None,
    drain: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Serve until ``stop`` is set or the task is cancelled.

    ``drain`` is awaited then, while the page still answers; a second cancelling cuts it short. Open streams get one
    second to end afterwards.
    """
    config = uvicorn.Config(
        app,
        log_level="warning",
        log_config=None,  # its lines go where all others go, in their form and masked
        access_log=False,
        timeout_graceful_shutdown=1,
        proxy_headers=False,  # the guard decides whose word counts
        limit_concurrency=MOST_CONNECTIONS,
        server_header=False,
        ws="none",
        lifespan="on",
    )
    logging.getLogger("uvicorn.error").addFilter(_worth_telling)
    server = _Server(config)
    running = asyncio.create_task(server.serve(sockets=[bound]), name="page")
    waiting = asyncio.create_task(stop.wait() if stop else asyncio.Event().wait(), name="page stop")
    try:
        await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        if drain is not None:
            await drain()
        raise
    finally:
        server.should_exit = True
        waiting.cancel()
        await asyncio.wait({running}, timeout=5)
    if running.done() and not running.cancelled() and running.exception() is not None:
        raise running.exception() or RuntimeError
