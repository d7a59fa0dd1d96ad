"""One engine, ready to be asked: streams, probes and facts over HTTP. Fulfils ``runs.ports.Engine``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Any

import httpx

from specdemo.core.engine import EngineFacts, EngineSpec
from specdemo.core.events import Event, ScoredToken, Side, SpecCounters, TopToken
from specdemo.core.prompt import Prompt
from specdemo.core.sentences import sentence
from specdemo.engines import answers, requests
from specdemo.engines.arrivals import LagMonitor
from specdemo.engines.counters import CounterPoll
from specdemo.engines.facts import facts
from specdemo.engines.limits import Limits
from specdemo.engines.session import Session
from specdemo.engines.stream import Exchange
from specdemo.engines.url import BaseUrl, parse_base_url
from specdemo.engines.wire.completions import Split
from specdemo.engines.wire.exposition import Exposition, parse
from specdemo.engines.wire.fields import excerpt
from specdemo.errors import EngineError, EngineProtocolError, EngineRejected, EngineUnavailable

Clock = Callable[[], float]
Splitter = Callable[[], Split]
"""Called once a stream: gives the function that cuts a chunk's text into the texts of its tokens."""

_LOGPROB_LADDER = (20, 5, 2, 1)
"""Candidates to ask for; engines refuse more than their ``--max-logprobs``."""
_SHOWN = 5
_MISSING = frozenset({204, *range(300, 400), 403, 404, 405, 501})
"""Statuses of a route that is not there, or that a gateway does not let through."""


class VllmEngine:
    """A vLLM server, or any other OpenAI-compatible one at a lower, labelled level.

    ``base_url`` in any usual form (see ``url``); ConfigError if it is none. ``model`` None takes the first one that
    the server lists. ``spec`` is what a managed engine was started with. ``splitter``: see ``token_text``.
    ``poll_hz``: how often /metrics is read during a stream; 0 for never. ``transport`` replaces the network in tests.
    """

    def __init__(
        self,
        side: Side,
        base_url: str | BaseUrl,
        *,
        model: str | None = None,
        api_key: str | None = None,
        ca_file: Path | str | None = None,
        clock: Clock = time.monotonic,
        limits: Limits | None = None,
        spec: EngineSpec | None = None,
        splitter: Splitter | None = None,
        poll_hz: float = 2.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._side = side
        self._base = parse_base_url(base_url) if isinstance(base_url, str) else base_url
        self._model = model
        self._clock = clock
        self._limits = limits or Limits()
        self._spec = spec
        self._splitter = splitter
        self._poll_hz = poll_hz
        self._lag = LagMonitor()
        self._session = Session(
            self._base, api_key=api_key, ca_file=ca_file, clock=clock, limits=self._limits, transport=transport
        )

    @property
    def side(self) -> Side:
        """Which of the two it is."""
        return self._side

    @property
    def model(self) -> str:
        """The model's name in requests; "" until the server was asked, when none was given."""
        return self._model or ""

    @property
    def base_url(self) -> BaseUrl:
        """Where it is."""
        return self._base

    def stream(self, prompt: Prompt, *, zero: float, cache_salt: str | None = None) -> AsyncGenerator[Event, None]:
        """See ``runs.ports.Engine.stream``. Closing the iterator closes the connection, and the engine aborts."""

        async def body() -> dict[str, Any]:
            return requests.streamed(prompt, await self._resolved(), cache_salt)

        poll = CounterPoll(self._side, self.counters, self._clock, zero, self._poll_hz)
        split = self._splitter() if self._splitter is not None else None
        return Exchange(self._session, self._side, requests.path(prompt), body, zero, poll, self._lag, split).events()

    async def facts(self) -> EngineFacts:
        """What the engine says of itself. Raises EngineError if nobody answers."""
        listed = await self._models()
        entry = next((item for item in listed if item["id"] == self._model), None)
        if entry is None and self._model is not None:
            known = ", ".join(excerpt(item["id"], 80) for item in listed[:5])
            raise EngineRejected(sentence("other_model", where=self._base, model=repr(self._model), known=known))
        entry = entry or listed[0]
        self._model = str(entry["id"])
        version, scrape, info = await asyncio.gather(
            self._optional("GET", "/version"), self._scrape(), self._optional("GET", "/server_info?config_format=json")
        )
        return facts(self._side, self._base, entry, answers.version(version), scrape, info, self._spec)

    async def tokenize(self, prompt: Prompt) -> tuple[int, ...] | None:
        """Prompt token ids by the engine's own /tokenize; None if it has no such route."""
        if prompt.token_ids is not None:
            return prompt.token_ids
        body = requests.tokenized(prompt, await self._resolved())
        return answers.token_ids(await self._optional("POST", "/tokenize", body))

    async def counters(self) -> SpecCounters | None:
        """One reading of /metrics; None if there is none."""
        scrape = await self._scrape()
        return None if scrape is None else scrape.counters(self._model)

    async def healthy(self) -> bool:
        """Whether /health answers 200."""
        try:
            return (await self._session.fetch("GET", self._base.root + "/health")).status == 200
        except EngineError:
            return False

    async def candidates(self, token_ids: Sequence[int], *, wanted: Sequence[int] = ()) -> tuple[TopToken, ...]:
        """Best next tokens after ``token_ids``, best first; ``wanted`` ids beside them where the engine can."""
        model = await self._resolved()
        found = await self._probe(token_ids, model)
        missing = [token for token in wanted if token not in found]
        if missing:
            found |= await self._probe_ids(token_ids, model, missing)
        best = sorted(found.items(), key=lambda item: (-item[1], item[0]))
        kept = best[:_SHOWN] + [item for item in best[_SHOWN:] if item[0] in wanted]
        texts = await asyncio.gather(*(self._text(token, model) for token, _ in kept))
        return tuple(TopToken(token, text, value) for (token, value), text in zip(kept, texts, strict=True))

    async def score(
        self, prompt_ids: Sequence[int], output_ids: Sequence[int], *, top: int = 2
    ) -> tuple[ScoredToken, ...]:
        """Teacher-force ``output_ids`` after ``prompt_ids``: one entry per output position."""
        if not output_ids:
            return ()
        ids = [*prompt_ids, *output_ids]
        body = requests.scoring(ids, await self._resolved(), top)
        payload = await self._session.ask("POST", self._completions, body, within_s=self._limits.probe_s)
        return tuple(ScoredToken(*entry) for entry in answers.scored(payload, ids, len(prompt_ids)))

    async def aclose(self) -> None:
        """Close all connections; running streams end."""
        await self._session.aclose()

    @property
    def _completions(self) -> str:
        return self._base.api + "/completions"

    async def _models(self) -> list[dict[str, Any]]:
        listed = answers.models(await self._session.ask("GET", self._base.api + "/models"))
        if not listed:
            raise EngineProtocolError(sentence("no_models", where=self._base))
        return listed

    async def _resolved(self) -> str:
        if self._model is None:
            self._model = str((await self._models())[0]["id"])
        return self._model

    async def _optional(self, method: str, path: str, body: object = None) -> Any:
        """The JSON of a route that not every server has; None where it is missing or refuses.

        What is only asked for (GET) may also stay silent or answer nonsense; the engine can be used all the same.
        """
        try:
            reply = await self._session.fetch(method, self._base.root + path, body)
        except EngineError:
            if method == "GET":
                return None
            raise
        if reply.status in _MISSING or (reply.status == 200 and not reply.body.strip()):
            return None
        if reply.status != 200:
            if method == "GET":
                return None
            raise self._session.error(reply)
        try:
            return reply.json()
        except EngineProtocolError:
            return None

    async def _scrape(self) -> Exposition | None:
        try:
            reply = await self._session.fetch("GET", self._base.root + "/metrics", limit=self._limits.metrics_bytes)
        except EngineError:
            return None
        scrape = parse(reply.body.decode("utf-8", "replace")) if reply.status == 200 else None
        return scrape if scrape is not None and (scrape.models or scrape.epoch is not None) else None

    async def _probe(self, token_ids: Sequence[int], model: str) -> dict[int, float]:
        refused: EngineRejected | None = None
        for top in _LOGPROB_LADDER:
            try:
                return await self._ask_probe(requests.probe(token_ids, model, top))
            except EngineRejected as error:
                refused = error
        raise refused or EngineUnavailable("The engine takes no probes.")

    async def _probe_ids(self, token_ids: Sequence[int], model: str, wanted: list[int]) -> dict[int, float]:
        """Chosen ids beyond the best ones; not every engine can (a speculative one may fail), then none."""
        try:
            found = await self._ask_probe(requests.probe(token_ids, model, 1, wanted))
        except EngineError:
            return {}
        return {token: value for token, value in found.items() if token in wanted}

    async def _ask_probe(self, body: dict[str, Any]) -> dict[int, float]:
        payload = await self._session.ask("POST", self._completions, body, within_s=self._limits.probe_s)
        return answers.candidates(payload)

    async def _text(self, token: int, model: str) -> str:
        """A token's text; "" where the engine cannot tell."""
        try:
            return answers.detokenized(await self._optional("POST", "/detokenize", {"model": model, "tokens": [token]}))
        except EngineError:
            return ""
