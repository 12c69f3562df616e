"""Test copying a loadout into the config file of the project for editing."""

from __future__ import annotations

import json

import pytest

import cast_helpers as h
import materia_nb
from magics_helpers import new_shell
from materia_nb.errors import MateriaError
from materia_nb.loadout import read_config
from materia_nb.loadout.layers import BUNDLED, PROJECT_FILE
from materia_nb.magics.magic import next_words


@pytest.fixture
def file(project):
    return project / PROJECT_FILE


def test_copied_loadout_has_its_own_name_and_becomes_the_selected_loadout(wb, file):
    before = BUNDLED.read_bytes()
    shown = wb.loadouts.copy("Full-Auto", "Mine")
    assert (shown.name, shown.origin) == ("Mine", "project")
    assert wb.loadouts.chosen == "Mine"
    document = read_config(file)
    copied = read_config(BUNDLED)["loadouts"]["Full-Auto"]
    advance = copied["sockets"]["Socket-6"]["advance"]
    assert document["loadouts"]["Mine"]["sockets"]["Socket-6"]["advance"] == {
        "cursor": "workItemIndex",
        "items": "state.workItems",
        **advance,
    }
    document["loadouts"]["Mine"]["sockets"]["Socket-6"]["advance"] = advance
    assert document == {"activeLoadout": "Mine", "loadouts": {"Mine": copied}}
    assert not wb.check("Mine").problems
    assert BUNDLED.read_bytes() == before


def test_copy_can_be_edited_without_changing_the_bundled_loadout(wb, file):
    wb.loadouts.copy("Teach-Rework")
    document = read_config(file)
    document["loadouts"]["Teach-Rework-Copy"]["sockets"]["Socket-2"]["edges"][1]["maxTraversals"] = 7
    file.write_text(json.dumps(document))
    wb.load()
    assert wb.graph("Teach-Rework-Copy").sockets["Socket-2"].edges[1].max_traversals == 7
    assert wb.graph("Teach-Rework").sockets["Socket-2"].edges[1].max_traversals == 2


def test_copy_can_include_its_materia(wb, file):
    wb.loadouts.copy("Release", "Mine", materia=True)
    bundled = read_config(BUNDLED)["materia"]
    document = read_config(file)
    wanted = {"Ignore-Artifacts", "Release-Plan", "Commit-Sigil", "Build", "Auto-Eval", "Commit", "Narrate"}
    assert document["materia"] == {name: bundled[name] for name in wanted}
    assert wb.loadouts.config.origin("materia", "Commit").name == "project"


def test_copy_preserves_the_rest_of_the_file(wb, file):
    file.parent.mkdir()
    theirs = {
        "comment": "größer",
        "activeLoadout": "Own",
        "limits": {"repairAttempts": 2},
        "loadouts": {"Own": {"entry": "Socket-1", "sockets": {"Socket-1": {"materia": "Build"}}}},
        "materia": {"Build": {"tools": "none", "prompt": "mine"}},
    }
    file.write_text(json.dumps(theirs))
    wb.loadouts.define_materia("Build", {"tools": "none", "prompt": "of a cell"})
    wb.loadouts.copy("Full-Auto", "Mine", materia=True)
    document = read_config(file)
    assert document["loadouts"].pop("Mine")
    added = document["materia"]
    assert added.pop("Build") == theirs["materia"]["Build"], "what the file defines is not replaced"
    assert set(added) == {"Ignore-Artifacts", "Detect-VCS", "Auto-Plan", "Auto-Eval", "Maintain", "Narrate"}
    document["materia"] = theirs["materia"]
    assert document == theirs


@pytest.mark.parametrize("new", ["Ask", "Mine", "Own", "", "1st", "a/b", "x" * 65])
def test_copy_refuses_existing_and_invalid_names(wb, file, new):
    file.parent.mkdir()
    file.write_text('{"loadouts": {"Own": null}}')
    wb.loadouts.define("Mine", {"entry": "Socket-1", "sockets": {"Socket-1": {"materia": "Build"}}})
    before = file.read_bytes()
    if new:
        with pytest.raises(MateriaError):
            wb.loadouts.copy("Full-Auto", new)
        assert file.read_bytes() == before
    else:
        assert wb.loadouts.copy("Full-Auto", new).name == "Full-Auto-Copy"
        with pytest.raises(MateriaError, match="already"):
            wb.loadouts.copy("Full-Auto")


def test_error_for_an_unknown_loadout_suggests_the_nearest_name(wb, file):
    with pytest.raises(MateriaError, match="Full-Auto"):
        wb.loadouts.copy("Ful-Auto")
    assert not file.parent.exists()


@pytest.mark.parametrize("text", ["{ not json", "[1]", '{"loadouts": []}', '{"materia": 5}'])
def test_invalid_file_is_not_changed(wb, file, text):
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(MateriaError) as caught:
        wb.loadouts.copy("Full-Auto", materia=True)
    assert str(file) in caught.value.where
    assert file.read_text() == text


def test_unwritable_file_is_reported(wb, project):
    (project / ".pi").write_text("no directory")
    with pytest.raises(MateriaError):
        wb.loadouts.copy("Full-Auto")
    assert (project / ".pi").read_text() == "no directory"


def test_copied_loadout_finds_scripts_next_to_the_original_config(wb, project, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "tell.py").write_text('print(\'{"state": {"told": true}}\')')
    (elsewhere / "x.json").write_text("{}")
    utility = {"type": "utility", "command": ["python3", "tell.py", "x.json"], "parse": "json"}
    (elsewhere / "mine.json").write_text(json.dumps(h.one_config(utility)))
    wb.load(elsewhere / "mine.json")
    wb.loadouts.copy("T", "Mine", materia=True)
    copied = read_config(project / PROJECT_FILE)["materia"]["M"]["command"]
    assert copied == ["python3", "../../elsewhere/tell.py", "x.json"]
    again = materia_nb.Workbench(project)
    cast = again.cast("x", loadout="Mine")
    assert cast.run() == "complete"
    assert cast.state["told"] is True
    again.close()


# -- the verb -------------------------------------------------------------------------


@pytest.fixture
def shell(project, monkeypatch):
    monkeypatch.chdir(project)
    second_shell = new_shell()
    yield second_shell
    second_shell.user_ns["wb"].close()


def test_copy_verb_copies_a_loadout_and_completes_its_name(shell, file):
    output = shell.run_line_magic("materia", "copy Full-Auto My-Auto --materia")
    assert "My-Auto (from project)" in repr(output)
    assert set(read_config(file)["loadouts"]) == {"My-Auto"}
    assert "Build" in read_config(file)["materia"]
    shell.run_line_magic("materia", "copy Ask")
    assert set(read_config(file)["loadouts"]) == {"My-Auto", "Ask-Copy"}
    assert "Answer" not in read_config(file)["materia"]
    wb = shell.user_ns["wb"]
    assert {"Full-Auto", "My-Auto", "--materia"} <= set(next_words(lambda: wb, ["copy"]))
    assert next_words(lambda: wb, ["copy", "Full-Auto"]) == ["--materia"]
    assert ".pi/pi-materia.json" in repr(shell.run_line_magic("materia", "help copy"))


def test_r33_verbs_show_the_layer_of_each_field(shell, project):
    (project / ".pi").mkdir(exist_ok=True)
    (project / ".pi/pi-materia.json").write_text(
        '{"materia": {"Build": {"model": "x"}}, "loadouts": {"Ask": {"label": "A"}}}'
    )
    rows = {row[0]: row for row in shell.run_line_magic("materia", "list materia Build").rows}
    assert rows["model"][:2] == ("model", "x")
    assert rows["model"][2].startswith("project (")
    assert rows["prompt"][2].startswith("bundled (")
    assert {row[0]: row[3] for row in shell.run_line_magic("materia", "list materia").rows}[
        "Build"
    ] == "bundled, project"
    fields = {row[0]: row[2] for row in shell.run_line_magic("materia", "list loadouts Ask").rows}
    assert fields["label"].startswith("project (")
    assert fields["sockets"].startswith("bundled (")


def test_project_of_a_workbench_cannot_be_changed(tmp_path):
    bench = materia_nb.Workbench(tmp_path)
    with pytest.raises(AttributeError, match="project"):
        bench.project = tmp_path / "other"
    assert bench.project == bench.loadouts.project == tmp_path.resolve()
    assert bench.casts.root.is_relative_to(bench.project)
