"""Test the escaping of hostile text."""

import html
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from materia_nb.display.escape import clip, esc, shorten
from materia_nb.errors import plain

ANY_TEXT = st.text(st.characters(codec=None), max_size=200)  # lone surrogates and control characters too


@given(ANY_TEXT)
def test_escaped_text_parses_as_one_text_node_and_one_attribute_value(text):
    root = ET.fromstring(f'<a b="{esc(text)}">{esc(text)}</a>')  # noqa: S314 - a small document of our own
    assert list(root) == []
    assert root.attrib.keys() == {"b"}
    assert root.text or not plain(text)


@given(ANY_TEXT)
def test_plain_text_is_encodable_and_has_no_control_characters(text):
    result = plain(text)
    result.encode("utf-8")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066\u2067]", result)


@given(ANY_TEXT)
def test_bidirectional_isolates_are_always_closed(text):
    depth = 0
    for char in plain(text):
        depth += {"\u2068": 1, "\u2069": -1}.get(char, 0)
        assert depth >= 0
    assert depth == 0


@given(ANY_TEXT, st.integers(1, 60))
def test_shortened_text_is_one_line_of_limited_length(text, limit):
    result = shorten(text, limit)
    assert len(result) <= limit + result.count("\u2069")
    assert not re.search(r"[\n\t\x0b\u2028]", result)


@given(st.text("abc <&\"'>é漢", max_size=80))
def test_unescaping_escaped_text_returns_the_original(text):
    assert html.unescape(esc(text)) == text


def test_control_characters_become_visible():
    assert plain("a\x00b\x1bc\x7f") == "a␀b␛c␡"
    assert plain("\ud800") == "\ufffd"
    assert plain("x\u202ey") == "x[U+202E]y"
    assert plain("a\r\nb\rc\td") == "a\nb\nc\td"


def test_unbalanced_bidirectional_isolates_are_removed():
    assert "\u2069" not in plain("a\u2069b")
    assert "\u2068" not in plain("a\u2068b")


def test_right_to_left_text_is_isolated():
    word = "\u05e9\u05dc\u05dd"
    inner = plain(word)
    assert inner == f"\u2068{word}\u2069"
    assert plain(f"of {inner} · 1/2").count("\u2068") == 2


@pytest.mark.parametrize(
    "text, limit, kept",
    [
        ("ab👩‍👩‍👧cd", 6, "ab…"),
        ("ab🇩🇪🇫🇷x", 6, "ab🇩🇪…"),
        ("cafe\u0301s", 5, "caf…"),
        ("👍🏽👍🏽", 2, "…"),
        ("abcdef", 4, "abc…"),
        ("abcd", 4, "abcd"),
    ],
)
def test_truncation_does_not_split_visible_characters(text, limit, kept):
    assert shorten(text, limit) == kept


def test_long_runs_of_accents_are_shortened():
    assert len(plain("e" + "\u0301" * 5000)) == 5


def test_truncated_text_ends_with_its_original_length():
    assert clip("x" * 1_000_000, 10) == "xxxxxxxxxx… [1,000,000 characters in total]"
    assert clip("a\nb", 10) == "a\nb"
