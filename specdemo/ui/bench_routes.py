"""Files of kept results to take home; only where the tabs are.

GET /benchmarks/{name}/report.{html|md|json|csv|samples.csv}    /benchmarks/{name}/versus/{other}.{html|md}
GET /validations/{name}/report.{html|md|json}
"""

from __future__ import annotations

from collections.abc import Awaitable

from fastapi import FastAPI, HTTPException, Request, Response

from specdemo.errors import StoreError
from specdemo.ui.i18n import Lang, language
from specdemo.ui.results import Results


def add_bench_routes(app: FastAPI, results: Results) -> None:
    """Put the routes on ``app``."""

    async def report(name: str, form: str, request: Request) -> Response:
        return await _file(results.report(name, form, _lang(request)), f"specdemo-{name}.{form}")

    async def versus(name: str, other: str, form: str, request: Request) -> Response:
        return await _file(results.versus(name, other, form, _lang(request)), f"specdemo-{name}-versus-{other}.{form}")

    async def sampled(name: str, form: str, request: Request) -> Response:
        return await _file(results.sampled(name, form, _lang(request)), f"specdemo-sampling-{name}.{form}")

    for path, handler in (
        ("/benchmarks/{name}/report.{form}", report),
        ("/benchmarks/{name}/versus/{other}.{form}", versus),
        ("/validations/{name}/report.{form}", sampled),
    ):
        app.add_api_route(path, handler, methods=["GET"], response_model=None, include_in_schema=False)


async def _file(made: Awaitable[tuple[str, str]], name: str) -> Response:
    try:
        text, media = await made
    except StoreError as error:
        raise HTTPException(404, str(error)) from None
    safe = "".join(c for c in name if c.isalnum() or c in "-_.")[:160]
    headers = {"content-disposition": f'attachment; filename="{safe}"', "cache-control": "no-store"}
    return Response(text.encode("utf-8", "replace"), media_type=media, headers=headers)


def _lang(request: Request) -> Lang:
    return language(dict(request.query_params), request.headers.get("accept-language"))
