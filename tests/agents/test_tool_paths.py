"""Test that file tools cannot access files outside the project, even if paths are replaced during the access."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from materia_nb.agents.tools import file_tools
from materia_nb.agents.tools.file_tools import Toolbox
from materia_nb.agents.tools.search import NotPlainFile, open_plain

CANARY = "a canary that sings outside"

TOOLS = {
    "read": {},
    "ls": {},
    "find": {"pattern": "*"},
    "grep": {"pattern": "."},
    "write": {"content": "in its place"},
    "edit": {"old": "canary", "new": "cat"},
}
FILE_TOOLS = ["read", "grep", "write", "edit"]
EACH = pytest.mark.parametrize("tool", TOOLS)

ESCAPES = {
    "parent": "../outside/secret.txt",
    "parent folder": "../outside",
    "parent alone": "..",
    "down and up": "a/../../outside/secret.txt",
    "dots and slashes": ".//a/.././../outside//secret.txt",
    "link to a file": "link.txt",
    "link to a folder": "dir",
    "below a link": "dir/secret.txt",
    "below a link that is absolute": "absolute/secret.txt",
    "back from a link": "dir/../outside/secret.txt",
    "link to above": "a/up/outside/secret.txt",
    "links one after the other": "chain/secret.txt",
    "link to nothing yet": "dangling",
    "below a link to nothing yet": "nowhere/new.txt",
    "link to itself": "loop",
    "links in a circle": "round/x",
    "root": "/",
    "home": "~/secret.txt",
    "home of root": "~root",
    "address": "file:///etc/passwd",
    "device behind a link": "zero",
    "NUL": "a/x.txt\0",
    "half a pair": "\ud800",
    "too long": "a/" * 3_000,
    "name too long": "x" * 300,
    "too deep": "d/" * 200 + "x",
}


def make(folder: Path) -> tuple[Path, Path]:
    """Create a project that contains links to the outside, and the files outside it."""
    project, outside = folder / "project", folder / "outside"
    (project / "a").mkdir(parents=True)
    (project / "a" / "x.txt").write_text("inside")
    outside.mkdir()
    (outside / "secret.txt").write_text(CANARY)
    (outside / "canary.txt").touch()  # a name that no made-up path has
    for name, target in {
        "link.txt": "../outside/secret.txt",
        "dir": "../outside",
        "absolute": outside,
        "a/up": "../..",
        "chain": "chain-2",
        "chain-2": "dir",
        "dangling": "../outside/new.txt",
        "nowhere": outside / "new",
        "loop": "loop",
        "round": "circle/x",
        "circle": "round/x",
        "zero": "/dev/zero",
        "inner": "a",
        "inner.txt": "a/x.txt",
        "inner-absolute": project / "a",
        "a/again": project / "a",
    }.items():
        (project / name).symlink_to(target)
    return project, outside


def tree(folder: Path) -> dict[str, str]:
    return {str(path): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def places(tmp_path):
    return make(tmp_path)


@EACH
@pytest.mark.parametrize("path", ESCAPES.values(), ids=ESCAPES)
def test_paths_outside_the_project_are_refused(places, tool, path):
    project, outside = places
    if tool == "write" and path.startswith("d/"):
        (project / "d").mkdir()
    before, inside = tree(outside), tree(project / "a")
    result = Toolbox(project).call(tool, {**TOOLS[tool], "path": path})
    assert not result.ok
    assert "canary" not in result.text
    assert (tree(outside), tree(project / "a")) == (before, inside)


@EACH
def test_absolute_paths_must_be_in_the_project(places, tool):
    project, outside = places
    before = tree(outside)
    for path in (outside / "secret.txt", outside, f"{project}/../outside", f"{project}x", "/dev/zero"):
        result = Toolbox(project).call(tool, {**TOOLS[tool], "path": str(path)})
        assert not result.ok
        assert "leads out of the project" in result.text
        assert "canary" not in result.text
    assert tree(outside) == before


def test_error_does_not_reveal_whether_an_outside_file_exists(places):
    """The error message is the same for existing and missing files."""
    box = Toolbox(places[0])
    assert [box.call("read", {"path": f"../{name}"}).text for name in ("outside", "gone")] == [
        "../outside leads out of the project; the file tools work only inside it.",
        "../gone leads out of the project; the file tools work only inside it.",
    ]


def test_links_within_the_project_are_followed(places):
    project, _ = places
    box = Toolbox(project)
    for path in (
        "inner.txt",
        "inner/x.txt",
        "inner-absolute/x.txt",
        "a/again/x.txt",
        "a/../a/./x.txt",
        f"{project}/a/x.txt",
    ):
        assert box.call("read", {"path": path}).text == "inside"
    assert box.call("edit", {"path": "inner.txt", "old": "inside", "new": "changed"}).ok
    assert (project / "a" / "x.txt").read_text() == "changed"
    assert (project / "inner.txt").is_symlink()
    assert box.call("find", {"pattern": "*.txt", "path": "inner"}).text == "a/x.txt"
    assert box.call("grep", {"pattern": "changed", "path": "inner.txt"}).text == "a/x.txt:1: changed"


def test_project_may_be_opened_through_a_symbolic_link(places, tmp_path):
    (tmp_path / "way").symlink_to("project")
    box = Toolbox(tmp_path / "way")
    for path in ("a/x.txt", f"{tmp_path}/way/a/x.txt", f"{tmp_path}/project/a/x.txt", "inner-absolute/x.txt"):
        assert box.call("read", {"path": path}).text == "inside"


def test_searches_do_not_follow_links_out_of_the_project(places):
    box = Toolbox(places[0])
    assert box.call("grep", {"pattern": "canary"}).text == "(nothing matches)"
    assert box.call("grep", {"pattern": "inside"}).text == "a/x.txt:1: inside"
    assert "canary.txt" not in box.call("find", {"pattern": "**"}).text
    assert not box.call("find", {"pattern": "../outside/*"}).ok
    assert not box.call("find", {"pattern": "/etc/*"}).ok


# -- exchanged between the look and the opening -----------------------------------------


def replace_before_open(monkeypatch, name: str, path: Path, new: Path | None) -> list[str]:
    """Replace ``path`` with a link to ``new``, or with a pipe, just before ``name`` is opened."""
    opened, really = [], os.open

    def late(file, *args, **more):
        if file == name and not opened:
            opened.append(file)
            path.rename(path.with_name("moved"))
            if new is None:
                os.mkfifo(path)
            else:
                path.symlink_to(new)
        return really(file, *args, **more)

    monkeypatch.setattr(os, "open", late)
    return opened


@pytest.mark.parametrize("tool", ["read", "edit"])
@pytest.mark.parametrize("pipe", [False, True])
def test_file_replaced_during_access_is_refused(places, monkeypatch, tool, pipe):
    project, outside = places
    new = None if pipe else outside / "secret.txt"
    opened = replace_before_open(monkeypatch, "x.txt", project / "a" / "x.txt", new)
    result = Toolbox(project).call(tool, {**TOOLS[tool], "path": "a/x.txt"})
    assert opened
    assert not result.ok
    assert "canary" not in result.text
    assert (outside / "secret.txt").read_text() == CANARY


@EACH
def test_folder_replaced_by_a_link_is_refused(places, monkeypatch, tool):
    project, outside = places
    (project / "b" / "c").mkdir(parents=True)
    (project / "b" / "secret.txt").write_text("a canary in the project")
    before = tree(outside)
    opened = replace_before_open(monkeypatch, "b", project / "b", outside)
    result = Toolbox(project).call(tool, {**TOOLS[tool], "path": "b/secret.txt"})
    assert opened
    assert not result.ok
    assert "sings" not in result.text
    assert tree(outside) == before


def test_target_replaced_by_a_link_is_refused(places, monkeypatch):
    project, outside = places
    really, target = os.rename, project / "a" / "x.txt"

    def late(*args, **more):
        target.unlink()
        target.symlink_to(outside / "secret.txt")
        return really(*args, **more)

    monkeypatch.setattr(os, "rename", late)
    assert Toolbox(project).call("write", {"path": "a/x.txt", "content": "new"}).ok
    assert (target.is_symlink(), target.read_text()) == (False, "new")
    assert (outside / "secret.txt").read_text() == CANARY


@pytest.mark.parametrize("tool", ["find", "grep"])
def test_search_folder_replaced_by_a_link_is_refused(places, monkeypatch, tool):
    project, outside = places
    really = file_tools.run_process

    def late(*args, **more):
        (project / "a").rename(project / "moved")
        (project / "a").symlink_to(outside)
        return really(*args, **more)

    monkeypatch.setattr(file_tools, "run_process", late)
    result = Toolbox(project).call(tool, {**TOOLS[tool], "path": "a"})
    assert not result.ok
    assert "was replaced" in result.text
    assert "secret" not in result.text


# -- what is not a plain file --------------------------------------------------------------


@pytest.mark.parametrize("tool", FILE_TOOLS)
def test_pipes_and_sockets_are_refused_without_blocking(places, monkeypatch, tool):
    project, _ = places
    monkeypatch.chdir(project)  # the path of a socket must be short
    os.mkfifo("pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("socket")
        for name in ("pipe", "socket"):
            result = Toolbox(project).call(tool, {**TOOLS[tool], "path": name})
            assert not result.ok
            assert name in result.text
        assert Toolbox(project).call("grep", {"pattern": "inside"}).text == "a/x.txt:1: inside"
        assert "pipe (not a plain file)" in Toolbox(project).call("ls", {}).text


def test_devices_are_not_opened():
    folder = os.open("/dev", os.O_RDONLY)
    try:
        with pytest.raises(NotPlainFile):
            open_plain("null", folder)
    finally:
        os.close(folder)


@pytest.mark.parametrize("tool", ["read", "write", "edit"])
@pytest.mark.parametrize("path", ["a", ".", "", "a/..", "inner"])
def test_directory_cannot_be_read_as_a_file(places, tool, path):
    result = Toolbox(places[0]).call(tool, {**TOOLS[tool], "path": path})
    assert not result.ok
    assert "directory" in result.text


@pytest.mark.parametrize("tool", ["ls", "find"])
def test_file_cannot_be_listed_as_a_directory(places, tool):
    result = Toolbox(places[0]).call(tool, {**TOOLS[tool], "path": "a/x.txt"})
    assert (result.ok, result.text) == (False, "a/x.txt is not a directory.")


def test_path_below_a_file_is_refused(places):
    result = Toolbox(places[0]).call("write", {"path": "a/x.txt/y", "content": ""})
    assert (result.ok, result.text) == (False, "a/x.txt is not a directory.")


def test_missing_path_error_suggests_a_similar_path(places):
    box = Toolbox(places[0])
    assert box.call("read", {"path": "a/y.txt"}).text == "a/y.txt does not exist: did you mean x.txt?"
    assert box.call("read", {"path": "nothing/like/it"}).text == "nothing does not exist."
    assert not (places[0] / "nothing").exists()


# -- what stays as it is ----------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        ".git",
        ".GIT/hooks/pre-commit",
        "a/.git/x",
        ".hg/hgrc",
        ".g\u200cit/x",
        "new/.git/x",
        "vc/x",
    ],
)
def test_version_control_files_are_read_only(places, path):
    project, _ = places
    (project / ".git").mkdir()
    (project / ".git" / "config").write_text("[core]")
    (project / "vc").symlink_to(".git")
    before = sorted(project.rglob("*"))
    result = Toolbox(project).call("write", {"path": path, "content": "x"})
    assert not result.ok
    assert "version control" in result.text
    assert sorted(project.rglob("*")) == before
    assert Toolbox(project).call("read", {"path": ".git/config"}).text == "[core]"
    assert not Toolbox(project).call("edit", {"path": ".git/config", "old": "core", "new": "x"}).ok
    assert Toolbox(project).call("write", {"path": ".gitignore", "content": "x"}).ok


def test_run_directories_are_not_writable(project, bench):
    bench.cast("go").run(steps=1)
    (journal,) = project.rglob("events.jsonl")
    before, path = journal.read_bytes(), str(journal.relative_to(project))
    box = Toolbox(project)
    for target in (path, str(Path(path).with_name("new.txt")), str(Path(path).parent / "sockets" / "x.md")):
        result = box.call("write", {"path": target, "content": "x"})
        assert not result.ok
        assert "do not change" in result.text
    assert journal.read_bytes() == before
    assert box.call("read", {"path": path}).ok
    assert "events.jsonl" not in box.call("find", {"pattern": "**"}).text
    assert "events.jsonl" in box.call("find", {"pattern": "*", "path": str(Path(path).parent)}).text


def test_file_tools_leave_no_file_open(places):
    box = Toolbox(places[0])
    box.call("find", {"pattern": "*"})  # whatever a first run opens for good
    before = len(list(Path("/dev/fd").iterdir()))
    for path in ("a/x.txt", "a/../a/../inner.txt", "../x", "loop", "link.txt", "a", "gone", "."):
        for tool, args in TOOLS.items():
            if tool not in ("find", "grep"):
                box.call(tool, {**args, "path": path})
    assert len(list(Path("/dev/fd").iterdir())) == before


# -- any path ---------------------------------------------------------------------------


SEGMENTS = ["..", ".", "", "a", "x.txt", "inner", "up", "dir", "absolute", "chain", "link.txt", "outside"]
NAMES = st.sampled_from([*SEGMENTS, "secret.txt", "dangling", "loop", "~"]) | st.text(st.characters(codec=None))
PATHS = st.builds(
    lambda start, names: start + "/".join(names),
    st.sampled_from(["", "/", "{project}/", "{outside}/", "{project}/../outside/"]),
    st.lists(NAMES, max_size=7),
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return make(tmp_path_factory.mktemp("shared"))


@pytest.mark.parametrize("tool", ["read", "ls", "write", "edit"])
@settings(max_examples=200)
@given(path=PATHS)
@example(path="a/up/outside/secret.txt")
@example(path="chain/secret.txt")
def test_no_file_tool_can_access_a_file_outside_the_project(shared, tool, path):
    project, outside = shared
    before = tree(outside)
    path = path.replace("{project}", str(project)).replace("{outside}", str(outside))
    result = Toolbox(project).call(tool, {**TOOLS[tool], "path": path})
    assert "sings" not in result.text
    assert "canary.txt" not in result.text
    assert tree(outside) == before
    assert sorted(entry.name for entry in outside.parent.iterdir()) == ["outside", "project"]


@pytest.mark.parametrize("tool", ["find", "grep"])
@settings(max_examples=25)
@given(path=PATHS)
def test_no_search_tool_can_access_a_file_outside_the_project(shared, tool, path):
    project, outside = shared
    path = path.replace("{project}", str(project)).replace("{outside}", str(outside))
    result = Toolbox(project).call(tool, {**TOOLS[tool], "path": path})
    assert "sings" not in result.text
    assert "canary.txt" not in result.text


@pytest.mark.parametrize("path", [".pi/pi-materia.json", ".PI/x/y.md", "casts/notebook-utilities/count.py", "in/x.py"])
@pytest.mark.parametrize("tool", ["write", "edit"])
def test_files_that_programs_run_automatically_are_not_writable(tmp_path, tool, path):
    """Configs contain commands and utilities run scripts, so writing these files would be equivalent to running a
    shell.
    """
    (tmp_path / ".pi").mkdir()
    (tmp_path / ".pi" / "x").mkdir()
    (tmp_path / "in").symlink_to(".pi/x")
    result = Toolbox(tmp_path).call(tool, {"path": path, **TOOLS[tool]})
    assert not result.ok
    assert "which the file tools do not change" in result.text
