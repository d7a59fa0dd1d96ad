"""The route that changes the method: who may use it, what it refuses, and what the panel is told."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from specdemo.core.choice import Choice, Picked, Switching
from specdemo.core.prompt import chat
from specdemo.core.run import RunPlan
from specdemo.errors import ConfigError, EngineUnavailable, UsageError
from specdemo.ui.routes import add_routes
from specdemo.ui.services import Services
from specdemo.ui.switching import add_switch
from tests.unit.ui.pair import world


class Method:
    """A MethodControl that writes down what was asked, and refuses with what it is told to."""

    def __init__(self, error: Exception | None = None) -> None:
        self.asked: list[tuple[str, int | None]] = []
        self.error = error

    def switching(self) -> Switching:
        return Switching(Picked("ngram", "ngram", 4), None, (Choice("ngram", "ngram", 4, start_s=((4, 31.5),)),))

    async def switch(self, name: str, k: int | None) -> None:
        if self.error is not None:
            raise self.error
        self.asked.append((name, k))

    async def restore(self) -> None:
        self.asked.append(("restore", None))


def client(services: Services) -> httpx.AsyncClient:
    app = FastAPI()
    add_routes(app, services)
    add_switch(app, services)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://page")


async def post(services: Services, body: Any, **headers: str) -> httpx.Response:
    async with client(services) as http:
        return await http.post("/engines/speculation", json=body, headers=headers)


async def test_a_choice_reaches_the_engines() -> None:
    """Method and k, and the way back, arrive as they were sent; the panel learns what is on offer and what it costs."""
    method = Method()
    services = world(method=method).services
    assert (await post(services, {"method": "ngram", "k": 3})).status_code == 202
    assert (await post(services, {"method": "none"})).status_code == 202
    assert (await post(services, {"method": "restore"})).status_code == 202
    assert method.asked == [("ngram", 3), ("none", None), ("restore", None)]
    async with client(services) as http:
        told = (await http.get("/engines")).json()["switch"]
    assert told["choices"][0]["start_s"] == [[4, 31.5]]
    assert told["k_limits"] == [1, 8]


async def test_strangers_may_not_change_it() -> None:
    """In public, without managed engines and from other sites it is refused here, whatever a page shows."""
    for services in (
        world(method=(method := Method()), public=True).services,
        world().services,
        Services(world().services.registry, "attached", world().control, method=method),
    ):
        reply = await post(services, {"method": "ngram", "k": 3})
        assert reply.status_code == 403
        assert reply.json()["error"].endswith(".")
        async with client(services) as http:
            assert (await http.get("/engines")).json()["switch"] is None
    own = world(method=method).services
    assert (await post(own, {"method": "ngram"}, **{"sec-fetch-site": "cross-site"})).status_code == 403
    async with client(own) as http:
        form = await http.post(
            "/engines/speculation", content='{"method":"ngram"}', headers={"content-type": "text/plain"}
        )
    assert form.status_code == 422
    assert method.asked == []


@pytest.mark.parametrize(
    "body", [{}, [], "ngram", {"method": 1}, {"method": "ngram", "k": "3"}, {"method": "ngram", "k": 3, "model": "/etc"},
             {"method": "n" * 3000}]
)  # fmt: skip
async def test_odd_bodies_are_refused(body: Any) -> None:
    """Anything but a name and a whole number is refused with a sentence."""
    method = Method()
    reply = await post(world(method=method).services, body)
    assert reply.status_code == 422
    assert "whole number" in reply.json()["error"]
    assert method.asked == []


@pytest.mark.parametrize(
    ("error", "status"), [(UsageError("a."), 409), (ConfigError("b."), 422), (EngineUnavailable("c."), 503)]
)
async def test_refusals_keep_their_sentence(error: Exception, status: int) -> None:
    """What the engines' side says is what the panel shows."""
    reply = await post(world(method=Method(error)).services, {"method": "ngram", "k": 3})
    assert (reply.status_code, reply.json()) == (status, {"error": str(error)})


async def test_no_run_begins_during_a_change() -> None:
    """A run has the engines or the change has them, never both; afterwards runs go on."""
    place = world(method=Method())
    registry, plan = place.services.registry, RunPlan(prompt=chat("go"), warmup=False)
    async with registry.engines_free():
        with pytest.raises(EngineUnavailable, match="change of the method"):
            registry.start(plan)
        with pytest.raises(UsageError, match="change of the method"):
            await place.services.switch("ngram", 3)
    live = registry.start(plan)
    with pytest.raises(UsageError, match="A run is using"):
        await place.services.switch("ngram", 3)
    await registry.finished(live)
    assert live.error is None
    await registry.aclose()
