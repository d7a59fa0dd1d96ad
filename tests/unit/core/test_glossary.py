"""Every number that is shown has one definition, and the documents use the same names."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from specdemo.core.glossary import GLOSSARY
from specdemo.core.results import Acceptance, SideMetrics, Speedup, Theory

DOCS = Path(__file__).parents[3] / "docs" / "metrics.md"

NOT_NUMBERS = {"acceptance", "count_source", "final", "reasons"}


def test_every_shown_number_is_explained() -> None:
    """D23: each field of the metrics that is a number has a label, a formula and a sentence."""
    names = {spec.name for spec in fields(SideMetrics)} - NOT_NUMBERS
    names |= {f"speedup.{spec.name}" for spec in fields(Speedup)} - {"speedup.basis", "speedup.reasons"}
    names |= {f"acceptance.{name}" for name in ("rate", "mean_length", "per_position", "histogram", "delivered")}
    assert names <= GLOSSARY.keys()


def test_every_entry_belongs_to_a_result() -> None:
    """No entry explains a number that does not exist."""
    known = {spec.name for spec in fields(SideMetrics)}
    nested = {
        "acceptance": {spec.name for spec in fields(Acceptance)} | {"range"},
        "speedup": {spec.name for spec in fields(Speedup)},
        "theory": {spec.name for spec in fields(Theory)},
        "verdict": {"gap_nats", "tolerance_nats"},
    }
    for name in GLOSSARY:
        head, _, rest = name.partition(".")
        assert rest in nested[head] if rest else head in known


@pytest.mark.parametrize("name", sorted(GLOSSARY))
def test_entries_are_complete(name: str) -> None:
    """Each entry has words for all its parts, and its sentence ends as one."""
    term = GLOSSARY[name]
    assert term.label
    assert term.formula
    assert term.source
    assert term.plain.endswith(".")


def test_document_names_the_metrics() -> None:
    """docs/metrics.md speaks of every speed and speculation number under its contract name."""
    text = DOCS.read_text(encoding="utf-8")
    for name in ("ttft_s", "tpot_s", "e2el_s", "decode_tokens_per_s", "tokens_per_s", "chunk_gap_s", "live_tokens_per_s",
                 "tokens_per_step", "acceptance.rate", "acceptance.mean_length"):  # fmt: skip
        assert f"`{name}`" in text
