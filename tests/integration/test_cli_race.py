"""``specdemo race`` against scripted engines, as a user runs it."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from specdemo.runs import stored
from tests.fakes.command import engines, specdemo, started
from tests.fakes.vllm import serving

FAST = ("--no-warmup", "--json")


async def race(folder: Path, standard: dict[str, Any], speculative: dict[str, Any], *words: str) -> Any:
    async with serving(standard) as left, serving({"k": 4, **speculative}) as right:
        return await specdemo(folder, "race", "hello", *engines(left, right), *FAST, *words)


async def test_identical_pair(tmp_path: Path) -> None:
    """Two recorded streams give the contract's document: equal ids, exact acceptance, a speedup, exit code 0."""
    result = await race(
        tmp_path, {"reply": {"trace": "std-list", "speed": 0}}, {"reply": {"trace": "ngram-list", "speed": 0}}
    )
    found = result.document
    spec = found["sides"]["speculative"]

    assert result.code == 0, result.err
    assert (found["schema"], found["mode"], found["greedy"], found["verdict"]["class"]) == (
        1,
        "measure",
        True,
        "identical",
    )
    assert found["sides"]["standard"]["token_ids"] == spec["token_ids"]
    assert spec["metrics"]["acceptance"]["source"] == "request"
    recorded = json.loads((Path(__file__).parents[1] / "traces" / "ngram-list.json").read_text())["final"]["metrics"]
    told = recorded["speculative_decoding"]
    assert spec["metrics"]["acceptance"]["accepted"] == told["num_accepted_draft_tokens"]
    assert spec["metrics"]["acceptance"]["drafted"] == told["num_draft_tokens"]
    assert spec["metrics"]["acceptance"]["rate"] == pytest.approx(told["draft_acceptance_rate"])


async def test_every_contract_field(tmp_path: Path) -> None:
    """The document has every name that others rely on."""
    found = (await race(tmp_path, {"reply": {"tokens": 5}}, {"reply": {"tokens": 5, "bursts": [1, 2]}})).document

    assert set(found) >= {"schema", "mode", "greedy", "sides", "speedup", "verdict", "comparability", "notes"}
    assert set(found["verdict"]) >= {
        "class", "position", "standard_token", "speculative_token", "gap_nats", "tolerance_nats", "reason",
    }  # fmt: skip
    assert set(found["speedup"]) >= {"decode", "e2e", "ttft"}
    for side in found["sides"].values():
        assert set(side) >= {"state", "text", "reasoning", "token_ids", "finish_reason", "error", "metrics"}
        assert set(side["metrics"]) >= {
            "prompt_tokens", "output_tokens", "ttft_s", "tpot_s", "e2el_s", "decode_tokens_per_s", "tokens_per_s",
            "steps", "tokens_per_step", "acceptance",
        }  # fmt: skip
        assert set(side["metrics"]["acceptance"]) >= {
            "source", "rate", "mean_length", "drafted", "accepted", "drafting_steps", "per_position",
        }  # fmt: skip
    assert all(set(line) == {"check", "level", "detail"} for line in found["comparability"])


async def test_real_difference(tmp_path: Path) -> None:
    """Different tokens with a large gap are a real difference at the right position, exit code 1."""
    result = await race(
        tmp_path,
        {"reply": {"steps": [{"ids": [10], "text": "a"}, {"ids": [11], "text": "b"}, {"ids": [12], "text": "c"}]},
         "candidates": [[11, -0.1], [99, -4.0]]},
        {"reply": {"steps": [{"ids": [10], "text": "a"}, {"ids": [99, 98], "text": "xy", "accepted": 1, "drafted": 4}]}},
    )  # fmt: skip
    verdict = result.document["verdict"]

    assert (result.code, verdict["class"], verdict["position"]) == (1, "different", 1)
    assert verdict["gap_nats"] == pytest.approx(3.9)
    assert (verdict["standard_token"]["id"], verdict["speculative_token"]["id"]) == (11, 99)


async def test_unsupported_field(tmp_path: Path) -> None:
    """A06: a field that only the speculative engine rejects is sent to both; its words are shown, the other completes."""
    async with serving() as left, serving({"k": 4, "refuse": {"min_p": "min_p is not supported yet"}}) as right:
        result = await specdemo(
            tmp_path, "race", "hello", *engines(left, right), *FAST, "--min-p", "0.05", "--temperature", "0.5"
        )
    found = result.document

    assert (result.code, found["sides"]["standard"]["state"]) == (3, "finished")
    assert found["sides"]["speculative"]["state"] == "failed"
    assert "min_p is not supported yet" in found["sides"]["speculative"]["error"]["message"]
    assert found["verdict"]["class"] == "not_comparable"
    assert left.requests[-1]["min_p"] == right.requests[-1]["min_p"] == 0.05


async def test_engine_dies_mid_stream(tmp_path: Path) -> None:
    """A23: the dying side keeps its text and its reason, the other completes, no verdict, exit code 3."""
    result = await race(
        tmp_path, {"reply": {"tokens": 12}}, {"reply": {"tokens": 12, "fault": {"kind": "die", "after": 5}}}
    )
    found = result.document

    assert (result.code, found["verdict"]["class"]) == (3, "not_comparable")
    assert found["sides"]["standard"]["metrics"]["output_tokens"] == 12
    assert len(found["sides"]["speculative"]["token_ids"]) == 5
    assert "EngineCore" in found["sides"]["speculative"]["error"]["message"]


async def test_no_chat_template(tmp_path: Path) -> None:
    """A29: the reason is told in plain words, plain completion is offered for both, and --plain does it for both."""
    refused = {"status": 400, "body": {"error": {"message": "default chat template is no longer allowed", "code": 400}}}
    async with serving({"reply": refused}) as left, serving({"k": 4}) as right:
        result = await specdemo(tmp_path, "race", "hello", *engines(left, right), *FAST)
        note = next(note for note in result.document["notes"] if note["kind"] == "no_chat_template")
        left.use({})
        plain = await specdemo(tmp_path, "race", "hello", *engines(left, right), *FAST, "--plain")

    assert "plain" in note["message"]
    assert plain.code == 0
    assert left.requests[-1]["prompt"] == right.requests[-1]["prompt"] == "hello"


async def test_seeds_make_no_claim(tmp_path: Path) -> None:
    """A31: at a temperature above 0 there is no token-identity verdict, whatever the seed."""
    result = await race(tmp_path, {}, {}, "--temperature", "0.8", "--seed", "42")

    assert (result.code, result.document["greedy"], result.document["verdict"]["class"]) == (0, False, "not_comparable")


async def test_every_sampling_field_is_sent(tmp_path: Path) -> None:
    """A04: both requests carry the full, equal set of sampling fields, and the document lists what was sent."""
    async with serving() as left, serving({"k": 4}) as right:
        result = await specdemo(tmp_path, "race", "hello", *engines(left, right), *FAST)
    ours, theirs = (
        {k: v for k, v in body.items() if k != "cache_salt"} for body in (left.requests[-1], right.requests[-1])
    )

    assert ours == theirs
    for name in (
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "presence_penalty",
        "frequency_penalty",
        "repetition_penalty",
    ):
        assert name in ours
    assert any("repetition_penalty 1" in line["detail"] for line in result.document["comparability"])


async def test_measure_defeats_the_cache(tmp_path: Path) -> None:
    """D10: a server that is faster on repeats is not: each request has its own salt, and the sides take turns."""
    async with serving({"repeat_speedup": 3.0}) as left, serving({"k": 4, "repeat_speedup": 3.0}) as right:
        await specdemo(tmp_path, "race", "hello", *engines(left, right), "--json", "--first", "speculative")
    salts = [body["cache_salt"] for body in left.requests + right.requests]

    assert len(set(salts)) == len(salts) == 6


async def test_cold_first_request(tmp_path: Path) -> None:
    """D19: a first request that is slow on one side is taken by the warm-up, which both sides get alike."""
    async with serving({}) as left, serving({"k": 4, "cold_s": 0.5}) as right:
        result = await specdemo(tmp_path, "race", "hello", *engines(left, right), "--json")
    found = result.document

    assert [body["max_tokens"] for body in right.requests] == [16, 16, 256]
    assert [body["max_tokens"] for body in left.requests] == [16, 16, 256]
    assert [note["side"] for note in found["notes"] if note["kind"] == "warmup"] == ["standard", "speculative"]


async def test_control(tmp_path: Path) -> None:
    """A03: --control sends both requests to the standard engine, one at a time, and none to the other."""
    async with serving({"flip_when_busy": True}) as left, serving({"k": 4}) as right:
        result = await specdemo(tmp_path, "race", "hello", *engines(left, right), *FAST, "--control", "--mode", "race")

    assert (len(left.requests), right.requests) == (2, [])
    assert result.document["sides"]["standard"]["token_ids"] == result.document["sides"]["speculative"]["token_ids"]
    assert result.code == 0


async def test_recheck(tmp_path: Path) -> None:
    """--recheck scores the speculative text with the standard engine and says what share is its own choice."""
    result = await race(
        tmp_path,
        {"reply": {"tokens": 10}, "score_gaps": {"11": 0.5}},
        {"reply": {"tokens": 10, "bursts": [1, 3]}},
        "--recheck",
    )

    assert any("90.0%" in remark for remark in result.document["verdict"]["remarks"]), result.document["verdict"]


async def test_keys_never_show(tmp_path: Path) -> None:
    """C21: keys given as flags are in no output, no stored run and no log, even when they are refused."""
    kept = tmp_path / "run.json"
    async with serving({"api_key": "right"}) as left, serving({"k": 4, "api_key": "right"}) as right:
        result = await specdemo(
            tmp_path, "race", "hello", *engines(left, right), *FAST, "--standard-key", "sk-test-123",
            "--speculative-key", "right", "--save", str(kept), "--log-level", "debug",
        )  # fmt: skip
    shown = await specdemo(tmp_path, "config", "--set", "standard.api_key=sk-test-123", "--json")

    assert result.code == 3
    assert result.document["sides"]["standard"]["error"]["kind"] == "rejected"
    for text in (result.out, result.err, kept.read_text(), shown.out, shown.err):
        assert "sk-test-123" not in text


async def test_table_and_lines(tmp_path: Path) -> None:
    """Without a terminal: plain lines on stderr; texts, table with formulas and verdict on stdout."""
    async with (
        serving({"reply": {"tokens": 6, "step_s": 0.01}}) as left,
        serving({"k": 4, "reply": {"tokens": 6, "step_s": 0.01, "bursts": [1, 2]}}) as right,
    ):
        result = await specdemo(tmp_path, "race", "hello", *engines(left, right))

    assert result.code == 0
    assert "standard     first token" in result.err
    for words in ("accepted / drafted tokens", "(E2EL − TTFT) / (output tokens − 1)", "identical", "Warm-up"):
        assert words in result.out
    assert "\x1b" not in result.out + result.err


async def test_hostile_text_cannot_steer_a_terminal(tmp_path: Path) -> None:
    """Escape sequences that an engine sends are shown as signs, not obeyed."""
    evil = {"reply": {"steps": [{"ids": [1], "text": "ok\x1b]0;owned\x07\x1b[2J"}]}}
    async with serving(evil) as left, serving({"k": 4, **evil}) as right:
        result = await specdemo(tmp_path, "race", "hello", *engines(left, right), "--no-warmup")

    assert "ok" in result.out
    assert "\x1b" not in result.out


async def test_save_and_read_back(tmp_path: Path) -> None:
    """--save keeps a run that reads back with the same verdict."""
    kept = tmp_path / "runs" / "one.json"
    await race(tmp_path, {}, {}, "--save", str(kept))
    record = stored.load(kept)

    assert record.header.plan.prompt.messages[0].content == "hello"
    assert {event.side.value for event in record.events} == {"standard", "speculative"}


@pytest.mark.parametrize(
    "words,sentence",
    [
        (["race"], "exactly one"),
        (["race", "x", "--file", "y"], "exactly one"),
        (["race", ""], "The prompt is empty"),
        (["race", "x", "--top-p", "0"], "top_p"),
        (["race", "x", "--standard-url", "http://127.0.0.1:1"], "speculative one has no address"),
        (["race", "x", "--standard-url", "nonsense://", "--speculative-url", "http://127.0.0.1:1"], "nonsense"),
        (["race", "x", "--engines", "replay"], "recorded runs only"),
        (["race", "x", "--set", "engine.modle=y"], "Did you mean engine.model?"),
        (["race", "x", "--maxtokens", "3"], "--max-tokens"),
        (["rcae"], "race"),
    ],
)
async def test_wrong_use(tmp_path: Path, words: list[str], sentence: str) -> None:
    """Wrong use is a sentence on stderr, nothing or an error document on stdout, and exit code 2 (no engine: 3)."""
    result = await specdemo(tmp_path, *words)

    assert sentence in result.err
    assert result.code == (3 if "replay" in words else 2)
    assert result.out == ""


async def test_error_document(tmp_path: Path) -> None:
    """With --json even a refused prompt leaves one JSON document on stdout."""
    result = await specdemo(tmp_path, "race", " ", "--json")

    assert result.document["error"]["kind"] == "prompt"


async def test_prompt_that_does_not_fit(tmp_path: Path) -> None:
    """A prompt above the engine's length is refused with the numbers, exit code 2, and nothing is generated."""
    async with serving({"max_model_len": 8}) as left, serving({"k": 4, "max_model_len": 8}) as right:
        result = await specdemo(
            tmp_path,
            "race",
            "-",
            *engines(left, right),
            *FAST,
            stdin=b"one two three four five six seven eight nine ten",
        )

    assert result.code == 2
    assert "at most 8" in result.document["error"]["message"]
    assert left.requests == right.requests == []


async def test_nobody_answers(tmp_path: Path) -> None:
    """Two addresses where nobody listens: both sides say so, exit code 3, still one document."""
    async with serving() as left, serving() as right:
        flags = engines(left, right)
    result = await specdemo(tmp_path, "race", "hello", *flags, *FAST)

    assert result.code == 3
    assert [side["error"]["kind"] for side in result.document["sides"].values()] == ["unavailable", "unavailable"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_ctrl_c_keeps_what_arrived(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C closes both streams, prints what has arrived, and exits with 130."""
    slow = {"reply": {"tokens": 500, "step_s": 0.05}}
    async with serving(slow) as left, serving({"k": 4, **slow}) as right:
        async with started(tmp_path, "race", "hello", *engines(left, right), *FAST, "--mode", "race") as child:
            while left.idle.is_set() or right.idle.is_set():
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.3)
            child.send_signal(number)
            out, err = await child.communicate()
        await asyncio.gather(left.idle.wait(), right.idle.wait())
    found = json.loads(out)

    assert child.returncode == 130, err.decode()
    assert [side["state"] for side in found["sides"].values()] == ["cancelled", "cancelled"]
    assert all(side["token_ids"] for side in found["sides"].values())
