"""Sampling validation: draw from both engines, let the standard one score every draw, judge.

Draws come in rounds (one sequence of every prompt, setting and arm), so that a time budget may end anywhere and leave
balanced data. A speculative engine that dies while the standard one lives is a finding, not a mishap.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from specdemo.bench.sampling.drafts import Lookup, drafted
from specdemo.bench.sampling.duplicates import duplicates
from specdemo.bench.sampling.result import ValidationResult
from specdemo.bench.sampling.scoring import FP32_TOLERANCES, HALF_TOLERANCES, ArmScore, Scored, Scorer
from specdemo.bench.sampling.settings import SamplingConfig, ValidationPlan, check_validation
from specdemo.bench.sampling.tree import TreeTest, tree_test
from specdemo.bench.sampling.verdict import judge, judge_tree
from specdemo.core.engine import EngineFacts
from specdemo.core.events import Failed, Finished, RequestSpeculation, Side, Tokens
from specdemo.core.prompt import Prompt
from specdemo.errors import EngineRejected, EngineUnavailable
from specdemo.runs.bench_block import LOST, alive
from specdemo.runs.ports import Clock, Engine
from specdemo.runs.streams import closing

Ids = tuple[int, ...]
T = TypeVar("T")
TRIES = 3
PART = {"A": Side.STANDARD, "B": Side.SPECULATIVE}


@dataclass(frozen=True, slots=True)
class ValidationProgress:
    """How far it is: rounds made, sequences drawn and scored in all, seconds.

    ``standard`` and ``speculative`` are the evidence so far by setting, empty while nothing was scored.
    """

    rounds: int
    planned: int
    sequences: int
    elapsed_s: float
    standard: tuple[ArmScore, ...] = ()
    speculative: tuple[ArmScore, ...] = ()


@dataclass(frozen=True, slots=True)
class ValidationAround:
    """``lookup`` is the n-gram method's own setting where known; ``stopped`` ends after the round at hand."""

    clock: Clock = time.monotonic
    wall: Clock = time.time
    lookup: Lookup | None = None
    on_progress: Callable[[ValidationProgress], None] | None = None
    stopped: asyncio.Event = field(default_factory=asyncio.Event)


class _Died(Exception):
    """The speculative engine is gone; the text is its last line."""


class _NoScores(Exception):
    """The standard engine offers no prompt logprobs."""


@dataclass(slots=True)
class _Arm:
    """One arm under one setting."""

    scorer: Scorer
    draws: dict[str, list[Ids]] = field(default_factory=lambda: defaultdict(list))
    tokens: int = 0
    tried: int = 0
    told: bool = False


async def validate(
    plan: ValidationPlan, engines: Mapping[Side, Engine], around: ValidationAround | None = None
) -> ValidationResult:
    """Run the plan. Raises UsageError for an impossible plan and EngineError when the standard engine is lost."""
    check_validation(plan)
    return await _Validation(plan, engines, around or ValidationAround()).go()


class _Validation:
    def __init__(self, plan: ValidationPlan, engines: Mapping[Side, Engine], around: ValidationAround) -> None:
        self._plan = plan
        self._engines = engines
        self._around = around
        self._zero = around.clock()
        self._slots = asyncio.Semaphore(plan.concurrency)
        self._arms: dict[tuple[str, str], _Arm] = {}
        self._prompt_ids: dict[str, Ids] = {}
        self._scores = True
        self._sequences = 0
        self._retried = 0
        self._lookup = around.lookup or Lookup()

    async def go(self) -> ValidationResult:
        facts = await self._facts()
        self._lookup, sure, words = _lookup(self._around.lookup, facts[1])
        half = facts[0].dtype is not None and "float32" not in facts[0].dtype
        for config in self._plan.configs:
            for arm in PART:
                tolerances = HALF_TOLERANCES if half else FP32_TOLERANCES
                scorer = Scorer(config, self._plan.listed, tolerances, seed=hash_seed(self._plan.seed, config, arm))
                self._arms[config.name, arm] = _Arm(scorer)
        rounds, died = 0, None
        try:
            for draw in range(self._plan.draws):
                if self._over(rounds):
                    break
                await self._round(draw)
                rounds += 1
                self._report(rounds)
        except _Died as death:
            died = str(death)
        return self._result(facts, rounds, died, sure=sure, lookup=words)

    async def _facts(self) -> tuple[EngineFacts, EngineFacts]:
        standard, speculative = (self._engines[side] for side in (Side.STANDARD, Side.SPECULATIVE))
        return await standard.facts(), await speculative.facts()

    def _over(self, rounds: int) -> bool:
        if self._around.stopped.is_set():
            return True
        budget = self._plan.budget_s
        if budget is None or rounds == 0:
            return False
        elapsed = self._around.clock() - self._zero
        return elapsed + elapsed / rounds > budget

    # ------------------------------------------------------------------ drawing and scoring

    async def _round(self, draw: int) -> None:
        """One sequence of each prompt for each setting and arm; arms one after the other, prompts side by side."""
        for config_index, config in enumerate(self._plan.configs):
            for arm in ("A", "B") if draw % 2 == 0 else ("B", "A"):
                found = await _together(
                    [self._draw(config, config_index, arm, place, draw) for place in range(len(self._plan.prompts))]
                )
                for prompt, ids in zip(self._plan.prompts, found, strict=True):
                    self._arms[config.name, arm].draws[prompt.id].append(ids)
            if self._scores:
                await self._score_round(config)

    async def _draw(self, config: SamplingConfig, config_index: int, arm: str, place: int, draw: int) -> Ids:
        """One sequence; its request may be made again (the same seed) if it stalls on a living engine."""
        prompt = self._plan.prompts[place]
        engine = self._engines[PART[arm]]
        seed = self._plan.seed_of(config_index, 0 if arm == "A" else 1, place, draw)
        asked = prompt.ask(config.sampling(self._plan.tokens, seed))
        ids, end = await self._answered(engine, asked, arm)
        if not ids:
            raise EngineRejected(f"The {engine.side} engine sends no token ids, so draws can't be compared.")
        if end is not None:
            _count(self._arms[config.name, arm], end.speculation, len(ids))
            if end.prompt_token_ids:
                self._prompt_ids[prompt.id] = end.prompt_token_ids
        if prompt.id not in self._prompt_ids:
            self._prompt_ids[prompt.id] = await engine.tokenize(asked) or ()
        self._sequences += 1
        return ids

    async def _answered(self, engine: Engine, asked: Prompt, arm: str) -> tuple[Ids, Finished | None]:
        last = ""
        for attempt in range(1, TRIES + 1):
            async with self._slots:
                ids, failure, end = await self._ask(engine, asked)
            if failure is None:
                return ids, end
            await self._failed(engine, arm, failure)
            self._retried += 1
            last = f"The {engine.side} engine failed {attempt} times: {failure.message}"
        raise EngineUnavailable(last)

    async def _ask(self, engine: Engine, asked: Prompt) -> tuple[Ids, Failed | None, Finished | None]:
        ids: list[int] = []
        failure: Failed | None = None
        end: Finished | None = None
        async with closing(engine.stream(asked, zero=self._zero, cache_salt=secrets.token_hex(16))) as events:
            async for event in events:
                if isinstance(event, Tokens):
                    ids.extend(event.ids)
                elif isinstance(event, Failed):
                    failure = event
                elif isinstance(event, Finished):
                    end = event
        return tuple(ids), failure, end

    async def _failed(self, engine: Engine, arm: str, event: Failed) -> None:
        """Raises unless the request may be made again."""
        if event.kind not in LOST:
            raise EngineRejected(f"The {engine.side} engine refused a sampled request: {event.message}")
        if not await alive(engine):
            if arm == "B":
                raise _Died(event.message)
            raise EngineUnavailable(f"The standard engine was lost: {event.message}")

    async def _score_round(self, config: SamplingConfig) -> None:
        for arm in PART:
            held = self._arms[config.name, arm]
            try:
                found = await _together(
                    [self._score(prompt.id, held.draws[prompt.id][-1]) for prompt in self._plan.prompts]
                )
            except _NoScores:
                self._scores = False
                return
            for tokens in found:
                held.scorer.add(tokens)

    async def _score(self, prompt_id: str, ids: Ids) -> list[Scored]:
        prompt_ids = self._prompt_ids.get(prompt_id) or ()
        if not prompt_ids:
            raise _NoScores
        try:
            async with self._slots:
                scored = await self._engines[Side.STANDARD].score(prompt_ids, ids, top=self._plan.listed)
        except EngineRejected:
            raise _NoScores from None
        if len(scored) != len(ids):
            raise _NoScores
        drafts = drafted(prompt_ids, ids, self._lookup)
        return [Scored(t.id, t.logprob, t.top, draft) for t, draft in zip(scored, drafts, strict=True)]

    # ------------------------------------------------------------------ judging

    def _result(
        self, facts: tuple[EngineFacts, EngineFacts], rounds: int, died: str | None, *, sure: bool, lookup: str
    ) -> ValidationResult:
        standard, speculative = self._arm_scores("A"), self._arm_scores("B")
        repeats = tuple(
            duplicates(self._arms[c.name, "A"].draws, self._arms[c.name, "B"].draws) for c in self._plan.configs
        )
        shares = {c.name: share for c in self._plan.configs if (share := _share(self._arms[c.name, "B"])) is not None}
        tree: TreeTest | None = None
        if self._scores and any(arm.tokens for arm in standard):
            known = shares if shares or sure else {c.name: 0.0 for c in self._plan.configs}
            verdict = judge(standard, speculative, alpha=self._plan.alpha, died=died, repeats=repeats, drafted=known)
        else:
            tree = self._tree()
            verdict = judge_tree(tree, None, alpha=self._plan.alpha)
            if died is not None:
                verdict = judge((), (), died=died)
        return ValidationResult(
            verdict=verdict,
            plan=self._plan,
            method="scores" if tree is None else "tree",
            rounds=rounds,
            standard=standard if tree is None else (),
            speculative=speculative if tree is None else (),
            duplicates=repeats,
            tree=tree,
            drafted_share=tuple(sorted(shares.items())),
            lookup=lookup,
            facts=facts,
            seconds=self._around.clock() - self._zero,
            started_at=self._around.wall(),
            retried=self._retried,
        )

    def _tree(self) -> TreeTest:
        arms: dict[str, dict[str, list[Ids]]] = {"A": {}, "B": {}}
        for (config, arm), held in self._arms.items():
            for prompt, draws in held.draws.items():
                arms[arm][f"{prompt} ({config})"] = draws
        return tree_test(arms["A"], arms["B"], permutations=self._plan.permutations, seed=self._plan.seed)

    def _report(self, rounds: int) -> None:
        if self._around.on_progress is not None:
            elapsed = self._around.clock() - self._zero
            arms = [self._arm_scores(arm) for arm in PART] if self._scores else [(), ()]
            self._around.on_progress(ValidationProgress(rounds, self._plan.draws, self._sequences, elapsed, *arms))

    def _arm_scores(self, arm: str) -> tuple[ArmScore, ...]:
        return tuple(self._arms[config.name, arm].scorer.result() for config in self._plan.configs)


async def _together(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """All results in order; the first failure cancels the others and is raised as itself."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in work]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


def hash_seed(seed: int, config: SamplingConfig, arm: str) -> int:
    """A seed for the scorer's own randomness, apart from every request's seed."""
    return int.from_bytes(f"{seed}/{config.name}/{arm}".encode(), "big") % (2**61 - 1)


def _lookup(given: Lookup | None, facts: EngineFacts) -> tuple[Lookup, bool, str]:
    """(lookup, whether it is surely the engine's own, words). The leak test is valid with any guess."""
    if given is not None:
        return given, True, f"n-gram drafts recomputed (k {given.k}, {given.shortest} to {given.longest} tokens)"
    guess = Lookup(k=facts.k or 4)
    if facts.method == "ngram":
        return guess, True, f"n-gram drafts recomputed with vLLM's usual lengths (k {guess.k}, 2 to 4 tokens)"
    return guess, False, "drafts unknown: the leak test only covers tokens that an n-gram would have drafted"


def _count(held: _Arm, speculation: RequestSpeculation | None, tokens: int) -> None:
    held.tokens += tokens
    if speculation is not None and speculation.steps is not None:
        held.told = True
        held.tried += speculation.steps + speculation.accepted


def _share(held: _Arm) -> float | None:
    """Tokens at which a draft was tried, by the engine's own count: one a drafting step, and one an accepted draft."""
    return min(1.0, held.tried / held.tokens) if held.told and held.tokens else None
