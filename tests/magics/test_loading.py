"""Test that %materia load, reload and loadout report which loadouts were added and removed."""

from __future__ import annotations

import json

import pytest

from magics_helpers import HELLO, cell, line, text
from materia_nb.errors import MateriaError
from materia_nb.magics.cast_display import record_text


def test_loadout_with_problems_is_loaded_but_not_selected(shell):
    line(shell, "load hello.json")
    shown = cell(shell, "define loadout Bad", "entry: X\nsockets: {}")
    assert "Bad was defined but cannot be cast, so it was not chosen; Hello stays chosen" in text(shown)
    assert 'role="alert"' in shown._repr_mimebundle_()["text/html"]
    assert line(shell, "cast hi").graph.name == "Hello"
    assert "Bad" in text(line(shell, "check Bad"))
    cell(shell, "define loadout Bad", "entry: S\nsockets: {S: {materia: hi}}")
    assert shell.user_ns["wb"].loadouts.chosen == "Bad", "mended, it is chosen"


def test_loadout_broken_by_a_cell_is_not_cast(shell):
    cell(shell, "define loadout Mine", "entry: S\nsockets: {S: {materia: Build}}")
    cell(shell, "define loadout Mine", "entry: X\nsockets: {}")
    assert line(shell, "cast hi").graph.name != "Mine"


def test_cast_after_a_refused_definition_states_which_loadout_it_runs(shell):
    line(shell, "load hello.json")
    cell(shell, "define loadout Bad", "entry: X\nsockets: {}")
    result = "This cast runs Hello, because Bad, which was defined last, cannot be cast."
    line(shell, "cast hi")
    assert result in text(line(shell, "status"))
    assert result in record_text(shell.user_ns["wb"].current)["text/plain"]
    line(shell, "cast --loadout Hello hi")
    assert result not in text(line(shell, "status")), "it was named"
    line(shell, "use Hello")
    line(shell, "cast hi")
    assert result not in text(line(shell, "status")), "it was chosen since"


def test_loading_another_file_reports_unloaded_loadouts(shell, project):
    line(shell, "load hello.json")
    other = {**HELLO, "activeLoadout": "Other", "loadouts": {"Other": HELLO["loadouts"]["Hello"]}}
    (project / "other.json").write_text(json.dumps(other))
    output = line(shell, "load other.json")
    assert "Hello from hello.json is no longer loaded" in text(output)
    assert "no longer loaded" in output._repr_mimebundle_()["text/html"]
    with pytest.raises(MateriaError, match=r"'Hello' of hello\.json is no longer loaded") as caught:
        line(shell, "use Hello")
    assert "load hello.json again" in caught.value.hint
    assert "no longer" not in text(line(shell, "load other.json"))


def test_changed_file_is_loaded_again(shell, project):
    line(shell, "load hello.json")
    (project / "hello.json").write_text(json.dumps(HELLO).replace('"hello"', '"morning"'))
    assert "morning" in text(line(shell, "load"))


@pytest.mark.parametrize(
    "typed,expected",
    [
        ("modify", "edit changes"),
        ("Redo", "undo"),
        ("rerun", "retry"),
        ("zzz", "one of"),
        ("edit", "items, set"),
    ],
)
def test_error_for_an_unknown_verb_suggests_a_similar_verb(shell, typed, expected):
    with pytest.raises(MateriaError) as caught:
        line(shell, typed)
    assert expected in caught.value.hint


def test_name_that_differs_only_by_a_number_is_not_suggested(shell):
    line(shell, "use Plan-Build-Eval")
    line(shell, "cast x")
    with pytest.raises(MateriaError) as caught:
        line(shell, "run --until Socket-77")
    assert "did you mean" not in caught.value.hint
    assert "choose one of: " in caught.value.hint


def test_resume_of_a_missing_cast_lists_casts_with_requests(shell):
    line(shell, "load hello.json")
    error_text = cell(shell, "cast", "write a guide\n\n- short")
    with pytest.raises(MateriaError) as caught:
        line(shell, "resume nope")
    assert f"{error_text.id}  write a guide / - short" in caught.value.hint
    assert "write a guide / - short" in text(line(shell, "list casts"))


def test_agent_for_an_unknown_name_is_refused(shell):
    line(shell, "list loadouts")
    wb = shell.user_ns["wb"]
    with pytest.raises(MateriaError, match="No materia or socket is called 'Plam'") as caught:
        wb.cast("x", loadout="Plan-Build-Eval", agents={"Plam": "person"})
    assert "'Plan'" in caught.value.hint
    assert wb.cast("x", loadout="Plan-Build-Eval", agents={"Socket-1": "person", "*": "person"}).status == "ready"
