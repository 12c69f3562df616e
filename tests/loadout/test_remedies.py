"""Findings that a button mends: each remedy is offered only if the finding is gone with it and no new problem comes."""

from __future__ import annotations

import copy

import pytest
from hypothesis import HealthCheck, given, settings

from design_samples import is_plain
from loadout_samples import config, edge, looped, route, valid_configs
from materia_nb.loadout.design import Design
from materia_nb.loadout.design.remedies import remedy_of


def of(document) -> Design:
    [name] = document["loadouts"]
    return Design(name, document["loadouts"][name], document)


def mended(design, code):
    """The words and the document of the remedy for the first finding of a code."""
    report = design.report
    found = next(one for one in (*report.problems, *report.hints) if one.code == code)
    remedy = remedy_of(design, found)
    assert remedy is not None, found
    design.apply(remedy.change)
    left = {(one.code, one.source) for one in (*design.report.problems, *design.report.hints)}
    assert (found.code, found.source) not in left
    return remedy.words, design.document


def loop(exits=(), **sockets):
    return looped({"exits": list(exits)}, **sockets)


CASES = {
    "guard-on-text": (
        loop([route("Socket-3", "satisfied", "Socket-4")], Socket_4={"edges": [edge("end", "satisfied")]}),
        "Read the output of Socket-4 as JSON",
        lambda after: after["sockets"]["Socket-4"]["parse"] == "json",
    ),
    "unknown-endpoint": (
        loop([route("Socket-3", "satisfied", "Socket-4")], Socket_4={"edges": [edge("Socket-22")]}),
        "Lead it to Socket-2",
        lambda after: after["sockets"]["Socket-4"]["edges"][0]["to"] == "Socket-2",
    ),
    "unreachable-edge": (
        loop(
            [route("Socket-3", "satisfied", "Socket-4")],
            Socket_4={"parse": "json", "edges": [edge("end"), edge("Socket-1", "satisfied")]},
        ),
        "Look at it first",
        lambda after: (
            [one["when"] for one in after["sockets"]["Socket-4"]["edges"]] == ["satisfied", "always"]
        ),
    ),
    "missing-entry": (
        {**loop([route("Socket-3", "satisfied", "Socket-4")])},
        "Start at Socket-1",
        lambda after: after["entry"] == "Socket-1",
    ),
    "lone-guard": (
        config(
            {
                "Socket-1": {"materia": "P", "parse": "json", "edges": [edge("Socket-2", "satisfied")]},
                "Socket-2": {"materia": "P"},
            }
        ),
        "not_satisfied → end",
        lambda after: after["sockets"]["Socket-1"]["edges"][1] == edge("end", "not_satisfied"),
    ),
    "empty-list-ends": (
        loop([route("Socket-3", "satisfied", "Socket-4")]),
        "always → Socket-4 too",
        lambda after: {one["condition"] for one in after["loops"]["L"]["exits"]} == {"satisfied", "always"},
    ),
}


@pytest.mark.parametrize("code", CASES)
def test_a_finding_is_mended_by_the_change_that_its_hint_speaks_of(code):
    document, words, holds = CASES[code]
    document = copy.deepcopy(document)
    if code == "missing-entry":
        del document["loadouts"]["T"]["entry"]
    said, after = mended(of(document), code)
    assert said == words
    assert holds(after)


def test_a_socket_with_a_name_is_numbered_and_keeps_the_name_as_its_label():
    draft = of(config({"Judge": {"materia": "P", "edges": [edge("Judge")]}}))
    said, after = mended(draft, "socket-id")
    assert said == "Call it Socket-1, labelled Judge"
    assert after["sockets"] == {"Socket-1": {"materia": "P", "edges": [edge("Socket-1")], "label": "Judge"}}
    assert after["entry"] == "Socket-1"


def test_what_a_person_has_to_choose_has_no_button():
    draft = of(config({"Socket-1": {"materia": "P"}, "Socket-2": {"materia": "P"}}))
    [lonely] = [one for one in draft.report.hints if one.code == "unreachable-socket"]
    assert remedy_of(draft, lonely) is None


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(valid_configs().filter(is_plain))
def test_a_remedy_never_brings_a_problem(document):
    for name, raw in document["loadouts"].items():
        draft = Design(name, raw, document)
        for one in draft.report.hints:
            remedy = remedy_of(draft, one)
            if remedy is not None:
                after = Design(
                    name,
                    remedy.change.document,
                    {**document, "materia": draft.definitions | dict(remedy.change.materia)},
                )
                assert after.report.ok, (one, remedy.words)
