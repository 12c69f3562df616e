"""Test that a cast has at most one writer, which other processes can identify."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import threading

import pytest

import cast_helpers as h
from materia_nb.cast import open_cast, resume_cast, start_cast
from materia_nb.errors import MateriaError
from materia_nb.store.files import CastLock, DiskError, lock_owner

HOLD = """
import sys
from pathlib import Path
from materia_nb.store.files import CastLock
lock = CastLock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def other_process(tmp_path):
    """Start a process that holds the lock of ``tmp_path`` until its stdin is closed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait(60)
    for pipe in (process.stdin, process.stdout):
        pipe.close()


def test_lock_error_names_the_other_process(tmp_path, other_process):
    with pytest.raises(MateriaError, match="is being written by process") as caught:
        CastLock(tmp_path)
    assert caught.value.kind == "locked"
    assert f"process {other_process.pid} on " in caught.value.what
    assert "read-only" in caught.value.hint
    assert lock_owner(tmp_path).startswith(f"process {other_process.pid} on ")


@pytest.mark.parametrize("how", ["kill", "end"])
def test_ended_process_releases_its_lock(tmp_path, other_process, how):
    other_process.kill() if how == "kill" else other_process.stdin.close()
    other_process.wait(60)
    assert lock_owner(tmp_path) is None
    CastLock(tmp_path).release()


def test_lock_error_names_the_current_kernel(tmp_path):
    cast = h.start(tmp_path, h.chain_config(2), lambda: "x")
    cast.run(steps=1)
    with pytest.raises(MateriaError, match="this kernel") as caught:
        resume_cast(cast.run_dir)
    assert caught.value.kind == "locked"
    assert open_cast(cast.run_dir).now.engine == cast.now.engine  # looking is always allowed
    assert cast.run() == "complete"
    cast.close()
    cast.close()
    assert not cast.now.writable
    assert cast.steps[0].output == "x"
    with pytest.raises(MateriaError, match="open read-only"):
        cast.step()
    resume_cast(cast.run_dir).close()


def test_refused_resume_releases_its_lock(tmp_path):
    cast = h.start(tmp_path, h.chain_config(2), lambda: "x" * 70_000)
    cast.run()
    cast.close()
    (cast.run_dir / "sockets/Socket-1/1.md").unlink()
    for _ in range(2):
        with pytest.raises(MateriaError) as caught:
            resume_cast(cast.run_dir)
        assert caught.value.kind == "missing_artifact"


def test_unwritable_lock_is_released(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", lambda *a: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(DiskError, match="No space left"):
            CastLock(tmp_path)
    CastLock(tmp_path).release()


@pytest.mark.parametrize("content", [b"", b"junk", b"[]", b'{"pid": 1}', b"\xff"])
def test_lock_without_an_owner_record_is_reported(tmp_path, content):
    lock = CastLock(tmp_path)
    lock.path.write_bytes(content)
    with pytest.raises(MateriaError, match="by another process"):
        CastLock(tmp_path)
    lock.release()


def test_reading_the_lock_does_not_acquire_it(tmp_path):
    """A resume must not fail because another process is listing the casts."""
    stop = threading.Event()

    def look():
        while not stop.is_set():
            lock_owner(tmp_path)

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(200):
            CastLock(tmp_path).release()
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_child_neither_holds_nor_releases_the_lock(tmp_path):
    lock = CastLock(tmp_path)
    ready, done = multiprocessing.Pipe()
    child = os.fork()
    if child == 0:
        try:
            lock.release()  # what a finalizer does at the end of the child
            done.send("released")
            done.recv()
        finally:
            os._exit(0)
    assert ready.recv() == "released"
    assert lock_owner(tmp_path) is not None
    other = os.fork()
    if other == 0:
        ready.close()
        done.poll(60)
        os._exit(0)
    lock.release()
    assert lock_owner(tmp_path) is None
    ready.send("end")
    os.waitpid(child, 0)
    os.kill(other, 9)
    os.waitpid(other, 0)


def test_two_casts_in_one_millisecond_have_different_ids(tmp_path, monkeypatch):
    """The id is derived from the time, so the second cast of a millisecond waits for the next millisecond (R29)."""
    plan = h.plan(tmp_path, h.chain_config(1))
    made, wrong = [], []

    def start():
        try:
            made.append(start_cast(plan, "x"))
        except MateriaError as error:
            wrong.append(error)

    threads = [threading.Thread(target=start) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    assert len({cast.id for cast in made}) == 12
    for cast in made:
        assert len(h.lines_of(cast)) == 1
        assert json.loads((cast.run_dir / "cast.lock").read_text())["pid"] == os.getpid()
