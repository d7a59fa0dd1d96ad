"""Runs from other machines over HTTP: damaged, future, hostile and odd files, and the one that a page gave out itself."""

from __future__ import annotations

import json
import zlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from specdemo.core.run import SCHEMA
from specdemo.ui.handlers import Desk
from tests.unit.ui.pair import World
from tests.unit.ui.runs_page import DOCUMENT, ME, OURS, YOU, client, run
from tests.unit.ui.test_feed import parse as frames_of


async def test_export_and_import_are_one_run(place: World) -> None:
    """What one page gives out another takes in, under a new id, marked as not measured here, with the same numbers."""
    run_id = await run(place)
    async with client(place.services, ME) as mine, client(place.services, YOU) as yours:
        exported = (await mine.get(f"/runs/{run_id}/record")).content
        card = (await yours.post("/runs", content=exported, headers=OURS)).json()
        assert card["id"] != run_id
        assert card["imported"] is True
        result = (await yours.get(f"/runs/{card['id']}/result")).json()
        assert result == (await mine.get(f"/runs/{run_id}/result")).json()
        frames = frames_of((await yours.get(f"/runs/{card['id']}/events?replay=1")).content)
        assert frames[0]["head"]["recorded"]["imported"] is True
        _, line, _, _ = await Desk(place.services).opened(card["id"], "en", YOU)
        assert "not measured here" in line


def _changed(**parts: Any) -> bytes:
    return json.dumps({**json.loads(DOCUMENT), **parts}).encode()


HOSTILE: dict[str, bytes] = {
    "empty": b"", "no json": b"hello", "a list": b"[]", "half": DOCUMENT[:200].encode(), "nan": b'{"schema": NaN}',
    "deep": b"[" * 100_000, "binary": bytes(range(256)) * 10, "packed": zlib.compress(DOCUMENT.encode()),
    "future": _changed(schema=SCHEMA + 1), "schema text": _changed(schema="1"), "schema true": _changed(schema=True),
    "no events": _changed(events=None), "unknown event": _changed(events=[{"type": "exec", "side": "standard"}]),
    "half a character": _changed(header={**json.loads(DOCUMENT)["header"], "title": "\ud800"}),
    "an id that is a path": _changed(header={**json.loads(DOCUMENT)["header"], "id": "../../etc/passwd"}),
    "huge number": DOCUMENT.replace('"schema": 1', '"schema": 1, "x": ' + "9" * 5000).encode(),
    "back in time": _changed(events=[{"type": "started", "side": "standard", "at": -1.0}]),
    "no prompt": _changed(header={**json.loads(DOCUMENT)["header"], "plan": {"prompt": {}}}),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_files_are_refused_in_words(place: World, name: str) -> None:
    """Damaged, future and hostile files end in one sentence, and nothing of them is kept."""
    async with client(place.services, ME) as mine:
        reply = await mine.post("/runs", content=HOSTILE[name], headers=OURS)
        assert reply.status_code == 422, reply.text
        assert reply.json()["error"].endswith(".")
        assert "Traceback" not in reply.text
        assert (await mine.get("/runs")).json()["total"] == 0


async def test_odd_but_valid_files_open(place: World) -> None:
    """Markup, odd dates and control characters in a stranger's run are text, and the run can be opened and compared."""
    header = {
        **json.loads(DOCUMENT)["header"], "title": "<img src=x onerror=alert(1)>\x00\x1b[31m", "started_at": -9e10,
        "hardware": "</script><script>alert(1)</script>",
    }  # fmt: skip
    async with client(place.services, ME) as mine:
        card = (await mine.post("/runs", content=_changed(header=header), headers=OURS)).json()
        frames = frames_of((await mine.get(f"/runs/{card['id']}/events?replay=1")).content)
        both = await mine.get("/runs/compare", params={"a": card["id"], "b": card["id"]})
        result = await mine.get(f"/runs/{card['id']}/result")
    assert frames[0]["head"]["recorded"]["date"] == "unknown date"
    assert both.json()["sides"][0]["date"] is None
    assert result.headers["content-type"] == "application/json"


async def test_too_large_a_file_is_refused_while_it_comes(place: World) -> None:
    """Not more than the limit is ever held, whatever the sender says of its length."""
    small = replace(place.services, import_bytes=1000)

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b"[" * 100

    async with client(small, ME) as mine:
        reply = await mine.post("/runs", content=endless(), headers=OURS)
    assert reply.status_code == 413
    assert "larger than" in reply.json()["error"]
