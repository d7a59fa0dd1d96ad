"""The text of /metrics → counters. Only the series we need are looked at, by their exact names.

Exact names keep the ``_created`` timestamps out of the sums (fault A09); values are summed over the ``engine`` label
of data-parallel servers (A10); models that share a port are kept apart.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from specdemo.core.events import SpecCounters

_SUMMED = {
    "vllm:spec_decode_num_drafts_total": "drafts",
    "vllm:spec_decode_num_draft_tokens_total": "draft_tokens",
    "vllm:spec_decode_num_accepted_tokens_total": "accepted_tokens",
    "vllm:generation_tokens_total": "generation_tokens",
    "vllm:prefix_cache_queries_total": "prefix_cache_queries",
    "vllm:prefix_cache_hits_total": "prefix_cache_hits",
    "vllm:num_requests_running": "requests_running",
    "vllm:num_requests_waiting": "requests_waiting",
    "vllm:num_preemptions_total": "preemptions",
}
_SPECULATIVE = frozenset({"drafts", "draft_tokens", "accepted_tokens"})
"""Any of them tells that an engine speculates; older servers count tokens and no drafts."""
_POSITIONS = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
_EPOCH = "process_start_time_seconds"
_CONFIG = "vllm:cache_config_info"

_WANTED = re.compile(
    r"^[ \t]*(" + "|".join(re.escape(name) for name in (*_SUMMED, _POSITIONS, _EPOCH, _CONFIG)) + r")"
    r'(?:[ \t]*\{((?:[^"}\n]|"(?:[^"\\\n]|\\.)*")*)\}[ \t]*|[ \t]+)([^ \t\n]+)',
    re.MULTILINE,
)
_LABEL = re.compile(r'(?<!\w)([A-Za-z_]\w*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(.)")
_MAX_POSITIONS = 1024


@dataclass(slots=True)
class _Sums:
    totals: dict[str, float] = field(default_factory=dict)
    positions: dict[int, float] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Exposition:
    """One scrape. ``epoch`` is when the process started (s since 1970), None if it does not say."""

    epoch: float | None
    _by_model: dict[str, _Sums]

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models on this port; "" for series without the label."""
        return tuple(self._by_model)

    def counters(self, model: str | None = None) -> SpecCounters | None:
        """The totals of one model; of the only one when the name is unknown here; None where that is ambiguous."""
        sums = self._sums(model)
        if sums is None:
            return None
        span = range(max(sums.positions, default=-1) + 1)
        per_position = tuple(sums.positions.get(index, 0.0) for index in span)
        return SpecCounters(accepted_per_position=per_position, epoch=self.epoch, **sums.totals)

    def speculating(self, model: str | None = None) -> bool | None:
        """Whether the engine has speculative series; None if it shows no series at all for that model."""
        sums = self._sums(model)
        return None if sums is None or not sums.totals else not _SPECULATIVE.isdisjoint(sums.totals)

    def draft_limit(self, model: str | None = None) -> int | None:
        """num_speculative_tokens: how many positions are counted; None if none is."""
        sums = self._sums(model)
        return None if sums is None or not sums.positions else max(sums.positions) + 1

    def settings(self, model: str | None = None) -> dict[str, str]:
        """Cache settings as the engine publishes them (``vllm:cache_config_info``)."""
        sums = self._sums(model)
        return {} if sums is None else dict(sums.settings)

    def _sums(self, model: str | None) -> _Sums | None:
        if model is not None and model in self._by_model:
            return self._by_model[model]
        return next(iter(self._by_model.values())) if len(self._by_model) == 1 else None


def parse(text: str) -> Exposition:
    """Read a scrape. Lines that make no sense are skipped; never raises."""
    found: dict[str, _Sums] = {}
    config: dict[str, str] = {}
    epoch: float | None = None
    for name, raw_labels, raw_value in _WANTED.findall(text):
        value = _number(raw_value)
        if value is None:
            continue
        if name == _EPOCH:
            epoch = value
            continue
        labels = {key: _ESCAPE.sub(_unescape, worth) for key, worth in _LABEL.findall(raw_labels)}
        if name == _CONFIG:
            config.update(labels)
            continue
        sums = found.setdefault(labels.get("model_name", ""), _Sums())
        if name == _POSITIONS:
            position = labels.get("position", "")
            if position.isdecimal() and len(position) <= 4 and int(position) < _MAX_POSITIONS:
                sums.positions[int(position)] = sums.positions.get(int(position), 0.0) + value
        else:
            sums.totals[_SUMMED[name]] = sums.totals.get(_SUMMED[name], 0.0) + value
    for sums in found.values():
        sums.settings.update(config)
    return Exposition(epoch, found)


def _number(raw: str) -> float | None:
    try:
        value = float(raw)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _unescape(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]
