"""``specdemo serve``, ``config`` and ``doctor`` as child processes."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
from pathlib import Path

import httpx
import pytest

from specdemo.settings import described
from tests.fakes.command import specdemo, started
from tests.fakes.vllm import serving


async def address(child: asyncio.subprocess.Process) -> str:
    """Where the page is, from the line that serve prints."""
    assert child.stderr is not None
    async with asyncio.timeout(90):
        async for line in child.stderr:
            found = re.search(rb"specdemo: (http://\S+)", line)
            if found:
                return found[1].decode()
    raise AssertionError("serve ended without telling its address")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_page_answers_and_ends(tmp_path: Path, number: signal.Signals) -> None:
    """C24: hosted, behind a proxy variable, without GPU or vLLM, the page answers and a signal ends it with 0."""
    more = {"SPACE_ID": "a/b", "HTTP_PROXY": "http://127.0.0.1:9", "SPECDEMO_ENGINE__PYTHON": str(tmp_path / "none")}
    async with started(tmp_path, "serve", "--host", "127.0.0.1", "--port", "0", **more) as child:
        url = await address(child)
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            page = await client.get(url)
        child.send_signal(number)
        _, err = await child.communicate()

    assert page.status_code == 200
    assert child.returncode == 0, err.decode()


async def test_taken_port(tmp_path: Path) -> None:
    """A taken port is one sentence and exit code 2."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        result = await specdemo(tmp_path, "serve", "--port", port, "--engines", "replay")

    assert result.code == 2
    assert port in result.err
    assert "Traceback" not in result.err


async def test_config(tmp_path: Path) -> None:
    """config prints every setting with its origin, as a table, as JSON and as README's table."""
    (tmp_path / "specdemo.toml").write_text("[server]\nport = 4242\n")
    words = ["config", "--set", "engine.k=3", "--model", "some/model"]
    table = await specdemo(tmp_path, *words, SPECDEMO_ENGINE__DTYPE="float32")
    document = await specdemo(tmp_path, *words, "--json", SPECDEMO_ENGINE__DTYPE="float32")
    markdown = await specdemo(tmp_path, "config", "--markdown")
    rows = {row["name"]: (row["value"], row["origin"]) for row in document.document["settings"]}

    assert (rows["server.port"], rows["engine.dtype"]) == ((4242, "specdemo.toml"), ("float32", "environment"))
    assert (rows["engine.k"], rows["engine.model"]) == ((3, "command line"), ("some/model", "command line"))
    assert list(rows) == [entry.name for entry in described()]
    assert "4242" in table.out
    assert markdown.out.count("\n") == len(rows) + 2


async def test_doctor(tmp_path: Path) -> None:
    """doctor prints its findings with mends, as text and as one JSON document, and looks at attached engines."""
    async with serving() as left, serving({"k": 4}) as right:
        flags = ("--standard-url", left.base_url, "--speculative-url", right.base_url)
        text, document = await asyncio.gather(
            specdemo(tmp_path, "doctor", *flags), specdemo(tmp_path, "doctor", "--json", *flags)
        )
    found = document.document

    assert found["schema"] == 1
    assert found["engines"] == []
    assert all({"name", "level", "detail", "mend"} <= set(finding) for finding in found["findings"])
    assert (text.code, document.code) in ((0, 0), (1, 1))
    assert found["findings"][0]["name"] in text.out


async def test_help_tells_exit_codes(tmp_path: Path) -> None:
    """Each command explains itself, and race documents its exit codes."""
    results = await asyncio.gather(
        *(specdemo(tmp_path, name, "--help") for name in ("race", "serve", "doctor", "config"))
    )

    assert [result.code for result in results] == [0, 0, 0, 0]
    for words in ("a real difference", "an engine failed", "130"):
        assert words in results[0].out
