"""After the streams: candidates at the split, and the re-check, asked of the standard engine alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specdemo.core.assess import assess
from specdemo.core.events import SIDES, Side, TopToken
from specdemo.core.prompt import Sampling, chat
from specdemo.core.run import RunPlan, RunRecord
from specdemo.errors import EngineRejected
from specdemo.runs.log import RunLog
from specdemo.runs.ports import ScoredToken
from specdemo.runs.race import Surroundings, run
from tests.fakes.engines import FakeEngine, facts, pair

STD, SPEC = SIDES
PLAN = RunPlan(chat("hello"), warmup=False)


async def go(plan: RunPlan, engines: dict[Side, FakeEngine]) -> RunRecord:
    return await run(plan, engines, log=RunLog(), around=Surroundings(clock=engines[STD].clock))


async def test_split_is_probed_on_the_standard_engine() -> None:
    """At the first split the standard engine is asked, after prompt and common tokens, for both sides' candidates."""
    engines = pair(best=(TopToken(12, "a", -0.5), TopToken(99, "b", -0.5004)))
    engines[SPEC].bursts = ((10,), (11, 99, 98))
    record = await go(PLAN, engines)
    verdict = assess(record).verdict

    assert engines[STD].asked == [((1, 2, 3, 10, 11), (12, 99))]
    assert engines[SPEC].asked == []
    assert record.probe is not None
    assert (verdict.position, verdict.cls) == (2, "near_tie")


async def test_real_difference() -> None:
    """A gap above the tolerance is a real difference."""
    engines = pair(best=(TopToken(12, "a", -0.1), TopToken(99, "b", -3.0)))
    engines[SPEC].bursts = ((10,), (11, 99))

    assert assess(await go(PLAN, engines)).verdict.cls == "different"


async def test_failed_probe_is_told() -> None:
    """A probe that fails leaves its reason in the record, and the run stands."""
    engines = pair(best=EngineRejected("no logprobs here"))
    engines[SPEC].bursts = ((10,), (99,))
    record = await go(PLAN, engines)

    assert record.probe is not None
    assert "no logprobs here" in (record.probe.error or "")


async def test_no_probe_when_nothing_is_claimed() -> None:
    """A31: at a temperature above 0 nothing is probed and no token identity is claimed."""
    engines = pair()
    engines[SPEC].bursts = ((10,), (77,))
    record = await go(RunPlan(chat("x", sampling=Sampling(temperature=0.8, seed=42)), warmup=False), engines)

    assert (engines[STD].asked, record.probe, assess(record).verdict.cls) == ([], None, "not_comparable")


async def test_unknown_prompt_ids() -> None:
    """A split on engines that tell no prompt ids is told as such."""
    engines = pair(prompt_ids=None)
    engines[SPEC].bursts = ((10,), (99,))
    record = await go(PLAN, engines)

    assert record.probe is not None
    assert "no prompt token ids" in (record.probe.error or "")


async def test_recheck() -> None:
    """--recheck teacher-forces the speculative tokens through the standard engine and keeps share and largest gap."""
    scores = [
        ScoredToken(10, -0.1, 1, (TopToken(10, "", -0.1), TopToken(5, "", -2.0))),
        ScoredToken(11, -1.0, 2, (TopToken(7, "", -0.25), TopToken(11, "", -1.0))),
        ScoredToken(12, -0.1, 1, ()),
    ]
    engines = pair(scores=scores)
    record = await go(replace(PLAN, recheck=True), engines)

    assert engines[STD].asked == [((1, 2, 3), (10, 11, 12))]
    assert record.probe is not None
    assert (
        record.probe.recheck_top_share,
        record.probe.recheck_positions,
        record.probe.recheck_largest_gap,
    ) == (2 / 3, 3, 0.75)


@pytest.mark.parametrize("scores", [EngineRejected("cannot score"), ()])
async def test_failed_recheck(scores: object) -> None:
    """A re-check that fails, or scores nothing, says so and claims nothing."""
    record = await go(replace(PLAN, recheck=True), pair(scores=scores))

    assert record.probe is not None
    assert record.probe.error
    assert record.probe.recheck_top_share is None


async def test_other_model_has_a_position_and_no_probe() -> None:
    """Engines that serve different models are not comparable; where their outputs part is told, and nothing is probed."""
    engines = pair()
    engines[STD].known = facts(STD, root="a/one")
    engines[SPEC].known = facts(SPEC, root="b/two")
    engines[SPEC].bursts = ((10,), (99, 98))
    record = await go(PLAN, engines)
    verdict = assess(record).verdict

    assert (verdict.cls, verdict.position, verdict.compared, record.probe) == ("not_comparable", 1, 1, None)
