"""Test the variables of materia prompts, and the prompt parts that the engine adds (R31)."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import Folded, Play, agent, asks, at, config, edge, items, loop, retry_loop, say
from materia_nb.engine import decide, entering
from materia_nb.engine.items import compile_template
from materia_nb.engine.rules import Rules
from materia_nb.engine.state import CastState, Item
from materia_nb.errors import MateriaError
from materia_nb.loadout import build_graph

DATA = {
    "s": "text",
    "n": 3,
    "f": 1.5,
    "t": True,
    "z": None,
    "o": {"a": [1, "ü"]},
    "l": [1],
    "empty": {},
    "deep": {"x": {"y": "yes"}},
    "request": "of the state",
    "itemKey": "of the state",
    "tpl": "{{request}}",
}
STATE = CastState(
    request="the request",
    data=DATA,
    cursors={"i": 2, "a.b": 5},
    last_output="said {{request}}",
    last_json={"x": {"y": 1}, "list": [{"t": "zero"}]},
)
ITEM = Item({"title": "T", "parts": ["p"]}, "WI-1", "T", ("i", 0, ()), None)


def filled(text, item=ITEM, state=STATE):
    return compile_template(text)(state, item)


@pytest.mark.parametrize(
    "name, expected",
    [
        ("request", "the request"),
        ("lastOutput", "said {{request}}"),
        ("lastJson", '{\n  "x": {\n    "y": 1\n  },\n  "list": [\n    {\n      "t": "zero"\n    }\n  ]\n}'),
        ("lastJson.x.y", "1"),
        ("lastJson.list.0.t", "zero"),
        ("item", '{\n  "title": "T",\n  "parts": [\n    "p"\n  ]\n}'),
        ("item.title", "T"),
        ("item.parts.0", "p"),
        ("itemJson", '{\n  "title": "T",\n  "parts": [\n    "p"\n  ]\n}'),
        ("state.s", "text"),
        ("s", "text"),
        ("deep.x.y", "yes"),
        ("state.deep.x.y", "yes"),
        ("cursor.i", "2"),
        ("cursor.a.b", "5"),
        ("state.request", "of the state"),
        ("itemKey", "of the state"),
        ("n", "3"),
        ("f", "1.5"),
        ("t", "true"),
        ("l", "[\n  1\n]"),
        ("o", '{\n  "a": [\n    1,\n    "ü"\n  ]\n}'),
        ("empty", "{}"),
        ("  s  ", "text"),
        ("\n s\t", "text"),
    ],
)
def test_r31_each_variable_is_expanded(name, expected):
    assert filled(f"<{{{{{name}}}}}>") == f"<{expected}>"


@pytest.mark.parametrize(
    "name",
    [
        "z",
        "nope",
        "state.nope.x",
        "s.x",
        "l.5",
        "item.nope",
        "lastJson.nope",
        "cursor.nope",
        "cursor",
        "$.x",
        "{s",
    ],
)
def test_r31_missing_values_and_null_expand_to_nothing(name):
    assert filled(f"<{{{{{name}}}}}>") == "<>"


def test_r31_variables_for_a_missing_item_or_output_are_empty():
    bare = CastState(request="r")
    text = "{{item}}{{item.title}}{{itemJson}}{{lastOutput}}{{lastJson}}{{lastJson.x}}{{state.x}}"
    assert filled(text, None, bare) == ""
    assert filled("{{itemJson}}|{{item}}", Item(None, "0", "0", ("i", 0, ()), None)) == "|"
    assert filled("{{itemJson}}|{{item}}", Item("x", "0", "0", ("i", 0, ()), None)) == '"x"|x'


def test_r31_state_json_expands_to_the_complete_state():
    assert filled("{{stateJson}}", None, CastState(request="r", data={"a": 1})) == '{\n  "a": 1\n}'
    assert filled("{{state}}", None, CastState(request="r", data={})) == "{}"


def test_r31_values_are_not_expanded_again():
    assert filled("{{tpl}} {{lastOutput}} {{s}}") == "{{request}} said {{request}} text"


@pytest.mark.parametrize("text", ["{{}}", "{{ }}", "{{\n}}", "{s}", "{{s}", "{{a}b}}", "}}{{", "no variables", ""])
def test_r31_unknown_variables_are_left_unchanged(text):
    assert filled(text) == text


def test_r31_adjacent_and_repeated_variables_are_expanded():
    assert filled("{{s}}{{n}}{{s}} {{}} {{ s }}") == "text3text {{}} text"


def test_too_deeply_nested_state_raises_a_clear_error():
    data = {}
    for _ in range(3000):
        data = {"state": data}
    with pytest.raises(MateriaError, match="too deeply"):
        filled("{{stateJson}}", None, CastState(request="r", data=data))


def test_state_that_is_too_deep_is_refused_before_an_agent_is_called():
    """A socket assigns the state into itself in each round, until no prompt can be built and the socket is not entered."""
    sockets = {"Go": at("A", edge("Go"), parse="json", assign={"into.it": "state"})}
    rules = Rules(build_graph(config(sockets, materia={"A": agent("{{stateJson}}")})))
    assert rules.nests
    data = {}
    for _ in range(3000):
        data = {"into": {"it": data}}
    with pytest.raises(MateriaError, match="too deeply"):
        entering.enter(rules, entering.begin(rules, "r", data=data))


@given(st.lists(st.text(alphabet="ab{} .\n", max_size=6) | st.sampled_from(["{{s}}", "{{request}}", "{{}}"])))
def test_r31_any_prompt_can_be_expanded(parts):
    text = "".join(parts)
    result = filled(text)
    if "{{" not in text:
        assert result == text


# -- parts -------------------------------------------------------------------------------


def parts(play):
    return {part.name: part.text for part in play.prompt.parts if part.text}


def test_prompt_contains_its_applicable_parts_in_order():
    materia = {"D": agent("Do {{item.title}} for {{request}}.")}
    sockets = {
        "Plan": asks(edge("Do"), materia="G"),
        "Do": asks(edge("Do", "not_satisfied"), edge("Do", "satisfied"), materia="D", advance={"when": "satisfied"}),
    }
    play = Play(config(sockets, {"L": loop("Do")}, materia=materia), request="R")
    assert list(parts(play)) == ["request", "place", "task", "return"]
    play.go(items("a"))
    assert list(parts(play)) == ["place", "task", "item", "return"]
    assert play.prompt.instruction == "Do a for R."
    play.go(say(satisfied=False, context="again"))
    assert list(parts(play)) == ["place", "task", "item", "reasons", "return"]


def test_prompt_of_a_text_socket_does_not_mention_json():
    play = Play(config({"A": at("P")}))
    assert list(parts(play)) == ["request", "task"]


@pytest.mark.parametrize(
    "item, shown", [("plain", "plain"), ({"a": 1}, '"a": 1'), (None, "null"), ({"title": "T"}, "0: T")]
)
def test_prompt_can_be_built_for_any_item(item, shown):
    sockets = {"Rows": at("U", edge("Do")), "Do": at("P", foreach={"items": "rows"})}
    play = Play(config(sockets), say(state={"rows": [item]}))
    assert shown in parts(play)["item"]


def test_utility_has_no_prompt():
    assert Play(config({"A": at("U")})).prompt is None


@pytest.mark.parametrize(
    "value, shown",
    [
        (1.0, "1"),
        (1e3, "1000"),
        (-0.0, "0"),
        (0.5, "0.5"),
        (1e20, "100000000000000000000"),
        (1.23456789e20, "123456789000000000000"),
        (1e21, "1e+21"),
        (True, "true"),
        ([2.0, {"a": 3.0}], '[\n  2,\n  {\n    "a": 3\n  }\n]'),
    ],
)
def test_r37_float_with_an_integer_value_is_written_without_a_decimal_point(value, shown):
    assert filled("{{state.f}}", state=STATE._replace(data={"f": value})) == shown


def test_r37_integer_valued_float_inside_an_item_has_no_decimal_point():
    play = Play(
        config({"A": at("U", edge("B")), "B": at("P", foreach={"items": "state.l"})}),
        say(state={"l": [{"f": 2.0}]}),
    )
    assert '"f": 2\n' in play.prompt.text


_VARIABLE = re.compile(r"\{\{([^}]+)\}\}")


@given(st.text("{}a ", max_size=24))
def test_r31_variables_match_the_pattern_defined_by_the_rule(text):
    marked = _VARIABLE.sub(lambda match: match[0] if not match[1].strip() else "", text)
    assert filled(text, state=STATE._replace(data={})) == marked


@pytest.mark.parametrize("piece", ["{", "{{", "{{a", "{{a} "])
def test_r31_prompt_with_many_braces_is_expanded_in_linear_time(piece):
    text = piece * (400_000 // len(piece))
    assert filled(text) == text  # a quadratic scan would take minutes


def test_r51_first_prompt_explains_fields_and_repair_prompt_only_repeats_the_form():
    play = Play(retry_loop())
    assert "one object for each work item" in play.prompt.text
    play.go("no json at all")
    [asked] = [part.text for part in play.prompt.parts if part.name == "return"]
    assert "workItems" in asked
    assert "one object for each work item" not in asked


def test_preview_shows_the_next_prompt_or_the_reason_why_there_is_none():
    cast = Folded(retry_loop())
    found, why_not = entering.preview(cast.rules, cast.state, "Plan")
    assert (found, why_not) == (cast.do(decide.enter).session.prompt, "")
    assert "<prompt of request" in repr(found)
    assert entering.preview(cast.rules, cast.state, "Build") == (
        None,
        "The socket would be skipped now, because its list has no item.",
    )
