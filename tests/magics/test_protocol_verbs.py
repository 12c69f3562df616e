"""Test the verbs for handoffs and suggestions in a real IPython shell."""

from __future__ import annotations

import pytest

from magics_helpers import new_shell
from materia_nb.errors import MateriaError
from protocol_helpers import ASK, block, contract, report

HOSTILE = "<img src=x onerror=alert(1)>"
NOTES = {"memory_suggestions": ["The build needs an hour.", HOSTILE]}
LOADOUT = """
entry: Socket-1
handoff: agent-contract
sockets:
  Socket-1: {materia: Do, parse: json}
materia:
  Do: {tools: none, prompt: "Do {{request}}"}
"""


@pytest.fixture
def shell(project, monkeypatch):
    monkeypatch.chdir(project)
    second_shell = new_shell()
    second_shell.run_cell_magic("materia", "define loadout Do", LOADOUT)
    second_shell.user_ns["wb"].agents.set("Do", lambda: block({**contract(), **NOTES}))
    yield second_shell
    second_shell.user_ns["wb"].close()


def line(shell, text):
    return shell.run_line_magic("materia", text)


def text(value):
    return value._repr_mimebundle_()["text/plain"]


def ran(shell):
    line(shell, "cast x")
    line(shell, "run")
    return shell.user_ns["wb"].current


def test_handoff_verb_shows_the_contract(shell):
    ran(shell)
    output = text(line(shell, "handoff"))
    assert "status  COMPLETE" in output
    assert "suggestions to remember" in output


def test_suggestions_are_listed_and_accepted_by_number(shell):
    assert ran(shell).status == "complete"
    listed = line(shell, "edit remember")
    assert len(listed) == 2
    assert "The build needs an hour." in text(listed)
    assert "saved" not in text(listed).splitlines()[2]
    assert HOSTILE not in listed._repr_mimebundle_()["text/html"]
    assert "saved" in text(line(shell, "edit remember 1")).splitlines()[2]
    assert [suggestion.is_kept for suggestion in shell.user_ns["wb"].current.now.suggestions] == [True, False]


@pytest.mark.parametrize(
    "result, told",
    [
        ("handoff 9", "no step 9"),
        ("edit remember 7", "the cast has 2"),
        ("edit remember x", "whole number"),
    ],
)
def test_verb_that_cannot_run_explains_why(shell, result, told):
    ran(shell)
    with pytest.raises(MateriaError) as error:
        line(shell, result)
    assert told in str(error.value)


CONSENT = [
    "exactly this: rm -rf build",
    "operation: delete the build folder",
    "scope: build/",
    "risk: high",
    "rollback: make build",
    "confirmation: build is gone",
]


def held_for_consent(shell, **changes):
    replies = iter([report("APPROVAL_REQUEST", approval_request={**ASK, **changes}), report("COMPLETE")])
    shell.user_ns["wb"].agents.set("Do", lambda: next(replies))
    return ran(shell)


def test_approval_request_is_shown_completely(shell):
    assert held_for_consent(shell, scope="").status == "held"
    status = text(line(shell, "status")).splitlines()
    expected = [line.replace("build/", "not specified") for line in CONSENT]
    at = status.index(expected[0])
    assert status[at : at + len(expected)] == expected
    assert "approve or deny the command" in status[at + len(expected)]


def test_approve_verb_shows_the_approved_command(shell):
    cast = held_for_consent(shell)
    output = text(line(shell, "approve"))
    assert cast.now.held is None
    assert "\n  ".join([f"approved: {CONSENT[0]}", *CONSENT[1:]]) in output
    assert "approved" not in text(line(shell, "status"))


def test_approve_verb_without_a_pending_request_raises_an_error(shell):
    ran(shell)
    with pytest.raises(MateriaError, match="Nothing is waiting for approval"):
        line(shell, "approve")
