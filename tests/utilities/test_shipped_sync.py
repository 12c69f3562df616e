"""Test the copies of shipped scripts in a profile: how they are created, updated, preserved and found (R25)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import cast_helpers as h
from builders import resolved_materia
from materia_nb import Workbench
from materia_nb.doctor import check_scripts
from materia_nb.errors import MateriaError
from materia_nb.loadout.topology import SHIPPED_SCRIPTS
from materia_nb.utilities import utility_step
from materia_nb.utilities.utility_step import (
    MANIFEST,
    PACKAGED_FOLDER,
    find_script,
    list_copies,
    resolve_command,
    synchronize,
)

NAME = "detect-vcs.py"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "profile" / "utilities"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Return a package whose scripts can be changed to simulate an update."""
    copy = tmp_path / "package"
    copy.mkdir()
    for name in SHIPPED_SCRIPTS:
        (copy / name).write_bytes((PACKAGED_FOLDER / name).read_bytes())
    monkeypatch.setattr(utility_step, "PACKAGED_FOLDER", copy)
    return copy


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_first_synchronization_creates_copies_and_a_manifest(folder, package):
    assert synchronize(folder)
    assert names(folder) == sorted([MANIFEST, *SHIPPED_SCRIPTS])
    assert (folder / NAME).read_bytes() == (package / NAME).read_bytes()
    assert find_script(NAME, [folder]) == folder / NAME


def test_up_to_date_copies_are_not_written(folder, package):
    synchronize(folder)
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert synchronize(folder)
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_unchanged_copy_is_updated(folder, package):
    synchronize(folder)
    (package / NAME).write_text("new = 1\n")
    synchronize(folder)
    assert (folder / NAME).read_text() == "new = 1\n"
    assert names(folder) == sorted([MANIFEST, *SHIPPED_SCRIPTS])


def test_modified_copy_is_used_until_an_update_and_then_preserved(folder, package):
    synchronize(folder)
    (folder / NAME).write_text("mine\n")
    synchronize(folder)
    assert find_script(NAME, [folder]) == folder / NAME, "what a person changed is what runs"
    (package / NAME).write_text("new = 1\n")
    synchronize(folder)
    assert (folder / NAME).read_text() == "mine\n"
    script = find_script(NAME, [folder])
    assert script.read_text() == "new = 1\n"
    assert script.name.startswith("detect-vcs.")
    assert json.loads((folder / MANIFEST).read_text())["scripts"][NAME]["file"] == script.name
    (package / NAME).write_text("new = 2\n")
    synchronize(folder)
    assert (folder / NAME).read_text() == "mine\n"
    assert find_script(NAME, [folder]).read_text() == "new = 2\n"


def test_modified_copy_of_an_adjacent_file_is_preserved(folder, package):
    synchronize(folder)
    (folder / NAME).write_text("mine\n")
    (package / NAME).write_text("new = 1\n")
    synchronize(folder)
    beside = find_script(NAME, [folder])
    beside.write_text("mine too\n")
    (folder / MANIFEST).unlink()
    synchronize(folder)
    assert beside.read_text() == "mine too\n"
    assert (folder / NAME).read_text() == "mine\n"


def test_existing_file_with_the_name_of_a_script_is_not_replaced(folder, package):
    folder.mkdir(parents=True)
    (folder / NAME).write_text("mine\n")
    synchronize(folder)
    assert (folder / NAME).read_text() == "mine\n"
    assert find_script(NAME, [folder]).read_bytes() == (package / NAME).read_bytes()


def test_removed_copy_is_restored(folder, package):
    synchronize(folder)
    (folder / NAME).unlink()
    assert find_script(NAME, [folder]) == package / NAME, "until then the packaged one runs"
    synchronize(folder)
    assert find_script(NAME, [folder]) == folder / NAME


@pytest.mark.parametrize("text", ["", "{", "[]", '{"scripts": 5}', '{"scripts": {"detect-vcs.py": {"file": "../x"}}}'])
def test_damaged_manifest_is_rebuilt(folder, package, text):
    synchronize(folder)
    content = (folder / MANIFEST).read_text()
    (folder / MANIFEST).write_text(text)
    assert find_script(NAME, [folder]) == package / NAME
    synchronize(folder)
    assert json.loads((folder / MANIFEST).read_text()) == json.loads(content)


def test_unwritable_profile_uses_the_packaged_scripts(tmp_path, package):
    (tmp_path / "file").write_text("")  # no directory can be made below a file, whoever tries
    folder = tmp_path / "file" / "utilities"
    assert not synchronize(folder)
    assert find_script(NAME, [folder]) == package / NAME


def test_outdated_copy_that_cannot_be_replaced_is_not_run(folder, package, monkeypatch):
    synchronize(folder)
    (package / NAME).write_text("new = 1\n")

    def refuse(path: Path, data: bytes) -> None:
        raise PermissionError(13, "read-only")

    monkeypatch.setattr(utility_step, "replace_file", refuse)
    assert not synchronize(folder)
    assert find_script(NAME, [folder]) == package / NAME
    assert find_script("commit-sigil.py", [folder]) == folder / "commit-sigil.py"


def test_next_synchronization_finishes_an_interrupted_synchronization(folder, package, monkeypatch):
    synchronize(folder)
    for name in SHIPPED_SCRIPTS:
        (package / name).write_text("new = 1\n")

    def stop(path: Path, document: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(utility_step, "write_config", stop)
        with pytest.raises(KeyboardInterrupt):
            synchronize(folder)
    synchronize(folder)
    assert names(folder) == sorted([MANIFEST, *SHIPPED_SCRIPTS])
    assert {find_script(name, [folder]).read_text() for name in SHIPPED_SCRIPTS} == {"new = 1\n"}


def test_concurrent_synchronizations_produce_the_same_copies(folder):
    code = "import sys; from pathlib import Path; from materia_nb.utilities import utility_step; sys.stdin.read(1);"
    code += "assert utility_step.synchronize(Path(sys.argv[1]))"
    kernels = [subprocess.Popen([sys.executable, "-c", code, str(folder)], stdin=subprocess.PIPE) for _ in range(6)]
    for kernel in kernels:  # all have loaded by then, and go on when their input ends
        kernel.stdin.close()
    assert [kernel.wait() for kernel in kernels] == [0] * 6
    assert names(folder) == sorted([MANIFEST, *SHIPPED_SCRIPTS])
    for name in SHIPPED_SCRIPTS:
        assert find_script(name, [folder]) == folder / name
        assert (folder / name).read_bytes() == (PACKAGED_FOLDER / name).read_bytes()


# -- from the workbench ---------------------------------------------------------------


DETECT = h.config(
    {"Socket-1": h.at("Look")},
    {
        "Look": {
            "type": "utility",
            "script": {"kind": "shippedUtility", "name": "detect-vcs.mjs"},
            "parse": "json",
        }
    },
)


@pytest.fixture
def profile(tmp_path, monkeypatch):
    monkeypatch.setenv("MATERIA_PROFILE_DIR", str(tmp_path / "mine"))
    return tmp_path / "mine" / "utilities"


def test_packaged_script_runs_without_a_profile():
    script = {"kind": "shippedUtility", "name": "commit-sigil.mjs"}
    assert resolve_command(resolved_materia(script=script)) == [
        sys.executable,
        str(PACKAGED_FOLDER / "commit-sigil.py"),
    ]


def test_cast_runs_the_copy_in_the_profile(project, profile):
    wb = Workbench(project)
    wb.load(DETECT)
    first = wb.cast("x")
    assert names(profile) == sorted([MANIFEST, *SHIPPED_SCRIPTS])
    assert first.run() == "complete"
    assert first.state["vcs"]["kind"] == "none"
    (profile / NAME).write_text('print(\'{"state": {"vcs": "mine"}}\')\n')
    second = wb.cast("y")
    assert second.run() == "complete"
    assert second.state["vcs"] == "mine"
    fork = wb.cast("z").fork()
    fork.run()
    assert fork.state["vcs"] == "mine"
    wb.close()
    fork.close()


def test_resumed_cast_runs_the_copy(project, profile):
    wb = Workbench(project)
    wb.load(DETECT)
    wb.cast("x").close()
    (profile / NAME).write_text('print(\'{"state": {"vcs": "mine"}}\')\n')
    wb.close()
    resumed = Workbench(project).resume()
    assert resumed.run() == "complete"
    assert resumed.state["vcs"] == "mine"
    resumed.close()


def test_r25_loading_or_selecting_a_loadout_copies_its_scripts(project, profile):
    wb = Workbench(project)
    wb.use("Ask")
    assert not profile.exists()
    wb.load(DETECT)
    assert names(profile) == sorted([MANIFEST, *SHIPPED_SCRIPTS])
    (profile / NAME).unlink()
    wb.use("Full-Auto")
    assert (profile / NAME).exists()


def test_status_of_copies_is_reported(folder):
    assert {copy.status for copy in list_copies(folder)} == {"not there"}
    synchronize(folder)
    assert {one.status for one in list_copies(folder)} == {"as shipped"}
    (folder / NAME).write_text("mine")
    assert [one.script for one in list_copies(folder) if one.status == "changed"] == [NAME]


@pytest.mark.parametrize("way", ["use", "cast"])
def test_replaced_changed_copy_is_reported_once_and_by_doctor(project, profile, package, way):
    wb = Workbench(project)
    wb.use("Full-Auto")
    (profile / NAME).write_text("mine\n")
    wb.use("Full-Auto")
    (package / NAME).write_text("new = 1\n")

    def say():
        if way == "use":
            return repr(wb.use("Full-Auto"))
        cast = wb.cast("x", loadout="Full-Auto")
        cast.close()
        return "\n".join(cast.now.messages)

    result = f"{profile / NAME} is no longer used, because it was changed"
    assert result in say()
    assert result not in say(), "once"
    (found,) = (one for one in check_scripts([profile]) if one.name == NAME)
    assert (found.status, found.details) == ("hint", f"set aside: {profile / NAME}")
    assert "runs instead" in found.advice
    (profile / NAME).unlink()
    (found,) = (one for one in check_scripts([profile]) if one.name == NAME)
    assert found.status == "ok"


def test_profile_is_created_only_when_needed(project, profile):
    wb = Workbench(project)
    wb.cast("x", loadout="Ask").close()
    assert not profile.exists()


def test_unknown_script_gets_a_hint_in_check_and_fails_the_cast_with_a_clear_error(project):
    wb = Workbench(project)
    script = {"kind": "shippedUtility", "name": "detect-vsc.py"}
    wb.load(h.one_config({"type": "utility", "script": script, "parse": "json"}))
    report = wb.check()
    assert not report.problems
    (hint,) = report.hints
    assert (hint.code, hint.source) == ("unknown-script", "materia.M.script.name")
    assert "'detect-vcs.py'" in hint.hint
    cast = wb.cast("x")
    assert cast.run() == "failed"
    assert cast.failure.kind == "utility_not_started"
    assert "did you mean 'detect-vcs.py'?" in cast.failure.message
    wb.close()


def test_user_script_in_the_profile_runs_by_name(folder):
    synchronize(folder)
    (folder / "mine.py").write_text("")
    script = {"kind": "shippedUtility", "name": "mine.py"}
    assert resolve_command(resolved_materia(script=script), utilities=[folder]) == [
        sys.executable,
        str(folder / "mine.py"),
    ]
    with pytest.raises(MateriaError, match=r"did you mean 'mine\.py'"):
        resolve_command(resolved_materia(script={**script, "name": "mime.py"}), utilities=[folder])
