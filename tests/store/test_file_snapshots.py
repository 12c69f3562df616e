"""Test that files are restored exactly as they were after each step, without changing the user's Git data."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import threading
from contextlib import closing
from itertools import count

import pytest

import cast_helpers as h
from materia_nb import Workbench
from materia_nb.cast import Cast, resume_cast
from materia_nb.cast.runner_factory import start_runner
from materia_nb.engine.session import files_after
from materia_nb.errors import MateriaError
from materia_nb.store import file_snapshots
from materia_nb.store.catalogue import delete_cast
from materia_nb.store.file_snapshots import FileSnapshots
from shipped_helpers import git, repository

CASTS = int(os.environ.get("MATERIA_NB_KEPT_CASTS", "12"))
"""Number of random casts; 500 before a release."""
NAMES = ["a.txt", "b.py", "deep/er/c", "deep/d", "ä ö\n\"'", "-x", "sub/a.txt", "bin/run", ".hidden", "sub"]


def act(folder, choose):
    """Change files at random: write, append, link, rename, delete, make executable, or replace a file by a folder."""
    path = folder / choose.choice(NAMES)
    what = choose.choice(["write", "write", "bytes", "link", "rename", "delete", "mode", "folder", "crlf"])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if what == "write":
            path.write_text(f"{choose.random()}\n" * choose.randrange(4))
        elif what == "bytes":
            path.write_bytes(choose.randbytes(choose.randrange(300)))
        elif what == "crlf":
            path.write_bytes(b"one\r\ntwo\n\r$Id$\n")
        elif what == "link":
            path.unlink(missing_ok=True)
            path.symlink_to(choose.choice(["a.txt", "nowhere", "/etc", "deep"]))
        elif what == "rename":
            path.rename(folder / choose.choice(NAMES))
        elif what == "delete":
            path.unlink()
        elif what == "mode":
            path.chmod(choose.choice([0o755, 0o644]))
        else:
            path.unlink(missing_ok=True)
            (path / "inner").mkdir(parents=True)
            (path / "inner" / "e").write_text("e")
    except OSError:
        pass


def folder_contents(folder):
    """Return the kind, executable bit and content of each entry in a folder, except casts and Git directories."""
    found = {}
    for path in folder.rglob("*"):
        parts = path.relative_to(folder).parts
        if parts[0] in ("casts", ".git") or (path.is_dir() and not path.is_symlink()):
            continue
        link = path.is_symlink()
        content = bytes(path.readlink()) if link else path.read_bytes()
        found["/".join(parts)] = (link, not link and bool(path.stat().st_mode & 0o100), content)
    return found


def tree_of(cast):
    """Return the modes of the files in the latest snapshot of a cast."""
    listed = file_snapshots.git(cast.runner.file_snapshots().git_dir, "ls-tree", "-r", "-z", cast.runner.session.files)
    return {line.partition(b"\t")[2]: line[:6].decode() for line in listed.split(b"\0")[:-1]}


def content(git_dir, commit, path):
    return file_snapshots.git(git_dir, "cat-file", "blob", f"{commit}:{path}")


def start(project, document, agents, files="not ignored"):
    return Cast(start_runner(h.plan(project, document, files=files), "x", h.table(agents)))


def repository_files(project):
    """Return the contents and modification times of all files in a repository."""
    return {
        path.relative_to(project): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted((project / ".git").rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("seed", range(CASTS))
def test_snapshots_restore_files_of_every_step_without_touching_git(tmp_path, seed):
    choose = random.Random(seed)
    project = repository(tmp_path / "p")
    (project / ".gitattributes").write_text("* text=auto eol=lf ident\n")
    git(project, "config", "core.autocrlf", "input")
    before, then = repository_files(project), []

    def agent(turn):
        for _ in range(choose.randrange(4)):
            act(turn.project, choose)
        then.append(folder_contents(turn.project))
        return "x"

    then.append(folder_contents(project))
    cast = start(project, h.chain_config(6), agent)
    cast.run()
    cast.close()
    cast = resume_cast(cast.run_dir)
    assert repository_files(project) == before
    for number in choose.sample(range(7), 4):
        fork = cast.fork(number)
        assert folder_contents(fork.runner.base) == then[number]
        fork.close()
    for number in sorted(choose.sample(range(6), 2), reverse=True):
        cast.back(number, files=True)
        assert folder_contents(project) == then[number]
    assert repository_files(project) == before


def writing_agent(*files):
    """Return an agent that writes one of the specified files in each turn."""
    left = list(files)

    def agent(turn):
        path, content = left.pop(0)
        (turn.project / path).write_text(content)
        return "x"

    return agent


def test_step_lists_only_its_own_changes(tmp_path):
    cast = start(tmp_path, h.chain_config(3), writing_agent(("a", "1\n"), ("b", "1\n"), ("a", "1\n2\n")))
    cast.step()
    (tmp_path / "mine").write_text("of the person\n")
    cast.run()
    assert [list(step.files.changed) for step in cast.steps] == [["a"], ["b"], ["a"]]
    assert [[one.path for one in cast.files.changes(n)] for n in (1, 2, 3)] == [["a"], ["b"], ["a"]]
    (change,) = cast.files.changes(3)
    assert (change.kind, change.added, change.removed) == ("M", 1, 0)
    assert files_after(cast.runner.session, 0) == cast.steps[0].files.before


def test_unchanged_step_makes_no_commit_and_no_event(tmp_path):
    cast = start(tmp_path, h.chain_config(2), lambda _: "x")
    cast.run()
    assert cast.steps[0].files == cast.steps[1].files
    assert (cast.run_dir / "events.jsonl").read_text().count('"files_kept"') == 1


def test_failed_step_keeps_its_changes(tmp_path):
    def agent(turn):
        (turn.project / "half").write_text("1")
        raise ValueError("no")

    cast = start(tmp_path, h.chain_config(1), agent)
    cast.run()
    assert [change.path for change in cast.files.changes(1)] == ["half"]


@pytest.mark.parametrize(
    "word, kept",
    [
        ("not ignored", {"a", ".gitignore", "in/b"}),
        ("all", {"a", ".gitignore", "in/b", "x.log", "in/y.tmp"}),
    ],
)
def test_ignored_files_are_excluded_unless_configured(tmp_path, word, kept):
    repo = repository(tmp_path / "repo")
    project = repo / "inner"
    (project / "in").mkdir(parents=True)
    (repo / ".git" / "info" / "exclude").write_text("*.tmp\n")
    (project / ".gitignore").write_text("*.log\n")
    for name in ("a", "in/b", "x.log", "in/y.tmp"):
        (project / name).write_text("1")
    cast = start(project, h.chain_config(1), lambda _: "x", files=word)
    assert {os.fsdecode(path) for path in tree_of(cast)} == kept


def test_going_back_does_not_overwrite_unsaved_files(tmp_path):
    project = repository(tmp_path / "p")
    cast = start(project, h.chain_config(2), writing_agent(("out.log", "kept\n"), (".gitignore", "*.log\n")))
    cast.run()
    (project / "out.log").write_text("never kept\n")
    before = folder_contents(project)
    with pytest.raises(MateriaError) as refused:
        cast.back(1, files=True)
    assert (refused.value.kind, folder_contents(project), len(cast.steps)) == ("in_the_way", before, 2)
    (project / "out.log").unlink()
    cast.back(1, files=True)
    assert (project / "out.log").read_text() == "kept\n"


def test_current_files_are_saved_before_going_back(tmp_path):
    cast = start(tmp_path, h.chain_config(2), writing_agent(("a", "1\n"), ("a", "2\n")))
    cast.run()
    (tmp_path / "mine").write_text("of the person\n")
    cast.back(1, files=True)
    assert set(folder_contents(tmp_path)) == {"a"}
    lines = [line for line in (cast.run_dir / "events.jsonl").read_text().splitlines() if '"files_kept"' in line]
    commit = lines[-2].split('"commit":"')[1][:40]
    assert content(cast.runner.file_snapshots().git_dir, commit, "mine") == b"of the person\n"


def test_fork_works_in_its_own_folder(tmp_path):
    cast = start(tmp_path, h.chain_config(3), writing_agent(("a", "1\n"), ("a", "2\n"), ("a", "3\n")))
    cast.run(steps=2)
    fork = cast.fork(1)
    fork.agents.set("*", writing_agent(("a", "fork\n"), ("b", "fork\n")))
    fork.run()
    assert (tmp_path / "a").read_text() == "2\n"
    assert (fork.runner.base / "a").read_text() == "fork\n"
    assert fork.fork().runner.base != fork.runner.base
    again = resume_cast(cast.run_dir.parent / fork.id) if fork.close() is None else None
    assert folder_contents(again.runner.base) == folder_contents(fork.runner.base)


def test_several_casts_share_stored_files(tmp_path):
    (tmp_path / "a").write_text("1\n" * 1000)
    casts = [start(tmp_path, h.chain_config(1), lambda _: "x") for _ in range(3)]
    assert len({cast.runner.session.files for cast in casts}) == 3
    told = git(casts[0].runner.file_snapshots().git_dir, "count-objects", "-v")
    assert "count: 5" in told  # one file, one tree, three commits


def test_nested_repository_is_stored_without_its_git_directory(tmp_path):
    repository(tmp_path / "vendor" / "lib")
    (tmp_path / "vendor" / "lib" / "README").chmod(0o755)
    cast = start(tmp_path, h.chain_config(1), lambda _: "x")
    tree = tree_of(cast)
    assert tree.keys() == {b"vendor/lib/README"}
    assert tree[b"vendor/lib/README"] == "100755"


def test_oversized_file_is_excluded_and_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(file_snapshots, "MAX_FILE_BYTES", 10)
    cast = start(tmp_path, h.chain_config(2), writing_agent(("long", "x" * 11), ("short", "x")))
    cast.run()
    assert '"leftOut":["long"]' in (cast.run_dir / "events.jsonl").read_text()
    cast.back(1, files=True)
    assert set(folder_contents(tmp_path)) == {"long"}


def test_too_many_files_are_refused_at_start_and_reported_later(tmp_path, monkeypatch):
    monkeypatch.setattr(file_snapshots, "MAX_FILES", 1)
    cast = start(tmp_path, h.chain_config(2), writing_agent(("a", "1"), ("b", "1")))
    cast.run()
    assert cast.status == "complete"
    assert any("too large for file snapshots" in message for message in cast.now.messages)
    assert [step.files is None for step in cast.steps] == [False, True]
    with pytest.raises(MateriaError, match="too large for file snapshots"):
        start(tmp_path, h.chain_config(1), None)


def test_missing_git_is_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MateriaError, match="need Git, which is not installed") as refused:
        start(tmp_path, h.chain_config(1), None)
    assert refused.value.kind == "no_git"
    assert not [path for path in (tmp_path / "casts").iterdir() if path.is_dir()]


def test_two_changes_within_one_clock_tick_are_both_stored(tmp_path):
    keeper = FileSnapshots(tmp_path / "p", tmp_path / "casts", "c")
    (tmp_path / "p").mkdir()
    path, commits = tmp_path / "p" / "a", []
    for n in range(20):
        path.write_text(f"{n:03}")
        commits.append(keeper.take(commits[-1] if commits else None).commit)
    assert [content(keeper.git_dir, commit, "a") for commit in commits] == [b"%03d" % n for n in range(20)]


def test_going_back_with_files_names_the_setting_that_saves_no_files(tmp_path):
    cast = start(tmp_path, h.chain_config(1), lambda _: "x", files="off")
    cast.run()
    with pytest.raises(MateriaError, match="`files: off`") as caught:
        cast.back(0, files=True)
    assert caught.value.kind == "not_kept"


@pytest.mark.parametrize("commit", ["", "HEAD", "--help", "x" * 40, "a" * 41])
def test_invalid_commit_ids_in_a_journal_are_refused(tmp_path, commit):
    keeper = FileSnapshots(tmp_path, tmp_path / "casts", "c")
    with pytest.raises(MateriaError, match="contains an invalid commit id"):
        file_snapshots.difference(keeper.git_dir, commit, "a" * 40)


def test_user_git_settings_cannot_run_a_program(tmp_path):
    project = repository(tmp_path / "p")
    ran = tmp_path / "ran"
    for key in ("core.fsmonitor", "core.hooksPath", "filter.f.clean", "core.sshCommand"):
        git(project, "config", key, f"touch {ran}; false")
    (project / ".gitattributes").write_text("* filter=f\n")
    cast = start(project, h.chain_config(1), writing_agent(("a", "1")))
    cast.run()
    cast.back(0, files=True)
    assert not ran.exists()


def test_deleting_the_last_cast_removes_its_snapshots(tmp_path):
    casts = [start(tmp_path, h.chain_config(1), lambda _: "x") for _ in range(2)]
    git_dir = casts[0].runner.file_snapshots().git_dir
    for cast, left in zip(casts, (True, False), strict=True):
        cast.close()
        delete_cast(cast.run_dir.parent, cast.run_dir)
        assert git_dir.exists() is left


def test_accepted_attempt_restores_its_files(tmp_path):
    (tmp_path / "a").write_text("at the start\n")
    cast = start(tmp_path, h.chain_config(2), None)
    (tmp_path / "a").write_text("before\n")  # the attempts start from this change of a person
    seen_by = []

    def agent(turn):
        seen_by.append((turn.project / "a").read_text())
        (turn.project / "a").write_text(f"{len(seen_by)}\n")
        return "x"

    tried = cast.attempt(n=3, agents=[agent])
    assert (seen_by, (tmp_path / "a").read_text()) == (["before\n"] * 3, "before\n")
    assert not list((cast.run_dir / "attempts").glob("*"))
    step = tried.take(2)
    assert ((tmp_path / "a").read_text(), step.files.changed) == ("2\n", ("a",))


def test_sweep_rows_have_separate_files(tmp_path):
    repository(tmp_path)
    (tmp_path / "a").write_text("before\n")
    before, seen_by = repository_files(tmp_path), []

    def agent(turn):
        seen_by.append((turn.project / "a").read_text())
        (turn.project / "a").write_text(f"{len(seen_by)}\n")
        return "x"

    with closing(Workbench(tmp_path, bundled=False)) as bench:
        bench.load({**h.chain_config(1), "files": "not ignored"})
        made = bench.sweep(requests=["one", "two"], repeat=2, agents={"*": agent})
        assert [row.ends for row in made] == ["complete"] * 4
    assert (seen_by, (tmp_path / "a").read_text()) == (["before\n"] * 4, "before\n")
    assert repository_files(tmp_path) == before


def test_modified_git_directory_cannot_run_a_program(tmp_path):
    cast = start(tmp_path, h.chain_config(1), writing_agent(("a", "1\n")))
    cast.run()
    config = cast.runner.file_snapshots().git_dir / "config"
    config.write_text(config.read_text() + f'[core]\n\tfsmonitor = "touch {tmp_path}/ran; false"\n')
    with pytest.raises(MateriaError, match="settings of the Git directory of file snapshots were changed"):
        cast.files.difference(1)
    assert not (tmp_path / "ran").exists()


def test_git_in_a_fork_does_not_change_the_users_repository(tmp_path):
    project = repository(tmp_path / "p")
    cast = start(project, h.chain_config(2), writing_agent(("a", "1\n"), ("a", "2\n")))
    cast.run()
    before, fork = repository_files(project), cast.fork(1)
    folder = fork.runner.base
    assert (git(folder, "rev-parse", "--show-toplevel"), git(folder, "status", "--porcelain")) == (
        str(folder),
        "",
    )
    (folder / "a").write_text("3\n")
    git(folder, "commit", "--quiet", "--all", "-m", "of the fork")
    assert repository_files(project) == before
    fork.agents.set("*", lambda _: "x")
    fork.run()
    assert git(folder, "log", "--format=%s", "-1") == "of the fork"


def write_three_files(project):
    """Start a cast whose three steps each write a different file."""
    return start(project, h.chain_config(3), write_own_file)


def write_own_file(turn):
    (turn.project / f"{turn.socket_id}.txt").write_text(turn.socket_id)
    return "x"


def files_of_steps(cast, steps):
    """Return the names of the files after each step."""
    listed = []
    for number in range(steps + 1):
        fork = cast.fork(number)
        listed.append(sorted(folder_contents(fork.runner.base)))
        fork.close()
    return listed


EACH_STEP_ITS_FILE = [sorted(f"Socket-{n}.txt" for n in range(1, last + 1)) for last in range(4)]


def at_snapshot(number, act):
    """Call ``act`` before or after a snapshot is taken; number 0 is the initial snapshot."""
    take, calls = FileSnapshots.take, count()

    def taken(self, *arguments):
        if next(calls) == number:
            act()
        return take(self, *arguments)

    return taken


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_interrupt_during_a_snapshot_keeps_files_of_each_step(tmp_path, monkeypatch, number):
    monkeypatch.setattr(FileSnapshots, "take", at_snapshot(number, lambda: signal.raise_signal(signal.SIGINT)))
    cast = write_three_files(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        cast.run()
    cast.run()
    assert files_of_steps(cast, 3) == EACH_STEP_ITS_FILE


def test_snapshot_stores_the_content_that_it_hashed(tmp_path):
    project, stop = tmp_path / "p", threading.Event()
    project.mkdir()
    snapshots = FileSnapshots(project, tmp_path / "casts", "c")
    contents = {name: {letter * size for letter in (b"a", b"b")} for name, size in (("short", 9), ("long", 90_000))}

    def write():
        while not stop.is_set():
            for name, variants in contents.items():
                for variant in variants:
                    (project / name).write_bytes(variant)
                    stop.wait(0.0002)

    writing_agent, commit = threading.Thread(target=write), None
    writing_agent.start()
    try:
        for _ in range(40):
            commit = snapshots.take(commit).commit
    finally:
        stop.set()
        writing_agent.join()
    assert file_snapshots.git(snapshots.git_dir, "fsck", "--strict", "--no-dangling") == b""
    for text in ("one", "two", "one"):  # contents that were there before are there again
        (project / "short").write_text(text)
        commit = snapshots.take(commit).commit
        assert content(snapshots.git_dir, commit, "short") == text.encode()
    assert content(snapshots.git_dir, commit, "long") == (project / "long").read_bytes()


@pytest.mark.parametrize("name", ["tab\there", "line\nend", '"quoted"', "-n", "ä", " "])
def test_file_names_may_contain_any_character(tmp_path, name):
    cast = start(tmp_path, h.chain_config(2), writing_agent((name, "1\n"), (name, "1\n2\n")))
    cast.run()
    assert [(change.path, change.added) for change in cast.files.changes(2)] == [(name, 1)]


def test_git_variables_set_by_a_hook_do_not_affect_snapshots(tmp_path, monkeypatch):
    for variable in ("GIT_QUARANTINE_PATH", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE"):
        monkeypatch.setenv(variable, str(tmp_path / "of the hook"))
    cast = start(tmp_path, h.chain_config(1), writing_agent(("a", "1\n")))
    cast.run()
    assert not cast.now.messages
    assert list(tree_of(cast)) == [b"a"]


def test_restored_file_keeps_its_permissions(tmp_path):
    cast = start(tmp_path, h.chain_config(2), writing_agent(("secret", "1\n"), ("secret", "2\n")))
    cast.run(steps=1)
    (tmp_path / "secret").chmod(0o600)
    cast.run()
    cast.back(1, files=True)
    assert ((tmp_path / "secret").read_text(), (tmp_path / "secret").stat().st_mode & 0o777) == ("1\n", 0o600)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_unreadable_file_is_excluded_and_reported(tmp_path):
    (tmp_path / "locked").write_text("x")
    (tmp_path / "locked").chmod(0)
    (tmp_path / "open").write_text("x")
    taken = FileSnapshots(tmp_path, tmp_path / "casts", "c").take(None)
    assert (taken.changed, taken.left_out) == (("open",), ("locked",))


def test_temporary_directory_left_by_a_killed_process_is_removed(tmp_path):
    leftover = tmp_path / "casts" / "files.git.new" / "objects"
    leftover.mkdir(parents=True)
    start(tmp_path, h.chain_config(1), None).close()
    assert not leftover.parent.exists()
    assert (tmp_path / "casts" / "files.git" / "config").exists()


def test_parallel_processes_create_a_single_snapshot_directory(tmp_path):
    context = multiprocessing.get_context("fork")
    casts = tmp_path / "casts"
    makers = [context.Process(target=FileSnapshots, args=(tmp_path, casts, f"cast-{number}")) for number in range(6)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    assert [maker.exitcode for maker in makers] == [0] * 6
    assert {path.name for path in casts.iterdir()} == {"files.git", "files.git.lock"}


@pytest.mark.parametrize("call", ["is_dir", "exists"])
def test_disk_error_names_its_path(tmp_path, monkeypatch, call):
    def refused(_):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(f"pathlib.Path.{call}", refused)
        with pytest.raises(MateriaError) as caught:
            FileSnapshots(tmp_path, tmp_path / "casts", "cast").take(None)
    assert caught.value.kind == "disk"
    assert caught.value.where.startswith(str(tmp_path))
