"""Texts of single tokens: from the model's own file or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models

from specdemo.compose.attached import open_attached
from specdemo.compose.texts import token_texts
from specdemo.core.events import Side, Tokens
from specdemo.core.prompt import chat
from specdemo.settings import load
from tests.fakes.vllm import serving


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


async def test_an_attached_engine_is_split_once_its_model_is_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Somebody else's engine tells its model's name; if that model's tokenizer lies here, bursts come apart."""
    snapshot = tmp_path / "models--org--tiny" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    tokenizer = Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="a"))
    tokenizer.decoder = decoders.Fuse()
    tokenizer.save(str(snapshot / "tokenizer.json"))
    script = {"models": ["org/tiny"], "reply": {"steps": [{"ids": [0, 1], "text": "ab"}], "step_s": 0.0}}
    async with serving(script) as first, serving(script) as second:
        flags = {"standard.base_url": first.base_url, "speculative.base_url": second.base_url}
        settings = load(flags, environ={}, folder=tmp_path).settings
        async with open_attached(settings) as (engines, _):
            engine = engines[Side.SPECULATIVE]
            await engine.facts()
            events = [event async for event in engine.stream(chat("hi"), zero=0.0)]
    assert [event.pieces for event in events if isinstance(event, Tokens) and event.ids] == [("a", "b")]
