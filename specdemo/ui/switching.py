"""The route by which the engine panel changes the speculation method of managed engines.

    POST /engines/speculation   {"method": "ngram", "k": 4} or {"method": "restore"}

202 when the engine has begun to restart; else one sentence under ``error``: 403 not from this page, 409 not now,
422 not this. The body must be JSON: a page of another site cannot send that without being allowed to, and none is.
"""

from __future__ import annotations

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StrictInt, ValidationError

from specdemo.core.sentences import sentence, spoken
from specdemo.errors import ConfigError, EngineError, SpecDemoError
from specdemo.ui.services import Services

_LONGEST = 2000  # bytes of a request


class _Wanted(BaseModel):
    model_config = ConfigDict(extra="forbid")

    method: str = Field(max_length=40)
    k: StrictInt | None = None


def add_switch(app: FastAPI, services: Services) -> None:
    """Put the route on ``app``."""

    async def change(request: Request) -> Response:
        if not services.controllable or services.method is None:
            return _refused(sentence("method_not_here"), 403)
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return _refused("The speculation method is changed from specdemo's own page only.", 403)
        if not request.headers.get("content-type", "").startswith("application/json"):
            return _refused("The method and k are sent as JSON.", 422)
        body = await request.body()
        try:
            wanted = _Wanted.model_validate_json(body) if len(body) <= _LONGEST else None
        except ValidationError:
            wanted = None
        if wanted is None:
            return _refused(
                'Send {"method": "ngram", "k": 4}, with a name that the panel offers and a whole number.', 422
            )
        try:
            await services.switch(wanted.method, wanted.k)
        except SpecDemoError as error:
            return _refused(str(error), _status(error))
        return JSONResponse({"status": "restarting"}, 202)

    app.add_api_route(
        "/engines/speculation", change, methods=["POST"], response_model=None, include_in_schema=False
    )  # fmt: skip


def _status(error: SpecDemoError) -> int:
    if isinstance(error, ConfigError):
        return 422
    return 503 if isinstance(error, EngineError) else 409


def _refused(text: str, status: int) -> Response:
    return JSONResponse(spoken({"error": text}), status)
