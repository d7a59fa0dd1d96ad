"""Two runs side by side: their numbers, the settings in which they differ, their verdicts. A pure function.

It compares what was recorded and claims nothing: two runs on different days or machines differ for many reasons, so
what differs in their settings stands beside the numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from specdemo.core.assess import assess
from specdemo.core.codec import to_json
from specdemo.core.contract import contract
from specdemo.core.events import SIDES
from specdemo.core.run import RunRecord

NUMBERS = (
    "speedup.decode", "speedup.e2e", "speedup.ttft",
    "standard.decode_tokens_per_s", "speculative.decode_tokens_per_s",
    "standard.ttft_s", "speculative.ttft_s", "standard.tpot_s", "speculative.tpot_s",
    "standard.e2el_s", "speculative.e2el_s", "standard.output_tokens", "speculative.output_tokens",
    "speculative.tokens_per_step", "speculative.acceptance.rate", "speculative.acceptance.mean_length",
)  # fmt: skip
"""The numbers that are compared, by their contract names; ``standard.`` and ``speculative.`` name the side."""

_LONGEST = 300


def side_by_side(first: RunRecord, second: RunRecord) -> dict[str, Any]:
    """``sides``: what each run is and its verdict; ``numbers``: rows of (name, first, second); ``differs``: settings.

    A number that does not apply is None. ``same_prompt`` tells whether both were asked the same.
    """
    records = (first, second)
    documents = [contract(record, assess(record)) for record in records]
    settings = [dict(_settings(record)) for record in records]
    names = list(dict.fromkeys([*settings[0], *settings[1]]))
    differing = [
        {"name": name, "values": [_short(one.get(name)) for one in settings]}
        for name in names
        if settings[0].get(name) != settings[1].get(name)
    ]
    return {
        "same_prompt": _asked(first) == _asked(second),
        "sides": [_side(record, document) for record, document in zip(records, documents, strict=True)],
        "numbers": [{"name": name, "values": [_number(document, name) for document in documents]} for name in NUMBERS],
        "differs": differing,
    }


def _side(record: RunRecord, document: Mapping[str, Any]) -> dict[str, Any]:
    facts = record.header.facts[1]
    standard = record.header.facts[0]
    known = facts or standard
    return {
        "title": _short(record.header.title or _words(record)),
        "model": known.model if known else None,
        "method": (facts.method or ("none" if facts.speculating is False else None)) if facts else None,
        "k": facts.k if facts else None,
        "mode": document["mode"],
        "badge": document["badge"],
        "date": _date(record.header.started_at),
        "hardware": record.header.hardware,
        "states": [document["sides"][str(side)]["state"] for side in SIDES],
        "verdict": document["verdict"]["class"],
        "reason": document["verdict"]["reason"],
    }


def _settings(record: RunRecord) -> Iterator[tuple[str, Any]]:
    """Everything that was set or found before the first event, by dotted names."""
    plan = record.header.plan
    yield from (("mode", plan.mode), ("control", plan.control), ("prompt", _words(record)))
    yield from ((f"sampling.{name}", value) for name, value in asdict(plan.prompt.sampling).items())
    yield "logprobs", plan.prompt.logprobs
    # As in the document: without a server's paths.
    facts = to_json(RunRecord(record.header, ()))["header"].get("facts") or (None, None)
    for side, known in zip(SIDES, facts, strict=True):
        for name, value in (known or {}).items():
            if name == "settings":
                yield from ((f"{side}.{key}", own) for key, own in value)
            elif name != "side":
                yield f"{side}.{name}", value
    yield "hardware", record.header.hardware


def _asked(record: RunRecord) -> Any:
    prompt = record.header.plan.prompt
    return prompt.messages, prompt.text, prompt.token_ids


def _words(record: RunRecord) -> str:
    prompt = record.header.plan.prompt
    if prompt.text is not None:
        return prompt.text
    return "\n\n".join(message.content for message in prompt.messages) or "(token ids)"


def _number(document: Mapping[str, Any], name: str) -> float | None:
    head, _, rest = name.partition(".")
    found: Any = document["speedup"] if head == "speedup" else document["sides"][head]["metrics"]
    for part in rest.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found if isinstance(found, int | float) else None


def _short(value: Any) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _date(at: float) -> str | None:
    try:
        return datetime.fromtimestamp(at, UTC).isoformat(timespec="minutes")
    except (OverflowError, OSError, ValueError):
        return None
