"""A run's document in compressed parts: header, events as they come, tail. Reading trusts none of it.

The parts are JSON texts; together they are the document of ``core/codec.py``, and ``runs/stored.py`` reads it as if it
had come from a stranger.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from specdemo.core.codec import encode, event_to_json, to_json
from specdemo.core.events import Event
from specdemo.core.run import SCHEMA, Probe, RunHeader, RunRecord
from specdemo.core.sentences import sentence
from specdemo.errors import StoreError
from specdemo.runs.stored import MAX_BYTES, loads
from specdemo.store.tables import HEAD, TAIL

EVENTS_A_PART = 4000
"""Events of one part at most: encoding holds up other threads for some ms."""
_LEVEL = 6


def head(header: RunHeader) -> bytes:
    """The header's part."""
    return pack(to_json(RunRecord(header, ()))["header"])


def pieces(events: Sequence[Event]) -> list[bytes]:
    """Events as parts, in order."""
    cuts = range(0, len(events), EVENTS_A_PART)
    return [pack([event_to_json(event) for event in events[at : at + EVENTS_A_PART]]) for at in cuts]


def tail(probe: Probe | None) -> bytes:
    """The part that is known only at the end."""
    return pack(None if probe is None else encode(probe))


def pack(value: Any) -> bytes:
    """One JSON value, compressed. Half characters (lone surrogates), which UTF-8 cannot carry, become "?"."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return zlib.compress(text.encode("utf-8", "replace"), _LEVEL)


def unpack(body: bytes, most: int = MAX_BYTES) -> bytes:
    """What :func:`pack` compressed; never more than ``most`` bytes. Raises StoreError."""
    stream = zlib.decompressobj()
    try:
        text = stream.decompress(body, most)
    except zlib.error:
        raise StoreError(sentence("run_damaged")) from None
    if not stream.eof:
        raise StoreError(sentence("run_damaged"))
    return text


def assemble(parts: Mapping[int, bytes]) -> bytes:
    """The whole document from its parts. Raises StoreError."""
    if HEAD not in parts:
        raise StoreError(sentence("run_damaged"))
    left = MAX_BYTES
    texts: dict[int, bytes] = {}
    for number, body in parts.items():
        texts[number] = unpack(body, left)
        left -= len(texts[number])
    events = b",".join(
        inner for number in sorted(texts) if number > HEAD and (inner := texts[number].strip()[1:-1].strip())
    )
    return b'{"schema":%d,"header":%s,"events":[%s],"probe":%s}' % (
        SCHEMA, texts[HEAD], events, texts.get(TAIL, b"null"),
    )  # fmt: skip


def read(parts: Mapping[int, bytes]) -> RunRecord:
    """The run in these parts. Raises StoreError."""
    return loads(assemble(parts))


def whole(record: RunRecord) -> dict[int, bytes]:
    """All parts of a finished run."""
    events = dict(enumerate(pieces(record.events), start=HEAD + 1))
    return {HEAD: head(record.header), **events, TAIL: tail(record.probe)}


def text_parts(text: bytes) -> dict[int, bytes]:
    """Any other document (a benchmark, a validation) in pieces of 1 MB."""
    cuts = range(0, max(1, len(text)), 1_000_000)
    return {number: zlib.compress(text[at : at + 1_000_000], _LEVEL) for number, at in enumerate(cuts)}


def text_of(parts: Iterable[tuple[int, bytes]]) -> bytes:
    """What :func:`text_parts` took. Raises StoreError."""
    return b"".join(unpack(body) for _, body in sorted(parts))
