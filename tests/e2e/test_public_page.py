"""A public page as its visitors see it: the place in the queue, a refusal in words, and nothing of anybody else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from specdemo.ui.quota import Allowance, Quota
from tests.e2e.conftest import Visitor
from tests.e2e.site import SLOW, SLOW_SPECULATIVE, Site

Visit = Callable[..., Visitor]


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A public page with a store that allows few runs."""
    folder: Path = tmp_path_factory.mktemp("public")
    quota = Quota(Allowance(runs_per_minute=2, open_runs=1), clock=lambda: 0.0)
    with Site(public=True, together=False, quota=quota, store=f"sqlite:///{folder}/runs.db") as site:
        yield site


def test_the_place_in_the_queue_is_shown(public: Site, visit: Visit) -> None:
    """Three visitors wait in the order in which they came, each told how many are ahead."""
    public.use(SLOW, SLOW_SPECULATIVE)
    visitors = [visit(public.url).open() for _ in range(3)]
    for number, visitor in enumerate(visitors):
        visitor.run(f"Prompt {number}.")
    expect(visitors[1].status).to_contain_text("1 ahead")
    expect(visitors[2].status).to_contain_text("2 ahead")
    visitors[0].page.locator("#sd-stop").click()
    expect(visitors[2].status).to_contain_text("1 ahead")
    public.use()


@pytest.mark.parametrize("locale, words", [("en-US", "2 runs a minute"), ("zh-CN", "每分钟最多运行 2 次")])
def test_a_refused_run_says_why(public: Site, visit: Visit, locale: str, words: str) -> None:
    """The third run in a minute is refused beside the button, in the visitor's language, and Run stays usable."""
    visitor = visit(public.url, locale=locale).open()
    for _ in range(2):
        visitor.run()
        visitor.wait_finished()
    visitor.page.locator("#sd-run").click()
    expect(visitor.status).to_have_attribute("data-kind", "error")
    expect(visitor.status).to_contain_text(words)
    visitor.page.wait_for_timeout(1000)  # the last word on the run before, if it came, would come in this time
    expect(visitor.status).to_contain_text(words)
    expect(visitor.page.locator("#sd-run")).to_be_enabled()


def test_runs_of_others_are_not_there(public: Site, visit: Visit) -> None:
    """C16: neither the list nor an address that was not shared shows one visitor's run to another."""
    ann, ben = visit(public.url).open(), visit(public.url).open()
    run_id = ann.run("A secret of Ann.")
    ann.wait_finished()
    ben.page.goto(f"{public.url}?run={run_id}")
    expect(ben.status).to_have_attribute("data-kind", "error")
    ben.page.get_by_role("tab", name="Runs").click()
    expect(ben.page.locator("#sd-runs [data-role='empty']")).to_be_visible()
    assert "A secret of Ann." not in ben.page.content()
    for part in ("events", "record", "result"):
        assert ben.context.request.get(f"{public.url}runs/{run_id}/{part}").status == 404
        assert ann.context.request.get(f"{public.url}runs/{run_id}/{part}").status == 200
