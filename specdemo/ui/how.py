"""What the How-it-works tab shows, as one JSON document computed from the recorded runs. Nothing in it is typed in.

    GET /how   {"points": […], "walks": […], "claims": [{"row": 1, "figures": […]}, …], "machines": […], "dates": […]}

Forms: ``bench/claims.py`` and ``bench/walk.py``. The words are in ``assets/i18n/how.*.json``, loaded by the tab alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from fastapi import FastAPI, Response
from fastapi.responses import JSONResponse

from specdemo.bench.claims import ROWS, Figure, Point, figures, points
from specdemo.bench.walk import Walk, walk
from specdemo.core.sentences import spoken
from specdemo.ui.recordings import Recording
from specdemo.ui.services import Services


def add_how(app: FastAPI, services: Services) -> None:
    """Put the route on ``app``. The document is made once: recordings do not change while the page lives."""
    made: list[dict[str, Any]] = []

    def how() -> Response:
        if not made:
            made.append(document(services.recordings))
        return JSONResponse(made[0], headers={"cache-control": "no-cache"})

    app.add_api_route("/how", how, methods=["GET"], response_model=None, include_in_schema=False)


def document(recordings: Mapping[str, Recording]) -> dict[str, Any]:
    """Everything that the tab draws."""
    records = {name: recording.record for name, recording in recordings.items()}
    told = figures(records)
    walks = {name: found for name, record in records.items() if (found := walk(record)) is not None}
    return {
        "points": [_point(point, walks.get(point.run)) for point in points(records)],
        "walks": [_walk(name, recordings[name], found) for name, found in walks.items()],
        "claims": [{"row": row, "figures": [_figure(one) for one in told.get(row, ())]} for row in ROWS],
        "machines": [spoken({"hardware": one}) for one in sorted({one.facts.hardware for one in recordings.values()})],
        "dates": sorted({one.facts.date for one in recordings.values()}),
    }


def by_language(title: str) -> dict[str, str]:
    """A title may hold both languages as "English | 中文"."""
    english, _, chinese = title.partition(" | ")
    return {"en": english, "zh": chinese or english}


def _point(point: Point, found: Walk | None) -> dict[str, Any]:
    """A point of the calculator. Where chunks held several steps, the walk tells the share of steps with a draft."""
    shown = {**asdict(point), "title": by_language(point.title)}
    if point.coverage is None and found is not None:
        shown["coverage"] = sum(bool(step.proposed) for step in found.steps) / len(found.steps)
    return shown


def _figure(figure: Figure) -> dict[str, Any]:
    values: dict[str, Any] = dict(figure.values)
    if "title" in values:
        values["title"] = by_language(str(values["title"]))
    return {"say": figure.say, "values": values, "run": figure.run}


def _walk(name: str, recording: Recording, found: Walk) -> dict[str, Any]:
    """Short keys, since a run has hundreds of steps: proposals as [text, taken], then the target's own token."""
    return {
        "run": name,
        "title": recording.card["title"],
        "prompt": recording.card["prompt"],
        "date": recording.facts.date,
        "machine": spoken({"hardware": recording.facts.hardware}),
        "method": found.method,
        "k": found.k,
        "start": found.start,
        "known": found.known,
        "steps": [{"p": [[one.text, one.taken] for one in step.proposed], "own": step.own} for step in found.steps],
    }
