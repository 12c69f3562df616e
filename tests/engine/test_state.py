"""Test the effect of an output on the state (R2, R4, R10, R11)."""

from __future__ import annotations

import pytest

from builders import Play, agent, asks, at, config, edge, items, say, utility
from materia_nb.engine import entering, outputs, recovery
from materia_nb.engine.state import Usage
from materia_nb.errors import MateriaError


def after(answers, *sockets, materia=None, **top):
    """Return the state after a chain of sockets with the specified answers."""
    names = [f"S{n}" for n in range(len(sockets))]
    chain = {
        name: {**socket, "edges": [edge(to)]}
        for name, socket, to in zip(names, sockets, [*names[1:], "end"], strict=True)
    }
    return Play(config(chain, materia=materia, **top), *answers)


def assigned(output, *pairs, before=None):
    """Return the state after a utility with the specified assignments; an earlier utility merges ``before`` into the
    state.
    """
    first = say(state=before or {})
    play = after([first, say(**output)], at("U"), at("X"), materia={"X": utility(assign=dict(pairs))})
    assert play.at == "complete"
    return play.data


# -- R10 ----------------------------------------------------------------------------------


def test_r10_state_from_a_utility_is_merged_shallowly():
    data = after([say(state={"a": {"x": 1}, "b": 1}), say(state={"a": {"y": 2}, "c": None})], at("U"), at("U")).data
    assert data == {"a": {"y": 2}, "b": 1, "c": None}


@pytest.mark.parametrize("state", [None, [], ["a"], "text", 3, True])
def test_r10_state_field_that_is_not_an_object_is_ignored(state):
    assert after([say(state=state)], at("U")).data == {}


def test_r10_utility_state_is_merged_except_work_items_and_satisfied():
    patch = {"workItems": [1], "satisfied": True, "context": "kept", "other": 1}
    assert after([say(state=patch)], at("U")).data == {"context": "kept", "other": 1}


def test_r10_generator_replaces_the_work_items():
    play = after([items("a"), items("b"), items()], asks(materia="G"), at("UG"), asks(materia="G"))
    assert play.data == {"workItems": []}
    play = after([items("a"), items("b")], asks(materia="G"), at("UG"))
    assert [item["title"] for item in play.data["workItems"]] == ["b"]


@pytest.mark.parametrize(
    "first, expected",
    [
        (say(), "b"),
        (say(workItems=[]), "b"),
        (items("a"), "a"),
    ],
)
def test_r10_work_items_from_other_sockets_are_used_only_if_there_is_no_list_yet(first, expected):
    for other in (at("U"), asks()):
        data = after([first, items("b")], at("U"), other).data
        assert [item["title"] for item in data["workItems"]] == [expected]


def test_r10_null_work_items_count_as_missing_and_other_types_are_ignored():
    null = utility(assign={"workItems": "$.x"})
    play = after([say(x=None), items("b")], at("X"), at("U"), materia={"X": null})
    assert play.data["workItems"][0]["title"] == "b"
    assert after([say(workItems={"free": 1})], at("U")).data == {}


def test_r10_appended_context_starts_with_the_socket_and_its_label_or_materia():
    labelled = agent(label="Check it")
    play = after(
        [say(context="one"), say(context="  two\n"), say(context="three")],
        asks(materia="L"),
        asks(),
        at("U"),
        materia={"L": labelled},
    )
    assert play.data["context"] == "[S0 Check it] one\n\n[S1 P]   two\n\n\n[S2 U] three"


@pytest.mark.parametrize("context", ["", "   ", "\n\t"])
def test_r10_blank_context_adds_no_text(context):
    assert after([say(context=context)], asks()).data == {}


@pytest.mark.parametrize("before", [None, 3, ["x"], "", "  "])
def test_r10_context_that_is_not_text_is_replaced(before):
    assert after([say(state={"context": before}), say(context="c")], at("U"), asks()).data == {"context": "[S1 P] c"}


def test_r10_patch_is_applied_before_the_context():
    play = after([say(state={"context": "patched"}, context="said")], at("U"))
    assert play.data == {"context": "patched\n\n[S0 U] said"}


def test_r10_agent_output_does_not_patch_the_state():
    play = after([say(state={"a": 1})], asks(), limits={"repairAttempts": 0})
    assert (play.at, play.data) == ("repair_exhausted", {})


# -- R11: sources -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source, expected",
    [
        ("$", {"a": {"b": {"c": 7}}, "list": [{"t": "zero"}, {"t": "one"}], "n": None}),
        ("$.a.b.c", 7),
        ("$.list.1.t", "one"),
        ("$.list.01.t", "one"),
        ("$.n", None),
        ("$.list[*].t", ["zero", "one"]),
        ("$.list[0].t", "zero"),
        ("$.list[1:]", {"t": "one"}),
        ("$['a']['b'].c", 7),
        ("$..c", 7),
        ("state.s.x", 1),
        ("state", {"s": {"x": 1, "l": [5, 6]}}),
        ("s.x", 1),
        ("s.l.1", 6),
        ("lastJson.a.b", {"c": 7}),
        ("lastJson", {"a": {"b": {"c": 7}}, "list": [{"t": "zero"}, {"t": "one"}], "n": None}),
    ],
)
def test_r11_every_kind_of_source_can_be_read(source, expected):
    output = {"a": {"b": {"c": 7}}, "list": [{"t": "zero"}, {"t": "one"}], "n": None}
    assert assigned(output, ("v", source), before={"s": {"x": 1, "l": [5, 6]}})["v"] == expected


def test_r11_last_output_source_is_the_text_of_the_current_socket():
    assert assigned({"a": 1}, ("v", "lastOutput"))["v"] == '{"a": 1}'
    play = after(
        [" a \n", " b \n"],
        at("T2"),
        at("P", assign={"v": "lastOutput"}),
        materia={"T2": utility(parse="text")},
    )
    assert play.data == {"v": "b"}


def test_r6_output_of_a_text_utility_is_kept_verbatim():
    play = Play(config({"A": at("T", edge("B")), "B": at("P", assign={"v": "lastOutput"})}), " a \n")
    assert play.state.last_output == " a \n"


def test_r11_dollar_source_of_a_text_socket_is_its_text():
    assert after([" hello "], at("P", assign={"v": "$"})).data == {"v": "hello"}


@pytest.mark.parametrize(
    "source",
    [
        "state.nope",
        "nope.deeper",
        "hello",
        "item",
        "item.title",
        "lastOutput.x",
        "cursor.i",
        "state.l.2",
        "state.l.-1",
        "state.l.٣",
        "state.l.1.x",
        "state.text.0",
        "lastJson.nope",
    ],
)
def test_r11_missing_source_leaves_the_target_unchanged_and_is_reported(source):
    before = (
        {"l": [5, 6, {}], "text": "t", "v": "old"} if source != "state.l.2" else {"l": [5], "text": "t", "v": "old"}
    )
    first = say(state=before)
    play = Play(config({"A": at("U", edge("B")), "B": at("P", assign={"v": source})}), first, "done")
    assert play.data["v"] == "old"
    assert [(one.target, one.source, one.found) for one in play.decision.assigned] == [("v", source, False)]


def test_r11_cursor_source_reads_the_cursor_object_in_the_state():
    assert assigned({}, ("v", "cursor.x"), before={"cursor": {"x": 4}})["v"] == 4


def test_r11_item_source_is_the_current_item():
    sockets = {
        "Plan": asks(edge("Do"), materia="G"),
        "Do": at("P", edge("Do"), assign={"seen": "item.title", "whole": "item"}, advance={"when": "always"}),
    }
    play = Play(config(sockets, {"L": {"sockets": ["Do"], "consumes": {"from": "Plan"}}}), items("a", "b"), "x")
    assert (play.data["seen"], play.data["whole"]["context"]) == ("a", "about a")


# -- R11: targets and order ---------------------------------------------------------------


def test_r11_target_is_a_dotted_path_whose_empty_segments_are_skipped():
    data = assigned({"s": 1}, ("x.y.z", "$.s"), ("a..b", "$.s"), (".c.", "$.s"))
    assert data == {"x": {"y": {"z": 1}}, "a": {"b": 1}, "c": 1}


@pytest.mark.parametrize("between", [3, "text", None, True, [1, 2]])
def test_r11_non_objects_on_a_target_path_are_replaced(between):
    assert assigned({"s": 1}, ("p.0.q", "$.s"), before={"p": between}) == {"p": {"0": {"q": 1}}}
    assert assigned({"s": 1}, ("p.x", "$.s"), before={"p": {"y": 2}}) == {"p": {"y": 2, "x": 1}}


def test_r11_assignments_run_in_order_and_see_earlier_assignments():
    data = assigned({"s": 1}, ("z", "b"), ("b", "$.s"), ("a", "state.b"), ("c.d", "a"), ("e", "c"))
    assert data == {"b": 1, "a": 1, "c": {"d": 1}, "e": {"d": 1}}


def test_r11_assigning_the_state_to_a_path_inside_it_stores_a_copy():
    data = assigned({"s": 1}, ("old", "state"), ("x", "$.s"), ("old.again", "state"), before={"x": 0})
    assert data == {"x": 1, "old": {"x": 0, "again": {"x": 1, "old": {"x": 0}}}}


@pytest.mark.parametrize("target", ["", ".", "..."])
def test_r11_target_without_segments_fails_the_cast(target):
    materia = {"X": utility(assign={"first": "$.s", target: "$.s", "later": "$.s"})}
    play = after([say(s=1, context="c")], at("X"), materia=materia)
    assert play.at == "assignment"
    assert (play.data["first"], "later" in play.data) == (1, False)
    assert [one.target for one in play.decision.assigned] == ["first"]


def test_r4_utilities_assign_in_their_materia_and_agents_in_their_socket():
    materia = {"X": utility(assign={"u": "$.s"}), "Y": agent(assign={"no": "$"})}
    answers = [say(s=1), say(context="c")]
    data = after(
        answers, at("X", assign={"no": "$.s"}), asks(materia="Y", assign={"a": "$.context"}), materia=materia
    ).data
    assert (data["u"], data["a"], "no" in data) == (1, "c", False)


def test_r4_assignments_do_not_replace_the_work_items_of_a_generator():
    materia = {"X": utility(generator=True, assign={"workItems": "$.other", "o": "$.other"})}
    data = after([items("a", other=[1])], at("X"), materia=materia).data
    assert (data["workItems"][0]["title"], data["o"]) == ("a", [1])


# -- purity of a single step --------------------------------------------------------------


def test_step_does_not_change_the_previous_state():
    play = after([say(state={"deep": {"list": [1]}})], at("U"), at("P", assign={"deep.list": "lastOutput"}))
    before = play.state
    step = outputs.output(play.rules, before, "new")
    assert before.data == {"deep": {"list": [1]}}
    assert step.state.data == {"deep": {"list": "new"}}


def test_transition_is_refused_if_the_session_has_another_status():
    play = Play(config({"A": at("P")}))
    with pytest.raises(MateriaError, match="waiting"):
        entering.enter(play.rules, play.state)
    play.go("done")
    for transition in (
        lambda: entering.enter(play.rules, play.state),
        lambda: outputs.output(play.rules, play.state, "again"),
        lambda: recovery.raise_limit(play.rules, play.state),
        lambda: recovery.retry(play.rules, play.state),
        lambda: entering.prompt_for(play.rules, play.state),
    ):
        with pytest.raises(MateriaError, match="complete"):
            transition()


def test_r56_unreported_usage_is_counted_separately():
    total = Usage().plus(Usage(3, 2, None)).plus(Usage(None, None, 0.5)).plus(Usage(1, None, 0.5))
    assert (total.input, total.output, total.cost) == (4, 2, 1.0)
    assert (total.uncounted, total.unpriced) == (1, 1)
    assert (total.tokens_text, total.cost_text) == (
        "6, not counting 1 turn with unknown usage",
        "1.0000 USD, not counting 1 turn with unknown usage",
    )


def test_r65_target_without_a_name_fails_even_if_its_source_is_missing():
    play = after([say(s=1)], at("X"), materia={"X": utility(assign={"..": "state.nope"})})
    assert play.at == "assignment"
