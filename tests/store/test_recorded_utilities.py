"""Test recordings of the reference engine with shipped utilities, reported usage, or an invalid loadout."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import cast_helpers as h
from materia_nb.cast import open_cast, resume_cast
from materia_nb.errors import MateriaError
from materia_nb.loadout import LoadoutError

RECORDED = Path(__file__).parents[1] / "data" / "recorded-casts"


@pytest.fixture
def copied(tmp_path):
    def copy(name: str) -> Path:
        return Path(shutil.copytree(RECORDED / name, tmp_path / name))

    return copy


def rewrite_config(path: Path, change) -> None:
    config = json.loads((path / "config.resolved.json").read_text())
    change(config)
    (path / "config.resolved.json").write_text(json.dumps(config))


def rewrite_journal(path: Path, change) -> None:
    lines = h.lines_of(path)
    lines = change(lines) or lines
    (path / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def name_script(config) -> None:
    config["materia"]["U"]["script"] = {"kind": "shippedUtility", "name": "detect-vcs.mjs", "runtime": "node"}


def test_r72_recorded_utility_may_have_its_resolved_command(copied):
    path = copied("util-state-shallow")
    expected = open_cast(path)
    rewrite_config(path, name_script)
    cast = open_cast(path)
    assert not [*cast.now.problems, *cast.now.messages, *cast.now.differences]
    assert (cast.state, cast.route) == (expected.state, expected.route)
    assert [step.decision.target for step in cast.steps] == ["Socket-2", "end"]


def test_r72_utility_with_both_script_and_command_raises_an_error(copied, tmp_path):
    rewrite_config(copied("util-state-shallow"), name_script)
    config = json.loads((tmp_path / "util-state-shallow" / "config.resolved.json").read_text())
    with pytest.raises(LoadoutError, match="both a command and a script"):
        h.start(tmp_path / "own", config)


def turn(socket: str, materia: str, tokens: tuple[int, int, int], cost: float) -> h.Json:
    fresh, cached, output = tokens
    counts = {"input": fresh, "output": output, "cacheRead": cached, "cacheWrite": 0, "total": sum(tokens)}
    return {"tokens": counts, "cost": {"total": cost}, "socket": socket, "materia": materia, "attempt": 1}


def report_turns(path: Path, turns: list[h.Json]) -> None:
    def add(lines) -> None:
        lines[-1]["data"]["usage"]["turns"] = turns

    rewrite_journal(path, add)


@pytest.mark.parametrize("rebuilt", [True, False])
def test_usage_of_reported_turns_is_assigned_to_their_steps(rebuilt, copied):
    path = copied("loop-retry")
    sockets = [line["data"] for line in h.lines_of(path) if line["type"] == "socket_complete"]
    report_turns(path, [turn(socket["socket"], socket["materia"], (7, 3, 2), 0.25) for socket in sockets])
    if not rebuilt:
        rewrite_config(path, lambda config: config.update(loadouts={"T": {"sockets": {}}}))
        rewrite_journal(path, lambda lines: lines[0]["data"].pop("pipeline", None) and None)
    cast = open_cast(path)
    assert bool(cast.now.problems) is not rebuilt
    assert [[turn.usage[:3] for turn in step.turns] for step in cast.steps] == [[(10, 2, 0.25)]] * len(sockets)
    total = cast.now.engine.usage
    assert (total.input, total.output, total.cached) == (
        10 * len(sockets),
        2 * len(sockets),
        3 * len(sockets),
    )
    rows = list(cast.usage("socket", "materia"))
    assert sum(row.usage.input for row in rows) == 10 * len(sockets)


def test_usage_of_a_missing_answer_is_added_to_the_next_output(copied):
    path = copied("parse-repair-then-ok")
    turns = [turn("Socket-1", "P", (1, 0, 1), 0.5), turn("Socket-1", "P", (2, 0, 1), 0.25)]
    report_turns(path, [*turns, turn("Socket-2", "Q", (4, 0, 1), 1.0)])
    first, second = open_cast(path).steps
    assert (first.turns[-1].usage[:3], second.turns[-1].usage[:3]) == ((3, 2, 0.75), (4, 1, 1.0))


@pytest.mark.parametrize(
    "turns", [3, [3], [{"socket": []}], [{"socket": "Socket-1", "tokens": {"input": "x"}, "cost": 3}]]
)
def test_invalid_usage_report_is_skipped(turns, copied):
    path = copied("parse-repair-then-ok")
    expected = open_cast(path).route
    report_turns(path, turns)
    assert open_cast(path).route == expected


def test_recorded_steps_lead_to_the_next_recorded_socket_if_the_loadout_cannot_be_cast():
    cast = open_cast(RECORDED / "not-castable-legacy-exit")
    sockets = [step.socket for step in cast.steps]
    assert [step.decision.target for step in cast.steps][:-1] == sockets[1:]
    assert f"The recording leads to {cast.now.names['Socket-2']}. " in str(cast.why(1))
    assert "The cast stopped: JSON output repair retry exhausted" in str(cast.why(len(sockets)))
    assert "waiting" not in repr(cast.steps)


def test_recorded_socket_that_defines_its_own_utility_is_named_after_it(copied):
    path = copied("not-castable-legacy-exit")

    def place_utility(sockets) -> None:
        del sockets["Socket-1"]["materia"]
        sockets["Socket-1"] |= {"type": "utility", "utility": "vcs.detect"}

    def cut(lines):
        for line in lines:
            if line["data"].get("socket") == "Socket-1":
                line["data"].pop("materia", None)
        done = [number for number, line in enumerate(lines) if line["type"] == "socket_complete"]
        return lines[: done[1] + 1]

    rewrite_config(path, lambda config: place_utility(config["loadouts"]["T"]["sockets"]))
    rewrite_journal(path, cut)
    cast = open_cast(path)
    assert cast.graph.sockets["Socket-1"].materia.id == "vcs.detect"
    assert cast.graph.sockets["Socket-1"].is_utility
    assert "vcs.detect" in repr(cast.steps)
    assert "The recording leads to its end." in str(cast.why(2))
    assert "not recorded" in repr(cast.steps)


def test_error_of_a_refused_continuation_suggests_a_fork(copied):
    path = copied("loop-retry")
    rewrite_journal(path, lambda lines: lines[:20])
    cast = open_cast(path)
    for refused in (cast.run, cast.step, lambda: cast.reply("x"), lambda: resume_cast(path)):
        with pytest.raises(MateriaError) as caught:
            refused()
        assert "cast.fork()" in caught.value.hint
    copy = cast.fork()
    copy.agents.set("*", lambda: {"satisfied": True})
    assert copy.run() == "complete"
    assert [step.socket for step in copy.steps][: len(cast.steps)] == [step.socket for step in cast.steps]
