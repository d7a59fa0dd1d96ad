"""Sentences: found again by key with their values, and in Chinese with the same places."""

from __future__ import annotations

import ast
import json
import string
from pathlib import Path

import pytest

from specdemo.core.sentences import INNER, LISTS, fill, places, sentence, told, told_all
from specdemo.core.wording import ENGLISH, PART

ROOT = Path(__file__).parents[3]
CHINESE: dict[str, str] = json.loads((ROOT / "assets/i18n/sentences/zh.json").read_text(encoding="utf-8"))
SAMPLES = {
    "side": "standard", "silent": "standard and speculative", "counts": "12 and unknown", "ours": "“a, b”", "theirs": "ended",
    "said": "the standard stream failed after 5 tokens and the speculative stream was interrupted after 7 tokens",
    "problems": "3 accepted of 2 drafted; a step accepted more than it drafted", "why": "No token has arrived.",
    "source": "default for float32", "received": "5 tokens", "tail": ': "boom, and bang".', "words": "number format",
    "found": "stopped", "stage": "loading the weights", "cause": "steps without a draft cost 1.00 standard steps, and steps with one 2.00.",
    "after": " after 3 tokens", "test": " (one fixed acceptance chance is rejected for this run)",
    "first": "standard", "second": "speculative",
}  # fmt: skip


def made(key: str) -> str:
    """The sentence of a key with sample values."""
    values: dict[str, object] = {}
    for _, place, spec, _ in string.Formatter().parse(ENGLISH[key]):
        if place is not None:
            values[place] = 1.5 if spec else SAMPLES.get(place, "7")
    return sentence(key, **values)


def test_both_languages_have_the_same_keys_and_places() -> None:
    """No sentence lacks its Chinese, and each names the same values."""
    assert list(CHINESE) == list(ENGLISH)
    assert {key: places(text) for key, text in CHINESE.items()} == {key: places(text) for key, text in ENGLISH.items()}
    assert all(text.strip() for text in CHINESE.values())


def test_code_names_only_keys_and_values_that_there_are() -> None:
    """Every ``sentence("key", …)`` in the code has its key in the table and gives every place its value."""
    calls = 0
    for path in sorted((ROOT / "specdemo").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = isinstance(node, ast.Call) and (getattr(node.func, "id", "") or getattr(node.func, "attr", ""))
            if not isinstance(node, ast.Call) or named != "sentence" or not node.args:
                continue
            key = node.args[0]
            if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
                continue  # a key made from a class or unit; the tests of that module say its sentences
            calls += 1
            assert key.value in ENGLISH, f"{path.name}: {key.value}"
            given = {word.arg for word in node.keywords}
            if None not in given:
                assert given == set(places(ENGLISH[key.value])), f"{path.name}: {key.value}"
    assert calls > 100


@pytest.mark.parametrize("key", [key for key in ENGLISH if not key.startswith(PART)])
def test_each_sentence_is_found_again(key: str) -> None:
    """From the plain English back to the key, and from there to the same English and to whole Chinese."""
    english = made(key)
    known = told(english)
    assert known is not None
    assert known[0] == key
    assert fill(known, {name: _bare(text) for name, text in ENGLISH.items()}) == english
    chinese = fill(known, CHINESE, "；")
    assert chinese is not None
    assert "{" not in chinese
    for word in (" tokens", "standard", "speculative", "stream"):
        assert word not in chinese.replace("--standard-url", "").replace("--speculative-url", "")


def _bare(template: str) -> str:
    """A template without its formats, as the values of a told sentence are formatted already."""
    parts = string.Formatter().parse(template)
    return "".join(words + ("{" + place + "}" if place is not None else "") for words, place, _, _ in parts)


def test_an_engines_own_words_are_nobodys_sentence() -> None:
    """What specdemo did not say has no key, whatever it looks like, and neither has nothing or a giant text."""
    for text in ("CUDA error: out of memory", "All your tokens", "{side}", "", None, "Both serve " + "x" * 5000 + "."):
        assert told(text) is None


def test_words_of_a_quotation_are_not_translated() -> None:
    """A token whose text is one of our words stays what it is, and so does an engine's message with "and" in it."""
    split = sentence("split", position=3, ours="“standard”", theirs="“ and ”", why=sentence("gap_unknown"))
    known = told(split)
    assert known is not None
    assert "“standard”" in str(fill(known, CHINESE))
    assert "“ and ”" in str(fill(known, CHINESE))
    quoted = told(sentence("said_failed", where="http://a:1", quote="this and that"))
    assert quoted is not None
    assert quoted[1]["quote"] == "this and that"
    assert str(fill(told("Interrupted after 5 tokens: boom and bang"), CHINESE)).endswith("boom and bang")  # type: ignore[arg-type]


def test_fields_of_a_result_are_told_beside_them() -> None:
    """One sentence, a list of them, and sentences by name; what is no sentence of ours leaves no trace."""
    found = told_all(
        {
            "reason": sentence("equal_tokens", count=5),
            "remarks": [sentence("same_text"), "something else"],
            "reasons": {"e2e": sentence("no_e2e"), "ttft": "?"},
            "message": "CUDA error",
            "other": sentence("no_e2e"),
        }
    )
    assert found == {
        "reason": ["equal_tokens", {"count": "5"}],
        "remarks": [["same_text", {}], None],
        "reasons": {"e2e": ["no_e2e", {}]},
    }


def test_places_of_parts_are_used() -> None:
    """Every place that may hold a part stands in some sentence: the list of them has no dead entry."""
    used = {place for text in ENGLISH.values() for place in places(text)}
    assert used >= INNER | LISTS


def test_a_table_with_a_gap_says_nothing_rather_than_half() -> None:
    """A missing key, or a missing part inside, gives None: the page then shows the English."""
    known = told(made("unfinished_text"))
    assert known is not None
    assert fill(known, {}) is None
    assert fill(known, {"unfinished_text": "{said}"}) is None
