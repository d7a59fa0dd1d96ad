"""Another speculation method on real engines while the standard one stays up."""

from __future__ import annotations

from pathlib import Path

import pytest

from specdemo.compose import open_deployment
from specdemo.core.assess import assess
from specdemo.core.events import SIDES
from specdemo.core.prompt import Sampling, chat
from specdemo.core.run import RunPlan
from specdemo.runs.log import RunLog
from specdemo.runs.race import run
from specdemo.settings import load
from tests.engine.conftest import REPETITIVE

pytestmark = pytest.mark.engine
STD, SPEC = SIDES


async def test_draft_length_and_off_on_real_engines(embedded_model: str, engine_python: Path, tmp_path: Path) -> None:
    """A run after the change drafts with the new k, equals the standard text, and with speculation off nothing is drafted."""
    given = {"engine.model": embedded_model, "engine.python": str(engine_python), "data_dir": str(tmp_path)}
    plan = RunPlan(chat(REPETITIVE, sampling=Sampling(max_tokens=48)), mode="measure")
    async with open_deployment(load(given, environ={}, folder=tmp_path).settings, reuse=False) as found:
        assert found.managed is not None
        assert found.engines is not None
        await found.wait_ready(400)
        pid = found.managed.statuses()[0].pid
        assert found.managed.method.switching() is not None

        await found.managed.method.switch("ngram", 3)
        await found.wait_ready(400)
        facts = await found.engines[SPEC].facts()
        said = assess(await run(plan, found.engines, log=RunLog(), around=found.around))
        assert (facts.method, facts.k, said.theory.k) == ("ngram", 3, 3)
        assert said.verdict.cls in ("identical", "identical_to_limit", "near_tie")
        assert (said.speculative.metrics.acceptance.accepted or 0) > 0
        switching = found.managed.method.switching()
        assert switching is not None
        ngram = next(choice for choice in switching.choices if choice.name == "ngram")
        assert (ngram.memory_bytes or 0) > 2**28
        assert {k for k, _ in ngram.start_s} == {3, 8}

        await found.managed.method.switch("none", None)
        await found.wait_ready(400)
        said = assess(await run(plan, found.engines, log=RunLog(), around=found.around))
        assert said.verdict.cls == "not_tested"
        assert found.managed.statuses()[0].pid == pid
