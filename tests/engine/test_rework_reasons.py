"""Test the reasons for returned work (R22): which sockets receive them, how long they are kept, and their length."""

from __future__ import annotations

import pytest

from builders import (
    NO,
    YES,
    Folded,
    Play,
    agent,
    asks,
    at,
    config,
    edge,
    exit_route,
    items,
    loop,
    retry_loop,
    say,
)
from materia_nb.engine.conversation import record_rework_reason
from materia_nb.engine.item_edits import ListEdit, edit_lists
from materia_nb.engine.state import PendingRoute
from materia_nb.loadout.vocabulary import Result


def no(context):
    return say(satisfied=False, context=context)


def back_and_forth(**top):
    """Return a loadout in which Check, outside any item, sends work back to Make until it is satisfied."""
    sockets = {
        "Make": at("P", edge("Check")),
        "Check": asks(edge("Make", "not_satisfied"), edge("Make", "satisfied")),
    }
    return Play(config(sockets, limits={"maxEdgeTraversals": 99}, **top), "made")


def inside(count=1, most=50):
    return Play(retry_loop(most), items(*"abcdefgh"[:count]), "built")


# -- capturing ----------------------------------------------------------------------------


def test_r22_reason_is_shown_to_the_target_with_its_source():
    play = inside().go(no("tests fail"))
    assert play.prompt.reasons == ("tests fail",)
    told = next(part.text for part in play.prompt.parts if part.name == "reasons")
    assert "Eval (P) about WI-1:\n```\ntests fail\n```" in told
    (entry,) = play.state.rework_reasons
    assert entry[:5] == ("Eval", "P", "Build", ("workItemIndex", 0, ()), "a")


def test_r22_source_is_labelled_with_its_materia():
    sockets = {"Check": asks(edge("Make", "not_satisfied"), materia="C"), "Make": at("P")}
    play = Play(config(sockets, materia={"C": agent(label="The judge")}), no("x"))
    assert "Check (The judge):\n```\nx\n```" in play.prompt.text


@pytest.mark.parametrize("answer, edges", [(NO, [("always", "Make")]), (YES, [("satisfied", "Make")])])
def test_r22_only_not_satisfied_edges_capture_a_reason(answer, edges):
    sockets = {"Check": asks(*[edge(to, when) for when, to in edges]), "Make": at("P")}
    play = Play(config(sockets), say(satisfied=answer == YES, context="no reason"))
    assert (play.at, play.prompt.reasons, play.state.rework_reasons) == ("Make", (), ())


def test_r22_white_space_in_a_reason_is_collapsed():
    assert inside().go(no(" a\n\n b\t c ")).prompt.reasons == ("a b c",)


@pytest.mark.parametrize(
    "size, expected", [(899, "x" * 899), (900, "x" * 900), (901, "x" * 899 + "…"), (5000, "x" * 899 + "…")]
)
def test_r22_reason_has_at_most_900_characters(size, expected):
    assert inside().go(no("x" * size)).prompt.reasons == (expected,)


@pytest.mark.parametrize("context", [None, "", "  \n"])
def test_r22_missing_context_is_replaced_by_a_marked_excerpt_of_the_answer(context):
    answer = say(satisfied=False) if context is None else no(context)
    (reason,) = inside().go(answer).prompt.reasons
    assert "no context" in reason
    assert '"satisfied": false' in reason


def test_r22_excerpt_including_its_mark_has_at_most_900_characters():
    sockets = {"Run": at("U", edge("Make", "not_satisfied")), "Make": at("P")}
    (reason,) = Play(config(sockets), say(satisfied=False, rows="y" * 5000)).prompt.reasons
    assert (len(reason), reason[-1]) == (900, "…")


def test_r22_reason_is_captured_even_if_the_edge_leads_to_the_end():
    play = Play(config({"Check": asks(edge("end", "not_satisfied"))}), no("why"))
    assert [(entry.target, entry.reason) for entry in play.state.rework_reasons] == [("end", "why")]


def test_r22_reason_of_an_edge_over_its_limit_is_shown_after_the_limit_is_raised():
    play = inside(most=1).go(no("one"), "built", no("two"))
    assert play.at == "edge_traversals_exhausted"
    play.raise_limit()
    assert play.prompt.reasons == ("one", "two")


# -- who is told --------------------------------------------------------------------------


def test_r22_reason_is_shown_only_to_the_target():
    play = inside().go(no("why"), "built")
    assert (play.at, play.prompt.reasons) == ("Eval", ())


def test_r22_reason_is_not_shown_for_another_item():
    play = inside(2).go(no("why"), "built", YES)
    assert (play.visit.item.key, play.prompt.reasons, play.state.rework_reasons) == ("WI-2", (), ())


def test_r22_target_outside_items_sees_reasons_of_items():
    sockets = {
        "Plan": asks(edge("Do"), materia="G"),
        "Do": asks(edge("Do", "satisfied"), edge("Fix", "not_satisfied")),
        "Fix": at("P", edge("Do")),
    }
    play = Play(config(sockets, {"L": loop("Do")}), items("a"), no("broken"))
    assert (play.at, play.visit.item, play.prompt.reasons) == ("Fix", None, ("broken",))
    assert "about a" in play.prompt.text


def test_r22_target_inside_an_item_sees_reasons_without_an_item():
    sockets = {
        "Plan": asks(edge("Gate"), materia="G"),
        "Gate": asks(edge("Do", "not_satisfied")),
        "Do": at("P", edge("Do"), advance={}),
    }
    sockets["Plan"]["edges"] = [edge("Do", "satisfied"), edge("Gate", "not_satisfied")]
    play = Play(config(sockets, {"L": loop("Do")}), items("a", "b", satisfied=False), no("careful"))
    assert (play.visit.item.key, play.prompt.reasons) == ("WI-1", ("careful",))


# -- how long -----------------------------------------------------------------------------


def test_r22_step_that_advances_the_item_records_no_reason():
    sockets = {
        "Plan": asks(edge("Do"), materia="G"),
        "Do": at("P", edge("Check")),
        "Check": asks(edge("Do", "not_satisfied"), edge("Do", "satisfied"), advance={"when": "not_satisfied"}),
    }
    play = Play(config(sockets, {"L": loop("Do", "Check")}), items("a", "b"), "x", no("next, please"))
    assert (play.visit.item.key, play.prompt.reasons, play.state.rework_reasons) == ("WI-2", (), ())


def test_r22_reason_is_captured_if_only_another_cursor_advanced():
    sockets = {
        "Plan": asks(edge("Do"), materia="G"),
        "Do": at("P", edge("Check")),
        "Check": asks(
            edge("Do", "not_satisfied"),
            edge("Do", "satisfied"),
            advance={"cursor": "other", "items": "state.workItems"},
        ),
    }
    play = Play(config(sockets, {"L": loop("Do", "Check")}), items("a", "b", "c"), "x", no("why"))
    assert (play.visit.item.key, play.prompt.reasons) == ("WI-1", ("why",))


def test_r22_last_five_reasons_are_kept_per_item_and_target():
    play = inside(2)
    for count in range(7):
        play.go(no(f"r{count}"), "built")
    assert [entry.reason for entry in play.state.rework_reasons] == ["r2", "r3", "r4", "r5", "r6"]
    many = Play(config({"Check": asks(edge("Check", "not_satisfied"))}))
    for count in range(7):
        many.go(no(f"r{count}"))
    assert [entry.reason for entry in many.state.rework_reasons] == ["r2", "r3", "r4", "r5", "r6"]


def test_r22_reasons_without_an_item_do_not_displace_reasons_of_items():
    play = inside().go(no("of the item"))
    (old,) = play.state.rework_reasons
    here, kept = play.rules.sockets["Eval"].socket, play.state.rework_reasons
    for count in range(7):
        said = PendingRoute(Result.NO, "", f"without {count}", exhausted=False, advanced=None)
        kept = record_rework_reason(kept, here, "Build", None, said, 1)
    assert kept[0] is old
    assert [entry.reason for entry in kept[1:]] == [f"without {count}" for count in range(2, 7)]


def test_r22_reasons_for_one_target_do_not_displace_reasons_for_another():
    sockets = {
        "Plan": asks(edge("A"), materia="G"),
        "A": asks(edge("B", "satisfied"), edge("B", "not_satisfied", 20)),
        "B": asks(edge("A", "not_satisfied", 20), edge("A", "satisfied")),
    }
    play = Play(config(sockets, {"L": loop("A", "B")}), items("a"))
    for count in range(6):
        play.go(no(f"to B {count}"), no(f"to A {count}"))
    targets = [entry.target for entry in play.state.rework_reasons]
    assert (targets.count("A"), targets.count("B")) == (5, 5)
    assert play.prompt.reasons == tuple(f"to A {n}" for n in range(1, 6))


def test_r22_reasons_without_an_item_are_dropped_when_the_target_is_left():
    play = back_and_forth().go(no("why"))
    assert play.prompt.reasons == ("why",)
    play.go("made")
    assert (play.at, play.state.rework_reasons) == ("Check", ())


def test_r22_reasons_without_an_item_are_kept_while_the_target_sends_work_back():
    sockets = {
        "Make": asks(edge("Ask", "not_satisfied"), edge("Check", "satisfied")),
        "Ask": at("P", edge("Make")),
        "Check": asks(edge("Make", "not_satisfied"), edge("end", "satisfied")),
    }
    play = Play(config(sockets), YES, no("check says no"))
    assert (play.at, play.prompt.reasons) == ("Make", ("check says no",))
    play.go(no("make asks"))
    assert play.at == "Ask"
    play.go("answer")
    assert (play.at, play.prompt.reasons) == ("Make", ("check says no",))
    play.go(YES)
    assert [entry.target for entry in play.state.rework_reasons] == []


@pytest.mark.parametrize("ending", ["exit", "implied"])
def test_r22_reasons_without_an_item_are_dropped_at_an_exit_or_the_end(ending):
    sockets = {
        "Rows": at("U", edge("Check")),
        "Check": asks(edge("Walk", "not_satisfied")),
        "Walk": at("P", edge("Walk"), foreach={"items": "rows"}, advance={}),
        "Out": at("P"),
    }
    routes = [exit_route("Walk", "always", "Out")] if ending == "exit" else []
    loops = {"L": {"sockets": ["Walk"], "exits": routes}}
    play = Play(config(sockets, loops), say(state={"rows": [1]}), no("why"))
    assert play.prompt.reasons == ("why",)
    play.go("x")
    assert (play.at, play.state.rework_reasons) == ("Out" if ending == "exit" else "complete", ())


# -- how much -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sizes, shown",
    [
        ([900, 900, 600], [900, 900, 600]),
        ([900, 900, 601], [899, 900, 601]),
        ([900, 900, 900], [600, 900, 900]),
        ([500, 900, 900, 900], [600, 900, 900]),
        ([900, 800, 800, 800], [800, 800, 800]),
        ([900, 799, 800, 800], [1, 799, 800, 800]),
    ],
)
def test_r22_oldest_reasons_are_dropped_beyond_2400_characters(sizes, shown):
    play = inside()
    reasons = [str(n) * size for n, size in enumerate(sizes)]
    for reason in reasons[:-1]:
        play.go(no(reason), "built")
    play.go(no(reasons[-1]))
    rendered = play.prompt.reasons
    assert [len(reason) for reason in rendered] == shown
    assert sum(shown) <= 2400
    kept = reasons[-len(shown) :]
    for told, whole in zip(rendered, kept, strict=True):
        assert told == whole or (told[-1] == "…" and whole.startswith(told[:-1]))
    assert rendered[1:] == tuple(kept[1:])


def test_r22_stored_reasons_are_not_shortened():
    play = inside()
    for n in range(2):
        play.go(no(str(n) * 900), "built")
    play.go(no("2" * 900))
    assert [len(entry.reason) for entry in play.state.rework_reasons] == [900, 900, 900]


@pytest.mark.parametrize("origins, kept", [((1,), []), ((0, 1), [0]), ((None, 0, 1), [0])])
def test_handoffs_about_an_item_are_moved_and_removed_together_with_the_item(origins, kept):
    cast = Folded(retry_loop()).answers(items("a", "b"), "built", say(satisfied=True, context="a is good"))
    (entry,) = [one for one in cast.state.handoffs.entries if one.item is not None]
    assert (entry.item[1], entry.text) == (0, "a is good")
    old = cast.state.data["workItems"]
    new = [{"title": "new", "context": "n"} if origin is None else dict(old[origin]) for origin in origins]
    made = edit_lists(cast.rules, cast.state, {**cast.state.data, "workItems": new}, {"workItems": ListEdit(origins)})
    assert [one.item[1] for one in made.state.handoffs.entries if one.item is not None] == kept
