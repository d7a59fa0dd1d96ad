"""Uploads: work is bounded by the limits, nothing is merged, mangled or left out in silence (E06, E08, E09, E10)."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import pytest

from specdemo.bench import dataset_json, datasets
from specdemo.bench.dataset_lines import LINES_A_ROW
from specdemo.bench.datasets import Dataset, DatasetLimits, read_bytes, read_stream
from specdemo.bench.report.words import speaker
from specdemo.errors import PromptError
from tests.unit.bench.test_datasets import jsonl, shown

SMALL = DatasetLimits(line_bytes=1000, rows=50)


class Counted(io.BytesIO):
    """Counts the lines that are taken from it."""

    taken = 0

    def readline(self, size: int | None = -1, /) -> bytes:
        self.taken += 1
        return super().readline(size)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many rows were read, objects decoded and characters searched for line ends."""
    done = {"rows": 0, "objects": 0}

    def counting(name: str, inner: Callable[..., object]) -> Callable[..., object]:
        def call(*given: object) -> object:
            done[name] += 1
            return inner(*given)

        return call

    monkeypatch.setattr(datasets, "read_row", counting("rows", datasets.read_row))
    decoder = json.JSONDecoder(object_pairs_hook=counting("objects", dataset_json._object))
    monkeypatch.setattr(dataset_json, "_DECODER", decoder)
    return done


@pytest.mark.parametrize(
    "data,name",
    [
        (b"{\n}\n" * 100_000, "a.jsonl"),
        (b"x\n" * 100_000, "a.jsonl"),
        (b"{}\n" * 100_000, "a.jsonl"),
        (b"x\n" * 100_000, "a.csv"),
        (b"prompt,id\n" + b"x,1\n" * 100_000, "a.csv"),
        (b"x\n" * 100_000, "a.txt"),
        (b"\n" * 100_000, "a.txt"),
        (b"x\r" * 100_000, "a.txt"),
        (b'{"data":[' + b"{},\n" * 100_000 + b"{}]}", "a.json"),
        (b"[" + b"{}," * 200 + b"{}]", "a.json"),
        (b"[" + b"{},\n" * 100_000 + b"{}]", "a.txt"),
    ],
)
def test_work_ends_at_the_limit(work: dict[str, int], data: bytes, name: str) -> None:
    """Of a file with far too many rows or lines, the limit is read and no more; the sentence names it (E09)."""
    stream = Counted(data)
    with pytest.raises(PromptError, match=r"more than (50 rows|5,000 lines)"):
        read_stream(stream, name, limits=SMALL)
    assert stream.taken <= LINES_A_ROW * SMALL.rows + 2
    assert work["rows"] <= SMALL.rows
    assert work["objects"] <= 10 * SMALL.rows


def test_lines_are_counted_once() -> None:
    """Finding a row's line looks at each character of the file once, not once a row."""

    class Text(str):
        __slots__ = ()
        looked = 0

        def count(self, sub: str, start: int = 0, end: int = 0) -> int:  # type: ignore[override]
            Text.looked += end - start
            return super().count(sub, start, end)

    text = Text("{\n}\n" * 1000)
    form = dataset_json.survey(text, longest=10_000, most=1000)
    lines = [found.line for found in dataset_json.rows(text, form, longest=10_000)]
    assert lines == list(range(1, 2000, 2))
    assert Text.looked <= 2 * len(text)


def test_one_row_of_a_whole_file_is_bounded() -> None:
    """A value longer than a row may be is refused where it begins, closed or not, and never built."""
    long = json.dumps({"prompt": "q" * 100, "list": list(range(300))}, indent=1)
    endless = '[\n"a",\n[' + "1,\n" * 2000
    for data in (f'{{"prompt": "a"\n}}\n{long}', f'[\n"a",{long}]', endless):
        with pytest.raises(PromptError, match=r"row that begins in line [23] is longer"):
            read_bytes(data.encode(), "a.json", limits=DatasetLimits(line_bytes=1000))


@pytest.mark.parametrize(
    "row",
    [
        {"messages": [{"role": "\ud800", "content": "x"}]},
        {"\ud800": "x"},
        {"id": "\ud800", "prompt": "p"},
        {"category": "a\ud800", "prompt": "p"},
        {"prompt": "p", "\udfff": 1, "Temp\ud800": 2},
        {"data": ["p"], "\ud800": 1},
    ],
)
def test_half_characters_reach_no_page(row: object) -> None:
    """Ids, categories, reasons and notes can always be sent as UTF-8 (a lone surrogate becomes "?")."""
    for data in (json.dumps(row).encode(), json.dumps(row).encode() + b'\n"ok"\n'):
        found = read_bytes(data, "a\udc80.json")
        said = [found.name, *found.notes, *(one.reason for one in found.refused)]
        said += [text for prompt in found.prompts for text in (prompt.id, prompt.workload)]
        "".join(said).encode()


def test_a_system_prompt_beside_the_row_is_sent() -> None:
    """``system`` and ``system_prompt`` go before every shape of row, or the row is refused; never dropped (E08)."""
    rows = [
        {"system": "S", "conversations": [{"from": "human", "value": "q"}]},
        {"system_prompt": "S", "messages": [{"role": "user", "content": "q"}]},
        {"system": "S", "prompt": "q"},
        {"system": "S", "turns": ["q", "r"]},
        {"system": "", "prompt": "q"},
        {"system": None, "prompt": "q"},
        {"system": "S", "messages": [{"role": "system", "content": "T"}, {"role": "user", "content": "q"}]},
        {"system": ["S"], "prompt": "q"},
        {"system": "S", "prompt": [1, 2]},
        {"system": "S", "system_prompt": "T", "prompt": "q"},
        {"system": "S" * 99_999, "prompt": "qq"},
    ]
    found = read_bytes(jsonl(*rows), "a.jsonl")
    sent = [[(m.role, m.content) for m in prompt.messages] for prompt in found.prompts]
    assert sent == [[("system", "S"), ("user", "q")]] * 4 + [[("user", "q")]] * 2
    reasons = {one.line: one.reason for one in found.refused}
    assert list(reasons) == [7, 8, 9, 10, 11]
    assert "more than one system" in reasons[7]
    assert "list, not a text" in reasons[8]
    assert "token ids" in reasons[9]
    assert "longer than" in reasons[11]
    assert shown(b"system,prompt\nS,q\n", "a.csv") == ["q"]


def test_every_key_that_is_not_used_is_named() -> None:
    """Settings of any spelling, and all else but ids and categories, stand in the notes with their rows (E08)."""
    settings = {
        "sampling_params": {}, "min_tokens": 1, "logit_bias": {}, "stop_token_ids": [], "best_of": 2, "tools": [],
        "response_format": {}, "Temperature": 1,
    }  # fmt: skip
    other = {"context": "c", "question": "q", "answer": "a"}
    row = {"id": 1, "category": "c", "source": "s", "prompt": "p", **settings, **other}
    notes = " / ".join(read_bytes(jsonl(row, row), "a.jsonl").notes)
    for key in (*settings, *other):
        assert f"{key} (2)" in notes
    for key in ("id", "category", "source", "prompt"):
        assert f"{key} (" not in notes
    many = {"prompt": "p", **{f"k{n}": 1 for n in range(500)}}
    assert "480 more" in read_bytes(jsonl(many), "a.jsonl").notes[0]
    assert read_bytes(jsonl({"instruction": "a", "input": ""}), "a.jsonl").notes == ()
    assert "input (1)" in read_bytes(jsonl({"instruction": "a", "input": ["b"]}), "a.jsonl").notes[0]


def test_turns_that_hold_more_than_text_are_refused() -> None:
    """A turn with tool calls beside its text is not sent without them."""
    turns = [{"role": "assistant", "content": "x", "tool_calls": [{}]}, {"role": "user", "content": "q"}]
    assert "turn 1 holds something" in read_bytes(jsonl({"messages": turns}, "ok"), "a.jsonl").refused[0].reason


def lines(found: Dataset) -> list[tuple[int, str]]:
    return [(one.line, one.reason) for one in found.refused]


def test_an_open_quote_in_csv_merges_no_rows() -> None:
    """A quote that is never closed is told, and what follows a badly quoted row is read (E06)."""
    found = read_bytes(b'prompt\na\n"b\nc\nd\n', "a.csv")
    assert [p.shown for p in found.prompts] == ["a"]
    assert lines(found) == [(3, "a quote in it is never closed, so no line after it could be read")]
    found = read_bytes(b'prompt,id\n"a"x,1\nb,2\n', "a.csv")
    assert [(p.shown, p.line) for p in found.prompts] == [("b", 3)]
    assert found.refused[0].line == 2


def test_an_enormous_csv_field_shifts_and_splits_nothing() -> None:
    """A field over the reader's size is one refused row; the rest of it is no row, and the next has its own number."""
    field = "\n".join(["y" * 1000] * 300)
    found = read_bytes(f'prompt,id\na,1\n"{field}",2\nb,3\n'.encode(), "a.csv")
    assert [(p.shown, p.line) for p in found.prompts] == [("a", 2), ("b", 303)]
    assert [line for line, _ in lines(found)] == [3]
    found = read_bytes(f'prompt\n{"y" * 200_000}\nb\n"c\n{"z" * 2000}\nd"\ne\n'.encode(), "a.csv",
                       limits=DatasetLimits(line_bytes=1000))  # fmt: skip
    assert [(p.shown, p.line) for p in found.prompts] == [("b", 3), ("e", 7)]
    assert [line for line, _ in lines(found)] == [2, 5]


def test_columns_are_not_merged() -> None:
    """Two columns of one name are refused, a column without a name is told."""
    with pytest.raises(PromptError, match='two columns named "prompt"'):
        read_bytes(b"prompt,Prompt\na,b\n", "a.csv")
    assert "column 2 (1)" in read_bytes(b"prompt,\na,b\n", "a.csv").notes[0]


@pytest.mark.parametrize(
    "text",
    ['[{"prompt": "a"},\n {"prompt": "b"}]', '{"prompt":\n "a"}\n{"prompt":\n "b"}', '[{\n"prompt": "a"},\n"b"]'],
)
def test_json_on_several_lines_is_json_in_a_text_file(text: str) -> None:
    """Lines of a JSON document never become prompts (E10)."""
    assert shown(text.encode(), "a.txt") == ["a", "b"]
    with pytest.raises(PromptError, match="not valid JSON"):
        read_bytes(b'[{\n"prompt": "a",\n', "a.txt")


@pytest.mark.parametrize("first", ["[INST] hi", "{name}, hello", '{"a": 1} as YAML, please', "[1] first"])
def test_prompts_that_begin_with_a_bracket_stay_prompts(first: str) -> None:
    """Plain text whose first line is no JSON is plain text."""
    assert shown(f"{first}\nsecond\n".encode(), "a.txt") == [first, "second"]


def test_a_row_with_a_list_of_its_own_is_a_row() -> None:
    """``items`` beside a prompt does not replace the prompt; keys beside a list of rows are told (E06, E08)."""
    assert shown(b'{"prompt":"zzz","items":["q","r"]}', "a.json") == ["zzz"]
    found = read_bytes(b'{"version": 2, "data": ["q", "r"], "items": ["s"]}', "a.json")
    assert [p.shown for p in found.prompts] == ["q", "r"]
    assert found.notes == ("keys beside the list of rows are not used: version, items",)


@pytest.mark.parametrize("data", [b"[]", b'{"data": []}', b"[\n]\n"])
def test_a_file_without_rows_is_empty(data: bytes) -> None:
    """No row at all is an error, not "0 of 0 usable"."""
    with pytest.raises(PromptError, match="is empty"):
        read_bytes(data, "a.json")
    with pytest.raises(PromptError, match="is empty"):
        read_bytes(b"prompt,id\n", "a.csv")


def test_lines_that_end_at_cr_alone_are_lines() -> None:
    """A file of an old Mac has as many prompts as lines; one CR inside a file with LF stays text."""
    assert shown(b"a\rb\rc", "a.txt") == ["a", "b", "c"]
    assert shown(b'{"prompt":"a"}\r{"prompt":"b"}\r', "a.jsonl") == ["a", "b"]
    assert shown(b"prompt,id\ra,1\rb,2\r", "a.csv") == ["a", "b"]
    assert shown(b"a\rb\nc\n", "a.txt") == ["a\rb", "c"]
    with pytest.raises(PromptError, match="limit"):
        read_bytes(b"a\r" * 600, "a.txt", limits=DatasetLimits(file_bytes=1000, line_bytes=100))


def test_a_key_given_twice_refuses_the_row() -> None:
    """The last of two values never wins in silence, at the top or in a turn (E06)."""
    data = b'{"prompt":"a","prompt":"b"}\n{"messages":[{"role":"user","content":"a","content":"b"}]}\n"ok"\n'
    found = read_bytes(data, "a.jsonl")
    assert lines(found) == [(1, "it has the same key twice"), (2, "turn 1 has the same key twice")]
    assert read_bytes(b'{"data":["a"],"data":["b"]}', "a.json").refused[0].reason == "it has the same key twice"


def test_rows_of_an_array_are_told_by_line_and_item() -> None:
    """A pretty-printed array's refusals name the line where the item begins, and the item (E06, E10)."""
    data = b'[\n {"prompt": "a"},\n {\n  "answer": 1\n },\n null\n]'
    found = read_bytes(data, "a.json")
    assert [(p.line, p.id) for p in found.prompts] == [(2, "row-1")]
    assert [(line, reason.split(":")[0]) for line, reason in lines(found)] == [(3, "item 2"), (6, "item 3")]
    names = [
        p.id
        for p in read_bytes(json.dumps([{"id": "x", "prompt": str(n)} for n in range(40)]).encode(), "a.json").prompts
    ]
    assert len(set(names)) == 40


@pytest.mark.parametrize(
    "data,where",
    [
        (b'{"a":1,\n}', "line 2"), (b"[\n1,]", "line 2"), (b"[1\n2]", "line 2"), (b'{"a"\n1}', "line 2"), (b"{1:2}", "line 1"),
        (b'{"a":1\n"b":2}', "line 2"),
    ],
)  # fmt: skip
def test_broken_json_is_told_with_its_place(data: bytes, where: str) -> None:
    """Faults between values are found where they stand."""
    with pytest.raises(PromptError, match=where):
        read_bytes(data, "a.json")


@pytest.mark.parametrize(
    "text",
    [
        "a.txt has more than 50 rows, the most that a file may have; split it.",
        "a.txt has more than 5,000 lines, the most that are read; split it.",
        "a.json: the row that begins in line 3 is longer than 1 MiB, the most for one.",
        'a.csv has two columns named "prompt"; rename or remove one.',
        "a quote in it is never closed, so no line after it could be read",
        "it has the same key twice",
        "turn 1 has the same key twice",
        "it has more than one system prompt",
        "a system prompt can't stand before token ids",
        "item 2: no user turn",
        "a.xz is a compressed file, not text; export it as JSONL, CSV or plain text in UTF-8.",
        "tmp is a folder, not a file.",
        "no column has a known name, so the first line is a prompt too: Fragen",
        "other keys inside rows are not used: answer (2)",
        "keys beside the list of rows are not used: version",
        "b.jsonl is damaged: line 3 tells of a prompt that is not in the plan.",
        "b.jsonl is damaged: line 3 begins another benchmark.",
        "This benchmark was begun on other engines: the standard engine's model was a, now it is b; start a new one.",
        "b.jsonl line 3: decode_s is not valid (negative).",
        "b.jsonl is no benchmark file: line 1 can't be used, it holds a number beyond all measure.",
        "v.json is no validation result: standard.0.pit.p is not valid (above 1).",
        "v.json is no validation result: its date lies outside of time.",
    ],
)
def test_these_sentences_have_their_chinese(text: str) -> None:
    """No English clause is left but names."""
    said = speaker("zh").told(text)
    assert said != text
    assert not any(word in said for word in ("line", "twice", "user turn", "negative", "that", " is "))
