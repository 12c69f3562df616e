"""Test the scripts that the make targets run."""

import subprocess
import sys
from pathlib import Path

import pytest

import bootstrap
import chromium
import make_walk
import mutate
import oldest_kernel
from materia_nb.errors import did_you_mean

PROJECT = {
    "name": "some-thing",
    "optional-dependencies": {
        "a": ["some-thing[b]", "other[c]>=1"],
        "b": ["some-thing[c,d]"],
        "c": [],
        "d": ["some-thing[a]"],
        "e": [],
    },
}


def test_extra_includes_the_requirements_of_extras_that_it_names():
    assert bootstrap.with_implied(["a"], PROJECT) == {"a", "b", "c", "d"}
    assert bootstrap.with_implied(["e"], PROJECT) == {"e"}


def test_unknown_extra_raises_an_error():
    with pytest.raises(SystemExit, match="does not define these extras: x, y"):
        bootstrap.with_implied(["y", "a", "x"], PROJECT)


def test_extras_installed_for_another_project_file_are_ignored(tmp_path, monkeypatch):
    stamp = tmp_path / "stamp.json"
    monkeypatch.setattr(bootstrap, "STAMP", stamp)
    assert bootstrap.installed_extras("k") == set(), "no stamp"
    stamp.write_text('{"key": "k", "extras": ["lab"]}')
    assert bootstrap.installed_extras("k") == {"lab"}
    assert bootstrap.installed_extras("changed") == set()
    stamp.write_text('{"key": "k", "ext')
    assert bootstrap.installed_extras("k") == set(), "torn"


@pytest.mark.parametrize("ci, code", [("", 0), ("true", 1)])
def test_missing_browser_fails_only_in_ci(ci, code, monkeypatch, capsys):
    monkeypatch.setattr(chromium, "find_chromium", lambda: None)
    monkeypatch.setattr(chromium, "install", lambda: None)
    monkeypatch.setattr(chromium, "driver_starts", lambda: True)
    monkeypatch.setenv("CI", ci)
    assert chromium.main() == code
    assert "NO BROWSER" in capsys.readouterr().err


def test_requested_browser_is_tried_first(monkeypatch):
    monkeypatch.setenv("MATERIA_CHROMIUM", "/opt/mine")
    assert chromium.find_chromium() == "/opt/mine"


def test_headless_shell_is_preferred_to_the_complete_browser(tmp_path, monkeypatch):
    monkeypatch.delenv("MATERIA_CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("chromium", "chromium-headless-shell"):
        (tmp_path / name).touch(0o755)
        assert chromium.find_chromium() == str(tmp_path / name)


@pytest.mark.parametrize("missing, used", [((), "chromium-headless-shell"), (("chromium-headless-shell",), "chromium")])
def test_browser_that_the_distribution_does_not_package_is_replaced_by_another(missing, used, tmp_path, monkeypatch):
    log = tmp_path / "log"
    apt = tmp_path / "apt-get"
    apt.write_text(
        f'#!/bin/sh\nfor word in {" ".join(missing) or "none"}; do case "$*" in *$word*) exit 100;; esac; done\necho "$*" >> {log}\n'
    )
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    monkeypatch.setattr(chromium.os, "geteuid", lambda: 0)
    chromium.install()
    (installed,) = [line for line in log.read_text().splitlines() if "install" in line]
    assert used in installed.split()


def test_oldest_kernel_version_comes_from_the_project_file():
    lab = ["jupyterlab>=4,<5", "ipykernel>=6.29,<8"]
    assert oldest_kernel.oldest_version({"optional-dependencies": {"lab": lab}}) == "6.29"
    assert oldest_kernel.oldest_version()[0].isdigit()


def test_oldest_kernel_of_another_project_file_is_ignored(tmp_path):
    assert oldest_kernel.python(tmp_path) is None, "nothing there"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to("/bin/sh")
    assert oldest_kernel.python(tmp_path) is None, "not finished"
    (tmp_path / "made-for").write_text(oldest_kernel.environment_key())
    assert oldest_kernel.python(tmp_path) == tmp_path / "bin" / "python"
    (tmp_path / "made-for").write_text("something else")
    assert oldest_kernel.python(tmp_path) is None


@pytest.mark.parametrize("ci, code", [("", 0), ("true", 1)])
def test_missing_oldest_kernel_fails_only_in_ci(ci, code, monkeypatch, capsys):
    monkeypatch.setattr(oldest_kernel, "python", lambda: None)
    monkeypatch.setattr(oldest_kernel, "make", lambda: False)
    monkeypatch.setenv("CI", ci)
    assert oldest_kernel.main() == code
    assert "SKIPPED" in capsys.readouterr().err


@pytest.mark.parametrize(
    "source, broken",
    [
        ("a < b", {"(a <= b)"}),
        ("x = 'Ä', a is not b", {"x = 'Ä', (a is b)"}),
        ("a and b and c", {"(a or b or c)"}),
        ("not a", {"(a)"}),
        (
            "x = 1 if a else True",
            {"x = 1 if (not (a)) else True", "x = 2 if a else True", "x = 1 if a else False"},
        ),
        ("if a:\n    raise b", {"if (not (a)):\n    raise b", "if a:\n    pass"}),
        (
            "def f(a: Literal[1]) -> Literal[2]:\n    g(\n    )",
            {"def f(a: Literal[1]) -> Literal[2]:\n    pass"},
        ),
        ("if TYPE_CHECKING:\n    x = 1", set()),
    ],
)
def test_each_mutation_changes_one_executed_part_of_the_source(source, broken, tmp_path):
    assert {mutation.applied(source) for mutation in mutate.mutations_of(tmp_path, source)} == broken


# -- the walk through the code ---------------------------------------------------------

CALLS = [
    make_walk.Call(1, "a.py", "first"),
    make_walk.Call(2, "b.py", "inner"),
    make_walk.Call(3, "b.py", "passed"),
    make_walk.Call(4, "c.py", "deep"),
    make_walk.Call(2, "b.py", "inner"),
    make_walk.Call(1, "d.py", "last"),
]


def stations(*places):
    return [make_walk.Station(file, name, "does it.") for file, name in places]


def test_walkthrough_indents_a_call_under_its_caller():
    walked = make_walk.walk(
        CALLS,
        stations(("a.py", "first"), ("b.py", "inner"), ("c.py", "deep"), ("b.py", "inner"), ("d.py", "last")),
    )
    assert list(walked) == [
        "- 1. `a.py` `first` does it.",
        "    - 2. `b.py` `inner` does it.",
        "        - 3. `c.py` `deep` does it.",
        "    - 4. `b.py` `inner` does it.",
        "- 5. `d.py` `last` does it.",
    ]


@pytest.mark.parametrize(
    "second", [("b.py", "first"), ("a.py", "gone"), ("a.py", "first")], ids=["moved", "gone", "before"]
)
def test_walkthrough_error_names_a_call_that_was_not_reached(second):
    with pytest.raises(SystemExit, match=f"no call of {second[1]} in {second[0]} after station 1"):
        list(make_walk.walk(CALLS, stations(("a.py", "first"), second)))


def test_walkthrough_records_package_calls_with_their_depth():
    before = sys.getprofile()
    calls = make_walk.calls_of(lambda: did_you_mean("alpah", ["alpha"]))
    assert calls[0][1:] == ("errors.py", "did_you_mean")
    assert all(call.depth > calls[0].depth for call in calls[1:])
    assert sys.getprofile() is before


def test_benchmarks_run_with_the_current_package(tmp_path):
    folder = Path(__file__).parents[2] / "benchmarks"
    code = f"""
import sys; sys.path.insert(0, {str(folder)!r})
import bench, ours
run = ours.run_durable(2)
print(run.visits, ours.run_complete(2)[0], run.derived_seconds > 0, ours.time_resume(run) > 0, ours.peak_memory(1)[1] > 0)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "7 7 True True True\n", done.stderr


def test_benchmark_of_saved_tests_counts_detected_edits_and_false_alarms(tmp_path):
    root = Path(__file__).parents[2]
    folders = [root / "benchmarks", *(root / "tests" / part for part in ("", "helpers", "insight", "cast/views"))]
    code = (
        f"import sys; sys.path[:0] = {list(map(str, folders))!r}; import agreement; agreement.check_random_loadouts(8)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "Saved tests of 8 random loadouts, each with 8 random edits" in done.stdout, done.stderr
    assert "false alarms 0.0%; goal: at most 1%" in done.stdout, done.stdout
