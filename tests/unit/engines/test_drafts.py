"""Target, draft, device and version of a speculation, checked before a launch on small model folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specdemo.core.engine import EngineSpec
from specdemo.core.events import Side
from specdemo.engines.drafts import (
    check_spec,
    check_speculation,
    local_folder,
    package_beside,
    read_config,
    runner,
    version_pair,
    vocabulary_size,
)
from specdemo.engines.speculation import parse_speculation
from specdemo.errors import ConfigError


def model(folder: Path, name: str, **config: Any) -> str:
    """A model folder as far as these checks read it."""
    place = folder / name
    place.mkdir()
    (place / "config.json").write_text(json.dumps(config))
    (place / "tokenizer.json").write_text("{}")
    (place / "model.safetensors").write_bytes(b"weights")
    return str(place)


def refused(value: Any, **options: Any) -> str:
    speculation = parse_speculation(value, allow_lossy=True)
    options.setdefault("device", "cuda")
    options.setdefault("target", "owner/target")
    with pytest.raises(ConfigError) as caught:
        check_speculation(speculation, **options)
    return str(caught.value)


def test_vocabularies_of_different_size(tmp_path: Path) -> None:
    """A25: 152,064 and 151,936 entries are refused before the launch, naming both and the ways out."""
    target = model(tmp_path, "target", vocab_size=152064)
    draft = model(tmp_path, "draft", vocab_size=151936)
    config = {"method": "draft_model", "model": draft, "num_speculative_tokens": 5}
    sentence = refused(config, target=target)
    assert "The draft's vocabulary has 151936 entries, the target's 152064" in sentence
    assert "`ngram`" in sentence
    shared = parse_speculation({**config, "use_heterogeneous_vocab": True})
    check_speculation(shared, target=target, device="cuda")


def test_vocabulary_of_a_multimodal_model() -> None:
    """Multimodal models keep the size under text_config; a model that does not say is left to vLLM."""
    assert vocabulary_size({"text_config": {"vocab_size": 7}}) == 7
    for name in ("llm_config", "language_config", "thinker_config"):
        assert vocabulary_size({name: {"vocab_size": 7}}) == 7
    assert vocabulary_size({"thinker_config": {"text_config": {"vocab_size": 7}}}) == 7
    assert vocabulary_size({"vision_config": {"vocab_size": 7}, "llm_config": {"vocab_size": 0}}) is None
    assert vocabulary_size({"vocab_size": True}) is None
    assert vocabulary_size({"text_config": None}) is None


def test_equal_vocabularies_pass(tmp_path: Path) -> None:
    """Equal sizes pass; a hub id cannot be looked into, so it passes too."""
    target, draft = model(tmp_path, "target", vocab_size=5), model(tmp_path, "draft", vocab_size=5)
    for name in (draft, "owner/draft"):
        config = {"method": "draft_model", "model": name, "num_speculative_tokens": 5}
        check_speculation(parse_speculation(config), target=target, device="cuda")


@pytest.mark.parametrize(
    ("value", "options", "sentence"),
    [
        ({"method": "medusa", "model": "a/b", "num_speculative_tokens": 3}, {"version": "0.33.0"}, "removed in vLLM 0.33"),
        ({"method": "ngram_gpu", "num_speculative_tokens": 3}, {"device": "cpu"}, "does not run on the CPU; use `ngram`"),
        ({"method": "dspark"}, {"device": "cpu"}, "does not run on the CPU."),
        ("suffix", {"has_package": lambda name: False}, "arctic-inference==0.1.1"),
        (
            {"method": "ngram", "num_speculative_tokens": 3, "disable_lookahead_block_hashes": True},
            {"version": "0.32.0+cpu"},
            "needs vLLM 0.33 or later; this is 0.32.0+cpu",
        ),
        (
            {"method": "ngram", "num_speculative_tokens": 3, "rejection_sample_method": "fly"},
            {"version": "0.32.0"},
            "`fly` needs vLLM 0.33",
        ),
        (
            {"method": "ngram", "num_speculative_tokens": 3, "rejection_sample_method": "fly"},
            {"device": "cpu"},
            "`fly` does not run on the CPU",
        ),
        (
            {"method": "draft_model", "model": "a/b", "num_speculative_tokens": 3, "draft_tensor_parallel_size": 3},
            {"tensor_parallel": 4},
            "must be 1 or the target's 4",
        ),
        (
            {
                "method": "draft_model", "model": "a/b", "num_speculative_tokens": 3, "draft_tensor_parallel_size": 1,
                "use_heterogeneous_vocab": True,
            },
            {"tensor_parallel": 4},
            "must be the target's here",
        ),
        ({"method": "draft_model", "model": "/no/such", "num_speculative_tokens": 3}, {}, "no model folder /no/such"),
        ({"method": "draft_model", "model": "a b", "num_speculative_tokens": 3}, {}, "neither a model folder"),
    ],
)  # fmt: skip
def test_what_this_engine_cannot_do(value: Any, options: dict[str, Any], sentence: str) -> None:
    """Methods, keys and modes are gated by vLLM's version, the device and what is installed, in one sentence."""
    assert sentence in refused(value, **options)


def test_unknown_versions_are_left_to_vllm() -> None:
    """Without a known version, or with what the engine has, nothing is refused."""
    medusa = parse_speculation({"method": "medusa", "model": "a/b", "num_speculative_tokens": 3})
    check_speculation(medusa, target="a/b", device="cuda", version=None)
    check_speculation(medusa, target="a/b", device="cuda", version="0.32.0")
    check_speculation(parse_speculation("suffix"), target="a/b", device="cpu", has_package=lambda name: True)
    check_speculation(None, target="a/b", device="cpu")


def test_mtp_needs_a_model_that_has_it(tmp_path: Path) -> None:
    """`mtp` on a checkpoint without such layers is refused; with them, also under text_config, it passes."""
    assert "multi-token-prediction" in refused("mtp", target=model(tmp_path, "plain", vocab_size=5))
    for name, config in (
        ("deep", {"num_nextn_predict_layers": 1}),
        ("multi", {"text_config": {"mtp_num_hidden_layers": 1}}),
    ):
        check_speculation(parse_speculation("mtp"), target=model(tmp_path, name, **config), device="cuda")


@pytest.mark.parametrize("text", ["{", "[]", '"x"', "\xff"])
def test_a_config_that_is_none(tmp_path: Path, text: str) -> None:
    """A config.json that is no JSON object is one sentence."""
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "config.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError, match=r"config.json in the model folder .*"):
        read_config(str(folder))


def test_a_folder_without_weights(tmp_path: Path) -> None:
    """A model folder that misses files is refused before the launch, for either side."""
    folder = model(tmp_path, "m", vocab_size=5)
    (Path(folder) / "model.safetensors").unlink()
    with pytest.raises(ConfigError, match="weights"):
        check_spec(EngineSpec(Side.STANDARD, folder, "m", "cpu"))
    (Path(folder) / "config.json").unlink()
    with pytest.raises(ConfigError, match=r"config\.json"):
        check_spec(EngineSpec(Side.STANDARD, folder, "m", "cpu"))


@pytest.mark.parametrize("name", ["Qwen/Qwen2.5-72B-Instruct", "gpt2"])
def test_hub_ids(name: str) -> None:
    """A hub id is no local folder."""
    assert local_folder(name) is None


@pytest.mark.parametrize(
    "name", ["x; touch /tmp/p", "$(id)", "a b", "../up/there", "~/nothing-here", "a/b/c", "a\nb", ""]
)
def test_what_is_neither(name: str) -> None:
    """C19: what is neither an existing folder nor a hub id is refused with a sentence."""
    with pytest.raises(ConfigError):
        local_folder(name)


def test_versions() -> None:
    """Versions are read with and without a build tag."""
    assert version_pair("0.32.0+cpu") == (0, 32)
    assert version_pair("v0.33.1rc2") == (0, 33)
    assert version_pair("dev") is None
    assert version_pair(None) is None


def test_runners() -> None:
    """V1 on the CPU and for what V2 lacks; V2 otherwise. It decides how n-gram acceptance is to be read."""
    assert runner(parse_speculation("ngram"), "cpu") == "V1"
    assert runner(parse_speculation("ngram"), "cuda") == "V2"
    assert runner(None, "cuda") == "V2"
    assert runner(parse_speculation("suffix"), "cuda") == "V1"
    different = {"method": "draft_model", "model": "a/b", "num_speculative_tokens": 3, "use_heterogeneous_vocab": True}
    assert runner(parse_speculation(different), "cuda") == "V1"


def test_packages_are_found_beside_the_engine(tmp_path: Path) -> None:
    """A package is looked up in the engine's own environment, under any spelling of its name."""
    site = tmp_path / "lib" / "python3.11" / "site-packages"
    (site / "arctic_inference-0.1.1.dist-info").mkdir(parents=True)
    python = tmp_path / "bin" / "python"
    assert package_beside(python, "arctic-inference")
    assert not package_beside(python, "arctic")
