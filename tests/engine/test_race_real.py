"""Measured runs on real engines: the verdict, the counts, the controls, as the command line and the page get them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from specdemo.core.assess import assess
from specdemo.core.events import SIDES, Finished, Side
from specdemo.core.prompt import Sampling, chat
from specdemo.core.run import RunPlan, RunRecord
from specdemo.engines.client import VllmEngine
from specdemo.engines.speculation import parse_speculation
from specdemo.engines.supervisor import Supervisor, vllm_launcher
from specdemo.runs.log import RunLog
from specdemo.runs.race import run
from tests.engine.conftest import SERVED_NAME, RealPair, log_tails

TRACES = Path(__file__).parents[1] / "traces"
STD, SPEC = SIDES
PROMPTS = ("list", "chat", "code", "summ", "zh")


def recorded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((TRACES / f"{name}.json").read_text(encoding="utf-8"))
    return found


async def measured(urls: dict[Side, str], plan: RunPlan) -> RunRecord:
    engines = {side: VllmEngine(side, url, model=SERVED_NAME) for side, url in urls.items()}
    try:
        return await run(plan, engines, log=RunLog())
    finally:
        for engine in engines.values():
            await engine.aclose()


def pair_run(real_pair: RealPair, text: str, *, max_tokens: int = 160, **plan: Any) -> RunRecord:
    urls = {side: real_pair.url(side) for side in SIDES}
    asked = RunPlan(chat(text, sampling=Sampling(max_tokens=max_tokens)), mode="measure", **plan)
    return real_pair.loop.run(measured(urls, asked))


@pytest.mark.parametrize("name", PROMPTS)
def test_recorded_prompts(real_pair: RealPair, name: str) -> None:
    """Each recorded prompt gives identical tokens, and the counts shown are those of the engine's own metrics object."""
    record = pair_run(real_pair, recorded(f"ngram-{name}")["prompt"], warmup=False)
    found = assess(record)
    finished = next(event for event in record.events if isinstance(event, Finished) and event.side is SPEC)
    own, shown = finished.speculation, found.speculative.metrics.acceptance

    assert found.verdict.cls in ("identical", "identical_to_limit"), found.verdict
    assert found.standard.token_ids == found.speculative.token_ids
    assert own is not None
    assert (shown.source, shown.drafted, shown.accepted, shown.drafting_steps) == (
        "request", own.drafted, own.accepted, own.steps,
    )  # fmt: skip


def test_counts_of_one_request_match_the_engines_counters(real_pair: RealPair) -> None:
    """What /metrics counted during a measured run alone on the engine is what the run shows."""
    before = counters(real_pair.url(SPEC))
    record = pair_run(real_pair, recorded("ngram-list")["prompt"], warmup=False)
    after = counters(real_pair.url(SPEC))
    shown = assess(record).speculative.metrics.acceptance

    assert (shown.drafted, shown.accepted, shown.drafting_steps) == tuple(
        after[name] - before[name] for name in ("draft_tokens", "accepted_tokens", "drafts")
    )


def counters(url: str) -> dict[str, int]:
    """The spec_decode totals, read without the project's own code."""
    text = httpx.get(f"{url}/metrics", timeout=30, trust_env=False).text
    found = {}
    for name in ("drafts", "draft_tokens", "accepted_tokens"):
        lines = [line for line in text.splitlines() if line.startswith(f"vllm:spec_decode_num_{name}_total{{")]
        found[name] = int(sum(float(line.rsplit(" ", 1)[1]) for line in lines))
    return found


def test_control(real_pair: RealPair) -> None:
    """The standard engine against itself gives the same tokens twice, and nothing was tested by it."""
    found = assess(pair_run(real_pair, recorded("ngram-code")["prompt"], control=True))

    assert found.standard.token_ids == found.speculative.token_ids
    assert found.speculative.metrics.acceptance.drafted is None
    assert found.verdict.cls in ("identical", "identical_to_limit", "not_tested")


def test_recheck(real_pair: RealPair) -> None:
    """Teacher-forced through the standard engine, every token of the speculative text is its own first choice."""
    record = pair_run(real_pair, recorded("ngram-list")["prompt"], max_tokens=48, recheck=True)

    assert record.probe is not None
    assert record.probe.error is None
    assert (record.probe.recheck_top_share, record.probe.recheck_positions) == (1.0, 48)


def test_stop_frees_the_engines(real_pair: RealPair) -> None:
    """A stop in the middle of both streams leaves neither engine with a running request."""
    urls = {side: real_pair.url(side) for side in SIDES}
    plan = RunPlan(chat("Count to ten thousand.", sampling=Sampling(max_tokens=1500, ignore_eos=True)), warmup=False)

    async def stopped() -> None:
        log = RunLog()
        engines = {side: VllmEngine(side, url, model=SERVED_NAME) for side, url in urls.items()}
        task = asyncio.ensure_future(run(plan, engines, log=log))
        async for _ in log.follow():
            texts = assess(log.record())
            if texts.standard.text and texts.speculative.text:
                break
        task.cancel()
        await asyncio.wait([task])
        async with asyncio.timeout(30):
            while any([(await engine.counters()).requests_running for engine in engines.values()]):  # type: ignore[union-attr]
                await asyncio.sleep(0.05)
        for engine in engines.values():
            await engine.aclose()

    real_pair.loop.run(stopped())


@pytest.fixture(scope="module")
def other_pair(real_pair: RealPair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Supervisor]:
    """The standard engine's slot takes another model (its last layer damaged), the other drafts with its own target."""
    folder = damaged(Path(real_pair.pair.standard.model), tmp_path_factory.mktemp("model") / "other")
    self_draft = parse_speculation(
        {"method": "draft_model", "model": real_pair.pair.standard.model, "num_speculative_tokens": 3}
    )
    supervisor = Supervisor(
        replace(real_pair.pair.standard, model=str(folder)),
        replace(real_pair.pair.speculative, speculation=self_draft),
        state_dir=tmp_path_factory.mktemp("engines"),
        launcher=vllm_launcher(real_pair.python, version=real_pair.version),
        version=real_pair.version,
    )

    async def ready() -> None:
        await supervisor.start_all()
        try:
            await supervisor.wait_ready(400)
        except BaseException:
            print(log_tails(supervisor))
            await supervisor.aclose()
            raise

    real_pair.loop.run(ready())
    yield supervisor
    real_pair.loop.run(supervisor.aclose())


def damaged(model: Path, folder: Path) -> Path:
    """A copy of the model whose final norm is reversed: same tokenizer and sizes, other choices."""
    folder.mkdir(parents=True)
    for path in model.iterdir():
        if path.suffix != ".safetensors" and path.is_file():
            (folder / path.name).write_bytes(path.read_bytes())
    source = next(model.glob("*.safetensors"))
    blob = bytearray(source.read_bytes())
    size = int.from_bytes(blob[:8], "little")
    tensor = json.loads(blob[8 : 8 + size])["model.norm.weight"]
    begin, end = (8 + size + offset for offset in tensor["data_offsets"])
    width = {"F32": 4, "F16": 2, "BF16": 2}[tensor["dtype"]]
    values = [bytes(blob[at : at + width]) for at in range(begin, end, width)]
    blob[begin:end] = b"".join(reversed(values))
    (folder / source.name).write_bytes(bytes(blob))
    return folder


def test_drafting_with_the_target_itself(real_pair: RealPair, other_pair: Supervisor) -> None:
    """A draft model that is the target itself is accepted in full."""
    urls = {STD: real_pair.url(STD), SPEC: str(other_pair.base_url(SPEC))}
    plan = RunPlan(
        chat(recorded("ngram-chat")["prompt"], sampling=Sampling(max_tokens=64)), mode="measure", warmup=False
    )
    found = assess(real_pair.loop.run(measured(urls, plan)))
    shown = found.speculative.metrics.acceptance

    assert (shown.rate, shown.mean_length) == (1.0, 4.0)
    assert found.verdict.cls in ("identical", "identical_to_limit")


def test_another_model_is_found_out(real_pair: RealPair, other_pair: Supervisor) -> None:
    """A pair whose models differ is a real difference, or not comparable, at the first token that differs."""
    urls = {STD: str(other_pair.base_url(STD)), SPEC: real_pair.url(SPEC)}
    plan = RunPlan(
        chat(recorded("ngram-list")["prompt"], sampling=Sampling(max_tokens=24)), mode="measure", warmup=False
    )
    found = assess(real_pair.loop.run(measured(urls, plan)))
    ours, theirs = found.standard.token_ids, found.speculative.token_ids
    assert ours is not None
    assert theirs is not None
    split = next(at for at, (left, right) in enumerate(zip(ours, theirs, strict=False)) if left != right)

    assert found.verdict.cls in ("different", "not_comparable")
    assert found.verdict.compared == split
    assert found.verdict.position == split
