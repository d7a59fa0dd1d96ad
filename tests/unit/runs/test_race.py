"""The use case: both sides independent, measured one at a time, probed at the split, closed whatever happens."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from specdemo.core.assess import assess
from specdemo.core.events import SIDES, Failed, Finished, Noted, Side, Started, Tokens
from specdemo.core.prompt import Prompt, Sampling, chat
from specdemo.core.run import RunPlan, RunRecord
from specdemo.errors import PromptError
from specdemo.runs.log import RunLog
from specdemo.runs.race import Surroundings, run
from tests.fakes.engines import FakeEngine, Ticks, facts, pair

STD, SPEC = SIDES
PLAN = RunPlan(chat("hello"), warmup=False)


async def go(plan: RunPlan, engines: dict[Side, FakeEngine], **around: object) -> RunRecord:
    record = await run(plan, engines, log=RunLog(), around=Surroundings(clock=engines[STD].clock, **around))  # type: ignore[arg-type]
    for engine in engines.values():
        assert engine.open_streams == 0
    return record


def ends(record: RunRecord) -> dict[Side, object]:
    return {event.side: event for event in record.events if isinstance(event, Finished | Failed)}


async def test_race_runs_both_at_once() -> None:
    """In a race the second request is sent before the first one ends, and equal outputs are identical."""
    engines = pair()
    record = await go(PLAN, engines)

    assert engines[STD].journal[:2] == ["standard opens", "speculative opens"]
    assert assess(record).verdict.cls == "identical"


async def test_slow_side_delays_nobody() -> None:
    """One side finishes while the other hangs in the middle of its stream."""
    engines = pair()
    engines[SPEC].hold = asyncio.Event()
    log = RunLog()
    task = asyncio.create_task(run(PLAN, engines, log=log))
    async for batch in log.follow():
        if any(isinstance(event, Finished) and event.side is STD for event in batch):
            break

    assert not task.done()
    engines[SPEC].hold.set()
    assert {STD, SPEC} == set(ends(await task))


async def test_measure_runs_one_at_a_time() -> None:
    """D10: measure sends one request at a time in the plan's order, each with a fresh cache salt."""
    engines = pair()
    await go(replace(PLAN, mode="measure", order=(SPEC, STD)), engines)

    assert engines[STD].journal == ["speculative opens", "speculative closes", "standard opens", "standard closes"]
    salts = engines[STD].salts + engines[SPEC].salts
    assert len(set(salts)) == 2
    assert all(salt and not set(salt) & set("@/\\\0") and len(salt) <= 128 for salt in salts)


async def test_warm_up_is_equal_excluded_and_recorded() -> None:
    """D19: both sides get the same warm-up, none of it is in the events, and a note tells of it."""
    engines = pair()
    record = await go(replace(PLAN, mode="measure", warmup=True), engines)

    assert engines[STD].prompts == engines[SPEC].prompts
    assert len(engines[STD].prompts) == 3
    assert sum(isinstance(event, Started) for event in record.events) == 2
    notes = [event for event in record.events if isinstance(event, Noted)]
    assert [(note.kind, note.side) for note in notes] == [("warmup", STD), ("warmup", SPEC)]


async def test_race_warms_an_engine_once() -> None:
    """Races warm a fresh engine process once; a restarted one is cold again."""
    engines = pair()
    around = Surroundings(clock=engines[STD].clock)
    plan = replace(PLAN, warmup=True)
    for expected in (3, 4):
        await run(plan, engines, log=RunLog(), around=around)
        assert expected == len(engines[STD].prompts) == len(engines[SPEC].prompts)
    engines[SPEC].epoch = 2.0
    await run(plan, engines, log=RunLog(), around=around)

    assert (len(engines[STD].prompts), len(engines[SPEC].prompts)) == (5, 7)


async def test_warm_up_has_the_runs_kind() -> None:
    """The warm-up asks for what the run asks for (plain text, log-probabilities), but never with its prompt."""
    engines = pair()
    prompt = Prompt(text="once upon", sampling=Sampling(max_tokens=4, temperature=0.7, seed=5), logprobs=2)
    await go(RunPlan(prompt, mode="measure"), engines)
    warm = engines[STD].prompts[0]

    assert (warm.is_chat, warm.logprobs, warm.sampling.max_tokens, warm.sampling.temperature) == (False, 2, 4, 0.7)
    assert warm.text != "once upon"


async def test_failed_side_keeps_its_text() -> None:
    """A23: a side that dies keeps what it sent, the other one completes, and there is no verdict."""
    engines = pair()
    engines[SPEC].failure = ("interrupted", "EngineCore encountered an issue")
    found = assess(await go(PLAN, engines))

    assert (
        found.standard.state,
        found.speculative.state,
        found.speculative.text,
        found.verdict.cls,
    ) == ("finished", "failed", "<10><11><12>", "not_comparable")


async def test_fault_of_our_own() -> None:
    """A client that raises, or stops without an end, ends its side alone and says so."""
    engines = pair()
    engines[STD].broken = RuntimeError("a bug")
    engines[SPEC].tail = [Noted(SPEC, 0.0, "other", "no end follows")]
    found = ends(await go(PLAN, engines))

    assert [found[side].kind for side in SIDES] == ["error", "interrupted"]  # type: ignore[attr-defined]


async def test_events_after_the_end_are_ignored() -> None:
    """A client that goes on after its end cannot make a second end."""
    engines = pair()
    engines[STD].tail = [Finished(STD, 0.0, "stop"), Failed(STD, 0.0, "error", "late"), Tokens(STD, 0.0, text="late")]
    record = await go(PLAN, engines)

    assert "late" not in assess(record).standard.text
    assert isinstance(ends(record)[STD], Finished)


async def test_stop_closes_both_streams() -> None:
    """A stop closes both streams, keeps the partial texts, and marks the open sides as cancelled."""
    engines = pair(hold=asyncio.Event(), hold_at=1)
    log = RunLog()
    task = asyncio.create_task(run(PLAN, engines, log=log))
    await engines[STD].started.wait()
    await engines[SPEC].started.wait()
    while len(log) < 4:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    found = assess(log.record())

    assert log.closed
    assert (engines[STD].open_streams, engines[SPEC].open_streams) == (0, 0)
    assert (
        found.standard.state,
        found.speculative.state,
        found.standard.text,
        found.speculative.text,
    ) == ("cancelled", "cancelled", "<10>", "<10>")


async def test_stop_before_the_second_side() -> None:
    """In measure mode a stop during the first side marks the second one as cancelled too."""
    engines = pair(hold=asyncio.Event())
    log = RunLog()
    task = asyncio.create_task(run(replace(PLAN, mode="measure"), engines, log=log))
    await engines[STD].started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert [event.kind for event in log.since(0) if isinstance(event, Failed)] == ["cancelled", "cancelled"]
    assert engines[SPEC].prompts == []


async def test_time_limit() -> None:
    """A run over its time limit is ended with what it has; the sentence names the limit."""
    engines = pair(hold=asyncio.Event())
    found = ends(await go(PLAN, engines, limit_s=0.05))

    assert [found[side].kind for side in SIDES] == ["stalled", "stalled"]  # type: ignore[attr-defined]
    assert "longer than 0.05 s" in found[STD].message  # type: ignore[attr-defined]


async def test_log_bound_ends_a_side() -> None:
    """A side that floods the log is cut there as a protocol error."""
    engines = pair()
    engines[STD].bursts = [(token,) for token in range(50)]
    log = RunLog(max_events=20)
    await run(replace(PLAN, mode="measure"), engines, log=log, around=Surroundings(clock=Ticks()))

    assert ends(log.record())[STD].kind == "protocol"  # type: ignore[attr-defined]


async def test_control_uses_one_engine_alone() -> None:
    """A03: a control sends both requests to the standard engine, one after the other, even when a race was asked for."""
    engines = pair()
    record = await go(replace(PLAN, control=True), engines)

    assert (engines[SPEC].prompts, engines[STD].most_open, record.header.plan.mode) == ([], 1, "measure")
    assert {STD, SPEC} == {event.side for event in record.events}
    assert {
        side: sum(len(e.ids) for e in record.events if isinstance(e, Tokens) and e.side is side) for side in SIDES
    } == {STD: 3, SPEC: 3}


async def test_prompt_that_does_not_fit() -> None:
    """A prompt longer than an engine takes is refused before anything is sent, with the numbers."""
    engines = pair(prompt_ids=tuple(range(100)), known=facts(STD, max_model_len=100))
    with pytest.raises(PromptError, match=r"100 tokens .* at most 100 .* by at least 1"):
        await go(PLAN, engines)

    assert engines[STD].prompts == []


async def test_output_that_will_be_cut() -> None:
    """When prompt and output together pass the limit, a note says how many tokens are left."""
    engines = pair(prompt_ids=tuple(range(90)), known=facts(STD, max_model_len=100))
    record = await go(PLAN, engines)

    assert "10 tokens instead of 256" in next(e.message for e in record.events if isinstance(e, Noted))


async def test_refusal() -> None:
    """What would harm an engine is refused with the given reason, judged on what the engines say of themselves."""
    engines = pair()

    def refuse(prompt: Prompt, both: object) -> str | None:
        assert (engines[STD].known, engines[SPEC].known) == both
        return None if prompt.greedy else "It would crash."

    await go(PLAN, engines, refuse=refuse)
    with pytest.raises(PromptError, match="It would crash"):
        await go(RunPlan(chat("x", sampling=Sampling(temperature=1.0)), warmup=False), engines, refuse=refuse)
    assert len(engines[SPEC].prompts) == 1


@pytest.mark.parametrize("text", ["", "  \n\t ", "half \ud800"])
async def test_impossible_prompt(text: str) -> None:
    """Empty prompts and lone surrogates never reach an engine."""
    engines = pair()
    with pytest.raises(PromptError):
        await go(RunPlan(chat(text)), engines)

    assert engines[STD].prompts == []


async def test_silent_engines_are_told_by_their_streams() -> None:
    """An engine that does not even tell its facts does not stop the run: its stream reports."""
    engines = pair()
    engines[SPEC].known = None
    engines[SPEC].bursts = ()
    engines[SPEC].failure = ("unavailable", "Nobody answers")
    record = await go(PLAN, engines)

    assert (facts(STD), None) == record.header.facts
    assert assess(record).standard.state == "finished"


@pytest.mark.parametrize(
    ("said", "offered"),
    [("Cannot use chat template functions because tokenizer.chat_template is not set", True), ("no chat-template", True),
     ("`chat_template_kwargs` is not supported", False)],
)  # fmt: skip
async def test_words_for_a_missing_chat_template(said: str, offered: bool) -> None:
    """A29: vLLM and its tokenizers name the template in several ways; refused arguments for one are another matter."""
    engines = pair()
    engines[STD].bursts, engines[STD].failure = (), ("rejected", said)
    record = await go(PLAN, engines)
    assert any(isinstance(event, Noted) and event.kind == "no_chat_template" for event in record.events) is offered


async def test_no_chat_template() -> None:
    """A29: a model without chat template is told in plain words, with the offer of plain completion for both."""
    engines = pair()
    engines[STD].bursts = ()
    engines[STD].failure = ("rejected", "default chat template is no longer allowed: the model has no chat template")
    record = await go(PLAN, engines)
    notes = [event for event in record.events if isinstance(event, Noted)]

    assert [(note.kind, note.side) for note in notes] == [("no_chat_template", STD)]
    assert "--plain" in notes[0].message
    assert "both engines" in notes[0].message


async def test_wall_clock_is_a_label_only() -> None:
    """D18: a wall clock that jumps back changes the label and no duration."""
    walls = iter([1_000_000.0])
    engines = pair()
    record = await go(PLAN, engines, wall=lambda: next(walls))

    assert record.header.started_at == 1_000_000.0
    assert all(event.at >= 0 for event in record.events)
    assert [event.at for event in record.events] == sorted(event.at for event in record.events)
