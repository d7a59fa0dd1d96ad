"""Hostile texts in every place that shows one, through a real browser: nothing runs, nothing is asked elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from time import monotonic

import pytest
from playwright.sync_api import Browser, Dialog, Page, expect

from specdemo.bench.identity import Split
from specdemo.bench.plan import BenchPlan
from specdemo.core.codec import to_json
from specdemo.core.engine import EngineFacts
from specdemo.core.events import Event, Failed, Finished, Noted, Side, Started, Tokens, Usage
from specdemo.core.prompt import Sampling, chat
from specdemo.core.results import Check
from specdemo.core.run import RunHeader, RunPlan, RunRecord
from specdemo.ui.recordings import Recording
from tests.e2e.conftest import Visitor
from tests.e2e.hostile import CORPUS
from tests.e2e.site import Site
from tests.e2e.test_runs_tab import runs_tab
from tests.fakes.bench_samples import failed, prompts
from tests.unit.bench.test_report import forms
from tests.unit.bench.test_report import record as bench_record

Visit = Callable[..., Visitor]
STD, SPEC = Side.STANDARD, Side.SPECULATIVE
NAMES = [name for name in CORPUS if name != "surrogate"]  # a stored run that holds half a character is refused
TRIPWIRE = """
  window.alarms = [];
  Object.defineProperty(window, "pwned", { set: (value) => window.alarms.push(`pwned = ${value}`), get: () => undefined });
  for (const name of ["alert", "confirm", "prompt", "print", "open"]) window[name] = () => window.alarms.push(name);
  addEventListener("securitypolicyviolation", (e) => window.alarms.push(`${e.violatedDirective}: ${e.blockedURI}`));
"""


def record(text: str, name: str = "hostile", *, failing: bool = False) -> RunRecord:
    """A run in which everything that anybody outside can word says ``text``."""
    facts = [
        EngineFacts(side=side, model=text, version=text[:60], speculating=side is SPEC, method=text[:60], device=text[:60],
                    root=text[:60], dtype=text[:20], settings=((text[:40], text[:40]),))
        for side in Side
    ]  # fmt: skip
    plan = RunPlan(prompt=chat(text, system=text, sampling=Sampling(max_tokens=32)), mode="race")
    checks = (Check("model", "warn", text), Check("device", "block", text))
    pieces = (text[: len(text) // 3], text[len(text) // 3 :])  # cut anywhere, often inside a tag
    events: list[Event] = [Started(STD, 0.001), Started(SPEC, 0.001)]
    for number, piece in enumerate(pieces):
        at = 0.002 + number / 500
        events += [Tokens(STD, at, ids=(number + 5,), text=piece, pieces=(piece,), reasoning=piece)]
        events += [Tokens(SPEC, at + 0.001, ids=(number + 5,), text=piece, pieces=(piece,))]
    events.append(Noted(SPEC, 0.009, "coalesced", text))
    events.append(Failed(STD, 0.01, "rejected", text) if failing else Finished(STD, 0.01, "stop", usage=Usage(3, 2)))
    events.append(Finished(SPEC, 0.01, text[:40], usage=Usage(3, 2)))
    header = RunHeader(name, 1_760_000_000.0, plan, (facts[0], facts[1]), checks, hardware=text, title=text)
    return RunRecord(header, tuple(events))


@pytest.fixture
def alert(visit: Visit) -> Callable[..., Visitor]:
    """A visitor whose page has a tripwire; dialogs count as alarms too."""

    def arrive(url: str) -> Visitor:
        visitor = visit(url)
        visitor.context.add_init_script(TRIPWIRE)

        def opened(dialog: Dialog) -> None:
            visitor.troubles.append(f"dialog: {dialog.message}")
            dialog.dismiss()

        visitor.page.on("dialog", opened)
        return visitor

    return arrive


def alarms(visitor: Visitor) -> list[str]:
    """What the tripwire heard, and elements that nobody but a hostile text could have brought in."""
    heard: list[str] = visitor.page.evaluate("window.alarms.splice(0)")
    strange: list[str] = visitor.page.evaluate(
        """[...document.querySelectorAll(`iframe, object, embed, base:not([href="./"]), marquee, math, form[action], meta[http-equiv],
             a[href^="javascript" i], a[href^="data" i], a[href^="vbscript" i], [onerror], [onload], [onclick],
             [onmouseover], [onfocus], img[src*="evil"], [style*="evil"], link[href*="evil"]`)].map((e) => e.outerHTML.slice(0, 200))"""
    )
    return heard + strange


def drawn(visitor: Visitor, side: str, text: str) -> bool:
    """Wait until a pane holds exactly this text; False if it never does."""
    until = monotonic() + 20
    while monotonic() < until:
        if visitor.text(side) == text:
            return True
        visitor.page.wait_for_timeout(40)
    return False


@pytest.fixture(scope="module")
def gallery() -> Iterator[Site]:
    """A page whose recorded runs are the corpus: titles, prompts, models, hardware, remarks, outputs, errors."""
    found = {
        f"rec-{name}": Recording(f"rec-{name}", record(text, failing=len(name) % 2 == 0))
        for name, text in CORPUS.items()
        if name in NAMES
    }
    with Site(recordings=found) as running:
        yield running


@pytest.mark.parametrize("part", range(4))
def test_as_everything_in_a_run(gallery: Site, alert: Callable[..., Visitor], part: int) -> None:
    """C06: as title, prompt, model name, hardware, remark, error and output, plain and as Markdown, each text stays text."""
    visitor = alert(gallery.url).open()
    visitor.page.locator("#sd-recordings-box > button").click()
    found: dict[str, list[str]] = {}
    for name in NAMES[part::4]:
        visitor.page.locator(f'[data-open="rec-{name}"]').click()
        visitor.page.wait_for_url(f"**run=rec-{name}")
        exact = drawn(visitor, "speculative", CORPUS[name])
        if not exact:
            found.setdefault(name, []).append("the text differs")
        visitor.page.locator('[data-toggle="markdown"]').click()
        visitor.page.wait_for_timeout(30)
        visitor.page.locator('[data-toggle="markdown"]').click()
        if heard := alarms(visitor):
            found.setdefault(name, []).extend(heard)
    assert found == {}
    assert visitor.page.evaluate("document.cookie") == ""


def test_as_prompt_and_engine_error(site: Site, alert: Callable[..., Visitor]) -> None:
    """Typed into the form and sent back by an engine as its error, in the status line and the panes, they stay text."""
    visitor = alert(site.url).open()
    short = [text for name, text in CORPUS.items() if len(text) < 400 and name != "surrogate"]
    for start in range(0, len(short), 14):
        said = "\n".join(short[start : start + 14])
        error = {"error": {"message": said, "type": "BadRequestError", "code": 400}}
        site.use({"reply": {"status": 400, "body": error}}, {"k": 4, "reply": {"status": 400, "body": error}})
        visitor.run(said)
        expect(visitor.page.locator('[data-side="standard"]')).to_have_attribute("data-state", "failed")
        expect(visitor.page.locator('[data-side="standard"] [data-role="message"]')).to_be_visible()
        assert alarms(visitor) == []


def test_as_file_name_and_imported_run(tmp_path: Path, alert: Callable[..., Visitor]) -> None:
    """Runs brought in from files, with hostile names and contents, are listed, opened and compared as text."""
    with Site(store=f"sqlite:///{tmp_path}/runs.db") as site:
        visitor = alert(site.url).open()
        runs_tab(visitor)
        box = visitor.page.locator('#sd-runs input[type="file"]')
        for number, name in enumerate(("script", "img-error", "attribute-double", "rtl", "md-image", "handlebars")):
            document = json.dumps(to_json(record(CORPUS[name], f"imported-run-number-{number:04d}"))).encode()
            file = CORPUS[name].replace("/", "∕")[:80] + ".json"
            box.set_input_files({"name": file, "mimeType": "application/json", "buffer": document})
            expect(visitor.page.locator("#sd-runs [data-role='rows'] tr")).to_have_count(number + 1)
        for junk in (
            b"<script>window.pwned=1</script>",
            b"[]",
            json.dumps({"schema": 99, "x": CORPUS["img-error"]}).encode(),
        ):
            file = f"{CORPUS['img-error-bare'].replace('/', '∕')}.json"
            with visitor.page.expect_response(f"{site.url}runs") as refused:
                box.set_input_files({"name": file, "mimeType": "application/json", "buffer": junk})
            assert 400 <= refused.value.status < 500
            said = visitor.page.locator("#sd-runs [data-role='said']")
            expect(said).to_have_attribute("data-kind", "error")
            expect(said).to_contain_text(refused.value.json()["error"])
        assert alarms(visitor) == []
        for index in (0, 1):
            visitor.page.locator("#sd-runs [data-do='pick']").nth(index).check()
        visitor.page.locator("#sd-runs [data-do='compare']").click()
        expect(visitor.page.locator("#sd-runs [data-role='compare']")).to_be_visible()
        assert alarms(visitor) == []
        visitor.troubles[:] = [
            t for t in visitor.troubles if not t.startswith(("422 ", "400 ")) and " 422 " not in t and " 400 " not in t
        ]
        visitor.page.close()


def test_as_engine_log_and_names(alert: Callable[..., Visitor]) -> None:
    """Log lines, stages, model and method names of an engine are text in the engine panel."""
    text = " ".join(
        CORPUS[name] for name in ("script", "img-error", "svg-load", "attribute-double", "attribute-single", "md-html")
    )
    with Site() as site:
        site.control.says = text
        visitor = alert(site.url).open()
        card = visitor.page.locator('[data-engine="speculative"]')
        expect(card).to_contain_text("<script>window.pwned=1</script>")
        card.locator("summary").click()
        expect(card.locator("pre")).to_contain_text("<script>window.pwned=1</script>")
        assert alarms(visitor) == []
        visitor.page.close()


def test_injected_markup_would_not_run(site: Site, alert: Callable[..., Visitor]) -> None:
    """The second wall: were a text ever put into the page as markup, the policy would run none of it and load nothing."""
    visitor = alert(site.url).open()
    stopped: list[str] = []
    visitor.page.on("requestfailed", lambda request: stopped.append(request.url) if request.failure == "csp" else None)
    for name in (
        "script",
        "img-error",
        "svg-load",
        "details",
        "img-remote",
        "iframe-srcdoc",
        "script-src",
        "style",
        "link",
    ):
        visitor.page.evaluate(
            """(markup) => {
              const place = document.body.appendChild(document.createElement("div"));
              place.append(document.createRange().createContextualFragment(markup));
            }""",
            CORPUS[name],
        )
    visitor.page.wait_for_timeout(500)
    heard = visitor.page.evaluate("window.alarms")
    assert not [alarm for alarm in heard if alarm.startswith(("pwned", "alert", "confirm"))]
    assert any(alarm.startswith("script-src") for alarm in heard)
    # What was refused is written into the console, and Chromium names a request before its policy stops it.
    asked = [t.removeprefix("third party: ") for t in visitor.troubles if t.startswith("third party")]
    dialogs = [trouble for trouble in visitor.troubles if trouble.startswith("dialog")]
    visitor.troubles.clear()
    assert dialogs == []
    assert [url for url in asked if url not in stopped] == []


def test_in_a_report(tmp_path: Path, browser: Browser) -> None:
    """An exported report opened from disk, where no header protects it, runs nothing and asks for nothing."""
    path = tmp_path / "report.html"
    path.write_text(_report("\n".join(text for text in CORPUS.values() if len(text) < 400)), "utf-8", "replace")
    page: Page = browser.new_page()
    troubles: list[str] = []
    page.add_init_script(TRIPWIRE)

    def opened(dialog: Dialog) -> None:
        troubles.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", opened)
    page.on("request", lambda r: troubles.append(r.url) if not r.url.startswith(("file:", "data:")) else None)
    page.goto(path.as_uri())
    page.wait_for_timeout(300)
    heard = list(page.evaluate("window.alarms"))
    page.close()
    assert (troubles, heard) == ([], [])


def _report(text: str) -> str:
    """A benchmark in which everything that anybody outside can word says ``text``."""
    plan = BenchPlan(tuple(replace(p, id=f"{text}{p.id}", workload=text) for p in prompts(4)), title=text)
    found = bench_record(plan)
    samples = [replace(failed(found.samples[0]), message=text), *found.samples[1:]]
    splits = tuple(Split(p.id, 50, 50, 999, text, text, 0.5) for p in plan.prompts)
    header = replace(found.header, hardware=text)
    made, _ = forms(replace(found, samples=tuple(samples), splits=splits, header=header))
    return made
