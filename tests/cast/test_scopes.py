"""Test that the output of a utility can set the working directory of later utilities and agents."""

from __future__ import annotations

import json
from pathlib import Path

import cast_helpers as h
from builders import at, document
from materia_nb.cast import open_cast, resume_cast
from materia_nb.engine import events as ev

SAYS = "import json, sys; given = json.load(sys.stdin); print(given['params']['says'])"
LOOKS = "import json, os, sys; given = json.load(sys.stdin); print(json.dumps({'state': {'given': given, 'here': os.getcwd()}}))"


def to(cwd, **more):
    return {"scopeTransition": {"kind": "replace", "scope": {"id": "side", "cwd": str(cwd), **more}}}


BACK = {"scopeTransition": {"kind": "base"}}


def config(*outputs):
    """Return a config with utilities that print the given outputs, each followed by one that prints its directory, and
    an agent.
    """
    sockets, materia = {}, {"Look": h.python(LOOKS, parse="json"), "Tell": h.agent()}
    for number, output in enumerate(outputs, 1):
        materia[f"Say{number}"] = h.python(SAYS, parse="json", params={"says": json.dumps(output)})
        sockets[f"Socket-{2 * number - 1}"] = at(f"Say{number}", ("always", f"Socket-{2 * number}"))
        sockets[f"Socket-{2 * number}"] = at("Look", ("always", f"Socket-{2 * number + 1}"))
    sockets[f"Socket-{2 * len(outputs) + 1}"] = at("Tell")
    return document(sockets, materia)


def test_scope_applies_from_the_next_socket_until_it_is_reset(tmp_path):
    (tmp_path / "side").mkdir()
    exports = {"branch": {"producer": "test", "value": "b"}}
    worked = []
    cast = h.start(
        tmp_path,
        config(to("side", state={"a": 1}, exports=exports), BACK),
        lambda turn: worked.append(turn.project) or "x",
    )
    cast.run()
    first, second = (cast.at(number).state["given"] for number in (2, 4))
    assert cast.at(2).state["here"] == str(tmp_path / "side") == first["cwd"]
    assert first["executionScope"] == {
        "id": "side", "cwd": str(tmp_path / "side"), "state": {"a": 1}, "exports": exports,
    }  # fmt: skip
    base = {"id": "base", "cwd": str(tmp_path), "state": None, "exports": {}}
    assert first["baseScope"] == second["baseScope"] == second["executionScope"] == base
    assert (cast.at(4).state["here"], worked) == (str(tmp_path), [tmp_path])


def test_scope_applies_to_agents_and_survives_a_reopen(tmp_path):
    (tmp_path / "side").mkdir()
    worked = []
    cast = h.start(tmp_path, config(to("side")), lambda turn: worked.append(turn.project) or "x")
    cast.run(steps=2)
    before = cast.runner.session
    cast.close()
    resumed = resume_cast(cast.run_dir, h.table(lambda turn: worked.append(turn.project) or "x"))
    assert resumed.runner.session.state.scope == before.state.scope
    resumed.run()
    assert worked == [tmp_path / "side"]
    assert open_cast(resumed.run_dir).state["here"] == str(tmp_path / "side")
    assert resumed.fork(1).runner.session.state.scope.id == "side"
    assert resumed.fork(0).runner.session.state.scope.id == "base"


def test_scope_field_is_removed_from_the_output_and_recorded_as_an_event(tmp_path):
    (tmp_path / "side").mkdir()
    cast = h.start(tmp_path, config({**to("side"), "context": "c"}))
    cast.step()
    assert cast.runner.session.state.last_json == {"context": "c"}
    lines = [json.loads(line) for line in (cast.run_dir / "events.jsonl").read_text().splitlines()]
    (changed,) = [line["data"] for line in lines if line["type"] == ev.ScopeChanged.type]
    assert (changed["socket"], changed["scope"]["cwd"]) == ("Socket-1", "side")


def test_visit_fails_if_its_scope_directory_is_missing(tmp_path):
    cast = h.start(tmp_path, config(to("side")))
    cast.run()
    assert (cast.failure.kind, cast.failure.socket) == ("no_folder", "Socket-2")
    (tmp_path / "side").mkdir()
    cast.retry()
    cast.step()
    assert cast.state["here"] == str(tmp_path / "side")


def test_scope_outside_the_project_needs_approval_once(tmp_path):
    project, outside = tmp_path / "project", tmp_path / "outside"
    project.mkdir()
    outside.mkdir()
    (project / "link").symlink_to(outside)  # a link inside leads outside, too
    for cwd in (outside, Path("../outside"), Path("link")):
        cast = h.start(project, config(to(cwd)), lambda _: "x")
        cast.run()
        assert (cast.failure.kind, cast.failure.socket) == ("folder_asks", "Socket-2")
        assert str(outside) in cast.failure.message
        cast.approvals.allow(f"folder:{project / cwd}")
        cast.retry()
        cast.run()
        assert cast.status == "complete"
