"""Test every route of every bundled loadout with scripted agents and real utilities."""

from __future__ import annotations

import json
import os
import shutil
import tomllib

import pytest

import cast_helpers as h
from cast_helpers import NO, YES
from make_docs import ROOT
from materia_nb import Workbench
from materia_nb.loadout import read_config
from materia_nb.loadout.layers import BUNDLED
from materia_nb.loadout.topology import script_file
from shipped_helpers import StandIn, is_ignored, repository

NAMES = list(read_config(BUNDLED)["loadouts"])
PLAN = {"workItems": h.items("a", "b")}
BUILT = ["built"] * 9


@pytest.fixture
def jj(tmp_path, monkeypatch):
    """Put a directory with a fake ``jj`` command first on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    made = StandIn(folder)
    monkeypatch.setenv("JJ_LOG", made.env["JJ_LOG"])
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return made


@pytest.fixture
def wb(project):
    repository(project)
    bench = Workbench(project)
    yield bench
    bench.close()


def without_blanks(route):
    """Return a route without the blanks that separate its rounds for the reader."""
    return route.replace(" ", "")


def play(wb, loadout, replies, *, ends="complete"):
    """Cast a loadout with replies by materia; return the cast and the numbers of the visited sockets."""
    cast = wb.cast("improve it", loadout=loadout, agents={"*": replies})
    while (pause := cast.run()) == "person":
        cast.accept()
    assert pause == ends, cast.failure
    return cast, "".join(socket.removeprefix("Socket-") for socket, *_ in cast.route)


def test_package_contains_the_default_config():
    assert (ROOT / "config" / "default.json").read_bytes() == BUNDLED.read_bytes()
    sdist = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["sdist"]
    assert "/config" in sdist["include"]


@pytest.mark.parametrize("name", NAMES)
def test_each_bundled_loadout_has_no_findings_and_a_section_in_the_docs(name, wb):
    assert str(wb.check(name)) == "no problems, no hints"
    assert wb.loadouts.config.document["loadouts"][name]["description"].endswith(".")
    page = (ROOT / "docs" / "loadouts.md").read_text()
    assert f"\n## {name}\n\n![" in page
    assert f"(images/{name.lower()}.svg)" in page


def test_every_bundled_materia_has_a_label_and_a_description(wb):
    page = (ROOT / "docs" / "loadouts.md").read_text()
    for name, raw in wb.loadouts.config.document["materia"].items():
        assert raw["label"] == name
        if "script" in raw:
            assert f"\n### {name}\n\n`{script_file(raw['script']['name'])}`" in page
        assert raw["description"].endswith("."), name


def test_loadouts_and_materia_named_in_docs_and_lessons_exist():
    assert NAMES[:3] == ["Hello-Utility", "Ask", "Plan-Build-Eval"]
    asked = {"Full-Auto", "Planning-Consult", "Hojo-Consult", "Release", "Hello-Utility"}
    assert asked <= set(NAMES)


def test_hello_utility_cast_completes(wb):
    cast, route = play(wb, "Hello-Utility", {})
    assert route == "1"
    assert cast.state["hello"]["ok"] is True


def test_ask_cast_completes(wb):
    assert play(wb, "Ask", {"Answer": "42"})[1] == "1"


LOOP = {"Build": BUILT, "Narrate": "told"}


@pytest.mark.parametrize(
    "verdicts, upkeep, route",
    [
        ([YES, YES], [YES, YES], "1234 234 5"),
        ([NO, YES, YES], [YES, YES], "123 234234 5"),
        ([YES, YES, YES], [NO, YES, YES], "1234 234234 5"),
    ],
)
def test_plan_build_eval_completes(wb, verdicts, upkeep, route):
    replies = {**LOOP, "Plan": PLAN, "Eval": verdicts, "Maintain": upkeep}
    assert play(wb, "Plan-Build-Eval", replies)[1] == without_blanks(route)


@pytest.mark.parametrize(
    "verdicts, upkeep, route",
    [
        ([YES, YES], [YES, YES], "123 456456 7"),
        ([NO, NO, YES, NO, YES], [YES, YES], "123 4545 45645 456 7"),
        ([YES, YES, YES], [YES, NO, YES], "123 456456 456 7"),
    ],
)
def test_full_auto_completes(wb, verdicts, upkeep, route):
    replies = {**LOOP, "Auto-Plan": PLAN, "Auto-Eval": verdicts, "Maintain": upkeep}
    cast, went = play(wb, "Full-Auto", replies)
    assert went == without_blanks(route)
    assert cast.state["vcs"]["kind"] == "git"
    assert is_ignored(wb.project, cast.run_dir.relative_to(wb.project).as_posix())
    assert '"branch": "main"' in cast.steps.at(3).prompt.text


def test_full_auto_fails_at_an_edge_limit_and_can_be_retried(wb):
    replies = {**LOOP, "Auto-Plan": PLAN, "Auto-Eval": [NO] * 4 + [YES] * 2, "Maintain": [YES, YES]}
    cast, _ = play(wb, "Full-Auto", replies, ends="failed")
    assert cast.failure.kind == "edge_traversals_exhausted"
    cast.retry(limit=True)
    assert cast.run() == "complete"


@pytest.mark.parametrize("name, route", [("Plan-Build-Eval", "15"), ("Full-Auto", "1237"), ("Teach-Exits", "15")])
def test_empty_plan_continues_after_the_loop_r16(wb, name, route):
    replies = {**LOOP, "Plan": {"workItems": []}, "Auto-Plan": {"workItems": []}}
    assert play(wb, name, replies)[1] == route


def test_planning_consult_completes(wb):
    cast = wb.cast(
        "improve it",
        loadout="Planning-Consult",
        agents={"*": {"Interactive-Plan": ["one?", "two?", "two.", PLAN], "Chain-Context": "next"}},
    )
    assert cast.run() == "person"
    cast.refine("two of them")
    assert cast.run() == "person"
    cast.accept()
    assert cast.run() == "complete"
    assert [socket for socket, *_ in cast.route] == ["Socket-1", "Socket-2"]
    assert "about a" in cast.steps[-1].prompt.text


@pytest.mark.parametrize(
    "verdicts, upkeep, route",
    [
        ([YES] * 3, [YES] * 3, "123 456456 456 7"),
        ([NO] + [YES] * 4, [NO] + [YES] * 3, "123 45456 456456 456 7"),
    ],
)
def test_hojo_consult_builds_the_architects_plan(wb, verdicts, upkeep, route):
    replies = {
        **LOOP,
        "Interactive-Plan": ["a draft", PLAN],
        "Auto-Architect": {"workItems": h.items("x", "y", "z")},
        "Auto-Eval": verdicts,
        "Maintain": upkeep,
    }
    cast, went = play(wb, "Hojo-Consult", replies)
    assert went == without_blanks(route)
    assert "about b" in cast.steps.at(3).prompt.text
    assert [item["title"] for item in cast.state["workItems"]] == ["x", "y", "z"]


def test_release_checks_titles_before_it_builds(wb):
    good = {"workItems": h.items("feat: a", "fix(core)!: b")}
    replies = {
        **LOOP,
        "Release-Plan": [{"workItems": h.items("feat: a", "bad title")}, good],
        "Auto-Eval": [YES, NO, YES],
        "Commit": [YES, YES],
    }
    cast, route = play(wb, "Release", replies)
    assert route == "12323456454567"
    again = cast.steps.at(4).prompt.text
    assert "Work item 1: the title 'bad title'" in again
    assert cast.state["workItems"] == good["workItems"]
    built = [label for socket, _, _, label in cast.route if socket == "Socket-4"]
    assert built == ["feat: a", "fix(core)!: b", "fix(core)!: b"]


def test_release_retries_a_failed_commit(wb):
    replies = {
        **LOOP,
        "Release-Plan": {"workItems": h.items("feat: a")},
        "Auto-Eval": [YES, YES],
        "Commit": [NO, YES],
    }
    assert play(wb, "Release", replies)[1] == "1234564567"


def test_release_stops_if_titles_remain_invalid(wb):
    cast, route = play(wb, "Release", {"Release-Plan": [{"workItems": h.items("bad")}] * 4}, ends="failed")
    assert route == "123232323"
    assert cast.failure.kind == "edge_traversals_exhausted"


def blackbelt_replies(wb, verdicts):
    """Return replies by materia, in which the builder writes a file in each turn so that a commit is possible."""

    def build(turn):
        (wb.project / f"built-{turn.visit}").write_text("x")
        return "built"

    return {
        "Build": build,
        "Auto-Plan": lambda: PLAN,
        "Auto-Eval": lambda visit: verdicts[visit - 1],
        "Narrate": lambda: "told",
    }


def cast_blackbelt(wb, verdicts):
    shutil.rmtree(wb.project / ".git")  # beside which jj would make no repository (R57)
    cast = wb.cast("improve it", loadout="Blackbelt")
    for name, agent in blackbelt_replies(wb, verdicts).items():
        cast.agents.set(name, agent)
    return cast


def went(cast):
    return "".join(socket.removeprefix("Socket-") for socket, *_ in cast.route)


def test_blackbelt_stores_each_item_as_a_commit(wb, jj):
    cast = cast_blackbelt(wb, [YES, NO, YES])
    assert cast.run() == "complete"
    assert went(cast) == "123456454567"
    repo = jj.repo(wb.project)
    assert [commit["description"] for commit in repo["commits"]] == ["", "a", "b"]
    name = cast.state["blackbeltBootstrap"]["bookmarkName"]
    assert repo["bookmarks"] == {name: 2}
    assert sorted(set(repo["commits"][2]["files"]) - set(repo["commits"][1]["files"])) == [
        "built-2",
        "built-3",
    ]
    assert not any(file.startswith(".pi") for file in repo["commits"][2]["files"])


def test_blackbelt_retries_an_item_that_could_not_be_committed(wb, jj, monkeypatch):
    monkeypatch.setenv("JJ_FAIL", "describe")
    cast = cast_blackbelt(wb, [YES] * 3)
    cast.run("Socket-6")
    cast.step()
    monkeypatch.delenv("JJ_FAIL")
    assert cast.run() == "complete"
    assert went(cast) == "1234564564567"
    assert "the disk is on fire" in cast.steps.at(7).prompt.text
    assert [commit["description"] for commit in jj.repo(wb.project)["commits"]] == ["", "a", "b"]


def test_blackbelt_without_jj_fails_and_its_state_is_stored(wb, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    cast = wb.cast("improve it", loadout="Blackbelt")
    assert cast.run() == "failed"
    assert went(cast) == "12"
    assert cast.failure.kind == "utility_exit"
    assert "jj is not on PATH" in cast.failure.message
    kept = cast.run_dir / "sockets" / "Socket-2" / "1.command.stdout.txt"
    payload = json.loads(kept.read_text())["state"]["blackbeltBootstrap"]
    assert payload["ok"] is False
    assert payload["available"] == {"jj": False}


def test_teach_edges_takes_the_first_matching_edge(wb):
    assert play(wb, "Teach-Edges", {"Triage": YES, "Answer": "x"})[1] == "12"
    cast, route = play(wb, "Teach-Edges", {"Triage": NO, "Ask-Back": "which?"})
    assert route == "13"
    assert "once more" in cast.steps[-1].prompt.text


def test_teach_rework_returns_with_the_reason_a_limited_number_of_times(wb):
    assert play(wb, "Teach-Rework", {"Draft": "x", "Critique": YES})[1] == "12"
    cast, route = play(wb, "Teach-Rework", {"Draft": ["x", "y"], "Critique": [NO, YES]})
    assert route == "1212"
    assert "once more" in cast.steps.at(3).prompt.text
    cast, route = play(wb, "Teach-Rework", {"Draft": ["x"] * 3, "Critique": [NO] * 3}, ends="failed")
    assert route == "121212"
    assert cast.failure.kind == "edge_traversals_exhausted"


@pytest.mark.parametrize(
    "verdicts, upkeep, route",
    [
        ([YES, YES], [YES, YES], "1 234234 5"),
        ([NO, YES], [YES], "1 23234 5"),
        ([YES, NO], [YES], "1 23423 6"),
        ([NO, NO], [], "1 2323 6"),
    ],
)
def test_teach_exits_leaves_its_loop_by_the_exit_for_the_last_verdict(wb, verdicts, upkeep, route):
    replies = {**LOOP, "Auto-Plan": PLAN, "Auto-Eval": verdicts, "Maintain": upkeep, "Chain-Context": "open"}
    assert play(wb, "Teach-Exits", replies)[1] == without_blanks(route)
