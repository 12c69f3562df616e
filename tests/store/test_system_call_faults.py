"""Test that no data is lost if any single system call for files fails in any possible way.

A cast is started, stepped, edited, forked, resumed and closed. At each system call, one of these faults occurs: the
process dies before the call or during a write; the call fails because the disk is full or broken or no handle is free;
or Ctrl-C is pressed. After each fault the cast is continued. Its result must equal the result of an undisturbed run,
and nothing may remain locked or open.

The death of a process is simulated by a copy of the directory, so that one run creates all copies. Real processes are
killed in ``test_killed_processes.py``.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
import signal
from functools import partial
from pathlib import Path

import pytest

import cast_helpers as h
from materia_nb import platform
from materia_nb.cast import open_cast, resume_cast
from materia_nb.errors import MateriaError
from materia_nb.store import rundir
from materia_nb.store.opening import verify

LONG_OUTPUT = "x" * 70_000
"""An output that is too long for the journal, so that the artifact is the only copy."""
CALLS = (
    "open", "close", "read", "pread", "write", "pwrite", "fsync", "fstat", "ftruncate", "fchmod", "replace", "rename",
    "link", "unlink", "mkdir", "rmdir", "stat", "lstat", "scandir", "listdir",
)  # fmt: skip
TAKES_ROOM = {"create", "write", "pwrite", "fsync", "replace", "link", "mkdir"}
MAKES = os.O_CREAT | (getattr(os, "O_TMPFILE", 0) & ~os.O_DIRECTORY)
CHANGES = TAKES_ROOM | {"ftruncate", "fchmod", "rename", "unlink", "rmdir", "flock"}
"""System calls that change the disk; before any other call, a copy of the directory would be identical."""
OPENS = {"create", "open", "scandir", "listdir"}
READS = {"read", "pread", "open", "scandir", "listdir"}


class Shim:
    """Replaces system calls by the function ``fault``, which receives the original call."""

    looks = False
    """True while the test itself reads the disk, so that its own calls do not fail."""

    def __init__(self, patched, only, fault):
        self.only, self.fault = only, fault
        for name in CALLS:
            patched.setattr(os, name, self.around(name, getattr(os, name)))
        patched.setattr(platform.fcntl, "flock", self.around("flock", platform.fcntl.flock))

    def around(self, name, real):
        def call(*given, **named):
            kind = "create" if name == "open" and given[1] & MAKES else name
            if kind in self.only and not Shim.looks:
                return self.fault(kind, partial(real, *given, **named), real, given)
            return real(*given, **named)

        return call


def refuses(number):
    def fault():
        raise OSError(number, os.strerror(number))

    return fault


FAULTS = {
    "ENOSPC": (refuses(errno.ENOSPC), TAKES_ROOM),
    # A disk that is broken refuses to write as one does that is full.
    "EIO": (refuses(errno.EIO), CHANGES - TAKES_ROOM | READS),
    "EMFILE": (refuses(errno.EMFILE), OPENS),
    "interrupt": (partial(signal.raise_signal, signal.SIGINT), CHANGES | READS),
    "EIO, forced": (refuses(errno.EIO), {"fsync"}),
}


class NeverTimer:
    """A timer that never fires, so that the number of calls does not depend on the clock.

    Files are then written at the next pause.
    """

    def __init__(self, seconds, act):
        pass

    def cancel(self):
        pass


@pytest.fixture(autouse=True, scope="module")
def no_timers():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rundir, "call_later", NeverTimer)
        yield


LOADOUT = h.config(
    {"Socket-1": h.at("Plan", ("always", "Socket-2"), parse="json"), "Socket-2": h.at("Tell")},
    {"Plan": h.agent("Plan {{request}}"), "Tell": h.agent("Tell {{state.context}}")},
)
ANSWERS = {"Plan": lambda: json.dumps({"context": LONG_OUTPUT}), "Tell": lambda: "told"}
AGENTS = h.table(ANSWERS)


def run_directories(root):
    """Return the run directories with recorded events: the original cast and then its fork."""
    Shim.looks = True
    try:
        return [path.parent for path in sorted(root.glob("casts/*/events.jsonl")) if b"\n" in path.read_bytes()]
    finally:
        Shim.looks = False


def perform_actions(root, held, sync=False, *, at_once=False):
    """Perform the remaining actions of the scenario; casts that are open are added to ``held``."""

    def kept(cast):
        held.append(cast)
        return cast

    def resumed(path):
        return kept(resume_cast(path, AGENTS, sync=sync))

    casts = run_directories(root)
    cast = resumed(casts[0]) if casts else kept(h.start(root, LOADOUT, ANSWERS, sync=sync))
    while not any(step.turns for step in cast.steps):
        cast.step()
    if "note" not in cast.state:
        cast.edit.set("note", "by a person")
    if len(run_directories(root)) == 1:
        fork = kept(cast.fork(1))
        fork.run()
        fork.close()
    if not at_once:
        cast.close()
        cast = resumed(run_directories(root)[0])
    if cast.status != "complete":
        cast.run()
    if not cast.labels.of().name:
        cast.labels.add(name="good")
    cast.close()
    fork = resumed(run_directories(root)[1])
    if fork.status != "complete":
        fork.run()
    fork.close()


def final_state(root):
    """Return the values that must be equal at the end of every run."""
    found = []
    for path in run_directories(root):
        cast = open_cast(path)
        assert (cast.now.messages, cast.now.differences) == ([], ())
        assert verify(cast.runner.run_dir).is_intact, verify(cast.runner.run_dir)
        files = {
            str(one.relative_to(path)): one.read_bytes()
            for folder in ("sockets", "contexts")
            for one in (path / folder).rglob("*")
            if one.is_file()
        }
        found.append(
            (
                cast.status,
                cast.route,
                dict(cast.state),
                [s.output for s in cast.steps],
                files,
                cast.labels.of().name,
            )
        )
        assert (path / "manifest.json").exists()
        left = list(path.rglob("*.tmp"))
        assert left == []
    return found


def handles(root):
    """Return the open file handles of this process that belong to the casts."""
    return [
        found for path in Path("/proc/self/fd").glob("*") if (found := os.path.realpath(path)).startswith(str(root))
    ]


def assert_recovers(root, expected, what):
    """Continue the casts in ``root``, and assert that the result equals ``expected``."""
    perform_actions(root, [], at_once=True)
    assert final_state(root) == expected, what
    assert handles(root) == [], what
    shutil.rmtree(root)


@pytest.fixture(scope="module")
def expected(tmp_path_factory, no_timers):
    """Return the result of a run without faults."""
    root = tmp_path_factory.mktemp("undisturbed")
    perform_actions(root, [])
    return final_state(root)


def test_no_recorded_step_is_lost_if_the_process_dies(tmp_path, expected):
    root, left, seen = tmp_path / "run", [], set()

    def keep(name):
        """Copy the directory unless it has not changed since the last call."""
        Shim.looks = True
        try:
            files = [
                (str(path.relative_to(root)), path.stat().st_mode, path.is_file() and path.read_bytes())
                for path in root.rglob("*")
            ]
            if (here := hash(frozenset(files))) not in seen:
                seen.add(here)
                left.append((name, shutil.copytree(root, tmp_path / str(len(left)))))
        finally:
            Shim.looks = False

    def fault(name, act, real, given):
        keep(f"before {name} {given}")
        if name in {"write", "pwrite"}:
            done = real(given[0], bytes(given[1][: len(given[1]) // 2]), *given[2:])
            keep(f"within {name} {given}")
            if name == "write":
                return done + real(given[0], given[1][done:])
        return act()

    root.mkdir()
    with pytest.MonkeyPatch.context() as patched:
        Shim(patched, CHANGES, fault)
        perform_actions(root, [])
    assert final_state(root) == expected
    assert len(left) > 60, "the shim does not see what is called"
    for what, copy in left:
        assert_recovers(copy, expected, what)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="it looks there at what is open")
@pytest.mark.parametrize("kind", FAULTS)
def test_no_recorded_step_is_lost_after_any_disk_error(tmp_path, expected, kind):
    (fault, only), sync = FAULTS[kind], kind == "EIO, forced"
    at, met = 0, [""]
    while met:
        root, held, met, calls, error = tmp_path / f"run{at}", [], [], itertools.count(), None

        def failing(name, act, real, given, met=met, calls=calls, at=at):
            if next(calls) == at:
                met.append(name)
                fault()
            return act()

        with pytest.MonkeyPatch.context() as patched:
            Shim(patched, only, failing)
            try:
                perform_actions(root, held, sync)
            except (MateriaError, KeyboardInterrupt) as raised:
                error = raised  # and with it the frames of all that was under way
        for cast in held:
            cast.close()
        assert_recovers(root, expected, f"call {at}, {met}: {error!r}")
        error = None
        at += 1
    # Fewer would mean that the shim does not see what is called.
    assert at > 12 if sync else at > 30
