"""A page that is killed in the middle of a run, and the page that comes after it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx

from tests.fakes.command import started
from tests.fakes.vllm import serving
from tests.integration.test_cli_serve import address

REPLY: dict[str, Any] = {"tokens": 2000, "step_s": 0.05}
FORM = ["Cut off.", "", 2000, 0.0, "race", None, False, True]
"""All parameters of the endpoint: plain HTTP has no defaults, only Gradio's own client fills them in."""


def client(url: str) -> httpx.AsyncClient:
    """A program that talks to the page."""
    return httpx.AsyncClient(trust_env=False, timeout=60, base_url=url)


async def listed(http: httpx.AsyncClient) -> list[dict[str, Any]]:
    """The page's list of runs."""
    found: list[dict[str, Any]] = (await http.get("/runs")).json()["runs"]
    return found


async def test_killed_page_keeps_its_run(tmp_path: Path) -> None:
    """SIGKILL leaves the run as far as its last checkpoint; the next page lists it as interrupted and plays it."""
    async with serving({"reply": REPLY}) as left, serving({"k": 4, "reply": REPLY}) as right:
        flags = ("--standard-url", left.base_url, "--speculative-url", right.base_url)
        words = ("serve", "--host", "127.0.0.1", "--port", "0", *flags)
        async with started(tmp_path, *words) as child, client(await address(child)) as http:
            asked = await http.post("/gradio_api/call/race_stream", json={"data": FORM})
            event = asked.json()["event_id"]
            async with http.stream("GET", f"/gradio_api/call/race_stream/{event}"):
                sizes: set[int] = set()
                while len(sizes) < 2:  # the header, then events: two checkpoints
                    sizes |= {run["size"] for run in await listed(http) if run["size"]}
                    await asyncio.sleep(0.2)
                assert [run["running"] for run in await listed(http)] == [True]
                child.kill()
                await child.wait()
        async with started(tmp_path, *words) as child:
            async with client(await address(child)) as http:
                [run] = await listed(http)
                assert (run["state"], run["running"], run["title"]) == ("interrupted", False, "Cut off.")
                record = (await http.get(f"/runs/{run['id']}/record")).json()
                frames = (await http.get(f"/runs/{run['id']}/events?replay=1")).text
            child.terminate()
            await child.communicate()
    kinds = [event["type"] for event in record["events"]]
    assert kinds.count("tokens") > 10
    assert kinds[-2:] == ["failed", "failed"]
    last = json.loads(frames.strip().split("\n\n")[-1].split("data: ", 1)[1])
    assert last["done"]
