"""Files whose name, separators or columns are not the usual ones: read as meant, or refused by name, never guessed."""

from __future__ import annotations

import bz2
import lzma
import os
import re
from pathlib import Path

import pytest

from specdemo.bench.dataset_lines import DatasetLimits
from specdemo.bench.datasets import Dataset, read_bytes, read_path
from specdemo.bench.report.words import speaker
from specdemo.errors import PromptError


def shown(found: Dataset) -> list[str]:
    return [prompt.shown for prompt in found.prompts]


@pytest.mark.parametrize(
    "text",
    [
        "id|prompt\n1|one\n2|two\n",
        "sep=;\nid;prompt\n1;one\n2;two\n",
        'sep=\t\n"id"\t"prompt"\n1\tone\n2\ttwo\n',
        "prompt;answer, long, with, commas\none;x\ntwo;y\n",
        '"the id, that is";Prompt\n1;one\n2;two\n',
        '{"prompt":"one","id":1}\n{"prompt":"two"}\n',
        '["one",\n"two"]',
    ],
)
def test_cells_are_told_apart_by_the_header(text: str) -> None:
    """The separator is the one that gives a known column; JSON under the name of a table is JSON."""
    assert shown(read_bytes(text.encode(), "a.csv")) == ["one", "two"]


def test_a_first_line_taken_for_a_prompt_is_told() -> None:
    """A lone column may have no header; whether the first line is one can't be known, so it is said."""
    found = read_bytes(b"Fragen\nwas?\n", "a.csv")
    assert shown(found) == ["Fragen", "was?"]
    assert found.notes == ("no column has a known name, so the first line is a prompt too: Fragen",)
    assert read_bytes(b"Prompt\nwas?\n", "a.csv").notes == ()
    with pytest.raises(PromptError, match="no column named prompt"):
        read_bytes(b'messages\n"[{""role"":""user"",""content"":""a""}]"\n', "a.csv")


@pytest.mark.parametrize("head", ["x" * 200_000, "a\rb\nc", 'a"b', '"'])
def test_odd_first_lines_of_a_table_are_no_crash(head: str) -> None:
    """What can't be split is told as a row."""
    assert read_bytes(f"{head}\n\n".encode(), "a.csv").rows >= 1


def test_empty_columns_of_a_joined_table_are_absent() -> None:
    """A table of mixed rows gives each row every key; null ones say nothing, unless nothing else is there."""
    rows = (
        b'{"messages":null,"turns":null,"prompt":"one","temperature":null}\n{"prompt":null,"question":"two"}\n'
        b'{"messages":null,"id":1}\n{"messages":[{"role":null,"from":"human","content":null,"value":"three"}]}\n'
    )
    found = read_bytes(rows, "a.jsonl")
    assert shown(found) == ["one", "two", "three"]
    assert found.notes == ()
    assert found.refused[0].reason == "its messages are a null, not a list"


def test_a_key_given_twice_in_a_part_of_a_turn_is_refused() -> None:
    """None of the two texts is chosen."""
    row = b'{"messages":[{"role":"user","content":[{"type":"text","text":"a","text":"b"}]}]}'
    assert read_bytes(row, "a.jsonl").refused[0].reason == "turn 1 has the same key twice"


def test_marks_of_joined_files_reach_no_prompt() -> None:
    """Each part of a joined file begins with a byte order mark, and some editors write two."""
    assert shown(read_bytes(b"\xef\xbb\xbf\xef\xbb\xbfone\n\xef\xbb\xbftwo\n", "a.txt")) == ["one", "two"]
    assert shown(read_bytes(b'"one"\n\xef\xbb\xbf"two"\n', "a.jsonl")) == ["one", "two"]


def test_lines_of_old_macs_with_one_modern_end() -> None:
    """A line end that an editor added at the end of the file does not make one prompt of all."""
    assert shown(read_bytes(b"one\rtwo\r\n", "a.txt")) == ["one", "two"]
    assert shown(read_bytes(b"one\rtwo\n\n", "a.txt")) == ["one", "two"]
    assert shown(read_bytes(b"one\rmore\ntwo\n", "a.txt")) == ["one\rmore", "two"]


@pytest.mark.parametrize(
    "data, kind",
    [
        (bz2.compress(b"x"), "compressed"), (lzma.compress(b"x"), "compressed"), (b"\x28\xb5\x2f\xfd\x04", "compressed"),
        (b"7z\xbc\xaf\x27\x1c", "compressed"), (b"\xff\xd8\xff\xe0", "image"), (b"PK\x05\x06" + b"\x00" * 18, "ZIP"),
    ],
)  # fmt: skip
def test_other_kinds_of_file_are_named(data: bytes, kind: str) -> None:
    """ "Save it as UTF-8" helps nobody who chose an archive."""
    with pytest.raises(PromptError, match=kind):
        read_bytes(data, "a.jsonl")


def test_a_file_just_over_the_limit_is_larger_than_it() -> None:
    """No "64 MiB, the limit is 64 MiB"."""
    with pytest.raises(PromptError, match=r"is 1\.1 MiB, the limit for a prompt file is 1 MiB"):
        read_bytes(b"x" * (2**20 + 1), "a.txt", limits=DatasetLimits(file_bytes=2**20))


def test_a_pipe_is_read(tmp_path: Path) -> None:
    """As a shell gives the output of a program."""
    reading, writing = os.pipe()
    os.write(writing, b'{"prompt":"one"}\n{"prompt":"two"}\n')
    os.close(writing)
    try:
        assert shown(read_path(Path(f"/dev/fd/{reading}"))) == ["one", "two"]
    finally:
        os.close(reading)


def test_what_stands_beside_a_list_of_rows_has_an_end() -> None:
    """Millions of short keys around a list are not read one by one."""
    keys = ",".join(f'"k{i}":1' for i in range(200))
    data = f'{{"data":["one"],\n{keys}}}'.encode()
    assert shown(read_bytes(data, "a.json")) == ["one"]
    with pytest.raises(PromptError, match="the row that begins in line 1 is longer"):
        read_bytes(data.replace(b",", b",\n"), "a.json", limits=DatasetLimits(line_bytes=1000))


def test_every_reason_for_a_row_has_its_chinese() -> None:
    """What a page shows of a file is in the page's language, names and keys apart."""
    rows = (
        b'1\nnull\ntrue\n[1]\n["a"]\n{"prompt":1}\n{"prompt":null}\n{"prompt":["a"]}\n{"messages":"x"}\n{"messages":{}}\n'
        b'{"turns":1}\n{"prompt":"x","system":1}\n[{"role":"tool","content":"x"}]\n[{"role":1}]\n{}\n{"messages":[true]}\n'
        b'{"prompt":}\n{"a":1 2}\n"open\n{1:2}\n{"a" 1}\n"a" "b"\n'
    )
    refused = read_bytes(rows, "a.jsonl").refused
    assert len(refused) == 22
    refused += read_bytes(b"prompt\n" + b"x" * 140_000 + b"\n", "a.csv").refused
    told = [speaker("zh").told(one.reason) for one in refused]
    assert [text for text in told if re.search("[A-Za-z]{2,} [a-z]{2,}", text)] == []
    with pytest.raises(PromptError) as broken:
        read_bytes(b"[1,\n2,,]", "a.json")
    assert "缺少值" in speaker("zh").told(str(broken.value))
