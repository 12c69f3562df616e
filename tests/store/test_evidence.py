"""Test that files named by an output are found only in the project and in the run directory."""

from __future__ import annotations

import pytest

from materia_nb.store.rundir import file_within, find_evidence, step_names


@pytest.fixture
def project(tmp_path):
    """Return a project that contains a run directory; a file lies outside the project."""
    made = tmp_path / "project"
    run_dir = made / "casts" / "one"
    run_dir.mkdir(parents=True)
    (made / "a.py").touch()
    (run_dir / "b.md").touch()
    (tmp_path / "beside").touch()
    (made / "out").symlink_to(tmp_path / "beside")
    return made


def test_folders_are_searched_for_evidence_in_the_given_order(project):
    folders = (project, project / "casts" / "one")
    assert find_evidence(" a.py\n", folders) == project.resolve() / "a.py"
    assert find_evidence("b.md", folders) == project.resolve() / "casts" / "one" / "b.md"
    assert find_evidence(str(project / "a.py"), folders) == project.resolve() / "a.py"
    assert find_evidence("casts", folders) == project.resolve() / "casts", "a folder is evidence too"
    assert find_evidence("./" * 498 + "a.py", folders) is not None, "1,000 characters"
    for text in (
        "",
        " ",
        "c.py",
        "../beside",
        "out",
        "a\0b",
        "./" * 499 + "a.py",
        str(project.parent / "beside"),
    ):
        assert find_evidence(text, folders) is None, text


def test_only_project_files_are_linked(project):
    run_dir = project / "casts" / "one"
    assert file_within("a.py", project, run_dir) == "a.py"
    assert file_within("b.md", project, run_dir) == "casts/one/b.md"
    assert file_within("casts", project, run_dir) is None
    assert file_within("b.md", project / "other", run_dir) is None


def test_socket_names_in_files_are_unique_and_have_no_hyphens():
    assert step_names(("A-B", "A_B", "a_b", "C", "ä-1")) == {
        "A_B": "A_B",
        "C": "C",
        "a_b": "a_b_2",
        "A-B": "A_B_3",
        "ä-1": "__1",
    }
