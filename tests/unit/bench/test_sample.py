"""One request's events → a sample."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from specdemo.bench.sample import Place, Sample, latest, measure
from specdemo.core.events import (
    CountersRead,
    Event,
    Failed,
    Finished,
    RequestSpeculation,
    Side,
    SpecCounters,
    Started,
    Tokens,
    Usage,
)

TRACES = Path(__file__).parents[2] / "traces"
PLACE = Place("k", "q", 0, "B", "measure", 1, "w", "p")


def recorded(name: str, side: Side) -> list[Event]:
    raw = json.loads((TRACES / f"{name}.json").read_text(encoding="utf-8"))
    events: list[Event] = [Started(side, 0.0)]
    events += [Tokens(side, at, tuple(ids), text) for at, ids, text in raw["events"]]
    told = (raw["final"].get("metrics") or {}).get("speculative_decoding")
    speculation = None
    if told:
        speculation = RequestSpeculation(
            told["num_spec_steps"], told["num_draft_tokens"], told["num_accepted_draft_tokens"], told["num_spec_tokens"],
            tuple(told["acceptance_histogram"]), tuple(told["per_step_accepted"]), tuple(told["per_step_drafted"]),
        )  # fmt: skip
    usage = raw["final"]["usage"]
    end = raw["events"][-1][0]
    return [
        *events,
        Finished(side, end, "length", None, Usage(usage["prompt_tokens"], usage["completion_tokens"]), speculation),
    ]


@pytest.mark.parametrize(
    "name, tau, speedup",
    [("chat", 1.11, 0.83), ("summ", 1.48, 1.08), ("code", 4.22, 2.41), ("list", 3.31, 2.52), ("zh", 3.53, 2.94)],
)
def test_recorded_streams_give_the_published_numbers(name: str, tau: float, speedup: float) -> None:
    """Tokens per step and decode speedup of the five recorded pairs come out as the method's table has them."""
    a = measure(PLACE, Side.STANDARD, recorded(f"std-{name}", Side.STANDARD), intended_at=0.0)
    b = measure(PLACE, Side.SPECULATIVE, recorded(f"ngram-{name}", Side.SPECULATIVE), intended_at=0.0)
    assert a.seconds_per_token is not None
    assert b.seconds_per_token is not None
    assert b.tokens_per_step == pytest.approx(tau, abs=0.006)
    assert a.seconds_per_token / b.seconds_per_token == pytest.approx(speedup, abs=0.006)
    assert a.output_tokens == b.output_tokens
    assert a.token_ids == b.token_ids


def test_failures_keep_their_reason_and_have_no_rate() -> None:
    """A failed stream is a failed sample; a stream without an end is interrupted."""
    refused = measure(
        PLACE,
        Side.SPECULATIVE,
        [Started(Side.SPECULATIVE, 1.0), Failed(Side.SPECULATIVE, 1.2, "rejected", "no")],
        intended_at=0.5,
    )
    assert (refused.state, refused.failure, refused.message, refused.ok) == ("failed", "rejected", "no", False)
    assert (refused.intended_at, refused.started_at, refused.ended_at) == (0.5, 1.0, 1.2)
    assert refused.seconds_per_token is None
    assert refused.whole_seconds_per_token is None
    cut = measure(
        PLACE,
        Side.SPECULATIVE,
        [Started(Side.SPECULATIVE, 1.0), Tokens(Side.SPECULATIVE, 1.1, (5,), "a")],
        intended_at=1.0,
    )
    assert (cut.failure, cut.output_tokens) == ("interrupted", 1)


@pytest.mark.parametrize("sizes", [(), (1,), (5,)])
def test_replies_of_no_token_one_token_or_one_chunk_have_no_decode_time(sizes: tuple[int, ...]) -> None:
    """Nothing is divided by zero, and nothing becomes infinite (D14)."""
    side = Side.SPECULATIVE
    events: list[Event] = [Started(side, 0.0)]
    events += [Tokens(side, 0.1, tuple(range(n)), "x" * n) for n in sizes]
    total = sum(sizes)
    found = measure(PLACE, side, [*events, Finished(side, 0.1, "stop", None, Usage(3, total))], intended_at=0.0)
    assert found.seconds_per_token is None
    assert found.tokens_per_step is None
    assert found.ok is (total > 0)


def test_bursts_are_counted_by_tokens(tmp_path: Path) -> None:
    """Chunks of four tokens at 100, 150 … 300 ms are 16 tokens in 0.2 s (D06)."""
    side = Side.SPECULATIVE
    events: list[Event] = [Started(side, 0.0)]
    events += [Tokens(side, 0.1 + 0.05 * i, (1, 2, 3, 4), "abcd") for i in range(5)]
    found = measure(PLACE, side, [*events, Finished(side, 0.3, "length", None, Usage(3, 20))], intended_at=0.0)
    assert found.decode_tokens == 16
    assert found.seconds_per_token == pytest.approx(0.2 / 16)


@pytest.mark.parametrize("level, drafted", [(1, 30), (4, None)])
def test_counters_stand_in_only_for_a_request_that_was_alone(level: int, drafted: int | None) -> None:
    """Without numbers of its own a request takes the engine's counters, marked, and never under load (A12)."""
    side = Side.SPECULATIVE
    before, after = (
        SpecCounters(drafts=d, draft_tokens=3 * d, accepted_tokens=2 * d, generation_tokens=g)
        for d, g in ((5.0, 0.0), (15.0, 31.0))
    )
    events: list[Event] = [Started(side, 0.0), CountersRead(side, 0.0, before)]
    events += [Tokens(side, 0.1 * (i + 1), (1,) if i == 0 else (1, 2, 3), "x") for i in range(11)]
    events += [Finished(side, 1.1, "length", None, Usage(3, 31)), CountersRead(side, 1.2, after)]
    found = measure(replace(PLACE, level=level), side, events, intended_at=0.0)
    assert found.drafted == drafted
    assert ("acceptance_from_engine_counters" in found.notes) is (level == 1)


def test_waiting_for_the_intended_start_counts() -> None:
    """A request that started late is charged from when it should have started."""
    one = Sample(PLACE, Side.STANDARD, "finished", 1.0, 4.0, 6.0, output_tokens=5)
    assert one.whole_seconds_per_token == pytest.approx(1.0)


def test_the_newest_of_a_key_is_kept() -> None:
    """A repeated request replaces the earlier one."""
    one, two = (Sample(PLACE, Side.STANDARD, "finished", 0.0, 0.0, end) for end in (1.0, 2.0))
    assert latest([one, two]) == (two,)
