"""Test that disk errors and interrupts raise one clear error and leave a cast that can be resumed."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import shutil
import subprocess
import sys
from functools import partialmethod
from pathlib import Path

import pytest

import cast_helpers as h
from materia_nb.cast import open_cast, resume_cast
from materia_nb.errors import MateriaError
from materia_nb.store import journal as journal_module
from materia_nb.store.files import DiskError
from materia_nb.store.journal import read_journal

AGENT = {"*": lambda visit: f"out {visit}"}


def reply(visit):
    return f"out {visit} " + "x" * 300


class Quota:
    """A replacement for os.write that makes short writes until a number of bytes is reached and the disk is full."""

    def __init__(self, monkeypatch, room):
        self.room, self.real = room, os.write
        monkeypatch.setattr(os, "write", self)

    def __call__(self, handle, block):
        if self.room <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        size = min(len(block), self.room, 100)
        self.room -= size
        return self.real(handle, bytes(block[:size]))


@pytest.mark.parametrize("room", range(0, 2400, 97))
def test_full_disk_causes_one_error_and_a_resumable_cast(tmp_path, monkeypatch, room):
    cast = h.start(tmp_path, h.chain_config(3), reply)
    undisturbed = h.start(tmp_path, h.chain_config(3), reply)
    undisturbed.run()
    with monkeypatch.context() as patched:
        quota = Quota(patched, room)
        with pytest.raises(DiskError, match="No space left on device") as caught:
            cast.run()
        assert str(caught.value).count("Could not") == 1
        assert caught.value.where.startswith(str(cast.run_dir))
        assert "resume" in caught.value.hint
        assert not read_journal(cast.run_dir / "events.jsonl").incomplete_line
        h.assert_same(open_cast(cast.run_dir), cast)
        quota.room = 10**9  # somebody made room: this very object goes on
        if cast.status != "complete":
            cast.run()
    assert (cast.route, cast.state) == (undisturbed.route, undisturbed.state)
    cast.close()
    resumed = resume_cast(cast.run_dir, h.table(reply))
    h.assert_same(resumed, undisturbed)
    resumed.export.derived_files()
    assert (cast.run_dir / "usage.json").exists()


def test_disk_full_from_the_start_leaves_no_files(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        Quota(patched, 120)
        with pytest.raises(DiskError):
            h.start(tmp_path, h.chain_config(1))
    assert [path.name for path in (tmp_path / "casts").iterdir() if path.is_dir()] == []


@pytest.fixture
def mounted(tmp_path):
    """Mount a file system of 256 kB that can be made read-only; this requires root."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = shutil.which("mount")
    options = "size=256k,nr_inodes=400"
    if os.geteuid() != 0 or not mount or sys.platform != "linux":
        pytest.skip("only root can mount a file system")
    command = [mount, "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True, capture_output=True)


def test_full_file_system_causes_one_error(mounted):
    cast = h.start(mounted, h.chain_config(40), lambda visit: "y" * 9_000)
    with pytest.raises(DiskError, match="No space left on device"):
        cast.run()
    assert 0 < len(cast.steps) < 40
    h.assert_same(open_cast(cast.run_dir), cast)
    subprocess.run(["mount", "-o", "remount,size=8m", str(mounted)], check=True, capture_output=True)
    cast.close()
    cast = resume_cast(cast.run_dir, h.table(lambda: "z"))
    assert cast.run() == "complete"
    assert len(cast.steps) == 40


def test_read_only_disk_causes_one_error(mounted):
    cast = h.start(mounted, h.chain_config(3), reply)
    cast.run(steps=1)
    cast.close()

    def remount(how):
        subprocess.run(["mount", "-o", f"remount,{how}", str(mounted)], check=True, capture_output=True)

    remount("ro")
    for refused in (
        lambda: resume_cast(cast.run_dir, h.table(reply)),
        lambda: h.start(mounted, h.chain_config(1)),
    ):
        with pytest.raises(DiskError, match="Read-only file system"):
            refused()
    assert open_cast(cast.run_dir).now.engine == cast.now.engine
    remount("rw")
    resumed = resume_cast(cast.run_dir, h.table(reply))
    assert resumed.run() == "complete"


LIMITED = """
import resource, signal, sys
sys.path.insert(0, {tests!r})
import cast_helpers as h
from pathlib import Path
from materia_nb.store.files import DiskError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
cast = h.start(Path({root!r}), h.chain_config(9), lambda visit: "x" * 50)
resource.setrlimit(resource.RLIMIT_FSIZE, (1500, resource.RLIM_INFINITY))
try:
    cast.run()
except DiskError as error:
    print(cast.run_dir, error, sep="\\n")
"""


def test_file_size_limit_causes_one_error(tmp_path):
    """The limit truncates a write as a full disk does, but this test does not require root."""
    code = LIMITED.format(tests=str(Path(h.__file__).parent), root=str(tmp_path))
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    path, told = result.stdout.split("\n", 1)
    assert "File too large" in told
    assert told.count("Could not write the journal") == 1
    assert not read_journal(Path(path) / "events.jsonl").incomplete_line
    cast = resume_cast(Path(path), h.table(lambda visit: "x" * 50))
    assert 0 < len(cast.steps) < 9
    assert cast.run() == "complete"
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


# -- interrupts at every point of a step -----------------------------------------------------


class InterruptedCall:
    """Raises KeyboardInterrupt immediately before or after the n-th call of a function."""

    def __init__(self, real, at, *, after):
        self.real, self.left, self.after = real, at, after

    def __call__(self, *args, **kwargs):
        self.left -= 1
        if self.left == 0 and not self.after:
            raise KeyboardInterrupt
        value = self.real(*args, **kwargs)
        if self.left == 0:
            raise KeyboardInterrupt
        return value


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(1, 9))
@pytest.mark.parametrize("function", ["append", "replace_file", "folded", "entered", "output"])
def test_interrupt_before_or_after_any_write_loses_no_data(tmp_path, monkeypatch, function, at, after):
    """Interrupts occur between writing an artifact, the journal and the session, and around every other write."""
    from materia_nb.cast import runner
    from materia_nb.engine import entering, outputs
    from materia_nb.store import rundir

    owner, name = {
        "append": (journal_module.Journal, "append"),
        "replace_file": (rundir, "replace_file"),
        "folded": (runner, "fold"),
        "entered": (entering, "enter"),
        "output": (outputs, "output"),
    }[function]
    calls = []
    cast = h.start(tmp_path, h.loop_config(), h.loop_agents(1, refuse=[1]))
    cast.follow.changes(lambda c: calls.append(len(c.steps)))
    with monkeypatch.context() as patched:
        real = getattr(owner, name)
        stub = InterruptedCall(real, at, after=after)
        patched.setattr(owner, name, stub if owner is not journal_module.Journal else partialmethod(stub))
        with contextlib.suppress(KeyboardInterrupt):
            cast.run()
    h.assert_same(open_cast(cast.run_dir), cast)
    if cast.status != "complete":
        cast.run()
    assert [visit[0][-1] for visit in cast.route] == ["1", "2", "3", "2", "3", "4"]
    h.assert_same(open_cast(cast.run_dir), cast)


def test_cast_continues_after_a_second_interrupt_while_its_session_is_rebuilt(tmp_path, monkeypatch):
    cast = h.start(tmp_path, h.chain_config(2), reply)
    cast.run(steps=1)

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("materia_nb.cast.runner.read_session", interrupt)
        patched.setattr("materia_nb.cast.runner.fold", interrupt)
        with pytest.raises(KeyboardInterrupt):
            cast.step()
    assert cast.run() == "complete"
    assert [visit[:2] for visit in cast.route] == [("Socket-1", 1), ("Socket-2", 1)]
    h.assert_same(open_cast(cast.run_dir), cast)


CASTING = """
import os, signal, sys, time
sys.path.insert(0, {tests!r})
import cast_helpers as h
from pathlib import Path

def interrupted():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(600)

code = "import os, signal, time; os.kill(os.getppid(), signal.SIGINT); time.sleep(600)"
document = h.one_config(h.python(code, parse="text") if {utility!r} else h.agent())
cast = h.start(Path({root!r}), document, interrupted)
try:
    cast.run()
except KeyboardInterrupt:
    print(cast.run_dir, cast.status, cast.now.waiting_at.socket, len(cast.steps), sep="\\n")
"""


@pytest.mark.parametrize("utility", [False, True])
def test_keyboard_interrupt_leaves_the_socket_waiting(tmp_path, utility):
    """The agent or utility itself sends the signal, so that it always arrives during the work."""
    code = CASTING.format(tests=str(Path(h.__file__).parent), root=str(tmp_path), utility=utility)
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    path, status, socket, steps = result.stdout.split()
    assert (status, socket, steps) == ("waiting", "Socket-1", "1")
    assert (Path(path) / "manifest.json").exists()
    cast = resume_cast(Path(path), h.table(lambda: "done"))
    assert cast.now.messages == []
    if not utility:
        assert cast.run() == "complete"
        assert cast.route == [("Socket-1", 1, None, None)]


# -- what the journal names is gone ------------------------------------------------------------


LONG_OUTPUT = "x" * 70_000
"""An output that is too long for the journal."""


def test_cast_with_a_missing_output_can_be_shown_but_not_resumed(tmp_path):
    cast = h.start(tmp_path, h.loop_config(), h.loop_agents(2, long=LONG_OUTPUT))
    cast.run(steps=4)
    cast.close()
    output = cast.run_dir / "sockets/Socket-2/1-WI-1.md"
    kept = output.read_bytes()
    output.unlink()
    with pytest.raises(MateriaError, match="cannot be read") as caught:
        resume_cast(cast.run_dir)
    assert caught.value.kind == "missing_artifact"
    assert caught.value.where.endswith("sockets/Socket-2/1-WI-1.md")
    assert caught.value.hint
    opened = open_cast(cast.run_dir)
    assert opened.route == cast.route
    assert opened.now.differences == ()
    assert opened.status == "ready"
    assert len(opened.now.messages) == 1
    assert "Step 2" in opened.now.messages[0]
    output.write_bytes(kept)
    assert resume_cast(cast.run_dir, h.table(h.loop_agents(2))).run() == "complete"


def test_r43_modified_long_output_is_detected(tmp_path):
    cast = h.start(tmp_path, h.loop_config(), h.loop_agents(2, long=LONG_OUTPUT))
    cast.run(steps=4)
    cast.close()
    output = cast.run_dir / "sockets/Socket-2/1-WI-1.md"
    output.write_bytes(output.read_bytes().replace(b"built", b"built", 1)[:-1] + b"y")
    with pytest.raises(MateriaError, match="SHA-256") as caught:
        resume_cast(cast.run_dir)
    assert caught.value.kind == "damaged_artifact"
    assert "SHA-256" in open_cast(cast.run_dir).now.messages[0]


def test_r43_cast_and_artifacts_are_rebuilt_from_the_journal_alone(tmp_path):
    cast = h.start(tmp_path, h.loop_config(), h.loop_agents(2, refuse=[1]))
    cast.run(steps=4)
    cast.close()
    written = {
        path.relative_to(cast.run_dir): path.read_bytes()
        for path in cast.run_dir.rglob("*")
        if path.is_file() and path.name not in {"cast.lock", "events.jsonl", "config.resolved.json"}
    }
    shutil.rmtree(cast.run_dir / "sockets")
    (cast.run_dir / "manifest.json").unlink()
    resumed = resume_cast(cast.run_dir, h.table(h.loop_agents(2, refuse=[1])))
    h.assert_same(resumed, cast)
    assert {name: (cast.run_dir / name).read_bytes() for name in written} == written
    assert resumed.run() == "complete"


def test_cast_with_a_missing_plan_shows_its_route_and_items(tmp_path):
    cast = h.start(tmp_path, h.loop_config(), h.loop_agents(2, long=LONG_OUTPUT))
    cast.run()
    (cast.run_dir / "sockets/Socket-1/1.md").unlink()
    opened = open_cast(cast.run_dir)
    assert opened.route == cast.route
    assert opened.status == "complete"
    assert opened.now.differences


def test_cost_of_opening_a_cast_with_a_missing_plan_is_independent_of_its_length(tmp_path):
    cast = h.start(tmp_path, h.loop_config(), h.loop_agents(20, long=LONG_OUTPUT))
    cast.run()
    (cast.run_dir / "sockets/Socket-1/1.md").unlink()
    live, opened = cast.now.engine, open_cast(cast.run_dir).now.engine
    assert opened.trail == live.trail
    assert opened.items == live.items == {}
    assert not opened.passed_items  # each item was entered, though nobody knows what it was


def test_removed_or_replaced_journal_is_detected_before_a_write(tmp_path):
    cast = h.start(tmp_path, h.chain_config(3), reply)
    cast.run(steps=1)
    journal = cast.run_dir / "events.jsonl"
    aside = journal.rename(tmp_path / "aside")
    with pytest.raises(MateriaError, match="removed or replaced") as caught:
        cast.step()
    assert caught.value.kind == "journal_gone"
    journal.write_bytes(aside.read_bytes())
    with pytest.raises(MateriaError, match="removed or replaced"):
        cast.step()
    cast.close()
    assert resume_cast(cast.run_dir, h.table(reply)).run() == "complete"


@pytest.mark.parametrize("change", [lambda text: b"", lambda text: text + b"\n", lambda text: text[:-9]])
def test_write_to_the_journal_by_a_second_process_is_detected(tmp_path, change):
    cast = h.start(tmp_path, h.chain_config(3), reply)
    cast.run(steps=1)
    journal = cast.run_dir / "events.jsonl"
    with journal.open("r+b") as file:
        text = change(file.read())
        file.seek(0)
        file.truncate()
        file.write(text)
    with pytest.raises(MateriaError, match="changed by another program") as caught:
        cast.step()
    assert caught.value.kind == "journal_changed"
    assert len(cast.steps) == 1, "nothing is believed that is not recorded"


def test_unreadable_journal_raises_a_clear_error(tmp_path, monkeypatch):
    cast = h.start(tmp_path, h.chain_config(1))
    journal = cast.runner.journal
    journal.release()

    def refused(*_, **__):
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("materia_nb.store.journal.os.stat", refused)
        with pytest.raises(DiskError) as caught:
            journal.reacquire()
    assert caught.value.where == str(journal.path)
    assert journal.is_released
    cast.close()
