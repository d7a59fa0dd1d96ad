"""What a visitor sees is what the engines said, digit for digit and character for character."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import Visitor
from tests.e2e.site import Site

Visit = Callable[..., Visitor]

HOSTILE = (
    '<img src=x onerror="window.pwned=1"> </div><script>window.pwned=2</script> [click](javascript:window.pwned=3) '
    "![pixel](http://evil.invalid/p.png) \x1b[31mred\x1b[0m ${window.pwned=4} {{constructor}} $5 to $10, **not** $20\n"
    "```python\nprint('<b>half a fence</b>')\n" + "x" * 3000 + "\n&lt;b&gt; &amp; \u202eabc\u200b\u0007 end"
)


def result(site: Site, run_id: str) -> dict[str, Any]:
    """The run's document as programs get it."""
    document: dict[str, Any] = httpx.get(f"{site.url}runs/{run_id}/result", timeout=10).json()
    return document


def test_text_and_numbers_are_the_engines(site: Site, visit: Visit) -> None:
    """The text in the document equals the engine's exactly, and shown numbers equal those of the result document."""
    visitor = visit(site.url).open()
    run_id = visitor.run()
    visitor.wait_finished()
    document = result(site, run_id)
    for side in ("standard", "speculative"):
        said = document["sides"][side]
        assert len(said["text"]) > 100
        assert visitor.text(side) == said["text"]
        for name in ("ttft_s", "tpot_s", "output_tokens", "e2el_s"):
            assert visitor.number(name, side) == said["metrics"][name], name
    assert visitor.number("speedup.decode") == document["speedup"]["decode"]
    spec = document["sides"]["speculative"]["metrics"]
    assert visitor.number("tokens_per_step") == spec["tokens_per_step"]
    for name in ("rate", "mean_length", "accepted"):
        assert visitor.number(f"acceptance.{name}") == spec["acceptance"][name]
    verdict = visitor.page.locator('[data-role="verdict"]')
    expect(verdict).to_have_attribute("data-verdict", document["verdict"]["class"])
    assert document["verdict"]["class"].startswith("identical")


def test_smoothing_changes_no_number(site: Site, visit: Visit) -> None:
    """With smoothing off the same run shows the same text and the same numbers."""
    visitor = visit(site.url).open()
    run_id = visitor.run()
    visitor.wait_finished()
    raw = visit(site.url).open()
    raw.page.locator('[data-toggle="smooth"]').click()
    expect(raw.page.locator('[data-toggle="smooth"]')).to_have_attribute("aria-pressed", "false")
    raw.open(f"?run={run_id}")
    expect(raw.page.locator('[data-role="verdict"]')).to_have_attribute("data-verdict", "identical")
    for side in ("standard", "speculative"):
        expect(raw.output(side)).to_have_text(visitor.text(side), use_inner_text=False)
        for name in ("ttft_s", "tpot_s", "output_tokens", "e2el_s"):
            assert raw.number(name, side) == visitor.number(name, side)


@pytest.mark.parametrize("markdown", [False, True])
def test_hostile_output_is_inert(site: Site, visit: Visit, markdown: bool) -> None:
    """Markup, scripts, links and images in a model's output stay text (C06, C08), rendered or not; nothing is fetched."""
    site.use({"reply": {"text": HOSTILE, "step_s": 0.001}}, {"k": 4, "reply": {"text": HOSTILE, "step_s": 0.001}})
    visitor = visit(site.url).open()
    if markdown:
        visitor.page.locator('[data-toggle="markdown"]').click()
    run_id = visitor.run("<img src=x onerror='window.pwned=5'>")
    visitor.wait_finished()
    said = result(site, run_id)["sides"]["standard"]["text"]
    if not markdown:
        assert visitor.text("standard") == said
    assert visitor.page.evaluate("window.pwned") is None
    arena = visitor.page.locator("#sd-arena")
    assert arena.locator("img, script, iframe, object, embed").count() == 0
    assert arena.locator('a[href^="javascript"]').count() == 0
    assert visitor.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_one_side_failing_leaves_the_other(site: Site, visit: Visit) -> None:
    """The standard engine breaks off mid-stream; the other text arrives whole and the failure is said."""
    site.use({"reply": {"tokens": 60, "step_s": 0.004, "fault": {"kind": "reset", "after": 10}}})
    visitor = visit(site.url).open()
    run_id = visitor.run()
    visitor.wait_finished()
    sides = result(site, run_id)["sides"]
    assert sides["standard"]["state"] == "failed"
    assert visitor.text("speculative") == sides["speculative"]["text"]
    assert len(sides["speculative"]["text"]) > 100
    pane = visitor.page.locator('[data-side="standard"]')
    expect(pane).to_have_attribute("data-state", "failed")
    expect(pane.locator('[data-role="message"]')).to_be_visible()
    assert visitor.number("speedup.decode") is None


def test_measure_plays_both_back(site: Site, visit: Visit) -> None:
    """After a race on a shared device, one click measures the same prompt; the badge says measured."""
    visitor = visit(site.url).open()
    first = visitor.run("Measure me.")
    visitor.wait_finished()
    visitor.page.locator("#sd-again").click()
    visitor.page.wait_for_function("old => new URL(location.href).searchParams.get('run') !== old", arg=first)
    visitor.wait_finished()
    expect(visitor.page.locator('[data-role="badge"]')).to_have_attribute("data-badge", "measured")
    document = result(site, visitor.run_id)
    assert document["mode"] == "measure"
    expect(visitor.output("speculative")).to_have_text(document["sides"]["speculative"]["text"], use_inner_text=False)


@pytest.mark.parametrize(
    ("prompt", "words"),
    [("", "empty"), ("  \n\t ", "empty"), ("x" * 1_000_000, "characters"), ("word " * 6000, "tokens")],
)  # fmt: skip
def test_prompts_that_cannot_be_sent(site: Site, visit: Visit, prompt: str, words: str) -> None:
    """An impossible prompt is refused with one sentence and its numbers, before any engine generates."""
    visitor = visit(site.url).open()
    before = {side: len(engine.requests) for side, engine in site.engines.items()}
    visitor.page.locator("#sd-prompt textarea").fill(prompt)
    visitor.page.locator("#sd-run").click()
    expect(visitor.status).to_have_attribute("data-kind", "error")
    expect(visitor.status).to_contain_text(words)
    assert {side: len(engine.requests) for side, engine in site.engines.items()} == before
    expect(visitor.page.locator("#sd-run")).to_be_enabled()


@pytest.mark.parametrize("prompt", ["مرحبا بالعالم print(1)", "\u200b\u200dzero\ufeff", "tab\tand\x07bell", "👨‍👩‍👧‍👦"])
def test_odd_prompts_are_sent_unchanged(site: Site, visit: Visit, prompt: str) -> None:
    """Right-to-left, zero-width and control characters reach the engine as they were typed."""
    visitor = visit(site.url).open()
    visitor.run(prompt)
    visitor.wait_finished()
    for engine in site.engines.values():
        chats = [body["messages"][-1]["content"] for body in engine.requests if "messages" in body]
        assert chats[-1] == prompt
