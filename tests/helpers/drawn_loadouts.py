"""Provide Hypothesis strategies for loadouts and for the answers of their sockets."""

from __future__ import annotations

import json

from hypothesis import assume
from hypothesis import strategies as st

from builders import asks, at, config, edge, exit_route, utility
from materia_nb.engine.rules import Rules
from materia_nb.loadout import LoadoutError, build_graph
from materia_nb.loadout.vocabulary import CONDITIONS, DEFAULT_HANDOFF, OUTPUT_CONDITIONS, OWN_PROTOCOLS, condition_spec

ROWS = 3
"""Maximum length of a list in an answer."""

GUARDED = [condition for condition in CONDITIONS if not condition_spec(condition).matches_any_output]
"""Conditions that do not match every output."""
most = st.none() | st.integers(1, 3)


@st.composite
def edges(draw, targets):
    """Draw edges in a valid order, in which no edge follows an ``always`` edge."""
    whens = draw(st.lists(st.sampled_from(GUARDED), max_size=3))
    whens += draw(st.sampled_from([["always"], ["always"], []]))
    return [edge(draw(st.sampled_from(targets)), when, draw(most)) for when in whens]


@st.composite
def loadouts(draw):
    """Draw a loadout with a plan, a loop with random edges and exits, sockets outside the loop, and a foreach."""
    members = [f"In{n}" for n in range(draw(st.integers(1, 3)))]
    outside = [f"Out{n}" for n in range(draw(st.integers(1, 3)))]
    everywhere = [*members, "Plan", *outside, *members, *outside, "end"]
    sockets = {"Plan": at("UG" if draw(st.booleans()) else "G", edge(members[0], most=draw(most)), parse="json")}
    for name, following in zip(members, [*members[1:], members[0]], strict=True):
        extra = [e for e in draw(edges([*members, *outside])) if e["when"] != "always"]
        sockets[name] = asks(*extra, edge(following, most=draw(most)), materia=draw(st.sampled_from("PPUM")))
    for name in outside:
        materia = draw(st.sampled_from(["P", "P", "U", "T", "M"]))
        sockets[name] = at(materia, *draw(edges(everywhere)), parse=draw(st.sampled_from(["json", "text"])))
        if draw(st.booleans()):
            sockets[name]["assign"] = draw(
                st.dictionaries(
                    st.sampled_from(["a", "a.b", "rows"]),
                    st.sampled_from(["state", "item", "$", "lastOutput"]),
                )
            )
    if draw(st.booleans()):
        name = draw(st.sampled_from(outside))
        sockets[name]["foreach"] = {
            "items": "state.rows",
            "as": draw(st.sampled_from(["item", "a.row", "workItem"])),
        }
        if draw(st.booleans()):
            sockets[name]["advance"] = {"when": draw(st.sampled_from(OUTPUT_CONDITIONS))}
    routes = draw(
        st.lists(
            st.tuples(st.sampled_from(members), st.sampled_from(OUTPUT_CONDITIONS)),
            unique=True,
            min_size=draw(st.sampled_from([1, 1, 0])),
            max_size=3,
        )
    )
    exits = [exit_route(source, when, draw(st.sampled_from(everywhere))) for source, when in routes]
    loops = {"L": {"sockets": members, "consumes": {"from": "Plan"}, "exits": exits}}
    limits = {
        "maxEdgeTraversals": draw(st.sampled_from([5, 1, 2, 3, 8])),
        "maxNoAdvanceCycles": draw(st.integers(1, 3)),
        "repairAttempts": draw(st.integers(0, 2)),
    }
    budget = {"maxTokens": draw(st.integers(0, 200))} if draw(st.integers(0, 9)) == 7 else {}
    entry = draw(st.sampled_from(["Plan", "Plan", "Plan", outside[0]]))
    return config(sockets, loops, entry=entry, materia={"U": utility()}, limits=limits, budget=budget)


protocols = st.sampled_from([DEFAULT_HANDOFF, *OWN_PROTOCOLS])


def spoken(document, name):
    """Return a copy of the loadout in which the agents use another protocol."""
    document["loadouts"]["T"]["handoff"] = name
    return document


def rules_of(document):
    try:
        return Rules(build_graph(document))
    except LoadoutError:
        assume(False)


def answer(rng, here):
    """Return a random answer for a socket, which is usually valid."""
    if rng.random() < 0.03:
        return rng.choice(["", "no", "{", '{"a": {"satisfied": true}', "[]", '{"satisfied": 1}', '{"odd": 1}'])
    value = {}
    if here.requirements.why_satisfied or rng.random() < 0.5:
        value["satisfied"] = rng.random() < 0.5
    if rng.random() < 0.3:
        value["context"] = rng.choice(["why", "x" * 950, " "])
    if here.requirements.work_items or rng.random() < 0.05:
        value["workItems"] = [{"title": f"t{n}", "context": "c"} for n in range(rng.choice([0, 1, 2, ROWS, ROWS]))]
    if here.socket.is_utility and rng.random() < 0.4:
        value["state"] = {"rows": [None] * rng.choice([0, 1, ROWS]), "a": rng.choice([1, [], {"b": 2}])}
    return json.dumps(value)
