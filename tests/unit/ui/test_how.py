"""The How-it-works document: from recordings alone, and every word that it names exists in both languages."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
from fastapi import FastAPI

from specdemo.ui import assets, recordings
from specdemo.ui.how import add_how, document
from specdemo.ui.i18n import LANGS, words
from tests.unit.ui.pair import world

SHIPPED = recordings.load(Path(__file__).parents[3] / "assets" / "runs")
SCRIPTS = ("dom/how", "dom/how_calc", "dom/how_rule", "dom/how_texts", "dom/how_walk", "how_chart", "how_walk", "how")


async def test_the_route_gives_the_document() -> None:
    """One strict JSON document, the same each time, with all rows of the article's table."""
    app = FastAPI()
    add_how(app, world(recordings=SHIPPED).services)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://page") as http:
        first, second = await http.get("/how"), await http.get("/how")
    assert first.json() == second.json() == document(SHIPPED)
    assert [claim["row"] for claim in first.json()["claims"]] == list(range(1, 16))
    assert {walk["run"] for walk in first.json()["walks"]} >= {"rec-1-list", "rec-4-code"}
    assert len(first.content) < 200_000


def test_coverage_of_merged_runs_comes_from_the_walk() -> None:
    """Where chunks held several steps, the share of steps with a draft is still known from the walk."""
    shown = {point["run"]: point["coverage"] for point in document(SHIPPED)["points"]}
    assert shown["rec-4-code"] == 1.0
    assert shown["rec-6-no-drafts"] is None


def test_without_recordings_the_tab_is_empty_and_whole() -> None:
    """No recording: no point, no walk, and rows without figures."""
    bare = document({})
    assert bare["points"] == bare["walks"] == []
    assert not any(claim["figures"] for claim in bare["claims"])


def test_every_word_exists_in_both_languages() -> None:
    """Keys in markup, in scripts and in the document have a text in English and Chinese."""
    markup = assets.text("html/how.html")
    named = set(re.findall(r'data-(?:say|say-label|head)="(\w+)"', markup))
    for script in SCRIPTS:
        named |= set(re.findall(r'["`.](how_[a-z0-9_]*[a-z0-9])["`),?;.\s\]]', assets.text(f"js/{script}.mjs")))
    named |= {one["say"] for claim in document(SHIPPED)["claims"] for one in claim["figures"]}
    named |= {f"how_claim_{row}" for row in range(1, 16)}
    for lang in LANGS:
        assert {name for name in named if name not in words(lang)} == set()


def test_places_of_a_sentence_are_the_same_in_both_languages() -> None:
    """A translation fills the same values, so no number is lost or invented by it."""
    for key, english in words("en").items():
        if key.startswith(("how_", "switch_")):
            assert sorted(re.findall(r"\{\w+\}", english)) == sorted(re.findall(r"\{\w+\}", words("zh")[key])), key
