"""A Chinese report says the results' own sentences in Chinese, and leaves an engine's words alone."""

from __future__ import annotations

import json
import re
import string
from collections import Counter

import pytest

from specdemo.bench.acceptance import NO_DRAFTS, NO_NUMBERS
from specdemo.bench.arms import totals
from specdemo.bench.identity import _word, identity
from specdemo.bench.plan import BenchPlan
from specdemo.bench.reliability import Reliability
from specdemo.bench.report.words import FOLDER, speaker
from specdemo.bench.sampling.scoring import ArmScore, Component
from specdemo.bench.sampling.tree import TreeTest
from specdemo.bench.sampling.verdict import POWER, Finding, _missing, _words, judge, judge_tree
from specdemo.bench.summary import CONTROL_SHORT, UNBOUNDED, _caveats, _doubts, summarise
from specdemo.core.events import Side
from tests.fakes.bench_samples import prompts

NONE = Component("x", None, None, None, None, 0)


def score(**more: object) -> ArmScore:
    """An arm that knows nothing."""
    told: dict[str, object] = {"config": "plain", "tokens": 10, "skipped": 20, "violations": 0}
    told |= dict.fromkeys(("temperature", "top1", "pit", "leak"), NONE) | {
        "effective_temperature": None,
        "histogram": (),
    }
    return ArmScore(**{**told, **more})  # type: ignore[arg-type]


def finding(name: str, effect: float) -> Finding:
    """Something that decides."""
    return Finding("plain", Component(name, 9.0, 1e-9, effect, 0.01, 100), 1e-8, decides=True)


def sentences() -> list[str]:
    """What results can say, from the functions that say it."""
    plan = BenchPlan(prompts(2))
    summary = summarise(plan, (), planned=8)
    counts = [Counter({kind: 2}) for kind in ("mismatch", "unexplained", "suspicious", "near_tie", "identical")]
    said = [_word(count, 5, 0, p, True)[1] for count in counts for p in (0.01, None)]
    said += [_word(Counter(), 5, 1, None, True)[1], _word(Counter(), 5, 0, None, False)[1]]
    said += [identity((), {}, tolerance=0.1, greedy=greedy, drafted=None).reason for greedy in (True, False)]
    said += [*summary.why_not_certified, *_doubts(None, summary.control, plan), NO_DRAFTS, NO_NUMBERS]
    said += _caveats(totals(()), totals(()), 2)
    for kind, level in (("measure", 8), ("control", 1)):
        lost = Reliability(kind, level, Side.SPECULATIVE, 64, 25, (("rejected", 25),))  # type: ignore[arg-type]
        said += _doubts(None, summary.control, BenchPlan(prompts(2), levels=(1, 8)), (lost,))
    said += [UNBOUNDED, CONTROL_SHORT]
    said += _missing([score()], {}) + _missing([], {})
    for name in ("temperature", "top1", "pit", "leak"):
        said += [_words(finding(name, effect), score()) for effect in (0.2, -0.2)]
    said.append(_words(finding("temperature", 0.2), score(effective_temperature=1.2)))
    said += [judge((), (), died="index 60 is out of bounds").sentence]
    said += [judge((), (score(violations=5),)).sentence, judge((score(violations=5),), ()).sentence]
    said += [judge((score(),), (score(),)).sentence]
    trees = [TreeTest(p, (("a", 0.5),), 3, 199) for p in (None, 0.001, 0.5)]
    said += [judge_tree(tree, None).sentence for tree in trees]
    said += [judge_tree(trees[2], trees[1]).sentence, *judge_tree(trees[2], None).missing, *POWER]
    return list(dict.fromkeys(said))


@pytest.mark.parametrize("text", sentences())
def test_every_sentence_of_the_results_has_its_chinese(text: str) -> None:
    """In English it stays as it is; in Chinese no English clause is left of it but names and an engine's words."""
    assert speaker("en").told(text) == text
    chinese = speaker("zh").told(text)
    assert chinese != text
    left = re.sub(r"index 60 is out of bounds|Cramér V|corrected p", "", chinese)
    assert not re.search(r"[A-Za-z]{3,} [A-Za-z]{3,}", left.replace("specdemo validate", "")), chinese


def test_an_engine_is_quoted() -> None:
    """What is none of our sentences is told as it came."""
    for text in ("CUDA out of memory.", "x" * 5000, ""):
        assert speaker("zh").told(text) == text


def test_patterns_have_the_same_places() -> None:
    """A value of the English sentence is told in the Chinese one too."""
    found = [json.loads((FOLDER / f"{name}.zh.json").read_text(encoding="utf-8")) for name in ("sentences", "forms")]
    assert not found[0].keys() & found[1].keys()
    for english, chinese in (found[0] | found[1]).items():
        places = [{name for _, name, _, _ in string.Formatter().parse(text) if name} for text in (english, chinese)]
        assert places[0] == places[1], english
