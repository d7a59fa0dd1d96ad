"""Routes beside Gradio's: the engines' state, recordings, health, static files; those of runs are in run_routes.py."""

from __future__ import annotations

import mimetypes
from os import PathLike, stat_result

from fastapi import APIRouter, FastAPI, Response
from fastapi.responses import JSONResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from specdemo.ui import assets
from specdemo.ui.run_routes import run_routes
from specdemo.ui.services import Services


def add_routes(app: FastAPI, services: Services) -> None:
    """Put all of specdemo's own routes on ``app``."""
    app.include_router(_Routes(services).router())
    app.include_router(run_routes(services))
    for name in assets.STATIC_FOLDERS:
        app.mount(f"/assets/{name}", _Static(directory=assets.folder() / name))


class _Routes:
    def __init__(self, services: Services) -> None:
        self._services = services

    def router(self) -> APIRouter:
        router = APIRouter()
        for path, handler in (
            ("/healthz", self.healthz),
            ("/readyz", self.readyz),
            ("/engines", self.engines),
            ("/recordings", self.recordings),
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
        ready = ready and not services.quota.closing
        return JSONResponse({"status": "ready" if ready else "not ready", "mode": services.mode}, 200 if ready else 503)

    async def engines(self) -> Response:
        """Both engines' state, for the engine panel."""
        return JSONResponse(self._services.engines(), headers={"cache-control": "no-store"})

    async def recordings(self) -> Response:
        """The recorded runs that come with specdemo."""
        return JSONResponse([recording.card for recording in self._services.recordings.values()])


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
