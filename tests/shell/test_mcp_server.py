"""Test ``materia mcp``: a client designs a loadout and gets counterexamples, and a person continues its draft."""

from __future__ import annotations

import asyncio
import io
import json
import sys

import anyio
import pytest

import cast_helpers as h
from materia_nb import Workbench
from materia_nb.cast import open_cast
from materia_nb.shell.mcp_server import DesignServer, bounded_lines
from materia_nb.widgets.design_session import DesignSession

MATERIA = {"Plan": h.agent("Plan"), "Check": h.agent("Check {{request}}"), "Ship": h.agent("Ship")}


@pytest.fixture
def project(tmp_path):
    (tmp_path / ".pi").mkdir()
    start = {"entry": "Socket-1", "sockets": {"Socket-1": {"materia": "Plan"}}}
    config = {"materia": MATERIA, "loadouts": {"Mine": start}}
    (tmp_path / ".pi" / "pi-materia.json").write_text(json.dumps(config))
    return tmp_path


@pytest.fixture
def server(project):
    made = DesignServer(project, "robot\x1b")
    yield made
    made.close()
    made.bench.close()


def does(server, name, **args):
    result = server.call(name, args)
    assert result.ok, result.text
    return result.text


def built(server):
    """Build a loadout with three sockets, in which a check sends work back to the plan or ends the cast."""
    does(server, "open_loadout", loadout="Mine")
    does(server, "add_socket", materia="Check")
    does(server, "add_socket", materia="Ship")
    does(server, "add_edge", source="Socket-1", to="Socket-2")
    does(server, "add_edge", source="Socket-2", to="Socket-3", when="satisfied")
    does(server, "set_socket", id="Socket-2", field="parse", value="json")
    return does(server, "add_edge", source="Socket-2", to="Socket-1", when="not_satisfied", max_traversals=2)


def test_design_operations_change_a_draft_and_report_its_status(server, project):
    before = (project / ".pi" / "pi-materia.json").read_text()
    said = built(server)
    assert said.splitlines()[1].startswith("0 problems")
    assert "6. " in does(server, "show")
    assert does(server, "undo").startswith("Undone: ")
    assert does(server, "redo").startswith("Redone: ")
    wrong = server.call("add_edge", {"source": "Socket-9", "to": "Socket-1"})
    assert (wrong.ok, "'Socket-9' does not exist" in wrong.text) == (False, True)
    wrong = server.call("add_edge", {"from": "Socket-1"})
    assert (wrong.ok, "source" in wrong.text) == (False, True)
    assert (project / ".pi" / "pi-materia.json").read_text() == before, "it cannot save"


def test_each_mcp_tool_needs_an_open_loadout(server):
    assert "Mine" in does(server, "loadouts")
    for name in ("show", "check", "undo", "explore", "odds", "require", "hand_over"):
        result = server.call(name, {})
        assert (result.ok, "open_loadout" in result.text) == (False, True), name
    assert not server.call("save", {}).ok


def test_violated_property_has_a_counterexample(server, project):
    built(server)
    said = does(
        server,
        "require",
        never=["Socket-2#2", "held"],
        possible=["complete", "Socket-3"],
        most_turns=2,
        items=[1],
    ).splitlines()
    assert said[0].startswith("FAILS: never Socket-2#2: Socket-1 → Socket-2 → Socket-1")
    assert said[1] == "holds: never held"
    assert said[2:4] == ["holds: complete is possible", "holds: Socket-3 is possible"]
    assert said[4] == "holds: an end can be reached from every socket"
    assert said[5].startswith("FAILS: at most 2 turns (the maximum is ")
    id_ = said[0].split("cast ")[1].split()[0]
    [run_dir] = (project / ".pi" / "pi-materia").glob(f"**/{id_}")
    cast = open_cast(run_dir)
    assert cast.status == "complete", cast
    assert [one[0] for one in cast.route][:3] == ["Socket-1", "Socket-2", "Socket-1"]


def test_counterexample_can_accept_drafts(server, project):
    built(server)
    does(server, "set_materia", id="Check", field="multiTurn", value=True)
    said = does(server, "require", never=["Socket-3"], items=[1]).splitlines()[0]
    [run_dir] = (project / ".pi" / "pi-materia").glob(f"**/{said.split('cast ')[1].split()[0]}")
    assert [one[0] for one in open_cast(run_dir).route] == ["Socket-1", "Socket-2", "Socket-3"]
    assert open_cast(run_dir).status == "complete"


def test_loadout_with_problems_cannot_be_explored(server):
    does(server, "open_loadout", loadout="Mine")
    does(server, "add_socket", materia="Check")
    does(server, "set_socket", id="Socket-2", field="materia", value="Nobody")
    result = server.call("explore", {})
    assert (result.ok, "unknown-materia" in result.text) == (False, True)
    does(server, "undo")
    assert "complete      1 visit" in does(server, "explore", items=[1])
    assert "turns         1.00" in does(server, "odds", satisfied=0.5, items=1)


# -- a person ------------------------------------------------------------------------------


def handed_over(server):
    built(server)
    said = does(server, "hand_over")
    assert said == "6 steps of Mine can now be reviewed in the designer: %materia design Mine"


def choose(session, label):
    labels = [one for one, _ in session.question.choices]
    session.on_message("answer", {"number": labels.index(label)})
    assert session.note[0] == "status", session.note


@pytest.fixture
def session(server, project):
    handed_over(server)
    with Workbench(project) as wb:
        new_session = DesignSession(wb, wb.design("Mine"))
        new_session.offer_draft()
        yield new_session


def test_draft_is_opened_only_by_a_click(session):
    assert "by robot\N{SYMBOL FOR ESCAPE} (6 steps)" in session.question.text
    assert [label for label, _ in session.question.choices] == ["Continue with draft", "Discard draft"]
    assert session.design.document["sockets"] == {"Socket-1": {"materia": "Plan"}}
    choose(session, "Continue with draft")
    assert session.question is None
    assert len(session.design.document["sockets"]) == 3
    assert len(session.design.steps) == 6
    assert session.bench.loadouts.drafts() == ()
    for _ in range(6):
        session.on_message("undo", {})
    assert session.design.document["sockets"] == {"Socket-1": {"materia": "Plan"}}


def test_discarded_draft_leaves_the_design_unchanged(session):
    choose(session, "Discard draft")
    assert session.question is None
    assert session.design.document["sockets"] == {"Socket-1": {"materia": "Plan"}}
    assert session.bench.loadouts.drafts() == ()


def test_undoing_an_accepted_draft_restores_earlier_edits_by_the_user(session):
    session.on_message("answer", {"number": -1})
    session.design.add_edge("Socket-1", "end")
    session.offer_draft()
    choose(session, "Continue with draft")
    assert session.note[1].endswith("(6 steps), which replaces your unsaved edits until you undo its steps")
    assert len(session.design.document["sockets"]) == 3
    for _ in range(6):
        session.on_message("undo", {})
    assert session.design.document["sockets"]["Socket-1"]["edges"] == [{"when": "always", "to": "end"}]


def test_draft_that_has_been_replaced_is_refused(session, server):
    does(server, "open_loadout", loadout="Mine", draft=True)
    does(server, "add_edge", source="Socket-3", to="end")
    does(server, "hand_over")
    session.on_message("answer", {"number": 0, "question": session.question.number})
    assert session.note == ("alert", "this draft no longer exists: open the design again")
    assert session.design.steps == ()
    session.on_message("news", {})
    assert "by robot\N{SYMBOL FOR ESCAPE} (7 steps)" in session.question.text


def test_open_design_asks_once_about_pending_steps(server, project):
    with Workbench(project) as wb:
        new_session = DesignSession(wb, wb.design("Mine"))
        new_session.on_message("news", {})
        assert new_session.question is None
        handed_over(server)
        new_session.on_message("news", {})
        assert "by robot\N{SYMBOL FOR ESCAPE} (6 steps)" in new_session.question.text
        new_session.on_message("pick", {"part": None})
        new_session.on_message("news", {})
        assert new_session.question is not None, "it stays until it is answered"
        new_session.question = None
        new_session.on_message("news", {})
        assert new_session.question is None, "what was offered once is not offered again"


# -- over stdio ----------------------------------------------------------------------------


def test_draft_that_a_client_designs_over_stdio_is_offered_to_the_user(project):
    from mcp import Client, StdioServerParameters
    from mcp.types import Implementation

    start = StdioServerParameters(command=sys.executable, args=["-m", "materia_nb", "mcp", "--project", str(project)])

    async def script():
        async with Client(start, client_info=Implementation(name="coder", version="1")) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            assert {"open_loadout", "add_edge", "require", "hand_over", "make_loop"} <= tools

            async def call(name, **args):
                result = await client.call_tool(name, args)
                return result.is_error, result.content[0].text

            failed, said = await call("show")
            assert failed
            assert "open_loadout" in said
            failed, _ = await call("open_loadout", loadout="Mine")
            assert not failed
            failed, said = await call("add_socket", materia="Check")
            assert not failed, said
            failed, said = await call("add_edge", source="Socket-1", to="Socket-2")
            assert not failed, said
            failed, said = await call("require", never=["Socket-2"])
            assert not failed
            assert said.startswith("FAILS: never Socket-2: Socket-1 → Socket-2 → complete; cast ")

    anyio.run(script)
    with Workbench(project) as wb:
        [draft] = wb.loadouts.drafts("Mine")
        assert (draft.by, len(draft.steps)) == ("coder", 2)
        assert len(wb.casts()) == 1


def test_overlong_message_is_skipped():
    given = io.BytesIO(b'{"a": 1}\n' + b"x" * 100 + b'\n{"b": 2}\n' + b"last")
    asked = []

    async def read(most):
        asked.append(most)
        return given.readline(most)

    async def lines():
        return [line async for line in bounded_lines(read, 20)]

    assert asyncio.run(lines()) == ['{"a": 1}\n', "too long\n", '{"b": 2}\n', "last"]
    assert set(asked) == {20}
