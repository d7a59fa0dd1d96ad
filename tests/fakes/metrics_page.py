"""The counters of a scripted engine and their Prometheus text, shaped like vLLM's (``_created`` gauges included)."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from tests.fakes.script import Step


@dataclass(slots=True)
class Counters:
    """Process-lifetime totals."""

    k: int | None
    started: float = field(default_factory=time.time)
    running: int = 0
    waiting: int = 0
    finished: int = 0
    aborted: int = 0
    prompt_tokens: int = 0
    generation_tokens: int = 0
    drafts: int = 0
    draft_tokens: int = 0
    accepted: int = 0
    per_position: list[int] = field(default_factory=list)

    def step(self, step: Step) -> None:
        """Count one engine step."""
        self.generation_tokens += len(step.ids)
        if step.drafted and self.k:
            self.drafts += 1
            self.draft_tokens += step.drafted
            self.accepted += step.accepted or 0
            self.per_position = self.per_position or [0] * self.k
            for position in range(min(step.accepted or 0, self.k)):
                self.per_position[position] += 1


def page(counters: Counters, model: str, engines: int = 1, filler: int = 0) -> str:
    """The text of /metrics. With several engines the totals are split between them."""
    lines: list[str] = []

    def series(name: str, kind: str, total: float, extra: str = "", created: bool = True) -> None:
        if not extra or extra.endswith('"0"'):
            lines.append(f"# HELP vllm:{name} Scripted.")
            lines.append(f"# TYPE vllm:{name} {kind}")
        share, rest = divmod(int(total), engines)
        suffix = "_total" if kind == "counter" else ""
        for engine in range(engines):
            value = share + (rest if engine == 0 else 0)
            lines.append(f'vllm:{name}{suffix}{{engine="{engine}",model_name="{model}"{extra}}} {float(value)}')
            if kind == "counter" and created:
                lines.append(f'vllm:{name}_created{{engine="{engine}",model_name="{model}"{extra}}} {counters.started}')

    lines.append("# TYPE process_start_time_seconds gauge")
    lines.append(f"process_start_time_seconds {counters.started}")
    series("num_requests_running", "gauge", counters.running)
    series("num_requests_waiting", "gauge", counters.waiting)
    series("num_preemptions", "counter", 0)
    series("prefix_cache_queries", "counter", counters.prompt_tokens)
    series("prefix_cache_hits", "counter", 0)
    series("prompt_tokens", "counter", counters.prompt_tokens)
    series("generation_tokens", "counter", counters.generation_tokens)
    if counters.k:
        series("spec_decode_num_drafts", "counter", counters.drafts)
        series("spec_decode_num_draft_tokens", "counter", counters.draft_tokens)
        series("spec_decode_num_accepted_tokens", "counter", counters.accepted)
        for position in range(counters.k):
            value = counters.per_position[position] if counters.per_position else 0
            series("spec_decode_num_accepted_tokens_per_pos", "counter", value, f',position="{position}"')
    lines.append(
        f'vllm:cache_config_info{{block_size="128",cache_dtype="auto",enable_prefix_caching="False",engine="0",model_name="{model}"}} 1.0'
    )
    for index in range(filler):
        lines.append(f'vllm:e2e_request_latency_seconds_bucket{{engine="0",le="{index}.0",model_name="{model}"}} 0.0')
    return "\n".join(lines) + "\n"
