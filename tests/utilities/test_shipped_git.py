"""Test Mime-Bootstrap, Mime-Maintain and the worktree utilities on real Git repositories."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

import cast_helpers as h
from materia_nb import Workbench
from materia_nb.cast import open_cast
from shipped_helpers import GIT, git, repository, run_script


@pytest.fixture
def project(tmp_path):
    return repository(tmp_path / "ein Projekt")


def call(script, project, **given):
    run_dir = project / ".pi" / "casts" / "C1"
    run_dir.mkdir(parents=True, exist_ok=True)
    (run_dir / "events.jsonl").touch()
    result = run_script(script, given.pop("cwd", project), runDir=str(run_dir), castId="C1", **given)
    return result.code, result.answer


def bootstrap(project, **given):
    given["params"] = {"do": "bootstrap", **given.get("params", {})}
    code, answer = call("git-tasks.py", project, **given)
    assert code == (not answer["state"]["mimeBootstrap"]["ok"])
    return answer["state"]


def test_git_task_is_inferred_from_the_materia_id_if_params_do_not_name_a_task(project):
    parameters = {"branchName": "mine"}
    code, answer = call("git-tasks.py", project, materiaId="Mime-Bootstrap", params=parameters)
    assert (code, answer["state"]["mimeBootstrap"]["branchName"]) == (0, "mime/mine")


def maintain(project, title="feat: a", state=None, **given):
    params = {"do": "maintain"}
    code, answer = call("git-tasks.py", project, item={"title": title}, state=state or {}, params=params, **given)
    assert (code, answer["satisfied"]) == (0, answer["state"]["mimeMaintain"]["ok"])
    return answer["state"]["mimeMaintain"]


def worktrees(do, project, state=None, **given):
    base = {"cwd": str(project)}
    code, answer = call("git-tasks.py", project, params={"do": do}, state=state or {}, baseScope=base, **given)
    assert code == 0
    return answer


def subjects(folder):
    return git(folder, "log", "--format=%s").splitlines()


def files_of(folder, commit="HEAD"):
    return git(folder, "show", "--name-only", "--format=", commit).splitlines()


# -- Mime-Bootstrap and Mime-Maintain ----------------------------------------------------


def test_each_item_is_committed_on_the_branch_of_the_cast(project):
    state = bootstrap(project)
    assert git(project, "branch", "--show-current") == state["mimeBootstrap"]["branchName"]
    (project / "a.py").write_text("1\n")
    (project / "README").unlink()
    kept = maintain(project, "fix: äöü\n\nbody", state)
    assert (kept["committed"], kept["commit"]) == (True, git(project, "rev-parse", "HEAD"))
    assert subjects(project) == ["fix: äöü", "begin"]
    assert sorted(files_of(project)) == ["README", "a.py"]
    assert git(project, "log", "--format=%s", "main") == "begin"


def test_no_commit_is_made_if_no_file_changed(project):
    state = bootstrap(project)
    assert maintain(project, "x", state) == {
        "ok": True,
        "committed": False,
        "branchName": state["mimeBootstrap"]["branchName"],
    }
    assert subjects(project) == ["begin"]


def test_uncommitted_files_are_excluded_until_changed_by_the_cast(project):
    for name in ("mine", "staged", "both"):
        (project / name).write_text("of the person\n")
    git(project, "add", "staged")
    (project / "link").symlink_to("nowhere")
    state = bootstrap(project)
    assert set(state["mimeBootstrap"]["before"]) == {"mine", "staged", "both", "link"}
    (project / "both").write_text("of the cast\n")
    (project / "new").write_text("of the cast\n")
    assert maintain(project, "x", state)["committed"]
    assert sorted(files_of(project)) == ["both", "new"]
    assert git(project, "status", "--porcelain", "--", "mine", "staged", "link").splitlines() == [
        "A  staged",
        "?? link",
        "?? mine",
    ]
    assert not maintain(project, "y", state)["committed"]


def test_cast_directory_is_never_committed(project):
    state = bootstrap(project)
    (project / "-a file, with*").write_text("1")
    maintain(project, "-x", state)
    assert (subjects(project)[0], files_of(project)) == ("-x", ["-a file, with*"])


@pytest.mark.parametrize("arguments", ["my/branch", " mime/my branch ~^:?*[\\ ", "../..", "-x", "a.lock", "@{"])
def test_named_branch_is_created_once_and_then_selected_again(project, arguments):
    name = bootstrap(project, params={"branchName": arguments})["mimeBootstrap"]["branchName"]
    assert name.startswith("mime/")
    git(project, "switch", "--quiet", "main")
    assert bootstrap(project, params={"branchName": arguments})["mimeBootstrap"]["branchName"] == name
    assert git(project, "branch", "--show-current") == name


def test_missing_repository_commit_or_title_is_reported(tmp_path, project):
    env = {"GIT_CEILING_DIRECTORIES": str(tmp_path)}
    bare = tmp_path / "bare"
    bare.mkdir()
    assert "git init" in bootstrap(bare, env=env)["mimeBootstrap"]["error"]
    assert "Mime-Bootstrap" in maintain(bare, env=env)["error"]
    git(bare, "init", "--quiet")
    assert "no commit yet" in bootstrap(bare, env=env)["mimeBootstrap"]["error"]
    assert "title" in maintain(project, " ")["error"]
    assert "git" in bootstrap(project, env={"PATH": ""})["mimeBootstrap"]["error"]


def test_failing_commit_hook_is_reported_and_the_item_can_be_retried(project):
    hook = project / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho no such style >&2; exit 1\n")
    hook.chmod(0o755)
    (project / "a").write_text("1")
    assert "no such style" in maintain(project)["error"]
    hook.unlink()
    assert maintain(project)["committed"]


# -- worktrees ---------------------------------------------------------------------------


def test_worktree_needs_a_repository_and_a_commit(tmp_path):
    env = {"GIT_CEILING_DIRECTORIES": str(tmp_path)}
    bare = tmp_path / "bare"
    bare.mkdir()
    assert "Run `git init`, `git add` and `git commit`, then retry" in worktrees("spawn", bare, env=env)["context"]
    git(bare, "init", "--quiet")
    refused = worktrees("spawn", bare, env=env)
    assert "git commit" in refused["context"]
    assert not refused["satisfied"]


def lanes(project, *changes):
    """Run one lane per file, in which the lane writes the specified content; return the final state."""
    results = []
    for number, files in enumerate(changes, 1):
        name = f"lane {number}"
        answer = worktrees("spawn", project, lane=name)
        scope = answer["scopeTransition"]["scope"]
        for path, content in files.items():
            Path(scope["cwd"], path).write_text(content)
        if number % 2:  # the others leave it uncommitted
            maintain(project, f"item of {name}", cwd=scope["cwd"])
        results.append({"name": name, "exports": scope["exports"]})
    return {"parallelResults": results}


def test_lanes_that_change_different_files_are_merged_in_order(project):
    state = lanes(project, {"b": "1\n"}, {"a": "2\n"}, {"README": "3\n"})
    assert not (project / "a").exists()
    answer = worktrees("integrate", project, state)
    assert (answer["satisfied"], answer["state"]["gitIntegration"]["merged"]) == (
        True,
        ["lane 1", "lane 2", "lane 3"],
    )
    first = git(project, "log", "--first-parent", "--format=%s").splitlines()
    assert first == ["Merge lane 3", "Merge lane 2", "Merge lane 1", "begin"]
    assert {"item of lane 1", "lane 2: uncommitted changes", "item of lane 3"} <= set(subjects(project))
    assert [(project / name).read_text() for name in ("b", "a", "README")] == ["1\n", "2\n", "3\n"]
    assert worktrees("integrate", project, state)["satisfied"]
    assert worktrees("finalize", project, state)["satisfied"]
    assert git(project, "worktree", "list").count("\n") == 0
    assert git(project, "branch", "--format=%(refname:short)") == "main"
    assert not (project / ".pi" / "casts" / "C1" / "worktrees").exists()


def test_lanes_that_change_the_same_lines_leave_a_conflict(project):
    state = lanes(project, {"README": "one\n"}, {"README": "two\n"}, {"c": "3\n"})
    answer = worktrees("integrate", project, state)
    result = answer["state"]["gitIntegration"]
    assert (answer["satisfied"], result["ok"], result["conflict"]) == (False, False, "lane 2")
    assert answer["scopeTransition"] == {"kind": "base"}
    assert "README" in answer["context"]
    assert "one" in (project / "README").read_text()
    assert "two" in (project / "README").read_text()
    state["gitIntegration"] = result
    again = worktrees("integrate", project, state)
    assert (again["satisfied"], again["state"]["gitIntegration"]) == (
        False,
        {**result, "error": again["context"]},
    )
    assert not worktrees("finalize", project, state)["satisfied"]
    (project / "README").write_text("one and two\n")
    assert worktrees("integrate", project, state)["satisfied"]
    assert ((project / "README").read_text(), (project / "c").read_text()) == ("one and two\n", "3\n")
    assert worktrees("finalize", project, state)["satisfied"]


def test_file_removed_in_one_lane_and_changed_in_another_is_kept(project):
    state = lanes(project, {"README": "one\n"}, {})
    place = state["parallelResults"][1]["exports"]["gitWorktree"]["value"]["path"]
    Path(place, "README").unlink()
    state["gitIntegration"] = worktrees("integrate", project, state)["state"]["gitIntegration"]
    assert not worktrees("integrate", project, state)["satisfied"]
    git(project, "add", "README")
    assert worktrees("integrate", project, state)["satisfied"]
    assert (project / "README").read_text() == "one\n"


def test_unmerged_worktrees_are_kept_and_reported(project):
    state = lanes(project, {"a": "1\n"}, {"b": "2\n"})
    branch = state["parallelResults"][0]["exports"]["gitWorktree"]["value"]["branch"]
    answer = worktrees("finalize", project, state)
    assert (answer["satisfied"], len(answer["state"]["gitFinalized"]["kept"])) == (False, 2)
    assert git(project, "show", f"{branch}:a") == "1"


def test_uncommitted_changes_are_kept_and_reported(project):
    (project / "README").write_text("of the person\n")
    spawned = worktrees("spawn", project)
    assert "changed files: 1" in spawned["context"]
    scope = spawned["scopeTransition"]["scope"]
    (project / scope["cwd"] / "README").write_text("of the lane\n")
    answer = worktrees("integrate", project, {"gitWorktree": spawned["state"]["gitWorktree"]})
    assert not answer["satisfied"]
    assert "overwritten by merge" in answer["context"]
    assert (project / "README").read_text() == "of the person\n"


def test_project_in_a_subfolder_of_its_repository_works_in_that_folder(project):
    inner = project / "inner"
    inner.mkdir()
    (inner / "a").write_text("1\n")
    git(project, "add", ".")
    git(project, "commit", "--quiet", "-m", "inner")
    scope = worktrees("spawn", inner)["scopeTransition"]["scope"]
    assert [path.name for path in Path(scope["cwd"]).iterdir()] == ["a"]


def test_lane_without_a_worktree_is_reported(project):
    answer = worktrees("integrate", project, {"parallelResults": [{"name": "x", "exports": {}}]})
    assert "Git-Spawn" in answer["context"]


def test_mime_aside_loadout_builds_in_a_worktree_and_merges_the_resolved_conflict(project, monkeypatch):
    for name, value in GIT.items():
        monkeypatch.setenv(name, value)
    (project / "README").write_text("here\n" * 9)
    git(project, "commit", "--quiet", "--all", "-m", "long")

    def build(turn):
        (turn.project / "README").write_text("built\n" + "here\n" * 8)
        (project / "README").write_text("of the person\n" + "here\n" * 8)
        git(project, "commit", "--quiet", "--all", "-m", "meanwhile")
        return "built"

    def resolve(turn):
        assert turn.project == project
        assert "README" in str(turn.prompt)
        (turn.project / "README").write_text("both\n" + "here\n" * 8)
        return "resolved"

    plan = {"workItems": [{"title": "feat: readme", "context": "x"}]}
    with closing(Workbench(project)) as bench:
        agents = {
            "Auto-Plan": lambda _: plan,
            "Build": build,
            "Auto-Eval": lambda _: {"satisfied": True},
            "Resolve": resolve,
        }
        cast = bench.cast("x", loadout="Mime-Aside", agents={**agents, "Narrate": lambda _: "done"})
        cast.run()
        assert cast.status == "complete", cast.failure
    assert (project / "README").read_text() == "both\n" + "here\n" * 8
    assert {"feat: readme", "meanwhile", "Merge work"} <= set(subjects(project))
    assert git(project, "worktree", "list").count("\n") == 0
    assert git(project, "status", "--porcelain") == "?? .gitignore"


@pytest.mark.parametrize("same_lines", [False, True])
def test_parallel_build_joins_its_lanes_in_the_order_of_the_plan(project, monkeypatch, same_lines):
    """Lanes that change different files are merged. Lanes that change the same lines leave a conflict for Resolve."""
    for name, value in GIT.items():
        monkeypatch.setenv(name, value)
    streams = [{"name": "pages", "workItemIndexes": [1]}, {"name": "server", "workItemIndexes": [0, 2]}]
    plan = {
        "workItems": [{"title": f"feat: {n}", "context": "x"} for n in range(3)],
        "parallelSchedule": {"version": 1, "streams": streams},
    }

    def build(turn):
        assert turn.project != project
        name = "same" if same_lines and turn.item_key != "WI-3" else turn.item_key
        (turn.project / name).write_text(f"by {turn.lane}\n")
        return "built"

    def resolve(turn):
        assert "<<<<<<<" in (turn.project / "same").read_text()
        (turn.project / "same").write_text("by both\n")
        return "resolved"

    with closing(Workbench(project)) as bench:
        agents = {
            "Stream-Plan": lambda _: plan,
            "Build": build,
            "Auto-Eval": lambda _: {"satisfied": True},
            "Resolve": resolve,
            "Narrate": lambda _: "done",
        }
        cast = bench.cast("x", loadout="Parallel-Build", agents=agents, files="not ignored")
        assert cast.run() == "complete", cast.failure
        assert not cast.now.messages
        h.assert_same(open_cast(cast.run_dir), cast)
        result = {
            (name, step.item_key): step.files.changed
            for name, lane in cast.now.lanes.items()
            for step in cast.files.lane(name)
            if lane.status == "accepted"
        }
        assert result == {
            ("pages", "WI-2"): ("same" if same_lines else "WI-2",),
            ("server", "WI-1"): ("same" if same_lines else "WI-1",),
            ("server", "WI-3"): ("WI-3",),
        }
        last = [step.number for step in cast.files.lane("server")][-1]
        assert "+by server" in cast.files.lane("server").difference(last)
        resolved = [step.socket for step in cast.steps].count("Socket-8")
        cast.close()
        bench.casts.delete(cast.id, yes=True)
    assert not (cast.run_dir.parent / "files.git").exists()  # nor anything that a lane kept
    assert resolved == same_lines
    expected = {"same": "by both\n"} if same_lines else {"WI-1": "by server\n", "WI-2": "by pages\n"}
    for name, text in {**expected, "WI-3": "by server\n"}.items():
        assert (project / name).read_text() == text
    joined = [subject for subject in subjects(project) if subject.startswith("Merge")]
    assert joined == ["Merge server", "Merge pages"]  # the latest first
    assert git(project, "worktree", "list").count("\n") == 0
    assert git(project, "status", "--porcelain") == "?? .gitignore"
