"""From engine event to pixel, in Chromium: specdemo's page beside the usual Gradio way, in the same run.

    PYTHONPATH=. python benchmarks/page_stream.py [--tokens 500,2000,8000] [--viewers 50] [--out FILE]

Every token carries its number. A script in the page notes when the token with the highest number is in the document and
after the frame that paints it; the server notes when its engine said it. The delay is the difference: same machine,
same clock. Rows: "raw" is specdemo without its pacer, "smooth" with it (it adds at most 0.3 s by design), "naive" a
generator that yields both whole texts to gr.Markdown at each token.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import CDPSession, Page, sync_playwright

HERE = Path(__file__).parent
SIDES = ("standard", "speculative")
CHROMIUM = os.environ.get("SPECDEMO_CHROMIUM", "/usr/bin/chromium")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync",
]  # fmt: skip
WATCH = (HERE / "page_watch.js").read_text()
TARGET_MS = 60.0
PACER_MS = 300.0


@dataclass(frozen=True, slots=True)
class Row:
    """One run of one way. Delays in ms over all tokens of both sides."""

    way: str
    tokens: int
    seen: int
    p50: float
    p95: float
    worst: float
    behind_s: float
    long_tasks: int
    long_ms: float
    busy_s: float
    kilobytes: float
    server_cpu_s: float
    engine_s: float


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def get(url: str) -> dict[str, Any]:
    """One JSON answer."""
    with urllib.request.urlopen(url, timeout=30) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


@contextmanager
def serving(kind: str) -> Iterator[str]:
    """A server process of its own; its address."""
    port = free_port()
    child = subprocess.Popen([sys.executable, str(HERE / "page_feed.py"), kind, str(port)])
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(url, timeout=2).close()
                break
            except OSError:
                time.sleep(0.25)
        yield url
    finally:
        child.terminate()
        child.wait(20)


def percentile(values: list[float], share: float) -> float:
    """The value that this share of all does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def delays(said: dict[str, list[float]], seen: dict[str, list[list[float]]]) -> tuple[list[float], int]:
    """ms from each token's event to the first frame that shows it, and how many tokens were shown at all."""
    found: list[float] = []
    for side in SIDES:
        shown = -1
        for at, index in seen[side]:
            found += [at - 1000 * moment for moment in said[side][shown + 1 : int(index) + 1]]
            shown = max(shown, int(index))
    return found, len(found)


def task_seconds(session: CDPSession) -> float:
    """Time that the page's main thread has been busy."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(m["value"] for m in metrics if m["name"] == "TaskDuration"))


def follow(page: Page, way: str, url: str, tokens: int) -> Row:
    """Open the page, let the engines speak, and wait until everything is on the screen."""
    run = get(f"{url}/bench/start?tokens={tokens}")["run"]
    if way == "naive":
        page.goto(url, timeout=120_000)
        page.wait_for_selector("#naive-run", timeout=120_000)
    else:
        page.add_init_script(
            f"localStorage.setItem('specdemo.display', '{{\"smooth\": {str(way == 'smooth').lower()}}}')"
        )
        page.goto(f"{url}/?run={run}", timeout=120_000)
        page.wait_for_selector('[data-side="standard"][data-state="running"]', timeout=120_000)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    session.send("Network.enable")
    received = [0]
    session.on("Network.dataReceived", lambda event: received.__setitem__(0, received[0] + event["dataLength"]))
    page.evaluate(WATCH, {"naive": way == "naive"})
    page.wait_for_timeout(500)
    busy, received[0] = task_seconds(session), 0
    if way == "naive":
        page.click("#naive-run")
        page.wait_for_timeout(300)
    cpu = get(f"{url}/bench/go")["cpu"]
    deadline = time.monotonic() + tokens / 100 + 240
    while time.monotonic() < deadline:
        page.wait_for_timeout(500)
        if page.evaluate(f"Object.values(window.seen).every((s) => s.at(-1)?.[1] === {tokens - 1})"):
            break
    told = get(f"{url}/bench/said")
    seen, long_tasks = page.evaluate("[window.seen, window.longTasks]")
    found, shown = delays(told["said"], seen)
    last_said = max(told["said"][side][-1] for side in SIDES)
    last_seen = max(seen[side][-1][0] for side in SIDES) / 1000
    return Row(
        way=way,
        tokens=tokens,
        seen=shown,
        p50=percentile(found, 0.5),
        p95=percentile(found, 0.95),
        worst=max(found),
        behind_s=last_seen - last_said,
        long_tasks=len(long_tasks),
        long_ms=sum(long_tasks),
        busy_s=task_seconds(session) - busy,
        kilobytes=received[0] / 1000,
        server_cpu_s=told["cpu"] - cpu,
        engine_s=last_said - min(told["said"][side][0] for side in SIDES),
    )


async def watch_alone(url: str, run: str) -> list[tuple[float, dict[str, Any]]]:
    """One viewer on a raw socket: every frame with the wall time at which it came."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=2**24)
    writer.write(
        f"GET /runs/{run}/events HTTP/1.1\r\nHost: {host}:{port}\r\nAccept: text/event-stream\r\n\r\n".encode()
    )
    frames = []
    while True:
        line = await reader.readline()
        if not line:
            break
        if line.startswith(b"data: "):
            frame = json.loads(line[6:])
            frames.append((time.time(), frame))
            if frame.get("done"):
                break
    writer.close()
    return frames


async def crowd(url: str, viewers: int, tokens: int) -> dict[str, float]:
    """Many viewers of one live run: delay of each event at each viewer, and the server's CPU."""
    run = (await asyncio.to_thread(get, f"{url}/bench/start?tokens={tokens}"))["run"]
    tasks = [asyncio.create_task(watch_alone(url, run)) for _ in range(viewers)]
    await asyncio.sleep(2)
    cpu = (await asyncio.to_thread(get, f"{url}/bench/go"))["cpu"]
    seen = await asyncio.gather(*tasks)
    told = await asyncio.to_thread(get, f"{url}/bench/said")
    found: list[float] = []
    complete = 0
    for frames in seen:
        counts = dict.fromkeys(SIDES, 0)
        for at, frame in frames:
            for event in frame["ev"]:
                if isinstance(event, list):  # tokens: [side, ms, text]
                    side = SIDES[event[0]]
                    found.append(at - told["said"][side][counts[side]])
                    counts[side] += 1
        complete += all(count == tokens for count in counts.values())
    span = max(told["said"][side][-1] for side in SIDES) - min(told["said"][side][0] for side in SIDES)
    return {
        "viewers": viewers,
        "complete": complete,
        "cores": (told["cpu"] - cpu) / span,
        "p50": 1000 * percentile(found, 0.5),
        "p95": 1000 * percentile(found, 0.95),
        "worst": 1000 * max(found),
    }


COLUMNS = (("way", 8), ("tokens", 8), ("shown", 8), ("p50 ms", 9), ("p95 ms", 9), ("max ms", 9), ("behind s", 10),
           ("long", 6), ("long ms", 9), ("busy s", 8), ("kB", 8), ("cpu s", 8))  # fmt: skip
HEAD = "".join(f"{name:>{width}}" for name, width in COLUMNS)


def line(row: Row) -> str:
    """One table row; tokens are of both sides."""
    return (
        f"{row.way:>8}{2 * row.tokens:8}{row.seen:8}{row.p50:9.0f}{row.p95:9.0f}{row.worst:9.0f}{row.behind_s:10.2f}"
        f"{row.long_tasks:6}{row.long_ms:9.0f}{row.busy_s:8.1f}{row.kilobytes:8.0f}{row.server_cpu_s:8.1f}"
    )


def judgement(rows: list[Row]) -> list[str]:
    """The targets of the design, each with what was measured."""
    raw = {row.tokens: row for row in rows if row.way == "raw"}
    said = []
    for row in rows:
        if row.way != "naive" and row.tokens <= 2000:
            limit = TARGET_MS + (PACER_MS if row.way == "smooth" else 0)
            verdict = "met" if row.p95 <= limit else "MISSED"
            said.append(
                f"{row.way}, {row.tokens} tokens a side: p95 {row.p95:.0f} ms, target {limit:.0f} ms: {verdict}"
            )
    if 2000 in raw and 8000 in raw:
        share = raw[8000].p95 / raw[2000].p95
        said.append(f"raw, 8,000 against 2,000: {share:.2f}x, target 1.3x: {'met' if share <= 1.3 else 'MISSED'}")
    counts = [row.long_tasks for row in rows if row.way != "naive"]
    if counts:
        met = "met" if sum(counts) == 0 else "MISSED"
        said.append(f"long tasks over 50 ms on specdemo's page: {sum(counts)}, target 0: {met}")
    for tokens in sorted({row.tokens for row in rows}):
        both = {row.way: row for row in rows if row.tokens == tokens}
        if {"naive", "raw"} <= both.keys():
            n, r = both["naive"], both["raw"]
            said.append(
                f"naive against raw at {tokens}: p95 {n.p95 / r.p95:.1f}x, main thread {n.busy_s / r.busy_s:.1f}x, "
                f"bytes {n.kilobytes / max(r.kilobytes, 1):.1f}x, server CPU {n.server_cpu_s / r.server_cpu_s:.1f}x"
            )
    return said


def main() -> None:
    """Measure, print, and keep."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--tokens", default="500,2000,8000")
    ask.add_argument("--ways", default="raw,smooth,naive")
    ask.add_argument("--skip", default="", help="rows to leave out, such as 8000:smooth")
    ask.add_argument("--viewers", type=int, default=50)
    ask.add_argument("--out", type=Path)
    options = ask.parse_args()
    rows: list[Row] = []
    text = [f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; 100 events/s a side", HEAD]
    print("\n".join(text), flush=True)
    with serving("ours") as our_url, serving("naive") as naive_url:
        with sync_playwright() as playwright:
            for tokens in map(int, filter(None, options.tokens.split(","))):
                for way in options.ways.split(","):
                    if f"{tokens}:{way}" in options.skip.split(","):
                        continue
                    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
                    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
                    rows.append(follow(page, way, naive_url if way == "naive" else our_url, tokens))
                    browser.close()
                    text.append(line(rows[-1]))
                    print(text[-1], flush=True)
        if options.viewers:
            c = asyncio.run(crowd(our_url, options.viewers, 2000))
            text.append(
                f"{c['viewers']} viewers of one live run, 2,000 tokens a side: {c['complete']} saw all of it, server "
                f"{c['cores']:.2f} cores, delay p50 {c['p50']:.0f} / p95 {c['p95']:.0f} / max {c['worst']:.0f} ms"
            )
            print(text[-1], flush=True)
    said = judgement(rows)
    print("\n".join(said))
    text += said
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
