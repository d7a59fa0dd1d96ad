"""A browser, a page over scripted engines, and what a visitor does with it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.e2e.site import Site

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync",
]  # fmt: skip
PATIENCE = 60_000
LEAVING = ("AbortError", "errored out")
"""What Gradio's own client writes into the console when its page goes away in the middle of an event."""
VERDICT = re.compile("identical|near_tie|different|not_comparable|not_tested")
expect.set_options(timeout=PATIENCE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Connections are cut on purpose here; a socket cut while it connects is closed by the garbage collector only."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


@contextmanager
def launched() -> Iterator[Browser]:
    """Chromium, from SPECDEMO_TEST_CHROMIUM or the system; without one these tests have nothing to say."""
    found = os.environ.get("SPECDEMO_TEST_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if not found:
        pytest.skip("no Chromium: install one or set SPECDEMO_TEST_CHROMIUM")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One for all tests."""
    with launched() as started:
        yield started


@pytest.fixture(scope="session")
def _site() -> Iterator[Site]:
    with Site() as running:
        yield running


@pytest.fixture
def site(_site: Site) -> Site:
    """The page with its usual engines; what an earlier test left behind is stopped."""
    _site.use()
    return _site


@dataclass
class Visitor:
    """One visitor's own browser session on a page, with everything that must not happen written down."""

    context: BrowserContext
    page: Page
    url: str
    troubles: list[str] = field(default_factory=list)

    def open(self, query: str = "", *, usable: bool = True) -> Visitor:
        """Load the page and wait until it can be used."""
        self.page.goto(self.url + query)
        expect(self.page.locator("#sd-run")).to_be_enabled(enabled=usable)
        expect(self.page.locator(".sd-pill")).not_to_be_empty()
        expect(self.page.locator('[data-toggle="smooth"]')).not_to_be_empty()
        return self

    def run(self, prompt: str = "Tell me a story.") -> str:
        """Fill in the prompt, press Run, and wait until the run has an address. Returns its id."""
        before = self.run_id
        self.page.locator("#sd-prompt textarea").fill(prompt)
        self.page.locator("#sd-run").click()
        self.page.wait_for_function(
            "old => { const now = new URL(location.href).searchParams.get('run'); return now && now !== old; }",
            arg=before, timeout=PATIENCE,
        )  # fmt: skip
        return self.run_id

    @property
    def run_id(self) -> str:
        """The run that the address names, or nothing."""
        found: str = self.page.evaluate("new URL(location.href).searchParams.get('run') || ''")
        return found

    @property
    def status(self) -> Any:
        """The line beside the Run button."""
        return self.page.locator("#sd-status .sd-status")

    def output(self, side: str) -> Any:
        """One side's text element."""
        return self.page.locator(f'[data-side="{side}"] [data-role="output"]')

    def text(self, side: str) -> str:
        """One side's text as the document holds it."""
        found: str = self.output(side).evaluate("node => node.textContent")
        return found

    def wait_finished(self) -> None:
        """Wait until the run is over and drawn to the end."""
        expect(self.status).to_have_attribute("data-kind", "done")
        expect(self.page.locator('[data-role="verdict"]')).to_have_attribute("data-verdict", VERDICT)

    def number(self, name: str, side: str | None = None) -> float | None:
        """A shown number's raw value."""
        within = f'[data-side="{side}"] ' if side else ""
        raw = self.page.locator(f'{within}[data-metric="{name}"]').first.get_attribute("data-value")
        return float(raw) if raw else None


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Visitor]]:
    """Make visitors of an address; afterwards none of them may have seen an error or asked a third party."""
    visitors: list[Visitor] = []

    def arrive(url: str, **options: Any) -> Visitor:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, "locale": "en-US", **options})
        page = context.new_page()
        visitor = Visitor(context, page, url)
        page.on("pageerror", lambda error: visitor.troubles.append(f"page error: {error}"))
        page.on("console", lambda m: visitor.troubles.append(f"console: {m.text}") if m.type == "error" else None)
        context.on(
            "request",
            lambda r: (
                visitor.troubles.append(f"third party: {r.url}")
                if not r.url.startswith(("http://127.0.0.1:", "https://127.0.0.1:", "data:", "blob:"))
                else None
            ),
        )
        page.on("response", lambda r: visitor.troubles.append(f"{r.status} {r.url}") if r.status >= 400 else None)
        visitors.append(visitor)
        return visitor

    yield arrive
    troubles = [trouble for visitor in visitors for trouble in visitor.troubles]
    for visitor in visitors:
        visitor.context.close()
    assert [trouble for trouble in troubles if not any(noise in trouble for noise in LEAVING)] == []
