"""What the server says is said in Chinese too, wherever it comes from; an engine's own words stay quoted."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest

from specdemo.compose.deployment import GET_ENGINES
from specdemo.core.prompt import Sampling, chat
from specdemo.engines import notes
from specdemo.engines.arrivals import ClumpWatch, LagMark, LagMonitor
from specdemo.engines.http_errors import in_band_error, status_error, translate
from specdemo.engines.safety import refusal
from specdemo.engines.wire.completions import ServerError
from specdemo.errors import SpecDemoError
from specdemo.runs.race import PLAIN_OFFER
from specdemo.runs.request import check_request
from specdemo.runs.warmup import SENTENCE
from specdemo.ui.i18n import tell

WHERE = "http://127.0.0.1:8000"
HAN = re.compile(r"[\u4e00-\u9fff]")


def failures() -> Iterator[str]:
    """What a visitor can meet when an engine is missing, dying or refusing."""
    for kind in (httpx.ConnectError, httpx.ConnectTimeout, httpx.ReadTimeout, httpx.ReadError, httpx.WriteError,
                 httpx.RemoteProtocolError, httpx.PoolTimeout):  # fmt: skip
        yield str(translate(kind("x"), WHERE))
    for status in (400, 401, 404, 429, 500, 502, 503):
        for body in (b'{"error":{"message":"Too hot, and too late."}}', b""):
            yield str(status_error(status, body, None, WHERE))
    for tokens, code in ((5, None), (1, 500), (0, 503), (0, 500), (0, 400)):
        yield str(in_band_error(ServerError("EngineCore died", code), tokens, WHERE))
    yield from (notes.RETRIED, notes.NO_IDS, notes.IDS_LOST, notes.NO_USAGE, notes.NOT_STREAMED, notes.NO_REASON)
    yield from (SENTENCE, PLAIN_OFFER.format(side="standard"), GET_ENGINES)
    for sampling in (Sampling(temperature=1.0, min_p=0.1), Sampling(temperature=1.0)):
        yield str(refusal(sampling, speculating=True, device="cpu"))
    yield str(refusal(Sampling(temperature=1.0, seed=1), speculating=False, device="cpu"))
    for busy in (False, True):
        clumps = ClumpWatch(lambda busy=busy: busy)  # type: ignore[misc]
        yield next(said for i in range(9) if (said := clumps.feed(float(i), 8)) is not None)
    lag = LagMonitor()
    lag.record(0.1, times=5)
    yield str(lag.message(LagMark(0, 0)))


@pytest.mark.parametrize("english", list(failures()))
def test_failures_are_said_in_chinese(english: str) -> None:
    """Each of our own sentences about an engine has its Chinese; what the engine said stands in it unchanged."""
    chinese = tell("zh", english)
    assert HAN.search(chinese), english
    assert tell("en", english) == english
    for own in ("Too hot, and too late", "EngineCore died", WHERE):
        assert (own in chinese) == (own in english)


BAD: list[tuple[str, Sampling]] = [
    ("", Sampling()), (" \n\t", Sampling()), ("x" * 40_000, Sampling()), ("half \ud83d", Sampling()),
    ("x", Sampling(max_tokens=0)), ("x", Sampling(max_tokens=9999)), ("x", Sampling(temperature=3.0)),
    ("x", Sampling(temperature=0.001)), ("x", Sampling(top_p=0.0)), ("x", Sampling(top_k=-1)), ("x", Sampling(seed=2**70)),
    ("x", Sampling(stop=("",))),
]  # fmt: skip


@pytest.mark.parametrize("text, sampling", BAD)
def test_refusals_are_said_in_chinese(text: str, sampling: Sampling) -> None:
    """Every reason for which a prompt is not sent reads in both languages."""
    with pytest.raises(SpecDemoError) as caught:
        check_request(chat(text, sampling=sampling), prompt_chars=32_000, max_tokens=2048)
    assert HAN.search(tell("zh", str(caught.value)))


def test_other_texts_stay() -> None:
    """An engine's own sentence is nobody's to translate."""
    assert tell("zh", "CUDA error: an illegal memory access was encountered") == (
        "CUDA error: an illegal memory access was encountered"
    )
