"""Test that all file access goes through one module, is limited to regular files, and releases its handles."""

from __future__ import annotations

import gc
import os
import resource
import sys
import threading
from pathlib import Path

import pytest

import cast_helpers as h
import lint_files
from materia_nb import Workbench
from materia_nb.cast import open_cast, resume_cast, runner_factory
from materia_nb.cast.breakpoint import read_breakpoints
from materia_nb.errors import MateriaError
from materia_nb.file_io import append_line, read_plain, replace_file
from materia_nb.lessons.checks import read_guesses
from materia_nb.store.catalogue import list_casts
from materia_nb.store.rundir import read_context
from materia_nb.utilities.utility_step import list_copies


def test_files_are_opened_only_through_file_io():
    assert lint_files.problems() == []


@pytest.mark.parametrize(
    "code",
    ["open('x')", "os.open('x', 0)", "path.open('rb')", "path.open()", "path.read_text()", "path.read_text(encoding='u')",
     "path.write_bytes(b'')", "path.open(mode='a')", "shutil.copy2(a, b)"],
)  # fmt: skip
def test_lint_rule_detects_calls_that_open_files(code, tmp_path):
    (tmp_path / "one.py").write_text(f"def act(path):\n    return {code}\n")
    (problem,) = lint_files.problems(tmp_path)
    assert ":2: " in problem


def test_only_regular_files_up_to_a_maximum_size_are_read(tmp_path):
    plain = tmp_path / "plain"
    replace_file(plain, [b"abc", b"def"])
    assert read_plain(plain, 6) == b"abcdef"
    with pytest.raises(OSError, match="more than 5 bytes"):
        read_plain(plain, 5)
    (tmp_path / "link").symlink_to(plain)
    with pytest.raises(OSError, match="it is a link"):
        read_plain(tmp_path / "link")
    assert read_plain(tmp_path / "link", follow=True) == b"abcdef"
    os.mkfifo(tmp_path / "pipe")
    for odd in ("pipe", "/dev/zero", tmp_path):
        with pytest.raises(OSError, match="not a plain file"):
            read_plain(tmp_path / odd)


def test_replacing_a_file_keeps_its_permissions_and_does_not_follow_a_link(tmp_path):
    precious, path = tmp_path / "precious", tmp_path / "file"
    precious.write_text("precious")
    path.symlink_to(precious)
    replace_file(path, b"one")
    assert (precious.read_text(), path.is_symlink()) == ("precious", False)
    path.chmod(0o640)
    replace_file(path, b"two")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"two", 0o640)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "precious"]


def test_line_is_appended_after_a_partial_line(tmp_path):
    path = tmp_path / "rows.jsonl"
    append_line(path, b"1")
    path.write_bytes(b"1\n2")
    append_line(path, b"3")
    assert path.read_bytes() == b"1\n2\n3\n"


@pytest.fixture
def waiting_cast(tmp_path):
    """Return a cast that waits before its last socket and has every kind of file that a run creates."""
    cast = h.start(tmp_path, h.chain_config(3, artifacts="all") | {"artifacts": "all"}, lambda visit: "x" * 70_000)
    cast.run(steps=2)
    cast.close()
    return cast.run_dir


NAMES = [
    "events.jsonl", "config.resolved.json", "cast.lock", "manifest.json", "usage.json", "sockets/Socket-1/1.md",
    "contexts/Socket-1-1.md",
]  # fmt: skip


PROJECT = {
    ".pi/pi-materia.json": lambda wb, path: wb.loadouts.config.faults,
    "quest-board.json": lambda wb, path: wb.quests.add("one"),
    "project-context.json": lambda wb, path: read_context(wb.casts.root),
    "breakpoints.json": lambda wb, path: read_breakpoints(path, "Ask"),
    "rows.jsonl": lambda wb, path: wb.sweep("Ask", ["one"], lambda: "x", dir=wb.casts.root),
    "guesses.jsonl": lambda wb, path: read_guesses(path),
    "recording.json": lambda wb, path: wb.agents.recorded(path),
}
"""Functions that read files of a project, by file name."""
IGNORED_FILES = {
    "drafts/Ask.0123abcd.jsonl": lambda wb, path: not wb.loadouts.drafts(),
    ".materia-shipped-utilities.json": lambda wb, path: {copy.status for copy in list_copies(path.parent)} == {"not there"},
}  # fmt: skip
"""Functions that ignore an unreadable file instead of raising an error."""


def create_unreadable(path, kind):
    """Create something at ``path`` that cannot be read to its end, such as a pipe."""
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero" if kind == "device" else path)


def results_of(*acts):
    """Return the result of each call, or the MateriaError that it raised; each must end within 30 seconds."""
    ends = []

    def use():
        for act in acts:
            try:
                ends.append(act())
            except MateriaError as error:
                ends.append(error)

    thread = threading.Thread(target=use, daemon=True)
    thread.start()
    thread.join(30)
    assert len(ends) == len(acts), "raised something else, or waits"
    return ends


KINDS = pytest.mark.parametrize("kind", ["pipe", "device", "folder", "circle"])


@KINDS
@pytest.mark.parametrize("name", NAMES)
def test_pipes_in_a_run_directory_do_not_block(waiting_cast, name, kind):
    create_unreadable(waiting_cast / name, kind)
    (entry,), opened, resumed = results_of(
        lambda: list_casts(waiting_cast.parent),
        lambda: open_cast(waiting_cast),
        lambda: resume_cast(waiting_cast).close(),
    )
    needed = {"events.jsonl", "config.resolved.json", "cast.lock", "sockets/Socket-1/1.md"}
    assert isinstance(resumed, MateriaError) == (name in needed or (name, kind) == ("manifest.json", "folder"))
    assert resumed is None or Path(name).name in str(resumed)
    assert isinstance(opened, MateriaError) == (name in {"events.jsonl", "config.resolved.json"})
    assert (entry.status == "broken") == (name == "events.jsonl")


@KINDS
@pytest.mark.parametrize("name", [*PROJECT, *IGNORED_FILES])
def test_pipes_in_a_project_do_not_block(tmp_path, name, kind):
    path = (tmp_path if name.startswith(".pi") else Workbench(tmp_path).casts.root) / name
    path.parent.mkdir(parents=True)
    create_unreadable(path, kind)
    (end,) = results_of(lambda: (PROJECT | IGNORED_FILES)[name](Workbench(tmp_path), path))
    if name in IGNORED_FILES:
        assert end is True
    else:
        assert name in str(end)
        assert any(why in str(end) for why in ("not a plain file", "link", "not a plain", "a directory", "Is a dir"))


def test_truncated_journal_behind_a_symbolic_link_is_not_repaired(waiting_cast, tmp_path):
    target = tmp_path / "precious"
    journal = waiting_cast / "events.jsonl"
    target.write_bytes(journal.read_bytes() + b'{"ts": 1')
    journal.unlink()
    journal.symlink_to(target)
    before = target.read_bytes()
    with pytest.raises(MateriaError):
        resume_cast(waiting_cast)
    assert target.read_bytes() == before
    assert list(tmp_path.rglob("events.torn*")) == []


# -- handles and locks ---------------------------------------------------------------------------


def open_files():
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


@pytest.fixture
def limited_handles():
    """Limit the process to 30 more file handles than it has open."""
    gc.collect()  # what earlier tests have left open closes now, and not while this one counts
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_files() + 30, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")
CAST_COUNT = int(os.environ.get("MATERIA_MANY_CASTS", "60"))
"""Number of casts to create; 2,000 for a manual run."""


def test_finished_casts_use_no_open_files(limited_handles, tmp_path):
    wb = Workbench(project=tmp_path)
    wb.load(h.one_config())
    wb.agents.set("*", lambda: "done")
    before = open_files()
    casts = [wb.cast(f"number {number}") for number in range(2)]
    for cast in casts:
        cast.run()
    for number in range(CAST_COUNT):
        cast = wb.cast(f"another {number}")
        assert cast.run() == "complete"
    assert open_files() == before
    casts[0].labels.add(name="first")  # taken again, and let go of
    assert open_files() == before
    assert open_cast(casts[0].run_dir).labels.of().name == "first"
    assert casts[0].now.writable


def test_too_many_open_files_raises_a_specific_error(limited_handles, tmp_path):
    held = []
    with pytest.raises(MateriaError, match="too many files are open") as caught:
        held.extend(h.start(tmp_path, h.one_config(), lambda: "done") for _ in range(40))
    assert caught.value.kind == "too_many_files"
    assert "close casts (`cast.close()`" in caught.value.hint
    for cast in held:
        cast.close()
    h.start(tmp_path, h.one_config(), lambda: "done").close()


def test_finished_cast_is_locked_again_when_it_continues(tmp_path):
    def fails(visit):
        if not fails.mended:
            raise ValueError("not yet")
        return "done"

    fails.mended = False
    cast = h.start(tmp_path, h.one_config(), fails)
    assert cast.run() == "failed"
    other = resume_cast(cast.run_dir, h.table(fails))  # nobody holds it
    other.close()
    fails.mended = True
    cast.retry()
    with pytest.raises(MateriaError) as caught:
        resume_cast(cast.run_dir)
    assert cast.status == "ready"
    assert caught.value.kind == "locked"
    cast.run()
    resume_cast(cast.run_dir).close()


def test_concurrent_writes_are_not_overwritten(tmp_path):
    cast = h.start(tmp_path, h.one_config(), lambda: "done")
    cast.run()
    other = resume_cast(cast.run_dir)
    other.labels.add(name="theirs")
    with pytest.raises(MateriaError) as caught:
        cast.labels.add(name="mine")
    assert caught.value.kind == "journal_changed"
    cast.close()
    assert open_cast(cast.run_dir).labels.of().name == "theirs"


def test_forked_process_cannot_write_to_the_journal(tmp_path):
    cast = h.start(tmp_path, h.chain_config(2), lambda: "done")
    cast.run(steps=1)
    child = os.fork()
    if child == 0:
        try:
            cast.step()
        except MateriaError as error:
            os._exit(7 if error.kind == "locked" else 8)
        finally:
            os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert cast.run() == "complete"
    h.assert_same(open_cast(cast.run_dir), cast)


@pytest.mark.parametrize("what", [KeyboardInterrupt, MateriaError, OSError])
def test_failed_resume_releases_its_lock(waiting_cast, what):
    """The resume fails at each line of its code while the traceback is still referenced; then the cast can be resumed."""
    (waiting_cast / "manifest.json").unlink()
    at, lines, expected = 0, [0], [0]
    while at <= lines[0]:
        at += 1
        lines[0], expected[0] = 0, at

        def trace(frame, event, arg):
            if frame.f_code is not runner_factory.resume_runner.__code__:
                return None

            def line(frame, event, arg):
                if event == "line":
                    lines[0] += 1
                    if lines[0] == expected[0]:
                        raise what("at a line")
                return line

            return line

        sys.settrace(trace)
        held = None
        try:
            resume_cast(waiting_cast, h.table(lambda: "x")).close()
        except what as error:
            held = error
        finally:
            sys.settrace(None)
        assert held is not None or lines[0] < at
        resume_cast(waiting_cast, h.table(lambda: "x")).close()
    assert at > 20


def test_files_missing_after_a_full_disk_are_written_on_close(tmp_path, monkeypatch):
    cast = h.start(tmp_path, h.chain_config(2), lambda: "done")
    real = os.replace

    def full(source, target, **named):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(MateriaError, match="No space left"):
        cast.run()
    assert cast.status == "complete"
    monkeypatch.setattr(os, "replace", real)
    cast.close()
    assert (cast.run_dir / "manifest.json").exists()
    assert (cast.run_dir / "sockets/Socket-2/1.md").read_text() == "done"
