"""``python -m tools.pictures``: the pictures of docs/img that show recorded runs, taken anew.

The page is started without engines, in a data folder of its own with the recorded runs and the sample benchmark; their
numbers are what is shown. The animation is the recorded timeline frame by frame (scrubbed, not filmed): as fast as the
run was. Pictures of states that no healthy pair gets into (split, failure, loading, queue, refused) are not made here.
A font with Chinese letters must be there (Debian: fonts-noto-cjk).
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "img"
SAMPLE = ROOT / "docs" / "sample-report.jsonl"
VALIDATION = ROOT / "docs" / "sample-validation.json"
COLOURS = 128
TALL = 1650
"""Pixels of a long tab that a picture shows."""
FRAME_S = 0.1
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")


@contextmanager
def page_of(folder: Path) -> Iterator[str]:
    """The page without engines, its data in ``folder``; its address."""
    for kind, file in (("benchmarks", SAMPLE), ("validations", VALIDATION)):
        if file.is_file():
            (folder / kind).mkdir()
            shutil.copy(file, folder / kind / f"sample{file.suffix}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SPECDEMO_")}
    command = [sys.executable, str(ROOT / "app.py"), "--port", str(port), "--engines", "replay"]
    environment = kept | {"SPECDEMO_DATA_DIR": str(folder)}
    with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as child:
        try:
            assert child.stderr is not None  # noqa: S101 - asked for above
            if not any(re.search("specdemo: http://", line) for line in child.stderr):
                raise RuntimeError("The page did not start.")
            yield f"http://127.0.0.1:{port}/"
        finally:
            child.terminate()
            child.communicate(timeout=60)


def keep(picture: bytes, name: str, box: tuple[int, int, int, int] | None = None) -> None:
    """Write a picture, or the ``box`` of it, with few colours: a page has few, and the file is a third as large."""
    image = Image.open(io.BytesIO(picture)).convert("RGB").crop(box)
    image.quantize(COLOURS).save(IMAGES / f"{name}.png", optimize=True)
    print(name, flush=True)


def shown(page: Page, address: str) -> Page:
    """A recorded run, played to its end."""
    page.goto(address)
    expect(page.locator('[data-role="verdict"]')).to_have_attribute(
        "data-verdict", re.compile("identical|near_tie|not_")
    )
    scrub(page, 1000)
    page.wait_for_timeout(800)
    return page


def scrub(page: Page, place: int) -> None:
    """To that place of the recording, in thousandths, with no focus left to be drawn."""
    slider = page.locator('[data-role="scrub"]')
    slider.fill(str(place))
    slider.blur()


def views(browser: Browser, url: str, wanted: Callable[[str], bool]) -> None:
    """The race in four looks."""
    desk: dict[str, Any] = {"viewport": {"width": 1280, "height": 900}, "device_scale_factor": 1.5, "locale": "en-US"}
    narrow = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "locale": "en-US"}
    looks: dict[str, dict[str, Any]] = {
        "desktop": desk,
        "dark": desk | {"color_scheme": "dark"},
        "phone": narrow,
        "chinese": {"viewport": {"width": 1280, "height": 900}, "locale": "zh-CN"},
    }
    for name, look in looks.items():
        if wanted(name):
            page = browser.new_page(**look)
            run = "rec-2-chinese" if name == "chinese" else "rec-4-code"
            keep(shown(page, f"{url}?run={run}").screenshot(full_page=name == "chinese"), name)
            page.close()


def tabs(browser: Browser, url: str, wanted: Callable[[str], bool]) -> None:
    """Runs, one of them opened, the gallery, a benchmark, a validation, and one pass of a run."""
    page = browser.new_page(viewport={"width": 1280, "height": 860}, locale="en-US")
    page.goto(f"{url}?tab=runs")
    file = page.locator('[data-part="runs"] [data-role="file"]')
    expect(page.locator('[data-part="runs"] [data-role="whose"]')).not_to_be_empty()
    for number, run in enumerate(sorted((ROOT / "assets" / "runs").glob("*.json")), 1):
        file.set_input_files(run)
        expect(page.locator('[data-role="rows"] tr')).to_have_count(number)
    if wanted("runs"):
        page.wait_for_timeout(500)
        keep(page.screenshot(), "runs")
    if wanted("shared"):
        page.locator('[data-role="rows"] tr', has_text="code").locator('[data-do="open"]').first.click()
        scrub(page, 700)
        page.wait_for_timeout(800)
        keep(page.screenshot(), "shared")
    if wanted("gallery"):
        shown(page, f"{url}?run=rec-6-no-drafts")
        box = page.locator("#sd-recordings-box")
        expect(box.locator("[data-open]").first).to_be_visible()
        keep(box.screenshot(), "gallery")
    for tab, field in (("bench", "#sd-bench-head .lead"), ("validate", "#sd-validate-result")):
        if wanted(tab):
            page.goto(f"{url}?tab={tab}")
            page.locator(f"#sd-{tab}-kept input").click()
            page.get_by_role("option").first.click()
            expect(page.locator(field)).not_to_be_empty()
            page.wait_for_timeout(1500)
            keep(page.locator(f"#sd-{tab}").screenshot(), tab, (0, 0, 1230, TALL))
    page.close()
    if wanted("how"):
        page = browser.new_page(viewport={"width": 1120, "height": 1065}, locale="en-US", color_scheme="dark")
        page.goto(f"{url}?tab=how")
        page.wait_for_timeout(1500)
        for _ in range(3 * 2 + 2):  # two passes of guess, check and keep, and the third to its end
            page.locator('[data-part="how"] [data-do="on"]').click()
        keep(page.screenshot(), "how", (0, 110, 1120, 1065))


def animation(browser: Browser, url: str) -> None:
    """A recorded run as it went, both sides together, at its true speed."""
    page = browser.new_page(viewport={"width": 1240, "height": 900}, locale="en-US")
    shown(page, f"{url}?run=rec-1-list")
    page.locator('[data-toggle="smooth"]').click()
    ends = page.locator('[data-role="clock"]').inner_text()
    seconds = float(re.findall(r"[\d.]+", ends)[-1])
    count = round(seconds / FRAME_S)
    frames = []
    for number in range(count + 1):
        scrub(page, round(1000 * number / count))
        page.wait_for_timeout(120)
        picture = page.locator("#sd-stage").screenshot()
        image = Image.open(io.BytesIO(picture)).convert("RGB")
        frames.append(image.crop((0, 0, image.width, min(image.height, TALL // 2))))
    palette = frames[-1].quantize(COLOURS)
    flat = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    pauses = [int(1000 * FRAME_S)] * count + [3000]
    flat[0].save(IMAGES / "race.gif", save_all=True, append_images=flat[1:], duration=pauses, loop=0, optimize=True)
    print("race", flush=True)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only these, such as desktop; all when not given")
    names = set(parser.parse_args().names)
    expect.set_options(timeout=60_000)
    chromium = os.environ.get("SPECDEMO_TEST_CHROMIUM") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder, page_of(Path(folder)) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        views(browser, url, lambda name: not names or name in names)
        tabs(browser, url, lambda name: not names or name in names)
        if not names or "race" in names:
            animation(browser, url)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
