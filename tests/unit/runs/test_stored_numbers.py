"""Run files from strangers: whatever number stands anywhere, the file is refused or can be kept, assessed and replayed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from specdemo.core.assess import assess
from specdemo.core.codec import to_json
from specdemo.core.events import (
    SIDES,
    CountersRead,
    Finished,
    RequestSpeculation,
    ServerTimings,
    SpecCounters,
    Started,
    TokenLogprob,
    Tokens,
    TopToken,
    Usage,
)
from specdemo.core.frames import replay
from specdemo.core.prompt import Sampling, chat
from specdemo.core.run import Probe, RunHeader, RunPlan, RunRecord
from specdemo.errors import StoreError
from specdemo.runs import stored
from specdemo.store import body
from tests.fakes.engines import facts

STD, SPEC = SIDES
HOSTILE = (
    "nan", "inf", "-inf", "1", True, -1, -20, 0, -0.5, 1e16, 1e17, 1e308, 5e-324, 1e-300, 2**31, 2**53 + 1, 2**63, 10**308,
    30_000_000,
)  # fmt: skip


def counters(n: float) -> SpecCounters:
    return SpecCounters(n, 4 * n, n, (n, n), 5 * n, 1.0, 1.0, 1.0, 0.0, 0.0, 1.7e9)


def record(*, ids: bool = True) -> RunRecord:
    """A run that holds every number that a run can hold; without ``ids`` its tokens are only counted."""
    sampling = Sampling(64, 0.7, 0.9, 5, 0.1, -1.0, 0.5, 1.1, 2**63 - 1)
    events: list[Any] = []
    for side in SIDES:
        events += [Started(side, 0.0), CountersRead(side, 0.01, counters(1.0))]
        for n in range(3):
            top = (TopToken(n, "a", -0.5), TopToken(9, "b", -0.9))
            own = (n,) if ids else ()
            events.append(
                Tokens(side, 0.1 + 0.1 * n, own, "a", logprobs=(TokenLogprob(n, "a", -0.5, top),), reported_total=n + 1)
                if ids
                else Tokens(side, 0.1 + 0.1 * n, text="a", reported_total=n + 1)
            )
        speculation = RequestSpeculation(2, 6, 2, 4, (1, 0, 1), (0, 2), (3, 3)) if side is SPEC else None
        timings = ServerTimings(0.1, 0.2, 0.0, 0.1, 10.0)
        events.append(CountersRead(side, 0.35, counters(2.0)))
        events.append(Finished(side, 0.4, "length", 7, Usage(9, 3, 1), speculation, timings, (1, 2)))
    header = RunHeader("abc", 1.7e9, RunPlan(chat("x", sampling=sampling, logprobs=2)), (facts(STD), facts(SPEC)))
    return RunRecord(header, tuple(events), Probe(1, ((1, "a", -0.5), (2, "b", -0.7)), 0.5, 2, 0.1))


def numbers(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where numbers stand in a document."""
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from numbers(inner, (*path, key))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path


def changed(document: Any, path: tuple[Any, ...], value: Any) -> str:
    tree = json.loads(json.dumps(document))
    here = tree
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = value
    return json.dumps(tree)


def use(text: str) -> bool:
    """All that is done with an imported run; False if it was refused in one sentence."""
    try:
        found = stored.loads(text)
    except StoreError as refusal:
        said = str(refusal)
    else:
        body.whole(found)
        assess(found)
        json.dumps(list(replay(found)), allow_nan=False)
        return True
    assert len(said.splitlines()) == 1
    assert len(said) < 300
    return False


@pytest.mark.parametrize("ids", [True, False])
def test_no_number_breaks_what_is_done_with_a_run(ids: bool) -> None:
    """Each number in turn is NaN as a text, negative, tiny, huge: refused in one sentence, or of no harm."""
    document = to_json(record(ids=ids))
    assert use(json.dumps(document))
    for path in numbers(document):
        for value in HOSTILE:
            use(changed(document, path, value))


LAST = ("events", -1)


@pytest.mark.parametrize(
    "path,value,words",
    [
        (("header", "started_at"), "nan", "header.started_at"),
        (("header", "started_at"), -1e12, "no time"),
        (("header", "plan", "prompt", "sampling", "temperature"), "nan", "temperature"),
        (("header", "facts", 1, "k"), 2**63, "beyond all measure"),
        (("header", "facts", 1, "k"), 5000, "more than 1024"),
        (("probe", "candidates", 0, 2), "nan", "probe.candidates"),
        (("probe", "candidates", 0, 2), 3.0, "above 0"),
        (("events", 2, "logprobs", 0, "logprob"), "-inf", "logprob"),
        (("events", 2, "logprobs", 0, "logprob"), 0.5, "above 0"),
        (("events", 1, "counters", "drafts"), "inf", "counters.drafts"),
        (("events", 1, "counters", "drafts"), -1.0, "negative"),
        (("events", 2, "at"), 5e-324, "no time that can be"),
        (("events", 2, "reported_total"), 50_000_000, "larger than any run"),
        ((*LAST, "at"), 0, "goes back in time"),
        ((*LAST, "timings", "ttft_s"), "nan", "timings.ttft_s"),
        ((*LAST, "usage", "completion_tokens"), -5, "completion_tokens is not valid .negative"),
        ((*LAST, "usage", "completion_tokens"), 10**308, "beyond all measure"),
        ((*LAST, "usage", "completion_tokens"), 10**12, "more tokens than any run"),
        ((*LAST, "speculation", "accepted"), -20, "negative"),
        ((*LAST, "speculation", "accepted"), 7, "accepts more"),
        ((*LAST, "speculation", "max_draft"), 50_000_000, "more than 1024"),
        ((*LAST, "speculation", "drafted_per_step"), [2, 30_000_000], "more than 1024"),
        ((*LAST, "speculation", "accepted_per_step"), [1, 20_000_000], "more than 1024"),
        ((*LAST, "speculation", "accepted_per_step"), [1, 4], "accepts more"),
        ((*LAST, "speculation", "histogram"), [0] * 2000, "more than 1024"),
        ((*LAST, "at"), 1e9, "no run can have"),
    ],
)
def test_impossible_numbers_are_named(path: tuple[Any, ...], value: Any, words: str) -> None:
    """What no engine can have said is refused before a list is made of it, and the sentence names it."""
    with pytest.raises(StoreError, match=words):
        stored.loads(changed(to_json(record()), path, value))


def test_counts_that_go_up_and_down_make_no_endless_run() -> None:
    """Tokens that chunks only count add up to a bound, however their counts jump."""
    document = to_json(record(ids=False))
    jumping = [{"type": "tokens", "side": "standard", "at": 0.1, "reported_total": n % 2 * 3_000_000} for n in range(8)]
    document["events"][2:2] = jumping
    with pytest.raises(StoreError, match="larger than any run"):
        stored.loads(json.dumps(document))
