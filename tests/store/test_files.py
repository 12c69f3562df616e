"""JSON as files have it."""

import json

import pytest

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
def test_indented_json_is_what_the_encoder_of_python_writes(value):
    assert json_bytes(value, indented=True).decode() == json.dumps(value, ensure_ascii=False, indent=2)


def test_text_that_utf8_cannot_hold_is_written_as_escapes_on_as_many_lines():
    value = {"a": "\ud800", "b": [1]}
    assert json_bytes(value, indented=True).decode() == json.dumps(value, indent=2)
