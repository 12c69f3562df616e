"""Test the rules for all handoff protocols: malformed text, registration, and casts that use a protocol."""

from __future__ import annotations

import json
import re
import sys
from importlib import metadata

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cast_helpers as h
from materia_nb.cast import open_cast, resume_cast
from materia_nb.cast.views.step_views import HandoffView
from materia_nb.display.blocks import blocks_as_text
from materia_nb.errors import MateriaError
from materia_nb.handoff import Reading, TurnFacts, protocol, protocol_names, runtime_rules
from materia_nb.handoff.base import HandoffProtocol, Section
from materia_nb.handoff.jsontext import MAX_DEPTH
from materia_nb.insight.explore import Exploration
from materia_nb.loadout.vocabulary import ENTRY_POINT_GROUP, OWN_PROTOCOLS
from materia_nb.widgets.selection import Inspector
from protocol_helpers import (
    CONTRACT,
    ENVELOPE,
    NASTY_UNITS,
    NO_REQUIREMENTS,
    OTHER_PROTOCOLS,
    block,
    contract,
    envelope,
)

OURS = list(OWN_PROTOCOLS)
MEGABYTE = 1_000_000

# -- nasty text ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", OURS)
@given(text=st.text(alphabet='{}[]"\\`:,a1 \n', max_size=120) | st.text(max_size=60))
def test_parsing_any_text_never_raises(name, text):
    reading = protocol(name).read(text, NO_REQUIREMENTS, TurnFacts())
    assert reading.accepted or reading.issues


valid = st.sampled_from([json.dumps(ENVELOPE), block(CONTRACT), '{"satisfied": true}'])


@pytest.mark.parametrize("name", OURS)
@given(text=valid, cut=st.integers(0, 900), put=st.text(alphabet='{}[]"\\`:,1', max_size=4))
def test_parsing_a_damaged_output_never_raises(name, text, cut, put):
    reading = protocol(name).read(text[:cut] + put + text[cut + 1 :], NO_REQUIREMENTS, facts=TurnFacts())
    assert reading.accepted or reading.issues


@pytest.mark.parametrize("unit", NASTY_UNITS, ids=ascii)
@pytest.mark.parametrize("name", OTHER_PROTOCOLS)
def test_any_one_megabyte_text_is_parsed(name, unit):
    """A parser that takes quadratic time would need hours for some of these texts and exceed the time limit."""
    many = unit * (MEGABYTE // len(unit))
    for text in (
        many,
        "```agent_contract_handoff\n" + many,
        "```json\n" + many,
        '{"status": "' + many,
        many + "}",
    ):
        reading = protocol(name).read(text, NO_REQUIREMENTS, TurnFacts())
        assert not reading.accepted


@pytest.mark.parametrize("name, text", [("envelope", json.dumps(ENVELOPE)), ("agent-contract", block(CONTRACT))])
def test_valid_output_after_a_megabyte_of_prose_is_found(name, text):
    assert protocol(name).read("lorem ipsum " * (MEGABYTE // 12) + text, NO_REQUIREMENTS).accepted


@pytest.mark.parametrize("name", OURS)
def test_parsing_a_text_twice_gives_equal_results(name):
    for text in (json.dumps(ENVELOPE), block(CONTRACT), "no"):
        assert protocol(name).read(text, NO_REQUIREMENTS) == protocol(name).read(text, NO_REQUIREMENTS)


@pytest.mark.parametrize("name, value", [("envelope", ENVELOPE), ("agent-contract", CONTRACT)])
def test_most_deeply_nested_value_can_be_processed_on_a_deep_stack(name, value):
    leaf = "1e400]" + "]" * (MAX_DEPTH - 3)
    text = json.dumps(value)[:-1] + ', "update_contracts": [' + "[" * (MAX_DEPTH - 3) + leaf + "}"

    def walk(frames):
        if frames:
            return walk(frames - 1)
        reading = protocol(name).read(block(text), NO_REQUIREMENTS)
        assert reading.accepted, reading.issues
        merged = runtime_rules.merged_context({"a": reading.value}, {"a": reading.value})
        assert merged["a"].keys() == reading.value.keys()
        return reading

    assert walk(300).satisfied is True


# -- the registry -------------------------------------------------------------------------


class Shout(HandoffProtocol):
    """A protocol of another package whose output is one word, in capitals if the work is done."""

    name = "shout"

    def read(self, text, wanted, facts=None):
        return Reading({"word": text}, satisfied=text.isupper())

    def ask(self, wanted):
        return "Answer with one word."


class Nameless(Shout):
    name = "other"


ready = Shout()
nothing = object()


class Explosive:
    def __init__(self):
        raise ValueError("boom")


@pytest.fixture
def offer(monkeypatch):
    """Return a function that registers protocols of other packages; the registry is reset after the test."""
    monkeypatch.setitem(sys.modules, "shouting", sys.modules[__name__])

    def install(*offers):
        entries = metadata.EntryPoints(metadata.EntryPoint(name, value, ENTRY_POINT_GROUP) for name, value in offers)
        for module in ("handoff", "loadout.vocabulary"):
            monkeypatch.setattr(sys.modules[f"materia_nb.{module}"], "entry_points", entries.select)

    protocol.cache_clear()
    yield install
    protocol.cache_clear()


@pytest.mark.parametrize("value", ["shouting:Shout", "shouting:ready"])
def test_another_package_can_register_a_protocol_class_or_object(offer, value):
    offer(("shout", value))
    assert protocol_names() == [*OURS, "shout"]
    assert protocol("shout").read("YES", NO_REQUIREMENTS).satisfied is True
    assert protocol("shout") is protocol("shout")


class Thorough(Shout):
    """A protocol that implements every optional method."""

    needs_changed_files = True

    def read(self, text, wanted, facts=None):
        return Reading({"word": text, "changed": list((facts or TurnFacts()).changed_files)}, satisfied=True)

    def artifacts(self, value):
        return [f"{value['word']}.txt"]

    def file_content(self, value, meta):
        return {"word": value["word"], "step": meta["step_id"]}

    def suggestions(self, value):
        return [("note", {"text": value["word"]})]

    def conclusion(self, reports):
        return [f"{who} said {value['word']}" for who, value in reports]

    def layout(self, value, find):
        return [Section("shouted", rows=(("word", value["word"]),))]

    def status_sections(self, readings):
        return [Section("way", lines=tuple(reading.value["word"] for reading in readings))]

    def sample_outputs(self, outcome, count):
        yield {"word": "DONE" if outcome == "done" else "not done"}

    def sample_stops(self):
        return iter(())

    def write(self, value):
        return value["word"]


class Quick(Shout):
    needs_facts = False

    def read(self, text, wanted, facts=None):
        return Reading({"given": bool(facts and facts.meta)}, satisfied=True)


class WellInformed(Quick):
    needs_facts = True


def shouting(offer, tmp_path, value, agent):
    offer(("shout", value))
    cast = h.start(tmp_path, h.one_config(parse="json", handoff="shout"), agent)
    cast.run()
    return cast


def test_optional_methods_of_a_registered_protocol_are_used(offer, tmp_path):
    cast = shouting(offer, tmp_path, "shouting:Thorough", lambda: (tmp_path / "made").write_text("1") and "YES")
    assert cast.now.engine.last_json == {"word": "YES", "changed": ["made"]}
    assert cast.steps[-1].missing == ("YES.txt",)
    kept = cast.run_dir / "T" / "handoffs" / "Socket_1-M.json"
    assert json.loads(kept.read_text()) == {"word": "YES", "step": "Socket-1"}
    assert [suggestion.fields for suggestion in cast.now.suggestions] == [{"text": "YES"}]
    assert cast.now.conclusion == ["M said YES"]


def test_registered_protocol_controls_its_own_display_and_exploration(offer, tmp_path):
    cast = shouting(offer, tmp_path, "shouting:Thorough", lambda: "<b>YES</b>")
    bundle = HandoffView(cast.now, cast.steps[-1])._repr_mimebundle_()
    assert re.search(r"shouted\n +word +<b>YES</b>", bundle["text/plain"])
    assert "&lt;b&gt;YES" in bundle["text/html"]
    assert "<b>YES" not in bundle["text/html"]
    assert Exploration(cast.graph, range(2)).certain
    offer(("shout", "shouting:Quick"))
    protocol.cache_clear()
    assert not Exploration(cast.graph, range(2)).certain, (
        "as this one makes no answers, it is explored as if it were sparse"
    )


@pytest.mark.parametrize("value, given", [("shouting:Quick", False), ("shouting:WellInformed", True)])
def test_turn_facts_are_collected_only_if_a_protocol_needs_them(offer, tmp_path, value, given):
    assert shouting(offer, tmp_path, value, lambda: "x").now.engine.last_json == {"given": given}


@pytest.mark.parametrize(
    "value, told",
    [
        ("no_such_module:X", "ModuleNotFoundError"),
        ("shouting:Missing", "AttributeError"),
        ("shouting:Explosive", "ValueError: boom"),
        ("shouting:nothing", "not a materia_nb.handoff.HandoffProtocol"),
        ("shouting:Nameless", "its name is 'other'"),
        ("not a place", "cannot be loaded"),
    ],
)
def test_broken_protocol_is_reported_with_its_entry_point(offer, value, told):
    offer(("shout", value))
    assert "shout" in protocol_names()
    with pytest.raises(MateriaError, match="not usable") as error:
        protocol("shout")
    assert (error.value.kind, error.value.where) == ("broken_protocol", value)
    assert told in error.value.what
    assert protocol("sparse").name == "sparse"


def test_protocol_name_registered_by_several_packages_is_refused(offer):
    offer(("shout", "shouting:Shout"), ("shout", "shouting:ready"), ("sparse", "shouting:Shout"))
    with pytest.raises(MateriaError, match="several packages"):
        protocol("shout")
    assert type(protocol("sparse")).__name__ == "SparseProtocol"
    assert protocol_names() == [*OURS, "shout"]


def test_unknown_protocol_name_error_suggests_the_nearest_name(offer):
    offer(("shout", "shouting:Shout"))
    with pytest.raises(MateriaError, match="handoff protocol 'shuot' does not exist") as error:
        protocol("shuot")
    assert error.value.hint == "did you mean 'shout'?"


@pytest.mark.parametrize("name", OURS)
def test_every_protocol_has_its_registered_name(name):
    assert protocol(name).name == name


# -- a cast -------------------------------------------------------------------------------

REVIEWED = h.config(
    {
        "Socket-1": h.at("Plan", ("always", "Socket-2"), parse="json"),
        "Socket-2": h.at("Build", ("always", "Socket-3")),
        "Socket-3": h.at("Review", ("satisfied", "Socket-2"), ("not_satisfied", "Socket-2"), parse="json"),
    },
    {"Plan": h.agent(generator=True), "Build": h.agent("Build {{item.title}}"), "Review": h.agent()},
    {
        "L": {
            "sockets": ["Socket-2", "Socket-3"],
            "consumes": {"from": "Socket-1", "output": "workItems"},
            "exits": [{"id": "e", "from": "Socket-3", "condition": "satisfied", "targetSocketId": "end"}],
        }
    },
)

LOOP = {
    "status": "UNVERIFIED",
    "routing__recommendation": "LOOP",
    "routing__can_further_iteration_help": True,
}
AGAIN = {"agent_status__plan_status": "IN_PROGRESS", "evidence_report__verification": {"result": "fail"}}


def speaking(name):
    """Return the loadout above with the named protocol for Plan and Review."""
    document = json.loads(json.dumps(REVIEWED))
    document["loadouts"]["T"]["handoff"] = name
    return document


@pytest.mark.parametrize(
    "name, plan, again, fine, title",
    [
        (
            "envelope",
            json.dumps(envelope()),
            json.dumps(envelope(**LOOP)),
            "Here it is:\n```json\n" + json.dumps(envelope(odd=1)) + "\n```",
            "slow",
        ),
        (
            "agent-contract",
            block(contract(evidence_report__open_gaps=["slow\ncache it"])),
            block(contract(**AGAIN)),
            block(CONTRACT),
            "slow",
        ),
    ],
)
def test_protocol_of_each_socket_determines_the_route(tmp_path, name, plan, again, fine, title):
    agents = {
        "Plan": lambda: plan,
        "Build": lambda: "built",
        "Review": lambda visit: again if visit == 1 else fine,
    }
    cast = h.start(tmp_path, speaking(name), agents)
    cast.step()
    assert [item["title"] for item in cast.now.work_items] == [title]
    assert "## What to return" in cast.steps[0].prompt.text
    assert cast.run() == "complete"
    assert [visit[0] for visit in cast.route] == ["Socket-1", "Socket-2", "Socket-3", "Socket-2", "Socket-3"]
    assert "[Socket-3 Review]" in cast.state["context"]
    assert cast.now.engine.last_json["status" if name == "envelope" else "agent_status"]


def test_invalid_envelope_is_requested_again(tmp_path):
    answers, prompts = [json.dumps(envelope(status="odd")), json.dumps(envelope())], []

    def plan(prompt):
        prompts.append(prompt)
        return answers[len(prompts) - 1]

    cast = h.start(tmp_path, speaking("envelope"), {"Plan": plan, "Build": lambda: "b", "Review": lambda: "no"})
    assert cast.run(until="Socket-2") == "until"
    assert "status must be one of these words: VERIFIED" in prompts[1]
    assert [item["title"] for item in cast.now.work_items] == ["slow"]


@pytest.mark.parametrize("name", ["envelope", "agent-contract"])
def test_held_cast_can_be_reopened_and_its_agent_is_called_again(tmp_path, name):
    stuck, fine = (
        (json.dumps(envelope(status="BLOCKED")), json.dumps(envelope()))
        if name == "envelope"
        else (
            block(contract(agent_status__plan_status="BLOCKED")),
            block(contract(evidence_report__open_gaps=["g"])),
        )
    )
    cast = h.start(tmp_path, speaking(name), {"Plan": lambda: stuck})
    assert cast.run() == "person"
    h.assert_same(open_cast(cast.run_dir), cast)
    cast.close()
    resumed = resume_cast(cast.run_dir)
    resumed.agents.set("Plan", lambda: fine)
    resumed.retry()
    assert (resumed.status, resumed.now.next_socket, len(resumed.route)) == ("ready", "Socket-2", 1)
    h.assert_same(open_cast(cast.run_dir), resumed)
    resumed.close()


@pytest.mark.parametrize("name", ["sparse", *OTHER_PROTOCOLS])
def test_required_fields_are_listed_only_for_the_sparse_protocol(name, tmp_path):
    """Envelopes and contracts have no top-level ``satisfied``, so no prompt may request one."""
    told = []
    sockets = {"Socket-1": h.at("A", ("satisfied", "end"), parse="json", handoff=name)}
    cast = h.start(tmp_path, h.config(sockets, {"A": h.agent()}), lambda turn: told.append(turn.required_fields) or "x")
    cast.step()
    wanted = name == "sparse"
    assert ("satisfied" in (told[0] or {})) is wanted
    assert ("satisfied  true or false" in repr(HandoffView(cast.now, cast.steps[0]))) is wanted
    shown = blocks_as_text(Inspector(cast.graph, cast.now).about("socket", "Socket-1"))
    assert (f"The fields of the protocol {name}" in shown) is not wanted
