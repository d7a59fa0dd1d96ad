"""Record the runs that the page plays before its engines are ready: real runs on engines that are up, one file each.

    python tools/record_runs.py --standard-url URL --speculative-url URL --hardware "2 cores of …" --method ngram --k 4

``--near-tie`` goes through the shipped prompts until the texts of the two engines part at candidates that are equal
within the number format (engines in bfloat16 do so now and then), and records that run.

Run it on a quiet machine: whatever else runs there is in the recorded times. Each run is a measurement, one engine
after the other. A run is written only when both sides finished.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from dataclasses import replace
from pathlib import Path

from specdemo.bench.workloads import shipped
from specdemo.compose.texts import token_texts
from specdemo.core.assess import assess
from specdemo.core.events import Side
from specdemo.core.prompt import Sampling, chat
from specdemo.core.run import RunPlan, RunRecord
from specdemo.engines.client import VllmEngine
from specdemo.runs import stored
from specdemo.runs.log import RunLog
from specdemo.runs.race import Surroundings, run

TARGET = Path(__file__).resolve().parents[1] / "assets" / "runs"
WANTED = (
    (
        "1-list",
        "A list that repeats itself | 重复格式的列表",
        "List the days of the week, then list them again three times.",
        160,
    ),
    (
        "2-chinese",
        "Chinese, by the same engines | 同样的引擎，中文输出",
        "用中文写出从一月到六月，每行写：“一月的商店营业时间是九点到十七点。”",
        120,
    ),
    (
        "3-chat",
        "Free chat: little to draft from | 自由对话：几乎没有可用的草稿",
        "Why do people feel better after a walk in the park?",
        128,
    ),
    (
        "4-code",
        "Code edited: most of it is copied | 改写代码：大部分照抄",
        (
            "Rewrite the following code adding type hints. Repeat the code in full.\ndef add(a, b):\n    return a + b\n"
            "def sub(a, b):\n    return a - b\ndef mul(a, b):\n    return a * b\n"
        ),
        128,
    ),
    (
        "5-story",
        "A story: every sentence is new | 写故事：每句都是新的",
        "Tell me a short story about a lighthouse keeper who is afraid of the dark.",
        128,
    ),
    (
        "6-no-drafts",
        "Nothing to look up: no drafts at all | 无可查找：完全没有草稿",
        "为什么有的人喜欢喝茶，有的人喜欢喝咖啡？",
        96,
    ),
)

DRAFTED = (
    (
        "7-draft-model",
        "A small draft model: drafts in every step | 小型草稿模型：每一步都有草稿",
        "How should I prepare for my first job interview?",
        128,
    ),
)
"""For a pair whose speculative engine runs the shipped draft model (``--method draft_model``)."""

NEAR_TIE = ("8-near-tie", "A near tie: the texts part, and why | 近乎并列：文本分岔及其原因", 128)


async def record(arguments: argparse.Namespace) -> int:
    """All wanted runs, one after another."""
    addresses = {Side.STANDARD: arguments.standard_url, Side.SPECULATIVE: arguments.speculative_url}
    engines = {side: await _engine(side, address) for side, address in addresses.items()}
    around = Surroundings(hardware=arguments.hardware)
    failed = 0
    try:
        if arguments.near_tie:
            return await _near_tie(engines, around, arguments)
        for name, title, prompt, tokens in DRAFTED if arguments.method == "draft_model" else WANTED:
            plan = RunPlan(prompt=chat(prompt, sampling=Sampling(max_tokens=tokens)), mode="measure", recheck=True)
            made = await run(plan, engines, log=RunLog(), around=around, title=title)
            result = assess(made)
            if {result.standard.state, result.speculative.state} != {"finished"}:
                print(f"{name}: not finished, nothing written", file=sys.stderr)
                failed = 1
                continue
            stored.save(TARGET / f"{name}.json", _told(made, arguments))
            print(f"{name}: decode speedup {result.speedup.decode:.2f}, {result.verdict.cls}")
    finally:
        for engine in engines.values():
            await engine.aclose()
    return failed


async def _near_tie(engines: dict[Side, VllmEngine], around: Surroundings, arguments: argparse.Namespace) -> int:
    """The first run over the shipped prompts that ends in a near tie."""
    name, title, tokens = NEAR_TIE
    for prompt in (prompt for workload in shipped() for prompt in workload.prompts):
        plan = RunPlan(prompt=prompt.ask(Sampling(max_tokens=tokens)), mode="measure", recheck=True)
        made = await run(plan, engines, log=RunLog(), around=around, title=title)
        verdict = assess(made).verdict
        print(f"{prompt.id}: {verdict.cls}", flush=True)
        if verdict.cls == "near_tie":
            stored.save(TARGET / f"{name}.json", _told(made, arguments))
            return 0
    print("no near tie was met, nothing written", file=sys.stderr)
    return 1


async def _engine(side: Side, address: str) -> VllmEngine:
    """A client that tells single tokens of a burst apart, if the model's tokenizer file lies here."""
    asked = VllmEngine(side, address)
    try:
        facts = await asked.facts()
    finally:
        await asked.aclose()
    return VllmEngine(side, address, splitter=token_texts(facts.root or "") or token_texts(facts.model))


def _told(made: RunRecord, arguments: argparse.Namespace) -> RunRecord:
    """An attached engine cannot say its method and number format; whoever started it can."""
    standard, speculative = made.header.facts
    if speculative is not None and speculative.method is None and arguments.method:
        speculative = replace(speculative, method=arguments.method, k=speculative.k or arguments.k)
    if arguments.dtype:
        standard, speculative = (facts and replace(facts, dtype=arguments.dtype) for facts in (standard, speculative))
    return replace(made, header=replace(made.header, facts=(standard, speculative)))


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Record the runs that come with the page.")
    parser.add_argument("--standard-url", required=True)
    parser.add_argument("--speculative-url", required=True)
    parser.add_argument("--hardware", required=True, help="in words, shown beside every number")
    parser.add_argument("--method", help="the speculative engine's method, if it is attached")
    parser.add_argument("--k", type=int)
    parser.add_argument("--dtype", help="the number format that both engines compute in, such as bfloat16")
    parser.add_argument("--near-tie", action="store_true")
    return asyncio.run(record(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
