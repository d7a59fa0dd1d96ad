"""The shipped draft model: found for its own target alone, and refused when its files are not what was released."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from specdemo.engines import profiles, shipped
from specdemo.engines.embedded.source import SMOLLM2
from specdemo.engines.profiles import CPU_DRAFT_K, first_k, wanted_speculation
from specdemo.engines.speculation import as_config, lacks_draft
from specdemo.errors import ConfigError, SetupError

TARGET = f"/models/{SMOLLM2.folder}"


def folder(place: Path, **changes: bytes) -> Path:
    """A small stand-in with a manifest; ``changes`` are made after that was written."""
    place.mkdir()
    files = {"config.json": b"{}", "model.safetensors": b"weights"}
    for name, data in files.items():
        (place / name).write_bytes(data)
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    (place / shipped.MANIFEST).write_text(json.dumps({"sha256": digests}))
    for name, data in changes.items():
        (place / name.replace("__", ".")).write_bytes(data)
    return place


def test_whole_files_pass(tmp_path: Path) -> None:
    """Every file of the manifest was read and matched."""
    place = folder(tmp_path / "whole")
    assert shipped.checked(place) == place


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_one_changed_byte_is_refused(tmp_path: Path, name: str) -> None:
    """A damaged file is named before an engine loads it."""
    place = folder(tmp_path / "changed", **{name.replace(".", "__"): b"weightz"})
    with pytest.raises(SetupError, match=rf"{name} is damaged; install specdemo again"):
        shipped.checked(place)


@pytest.mark.parametrize("manifest", [b"", b"[]", b'{"sha256": 3}', b'{"sha256": {"absent": "00"}}'])
def test_a_folder_with_less_is_incomplete(tmp_path: Path, manifest: bytes) -> None:
    """A manifest that is no manifest, or names a file that is not there."""
    place = folder(tmp_path / "less", manifest__json=manifest)
    with pytest.raises(SetupError, match="incomplete; install specdemo again"):
        shipped.checked(place)


def test_only_its_own_target_has_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The embedded model wherever it is cached, and the hub's own copy of it; no other model."""
    place = folder(tmp_path / "own")
    monkeypatch.setattr(shipped, "_folder", lambda: place)
    for target in (TARGET, f"/elsewhere/{SMOLLM2.folder}", "HuggingFaceTB/SmolLM2-135M-Instruct"):
        assert shipped.shipped_draft(target) == str(place)
    for target in ("HuggingFaceTB/SmolLM2-360M-Instruct", "Qwen/Qwen3-8B", "/models/other"):
        assert shipped.shipped_draft(target) is None


def test_the_real_one_is_whole_and_small() -> None:
    """What lies in the checkout is what its manifest says, and within 25 MB."""
    found = shipped.shipped_draft(TARGET)
    assert found is not None
    assert sum(path.stat().st_size for path in Path(found).iterdir()) <= 25_000_000
    config = json.loads((Path(found) / "config.json").read_text("utf-8"))
    assert config["vocab_size"] == 49_152


def test_one_setting_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """``draft_model`` alone takes the shipped draft with the measured k; a k of the user's own stays."""
    monkeypatch.setattr(profiles, "shipped_draft", lambda _target: "/shipped")
    found = wanted_speculation("cpu", TARGET, speculation="draft_model")
    assert found is not None
    assert as_config(found) == {
        "method": "draft_model", "model": "/shipped", "num_speculative_tokens": CPU_DRAFT_K,
    }  # fmt: skip
    own = wanted_speculation("cpu", TARGET, speculation="draft-model", k=2)
    assert own is not None
    assert (own.draft_model, own.k) == ("/shipped", 2)
    written = wanted_speculation("cpu", TARGET, speculation='{"method": "draft_model", "num_speculative_tokens": 4}')
    assert written is not None
    assert (written.draft_model, written.k) == ("/shipped", 4)
    chosen = wanted_speculation("cpu", TARGET, speculation="draft_model", draft_model="owner/small")
    assert chosen is not None
    assert (chosen.draft_model, chosen.k) == ("owner/small", 5)


def test_another_target_is_told_to_name_a_draft() -> None:
    """Nothing ships for it, so the setting alone is a mistake that is explained."""
    with pytest.raises(ConfigError, match="needs a draft: set the draft model"):
        wanted_speculation("cpu", "owner/other", speculation="draft_model")


def test_nothing_asked_is_the_profiles_own() -> None:
    """No setting keeps n-gram; a k alone means n-gram with it."""
    usual = wanted_speculation("cpu", TARGET, speculation=None)
    assert usual is not None
    assert (usual.method, usual.k) == ("ngram", first_k("ngram", "cpu"))
    longer = wanted_speculation("cpu", TARGET, speculation=None, k=5)
    assert longer is not None
    assert (longer.method, longer.k) == ("ngram", 5)
    assert wanted_speculation("cpu", TARGET, speculation="none") is None


def test_what_lacks_a_draft() -> None:
    """Only the draft-model method without a model."""
    assert lacks_draft("draft_model")
    assert lacks_draft({"method": "draft_model"})
    assert not lacks_draft({"method": "draft_model", "model": "a/b"})
    assert not lacks_draft("ngram")
    assert not lacks_draft("eagle3")
    assert not lacks_draft("none")
    assert not lacks_draft(None)


def test_first_lengths() -> None:
    """Measured on the CPU, the presets' own elsewhere, none where a method has none."""
    assert first_k("ngram", "cuda") == 4
    assert first_k("draft_model", "cuda") == 5
    assert first_k("suffix", "cpu") is None
    assert first_k("none", "cpu") is None
