"""Test that ``materia`` copies notebooks and examples without overwriting the user's work."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.sign import NotebookNotary

from materia_nb.shell import commands
from materia_nb.shell.commands import main

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
LESSONS = commands.BUNDLES[0]


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Return a package with a gallery of two files, and with files that must not be copied."""
    place = tmp_path / "package"
    for name in ("gallery/critic/loadout.json", "gallery/01-critic.ipynb", "gallery/__init__.py"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text('{"cells": []}')
    for name in ("gallery/.pi/x/events.jsonl", "gallery/__pycache__/y.pyc"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("")
    monkeypatch.setattr(commands, "ROOTS", [place])
    return place


def names(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_copy_command_is_hidden_if_its_files_are_missing(package, capsys):
    assert [available_bundle.command for available_bundle in commands.available_bundles()] == ["gallery"]
    (package / "cheatsheet.svg").write_text("<svg/>")
    (package / "cheatsheet.py").write_text("")
    assert [one.command for one in commands.available_bundles()] == ["gallery", "cheatsheet"]
    assert list(map(str, commands.BUNDLES[2].files())) == ["cheatsheet.svg"]
    assert main(["cheatsheet", str(package.parent / "sheet")]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["  cheatsheet.svg"]


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["schema", "--help"], "--output"),
        (["doctor"], "materia-nb"),
    ],
)
def test_package_module_runs_as_a_program_with_its_arguments(arguments, expected, project):
    environment = {**os.environ, "PATH": ""}  # the doctor asks no program for its version
    program = [sys.executable, "-m", "materia_nb", *arguments]
    result = subprocess.run(program, cwd=project, env=environment, check=False, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert expected in result.stdout


def test_unwritable_schema_file_exits_with_code_1(project):
    program = [sys.executable, "-m", "materia_nb", "schema", "--output", "no-such-folder/schema.json"]
    result = subprocess.run(program, cwd=project, check=False, capture_output=True, text=True)
    assert result.returncode == 1
    assert "no-such-folder" in result.stderr


def test_schema_is_printed_or_written_to_a_file(tmp_path, capsys):
    assert main(["schema"]) == 0
    assert main(["schema", "--output", str(tmp_path / "schema.json")]) == 0
    assert (tmp_path / "schema.json").read_text(encoding="utf-8") == capsys.readouterr().out


def test_closed_output_ends_the_program_quietly():
    pipe = subprocess.PIPE
    program = subprocess.Popen([sys.executable, "-m", "materia_nb"], stdout=pipe, stderr=pipe)
    program.stdout.close()
    assert program.stderr.read() == b""
    program.wait()
    program.stderr.close()


# -- what it copies --------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _signatures_of_its_own(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path_factory.mktemp("jupyter")))


def test_lessons_are_copied_with_all_files_that_they_use(tmp_path, capsys):
    folder = tmp_path / "new" / "my lessons"
    assert main(["lessons", str(folder)]) == 0
    made = {".ipynb_checkpoints", ".pi", "__pycache__"}
    shown = [p for p in NOTEBOOKS.rglob("*") if p.is_file() and not made & {*p.parts}]
    wanted = {p.relative_to(NOTEBOOKS).as_posix() for p in shown}
    assert names(folder) == wanted
    assert {"recordings/birthday.json", "night_shift.py"} <= wanted
    copied, shipped = (nbformat.read(path / "01-edges.ipynb", as_version=4) for path in (folder, NOTEBOOKS))
    assert copied.cells == shipped.cells
    assert copied.metadata.language_info.version == platform.python_version(), "as Lab writes when it is opened"
    assert f"jupyter lab '{folder}/00-quickstart.ipynb'" in capsys.readouterr().out


def test_copying_overwrites_changed_files_only_with_force(tmp_path, capsys):
    assert main(["lessons", str(tmp_path)]) == 0
    mine = tmp_path / "01-edges.ipynb"
    mine.write_text("my answers")
    (tmp_path / "02-generators.ipynb").unlink()
    assert main(["lessons", str(tmp_path)]) == 1
    expected = capsys.readouterr().err
    assert "This would overwrite 1 file, among them 01-edges.ipynb" in expected
    assert "--force" in expected
    assert not (tmp_path / "02-generators.ipynb").exists(), "nothing is copied in part"
    assert mine.read_text() == "my answers"
    assert main(["lessons", str(tmp_path), "--force"]) == 0
    assert "2 files written" in capsys.readouterr().out
    assert mine.read_bytes() == commands.content_to_copy(NOTEBOOKS / mine.name)


def test_copying_twice_changes_nothing(tmp_path, capsys):
    for _ in range(2):
        assert main(["lessons", str(tmp_path)]) == 0
    assert f"0 files written to {tmp_path}/ ({len(LESSONS.files())} already existed)" in (capsys.readouterr().out)


def test_copying_into_an_unwritable_folder_is_reported(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["lessons", str(tmp_path / "file")]) == 1
    assert "cannot be written" in capsys.readouterr().err


def test_only_data_files_are_copied(package, tmp_path, capsys):
    assert main(["gallery", str(tmp_path / "to")]) == 0
    assert names(tmp_path / "to") == {"critic/loadout.json", "01-critic.ipynb"}
    assert "01-critic.ipynb" in capsys.readouterr().out


def test_copy_command_without_a_folder_lists_the_files(package, capsys):
    assert main(["gallery"]) == 0
    assert capsys.readouterr().out.startswith("01-critic.ipynb\n")


def test_copied_notebooks_are_trusted_so_that_their_tables_are_shown(tmp_path):
    assert main(["lessons", str(tmp_path)]) == 0
    notary = NotebookNotary()
    book = nbformat.read(tmp_path / "01-edges.ipynb", as_version=4)
    assert notary.check_signature(book)
    book.cells[1].outputs = [nbformat.v4.new_output("display_data", {"text/html": "<b>not ours</b>"})]
    assert not notary.check_signature(book)


def test_untrusted_copies_explain_how_to_trust_them(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "nbformat.sign", None)
    assert main(["lessons", str(tmp_path)]) == 0
    assert f"jupyter trust {tmp_path}/*.ipynb" in capsys.readouterr().out
