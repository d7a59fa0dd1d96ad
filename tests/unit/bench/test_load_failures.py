"""Failures and missing data above the first load level are said wherever a gain is."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from specdemo.bench import statistics as s
from specdemo.bench.gate import GateRule, decide
from specdemo.bench.jsonable import jsonable
from specdemo.bench.plan import BenchPlan
from specdemo.bench.record import BenchHeader, BenchRecord, Ending
from specdemo.bench.report import charts, html, markdown
from specdemo.bench.report.blocks import Document, Section, Text
from specdemo.bench.report.content import document, lead
from specdemo.bench.report.load import claimed, reach
from specdemo.bench.report.numbers import factor, plain, points, share
from specdemo.bench.report.words import speaker
from specdemo.bench.sample import Sample
from specdemo.bench.summary import Summary, summarise
from tests.fakes.bench_samples import failed, prompts, session

EN, ZH = speaker("en"), speaker("zh")


def two_levels(
    fails: Callable[[Sample, int], bool], levels: tuple[int, ...] = (1, 8)
) -> tuple[BenchPlan, list[Sample]]:
    """A 2x gain; ``fails`` picks by sample and its number within arm B of its level."""
    plan = BenchPlan(prompts(8), levels=levels)
    seen: dict[tuple[int, str, str], int] = {}
    made = []
    for one in session(plan, 2.0):
        key = (one.place.level, one.place.arm, one.place.kind)
        seen[key] = seen.get(key, 0) + 1
        made.append(failed(one) if fails(one, seen[key]) else one)
    return plan, made


def loaded(share: float) -> Callable[[Sample, int], bool]:
    return lambda one, n: one.place.level == 8 and one.place.arm == "B" and n <= share * 64


def page(plan: BenchPlan, samples: list[Sample], language: str = "en") -> str:
    found = BenchRecord(BenchHeader("b", 1.8e9, plan), (), tuple(samples), (), (Ending(0, "complete", "All done."),))
    made = document(found, found.summary(), language=language)
    return html.render(made) + markdown.render(made)


@pytest.mark.parametrize("count", [25, 64])
def test_failures_under_load_are_failures(count: int) -> None:
    """25 or all of 64 requests that fail at concurrency 8 take the certificate and the gate away, by name (D12)."""
    plan, samples = two_levels(loaded(count / 64))
    found = summarise(plan, samples, planned=1)
    text = f"{count} of 64 requests failed on the speculative arm at concurrency 8"
    assert not found.certified
    assert text in found.why_not_certified
    decision = decide(found, GateRule(1.2))
    assert decision.exit_code == 1
    assert (
        f"{count} of 64 requests failed on the speculative engine at concurrency 8 ({count} rejected)"
        in decision.reason
    )
    assert text in page(plan, samples)
    assert f"{count} / 64" in page(plan, samples)
    assert f"{count} of 64 at concurrency 8 (speculative)" in " ".join(reach(found, EN))
    assert f"并发 8 的 64 个请求中有 {count} 个（投机）" in " ".join(reach(found, ZH))
    assert f"{count} of 64" in claimed(found, EN)


def test_a_winner_among_the_rest_has_a_caveat() -> None:
    """Where more than 5 % failed, "faster" speaks of the others only and is not green."""
    plan, samples = two_levels(loaded(25 / 64))
    text = page(plan, samples)
    assert '<td class="warn">faster, counting only requests that did not fail</td>' in text
    plan, samples = two_levels(lambda one, n: one.place.arm == "B" and one.place.kind == "measure" and n % 3 == 0)
    sentence, mood = lead(summarise(plan, samples, planned=1), EN)
    assert "counting only requests that did not fail" in sentence
    assert mood == "warn"


def test_few_failures_are_counted_and_let_pass() -> None:
    """1 of 64 is within the limit: certified, the gate passes, and both say how many."""
    plan, samples = two_levels(loaded(1 / 64))
    found = summarise(plan, samples, planned=1)
    assert found.certified
    assert "1 requests failed, within the limit." in decide(found, GateRule(1.2)).reason
    assert "1 of 64 at concurrency 8" in " ".join(reach(found, EN))


def test_failures_on_prompts_that_other_levels_lack_count() -> None:
    """A level cut off early shares no prompt with level 8, which fails: still not certified."""
    plan, samples = two_levels(loaded(1.0))
    kept = [one for one in samples if one.place.level == 1 or one.place.prompt_id == "work-p0"]
    kept = [one for one in kept if not (one.place.level == 1 and one.place.prompt_id == "work-p0")]
    found = summarise(plan, kept, planned=1)
    assert any("at concurrency 8" in why for why in found.why_not_certified)
    assert decide(found, GateRule(1.2)).exit_code == 1
    assert "requests failed on the speculative arm at concurrency 8" in page(plan, kept)


def test_a_control_that_fails_is_no_control() -> None:
    """A control whose requests failed is not told as one that was not run, nor passed over by the gate."""
    plan, samples = two_levels(lambda one, n: one.place.kind == "control")
    found = summarise(plan, samples, planned=1)
    assert "20 of 20 requests failed in the A/A control" in found.why_not_certified
    assert "the A/A control has too little data" in found.why_not_certified
    assert decide(found, GateRule(1.2)).exit_code == 1
    assert "20 of 20 requests failed in the A/A control" in page(plan, samples)
    assert "A/A 对照的 20 个请求中有 20 个失败" in page(plan, samples, "zh")


def test_a_null_test_names_the_engine_that_failed() -> None:
    """Both arms of a null test are the standard engine; no other is accused."""
    plan = BenchPlan(prompts(6), null=True)
    samples = [failed(one) if one.place.arm == "B" else one for one in session(plan, 1.0)]
    assert "12 of 12 requests failed on the standard arm" in summarise(plan, samples, planned=1).why_not_certified
    assert "failed on the speculative" not in page(plan, samples)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_one_prompt_has_no_break_even(language: str) -> None:
    """3x on a single prompt at levels 1 and 4 has no interval: neither a break-even nor a clear gain is claimed."""
    plan = BenchPlan(prompts(1), levels=(1, 4))
    samples = session(plan, 3.0)
    found = summarise(plan, samples, planned=1)
    assert found.break_even is None
    say = speaker(language)
    assert reach(found, say) == [say("load_unknown", levels="1, 4")]
    assert claimed(found, say) == say("not_enough_data")
    text = page(plan, samples, language)
    assert say("load_unknown", levels="1, 4") in text
    assert say("no_break_even") not in text


def ending(gains: dict[int, float | None]) -> Summary:
    """Levels with these gains; None: everything failed there."""
    plan = BenchPlan(prompts(8), levels=tuple(gains))
    made = [
        failed(one) if gains[one.place.level] is None and one.place.kind == "measure" else one
        for one in session(plan, lambda name, level: gains[level] or 1.0)
    ]
    return summarise(plan, made, planned=1)


@pytest.mark.parametrize(
    "gains, limit, told, short",
    [
        ({1: 2.0, 4: 1.5}, None, "The gain is clear at every level", "gain clear up to concurrency 4"),
        ({1: 2.0, 4: 0.8}, 4, "from concurrency 4 on", "gain clear below concurrency 4"),
        ({1: 2.0, 4: None}, None, "The gain is clear at concurrency 1. Not enough data at concurrency 4", "up to concurrency 1"),
        ({1: 2.0, 4: None, 8: 0.8}, 8, "from concurrency 8 on", "gain clear below concurrency 8"),
        ({1: 0.8, 4: 0.7}, 1, "not clear at any level", "gain not clear at any level"),
        ({1: 0.8, 4: 1.5}, 1, "not clear at concurrency 1; it is clear at 4", "gain clear only at concurrency 4"),
    ],
)  # fmt: skip
def test_the_end_of_the_gain_is_told_from_the_data(
    gains: dict[int, float | None], limit: int | None, told: str, short: str
) -> None:
    """Each shape of a gain over load has its sentence; a level that failed is unknown and no break-even."""
    found = ending(gains)
    assert found.break_even == limit
    assert told in " ".join(reach(found, EN))
    assert short in claimed(found, EN)


EXTREME = [0.0, 150.0, -150.0, 1e-320, 700.0, -745.0, 1e308, -1e308, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("level", [0.90, 0.95])
@pytest.mark.parametrize("shared", [s.NOTHING_SHARED, s.Shared(1e-200, 3), s.Shared(1e300, 1), s.Shared(math.inf, 1)])
def test_no_log_ratios_give_a_traceback_or_an_infinite_figure(level: float, shared: s.Shared) -> None:
    """Pairs and triples of extreme values: an estimate, or none, or no bounds; every number is finite."""
    for first in EXTREME:
        for values in ([first], *([first, other] for other in EXTREME), *([first, first, x] for x in EXTREME)):
            whole(s.geometric_mean(values, level=level, shared=shared))
            seconds = [abs(value) for value in values]
            whole(s.ratio_of_totals(seconds, seconds[::-1], level=level, shared=shared))
            for q in (0.0, 0.5, 0.99, 1.0):
                found = s.percentile(values, q)
                assert found.value is None or math.isfinite(found.value)
            sigma = s.repeat_sigma([values])
            assert sigma is None or math.isfinite(sigma)
            s.outlier(values[0], values[1:])


def whole(found: s.Interval | None) -> None:
    """Every figure is finite, and the words can be told from it."""
    if found is not None:
        figures = [found.estimate, *(v for v in (found.low, found.high, found.half_width) if v is not None)]
        assert all(math.isfinite(v) for v in figures)
        assert found.estimate > 0.0
        assert (found.low is None) == (found.high is None)
    word = s.speed_verdict(found, found).word
    assert word != "not_enough_data" or found is None or found.low is None
    s.depends_on_mix(found, s.Interval(1e-300, None, None, 1, "geometric_mean"))
    s.break_even([(1, found)])


def test_ratios_too_far_apart_are_not_enough_data() -> None:
    """1x and e^150: an estimate without bounds; of equal values the interval is the value."""
    found = s.geometric_mean([0.0, 150.0])
    assert found is not None
    assert (found.low, found.high, found.n) == (None, None, 2)
    assert s.speed_verdict(found, found).word == "not_enough_data"
    same = s.geometric_mean([0.5, 0.5, 0.5])
    assert same is not None
    assert same.low == same.high == same.estimate
    quiet = s.geometric_mean([0.5, 0.5], shared=s.Shared(1e-200, 3))
    assert quiet is not None
    assert quiet.low == pytest.approx(quiet.estimate)


def strange() -> dict[str, Callable[[Sample], Sample]]:
    """Ways in which a measurement can be odd."""
    return {
        "all failed": failed,
        "identical stamps": lambda one: replace(one, decode_s=0.0, ended_at=one.intended_at, ttft_s=0.0, tpot_s=0.0),
        "backwards": lambda one: replace(one, decode_s=-1.0, ended_at=one.intended_at - 5.0, ttft_s=-1.0),
        "endless": lambda one: replace(one, decode_s=math.inf, ended_at=math.inf, ttft_s=math.inf),
        "instant": lambda one: replace(one, decode_s=5e-324, ended_at=one.intended_at + 5e-324),
        "empty": lambda one: replace(one, output_tokens=0, decode_tokens=None, decode_s=None),
        "far apart": lambda one: replace(one, decode_s=1e-300 if one.place.prompt_id[-1] in "13" else 1e300),
        "opposite": lambda one: replace(
            one, decode_s=1e300 if (one.place.arm == "A") == (one.place.prompt_id[-1] in "13") else 1e-300
        ),
        "mixed lengths": lambda one: replace(
            one, output_tokens=200, decode_tokens=199, decode_s=(one.decode_s or 0) * 2
        ),
    }


@pytest.mark.parametrize("name", strange())
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("arms", ["B", "AB"])
def test_odd_measurements_make_a_plain_report(name: str, language: str, arms: str) -> None:
    """Identical stamps, a clock that goes back, replies without tokens, times beyond reason: no nan, no inf, no claim."""
    plan = BenchPlan(prompts(4), levels=(1, 4))
    change = strange()[name]
    samples = [change(one) if one.place.arm in arms else one for one in session(plan, 1.5)]
    text = page(plan, samples, language)
    assert not re.search(r"(?<![A-Za-z])(nan|inf|-?Infinity)(?![A-Za-z])", text)
    found = summarise(plan, samples, planned=1)
    jsonable(found)
    decide(found, GateRule(1.1))
    if name == "mixed lengths":
        assert found.suite is not None
        assert found.suite.lengths_differ == (4 if arms == "B" else 0)
    elif (name, arms) != ("far apart", "AB"):  # there both arms change alike, so their ratio is known
        assert not found.certified


def test_one_sample_claims_nothing() -> None:
    """A single request of one arm: no result, no gain, no traceback."""
    plan = BenchPlan(prompts(4), levels=(1, 4))
    only = session(plan, 1.5)[:1]
    found = summarise(plan, only, planned=64)
    assert not found.certified
    assert found.break_even is None
    assert page(plan, only)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, None])
def test_a_cell_without_a_number_is_a_dash(value: float | None) -> None:
    """What is no number is shown as absent in every kind of cell."""
    assert {cell(value).text for cell in (factor, plain, share, points)} == {"–"}


def test_ratios_of_any_size_are_drawn_and_written_short() -> None:
    """1e-300 and 1e300 stand at the edges of the drawing, in a few digits."""
    bars = [charts.Bar("a", 1e300, 1e-300, 1.7e308, (math.inf, 2.0)), charts.Bar("b", 1e-300, None, None)]
    points_ = ((1.0, 1e300, 1e-300, 1e308), (2.0, math.inf, None, None), (4.0, 1.0, None, math.inf))
    drawn = charts.forest(bars, "t", "x") + charts.lines([charts.Line("l", "#fff", points_)], "t", "x", "y", one=True)
    assert "nan" not in drawn
    assert '"inf"' not in drawn
    assert factor(1e300).text == "1e+300x"
    assert factor(0.0012).text == "0.0012x"
    assert factor(1.526).text == "1.53x"


@pytest.mark.parametrize(
    "text, written",
    [
        ("&lt;img&gt; & co", "\\&lt;img\\&gt; \\& co"),
        ("- no item", "\\- no item"),
        ("+ no item", "\\+ no item"),
        ("1. no item", "1\\. no item"),
        ("---", "\\---"),
        ("===", "\\==="),
        ("1.53x as fast", "1.53x as fast"),
        ("-3 points", "-3 points"),
        ("from $5 to $10", "from \\$5 to \\$10"),
    ],
)
def test_markdown_takes_a_paragraph_literally(text: str, written: str) -> None:
    """No entity, list or formula is made of words that came from elsewhere (C06, C08)."""
    made = markdown.render(Document("t", "en", (Section("s", (Text(text),)),)))
    assert f"\n\n{written}\n\n" in made
