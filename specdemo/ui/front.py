"""How the page meets the outside world: who may come in, whose word counts, what is told about it."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp

from specdemo.ui.door import Door
from specdemo.ui.guard import Guard
from specdemo.ui.services import Services
from specdemo.ui.telemetry import MEDIA_TYPE, engine_states
from specdemo.ui.visitors import Cookies, Proxies

SPACES_ANCESTORS = ("'self'", "https://huggingface.co", "https://*.hf.space")
"""A hosted Space is shown inside a frame of its site."""
METRICS = "/metrics"


@dataclass(frozen=True, slots=True)
class Front:
    """See the settings of the same names. ``secret`` None makes a key for this process alone."""

    auth: str | None = None
    token: str | None = None
    hosts: frozenset[str] | None = None
    proxies: str = "127.0.0.1,::1"
    secret: str | None = None
    metrics: bool = True
    metrics_token: str | None = None
    upload_bytes: int = 64_000_000
    framed: bool = False

    def before(self, app: ASGIApp, services: Services, *, root_path: str, head: str) -> ASGIApp:
        """``app`` behind its guard."""
        guard = Guard(
            app,
            root_path=root_path,
            frame_ancestors=SPACES_ANCESTORS if self.framed else ("'self'",),
            head=head,
            door=Door(self.auth, self.token, self.hosts),
            quota=services.quota,
            cookies=Cookies(self.secret or secrets.token_urlsafe(32), path=f"{root_path}/", framed=self.framed),
            upload_bytes=self.upload_bytes,
            opened=frozenset({METRICS}) if self.metrics_token else frozenset(),
            refused=services.telemetry.refused,
            presence=services.presence,
        )
        return Proxies(self.proxies).before(guard)

    def add_metrics(self, app: FastAPI, services: Services) -> None:
        """Serve the page's own figures, where that is wanted."""
        if not self.metrics and self.metrics_token is None:
            return
        services.telemetry.watch(lambda: _now(services))

        async def figures(request: Request) -> Response:
            given = request.headers.get("authorization", "").partition(" ")[2].strip()
            if self.metrics_token and not hmac.compare_digest(given.encode(), self.metrics_token.encode()):
                return JSONResponse({"error": "This address asks for its bearer token."}, 401)
            return Response(services.telemetry.text(), media_type=MEDIA_TYPE, headers={"cache-control": "no-store"})

        app.add_api_route(METRICS, figures, methods=["GET"], response_model=None, include_in_schema=False)


def _now(services: Services) -> Iterable[tuple[str, str, float, dict[str, str]]]:
    registry = services.registry
    live = registry.live()
    waiting = sum(registry.position(run) > 0 for run in live)
    yield "specdemo_runs_waiting", "Runs that wait for the engines.", float(waiting), {}
    yield "specdemo_runs_running", "Runs that have the engines.", float(len(live) - waiting), {}
    yield "specdemo_runs_kept", "Runs held in memory, running ones included.", float(len(registry)), {}
    yield from engine_states(services.control.statuses() if services.control is not None else ())
