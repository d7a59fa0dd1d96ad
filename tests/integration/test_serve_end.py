"""How a served page ends: running runs may finish first, nobody new comes in, and a second signal cuts that short."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import httpx
import pytest

from specdemo.store.database import Database, parse
from specdemo.store.runs import RunStore
from tests.fakes.command import started
from tests.fakes.vllm import serving
from tests.integration.test_cli_serve import address

SLOW = {"reply": {"tokens": 60, "step_s": 0.05}}


@pytest.mark.parametrize("signals", [1, 2])
async def test_running_runs_may_end_first(tmp_path: Path, signals: int) -> None:
    """After SIGTERM the page is not ready and takes no run, while the one that runs goes on to its end; twice means now."""
    async with serving(SLOW) as left, serving({"k": 4, **SLOW}) as right:
        words = ("serve", "--port", "0", "--standard-url", left.base_url, "--speculative-url", right.base_url)
        async with started(tmp_path, *words, SPECDEMO_SERVER__DRAIN_S="30", SPECDEMO_LOG_FORMAT="json") as child:
            url = await address(child)
            async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as http:
                called = await http.post(
                    "/gradio_api/call/race", json={"data": ["Go.", "", 60, 0, "race", None, True, True][:8]}
                )
                event = called.json()["event_id"]
                answer = asyncio.create_task(http.get(f"/gradio_api/call/race/{event}"))
                await _begun(http)
                child.send_signal(signal.SIGTERM)
                while (await http.get("/readyz")).status_code != 503:
                    await asyncio.sleep(0.05)
                if signals == 2:
                    child.send_signal(signal.SIGTERM)
                    await asyncio.wait([answer])
                else:
                    refused = await http.post(
                        "/gradio_api/call/race", json={"data": ["No.", "", 5, 0, "race", None, True, True][:8]}
                    )
                    assert "restarted" in (await http.get(f"/gradio_api/call/race/{refused.json()['event_id']}")).text
                    assert '"finish_reason"' in (await answer).text
            _, err = await child.communicate()
    assert child.returncode == 0, err.decode()
    assert b"Traceback" not in err, err.decode().replace("\\n", "\n")
    assert (b'"outcome": "stopped"' in err) is (signals == 2)
    kept = RunStore(Database(parse(f"sqlite:///{tmp_path}/data/runs.db"))).page(None)
    assert [entry.state for entry in kept.entries] == ["finished" if signals == 1 else "cancelled"]
    if signals == 1:
        assert b'"event": "run_ended"' in err
        assert b'"outcome": "finished"' in err


async def _begun(http: httpx.AsyncClient) -> None:
    """Wait until the run is among the kept ones: it is past its warm-up then."""
    async with asyncio.timeout(40):
        while '"running":true' not in (await http.get("/runs")).text.replace(" ", ""):
            await asyncio.sleep(0.05)
