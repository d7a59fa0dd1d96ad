"""C21: keys and passwords through whole commands: refused, timed out, exported and logged, they are nowhere to be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.fakes.command import Outcome, specdemo, started
from tests.fakes.vllm import serving
from tests.integration.test_cli_serve import address

KEY, PASSWORD = "sk-test-123", "s3cret-pw"
SECRETS = (KEY, PASSWORD, "dXNlcjpzM2NyZXQtcHc=")  # the last: user and password as a header carries them
TOLD = (f"Wrong key {KEY}: Bearer {KEY}", f"Wrong password {PASSWORD}: Basic {SECRETS[2]}")
"""What either engine answers: the very secret that it was sent, in every form."""


def echo(number: int) -> dict[str, Any]:
    """A refusal that repeats the secret."""
    return {"status": 401, "body": {"error": {"message": TOLD[number], "code": 401}}}


def silent(_: int) -> dict[str, Any]:
    """A stream that stops for good, so that the request times out."""
    return {"tokens": 20, "step_s": 0.001, "fault": {"kind": "silence", "after": 3}}


def breaks(number: int) -> dict[str, Any]:
    """An error inside the stream that repeats the secret."""
    body = {"error": {"message": TOLD[number]}}
    return {"tokens": 20, "step_s": 0.001, "fault": {"kind": "error", "after": 3, "body": body}}


def works(_: int) -> dict[str, Any]:
    """Nothing goes wrong."""
    return {"tokens": 5}


def nowhere(folder: Path, *results: Outcome) -> None:
    """None of the secrets is in what the commands said, nor in any file that they left."""
    texts = {f"stdout {n}": one.out for n, one in enumerate(results)}
    texts |= {f"stderr {n}": one.err for n, one in enumerate(results)}
    texts |= {str(path): path.read_bytes().decode("latin-1") for path in folder.rglob("*") if path.is_file()}
    assert [(where, secret) for where, text in texts.items() for secret in SECRETS if secret in text] == []


@pytest.mark.parametrize("reply", [echo, silent, breaks, works])
async def test_a_run_and_its_export(tmp_path: Path, reply: Callable[[int], dict[str, Any]]) -> None:
    """One engine with a key, one with a password in its address: neither is in output, log, stored run, nor on stdout."""
    kept = tmp_path / "run.json"
    async with serving({"reply": reply(0)}) as left, serving({"k": 4, "reply": reply(1)}) as right:
        result = await specdemo(
            tmp_path, "race", "hello", "--standard-url", left.base_url, "--no-warmup", "--json", "--save", str(kept),
            "--speculative-url", right.base_url.replace("://", f"://user:{PASSWORD}@"), "--log-level", "debug",
            "--set", "limits.stall_s=1", SPECDEMO_STANDARD__API_KEY=KEY,
        )  # fmt: skip
        sent = [headers.get("authorization") for server in (left, right) for headers in server.headers]
    assert f"Bearer {KEY}" in sent
    assert f"Basic {SECRETS[2]}" in sent
    assert kept.is_file(), result.err
    assert len(result.document["sides"]) == 2
    nowhere(tmp_path, result)


async def test_nobody_answers(tmp_path: Path) -> None:
    """An engine that is not there, and an address that cannot be one, are told without the password in them."""
    gone = await specdemo(
        tmp_path, "race", "hello", "--no-warmup", "--standard-url", f"http://user:{PASSWORD}@127.0.0.1:9",
        "--speculative-url", f"http://user:{PASSWORD}@127.0.0.1:19", "--log-level", "debug",
        SPECDEMO_STANDARD__API_KEY=KEY,
    )  # fmt: skip
    bad = await specdemo(
        tmp_path, "doctor", "--standard-url", f"http://user:{PASSWORD}@host:99999/?key={KEY}",
        "--speculative-url", f"ftp://user:{PASSWORD}@host",
    )  # fmt: skip
    shown = await specdemo(
        tmp_path, "config", "--standard-url", f"http://user:{PASSWORD}@host:8000", "--set", f"standard.api_key={KEY}"
    )
    assert gone.code != 0
    assert bad.code != 0
    assert shown.code == 0
    nowhere(tmp_path, gone, bad, shown)


async def test_a_page_and_its_processes(tmp_path: Path) -> None:
    """A page over such engines: secrets from the environment are in no process's command line, log, page or stored run."""
    async with serving({"reply": echo(0)}) as left, serving({"k": 4, "reply": echo(1)}) as right:
        secrets = {
            "SPECDEMO_STANDARD__API_KEY": KEY,
            "SPECDEMO_STANDARD__BASE_URL": left.base_url,
            "SPECDEMO_SPECULATIVE__BASE_URL": right.base_url.replace("://", f"://user:{PASSWORD}@"),
        }
        words = ("serve", "--host", "127.0.0.1", "--port", "0", "--log-level", "debug")
        async with started(tmp_path, *words, **secrets) as child:
            url = await address(child)
            own = psutil.Process(child.pid)
            lines = [" ".join(one.cmdline()) for one in (own, *own.children(recursive=True))]
            pages = await _pages(url)
            child.terminate()
            out, err = await child.communicate()
    nowhere(tmp_path, Outcome(0, out.decode() + "".join(pages), err.decode() + "".join(lines)))
    assert any("•" in page or "***" in page for page in pages)


async def _pages(url: str) -> list[str]:
    """The page, its engines' state, and a run that both engines refuse, with its documents."""
    import httpx

    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as http:
        found = [(await http.get(path)).text for path in ("/", "/config", "/engines", "/metrics")]
        body = {"prompt": "hello", "max_tokens": 8}
        event = (await http.post("/gradio_api/call/v2/race", json=body)).json()["event_id"]
        found.append((await http.get(f"/gradio_api/call/race/{event}")).text)
        listed = (await http.get("/runs")).json()
        for entry in listed["runs"]:
            for part in ("events?replay=1", "record", "result"):
                found.append((await http.get(f"/runs/{entry['id']}/{part}")).text)
    assert listed["runs"], found[-1]
    return found
