"""Texts of single tokens by a tokenizer file."""

from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from specdemo.core.prompt import Sampling, chat
from specdemo.engines.token_text import TokenText, load
from specdemo.errors import SetupError
from tests.fakes.asking import hear


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A byte-level tokenizer of single bytes, and a special token."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: index for index, letter in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<end>"])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def ids_of(folder: Path, text: str) -> tuple[int, ...]:
    """One id a byte."""
    return tuple(Tokenizer.from_file(str(folder / "tokenizer.json")).encode(text).ids)


def test_pieces_of_bursts(folder: Path) -> None:
    """A character over several tokens comes with the one that completes it; joined, the pieces are the text."""
    splitter = load(folder)
    assert splitter is not None
    split = splitter()
    ids = ids_of(folder, "a🎉b")
    assert split(ids[:3], "a") == ("a", "", "")
    assert split(ids[3:], "🎉b") == ("", "🎉", "b")


def test_no_guess_where_the_text_differs(folder: Path) -> None:
    """Held-back text gives None, and the decoder goes on with the next chunk; streams do not share state."""
    splitter = load(folder / "tokenizer.json")
    assert splitter is not None
    split, other = splitter(), splitter()
    assert split(ids_of(folder, "abc"), "ab") is None
    assert split(ids_of(folder, "de"), "de") == ("d", "e")
    assert other(ids_of(folder, "x"), "x") == ("x",)


def test_special_and_unknown_ids(folder: Path) -> None:
    """The end token has no text; an id that the file does not know spoils only its own chunk."""
    splitter = load(folder)
    assert splitter is not None
    split = splitter()
    end = 256
    assert split((*ids_of(folder, "a"), end), "a") == ("a", "")
    assert split((999_999,), "?") is None
    assert split((2**40,), "?") is None
    assert split(ids_of(folder, "b"), "b") == ("b",)


def test_files(folder: Path, tmp_path: Path) -> None:
    """No file is no splitter; a broken one is an error with its name."""
    assert load(tmp_path / "none") is None
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(SetupError, match=r"tokenizer\.json"):
        load(folder)


async def test_pieces_arrive_in_events(folder: Path) -> None:
    """The client fills in the pieces of each burst."""
    splitter = load(folder)
    assert isinstance(splitter, TokenText)
    steps = [{"ids": list(ids_of(folder, text)), "text": text} for text in ("a", "bc ", "你", "d")]
    heard = await hear(
        {"k": 4, "reply": {"steps": steps}}, chat("x", sampling=Sampling(max_tokens=64)), splitter=splitter
    )
    assert [event.pieces for event in heard.tokens if event.ids] == [("a",), ("b", "c", " "), ("", "", "你"), ("d",)]
