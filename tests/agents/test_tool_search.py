"""Test the find and grep tools: results, order of results, and bounded time for any pattern and directory tree."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from materia_nb.agents.tools import MAX_RESULT_CHARS, file_tools, search
from materia_nb.agents.tools.file_tools import Toolbox
from process_helpers import assert_gone, wait_for

CATASTROPHE = {"pattern": "(x+x+)+y"}


@pytest.fixture
def box(project):
    for path, text in {
        "b.py": "class B:\n    pass\n",
        "a.txt": "Class A\r\nclass a\r\n",
        "src/c.py": "import b\nclass C(b.B):\n",
        "src/deep/d.py": "class D:\n",
        ".git/config": "class hidden\n",
        "node_modules/x/y.py": "class Y:\n",
        ".hidden/z.py": "class Z:\n",
    }.items():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(text)
    return Toolbox(project)


def find_paths(box, tool, pattern, **more):
    result = box.call(tool, {"pattern": pattern, **more})
    assert result.ok, result.text
    return result.text.split("\n")


# -- find -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pattern, paths",
    [
        ("*.py", ["b.py", ".hidden/z.py", "src/c.py", "src/deep/d.py"]),
        ("src", ["src/"]),
        ("src/*", ["src/c.py", "src/deep/"]),
        ("./src/*.py", ["src/c.py"]),
        ("src/**", ["src/", "src/c.py", "src/deep/", "src/deep/d.py"]),
        ("**/*.py", ["b.py", ".hidden/z.py", "src/c.py", "src/deep/d.py"]),
        ("src/**/d.py", ["src/deep/d.py"]),
        ("**/deep/*", ["src/deep/d.py"]),
        ("[ab].*", ["a.txt", "b.py"]),
        ("?.txt", ["a.txt"]),
        ("nothing", ["(nothing matches)"]),
        ("*.PY", ["(nothing matches)"]),
        ("[", ["(nothing matches)"]),
    ],
)
def test_find_tool_lists_matching_paths(box, pattern, paths):
    assert find_paths(box, "find", pattern) == paths


def test_find_tool_returns_paths_relative_to_the_project(box):
    assert find_paths(box, "find", "*.py", path="src") == ["src/c.py", "src/deep/d.py"]
    assert find_paths(box, "find", "deep/*", path="src") == ["src/deep/d.py"]


def test_folders_skipped_by_default_can_be_searched_explicitly(box):
    assert find_paths(box, "find", "*", path=".git") == [".git/config"]
    assert find_paths(box, "grep", "class", path="node_modules/x/y.py") == ["node_modules/x/y.py:1: class Y:"]


SEGMENT = st.sampled_from(["a", "b", "ab", "*", "**", "a*", "?"])


@given(
    globs=st.lists(SEGMENT, min_size=2, max_size=6),
    names=st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=6),
)
def test_globs_match_the_same_paths_as_a_recursive_reference_implementation(globs, names):
    def matches_glob(globs, names):
        if not globs:
            return not names
        if globs[0] == "**":
            return matches_glob(globs[1:], names) or bool(names and matches_glob(globs, names[1:]))
        return bool(names) and search.glob_predicate(globs[0])(names[:1]) and matches_glob(globs[1:], names[1:])

    assert search.glob_predicate("/".join(globs))(names) == matches_glob(globs, names)


def test_globs_with_many_stars_match_quickly():
    assert not search.glob_predicate("/".join(["**"] * 30) + "/x")(["a"] * 60)


# -- grep -------------------------------------------------------------------------------


def test_grep_tool_lists_matching_lines(box):
    assert find_paths(box, "grep", r"^class \w+:$") == [
        "b.py:1: class B:",
        ".hidden/z.py:1: class Z:",
        "src/deep/d.py:1: class D:",
    ]
    assert find_paths(box, "grep", "class a") == ["a.txt:2: class a"]
    assert find_paths(box, "grep", "class a", ignore_case=True) == ["a.txt:1: Class A", "a.txt:2: class a"]
    assert find_paths(box, "grep", "import", glob="*.py", path="src") == ["src/c.py:1: import b"]
    assert find_paths(box, "grep", "import", glob="") == ["src/c.py:1: import b"]
    assert find_paths(box, "grep", "import", glob="*.txt") == ["(nothing matches)"]
    assert find_paths(box, "grep", "class", path="a.txt") == ["a.txt:2: class a"]


def test_invalid_regular_expression_is_explained(box):
    result = box.call("grep", {"pattern": "f(x"})
    assert not result.ok
    assert result.text.startswith("The pattern is not a regular expression: missing )")


def test_binary_files_are_counted_and_skipped(box, project):
    (project / "x.bin").write_bytes(b"class\0")
    with (project / "huge").open("wb") as file:
        file.write(b"class\n")
        file.truncate(1 << 40)
    assert find_paths(box, "grep", "class [B]")[-1] == "(skipped binary files: 2)"


def test_match_in_a_long_line_is_shown_with_context(box, project):
    (project / "long.txt").write_text("x" * 200_000 + " needle " + "y" * 200_000 + "\nneedle\n")
    first, second = find_paths(box, "grep", "needle")
    assert "x needle y" in first
    assert len(first) < 400
    assert first.startswith("long.txt:1: …")
    assert second == "long.txt:2: needle"


def test_excess_matches_are_counted(box, project):
    (project / "many.txt").write_text("needle\n" * 10_000)
    lines = find_paths(box, "grep", "needle")
    assert (len(lines), lines[-1]) == (501, "(there are more results: use a narrower pattern or path)")
    (project / "many.txt").write_text(f"needle {'x' * 250}\n" * 400)
    text = "\n".join(find_paths(box, "grep", "needle"))
    assert len(text) <= MAX_RESULT_CHARS
    assert text.endswith("(there are more results: use a narrower pattern or path)")


def test_files_that_cannot_be_read_are_counted(box, project):
    (project / "b.py").chmod(0)
    if os.access(project / "b.py", os.R_OK):
        pytest.skip("root reads everything")
    assert find_paths(box, "grep", "import")[-1] == "(unreadable files or directories: 1)"


def test_very_deep_tree_is_searched(box, project, monkeypatch):
    monkeypatch.chdir(project)
    for _ in range(200):
        os.mkdir("d")  # noqa: PTH102 - a path that long has no name
        os.chdir("d")
    assert len(find_paths(box, "find", "d")) < 100


# -- without end ------------------------------------------------------------------------


def test_search_with_a_catastrophic_expression_is_stopped_and_returns_earlier_matches(box, project, monkeypatch):
    monkeypatch.setattr(file_tools, "SEARCH_TIMEOUT_S", 0.7)
    (project / "a.txt").write_text("xxy\n" + "x" * 5_000 + "\n")
    result = box.call("grep", CATASTROPHE)
    assert not result.ok
    assert result.text == "a.txt:1: xxy\n(stopped after 0.7 s: use a simpler pattern or a narrower path)"


def test_stop_request_ends_a_search(box, project, monkeypatch):
    (project / "a.txt").write_text("x" * 5_000 + "\n")
    stop, started = threading.Event(), []
    really = subprocess.Popen

    def popen(*args, **more):
        made = really(*args, **more)
        started.append(made)
        return made

    monkeypatch.setattr(subprocess, "Popen", popen)
    results = []
    worker = threading.Thread(target=lambda: results.append(Toolbox(project, stop).call("grep", CATASTROPHE)))
    worker.start()
    wait_for(lambda: started)
    stop.set()
    worker.join(10)
    assert (results[0].ok, results[0].text) == (False, "The cast was stopped.")
    assert_gone(started[0].pid)


def test_interrupt_stops_a_search_and_is_raised(box, project, monkeypatch):
    (project / "a.txt").write_text("x" * 5_000 + "\n")
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - the timer may fire before the search begins
        timer.start()
        box.call("grep", CATASTROPHE)
        pytest.fail("was not interrupted")
    timer.join()


# -- the program ------------------------------------------------------------------------


def test_search_runs_no_code_of_the_project(box, project, monkeypatch):
    for name in ("re", "json", "fnmatch", "sitecustomize", "stat"):
        (project / f"{name}.py").write_text("open('ran', 'w').close(); raise SystemExit(9)")
    monkeypatch.setenv("PYTHONPATH", str(project))
    monkeypatch.setenv("PYTHONSTARTUP", str(project / "re.py"))
    assert find_paths(box, "find", "b.py") == ["b.py"]
    assert not (project / "ran").exists()


def test_search_program_needs_only_the_standard_library():
    """The search program runs without access to the installed packages."""
    code = f"import runpy, sys; runpy.run_path({search.__file__!r}); print('materia_nb' in sys.modules)"
    result = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"


def test_search_program_refuses_to_run_outside_its_folder(box, project):
    here = (project / "src").stat()
    asked = {
        "pattern": None,
        "ignore_case": False,
        "glob": "*",
        "only": None,
        "prefix": "",
        "room": 1_000,
        "folder": [here.st_dev, here.st_ino],
    }
    codes = [
        subprocess.run(
            [sys.executable, search.__file__],
            input=json.dumps(asked).encode(),
            cwd=folder,
            capture_output=True,
            check=False,
        ).returncode
        for folder in (project / "src", project)
    ]
    assert codes == [0, search.FOLDER_REPLACED]
