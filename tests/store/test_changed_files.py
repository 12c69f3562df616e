"""Test the detection of created and changed files, within limits and without following links."""

from __future__ import annotations

import os
import time
from pathlib import Path

from materia_nb.store import files
from materia_nb.store.files import changed_files, read_file_stamps


def changed(folder, act):
    before = read_file_stamps(folder, folder / "casts")
    act()
    return changed_files(before, read_file_stamps(folder, folder / "casts"))


def test_created_written_and_moved_files_are_listed(tmp_path):
    (tmp_path / "src").mkdir()
    for name in ("same", "written", "moved", "gone"):
        (tmp_path / name).write_text("1")

    def act():
        (tmp_path / "written").write_text("22")
        (tmp_path / "src" / "made").write_text("3")
        (tmp_path / "moved").rename(tmp_path / "here")
        (tmp_path / "gone").unlink()

    assert changed(tmp_path, act) == ("here", "src/made", "written")


def test_same_length_change_with_an_old_timestamp_is_detected(tmp_path):
    path = tmp_path / "a"
    path.write_text("1")
    dates = path.stat()

    def act():
        path.write_text("2")
        os.utime(path, ns=(dates.st_atime_ns, dates.st_mtime_ns))

    before = read_file_stamps(tmp_path, tmp_path / "casts")
    while path.stat().st_ctime_ns == dates.st_ctime_ns:  # the clock of the file system ticks slowly
        act()
    assert changed_files(before, read_file_stamps(tmp_path, tmp_path / "casts")) == ("a",)


def test_casts_hidden_folders_packages_and_links_are_ignored(tmp_path):
    outside = tmp_path / "outside"
    project = tmp_path / "project"
    for folder in (outside, *(project / name for name in ("casts", ".git", "node_modules", "__pycache__"))):
        folder.mkdir(parents=True)
    (project / "link").symlink_to(outside)

    def act():
        for path in (outside, *project.iterdir()):
            (path / "x").write_text("1")

    assert changed(project, act) == ()


def test_relative_project_path_produces_the_same_snapshot(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "casts").mkdir()
    (tmp_path / "casts" / "x").write_text("1")
    (tmp_path / "a").write_text("1")
    assert list(read_file_stamps(Path(), tmp_path / "casts")) == ["a"]


def test_changed_files_of_an_oversized_project_are_not_listed(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_PROJECT_FILES", 3)
    assert changed(tmp_path, lambda: (tmp_path / "a").write_text("1")) == ("a",)
    for name in "bcd":
        (tmp_path / name).write_text("1")
    assert read_file_stamps(tmp_path, tmp_path / "casts") is None
    assert changed(tmp_path, lambda: (tmp_path / "e").write_text("1")) == ()


def test_unreadable_project_yields_no_files(tmp_path):
    assert read_file_stamps(tmp_path / "nowhere", tmp_path) == {}


def test_write_after_a_snapshot_has_a_later_timestamp(tmp_path):
    (tmp_path / "a").write_text("one")
    before = read_file_stamps(tmp_path, tmp_path / "casts")
    returned_ns = time.time_ns()
    (tmp_path / "b").write_text("two")
    assert before is not None
    # Kernels stamp all files of a tick, at most 10 ms, with its beginning. So a write 10 ms later gets a later time,
    # but one that can be less than 10 ms later.
    assert returned_ns - before["a"][1] >= 9_900_000
    assert (tmp_path / "b").stat().st_ctime_ns > before["a"][1]
