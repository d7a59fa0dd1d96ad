"""Words: two languages with the same keys and the same places to fill, and examples that exist in both."""

from __future__ import annotations

import re

import pytest

from specdemo.ui import assets
from specdemo.ui.chips import CHINESE, chips
from specdemo.ui.i18n import LANGS, Lang, language, say, translator, words

PLACES = re.compile(r"\{(\w+)\}")


def test_languages_have_the_same_keys_and_places() -> None:
    """No sentence is missing in one language, and each has the same values to fill in."""
    english, chinese = words("en"), words("zh")
    assert list(english) == list(chinese)
    for key, sentence in english.items():
        assert sorted(PLACES.findall(sentence)) == sorted(PLACES.findall(chinese[key])), key
        assert sentence.strip()
        assert chinese[key].strip()


def test_every_word_that_a_template_asks_for_exists() -> None:
    """Templates and the form name only words that there are."""
    asked = set()
    for name in ("header", "engines", "recordings"):
        asked |= set(re.findall(r'data-say(?:-label)?="(\w+)"', assets.text(f"html/{name}.html")))
    source = (assets.folder().parent / "specdemo/ui/page.py").read_text(encoding="utf-8")
    asked |= set(re.findall(r'tr\("(\w+)"\)', source))
    assert asked <= set(words("en")), asked - set(words("en"))


@pytest.mark.parametrize(
    "query, accept, found",
    [
        ({}, "zh-CN,zh;q=0.9,en;q=0.8", "zh"), ({}, "en-US,zh;q=0.5", "en"), ({"lang": "zh"}, "en", "zh"),
        ({"lang": "en"}, "zh-CN", "en"), ({"lang": "<script>"}, None, "en"), (None, None, "en"), ({}, "fr", "en"),
    ],
)  # fmt: skip
def test_language_by_query_then_browser(query: dict | None, accept: str | None, found: Lang) -> None:
    """The explicit switch wins, then the browser's first choice, then English."""
    assert language(query, accept) == found


def test_sentences_fill_in() -> None:
    """A sentence takes its values in both languages."""
    for lang in LANGS:
        assert "7" in say(lang, "engines_loading", seconds=7)


def test_translator_knows_every_chinese() -> None:
    """Mainland, Taiwan and Hong Kong browsers all get Chinese."""
    table = translator({"more": {"en": "a", "zh": "b"}}).translations
    assert table["zh-CN"]["run"] == table["zh-TW"]["run"] == table["zh"]["run"] == words("zh")["run"]
    assert table["en"]["more"] == "a"
    assert table["zh"]["more"] == "b"


@pytest.mark.parametrize("lang", LANGS)
def test_chips_go_round(lang: Lang) -> None:
    """Pressing an example again brings the next one of its kind, and at last the first again."""
    assert {chip.name for chip in chips()} >= {"code_editing", "open_chat", "summarisation", "rag_qa", CHINESE}
    for chip in chips():
        first, tokens = chip.next("", lang)
        assert tokens > 0
        assert first.strip()
        seen, current = [first], first
        while (current := chip.next(current, lang)[0]) != first:
            seen.append(current)
            assert len(seen) < 200
        assert len(set(seen)) == len(seen)


def test_chinese_chip_is_chinese_for_everyone() -> None:
    """The Chinese example is there for English visitors as well."""
    chip = next(chip for chip in chips() if chip.name == CHINESE)
    assert re.search(r"[\u4e00-\u9fff]", chip.next("", "en")[0])
