"""A page that goes: its runs end at once, another's do not, and soon nothing of it is remembered."""

from __future__ import annotations

import asyncio
from typing import Any

import gradio as gr
import httpx
import pytest
from gradio.state_holder import SessionState
from starlette.types import Message

from specdemo.ui import handlers, sessions
from specdemo.ui import presence as presence_module
from specdemo.ui.memory import few_heaps, give_back
from specdemo.ui.presence import Presence, page_key
from specdemo.ui.visitors import Visitor
from tests.unit.ui.pair import world
from tests.unit.ui.test_public import browser, listeners, named, post, served, visiting

ANN, BEN = Visitor("ann"), Visitor("ben")


def _scope(query: str = "session_hash=s1", path: str = "/gradio_api/queue/data", method: str = "GET") -> dict[str, Any]:
    return {"type": "http", "method": method, "path": path, "query_string": query.encode()}


async def _break_off(presence: Presence, scope: dict[str, Any], who: Visitor, *, after_end: bool = False) -> None:
    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        del message

    with presence.watch(scope, who, receive, send) as (receiving, sending):
        if after_end:
            await sending({"type": "http.response.body", "body": b"", "more_body": False})
        await receiving()


@pytest.mark.parametrize(
    ("scope", "who", "after_end", "ended"),
    [
        (_scope(), ANN, False, ["one", "two"]),
        (_scope("", "/gradio_api/heartbeat/s1"), ANN, False, ["one", "two"]),
        (_scope("", "/gradio_api/heartbeat/s1"), BEN, False, []),
        (_scope(), BEN, False, []),
        (_scope("session_hash=s2"), ANN, False, []),
        (_scope(""), ANN, False, []),
        (_scope(path="/runs/one/events"), ANN, False, []),
        (_scope(method="HEAD"), ANN, False, []),
        (_scope(), ANN, True, []),
    ],
)
async def test_only_the_page_itself_ends_its_runs(
    scope: dict[str, Any], who: Visitor, after_end: bool, ended: list[str]
) -> None:
    """Its stream of messages has to break off: no other visitor's, no other page's, no other stream, none that is over."""
    heard: list[str] = []
    presence = Presence(heard.append)
    with presence.waits(page_key(ANN, "s1"), "one"), presence.waits(page_key(ANN, "s1"), "two"):
        await _break_off(presence, scope, who, after_end=after_end)
        assert heard == ended
    await _break_off(presence, scope, who)
    assert heard == ended
    assert presence._waiting == {}


async def test_a_heartbeat_that_a_proxy_cuts_ends_nothing() -> None:
    """As long as the page listens to its run it is there; afterwards the heartbeat counts again."""
    heard: list[str] = []
    presence, beat = Presence(heard.append), _scope("", "/gradio_api/heartbeat/s1")

    with presence.waits(page_key(ANN, "s1"), "one"):
        with presence.watch(_scope(), ANN, _never, _never) as (receiving, _):
            await receiving()
            await _break_off(presence, beat, ANN)
            assert heard == []
        assert presence._listening == {}
        await _break_off(presence, beat, ANN)
        assert heard == ["one"]


async def _never(*_: Any) -> Any:
    return {"type": "http.request"}


@pytest.mark.parametrize("comes_back", [False, True])
async def test_a_page_that_is_gone_before_its_run_begins(comes_back: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """C02: the click is still on its way when the tab closes; the run that it begins ends, unless the page is back."""
    monkeypatch.setattr(presence_module, "GRACE_S", 0.02)
    monkeypatch.setattr(presence_module, "SOON_S", 0.02)
    heard: list[str] = []
    presence, page = Presence(heard.append), page_key(ANN, "s1")
    with presence.watch(_scope("", "/gradio_api/heartbeat/s1"), ANN, _never, _never):
        pass
    with presence.waits(page, "one"):
        if comes_back:
            with presence.watch(_scope(), ANN, _never, _never):
                await asyncio.sleep(0.05)
                assert heard == []
        else:
            while not heard:
                await asyncio.sleep(0.005)
            assert heard == ["one"]
    heard.clear()
    with presence.waits(page, "two"):
        pass
    unseen = page_key(ANN, "never seen")
    with presence.waits(unseen, "a program's"):
        await asyncio.sleep(0.05)
    assert heard == []
    with presence.waits(unseen, "ours", listens=True):
        while not heard:
            await asyncio.sleep(0.005)
    assert heard == ["ours"]


async def test_pages_that_were_seen_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of pages come from outside: only so many are remembered."""
    monkeypatch.setattr(presence_module, "MOST_KNOWN", 3)
    presence = Presence(lambda _: None)
    for number in range(9):
        with presence.watch(_scope(f"session_hash=s{number}"), ANN, _never, _never):
            pass
    assert list(presence._known) == [page_key(ANN, f"s{number}") for number in (6, 7, 8)]
    assert presence._listening == {}


async def test_programs_are_not_followed() -> None:
    """Without a page's name there is nothing that could go."""
    heard: list[str] = []
    presence = Presence(heard.append)
    with presence.waits("", "one"):
        presence.left("")
    assert heard == []


@pytest.mark.parametrize("stream", ["messages", "heartbeat"])
@pytest.mark.parametrize("name", ["run", "race"])
async def test_a_closed_tab_ends_its_run_before_the_next_look(
    name: str, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C02: the engines are let go when the connection ends, although the handler would not look for an hour.

    Also when the tab goes before it has begun to listen to its run.
    """
    monkeypatch.setattr(handlers, "TICK", 3600.0)
    place = world(gate=asyncio.Event())
    async with served(place) as url, browser(url) as http:
        found = next(listener for listener in await listeners(http) if listener["api_name"] == name)
        given = {
            "run": ["hi", "", "race", 8, 0, 1, 0, 0, None, 0, 0, 1, False, False, False, False],
            "race": ["hi", "", 8, 0, "race", None, False, True],
        }
        values = [*given[name], *[None] * len(found["inputs"])][: len(found["inputs"])]
        beat = asyncio.create_task(_read(http, "/gradio_api/heartbeat/tab"))
        body = {"data": values, "fn_index": found["id"], "session_hash": "tab", "event_data": None}
        await http.post("/gradio_api/queue/join", json=body)
        tab = beat
        if stream == "messages":
            heard = asyncio.Event()
            tab = asyncio.create_task(_read(http, "/gradio_api/queue/data?session_hash=tab", heard))
            await heard.wait()
        while sum(engine.open_streams for engine in place.engines.values()) < 2:
            await asyncio.sleep(0.01)
        [live] = place.services.registry.live()
        tab.cancel()
        await asyncio.wait([tab])
        await place.services.registry.finished(live)
        beat.cancel()
    assert [engine.open_streams for engine in place.engines.values()] == [0, 0]


async def test_every_page_keeps_a_connection_open() -> None:
    """Without jobs there is no other state in the page, and Gradio would hold no heartbeat: nobody could tell that it left."""
    async with visiting(world()) as http:
        assert (await http.get("/config")).json()["connect_heartbeat"] is True


async def test_closed_pages_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the pages that said that they go only the latest few are remembered, and of open ones all."""
    made: list[gr.Blocks] = []
    forgetting = sessions.forgetting

    async def noted(demo: gr.Blocks) -> None:
        made.append(demo)
        await forgetting(demo)

    monkeypatch.setattr(sessions, "forgetting", noted)
    monkeypatch.setattr(sessions, "EVERY_S", 0.01)
    trimmed: list[bool] = []
    monkeypatch.setattr(sessions, "give_back", lambda: trimmed.append(True))
    monkeypatch.setattr(sessions, "CLOSED_KEPT", 2)
    monkeypatch.setattr(sessions.forget_closed, "__defaults__", (2,))
    async with visiting(world(public=True)) as http:
        arrived = named(await listeners(http), "arrived")
        for number in range(6):
            await post(http, arrived, [], session=f"open-{number}")
        for number in range(6):
            beat = asyncio.create_task(_read(http, f"/gradio_api/heartbeat/closed-{number}"))
            await post(http, arrived, [], session=f"closed-{number}")
            beat.cancel()
            await asyncio.wait([beat])
        [demo] = made
        holder: Any = demo.state_holder  # type: ignore[attr-defined]
        while sum(name.startswith("closed") for name in holder.session_data) > 2:
            await asyncio.sleep(0.01)
        states = dict(holder.session_data)
        assert [name for name in states if name.startswith("open")] == [f"open-{number}" for number in range(6)]
        assert all(isinstance(state, SessionState) for state in states.values())
        waiting = demo._queue.pending_event_ids_session
        assert not [name for name in waiting if name.startswith("closed") and name not in states]
        assert set(holder.time_last_used) == set(states)
        assert "process_completed" in await post(http, arrived, [], session="closed-0")
        while not trimmed:
            await asyncio.sleep(0.01)


async def _read(http: httpx.AsyncClient, address: str, heard: asyncio.Event | None = None) -> None:
    async with http.stream("GET", address, timeout=None) as stream:
        async for _ in stream.aiter_raw():
            if heard is not None:
                heard.set()


async def test_a_page_that_was_never_served_has_nothing_to_forget() -> None:
    """Before Gradio has made its own parts there is no session."""
    with gr.Blocks() as demo:
        pass
    assert sessions.forget_closed(demo) == 0


@pytest.mark.parametrize("given", [None, "4"])
def test_heaps_are_asked_for_once_and_trimmed(given: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """It can be called on any C library, and does not overrule whoever runs the page."""
    called: list[tuple[int, int]] = []

    class Library:
        def mallopt(self, what: int, value: int) -> int:
            called.append((what, value))
            return 1

        def malloc_trim(self, pad: int) -> int:
            called.append((0, pad))
            return 0

    monkeypatch.setattr("ctypes.CDLL", lambda _: Library())
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    if given is not None:
        monkeypatch.setenv("MALLOC_ARENA_MAX", given)
    few_heaps()
    assert called == ([] if given else [(-8, 2)])
    give_back()
    assert called[-1] == (0, 0)
    monkeypatch.setattr("ctypes.CDLL", lambda _: object())
    few_heaps()
    give_back()
