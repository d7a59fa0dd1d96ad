"""Coming, leaving, waiting, watching: what one visitor does never costs another, and leaving frees the engines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from specdemo.core.events import Side
from tests.e2e.conftest import Visitor
from tests.e2e.site import SLOW, SLOW_SPECULATIVE, Site

Visit = Callable[..., Visitor]


@pytest.fixture(scope="module")
def wide() -> Iterator[Site]:
    """A page whose engines may run two races side by side."""
    with Site(races_at_once=2) as running:
        yield running


def asked(site: Site) -> list[tuple[str, float]]:
    """(prompt, temperature) of each chat that the standard engine was asked."""
    bodies = [body for body in site.engines[Side.STANDARD].requests if "messages" in body]
    return [(body["messages"][-1]["content"], body["temperature"]) for body in bodies]


def test_stop_means_stop(site: Site, visit: Visit) -> None:
    """Stop ends both engines' work at once; what had arrived stays, Run works again, a second Stop harms nothing (C04)."""
    site.use(SLOW, SLOW_SPECULATIVE)
    visitor = visit(site.url).open()
    visitor.run()
    site.wait_busy()
    expect(visitor.output("standard")).not_to_be_empty()
    stop = visitor.page.locator("#sd-stop")
    stop.click()
    site.wait_idle()
    expect(visitor.status).to_contain_text("Stopped")
    expect(visitor.page.locator('[data-side="standard"]')).to_have_attribute("data-state", "cancelled")
    assert visitor.text("standard").strip()
    stop.click()
    expect(visitor.page.locator("#sd-run")).to_be_enabled()
    site.use()
    visitor.run("Once more.")
    visitor.wait_finished()


def test_escape_stops_and_ctrl_enter_runs(site: Site, visit: Visit) -> None:
    """The keyboard does what the buttons do."""
    site.use(SLOW, SLOW_SPECULATIVE)
    visitor = visit(site.url).open()
    visitor.page.locator("#sd-prompt textarea").fill("By keyboard.")
    visitor.page.keyboard.press("Control+Enter")
    site.wait_busy()
    visitor.page.keyboard.press("Escape")
    site.wait_idle()
    expect(visitor.status).to_contain_text("Stopped")


@pytest.mark.parametrize("leaving", ["close", "navigate"])
def test_leaving_frees_the_engines(site: Site, visit: Visit, leaving: str) -> None:
    """A closed tab and a visitor gone elsewhere (C02) leave no engine working."""
    site.use(SLOW, SLOW_SPECULATIVE)
    visitor = visit(site.url).open()
    visitor.run()
    site.wait_busy()
    if leaving == "close":
        visitor.page.close()
    else:
        visitor.page.goto("about:blank")
    site.wait_idle()


@pytest.mark.parametrize("after_ms", [0, 5, 15, 30, 60])
def test_closing_right_after_the_click(site: Site, visit: Visit, after_ms: int) -> None:
    """C02: a tab that closes while its click is on the way leaves no run behind, whatever had reached the page by then."""
    site.use(SLOW, SLOW_SPECULATIVE)
    visitor = visit(site.url).open()
    visitor.page.locator("#sd-prompt textarea").fill("Gone at once.")
    visitor.page.evaluate("document.querySelector('#sd-run').click()")
    if after_ms:
        time.sleep(after_ms / 1000)
    visitor.page.close()
    time.sleep(0.5)  # a click that has not arrived by now will not
    deadline = time.monotonic() + 30  # the engines would answer for 100 s
    while site.services.registry.live():
        assert time.monotonic() < deadline, "a run goes on for nobody"
        time.sleep(0.02)
    site.wait_idle()


def test_reload_stops_and_finds_the_run(site: Site, visit: Visit) -> None:
    """A reload frees the engines and shows the same run again, with the text that had arrived."""
    site.use(SLOW, SLOW_SPECULATIVE)
    visitor = visit(site.url).open()
    run_id = visitor.run()
    site.wait_busy()
    expect(visitor.output("standard")).not_to_be_empty()
    visitor.page.reload()
    site.wait_idle()
    expect(visitor.page.locator('[data-side="standard"]')).to_have_attribute("data-state", "cancelled")
    assert visitor.run_id == run_id
    expect(visitor.output("standard")).not_to_be_empty()


def test_two_visitors_side_by_side(wide: Site, visit: Visit) -> None:
    """Two sessions run at the same time; neither sees the other's prompt, settings or text (C15, C16)."""
    wide.use(SLOW, SLOW_SPECULATIVE)
    first, second = visit(wide.url).open(), visit(wide.url).open()
    first.page.locator("#sd-temperature input[type=number]").fill("0.7")
    ids = [first.run("Prompt of the first."), second.run("Prompt of the second.")]
    for visitor in (first, second):
        expect(visitor.page.locator('[data-side="speculative"]')).to_have_attribute("data-state", "running")
    assert ids[0] != ids[1]
    assert second.page.locator("#sd-temperature input[type=number]").input_value() == "0"
    assert second.page.locator("#sd-prompt textarea").input_value() == "Prompt of the second."
    expect(second.page.locator('[data-role="prompt"]')).to_contain_text("Prompt of the second.")
    chats = asked(wide)
    assert [prompt for prompt, _ in chats].count("Prompt of the second.") == 1
    assert ("Prompt of the first.", 0.7) in chats
    assert ("Prompt of the second.", 0) in chats


def test_waiting_visitor_sees_the_place_and_can_leave(site: Site, visit: Visit) -> None:
    """A second run waits and says how many are ahead; light actions go on meanwhile; Stop gives up the place."""
    site.use(SLOW, SLOW_SPECULATIVE)
    first, second = visit(site.url).open(), visit(site.url).open()
    first.run()
    site.wait_busy()
    second.run("I can wait.")
    expect(second.status).to_contain_text("1 ahead")
    second.page.locator("#sd-chip-code_editing").click()
    expect(second.page.locator("#sd-prompt textarea")).not_to_have_value("I can wait.")
    second.page.locator("#sd-stop").click()
    expect(second.status).to_contain_text("Stopped")
    first.page.locator("#sd-stop").click()
    site.wait_idle()
    assert "I can wait." not in [prompt for prompt, _ in asked(site)]


def test_watching_a_run_costs_the_engines_nothing(site: Site, visit: Visit) -> None:
    """A link to a live run shows it from its beginning; the watcher can neither disturb nor stop it."""
    site.use(SLOW, SLOW_SPECULATIVE)
    starter = visit(site.url).open()
    run_id = starter.run()
    expect(starter.output("speculative")).not_to_be_empty()  # the warm-up is over
    before = len(asked(site))
    watcher = visit(site.url).open(f"?run={run_id}")
    expect(watcher.output("speculative")).not_to_be_empty()
    beginning = starter.text("speculative")[:20]
    assert watcher.text("speculative").startswith(beginning)
    watcher.page.locator("#sd-stop").click()
    watcher.page.close()
    assert len(asked(site)) == before
    # On a busy machine the run may be over by now; cancelled it may not be.
    state = starter.page.locator('[data-side="standard"]').get_attribute("data-state")
    assert state in ("running", "finished")
    starter.page.locator("#sd-stop").click()
    site.wait_idle()


def test_forgotten_run_is_said(site: Site, visit: Visit) -> None:
    """A link to a run that is gone says so and leaves a usable page."""
    visitor = visit(site.url).open("?run=nothing-here")
    expect(visitor.status).to_contain_text("no longer kept")
    visitor.run()
    visitor.wait_finished()
