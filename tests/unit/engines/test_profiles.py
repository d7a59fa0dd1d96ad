"""Named profiles: equal flags for both sides, places that fit the machine, and the article's production pair."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdemo.core.engine import EngineSpec
from specdemo.core.events import Side
from specdemo.engines.cores import (
    binding,
    floating_cores,
    notation,
    same_cores,
    split_cores,
    thread_count,
    usable_cores,
)
from specdemo.engines.environment import Gpu
from specdemo.engines.footprint import GIB, kv_bytes_per_token, kv_cache_bytes
from specdemo.engines.profiles import (
    PRODUCTION_PAIRS,
    PROFILES,
    EnginePair,
    Tuning,
    build,
    choose,
    default_speculation,
    device_key,
)
from specdemo.engines.speculation import as_config, parse_speculation
from specdemo.errors import ConfigError

NGRAM = parse_speculation("ngram")


def cards(count: int, *, memory: float = 80.0, free: float = 79.0) -> tuple[Gpu, ...]:
    """``count`` equal cards; sizes in GiB."""
    return tuple(Gpu(number, "card", int(memory * GIB), int(free * GIB), "580") for number in range(count))


def pair(profile: str, **options: Any) -> EnginePair:
    options.setdefault("model", "owner/model")
    options.setdefault("served_name", "demo")
    options.setdefault("speculation", NGRAM)
    return build(profile, **options)


@pytest.mark.parametrize("name", PROFILES)
def test_sides_differ_in_speculation_and_place_alone(name: str) -> None:
    """A38: whatever the profile, nothing but side, speculation, cores and cards differs between the two."""
    found = pair(name, gpus=cards(8), cores=(0, 1, 2, 3))
    different = {
        field.name
        for field in fields(EngineSpec)
        if getattr(found.standard, field.name) != getattr(found.speculative, field.name)
    }
    assert different <= {"side", "speculation", "cores", "gpus"}
    assert {"side", "speculation"} <= different
    assert found.standard.speculation is None
    assert found.speculative.speculation == NGRAM


def test_none_is_an_equal_pair() -> None:
    """With the preset `none` both are standard engines: the A/A control."""
    found = pair("cpu", speculation=None, cores=(0, 1))
    assert found.speculative.speculation is None
    assert found.speculative.side is Side.SPECULATIVE


def test_the_cpu_profile(tmp_path: Path) -> None:
    """CPU: float32 and eager, a context that the model has, a cache of two full requests, cores for each."""
    config = {
        "max_position_embeddings": 2048, "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3,
        "hidden_size": 576,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    found = pair("cpu", model=str(tmp_path), cores=(0, 1))
    assert found.standard.dtype == "float32"
    assert found.standard.enforce_eager
    assert found.standard.max_model_len == 2048
    assert found.standard.kv_cache_bytes == GIB // 2
    assert found.parallel
    assert kv_bytes_per_token(config) == 2 * 30 * 3 * 64 * 4
    long = pair("cpu", model=str(tmp_path), cores=(0, 1), tuning=Tuning(max_model_len=60000))
    assert long.standard.kv_cache_bytes is not None
    assert long.standard.kv_cache_bytes >= 2 * 60000 * 46080


def test_a_cache_for_an_unknown_model() -> None:
    """A hub id cannot be looked into: 2 GiB."""
    assert kv_cache_bytes(EngineSpec(Side.STANDARD, "owner/model", "demo", "cpu", max_model_len=8192)) == 2 * GIB
    assert kv_bytes_per_token({"num_attention_heads": 0}) is None


def test_one_card_is_split() -> None:
    """One card: 0.45 each, loaded one after the other, and known as shared."""
    found = pair("gpu_shared", gpus=cards(1))
    assert (found.standard.memory_share, found.speculative.memory_share) == (0.45, 0.45)
    assert (found.standard.gpus, found.speculative.gpus) == ("0", "0")
    assert not found.parallel
    assert found.shared_device


def test_one_card_each() -> None:
    """Two cards: one each, loaded together, nothing shared."""
    found = pair("gpu-each", gpus=cards(2))
    assert (found.standard.gpus, found.speculative.gpus) == ("0", "1")
    assert found.parallel
    assert not found.shared_device


@pytest.mark.parametrize(("count", "size"), [(2, 1), (4, 2), (6, 2), (8, 4)])
def test_tensor_parallel(count: int, size: int) -> None:
    """Half of the cards each, in powers of two, disjoint."""
    found = pair("tensor_parallel", gpus=cards(count))
    assert found.standard.tensor_parallel == size
    first, second = (str(spec.gpus).split(",") for spec in (found.standard, found.speculative))
    assert len(first) == len(second) == size
    assert not set(first) & set(second)


def test_production_is_the_articles() -> None:
    """Chunked prefill, 32k context, memory share 0.92, four cards each; drafts and k as the article has them."""
    model = PRODUCTION_PAIRS["qwen2.5-72b"].target
    found = pair("production", model=model, gpus=cards(8), speculation=default_speculation("production", model))
    assert (found.standard.max_model_len, found.standard.memory_share) == (32768, 0.92)
    assert found.standard.tensor_parallel == 4
    assert ("enable-chunked-prefill", "") in found.standard.flags
    speculation = found.speculative.speculation
    assert speculation is not None
    assert as_config(speculation) == {
        "method": "draft_model", "model": "Qwen/Qwen2.5-1.5B-Instruct", "num_speculative_tokens": 5,
        "use_heterogeneous_vocab": True,
    }  # fmt: skip
    llama = default_speculation("production", "meta-llama/Llama-3.1-70B-Instruct")
    assert llama is not None
    assert (llama.draft_model, llama.k) == ("meta-llama/Llama-3.2-1B-Instruct", 5)
    assert default_speculation("production", "owner/model") == NGRAM
    assert default_speculation("cpu", "owner/model") == parse_speculation("ngram", k=8)
    assert default_speculation("gpu_each", "owner/model") == NGRAM


def test_the_users_own_prefill_choice_stays() -> None:
    """A flag that the user gave is not overruled by the profile."""
    found = pair("production", gpus=cards(8), flags=["no-enable-chunked-prefill"])
    assert found.standard.flags == (("no-enable-chunked-prefill", ""),)


@pytest.mark.parametrize(
    ("profile", "options", "sentence"),
    [
        ("gpu_eech", {}, "Did you mean `gpu_each`?"),
        ("gpu_each", {"gpus": cards(1)}, "needs 2 GPUs (tensor parallel 1), but 1 were found; the profile `gpu_shared`"),
        ("production", {"gpus": cards(4)}, "needs 8 GPUs (tensor parallel 4), but 4 were found."),
        ("gpu_shared", {"gpus": ()}, "needs 1 GPUs"),
        ("gpu_shared", {"gpus": cards(1), "tuning": Tuning(memory_share=0.5)}, "ask for 1.00 of GPU 0; set the memory share to 0.47"),
        ("gpu_shared", {"gpus": cards(1, free=40)}, "has 40.0 of 80.0 GiB free, but 0.90 of it was asked for; set the memory share to 0.24 each"),
        ("gpu_shared", {"gpus": cards(1, free=8)}, "8.0 of 80.0 GiB free, but 0.90 of it was asked for; free the card."),
        ("gpu_each", {"gpus": cards(2), "tuning": Tuning(gpus=("0", None))}, "Name the GPUs of both engines"),
        ("gpu_each", {"gpus": cards(2), "tuning": Tuning(gpus=("0", "7"))}, "`speculative_gpus` names GPU 7, but here are 0, 1."),
        ("gpu_each", {"gpus": cards(2), "tuning": Tuning(gpus=("--x", "1"))}, "`standard_gpus` is a list of different GPU numbers"),
        ("gpu_each", {"gpus": cards(2), "tuning": Tuning(gpus=("0,0", "1"))}, "different GPU numbers"),
        ("gpu_each", {"gpus": cards(4), "tuning": Tuning(gpus=("0", "1"), tensor_parallel=2)}, "names 1 of the 2 GPUs that tensor parallel 2"),
        ("cpu", {"flags": ["--port=1"]}, "cannot be passed through"),
    ],
)  # fmt: skip
def test_what_does_not_fit(profile: str, options: dict[str, Any], sentence: str) -> None:
    """A26: what the machine cannot hold is said before anything is loaded, with the share that would fit."""
    with pytest.raises(ConfigError) as caught:
        pair(profile, **options)
    assert sentence in str(caught.value)


def test_weights_must_fit(tmp_path: Path) -> None:
    """A26: local weights larger than the share are refused with the share that they need."""
    with (tmp_path / "model.safetensors").open("wb") as file:
        file.truncate(20 * GIB)  # sparse: takes no disk
    with pytest.raises(ConfigError, match=r"weights \(20.0 GiB a card\) do not fit into 0.45 of GPU 0 .* about 0.90"):
        pair("gpu_shared", model=str(tmp_path), gpus=cards(1, memory=24, free=24))


def test_weights_beyond_any_share(tmp_path: Path) -> None:
    """No share above the whole card is advised."""
    with (tmp_path / "model.safetensors").open("wb") as file:
        file.truncate(40 * GIB)
    with pytest.raises(ConfigError, match=r"do not fit .* it needs more cards, or a smaller model"):
        pair("gpu_shared", model=str(tmp_path), gpus=cards(1, memory=24, free=24))


def test_cards_as_the_user_names_them() -> None:
    """Blanks do not count, and identifiers are taken as they are."""
    found = pair("gpu_each", gpus=cards(4), tuning=Tuning(gpus=("0, 1", " 2,3 "), tensor_parallel=2))
    assert (found.standard.gpus, found.speculative.gpus, found.parallel) == ("0,1", "2,3", True)
    found = pair("gpu_each", gpus=cards(2), tuning=Tuning(gpus=("GPU-1a-2b", "MIG-3c/4")))
    assert (found.standard.gpus, found.speculative.gpus) == ("GPU-1a-2b", "MIG-3c/4")


def test_wishes_replace_the_profiles_choice() -> None:
    """Each wish reaches both engines; a wish for one side's cores leaves the other's."""
    wishes = Tuning(
        dtype="bfloat16", seed=3, max_num_seqs=4, enforce_eager=False, prefix_caching=True, cores=(None, "7")
    )
    found = pair("cpu", cores=(0, 1), tuning=wishes, environment={"A": "1"})
    for spec in (found.standard, found.speculative):
        assert (spec.dtype, spec.seed, spec.max_num_seqs, spec.enforce_eager) == ("bfloat16", 3, 4, False)
        assert spec.prefix_caching
        assert spec.environment == (("A", "1"),)
    assert found.speculative.cores == "7"
    assert found.standard.cores == pair("cpu", cores=(0, 1)).standard.cores


def test_the_machine_chooses() -> None:
    """Without a wish: CPU without a card or with a CPU build, one shared card, else a card each."""
    assert choose("cpu", cards(2)) == "cpu"
    assert choose("cuda", ()) == "cpu"
    assert choose("cuda", cards(1)) == "gpu_shared"
    assert choose("cuda", cards(4)) == "gpu_each"


def test_device_keys() -> None:
    """Equal keys mean a shared device; own cores and own cards have keys of their own."""
    spec = EngineSpec(Side.STANDARD, "m", "m", "cpu", cores="0")
    assert device_key(spec) == "cpu:0"
    assert device_key(replace(spec, cores=None)) == "cpu:all"
    assert device_key(replace(spec, device="cuda", gpus="0,1")) == "cuda:0,1"


@given(st.sets(st.integers(0, 200), min_size=2))
def test_halves_are_equal_and_apart(numbers: set[int]) -> None:
    """Both engines get the same number of cores and none in common; vLLM's notation can be read back."""
    first, second = (read(text) for text in split_cores(sorted(numbers)))
    assert len(first) == len(second) == len(numbers) // 2
    assert not first & second
    assert first | second <= numbers
    assert read(notation(sorted(numbers))) == numbers


def test_one_core_is_shared() -> None:
    """With a single core there is nothing to split."""
    assert split_cores([3]) == ("3", "3")
    assert same_cores([0, 1, 2]) == ("0-2", "0-2")
    assert [floating_cores(range(n)) for n in (1, 2, 5)] == ["any:1", "any:1", "any:2"]


def test_bindings() -> None:
    """Threads that the system places are counted by OpenMP; bound ones by vLLM."""
    assert binding("any:3") == ("nobind", "3")
    assert binding("0-1") == ("0-1", None)
    assert binding(None) == ("auto", None)
    assert [thread_count(text) for text in ("any:3", "0-1", "0,2-4,7", "5", "nobind", None)] == [3, 2, 5, 1, None, None]
    assert usable_cores()
    for backwards in ("3-1", "0,7-6"):
        with pytest.raises(ConfigError, match="run backwards"):
            thread_count(backwards)


def read(text: str) -> set[int]:
    """ "0-2,5" → {0, 1, 2, 5}."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found
