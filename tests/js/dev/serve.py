"""The race view alone, fed from recorded streams: for looking at it without engines and without Gradio.

    PYTHONPATH=. python tests/js/dev/serve.py [port]      then open /?run=list&how=race|measure|recorded&dark=1&lang=zh

Runs: the pairs of ``tests/traces`` (list, chat, code, summ, zh), ``split`` (texts that part), ``fail`` (one side breaks),
``odd`` (ODD: markup, emoji over token ends, right-to-left text, code, a giant word),
``long`` (one paragraph of 1,500 tokens), ``lines`` (400 lines, each with a thought).
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from specdemo.core.engine import EngineFacts
from specdemo.core.events import Event, Failed, Finished, RequestSpeculation, Side, Started, Tokens, Usage
from specdemo.core.frames import Recorded, replay
from specdemo.core.prompt import Sampling, chat
from specdemo.core.results import Check
from specdemo.core.run import Probe, RunHeader, RunPlan, RunRecord

ROOT = Path(__file__).parents[3]
STD, SPEC = Side.STANDARD, Side.SPECULATIVE
FILES = {STD: "std", SPEC: "ngram"}
MODEL = "SmolLM2-135M-Instruct"
ODD = (
    "<img src=x", " onerror=alert(1)>", "</div><script>alert(2)</script>", " from $5 to $10, **not** $20\n",
    "Family: ", "👨\u200d👩\u200d", "👧\u200d", "👦", " flag 🇩", "🇪\n", "مرحبا ", "print() 123", "\n", "Back to Latin\n",
    "```py", "thon\ndef f(x):\n    ret", "urn '<b>'\n", "``", "`\n", "\x1b[31mred\x1b[0m ", "x" * 3000, "\n", "- one\n", "- two",
)  # fmt: skip
"""Tokens of the run ``odd``, three a step on the speculative side."""
LONG = tuple(f" {'مرحبا' if i % 40 == 9 else 'word' * (i % 3 + 1)}" for i in range(1500))
LINES = tuple(part for i in range(400) for part in (f"line {i},", "\n" if i % 9 else "\n\n"))
MADE = {"odd": ODD, "long": LONG, "lines": LINES}


def thought(run: str, step: int) -> str:
    """What the engines of a made run think at a step; now and then over a line's end."""
    return (f"thought {step}" + ("\n" if step % 3 else ", ")) if run == "lines" else ""


def texts(task: str) -> dict[int, str]:
    """The text of each token id, as the standard side sent it one by one."""
    stream = json.loads((ROOT / f"tests/traces/std-{task}.json").read_text())
    return {ids[0]: text for _, ids, text in stream["events"] if len(ids) == 1}


def side_events(task: str, side: Side, zero: float, limit: int | None = None) -> list[Event]:
    """One recorded stream as events that start at ``zero`` seconds; ``limit`` breaks it after so many chunks."""
    stream = json.loads((ROOT / f"tests/traces/{FILES[side]}-{task}.json").read_text())
    events: list[Event] = [Started(side, zero)]
    chunks = stream["events"][:limit]
    late = max(0.0, chunks[1][0] - 0.4)  # one recording has a cold start of three seconds
    known = texts(task)
    for at, ids, text in chunks:
        pieces = tuple(known.get(i, "") for i in ids)
        exact = pieces if "".join(pieces) == text else None
        events.append(Tokens(side, zero + max(0.1, at - late), ids=tuple(ids), text=text, pieces=exact))
    end = events[-1].at
    if limit is not None:
        return [*events, Failed(side, end, "interrupted", "The engine closed the stream before it had finished.")]
    usage = stream["final"]["usage"]
    told = (stream["final"].get("metrics") or {}).get("speculative_decoding")
    speculation = told and RequestSpeculation(
        steps=told["num_spec_steps"],
        drafted=told["num_draft_tokens"],
        accepted=told["num_accepted_draft_tokens"],
        max_draft=told["num_spec_tokens"],
        histogram=tuple(told["acceptance_histogram"]),
        accepted_per_step=tuple(told["per_step_accepted"]),
        drafted_per_step=tuple(told["per_step_drafted"]),
    )
    reason = "length" if usage["completion_tokens"] >= 160 else "stop"
    counts = Usage(usage["prompt_tokens"], usage["completion_tokens"])
    return [*events, Finished(side, end, reason, usage=counts, speculation=speculation or None)]


def made_events(side: Side, name: str) -> list[Event]:
    """A made run's tokens as a stream, a step every 30 ms."""
    tokens = MADE[name]
    size = 3 if side is SPEC else 1
    events: list[Event] = [Started(side, 0.0)]
    for step, first in enumerate(range(0, len(tokens), size)):
        pieces = tokens[first : first + size]
        ids = tuple(range(first, first + len(pieces)))
        at = 0.1 + 0.03 * step
        events.append(Tokens(side, at, ids=ids, text="".join(pieces), pieces=pieces, reasoning=thought(name, step)))
    return [*events, Finished(side, events[-1].at, "stop", usage=Usage(3, len(tokens)))]


def part(events: list[Event], at: int) -> list[Event]:
    """The same stream with another token number ``at``: what a numerical difference between engines looks like."""
    seen = 0
    parted: list[Event] = []
    for event in events:
        if isinstance(event, Tokens) and seen <= at < seen + len(event.ids):
            ids = list(event.ids)
            ids[at - seen] += 1
            parted.append(Tokens(event.side, event.at, ids=tuple(ids), text=event.text + " (or)"))
        else:
            parted.append(event)
        seen += len(event.ids) if isinstance(event, Tokens) else 0
    return parted


def record(name: str, how: str) -> RunRecord:
    """A run of both sides: at once, or one after the other when measured."""
    task = {"split": "chat", **dict.fromkeys(("fail", *MADE), "list")}.get(name, name)
    if name in MADE:
        std, spec = made_events(STD, name), made_events(SPEC, name)
    else:
        std = side_events(task, STD, 0.0)
        spec = side_events(task, SPEC, std[-1].at + 0.5 if how == "measure" else 0.01, 12 if name == "fail" else None)
    probe = None
    if name == "split":
        spec = part(spec, 61)
        probe = Probe(61, ((260, " a", -1.021), (253, " the", -1.034)), 0.981, 160, 0.04)
    prompt = json.loads((ROOT / f"tests/traces/std-{task}.json").read_text())["prompt"]
    facts = (
        EngineFacts(side=STD, model=MODEL, version="0.32.0", speculating=False, device_key="cpu"),
        EngineFacts(side=SPEC, model=MODEL, version="0.32.0", speculating=True, method="ngram", k=4, device_key="cpu"),
    )
    checks = (
        Check("model", "ok", f"both serve {MODEL}"),
        Check("prompt ids", "ok", "both read the same 86 prompt tokens"),
        Check("device", "ok" if how == "measure" else "warn", "both engines share one device"),
    )
    plan = RunPlan(
        prompt=chat(prompt, sampling=Sampling(max_tokens=160)), mode="measure" if how == "measure" else "race"
    )
    header = RunHeader(id=f"{name}-{how}", started_at=1_760_000_000.0, plan=plan, facts=facts, checks=checks)
    return RunRecord(header, tuple(sorted([*std, *spec], key=lambda event: event.at)), probe)


def frames(name: str, how: str) -> list[dict[str, Any]]:
    """The run's frames, as the server would send them."""
    where = Recorded("2026-02-11", "2 CPU cores", "race_shared") if how == "recorded" else None
    return list(replay(record(name, how), recorded=where))


async def events(request: Request) -> Response:
    """The frames at their own times; all at once with ?now=1 or for a recording; ?cut=N breaks off every N frames."""
    name, how = request.path_params["run"].split("-")
    after = int(request.headers.get("last-event-id", -1))
    cut = int(request.query_params.get("cut", 0))
    at_once = how == "recorded" or "now" in request.query_params or cut
    app.state.resumed.append(after)

    async def send() -> AsyncIterator[str]:
        yield "retry: 50\n\n"
        before = 0.0
        for frame in frames(name, how)[after + 1 : after + 1 + cut if cut else None]:
            if not at_once:
                await asyncio.sleep(max(0.0, frame["t"] - before))
            before = frame["t"]
            yield f"id: {frame['seq']}\ndata: {json.dumps(frame)}\n\n"

    return StreamingResponse(send(), media_type="text/event-stream")


def page(request: Request) -> Response:
    """The skeleton with the stylesheets and Gradio's variables as they stand in its default theme."""
    ask = request.query_params
    name, how = ask.get("run", "list"), ask.get("how", "race")
    value = {
        "run": f"{name}-{how}" if name != "none" else None,
        "lang": ask.get("lang", "en"),
        "replay": how == "recorded",
        "loop": "loop" in ask,
        "events_url": f"runs/{name}-{how}/events?{urlencode({k: ask[k] for k in ('now', 'cut') if k in ask})}",
    }
    html = (Path(__file__).with_name("page.html")).read_text()
    html = html.replace("RACE", (ROOT / "assets/html/race.html").read_text()).replace("VALUE", json.dumps(value))
    return HTMLResponse(html.replace("THEME", "dark" if "dark" in ask else ""))


app = Starlette(
    routes=[
        Route("/", page),
        Route("/runs/{run}/events", events),
        Mount("/assets", StaticFiles(directory=ROOT / "assets")),
    ]
)

app.state.resumed = []

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]) if len(sys.argv) > 1 else 8765, log_level="warning")
