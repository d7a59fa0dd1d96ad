"""Greedy identity over all prompts of a benchmark: classes, controls and the bound that the sample carries. Pure.

Only requests that had their engine to themselves (level 1) decide; what happens under load is reported beside it,
labelled, because batches change rounding (A03). Controls come from the same data: arm A against itself (must be equal,
else the engine is not deterministic), and arm A under load against arm A alone (how often batching changes text).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from specdemo.bench.distributions import fisher_greater, upper_bound
from specdemo.bench.sample import Sample
from specdemo.core.compare import OWN_END, common_prefix
from specdemo.core.events import TopToken

PromptClass = Literal["identical", "truncated", "near_tie", "suspicious", "mismatch", "unexplained"]
IdentityWord = Literal["identical", "identical_up_to_near_ties", "suspect", "mismatch", "not_comparable", "not_tested"]
SUSPICIOUS = 2.0
"""A gap up to this many tolerances is suspicious, above it a mismatch."""


@dataclass(frozen=True, slots=True)
class Split:
    """Where one prompt's outputs part, and what the standard engine says of the two tokens there.

    ``position`` counts output tokens from 0. ``gap_nats`` is the standard engine's distance of the two candidates,
    None if unknown; ``flipped``: asked again, it prefers the other token itself; ``top_two``: the other is one of its
    best two.
    """

    prompt_id: str
    position: int
    standard_id: int | None
    speculative_id: int | None
    standard_text: str = ""
    speculative_text: str = ""
    gap_nats: float | None = None
    flipped: bool = False
    top_two: bool = False
    error: str | None = None


def split_of(prompt_id: str, ids_a: Sequence[int], ids_b: Sequence[int]) -> Split | None:
    """The first difference, None if one is a prefix of the other."""
    at = common_prefix(ids_a, ids_b)
    if at >= min(len(ids_a), len(ids_b)):
        return None
    return Split(prompt_id, at, ids_a[at], ids_b[at])


def weigh(split: Split, candidates: Sequence[TopToken]) -> Split:
    """The split with what the standard engine's best next tokens say about it."""
    best = sorted(candidates, key=lambda token: -token.logprob)
    ranks = {token.id: rank for rank, token in enumerate(best)}
    known = {token.id: token for token in best}
    ours, theirs = known.get(split.standard_id), known.get(split.speculative_id)
    gap = ours.logprob - theirs.logprob if ours and theirs else None
    return Split(
        split.prompt_id,
        split.position,
        split.standard_id,
        split.speculative_id,
        ours.text if ours else "",
        theirs.text if theirs else "",
        abs(gap) if gap is not None else None,
        gap is not None and gap < 0.0,
        ranks.get(split.speculative_id, 99) <= 1,
        None if gap is not None else "the standard engine did not list both tokens",
    )


def classify(split: Split | None, tolerance: float) -> PromptClass:
    """The class of a prompt whose outputs part at ``split``."""
    if split is None or split.gap_nats is None:
        return "unexplained"
    if split.gap_nats <= SUSPICIOUS * tolerance and split.flipped:
        return "near_tie"
    if split.gap_nats <= tolerance and split.top_two:
        return "near_tie"
    return "suspicious" if split.gap_nats <= SUSPICIOUS * tolerance else "mismatch"


@dataclass(frozen=True, slots=True)
class Identity:
    """The verdict over ``prompts`` compared prompts and ``tokens`` compared tokens.

    ``mismatch_bound`` is the 95 % one-sided upper bound of the share of prompts that differ by more than a near tie.
    ``a_repeats_differ`` / ``b_repeats_differ`` count prompts whose repeats on one arm differ; ``under_load`` counts
    (prompts that differ A from B, prompts) above level 1; ``batch_control`` the same for A under load against A alone.
    ``same_as_control_p``: one-sided Fisher p that B differs more often than batching alone makes A differ.
    """

    word: IdentityWord
    reason: str
    prompts: int = 0
    tokens: int = 0
    classes: tuple[tuple[str, int], ...] = ()
    mismatch_bound: float | None = None
    tolerance_nats: float | None = None
    a_repeats_differ: int = 0
    b_repeats_differ: int = 0
    under_load: tuple[int, int] | None = None
    batch_control: tuple[int, int] | None = None
    same_as_control_p: float | None = None
    splits: tuple[tuple[Split, str], ...] = ()


Ids = tuple[int, ...]


def identity(
    samples: Iterable[Sample],
    splits: Mapping[str, Split],
    *,
    tolerance: float,
    greedy: bool,
    drafted: bool | None,
    opened: bool = False,
) -> Identity:
    """Judge the kept samples (newest attempts). ``drafted``: whether anything was drafted at all, None if unknown.

    ``opened``: requests came at an open rate, so none had its engine to itself.
    """
    if not greedy:
        return Identity("not_comparable", "At a temperature above 0 texts differ by chance; run specdemo validate.")
    alone: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    loaded: dict[tuple[str, str, int], list[Ids]] = defaultdict(list)
    for sample in samples:
        place = sample.place
        if not sample.ok or sample.token_ids is None or place.kind != "measure":
            continue
        if place.level == 1 and not opened:
            alone[place.prompt_id, place.arm].append(sample)
        else:
            loaded[place.prompt_id, place.arm, place.level].append(sample.token_ids)
    names = sorted({prompt for prompt, _ in alone})
    pairs = [(n, alone[n, "A"], alone[n, "B"]) for n in names if alone.get((n, "A")) and alone.get((n, "B"))]
    if not pairs:
        return Identity("not_tested", "No prompt has token ids from both engines at concurrency 1.")
    a_differ = sum(_varies(a) for _, a, _ in pairs)
    b_differ = sum(_varies(b) for _, _, b in pairs)
    classes: Counter[str] = Counter()
    tokens = 0
    found: list[tuple[Split, str]] = []
    for name, a, b in pairs:
        kind, compared, split = _pair(name, a[0], b[0], splits, tolerance)
        classes[kind] += 1
        tokens += compared
        if split is not None:
            found.append((split, kind))
    bad = classes["suspicious"] + classes["mismatch"] + classes["unexplained"]
    load, control = _under_load(loaded, {n: a[0].token_ids or () for n, a, _ in pairs})
    ties = classes["near_tie"]
    p = fisher_greater(ties + bad, len(pairs), control[0], control[1]) if control else None
    word, reason = _word(classes, len(pairs), a_differ, p, drafted)
    return Identity(
        word,
        reason,
        len(pairs),
        tokens,
        tuple(sorted(classes.items())),
        upper_bound(bad, len(pairs)),
        tolerance,
        a_differ,
        b_differ,
        load,
        control,
        p,
        tuple(found),
    )


def _varies(samples: Sequence[Sample]) -> bool:
    return len({sample.token_ids for sample in samples}) > 1


def _pair(
    name: str, a: Sample, b: Sample, splits: Mapping[str, Split], tolerance: float
) -> tuple[PromptClass, int, Split | None]:
    left, right = a.token_ids or (), b.token_ids or ()
    split = split_of(name, left, right)
    if split is None:
        shorter = a if len(left) < len(right) else b
        equal = len(left) == len(right)
        if not equal and shorter.finish_reason in OWN_END:
            return "mismatch", min(len(left), len(right)), Split(name, min(len(left), len(right)), None, None)
        return "identical" if equal else "truncated", min(len(left), len(right)), None
    known = splits.get(name)
    if known is not None and (known.position, known.standard_id, known.speculative_id) == (
        split.position,
        split.standard_id,
        split.speculative_id,
    ):
        split = known
    return classify(split, tolerance), split.position, split


def _under_load(
    loaded: Mapping[tuple[str, str, int], Sequence[Ids]], alone: Mapping[str, Ids]
) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
    differ = total = control = control_total = 0
    for (name, arm, level), texts in loaded.items():
        if arm == "A":
            partners = loaded.get((name, "B", level), ())
            if partners:
                total += 1
                differ += partners[0] != texts[0]
            if name in alone:
                control_total += 1
                control += any(text != alone[name] for text in texts)
    return (differ, total) if total else None, (control, control_total) if control_total else None


def _word(
    classes: Counter[str], prompts: int, a_differ: int, p: float | None, drafted: bool | None
) -> tuple[IdentityWord, str]:
    if a_differ:
        return "not_comparable", (
            f"The standard engine does not repeat itself on {a_differ} of {prompts} prompts, "
            "so a difference would prove nothing."
        )
    if classes["mismatch"]:
        return "mismatch", f"{classes['mismatch']} of {prompts} prompts differ by more than rounding."
    if classes["unexplained"]:
        return "suspect", f"{classes['unexplained']} of {prompts} prompts differ and the gap could not be measured."
    if classes["suspicious"]:
        return (
            "suspect",
            f"{classes['suspicious']} of {prompts} prompts differ by a little more than rounding explains.",
        )
    if drafted is False:
        return "not_tested", f"All {prompts} prompts agree, but nothing was drafted, so speculation was not tested."
    if classes["near_tie"]:
        if p is not None and p <= 0.05:
            return "suspect", (
                f"{classes['near_tie']} of {prompts} prompts split at near ties, "
                f"more often than batching alone explains (p = {p:.2g})."
            )
        return "identical_up_to_near_ties", (
            f"{classes['near_tie']} of {prompts} prompts split where two tokens were a near tie; the others are equal."
        )
    return "identical", f"All {prompts} prompts are equal token by token, as far as both outputs go."
