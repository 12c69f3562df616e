"""Test Ignore-Artifacts, Detect-VCS and Commit-Sigil on real Git repositories."""

from __future__ import annotations

import stat

import pytest

from materia_nb.loadout.topology import SHIPPED_SCRIPTS
from materia_nb.utilities.utility_step import PACKAGED_FOLDER
from shipped_helpers import git, is_ignored, repository, run_script

ARTIFACT = ".pi/pi-materia/2026/manifest.json"
PATTERN = ".pi/pi-materia/"


def test_packaged_script_files_match_the_list_of_shipped_scripts():
    assert sorted(path.name for path in PACKAGED_FOLDER.glob("*.py")) == sorted(SHIPPED_SCRIPTS)


@pytest.mark.parametrize("name", SHIPPED_SCRIPTS)
def test_scripts_use_only_the_standard_library(name):
    text = (PACKAGED_FOLDER / name).read_text()
    imported = {line.split()[1].split(".")[0] for line in text.splitlines() if line.startswith(("import ", "from "))}
    assert imported <= {
        "__future__", "collections", "contextlib", "difflib", "hashlib", "json", "os", "pathlib",
        "re", "secrets", "shlex", "shutil", "stat", "subprocess", "sys", "typing",
    }  # fmt: skip


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# -- Ignore-Artifacts -----------------------------------------------------------------


def ensure(folder, **params):
    return run_script("ensure-ignored.py", folder, params=params)


def test_git_ignores_artifacts_after_ensure_ignored_has_run(tmp_path):
    repo = repository(tmp_path / "a project, größer")
    result = ensure(repo)
    assert result.code == 0
    assert result.answer == {
        "state": {
            "artifactIgnore": {
                "ok": True,
                "file": str(repo / ".gitignore"),
                "changed": True,
                "added": [PATTERN],
                "unchanged": [],
            }
        }
    }
    assert (repo / ".gitignore").read_bytes() == b".pi/pi-materia/\n"
    assert is_ignored(repo, ARTIFACT)
    again = ensure(repo).answer["state"]["artifactIgnore"]
    assert (again["changed"], again["added"], again["unchanged"]) == (False, [], [PATTERN])
    assert (repo / ".gitignore").read_bytes() == b".pi/pi-materia/\n"


@pytest.mark.parametrize(
    "before, after",
    [
        (b"", b".pi/pi-materia/\n"),
        (b"a\nb\n", b"a\nb\n.pi/pi-materia/\n"),
        (b"a\nb", b"a\nb\n.pi/pi-materia/\n"),
        (b"a\r\nb\r\n", b"a\r\nb\r\n.pi/pi-materia/\r\n"),
        (b"a\r\nb", b"a\r\nb\r\n.pi/pi-materia/\r\n"),
        (b"a\r\nb\n", b"a\r\nb\n.pi/pi-materia/\n"),
        (b"\xff\xfe no utf-8 \n\n  \n", b"\xff\xfe no utf-8 \n\n  \n.pi/pi-materia/\n"),
        (b"# .pi/pi-materia/\n", b"# .pi/pi-materia/\n.pi/pi-materia/\n"),
    ],
)
def test_existing_content_and_line_endings_are_kept(tmp_path, before, after):
    repo = repository(tmp_path / "r")
    (repo / ".gitignore").write_bytes(before)
    assert ensure(repo).code == 0
    assert (repo / ".gitignore").read_bytes() == after
    assert is_ignored(repo, ARTIFACT)


@pytest.mark.parametrize(
    "before",
    [
        b"x\r\n.pi/pi-materia/\r\ny\r\n",
        b"\xef\xbb\xbf.pi/pi-materia/\n",
        b"x\n.pi/pi-materia/  \n",
        b".pi/pi-materia/",
    ],
)
def test_existing_ignore_pattern_is_not_added_again(tmp_path, before):
    repo = repository(tmp_path / "r")
    (repo / ".gitignore").write_bytes(before)
    assert ensure(repo).answer["state"]["artifactIgnore"]["added"] == []
    assert (repo / ".gitignore").read_bytes() == before
    assert is_ignored(repo, ARTIFACT)


def test_project_inside_a_repository_gets_its_own_ignore_file(tmp_path):
    repo = repository(tmp_path / "big")
    (repo / ".gitignore").write_bytes(b"*.o\n")
    nested = repo / "apps" / "mine"
    nested.mkdir(parents=True)
    assert ensure(nested).answer["state"]["artifactIgnore"]["file"] == str(nested / ".gitignore")
    assert (repo / ".gitignore").read_bytes() == b"*.o\n"
    assert is_ignored(repo, f"apps/mine/{ARTIFACT}")
    assert ensure(nested, file="../../.gitignore", patterns=["*.log", "*.o"]).answer["state"]["artifactIgnore"][
        "added"
    ] == ["*.log"]
    assert (repo / ".gitignore").read_bytes() == b"*.o\n*.log\n"


def test_read_only_file_is_reported_and_not_changed(tmp_path):
    repo = repository(tmp_path / "r")
    file = repo / ".gitignore"
    file.write_bytes(b"a\n")
    file.chmod(0o444)
    result = ensure(repo)
    assert result.code == 1
    assert result.answer["state"]["artifactIgnore"]["ok"] is False
    assert "read-only" in result.answer["state"]["artifactIgnore"]["error"]
    assert "read-only" in result.stderr
    assert file.read_bytes() == b"a\n"
    assert names(repo) == [".git", ".gitignore", "README"]
    assert ensure(repo, patterns=["a"]).code == 0, "nothing to add, so nothing is written"


def test_permissions_are_kept_and_no_temporary_file_remains(tmp_path):
    repo = repository(tmp_path / "r")
    (repo / ".gitignore").write_bytes(b"a\n")
    (repo / ".gitignore").chmod(0o640)
    ensure(repo)
    assert stat.S_IMODE((repo / ".gitignore").stat().st_mode) == 0o640
    assert names(repo) == [".git", ".gitignore", "README"]


def test_symbolic_link_is_followed_only_inside_the_repository(tmp_path):
    repo = repository(tmp_path / "r")
    (repo / "shared-ignore").write_bytes(b"a\n")
    (repo / ".gitignore").symlink_to("shared-ignore")
    result = ensure(repo)
    assert result.code == 0
    assert "symbolic link" in result.stderr, "Git would not look into it"
    assert not is_ignored(repo, ARTIFACT)
    assert (repo / ".gitignore").is_symlink()
    assert (repo / "shared-ignore").read_bytes() == b"a\n.pi/pi-materia/\n"
    outside = tmp_path / "everyone's"
    outside.write_bytes(b"")
    (repo / ".gitignore").unlink()
    (repo / ".gitignore").symlink_to(outside)
    result = ensure(repo)
    assert result.code == 1
    assert "outside" in result.stderr
    assert outside.read_bytes() == b""


@pytest.mark.parametrize(
    "params",
    [
        {"patterns": "x"},
        {"patterns": ["a\nb"]},
        {"patterns": [" "]},
        {"patterns": [1]},
        {"patterns": ["\ud800"]},
        {"file": ""},
        {"file": 7},
        {"file": "../x"},
        {"file": ".git"},
        {"file": "README/x"},
        {"file": "a\0b"},
    ],
)
def test_invalid_request_is_reported_and_changes_nothing(tmp_path, params):
    repo = repository(tmp_path / "r")
    before = names(tmp_path), names(repo)
    result = ensure(repo, **params)
    assert result.code == 1
    assert result.stderr.startswith("Ignore-Artifacts: ")
    assert result.answer["state"]["artifactIgnore"]["ok"] is False
    assert (names(tmp_path), names(repo)) == before


def test_ignore_file_in_a_new_folder_is_created_without_a_repository(tmp_path):
    project = tmp_path / "plain"
    project.mkdir()
    assert ensure(project, file="deep/down/.ignore").code == 0
    assert (project / "deep/down/.ignore").read_bytes() == b".pi/pi-materia/\n"


# -- Detect-VCS -----------------------------------------------------------------------


def detect(folder, **env):
    result = run_script("detect-vcs.py", folder, env=env)
    assert result.code == 0
    vcs = result.answer["state"]["vcs"]
    assert result.answer["satisfied"] is (vcs["kind"] == "jj")
    assert set(vcs) == {"kind", "root", "bare", "colocated", "branch", "detached", "available"}
    return vcs


def test_branch_of_a_repository_is_detected(tmp_path):
    repo = repository(tmp_path / "with space ü")
    (repo / "sub").mkdir()
    for place in (repo, repo / "sub", repo / ".git"):
        vcs = detect(place)
        assert (vcs["kind"], vcs["root"], vcs["bare"]) == ("git", str(repo), False)
        assert (vcs["branch"], vcs["detached"]) == ("main", False)
        assert vcs["available"]["git"] is True


def test_unborn_branch_with_slashes_is_detected(tmp_path):
    git(tmp_path, "init", "--quiet", "--initial-branch=feat/größe")
    assert detect(tmp_path)["branch"] == "feat/größe"


def test_detached_head_is_detected(tmp_path):
    repo = repository(tmp_path / "r")
    git(repo, "checkout", "--quiet", "--detach")
    vcs = detect(repo)
    assert (vcs["branch"], vcs["detached"]) == (None, True)


def test_bare_repository_is_detected(tmp_path):
    bare = repository(tmp_path / "r.git", "--bare")
    vcs = detect(bare)
    assert (vcs["kind"], vcs["root"], vcs["bare"], vcs["branch"]) == ("git", str(bare), True, "main")


def test_linked_worktree_is_detected(tmp_path):
    repo = repository(tmp_path / "r")
    git(repo, "worktree", "add", "--quiet", "-b", "other", str(tmp_path / "w"))
    vcs = detect(tmp_path / "w", GIT_DIR=str(repo / ".git"))
    assert (vcs["root"], vcs["branch"]) == (str(tmp_path / "w"), "other")


def test_missing_git_is_reported(tmp_path):
    repo = repository(tmp_path / "r")
    vcs = detect(repo, PATH=str(tmp_path))
    assert (vcs["kind"], vcs["root"], vcs["branch"], vcs["detached"]) == ("git", str(repo), None, None)
    assert vcs["available"] == {"git": False, "jj": False}


def test_refused_repository_is_reported(tmp_path):
    repo = repository(tmp_path / "r")
    (repo / ".git" / "HEAD").write_text("nonsense")
    vcs = detect(repo)
    assert (vcs["kind"], vcs["branch"], vcs["detached"]) == ("git", None, None)


def test_nearest_repository_is_used_and_jj_takes_precedence_over_git(tmp_path):
    repo = repository(tmp_path / "r")
    (repo / ".jj").mkdir()
    nested = repository(repo / "vendor" / "lib")
    assert (detect(repo)["kind"], detect(repo)["colocated"]) == ("jj", True)
    assert detect(nested)["root"] == str(nested)
    assert detect(nested)["kind"] == "git"


def test_missing_repository_is_reported(tmp_path):
    vcs = detect(tmp_path)
    assert (vcs["kind"], vcs["root"], vcs["bare"], vcs["colocated"]) == ("none", None, False, False)


# -- Commit-Sigil ---------------------------------------------------------------------


def sigil(*titles, params=None, **given):
    items = [{"title": title, "context": "c"} for title in titles]
    result = run_script("commit-sigil.py", PACKAGED_FOLDER, state={"workItems": items}, params=params or {}, **given)
    assert result.code == 0
    assert set(result.answer) == {"workItems", "satisfied", "context"}
    assert result.answer["workItems"] == items
    return result.answer


@pytest.mark.parametrize(
    "title",
    [
        "feat: a",
        "fix(parser): b",
        "docs!: c",
        "refactor(core api)!: d",
        "chore:  two spaces",
        "test: ünïcode 🦊",
    ],
)
def test_valid_titles_are_accepted(title):
    assert sigil(title)["satisfied"] is True


@pytest.mark.parametrize(
    "title, hint",
    [
        ("bad title", "feat:"),
        ("feat add it", "type: description"),
        ("feat:no space", "type: description"),
        ("feat: ", "type: description"),
        ("feat(): empty scope", "type: description"),
        ("feat!!: two", "type: description"),
        ("feat (scope): gap", "type: description"),
        (" feat: indented", "type: description"),
        ("feat: first\nsecond", "type: description"),
        ("faet: typo", "did you mean feat?"),
        ("Fix: case", "did you mean fix?"),
        ("banana: x", "choose one"),
        ("", "no title"),
        (None, "no title"),
        (5, "no title"),
    ],
)
def test_invalid_titles_are_reported_with_a_correction(title, hint):
    answer = sigil("feat: fine", title)
    assert answer["satisfied"] is False
    assert answer["context"].startswith("Work item 1: ")
    assert hint in answer["context"]
    assert "Work item 0" not in answer["context"]


def test_every_invalid_item_is_reported_and_other_fields_are_returned():
    items = [{"title": "x", "context": "", "extra": [1]}, "no object", {"title": "feat: y"}]
    result = run_script("commit-sigil.py", PACKAGED_FOLDER, state={"workItems": items})
    assert result.answer["workItems"] == items
    assert [line[:12] for line in result.answer["context"].splitlines()] == ["Work item 0:", "Work item 1:"]


def test_allowed_types_can_be_configured():
    assert sigil("wip: a", params={"types": ["wip"]})["satisfied"] is True
    assert sigil("feat: a", params={"types": ["wip"]})["satisfied"] is False


@pytest.mark.parametrize("given", [{}, {"state": {"workItems": []}}, {"state": {}, "workItems": []}])
def test_input_without_items_is_accepted(given):
    result = run_script("commit-sigil.py", PACKAGED_FOLDER, **given)
    assert (result.answer["workItems"], result.answer["satisfied"]) == ([], True)


def test_items_may_be_at_the_top_level_of_the_input():
    top = [{"title": "bad", "context": "c"}]
    assert run_script("commit-sigil.py", PACKAGED_FOLDER, workItems=top).answer["satisfied"] is False
    assert (
        run_script("commit-sigil.py", PACKAGED_FOLDER, workItems=top, state={"workItems": []}).answer["satisfied"]
        is True
    )


@pytest.mark.parametrize(
    "given", [{"state": {"workItems": {}}}, {"params": {"types": "feat"}}, {"params": {"types": [1]}}]
)
def test_input_of_the_wrong_shape_is_refused(given):
    result = run_script("commit-sigil.py", PACKAGED_FOLDER, **given)
    assert (result.code, result.answer) == (1, None)
    assert result.stderr.startswith("Commit-Sigil: ")
