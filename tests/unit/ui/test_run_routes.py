"""Kept runs over HTTP: whose they are, who may see them, what may be brought in, what stands side by side."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specdemo.core.events import Side
from specdemo.core.prompt import chat
from specdemo.core.run import RunPlan, RunRecord
from specdemo.core.sentences import sentence
from specdemo.runs import stored
from specdemo.runs.jobs import Jobs, Workshop
from specdemo.store.database import Database, StoreUnavailable, parse
from specdemo.store.keeper import Keeper
from specdemo.store.runs import RunStore
from specdemo.ui.form import Form
from specdemo.ui.handlers import Desk
from specdemo.ui.visitors import NOBODY
from tests.golden import frames_run as golden
from tests.unit.ui.pair import WORDS, World
from tests.unit.ui.runs_page import DOCUMENT, ME, OURS, YOU, client, run
from tests.unit.ui.test_feed import parse as frames_of


def forget(place: World, run_id: str) -> None:
    """As after a restart: only the store knows it."""
    place.services.registry.drop(run_id)
    place.services.feeds.close()


@pytest.mark.parametrize("restarted", [False, True])
async def test_private_until_shared_and_again(place: World, restarted: bool) -> None:
    """A stranger with the id gets what an unknown id gets; sharing opens it, and stopping to share closes it."""
    run_id = await run(place)
    if restarted:
        forget(place, run_id)
    async with client(place.services, ME) as mine, client(place.services, YOU) as yours:
        for part in ("events", "record", "result", "events?replay=1"):
            assert (await mine.get(f"/runs/{run_id}/{part}")).status_code == 200
            refused, unknown = await yours.get(f"/runs/{run_id}/{part}"), await yours.get(f"/runs/nothing/{part}")
            assert (refused.status_code, refused.text) == (unknown.status_code, unknown.text) == (404, refused.text)
        path = f"/runs/{run_id}/shared"
        assert (await yours.put(path, content='{"shared":true}', headers=OURS)).status_code == 404
        assert (await yours.delete(f"/runs/{run_id}", headers=OURS)).status_code == 404
        assert (await mine.put(path, content='{"shared": true}', headers=OURS)).json() == {"shared": True}
        assert frames_of((await yours.get(f"/runs/{run_id}/events")).content)[-1]["done"]
        assert (await yours.get("/runs")).json()["total"] == 0
        await mine.put(path, content='{"shared": false}', headers=OURS)
        assert (await yours.get(f"/runs/{run_id}/events")).status_code == 404


async def test_changes_need_the_pages_own_header(place: World) -> None:
    """A form or script of another site, which brings the cookie along, changes nothing."""
    run_id = await run(place)
    async with client(place.services, ME) as mine:
        assert (await mine.delete(f"/runs/{run_id}")).status_code == 403
        assert (await mine.put(f"/runs/{run_id}/shared", content='{"shared":true}')).status_code == 403
        assert (await mine.post("/runs", content=DOCUMENT)).status_code == 403
        assert (await mine.get("/runs")).json()["total"] == 1


@pytest.mark.parametrize(
    ("before", "wanted", "after"), [(False, True, False), (True, True, True), (True, False, False)]
)
async def test_a_share_that_failed_opens_nothing(
    place: World, monkeypatch: pytest.MonkeyPatch, before: bool, wanted: bool, after: bool
) -> None:
    """Whoever was told that sharing failed has not shared; closing closes what it can."""
    run_id = await run(place)
    live = place.services.live(run_id)
    assert live is not None
    live.shared = before

    def broken(*_: Any, **__: Any) -> bool:
        raise StoreUnavailable(sentence("store_unusable", cause=sentence("part_store_locked")))

    assert place.services.library.keeper is not None
    monkeypatch.setattr(place.services.library.keeper.store, "share", broken)
    async with client(place.services, ME) as mine:
        reply = await mine.put(f"/runs/{run_id}/shared", content=json.dumps({"shared": wanted}), headers=OURS)
    assert reply.status_code == 503
    assert live.shared is after


@pytest.mark.parametrize("body", ["", "{}", '{"shared":1}', '{"shared":"true"}', "x" * 500])
async def test_odd_share_bodies_are_refused(place: World, body: str) -> None:
    """Only on and off are answers to whether a run is shared."""
    async with client(place.services, ME) as mine:
        reply = await mine.put(f"/runs/{await run(place)}/shared", content=body, headers=OURS)
    assert reply.status_code == 422


async def test_a_live_run_is_private_too(place: World) -> None:
    """While it runs, its stream is its starter's; a browser without cookies gets in by the key that its page was given."""
    gate = asyncio.Event()
    for engine in place.engines.values():
        engine.gate = gate
    live = place.services.start(RunPlan(prompt=chat("go"), warmup=False), ME)
    await live.log.opened()
    library = place.services.library
    assert await library.find(live.id, YOU) is None
    assert (await library.find(live.id, ME)) is not None
    address = library.address(live.id, "events", who=NOBODY)
    assert "key=" in address
    assert "key=" not in library.address(live.id, "events", who=ME)
    gate.set()
    async with client(place.services) as nobody:
        assert frames_of((await nobody.get(f"/{address}")).content)[-1]["done"]
        assert (await nobody.get(f"/{address[:-1]}0")).status_code in (404, 200 if address[-1] == "0" else 404)
        assert (await nobody.get(f"/runs/{live.id}/events?key=")).status_code == 404


async def test_a_restart_loses_nothing(place: World) -> None:
    """A run opened after a restart is the same run, marked as recorded, with date, model and hardware to its name."""
    run_id = await run(place)
    async with client(place.services, ME) as mine:
        before = (await mine.get(f"/runs/{run_id}/record")).json()
        forget(place, run_id)
        assert (await mine.get(f"/runs/{run_id}/record")).json() == before
        frames = frames_of((await mine.get(f"/runs/{run_id}/events?replay=1")).content)
    head = frames[0]["head"]
    assert head["badge"] == "recorded"
    assert head["recorded"]["how"] == "race_shared"
    assert head["recorded"]["imported"] is False
    assert head["sides"]["speculative"] == {"model": "scripted", "method": "ngram", "k": 4}
    assert frames[-1]["done"]


async def test_a_broken_live_stream_is_not_mixed_with_the_replay(place: World) -> None:
    """Frame numbers of a live stream mean nothing in the replay from the store, so none is resumed with them."""
    run_id = await run(place)
    forget(place, run_id)
    async with client(place.services, ME) as mine:
        assert (await mine.get(f"/runs/{run_id}/events", headers={"last-event-id": "3"})).status_code == 404
        resumed = await mine.get(f"/runs/{run_id}/events?replay=1", headers={"last-event-id": "0"})
        whole = await mine.get(f"/runs/{run_id}/events?replay=1")
    assert frames_of(resumed.content) == frames_of(whole.content)[1:]


async def test_the_list_shows_ones_own_runs(place: World) -> None:
    """Configuration, mode, speedup, verdict and date of each; what is not kept or still runs is listed and says so."""
    run_id, loose = await run(place), await run(place, keep=False)
    await run(place, YOU)
    async with client(place.services, ME) as mine:
        answer = (await mine.get("/runs")).json()
        found = (await mine.get("/runs", params={"q": "SECRET ngram"})).json()
        none = (await mine.get("/runs", params={"q": "elsewhere"})).json()
    assert answer["total"] == 1
    assert [(row["id"], row["kept"]) for row in answer["runs"]] == [(loose, False), (run_id, True)]
    row = answer["runs"][1]
    assert (row["method"], row["k"], row["mode"], row["verdict"], row["state"]) == (
        "ngram",
        4,
        "race",
        "identical",
        "finished",
    )
    assert row["speedup"] > 0
    assert "owner" not in row
    assert len(found["runs"]) == 2
    assert none["runs"] == []


async def test_a_run_that_just_ended_is_in_the_list_before_it_is_written(
    place: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A short run ends before its first checkpoint: in between it is neither running nor in the store, and is shown."""
    keeper = place.services.library.keeper
    assert keeper is not None
    written, begin = threading.Event(), keeper.store.begin
    monkeypatch.setattr(keeper.store, "begin", lambda *what: written.wait(30) and begin(*what))
    live = place.services.start(RunPlan(prompt=chat("a short one"), warmup=False), ME)
    await place.services.registry.finished(live)
    async with client(place.services, ME) as mine, client(place.services, YOU) as yours:
        assert [row["id"] for row in (await mine.get("/runs")).json()["runs"]] == [live.id]
        assert (await yours.get("/runs")).json()["runs"] == []
        written.set()
        await place.services.library.settled(live, 10)
        assert [row["id"] for row in (await mine.get("/runs")).json()["runs"]] == [live.id]


async def test_nobody_without_a_cookie_owns_anything(place: World) -> None:
    """Browsers without cookies are not one another's: they see no list and delete nothing."""
    run_id = await run(place, NOBODY)
    async with client(place.services) as nobody:
        assert (await nobody.get("/runs")).json()["runs"] == []
        assert (await nobody.get(f"/runs/{run_id}/record")).status_code == 404
        assert (await nobody.delete(f"/runs/{run_id}", headers=OURS)).status_code == 404


async def test_a_page_for_this_machine_shows_all(place: World) -> None:
    """Where everybody is whoever runs the page, nobody needs a cookie."""
    run_id = await run(place)
    here = replace(place.services, together=True)
    async with client(here) as anybody:
        assert (await anybody.get("/runs")).json()["total"] == 1
        assert (await anybody.get(f"/runs/{run_id}/record")).status_code == 200
        assert (await anybody.delete(f"/runs/{run_id}", headers=OURS)).status_code == 204
        assert (await anybody.get(f"/runs/{run_id}/record")).status_code == 404


async def test_two_runs_side_by_side(place: World) -> None:
    """Numbers of both, the settings that differ and nothing else, and whether they were asked the same."""
    first = await run(place)
    live = place.services.start(RunPlan(prompt=chat("another"), mode="measure", warmup=False), ME)
    await place.services.registry.finished(live)
    await place.services.library.settled(live, 10)
    async with client(place.services, ME) as mine, client(place.services, YOU) as yours:
        answer = (await mine.get("/runs/compare", params={"a": first, "b": live.id})).json()
        same = (await mine.get("/runs/compare", params={"a": first, "b": first})).json()
        for pair in ({"a": first, "b": live.id}, {"a": first}, {}):
            assert (await yours.get("/runs/compare", params=pair)).status_code == 404
    assert answer["same_prompt"] is False
    assert [side["mode"] for side in answer["sides"]] == ["race", "measure"]
    assert {row["name"] for row in answer["differs"]} == {"mode", "prompt"}
    values = {row["name"]: row["values"] for row in answer["numbers"]}
    assert values["standard.output_tokens"] == [60, 60]
    assert values["speculative.acceptance.rate"][0] == values["speculative.acceptance.rate"][1]
    assert same["same_prompt"] is True
    assert same["differs"] == []


async def test_two_configurations_are_told_apart(place: World) -> None:
    """One prompt under two speculative configurations: the list names each, the comparison has what differs and by how much."""
    first = await run(place)
    other = place.engines[Side.SPECULATIVE]
    other.method, other.k, other.bursts = "draft_model", 1, [WORDS[i : i + 2] for i in range(0, len(WORDS), 2)]
    second = await run(place)
    for run_id in (first, second):
        forget(place, run_id)  # both come from the store
    async with client(place.services, ME) as mine:
        rows = (await mine.get("/runs")).json()["runs"]
        answer = (await mine.get("/runs/compare", params={"a": first, "b": second})).json()
    configurations = [("ngram", 4), ("draft_model", 1)]
    assert {row["id"]: (row["method"], row["k"]) for row in rows} == dict(
        zip((first, second), configurations, strict=True)
    )
    assert all(row["speedup"] > 0 for row in rows)
    assert answer["same_prompt"] is True
    assert [(side["method"], side["k"]) for side in answer["sides"]] == configurations
    assert {row["name"]: row["values"] for row in answer["differs"]} == {
        "speculative.method": ["ngram", "draft_model"],
        "speculative.k": ["4", "1"],
    }
    values = {row["name"]: row["values"] for row in answer["numbers"]}
    assert values["speedup.decode"] == [next(r["speedup"] for r in rows if r["id"] == one) for one in (first, second)]
    assert values["speculative.acceptance.rate"] == [pytest.approx(44 / 60), 1.0]
    assert values["speculative.acceptance.mean_length"] == [pytest.approx(59 / 15), 2.0]


async def test_a_store_that_fails_leaves_the_page_working(place: World, tmp_path: Path) -> None:
    """Without a usable store runs are in memory: they are listed and opened, and the page says what is wrong."""
    (tmp_path / "blocked").write_text("in the way")
    broken = Keeper(RunStore(Database(parse(f"sqlite:///{tmp_path}/blocked/runs.db"))), every=0.01)
    services = replace(place.services, keeper=broken)
    updates = [update async for update in Desk(services).run(Form("go"), "en", "s", ME)]
    assert "could not be kept" in updates[-1][1]
    assert str(tmp_path) not in updates[-1][1]
    run_id = json.loads(updates[0][0])["run"]
    async with client(services, ME) as mine:
        answer = (await mine.get("/runs")).json()
        assert [row["id"] for row in answer["runs"]] == [run_id]
        assert "cannot be used" in answer["trouble"]
        assert (await mine.get(f"/runs/{run_id}/record")).status_code == 200
        assert (await mine.get("/runs/unknown/record")).status_code == 503
        assert (await mine.post("/runs", content=DOCUMENT, headers=OURS)).status_code == 503
    await broken.aclose()


async def test_damaged_entries_are_said(place: World) -> None:
    """A row whose document was damaged in the database opens nothing and says so; the list still works."""
    run_id = await run(place)
    forget(place, run_id)
    keeper = place.services.keeper
    assert keeper is not None
    keeper.store.database.write(
        lambda connection: connection.exec_driver_sql("update run_parts set body = x'00ff' where number = 1")
    )
    async with client(place.services, ME) as mine:
        for part in ("events?replay=1", "record", "result"):
            reply = await mine.get(f"/runs/{run_id}/{part}")
            assert reply.status_code == 404
            assert "damaged" in reply.json()["error"]
        assert (await mine.get("/runs")).json()["total"] == 1


@pytest.mark.parametrize("public", [False, True])
async def test_benchmarks_and_validations_are_listed(place: World, tmp_path: Path, public: bool) -> None:
    """Results of the other tabs are found by kind and name; a page open to strangers has none."""
    for folder, name in (("benchmarks", "first.jsonl"), ("benchmarks", "second.jsonl"), ("validations", "draws.json")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_text("{}")
    shop = Workshop(engines=lambda: place.engines, folder=tmp_path, hardware="scripted engines")
    services = replace(place.services, jobs=Jobs(place.services.registry, shop), public=public)
    async with client(services, ME) as mine:
        bench = (await mine.get("/runs", params={"kind": "benchmark", "q": "FIRST"})).json()
        draws = (await mine.get("/runs", params={"kind": "validation"})).json()
        runs = (await mine.get("/runs")).json()
    assert [row["id"] for row in bench["runs"]] == ([] if public else ["first"])
    assert [row["id"] for row in draws["runs"]] == ([] if public else ["draws"])
    assert runs["results"] is not public


async def test_stop_tells_nothing_of_anothers_run(place: World) -> None:
    """The arena's value comes from the browser; naming another's run in it gives neither state nor links."""
    run_id = await run(place)
    _, line, _, _ = await Desk(place.services).stopped(json.dumps({"run": run_id}), "en", "you", YOU)
    assert run_id not in line
    _, line, _, _ = await Desk(place.services).stopped(json.dumps({"run": run_id}), "en", "me", ME)
    assert run_id in line


async def test_links_of_ones_own_run(place: World) -> None:
    """A private run's line offers to share it; a shared one's does not; an unkept one says that it is not kept."""
    desk = Desk(place.services)
    updates = [update async for update in desk.run(Form("go"), "en", "s", ME)]
    run_id = json.loads(updates[0][0])["run"]
    assert f'data-share="{run_id}"' in updates[-1][1]
    assert await place.services.library.share(run_id, ME, shared=True)
    _, line, _, _ = await desk.opened(run_id, "en", ME)
    assert "data-share" not in line
    shown, line, _, _ = await desk.opened(run_id, "en", YOU)
    assert json.loads(shown)["run"] == run_id
    assert "data-share" not in line
    loose = [update async for update in desk.run(replace(Form("go"), keep=False), "en", "s", ME)]
    assert "not kept" in loose[-1][1]


def test_a_stored_file_is_the_same_document(tmp_path: Path) -> None:
    """The file of ``race --save`` and the page's export are read by the same reader."""
    path = tmp_path / "run.json"
    stored.save(path, RunRecord(golden.HEADER, golden.EVENTS))
    assert stored.load(path) == stored.loads(DOCUMENT)
