"""C22: whatever prompts, engines and models are called or say, no cell of an exported table is a formula."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

from specdemo.bench.plan import BenchPlan
from specdemo.bench.report import csv_tables
from tests.fakes.bench_samples import failed, prompts
from tests.unit.bench.test_report import record

FORMULAS = (
    '=HYPERLINK("x")', "+1", "-1+1", "@a", "\t=1", "\r=1", "\n=1", " =1", "=1\n=2", 'say "=1",\n=2', "=cmd|' /C calc'!A1",
)  # fmt: skip
UNSEEN = ("\u200b", "\ufeff", "\u2060", "\xad", "\u202e", "\x00", "\x08", "\xa0", "\u3000", "\u2028", "\u180e", "\u034f",
          "\x1f\u200d ", "\ufe0f")  # fmt: skip


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "＝", "＋", "－", "＠", "﹢", "﹣", "﹦", "﹫", "\u2212"])
@pytest.mark.parametrize("before", ["", *UNSEEN])
def test_no_form_of_a_sign_and_nothing_unseen_before_it_makes_a_formula(before: str, sign: str) -> None:
    """Full-width and small signs, also after characters without a width, get the apostrophe; numbers do not."""
    text = f"{before}{sign}1"
    assert csv_tables.neutral(text) == f"'{text}"
    assert csv_tables.neutral(f"a{text}") == f"a{text}"
    assert csv_tables.write(("a", "b"), [(-1, -0.5)]).endswith("-1,-0.5\r\n")


def rows(made: str) -> list[dict[str, str]]:
    """The table as a strict reader sees it."""
    return list(csv.DictReader(io.StringIO(made.removeprefix("\ufeff"), newline=""), strict=True))


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_of_an_export_is_a_formula(text: str) -> None:
    """Prompt and workload names and an engine's message: each cell is harmless, holds its text whole, and rows keep their form."""
    plan = BenchPlan(tuple(replace(p, id=f"{text}{p.id}", workload=text) for p in prompts(4)), title=text)
    found = record(plan)
    found = replace(found, samples=(replace(failed(found.samples[0]), message=text), *found.samples[1:]))
    samples, results = rows(csv_tables.samples(found)), rows(csv_tables.results(found.summary()))
    assert len(samples) == len(found.samples)
    for row in (*samples, *results):
        assert None not in row
        for cell in row.values():
            number = cell.removeprefix("-").replace(".", "", 1).replace("e-", "", 1).isdigit()
            assert number or not cell.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r", "\n")), cell
    assert samples[0]["message"].removeprefix("'") == text
    assert all(row["prompt"].removeprefix("'").startswith(text) for row in samples)
