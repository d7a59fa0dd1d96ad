"""The identity verdict: its classes, the near-tie rule, and everything that forbids a claim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from specdemo.core.events import Event, Finished, Started, Tokens, Usage
from specdemo.core.outcome import collect
from specdemo.core.prompt import Prompt, Sampling
from specdemo.core.results import Acceptance, Check, Verdict
from specdemo.core.run import Probe
from specdemo.core.tolerance import tolerance
from specdemo.core.verdict import judge
from tests.unit.core.streams import A, B, cut, ids_stream, stream

FP32 = tolerance("float32")
DRAFTED = Acceptance(source="request", drafting_steps=3)
GREEDY = Prompt(text="x")


def verdict(left: Sequence[Event], right: Sequence[Event], prompt: Prompt = GREEDY, **options: Any) -> Verdict:
    """Judge two event lists; by default something was drafted and the engines run in float32."""
    options.setdefault("acceptance", DRAFTED)
    options.setdefault("limit", FP32)
    return judge(collect(left, A), collect(right, B), prompt, **options)


# ------------------------------------------------------------------ equal


def test_equal_tokens_in_other_chunks_are_identical() -> None:
    """A21: how tokens are cut into chunks does not matter."""
    found = verdict(ids_stream(A, [1], [2], [3], [0]), ids_stream(B, [1, 2], [3, 0]))
    assert (found.cls, found.compared, found.position) == ("identical", 4, None)
    assert found.reason == "All 4 tokens are equal."
    assert found.remarks == ()


def test_equal_up_to_the_limit() -> None:
    """Two outputs cut at the same length limit are identical only that far."""
    sides = [ids_stream(side, [1], [2], [3], finish="length") for side in (A, B)]
    assert verdict(sides[0], sides[1]).cls == "identical_to_limit"


def test_finish_reasons_that_differ_are_said_beside_identical() -> None:
    """A17: the same tokens with "stop" and "length" are identical, and both facts are shown."""
    found = verdict(ids_stream(A, [1], [2]), ids_stream(B, [1, 2], finish="length"))
    assert found.cls == "identical"
    assert found.remarks == ("Finish reasons differ: standard stop, speculative length.",)


def test_surplus_ids_after_a_stop_are_forgiven() -> None:
    """A14: ids trimmed from the text but left in the last chunk are no difference."""
    left = stream(A, [(0.1, [5], "a"), (0.2, [6], "b"), (0.3, [7], "c")])
    right = stream(B, [(0.1, [5], "a"), (0.2, [6, 7, 8, 9], "bc")])
    found = verdict(left, right)
    assert (found.cls, found.compared) == ("identical", 3)
    assert "2 surplus token ids" in found.remarks[0]
    assert verdict(ids_stream(A, [1], [2, 3]), ids_stream(B, [1], [2])).cls == "different"  # here the text goes on


def test_surplus_ids_behind_the_limit_are_forgiven() -> None:
    """Ids beyond max_tokens are the server's slip, not the model's choice."""
    prompt = Prompt(text="x", sampling=Sampling(max_tokens=3))
    left = ids_stream(A, [1], [2], [3], finish="length")
    found = verdict(left, ids_stream(B, [1, 2], [3, 4], finish="length"), prompt)
    assert (found.cls, found.compared) == ("identical_to_limit", 3)
    assert "beyond the limit of 3" in found.remarks[0]


def test_stop_token_listed_on_one_side_only() -> None:
    """A server that does not list the stop token's id wrote the same text."""
    found = verdict(ids_stream(A, [1], [2], [0]), ids_stream(B, [1, 2]))
    assert (found.cls, found.compared) == ("identical", 2)
    assert "stop token itself" in found.remarks[0]


# ------------------------------------------------------------------ nothing tested


def test_no_drafts_test_nothing() -> None:
    """A37: with zero drafts the class is not_tested, and it is still told that the tokens are equal."""
    nothing = Acceptance(source="request", drafting_steps=0)
    found = verdict(ids_stream(A, [1], [2]), ids_stream(B, [1], [2]), acceptance=nothing)
    assert found.cls == "not_tested"
    assert "All 2 tokens are equal" in found.reason


def test_a_difference_without_drafts_is_still_a_difference() -> None:
    """When nothing was drafted a split is shown, with the remark that speculation cannot be its cause."""
    nothing = Acceptance(source="engine", drafting_steps=0)
    found = verdict(ids_stream(A, [1], [2]), ids_stream(B, [1], [3]), acceptance=nothing)
    assert found.cls == "different"
    assert "speculation cannot be the cause" in found.remarks[-1]


def test_bursts_prove_drafts_against_lagging_counters() -> None:
    """Counters that have not moved yet do not unmake a burst; and without either, doubt is said."""
    lagging = Acceptance(source="engine", drafting_steps=0)
    assert verdict(ids_stream(A, [1], [2]), ids_stream(B, [1, 2]), acceptance=lagging).cls == "identical"
    found = verdict(ids_stream(A, [1], [2]), ids_stream(B, [1], [2]), acceptance=None)
    assert found.cls == "identical"
    assert "does not tell whether drafts" in found.remarks[0]


def test_steps_put_into_one_chunk_prove_no_drafts() -> None:
    """A busy server sends several steps at once, also without speculation; such a burst is no draft."""
    plain, merged = ids_stream(A, [1], [2], [3]), ids_stream(B, [1, 2], [3])
    assert verdict(plain, merged, speculating=False, acceptance=None).cls == "not_tested"
    assert verdict(plain, merged, speculating=None, acceptance=None).remarks == ()
    busy = verdict(ids_stream(A, [1], [2, 3]), merged, speculating=None, acceptance=None)
    assert busy.cls == "identical"
    assert "does not tell whether drafts" in busy.remarks[0]
    exact = Acceptance(source="request", drafted=4, accepted=2, drafting_steps=1)
    assert verdict(plain, merged, speculating=False, acceptance=exact).cls == "identical"


def test_control_needs_no_drafts() -> None:
    """The standard engine against itself is judged although nothing is drafted, and named so."""
    nothing = Acceptance(source="none", drafting_steps=0)
    same = verdict(ids_stream(A, [1], [2]), ids_stream(B, [1], [2]), acceptance=nothing, control=True)
    assert (same.cls, same.remarks) == ("identical", ())
    other = verdict(ids_stream(A, [1], [2]), ids_stream(B, [1], [3]), acceptance=nothing, control=True)
    assert "second standard run" in other.reason
    assert other.remarks == ()


# ------------------------------------------------------------------ no claim possible


def test_a_blocked_pair_makes_no_claim() -> None:
    """A red comparability item forbids the claim, and its sentence is the reason."""
    checks = (Check("model", "block", "The engines serve different models."), Check("x", "warn", "y"))
    found = verdict(ids_stream(A, [1]), ids_stream(B, [1]), checks=checks)
    assert found.cls == "not_comparable"
    assert found.reason == "Not comparable: The engines serve different models."


def test_sampling_is_not_compared_token_by_token() -> None:
    """A31: above temperature 0 no token-identity verdict is given, whatever the tokens are."""
    prompt = Prompt(text="x", sampling=Sampling(temperature=0.8, seed=42))
    found = verdict(ids_stream(A, [1]), ids_stream(B, [1]), prompt)
    assert found.cls == "not_comparable"
    assert "temperature 0.8" in found.reason


@pytest.mark.parametrize(
    ("left", "right", "words"),
    [
        ({"usage": 1, "prompt": 21}, {"usage": 1, "prompt": 22}, "21 and 22 prompt tokens."),
        ({"prompt_ids": (1, 2, 3)}, {"prompt_ids": (1, 9, 3)}, "different from prompt token 2 on"),
        ({"prompt_ids": (1, 2)}, {"usage": 1, "prompt": 3}, "2 and 3 prompt tokens."),
    ],
)
def test_different_prompts_are_not_compared(left: dict[str, Any], right: dict[str, Any], words: str) -> None:
    """A36: a second start token on one side is told before any verdict."""
    found = verdict(ids_stream(A, [1], **left), ids_stream(B, [1], **right))
    assert found.cls == "not_comparable"
    assert found.reason.startswith("The engines did not see the same prompt")
    assert words in found.reason


def test_equal_echoed_prompts_are_compared() -> None:
    """Equal prompt ids settle it, whatever else is missing."""
    same = {"prompt_ids": (1, 2)}
    assert verdict(ids_stream(A, [1, 2], **same), ids_stream(B, [1, 2], **same)).cls == "identical"


def test_cut_stream_cannot_be_decided() -> None:
    """B13: the speculative side broke after 10 of 20 tokens that match: cannot decide, first 10 match."""
    found = verdict(ids_stream(A, *[[i] for i in range(20)]), cut(ids_stream(B, *[[i] for i in range(10)])))
    assert found.cls == "not_comparable"
    assert (
        found.reason
        == "Cannot decide: the speculative stream was interrupted after 10 tokens; the first 10 tokens match."
    )
    assert (found.compared, found.position) == (10, None)


def test_cut_stream_that_had_parted_says_where() -> None:
    """A stream that failed after a split still shows the split, without a verdict."""
    found = verdict(cut(ids_stream(A, [1], [2]), "exited"), cut(ids_stream(B, [1, 3]), "cancelled"))
    assert found.reason == (
        "Cannot decide: the standard stream failed after 2 tokens and the speculative stream was stopped after 2 tokens; "
        "the outputs part at output token 2."
    )
    assert found.position == 1


def test_running_and_waiting_sides_are_not_judged() -> None:
    """Before the end there is no verdict, with or without ids."""
    found = verdict(ids_stream(A, [1], [2])[:-1], ())
    assert "standard stream is still writing after 2 tokens" in found.reason
    assert "speculative stream has not started" in found.reason
    texts = verdict((Started(A, 0.0), Tokens(A, 0.1, text="a")), ids_stream(B, [1]))
    assert (texts.level, texts.reason) == ("text", "Cannot decide: the standard stream is still writing.")


def test_a_shorter_output_cut_by_its_limit_is_not_identical() -> None:
    """A16: 8 tokens against 6 delivered while usage claims 8; the first 6 match and the mismatch is visible."""
    left = ids_stream(A, *[[i] for i in range(1, 9)], finish="length", usage=8)
    right = ids_stream(B, [1], [2, 3, 4, 5, 6], finish="length", usage=8)
    found = verdict(left, right, Prompt(text="x", sampling=Sampling(max_tokens=8)))
    assert found.cls == "not_comparable"
    assert "speculative output is shorter (6 of 8 tokens); the first 6 tokens match" in found.reason
    assert found.remarks[0] == "The speculative server reported 8 tokens and delivered 6."
    turned = verdict(ids_stream(A, [1], finish="abort"), ids_stream(B, [1, 2]))
    assert "standard output is shorter (1 of 2 tokens)" in turned.reason


# ------------------------------------------------------------------ text level


def texts(side: Any, *parts: str, finish: str = "stop", reasoning: str = "") -> tuple[Event, ...]:
    """A finished stream without ids."""
    chunks = [Tokens(side, 0.1 * i, text=part) for i, part in enumerate(parts, 1)]
    return (Started(side, 0.0), Tokens(side, 0.05, reasoning=reasoning), *chunks, Finished(side, 1.0, finish))


def test_without_ids_only_texts_are_compared() -> None:
    """A20: equal texts are identical at text level, and no token position or count is claimed."""
    found = verdict(texts(A, "ab", "c"), texts(B, "abc"))
    assert (found.cls, found.level, found.compared, found.position) == ("identical", "text", 0, None)
    assert "All 3 characters are equal" in found.reason
    assert "no token ids" in found.remarks[0]
    limited = verdict(texts(A, "abc", finish="length"), texts(B, "abc", finish="length"))
    assert limited.cls == "identical_to_limit"


@pytest.mark.parametrize(
    ("left", "right", "cls", "words"),
    [
        (texts(A, "abc"), texts(B, "abd"), "different", "from character 3 on"),
        (texts(A, "abc"), texts(B, "ab"), "different", "from character 3 on"),
        (texts(A, "ab", finish="length"), texts(B, "abc"), "not_comparable", "first 2 characters match"),
        (texts(A, "abc", reasoning="r"), texts(B, "abd", reasoning="r"), "different", "from character 4 on"),
        (texts(A, "abc", reasoning="r"), texts(B, "abc", reasoning="s"), "different", "from character 1 on"),
    ],
)
def test_texts_that_differ(left: Sequence[Event], right: Sequence[Event], cls: str, words: str) -> None:
    """Text-level differences name a character, count reasoning first, and claim no gap."""
    found = verdict(left, right)
    assert (found.cls, found.level, found.gap_nats) == (cls, "text", None)
    assert words in found.reason


def test_lost_ids_fall_back_to_texts() -> None:
    """When ids were lost in the middle a split of ids means nothing: texts are compared, which is said."""
    left = ids_stream(A, [1], [2], [3], [4], usage=4)
    right = stream(B, [(0.1, [1], "<1>"), (0.2, [], "<2>"), (0.3, [3, 4], "<3><4>")], usage=4)
    found = verdict(left, right)
    assert (found.cls, found.level) == ("identical", "text")
    assert "reported 4 tokens and delivered 3" in found.remarks[0]


def test_usage_is_needed_to_call_ids_lost() -> None:
    """A server without usage loses nothing that could be known."""
    assert collect(ids_stream(A, [1]), A).ids_lost == 0
    assert collect((Started(A, 0.0), Finished(A, 0.1, "stop", usage=Usage(1, 1))), A).ids_lost == 1


def test_recheck_is_told() -> None:
    """The re-check's share and largest gap stand beside the verdict."""
    known = Probe(recheck_top_share=0.985, recheck_positions=200, recheck_largest_gap=0.0312)
    text = verdict(ids_stream(A, [1, 2]), ids_stream(B, [1, 2]), probe=known).remarks[0]
    assert "98.5% of the 200 tokens" in text
    assert "largest gap is 0.0312 nats" in text
    bare = Probe(recheck_top_share=1.0, recheck_positions=5)
    assert "largest" not in verdict(ids_stream(A, [1, 2]), ids_stream(B, [1, 2]), probe=bare).remarks[0]


def test_many_bursts_beside_a_few_merged_steps_are_drafts() -> None:
    """A busy moment of the standard server does not unmake the drafts of a whole stream."""
    lagging = Acceptance(source="engine", drafting_steps=0)
    left = ids_stream(A, *[[i] for i in range(1, 9)], [9, 10], [11], [12])
    right = ids_stream(B, [1], [2, 3, 4, 5], [6, 7, 8, 9], [10, 11, 12])
    assert verdict(left, right, acceptance=lagging, speculating=True).cls == "identical"


def test_drafts_of_other_requests_prove_nothing() -> None:
    """A12: the whole engine drafted and served others; whether anything of ours was drafted is unknown."""
    sides = ids_stream(A, [1], [2]), ids_stream(B, [1], [2])
    whole = Acceptance(source="engine", drafted=40, drafting_steps=10)
    assert verdict(*sides, acceptance=whole).remarks == ()
    found = verdict(*sides, acceptance=whole, others=True)
    assert (found.cls, "test may be empty" in found.remarks[0]) == ("identical", True)
    nothing = Acceptance(source="engine", drafted=0, drafting_steps=0)
    assert verdict(*sides, acceptance=nothing, others=True).cls == "not_tested"
    tokens = Acceptance(source="engine", drafted=40)  # an older server, which counts no steps
    assert verdict(*sides, acceptance=tokens).remarks == ()


def test_a_blocked_pair_claims_no_place_of_lost_or_surplus_ids() -> None:
    """A14, A16: where no verdict is given, ids that were lost or left over are no parting either."""
    block = (Check("model", "block", "Other models."),)
    lost = verdict(ids_stream(A, [1], [2], [3], usage=3), ids_stream(B, [1], [3], usage=3), checks=block)
    assert (lost.cls, lost.position) == ("not_comparable", None)
    left = stream(A, [(0.1, [5], "a"), (0.2, [6, 7, 3], "bc")])
    surplus = verdict(left, stream(B, [(0.1, [5], "a"), (0.2, [6, 7, 8, 9], "bc")]), checks=block)
    assert surplus.position is None
    assert verdict(ids_stream(A, [1], [2]), ids_stream(B, [1], [3]), checks=block).position == 1
    assert verdict(ids_stream(A, [1], [2]), cut(ids_stream(B, [1], [3])), checks=block).position == 1
