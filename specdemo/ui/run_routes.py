"""Routes of runs: the list, one run's frames and documents, sharing, deleting, importing, two runs side by side.

What changes something asks for a header that no form and no other site's script can send, so that a visitor's cookie
alone moves nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from specdemo.core.assess import assess
from specdemo.core.codec import to_json
from specdemo.core.contract import contract
from specdemo.core.run import RunRecord
from specdemo.core.sentences import sentence
from specdemo.errors import StoreError
from specdemo.runs.kept import benchmarks, validations
from specdemo.runs.registry import LiveRun
from specdemo.runs.side_by_side import side_by_side
from specdemo.store.database import StoreUnavailable
from specdemo.store.entry import Entry, ended
from specdemo.ui.asked import visitor_of
from specdemo.ui.feed import Feed
from specdemo.ui.i18n import language, tell
from specdemo.ui.library import Found, Library
from specdemo.ui.services import Services

STREAM_HEADERS = {
    "cache-control": "no-store",
    "x-accel-buffering": "no",  # nginx and its relatives would hold events back
}
NO_STORE = {"cache-control": "no-store"}
MOST_VIEWERS = 500
"""Streams open at once; each costs a socket."""
OURS = "x-specdemo"
"""The header that the page's own script sends with every change."""
GONE = sentence("run_gone")
_RESULTS = {"benchmark": benchmarks, "validation": validations}
_SHOWN = (
    "id", "kind", "state", "stored_at", "started_at", "title", "model", "method", "k", "mode", "badge", "hardware",
    "speedup", "verdict", "shared", "imported", "size",
)  # fmt: skip


def run_routes(services: Services) -> APIRouter:
    """All routes under ``/runs``."""
    handlers = _Runs(services)
    router = APIRouter()
    for method, path, handler in (
        ("GET", "/runs", handlers.listing),
        ("POST", "/runs", handlers.bring),
        ("GET", "/runs/compare", handlers.compare),
        ("DELETE", "/runs/{run_id}", handlers.delete),
        ("PUT", "/runs/{run_id}/shared", handlers.share),
        ("GET", "/runs/{run_id}/events", handlers.events),
        ("GET", "/runs/{run_id}/record", handlers.record),
        ("GET", "/runs/{run_id}/result", handlers.result),
    ):
        router.add_api_route(path, handler, methods=[method], response_model=None, include_in_schema=False)
    return router


class _Runs:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._library: Library = services.library
        shown = services.jobs is not None and not services.public
        self._results = services.jobs.shop.folder if services.jobs is not None and shown else None
        self._viewers = 0

    async def listing(self, request: Request) -> Response:
        """The visitor's runs, newest first: ``q`` words, ``offset``, ``limit``.

        ``kind=benchmark`` and ``kind=validation`` list those results instead, where this page has them.
        """
        asked = request.query_params
        kind = asked.get("kind", "run")
        if kind in _RESULTS and self._results is not None:
            return JSONResponse(await self._other(kind, asked.get("q", "")), headers=NO_STORE)
        rows, total, trouble = await self._library.listing(
            visitor_of(request),
            search=asked.get("q", "")[:200],
            offset=_whole(asked.get("offset"), 0, 10_000_000),
            limit=_whole(asked.get("limit"), 20, 100) or 20,
        )
        keeper = self._library.keeper
        answer = {
            "runs": [self._card(entry, live) for entry, live in rows],
            "total": total,
            "keeps": keeper is not None and keeper.keep,
            "trouble": _tell(request, trouble or (keeper.trouble if keeper is not None else None)),
            "together": self._library.together,
            "results": self._results is not None,
        }
        return JSONResponse(answer, headers=NO_STORE)

    async def _other(self, kind: str, search: str) -> dict[str, Any]:
        """Kept benchmarks or validations: files of the data folder, by name and date."""
        assert self._results is not None  # noqa: S101 - the caller looked
        found = await asyncio.to_thread(_RESULTS[kind], self._results)
        words = search.casefold().split()
        cards = [
            {"id": kept.name, "kind": kind, "title": kept.name, "stored_at": kept.at}
            for kept in found
            if all(word in kept.name.casefold() for word in words)
        ]
        return {"runs": cards, "total": len(cards), "keeps": True, "trouble": None, "together": True, "results": True}

    async def bring(self, request: Request) -> Response:
        """Import one document: the request's body, bounded while it is read."""
        _check_ours(request)
        most = self._services.import_bytes
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > most:
                return _refused(_tell(request, sentence("run_too_large", megabytes=f"{most / 1e6:.3g}")), 413)
        return await self._told(request, lambda: self._bring(bytes(body), request), 422)

    async def _bring(self, body: bytes, request: Request) -> Response:
        entry = await self._library.bring(body, visitor_of(request))
        return JSONResponse(self._card(entry, None), 201)

    async def compare(self, request: Request) -> Response:
        """Two runs side by side: ``a`` and ``b`` are ids."""
        found = [await self._find(request.query_params.get(name, "")[:80], request) for name in ("a", "b")]

        async def both() -> Response:
            first, second = [await self._whole(one) for one in found]
            compared = await asyncio.to_thread(side_by_side, first, second)
            told = {"runs": [self._about(one) for one in found], **compared}
            return JSONResponse(told, headers=NO_STORE)

        return await self._told(request, both, 404)

    async def delete(self, run_id: str, request: Request) -> Response:
        """Delete one's own run."""
        _check_ours(request)

        async def work() -> Response:
            if not await self._library.delete(run_id, visitor_of(request)):
                raise HTTPException(404, _tell(request, GONE))
            return Response(status_code=204)

        return await self._told(request, work, 503)

    async def share(self, run_id: str, request: Request) -> Response:
        """Set the share switch of one's own run: ``{"shared": true}``."""
        _check_ours(request)
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > 100:
                return _refused('Send {"shared": true} or {"shared": false}.', 422)
        wanted = {b'{"shared":true}': True, b'{"shared":false}': False}.get(b"".join(body.split()))
        if wanted is None:
            return _refused('Send {"shared": true} or {"shared": false}.', 422)

        async def work() -> Response:
            if not await self._library.share(run_id, visitor_of(request), shared=wanted):
                raise HTTPException(404, _tell(request, GONE))
            return JSONResponse({"shared": wanted})

        return await self._told(request, work, 503)

    async def events(self, run_id: str, request: Request) -> Response:
        """A run's frames as server-sent events (``docs/frames.md``)."""
        found = await self._find(run_id, request)
        after = _after(request)
        replay = request.query_params.get("replay") == "1"
        if found.live is None and found.recording is None and after >= 0 and not replay:
            # Whoever watched it live has other frame numbers than the replay from the store.
            raise HTTPException(404, _tell(request, GONE))
        if self._viewers >= MOST_VIEWERS:
            return JSONResponse({"error": "Too many viewers at the moment; try again."}, 503, {"retry-after": "5"})

        async def work() -> Response:
            feed = await self._library.feed(found, replay=replay or found.live is None)
            return StreamingResponse(self._watch(feed, after), media_type="text/event-stream", headers=STREAM_HEADERS)

        return await self._told(request, work, 404)

    async def record(self, run_id: str, request: Request) -> Response:
        """The run as one JSON document: enough to recompute every number."""
        found = await self._find(run_id, request)

        async def work() -> Response:
            return _document(to_json(await self._whole(found)), f"specdemo-run-{_file_name(run_id)}.json")

        return await self._told(request, work, 404)

    async def result(self, run_id: str, request: Request) -> Response:
        """The run's result, as ``specdemo race --json`` prints it."""
        found = await self._find(run_id, request)

        async def work() -> Response:
            record = await self._whole(found)
            return _document(contract(record, assess(record)), f"specdemo-result-{_file_name(run_id)}.json")

        return await self._told(request, work, 404)

    async def _find(self, run_id: str, request: Request) -> Found:
        try:
            found = await self._library.find(run_id, visitor_of(request), request.query_params.get("key", "")[:80])
        except StoreError as error:
            raise HTTPException(503, _tell(request, str(error))) from None
        if found is None:
            raise HTTPException(404, _tell(request, GONE))
        return found

    async def _whole(self, found: Found) -> RunRecord:
        record = await self._library.record(found)
        return record if found.running else ended(record)

    async def _told(self, request: Request, work: Callable[[], Awaitable[Response]], status: int) -> Response:
        try:
            return await work()
        except StoreError as error:
            return _refused(_tell(request, str(error)), 503 if isinstance(error, StoreUnavailable) else status)

    async def _watch(self, feed: Feed, after: int) -> AsyncIterator[bytes]:
        self._viewers += 1
        telemetry = self._services.telemetry
        telemetry.viewers.inc()
        try:
            async for chunk in feed.frames(after):
                telemetry.sent(len(chunk))
                yield chunk
        finally:
            self._viewers -= 1
            telemetry.viewers.dec()

    def _card(self, entry: Entry, live: LiveRun | None) -> dict[str, Any]:
        keeper = self._library.keeper
        running = (live is not None and live.ended_at is None) or (
            live is None and keeper is not None and keeper.running_elsewhere(entry)
        )
        shown = {name: getattr(entry, name) for name in _SHOWN}
        return {**shown, "running": running, "kept": entry.size > 0}

    def _about(self, found: Found) -> dict[str, Any]:
        imported = found.entry is not None and found.entry.imported
        return {"id": found.id, "imported": imported, "recording": found.recording is not None}


def _check_ours(request: Request) -> None:
    if request.headers.get(OURS) != "1":
        raise HTTPException(403, f"This takes the header {OURS}: 1, which the page's own script sends.")


def _tell(request: Request, text: str | None) -> str | None:
    """A sentence in the language of whoever asks."""
    if text is None:
        return None
    return tell(language(dict(request.query_params), request.headers.get("accept-language")), text)


def _refused(message: str | None, status: int) -> Response:
    return JSONResponse({"error": message}, status, headers=NO_STORE)


def _whole(given: str | None, default: int, most: int) -> int:
    try:
        return min(most, max(0, int((given or "")[:12])))
    except ValueError:
        return default


def _after(request: Request) -> int:
    """The last frame that the reader has: the header of a reconnecting EventSource, or ``?after=``."""
    given = request.headers.get("last-event-id") or request.query_params.get("after") or "-1"
    try:
        return max(-1, int(given[:12]))
    except ValueError:
        return -1


def _document(document: Mapping[str, Any], name: str) -> Response:
    # ASCII escapes carry lone surrogates, which UTF-8 cannot.
    body = json.dumps(document, ensure_ascii=True, allow_nan=False, indent=1)
    headers = {"content-disposition": f'attachment; filename="{name}"', "cache-control": "no-store"}
    return Response(body, media_type="application/json", headers=headers)


def _file_name(run_id: str) -> str:
    return "".join(
        character for character in run_id if character.isascii() and (character.isalnum() or character in "-_")
    )[:40]
