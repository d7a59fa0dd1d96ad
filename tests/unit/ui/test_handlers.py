"""What a click does: plans from forms, runs that live as long as their visitor, one line that says how it is."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import gradio as gr
import pytest

from specdemo.core.engine import EngineState
from specdemo.core.events import Side
from specdemo.errors import PromptError, UsageError
from specdemo.ui.asked import event_data
from specdemo.ui.form import BEST_TOKENS, Form
from specdemo.ui.handlers import Desk
from specdemo.ui.quota import Allowance, Quota
from tests.unit.ui.pair import WORDS, Control, world

WHOLE = "".join(text for _, text in WORDS)


def test_form_becomes_a_plan() -> None:
    """Every field of the form reaches the engines' request."""
    plan = Form(
        "hi", "be brief", "measure", 99, 0.5, 0.9, 5, 0.1, 42, 0.2, 0.3, 1.1, True, False, True
    ).plan()  # fmt: skip
    sampling = plan.prompt.sampling
    assert plan.mode == "measure"
    assert [(m.role, m.content) for m in plan.prompt.messages] == [("system", "be brief"), ("user", "hi")]
    assert (sampling.max_tokens, sampling.temperature, sampling.top_p, sampling.top_k) == (99, 0.5, 0.9, 5)
    assert (sampling.min_p, sampling.seed, sampling.ignore_eos) == (0.1, 42, True)
    assert (sampling.presence_penalty, sampling.frequency_penalty, sampling.repetition_penalty) == (0.2, 0.3, 1.1)
    assert plan.prompt.logprobs == BEST_TOKENS


def test_emptied_fields_fall_back() -> None:
    """A number field that a visitor emptied counts as its default, not as a fault."""
    plan = Form("hi", max_tokens=None, temperature=None, top_p=None, seed=None).plan()
    assert plan.prompt.greedy
    assert plan.prompt.sampling.max_tokens == 256
    assert plan.prompt.sampling.seed is None


def test_plain_completion_has_no_turns() -> None:
    """A base model without chat template (A29) gets the text as it stands."""
    plan = Form("once upon", "ignored", plain=True).plan()
    assert plan.prompt.text == "once upon"
    assert not plan.prompt.messages


@pytest.mark.parametrize("text", ["", "   \n\t", "\u3000\u00a0"])
def test_empty_prompt_is_refused(text: str) -> None:
    """Nothing but white space is never sent."""
    with pytest.raises(PromptError, match="empty"):
        Form(text).plan()


@pytest.mark.parametrize(
    "form",
    [
        Form("a", max_tokens=float("nan")), Form("a", max_tokens=1.5), Form("a", temperature="hot"), Form("a", mode="both"),
        Form("a", temperature=10**400), Form("a", seed=10**400), Form("a", top_k=True),
    ],
)  # fmt: skip
def test_wrong_values_are_refused(form: Form) -> None:
    """What raw API calls may send instead of numbers ends in a sentence, not in a traceback."""
    with pytest.raises((PromptError, UsageError)):
        form.plan()


@pytest.mark.parametrize("seed", [2**53 + 1, 2**63 - 1, -(2**63)])
def test_a_large_seed_is_sent_as_it_is(seed: int) -> None:
    """Seeds have 64 bits, more than a float holds: another seed than the one asked for would give another text."""
    assert Form("hi", seed=seed).plan().prompt.sampling.seed == seed


@pytest.mark.parametrize(
    ("keep", "kept"), [(True, True), (None, True), (1, True), (False, False), (0, False), ("no", False), ([], False)]
)
async def test_a_run_is_kept_when_that_is_plainly_wanted(keep: Any, kept: bool) -> None:
    """Whatever a program sends for no is no."""
    place = world()
    live = Desk(place.services).begin(Form("go", keep=keep))
    assert live.keep is kept
    await place.services.registry.aclose()


async def _all(updates: Any) -> list[Any]:
    return [update async for update in updates]


async def test_run_shows_itself_and_its_end() -> None:
    """The first update names the run for the arena; the last offers its link and a measurement of the same prompt."""
    place = world(pause=0.001)
    updates = await _all(Desk(place.services).run(Form("go"), "en"))
    first, last = updates[0], updates[-1]
    run_id = json.loads(first[0])["run"]
    assert first[3]["interactive"] is False
    assert last[3]["interactive"] is True
    assert f"?run={run_id}" in last[1]
    assert "Finished" in last[1]
    assert last[2]["visible"] is True
    live = place.services.live(run_id)
    assert live is not None
    assert live.ended_at is not None


async def test_leaving_stops_both_engines() -> None:
    """Closing the handler, as a closed tab does (C02), ends both streams at once."""
    place = world(gate=asyncio.Event())
    updates = Desk(place.services).run(Form("go"), "en")
    first = await anext(updates)
    live = place.services.live(json.loads(first[0])["run"])
    assert live is not None
    await live.log.opened()
    while any(engine.open_streams == 0 for engine in place.engines.values()):
        await asyncio.sleep(0)
    await updates.aclose()
    assert [engine.open_streams for engine in place.engines.values()] == [0, 0]
    assert live.ended_at is not None


async def test_cancelling_stops_both_engines() -> None:
    """Stop cancels the handler's task; nothing swallows that."""
    place = world(gate=asyncio.Event())
    task = asyncio.create_task(_all(Desk(place.services).run(Form("go"), "en")))
    while sum(engine.open_streams for engine in place.engines.values()) < 2:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [engine.open_streams for engine in place.engines.values()] == [0, 0]


async def test_stop_before_the_page_knows_its_run() -> None:
    """A visitor who stops before the first message arrived still reads that the run was stopped, and so later."""
    place = world(gate=asyncio.Event())
    desk = Desk(place.services)
    mine, others = desk.run(Form("go"), "en", "me"), desk.run(Form("go"), "en", "you")
    await anext(mine)
    await anext(others)
    assert desk.settled("en", "me") is None
    await mine.aclose()
    update = await desk.stopped("{}", "en", "me")
    assert "Stopped" in update[1]
    assert "Stopped" in (desk.settled("en", "me") or "")
    assert desk.settled("en", "nobody") is None
    await others.aclose()


async def test_a_refusal_stays() -> None:
    """The last word on an earlier run does not take the place of the sentence that refuses the next one."""
    place = world(quota=Quota(Allowance(runs_per_minute=2), clock=lambda: 0.0))
    desk = Desk(place.services)
    await _all(desk.run(Form("go"), "en", "me"))
    assert "Finished" in (desk.settled("en", "me") or "")
    [refused] = await _all(desk.run(Form("  "), "en", "me"))
    assert 'data-kind="error"' in refused[1]
    assert desk.settled("en", "me") is None
    await _all(desk.run(Form("go"), "en", "me"))
    assert "Finished" in (desk.settled("en", "me") or "")
    [refused] = await _all(desk.run(Form("go"), "en", "me"))
    assert "2 runs a minute" in refused[1]
    assert desk.settled("en", "me") is None


async def test_a_refusal_leaves_a_run_that_goes_on_to_stop() -> None:
    """Refused while an earlier run still goes on, a visitor can stop that run, and hears its end."""
    place = world(gate=asyncio.Event(), quota=Quota(Allowance(open_runs=1)))
    desk = Desk(place.services)
    mine = desk.run(Form("go"), "en", "me")
    await anext(mine)
    [refused] = await _all(desk.run(Form("again"), "en", "me"))
    assert 'data-kind="error"' in refused[1]
    await mine.aclose()
    update = await desk.stopped("{}", "en", "me")
    assert "Stopped" in update[1]


async def test_waiting_visitors_see_their_place() -> None:
    """A second run waits for the engines and says how many are ahead; leaving gives up the place."""
    place = world(gate=asyncio.Event())
    desk = Desk(place.services)
    first, second = desk.run(Form("a"), "en"), desk.run(Form("b"), "en")
    await anext(first)
    update = await anext(second)
    assert "1 ahead" in update[1]
    await second.aclose()
    await first.aclose()
    assert not place.services.registry.live()


async def test_one_failing_side_leaves_the_other() -> None:
    """The standard engine breaks off; the speculative text still arrives whole, and the run counts as finished."""
    place = world(pause=0.001)
    place.engines[Side.STANDARD].fail_after = 3
    updates = await _all(Desk(place.services).run(Form("go"), "en"))
    live = place.services.live(json.loads(updates[0][0])["run"])
    assert live is not None
    record = live.log.record()
    text = "".join(e.text for e in record.events if getattr(e, "text", "") and e.side is Side.SPECULATIVE)
    assert text == WHOLE
    assert "Finished" in updates[-1][1]
    assert updates[-1][2]["visible"] is False


async def test_errors_are_markup_safe() -> None:
    """A sentence with markup in it stays text on the page (C06)."""
    place = world(control=Control(EngineState.DEAD))
    [update] = await _all(Desk(place.services).run(Form("<img src=x onerror=alert(1)>" * 2000), "en"))
    assert 'role="alert"' in update[1]
    assert "<img" not in update[1]


async def test_loading_engines_refuse_with_the_time_left() -> None:
    """Before the engines are ready a run is refused with how long it takes."""
    place = world(control=Control(EngineState.LOADING, eta_s=41.7))
    [update] = await _all(Desk(place.services).run(Form("go"), "en"))
    assert "42 s" in update[1]
    assert not place.engines[Side.STANDARD].asked


@pytest.mark.parametrize("lang, words", [("en", "no longer kept"), ("zh", "不在服务器上")])
async def test_forgotten_run_is_said(lang: Any, words: str) -> None:
    """A link to a run that is gone says so in the visitor's language."""
    arena, line, _, _ = await Desk(world().services).opened("nothing", lang)
    assert json.loads(arena)["run"] is None
    assert words in line


async def test_reload_finds_the_run() -> None:
    """The id in the address shows the same run again."""
    place = world(pause=0.001)
    desk = Desk(place.services)
    updates = await _all(desk.run(Form("go"), "en"))
    run_id = json.loads(updates[0][0])["run"]
    arena, line, _, _ = await desk.opened(run_id, "en")
    shown = json.loads(arena)
    assert (shown["run"], shown["replay"], shown["events_url"]) == (run_id, True, f"runs/{run_id}/events?replay=1")
    assert f"runs/{run_id}/record" in line


async def test_api_race_follows_the_contract() -> None:
    """The program's endpoint returns the document of ``race --json``, both texts included."""
    document = await Desk(world(pause=0.001).services).race(Form("go"))
    assert document["schema"] == 1
    assert document["verdict"]["class"] == "identical"
    assert document["sides"]["standard"]["text"] == document["sides"]["speculative"]["text"] == WHOLE


async def test_api_stream_is_the_pages_stream() -> None:
    """The streaming endpoint gives the very frames of the page, and leaving it stops the run."""
    place = world(pause=0.001)
    frames = [json.loads(text) async for text in Desk(place.services).race_stream(Form("go"))]
    assert [frame["seq"] for frame in frames] == list(range(len(frames)))
    assert frames[-1]["done"]


async def test_api_refuses_with_the_sentence() -> None:
    """A program gets the same sentence that the page shows."""
    with pytest.raises(gr.Error, match="empty"):
        await Desk(world().services).race(Form(" "))


async def test_commands_are_refused_in_public() -> None:
    """Strangers cannot start or stop engines, whatever their page sends; the refusal is the server's."""
    place = world(public=True)
    line = await Desk(place.services).command("standard", "stop", "en")
    assert place.control.commands == []
    assert 'role="alert"' in line
    place = world()
    await Desk(place.services).command("speculative", "restart", "en")
    assert place.control.commands == [("restart", Side.SPECULATIVE)]


@pytest.mark.parametrize("side, action", [("both", "stop"), ("standard", "format"), ("", "")])
async def test_unknown_commands_are_refused(side: str, action: str) -> None:
    """Only the two sides and the three commands exist."""
    place = world()
    assert 'role="alert"' in await Desk(place.services).command(side, action, "en")
    assert place.control.commands == []


@pytest.mark.parametrize("data", [None, [1], "{", '{"run": 5}', {"run": ["x"]}])
def test_script_events_may_be_anything(data: Any) -> None:
    """Whatever a forged event carries becomes an empty mapping of texts."""
    assert event_data(gr.EventData(None, data)) == {}
