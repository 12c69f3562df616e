"""Test the advice for correcting text that is almost valid JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from materia_nb.jsonvalue import json_advice


@pytest.mark.parametrize(
    "text, advice",
    [
        ('{"a": 1,}', "line 1: remove the comma before }"),
        ('["a",\n "b",\n]', "remove the comma before ]"),
        ("{'a': 1}", "double quotes, not single"),
        ("{\"a\": 'b'}", "double quotes, not single"),
        ('{"a": True}', "line 1: write true instead of True"),
        ('{"a": False}', "write false instead of False"),
        ('{"a": None}', "write null instead of None"),
        ("{a: 1}", 'put a in double quotes: "a"'),
        ("plain", 'put plain in double quotes: "plain"'),
        ('{\n"a": 1 // one\n}', "line 2: remove the comment"),
        ('{"a": \u201cb\u201d}', "straight double quotes"),
        ('{"a": "b\nc"}', "\\n for a line break"),
        ('{"a": 1 "b": 2}', "a comma is missing"),
        ('{"a" 1}', "a colon is missing"),
        ('{"a": "b', "a closing quote or bracket is missing"),
        ('{"a": [1, 2', "a closing quote or bracket is missing"),
        ('{"a": 1} x', "remove the text after the first value"),
        ("", "a closing quote or bracket is missing"),
    ],
)
def test_json_advice_names_the_fix(text, advice):
    assert advice in json_advice(text)


@given(st.recursive(st.none() | st.booleans() | st.text(), st.lists))
def test_valid_json_has_no_advice(value):
    assert json_advice(json.dumps(value)) == ""


@given(st.text(alphabet="{}[],:'\"/#\\ \nTruenoa1", max_size=40))
def test_json_advice_never_raises(text):
    assert isinstance(json_advice(text), str)


def test_json_with_invalid_numbers_has_no_advice():
    assert json_advice('{"a": NaN}') == ""
    assert json_advice("[" * 100_000) == ""
