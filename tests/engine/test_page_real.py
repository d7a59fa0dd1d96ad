"""The real command, the real engines and a real browser: what the page shows is what the engines said and the log holds."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect

from specdemo.core.events import Side
from tests.e2e.conftest import Visitor, launched, visit  # noqa: F401 - a fixture
from tests.engine.conftest import REPETITIVE, RealPair
from tests.fakes.command import ROOT, environment

pytestmark = pytest.mark.engine

Visit = Callable[..., Visitor]
TOKENS = 48


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """For this module only: the browser's driver keeps an event loop, which tests with one of their own would meet."""
    with launched() as browser:
        yield browser


@dataclass(frozen=True, slots=True)
class Raced:
    """A run made on the page: where the page is, the run's id, and its document."""

    url: str
    id: str
    document: dict[str, Any]


@pytest.fixture(scope="module")
def page(real_pair: RealPair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """``specdemo serve`` attached to both engines; its address."""
    folder = tmp_path_factory.mktemp("page")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    urls = ("--standard-url", real_pair.url(Side.STANDARD), "--speculative-url", real_pair.url(Side.SPECULATIVE))
    command = [sys.executable, str(ROOT / "app.py"), "--port", str(port), "--engines", "attached", *urls]
    with subprocess.Popen(command, cwd=folder, env=environment(folder), stderr=subprocess.PIPE, text=True) as child:
        assert child.stderr is not None
        try:
            told = next((line for line in child.stderr if re.search("specdemo: http://", line)), "")
            assert told, "the page did not start"
            yield f"http://127.0.0.1:{port}/"
        finally:
            child.terminate()
            child.communicate(timeout=60)


@pytest.fixture(scope="module")
def raced(page: str, browser: Browser) -> Iterator[Raced]:
    """One prompt raced from the page, as a visitor does it."""
    context = browser.new_context(locale="en-US")
    visitor = Visitor(context, context.new_page(), page).open()
    length = visitor.page.locator("#sd-max-tokens input[type=number]")
    length.fill(str(TOKENS))
    length.press("Tab")
    run = visitor.run(REPETITIVE)
    visitor.wait_finished()
    yield Raced(page, run, httpx.get(f"{page}runs/{run}/result", timeout=10).json())
    context.close()


@pytest.mark.parametrize("smooth", [True, False])
def test_the_page_shows_what_the_engines_said(raced: Raced, visit: Visit, smooth: bool) -> None:  # noqa: F811
    """Opened by its link, smoothed or not: text character for character, and every number digit for digit."""
    visitor = visit(raced.url).open()
    if not smooth:
        visitor.page.locator('[data-toggle="smooth"]').click()
    visitor.open(f"?run={raced.id}")
    verdict = visitor.page.locator('[data-role="verdict"]')
    expect(verdict).to_have_attribute("data-verdict", raced.document["verdict"]["class"])
    for side in Side:
        said = raced.document["sides"][side.value]
        expect(visitor.output(side.value)).to_have_text(said["text"], use_inner_text=False)
        assert visitor.text(side.value) == said["text"]
        for name in ("ttft_s", "tpot_s", "output_tokens", "e2el_s", "decode_tokens_per_s"):
            assert visitor.number(name, side.value) == said["metrics"][name], name
    assert visitor.number("speedup.decode") == raced.document["speedup"]["decode"]
    spec = raced.document["sides"]["speculative"]["metrics"]
    for name in ("rate", "mean_length", "accepted"):
        assert visitor.number(f"acceptance.{name}") == spec["acceptance"][name], name


def test_the_engines_said_the_same_and_drafts_were_accepted(raced: Raced) -> None:
    """The run behind the page: equal token ids on both sides, and acceptance exact for this request."""
    standard, speculative = (raced.document["sides"][side.value] for side in Side)
    assert standard["token_ids"] == speculative["token_ids"]
    assert 0 < len(standard["token_ids"]) <= TOKENS
    assert raced.document["verdict"]["class"].startswith("identical")
    accepted = speculative["metrics"]["acceptance"]
    assert accepted["source"] == "request"
    assert accepted["accepted"] > 0
