"""Speculation settings: presets, vLLM's JSON, and one clear sentence for every mistake."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdemo.engines.speculation import METHODS, PRESETS, as_config, describe, parse_speculation
from specdemo.errors import ConfigError

NGRAM = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_min": 2, "prompt_lookup_max": 4}
DRAFT = {"method": "draft_model", "model": "owner/draft", "num_speculative_tokens": 5}


def refused(value: Any, **options: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_speculation(value, **options)
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


def test_the_ngram_preset_is_the_articles() -> None:
    """`ngram` is k=4 with lookup 2 to 4, as the article and the issue say."""
    found = parse_speculation("ngram")
    assert found is not None
    assert (found.method, found.k, found.draft_model, found.lossy) == ("ngram", 4, None, None)
    assert as_config(found) == NGRAM
    assert describe(found) == "n-gram, k=4, lookup 2-4"


@pytest.mark.parametrize("value", [None, "", "  ", "none", "NONE"])
def test_no_speculation(value: str | None) -> None:
    """`none` is the A/A control: two standard engines."""
    assert parse_speculation(value) is None
    assert describe(None) == "no speculation"


@pytest.mark.parametrize("name", [name for name in PRESETS if name != "none"])
def test_every_preset_works(name: str) -> None:
    """Each preset is complete but for the draft model, which methods that need one must be given."""
    draft = "owner/draft" if METHODS[name].needs_model else None
    found = parse_speculation(name.replace("_", "-"), draft_model=draft)
    assert found is not None
    assert found.method == name
    assert found.draft_model == draft


def test_json_passes_through() -> None:
    """vLLM's own JSON is handed on as it is; dashes in keys become underscores as vLLM does it."""
    text = '{"method": "ngram", "num-speculative-tokens": 8, "prompt_lookup_max": 3, "revision": null}'
    found = parse_speculation(text)
    assert found is not None
    assert as_config(found) == {"method": "ngram", "num_speculative_tokens": 8, "prompt_lookup_max": 3}


def test_equal_settings_are_equal_values() -> None:
    """The order of keys makes no difference, and the value can be a dictionary key."""
    one = parse_speculation(json.dumps(DRAFT))
    other = parse_speculation(dict(reversed(DRAFT.items())))
    assert one == other
    assert hash(one) == hash(other)


def test_own_settings_override() -> None:
    """`k` and `draft_model` from settings of their own win over the preset."""
    found = parse_speculation("draft_model", draft_model="owner/small", k=3)
    assert found is not None
    assert (found.k, found.draft_model) == (3, "owner/small")
    assert describe(found) == "draft model, k=3, owner/small"
    assert "speculation is `none`" in refused("none", k=3)


@pytest.mark.parametrize(
    ("model", "method"),
    [
        ("ngram", "ngram"),
        ("[ngram]", "ngram"),
        ("yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", "eagle3"),
        ("yuhuili/EAGLE-LLaMA3-Instruct-8B", "eagle"),
        ("owner/small", "draft_model"),
    ],
)
def test_a_missing_method_is_the_one_vllm_would_take(model: str, method: str) -> None:
    """Without `method`, ours is the one that vLLM derives from the draft's name, so that labels are right."""
    found = parse_speculation({"model": model, "num_speculative_tokens": 4})
    assert found is not None
    assert found.method == method
    assert as_config(found)["method"] == method


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("ngrma", "Did you mean `ngram`?"),
        ("eagle", "Did you mean `eagle3`?"),
        ('{"method": "ngram"', "not valid JSON at character"),
        ("[1]", "no JSON object"),
        ("{}", "empty object"),
        ({**NGRAM, "prompt_lookup_minimum": 2}, "Unknown speculation key `prompt_lookup_minimum`. Did you mean"),
        ({**NGRAM, "method": "n-gram"}, "Unknown speculation method `n-gram`"),
        ({"num_speculative_tokens": 4}, "names no `method`"),
        ({"method": "ngram"}, "needs `num_speculative_tokens`"),
        ({**NGRAM, "num_speculative_tokens": 0}, "is 0; it must lie between 1 and 32"),
        ({**NGRAM, "num_speculative_tokens": 33}, "is 33; it must lie between 1 and 32"),
        ({**NGRAM, "num_speculative_tokens": "4"}, 'must be a whole number, not "4"'),
        ({**NGRAM, "num_speculative_tokens": True}, "must be a whole number, not true"),
        ({**NGRAM, "prompt_lookup_min": 6}, "`prompt_lookup_min` (6) must not be above `prompt_lookup_max` (4)"),
        ({**NGRAM, "prompt_lookup_min": 0}, "it must be at least 1"),
        ({**DRAFT, "prompt_lookup_min": 1}, "belong to `ngram`, not to `draft_model`"),
        ("draft_model", "needs a draft"),
        ({"method": "eagle3", "num_speculative_tokens": 3}, "needs a draft"),
        ({**DRAFT, "model": "--host"}, "must not begin with a dash"),
        ({**DRAFT, "model": "a\nb"}, "must be text"),
        ({**NGRAM, "model": "owner/draft"}, "uses no draft model"),
        ({**DRAFT, "tensor_parallel_size": 2}, "the draft's is `draft_tensor_parallel_size`"),
        ({**DRAFT, "use_heterogeneous_vocab": 1}, "must be true or false"),
        ({"method": "custom_class", "model": "a.B", "num_speculative_tokens": 2}, "loads Python code by name"),
        ({"method": "extract_hidden_states", "num_speculative_tokens": 2}, "proposes no tokens"),
        ({**DRAFT, "rejection_sample_method": "blok"}, "Did you mean `block`?"),
        ({**DRAFT, "draft_sample_method": "random"}, "`greedy` or `probabilistic`"),
        ({**DRAFT, "enable_adaptive_verification": True}, "`dspark` alone"),
        ({**DRAFT, "synthetic_acceptance_length": 2.5}, 'works with `"rejection_sample_method": "synthetic"` alone'),
        ({**DRAFT, "fly_window_size": 3}, 'works with `"rejection_sample_method": "fly"` alone'),
        ({**DRAFT, "use_heterogeneous_vocab": True, "draft_sample_method": "probabilistic"}, "greedy drafts"),
        ({**NGRAM, "use_heterogeneous_vocab": True}, "`draft_model` alone"),
        ({**NGRAM, "num_speculative_tokens_per_batch_size": [[2, 4, 3]]}, "ranges start at 1"),
        ({**NGRAM, "num_speculative_tokens_per_batch_size": [[1, 4, 3], [4, 9, 2]]}, "do not overlap"),
        ({**NGRAM, "num_speculative_tokens_per_batch_size": [[1, 4, 9]]}, "between 0 and 4"),
        ({**NGRAM, "num_speculative_tokens_per_batch_size": [[1, 4]]}, "a list of [first, last, k]"),
    ],
)
def test_mistakes(value: Any, sentence: str) -> None:
    """Each mistake that vLLM reports as a traceback after half a minute is one sentence before the launch."""
    assert sentence in refused(value)


@pytest.mark.parametrize("mode", ["synthetic", "fly"])
def test_lossy_modes_need_permission(mode: str) -> None:
    """A mode whose text is not the target model's is refused, and labelled once it is allowed."""
    config = {**DRAFT, "rejection_sample_method": mode}
    if mode == "synthetic":
        config["synthetic_acceptance_length"] = 3.0
    assert "is lossy" in refused(config)
    found = parse_speculation(config, allow_lossy=True)
    assert found is not None
    assert found.lossy == mode
    assert "LOSSY" in describe(found)


@pytest.mark.parametrize(
    ("extra", "sentence"),
    [
        ({}, "exactly one of"),
        ({"synthetic_acceptance_length": 2, "synthetic_acceptance_rates": [0.5] * 5}, "exactly one of"),
        ({"synthetic_acceptance_length": 7}, "between 1 and 6"),
        ({"synthetic_acceptance_rates": [0.9, 0.8]}, "must be 5 numbers"),
        ({"synthetic_acceptance_rates": [0.1, 0.9, 0, 0, 0]}, "none above the one before it"),
        ({"synthetic_acceptance_rates": [0.9, 0.8, 0.7, 0.6, "x"]}, "must be 5 numbers"),
    ],
)
def test_synthetic_settings(extra: dict[str, Any], sentence: str) -> None:
    """The made-up acceptance of `synthetic` is checked as vLLM checks it."""
    config = {**DRAFT, "rejection_sample_method": "synthetic", **extra}
    assert sentence in refused(config, allow_lossy=True)


def test_block_is_lossless() -> None:
    """`block` keeps the target's distribution, so it needs no permission and no label."""
    found = parse_speculation({**DRAFT, "rejection_sample_method": "block"})
    assert found is not None
    assert found.lossy is None


@given(st.one_of(st.text(max_size=80), st.dictionaries(st.text(max_size=20), st.integers() | st.text(max_size=9))))
def test_hostile_input_is_a_config_error(value: Any) -> None:
    """Whatever is pasted, the answer is a value or one sentence; nothing else is ever raised."""
    sentence = ""
    try:
        parse_speculation(value)
    except ConfigError as error:
        sentence = str(error)
    assert len(sentence) < 600


def test_deep_json() -> None:
    """JSON nested too deeply to be read is no valid JSON, not a crash."""
    assert "not valid JSON" in refused('{"a":' * 100_000)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_no_number_at_all(number: str) -> None:
    """NaN and infinities, which Python's JSON reader lets through, are no numbers here."""
    text = f'{{"method": "suffix", "suffix_decoding_max_spec_factor": {number}}}'
    assert "must be a number" in refused(text)
