"""Test Blackbelt-Bootstrap and Blackbelt-Maintain.

Because jj is often not installed, the tests use the stand-in tests/data/jj_stand_in.py. It stores commits, files and
bookmarks, and refuses all commands and arguments that the utilities do not need. The last test uses a real jj if it is
installed.
"""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from shipped_helpers import StandIn, repository, run_script

ROOT, DIFF, NEW = ["root"], ["diff", "--summary"], ["new"]
NAME = "blackbelt/crystal-casts-1a2b3c4d5e"


@pytest.fixture
def jj(tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    return StandIn(folder)


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "ein Projekt"
    folder.mkdir()
    return folder


def bootstrap(project, jj, env=None, **given):
    result = run_script("blackbelt-bootstrap.py", project, env={**jj.env, **(env or {})}, castId="C", **given)
    assert set(result.answer) == {"state"}
    return result.code, result.answer["state"]["blackbeltBootstrap"], result.stderr


def maintain(project, jj, title="feat: a", name=NAME, env=None, **given):
    state = {} if name is None else {"blackbeltBootstrap": {"bookmarkName": name}}
    item = None if title is None else {"title": title}
    result = run_script(
        "blackbelt-maintain.py",
        project,
        env={**jj.env, **(env or {})},
        **{"item": item, "state": state, **given},
    )
    assert result.code == 0
    assert set(result.answer) == {"satisfied", "context"}
    return result.answer["satisfied"], result.answer["context"]


# -- Blackbelt-Bootstrap --------------------------------------------------------------


def test_bootstrap_turns_an_empty_directory_into_a_repository(project, jj):
    code, found, _ = bootstrap(project, jj)
    assert code == 0
    assert re.fullmatch(r"blackbelt/[a-z]+-[a-z]+-[0-9a-f]{10}", found.pop("bookmarkName"))
    assert found == {
        "ok": True,
        "root": str(project),
        "available": {"jj": True},
        "initialized": True,
        "newWorkingCommit": False,
        "emptyHead": True,
    }
    assert jj.calls() == [ROOT, ["git", "init", "--no-colocate"], ROOT, DIFF]


def test_jj_version_without_colocation_can_create_a_repository(project, jj):
    code, found, _ = bootstrap(project, jj, env={"JJ_OLD": "1"})
    assert (code, found["initialized"]) == (0, True)
    assert jj.calls()[2] == ["git", "init"]


def test_existing_content_stays_in_its_own_commit(project, jj):
    (project / "before").write_text("x")
    _, found, _ = bootstrap(project, jj)
    assert (found["initialized"], found["emptyHead"], found["newWorkingCommit"]) == (True, False, True)
    assert jj.calls()[-2:] == [DIFF, NEW]
    _, found, _ = bootstrap(project, jj)
    assert (found["initialized"], found["emptyHead"], found["newWorkingCommit"]) == (False, True, False)
    assert jj.calls() == [ROOT, DIFF], "nothing is changed the second time"


@pytest.mark.parametrize("env", [{}, {"JJ_OLD": "1"}])
def test_r57_git_repository_without_jj_is_refused_with_two_options(project, jj, env):
    repository(project)
    code, found, stderr = bootstrap(project, jj, env=env)
    assert (code, found["ok"], found["initialized"]) == (1, False, False)
    assert jj.calls() == []
    assert "bookmarkName" not in found
    assert "jj git init --colocate" in found["error"]
    assert "jj git clone . ../'ein Projekt-jj'" in found["error"]
    assert found["error"] in stderr


def test_r57_colocated_jj_repository_is_used(project, jj):
    bootstrap(project, jj)
    repository(project)
    jj.calls()
    code, found, _ = bootstrap(project, jj)
    assert (code, found["initialized"]) == (0, False)


def test_project_inside_a_jj_repository_uses_that_repository(project, jj):
    bootstrap(project, jj)
    (project / "sub").mkdir()
    _, found, _ = bootstrap(project / "sub", jj)
    assert (found["root"], found["initialized"]) == (str(project), False)


def test_bootstrap_without_jj_fails_and_reports_the_state(project, jj):
    code, found, stderr = bootstrap(project, jj, env={"PATH": str(project)})
    assert code == 1
    assert (found["ok"], found["available"]) == (False, {"jj": False})
    assert "not on PATH" in found["error"]
    assert "not on PATH" in stderr
    assert "bookmarkName" not in found


@pytest.mark.parametrize(
    "broken, initialized, new", [("git init", False, False), ("diff", True, False), ("new", True, False)]
)
def test_failing_jj_command_reports_the_changes_made_before_it(project, jj, broken, initialized, new):
    (project / "a").write_text("a")
    code, found, stderr = bootstrap(project, jj, env={"JJ_FAIL": broken})
    assert code == 1
    assert (found["ok"], found["initialized"], found["newWorkingCommit"]) == (False, initialized, new)
    assert f"jj {broken}" in found["error"]
    assert "the disk is on fire" in found["error"]
    assert "the disk is on fire" in stderr


def name_of(project, jj, **given):
    return bootstrap(project, jj, **given)[1]["bookmarkName"]


def test_bookmark_name_depends_only_on_the_cast(project, tmp_path, jj):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    result = [
        run_script("blackbelt-bootstrap.py", folder, env=jj.env, castId=cast, runDir=run).answer
        for folder, cast, run in (
            (project, "2026-05-01T00-00-00-000Z", "x"),
            (elsewhere, "2026-05-01T00-00-00-000Z", "y"),
            (project, "2026-05-01T00-00-00-001Z", "x"),
            (project, None, "x"),
            (elsewhere, None, "x"),
            (project, None, None),
            (elsewhere, None, None),
        )
    ]
    a, b, c, d, e, f, g = (one["state"]["blackbeltBootstrap"]["bookmarkName"] for one in result)
    assert a == b != c
    assert d == e != c
    assert f != g
    assert "2026" not in a


@pytest.mark.parametrize(
    "document, name",
    [
        ("my-work", "blackbelt/my-work"),
        ("blackbelt/my-work", "blackbelt/my-work"),
        ("Feature: größe & more!", "blackbelt/Feature-größe-more"),
        ("../..//a/./b.lock/", "blackbelt/a/b-lock"),
        ("--all", "blackbelt/all"),
        ("x" * 300, "blackbelt/" + "x" * 60),
    ],
)
def test_requested_bookmark_name_is_sanitized(project, jj, document, name):
    assert name_of(project, jj, params={"bookmarkName": document}) == name
    subprocess.run(["git", "check-ref-format", f"refs/heads/{name}"], check=True)


@pytest.mark.parametrize("document", [None, "", "...", 5])
def test_invalid_bookmark_name_is_replaced_by_a_generated_name(project, jj, document):
    assert name_of(project, jj, params={"bookmarkName": document}) == name_of(project, jj)


# -- Blackbelt-Maintain ---------------------------------------------------------------


@pytest.fixture
def prepared(project, jj):
    bootstrap(project, jj)
    (project / "a").write_text("a")
    jj.calls()
    return project


def test_checkpoint_describes_the_commit_moves_the_bookmark_and_opens_a_new_commit(prepared, jj):
    satisfied, context = maintain(prepared, jj, "feat: größe & 'quotes' $x")
    assert satisfied is True
    assert "feat: größe" in context
    assert context.endswith(f"[bookmark: {NAME}]")
    assert jj.calls() == [
        ROOT,
        DIFF,
        ["describe", "-m", "feat: größe & 'quotes' $x"],
        ["bookmark", "set", NAME, "-r", "@"],
        NEW,
    ]
    repo = jj.repo(prepared)
    assert [commit["description"] for commit in repo["commits"]] == ["feat: größe & 'quotes' $x"]
    assert repo["bookmarks"] == {NAME: 0}


def test_each_checkpoint_moves_the_bookmark(prepared, jj):
    maintain(prepared, jj, "feat: a")
    (prepared / "b").write_text("b")
    maintain(prepared, jj, "fix: b")
    repo = jj.repo(prepared)
    assert repo["bookmarks"] == {NAME: 1}
    assert repo["commits"][1]["description"] == "fix: b"


def test_empty_working_commit_is_not_changed(prepared, jj):
    maintain(prepared, jj)
    jj.calls()
    satisfied, context = maintain(prepared, jj)
    assert satisfied is True
    assert context.endswith(f"[bookmark: {NAME}]")
    assert jj.calls() == [ROOT, DIFF]
    assert len(jj.repo(prepared)["commits"]) == 1


def test_title_with_a_leading_dash_is_not_treated_as_an_option(prepared, jj):
    assert maintain(prepared, jj, "--help me")[0] is True
    assert jj.repo(prepared)["commits"][0]["description"] == "--help me"


@pytest.mark.parametrize("title", [None, "", "  "])
def test_item_without_a_title_changes_nothing(prepared, jj, title):
    satisfied, context = maintain(prepared, jj, title)
    assert satisfied is False
    assert "title" in context
    assert context.endswith(f"[bookmark: {NAME}]")
    assert jj.calls() == []


@pytest.mark.parametrize("name", [None, "", 5])
def test_missing_bookmark_name_changes_nothing(prepared, jj, name):
    satisfied, context = maintain(prepared, jj, name=name)
    assert satisfied is False
    assert "Blackbelt-Bootstrap" in context
    assert "blackbelt/" not in context
    assert jj.calls() == []


def test_error_for_missing_jj_or_repository_mentions_bootstrap(project, jj):
    for env in ({"PATH": str(project)}, {}):
        satisfied, context = maintain(project, jj, env=env)
        assert satisfied is False
        assert "Blackbelt-Bootstrap" in context
        assert context.endswith(f"[bookmark: {NAME}]")
    assert jj.calls() == [ROOT]


@pytest.mark.parametrize("broken, done", [("diff", 2), ("describe", 3), ("bookmark set", 4), ("new", 5)])
def test_item_can_be_committed_again_after_a_failed_command(prepared, jj, broken, done):
    satisfied, context = maintain(prepared, jj, env={"JJ_FAIL": broken})
    assert satisfied is False
    assert f"jj {broken}" in context
    assert "the disk is on fire" in context
    assert context.endswith(f"[bookmark: {NAME}]")
    assert len(jj.calls()) == done, "nothing behind the one that failed"
    assert jj.repo(prepared)["bookmarks"] == ({NAME: 0} if broken == "new" else {})
    assert maintain(prepared, jj)[0] is True
    repo = jj.repo(prepared)
    assert (len(repo["commits"]), repo["bookmarks"]) == (1, {NAME: 0})


@pytest.mark.parametrize("title", ["a\0b", "\udfff\ud800"])
def test_invalid_title_is_refused(prepared, jj, title):
    satisfied, context = maintain(prepared, jj, title)
    assert satisfied is ("\0" in title)
    assert context.endswith(f"[bookmark: {NAME}]")


@pytest.mark.skipif(shutil.which("jj") is None, reason="jj is not installed")
def test_scripts_work_with_a_real_jj(project, tmp_path):
    config = tmp_path / "jj.toml"
    config.write_text('[user]\nname = "Test"\nemail = "test@example.org"\n')
    env = {"JJ_CONFIG": str(config)}
    (project / "before").write_text("x")
    result = run_script("blackbelt-bootstrap.py", project, env=env, castId="C")
    found = result.answer["state"]["blackbeltBootstrap"]
    assert (found["ok"], found["initialized"], found["newWorkingCommit"]) == (True, True, True)
    for title in ("feat: a", "fix: b"):
        (project / "file").write_text(title)
        state = {"blackbeltBootstrap": found}
        answer = run_script("blackbelt-maintain.py", project, env=env, state=state, item={"title": title}).answer
        assert answer["satisfied"] is True
    log = ["jj", "log", "--no-graph", "-r", found["bookmarkName"], "-T", "description"]
    completed = subprocess.run(log, cwd=project, capture_output=True, text=True, check=True)
    assert completed.stdout.strip() == "fix: b"
