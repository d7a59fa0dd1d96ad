"""Real tabs among the visitors: Chromium opens the page, runs, reloads in the middle, closes, and sees no error."""

from __future__ import annotations

import asyncio
import os
import shutil
from itertools import count

from tools.soak.ledger import Ledger

LEAVING = ("AbortError", "errored out", "ERR_ABORTED", "ERR_CONNECTION")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


async def browse(url: str, until: float, ledger: Ledger) -> None:
    """Rounds of a tab until the time is over; without Chromium there are none."""
    found = os.environ.get("SPECDEMO_TEST_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if not found:
        return
    from playwright.async_api import Error, async_playwright  # noqa: PLC0415 - only where there is a browser

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=found, args=FLAGS)
        for number in count():
            if asyncio.get_running_loop().time() > until:
                break
            page = await browser.new_page()
            page.on("pageerror", lambda error: _heard(str(error), ledger))
            try:
                await page.goto(url)
                run = page.locator("#sd-run:not([disabled])")
                await run.wait_for(timeout=60_000)
                await page.locator("#sd-prompt textarea").fill(f"tab {number}")
                await run.click()
                if number % 3 == 1:
                    await page.locator('[data-side="standard"] [data-role="output"]:not(:empty)').wait_for()
                    await page.reload()
                if number % 3 != 2:
                    await page.locator('[data-role="verdict"][data-verdict]').wait_for(timeout=60_000)
                ledger.tabs += 1
            except Error as error:
                ledger.fault(f"browser tab, round {number}: {str(error).splitlines()[0]}")
            await page.close()
        await browser.close()


def _heard(text: str, ledger: Ledger) -> None:
    if not any(noise in text for noise in LEAVING):
        ledger.fault(f"error in a browser tab: {text[:200]}")
