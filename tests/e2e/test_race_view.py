"""The race view alone, fed from recorded streams without Gradio: what it draws, replays and keeps out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvicorn
from playwright.sync_api import Browser, Page, expect

from specdemo.ui.server import listen
from tests.golden.unpack import events as unpacked
from tests.js.dev import serve

STANDARD, SPECULATIVE = "standard", "speculative"
Show = Callable[..., Page]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The development page in a thread."""
    bound = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(serve.app, log_level="warning", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{bound.getsockname()[1]}/"
    server.should_exit = True
    thread.join(10)


@pytest.fixture
def show(browser: Browser, address: str) -> Iterator[Show]:
    """Open a run; afterwards the page may have logged no error and asked for nothing else."""
    contexts: list[Any] = []
    troubles: list[str] = []

    def opened(query: str, **options: Any) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda r: None if r.url.startswith((address, "blob:")) else troubles.append(r.url))
        page.goto(address + query)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []


def text(page: Page, side: str) -> str:
    """The text of one pane as the document holds it."""
    found: str = page.locator(f'[data-side="{side}"] [data-role="output"]').evaluate("node => node.textContent")
    return found


def spoken(run: str, how: str, side: str) -> str:
    """The text that the frames carry."""
    return "".join(e["x"] for f in serve.frames(run, how) for e in unpacked(f) if e["k"] == "tok" and e["s"] == side)


def ended(page: Page, run: str, how: str) -> None:
    """Wait until both texts are complete on the page."""
    for side in (STANDARD, SPECULATIVE):
        expect(page.locator(f'[data-side="{side}"] [data-role="output"]')).to_have_text(
            spoken(run, how, side), use_inner_text=False
        )


@pytest.mark.parametrize("run", ["code", "zh", "odd"])
def test_text_is_exact(show: Show, run: str) -> None:
    """Whatever the tokens are, the document's text is the engines' text, character by character."""
    page = show(f"?run={run}&how=race&now=1")
    page.locator('[data-mode="done"]').wait_for()
    for side in (STANDARD, SPECULATIVE):
        whole = spoken(run, "race", side)
        page.wait_for_function(
            "([side, whole]) => document.querySelector(`[data-side=${side}] [data-role=output]`).textContent === whole",
            arg=[side, whole],
        )


def test_numbers_are_the_frames(show: Show) -> None:
    """Every shown number is the raw value of the last frame; what does not apply has none."""
    page = show("?run=code&how=race&now=1")
    page.locator('[data-mode="done"]').wait_for()
    merged: dict[str, dict[str, Any]] = {STANDARD: {}, SPECULATIVE: {}}
    last: dict[str, Any] = {}
    for frame in serve.frames("code", "race"):
        last.update(frame)
        for side, numbers in frame.get("m", {}).items():
            merged[side].update(numbers)
    for side in merged:
        for name in ("ttft_s", "tpot_s", "e2el_s", "output_tokens", "decode_tokens_per_s"):
            shown = page.locator(f'[data-side="{side}"] [data-metric="{name}"]').get_attribute("data-value")
            assert float(shown or "nan") == merged[side][name], (side, name)
    for name in ("rate", "mean_length", "accepted"):
        shown = page.locator(f'[data-metric="acceptance.{name}"]').get_attribute("data-value")
        assert float(shown or "nan") == merged[SPECULATIVE]["acceptance"][name]
    assert (
        float(page.locator('[data-metric="speedup.decode"]').get_attribute("data-value") or "nan")
        == (last["speedup"]["decode"])
    )


def test_clusters_are_whole_in_one_span(show: Show) -> None:
    """C11: a family and a flag that come in several tokens stand in one element, so that they draw as one."""
    page = show("?run=odd&how=race&now=1")
    page.locator('[data-mode="done"]').wait_for()
    for side in (STANDARD, SPECULATIVE):
        spans = page.locator(f'[data-side="{side}"] .sd-tok')
        expect(spans.filter(has_text="👨\u200d👩\u200d👧\u200d👦")).to_have_count(1)
        expect(spans.filter(has_text="🇩🇪")).to_have_count(1)


def test_right_to_left_lines(show: Show) -> None:
    """C10: an Arabic line starts at the right, a Latin one at the left, each by its own first letter."""
    page = show("?run=odd&how=race&now=1")
    page.locator('[data-mode="done"]').wait_for()
    edges = page.evaluate(
        """() => {
          const output = document.querySelector('[data-side=standard] [data-role=output]');
          const edge = (word) => {
            const block = [...output.querySelectorAll('.sd-block')].find((b) => b.textContent.includes(word));
            const box = [...block.querySelectorAll('.sd-tok')].find((t) => t.textContent.includes(word));
            const rect = box.getBoundingClientRect(), whole = block.getBoundingClientRect();
            return [rect.left - whole.left, whole.right - rect.right];
          };
          return [edge('مرحبا'), edge('Back')];
        }"""
    )
    arabic, latin = edges
    assert arabic[1] < 5 < arabic[0]
    assert latin[0] < 5 < latin[1]


def test_origin_is_not_colour_alone(show: Show) -> None:
    """Accepted drafts carry a line under the text besides the tint, the target's own tokens carry neither."""
    page = show("?run=list&how=race&now=1")
    page.locator('[data-mode="done"]').wait_for()
    draft = page.locator(f'[data-side="{SPECULATIVE}"] .sd-draft')
    expect(draft).to_have_count(
        sum(f["o"].count("d") for e in serve.frames("list", "race") for f in unpacked(e) if f["k"] == "prov")
    )
    assert "inset" in draft.first.evaluate("node => getComputedStyle(node).boxShadow")
    assert page.locator(f'[data-side="{STANDARD}"] .sd-draft').count() == 0
    page.locator('[data-toggle="provenance"]').click()
    assert draft.first.evaluate("node => getComputedStyle(node).boxShadow") == "none"


def test_token_tooltip(show: Show) -> None:
    """Pointing at a token, or moving by arrow keys, tells position, step, drafts and time."""
    page = show("?run=list&how=race&now=1")
    page.locator('[data-mode="done"]').wait_for()
    page.locator(f'[data-side="{SPECULATIVE}"] .sd-draft').first.hover()
    tip = page.locator(".sd-tip")
    expect(tip).to_contain_text("token 5 · step 5")
    expect(tip).to_contain_text("3 of 4 drafts accepted")
    # Focusing scrolls the text under the pointer, which rests and so has no say.
    page.locator(f'[data-side="{STANDARD}"] [data-role="output"]').focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(tip).to_contain_text("token 2 · step 2")


def test_scrub_both_ways(show: Show) -> None:
    """Scrubbing back and forth shows the text of that moment, and the end is the whole text again."""
    page = show("?run=code&how=race&now=1")
    page.locator('[data-mode="done"]').wait_for()
    ended(page, "code", "race")
    scrub = page.locator('[data-role="scrub"]')
    whole = spoken("code", "race", STANDARD)
    for share in (500, 100, 700, 1000):
        scrub.fill(str(share))
        at = share / 1000 * max(e["at"] for f in serve.frames("code", "race") for e in unpacked(f))
        there = "".join(
            e["x"] for f in serve.frames("code", "race") for e in unpacked(f)
            if e["k"] == "tok" and e["s"] == STANDARD and e["at"] <= at
        )  # fmt: skip
        page.wait_for_function(
            "there => document.querySelector('[data-side=standard] [data-role=output]').textContent === there",
            arg=there,
        )
    assert text(page, STANDARD) == whole


def test_recording_plays_by_its_own_time(show: Show) -> None:
    """A recording starts empty, says that it is one, plays, and keeps its last numbers until it is played again."""
    page = show("?run=code&how=recorded")
    expect(page.locator('[data-role="badge"]')).to_have_attribute("data-badge", "recorded")
    expect(page.locator('[data-role="badge"]')).to_contain_text("2 CPU cores")
    ended(page, "code", "recorded")
    expect(page.locator('[data-role="speedup-basis"]')).not_to_be_empty()
    page.locator('[data-action="play"]').click()
    page.wait_for_function("document.querySelector('[data-side=standard] [data-role=output]').textContent.length < 40")
    page.locator('[data-speed="instant"]').click()
    ended(page, "code", "recorded")


def test_measured_sides_replay_together(show: Show) -> None:
    """Sides measured one after the other are played from the same moment, with the measured ratio standing."""
    page = show("?run=code&how=measure&now=1")
    page.locator('[data-mode="done"]').wait_for()
    ended(page, "code", "measure")
    page.locator('[data-action="play"]').click()
    page.wait_for_function(
        """() => ['standard', 'speculative'].every((side) => {
          const n = document.querySelector(`[data-side=${side}] [data-role=output]`).textContent.length;
          return n > 0 && n < 100;
        })"""
    )
    assert page.locator('[data-metric="speedup.decode"]').get_attribute("data-value")
    expect(page.locator('[data-role="badge"]')).to_contain_text("true speed")
    ended(page, "code", "measure")


def test_reduced_motion_does_not_replay_by_itself(show: Show) -> None:
    """Who asked for less motion gets the recording's text at once."""
    page = show("?run=list&how=recorded", reduced_motion="reduce")
    ended(page, "list", "recorded")
    assert page.locator('[data-role="replay"]').is_visible()


def test_markdown_is_elements_and_never_markup(show: Show) -> None:
    """C06, C08: rendered Markdown has code and list elements of its own; the model's markup and dollars stay text."""
    page = show("?run=odd&how=race&now=1")
    page.locator('[data-mode="done"]').wait_for()
    page.locator('[data-toggle="markdown"]').click()
    output = page.locator(f'[data-side="{STANDARD}"] [data-role="output"]')
    expect(output.locator(".sd-md-code code")).to_have_text("def f(x):\n    return '<b>'")
    expect(output.locator(".sd-md-item")).to_have_count(2)
    expect(output.locator("strong")).to_have_text("not")
    expect(output).to_contain_text(
        "<img src=x onerror=alert(1)></div><script>alert(2)</script> from $5 to $10, not $20"
    )
    assert output.locator("img, script, iframe, b").count() == 0
    page.locator('[data-toggle="markdown"]').click()
    page.wait_for_function(
        "whole => document.querySelector('[data-side=standard] [data-role=output]').textContent === whole",
        arg=spoken("odd", "race", STANDARD),
    )


def test_dropped_stream_is_resumed(show: Show) -> None:
    """A connection that breaks is asked for again from the last frame; nothing is lost and nothing comes twice."""
    serve.app.state.resumed.clear()
    page = show("?run=code&how=race&cut=12")
    ended(page, "code", "race")
    last = len(serve.frames("code", "race")) - 1
    assert serve.app.state.resumed == [-1, *range(11, last, 12)]


def test_split_is_shown_in_context(show: Show) -> None:
    """Where greedy texts part, both tokens stand side by side after the common text, counted from 1."""
    page = show("?run=split&how=race&now=1")
    split = page.locator('[data-role="split"]')
    expect(split).to_contain_text("token 62")
    expect(split.locator("mark")).to_have_text([" and", " and (or)"])
    expect(page.locator('[data-role="verdict"]')).to_have_attribute("data-verdict", "different")


def test_failed_side_says_so_and_the_other_goes_on(show: Show) -> None:
    """One side breaks: its sentence is in its pane, the other text is whole, and no ratio is claimed."""
    page = show("?run=fail&how=race&now=1")
    page.locator('[data-mode="done"]').wait_for()
    expect(page.locator(f'[data-side="{SPECULATIVE}"] [data-role="message"]')).to_have_text(
        "The engine closed the stream before it had finished."
    )
    expect(page.locator(f'[data-side="{STANDARD}"]')).to_have_attribute("data-state", "finished")
    assert page.locator('[data-metric="speedup.decode"]').get_attribute("data-value") == ""


LINES = """() => {
  const output = document.querySelector('[data-side=speculative] [data-role=output]');
  const parts = [...output.querySelectorAll('.sd-block')];
  const cut = parts.reduce((sum, part) => sum + part.getBoundingClientRect().height, 0);
  const whole = document.createElement('div');
  whole.className = 'sd-block';
  for (const part of parts) whole.append(...part.cloneNode(true).childNodes);
  output.append(whole);
  const uncut = whole.getBoundingClientRect().height;
  whole.remove();
  return [parts.length, Math.round(cut - uncut)];
}"""


def test_a_long_paragraph_is_cut_where_lines_break(show: Show) -> None:
    """C01: a paragraph of 1,500 tokens is laid out in parts that look exactly like one, at any width; its text is whole."""
    page = show("?run=long&how=race&now=1")
    page.locator('[data-mode="done"]').wait_for()
    ended(page, "long", "race")
    parts, difference = page.evaluate(LINES)
    assert parts > 3
    assert difference == 0
    page.set_viewport_size({"width": 700, "height": 900})
    page.wait_for_function(f"() => {{ const [n, d] = ({LINES})(); return n > 3 && d === 0; }}")
    assert text(page, SPECULATIVE) == spoken("long", "race", SPECULATIVE)


CHUNKS = """() => ['[data-side=standard] [data-role=output]', '[data-side=standard] [data-role=reasoning]'].map((at) => {
  const chunks = [...document.querySelector(at).children];
  const blocks = chunks.map((chunk) => chunk.childElementCount);
  return [chunks.length, Math.min(...blocks), Math.max(...blocks), blocks.reduce((a, b) => a + b)];
})"""


def test_a_frame_does_not_meet_every_line(show: Show) -> None:
    """C01: lines and thoughts stand in chunks, none of them empty or full of everything, also after scrubbing back."""
    page = show("?run=lines&how=race&now=1")
    page.locator('[data-mode="done"]').wait_for()
    thoughts = "".join(serve.thought("lines", step) for step in range(len(serve.LINES)))
    for share in (1000, 200, 1000):
        page.locator('[data-role="scrub"]').fill(str(share))
        if share == 1000:
            ended(page, "lines", "race")
            assert page.locator('[data-side="standard"] [data-role="reasoning"]').text_content() == thoughts
        else:
            expect(page.locator('[data-side="standard"] .sd-block')).not_to_have_count("".join(serve.LINES).count("\n"))
        for chunks, least, most, blocks in page.evaluate(CHUNKS):
            assert 1 <= least <= most <= 30
            assert chunks <= blocks / 20 + 1
    page.locator('[data-toggle="markdown"]').click()
    output = page.locator('[data-side="standard"] [data-role="output"]')
    expect(output.locator(".sd-md")).to_have_count(serve.LINES.count("\n\n") + 1)
    assert output.evaluate("node => node.childElementCount") == 2


def test_rendered_text_follows_its_end(show: Show) -> None:
    """Live Markdown shows its last line, as plain text does; who scrolls away after the end can go back to it."""
    page = show("?run=lines&how=race")
    page.locator('[data-toggle="markdown"]').click()
    page.locator('[data-mode="done"]').wait_for()
    output = page.locator('[data-side="standard"] [data-role="output"]')
    below = "box => box.scrollHeight - box.scrollTop - box.clientHeight"
    expect(output.locator(".sd-md")).to_have_count(serve.LINES.count("\n\n") + 1)
    assert output.evaluate(below) < 40 < output.evaluate("box => box.scrollHeight - box.clientHeight")
    output.evaluate("box => box.scrollTo(0, 0)")
    page.locator('[data-side="standard"] [data-action="follow"]').click()
    assert output.evaluate(below) < 40


@pytest.mark.parametrize("width", [390, 768, 2560])
def test_nothing_overflows(show: Show, width: int) -> None:
    """C13: no width scrolls sideways, not even with a word of 3,000 letters."""
    page = show("?run=odd&how=race&now=1", viewport={"width": width, "height": 900})
    page.locator('[data-mode="done"]').wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") == width
