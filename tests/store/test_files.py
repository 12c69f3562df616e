"""Test the format of JSON that is stored in files."""

import json
import sys

import pytest

from materia_nb.errors import MateriaError
from materia_nb.store.files import json_bytes


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        None,
        'é " \n',
        {"a": [1, -2.5, None, True], "b": {}, "c": [], "d": {"é": [{"x": ["y"]}, []]}},
        [[1], [], {"a": "b"}],
    ],
)
def test_indented_json_equals_the_output_of_the_json_module(value):
    assert json_bytes(value, indented=True).decode() == json.dumps(value, ensure_ascii=False, indent=2)


def test_text_that_utf8_cannot_encode_is_written_as_escapes():
    value = {"a": "\ud800", "b": [1]}
    assert json_bytes(value, indented=True).decode() == json.dumps(value, indent=2)


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


def test_deeply_nested_json_is_written_on_one_line():
    assert json_bytes(nested(800)) == b"[" * 801 + b"]" * 801
    indented = json_bytes(nested(800), indented=True)  # a later Python can go as deep
    assert b"".join(indented.split()) == json_bytes(nested(800))
    assert (b"\n" in indented) is (sys.version_info >= (3, 12))
    for indented in (False, True):
        with pytest.raises(MateriaError) as caught:
            json_bytes(nested(100_000), indented=indented)
        assert caught.value.kind == "invalid_document"
