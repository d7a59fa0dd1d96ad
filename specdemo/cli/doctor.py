"""``specdemo doctor``: what was found, what is not right, and the mend for it; and how running engines are."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from specdemo.cli.output import calm, print_json, stderr, stdout
from specdemo.cli.progress import status_line
from specdemo.compose import folders, running_statuses
from specdemo.core.engine import EngineStatus
from specdemo.doctor import Report, examine
from specdemo.engines import orphans
from specdemo.settings import Loaded

_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def doctor(
    loaded: Loaded,
    remove_orphans: Annotated[
        bool, typer.Option("--remove-orphans", help="End engines that a crashed specdemo left behind.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
) -> int:
    """Look at this machine and say what is missing for engines of our own, and how to get it.

    Exit codes: 0 nothing fails · 1 something must be mended first.
    """
    settings = loaded.settings
    if remove_orphans:
        ended = orphans.remove(folders(settings).data / "engines")
        stderr().print(f"{ended} processes that an earlier specdemo left behind were ended.", markup=False)
    report = examine(settings)
    statuses = asyncio.run(running_statuses(folders(settings).data, settings))
    if as_json:
        print_json({**report.to_json(), "engines": [_plain(status) for status in statuses]})
    else:
        _print(report, statuses)
    return 1 if report.worst == "fail" else 0


def _plain(status: EngineStatus) -> dict[str, Any]:
    return {**asdict(status), "side": str(status.side), "state": str(status.state)}


def _print(report: Report, statuses: tuple[EngineStatus, ...]) -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    for _ in range(3):
        table.add_column(overflow="fold")
    for found in report.findings:
        mend = f"\n→ {found.mend}" if found.mend else ""
        table.add_row(Text(found.level, _STYLES[found.level]), found.name, Text(calm(found.detail + mend)))
    for status in statuses:
        level = "ok" if status.state == "ready" else "warn"
        words = status_line(status).partition(": ")[2] + (f" at {status.base_url}" if status.base_url else "")
        table.add_row(Text(level, _STYLES[level]), f"{status.side} engine", Text(calm(words)))
    stdout().print(table)
