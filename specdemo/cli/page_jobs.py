"""Long work on the page's engines: what a benchmark, sweep or validation started from a tab gets to know."""

from __future__ import annotations

from specdemo import __version__
from specdemo.cli.bench_common import is_local
from specdemo.compose import Deployment, folders
from specdemo.engines.busy import busy_share
from specdemo.runs.jobs import Jobs, Workshop
from specdemo.runs.registry import Registry
from specdemo.runs.tuner import MethodTuner
from specdemo.settings import Settings


def jobs_of(deployment: Deployment, registry: Registry, settings: Settings) -> Jobs:
    """Results go to where the command line puts its own."""
    control, managed = deployment.control, deployment.managed

    def statuses() -> list[tuple[str | None, int | None]]:
        return [(s.command, s.memory_bytes) for s in control.statuses()] if control is not None else [(None, None)] * 2

    def commands() -> tuple[str | None, str | None]:
        (first, _), (second, _) = statuses()
        return first, second

    def memory() -> tuple[int | None, int | None]:
        (_, first), (_, second) = statuses()
        return first, second

    local = control is not None and all(is_local(status.base_url) for status in control.statuses())
    tuner = None
    if managed is not None and control is not None:
        tuner = MethodTuner(managed.method, control, limit_s=settings.engine.ready_timeout_s)
    return Jobs(
        registry,
        Workshop(
            engines=lambda: deployment.engines,
            folder=folders(settings).data,
            version=__version__,
            hardware=deployment.around.hardware,
            commands=commands,
            memory=memory,
            busy=busy_share if local else None,
            refuse=deployment.around.refuse,
            tuner=tuner,
        ),
    )
