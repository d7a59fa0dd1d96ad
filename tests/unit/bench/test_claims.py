"""Claims beside measurements: every figure comes from a record, and what no record shows has no figure."""

from __future__ import annotations

from pathlib import Path

import pytest

from specdemo.bench.claims import ROWS, Figure, figures, points
from specdemo.core.assess import assess
from specdemo.core.run import RunRecord
from specdemo.runs import stored

RUNS = Path(__file__).parents[3] / "assets" / "runs"


@pytest.fixture(scope="module")
def records() -> dict[str, RunRecord]:
    """The shipped recordings by id."""
    return {f"rec-{path.stem}": stored.load(path) for path in sorted(RUNS.glob("*.json"))}


def values(figure: Figure) -> dict[str, float | int | str]:
    return dict(figure.values)


def test_points_are_the_assessments(records: dict[str, RunRecord]) -> None:
    """Each point holds exactly what the run's own page says."""
    for point in points(records):
        said = assess(records[point.run])
        assert (point.measured, point.e2e) == (said.speedup.decode, said.speedup.e2e)
        assert (point.a, point.c, point.rate) == (
            said.theory.a,
            said.theory.c,
            said.speculative.metrics.acceptance.rate,
        )


def test_rows_on_kinds_name_their_runs(records: dict[str, RunRecord]) -> None:
    """Rows 5 and 6 repeat acceptance and speedup of the recorded run that they link to."""
    told = figures(records)
    assert {one.run for one in told[5]} >= {"rec-3-chat", "rec-4-code"}
    assert {one.run for one in told[6]} >= {"rec-1-list"}
    for one in (*told[5], *told[6]):
        said = assess(records[one.run or ""])
        assert values(one)["speedup_x"] == said.speedup.decode
        assert values(one)["rate_share"] == said.speculative.metrics.acceptance.rate


def test_the_benchmark_row_is_the_ratio_of_totals(records: dict[str, RunRecord]) -> None:
    """Row 7 adds tokens and whole-request times over all records."""
    shown = values(figures(records)[7][0])
    sides = [(assess(r).standard.metrics, assess(r).speculative.metrics) for r in records.values()]
    seconds = [sum(pair[i].e2el_s or 0 for pair in sides) for i in (0, 1)]
    tokens = [sum(pair[i].output_tokens or 0 for pair in sides) for i in (0, 1)]
    assert shown["count"] == len(records)
    assert shown["speedup_x"] == pytest.approx((tokens[1] / seconds[1]) / (tokens[0] / seconds[0]))


def test_unmeasured_rows_have_no_figure(records: dict[str, RunRecord]) -> None:
    """Sampling, batches, memory and the production pair were not recorded: no figure, so the page says "not measured"."""
    assert not {2, 8, 9, 12, 14} & figures(records).keys()
    assert set(figures(records)) <= set(ROWS)


def test_without_records_nothing_is_claimed() -> None:
    """No recording, no figure at all."""
    assert figures({}) == {}
    assert points({}) == ()
