"""The JSON document that programs read: exact names, strict JSON, null for what does not apply."""

from __future__ import annotations

import json
from typing import Any

import pytest

from specdemo.core.assess import assess
from specdemo.core.contract import contract
from specdemo.core.events import Noted, Started
from specdemo.core.results import Speedup
from specdemo.core.run import Probe, RunRecord
from tests.unit.core.streams import A, B, cut, detailed, ids_stream, record, trace_record

SIDE = {"state", "text", "reasoning", "token_ids", "finish_reason", "error", "metrics"}
METRICS = {
    "prompt_tokens", "output_tokens", "ttft_s", "tpot_s", "e2el_s", "decode_tokens_per_s", "tokens_per_s", "steps",
    "tokens_per_step", "acceptance",
}  # fmt: skip
ACCEPTANCE = {"source", "rate", "mean_length", "drafted", "accepted", "drafting_steps", "per_position"}
VERDICT = {
    "class", "position", "standard_token", "speculative_token", "gap_nats", "tolerance_nats", "reason",
}  # fmt: skip


def document(run: RunRecord) -> dict[str, Any]:
    """The contract document after a round trip through strict JSON."""
    text = json.dumps(contract(run, assess(run)), allow_nan=False)
    parsed: dict[str, Any] = json.loads(text)
    return parsed


def test_names_of_the_contract() -> None:
    """Every promised name is there, at every level."""
    found = document(trace_record("summ"))
    assert found["schema"] == 1
    assert {"schema", "mode", "greedy", "sides", "speedup", "verdict", "comparability", "notes"} <= found.keys()
    for side in ("standard", "speculative"):
        assert found["sides"][side].keys() >= SIDE
        assert found["sides"][side]["metrics"].keys() >= METRICS
        assert found["sides"][side]["metrics"]["acceptance"].keys() >= ACCEPTANCE
    assert found["speedup"].keys() >= {"decode", "e2e", "ttft"}
    assert found["verdict"].keys() >= VERDICT
    assert (found["mode"], found["greedy"], found["badge"]) == ("measure", True, "measured")


def test_values_of_a_recorded_run() -> None:
    """A recorded run's document holds its known numbers."""
    found = document(trace_record("summ"))
    taken = found["sides"]["speculative"]["metrics"]["acceptance"]
    assert (taken["source"], taken["drafted"], taken["accepted"], taken["drafting_steps"]) == ("request", 32, 17, 8)
    assert taken["rate"] == pytest.approx(17 / 32)
    assert found["verdict"]["class"] == "identical"
    assert len(found["sides"]["standard"]["token_ids"]) == 47


def test_tokens_at_a_split() -> None:
    """T = id, text, logprob on both sides, and positions count from 0."""
    run = record(
        ids_stream(A, [1], [2]), ids_stream(B, [1, 3]), probe=Probe(1, ((2, "two", -0.25), (3, "three", -1.75)))
    )
    verdict = document(run)["verdict"]
    assert (verdict["class"], verdict["position"], verdict["gap_nats"]) == ("different", 1, 1.5)
    assert verdict["standard_token"] == {"id": 2, "text": "<2>", "logprob": -0.25}
    assert verdict["speculative_token"] == {"id": 3, "text": "three", "logprob": -1.75}


def test_absent_is_null() -> None:
    """A07, D14: an empty run has null and no 0, NaN or missing key."""
    found = document(record((Started(A, 0.0),)))
    side = found["sides"]["speculative"]
    assert (side["state"], side["metrics"]["ttft_s"], side["metrics"]["acceptance"]["rate"]) == ("waiting", None, None)
    assert (found["verdict"]["standard_token"], found["speedup"]["decode"]) == (None, None)


def test_failed_side_has_an_error_object() -> None:
    """A failed side names the kind and the sentence; a server without ids has null token_ids."""
    found = document(record(cut(ids_stream(B, [1]))))["sides"]["speculative"]
    assert found["error"] == {"kind": "interrupted", "message": "The connection closed."}
    assert document(trace_record("summ"))["sides"]["standard"]["error"] is None
    texts = record((*ids_stream(A, [])[:-1], *ids_stream(B, [1], spec=detailed([]))))
    assert document(texts)["sides"]["standard"]["token_ids"] == []


def test_notes_name_their_side() -> None:
    """A note of one side says which; one of the pair says null."""
    run = record((Started(B, 0.0), Noted(B, 0.1, "retried", "Once.")))
    assert {"kind": "retried", "message": "Once.", "side": "speculative"} in document(run)["notes"]


def test_infinite_numbers_become_null() -> None:
    """Whatever happens, the document stays strict JSON."""
    run = record(ids_stream(A, [1]))
    found = assess(run)
    object.__setattr__(found, "speedup", Speedup(decode=float("inf"), e2e=float("nan")))
    text = json.dumps(contract(run, found), allow_nan=False)
    assert json.loads(text)["speedup"]["decode"] is None


def test_keys_of_the_sentences_stand_at_their_places() -> None:
    """``say`` tells key and values of each sentence in the document, in the same order, and leaves the items as they were."""
    found = document(trace_record("summ"))
    said = found["say"]
    assert said["verdict"]["reason"][0].startswith(("equal_", "limit_", "split", "empty_test_"))
    assert said["verdict"]["reason"][1].get("count", said["verdict"]["reason"][1].get("position")) is not None
    assert len(said["comparability"]) == len(found["comparability"])
    assert len(said["notes"]) == len(found["notes"])
    assert all(line.keys() == {"check", "level", "detail"} for line in found["comparability"])
    assert said["sides"] == {"standard": None, "speculative": None}
    assert said["speedup"][0].startswith("basis_")
