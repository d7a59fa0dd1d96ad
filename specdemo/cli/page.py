"""The page with its engines: what ``specdemo serve`` and ``app.py`` run."""

from __future__ import annotations

from contextlib import AsyncExitStack

from specdemo.cli.output import stderr
from specdemo.cli.page_front import allowance, drain, front
from specdemo.cli.page_jobs import jobs_of
from specdemo.compose import folders, keep_announced, open_deployment
from specdemo.compose.keeping import open_keeper, together
from specdemo.runs.registry import Bounds, Registry
from specdemo.settings import Settings
from specdemo.ui import assets
from specdemo.ui.feed import Feeds
from specdemo.ui.memory import few_heaps, settle
from specdemo.ui.quota import Quota
from specdemo.ui.recordings import load as load_recordings
from specdemo.ui.server import build_app, listen
from specdemo.ui.server import serve as serve_app
from specdemo.ui.services import Services


async def serve_page(settings: Settings) -> int:
    """The page and its engines until the task is cancelled. Raises ConfigError if the port is taken."""
    few_heaps()
    bound = listen(settings.server.host, settings.server.port)
    async with AsyncExitStack() as stack:
        stack.callback(bound.close)
        deployment = await stack.enter_async_context(
            open_deployment(settings, reuse=False, autostart=settings.engine.autostart)
        )
        if deployment.managed is not None:
            await stack.enter_async_context(keep_announced(deployment.managed, folders(settings).data))
        keeper = open_keeper(settings)
        stack.push_async_callback(keeper.aclose)  # the last to close: it keeps what the end of the page cuts off
        registry = Registry(lambda: deployment.engines, around=deployment.around, bounds=_bounds(settings))
        stack.push_async_callback(registry.aclose)
        jobs = jobs_of(deployment, registry, settings)
        stack.push_async_callback(jobs.aclose)
        services = Services(
            registry=registry,
            jobs=jobs,
            mode=deployment.mode,
            control=deployment.control,
            method=deployment.managed.method if deployment.managed is not None else None,
            reason=deployment.reason,
            recordings=load_recordings(assets.folder() / "runs"),
            public=settings.server.public,
            max_tokens=settings.limits.max_tokens,
            kept_s=settings.limits.kept_s,
            quota=Quota(allowance(settings)),
            keeper=keeper,
            together=together(settings),
            import_bytes=int(settings.limits.upload_mb * 1_000_000),
            feeds=Feeds(settings.limits.kept_runs),  # a feed holds a run's frames: as many as there are runs
        )
        app = build_app(
            services,
            root_path=settings.server.root_path,
            front=front(settings, folders(settings).data),
        )
        host, port = bound.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        stderr().print(
            f"specdemo: http://{shown}:{port}{settings.server.root_path} ({deployment.reason})", markup=False
        )
        settle()
        await serve_app(app, bound, drain=lambda: drain(services.quota, registry, settings.server.drain_s))
    return 0


def _bounds(settings: Settings) -> Bounds:
    limits = settings.limits
    return Bounds(
        max_tokens=limits.max_tokens,
        prompt_chars=limits.prompt_chars,
        races_at_once=limits.races_at_once,
        waiting_runs=limits.waiting_runs,
        kept_runs=limits.kept_runs,
        kept_s=limits.kept_s,
    )
