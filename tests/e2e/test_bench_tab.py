"""The Benchmark and Validate tabs as a visitor uses them, over scripted engines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from specdemo.runs.kept import benchmarks, validations
from tests.e2e.conftest import Visitor
from tests.e2e.site import Site

pytestmark = pytest.mark.e2e
Visit = Callable[..., Visitor]
STANDARD: dict[str, Any] = {"reply": {"tokens": 24, "step_s": 0.004}}
SPECULATIVE: dict[str, Any] = {"k": 4, "reply": {"tokens": 24, "step_s": 0.005, "bursts": [1, 3, 5, 2]}}
TABS = {"bench": re.compile("Benchmark|基准测试"), "validate": re.compile("Validate|采样验证")}


@pytest.fixture(scope="module")
def _bench_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Path]]:
    data = tmp_path_factory.mktemp("data")
    with Site(data=data) as running:
        yield running, data


@pytest.fixture
def bench(_bench_site: tuple[Site, Path]) -> tuple[Site, Path]:
    """A page with the tabs, and the folder that keeps its results."""
    _bench_site[0].use(STANDARD, SPECULATIVE)
    return _bench_site


def to_tab(visitor: Visitor, name: str) -> None:
    """Open a tab; on a narrow screen it stands in the menu of those that find no room."""
    page = visitor.page
    button = page.locator(f"#sd-tab-{name}-button")
    expect(page.locator("#sd-tab-race-button")).to_be_visible()
    if button.is_visible():
        button.click()
    else:
        page.locator("#sd-tabs .overflow-menu > button").first.click()
        page.locator("#sd-tabs .overflow-dropdown button", has_text=TABS[name]).click()
    expect(visitor.page.locator(f"#sd-{name}-start")).to_be_visible()


def small(visitor: Visitor) -> None:
    """Two prompts of two workloads, one at a time."""
    page = visitor.page
    to_tab(visitor, "bench")
    boxes = page.locator("#sd-bench-workloads label")
    for index in range(2, 7):
        boxes.nth(index).locator("input").uncheck()
    page.locator("#sd-bench-prompts input[type=number]").fill("2")
    page.locator("#sd-bench-prompts input[type=number]").press("Tab")
    expect(page.locator("#sd-bench-plan")).to_contain_text("requests")


def progress(visitor: Visitor) -> Any:
    """The line that tells how far it is."""
    return visitor.page.locator("#sd-bench-progress")


def test_a_benchmark_from_the_page(bench: tuple[Site, Path], visit: Visit) -> None:
    """Plan, start, progress, verdict first, drawings, the same numbers in the files; it is kept where commands look."""
    site, data = bench
    visitor = visit(site.url).open()
    page = visitor.page
    small(visitor)
    page.locator("#sd-bench-estimate").click()
    expect(page.locator("#sd-bench-plan")).to_contain_text("at the pace of these engines")
    page.locator("#sd-bench-start").click()
    expect(page.locator("#sd-bench-start")).to_be_disabled()
    expect(page.locator("#sd-bench-stop")).to_be_enabled()
    expect(progress(visitor)).to_contain_text("Done: all requests were made.")
    expect(page.locator("#sd-bench-head .lead")).to_contain_text("as fast as standard decoding")
    expect(page.locator("#sd-bench-plot-workloads svg.marks")).to_be_visible()
    expect(page.locator("#sd-bench-result table").first).to_be_visible()
    kept = benchmarks(data)[0]
    answer = page.request.get(f"{site.url}benchmarks/{kept.name}/report.json")
    estimate = answer.json()["summary"]["suite"]["speedup"]["estimate"]
    expect(page.locator("#sd-bench-head .lead")).to_contain_text(f"{estimate:.2f}x")
    with page.expect_download() as download:
        page.locator("#sd-bench-head .sd-file").first.click()
    assert download.value.suggested_filename == f"specdemo-{kept.name}.html"


def test_it_survives_a_reload_and_belongs_to_its_starter(bench: tuple[Site, Path], visit: Visit) -> None:
    """Loaded again it is still there; another visitor sees it, can neither stop it nor race, but can look around."""
    site, _ = bench
    site.use({"reply": {"tokens": 24, "step_s": 0.03}}, SPECULATIVE)
    owner = visit(site.url).open()
    small(owner)
    owner.page.locator("#sd-bench-start").click()
    expect(progress(owner)).to_contain_text("requests, concurrency 1")
    owner.page.locator("#sd-bench-pause").click()
    expect(progress(owner)).to_contain_text("Paused")
    owner.page.reload()
    to_tab(owner, "bench")
    expect(progress(owner)).to_contain_text("Paused")
    expect(owner.page.locator("#sd-bench-pause")).to_have_text("Go on")
    other = visit(site.url).open()
    other.page.locator("#sd-prompt textarea").fill("hello")
    other.page.locator("#sd-run").click()
    expect(other.status).to_contain_text("A benchmark has the engines for itself")
    to_tab(other, "bench")
    expect(progress(other)).to_contain_text("Somebody else started this")
    expect(other.page.locator("#sd-bench-stop")).to_be_disabled()
    expect(other.page.locator("#sd-bench-start")).to_be_disabled()
    owner.page.locator("#sd-bench-stop").click()
    expect(progress(owner)).to_contain_text("Stopped:")
    expect(owner.page.locator("#sd-bench-resume")).to_be_visible()
    site.wait_idle()


def test_a_dead_engine_offers_to_go_on(bench: tuple[Site, Path], visit: Visit) -> None:
    """The engine dies in the middle: what was measured is shown, and Resume completes it with a living one."""
    site, data = bench
    good, dying = SPECULATIVE["reply"], {**SPECULATIVE["reply"], "fault": {"kind": "die", "after": 1}}
    site.use(STANDARD, {"k": 4, "replies": [*[good] * 6, dying]})
    visitor = visit(site.url).open()
    small(visitor)
    visitor.page.locator("#sd-bench-start").click()
    expect(progress(visitor)).to_contain_text("The speculative engine is gone")
    expect(visitor.page.locator("#sd-bench-resume")).to_be_visible()
    kept = benchmarks(data)[0]
    site.revive(SPECULATIVE)
    visitor.page.locator("#sd-bench-resume").click()
    expect(progress(visitor)).to_contain_text("Done: all requests were made.")
    assert benchmarks(data)[0].name == kept.name
    expect(visitor.page.locator("#sd-bench-resume")).to_be_hidden()


def test_own_prompts_are_previewed(bench: tuple[Site, Path], visit: Visit, tmp_path: Path) -> None:
    """Counts, shapes and refused lines before anything runs; a go-ahead is needed; text is never markup."""
    site, _ = bench
    file = tmp_path / "own.jsonl"
    file.write_text('{"prompt":"<b>one</b>"}\n{"prompt":\n{"messages":[{"role":"user","content":"two"}]}\n')
    visitor = visit(site.url).open()
    page = visitor.page
    to_tab(visitor, "bench")
    page.locator("#sd-bench-source label").nth(1).click()
    expect(page.locator("#sd-bench-preview")).to_contain_text("64 MiB a file")
    page.locator("#sd-bench-file input[type=file]").set_input_files(str(file))
    expect(page.locator("#sd-bench-preview")).to_contain_text("2 of 3 rows can be used")
    expect(page.locator("#sd-bench-preview")).to_contain_text("line 2: not valid JSON")
    expect(page.locator("#sd-bench-preview pre").first).to_have_text("<b>one</b>")
    page.locator("#sd-bench-start").click()
    expect(progress(visitor)).to_contain_text("allow the run without these lines")
    page.locator("#sd-bench-accept input").check()
    expect(page.locator("#sd-bench-plan")).to_contain_text("requests")
    page.locator("#sd-bench-start").click()
    expect(page.locator("#sd-bench-head .lead")).to_contain_text("as fast as standard decoding")
    bad = tmp_path / "sheet.jsonl"
    bad.write_bytes(b"PK\x03\x04 and more")
    page.locator('#sd-bench-file [aria-label="Clear"], #sd-bench-file [aria-label="Remove this file"]').first.click()
    page.locator("#sd-bench-file input[type=file]").set_input_files(str(bad))
    expect(page.locator("#sd-bench-preview")).to_contain_text("Excel workbook")


def test_a_validation_from_the_page(bench: tuple[Site, Path], visit: Visit) -> None:
    """Power before, rounds and drawings while it runs, a verdict in the end, a file that is kept."""
    site, data = bench
    visitor = visit(site.url).open()
    page = visitor.page
    to_tab(visitor, "validate")
    expect(page.locator("#sd-validate-plan")).to_contain_text("enough to certify")
    page.locator("#sd-validate-draws input[type=number]").fill("4")
    page.locator("#sd-validate-draws input[type=number]").press("Tab")
    expect(page.locator("#sd-validate-plan")).to_contain_text("never certify")
    page.locator("#sd-validate-start").click()
    expect(page.locator("#sd-validate-progress")).to_contain_text("Done: 4 of 4 rounds")
    expect(page.locator("#sd-validate-result article")).to_have_attribute("data-verdict", "invalid")
    expect(page.locator("#sd-validate-plot-temperature svg.marks")).to_be_visible()
    name = validations(data)[0].name
    found = page.request.get(f"{site.url}validations/{name}/report.json").json()
    assert found["rounds"] == 4


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_tabs_on_a_phone(bench: tuple[Site, Path], visit: Visit, lang: str) -> None:
    """No sideways scrolling, nothing untranslated, with a result open."""
    site, data = bench
    visitor = visit(site.url, viewport={"width": 390, "height": 844}, has_touch=True)
    visitor.open(f"?lang={lang}")
    page = visitor.page
    for name in ("bench", "validate"):
        to_tab(visitor, name)
        if name == "bench" and benchmarks(data):
            page.locator("#sd-bench-kept input").click()
            page.locator("[role=option]").first.click()
            expect(page.locator("#sd-bench-head .lead")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert "__i18n__" not in page.locator("body").inner_text()
