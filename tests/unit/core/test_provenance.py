"""Where tokens came from: the usual layout, cut last steps, merged chunks, and honest ignorance."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdemo.core import provenance as module
from specdemo.core.events import Event, RequestSpeculation
from specdemo.core.provenance import live_origins, provenance
from specdemo.core.results import Provenance
from tests.unit.core.streams import A, B, cut, detailed, ids_stream, stream

LETTER = {"draft": "d", "target": "t", "unknown": "u"}


def chunks(*sizes: int, spec: RequestSpeculation | None = None) -> tuple[Event, ...]:
    """A finished speculative stream with chunks of these sizes."""
    return ids_stream(B, *[list(range(1, size + 1)) for size in sizes], spec=spec, finish="length")


def letters(found: Provenance) -> str:
    """The origins, one letter a token."""
    return "".join(LETTER[origin] for origin in found.origins)


def test_live_bursts() -> None:
    """While streaming, a burst of n is n-1 drafts and one own token; the first chunk begins with the prefill's token."""
    assert live_origins(3, first=False) == ("draft", "draft", "target")
    assert live_origins(1, first=True) == ("target",)
    assert live_origins(3, first=True) == ("target", "draft", "target")
    assert live_origins(0, first=True) == live_origins(0, first=False) == ()


def test_standard_side_is_all_its_own() -> None:
    """Every token of a plain engine is its own, also when chunks were merged."""
    found = provenance(ids_stream(A, [1], [2, 3]), A)
    assert (letters(found), found.exact) == ("ttt", True)


def test_no_ids_no_origins() -> None:
    """Without ids nothing is claimed, and why is said."""
    assert "no token ids" in (provenance(stream(B, [(0.1, (), "text")]), B).reason or "")
    assert "No token has arrived" in (provenance((), B).reason or "")


def test_usual_layout_is_exact() -> None:
    """Bursts take the recorded steps in order; idle steps are the target's own tokens."""
    found = provenance(chunks(1, 1, 4, 1, 5, spec=detailed([3, 4])), B)
    assert letters(found) == "ttdddttddddt"
    assert found.exact
    assert [step.drafted for step in found.steps] == [0, 0, 4, 0, 4]


def test_cut_last_step_is_all_drafts() -> None:
    """A self-draft cut by the length limit: of the last step's 3 accepted drafts 3 came, and no own token."""
    found = provenance(chunks(1, 4, 4, 4, 4, 3, spec=detailed([3] * 5, k=3)), B)
    assert letters(found) == "t" + "dddt" * 4 + "ddd"
    assert found.steps[-1].truncated
    assert found.steps[-1].accepted == 3


def test_cut_to_a_single_token() -> None:
    """A last step cut to one token is an accepted draft, although a single token is usually the target's."""
    found = provenance(chunks(1, 1, 1, spec=detailed([0, 2])), B)
    assert letters(found) == "ttd"
    assert found.exact


def test_stop_inside_a_burst() -> None:
    """A13: five accepted drafts of which a stop left two are two drafts."""
    assert letters(provenance(chunks(1, 2, spec=detailed([5], k=5)), B)) == "tdd"


def test_refused_drafts_are_not_guessed() -> None:
    """One refused draft among three single tokens: origins are certain, which of them had the draft is not."""
    found = provenance(chunks(1, 1, 1, 1, 3, spec=detailed([0, 2])), B)
    assert letters(found) == "ttttddt"
    assert found.exact
    assert [step.drafted for step in found.steps] == [0, None, None, None, 4]
    assert [step.accepted for step in found.steps] == [0, 0, 0, 0, 2]


def test_refused_drafts_are_known_when_they_fill_the_gap() -> None:
    """Two refused drafts in two single tokens are those two."""
    found = provenance(chunks(1, 1, 1, 3, spec=detailed([0, 0, 2])), B)
    assert [step.drafted for step in found.steps] == [0, 4, 4, 4]


def test_no_drafts_at_all() -> None:
    """Zero drafting steps make every token the target's own, exactly."""
    found = provenance(chunks(1, 1, 1, spec=RequestSpeculation(0, 0, 0)), B)
    assert (letters(found), found.exact) == ("ttt", True)


def test_merged_chunks_are_fitted() -> None:
    """Two steps merged into one chunk are taken apart by the recorded numbers, and it is said that they were fitted."""
    found = provenance(chunks(1, 3, 7, 2, spec=detailed([2, 3, 2, 1])), B)
    assert letters(found) == "t" + "ddt" + "dddtddt" + "dt"
    assert not found.exact
    assert "fitted" in (found.reason or "")


def test_more_refused_drafts_than_single_tokens_means_merging() -> None:
    """Two refused drafts before a burst but one single token: the last chunk holds a step more and was cut."""
    found = provenance(chunks(1, 1, 3, spec=detailed([0, 0, 2])), B)
    assert any(step.accepted is None for step in found.steps)
    assert letters(found) == "tttud"  # which single token was refused is open, and with it the cut
    assert not found.exact
    assert "fitted" in (found.reason or "")


def test_many_refused_drafts_cost_linear_time() -> None:
    """Twenty thousand refused drafts in a row are laid in one pass; a quadratic pass would hit the test's time limit."""
    found = provenance(chunks(*[1] * 20_001, spec=detailed([0] * 20_000)), B)
    assert found.exact
    assert found.steps[-1].drafted == 4


def test_prefill_merged_with_the_first_step() -> None:
    """A first chunk of four tokens is the prefill's token and a step of three."""
    assert letters(provenance(chunks(4, 2, spec=detailed([2, 1])), B)) == "tddtdt"


def test_idle_steps_merged_into_one_chunk() -> None:
    """A chunk of two tokens with no recorded step in it holds two steps without a draft."""
    assert letters(provenance(chunks(1, 2, 3, spec=detailed([2])), B)) == "ttt" + "ddt"


def test_open_order_is_unknown() -> None:
    """A chunk that holds a draft step and an idle step could be in either order: unknown, not guessed."""
    found = provenance(chunks(1, 4, 2, spec=detailed([2, 1])), B)
    assert letters(found) == "tuuuudt"


def test_merged_last_chunk_may_be_cut() -> None:
    """The last chunk holds a whole step and the beginning of a cut one."""
    found = provenance(chunks(1, 4, spec=detailed([1, 4])), B)
    assert letters(found) == "tdtdd"
    assert found.steps[-1].truncated


@pytest.mark.parametrize(
    "events",
    [
        chunks(1, 2, spec=detailed([1, 1, 1])),
        chunks(1, 1, 1, spec=detailed([3, 0])),
        chunks(2, 1, spec=detailed([0, 0, 0, 0])),
    ],
)
def test_nothing_fits(events: tuple[Event, ...]) -> None:
    """Recorded steps that do not fit the chunks leave every origin unknown."""
    found = provenance(events, B)
    assert set(letters(found)) == {"u"}
    assert "do not fit" in (found.reason or "")
    assert all(step.accepted is None for step in found.steps)


def test_search_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that would take too long gives up and says unknown."""
    monkeypatch.setattr(module, "SEARCH_LIMIT", 10)
    found = provenance(chunks(1, *[3] * 40, spec=detailed([0] * 50)), B)
    assert set(letters(found)) == {"u"}


def test_totals_tell_whether_the_last_step_was_cut() -> None:
    """Without step lists: accepted 4 but only 3 seen means that the last burst lost its own token."""
    whole = replace(detailed([2, 1]), accepted_per_step=None, drafted_per_step=None)
    assert letters(provenance(chunks(1, 3, 2, spec=whole), B)) == "tddtdt"
    short = replace(detailed([2, 2]), accepted_per_step=None, drafted_per_step=None)
    found = provenance(chunks(1, 3, 2, spec=short), B)
    assert letters(found) == "tddtdd"
    assert not found.exact


def test_step_lists_of_unequal_length_lose_the_drafted_numbers() -> None:
    """Accepted per step is enough for origins; a drafted list of another length is not used."""
    spec = replace(detailed([2]), drafted_per_step=(4, 4))
    found = provenance(chunks(1, 3, spec=spec), B)
    assert letters(found) == "tddt"
    assert found.steps[-1].drafted is None


def test_running_and_silent_engines_are_told_apart() -> None:
    """Without the engine's numbers origins come from chunk sizes; the reason says whether more may come."""
    running = provenance(chunks(1, 3)[:-1], B)
    silent = provenance(chunks(1, 3), B)
    stopped = provenance(cut(chunks(1, 3)), B)
    assert letters(running) == letters(silent) == letters(stopped) == "tddt"
    assert "while the stream runs" in (running.reason or "")
    assert "no numbers per step" in (silent.reason or "")
    assert "no numbers per step" in (stopped.reason or "")


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[tuple[int, bool]], int]:
    """Steps as (accepted, drafted?) and how many tokens of the last one were cut."""
    steps = draw(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=30))
    steps = [(accepted if drafted else 0, drafted) for accepted, drafted in steps]
    last = steps[-1][0]
    return steps, draw(st.integers(0, last))


@given(runs())
def test_any_unmerged_run_is_recovered_exactly(run: tuple[list[tuple[int, bool]], int]) -> None:
    """For any mix of steps and any cut at the end, one step a chunk, every origin is found."""
    steps, lost = run
    truth = "t" + "".join("d" * accepted + "t" for accepted, _ in steps)
    sizes = [1] + [accepted + 1 for accepted, _ in steps]
    sizes[-1] -= lost
    truth = truth[: len(truth) - lost]
    found = provenance(chunks(*sizes, spec=detailed([a for a, drafted in steps if drafted])), B)
    assert letters(found) == truth
    assert found.exact


@given(runs(), st.lists(st.booleans(), min_size=31, max_size=31))
def test_merged_runs_are_never_wrongly_exact(run: tuple[list[tuple[int, bool]], int], joins: list[bool]) -> None:
    """Whatever chunks merge, origins cover the output, a layout is found, and "exact" is claimed only when true."""
    steps, lost = run
    sizes = [1] + [accepted + 1 for accepted, _ in steps]
    sizes[-1] -= lost
    merged = [sizes[0]]
    for size, join in zip(sizes[1:], joins, strict=False):
        if join:
            merged[-1] += size
        else:
            merged.append(size)
    taken = [a for a, drafted in steps if drafted]
    found = provenance(chunks(*merged, spec=detailed(taken)), B)
    assert len(found.origins) == sum(sizes)
    assert all(after.first == before.first + before.tokens for before, after in pairwise(found.steps))
    assert found.reason is None or "do not fit" not in found.reason
    if len(merged) == len(sizes):
        assert found.exact


@pytest.mark.parametrize(
    "spec", [RequestSpeculation(None, 0, 0), RequestSpeculation(0, 0, 0, 4), RequestSpeculation(2, 8, 0, 4)]
)
def test_no_accepted_draft_is_shown_as_one(spec: RequestSpeculation) -> None:
    """A07: with no draft accepted every token is the target's own, however the chunks were merged."""
    assert letters(provenance(chunks(1, 2, 1, spec=spec), B)) == "tttt"


def test_an_engine_that_never_drafts_has_no_drafts() -> None:
    """A control's second run, or speculation off: a chunk of several tokens holds several steps."""
    found = provenance(chunks(1, 3), B, plain=True)
    assert (letters(found), found.exact) == ("tttt", True)
