"""Texts of single tokens: from the model's own file or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models

from specdemo.compose.texts import token_texts


@pytest.fixture(autouse=True)
def forget() -> None:
    """Nothing is remembered from another test."""
    token_texts.cache_clear()


def test_a_folder_with_a_tokenizer_splits_bursts(tmp_path: Path) -> None:
    """The ids of a burst get their own texts when they join to what the engine sent."""
    tokenizer = Tokenizer(models.WordLevel({"a": 0, "b": 1, "?": 2}, unk_token="?"))
    tokenizer.decoder = decoders.Fuse()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    texts = token_texts(str(tmp_path))
    assert texts is not None
    assert texts()((0, 1), "ab") == ("a", "b")
    assert texts()((0, 1), "something else") is None


@pytest.mark.parametrize("model", ["no/such-model", "not a hub id", "/no/such/folder", ""])
def test_without_files_nothing_is_guessed(model: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A model whose files are elsewhere has no single texts, and nothing is fetched for them."""
    monkeypatch.chdir(tmp_path)
    assert token_texts(model) is None


def test_a_broken_file_costs_the_pieces_and_not_the_run(tmp_path: Path) -> None:
    """An unreadable tokenizer is told in the log and otherwise ignored."""
    (tmp_path / "tokenizer.json").write_text("{")
    assert token_texts(str(tmp_path)) is None


def test_a_hub_id_is_found_in_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What the engine has fetched is read where it lies."""
    snapshot = tmp_path / "hub" / "models--org--tiny" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    Tokenizer(models.WordLevel({"a": 0}, unk_token="a")).save(str(snapshot / "tokenizer.json"))
    assert token_texts("org/tiny") is not None
    assert token_texts("org/other") is None
