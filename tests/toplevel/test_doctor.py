"""Test the installation check with stand-ins for real programs, which report their versions."""

from __future__ import annotations

import importlib.metadata
import json
import sys
import threading

import pytest

from magics_helpers import new_shell
from materia_nb import Workbench, doctor
from materia_nb.agents.command_agent import PRESETS
from materia_nb.doctor import Finding, checkup

HOSTILE = "<img src=x onerror=alert(1)>"
SECRET = "sk-very-secret-value"


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Return an empty PATH and a function that puts a Python program on it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def add(name, code):
        program = folder / name
        program.write_text(f"#!{sys.executable} -S\nimport os, sys, time\n{code}\n")
        program.chmod(0o755)

    return add


def finding_of(result, name) -> Finding:
    (finding,) = [finding for finding in result.findings if finding.name == name]
    return finding


def html(result):
    return result._repr_mimebundle_()["text/html"]


# -- programs --------------------------------------------------------------------------------


def test_programs_are_listed_with_their_versions(programs, wb):
    programs("git", "print('git version 9.8.7')")
    programs("claude", "assert sys.argv[1:] == ['--version']; print('1.2.3 (Claude Code)')")
    result = checkup(wb)
    assert finding_of(result, "git") == Finding("version control", "git", "ok", "git version 9.8.7")
    assert finding_of(result, "command:claude").details == "1.2.3 (Claude Code)"
    missing = finding_of(result, "command:codex")
    assert (missing.status, missing.details) == ("optional", "not installed")
    assert "OpenAI" in missing.advice


def test_program_version_is_found_after_printed_warnings(programs, wb):
    programs("gemini", "print('Warning: no server here'); print('Warning: client version is 0.9.1')")
    assert finding_of(checkup(wb), "command:gemini").details == "Warning: client version is 0.9.1"


def test_program_newer_than_the_tested_version_gets_a_hint(programs, wb):
    programs("codex", "print('codex-cli 0.171.0')")
    programs("claude", "print('2.1.1000 (Claude Code)')")
    result = checkup(wb)
    codex = finding_of(result, "command:codex")
    assert (codex.status, codex.details) == ("ok", "codex-cli 0.171.0, the tested version")
    claude = finding_of(result, "command:claude")
    assert (claude.status, claude.details) == ("hint", "2.1.1000 (Claude Code), newer than the tested version")
    assert f"tested with {PRESETS['claude'].tested}" in claude.advice


def test_failing_program_is_listed_with_its_error(programs, wb):
    programs("pi", "sys.exit(3)")
    programs("llm", "os.kill(os.getpid(), 9)")
    (wb.project.parent / "bin" / "opencode").write_text("#!/no/such/interpreter\n")
    (wb.project.parent / "bin" / "opencode").chmod(0o755)
    result = checkup(wb)
    for name, why in (("pi", "code 3"), ("llm", "SIGKILL"), ("opencode", "was not found")):
        finding = finding_of(result, f"command:{name}")
        assert finding.status == "hint"
        assert why in finding.details
        assert f"bin/{name}" in finding.advice


def test_hanging_program_is_stopped(programs, wb, monkeypatch):
    monkeypatch.setattr(doctor, "VERSION_TIMEOUT_S", 0.3)
    programs("codex", "time.sleep(60)")
    finding = finding_of(checkup(wb), "command:codex")
    assert (finding.status, "within 0.3 s" in finding.details) == ("hint", True)


def test_programs_are_queried_in_parallel(monkeypatch, wb):
    """Each program waits for all others, so sequential queries would never end."""
    together = threading.Barrier(len(doctor.PRESETS) + 2, timeout=30)

    def which(_):
        together.wait()

    monkeypatch.setattr("shutil.which", which)
    assert len(doctor.check_programs(wb.project)) == together.parties


def test_program_output_is_escaped_and_shortened(programs, wb):
    programs("pi", f"print('0.9 {HOSTILE}' + 'x' * 5000 + '\\x1b[31m')")
    result = checkup(wb)
    assert HOSTILE not in html(result)
    assert "&lt;img" in html(result)
    assert len(finding_of(result, "command:pi").details) <= 60
    assert "\x1b" not in repr(result)


# -- keys ------------------------------------------------------------------------------------


def test_keys_are_listed_by_name_and_never_by_value(programs, wb, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    monkeypatch.setenv("SOME_OTHER_API_KEY", SECRET)
    monkeypatch.setenv("OPENAI_API_KEY", " ")
    result = checkup(wb)
    finding = finding_of(result, "in the environment")
    assert finding.status == "ok"
    assert "ANTHROPIC_API_KEY" in finding.details
    assert "SOME_OTHER_API_KEY" in finding.details
    assert "OPENAI_API_KEY" not in finding.details, "an empty one is not set"
    for shown in (repr(result), html(result), str(result.findings), json.dumps(result.rows)):
        assert SECRET not in shown


def test_hint_for_a_missing_key_lists_the_possible_variables():
    finding = doctor.check_keys({})
    assert finding.status == "hint"
    assert "OPENAI_API_KEY" in finding.advice


# -- software and folders --------------------------------------------------------------------


def test_packages_are_listed_with_version_or_install_command(monkeypatch):
    real = importlib.metadata.version

    def version(name):
        if name == "pydantic-ai-slim":
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(doctor, "version", version)
    result = {finding.name: finding for finding in doctor.check_packages()}
    assert result["ipywidgets"].details == real("ipywidgets")
    assert result["pydantic-ai-slim"].status == "optional"
    assert 'pip install "materia-nb[models]"' in result["pydantic-ai-slim"].advice


def test_doctor_leaves_no_file_in_a_checked_folder(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "file").write_text("")
    named = [("there", tmp_path / "there"), ("new", tmp_path / "a" / "b"), ("file", tmp_path / "file" / "c")]
    there, new, file = doctor.check_folders(named)
    assert (there.status, there.details) == ("ok", str(tmp_path / "there"))
    assert (new.status, new.details) == ("ok", f"{tmp_path / 'a' / 'b'}, created when it is first used")
    assert file.status == "missing"
    assert "cannot be written" in file.details
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "there"]


def test_doctor_does_not_change_any_file(programs, wb):
    checkup(wb)
    assert list(wb.project.iterdir()) == []


# -- config and agents -----------------------------------------------------------------------


LOADOUT = {
    "entry": "Socket-1",
    "sockets": {
        "Socket-1": {"materia": "Asks", "edges": [{"when": "always", "to": "Socket-2"}]},
        "Socket-2": {"materia": "Plain", "edges": [{"when": "always", "to": "Socket-3"}]},
        "Socket-3": {"materia": "Run"},
    },
    "materia": {
        "Asks": {"tools": "none", "prompt": "p", "model": "some-model"},
        "Plain": {"tools": "none", "prompt": "p"},
        "Run": {"type": "utility", "command": ["true"]},
    },
}


def test_agents_are_listed_with_their_problems(programs, wb):
    wb.loadouts.define("L", LOADOUT)
    result = checkup(wb)
    assert finding_of(result, "loadout L").status == "ok"
    asks = finding_of(result, "Socket-1 (Asks)")
    assert (asks.status, "the materia names model some-model" in asks.details) == ("hint", True)
    assert "agent Asks" in asks.advice
    assert finding_of(result, "Socket-2 (Plain)") == Finding("agents", "Socket-2 (Plain)", "ok", "answered by person")
    assert [finding for finding in result.findings if "Socket-3" in finding.name] == []

    wb.agent("Asks", "command:claude")
    wb.agent("Plain", "command:pi")
    result = checkup(wb)
    assert (finding_of(result, "Socket-1 (Asks)").status, finding_of(result, "Socket-2 (Plain)").status) == (
        "missing",
        "missing",
    )
    assert "claude is not installed" in finding_of(result, "Socket-1 (Asks)").details

    programs("claude", "print('1.0')")
    wb.agent("Plain", lambda: "x")
    result = checkup(wb)
    assert (finding_of(result, "Socket-1 (Asks)").status, finding_of(result, "Socket-2 (Plain)").status) == ("ok", "ok")


def test_model_without_key_or_name_is_reported(programs, wb, monkeypatch):
    pytest.importorskip("pydantic_ai")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    wb.loadouts.define("L", LOADOUT)
    wb.agent("*", "openai:gpt-5")
    finding = finding_of(checkup(wb), "Socket-2 (Plain)")
    assert finding.status == "missing"
    assert "OPENAI_API_KEY" in finding.details + finding.advice
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    result = checkup(wb)
    assert finding_of(result, "Socket-2 (Plain)").status == "ok"
    assert SECRET not in repr(result) + html(result)
    wb.agent("*", "model")
    assert "does not name a model" in finding_of(checkup(wb), "Socket-2 (Plain)").details


def test_unknown_tools_are_reported(programs, wb):
    wb.loadouts.define("L", LOADOUT)
    wb.loadouts.define_materia("Plain", {"tools": ["read", "teleport"], "prompt": "p"})
    finding = finding_of(checkup(wb), "Socket-2 (Plain)")
    assert finding.status == "hint"
    assert "unknown tools: teleport" in finding.details


def test_relative_command_is_found_in_the_project(programs, wb):
    wb.loadouts.define("L", LOADOUT)
    wb.agent("Plain", ["./answer.sh"])
    assert finding_of(checkup(wb), "Socket-2 (Plain)").status == "missing"
    (wb.project / "answer.sh").write_text("#!/bin/sh\n")
    (wb.project / "answer.sh").chmod(0o755)
    assert finding_of(checkup(wb), "Socket-2 (Plain)").status == "ok"


def test_invalid_layer_is_reported(programs, wb):
    (wb.project / ".pi").mkdir()
    (wb.project / ".pi" / "pi-materia.json").write_text("{ no json")
    (finding,) = [finding for finding in checkup(wb).findings if finding.details.startswith("ignored:")]
    assert (finding.area, finding.status) == ("config", "missing")
    assert "pi-materia.json" in finding.name


def test_unreadable_config_does_not_stop_other_checks(programs, wb, monkeypatch):
    monkeypatch.setenv("MATERIA_CONFIG", "gone.json")
    result = checkup(Workbench(wb.project))
    assert finding_of(result, "the layers").status == "missing"
    assert finding_of(result, "git").status == "optional"


def test_loadout_with_problems_is_reported(programs, wb):
    wb.loadouts.define("L", {"entry": "Socket-9", "sockets": {}})
    wb.use("L")
    assert finding_of(checkup(wb), "loadout L").status == "missing"


def test_doctor_magic_shows_text_and_a_table(programs, project, monkeypatch):
    monkeypatch.chdir(project)
    shell = new_shell()
    output = shell.run_line_magic("materia", "doctor")
    bundle = output._repr_mimebundle_()
    assert "<table" in bundle["text/html"]
    (line,) = [row for row in output.rows if row[0] == "optional"]
    assert {"git", "command:claude", "command:pi"} <= set(line[3].split(", "))
    assert "missing" not in [row[0] for row in output.rows], "a newcomer lacks nothing"
    assert bundle["text/plain"].count("optional: git and jj") == 1
    shell.user_ns["wb"].close()


def test_copies_of_shipped_scripts_are_listed(programs, wb, tmp_path, monkeypatch):
    monkeypatch.setenv("MATERIA_PROFILE_DIR", str(tmp_path / "mine"))
    assert finding_of(checkup(wb), "detect-vcs.py").details.startswith("not there")
    wb.use("Full-Auto")
    (tmp_path / "mine/utilities/detect-vcs.py").write_text("mine")
    result = checkup(wb)
    assert (finding_of(result, "detect-vcs.py").status, finding_of(result, "commit-sigil.py").status) == ("hint", "ok")
