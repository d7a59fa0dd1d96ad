"""A run's JSON document: nothing is lost on the way there and back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specdemo.core.codec import event_from_json, event_to_json, from_json, to_json
from specdemo.core.engine import EngineFacts
from specdemo.core.events import (
    CountersRead,
    Event,
    Failed,
    Finished,
    Noted,
    RequestSpeculation,
    SpecCounters,
    Started,
    TokenLogprob,
    Tokens,
    TopToken,
)
from specdemo.core.prompt import Sampling, chat
from specdemo.core.results import Check
from specdemo.core.run import Probe, RunHeader, RunPlan, RunRecord
from tests.unit.core.streams import NAMES, A, B, trace_record

RECORDS = st.builds(
    RunRecord,
    header=st.builds(RunHeader, facts=st.tuples(st.none() | st.from_type(EngineFacts), st.none())),
    events=st.lists(
        st.one_of([st.from_type(kind) for kind in (Started, Tokens, CountersRead, Noted, Finished, Failed)]), max_size=4
    ).map(tuple),
    probe=st.none() | st.from_type(Probe),
)


def through(record: RunRecord) -> RunRecord:
    """The record after a round trip through JSON text."""
    return from_json(json.loads(json.dumps(to_json(record))))


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=60, deadline=None)
@given(RECORDS.filter(lambda record: "nan" not in repr(record)))
def test_any_record_survives(record: RunRecord) -> None:
    """Every field of every event, header and probe comes back equal."""
    assert through(record) == record


@pytest.mark.parametrize("name", NAMES)
def test_recorded_runs_survive(name: str) -> None:
    """The recorded streams come back equal, to the last digit of each time."""
    assert through(trace_record(name)) == trace_record(name)


def test_the_document_is_small_and_readable() -> None:
    """Fields at their default are left out; an event names its type and side."""
    assert event_to_json(Tokens(A, 0.5, (1, 2), "ab")) == {
        "type": "tokens", "side": "standard", "at": 0.5, "ids": [1, 2], "text": "ab",
    }  # fmt: skip
    assert event_to_json(Started(B, 0.0)) == {"type": "started", "side": "speculative", "at": 0.0}


def test_nested_values_survive() -> None:
    """Logprobs, counters, the engine's numbers, chat messages, checks and facts are all kept."""
    entry = TokenLogprob(1, "a", -0.5, (TopToken(None, "b", -1.0),))
    events: tuple[Event, ...] = (
        Tokens(A, 0.1, (1,), "a", pieces=("a",), logprobs=(entry,)),
        CountersRead(B, 0.2, SpecCounters(1, 2, 3, (0.5,))),
        Finished(B, 0.3, "stop", stop_reason=128001, speculation=RequestSpeculation(1, 4, 2, 4, (0, 0, 1))),
        Finished(A, 0.3, "stop", stop_reason="END", prompt_token_ids=(1, 2)),
    )
    plan = RunPlan(chat("hi", system="be brief", sampling=Sampling(stop=("END",))), order=(B, A))
    head = RunHeader("r", 1.5, plan, (EngineFacts(A, "m", settings=(("a", "b"),)), None), (Check("c", "ok", "d"),))
    record = RunRecord(head, events, Probe(1, ((1, "x", -0.5), (None, "y", -1.0))))
    assert through(record) == record


def test_whole_numbers_are_read_as_times() -> None:
    """JSON writers may turn 1.0 into 1; it is still a time."""
    event = event_from_json({"type": "started", "side": "standard", "at": 1})
    assert isinstance(event.at, float)


def test_unknown_keys_are_ignored() -> None:
    """A later version may add fields; what is known is read."""
    assert event_from_json({"type": "started", "side": "standard", "at": 1.0, "new": 1}) == Started(A, 1.0)


@pytest.mark.parametrize(
    ("document", "error"),
    [
        ({"schema": 2}, ValueError),
        ({"schema": 1, "header": {}, "events": []}, TypeError),
        ({"schema": 1}, KeyError),
        ({}, KeyError),
    ],
)
def test_other_documents_are_refused(document: dict[str, Any], error: type[Exception]) -> None:
    """Another schema or a missing part is an error, not a guess."""
    with pytest.raises(error):
        from_json(document)


@pytest.mark.parametrize(
    ("document", "error"),
    [
        ({"type": "nonsense"}, KeyError),
        ({"type": "started", "side": "left", "at": 0.0}, ValueError),
        ({"type": "failed", "side": "standard", "at": 0.0, "kind": "odd", "message": ""}, ValueError),
        ({"type": "failed", "side": "standard", "at": 0.0, "kind": "error", "message": 5}, TypeError),
        ({"type": "finished", "side": "standard", "at": 0.0, "finish_reason": "stop", "stop_reason": 1.5}, TypeError),
    ],
)
def test_wrong_values_are_refused(document: dict[str, Any], error: type[Exception]) -> None:
    """An event with an unknown type, side or kind, or a value of the wrong type, is refused."""
    with pytest.raises(error):
        event_from_json(document)


@pytest.mark.parametrize("root", ["/srv/models/small", "C:\\models\\small", "\\\\host\\models\\small\\"])
def test_no_path_of_a_server_is_kept(root: str) -> None:
    """A model folder is kept by its name; equal folders stay equal, others do not become so."""
    other = EngineFacts(B, "m", root="/elsewhere/small")
    same = EngineFacts(A, "m", root=root)
    found = to_json(RunRecord(RunHeader("r", 0.0, RunPlan(chat("x")), facts=(same, other)), ()))
    first, second = (one["root"] for one in found["header"]["facts"])
    assert first.endswith("/small")
    assert "srv" not in first
    assert "models" not in first
    assert first != second


def test_hub_ids_are_kept() -> None:
    """A hub id says what was run, and is nobody's path."""
    facts = EngineFacts(A, "m", root="owner/model")
    found = to_json(RunRecord(RunHeader("r", 0.0, RunPlan(chat("x")), facts=(facts, None)), ()))
    assert [one and one["root"] for one in found["header"]["facts"]] == ["owner/model", None]
