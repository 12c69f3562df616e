"""Test that misreadings of the rules lead to the expected routes and explain wrong answers."""

from __future__ import annotations

from random import Random

import pytest

from materia_nb.errors import MateriaError
from materia_nb.lessons import from_route
from materia_nb.lessons.checks import Numbers, is_right
from materia_nb.lessons.misreadings import (
    CORRECT_RULES,
    MISREADINGS,
    RouteAnswer,
    ScriptedVerdicts,
    explain_misreading,
    walk,
)
from materia_nb.lessons.questions import cast_once
from materia_nb.loadout import build_graph

MAX_VISITS = 60
READINGS = {
    "route": lambda course: list(course.route),
    "visits": lambda course: course.visits["Socket-2"],
    "ends": lambda course: course.ends,
}


def edge(when, to, limit=None):
    return {"when": when, "to": to, **({} if limit is None else {"maxTraversals": limit})}


def config(sockets, loops=None):
    materia = {
        name: {"type": "agent", "tools": "none", "prompt": "{{request}}", "generator": name == "List"}
        for name in (socket["materia"] for socket in sockets.values())
    }
    loadout = {"entry": "Socket-1", "sockets": sockets, **({} if loops is None else {"loops": {"items": loops}})}
    return {"activeLoadout": "Drawn", "loadouts": {"Drawn": loadout}, "materia": materia}


def edges(chance):
    sockets = {}
    for number in range(1, 6):
        later = [f"Socket-{onward}" for onward in range(number + 1, 7)]
        first = chance.choice(("satisfied", "not_satisfied"))
        second = chance.choice(("always", "not_satisfied" if first == "satisfied" else "satisfied"))
        leaving = [edge(first, chance.choice(later)), edge(second, chance.choice([*later, "end"]))]
        sockets[f"Socket-{number}"] = {"materia": f"Ask-{number}", "parse": "json", "edges": leaving}
    return config({**sockets, "Socket-6": {"materia": "Tell"}}), []


def rework(chance):
    back = edge("not_satisfied", "Socket-1", chance.randint(1, 4))
    sockets = {
        "Socket-1": {"materia": "Draft", "edges": [edge("always", "Socket-2")]},
        "Socket-2": {"materia": "Ask", "parse": "json", "edges": [back, edge("always", "Socket-3")]},
        "Socket-3": {"materia": "Send"},
    }
    return config(sockets), []


def loop(chance):
    exits = chance.choice((["satisfied"], ["always"], ["satisfied", "not_satisfied"], ["satisfied", "always"]))
    back = edge("not_satisfied", "Socket-2", chance.choice((None, 1, 2)))
    check = {"materia": "Ask", "parse": "json", "edges": [back, edge("satisfied", "Socket-2")]}
    if len(exits) == 2:
        check["advance"] = {"when": "always"}
    sockets = {
        "Socket-1": {"materia": "List", "edges": [edge("always", "Socket-2")]},
        "Socket-2": {"materia": "Do", "edges": [edge("always", "Socket-3")]},
        "Socket-3": check,
        **{f"Socket-{4 + place}": {"materia": f"Tell-{place}"} for place in range(len(exits))},
    }
    routes = [
        {"id": when, "from": "Socket-3", "condition": when, "targetSocketId": f"Socket-{4 + place}"}
        for place, when in enumerate(exits)
    ]
    region = {
        "sockets": ["Socket-2", "Socket-3"],
        "consumes": {"from": "Socket-1", "output": "workItems"},
        "exits": routes,
    }
    return config(sockets, region), ["Ants", "Bees", "Cats", "Dogs"][: chance.choice((0, 2, 3, 4))]


drawings = pytest.mark.parametrize("draw", [edges, rework, loop])


def drawn(draw, number):
    """Draw a loadout, the answers of its agents, and the correct answers to three questions about its cast."""
    chance = Random(number)
    document, items = draw(chance)
    graph = build_graph(document)
    verdicts, agents = {}, {}
    for id_, socket in graph.sockets.items():
        name = socket.materia.id
        agents[name] = ["Done."] * MAX_VISITS
        if name.startswith("Ask"):
            random_verdicts = [chance.random() < 0.5 for _ in range(chance.randint(1, 6))]
            verdicts[id_] = [*random_verdicts, *[True] * (MAX_VISITS - len(random_verdicts))]
            agents[name] = [{"satisfied": verdict, "context": "As said."} for verdict in verdicts[id_]]
    agents["List"] = {"workItems": [{"title": title, "context": "An item."} for title in items]}
    script = ScriptedVerdicts(items, verdicts)
    return document, agents, {name: RouteAnswer(graph, script, read) for name, read in READINGS.items()}


@drawings
def test_correct_rules_predict_the_route_of_a_cast(draw):
    for number in range(25):
        document, agents, answers = drawn(draw, number)
        with cast_once(document, "a walk", agents) as (cast, ends):
            course = walk(answers["route"].graph, answers["route"].script, CORRECT_RULES)
            assert list(course.steps) == [(step.socket, step.item_label or None) for step in cast.steps]
            assert course.ends == ends
            assert from_route(cast, lambda course: list(course.route)).truth == list(course.route)


@drawings
def test_wrong_answer_is_traced_to_the_misreading_behind_it(draw):
    for number in range(80):
        _, _, rows = drawn(draw, number)
        for rules in MISREADINGS.values():
            answers = {name: answer.answer_for(rules) for name, answer in rows.items()}
            if all(answers[name] == answer.truth for name, answer in rows.items()):
                continue
            (line,) = explain_misreading([(answers[name], answer) for name, answer in rows.items()], is_right)
            named = next(other for other in MISREADINGS.values() if other.belief in line)
            assert {name: answer.answer_for(named) for name, answer in rows.items()} == answers


@drawings
def test_most_misreadings_change_an_answer_for_some_random_loadout(draw):
    changing = set()
    for number in range(60):
        for answer in drawn(draw, number)[2].values():
            changing |= {name for name, rules in MISREADINGS.items() if answer.answer_for(rules) != answer.truth}
    expected = {
        edges: {"last-match"},
        rework: {"one-less", "one-more", "falls-through", "used-up-ends"},
        loop: {"early-exit", "refusal-leaves", "always-advances", "satisfied-advances", "limit-per-cast"}
        | {"empty-enters", "empty-fails"},
    }
    assert expected[draw] <= changing


def test_diagnosis_names_misreading_and_step():
    wrong_rules = MISREADINGS["last-match"]
    rows = [drawn(edges, number)[2]["route"] for number in range(20)]
    answer = next(row for row in rows if row.answer_for(wrong_rules) != row.truth)
    wrong = answer.answer_for(wrong_rules)
    with pytest.raises(MateriaError) as raised:
        Numbers("01-edges", "", {}).check(whole_route=(wrong, answer))
    step = next(number for number, pair in enumerate(zip(answer.truth, wrong, strict=False)) if pair[0] != pair[1])
    assert (
        f"Your answer would be right if the last matching edge were taken. Look at step {step}, "
        "where the rules lead to another target." in raised.value.what.splitlines()[-1]
    )


def test_answer_without_a_known_misreading_gets_only_the_hint():
    answer = drawn(rework, 1)[2]["visits"]
    with pytest.raises(MateriaError) as raised:
        Numbers("04-rework", "", {}).check(drafts_before_the_stop=(77, answer))
    assert "Count the first draft" in raised.value.what
    assert "would be right if" not in raised.value.what
