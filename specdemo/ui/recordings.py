"""Recorded real runs that come with specdemo: what plays before an engine is ready, and all there is without one."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from specdemo.core.assess import assess, badge
from specdemo.core.frames import Frame, Recorded, replay
from specdemo.core.run import RunRecord
from specdemo.errors import SpecDemoError
from specdemo.runs import stored
from specdemo.ui.i18n import LANGS, tell

_log = logging.getLogger(__name__)

PREFIX = "rec-"
"""Ids of recordings begin with this, so that they never collide with a live run's random id."""
_PREVIEW = 140


@dataclass(frozen=True)
class Recording:
    """One recorded run. ``id`` never changes, so links to it stay good. ``imported``: it came from another machine."""

    id: str
    record: RunRecord
    imported: bool = False

    @cached_property
    def badge(self) -> str:
        """How it was obtained when it was live."""
        return badge(self.record.header)

    @cached_property
    def facts(self) -> Recorded:
        """Date, hardware and original badge, shown beside every number of it."""
        header = self.record.header
        try:
            date = datetime.fromtimestamp(header.started_at, UTC).date().isoformat()
        except (OverflowError, OSError, ValueError):  # a stranger's document may say any number
            date = "unknown date"
        hardware = header.hardware or "unknown hardware"
        return Recorded(date=date, hardware=hardware, how=self.badge, imported=self.imported)

    def frames(self) -> Iterator[Frame]:
        """All frames, the same each time."""
        return replay(self.record, recorded=self.facts, run_id=self.id)

    @cached_property
    def card(self) -> dict[str, Any]:
        """What the gallery shows: measured figures only."""
        header = self.record.header
        result = assess(self.record)
        prompt = header.plan.prompt
        asked = prompt.text or (prompt.messages[-1].content if prompt.messages else "")
        title = header.title or asked
        short = " ".join(asked.split())
        return {
            "id": self.id,
            "title": _by_language(title),
            "prompt": short if len(short) <= _PREVIEW else short[: _PREVIEW - 1] + "…",
            "speedup": result.speedup.decode,
            "how": {lang: f"{self.facts.date} · {tell(lang, self.facts.hardware)}" for lang in LANGS},
            "badge": self.badge,
        }


def load(folder: Path) -> dict[str, Recording]:
    """All recordings of a folder by id; a file that cannot be read is left out, and the log says so."""
    found = {}
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        try:
            found[PREFIX + path.stem] = Recording(PREFIX + path.stem, stored.load(path))
        except SpecDemoError as error:
            _log.warning("The recorded run %s was left out: %s", path.name, error)
    return found


def _by_language(title: str) -> dict[str, str]:
    """A title may hold both languages as "English | 中文"."""
    english, _, chinese = title.partition(" | ")
    return {"en": english, "zh": chinese or english}
