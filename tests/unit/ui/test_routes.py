"""Our own routes: frames that resume, documents that match, engine states that tell strangers nothing."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from specdemo.core.engine import EngineState
from specdemo.core.prompt import chat
from specdemo.core.run import RunPlan, RunRecord
from specdemo.runs import stored
from specdemo.ui import recordings
from specdemo.ui.routes import add_routes
from specdemo.ui.services import Services
from tests.golden import frames_run as golden
from tests.unit.ui.pair import WORDS, Control, World, world
from tests.unit.ui.test_feed import parse, text_of

WHOLE = "".join(text for _, text in WORDS)


def client(services: Services) -> httpx.AsyncClient:
    """A client of the bare routes."""
    app = FastAPI()
    add_routes(app, services)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://page")


@pytest.fixture
async def finished() -> AsyncIterator[tuple[World, str]]:
    """A world with one finished run, and its id."""
    place = world(pause=0.001)
    live = place.services.registry.start(RunPlan(prompt=chat("go"), warmup=False))
    await place.services.registry.finished(live)
    yield place, live.id
    place.services.feeds.close()


async def test_events_resume_where_the_reader_was(finished: tuple[World, str]) -> None:
    """``Last-Event-ID`` and ``?after=`` go on after that frame; the stream says that it may not be stored or held."""
    place, run_id = finished
    async with client(place.services) as http:
        whole = await http.get(f"/runs/{run_id}/events")
        frames = parse(whole.content)
        assert whole.headers["content-type"].startswith("text/event-stream")
        assert whole.headers["cache-control"] == "no-store"
        assert whole.headers["x-accel-buffering"] == "no"
        assert text_of(frames, "speculative") == WHOLE
        rest = await http.get(f"/runs/{run_id}/events", headers={"last-event-id": "0"})
        same = await http.get(f"/runs/{run_id}/events?after=0")
        assert parse(rest.content) == parse(same.content) == frames[1:]


@pytest.mark.parametrize("given", ["x", "-7", "99999999999999999999", "1e3", ""])
async def test_odd_resume_points_are_harmless(finished: tuple[World, str], given: str) -> None:
    """Whatever a reader claims to have, the answer is a well-formed stream."""
    place, run_id = finished
    async with client(place.services) as http:
        assert (await http.get(f"/runs/{run_id}/events", params={"after": given})).status_code == 200


async def test_unknown_run_is_not_found() -> None:
    """A forgotten run ends an EventSource for good instead of letting it ask for ever."""
    async with client(world().services) as http:
        for part in ("events", "record", "result"):
            assert (await http.get(f"/runs/nothing/{part}")).status_code == 404
        assert (await http.get("/runs/..%2f..%2fetc/events")).status_code == 404


async def test_record_can_be_read_back(finished: tuple[World, str]) -> None:
    """The downloaded document is a stored run: reading it gives the same result again."""
    place, run_id = finished
    async with client(place.services) as http:
        reply = await http.get(f"/runs/{run_id}/record")
        result = (await http.get(f"/runs/{run_id}/result")).json()
    assert "attachment" in reply.headers["content-disposition"]
    live = place.services.live(run_id)
    assert live is not None
    assert stored.loads(reply.content) == live.log.record()
    assert result["sides"]["standard"]["text"] == WHOLE


async def test_numbers_of_frames_and_result_agree(finished: tuple[World, str]) -> None:
    """The page's last numbers are those of the command line's document, digit for digit."""
    place, run_id = finished
    async with client(place.services) as http:
        frames = parse((await http.get(f"/runs/{run_id}/events")).content)
        result = (await http.get(f"/runs/{run_id}/result")).json()
    for side in ("standard", "speculative"):
        shown: dict = {}
        for frame in frames:
            shown.update(frame.get("m", {}).get(side, {}))
        for name, value in result["sides"][side]["metrics"].items():
            if name != "acceptance":
                assert shown.get(name) == value, name
        for name, value in result["sides"][side]["metrics"]["acceptance"].items():
            assert shown["acceptance"].get(name) == value, name
    assert frames[-1]["speedup"]["decode"] == result["speedup"]["decode"]
    assert frames[-1]["verdict"]["class"] == result["verdict"]["class"]


async def test_engines_tell_strangers_nothing() -> None:
    """In public, no command line, address, process, log or error text leaves the server."""
    async with client(world().services) as http:
        own = (await http.get("/engines")).json()
    async with client(world(public=True).services) as http:
        public = (await http.get("/engines")).json()
    assert own["controls"]
    assert own["sides"][0]["log_tail"] == ["loading <weights>", "10 %"]
    assert not public["controls"]
    for word in ("904711409", "vllm serve", "127.0.0.1", "<weights>"):
        assert word not in json.dumps(public)
    assert public["sides"][1]["state"] == "ready"
    assert public["sides"][1]["method"] == "ngram"


async def test_health_and_readiness_differ() -> None:
    """Alive from the first second; ready only when a run could start."""
    async with client(world(control=Control(EngineState.LOADING)).services) as http:
        assert (await http.get("/healthz")).status_code == 200
        assert (await http.get("/readyz")).status_code == 503
    async with client(world().services) as http:
        assert (await http.get("/readyz")).status_code == 200


@pytest.mark.parametrize("path", ["js/pane.mjs", "js/mount.js", "css/form.css", "i18n/zh.json"])
async def test_static_files_have_their_types(path: str) -> None:
    """Browsers refuse modules and styles of a wrong type."""
    kinds = {"mjs": "text/javascript", "js": "text/javascript", "css": "text/css", "json": "application/json"}
    async with client(world().services) as http:
        reply = await http.get(f"/assets/{path}")
        assert reply.status_code == 200
        assert reply.headers["content-type"].startswith(kinds[path.rpartition(".")[2]])
        again = await http.get(f"/assets/{path}", headers={"if-none-match": reply.headers["etag"]})
        assert again.status_code == 304


@pytest.mark.parametrize("path", ["html/race.html", "runs/", "prompts/workloads.json", "js/../html/race.html", "js/%2e%2e/html/race.html"])  # fmt: skip
async def test_only_the_browsers_folders_are_served(path: str) -> None:
    """What the server reads for itself cannot be fetched."""
    async with client(world().services) as http:
        assert (await http.get(f"/assets/{path}")).status_code == 404


async def test_recordings_play_like_runs(tmp_path: Path) -> None:
    """A recorded run is listed with date and hardware, and streams all its frames at once, marked as recorded."""
    stored.save(tmp_path / "small.json", RunRecord(golden.HEADER, golden.EVENTS))
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    found = recordings.load(tmp_path)
    async with client(world(recordings=found).services) as http:
        [card] = (await http.get("/recordings")).json()
        frames = parse((await http.get(f"/runs/{card['id']}/events")).content)
    assert card["id"] == "rec-small"
    assert all("2025-10-09" in card["how"][lang] for lang in ("en", "zh"))
    assert frames[0]["run"] == "rec-small"
    assert frames[0]["head"]["badge"] == "recorded"
    assert frames[0]["head"]["recorded"]["how"] == "race_shared"
    assert frames[-1]["done"]
