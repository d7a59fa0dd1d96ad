"""Routes beside Gradio's: a run's frames, its document, the engines' state, recordings, health, static files."""

from __future__ import annotations

import json
import mimetypes
from collections.abc import AsyncIterator, Mapping
from os import PathLike, stat_result
from typing import Any

from fastapi import APIRouter, FastAPI, HTTPException, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from specdemo.core.assess import assess
from specdemo.core.codec import to_json
from specdemo.core.contract import contract
from specdemo.ui import assets
from specdemo.ui.feed import Feed
from specdemo.ui.services import Services

STREAM_HEADERS = {
    "cache-control": "no-store",
    "x-accel-buffering": "no",  # nginx and its relatives would hold events back
}
MOST_VIEWERS = 500
"""Streams open at once; each costs a socket."""


def add_routes(app: FastAPI, services: Services) -> None:
    """Put all of specdemo's own routes on ``app``."""
    app.include_router(_Routes(services).router())
    for name in assets.STATIC_FOLDERS:
        app.mount(f"/assets/{name}", _Static(directory=assets.folder() / name))


class _Routes:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._viewers = 0

    def router(self) -> APIRouter:
        router = APIRouter()
        for path, handler in (
            ("/healthz", self.healthz),
            ("/readyz", self.readyz),
            ("/engines", self.engines),
            ("/recordings", self.recordings),
            ("/runs/{run_id}/events", self.events),
            ("/runs/{run_id}/record", self.record),
            ("/runs/{run_id}/result", self.result),
        ):
            router.add_api_route(path, handler, methods=["GET"], response_model=None, include_in_schema=False)
        return router

    async def healthz(self) -> Response:
        """The page's process lives."""
        return JSONResponse({"status": "ok"})

    async def readyz(self) -> Response:
        """Whether a run could start now; 503 while engines load, are missing or gone."""
        services = self._services
        ready = services.mode == "replay" or (services.control is not None and not services.unready())
        return JSONResponse({"status": "ready" if ready else "not ready", "mode": services.mode}, 200 if ready else 503)

    async def engines(self) -> Response:
        """Both engines' state, for the engine panel."""
        return JSONResponse(self._services.engines(), headers={"cache-control": "no-store"})

    async def recordings(self) -> Response:
        """The recorded runs that come with specdemo."""
        return JSONResponse([recording.card for recording in self._services.recordings.values()])

    async def events(self, run_id: str, request: Request) -> Response:
        """A run's frames as server-sent events (``docs/frames.md``)."""
        feed = self._services.feed(run_id)
        if feed is None:
            raise HTTPException(404, "This run is no longer kept here.")
        if self._viewers >= MOST_VIEWERS:
            return JSONResponse({"error": "Too many viewers at the moment; try again."}, 503, {"retry-after": "5"})
        after = _after(request)
        return StreamingResponse(self._watch(feed, after), media_type="text/event-stream", headers=STREAM_HEADERS)

    async def record(self, run_id: str) -> Response:
        """The run as one JSON document: enough to recompute every number."""
        record = self._services.record(run_id)
        if record is None:
            raise HTTPException(404, "This run is no longer kept here.")
        return _document(to_json(record), f"specdemo-run-{_file_name(run_id)}.json")

    async def result(self, run_id: str) -> Response:
        """The run's result, as ``specdemo race --json`` prints it."""
        record = self._services.record(run_id)
        if record is None:
            raise HTTPException(404, "This run is no longer kept here.")
        return _document(contract(record, assess(record)), f"specdemo-result-{_file_name(run_id)}.json")

    async def _watch(self, feed: Feed, after: int) -> AsyncIterator[bytes]:
        self._viewers += 1
        try:
            async for chunk in feed.frames(after):
                yield chunk
        finally:
            self._viewers -= 1


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
    return "".join(character for character in run_id if character.isalnum() or character in "-_")[:40]


class _Static(StaticFiles):
    """Files with the media types that we say, checked for freshness each time (they change with an update)."""

    def file_response(
        self, full_path: PathLike[str] | str, stat_result: stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        suffix = "." + str(full_path).rpartition(".")[2]
        response.headers["content-type"] = (
            assets.MEDIA_TYPES.get(suffix) or mimetypes.guess_type(str(full_path))[0] or "application/octet-stream"
        )
        response.headers["cache-control"] = "no-cache"
        return response
