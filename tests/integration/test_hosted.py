"""C24: started as a hosting service starts it (app.py, its variables, a proxy that is dead, no GPU, no vLLM)."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import psutil

from tests.fakes.command import ROOT, environment
from tests.fakes.vllm import serving

DEAD = "http://127.0.0.1:9"
PROXIES = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"), DEAD)


@asynccontextmanager
async def hosted(folder: Path, **more: str) -> AsyncIterator[tuple[psutil.Process, int]]:
    """``python app.py`` as on a Space; yields the process and the port that the host chose."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    space = {"SPACE_ID": "who/what", "SYSTEM": "spaces", "GRADIO_SHARE": "true", "GRADIO_SERVER_PORT": str(port)}
    none = {"SPECDEMO_ENGINE__PYTHON": str(folder / "none")}
    child = await asyncio.create_subprocess_exec(
        sys.executable, str(ROOT / "app.py"), cwd=folder, env=environment(folder, **space, **PROXIES, **none, **more),
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert child.stderr is not None
    try:
        async with asyncio.timeout(90):
            async for line in child.stderr:
                if re.search(rb"specdemo: http://", line):
                    break
        yield psutil.Process(child.pid), port
    finally:
        child.terminate()
        await child.communicate()


async def said_on_arrival(http: httpx.AsyncClient) -> str:
    """What the page tells a visitor who has just come."""
    listeners = (await http.get("/config")).json()["dependencies"]
    arrived = next(one["id"] for one in listeners if one["api_name"] == "arrived")
    body = {"data": [], "fn_index": arrived, "session_hash": "s", "event_data": None}
    assert (await http.post("/gradio_api/queue/join", json=body)).status_code == 200
    return (await http.get("/gradio_api/queue/data", params={"session_hash": "s"})).text


async def test_without_engines(tmp_path: Path) -> None:
    """It listens where the host expects it and tries nothing else, says why there are no engines, and plays recorded runs."""
    async with hosted(tmp_path) as (process, port):
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60) as http:
            assert (await http.get("/")).status_code == 200
            arrival = await said_on_arrival(http)
            recordings = (await http.get("/recordings")).json()
            played = (await http.get(f"/runs/{recordings[0]['id']}/events?replay=1")).text
            ready = (await http.get("/readyz")).json()
        listening = {one.laddr for one in process.net_connections("inet") if one.status == psutil.CONN_LISTEN}
        outward = [
            one.raddr for one in process.net_connections("inet")
            if one.status in (psutil.CONN_ESTABLISHED, psutil.CONN_SYN_SENT) and one.laddr.port != port
        ]  # fmt: skip
    assert [tuple(one) for one in listening] == [("0.0.0.0", port)]
    assert outward == []
    assert ready == {"status": "ready", "mode": "replay"}
    assert "no executable file" in arrival
    assert recordings[0]["id"] in arrival
    frames = [json.loads(line[6:]) for line in played.splitlines() if line.startswith("data: ")]
    assert frames[-1]["done"]


async def test_with_engines_elsewhere(tmp_path: Path) -> None:
    """Two attached engines on this machine are reached although a dead proxy is set, and a run ends with its numbers."""
    async with serving({"reply": {"tokens": 12}}) as left, serving({"k": 4, "reply": {"tokens": 12}}) as right:
        urls = {
            "SPECDEMO_STANDARD__BASE_URL": left.base_url.replace("127.0.0.1", "localhost"),
            "SPECDEMO_SPECULATIVE__BASE_URL": right.base_url,
        }
        async with (
            hosted(tmp_path, **urls) as (_, port),
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60) as http,
        ):
            body = {"prompt": "hello", "max_tokens": 12}
            event = (await http.post("/gradio_api/call/v2/race", json=body)).json()["event_id"]
            said = (await http.get(f"/gradio_api/call/race/{event}")).text
    found = json.loads(next(line[6:] for line in said.splitlines() if line.startswith("data: [")))[0]
    assert {side["state"] for side in found["sides"].values()} == {"finished"}
    assert {side["metrics"]["output_tokens"] for side in found["sides"].values()} == {12}
