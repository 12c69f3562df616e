"""Test that ``materia check`` reports findings with file and line in the formats that CI systems read."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest

from loadout_samples import BROKEN
from materia_nb import Workbench
from materia_nb.shell.commands import main
from materia_nb.shell.terminal import FORMATTERS


@pytest.fixture
def broken(project, monkeypatch):
    """Return a project with an invalid loadout and a file that is not JSON."""
    monkeypatch.chdir(project)
    (project / "broken.json").write_text(BROKEN)
    (project / "torn.json").write_text('{\n "loadouts": ,\n}')
    return project


def check(capsys, *arguments):
    code = main(["check", *arguments])
    return code, capsys.readouterr().out


def test_all_loadouts_of_all_files_are_checked(broken, capsys):
    code, out = check(capsys, "broken.json", "torn.json", "--json")
    result = json.loads(out)
    assert code == 1
    assert result["checked"] == ["broken.json: Good", "broken.json: Bad", "torn.json"]
    spots = {
        (finding["code"], finding["file"], finding["line"])
        for finding in result["findings"]
        if finding["severity"] == "problem"
    }
    assert ("unknown-endpoint", "broken.json", 10) in spots
    assert ("invalid-materia", "broken.json", 19) in spots
    assert ("unreadable", "torn.json", 2) in spots


def test_github_annotations_are_escaped(broken, capsys):
    (broken / "odd.json").write_text(BROKEN.replace("Sockt-2", "a%b::\\u0007,\\n::error::x"))
    code, out = check(capsys, "odd.json", "--format", "github")
    assert code == 1
    lines = [line for line in out.splitlines() if line.startswith("::error")]
    assert all(one.startswith("::error file=odd.json,line=") for one in lines), "no line of its own"
    assert any("a%25b" in one for one in lines)


def test_sarif_and_junit_name_file_and_line(broken, capsys):
    run = json.loads(check(capsys, "broken.json", "--format", "sarif")[1])["runs"][0]
    places = [result["locations"][0]["physicalLocation"] for result in run["results"] if result["level"] == "error"]
    assert {"uri": "broken.json"} in [place["artifactLocation"] for place in places]
    assert 10 in [one["region"]["startLine"] for one in places]
    assert {one["ruleId"] for one in run["results"]} == {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    suite = ET.fromstring(check(capsys, "broken.json", "--format", "junit")[1])  # noqa: S314 - our own
    assert (suite.get("tests"), suite.get("failures")) == ("2", "2")
    assert "broken.json:10" in "".join(suite.itertext())


def test_project_with_an_invalid_file_has_problems(broken, capsys):
    (broken / ".pi").mkdir()
    (broken / ".pi" / "pi-materia.json").write_text("{")
    code, out = check(capsys, "--format", "github")
    assert code == 1
    assert "file=.pi/pi-materia.json" in out


def test_hints_do_not_fail_the_check_command(broken, capsys):
    (broken / "hint.json").write_text(
        '{"loadouts": {"Good": {"entry": "Socket-1", "sockets": {"Socket-1": {"materia": "Say", "lops": 1}}}},'
        '"materia": {"Say": {"tools": "none", "prompt": "x"}}}'
    )
    code, out = check(capsys, "hint.json", "--json")
    assert (code, {finding["severity"] for finding in json.loads(out)["findings"]}) == (0, {"hint"})


def test_check_replays_the_answers_of_a_case_through_the_loadout(project, monkeypatch, capsys):
    monkeypatch.chdir(project)
    wb = Workbench(project)
    cast = wb.cast("x", loadout="Teach-Edges", agents={"*": lambda: {"satisfied": True}})
    cast.run()
    path = cast.export.test("route")
    assert check(capsys, path.name)[0] == 0
    case = json.loads(path.read_text())
    del case["expect"]["route"][-1]
    path.write_text(json.dumps(case))
    code, out = check(capsys, path.name, "--format", "github")
    assert (code, "failed-case" in out) == (1, True)


def test_name_cannot_forge_a_workflow_command_in_text_output(project, capsys):
    name = "A\n::error::forged"
    hostile = {"loadouts": {name: {"entry": name, "sockets": {name: {"materia": name}}, name: name}}, name: 1}
    folder = project / "a\n::error::forged"
    folder.mkdir()
    (folder / "hostile.json").write_text(json.dumps(hostile))
    for form in FORMATTERS:
        main(["check", str(folder / "hostile.json"), "--format", form])
        assert not [line for line in capsys.readouterr().out.splitlines() if line.startswith("::error::forged")]


def test_typo_is_listed_before_its_consequences(project, capsys):
    sockets = {"Socket-1": {"materia": "Say", "edgs": []}, "Socket-2": {"materia": "Nobody"}}
    config = {
        "loadouts": {"A": {"entry": "Socket-1", "sockets": sockets}},
        "materia": {"Say": {"tools": "none", "prompt": "x"}},
    }
    (project / "a.json").write_text(json.dumps(config))
    main(["check", str(project / "a.json"), "--format", "json"])
    codes = [finding["code"] for finding in json.loads(capsys.readouterr().out)["findings"]]
    assert codes[0] == "unknown-field"
    assert "unknown-materia" in codes
