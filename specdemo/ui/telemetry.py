"""Figures of the page itself for Prometheus: runs, queue, viewers, refusals, engine states, bytes, process.

No label and no value comes from a visitor: no prompt, no run id, no address, no model name.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.gc_collector import GCCollector
from prometheus_client.metrics_core import Metric
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from specdemo.core.engine import EngineState, EngineStatus
from specdemo.core.events import Failed, Finished
from specdemo.runs.registry import LiveRun

_log = logging.getLogger(__name__)

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800)
_REASONS = frozenset({
    "runs", "open_runs", "requests", "streams", "stored", "size", "sign_in", "closing", "usage", "prompt",
    "unavailable", "limit", "host", "cross_site", "closed_route",
})  # fmt: skip

Reading = Callable[[], Iterable[tuple[str, str, float, dict[str, str]]]]
"""Gauges read when asked for: (name, help, value, labels)."""


class Telemetry:
    """One page's own figures, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._runs = Counter(
            "specdemo_runs", "Runs that ended, by mode and outcome.", ["mode", "outcome"], registry=self.registry
        )
        self._seconds = Histogram(
            "specdemo_run_seconds", "From the request to the end of a run, waiting included (s).", ["mode"],
            buckets=_SECONDS, registry=self.registry,
        )  # fmt: skip
        self._refused = Counter(
            "specdemo_refusals", "Requests and runs that were refused.", ["reason"], registry=self.registry
        )
        self.viewers = Gauge("specdemo_viewers", "Open streams of frames.", registry=self.registry)
        self._bytes = Counter("specdemo_frame_bytes", "Bytes of frames sent to viewers.", registry=self.registry)
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)

    def watch(self, read: Reading) -> None:
        """Add gauges that are read at each scrape."""
        self.registry.register(_Gauges(read))

    def began(self, live: LiveRun) -> None:
        """A run was queued; its end is counted and logged."""
        zero = time.monotonic()
        _log.info("run queued", extra={"event": "run_queued", "run": live.id, "mode": live.plan.mode})
        if live.task is not None:
            live.task.add_done_callback(lambda _: self._ended(live, time.monotonic() - zero))

    def refused(self, reason: str) -> None:
        """Something was refused, for one of a fixed set of reasons."""
        self._refused.labels(reason if reason in _REASONS else "other").inc()

    def sent(self, size: int) -> None:
        """``size`` bytes of frames went to a viewer."""
        self._bytes.inc(size)

    def text(self) -> bytes:
        """The page of figures."""
        return generate_latest(self.registry)

    def _ended(self, live: LiveRun, seconds: float) -> None:
        what = outcome(live)
        self._runs.labels(live.plan.mode, what).inc()
        self._seconds.labels(live.plan.mode).observe(seconds)
        facts = {
            "event": "run_ended",
            "run": live.id,
            "mode": live.plan.mode,
            "outcome": what,
            "seconds": round(seconds, 3),
        }
        _log.info("run ended: %s", what, extra=facts)


def outcome(live: LiveRun) -> str:
    """``finished``, ``one_side``, ``failed``, ``stopped``, or ``refused`` when it could not begin."""
    if live.error is not None:
        return "refused"
    ends = [event for event in live.log.since(0) if isinstance(event, Finished | Failed)]
    if not ends or any(isinstance(event, Failed) and event.kind == "cancelled" for event in ends):
        return "stopped"
    good = sum(isinstance(event, Finished) for event in ends)
    return ("failed", "one_side", "finished")[min(good, 2)]


def engine_states(statuses: Iterable[EngineStatus]) -> Iterator[tuple[str, str, float, dict[str, str]]]:
    """One gauge a side and state, 1 for the state that it is in."""
    for status in statuses:
        for state in EngineState:
            labels = {"side": str(status.side), "state": str(state)}
            yield (
                "specdemo_engine_state",
                "1 for the state that this engine is in.",
                float(status.state is state),
                labels,
            )


class _Gauges(Collector):
    def __init__(self, read: Reading) -> None:
        self._read = read

    def describe(self) -> Iterable[Metric]:
        """Nothing beforehand: reading is for scrapes."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """The gauges as they are now."""
        found: dict[str, GaugeMetricFamily] = {}
        for name, meaning, value, labels in self._read():
            family = found.setdefault(name, GaugeMetricFamily(name, meaning, labels=list(labels)))
            family.add_metric(list(labels.values()), value)
        yield from found.values()
