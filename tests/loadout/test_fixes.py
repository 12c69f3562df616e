"""Test the fixes of findings, and the bad and good example of each code in docs/problems-and-hints.md."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from design_samples import plain_configs
from loadout_samples import config, edge, looped, route
from magics_helpers import line, text
from materia_nb import Workbench
from materia_nb.errors import MateriaError
from materia_nb.loadout import check_config, read_text, report
from materia_nb.loadout.design import Design
from materia_nb.loadout.graph import Advance
from materia_nb.loadout.report import Problem

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/problems-and-hints.md").read_text(encoding="utf-8")
_SECTION = re.compile(r"^### `([a-z-]+)`\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"```yaml\n# (bad|good)\n(.*?)```", re.DOTALL)


def shared_materia():
    found = re.search(r"```yaml\n# materia\n(.*?)```", PAGE, re.DOTALL)
    return read_text(found[1], "yaml", where="problems-and-hints.md")


def config_of_example(text):
    """Return the config of an example and its loadout name; missing materia are added to a loadout without a config."""
    given = read_text(text, "yaml", where="problems-and-hints.md")
    own = given.pop("materia", {})
    document = given if "loadouts" in given else {"activeLoadout": "T", "loadouts": {"T": given}}
    placed = {socket["materia"] for each in document["loadouts"].values() for socket in each["sockets"].values()}
    return {**document, "materia": {**{id_: raw for id_, raw in shared_materia().items() if id_ in placed}, **own}}


def findings(document, code, project):
    """Return all findings, including those about this machine, which only the workbench reports."""
    found = check_config(document)
    if code != report.MISSING_COMMAND:
        return [*found.problems, *found.hints]
    name = next(iter(document["loadouts"]))
    bench = Workbench(project, bundled=False)
    bench.load(document)
    return list(bench.check(name).hints)


EXAMPLES = {code: (dict(_BLOCK.findall(body)), body) for code, body in _SECTION.findall(PAGE)}


def test_every_hint_has_a_bad_and_a_good_example():
    lists = re.findall(r"^<!-- generated: \w+ -->\n(.*?)<!-- end -->", PAGE, re.MULTILINE | re.DOTALL)
    codes = set(re.findall(r"\[`([a-z-]+)`\]", "".join(lists)))
    assert set(EXAMPLES) == codes  # test_docs.py compares the lists of codes with the rules
    assert all(set(blocks) == {"bad", "good"} for blocks, _ in EXAMPLES.values())


@pytest.mark.parametrize("code", EXAMPLES)
def test_bad_example_has_the_hint_and_good_example_is_clean(code, tmp_path):
    blocks, _ = EXAMPLES[code]
    bad = findings(config_of_example(blocks["bad"]), code, tmp_path)
    good = findings(config_of_example(blocks["good"]), code, tmp_path)
    assert code in {finding.code for finding in bad}
    assert [str(finding) for finding in good if finding.code == code or finding.severity == "problem"] == []


@pytest.mark.parametrize("code", EXAMPLES)
def test_every_documented_fix_exists(code):
    blocks, body = EXAMPLES[code]
    document = config_of_example(blocks["bad"])
    name = next(iter(document["loadouts"]))
    design = Design(name, document["loadouts"][name], document)
    before = design.report
    found = next((finding for finding in (*before.problems, *before.hints) if finding.code == code), None)
    fix = None if found is None else design.fix_of(found)
    assert ("*Can be fixed automatically" in body) == (fix is not None and not fix.suggestion)
    assert ("*A fix is suggested" in body) == (fix is not None and fix.suggestion)
    if fix is None:
        return
    assert design.fix(found) == design.steps[-1]
    after = design.report
    assert code not in {finding.code for finding in (*after.problems, *after.hints)}
    assert fix.suggestion or design.document == config_of_example(blocks["good"])["loadouts"][name]
    design.undo()
    assert design.report == before


def test_fixing_a_finding_that_has_no_fix_raises_an_error():
    document = config({"Socket-1": {"materia": "P"}, "Socket-2": {"materia": "P"}})
    design = Design("T", document["loadouts"]["T"], document)
    (hint,) = [finding for finding in design.report.hints if finding.code == "unreachable-socket"]
    assert hint not in design.fixes()
    with pytest.raises(MateriaError, match="no automatic fix"):
        design.fix(hint)


def test_outdated_finding_cannot_be_fixed():
    document = config({"Socket-1": {"materia": "P"}})
    design = Design("T", {"sockets": document["loadouts"]["T"]["sockets"]}, document)
    [finding] = design.report.hints
    assert design.fix_of(finding).label == "Set the entry to Socket-1"
    design.set_entry("Socket-1")
    assert design.fix_of(finding) is None
    for source in ("Socket-9.edges[0]", "Socket-1.edges[4]", "nowhere", ""):
        assert design.fix_of(Problem("never-taken", source, "", "", "T", "hint")) is None


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
        "Change the target to Socket-2",
        lambda after: after["sockets"]["Socket-4"]["edges"][0]["to"] == "Socket-2",
    ),
    "unreachable-edge": (
        loop(
            [route("Socket-3", "satisfied", "Socket-4")],
            Socket_4={"parse": "json", "edges": [edge("end"), edge("Socket-1", "satisfied")]},
        ),
        "Move the edge forward",
        lambda after: [edge["when"] for edge in after["sockets"]["Socket-4"]["edges"]] == ["satisfied", "always"],
    ),
    "missing-entry": (
        {**loop([route("Socket-3", "satisfied", "Socket-4")])},
        "Set the entry to Socket-1",
        lambda after: after["entry"] == "Socket-1",
    ),
    "lone-guard": (
        config(
            {
                "Socket-1": {"materia": "P", "parse": "json", "edges": [edge("Socket-2", "satisfied")]},
                "Socket-2": {"materia": "P"},
            }
        ),
        "Add an edge to the end (not_satisfied)",
        lambda after: after["sockets"]["Socket-1"]["edges"][1] == edge("end", "not_satisfied"),
    ),
    "empty-list-ends": (
        loop([route("Socket-3", "satisfied", "Socket-4")]),
        "Add an exit to Socket-4 (always)",
        lambda after: {route["condition"] for route in after["loops"]["L"]["exits"]} == {"satisfied", "always"},
    ),
}


@pytest.mark.parametrize("code", CASES)
def test_fix_makes_the_change_named_by_its_hint(code):
    document, label, holds = CASES[code]
    document = copy.deepcopy(document)
    if code == "missing-entry":
        del document["loadouts"]["T"]["entry"]
    design = Design("T", document["loadouts"]["T"], document)
    found = next(finding for finding in (*design.report.problems, *design.report.hints) if finding.code == code)
    fix = design.fix_of(found)
    assert (fix.label, fix.suggestion) == (label, code == "unknown-endpoint")
    assert design.fix(found) == fix.summary
    assert holds(design.document)


def test_renumbered_socket_keeps_its_former_name_as_its_label():
    document = config({"Judge": {"materia": "P", "edges": [edge("Judge")]}})
    design = Design("T", document["loadouts"]["T"], document)
    [hint] = [finding for finding in design.report.hints if finding.code == "socket-id"]
    assert design.fix_of(hint).label == "Rename to Socket-1, and keep Judge as the label"
    design.fix(hint)
    labelled = {"materia": "P", "edges": [edge("Socket-1")], "label": "Judge"}
    assert (design.document["sockets"], design.document["entry"]) == ({"Socket-1": labelled}, "Socket-1")


def test_fix_that_parses_utility_output_as_json_is_applied_only_on_request():
    document = config({"Socket-1": {"materia": "U", "edges": [edge("end", "satisfied")]}})
    document["materia"] = {"U": {"type": "utility", "command": ["true"]}}
    design = Design("T", document["loadouts"]["T"], document)
    [hint] = [finding for finding in design.report.hints if finding.code == "guard-on-text"]
    assert design.fix_of(hint).suggestion
    assert "set parse of U to json" not in design.fix_all()
    design.fix(hint)
    assert design.definitions["U"]["parse"] == "json"
    assert hint not in design.report.hints


def test_fix_adds_an_exit_to_the_end_for_uncovered_results():
    blocks, _ = EXAMPLES["exhausted-unmatched"]
    document = config_of_example(blocks["bad"])
    design = Design("T", document["loadouts"]["T"], document)
    [hint] = [finding for finding in design.report.hints if finding.code == "exhausted-unmatched"]
    design.fix(hint)
    made = design.document["loops"]["parts"]["exits"][-1]
    assert (made["from"], made["condition"], made["targetSocketId"]) == ("Socket-2", "not_satisfied", "end")


def test_fix_finds_a_socket_whose_id_contains_a_dot():
    sockets = {
        "a": {"materia": "P", "edges": [edge("a.b")]},
        "a.b": {"materia": "P", "edges": [edge("end", "satisfied")]},
    }
    document = config(sockets, entry="a")
    design = Design("T", document["loadouts"]["T"], document)
    (hint,) = [finding for finding in design.report.hints if finding.code == "guard-on-text"]
    design.fix(hint)
    assert design.document["sockets"]["a.b"]["parse"] == "json"


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(plain_configs, st.data())
def test_fix_removes_its_finding_and_adds_no_problem(document, data):
    design = Design("T", document["loadouts"]["T"], document)
    found = design.fixes()
    if not found:
        return
    one = data.draw(st.sampled_from(list(found)))
    design.fix(one)
    after = design.report
    assert after.ok
    assert (one.code, one.source) not in {(left.code, left.source) for left in after.hints}


def test_fix_magic_previews_changes_and_saves_them_on_request(shell, project):
    file = project / "two.json"
    text_of = json.dumps(
        {
            "loadouts": {"Two": {"sockets": {"Socket-1": {"materia": "P", "edges": [edge("end", "satisfied")]}}}},
            "materia": {"P": {"tools": "none", "prompt": "p"}},
        }
    )
    file.write_text(text_of)
    line(shell, "load two.json")
    output = text(line(shell, "check --fix"))
    assert "set parse of Socket-1 to json" in output
    assert file.read_text() == text_of
    said = text(line(shell, "check --fix --save"))
    assert said.splitlines()[-1].startswith("saved in")
    kept = json.loads(file.read_text())["loadouts"]["Two"]
    assert (kept["entry"], kept["sockets"]["Socket-1"]["parse"]) == ("Socket-1", "json")
    assert text(line(shell, "check --fix")).startswith("There is nothing to fix")
    assert text(line(shell, "check --fix --save")).startswith("No problem can be fixed automatically")


def test_fixes_to_a_locked_loadout_are_saved_only_as_a_copy(shell, project):
    loadout = {"lockState": "locked", "sockets": {"Socket-1": {"materia": "P", "edges": [edge("end", "satisfied")]}}}
    document = {"loadouts": {"Two": loadout}, "materia": {"P": {"tools": "none", "prompt": "p"}}}
    file = project / "two.json"
    file.write_text(json.dumps(document))
    line(shell, "load two.json")
    with pytest.raises(MateriaError, match="Two is locked"):
        line(shell, "check --fix --save")
    assert json.loads(file.read_text()) == document
    line(shell, "check --fix --to copy.json")
    copied = json.loads((project / "copy.json").read_text())["loadouts"]["Two"]
    assert copied["sockets"]["Socket-1"]["parse"] == "json"


def test_fixes_to_a_yaml_file_are_saved_as_json(shell, project):
    text_of = "materia: {P: {tools: none, prompt: p}}\nloadouts: {Two: {sockets: {Socket-1: {materia: P}}}}\n"
    (project / "two.yaml").write_text(text_of)
    line(shell, "load two.yaml")
    assert "--to two.json" in text(line(shell, "check --fix"))
    with pytest.raises(MateriaError, match="is a YAML file, which cannot be changed") as caught:
        line(shell, "check --fix --save")
    assert caught.value.hint == "write `check --fix --to two.json`"
    assert "saved in" in text(line(shell, "check --fix --to two.json"))
    assert json.loads((project / "two.json").read_text())["loadouts"]["Two"]["entry"] == "Socket-1"
    assert (project / "two.yaml").read_text() == text_of


def test_fix_all_applies_every_safe_fix():
    blocks, _ = EXAMPLES["empty-list-ends"]
    document = config_of_example(blocks["bad"])
    document["loadouts"]["T"]["sockets"]["Socket-2"].pop("parse")
    design = Design("T", document["loadouts"]["T"], document)
    assert len(design.fix_all()) == len(design.steps) == 2
    assert all(fix.suggestion for fix in design.fixes().values())


def validated(loop, **sockets):
    """Return a design in which a validator stands between the generator and the loop."""
    document = looped(loop, Socket_1={"edges": [edge("Socket-5")]}, **sockets)
    document["loadouts"]["T"]["sockets"]["Socket-5"] = {
        "materia": "P",
        "parse": "json",
        "edges": [edge("Socket-1", "not_satisfied", 2), edge("Socket-2")],
    }
    return Design("T", document["loadouts"]["T"], document)


TO_THE_END = [route("Socket-3", "satisfied", "Socket-4")]


@pytest.mark.parametrize("source", ["Socket-1", "Socket-5", None])
def test_fix_lets_a_loop_after_a_validator_iterate_over_the_items_in_the_state(source):
    consumes = {"output": "workItems", **({} if source is None else {"from": source})}
    design = validated({"consumes": consumes, "exits": TO_THE_END})
    for problem in design.report.problems:
        assert design.fix_of(problem).label == "Iterate over state.workItems, the items of Socket-1"
        assert design.fix_of(problem).suggestion
    assert "let the loop iterate over state.workItems" in design.report.problems[-1].hint
    design.fix(design.report.problems[0])
    assert design.report.problems == ()
    assert design.document["loops"]["L"] == {
        "sockets": ["Socket-2", "Socket-3"],
        "iterator": {"items": "state.workItems", "as": "workItem", "cursor": "workItemIndex"},
        "exits": TO_THE_END,
    }
    assert design.document["sockets"]["Socket-3"]["advance"] == {"when": "satisfied"}
    design.undo()
    assert not design.steps, "one step"


def test_fix_keeps_the_advance_and_the_variables_of_a_loop_after_a_validator():
    advance = {"cursor": "done", "items": "state.workItems", "when": "satisfied"}
    consumes = {"from": "Socket-1", "as": "task", "cursor": "done"}
    design = validated({"consumes": consumes, "exits": TO_THE_END}, Socket_3={"advance": advance})
    design.fix(design.report.problems[0])
    assert design.document["loops"]["L"]["iterator"] == {"items": "state.workItems", "as": "task", "cursor": "done"}
    assert design.graph().sockets["Socket-3"].advance == Advance(**advance)


def test_fix_gives_a_loop_its_own_cursor_if_an_earlier_loop_uses_the_same_one():
    design = validated({"consumes": {"from": "Socket-1"}}, Socket_4={"edges": [edge("Socket-4", "not_satisfied")]})
    design.make_loop(["Socket-4"], "other", iterator={"items": "state.workItems", "cursor": "workItemIndex"})
    design.fix(design.report.problems[0])
    assert design.document["loops"]["L"]["iterator"]["cursor"] == "LIndex"


def test_loop_must_consume_the_output_of_a_generator_that_can_run_again():
    """Only a loop that consumes the items of a generator starts again when the generator runs again (R17)."""
    design = validated({"consumes": {"from": "Socket-1"}, "exits": TO_THE_END}, Socket_4={"edges": [edge("Socket-1")]})
    (problem,) = design.report.problems
    assert design.fix_of(problem) is None
    assert "iterate" not in problem.hint


def test_stuck_loops_and_missing_tools_can_be_fixed():
    raw = looped(Socket_3={"edges": [edge("Socket-2")]})
    name, document = next(iter(raw["loadouts"].items()))
    design = Design(name, document, raw)
    found = next(finding for finding in design.report.hints if finding.code == "never-advances")
    fix = design.fix_of(found)
    assert fix is not None
    assert fix.suggestion
    assert fix.label == "Advance Socket-3 when satisfied"
    design.fix(found)
    assert design.document["sockets"]["Socket-3"]["advance"] == {"when": "satisfied"}

    bare = Design("A", {"sockets": {"Socket-1": {"materia": "P"}}}, {"materia": {"P": {"prompt": "x"}}})
    [missing] = [finding for finding in bare.report.problems if finding.source == "materia.P.tools"]
    assert bare.fix_of(missing).label == "Set tools of P to none"
    bare.fix(missing)
    assert bare.report.ok
    assert bare.changed_materia == {"P": {"prompt": "x", "tools": "none"}}
