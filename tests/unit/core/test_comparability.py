"""Is the pair comparable? Each question, its levels, and what the answers add afterwards."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specdemo.core.comparability import CPU_REPAIR, after, checks, merge
from specdemo.core.engine import EngineFacts
from specdemo.core.outcome import collect
from specdemo.core.prompt import Prompt, Sampling
from specdemo.core.results import Check
from tests.unit.core.streams import A, B, ids_stream

STD = EngineFacts(
    A, "m", version="0.32.0", max_model_len=2048, speculating=False, device="cpu", device_key="cpu:0@h",
    dtype="float32", root="org/m", settings=(("kv_cache_dtype", "auto"), ("prefix_caching", "off")),
)  # fmt: skip
SPEC = replace(STD, side=B, speculating=True, method="ngram", k=4, device_key="cpu:1@h")
GREEDY = Prompt(text="x")
WARM = Prompt(text="x", sampling=Sampling(temperature=0.8, top_p=0.9, top_k=20, min_p=0.05, seed=7, stop=("\n",)))


def levels(
    std: EngineFacts | None = STD, spec: EngineFacts | None = SPEC, prompt: Prompt = GREEDY, **options: object
) -> dict[str, str]:
    """Level by check name."""
    return {check.check: check.level for check in found(std, spec, prompt, **options)}


def found(
    std: EngineFacts | None = STD, spec: EngineFacts | None = SPEC, prompt: Prompt = GREEDY, **options: object
) -> tuple[Check, ...]:
    """All checks of this pair; both engines read the prompt as (1, 2, 3) unless said otherwise."""
    ids = options.pop("ids", ((1, 2, 3), (1, 2, 3)))
    return checks((std, spec), ids, prompt, **options)  # type: ignore[arg-type]


def detail(name: str, answers: tuple[Check, ...]) -> str:
    """The sentence of one check."""
    return next(check.detail for check in answers if check.check == name)


def test_a_fair_pair_is_all_ok() -> None:
    """Two equal engines on separate devices, one speculating: every line is ok."""
    assert set(levels().values()) == {"ok"}
    assert "up to 4 tokens a step" in detail("speculation", found())
    assert "with ngram" in detail("speculation", found())


def test_sampling_line_lists_every_field() -> None:
    """A04: the line says everything that was sent, defaults included."""
    text = detail("sampling", found(prompt=WARM))
    for part in (
        "temperature 0.8", "top_p 0.9", "top_k 20", "min_p 0.05", "presence_penalty 0", "frequency_penalty 0",
        "repetition_penalty 1", "seed 7", "max_tokens 256", "ignore_eos no", "stop 1",
    ):  # fmt: skip
        assert part in text
    assert "seed none" in detail("sampling", found())


@pytest.mark.parametrize(
    ("ids", "level"),
    [(((1, 2), (1, 2)), "ok"), (((1, 2), (1, 1, 2)), "block"), (((1, 2), (1, 3)), "block"), ((None, (1,)), "warn")],
)
def test_prompt_ids(ids: tuple[object, object], level: str) -> None:
    """A36: different prompt ids forbid the claim; unknown ones are said."""
    assert levels(ids=ids)["prompt_tokens"] == level


@pytest.mark.parametrize(
    ("std", "spec", "level"),
    [
        (STD, SPEC, "ok"),
        (STD, replace(SPEC, root="other/m2"), "block"),
        (replace(STD, root="/srv/models/m"), replace(SPEC, root="/data/m/"), "warn"),
        (replace(STD, root=None), SPEC, "ok"),
        (replace(STD, root=None), replace(SPEC, model="n"), "block"),
    ],
)
def test_model(std: EngineFacts, spec: EngineFacts, level: str) -> None:
    """Different models forbid the claim; the same name from elsewhere is doubtful; paths are not shown."""
    answers = found(std, spec)
    assert next(check.level for check in answers if check.check == "model") == level
    assert "/srv" not in detail("model", answers)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"dtype": "bfloat16"}, "dtype"),
        ({"max_model_len": 4096}, "max_model_len"),
        ({"version": "0.33.0"}, "version"),
        ({"settings": (("kv_cache_dtype", "fp8"), ("prefix_caching", "off"))}, "kv_cache_dtype"),
        ({"settings": (("kv_cache_dtype", "auto"), ("prefix_caching", "on"))}, "prefix_caching"),
    ],
)
def test_settings_that_differ_are_listed(change: dict[str, object], name: str) -> None:
    """A38: whatever differs beyond the draft is listed next to the verdict, with both values."""
    answers = found(STD, replace(SPEC, **change))  # type: ignore[arg-type]
    assert next(check.level for check in answers if check.check == name) == "warn"
    assert detail(name, answers).startswith("Different ")


def test_unknown_settings_are_not_compared_unless_both_are_managed() -> None:
    """What an attached engine does not tell is no difference; for managed ones a flag on one side is."""
    extra = replace(SPEC, settings=(*SPEC.settings, ("quantization", "fp8")))
    assert "quantization" not in levels(STD, extra)
    ours, theirs = replace(STD, managed=True), replace(extra, managed=True)
    assert levels(ours, theirs)["quantization"] == "warn"
    assert "speculative engine only" in detail("quantization", found(ours, theirs))
    assert "standard engine only" in detail("quantization", found(replace(theirs, side=A), replace(ours, side=B)))
    assert "version" not in levels(replace(STD, version=None))


@pytest.mark.parametrize(
    ("keys", "mode", "level"),
    [
        (("g", "g"), "race", "warn"),
        (("g", "g"), "measure", "ok"),
        (("g", "h"), "race", "ok"),
        ((None, "h"), "race", "warn"),
        ((None, "h"), "measure", None),
    ],
)
def test_device(keys: tuple[str | None, str | None], mode: str, level: str | None) -> None:
    """A race on one device is for show; unknown devices count as shared in a race."""
    std, spec = replace(STD, device_key=keys[0]), replace(SPEC, device_key=keys[1])
    assert levels(std, spec, mode=mode).get("device") == level


def test_speculation_really_on() -> None:
    """Speculation that is off or unknown is said; a speculating reference forbids the claim."""
    assert levels(spec=replace(SPEC, speculating=False))["speculation"] == "warn"
    assert levels(spec=replace(SPEC, speculating=None))["speculation"] == "warn"
    assert levels(std=replace(STD, speculating=True))["standard_plain"] == "block"
    bare = found(spec=replace(SPEC, method=None, k=None))
    assert detail("speculation", bare) == "The speculative engine drafts."


def test_lossy_mode_forbids_the_claim() -> None:
    """A lossy mode is not meant to write the same tokens."""
    assert levels(spec=replace(SPEC, lossy="typical_acceptance"))["lossy"] == "block"


def test_control_asks_nothing_about_speculation() -> None:
    """The standard engine against itself needs no drafts."""
    names = levels(STD, replace(STD, side=B), control=True)
    assert "speculation" not in names
    assert "standard_plain" not in names


def test_silent_engines_are_named() -> None:
    """An engine that does not answer leaves its questions open, which is said."""
    assert "standard engine did not say" in detail("engines", found(None))
    assert "standard and speculative" in detail("engines", found(None, None))
    assert levels(STD, None)["engines"] == "warn"


def test_min_p_is_predicted_to_fail() -> None:
    """A06: min_p above temperature 0 will be refused by the speculative engine, and that is said before the run."""
    assert levels(prompt=WARM)["min_p"] == "warn"
    assert "min_p" not in levels(spec=replace(SPEC, speculating=False), prompt=WARM)


@pytest.mark.parametrize(
    ("spec", "level"),
    [
        (SPEC, "warn"),
        (replace(SPEC, settings=((CPU_REPAIR, "on"),)), "ok"),
        (replace(SPEC, device="cuda"), None),
        (replace(SPEC, device=None, version="0.32.0+cpu"), "warn"),
        (replace(SPEC, device=None), "warn"),
        (replace(SPEC, speculating=False), None),
    ],
)
def test_cpu_sampling_hazard(spec: EngineFacts, level: str | None) -> None:
    """Sampling with drafts on an unrepaired CPU engine is wrong, and said so; greedy runs are safe."""
    assert levels(spec=spec, prompt=WARM).get("cpu_sampling") == level
    assert "cpu_sampling" not in levels(spec=spec)


def test_answers_add_prompt_counts_and_warm_caches() -> None:
    """A36, D10: prompt tokens as counted by the engines, and cached ones, are told after the run."""
    equal = [collect(ids_stream(side, [1], usage=1, prompt=9), side) for side in (A, B)]
    assert after(equal[0], equal[1]) == ()
    warm = collect(ids_stream(B, [1], usage=1, prompt=10, cached=8), B)
    answers = {check.check: check for check in after(equal[0], warm)}
    assert answers["prompt_tokens"].level == "block"
    assert "unknown and 8" in answers["warm_cache"].detail
    assert "not comparable" in answers["warm_cache"].detail
    both = [collect(ids_stream(side, [1], usage=1, cached=8), side) for side in (A, B)]
    assert after(both[0], both[1])[0].detail.endswith("8 and 8).")
    assert after(collect((), A), collect((), B)) == ()


def test_the_worse_answer_stands() -> None:
    """An answer from before the run is kept unless the run gave a worse one."""
    before = (Check("a", "ok", "1"), Check("b", "block", "2"))
    merged = merge(before, (Check("a", "warn", "3"), Check("b", "warn", "4"), Check("c", "ok", "5")))
    assert [(check.check, check.detail) for check in merged] == [("a", "3"), ("b", "2"), ("c", "5")]


def test_echoed_prompt_ids_settle_what_counts_leave_open() -> None:
    """A36: servers count start tokens differently; ids that both echoed tell whether the prompt was the same."""
    sides = [collect(ids_stream(side, [1], usage=1, prompt=20 + n, prompt_ids=(7, 8)), side)
             for n, side in enumerate((A, B))]  # fmt: skip
    assert after(*sides) == ()
    other = collect(ids_stream(B, [1], usage=1, prompt=20, prompt_ids=(7, 9)), B)
    (check,) = after(sides[0], other)
    assert (check.check, check.level) == ("prompt_tokens", "block")
    assert "different from prompt token 2 on" in check.detail


@pytest.mark.parametrize("counted", [0, -1])
def test_a_prompt_that_nobody_counted_is_no_other_prompt(counted: int) -> None:
    """A36: a server that fills in 0 did not see another prompt; nor are such counts a warm cache."""
    sides = [collect(ids_stream(side, [1], usage=1, prompt=size, cached=min(size, 0)), side)
             for size, side in ((12, A), (counted, B))]  # fmt: skip
    assert after(*sides) == ()


def test_one_setting_in_two_spellings_is_the_same() -> None:
    """A38: versions of an engine write the same value differently."""
    std = replace(STD, dtype="torch.bfloat16", settings=(("prefix_caching", "True"),))
    spec = replace(SPEC, dtype="bfloat16", settings=(("prefix_caching", "true"),))
    told = levels(std, spec)
    assert (told["dtype"], told["prefix_caching"]) == ("ok", "ok")
