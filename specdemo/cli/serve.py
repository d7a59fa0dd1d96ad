"""``specdemo serve``: the page, with both engines loading behind it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from specdemo.cli.loop import run_until_stopped
from specdemo.settings import Loaded


def _page_flags(
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option("--port", help="Port; 0 takes a free one.")] = None,
    root_path: Annotated[
        str | None, typer.Option("--root-path", help="Path under which a reverse proxy shows the page.")
    ] = None,
    public: Annotated[
        bool | None, typer.Option("--public/--no-public", help="Hide engine controls and logs from visitors.")
    ] = None,
) -> dict[str, Any]:
    return {"server.host": host, "server.port": port, "server.root_path": root_path, "server.public": public}


def serve(loaded: Loaded) -> int:
    """Serve the page; engines load in the background and are stopped with it. Ctrl-C ends it.

    Other commands of the same user (such as `specdemo race`) use the engines of a running serve: they start at once.
    """
    # Gradio takes seconds to import, and every other command does without it.
    from specdemo.cli.page import serve_page  # noqa: PLC0415

    return run_until_stopped(serve_page(loaded.settings), stopped=0)  # a server that is told to end has done its work


serve.settings_flags = _page_flags  # type: ignore[attr-defined]  # read by with_settings
