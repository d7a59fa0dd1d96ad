"""The How-it-works tab: a real run step by step, the calculator with measured points, claims beside measurements."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from specdemo.core.assess import assess
from specdemo.core.theory import expected_tokens, textbook_speedup
from specdemo.ui import recordings
from tests.e2e.conftest import Visitor
from tests.e2e.site import Site

Visit = Callable[..., Visitor]
SHIPPED = recordings.load(Path(__file__).parents[2] / "assets" / "runs")


@pytest.fixture(scope="module")
def how_site() -> Iterator[Site]:
    """A page with the shipped recordings."""
    with Site(recordings=SHIPPED) as running:
        yield running


def opened(visitor: Visitor) -> Any:
    """The tab, ready."""
    visitor.page.goto(visitor.url + "?tab=how")
    part = visitor.page.locator('[data-part="how"]')
    expect(part).to_have_attribute("data-ready", "true")
    return part


def role(part: Any, name: str) -> Any:
    return part.locator(f'[data-role="{name}"]')


def test_a_recorded_run_is_walked_by_hand(how_site: Site, visit: Visit) -> None:
    """Guess, check and keep follow each other with the record's own tokens; back and the slider lead anywhere."""
    part = opened(visit(how_site.url))
    walk, on = role(part, "walk"), part.locator('[data-do="on"]')
    role(part, "walk-run").select_option("rec-1-list")
    expect(walk).to_have_attribute("data-phase", "propose")
    guesses = role(part, "walk-propose").locator(".sd-token")
    expect(guesses).to_have_count(8)
    expect(role(part, "walk-verify").locator(".sd-token")).to_have_count(0)
    on.click()
    expect(role(part, "walk-verify").locator('[data-mark="taken"]')).to_have_count(3)
    expect(role(part, "walk-verify").locator('[data-mark="refused"]')).to_have_count(5)
    on.click()
    expect(role(part, "walk-say")).to_contain_text("large model's own choice")
    expect(role(part, "walk-keep").locator(".sd-token")).to_have_count(4)
    part.locator('[data-do="back"]').click()
    expect(walk).to_have_attribute("data-phase", "verify")
    last = role(part, "walk-range")
    last.focus()
    last.press("End")
    for _ in range(2):
        on.click()
    expect(on).to_be_disabled()
    shown = role(part, "walk-before").inner_text() + role(part, "walk-now").inner_text()
    assert assess(SHIPPED["rec-1-list"].record).speculative.text.strip().endswith(shown.strip().lstrip("…")[-40:])


def test_playing_goes_on_until_stopped(how_site: Site, visit: Visit) -> None:
    """Play walks by itself and is not read aloud step by step; pause stops it."""
    part = opened(visit(how_site.url))
    play, tally = part.locator('[data-do="play"]'), role(part, "walk-tally")
    first = tally.inner_text()
    play.click()
    expect(play).to_have_text("Pause")
    expect(role(part, "walk-say")).to_have_attribute("aria-live", "off")
    expect(tally).not_to_have_text(first)
    play.click()
    expect(play).to_have_text("Play")
    expect(role(part, "walk-say")).to_have_attribute("aria-live", "polite")


def test_the_calculator_gives_the_textbook(how_site: Site, visit: Visit) -> None:
    """The sliders' values give theory.py's numbers, by keyboard too, and the measured points are the recordings' own."""
    part = opened(visit(how_site.url))
    for name, value in (("a", "0.72"), ("k", "5"), ("c", "0.125"), ("coverage", "1")):
        part.locator(f'[data-in="{name}"]').fill(value)

    def out(name: str) -> float:
        return float(part.locator(f'[data-out="{name}"]').get_attribute("data-value"))

    assert out("tokens") == pytest.approx(expected_tokens(0.72, 5))
    assert out("textbook") == pytest.approx(textbook_speedup(0.72, 5, 0.125)) == pytest.approx(out("model"))
    part.locator('[data-in="k"]').press("ArrowRight")
    assert out("tokens") == pytest.approx(expected_tokens(0.72, 6))
    for run, recording in SHIPPED.items():
        shown = role(part, "points").locator(f'[data-run="{run}"]').get_attribute("data-value")
        assert float(shown) == assess(recording.record).speedup.decode
    role(part, "points").locator('button[data-run="rec-1-list"]').click()
    expect(part.locator('label:has([data-in="k"]) output')).to_have_text("8")
    role(part, "calc").get_by_label("batch", exact=True).check()
    expect(role(part, "calc-plot").locator("svg")).to_have_attribute("aria-label", re.compile("batch"))
    part.locator('[data-in="batch"]').fill("8")
    assert out("model") < out("textbook")


def test_the_rule_can_be_tried(how_site: Site, visit: Visit) -> None:
    """A perfect drafter is always accepted; drawing shows how close the result is to p."""
    part = opened(visit(how_site.url))
    role(part, "rule-mix").fill("0")
    expect(role(part, "rule-says")).to_contain_text("accepted with chance 100%")
    role(part, "rule-mix").fill("100")
    part.locator('[data-do="draw"]').click()
    expect(role(part, "rule-says")).to_contain_text("10,000 tokens drawn")


def test_claims_stand_beside_measurements(how_site: Site, visit: Visit) -> None:
    """Fifteen claims; each has a figure from a recording, with its run, or says that it was not measured here."""
    part = opened(visit(how_site.url))
    rows = role(part, "claims").locator("tr")
    expect(rows).to_have_count(15)
    measured = assess(SHIPPED["rec-4-code"].record).speedup.decode
    expect(part.locator('[data-claim="5"]')).to_contain_text(f"{measured:.2f}×")
    expect(part.locator('[data-claim="8"]')).to_contain_text("Not measured here.")
    link = part.locator('[data-claim="1"] a')
    assert "run=rec-1-list" in link.get_attribute("href")
    expect(role(part, "memory-now")).to_contain_text("3.0 GiB")


@pytest.mark.parametrize("width", [375, 1280])
def test_chinese_and_narrow(how_site: Site, visit: Visit, width: int) -> None:
    """A Chinese visitor on a phone reads Chinese, and nothing scrolls sideways."""
    options = {"viewport": {"width": width, "height": 800}, "is_mobile": width < 600, "locale": "zh-CN"}
    visitor = visit(how_site.url, **options)
    part = opened(visitor)
    expect(part.locator("h2")).to_have_text("投机解码如何工作")
    text = part.inner_text()
    assert not re.search(r"\{\w+\}|undefined|NaN|how_\w", text)
    assert visitor.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_without_recordings_it_says_so(visit: Visit) -> None:
    """No recording: the tab explains and claims nothing."""
    with Site() as site:
        visitor = visit(site.url)
        part = opened(visitor)
        expect(role(part, "walk")).to_be_hidden()
        expect(role(part, "walk-none")).to_contain_text("nothing to walk through")
        assert not re.search(r"\{\w+\}|undefined|NaN", part.inner_text())
        visitor.page.close()
