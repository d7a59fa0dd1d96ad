"""A page that keeps runs, for tests: visitors, their clients, their finished runs."""

from __future__ import annotations

import json
from typing import Any

import httpx
from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from specdemo.core.codec import to_json
from specdemo.core.prompt import chat
from specdemo.core.run import RunPlan, RunRecord
from specdemo.ui.routes import add_routes
from specdemo.ui.services import Services
from specdemo.ui.visitors import NOBODY, Visitor
from tests.golden import frames_run as golden
from tests.unit.ui.pair import World

OURS = {"x-specdemo": "1"}
ME, YOU = Visitor("me", "10.0.0.1"), Visitor("you", "10.0.0.2")
DOCUMENT = json.dumps(to_json(RunRecord(golden.HEADER, golden.EVENTS)))


def client(services: Services, who: Visitor = NOBODY) -> httpx.AsyncClient:
    """A client of the bare routes, as this visitor."""
    app = FastAPI()
    add_routes(app, services)
    return httpx.AsyncClient(transport=httpx.ASGITransport(_as(app, who)), base_url="http://page")


def _as(app: ASGIApp, who: Visitor) -> ASGIApp:
    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "state": {"visitor": who}}, receive, send)

    return call


async def run(place: World, who: Visitor = ME, **options: Any) -> str:
    """One finished run of this visitor, in the store."""
    live = place.services.start(RunPlan(prompt=chat("my secret prompt"), warmup=False), who, **options)
    await place.services.registry.finished(live)
    await place.services.library.settled(live, 10)
    return live.id
