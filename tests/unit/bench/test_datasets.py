"""Uploads: every form and every kind of broken file (section E of the reported faults)."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdemo.bench.datasets import DatasetLimits, read_bytes, read_path, read_stream
from specdemo.errors import PromptError


def jsonl(*rows: object) -> bytes:
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


def shown(data: bytes, name: str = "a.jsonl") -> list[str]:
    return [prompt.shown for prompt in read_bytes(data, name).prompts]


def test_sharegpt_keeps_its_turns_and_reads_roles_from_each() -> None:
    """Five turns give a history of three turns plus the last question; the rule is stated (E01)."""
    names = ["human", "gpt", "human", "gpt", "human"]
    row = {"id": "x", "conversations": [{"from": who, "value": f"t{i}"} for i, who in enumerate(names)]}
    swapped = {
        "conversations": [
            {"from": "gpt", "value": "hello"},
            {"from": "human", "value": "q"},
            {"from": "gpt", "value": "a"},
        ]
    }
    data = read_bytes(jsonl(row, swapped), "sharegpt.jsonl")
    assert [m.role for m in data.prompts[0].messages] == ["user", "assistant", "user", "assistant", "user"]
    assert [m.content for m in data.prompts[1].messages] == ["hello", "q"]
    assert data.prompts[1].turns_left_out == 1
    assert any("left out" in note for note in data.notes)


def test_bom_and_crlf_from_windows_are_accepted() -> None:
    """No BOM and no carriage return ends up in a prompt (E03)."""
    data = b"\xef\xbb\xbf" + b'{"prompt": "one"}\r\n{"prompt": "two"}\r\n'
    assert shown(data) == ["one", "two"]
    assert shown(b"\xef\xbb\xbfone\r\ntwo\r\n", "a.txt") == ["one", "two"]
    assert shown(b"\xef\xbb\xbfprompt\r\none\r\n", "a.csv") == ["one"]


def test_blank_lines_are_skipped_and_numbers_still_match_the_file() -> None:
    """Blank and space-only lines do not shift row numbers (E04)."""
    data = read_bytes(b'\n{"prompt":"a"}\n   \n\n{"nope":1}\n{"prompt":"b"}\n\n', "a.jsonl")
    assert [p.line for p in data.prompts] == [2, 6]
    assert [r.line for r in data.refused] == [5]


def test_bad_rows_are_named_one_by_one() -> None:
    """Good, broken JSON, no user turn, good: 2 of 4 usable, both reasons with their lines (E06)."""
    data = read_bytes(
        b'{"prompt":"a"}\n{"prompt": \n{"messages":[{"role":"assistant","content":"x"}]}\n{"prompt":"b"}\n', "a.jsonl"
    )
    sentence = data.sentence()
    assert sentence.startswith("2 of 4 usable; line 2: not valid JSON")
    assert "line 3: no user turn" in sentence
    assert "and 1 more" in data.sentence(1)


def test_a_broken_first_row_does_not_hide_the_others() -> None:
    """The form is not guessed from the first row alone (E06)."""
    assert shown(b'{"prompt": "a"\n{"prompt":"b"}\n') == ["b"]


def test_mixed_shapes_in_one_file() -> None:
    """String, prompt, messages with settings, list of messages: all read, and the row's settings are set aside aloud (E08)."""
    rows = [
        "s",
        {"prompt": "p"},
        {"messages": [{"role": "user", "content": "m"}], "temperature": 1, "model": "other"},
        [{"role": "user", "content": "l"}],
    ]
    data = read_bytes(jsonl(*rows), "a.jsonl")
    assert [p.shown for p in data.prompts] == ["s", "p", "m", "l"]
    assert dict(data.shapes) == {"string": 1, "prompt": 1, "messages": 1, "messages list": 1}
    assert any("model (1), temperature (1)" in note for note in data.notes)


@pytest.mark.parametrize(
    ("data", "name", "words"),
    [
        ("caf\xe9 \x93quoted\x94".encode("cp1252", "replace") + b" \x93x\x94\n", "a.txt", "not UTF-8: line 1"),
        ("hello\n".encode("utf-16"), "a.jsonl", "UTF-16"),
        ("hello world, a long line\n".encode("utf-16-le"), "a.txt", "UTF-16"),
        (b"PK\x03\x04" + bytes(200), "a.jsonl", "Excel"),
        (b"\x1f\x8b\x08\x00abc", "a.jsonl", "gzip"),
        (b"%PDF-1.7\n", "a.txt", "PDF"),
        (b'{"prompt":"a"}\nab\x00cd\n', "a.jsonl", "zero byte"),
        (b"", "a.jsonl", "empty"),
        (b"\n \r\n", "a.txt", "empty"),
        (b"\xef\xbb\xbf", "a.csv", "empty"),
        (b"[1, 2", "a.json", "not valid JSON"),
        (b"[\n 1,\n 2\n", "a.jsonl", "not valid JSON"),
        (b"not json at all\nnor this\n", "a.jsonl", "one JSON value a line"),
        (b"a,b\n1,2\n", "a.csv", "no column named prompt"),
        (b"[" * 200_000, "a.json", "deeply"),
    ],
)  # fmt: skip
def test_wrong_files_get_one_sentence(data: bytes, name: str, words: str) -> None:
    """Wrong encodings and file types are refused as a whole with the reason (E09)."""
    with pytest.raises(PromptError) as caught:
        read_bytes(data, name)
    assert words in str(caught.value)
    assert str(caught.value).count("\n") == 0


class Endless(io.RawIOBase):
    """A stream that never ends and never holds a newline."""

    def __init__(self) -> None:
        self.given = 0

    def readable(self) -> bool:
        return True

    def readline(self, size: int | None = -1, /) -> bytes:
        count = size if size is not None and size > 0 else 1
        self.given += count
        return b"x" * count


def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """A 300 MB file is refused by its size with the limit in the message (E09)."""
    path = tmp_path / "big.jsonl"
    with path.open("wb") as handle:
        handle.truncate(300 * 1024 * 1024)
    with pytest.raises(PromptError, match=r"300 MiB, the limit for a prompt file is 64 MiB"):
        read_path(path)


def test_an_endless_stream_is_cut_at_the_limit() -> None:
    """A stream without a newline is given up after the file limit, piece by piece (E09)."""
    stream = Endless()
    with pytest.raises(PromptError, match="limit"):
        read_stream(stream, "a.txt", limits=DatasetLimits(file_bytes=1_000_000, line_bytes=1000))
    assert stream.given <= 1_010_000


def test_one_enormous_line_is_refused_and_the_next_are_read() -> None:
    """A 50 MB line is one refused row with the limit in its reason; its neighbours stay usable (E09)."""
    data = b'{"prompt":"a"}\n{"prompt":"' + b"x" * 50_000_000 + b'"}\n{"prompt":"b"}\n'
    outcome = read_bytes(data, "a.jsonl")
    assert [p.shown for p in outcome.prompts] == ["a", "b"]
    assert outcome.refused[0].line == 2
    assert "1 MiB" in outcome.refused[0].reason


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.txt"])
def test_an_indented_array_is_read_whatever_the_name(name: str) -> None:
    """A pretty-printed array of three prompts is three prompts (E10)."""
    rows = [{"prompt": "a"}, "b", {"messages": [{"role": "user", "content": "c"}]}]
    assert shown(json.dumps(rows, indent=2).encode(), name) == ["a", "b", "c"]
    assert shown(json.dumps(rows).encode(), name) == ["a", "b", "c"]


def test_pretty_printed_objects_in_a_row_are_read() -> None:
    """Several indented objects under a .jsonl name are as many rows, with their lines (E10)."""
    data = "\n".join(json.dumps({"prompt": text}, indent=2) for text in "ab").encode()
    outcome = read_bytes(data, "a.jsonl")
    assert [(p.shown, p.line) for p in outcome.prompts] == [("a", 1), ("b", 4)]


def test_one_conversation_is_not_taken_for_rows() -> None:
    """A lone list of messages is one prompt, a wrapped array is its rows."""
    assert shown(json.dumps([{"role": "user", "content": "a"}]).encode(), "a.json") == ["a"]
    assert shown(json.dumps({"data": ["a", "b"]}).encode(), "a.json") == ["a", "b"]
    assert shown(b'{"prompt": "only"}', "a.json") == ["only"]


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_unusual_line_separators_stay_inside_their_row(mark: str) -> None:
    """U+2028, U+2029, NEL and friends are text, not ends of lines."""
    assert shown(f"a{mark}b\nc\n".encode(), "a.txt") == [f"a{mark}b", "c"]
    assert shown(f'prompt\n"a{mark}b"\nc\n'.encode(), "a.csv") == [f"a{mark}b", "c"]
    if mark > "\x20":
        assert shown(jsonl({"prompt": f"a{mark}b"}, {"prompt": "c"})) == [f"a{mark}b", "c"]


def test_csv_with_quotes_newlines_and_semicolons() -> None:
    """Quoted newlines and commas belong to the prompt; row numbers are where the row begins."""
    data = read_bytes(b'id,prompt\n1,"a, b\nc"\n2,d\n3\n4,e,f\n', "a.csv")
    assert [(p.id, p.shown, p.line) for p in data.prompts] == [("1", "a, b\nc", 2), ("2", "d", 4)]
    assert [r.line for r in data.refused] == [5, 6]
    assert shown(b"id;Prompt\n1;a,b\n", "a.csv") == ["a,b"]
    assert shown(b"prompt\tid\na\t1\n", "a.tsv") == ["a"]
    assert shown(b"first prompt\nsecond\n", "a.csv") == ["first prompt", "second"]


def test_spec_bench_questions_send_their_first_turn() -> None:
    """Spec-Bench's file is read with its categories; later turns are counted, not dropped silently."""
    data = read_bytes(jsonl({"question_id": 81, "category": "writing", "turns": ["a", "b"]}), "question.jsonl")
    assert (data.prompts[0].id, data.prompts[0].workload, data.prompts[0].shown) == ("81", "writing", "a")
    assert data.prompts[0].turns_left_out == 1
    assert data.notes


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (None, "null"), (7, "number"), (True, "true/false"), ([], "empty"), ({}, "nothing"), ({"answer": 1}, "answer"),
        ("  ", "empty"), ({"prompt": ""}, "empty"), ({"prompt": None}, "null"), ({"prompt": 3}, "number"),
        ({"prompt": [-1]}, "out of range"), ({"turns": []}, "turns"), ({"turns": [1]}, "turns"),
        ({"messages": "x"}, "text"), ({"messages": [1]}, "number"), ({"messages": [{"content": "x"}]}, "no role"),
        ({"messages": [{"role": "tool", "content": "x"}]}, '"tool"'), ({"messages": [{"role": "user"}]}, "no text"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "other than text"),
        ({"prompt": "\ud800"}, "surrogate"), ({"prompt": "x" * 100_001}, "100,001 characters, the limit is 100,000"),
        ({"prompt": {"a": 1}}, "JSON object"),
    ],
)  # fmt: skip
def test_refusals_say_why(row: object, words: str) -> None:
    """Every unusable row is refused with a reason that names what is wrong."""
    data = read_bytes(json.dumps(row).encode() + b'\n{"prompt":"ok"}\n', "a.jsonl")
    assert len(data.prompts) == 1
    assert words in data.refused[0].reason


def test_content_parts_and_instruction_input_are_joined() -> None:
    """Text parts of one turn are joined; Alpaca's input follows its instruction; ids are taken as they are."""
    rows = [
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]},
        {"instruction": "do", "input": "this"},
        {"prompt": [1, 2, 3]},
    ]
    data = read_bytes(jsonl(*rows), "a.jsonl")
    assert [p.shown for p in data.prompts] == ["ab", "do\n\nthis", "3 token ids"]
    assert data.prompts[2].token_ids == (1, 2, 3)


def test_ids_are_unique_and_repeats_are_counted() -> None:
    """Equal ids do not merge two prompts; repeated prompts are pointed out."""
    data = read_bytes(jsonl({"id": "a", "prompt": "x"}, {"id": "a", "prompt": "x"}), "a.jsonl")
    assert len({p.id for p in data.prompts}) == 2
    assert any("repeat" in note for note in data.notes)


def test_too_many_rows_name_the_limit() -> None:
    """The row limit stands in the message."""
    with pytest.raises(PromptError, match="more than 2 rows"):
        read_bytes(b"a\nb\nc\n", "a.txt", limits=DatasetLimits(rows=2))


def test_missing_file_and_folder(tmp_path: Path) -> None:
    """A path that is no file is one sentence."""
    with pytest.raises(PromptError, match="no such file"):
        read_path(tmp_path / "nope.jsonl")
    with pytest.raises(PromptError, match="is a folder, not a file"):
        read_path(tmp_path)
    with pytest.raises(PromptError, match="/ is a folder, not a file"):
        read_path(Path("/"))


@given(st.binary(max_size=300), st.sampled_from(["a.jsonl", "a.json", "a.csv", "a.txt", "a"]))
def test_no_bytes_cause_anything_but_a_dataset_or_a_sentence(data: bytes, name: str) -> None:
    """Whatever is uploaded, the reader answers or refuses with PromptError."""
    try:
        outcome = read_bytes(data, name)
    except PromptError as error:
        refusal = str(error)
        assert "\n" not in refusal
    else:
        assert all(prompt.shown.strip() for prompt in outcome.prompts)
