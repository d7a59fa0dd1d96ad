"""Stored runs: what is written comes back, and nothing hostile gets in."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from specdemo.core.codec import to_json
from specdemo.core.events import (
    SIDES,
    CountersRead,
    Failed,
    Finished,
    Noted,
    SpecCounters,
    Started,
    TokenLogprob,
    Tokens,
    TopToken,
)
from specdemo.core.prompt import chat
from specdemo.core.results import Check
from specdemo.core.run import Probe, RunHeader, RunPlan, RunRecord
from specdemo.errors import StoreError
from specdemo.runs import stored
from tests.fakes.engines import facts

STD, SPEC = SIDES
HEADER = RunHeader(
    "abc-1",
    1.7e9,
    RunPlan(chat("héllo 🎉", system="s")),
    (facts(STD), facts(SPEC)),
    (Check("model", "ok", "x"),),
    "hw",
    "t",
)
RECORD = RunRecord(
    HEADER,
    (
        Started(STD, 0.0),
        Started(SPEC, 0.001),
        Tokens(STD, 0.5, (1,), "a", pieces=("a",), logprobs=(TokenLogprob(1, "a", -0.5, (TopToken(1, "a", -0.5),)),)),
        CountersRead(SPEC, 0.6, SpecCounters(drafts=1.0, accepted_per_position=(1.0, 0.5))),
        Noted(SPEC, 0.6, "other", "n"),
        Failed(SPEC, 0.7, "interrupted", "gone"),
        Finished(STD, 0.9, "stop", stop_reason=7, prompt_token_ids=(1, 2)),
    ),
    Probe(3, ((1, "a", -0.5), (None, "b", -0.7)), 0.5, 2, 0.1),
)


def document() -> Any:
    return json.loads(json.dumps(to_json(RECORD)))


def test_round_trip(tmp_path: Path) -> None:
    """A kept run reads back equal, with unknown keys of a later version ignored."""
    stored.save(tmp_path / "deep" / "run.json", RECORD)
    assert stored.load(tmp_path / "deep" / "run.json") == RECORD
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["run.json"]

    later = document()
    later["new"] = later["header"]["new"] = later["events"][0]["new"] = {"x": [1]}
    assert stored.loads(json.dumps(later)) == RECORD


def test_newer_schema() -> None:
    """A document of a newer schema says so and what to do."""
    with pytest.raises(StoreError, match=r"newer specdemo \(schema 2, this one reads up to 1\).*update"):
        stored.loads(json.dumps(document() | {"schema": 2}))


def changed(path: str, value: Any) -> Any:
    tree = document()
    *parts, last = path.split(".")
    here = tree
    for part in parts:
        here = here[int(part)] if isinstance(here, list) else here[part]
    here[int(last) if isinstance(here, list) else last] = value
    return tree


@pytest.mark.parametrize(
    "path,value",
    [
        ("schema", None),
        ("schema", "1"),
        ("schema", True),
        ("schema", 0),
        ("header", None),
        ("header.id", "../../etc/passwd"),
        ("header.id", "x" * 65),
        ("header.started_at", 1e300),
        ("header.plan.order", ["standard", "standard"]),
        ("header.plan.order", ["left", "right"]),
        ("header.plan.prompt.messages", []),
        ("header.plan.prompt.text", "also"),
        ("header.plan.mode", "fast"),
        ("header.plan.prompt.sampling", 3),
        ("events", {}),
        ("events.0", []),
        ("events.0.type", "future"),
        ("events.0.side", "left"),
        ("events.0.at", -1),
        ("events.0.at", "soon"),
        ("events.0.at", 1e9),
        ("events.6", {"type": "tokens", "side": "standard", "at": 0.4, "text": "back"}),
        ("events.2.ids", [-1]),
        ("events.2.ids", [2**40]),
        ("events.2.ids", [1, 2]),
        ("events.2.text", "\ud800"),
        ("events.2.text", 5),
        ("events.4", {"type": "started", "side": "standard", "at": 0.6}),
        ("events.6", {"type": "tokens", "side": "speculative", "at": 0.9}),
        ("probe", {"candidates": "x"}),
    ],
)
def test_hostile_documents(path: str, value: Any) -> None:
    """Wrong types, impossible values and events out of order are one sentence each."""
    with pytest.raises(StoreError) as caught:
        stored.loads(json.dumps(changed(path, value)))

    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"null",
        b'{"schema": NaN}',
        b'{"schema": 1, "events": [], "x": 1e999}',
        b'{"schema": ' + b"9" * 5000 + b"}",
        b"[" * 100_000,
        b'{"schema":1,"events":[],"x":' + b"[" * 40 + b"]" * 40 + b"}",
    ],
)
def test_hostile_text(text: bytes) -> None:
    """What is no bounded strict JSON is refused without a traceback."""
    with pytest.raises(StoreError):
        stored.loads(text)


def test_hostile_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too large a file, too many events and too much text are refused."""
    crowd = document()
    crowd["events"] = [copy.copy(crowd["events"][0]) for _ in range(20)]
    monkeypatch.setattr(stored, "MAX_EVENTS", 19)
    with pytest.raises(StoreError, match="at most 19 events"):
        stored.loads(json.dumps(crowd))
    monkeypatch.setattr(stored, "MAX_SIZE", 1)
    with pytest.raises(StoreError, match="larger than any run"):
        stored.loads(json.dumps(document()))
    monkeypatch.setattr(stored, "MAX_BYTES", 100)
    with pytest.raises(StoreError, match="larger"):
        stored.loads(json.dumps(document()))
    (tmp_path / "big.json").write_text(json.dumps(document()))
    with pytest.raises(StoreError, match=r"big\.json is larger"):
        stored.load(tmp_path / "big.json")


def test_unreadable_places(tmp_path: Path) -> None:
    """A file that is not there, and a place that cannot be written, are one sentence each; nothing half is left."""
    with pytest.raises(StoreError, match="cannot be read"):
        stored.load(tmp_path / "nothing.json")
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot be kept"):
        stored.save(tmp_path / "file" / "run.json", RECORD)
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError, match="cannot be kept"):
        stored.save(tmp_path / "folder", RECORD)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]
