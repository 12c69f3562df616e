"""Test composed loadouts, which run their parts in sequence and change a part only at its ends."""

from __future__ import annotations

import json
import random
import re

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from builders import NO, YES, Play, agent, asks, at, config, edge, exit_route, items, loop, say
from drawn_loadouts import answer, loadouts, rules_of
from materia_nb.engine import entering, outputs
from materia_nb.engine.rules import Rules
from materia_nb.errors import MateriaError
from materia_nb.loadout import LoadoutError, build_graph, check_config, load_layers
from materia_nb.loadout.compose import compose, find_part

BUNDLED = load_layers(project="/nonexistent", env={"MATERIA_PROFILE_DIR": "/nonexistent"})


def combined(one, other):
    """Return one config with the loadouts of two configs from :func:`builders.config`, named A and B."""
    top = {key: value for key, value in one.items() if key not in ("loadouts", "materia")}
    return {
        **top,
        "loadouts": {"A": one["loadouts"]["T"], "B": other["loadouts"]["T"]},
        "materia": one["materia"] | other["materia"],
    }


def linked(document, *names):
    composition = compose(document, names or ("A", "B"))
    report = check_config(composition.document, composition.name)
    assert report.ok, str(report)
    return composition


def loadout(made):
    return made.document["loadouts"][made.name]


# -- which parts ----------------------------------------------------------------------------


@pytest.mark.parametrize("first", BUNDLED.loadout_names)
def test_any_two_bundled_loadouts_can_be_composed(first):
    for second in BUNDLED.loadout_names:
        composition = compose(BUNDLED.document, [first, second], BUNDLED.folders)
        report = check_config(composition.document, composition.name)
        assert report.ok, str(report)
        graph = build_graph(composition.document, composition.name, BUNDLED.folders)
        alone = [build_graph(BUNDLED.document, name) for name in (first, second)]
        assert list(graph.sockets) == [f"Socket-{n}" for n in range(1, sum(len(one.sockets) for one in alone) + 1)]
        assert len(graph.loops) == sum(len(one.loops) for one in alone)


PARALLEL = {name for name, one in BUNDLED.document["materia"].items() if one.get("parallel")}


@pytest.mark.parametrize("name", sorted(PARALLEL))
def test_parallel_generator_cannot_be_composed_without_its_loop(name):
    with pytest.raises(MateriaError, match="no loop consumes its items"):
        compose(BUNDLED.document, [name, "Full-Auto"])


@pytest.mark.parametrize("name", sorted(set(BUNDLED.document["materia"]) - PARALLEL))
def test_every_bundled_materia_can_be_part_of_a_composition(name):
    composition = compose(BUNDLED.document, [name, "Full-Auto", name])
    assert check_config(composition.document, composition.name).ok
    assert composition.sockets[0] == {"Socket-1": "Socket-1"}
    assert composition.sockets[2] == {"Socket-1": "Socket-9"}


def test_ambiguous_name_is_refused_with_the_choices():
    document = config({"Socket-1": at("T")}) | {}
    document["materia"]["Same"] = agent()
    document["loadouts"]["Same"] = {"entry": "X", "sockets": {"X": at("U")}}
    with pytest.raises(MateriaError) as caught:
        compose(document, ["Same"])
    assert caught.value.kind == "ambiguous_part"
    assert "loadout:Same" in caught.value.hint
    assert "materia:Same" in caught.value.hint
    assert find_part(document, "loadout:Same")[1]["entry"] == "X"
    assert find_part(document, "materia:Same")[1]["sockets"] == {"Socket-1": {"materia": "Same"}}


@pytest.mark.parametrize("name, near", [("Plam", "P"), ("materia:Q", "P"), ("loadout:P", "T"), ("", "")])
def test_unknown_part_of_a_composition_raises_one_clear_error(name, near):
    with pytest.raises(MateriaError) as caught:
        compose(config({"Socket-1": at("P")}), [name])
    assert caught.value.kind == "unknown_part"
    assert near in caught.value.hint


def test_empty_composition_and_invalid_parts_raise_errors():
    with pytest.raises(MateriaError, match="No loadout or materia was named"):
        compose(config({"Socket-1": at("P")}), [])
    faulty = combined(config({"X": at("P")}), config({"Y": at("Nobody")}))
    with pytest.raises(LoadoutError, match="B"):
        compose(faulty, ["A", "B"])


def test_composition_does_not_change_the_config():
    before = json.dumps(BUNDLED.document)
    compose(BUNDLED.document, ["Teach-Exits", "Blackbelt", "Release"])
    assert json.dumps(BUNDLED.document) == before


# -- where the parts end --------------------------------------------------------------------


def ends(play):
    return play.at, play.sockets


def test_next_part_begins_wherever_the_previous_part_would_end():
    one = config({"X": asks(edge("end", "satisfied"), materia="P"), "Z": at("T")})
    linked_config = linked(combined(one, config({"Y": at("P")})))
    for said in (YES, NO):
        assert Play(linked_config.document, said).at == "Socket-3"
    assert loadout(linked_config)["sockets"]["Socket-2"]["edges"] == [edge("Socket-3")]


def test_composed_utility_with_a_guarded_edge_must_still_return_a_verdict():
    """An ``always`` edge would remove this requirement (R7), so composition adds an edge with the opposite guard."""
    one = config({"X": at("U", edge("end", "satisfied"))})
    linked_config = linked(combined(one, config({"Y": at("P")})))
    assert Play(linked_config.document, NO).at == "Socket-2"
    assert Play(linked_config.document, "{}").failure == "invalid_output"


def test_composed_utility_whose_only_edge_handles_failures_needs_no_verdict():
    one = config({"X": at("U", edge("X", "failed"))})
    linked_config = linked(combined(one, config({"Y": at("P")})))
    assert loadout(linked_config)["sockets"]["Socket-1"]["edges"] == [edge("Socket-1", "failed"), edge("Socket-2")]
    assert Play(linked_config.document, "{}").at == "Socket-2"


def retries(exits):
    return config(
        {
            "Plan": asks(edge("Build"), materia="G"),
            "Build": asks(edge("Build", "not_satisfied", 2), edge("Build", "satisfied")),
            "Tell": at("P"),
        },
        {"L": loop("Build", exits=exits)},
    )


@pytest.mark.parametrize("said", [YES, NO, "no guard"])
def test_r16_next_part_begins_after_an_exhausted_list_without_a_matching_exit(said):
    parsed = "text" if said == "no guard" else "json"
    one = config(
        {
            "Plan": asks(edge("Build"), materia="G"),
            "Build": at("P", edge("Build"), parse=parsed, advance={"when": "always"}),
            "Tell": at("P"),
        },
        {"L": loop("Build", exits=[exit_route("Build", "satisfied", "Tell")])},
    )
    linked_config = linked(combined(one, config({"Y": at("P")})))
    play = Play(linked_config.document, items("a"), said)
    assert play.at == ("Socket-3" if said == YES else "Socket-4")


def test_r16_next_part_begins_after_an_empty_list_and_the_loop_still_advances():
    exits = [exit_route("Build", "satisfied", "Tell")]
    linked_config = linked(combined(retries(exits), config({"Y": at("P")})))
    assert ends(Play(linked_config.document, items())) == ("Socket-4", ["Socket-1", "Socket-4"])
    played = Play(linked_config.document, items("a", "b"), NO, YES, YES, "told")
    assert played.sockets == ["Socket-1", *["Socket-2"] * 3, "Socket-3", "Socket-4"]


def test_composition_continues_after_an_empty_or_exhausted_foreach():
    one = config({"X": at("U", edge("X"), foreach={"items": "state.rows"}, advance={})}, entry="X")
    one["loadouts"]["T"]["sockets"]["Seed"] = at("U", edge("X"))
    one["loadouts"]["T"]["entry"] = "Seed"
    linked_config = linked(combined(one, config({"Y": at("P")})))
    assert Play(linked_config.document, say(state={"rows": []})).sockets == ["Socket-2", "Socket-3"]
    rows = Play(linked_config.document, say(state={"rows": [1, 2]}), "{}", "{}")
    assert rows.sockets == ["Socket-2", "Socket-1", "Socket-1", "Socket-3"]


def test_composition_continues_after_a_legacy_exit():
    one = config(
        {"Plan": asks(edge("Build"), materia="G"), "Build": asks(edge("Build"))},
        {"L": loop("Build", exit={"from": "Build", "when": "satisfied", "to": "end"})},
    )
    linked_config = linked(combined(one, config({"Y": at("P")})))
    assert Play(linked_config.document, items("a"), YES).at == "Socket-3"
    assert Play(linked_config.document, items("a"), NO).at == "Socket-2"


def test_loop_with_an_unclear_end_cannot_be_composed():
    one = config(
        {"Plan": asks(edge("Build"), materia="G"), "Build": asks(edge("Build", "satisfied"), edge("end"))},
        {"L": loop("Build")},
    )
    with pytest.raises(MateriaError) as caught:
        compose(combined(one, config({"Y": at("P")})), ["A", "B"])
    assert (caught.value.kind, caught.value.where) == ("no_way_on", "loops.L")
    assert check_config(compose(combined(one, one), ["A"]).document).ok


def test_cycle_of_exits_between_empty_loops_is_refused():
    """A cast ends when it meets the same empty list for the second time in a row (R16)."""
    one = retries([exit_route("Build", "always", "Build")])
    with pytest.raises(MateriaError, match="the exits that empty lists take form a cycle"):
        compose(combined(one, config({"Y": at("P")})), ["A", "B"])
    linked(combined(config({"Y": at("P")}), one))


# -- what is kept apart, and what is shared -------------------------------------------------


def test_renamed_cursors_are_renamed_in_prompts_too():
    counted = config(
        {
            "Plan": asks(edge("Do"), materia="G"),
            "Do": at("C", edge("Do")),
        },
        {"L": loop("Do", exits=[exit_route("Do", "always", "end")])},
        materia={"C": agent("at {{cursor.workItemIndex}}")},
    )
    linked_config = linked(combined(counted, counted))
    play = Play(linked_config.document, items("a", "b"), "1", "2", items("c", "d"), "3")
    assert play.state.cursors == {"workItemIndex": 2, "workItemIndex-2": 1}
    assert linked_config.copies == {"C-2": "C"}
    assert play.prompt.instruction == "at 1"


def test_composition_copies_a_materia_once_for_each_cursor():
    counted = config(
        {"Plan": asks(edge("Do"), materia="G"), "Do": at("C", edge("Then")), "Then": at("C", edge("Do"))},
        {"L": loop("Do", "Then", exits=[exit_route("Then", "always", "end")])},
        materia={"C": agent("at {{cursor.workItemIndex}}")},
    )
    linked_config = linked(combined(counted, counted))
    assert linked_config.copies == {"C-2": "C"}
    placed = [socket["materia"] for socket in loadout(linked_config)["sockets"].values()]
    assert [placed.count(name) for name in ("C", "C-2")] == [2, 2]
    third = compose(combined(counted, counted), ["A", "B", "A"])
    assert third.copies == {"C-2": "C", "C-3": "C"}


def test_parts_of_a_composition_do_not_share_a_cursor():
    """The parts share the state, so a cursor that the first part leaves at the end would hide rows from the second."""
    rows = config({"X": at("U", edge("X"), foreach={"items": "state.rows", "cursor": "at"}, advance={})}, entry="X")
    seed = config({"Seed": at("U", edge("end"))})
    document = combined(seed, rows)
    linked_config = linked(document, "A", "B", "B")
    play = Play(linked_config.document, say(state={"rows": [1, 2]}), "{}", "{}", "{}", "{}")
    assert play.sockets == ["Socket-1", "Socket-2", "Socket-2", "Socket-3", "Socket-3"]


def test_composition_keeps_the_handoff_default_of_each_loadout():
    one, other = config({"X": asks()}), config({"Y": asks(), "Z": asks(handoff="sparse")})
    other["loadouts"]["T"]["handoff"] = "envelope"
    graph = build_graph(linked(combined(one, other)).document)
    assert [socket.handoff for socket in graph.sockets.values()] == ["sparse", "envelope", "sparse"]


def test_composition_keeps_the_separate_handoffs_of_a_loadout():
    one, other = config({"X": asks()}), config({"Y": at("P"), "Z": at("P", parse="text"), "V": at("U")})
    other["loadouts"]["T"]["finalize"] = True
    graph = build_graph(linked(combined(one, other)).document)
    before = build_graph(other, "T")
    assert [socket.finalize for socket in graph.sockets.values()] == [False, True, False, False]
    assert [socket.parse for socket in graph.sockets.values()][1:] == [s.parse for s in before.sockets.values()]


def test_composition_keeps_the_cast_context_of_each_loadout():
    one, other = config({"X": at("P")}), config({"Y": at("P"), "Z": at("P", castContext="full")})
    other["loadouts"]["T"]["castContext"] = "request"
    graph = build_graph(linked(combined(one, other)).document)
    told = [(socket.cast_context.request, socket.cast_context.state) for socket in graph.sockets.values()]
    assert told == [(True, True), (True, False), (True, True)]


def test_second_part_starts_with_the_state_of_the_first():
    linked_config = linked(
        combined(config({"X": at("U")}), config({"Y": at("R")}, materia={"R": agent("{{state.found}}")}))
    )
    assert Play(linked_config.document, say(state={"found": "gold"})).prompt.instruction == "gold"


def test_composed_utility_with_a_guarded_advance_must_return_a_verdict_r7():
    rows = config({"X": at("U", foreach={"items": "state.rows"}, advance={"when": "not_satisfied"})})
    seed = config({"Seed": at("U", edge("end"))})
    linked_config = linked(combined(seed, rows), "A", "B", "A")
    play = Play(linked_config.document, say(state={"rows": [1]}), "{}")
    assert play.state.failure.kind == "invalid_output"


# -- whatever the loadouts ------------------------------------------------------------------


def say_for(seed, part, here, visit):
    rng = random.Random(f"{seed} {part} {here.socket.id} {visit.visit} {visit.turn}")
    value = answer(rng, here)
    try:
        found = json.loads(value)
    except ValueError:
        return value
    if isinstance(found, dict):
        found.pop("context", None)  # it is kept with the id of its socket
        return json.dumps(found)
    return value


def run_with_random_outputs(rules, seed, parts, data=None):
    """Run a cast with random outputs and return its route and final state.

    ``parts`` returns the part and the rules of a socket.
    """
    state, route, prompt = entering.begin(rules, "r", None, data), [], None
    while state.status in ("ready", "waiting"):
        if state.status == "ready":
            step = entering.enter(rules, state)
            if visit := step.state.at if step.state.status == "waiting" else None:
                part, here = parts(visit.socket)
                route.append((part, here.socket.id, visit.item.position if visit.item else None))
        elif state.at.mode == "draft" and state.at.drafts:
            step = outputs.finalize(rules, state, prompt)
        else:
            part, here = parts(state.at.socket)
            step = outputs.output(rules, state, say_for(seed, part, here, state.at), None, prompt)
        state, prompt = step.state, step.prompt or prompt
    return route, state


def composed(one, other):
    """Return the composition of two configs; discard the Hypothesis example if they cannot be composed."""
    try:
        return compose(combined(one, other), ["A", "B"])
    except MateriaError as error:
        event(f"refused: {error.kind}")
        if error.kind != "no_way_on" and error.where is not None:
            raise
        assume(False)


@settings(max_examples=30)
@given(loadouts(), loadouts(), st.integers(0, 2**32))
def test_composition_visits_the_sockets_of_its_parts(one, other, seed):
    one = {**one, "budget": {}}
    alone = [rules_of(one), rules_of({**other, "limits": one["limits"], "budget": {}})]
    made = composed(one, other)
    whole = Rules(build_graph(made.document))
    back = {new: (n, alone[n].sockets[old]) for n, ids in enumerate(made.sockets) for old, new in ids.items()}
    names = {new: old for ids in made.sockets for old, new in ids.items()}
    labels = {f"{here.socket.id} {here.socket.materia.label}": here.socket.materia.label for _, here in back.values()}
    for lap in range(3):
        lap_seed = f"{seed} {lap}"
        first, state = run_with_random_outputs(alone[0], lap_seed, lambda id_: (0, alone[0].sockets[id_]))
        event(f"the first part: {state.failure.kind if state.failure else state.status}")
        second = []
        if state.status == "complete":
            second, state = run_with_random_outputs(
                alone[1], lap_seed, lambda id_: (1, alone[1].sockets[id_]), state.data
            )
        route, end = run_with_random_outputs(whole, lap_seed, back.__getitem__)
        assert route == [*first, *second]
        assert (end.status, end.failure and end.failure.kind) == (
            state.status,
            state.failure and state.failure.kind,
        )
        # What a failed visit leaves in the context names its socket, and may be handed on from there. The name contains
        # the id if another socket has the same materia, which may be a socket of the other part.
        left = re.sub(r"[\w-]+", lambda word: names.get(word[0], word[0]), json.dumps(end.data))
        right = json.dumps(state.data)
        for name, label in labels.items():
            left, right = left.replace(name, label), right.replace(name, label)
        assert json.loads(left) == json.loads(right)


@pytest.mark.parametrize("text", ["{{cursor." * 100_000, "{{cursor.x" + " " * 1_000_000, "{" * 1_000_000])
def test_prompts_with_many_braces_are_composed_quickly(text):
    document = {
        **BUNDLED.document,
        "materia": {**BUNDLED.document["materia"], "Odd": {"prompt": text, "tools": "none"}},
    }
    assert compose(document, ["Odd", "Ask"]).document["materia"]["Odd"]["prompt"] == text
