"""Test that saving a design changes its file only where the loadout changed, or leaves it untouched."""

from __future__ import annotations

import copy
import difflib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from design_samples import plain_configs, plainly
from loadout_samples import config, edge, looped
from materia_nb import Workbench
from materia_nb.errors import MateriaError
from materia_nb.loadout import read_config
from materia_nb.loadout.design import Design
from materia_nb.loadout.design.edges import make_loop, with_exits
from materia_nb.loadout.design.saving import add_loadout, open_design, rewrite_json, save_design
from materia_nb.loadout.layers import BUNDLED, PROJECT_FILE, load_layers


def changed_lines(before: str, after: str) -> list[str]:
    old, new = before.splitlines(), after.splitlines()
    # Brackets alone on a line are many, and must not count as noise all the same.
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    found = []
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag != "equal":
            found += [f"- {' '.join(line.split())}" for line in old[a:b]]
            found += [f"+ {' '.join(line.split())}" for line in new[c:d]]
    return found


def config_file(project: Path, name: str = "given.json", text: str | None = None) -> Path:
    path = project / name
    path.write_text(text if text is not None else json.dumps(looped(), indent=4))
    return path


# -- the text of a JSON file ------------------------------------------------------------


def test_save_changes_only_necessary_lines():
    text = BUNDLED.read_text()
    whole = json.loads(text)
    draft = Design("Plan-Build-Eval", whole["loadouts"]["Plan-Build-Eval"], whole)
    draft.add_socket("Build")
    draft.add_edge("Socket-5", "Socket-6")
    draft.move_edge("Socket-3", 0, 1)
    draft.add_exit("items", "Socket-3", "always", "end")
    draft.rename_socket("Socket-2", "Make")
    after = rewrite_json(text, draft.full_config)
    assert json.loads(after) == draft.full_config
    assert changed_lines(text, after) == [
        '- "edges": [{ "when": "always", "to": "Socket-2" }]',
        '+ "edges": [{ "when": "always", "to": "Make" }]',
        '- "Socket-2": {',
        '+ "Make": {',
        '- { "when": "satisfied", "to": "Socket-4" },',
        '- { "when": "not_satisfied", "to": "Socket-2", "maxTraversals": 3 }',
        '+ { "when": "not_satisfied", "to": "Make", "maxTraversals": 3 },',
        '+ { "when": "satisfied", "to": "Socket-4" }',
        '- "edges": [{ "when": "always", "to": "Socket-2" }]',
        '+ "edges": [{ "when": "always", "to": "Make" }]',
        '- "materia": "Narrate"',
        '+ "materia": "Narrate",',
        '+ "edges": [{ "when": "always", "to": "Socket-6" }]',
        "+ },",
        '+ "Socket-6": {',
        '+ "materia": "Build"',
        '- "sockets": ["Socket-2", "Socket-3", "Socket-4"],',
        '+ "sockets": ["Make", "Socket-3", "Socket-4"],',
        "+ },",
        "+ {",
        '+ "id": "exit:Socket-3:always",',
        '+ "from": "Socket-3",',
        '+ "condition": "always",',
        '+ "targetSocketId": "end"',
        '- "Socket-2": { "x": 1, "y": 0 },',
        '+ "Make": { "x": 1, "y": 0 },',
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("indent", [None, 2, 4, "\t"])
def test_save_preserves_the_formatting_style_of_a_file(indent, end):
    document = config({"Socket-1": {"materia": "P", "edges": [edge("end")], "ü": 1.50}})
    text = json.dumps(document, indent=indent, ensure_ascii=False).replace("\n", end)
    new = copy.deepcopy(document)
    new["loadouts"]["T"]["sockets"]["Socket-2"] = {"materia": "P", "edges": [edge("end")]}
    expected = json.dumps(new, indent=indent, ensure_ascii=False).replace("\n", end)
    assert rewrite_json(text, new) == expected
    assert rewrite_json(rewrite_json(text, new), document) == text


def test_unchanged_numbers_and_escapes_keep_their_spelling():
    text = '{"a": 1.50e1, "b": "\\u00e9\\/", "c": [ 1,2 ],\n "d":{}}'
    assert rewrite_json(text, {"a": 15.0, "b": "é/", "c": [1, 2], "d": {}, "e": "\ud800"}) == (
        '{\n "a": 1.50e1,\n "b": "\\u00e9\\/",\n "c": [ 1,2 ],\n "d":{},\n "e": "\\ud800"\n}'
    )
    assert rewrite_json('[ {"a":1}, { "b": 2.0 } ]', [{"b": 2.0}, {"a": 1}]) == '[ { "b": 2.0 }, {"a":1} ]'
    assert rewrite_json('{"a": 1, "b": true}', {"a": True, "b": 1}) == '{"a": true, "b": 1}'


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abcde"), inner, max_size=5),
    max_leaves=20,
)


def test_deeply_nested_file_is_reformatted_when_it_is_saved():
    deep = json.loads("[" * 480 + "1" + "]" * 480)
    assert json.loads(rewrite_json(json.dumps({"a": deep, "b": 1}), {"a": [deep, 2], "b": 1})) == {
        "a": [deep, 2],
        "b": 1,
    }


@given(_values, _values, st.sampled_from([None, 1, 2, "\t"]))
def test_saved_text_always_parses_to_the_edited_value(old, new, indent):
    text = json.dumps(old, indent=indent)
    assert json.dumps(json.loads(rewrite_json(text, new))) == json.dumps(new)
    assert rewrite_json(text, old) == text


@given(plain_configs, st.randoms(use_true_random=False))
def test_removing_and_restoring_a_socket_restores_the_text(document, random):
    text = plainly(document)
    draft = Design("T", document["loadouts"]["T"], document)
    draft.remove_socket(random.choice(list(draft.document["sockets"])))
    less = rewrite_json(text, draft.full_config)
    assert less == plainly(draft.full_config)
    assert rewrite_json(less, document) == text


# -- files --------------------------------------------------------------------------------


def test_edited_design_is_saved_to_the_loaded_file(wb, project):
    path = config_file(project)
    before = path.read_text()
    wb.load("given.json")
    draft = wb.design()
    assert wb.loadouts.save(draft) == f"saved in {path}"
    assert path.read_text() == before, "saving an unchanged design changes nothing"
    draft.add_edge("Socket-4", "end")
    assert "Socket-4" in wb.graph().sockets
    assert not wb.graph().sockets["Socket-4"].edges, "unsaved changes are not cast"
    wb.loadouts.save(draft)
    assert not draft.changed
    assert changed_lines(before, path.read_text()) == [
        '- "materia": "P"',
        '+ "materia": "P",',
        '+ "edges": [',
        "+ {",
        '+ "when": "always",',
        '+ "to": "end"',
        "+ }",
        "+ ]",
    ]
    assert wb.graph().sockets["Socket-4"].edges[0].to == "end"
    draft.undo()
    wb.loadouts.save(draft)
    assert path.read_text() == before


def test_locked_loadout_is_changed_only_on_request(wb, project):
    path = config_file(project)
    document = json.loads(path.read_text())
    (name,) = document["loadouts"]
    document["loadouts"][name]["lockState"] = "locked"
    path.write_text(json.dumps(document, indent=2))
    before = path.read_text()
    wb.load("given.json")
    draft = wb.design()
    draft.add_edge("Socket-4", "end")
    with pytest.raises(MateriaError, match="is locked") as caught:
        wb.loadouts.save(draft)
    assert caught.value.kind == "locked"
    assert path.read_text() == before
    wb.loadouts.save(draft, "copy.json")
    assert path.read_text() == before, "a copy does not change the locked loadout"
    wb.loadouts.save(draft, anyway=True)
    assert json.loads(path.read_text())["loadouts"][name]["sockets"]["Socket-4"]["edges"]
    draft.set_loadout("lockState", "unlocked")
    wb.loadouts.save(draft)
    assert json.loads(path.read_text())["loadouts"][name]["lockState"] == "unlocked"


def test_edited_bundled_loadout_is_saved_as_a_copy_in_the_project(wb, project):
    bundled = BUNDLED.read_bytes()
    draft = wb.design("Ask")
    assert str(draft.home) == str(project / PROJECT_FILE)
    assert "bundled" in draft.home.reason
    draft.add_edge("Socket-1", "end")
    wb.loadouts.save(draft)
    assert BUNDLED.read_bytes() == bundled
    assert wb.loadouts["Ask"] == "project"
    kept = read_config(project / PROJECT_FILE)
    assert kept == {"activeLoadout": "Ask", "loadouts": {"Ask": draft.document}}
    second = wb.design("Ask")
    second.set_loadout("description", "asks")
    wb.loadouts.save(second)
    assert read_config(project / PROJECT_FILE)["loadouts"]["Ask"]["description"] == "asks"


@pytest.mark.parametrize("layer, kept", [("environment", "own.json"), ("profile", str(PROJECT_FILE))])
def test_config_from_the_environment_is_edited_but_a_profile_is_not(project, monkeypatch, layer, kept):
    profile = project / "profile"
    profile.mkdir()
    own = profile / "config.json" if layer == "profile" else project / "own.json"
    own.write_text(json.dumps(looped()))
    before = own.read_bytes()
    monkeypatch.setenv(*(("MATERIA_PROFILE_DIR", str(profile)) if layer == "profile" else ("MATERIA_CONFIG", str(own))))
    wb = Workbench(project)
    assert wb.loadouts["T"] == layer
    draft = wb.design("T")
    draft.add_socket("P")
    assert wb.loadouts.save(draft) == f"saved in {project / kept}"
    assert "Socket-5" in wb.graph("T").sockets
    assert (own.read_bytes() == before) == (layer == "profile")


def design_with_a_loop(wb):
    draft = wb.design("Items", new=True)
    for materia in ("Auto-Plan", "Build", "Eval"):
        draft.add_socket(materia)
    for source, to in ((1, 2), (2, 3), (3, 2)):
        draft.add_edge(f"Socket-{source}", f"Socket-{to}")
    draft.set_socket("Socket-3", "parse", "json")
    draft.make_loop(["Socket-2", "Socket-3"], consumes="Socket-1")
    draft.add_exit("items", "Socket-3", "satisfied", "end")
    return draft


def test_saved_loop_has_the_advance_that_its_exits_imply_r74(wb, project):
    draft = design_with_a_loop(wb)
    before = draft.graph()
    wb.loadouts.save(draft)
    written = read_config(project / PROJECT_FILE)["loadouts"]["Items"]["sockets"]["Socket-3"]
    assert written["advance"] == {"cursor": "workItemIndex", "items": "state.workItems", "when": "satisfied"}
    assert "advance" not in draft.document["sockets"]["Socket-3"]
    saved = wb.graph("Items")
    assert replace(saved.sockets["Socket-3"].advance, derived=True) == before.sockets["Socket-3"].advance
    text = (project / PROJECT_FILE).read_text()
    wb.loadouts.save(draft)
    assert (project / PROJECT_FILE).read_text() == text


@pytest.mark.parametrize("name", ["Plan-Build-Eval", "Full-Auto", "Teach-Exits"])
def test_copied_loadout_contains_the_cursor_and_list_of_each_advance_r74(wb, project, name):
    before = wb.graph(name)
    wb.loadouts.copy(name, "Mine")
    sockets = read_config(project / PROJECT_FILE)["loadouts"]["Mine"]["sockets"]
    advances = [socket["advance"] for socket in sockets.values() if "advance" in socket]
    assert advances
    assert all({"cursor", "items"} <= advance.keys() for advance in advances)
    after = wb.graph("Mine")
    assert {id_: socket.advance for id_, socket in after.sockets.items()} == {
        id_: socket.advance for id_, socket in before.sockets.items()
    }


def test_editing_the_exits_of_a_saved_loop_updates_its_advance(wb):
    draft = design_with_a_loop(wb)
    wb.loadouts.save(draft)
    reopened = wb.design("Items")
    assert reopened.document["sockets"]["Socket-3"]["advance"]["when"] == "satisfied"
    reopened.change_exit("items", 0, condition="always")
    assert reopened.graph().sockets["Socket-3"].advance == replace(
        draft.graph().sockets["Socket-3"].advance, when="always"
    )
    wb.loadouts.save(reopened)
    assert wb.design("Items").document["sockets"]["Socket-3"]["advance"]["when"] == "always"
    reopened.undo()
    assert reopened.document["sockets"]["Socket-3"]["advance"]["when"] == "satisfied"


def test_new_loadout_is_saved_in_the_project_file(wb, project):
    draft = wb.design("Mine", new=True)
    draft.add_socket("Answer")
    wb.loadouts.save(draft)
    assert wb.loadouts["Mine"] == "project"
    with pytest.raises(MateriaError, match="already"):
        wb.design("Mine", new=True)
    with pytest.raises(MateriaError, match="cannot be the name"):
        wb.design("", new=True)


def test_design_can_be_saved_into_the_notebook(wb, project):
    draft = wb.design("Ask")
    draft.set_loadout("label", "mine")
    assert wb.loadouts.save(draft, "notebook") == "saved in this notebook"
    assert wb.loadouts["Ask"] == "notebook"
    assert wb.loadouts.chosen == "Ask"
    assert not (project / PROJECT_FILE).exists()
    reopened = wb.design("Ask")
    assert reopened.home.path is None
    reopened.add_edge("Socket-1", "end")
    wb.loadouts.save(reopened)
    assert wb.graph("Ask").sockets["Socket-1"].edges[0].to == "end"
    assert "the layer notebook overrides it" in wb.loadouts.save(reopened, project / PROJECT_FILE)


def test_save_reports_a_materia_that_no_file_defines(wb, project):
    wb.loadouts.define_materia("Mine", {"tools": "none", "prompt": "p"})
    draft = wb.design("Ask")
    draft.set_socket("Socket-1", "materia", "Mine")
    assert wb.loadouts.save(draft).endswith("; no file defines the materia Mine")


def test_externally_changed_file_is_not_overwritten(wb, project):
    path = config_file(project)
    wb.load("given.json")
    draft = wb.design()
    draft.add_socket("P")
    path.write_text(path.read_text().replace('"prompt": "p"', '"prompt": "other"'))
    now = path.read_bytes()
    with pytest.raises(MateriaError, match="changed on disk") as caught:
        wb.loadouts.save(draft)
    assert "reload" in caught.value.hint
    assert path.read_bytes() == now
    assert draft.changed
    path.unlink()
    with pytest.raises(MateriaError, match="changed on disk"):
        wb.loadouts.save(draft)
    draft = Workbench(project).design("Ask")
    (project / ".pi").mkdir(exist_ok=True)
    (project / PROJECT_FILE).write_text("{}")
    with pytest.raises(MateriaError, match="changed on disk"):
        wb.loadouts.save(draft, anyway=True)


def test_design_starts_from_the_current_file(wb, project):
    path = config_file(project)
    wb.load("given.json")
    path.write_text(path.read_text().replace('"L"', '"M"'))
    draft = wb.design()
    assert list(draft.document["loops"]) == ["M"]
    draft.add_socket("P")
    wb.loadouts.save(draft)


def test_unfinished_loadout_is_saved_only_on_request(wb, project):
    path = config_file(project)
    wb.load("given.json")
    draft = wb.design()
    draft.remove_socket("Socket-1")
    before = path.read_bytes()
    for to in (None, "notebook", "copy.json"):
        with pytest.raises(MateriaError, match="problems: loops"):
            wb.loadouts.save(draft, to)
    assert path.read_bytes() == before
    assert not (project / "copy.json").exists()
    wb.loadouts.save(draft, anyway=True)
    assert not wb.check("T").ok
    reopened = wb.design("T")
    reopened.set_entry("Socket-2")
    assert reopened.document["entry"] == "Socket-2"


def test_design_can_be_saved_as_another_file(wb, project):
    config_file(project)
    wb.load("given.json")
    draft = wb.design()
    draft.add_socket("P")
    copied = wb.loadouts.save(draft, "new.json")
    assert copied == f"saved in {project / 'new.json'} with the materia G, P; the layer given overrides it"
    assert draft.changed, "its own file has not changed"
    written = read_config(project / "new.json")
    assert written["loadouts"] == {"T": draft.document}
    assert set(written["materia"]) == {"G", "P"}
    with pytest.raises(MateriaError, match="already"):
        wb.loadouts.save(draft, "new.json")
    draft.add_socket("P")
    wb.loadouts.save(draft, "new.json", anyway=True)
    assert "Socket-6" in read_config(project / "new.json")["loadouts"]["T"]["sockets"]
    for name, words in (
        ("new.yaml", "not saved"),
        ("new.txt", "unknown extension"),
        ("a/b/c.json", "does not exist"),
    ):
        with pytest.raises(MateriaError, match=words):
            wb.loadouts.save(draft, name)
    (project / "list.json").write_text("[]")
    with pytest.raises(MateriaError, match="is not a config"):
        wb.loadouts.save(draft, "list.json")


def test_yaml_file_is_not_changed_and_the_error_offers_to_save_a_copy(wb, project):
    text = "# mine\n" + json.dumps(looped())
    path = config_file(project, "given.yaml", text)
    wb.load("given.yaml")
    draft = wb.design()
    draft.add_socket("P")
    with pytest.raises(MateriaError, match="A YAML file can be read, but not saved") as caught:
        wb.loadouts.save(draft)
    assert "given.json" in caught.value.hint
    assert path.read_text() == text
    wb.loadouts.save(draft, "given.json")
    assert read_config(project / "given.json")["loadouts"]["T"] == draft.document


def test_json_with_comments_is_not_changed_and_the_error_offers_to_save_a_copy(wb, project):
    text = "// mine\n" + json.dumps(looped())
    path = config_file(project, "given.jsonc", text)
    wb.load("given.jsonc")
    draft = wb.design()
    draft.add_socket("P")
    with pytest.raises(MateriaError, match="comments") as caught:
        wb.loadouts.save(draft)
    assert ".json" in caught.value.hint
    assert path.read_text() == text
    assert draft.patch() == [{"op": "add", "path": "/sockets/Socket-5", "value": {"materia": "P"}}]
    wb.loadouts.save(draft, "given.json")
    assert read_config(project / "given.json")["loadouts"]["T"] == draft.document
    plain = config_file(project, "plain.jsonc", json.dumps(looped()))
    wb.load("plain.jsonc")
    draft = wb.design()
    draft.add_socket("P")
    wb.loadouts.save(draft)
    assert "Socket-5" in plain.read_text()


def test_failed_save_changes_neither_file_nor_design(wb, project, monkeypatch):
    path = config_file(project)
    wb.load("given.json")
    draft = wb.design()
    draft.add_socket("P")
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("materia_nb.file_io.os.fsync", full)
    with pytest.raises(MateriaError, match="No space left"):
        wb.loadouts.save(draft)
    assert path.read_bytes() == before
    assert [entry.name for entry in project.iterdir() if entry.name != ".pi"] == ["given.json"]
    assert draft.changed


def test_saving_a_design_does_not_change_a_running_cast(bench):
    cast = bench.cast("build it")
    cast.run(steps=2)
    draft = bench.design()
    draft.remove_socket("Socket-4")
    draft.set_socket("Socket-5", "materia", "Build")
    bench.loadouts.save(draft, anyway=True)
    bench.loadouts.save(draft, "notebook", anyway=True)
    assert cast.run() == "complete"
    assert "Socket-4" in [socket for socket, *_ in cast.route]
    assert cast.route[-1][0] == "Socket-5"
    assert cast.graph.sockets["Socket-5"].materia.id == "Narrate"
    assert "Socket-4" not in bench.cast("the next one").graph.sockets


@pytest.mark.parametrize("to", ["notebook", None])
def test_removed_parts_do_not_reappear_from_lower_layers_r33(wb, to):
    design = wb.design("Plan-Build-Eval")
    design.delete_loop("items")
    wb.loadouts.save(design, to, anyway=True)
    assert "loops" not in wb.loadouts.config.document["loadouts"]["Plan-Build-Eval"]
    assert wb.loadouts.config.origin("loadout", "Plan-Build-Eval").name == ("notebook" if to else "project")


def test_designer_shows_all_parts_of_a_partially_overridden_loadout_r33(wb, project):
    (project / PROJECT_FILE).parent.mkdir()
    (project / PROJECT_FILE).write_text('{"loadouts": {"Ask": {"description": "mine"}}}')
    wb.load()
    design = wb.design("Ask")
    assert set(design.document) >= {"entry", "sockets", "description"}
    assert "saved in" in wb.loadouts.save(design)


LOW = {"tools": "none", "prompt": "low", "model": "a"}


@pytest.mark.parametrize(
    "changes, kept",
    [
        ([("P", "prompt", "high")], {"P": {"model": "b", "label": "L", "prompt": "high"}}),
        ([("P", "model", "a")], {"P": {"model": "a", "label": "L"}}),
        ([("P", "label", None)], {"P": {"model": "b"}}),
        ([("P", "model", None)], {"P": {"model": None, "label": "L"}}),
        ([("P", "tools", None)], {"P": {"model": "b", "label": "L", "tools": None}}),
        ([("P", "model", "a"), ("P", "label", None)], {"P": {"model": "a"}}),
        ([("Q", "prompt", "other")], {"P": {"model": "b", "label": "L"}, "Q": {"prompt": "other"}}),
        ([("Q", "prompt", "other"), ("Q", "prompt", "low")], {"P": {"model": "b", "label": "L"}}),
    ],
)
def test_layer_stores_only_changed_fields_of_a_materia(tmp_path, project, changes, kept):
    profile = tmp_path / "profile"
    profile.mkdir(exist_ok=True)
    (profile / "config.json").write_text(json.dumps({"materia": {"P": LOW, "Q": LOW}}))
    sockets = {"Socket-1": {"materia": "P", "edges": [edge("Socket-2")]}, "Socket-2": {"materia": "Q"}}
    own = {
        "loadouts": {"T": {"entry": "Socket-1", "sockets": sockets}},
        "materia": {"P": {"model": "b", "label": "L"}},
    }
    path = project / PROJECT_FILE
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(own))

    def load():
        return load_layers(project=project, env={"MATERIA_PROFILE_DIR": str(profile)}, bundled=False)

    draft = open_design(load(), "T", project)
    for change in changes:
        draft.set_materia(*change)
    assert save_design(draft, anyway=True) == path
    assert read_config(path) == {**own, "materia": kept}
    assert load().document["materia"] == draft.definitions


def test_new_materia_is_saved_and_undo_removes_it(tmp_path, project):
    path = project / "given.json"
    path.write_text(json.dumps({"loadouts": {"T": {"sockets": {}}}}))

    def opened():
        return open_design(load_layers(path, project=project, env={}, bundled=False), "T", project)

    draft = opened()
    draft.make_materia("N", "utility")
    save_design(draft, anyway=True)
    made = read_config(path)["materia"]
    assert list(made) == ["N"]
    assert made["N"]["type"] == "utility"
    assert not draft.changed
    draft.undo()
    save_design(draft, anyway=True)
    assert read_config(path).get("materia", {}) == {}
    assert opened().definitions == {}


def test_edges_that_leave_a_new_loop_become_exits():
    sockets = {
        "Socket-1": {"materia": "G", "edges": [edge("Socket-2")]},
        "Socket-2": {"materia": "P", "parse": "json", "edges": [edge("Socket-3", "satisfied"), edge("Socket-4")]},
        "Socket-3": {"materia": "P", "parse": "json", "edges": [
            edge("Socket-2", "satisfied"), edge("Socket-1", "not_satisfied"), edge("end")]},
        "Socket-4": {"materia": "P"},
    }  # fmt: skip
    change = make_loop(
        {"sockets": sockets, "entry": "Socket-1"}, ["Socket-2", "Socket-3"], id_="L", consumes="Socket-1"
    )
    made, turned = with_exits(change, "L")
    assert turned == ["Socket-2 → Socket-4", "Socket-3 → end"]
    assert [
        (route["from"], route["condition"], route["targetSocketId"]) for route in made.document["loops"]["L"]["exits"]
    ] == [
        ("Socket-2", "always", "Socket-4"),
        ("Socket-3", "always", "end"),
    ]
    assert made.document["sockets"]["Socket-3"]["edges"] == sockets["Socket-3"]["edges"][:2]
    assert made.summary == change.summary


def test_saved_copy_can_be_loaded_and_cast_in_another_folder(wb, tmp_path, project, monkeypatch):
    sockets = {
        "Socket-1": {"materia": "Tool", "edges": [edge("Socket-2")]},
        "Socket-2": {"materia": "P", "edges": [edge("Socket-3")]},
        "Socket-3": {"materia": "Build"},
    }
    document = config(sockets)
    document["materia"]["Tool"] = {"type": "utility", "command": ["python3", "tool.py"]}
    script = project / "tool.py"
    script.write_text("print('done')")
    config_file(project, text=json.dumps(document))
    wb.load("given.json")
    other = tmp_path / "elsewhere"
    other.mkdir()
    copied = wb.loadouts.save(wb.design("T"), other / "other.json")
    assert copied.startswith(
        f"saved in {other / 'other.json'} with the materia Tool, P; these scripts were not copied, so they run from their current location: {script}; "
    )
    monkeypatch.setenv("MATERIA_PROFILE_DIR", str(other / "profile"))
    clean = Workbench(other)
    clean.load("other.json")
    assert not clean.check("T").problems
    cast = clean.cast("a request", loadout="T")
    cast.run()
    assert cast.steps[0].output.strip() == "done"
    assert cast.now.waiting_at.socket == "Socket-2"


def test_copy_does_not_replace_a_materia_that_its_file_defines_differently(wb, project):
    config_file(project)
    wb.load("given.json")
    target = config_file(project, "other.json", json.dumps({"materia": {"P": {"prompt": "another"}}}))
    before = target.read_bytes()
    with pytest.raises(MateriaError, match="defines the materia 'P' differently"):
        wb.loadouts.save(wb.design(), "other.json")
    assert target.read_bytes() == before
    wb.loadouts.save(wb.design(), "other.json", anyway=True)
    assert read_config(target)["materia"]["P"] == looped()["materia"]["P"]


def test_adding_a_loadout_preserves_the_other_content_of_the_file(tmp_path):
    path = tmp_path / "new" / "config.json"
    loadout = {"entry": "Socket-1", "sockets": {"Socket-1": {"materia": "P"}}}
    add_loadout(path, "A", loadout, {})
    assert read_config(path) == {"activeLoadout": "A", "loadouts": {"A": loadout}}
    text = '{"x": 1.50,\n "loadouts": {"A": {}},\n "materia": {"P": {"prompt": "mine"}}}'
    path.write_text(text)
    add_loadout(path, "B", loadout, {"P": {"prompt": "p"}, "Q": {"prompt": "q"}})
    assert path.read_text().startswith('{"x": 1.50,')
    assert read_config(path) == {
        "x": 1.5,
        "loadouts": {"A": {}, "B": loadout},
        "materia": {"P": {"prompt": "mine"}, "Q": {"prompt": "q"}},
    }


@pytest.mark.parametrize(
    "document, words",
    [
        ({"loadouts": {"A": {}}}, "already has a loadout 'A'"),
        ([1], "is not a config"),
        ({"loadouts": [1]}, "is not a config"),
        ({"materia": "x"}, "is not a config"),
    ],
)
def test_loadout_is_not_added_to_an_unsuitable_file(tmp_path, document, words):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(document))
    before = path.read_bytes()
    with pytest.raises(MateriaError, match=words) as caught:
        add_loadout(path, "A", {}, {"P": {}})
    assert caught.value.where == str(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("text", ["", '{"loadouts": ', '{"activeLoadout": "A", "activeLoadout": "B"}'])
def test_error_for_an_unreadable_project_file_does_not_blame_comments(wb, project, text):
    path = project / ".pi" / "pi-materia.json"
    path.parent.mkdir(exist_ok=True)
    wb.use("Plan-Build-Eval")
    path.write_text(text)
    with pytest.raises(MateriaError) as caught:
        wb.loadouts.copy("Plan-Build-Eval")
    assert "comments" not in str(caught.value)
    assert path.read_text() == text
