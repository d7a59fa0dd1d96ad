"""C17: whatever address a visitor sends in, the page's server goes nowhere: not inside, not outside, with one answer to all."""

from __future__ import annotations

from typing import Any

import pytest
from gradio import processing_utils

from tests.unit.ui.pair import world
from tests.unit.ui.test_public import listeners, post, visiting

ADDRESSES = (
    "http://169.254.169.254/latest/meta-data/", "http://127.0.0.1:7860/", "http://10.0.0.5/", "http://[::1]/",
    "http://[::ffff:127.0.0.1]/", "http://0x7f000001/", "http://localhost/", "http://127.0.0.1.nip.io/",
    "http://example.com/redirects-inside", "https://example.com/huge",
)  # fmt: skip


def file_at(url: str, **more: Any) -> dict[str, Any]:
    """A file as Gradio's own client would name one that lies elsewhere."""
    return {"path": url, "url": url, "orig_name": "x.txt", "meta": {"_type": "gradio.FileData"}, **more}


@pytest.mark.parametrize("public", [True, False])
async def test_a_file_elsewhere_is_not_fetched(monkeypatch: pytest.MonkeyPatch, public: bool) -> None:
    """A file named by its address, in any field of any handler, is refused before anything is resolved or connected."""
    asked: list[str] = []

    async def get(url: str, *_: Any, **__: Any) -> Any:
        asked.append(url)
        raise ConnectionError(url)

    monkeypatch.setattr(processing_utils, "async_ssrf_protected_get", get)
    place = world(public=public)
    async with visiting(place) as http:
        found = [listener for listener in await listeners(http) if listener["inputs"]]
        assert len(found) > 3
        for listener in found:
            answers = set()
            for number, url in enumerate(ADDRESSES):
                sent = [file_at(url), *[[file_at(url)]] * (len(listener["inputs"]) - 1)]
                said = await post(http, listener["id"], sent, session=f"s{listener['id']}-{number}")
                assert url not in said
                answers.add(_worded(said))
            assert len(answers) == 1, (listener["api_name"], answers)
    assert asked == []
    assert all(engine.asked == [] for engine in place.engines.values())


def _worded(said: str) -> str:
    """What an answer says of its end, without ids and times."""
    last = [line for line in said.splitlines() if "process_completed" in line]
    return last[-1].split('"output"', 1)[-1].split('"duration"', 1)[0] if last else said
