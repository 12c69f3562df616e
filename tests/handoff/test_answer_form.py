"""Test the form in a prompt (R51): an answer that fills it in is accepted, and an unchanged copy is refused."""

from __future__ import annotations

import itertools
import json

import pytest

from materia_nb.handoff import protocol
from materia_nb.handoff.base import Requirements, TurnFacts
from materia_nb.handoff.checks import COPIED_PLACEHOLDERS, MAX_FORM_CHARS, MAX_SHORT_FORM_CHARS, placeholder_issues

PROTOCOLS = ("sparse", "envelope", "agent-contract")
CONSOLIDATE = {"agent_contract_handoff": {"consolidation_required": True}}
WRITES = {"write_permissions": {"writable_sections": ["layout"]}}
MEMORIES = (None, "IN_PROGRESS", "APPROVAL_REQUEST", "BLOCKED", "NEEDS_INPUT", "COMPLETE")
STATUS = "<IN_PROGRESS, APPROVAL_REQUEST, COMPLETE, BLOCKED or NEEDS_INPUT>"
FILLED = {
    "<true or false>": "true",
    "<what to do>": "Outline",
    "<everything needed to do it>": "Three headings.",
    "<notes for the next agent>": "Look at the third one.",
    "<any JSON>": "anything",
    "<in words>": "I looked at it.",
    "<file>": "notes.md",
    "<command>": "ls",
    "<why>": "nothing is left",
    "<VERIFIED, UNVERIFIED or BLOCKED>": "VERIFIED",
    "<CONTINUE, LOOP, DETOUR or ESCALATE>": "CONTINUE",
    "<what is next>": "nothing",
    "<result>": "a page",
    "<pass or fail>": "pass",
    "<your id>": "a1b2c3d4e",
}


def wants(*, work_items=False, satisfied=False, sources=()):
    return Requirements(
        parse="json",
        utility=False,
        why_satisfied="the next step depends on it" if satisfied else None,
        work_items=work_items,
        check_items=True,
        fields=frozenset({"workItems", "satisfied", "context", *(name for _, name in sources)}),
        sources=tuple((name, f"$.{name}") for _, name in sources),
    )


TURNS = [
    (wants(work_items=items, satisfied=said, sources=sources), facts)
    for items, said, sources in itertools.product((False, True), (False, True), ((), (("plan", "plan"),)))
    for facts in (
        *(
            TurnFacts(
                agent_id="a1b2c3d4e",
                memory=None if status is None else {"plan_status": status},
                assignment=given,
            )
            for status in MEMORIES
            for given in ({}, CONSOLIDATE, WRITES)
        ),
        *(
            TurnFacts(
                sockets=frozenset(f"Socket-{number}" for number in range(1, count)),
                names={f"Materia-{number}": f"Socket-{number}" for number in range(1, count, 2)},
            )
            for count in (3, 60)
        ),
    )
]


def copied(form):
    """Return the part of a form that an agent might copy: the text between its outer braces, with its code fence if
    any.
    """
    return form[form.index("\n") + 1 :] if "```" in form else form[form.index("{") : form.rindex("}") + 1]


def line_of(form):
    return next(line for line in copied(form).splitlines() if line.startswith("{"))


@pytest.mark.parametrize("name", PROTOCOLS)
def test_form_stays_within_its_length_limit(name):
    for wanted, facts in TURNS:
        assert 0 < len(protocol(name).form(wanted, facts)) <= MAX_FORM_CHARS
        assert 0 < len(protocol(name).form(wanted, facts, short=True)) <= MAX_SHORT_FORM_CHARS


@pytest.mark.parametrize("name", PROTOCOLS)
def test_answer_that_repeats_the_form_is_refused(name):
    spoken = protocol(name)
    for wanted, facts in TURNS:
        form = spoken.form(wanted, facts)
        for text in (form, copied(form), line_of(form)):
            assert not spoken.read(text, wanted, facts).accepted


@pytest.mark.parametrize("name", PROTOCOLS)
def test_completed_form_is_accepted(name):
    spoken = protocol(name)
    for wanted, facts in TURNS:
        text = line_of(spoken.form(wanted, facts))
        status = "IN_PROGRESS" if facts.memory else "COMPLETE"
        for word, value in {**FILLED, STATUS: status, "<COMPLETE, IN_PROGRESS or BLOCKED>": status}.items():
            text = text.replace(word, value)
        answer = json.loads(text)
        if name != "sparse" and wanted.sources:
            answer["plan"] = "first this"  # an assignment reads it; the form of the protocol has no place for it
        written = (
            f"```agent_contract_handoff\n{json.dumps(answer)}\n```" if name == "agent-contract" else json.dumps(answer)
        )
        reading = spoken.read(written, wanted, facts)
        assert reading.accepted, reading.issues


@pytest.mark.parametrize("name", PROTOCOLS)
def test_issue_names_the_field_that_still_contains_a_placeholder(name):
    spoken, wanted = protocol(name), wants(satisfied=True)
    filled = line_of(spoken.form(wanted, TurnFacts(agent_id="a1b2c3d4e")))
    left = {"sparse": "<notes for the next agent>", "envelope": "<why>", "agent-contract": "<what is next>"}[name]
    for word, value in {**FILLED, STATUS: "COMPLETE"}.items():
        filled = filled if word == left else filled.replace(word, value)
    text = f"```agent_contract_handoff\n{filled}\n```" if name == "agent-contract" else filled
    reading = spoken.read(text, wanted, TurnFacts(agent_id="a1b2c3d4e"))
    assert [issue.code for issue in reading.issues] == [COPIED_PLACEHOLDERS]


@pytest.mark.parametrize("text", ["...", "…", " <...> ", "<where this is done>", "<what to do"])
def test_dots_and_placeholder_words_are_not_accepted_as_an_answer(text):
    assert [issue.path for issue in placeholder_issues({"a": ["fine", text]}, ())] == ["$.a.1"]


@pytest.mark.parametrize("text", ["....", "wait...", "<5 ms on average", "<stdin>", "<img src='x'>", "<b>so</b> it is"])
def test_output_that_resembles_a_form_is_accepted(text):
    assert not list(placeholder_issues({"a": [text]}, ()))


def test_detour_targets_are_listed_up_to_the_limit():
    def form(name):
        return protocol("envelope").form(wants(), TurnFacts(sockets=frozenset({name})))

    room = MAX_FORM_CHARS - len(form("A")) + 1
    assert len(form("A" * room)) == MAX_FORM_CHARS
    assert "DETOUR: next" not in form("A" * (room + 1))


def test_detour_targets_are_listed_by_socket_and_name():
    spoken, sockets = protocol("envelope"), frozenset({"Socket-1", "Socket-2"})
    facts = TurnFacts(sockets=sockets, names={"Plan": "Socket-1", "The Planner": "Socket-1"})
    form = spoken.form(wants(), facts)
    assert form.endswith("\nDETOUR: next_step_suggestion: Socket-1 (Plan), Socket-2.")
    filled = json.loads(line_of(form))
    for target, action in (("Socket-1", "detour"), ("Plan", "detour"), ("Nowhere", "escalate")):
        filled["routing"] = {"recommendation": "DETOUR", "reason": "first", "next_step_suggestion": target}
        text = json.dumps(filled)
        for word, value in FILLED.items():
            text = text.replace(word, value)
        assert spoken.read(text, wants(), facts).action == action
    assert "next_step_suggestion: Socket-1" in spoken.form(wants(work_items=True), facts)
    many = TurnFacts(sockets=frozenset(f"Socket-{number}" for number in range(60)))
    assert spoken.form(wants(), many).endswith(", …")
    assert "DETOUR: " not in spoken.form(wants(), TurnFacts(sockets=frozenset({"S" * 400})))


def test_only_allowed_statuses_are_in_the_form():
    after = TurnFacts(agent_id="a1b2c3d4e", memory={"plan_status": "NEEDS_INPUT"})
    for short in (False, True):
        form = protocol("agent-contract").form(wants(), after, short=short)
        assert "IN_PROGRESS" in form
        assert "COMPLETE" not in form
        assert "a1b2c3d4e" in form


def test_sparse_form_requires_the_context_if_the_socket_stores_it():
    sparse, optional = protocol("sparse"), wants(satisfied=True)
    stored = wants(satisfied=True, sources=(("lastFeedback", "context"),))
    answer = '{"satisfied": true}'
    assert sparse.read(answer, optional).accepted
    assert "- context is optional; other fields are refused" in sparse.form(optional)
    assert not sparse.read(answer, stored).accepted
    assert "- context is required; other fields are refused" in sparse.form(stored)
