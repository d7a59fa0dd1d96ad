"""Faults as a visitor meets them: an engine that is missing, dying, refusing or silent, and output without end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from specdemo.core.events import Side
from tests.e2e.conftest import Visitor
from tests.e2e.site import Site
from tests.e2e.test_race_page import result

Visit = Callable[..., Visitor]
MANY = 20_000
COUNT_WRITES = """() => {
  window.written = 0;
  window.batches = 0;
  const watch = new MutationObserver((records) => {
    window.batches += 1;
    for (const record of records) {
      if (record.type === "characterData") window.written += record.target.length;
      for (const node of record.addedNodes) window.written += node.textContent.length;
    }
  });
  for (const root of document.querySelectorAll('[data-role="output"]'))
    watch.observe(root, { childList: true, characterData: true, subtree: true });
}"""
"""How many characters are put into the two outputs, moved ones again, and in how many updates."""


@pytest.fixture(scope="module")
def hasty() -> Iterator[Site]:
    """A page that gives up on a silent engine after two seconds and allows 20,000 tokens."""
    with Site(limits={"stall_s": 2.0}, max_tokens=MANY) as running:
        yield running


def pane(visitor: Visitor, side: str) -> Any:
    """One side's pane."""
    return visitor.page.locator(f'[data-side="{side}"]')


def test_silent_engine_is_seen_waiting_and_then_said(hasty: Site, visit: Visit) -> None:
    """An engine that falls silent: the clock goes on, the live speed falls, and after the limit it is said, with the text kept."""
    hasty.use(None, {"k": 4, "reply": {"tokens": 60, "step_s": 0.004, "fault": {"kind": "silence", "after": 10}}})
    visitor = visit(hasty.url).open()
    run_id = visitor.run()
    spec = pane(visitor, "speculative")
    expect(spec).to_have_attribute("data-state", "running")
    expect(visitor.output("speculative")).not_to_be_empty()
    elapsed = spec.locator('[data-metric="e2el_s"]')
    first = elapsed.text_content()
    expect(elapsed).not_to_have_text(str(first))
    assert elapsed.get_attribute("data-value") == ""  # a running clock is no measurement
    visitor.wait_finished()
    expect(spec).to_have_attribute("data-state", "failed")
    expect(spec.locator('[data-role="message"]')).to_contain_text("nothing more for 2 s")
    said = result(hasty, run_id)["sides"]
    assert said["speculative"]["error"]["kind"] == "stalled"
    assert visitor.text("speculative") == said["speculative"]["text"] != ""
    assert said["standard"]["state"] == "finished"
    assert visitor.text("standard") == said["standard"]["text"]


def test_twenty_thousand_tokens_a_side(hasty: Site, visit: Visit) -> None:
    """C01: long output arrives whole on both sides; the page answers meanwhile and writes each character a few times at most."""
    many = {"tokens": MANY, "step_s": 0.0005}
    room = {"max_model_len": 2 * MANY}
    hasty.use({**room, "reply": many}, {**room, "k": 4, "reply": {**many, "bursts": [1, 3]}})
    visitor = visit(hasty.url).open()
    visitor.page.evaluate(COUNT_WRITES)
    visitor.page.locator("#sd-max-tokens input[type=number]").fill(str(MANY))
    visitor.page.locator("#sd-max-tokens input[type=number]").press("Tab")
    run_id = visitor.run()
    expect(visitor.output("speculative")).not_to_be_empty()
    visitor.page.locator('[data-toggle="provenance"]').click()
    expect(visitor.page.locator('[data-toggle="provenance"]')).to_have_attribute("aria-pressed", "false")
    visitor.wait_finished()
    said = result(hasty, run_id)
    length = 0
    for side in ("standard", "speculative"):
        assert said["sides"][side]["metrics"]["output_tokens"] == MANY
        expect(visitor.output(side)).to_have_text(said["sides"][side]["text"], use_inner_text=False)
        assert visitor.number("output_tokens", side) == MANY
        length += len(said["sides"][side]["text"])
    assert said["verdict"]["class"].startswith("identical")
    written, batches = visitor.page.evaluate("[window.written, window.batches]")
    assert length <= written < 6 * length, (length, written)
    assert batches < MANY, batches  # updates are coalesced


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_refused_parameter_is_the_engines_word(site: Site, visit: Visit, lang: str) -> None:
    """One engine refuses the request: its own words are shown, the other side finishes, and no ratio is claimed."""
    words = "temperature must be in the range"
    site.use(None, {"k": 4, "reply": {"status": 400, "body": {"error": {"message": words, "code": 400}}}})
    visitor = visit(site.url).open(f"?lang={lang}")
    visitor.run()
    visitor.wait_finished()
    message = pane(visitor, "speculative").locator('[data-role="message"]')
    expect(message).to_contain_text(words)
    expect(message).to_contain_text("refused the request" if lang == "en" else "拒绝了请求")
    expect(pane(visitor, "standard")).to_have_attribute("data-state", "finished")
    assert visitor.number("speedup.decode") is None


def test_dying_engine_and_missing_engine(site: Site, visit: Visit) -> None:
    """An engine dies in the middle, and is not there for the next run: both are said, the other side goes on each time."""
    visitor = visit(site.url).open()
    visitor.run("Live.")  # so that no warm-up comes between and dies instead
    visitor.wait_finished()
    site.use(None, {"k": 4, "reply": {"tokens": 60, "step_s": 0.004, "fault": {"kind": "die", "after": 8}}})
    try:
        visitor.run("Die, please.")
        expect(pane(visitor, "speculative")).to_have_attribute("data-state", "failed")
        visitor.wait_finished()
        expect(pane(visitor, "speculative").locator('[data-role="message"]')).to_contain_text("EngineCore")
        expect(pane(visitor, "standard")).to_have_attribute("data-state", "finished")
        visitor.run("Are you there?")
        expect(pane(visitor, "speculative").locator('[data-role="message"]')).to_contain_text("Nobody answers")
        visitor.wait_finished()
        expect(pane(visitor, "standard")).to_have_attribute("data-state", "finished")
        expect(visitor.page.locator("#sd-run")).to_be_enabled()
    finally:
        site.revive()


def test_over_the_context_in_chinese_with_the_numbers(site: Site, visit: Visit) -> None:
    """A prompt over the context is refused before it is sent, with its size, the limit and by how much, in Chinese too."""
    visitor = visit(site.url).open("?lang=zh")
    before = {side: len(engine.requests) for side, engine in site.engines.items()}
    visitor.page.locator("#sd-prompt textarea").fill("word " * 6000)
    visitor.page.locator("#sd-run").click()
    expect(visitor.status).to_have_attribute("data-kind", "error")
    text = visitor.status.text_content() or ""
    assert "2048" in text
    assert "max_model_len" in text
    assert "提示词有" in text
    assert {side: len(engine.requests) for side, engine in site.engines.items()} == before


def test_output_that_will_be_cut_is_said(site: Site, visit: Visit) -> None:
    """A prompt that leaves less room than the output asked for runs, and the page says where the output will end."""
    visitor = visit(site.url).open()
    visitor.page.locator("#sd-max-tokens input[type=number]").fill("2000")
    visitor.page.locator("#sd-max-tokens input[type=number]").press("Tab")
    visitor.run("word " * 100)
    visitor.wait_finished()
    expect(visitor.page.locator('[data-role="notes"]')).to_contain_text("instead of 2000")


def test_notes_checks_and_verdict_are_chinese(site: Site, visit: Visit) -> None:
    """What the server says of a run reads in Chinese on the Chinese page: checks, notes, verdict, absent numbers."""
    visitor = visit(site.url).open("?lang=zh")
    visitor.run("讲个故事。")
    visitor.wait_finished()
    visitor.page.locator('[data-role="checks-summary"]').click()
    for place in ("checks-list", "notes"):
        for line in visitor.page.locator(f'[data-role="{place}"] li').all():
            text = line.text_content() or ""
            assert any("\u4e00" <= c <= "\u9fff" for c in text), text
            assert "原文" not in text, text
    detail = visitor.page.locator('[data-role="verdict-detail"]').text_content() or ""
    assert "tokens" not in detail
    assert site.engines[Side.STANDARD].requests
