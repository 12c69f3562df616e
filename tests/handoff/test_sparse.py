"""Test the requirements of sockets and the issues of outputs that violate them (R4, R7, R8, R9)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import agent, at, config, edge, requirements_for, say, utility
from materia_nb.errors import MateriaError
from materia_nb.handoff import protocol, requirements_of
from materia_nb.loadout import build_graph

ALWAYS, YES, NO = edge("end"), edge("end", "satisfied"), edge("end", "not_satisfied")
SPARSE = protocol("sparse")


def read(text, socket, **materia):
    return SPARSE.read(text if isinstance(text, str) else say(**text), requirements_for(socket, **materia))


def paths(value, socket, **materia):
    reading = read(value, socket, **materia)
    assert reading.accepted == (not reading.issues)
    return sorted(issue.path for issue in reading.issues)


def as_utility(value, *edges, **materia):
    reading = read(value, {"edges": list(edges)}, materia=utility(**materia))
    return sorted(issue.path for issue in reading.issues)


JSON_SOCKET = {"parse": "json"}


# -- R7: satisfied ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "edges, needed",
    [
        ([], False),
        ([ALWAYS], False),
        ([YES], True),
        ([NO], True),
        ([YES, ALWAYS], True),
        ([NO, ALWAYS], True),
    ],
)
def test_r7_agent_must_report_satisfied_if_an_edge_is_guarded(edges, needed):
    assert paths({}, {"parse": "json", "edges": edges}) == (["$.satisfied"] if needed else [])


@pytest.mark.parametrize(
    "edges, needed",
    [([], False), ([ALWAYS], False), ([YES], True), ([YES, NO], True), ([YES, ALWAYS], False)],
)
def test_r7_utility_must_report_satisfied_only_if_it_has_no_always_edge(edges, needed):
    assert as_utility({}, *edges) == (["$.satisfied"] if needed else [])


@pytest.mark.parametrize("when, needed", [("satisfied", True), ("not_satisfied", True), ("always", False)])
def test_r7_guarded_advance_requires_satisfied(when, needed):
    advance = {"cursor": "i", "items": "state.rows", "when": when}
    expected = ["$.satisfied"] if needed else []
    assert paths({}, {"parse": "json", "edges": [ALWAYS], "advance": advance}) == expected
    socket = {"advance": advance}
    assert paths({}, socket, materia=utility()) == expected
    assert paths({}, socket | {"edges": [ALWAYS]}, materia=utility()) == []


@pytest.mark.parametrize("source", ["$.satisfied", "$['satisfied']", '$["satisfied"]'])
def test_r7_assignment_from_satisfied_requires_the_field(source):
    assert paths({}, {"parse": "json", "assign": {"ok": source}})[0] == "$.satisfied"
    assert paths({"satisfied": False}, {"parse": "json", "assign": {"ok": source}}) == []


@pytest.mark.parametrize("given", [None, 1, 0, "true", [], {}])
def test_r7_satisfied_must_be_a_boolean(given):
    assert paths({"satisfied": given}, JSON_SOCKET) == ["$.satisfied"]
    assert as_utility({"satisfied": given}) == ["$.satisfied"]
    assert as_utility({"satisfied": given}, YES, ALWAYS) == ["$.satisfied"]


def test_r7_issue_states_why_satisfied_is_required():
    (issue,) = read({}, {"parse": "json", "edges": [YES]}).issues
    assert "next step" in issue.message
    assert "true or false" in issue.fix


# -- R8: fields and sources ---------------------------------------------------------------


def test_r8_fields_other_than_work_items_satisfied_and_context_are_refused():
    value = {"workItems": [], "satisfied": True, "context": "c"}
    assert paths(value, JSON_SOCKET) == []
    assert paths(value | {"state": {}, "summary": "s", "passed": True}, JSON_SOCKET) == [
        "$.passed",
        "$.state",
        "$.summary",
    ]


@pytest.mark.parametrize(
    "name, told",
    [("passed", "satisfied"), ("tasks", "workItems"), ("feedback", "context"), ("odd", "remove")],
)
def test_r8_issue_for_a_legacy_field_name_contains_a_fix(name, told):
    (issue,) = read({name: 1}, JSON_SOCKET).issues
    assert told in issue.fix


@pytest.mark.parametrize("given", [None, 1, ["c"], {"a": 1}])
def test_r8_context_of_an_agent_must_be_a_string(given):
    assert paths({"context": given}, JSON_SOCKET) == ["$.context"]
    assert as_utility({"context": given}) == []
    assert read({"context": given}, {}, materia=utility()).context is None


@pytest.mark.parametrize(
    "source, field",
    [
        ("$.plan", "plan"),
        ("$.plan.name", "plan"),
        ("$.plan.0", "plan"),
        ("$.plan[*].name", "plan"),
        ("$['plan'].name", "plan"),
        ('$["my plan"][0]', "my plan"),
    ],
)
def test_r8_assignment_allows_the_first_field_of_its_source(source, field):
    socket = {"parse": "json", "assign": {"x": source}}
    value = {field: [{"name": "n"}] if "[" in source or source.endswith("0") else {"name": "n"}}
    if source == "$['plan'].name":
        value = {"plan": {"name": "n"}}
    assert paths(value, socket) == []
    assert paths(value | {"other": 1}, socket) == ["$.other"]
    assert paths({}, socket) == [source]


@pytest.mark.parametrize("source", ["$", "$..name", "state.plan", "lastJson.plan", "item"])
def test_r8_source_that_names_no_output_field_allows_no_extra_field(source):
    assert "$.plan" in paths({"plan": {"name": 1}}, {"parse": "json", "assign": {"x": source}})


def test_r8_dollar_source_must_exist_but_may_be_null():
    socket = {"parse": "json", "assign": {"a": "$.x", "b": "$.y.z", "c": "$.list[*].t", "d": "state.nope"}}
    assert paths({}, socket) == ["$.list[*].t", "$.x", "$.y.z"]
    assert paths({"x": None, "y": {"z": None}, "list": [{"t": None}]}, socket) == []
    assert paths({"x": 1, "y": None, "list": []}, socket) == ["$.list[*].t", "$.y.z"]


def test_r8_json_with_a_missing_source_is_refused_but_text_is_accepted():
    assert as_utility({}, assign={"a": "$.x"}) == ["$.x"]
    assert as_utility({"x": None, "free": 1}, assign={"a": "$.x"}) == []
    assert as_utility("anything", parse="text", assign={"a": "$.x"}) == []
    assert paths("anything", {"assign": {"a": "$.x"}}) == []


def test_r8_missing_source_used_by_two_assignments_is_reported_once():
    assert paths({}, {"parse": "json", "assign": {"a": "$.x", "b": "$.x"}}) == ["$.x"]
    socket = {"parse": "json", "edges": [YES], "assign": {"a": "$.satisfied"}}
    assert paths({}, socket) == ["$.satisfied"]
    assert paths({"satisfied": "yes"}, socket) == ["$.satisfied"]


@pytest.mark.parametrize(
    "source, fits, unfit",
    [
        ("$.rows[?(@.n > 3)]", [{"n": 5}], [{"n": "five"}, None, {"n": {}}]),
        ("$.rows[/n]", [{"n": 2}, {"n": 1}], [{"n": 2}, {"n": "a"}]),
    ],
)
def test_r8_failing_jsonpath_counts_as_no_match(source, fits, unfit):
    socket = {"parse": "json", "assign": {"x": source}}
    assert paths({"rows": fits}, socket) == []
    assert paths({"rows": unfit}, socket) == [source]


# -- R9: work items -----------------------------------------------------------------------

GOOD = {"title": "t", "context": "c"}
BAD_ITEMS = [
    ({"title": "t"}, [".context"]),
    ({"context": "c"}, [".title"]),
    ({}, [".context", ".title"]),
    ({"title": " \n", "context": "c"}, [".title"]),
    ({"title": "t", "context": ""}, [".context"]),
    ({"title": 1, "context": None}, [".context", ".title"]),
    ({**GOOD, "id": "WI-1"}, [".id"]),
    ("t", [""]),
    (None, [""]),
    ([GOOD], [""]),
]


@pytest.mark.parametrize("item, tails", BAD_ITEMS)
def test_r9_work_item_has_exactly_a_title_and_a_context(item, tails):
    expected = [f"$.workItems.1{tail}" for tail in tails]
    value = {"workItems": [GOOD, item]}
    assert paths(value, JSON_SOCKET) == expected
    assert paths(value, JSON_SOCKET, generator=True) == expected
    assert as_utility(value, generator=True) == expected
    assert as_utility(value) == []


@pytest.mark.parametrize("items", [None, {}, "x", 3, True])
def test_r9_work_items_must_be_an_array(items):
    assert paths({"workItems": items}, JSON_SOCKET) == ["$.workItems"]
    assert as_utility({"workItems": items}, generator=True) == ["$.workItems"]
    assert as_utility({"workItems": items}) == []


def test_r9_generator_must_return_a_list_that_may_be_empty():
    for materia in (agent(generator=True), utility(generator=True)):
        assert paths({}, JSON_SOCKET, materia=materia) == ["$.workItems"]
        assert paths({"workItems": []}, JSON_SOCKET, materia=materia) == []


def test_r9_all_issues_are_reported_together():
    value = {"workItems": [{"title": ""}, 3], "satisfied": "no", "context": 1, "tasks": []}
    socket = {"parse": "json", "edges": [YES], "assign": {"a": "$.gone"}}
    reading = read(value, socket)
    assert {issue.path for issue in reading.issues} == {
        "$.workItems.0.title",
        "$.workItems.0.context",
        "$.workItems.1",
        "$.satisfied",
        "$.context",
        "$.tasks",
        "$.gone",
    }
    assert all(issue.message and issue.fix for issue in reading.issues)
    assert reading.error == "contract"


# -- readings -----------------------------------------------------------------------------


def test_r6_text_is_trimmed_for_agents_and_kept_for_utilities():
    assert read(" hi \n", {}).value == "hi"
    assert read(" hi \n", {}, materia=utility(parse="text")).value == " hi \n"


def test_r3_text_output_has_no_verdict():
    reading = read('{"satisfied": true, "context": "c"}', {})
    assert (reading.satisfied, reading.context, reading.value) == (
        None,
        None,
        '{"satisfied": true, "context": "c"}',
    )


def test_r4_generator_output_is_always_json_and_other_utilities_follow_their_parse_setting():
    sockets = {
        "A": at("T", edge("B"), parse="json"),
        "B": at("UG2", edge("C")),
        "C": at("P2"),
    }
    materia = {"UG2": utility(generator=True, parse="text"), "P2": agent(parse="json")}
    graph = build_graph(config(sockets, materia=materia))
    assert [requirements_of(s).parse for s in graph.sockets.values()] == ["text", "json", "text"]
    assert graph.sockets["B"].assign == (("workItems", "$.workItems"),)


def test_r5_notes_report_surrounding_text_and_duplicate_keys():
    assert "prose" in " ".join(read('ok {"context": "c"}', JSON_SOCKET).notes)
    assert "fence" in " ".join(read('```\n{"context": "c"}\n```', JSON_SOCKET).notes)
    assert "'context'" in " ".join(read('{"context": "c", "context": "d"}', JSON_SOCKET).notes)
    assert read('{"context": "c"}', JSON_SOCKET).notes == ()


def test_notes_and_messages_have_a_maximum_length():
    twice = ",".join(f'"k{n}":1,"k{n}":2' for n in range(500))
    long = "x" * 100_000
    reading = read('{"rows": {' + twice + "}}", {"parse": "json", "assign": {"r": "$.rows"}})
    assert reading.accepted
    assert len(reading.notes) <= 9
    assert len(read({long: 1}, JSON_SOCKET).issues[0].message) < 200


def test_output_that_is_not_json_has_one_issue_at_the_root():
    reading = read("sorry", JSON_SOCKET)
    assert (reading.error, [issue.path for issue in reading.issues]) == ("not_json", ["$"])


def test_instruction_names_only_the_required_fields():
    assert SPARSE.ask(requirements_for({})) == ""
    plan = SPARSE.ask(requirements_for(JSON_SOCKET, generator=True))
    assert "workItems" in plan
    assert "satisfied" not in plan
    check = SPARSE.ask(requirements_for({"parse": "json", "edges": [YES], "assign": {"p": "$.plan.name"}}))
    assert "satisfied" in check
    assert "- plan:" in check
    assert "workItems" not in check


def test_unknown_protocol_error_suggests_a_similar_name():
    with pytest.raises(MateriaError, match="sprase") as error:
        protocol("sprase")
    assert "sparse" in str(error.value.hint)


# -- whatever the text --------------------------------------------------------------------

sources = st.sampled_from(
    [
        "$",
        "$.x",
        "$.x.0.y",
        "$.x[*].y",
        "$..y",
        "$.x[?(@.y > 1)]",
        "$.x[/y]",
        "$['x y']",
        "state.x",
    ]
)
socket_shapes = st.fixed_dictionaries(
    {
        "parse": st.sampled_from(["json", "text"]),
        "edges": st.sampled_from([[], [ALWAYS], [YES], [NO, ALWAYS]]),
        "assign": st.dictionaries(st.sampled_from(["a", "b.c"]), sources, max_size=2),
    }
)
values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["workItems", "satisfied", "context", "x", "y", "title"]), inner, max_size=4)
    ),
    max_leaves=12,
)
texts = (
    st.text(max_size=60)
    | st.text(alphabet='{}[]":,\\`satifed truefalse\ud800\x00', max_size=60)
    | st.tuples(st.text(max_size=5), values, st.text(max_size=5)).map(lambda t: t[0] + say(x=t[1]) + t[2])
    | values.map(lambda v: say(**v) if isinstance(v, dict) else say(workItems=v))
)


@given(texts, socket_shapes, st.booleans(), st.booleans())
def test_parsing_an_output_never_raises_and_is_deterministic(text, socket, is_utility, generator):
    if is_utility:
        parse, assign = socket["parse"], socket["assign"]
        shape = requirements_for(
            {"edges": socket["edges"]}, materia=utility(parse=parse, assign=assign, generator=generator)
        )
    else:
        shape = requirements_for(socket | ({"parse": "json"} if generator else {}), generator=generator)
    reading = SPARSE.read(text, shape)
    assert reading == SPARSE.read(text, shape)
    assert reading.accepted == (not reading.issues)
    if reading.accepted and shape.parse == "json":
        assert isinstance(reading.value, dict)
        assert reading.satisfied is reading.value.get("satisfied")
