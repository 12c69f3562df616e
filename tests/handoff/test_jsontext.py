"""Test strict JSON parsing, and finding the one object in the text of an agent (R5, R6)."""

from __future__ import annotations

import contextlib
import json
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from materia_nb.handoff.jsontext import MAX_DEPTH, NotJson, agent_object, strict_json, utility_object


def found(text):
    result = agent_object(text)
    return result.value, result.where


def refused(text, read=agent_object):
    with pytest.raises(NotJson) as error:
        read(text)
    return str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": NaN}',
        '{"a": Infinity}',
        '{"a": -Infinity}',
        '{"a": 1e400}',
        '{"a": -1e400}',
        '{"a": 1' + "0" * 400 + "}",
        '{"a": 1' + "0" * 5000 + "}",
        '{"a": 1,}',
        '{"a": [1,]}',
        '{"a": 1 // why\n}',
        '{"a": /* why */ 1}',
        "{'a': 1}",
        "{a: 1}",
        '{"a": 01}',
        '{"a": +1}',
        '{"a": .5}',
        '{"a": "tab\there"}',
        '{"a": "line\nbreak"}',
        '{"a": "\\x41"}',
        '{"a": True}',
        "",
        "   ",
    ],
)
def test_r5_json_extensions_are_refused(text):
    refused(text, strict_json)
    refused(text)
    refused(text, utility_object)


def test_r5_finite_numbers_of_any_size_are_kept():
    value, _ = strict_json('{"big": 1e308, "small": 1e-400, "whole": 123456789012345678901234567890}')
    assert value == {"big": 1e308, "small": 0.0, "whole": 123456789012345678901234567890}


def test_r5_last_of_duplicate_keys_is_used_and_noted_once():
    value, duplicates = strict_json('{"a": 1, "b": {"x": 1, "x": 2, "x": 3}, "a": 2, "a": 3}')
    assert value == {"a": 3, "b": {"x": 3}}
    assert sorted(duplicates) == ["a", "x"]
    assert agent_object('so {"a": 1, "a": 2}').duplicates == ("a",)
    assert agent_object('```\n{"a": 1, "a": 2}\n```').duplicates == ("a",)
    assert strict_json('{"a": 1}')[1] == ()


@pytest.mark.parametrize("text", ["[]", "[1]", "null", "true", "3", '"{}"', ' [{"a": 1}] '])
def test_r5_json_reply_that_is_not_an_object_is_refused(text):
    assert "not an object" in refused(text)


@pytest.mark.parametrize("text", ["[]", "null", '{"a":1} x', 'x {"a":1}', '```\n{"a":1}\n```', "\ufeff{}", '{"a":1}{}'])
def test_r6_utility_output_must_be_one_object(text):
    refused(text, utility_object)


def test_r6_white_space_around_a_utility_object_is_ignored():
    assert utility_object('\n\t {"a": 1}\r\n').value == {"a": 1}


def test_r5_byte_order_mark_and_white_space_are_dropped():
    assert found('\ufeff{"a": 1}') == ({"a": 1}, "whole")
    assert found('\ufeff \n{"a": 1}\n\n') == ({"a": 1}, "whole")


@pytest.mark.parametrize("tag", ["", "json", "JSON", "python", "json5", "c++", "a b"])
def test_r5_first_fence_is_read_regardless_of_its_tag(tag):
    assert found(f'Here:\n```{tag}\n{{"a": 1}}\n```\nDone.') == ({"a": 1}, "fence")


def test_r5_first_fence_takes_precedence_over_an_earlier_object():
    assert found('{"a": 1} or rather\n```\n{"a": 2}\n```') == ({"a": 2}, "fence")


def test_r5_first_object_is_used_if_the_first_fence_has_none():
    assert found('```\nno\n```\n```\n{"a": 1}\n```') == ({"a": 1}, "prose")
    assert found('```\n[1]\n```\n{"a": 1}') == ({"a": 1}, "prose")
    assert found('```json\n{"a": 1,}\n```\n{"a": 2}') == ({"a": 2}, "prose")


def test_r5_fence_on_one_line_is_read_and_unclosed_fence_counts_as_prose():
    assert found('x ```json {"a": 1}``` y') == ({"a": 1}, "fence")
    assert found('x ```{"a": 1}``` y') == ({"a": 1}, "fence")
    assert found('```json\n{"a": 1}') == ({"a": 1}, "prose")


def test_r5_fence_inside_a_string_does_not_hide_the_object():
    inner = {"context": "run ```sh\nls {x}\n``` and ``` again"}
    assert found(json.dumps(inner)) == (inner, "whole")
    assert found("So: " + json.dumps(inner)) == (inner, "prose")
    assert found("```json\n" + json.dumps(inner) + "\n```") == (inner, "prose")


def test_r5_first_of_two_objects_is_used():
    assert found('{"a": 1}\n{"a": 2}') == ({"a": 1}, "prose")
    assert found('{"a": 1}{"a": 2}') == ({"a": 1}, "prose")


def test_r5_search_continues_after_a_broken_object():
    assert found('use {x} or {y: 1}, then {"a": 1}') == ({"a": 1}, "prose")
    assert found('{{"a": 1}} {"b": 2}') == ({"b": 2}, "prose")
    assert found('[{"a": 1}, 2] and') == ({"a": 1}, "prose")


@pytest.mark.parametrize(
    "text",
    [
        '{"a": {"satisfied": true}, }',
        '{"a": {"satisfied": true}',
        'x {bad {"satisfied": true} } y',
        'x {"a": [{"satisfied": true}], oops} y',
        'x { {"satisfied": true}',
    ],
)
def test_r5_inner_object_never_replaces_a_broken_outer_object(text):
    refused(text)


def test_r5_braces_inside_strings_are_ignored():
    assert found('{"a": "}", oops} {"b": "{"}') == ({"b": "{"}, "prose")
    assert found(r'{"a": "\"}\\", oops} {"b": 1}') == ({"b": 1}, "prose")
    assert found(r'{"a": "x\"} {", b} {"c": 1}') == ({"c": 1}, "prose")
    refused('{oops "} {\\"b\\": 1}')  # the string never ends, so no brace closes the failed object


@pytest.mark.parametrize("opening", ["[", '{"a":', '{"a":['])
@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 5_000, 200_000])
def test_r5_excessive_nesting_is_refused_without_a_recursion_error(opening, depth):
    closing = {"[": "]", '{"a":': "}", '{"a":[': "]}"}[opening]
    text = '{"deep": ' + opening * depth + "1" + closing * depth + "}"
    for read in (agent_object, utility_object, strict_json):
        assert "deep" in refused(text, read)
    assert "no JSON object" in refused("prose " + text)


def test_r5_maximum_depth_is_independent_of_the_stack():
    def nested(depth):
        return '{"a":' * depth + "1" + "}" * depth

    def deeper(frames, text):
        return agent_object(text).value if frames == 0 else deeper(frames - 1, text)

    deepest = nested(MAX_DEPTH)
    assert agent_object(deepest).value == deeper(sys.getrecursionlimit() // 3, deepest)
    refused(nested(MAX_DEPTH + 1))
    assert "nested too deeply" in refused("[" * 300 + "]" * 300, strict_json)
    assert strict_json('{"flat": [' + ",".join(["[]"] * 5000) + "]}")


UNITS = [
    "{",
    '{"a":',
    '"',
    "\\",
    '"\\',
    '{"',
    '{"\\',
    "{x}",
    '{x}"',
    '{"a":1,}',
    "```",
    "[",
    "[{",
    "}",
    "{}x",
]


@pytest.mark.parametrize("unit", UNITS)
def test_r5_scanning_takes_linear_time(unit):
    """Doubling the text must not quadruple the time; CPU time and a minimum of several runs reduce noise."""

    def seconds(characters):
        text = "x " + unit * (characters // len(unit))
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            with contextlib.suppress(NotJson):
                agent_object(text)
            best = min(best, time.process_time() - start)
        return best

    assert seconds(80_000) < 12 * max(seconds(20_000), 0.005)


@pytest.mark.parametrize("unit", ["{", '{"a":', '"\\', '{"'])
def test_r5_any_one_megabyte_text_is_parsed(unit):
    text = unit * (1_000_000 // len(unit))
    refused(text)
    assert found(f'{{"context": {json.dumps(text)}}}') == ({"context": text}, "whole")


@given(st.text(alphabet='{}[]"\\`:,a1 \n', max_size=80))
def test_r5_returned_object_occurs_in_the_text(text):
    try:
        result = agent_object(text)
    except NotJson:
        return
    assert isinstance(result.value, dict)
    if result.where == "whole":
        assert json.loads(text) == result.value


plain = st.text(alphabet="abc xyz.,;:()\n", max_size=20)
objects = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=10) | st.none(), max_size=3)


@given(plain, objects, plain)
def test_r5_object_in_plain_prose_is_always_found(before, value, after):
    assert agent_object(before + json.dumps(value) + after).value == value


@pytest.mark.parametrize(
    "text",
    [
        'draft {"a": 0}\n```{"a": 1}\n```',
        'draft {"a": 0}\n```json {"a":\n1}\n```\nend',
        'a stray { and ```x {"a": 1}\n```',
        '```json {"a": 1}```',
    ],
)
def test_r35_fenced_object_can_begin_on_the_line_with_the_fence_tag(text):
    assert found(text) == ({"a": 1}, "fence")
