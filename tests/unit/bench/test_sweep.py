"""The k and method sweep."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specdemo.bench.plan import BenchPlan
from specdemo.bench.record import BenchHeader, BenchRecord, Session
from specdemo.bench.report import html
from specdemo.bench.report.blocks import Text
from specdemo.bench.report.compare import comparison
from specdemo.bench.report.sweep_page import sweep_document
from specdemo.bench.sweep import sweep
from specdemo.cli.sweep import Point, points
from specdemo.core.engine import EngineFacts
from specdemo.core.events import Side
from specdemo.core.prompt import Sampling
from specdemo.errors import UsageError
from specdemo.settings import load
from tests.fakes.bench_samples import prompts, session


def record(method: str, k: int, speedup: float, *, seed: int = 1) -> BenchRecord:
    plan = BenchPlan(prompts(10), control_prompts=0)
    facts = (EngineFacts(Side.STANDARD, "m"), EngineFacts(Side.SPECULATIVE, "m", method=method, k=k))
    samples = tuple(session(plan, speedup, noise=0.01, seed=seed))
    return BenchRecord(BenchHeader(f"{method}{k}", 0.0, plan), (Session(0, 0.0, facts),), samples)


def test_the_best_setting_is_named_with_its_lead() -> None:
    """Three lengths, one clearly best: it is named with a paired interval over the next."""
    found = sweep([record("ngram", 4, 1.8), record("ngram", 2, 1.4, seed=2), record("ngram", 8, 1.6, seed=3)])
    assert [point.k for point in found.points] == [2, 4, 8]
    assert found.best is not None
    assert found.next is not None
    assert (found.best.label, found.next.label) == ("ngram k=4", "ngram k=8")
    assert found.lead is not None
    assert found.lead.holds(1.8 / 1.6)
    assert found.lead.low is not None
    assert found.lead.low > 1.0
    assert found.as_good == ()


def test_settings_that_are_as_good_are_named_too() -> None:
    """Two lengths within noise: the second is listed as not clearly worse."""
    found = sweep([record("ngram", 3, 1.5), record("ngram", 4, 1.5, seed=2), record("draft_model", 4, 0.7, seed=3)])
    assert len(found.as_good) == 1
    assert found.as_good[0].startswith("ngram")


def test_the_textbook_line_comes_from_the_reference_point() -> None:
    """Acceptance and step cost near k = 4 are put into the formula for every length of that method."""
    found = sweep([record("ngram", 2, 1.4), record("ngram", 4, 1.8)])
    reference = next(point for point in found.points if point.k == 4)
    a, cost = reference.acceptance.per_token, reference.acceptance.drafted_cost
    assert a == pytest.approx(50 / 80)
    assert cost is not None
    for point in found.points:
        wanted = (1 - a ** (point.k + 1)) / ((1 - a) * (point.k * (cost - 1) / 4 + 1))
        assert point.textbook == pytest.approx(wanted)


def test_points_without_data_do_not_break_the_page() -> None:
    """A setting whose engine failed is shown without a number."""
    empty = replace(record("ngram", 6, 1.0), samples=())
    page = html.render(sweep_document(sweep([empty, record("ngram", 4, 1.8)])))
    assert "ngram k=4" in page
    assert "ngram k=6" in page
    assert "NaN" not in page
    assert "there is no result" in html.render(sweep_document(sweep([empty])))
    assert "最好" in html.render(
        sweep_document(sweep([record("ngram", 4, 1.8), record("ngram", 2, 1.2)]), language="zh")
    )


def test_points_are_every_method_with_every_length() -> None:
    """Two methods and two lengths are four points; attached engines can't be restarted."""
    loaded = load({})
    found = points(loaded, (2, 4), ["ngram", "draft_model"])
    assert found == (Point("ngram", 2), Point("ngram", 4), Point("draft_model", 2), Point("draft_model", 4))
    assert next(point.name for point in found) == "ngram-k2"
    with pytest.raises(UsageError, match="1 to 32"):
        points(loaded, (0,), [])
    attached = load({"standard.base_url": "http://a", "speculative.base_url": "http://b"})
    with pytest.raises(UsageError, match="attached"):
        points(attached, (2,), [])


def test_each_setting_is_measured_once_and_has_a_file_of_its_own() -> None:
    """A setting named twice would fail on its own file; two long ones that begin alike may not share one."""
    loaded = load({"mode": "managed"})
    assert points(loaded, (2, 4, 2), ["ngram", "ngram"]) == (Point("ngram", 2), Point("ngram", 4))
    long = [f'{{"method":"ngram","prompt_lookup_max":4,"num_speculative_tokens":{k}}}' for k in (2, 3)]
    names = {point.name for point in points(loaded, None, [*long, "a b", "a-b"])}
    assert len(names) == 4
    assert Point("draft_model", 4).name == "draft_model-k4"


def test_a_comparison_without_intervals_is_no_good_news() -> None:
    """Results that can't be compared are counted, and the lead is not green for them."""
    one = record("ngram", 4, 1.8)
    bare = BenchRecord(one.header, one.sessions, one.samples[:4])
    lead = comparison(bare, bare).sections[0].blocks[0]
    assert isinstance(lead, Text)
    assert lead.mood == "warn"
    assert "not enough data: " in lead.text
    lead = comparison(one, one).sections[0].blocks[0]
    assert isinstance(lead, Text)
    assert lead.mood == "good"


@pytest.mark.parametrize(
    "language, words", [("en", ("the prompts", "lengths", "the model")), ("zh", ("提示词", "长度", "模型"))]
)
def test_a_comparison_of_unlike_benchmarks_says_so(language: str, words: tuple[str, ...]) -> None:
    """Other prompts, another length or another model: intervals that overlap agree about nothing then."""
    one = record("ngram", 4, 1.8)
    plan = replace(one.header.plan, prompts=prompts(9), sampling=Sampling(max_tokens=7))
    facts = (EngineFacts(Side.STANDARD, "n"), EngineFacts(Side.SPECULATIVE, "n"))
    samples = [sample for sample in one.samples if sample.place.prompt_id != "work-p9"]
    other = BenchRecord(replace(one.header, plan=plan), (Session(0, 0.0, facts),), tuple(samples))
    said = comparison(one, other, language=language).sections[0].blocks[1]
    assert isinstance(said, Text)
    assert all(word in said.text for word in words)
    assert len(comparison(one, record("ngram", 8, 1.7)).sections[0].blocks) == 3
