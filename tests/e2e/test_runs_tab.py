"""Kept runs in a browser: found after a restart, opened as recordings, shared by link, compared, brought in, deleted."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from specdemo.core.codec import to_json
from specdemo.core.run import RunRecord
from tests.e2e.conftest import Visitor
from tests.e2e.site import SLOW, SLOW_SPECULATIVE, Site
from tests.golden import frames_run as golden

Visit = Callable[..., Visitor]


@pytest.fixture
def address(tmp_path: Path) -> str:
    """The store of one test, for as many starts of the page as it likes."""
    return f"sqlite:///{tmp_path}/runs.db"


def raced(visitor: Visitor, prompt: str) -> str:
    """One run to its end."""
    run_id = visitor.run(prompt)
    visitor.wait_finished()
    return run_id


def runs_tab(visitor: Visitor) -> None:
    """Go to the Runs tab and wait for its list."""
    visitor.page.locator("#sd-tab-runs-button").click()
    expect(visitor.page.locator('[data-part="runs"] [data-role="whose"]')).not_to_be_empty()


def test_a_run_outlives_the_page(address: str, visit: Visit) -> None:
    """After a restart the list still has the run; opening it plays it in the race's panes, marked as recorded."""
    with Site(store=address) as site:
        # Slow enough that no pause of a busy machine lets a whole answer arrive at once: that would have no rate.
        site.use(
            {"reply": {"tokens": 60, "step_s": 0.02}},
            {"k": 4, "reply": {"tokens": 60, "step_s": 0.03, "bursts": [1, 3, 5, 2]}},
        )
        visitor = visit(site.url).open()
        run_id = raced(visitor, "A prompt to find again.")
        said = visitor.text("speculative")
        visitor.page.close()
    with Site(store=address) as site:
        visitor = visit(site.url).open()
        runs_tab(visitor)
        row = visitor.page.locator(f'[data-run="{run_id}"]')
        expect(row.locator('[data-field="title"]')).to_have_text("A prompt to find again.")
        expect(row.locator('[data-field="how"]')).to_contain_text("k = 4")
        expect(row.locator('[data-field="verdict"]')).to_have_text("identical")
        expect(row.locator('[data-field="speedup"]')).to_have_attribute("data-value", re.compile("[1-9]"))
        row.locator('[data-do="open"]').click()
        expect(visitor.page.locator("#sd-arena")).to_be_visible()
        expect(visitor.page.locator('[data-role="badge"]')).to_have_attribute("data-badge", "recorded")
        expect(visitor.page.locator('[data-role="replay"]')).to_be_visible()
        visitor.page.locator('[data-speed="instant"]').click()
        expect(visitor.output("speculative")).to_have_text(said)
        assert visitor.run_id == run_id
        visitor.page.reload()
        expect(visitor.page.locator('[data-role="badge"]')).to_have_attribute("data-badge", "recorded")
        expect(visitor.page.locator('[data-role="verdict"]')).to_have_attribute("data-verdict", "identical")
        visitor.page.close()


def test_private_until_shared(address: str, visit: Visit) -> None:
    """A link opens nothing for another visitor until its run is shared; then it plays there, and can be closed again."""
    with Site(store=address, together=False) as site:
        owner, stranger = visit(site.url).open(), visit(site.url)
        run_id = raced(owner, "Not for everybody.")
        stranger.open(f"?run={run_id}")
        expect(stranger.status).to_contain_text("private")
        runs_tab(stranger)
        expect(stranger.page.locator('[data-part="runs"] [data-role="empty"]')).to_be_visible()
        owner.page.locator("#sd-status button[data-share]").click()
        expect(owner.page.locator("#sd-status button[data-share]")).to_contain_text("copied")
        stranger.open(f"?run={run_id}")
        expect(stranger.page.locator('[data-role="badge"]')).to_have_attribute("data-badge", "recorded")
        expect(stranger.page.locator('[data-role="prompt"]')).to_contain_text("Not for everybody.")
        runs_tab(owner)
        share = owner.page.locator(f'[data-run="{run_id}"] [data-do="share"]')
        expect(share).to_have_attribute("aria-pressed", "true")
        share.click()
        expect(share).to_have_attribute("aria-pressed", "false")
        stranger.open(f"?run={run_id}")
        expect(stranger.status).to_contain_text("private")
        for visitor in (owner, stranger):
            visitor.page.close()


def test_search_compare_delete(address: str, visit: Visit) -> None:
    """Search narrows the list; two ticked runs stand side by side with what differs; delete asks once more."""
    with Site(store=address) as site:
        visitor = visit(site.url).open()
        first = raced(visitor, "About lighthouses.")
        visitor.page.locator("#sd-mode label", has_text="Measure").click()
        second = raced(visitor, "About rivers.")
        runs_tab(visitor)
        page = visitor.page
        rows = page.locator('[data-role="rows"] tr')
        expect(rows).to_have_count(2)
        page.locator('[data-role="search"]').fill("lighthouse")
        expect(rows).to_have_count(1)
        page.locator('[data-role="search"]').fill("")
        expect(rows).to_have_count(2)
        for run_id in (first, second):
            page.locator(f'[data-run="{run_id}"] [data-do="pick"]').check()
        page.locator('[data-do="compare"]').click()
        compared = page.locator('[data-role="compare"]')
        expect(compared).to_contain_text("asked different things")
        expect(compared.locator("table").nth(1)).to_contain_text("mode")
        expect(compared.locator("table").nth(0)).to_contain_text("About rivers.")
        compared.locator('[data-do="close"]').click()
        delete = page.locator(f'[data-run="{first}"] [data-do="delete"]')
        delete.click()
        expect(delete).to_have_attribute("data-sure", "true")
        expect(rows).to_have_count(2)
        # The list is drawn anew, as it is every few seconds while something runs: the question still stands.
        page.locator('[data-role="search"]').fill("lighthouse")
        expect(rows).to_have_count(1)
        expect(delete).to_have_attribute("data-sure", "true")
        delete.click()
        expect(rows).to_have_count(0)
        page.locator('[data-role="search"]').fill("")
        expect(rows).to_have_count(1)
        page.close()


def test_two_configurations_stand_side_by_side(address: str, visit: Visit) -> None:
    """Two recorded runs of different methods and k: the list tells them apart, and comparing shows what differs."""
    folder = Path(__file__).parents[2] / "assets" / "runs"
    with Site(store=address) as site:
        visitor = visit(site.url).open()
        runs_tab(visitor)
        page = visitor.page
        rows = page.locator('[data-role="rows"] tr')
        for count, name in enumerate(("4-code.json", "7-draft-model.json"), start=1):
            page.locator('[data-part="runs"] [data-role="file"]').set_input_files(folder / name)
            expect(rows).to_have_count(count)
        for method, speedup in (("ngram, k = 8", 4.589), ("draft_model, k = 3", 1.161)):
            row = rows.filter(has_text=method)
            expect(row).to_have_count(1)
            shown = row.locator('[data-field="speedup"]')
            assert float(shown.get_attribute("data-value") or 0) == pytest.approx(speedup, abs=0.01)
            row.locator('[data-do="pick"]').check()
        page.locator('[data-do="compare"]').click()
        compared = page.locator('[data-role="compare"]')
        heads = compared.locator("table").nth(0).locator("thead th[scope=col]")
        expect(heads.nth(0)).to_contain_text("ngram, k = 8")
        expect(heads.nth(1)).to_contain_text("draft_model, k = 3")

        def cells(name: str, table: int) -> list[str]:
            line = compared.locator("table").nth(table).locator("tbody tr", has=page.get_by_text(name, exact=True))
            expect(line).to_have_count(1)
            return line.locator("td").all_inner_texts()

        assert cells("speculative.method", 1) == ["ngram", "draft_model"]
        assert cells("speculative.k", 1) == ["8", "3"]
        assert cells("Decode speedup", 0)[:2] == ["4.59×", "1.16×"]
        first, second = cells("Speculative: Acceptance rate", 0)[:2]
        assert first.endswith("%")
        assert second.endswith("%")
        assert first != second
        page.close()


def test_import_and_download(address: str, visit: Visit, tmp_path: Path) -> None:
    """A file from another machine is listed and played as such, its markup shown as text; a bad one is refused."""
    document = to_json(RunRecord(golden.HEADER, golden.EVENTS))
    document["header"]["title"] = "<img src=x onerror=alert(1)>"
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(document), encoding="utf-8")
    bad.write_text('{"schema": 99, "header": {}, "events": []}', encoding="utf-8")
    with Site(store=address) as site:
        visitor = visit(site.url).open()
        runs_tab(visitor)
        page = visitor.page
        said = page.locator('[data-part="runs"] [data-role="said"]')
        page.locator('[data-part="runs"] [data-role="file"]').set_input_files(good)
        expect(said).to_contain_text("Imported: <img")
        row = page.locator('[data-role="rows"] tr')
        expect(row.locator('[data-field="title"]')).to_have_text("<img src=x onerror=alert(1)>")
        expect(row.locator('[data-field="marks"]')).to_contain_text("not measured here")
        with page.expect_download() as caught:
            row.locator('[data-do="download"]').click()
        again = json.loads(Path(caught.value.path()).read_text(encoding="utf-8"))
        assert again["events"] == document["events"]
        row.locator('[data-do="open"]').click()
        expect(page.locator('[data-role="badge"]')).to_contain_text("not measured here")
        expect(visitor.status).to_contain_text("not measured here")
        runs_tab(visitor)
        page.locator('[data-part="runs"] [data-role="file"]').set_input_files(bad)
        expect(said).to_contain_text("newer specdemo")
        visitor.troubles[:] = [trouble for trouble in visitor.troubles if "422" not in trouble]
        page.close()


def test_do_not_keep(address: str, visit: Visit) -> None:
    """With the switch set a run is listed as not kept, and is gone after a restart."""
    with Site(store=address) as site:
        visitor = visit(site.url).open()
        visitor.page.locator("#sd-sampling > button").click()
        visitor.page.locator("#sd-unkept input").check()
        raced(visitor, "Forget me.")
        expect(visitor.status).to_contain_text("not kept")
        runs_tab(visitor)
        expect(visitor.page.locator('[data-role="rows"] tr [data-field="marks"]')).to_contain_text("not kept")
        visitor.page.close()
    with Site(store=address) as site:
        visitor = visit(site.url).open()
        runs_tab(visitor)
        expect(visitor.page.locator('[data-part="runs"] [data-role="empty"]')).to_be_visible()
        visitor.page.close()


def test_live_by_link_through_a_proxy_that_cuts(visit: Visit) -> None:
    """A shared live run is watched through a proxy that breaks every stream: each resumes where it was, no token twice."""
    reply = {"tokens": 250, "step_s": 0.03}
    with Site(cutting=4) as site:
        site.use({"reply": reply}, {"k": 4, "reply": {**reply, "bursts": [1, 3, 2]}})
        starter, watcher = visit(site.url).open(), visit(site.url)
        run_id = starter.run("Cut me.")
        watcher.open(f"?run={run_id}")
        for visitor in (starter, watcher):
            for side in ("standard", "speculative"):
                expect(visitor.page.locator(f'[data-side="{side}"]')).to_have_attribute("data-state", "finished")
        live = site.services.live(run_id)
        assert live is not None
        said = "".join(getattr(event, "text", "") for event in live.log.since(0) if event.side == "standard")
        for visitor in (starter, watcher):
            expect(visitor.output("standard")).to_have_text(said)
        assert site.cutter.cuts >= 2
        assert any(where not in ("", "after=-1") for where in site.cutter.resumed)
        for visitor in (starter, watcher):
            visitor.troubles.clear()  # broken streams are what this test is about
            visitor.page.close()


@pytest.mark.parametrize("width", [390, 1280])
def test_no_width_overflows(address: str, visit: Visit, width: int) -> None:
    """Long words and long lists of marks stay within a phone's width."""
    with Site(store=address) as site:
        visitor = visit(site.url, viewport={"width": width, "height": 800}, is_mobile=width < 600).open()
        raced(visitor, "x" * 300)
        runs_tab(visitor)
        expect(visitor.page.locator('[data-role="rows"] tr')).to_have_count(1)
        assert visitor.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        visitor.page.close()


def test_chinese(address: str, visit: Visit) -> None:
    """The tab speaks the visitor's language."""
    with Site(store=address) as site:
        visitor = visit(site.url, locale="zh-CN").open()
        raced(visitor, "讲一个故事。")
        visitor.page.locator("#sd-tab-runs-button").click()
        expect(visitor.page.locator('[data-role="rows"] [data-field="verdict"]')).to_have_text("完全相同")
        expect(visitor.page.locator("#sd-tab-runs-button")).to_have_text("运行记录")
        visitor.page.close()


def test_watching_a_slow_live_run_from_the_list(address: str, visit: Visit) -> None:
    """A run that is still going is listed as such and opens live."""
    with Site(store=address) as site:
        site.use(SLOW, SLOW_SPECULATIVE)
        starter = visit(site.url).open()
        run_id = starter.run("Still going.")
        expect(starter.output("standard")).not_to_be_empty()
        watcher = visit(site.url).open()
        runs_tab(watcher)
        row = watcher.page.locator(f'[data-run="{run_id}"]')
        expect(row.locator('[data-field="marks"]')).to_contain_text("running")
        row.locator('[data-do="open"]').click()
        expect(watcher.output("standard")).not_to_be_empty()
        expect(watcher.page.locator('[data-side="standard"]')).to_have_attribute("data-state", "running")
        starter.page.locator("#sd-stop").click()
        site.wait_idle()
        for visitor in (starter, watcher):
            visitor.page.close()
