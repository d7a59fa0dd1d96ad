"""Where a command's prompt comes from."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from specdemo.cli.prompts import MOST_BYTES, build_prompt, read_prompt
from specdemo.core.prompt import Sampling
from specdemo.errors import PromptError, UsageError


def test_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An argument is taken as it is; stdin and files lose a byte order mark and one final line break."""
    (tmp_path / "p.txt").write_bytes(b"\xef\xbb\xbfline\n\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("çà\r\n".encode())))

    assert read_prompt(" hi\n", None) == " hi\n"
    assert read_prompt(None, tmp_path / "p.txt") == "line\n"
    assert read_prompt("-", None) == "çà"


@pytest.mark.parametrize("text,file", [(None, None), ("x", Path("y"))])
def test_exactly_one_source(text: str | None, file: Path | None) -> None:
    """None or two sources are wrong use."""
    with pytest.raises(UsageError, match="exactly one"):
        read_prompt(text, file)


def test_files_that_are_no_prompts(tmp_path: Path) -> None:
    """Missing, binary and huge files are one sentence each."""
    with pytest.raises(PromptError, match="cannot be read"):
        read_prompt(None, tmp_path / "none")
    (tmp_path / "binary").write_bytes(b"abc\xff")
    with pytest.raises(PromptError, match=r"not UTF-8 text \(byte 3\)"):
        read_prompt(None, tmp_path / "binary")
    (tmp_path / "wide").write_bytes("hello".encode("utf-16-le"))
    with pytest.raises(PromptError, match="holds a zero byte"):
        read_prompt(None, tmp_path / "wide")
    with (tmp_path / "huge").open("wb") as huge:
        huge.truncate(MOST_BYTES + 1)
    with pytest.raises(PromptError, match="larger than 8 MB"):
        read_prompt(None, tmp_path / "huge")


def test_chat_and_plain() -> None:
    """A chat has the system message first; a plain completion is the text alone and takes no system message."""
    sampling = Sampling(max_tokens=3)
    asked = build_prompt("hi", system="be brief", plain=False, sampling=sampling, logprobs=2)
    plain = build_prompt("hi", system="", plain=True, sampling=sampling, logprobs=None)

    assert [message.role for message in asked.messages] == ["system", "user"]
    assert (asked.logprobs, asked.sampling, plain.text, plain.messages) == (2, sampling, "hi", ())
    with pytest.raises(UsageError, match="--plain"):
        build_prompt("hi", system="x", plain=True, sampling=sampling, logprobs=None)
